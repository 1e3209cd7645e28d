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
