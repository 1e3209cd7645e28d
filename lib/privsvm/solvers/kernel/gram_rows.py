"""Rows whose kernel matrix is in memory, for repeated solves of a small problem."""

from __future__ import annotations

import copy
from typing import Any, Self

import numpy as np

from privsvm.solvers.kernel.kernel_rows import KernelRows
from privsvm.solvers.kernel.kernels import LINEAR

# Cost of a stored kernel value in the unit of `KernelRows.product_cost`: it sets the size of working sets (measured).
_STORED_COST = 2.0


class PrecomputedRows(KernelRows):
    """Rows of any kernel by their kernel matrix (n, n), symmetric and finite."""

    def __init__(self, matrix: np.ndarray):
        self.kind = LINEAR
        self.dtype: np.dtype[Any] = np.dtype(np.float32)
        self.pool, self.n_threads = None, 1
        self.n_rows = matrix.shape[0]
        sizes = np.abs(np.diagonal(matrix))
        # Round-off: one rounding of the value, and one unit.
        self.typical_error, self.largest_error = float(1.0 + sizes.mean()), float(1.0 + sizes.max(initial=0.0))
        self.finite = bool(np.abs(matrix).max(initial=0.0) <= np.finfo(np.float32).max)
        self.product_cost = _STORED_COST
        self._index: np.ndarray | None = None
        # One matrix a precision, which all subsets share.
        self._matrices: dict[np.dtype, np.ndarray] = {
            # Specialisation: one layout, and never read-only.
            np.dtype(np.float64): np.require(matrix, np.float64, ["C", "W"])
        }

    def take(self, index: np.ndarray) -> Self:
        """Return the rows of an index array (m,), in its order."""
        subset = copy.copy(self)
        subset.n_rows = len(index)
        if self._index is not None:
            subset._index = self._index[index]
        elif len(index) < self.n_rows or not np.array_equal(index, np.arange(self.n_rows)):
            subset._index = index
        return subset

    def in_double(self) -> Self:
        """Return the same rows in float64."""
        rows = copy.copy(self)
        rows.dtype, rows.finite = np.dtype(np.float64), True
        return rows

    def seconds(self, n_values: float) -> float:
        """Return 0: no value is computed."""
        return 0.0

    def diagonal(self) -> np.ndarray:
        """Return ``K(x, x)`` of each row, (n,)."""
        values = np.diagonal(self._matrix(np.float64))
        return values.copy() if self._index is None else values[self._index]

    def gram(self, buffer: np.ndarray, width: int | None = None) -> np.ndarray:
        """Return the kernel matrix of the rows in the precision of `buffer`: a view of it, or the stored one."""
        matrix = self._matrix(buffer.dtype)
        if self._index is None and width is None:
            return matrix
        width = width or self.n_rows
        out = buffer[: self.n_rows * width].reshape(self.n_rows, width)
        self.write_values(self, out)
        return out

    def write_values(self, others: KernelRows, out: np.ndarray) -> None:
        """Write stored values with m rows of the same matrix to the first m columns of `out`."""
        rows, columns = (slice(None) if some._index is None else some._index for some in (self, others))
        out[:, : others.n_rows] = self._matrix(out.dtype)[rows][:, columns]

    def subtract_expansion(self, values: np.ndarray, others: KernelRows, coef: np.ndarray) -> None:
        """Subtract a kernel expansion at every row; see `KernelRows.subtract_expansion`."""
        rows = self._matrix(np.float64) if others._index is None else self._matrix(np.float64)[others._index]
        sums = coef @ rows
        values -= sums if self._index is None else sums[self._index]

    def _matrix(self, dtype: Any) -> np.ndarray:
        """Return the matrix in a precision, converted once."""
        dtype = np.dtype(dtype)
        if dtype not in self._matrices:
            self._matrices[dtype] = self._matrices[np.dtype(np.float64)].astype(dtype)
        return self._matrices[dtype]
