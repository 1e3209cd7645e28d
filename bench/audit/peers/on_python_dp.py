"""PyDP, Google's library under Python: counts, sums, means and medians at epsilon 1."""

from __future__ import annotations

from case import ADDED, Case, release
from pydp.algorithms.laplacian import BoundedMean, BoundedSum, Count, Median

PACKAGE = "python-dp"
_BOUNDS = {"epsilon": 1.0, "lower_bound": -1.0, "upper_bound": 1.0, "dtype": "float"}

CASES = [
    Case("count", release(lambda X, y: Count(epsilon=1.0, dtype="int").quick_result([1] * len(y))), 4000, options=ADDED)
] + [
    Case(name, release(lambda X, y, made=made: made(**_BOUNDS).quick_result(X[:, 0].tolist())), 4000, options=ADDED)
    for name, made in (("sum", BoundedSum), ("mean", BoundedMean), ("median", Median))
]
