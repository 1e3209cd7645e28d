"""Preprocessing of rows and columns of classes that several peers share."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np


def unit_rows(X: np.ndarray) -> np.ndarray:
    """Map features of [0, 1] to [-1, 1], and every row to norm 1."""
    centred = 2.0 * X - 1.0
    return centred / np.maximum(np.linalg.norm(centred, axis=1, keepdims=True), 1e-12)


def score_classes(
    y: np.ndarray, n_classes: int, fit: Callable[[], Callable[[np.ndarray], np.ndarray]]
) -> Callable[[np.ndarray], np.ndarray]:
    """Return scores with a column for every class, of a model that `fit` fits to the classes in `y`."""
    present = np.unique(y)
    if len(present) == 1:
        return lambda X: np.tile(np.eye(n_classes)[present[0]], (len(X), 1))
    score = fit()

    def score_all(X: np.ndarray) -> np.ndarray:
        scores = score(X)
        scores = np.column_stack([-scores, scores]) if scores.ndim == 1 else scores
        full = np.full((len(X), n_classes), scores.min() - 1.0)
        full[:, present] = scores
        return full

    return score_all
