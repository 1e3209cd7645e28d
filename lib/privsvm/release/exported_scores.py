"""The steps of a released linear model, for other formats to compute: see `write_scores`."""

from __future__ import annotations

from typing import Protocol, TypeVar

import numpy as np

from privsvm.base.model_file import RECORD
from privsvm.base.released import LinearPath, ReleasedPath
from privsvm.base.scaled_paths import SHORTEST, ColumnLinearPath, ScaledLinearPath
from privsvm.errors import PrivSVMError
from privsvm.solvers.features.columns import Columns, n_column_features

__all__ = ["Backend", "write_scores"]

# Divides rows of zeros, which stay.
_TINY = 1e-300

Value = TypeVar("Value")


class Backend(Protocol[Value]):
    """Operations that a format must have; a value stands for a table of numbers (n, D)."""

    def bounded(self, rows: Value, lower: np.ndarray, upper: np.ndarray, stays: np.ndarray) -> Value:
        """Compute `privsvm.solvers.features.columns.bound_numbers`."""

    def with_hats(self, rows: Value, indicators: np.ndarray, columns: Columns) -> Value:
        """Add the constant and hat functions of `privsvm.solvers.features.columns.column_features`."""

    def centred(self, rows: Value, mean: np.ndarray, least: float) -> Value:
        """Subtract a mean, and divide by the norm or by `least` if that is more."""

    def fourier(self, rows: Value, frequencies: np.ndarray) -> Value:
        """Compute `privsvm.solvers.features.fourier.fourier_features`."""

    def scores(self, rows: Value, coef: np.ndarray, intercept: np.ndarray) -> Value:
        """Compute ``rows @ coef.T + intercept``."""


def write_scores(backend: Backend[Value], path: ReleasedPath, rows: Value) -> Value:
    """Compute the scores (n, k) of one model in another format.

    The rows are features as `privsvm.tables.tables.Encoder.features` makes them. Raises PrivSVMError for a model of a
    kind that cannot be exported.
    """
    if type(path) is LinearPath:
        return backend.scores(rows, path.coef[0, 0], path.intercept[0, 0])
    if not isinstance(path, ScaledLinearPath):
        raise PrivSVMError(
            f"{RECORD}: models of kind {path.kind!r} cannot be exported; release the recommended method, or use "
            "`privsvm predict`"
        )
    d = path.mean.shape[-1]
    if isinstance(path, ColumnLinearPath):
        indicators = path.indicators != 0.0
        columns = Columns(*(getattr(path, name)[0, 0].item() for name in Columns._fields))
        d = n_column_features(indicators, columns)
        rows = backend.bounded(rows, path.lower, path.upper, indicators)
        rows = backend.with_hats(rows, indicators, columns)
    elif path.lower.size:
        rows = backend.bounded(rows, path.lower, path.upper, (path.lower == 0.0) & (path.upper == 1.0))
    rows = backend.centred(rows, np.zeros(d), _TINY)
    mean, count = path.mean[0, 0, :d], int(path.n_frequencies[0, 0])
    if count:
        rows = backend.fourier(backend.centred(rows, mean, _TINY), path.frequencies[:d, :count])
        mean = path.feature_mean[0, 0, : 2 * count]
    rows = backend.centred(rows, mean, SHORTEST)
    return backend.scores(rows, path.coef[0, 0][:, : mean.size], path.intercept[0, 0])
