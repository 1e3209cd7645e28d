"""diffprivlib at epsilon 1: as it is, and logistic regression with five planted bugs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest import mock

import diffprivlib.models.logistic_regression as module
import numpy as np
from case import Case, clip_feature, pair, release, two_classes
from diffprivlib import BudgetAccountant, tools
from diffprivlib.mechanisms import Vector
from diffprivlib.models import LinearRegression, LogisticRegression, RandomForestClassifier, StandardScaler
from sklearn.linear_model import LogisticRegression as PlainLogisticRegression

PACKAGE = "diffprivlib"
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


class Linear(LinearRegression):
    """Linear regression on features and labels from 0 to 1."""

    def __init__(self) -> None:
        super().__init__(epsilon=1.0, bounds_X=(0.0, 1.0), bounds_y=(0.0, 1.0), fit_intercept=False)


def _scaler(bounds: Any) -> Callable[[], Any]:
    return release(lambda X, y: StandardScaler(epsilon=1.0, bounds=bounds).fit(X).mean_)


def _overflow(X: np.ndarray, y: np.ndarray) -> float:
    """Sum two whole numbers of up to 2^62, whose sum has more than 64 bits (Casacuberta et al. 2022)."""
    return float(tools.sum((clip_feature(X) * 2.0**62).astype(np.int64), bounds=(0, 2**62), epsilon=1.0))


def _votes(**settings: int) -> Callable[[], Any]:
    """Make forests that publish the votes of their trees for both ends of the feature's range."""

    def votes(X: np.ndarray, y: np.ndarray) -> np.ndarray:
        # The default accountant keeps all fits of a process.
        accountant = BudgetAccountant()
        forest = RandomForestClassifier(bounds=(0.0, 1.0), classes=[0, 1], accountant=accountant, **settings)
        return np.array([tree.predict([[0.0], [1.0]]) for tree in forest.fit(X, y).estimators_]).ravel()

    return release(votes)


_WARNED = "its PrivacyLeakWarning: bounds come from the rows"

CASES = [
    Case("logistic regression", AsItIs, 2000),
    Case("offset without noise", ExactIntercept, 600, source="planted"),
    Case("one seed", OneSeed, 600, source="planted"),
    Case("rows not clipped", NoClipping, 1500, source="planted"),
    Case(
        "scale read from the rows",
        ScaleOfTheRows,
        1500,
        source="planted",
        options=two_classes([0] * 100 + [1] * 100, 1.0),
    ),
    Case("an eighth of the noise", AnEighthOfTheNoise, 3000, source="planted"),
    Case("mean", release(lambda X, y: tools.mean(X, bounds=(-1.0, 1.0))), 2000),
    Case("histogram", release(lambda X, y: tools.histogram(X[:, 0], bins=4, range=(-1.0, 1.0))[0]), 2000),
    Case("means of a scaler", _scaler((-1.0, 1.0)), 2000),
    Case("means of a scaler without bounds", _scaler(None), 1500, source=_WARNED),
    Case("linear regression", Linear, 3000, source="IBM/differential-privacy-library#105"),
    Case(
        "sum of large whole numbers",
        release(_overflow),
        6000,
        options={"pairs": pair("2^62 twice, and once", [[1.0], [1.0]], [[1.0], [0.0]])},
    ),
    # They refute the forest on the leaderboard (bench/utility/entries.py).
    Case(
        "random forest, a row more",
        _votes(),
        400,
        source="its code: rows are dealt out to trees in order",
        options={
            "relation": "add_remove",
            "pairs": pair("10 equal rows of two classes in turn, and all but the first", [[1.0]] * 10, [[1.0]] * 9, 1),
        },
    ),
    Case(
        "random forest, a row replaced",
        _votes(n_estimators=1, max_depth=1),
        8000,
        source="its code: a row that moves changes two leaves, each by the whole epsilon",
        options={"pairs": pair("2 rows in one leaf, and the first in another", [[0.0], [0.0]], [[1.0], [0.0]])},
    ),
]
