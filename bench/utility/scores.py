"""Scores of the utility table, equal for all libraries."""

from __future__ import annotations

import math

import numpy as np
from scipy.stats import rankdata

# Of scores: with more, equal answers would differ by how they were rounded.
DIGITS = 4
SCORES = ("accuracy", "balanced_accuracy", "auc")


def _area(positive: np.ndarray, scores: np.ndarray) -> float:
    """Area under the curve, by ranks: scikit-learn's checks take longer than a fit; NaN without rows of both kinds."""
    n_positive, n_pairs = int(positive.sum()), int(positive.sum()) * int((~positive).sum())
    wins = rankdata(scores)[positive].sum() - n_positive * (n_positive + 1) / 2
    return float(wins / n_pairs) if n_pairs else math.nan


def score_row(y: np.ndarray, scores: np.ndarray) -> dict[str, float]:
    """Compute accuracy, balanced accuracy and area under the curve.

    `scores` (n, n_classes) are larger for likelier classes. With more than two classes the area is the mean over
    classes that occur, each against the rest.
    """
    correct, present = scores.argmax(axis=1) == y, np.unique(y)
    if scores.shape[1] == 2:
        areas = [_area(y == 1, scores[:, 1] - scores[:, 0])]
    else:
        # The area compares scores of different rows: remove the mean of each row.
        relative = scores - scores.mean(axis=1, keepdims=True)
        areas = [_area(y == c, relative[:, c]) for c in present]
    values = (correct.mean(), np.mean([correct[y == c].mean() for c in present]), np.mean(areas))
    return dict(zip(SCORES, (round(float(value), 5) for value in values), strict=True))
