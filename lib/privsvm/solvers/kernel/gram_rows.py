"""Rows whose kernel matrix is in memory, for repeated solves of a small problem.

The distances of the rows serve every gamma of the Gaussian kernel, and the kernel matrix of one gamma serves every C.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from privsvm.numerics.compiled.jit import jit
from privsvm.numerics.compiled.vector_math import FAST_MATH, LOG2_E, exp2
from privsvm.numerics.rows.rows import squared_distances
from privsvm.solvers.kernel.kernel_rows import KernelRows
from privsvm.solvers.kernel.kernels import LINEAR, RBF

__all__ = ["GramRows", "PrecomputedRows", "gaussian_values", "row_distances", "subtract_whole"]

# Cost of a stored kernel value in the unit of `KernelRows.product_cost`: it sets the size of working sets (measured).
_STORED_COST = 2.0

# Blocking for the L1 cache: values that are updated by all rows of the matrix before the next block is begun.
_BLOCK, _CONTIGUOUS_BLOCK = 512, 2048


@jit(fastmath=FAST_MATH)
def _gaussian(distances, factor, out):
    """Set ``out = 2^(-factor distances)``; `out` may have fewer digits."""
    value = out.dtype.type
    for t in range(distances.shape[0]):
        row, result = distances[t], out[t]
        for i in range(row.shape[0]):
            result[i] = exp2(value(-factor * row[i]))


@jit()
def _gather(matrix, index, out):
    """Set ``out[t, i] = matrix[index_t, index_i]``."""
    for t in range(index.shape[0]):
        row, result = matrix[index[t]], out[t]
        for i in range(index.shape[0]):
            result[i] = row[index[i]]


@jit(fastmath=FAST_MATH)
def _subtract_columns(values, matrix, rows, columns, coef):
    """Set ``values_t -= sum_i coef_i matrix[columns_i, rows_t]``, symmetric."""
    for start in range(0, rows.shape[0], _BLOCK):
        stop = min(start + _BLOCK, rows.shape[0])
        for k in range(columns.shape[0]):
            row, weight = matrix[columns[k]], coef[k]
            for t in range(start, stop):
                values[t] -= weight * row[rows[t]]


@jit(fastmath=FAST_MATH)
def subtract_whole(values, matrix, index, coef):
    """Set ``values -= sum_i coef_i matrix[index_i]``."""
    for start in range(0, values.shape[0], _CONTIGUOUS_BLOCK):
        block = values[start : start + _CONTIGUOUS_BLOCK]
        for k in range(index.shape[0]):
            row, weight = matrix[index[k], start : start + _CONTIGUOUS_BLOCK], coef[k]
            for t in range(block.shape[0]):
                block[t] -= weight * row[t]


def row_distances(X, Z=None) -> np.ndarray:
    """Compute squared distances of rows, in float64.

    Parameters
    ----------
    X : ndarray or CSR matrix (n, d)
        Rows.
    Z : ndarray or CSR matrix (m, d), optional
        Other rows; None for X itself, with a diagonal of exact zeros.

    Returns
    -------
    ndarray (n, m)
    """
    others = X if Z is None else Z
    if not hasattr(X, "toarray"):
        # A shift leaves distances as they are, and shorter rows lose less to cancellation.
        origin = others.mean(axis=0)
        X, others = X - origin, others - origin
    distances = squared_distances(X, others)
    if Z is None:
        np.fill_diagonal(distances, 0.0)
    return distances


def gaussian_values(distances: np.ndarray, gamma: float, dtype: Any = np.float64) -> np.ndarray:
    """Return ``exp(-gamma D)`` of squared distances D (n, m) in this precision."""
    out = np.empty(distances.shape, dtype=dtype)
    _gaussian(distances, float(gamma) * LOG2_E, out)
    return out


class _Matrices:
    """The Gaussian kernel matrix, computed once for each precision."""

    def __init__(self, distances: np.ndarray, gamma: float):
        self._distances, self._gamma = distances, gamma
        self._by_precision: dict[np.dtype, np.ndarray] = {}

    def get(self, dtype: np.dtype) -> np.ndarray:
        if dtype not in self._by_precision:
            self._by_precision[dtype] = gaussian_values(self._distances, self._gamma, dtype)
        return self._by_precision[dtype]


class _PrecomputedMatrices:
    """A precomputed kernel matrix, converted once for each precision."""

    def __init__(self, matrix: np.ndarray):
        self._by_precision: dict[np.dtype, np.ndarray] = {np.dtype(np.float64): matrix}

    def get(self, dtype: np.dtype) -> np.ndarray:
        if dtype not in self._by_precision:
            with np.errstate(over="ignore"):
                self._by_precision[dtype] = self._by_precision[np.dtype(np.float64)].astype(dtype)
        return self._by_precision[dtype]


class GramRows(KernelRows):
    """Rows of the Gaussian kernel that read every kernel value from memory.

    Parameters
    ----------
    distances : ndarray (n, n) of float64
        Squared distances of the rows; see `row_distances`.
    gamma : float
        Kernel parameter.
    """

    def __init__(self, distances: np.ndarray, gamma: float):
        self.kind, self.dtype = RBF, np.dtype(np.float32)
        self.pool, self.n_threads = None, 1
        self.n_rows = distances.shape[0]
        # Round-off: the exponent is exact, without cancellation, so a value is off by one rounding or two.
        self.typical_error = self.largest_error = 2.0
        self.finite = bool(np.isfinite(distances).all())
        self.product_cost = _STORED_COST
        self._matrices: _Matrices | _PrecomputedMatrices = _Matrices(distances, float(gamma))
        self._index = None

    @property
    def storable(self) -> bool:
        """False: all values are in memory already."""
        return False

    def stored_rows(self) -> tuple[None, None]:
        """Return None twice: there are kernel values only."""
        return None, None

    def take(self, index: np.ndarray) -> Self:
        """Return the rows of an index array (m,), in its order."""
        subset = self._copy()
        subset.n_rows = len(index)
        if self._index is not None:
            subset._index = self._index[index]
        elif len(index) < self.n_rows or not np.array_equal(index, np.arange(self.n_rows)):
            subset._index = index
        return subset

    def in_double(self) -> Self:
        """Return the same rows in float64."""
        rows = self._copy()
        rows.dtype = np.dtype(np.float64)
        return rows

    def diagonal(self) -> np.ndarray:
        """Return ``K(x, x)`` of each row, (n,)."""
        return np.ones(self.n_rows)

    def gram(self, buffer: np.ndarray) -> np.ndarray:
        """Return the kernel matrix of the rows, in the precision of `buffer`.

        See `KernelRows.gram`.

        Returns
        -------
        ndarray (n, n)
            A view of `buffer`, or the stored matrix: read only.
        """
        matrix = self._matrices.get(buffer.dtype)
        if self._index is None:
            return matrix
        out = buffer[: self.n_rows**2].reshape(self.n_rows, self.n_rows)
        _gather(matrix, self._index, out)
        return out

    def subtract_expansion(self, values: np.ndarray, others: KernelRows, coef: np.ndarray) -> None:
        """Subtract a kernel expansion at every row; see `KernelRows.subtract_expansion`."""
        matrix = self._matrices.get(self.dtype)
        columns = np.arange(others.n_rows) if others._index is None else others._index
        if self._index is None:
            subtract_whole(values, matrix, columns, coef)
        else:
            _subtract_columns(values, matrix, self._index, columns, coef)

    def fill(self, out: np.ndarray, slots: np.ndarray, index: np.ndarray) -> None:
        """Write whole rows of the kernel matrix; see `KernelRows.fill`."""
        matrix = self._matrices.get(self.dtype)
        columns = np.arange(self.n_rows) if self._index is None else self._index
        out[slots] = matrix[np.ix_(columns[index], columns)]

    def _copy(self) -> Self:
        copy = object.__new__(type(self))
        copy.__dict__.update(self.__dict__)
        return copy


class PrecomputedRows(GramRows):
    """Rows of any kernel, by their precomputed kernel matrix.

    Parameters
    ----------
    matrix : ndarray (n, n) of float64
        Kernel matrix; symmetric and finite.
    """

    def __init__(self, matrix: np.ndarray):
        self.kind, self.dtype = LINEAR, np.dtype(np.float32)
        self.pool, self.n_threads = None, 1
        self.n_rows = matrix.shape[0]
        self._values = np.diagonal(matrix)
        sizes = np.abs(self._values)
        # Round-off: one rounding of the value, and one unit.
        self.typical_error, self.largest_error = float(1.0 + sizes.mean()), float(1.0 + sizes.max(initial=0.0))
        self._matrices = _PrecomputedMatrices(matrix)
        self._norms, self._factor, self.coef0, self.degree = sizes, 1.0, np.float32(0.0), 0
        self.finite = bool(np.abs(matrix).max(initial=0.0) <= np.finfo(np.float32).max)
        self.product_cost = _STORED_COST
        self._index = None

    def in_double(self) -> Self:
        """Return the same rows in float64."""
        rows = super().in_double()
        rows.finite = True
        return rows

    def diagonal(self) -> np.ndarray:
        """Return ``K(x, x)`` of each row, (n,)."""
        return self._values.copy() if self._index is None else self._values[self._index]


def warm_up() -> None:
    """Compile what this module runs."""
    distances = row_distances(np.eye(3))
    index = np.array([2, 0])
    rows = GramRows(distances, 1.0)
    subset = rows.take(index)
    subset.gram(np.empty(4, np.float32))
    rows.subtract_expansion(np.zeros(3), subset, np.ones(2))
    subset.subtract_expansion(np.zeros(2), subset, np.ones(2))
