"""diffprivlib's logistic regression at epsilon 1, unchanged and with five planted bugs."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager
from typing import Any
from unittest import mock

import diffprivlib.models.logistic_regression as module
import numpy as np
from diffprivlib.mechanisms import Vector
from diffprivlib.models import LogisticRegression
from sklearn.linear_model import LogisticRegression as PlainLogisticRegression

# One feature of norm 1; a small C keeps the loss almost linear, which maximises the effect of one row.
_SETTINGS = {"epsilon": 1.0, "data_norm": 1.0, "C": 0.1, "fit_intercept": False}


class AsItIs(LogisticRegression):
    """The sound estimator."""

    def __init__(self) -> None:
        super().__init__(**_SETTINGS)


class AnEighthOfTheNoise(AsItIs):
    """The mechanism gets eight times the epsilon.

    Twice the epsilon would pass: one row moves the gradient by half the assumed sensitivity.
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> AnEighthOfTheNoise:
        def generous(*, epsilon: float, **others: Any) -> Vector:
            return Vector(epsilon=8.0 * epsilon, **others)

        with mock.patch.object(module, "Vector", generous):
            return super().fit(X, y)


class NoClipping(AsItIs):
    """Rows are not clipped."""

    @staticmethod
    def _clip_to_norm(X: np.ndarray, clip: float) -> np.ndarray:
        return X


class OneSeed(AsItIs):
    """All models have the same noise."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> OneSeed:
        self.random_state = 0
        return super().fit(X, y)


class ScaleOfTheRows(AsItIs):
    """Rows are scaled by the longest one, a private number."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> ScaleOfTheRows:
        return super().fit(X / max(np.abs(X).max(), 1e-9), y)


class ExactIntercept(AsItIs):
    """The intercept is scikit-learn's, without noise."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> ExactIntercept:
        super().fit(X, y)
        self.intercept_ = PlainLogisticRegression(C=0.1).fit(X, y).intercept_
        return self


@contextmanager
def quiet() -> Any:
    """Ignore the package's warnings."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _rows() -> tuple[np.ndarray, np.ndarray]:
    """Return two classes on a line."""
    labels = np.repeat([0, 1], 100)
    return np.where(labels == 1, 1.0, -1.0)[:, None], labels


# Name, estimator, rows to search around (None: synthetic), draws, whether a refutation is expected.
CASES: list[tuple[str, Callable[[], Any], Any, int, bool]] = [
    ("logistic regression, as it is", AsItIs, None, 2000, False),
    ("offset without noise", ExactIntercept, None, 600, True),
    ("one seed", OneSeed, None, 600, True),
    ("rows not clipped", NoClipping, None, 1500, True),
    ("scale read from the rows", ScaleOfTheRows, _rows(), 1500, True),
    ("an eighth of the noise", AnEighthOfTheNoise, None, 3000, True),
]
