"""Scores of the utility table, equal for all libraries."""

from __future__ import annotations

import numpy as np
from sklearn.metrics import accuracy_score, balanced_accuracy_score, roc_auc_score

# Of scores: with more, equal answers would differ by how they were rounded.
DIGITS = 4
SCORES = ("accuracy", "balanced_accuracy", "auc")


def score_row(y: np.ndarray, scores: np.ndarray) -> dict[str, float]:
    """Compute accuracy, balanced accuracy and area under the curve.

    `scores` (n, n_classes) are larger for likelier classes. With more than two classes the area is the mean over
    classes that occur, each against the rest.
    """
    predicted = scores.argmax(axis=1)
    present = np.unique(y)
    if scores.shape[1] == 2:
        areas = [roc_auc_score(y, scores[:, 1] - scores[:, 0])] if len(present) == 2 else [float("nan")]
    else:
        # The area compares scores of different rows: remove the mean of each row.
        relative = scores - scores.mean(axis=1, keepdims=True)
        areas = [roc_auc_score(y == c, relative[:, c]) for c in present]
    values = (accuracy_score(y, predicted), balanced_accuracy_score(y, predicted), float(np.mean(areas)))
    return dict(zip(SCORES, (round(float(value), 5) for value in values), strict=True))
