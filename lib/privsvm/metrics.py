"""Classification metrics of many models at once.

A path has hundreds of models for the same test rows; one confusion matrix each, counted together, gives
all metrics but the AUC. scikit-learn's functions are the oracle in the tests.
"""

from __future__ import annotations

import numpy as np
import scipy.stats

__all__ = ["METRICS", "area_under_curve", "confusion_matrices", "confusion_metrics"]

METRICS = ("accuracy", "balanced_accuracy", "macro_f1", "mcc", "precision", "recall", "auc")


def confusion_matrices(y: np.ndarray, predicted: np.ndarray, n_classes: int) -> np.ndarray:
    """Count true against predicted classes.

    Parameters
    ----------
    y : ndarray of int (n,)
        True class codes.
    predicted : ndarray of int (R, n)
        Predicted codes of R models.
    n_classes : int
        c.

    Returns
    -------
    ndarray of int (R, c, c)
        Rows are true classes.
    """
    n_models = predicted.shape[0]
    offsets = np.arange(n_models)[:, None] * n_classes**2
    cells = np.bincount((offsets + y * n_classes + predicted).ravel(), minlength=n_models * n_classes**2)
    return cells.reshape(n_models, n_classes, n_classes)


def _ratio(numerator: np.ndarray, denominator: np.ndarray) -> np.ndarray:
    """Divide, with 0 where the denominator is 0."""
    return np.divide(numerator, denominator, out=np.zeros(np.shape(denominator)), where=denominator != 0)


def confusion_metrics(confusion: np.ndarray) -> dict[str, np.ndarray]:
    """Metrics that follow from confusion matrices.

    Parameters
    ----------
    confusion : ndarray of int (R, c, c)
        Rows are true classes.

    Returns
    -------
    dict of str to ndarray (R,)
        ``accuracy``; ``balanced_accuracy``, mean recall over the classes that occur; ``macro_f1``, over
        the classes that occur or are predicted; ``mcc``, Matthews correlation, 0 for a constant
        prediction; ``precision`` and ``recall``: of class 1 for two classes, else macro over the
        classes that occur or are predicted, 0 where undefined.
    """
    counts = confusion.astype(np.float64)
    hits = np.diagonal(counts, axis1=1, axis2=2)
    true, predicted = counts.sum(axis=2), counts.sum(axis=1)
    total = counts.sum(axis=(1, 2))
    recall, precision = _ratio(hits, true), _ratio(hits, predicted)
    f1 = _ratio(2 * hits, true + predicted)
    occurs, seen = true > 0, (true + predicted) > 0
    covariance = hits.sum(axis=1) * total - (true * predicted).sum(axis=1)
    spread = np.sqrt((total**2 - (predicted**2).sum(axis=1)) * (total**2 - (true**2).sum(axis=1)))
    two_classes = confusion.shape[1] == 2

    def macro(values: np.ndarray, mask: np.ndarray) -> np.ndarray:
        return _ratio((values * mask).sum(axis=1), mask.sum(axis=1).astype(float))

    return {
        "accuracy": _ratio(hits.sum(axis=1), total),
        "balanced_accuracy": macro(recall, occurs),
        "macro_f1": macro(f1, seen),
        "mcc": _ratio(covariance, spread),
        "precision": precision[:, 1] if two_classes else macro(precision, seen),
        "recall": recall[:, 1] if two_classes else macro(recall, seen),
    }


def area_under_curve(y: np.ndarray, scores: np.ndarray, n_classes: int) -> np.ndarray:
    """Area under the ROC curve: of class 1 for two classes, else the mean over one-vs-rest curves.

    Parameters
    ----------
    y : ndarray of int (n,)
        True class codes.
    scores : ndarray (R, n, k)
        Decision values of R models; k = 1 or c.
    n_classes : int
        c.

    Returns
    -------
    ndarray (R,)
        NaN where fewer than two classes occur. Classes that do not occur are left out of the mean.
    """
    if n_classes == 2 and scores.shape[-1] == 2:
        scores = scores[..., 1:] - scores[..., :1]
    positives = [1] if scores.shape[-1] == 1 else range(n_classes)
    areas = []
    for column, positive in enumerate(positives):
        is_positive = y == positive
        n_positive, n_negative = int(is_positive.sum()), int((~is_positive).sum())
        if n_positive and n_negative:
            ranks = scipy.stats.rankdata(scores[..., column], axis=-1)
            areas.append(
                (ranks[:, is_positive].sum(axis=1) - n_positive * (n_positive + 1) / 2) / (n_positive * n_negative)
            )
    return np.mean(areas, axis=0) if areas else np.full(scores.shape[0], np.nan)
