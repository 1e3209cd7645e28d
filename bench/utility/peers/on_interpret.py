"""interpret-core: DP-EBM, additive models by noisy boosting, with its defaults."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from interpret.privacy import DPExplainableBoostingClassifier


def ebm(
    X: np.ndarray, y: np.ndarray, n_classes: int, epsilon: float, delta: float, seed: int
) -> Callable[[np.ndarray], np.ndarray]:
    """Fit with continuous features in [0, 1], otherwise with defaults."""
    d = X.shape[1]
    model = DPExplainableBoostingClassifier(
        epsilon=epsilon,
        delta=delta,
        random_state=seed,
        feature_types=["continuous"] * d,
        privacy_bounds=dict.fromkeys(range(d), (0.0, 1.0)),
        n_jobs=1,
    ).fit(X, y)
    return model.predict_proba


def nominal_ebm(
    X: np.ndarray, y: np.ndarray, n_classes: int, epsilon: float, delta: float, seed: int, levels: np.ndarray
) -> Callable[[np.ndarray], np.ndarray]:
    """Fit with categories declared to be nominal, otherwise with defaults."""
    numbers = np.flatnonzero(levels == 0)
    model = DPExplainableBoostingClassifier(
        epsilon=epsilon,
        delta=delta,
        random_state=seed,
        feature_types=["nominal" if count else "continuous" for count in levels],
        privacy_bounds={int(column): (0.0, 1.0) for column in numbers},
        n_jobs=1,
    )

    def rows(X: np.ndarray) -> np.ndarray:
        table = X.astype(object)
        for column in np.flatnonzero(levels):
            table[:, column] = [f"{code:g}" for code in X[:, column]]
        return table

    model.fit(rows(X), y)
    return lambda X_test: model.predict_proba(rows(X_test))
