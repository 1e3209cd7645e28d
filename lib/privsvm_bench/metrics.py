"""Classification metrics of many models at once, each declared by one entry of `METRICS`.

A path has hundreds of models for the same test rows. All metrics but the AUC follow from confusion matrices, counted in
one pass. Tests compare with scikit-learn.
"""

from __future__ import annotations

import functools
import statistics
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.signedinteger[Any]]


def _sum(values: npt.NDArray[Any], axis: int | tuple[int, ...] = 1) -> Floats:
    return np.asarray(np.sum(values, axis=axis), dtype=np.float64)


@dataclass(frozen=True)
class Predictions:
    """Predictions of R models for n rows, and counts that metrics share."""

    y: Codes  # Shape (n,): true class codes.
    codes: Codes  # Shape (R, n): predicted class codes.
    scores: Floats  # Shape (R, n, k): decision values; k = 1 or c.
    n_classes: int  # c.

    @functools.cached_property
    def confusion(self) -> Floats:
        """Counts of true classes (rows) against predicted ones (R, c, c)."""
        n_models, c = len(self.codes), self.n_classes
        cells = np.arange(n_models)[:, None] * c**2 + self.y * c + self.codes
        return np.bincount(cells.ravel(), minlength=n_models * c**2).reshape(n_models, c, c).astype(np.float64)

    @property
    def hits(self) -> Floats:
        """Rows of each class predicted as that class (R, c)."""
        return np.diagonal(self.confusion, axis1=1, axis2=2)

    @functools.cached_property
    def true(self) -> Floats:
        """Rows of each class (R, c)."""
        return _sum(self.confusion, axis=2)

    @functools.cached_property
    def predicted(self) -> Floats:
        """Rows predicted as each class (R, c)."""
        return _sum(self.confusion)

    @functools.cached_property
    def total(self) -> Floats:
        """Number of rows (R,)."""
        return _sum(self.confusion, axis=(1, 2))

    @property
    def seen(self) -> npt.NDArray[np.bool_]:
        """Mask of classes that occur or are predicted (R, c)."""
        return (self.true + self.predicted) > 0


def _ratio(numerator: Floats, denominator: Floats) -> Floats:
    """Divide, with 0 where the denominator is 0."""
    return np.divide(numerator, denominator, out=np.zeros(np.shape(denominator)), where=denominator != 0)


def _macro(values: Floats, mask: npt.NDArray[np.bool_]) -> Floats:
    """Average over the classes of a mask; 0 where it is empty."""
    return _ratio(_sum(values * mask), _sum(mask))


def _positive_or_macro(values: Floats, predictions: Predictions) -> Floats:
    """Return the value of class 1 for two classes, else the macro average."""
    return values[:, 1] if predictions.n_classes == 2 else _macro(values, predictions.seen)


def _accuracy(predictions: Predictions) -> Floats:
    return _ratio(_sum(predictions.hits), predictions.total)


def _balanced_accuracy(predictions: Predictions) -> Floats:
    return _macro(_ratio(predictions.hits, predictions.true), predictions.true > 0)


def _macro_f1(predictions: Predictions) -> Floats:
    return _macro(_ratio(2 * predictions.hits, predictions.true + predictions.predicted), predictions.seen)


def _matthews(predictions: Predictions) -> Floats:
    true, predicted, total = predictions.true, predictions.predicted, predictions.total
    covariance = _sum(predictions.hits) * total - _sum(true * predicted)
    spread = np.sqrt((total**2 - _sum(predicted**2)) * (total**2 - _sum(true**2)))
    return _ratio(covariance, spread)


def _precision(predictions: Predictions) -> Floats:
    return _positive_or_macro(_ratio(predictions.hits, predictions.predicted), predictions)


def _recall(predictions: Predictions) -> Floats:
    return _positive_or_macro(_ratio(predictions.hits, predictions.true), predictions)


def area_under_curve(predictions: Predictions) -> Floats:
    """Compute the area under the ROC curve for R models: for class 1, or the mean of one class against the rest.

    The result (R,) is NaN if fewer than two classes occur; absent classes are left out of the mean.
    """
    y, scores, n_classes = predictions.y, predictions.scores, predictions.n_classes
    if n_classes == 2 and scores.shape[-1] == 2:
        scores = scores[..., 1:] - scores[..., :1]
    areas = []
    for column, positive in enumerate([1] if scores.shape[-1] == 1 else range(n_classes)):
        is_positive = y == positive
        n_pairs = int(is_positive.sum()) * int((~is_positive).sum())
        if n_pairs:
            areas.append([_won_pairs(values, is_positive) / n_pairs for values in scores[..., column]])
    return np.asarray(np.mean(areas, axis=0)) if areas else np.full(scores.shape[0], np.nan)


def _won_pairs(values: Floats, is_positive: np.ndarray) -> float:
    """Count the pairs of a positive and another row in which the positive one scores higher; ties count half.

    scikit-learn's `roc_auc_score` takes longer to import than a linear model to evaluate.
    """
    others = np.sort(values[~is_positive])
    below, at_most = (np.searchsorted(others, values[is_positive], side) for side in ("left", "right"))
    return np.nan if np.isnan(values).any() else float(below.sum() + at_most.sum()) / 2


def mean_of_known(values: Iterable[float | None]) -> float | None:
    """Average the values that are defined; None if there are none."""
    known = [value for value in values if value is not None]
    return statistics.fmean(known) if known else None


@dataclass(frozen=True)
class Metric:
    """Declaration of one metric; all lists of metrics come from `METRICS`."""

    name: str  # Key in results, in ``reports/curves.csv`` and ``reports/metrics.json``, and in MLflow.
    title: str  # Label of an axis.
    definition: str  # One sentence for the glossary.
    compute: Callable[[Predictions], Floats]  # Array (R,); NaN if undefined. Higher is better.
    range: tuple[float, float] = (0.0, 1.0)  # The least and the largest possible value.
    drawn: bool = True  # Whether the report and MLflow draw it; tables hold all metrics.


METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric("accuracy", "Accuracy", "Share of the test rows whose class is predicted correctly.", _accuracy),
        Metric(
            "balanced_accuracy", "Balanced accuracy",
            "Mean over the classes of the share of their rows that is predicted correctly: every class counts the "
            "same, however rare it is.", _balanced_accuracy,
        ),
        Metric(
            "macro_f1", "Macro-F1",
            "Mean over the classes of F1, the harmonic mean of precision and recall.", _macro_f1,
        ),
        Metric(
            "mcc", "Matthews correlation (MCC)",
            "Correlation between true and predicted classes, from -1 to 1; 0 for a constant prediction.", _matthews,
            range=(-1.0, 1.0),
        ),
        Metric(
            "auc", "Area under the ROC curve (AUC)",
            "Probability that a row of a class scores higher for that class than a row of another: class 1 where there "
            "are two classes, else the mean over all classes; 0.5 is guessing.", area_under_curve,
        ),
        Metric(
            "precision", "Precision",
            "Share of the rows predicted as a class that belong to it: class 1 where there are two classes, else the "
            "mean over the classes.", _precision, drawn=False,
        ),
        Metric(
            "recall", "Recall",
            "Share of the rows of a class that are predicted as that class: class 1 where there are two classes, else "
            "the mean over the classes.", _recall, drawn=False,
        ),
    )
}  # fmt: skip


def compute_metrics(predictions: Predictions) -> dict[str, Floats]:
    """Compute every metric of R models, as arrays (R,) in the order of `METRICS`."""
    return {name: metric.compute(predictions) for name, metric in METRICS.items()}
