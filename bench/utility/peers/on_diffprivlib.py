"""diffprivlib: logistic regression by objective perturbation, and a forest of random trees. Both are pure epsilon."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from diffprivlib.models import LogisticRegression, RandomForestClassifier
from rows import unit_rows

Score = Callable[[np.ndarray], np.ndarray]


def _all_classes(model: object, probabilities: np.ndarray, n_classes: int) -> np.ndarray:
    """One column per declared class, also where the training rows lack one."""
    full = np.zeros((len(probabilities), n_classes))
    full[:, np.asarray(model.classes_, dtype=int)] = probabilities
    return full


def logistic_regression(X: np.ndarray, y: np.ndarray, n_classes: int, epsilon: float, delta: float, seed: int) -> Score:
    """Rows of norm 1, as its sensitivity is the norm's bound; its default C."""
    model = LogisticRegression(epsilon=epsilon, data_norm=1.0, max_iter=1000, random_state=seed).fit(unit_rows(X), y)
    return lambda X: _all_classes(model, model.predict_proba(unit_rows(X)), n_classes)


def forest(X: np.ndarray, y: np.ndarray, n_classes: int, epsilon: float, delta: float, seed: int) -> Score:
    """Its defaults: ten trees of depth five, each on its own tenth of the rows."""
    model = RandomForestClassifier(
        epsilon=epsilon, bounds=(0.0, 1.0), classes=list(range(n_classes)), random_state=seed
    ).fit(X, y)
    return lambda X: _all_classes(model, model.predict_proba(X), n_classes)
