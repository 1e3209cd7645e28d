"""diffprivlib: logistic regression by objective perturbation, and a random forest, both with delta 0."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from diffprivlib.models import LogisticRegression, RandomForestClassifier
from rows import unit_rows

Score = Callable[[np.ndarray], np.ndarray]


def _all_classes(model: object, probabilities: np.ndarray, n_classes: int) -> np.ndarray:
    """Return one column per declared class, even if the training rows lack it."""
    full = np.zeros((len(probabilities), n_classes))
    full[:, np.asarray(model.classes_, dtype=int)] = probabilities
    return full


def logistic_regression(X: np.ndarray, y: np.ndarray, n_classes: int, epsilon: float, delta: float, seed: int) -> Score:
    """Fit with the default C on rows of norm 1, the bound that sets the sensitivity."""
    model = LogisticRegression(epsilon=epsilon, data_norm=1.0, max_iter=1000, random_state=seed).fit(unit_rows(X), y)
    return lambda X: _all_classes(model, model.predict_proba(unit_rows(X)), n_classes)


def forest(X: np.ndarray, y: np.ndarray, n_classes: int, epsilon: float, delta: float, seed: int) -> Score:
    """Fit ten trees of depth five on disjoint tenths of the rows (defaults)."""
    model = RandomForestClassifier(
        epsilon=epsilon, bounds=(0.0, 1.0), classes=list(range(n_classes)), random_state=seed
    ).fit(X, y)
    return lambda X: _all_classes(model, model.predict_proba(X), n_classes)
