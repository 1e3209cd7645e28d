"""Rows prepared for kernel products by blocks that stay in the CPU cache.

One block is a product of a few rows with many others (BLAS for dense rows, a sparse one for CSR), turned into kernel
values and summed in the same pass, so that a kernel value costs a fraction of a nanosecond and is not stored.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from privsvm.numerics.compiled.jit import jit, jit_step
from privsvm.numerics.compiled.threads import allocate_aligned, one_blas_thread, share_out, thread_pool, threads_worth
from privsvm.numerics.compiled.vector_code import maximum
from privsvm.numerics.compiled.vector_math import FAST_MATH, LOG2_E, SAME_ROUNDING, exp2
from privsvm.numerics.rows.rows import squared_norms
from privsvm.numerics.rows.sparse_rows import CsrArrays
from privsvm.solvers.kernel.kernels import (
    LINEAR,
    POLY,
    RBF,
    SIGMOID,
    Kernel,
    far_centre,
    set_kernel_values,
    set_other_values,
    turn_into_values,
)

# Constant             unit     value and reason
# _BLOCK_ROWS          rows     of a block of products: with _BLOCK_COLUMNS, 256 KB of float32, half of an L2 cache.
#                               Measured: 13 ns a value for 32 rows of 300 features, 8.7 ns for 128. Threads get whole
#                               blocks, so that results do not depend on their number.
# _NEW_ROWS            rows     of a block of an expansion at new rows, in float64. Another size changes last digits.
# _BLOCK_COLUMNS       columns  of a block.
# _PLAIN_PRODUCT       n m k    up to which OpenBLAS does not copy the factors first, on AVX-512; a copy takes a fifth
#                               longer where features are few. _FEWER_ROWS are the block heights to choose from.
# _SPARSE_COST         ratio    of the time per nonzero of a sparse product to that per number of a dense one; measured.
# _COST_FEATURES       features whose product takes as long as the rest of a kernel value; measured.
# _TILE, _LINE_BYTES   numbers, bytes  of a cache line, in float32.
# _SPARSE_BLOCK_BYTES  bytes    of the dense block that a sparse product multiplies with.
# _SPARSE_WIDTH, _SPARSE_MOST  features  between which new CSR rows stay sparse where that product is cheaper; of more
#                               features, a block of other rows would exceed 16 MB.
# _EXPANDED_NUMBERS    numbers  of rows made dense at once: 64 MB.
# _VALUE_SECONDS       s        for a kernel value at `KernelRows.product_cost` 1; _NEW_VALUE_SECONDS at new rows, in
#                               float64; measured.
# _ROUND_OFF           share    of the sum of absolute coefficients up to which their sum is taken for zero.
_BLOCK_ROWS = 128
_NEW_ROWS = 32
_BLOCK_COLUMNS = 512
_PLAIN_PRODUCT, _FEWER_ROWS = 1_000_000, (_BLOCK_ROWS, 64, 32)
_SPARSE_COST = 3.0
_COST_FEATURES = 24.0
_TILE, _LINE_BYTES = 16, 64
_SPARSE_BLOCK_BYTES = 4_000_000
_SPARSE_WIDTH, _SPARSE_MOST = 48, 4096
_EXPANDED_NUMBERS = 8_000_000
_VALUE_SECONDS = 5e-10
_NEW_VALUE_SECONDS = 1e-9
_ROUND_OFF = 1e-9


class _Others(NamedTuple):
    """A block of the rows of an expansion: scaled columns, squared norms and coefficients."""

    columns: np.ndarray
    norms: np.ndarray
    coef: np.ndarray


@jit_step(fastmath=FAST_MATH)
def _subtract(values, products, formula, row_norms, other_norms, coef):
    """Set ``values[t] -= sum_i coef_i K(t, i)``.

    For rbf, `products` become kernel values in the same pass.
    """
    for t in range(products.shape[0]):
        row = products[t]
        # Sums are in float64 even of float32 values: their round-off would outweigh the values' own.
        total = 0.0
        if formula is None:
            norm = row_norms[t]
            for i in range(row.shape[0]):
                total += coef[i] * exp2(-maximum(norm + other_norms[i] - row[i], products.dtype.type(0)))
        else:
            for i in range(row.shape[0]):
                total += coef[i] * row[i]
        values[t] -= total


@jit()
def _subtract_dense(data, norms, values, others, formula, products, first, last):
    """Subtract expansions at the rows from `first` to `last`, as many at a time as `products` has rows."""
    other, other_norms, coef = others
    n_block = products.shape[0]
    for start in range(first, last, n_block):
        stop = min(start + n_block, last)
        block = products[: stop - start]
        np.dot(data[start:stop], other, block)
        if formula is not None:
            set_other_values(block, block, 0, 0, formula)
        _subtract(values[start:stop], block, formula, norms[start:stop], other_norms, coef)


@jit_step()
def _mirror(out, start, stop):
    """Copy rows of a symmetric matrix to the columns above, by cache tiles."""
    for begin in range(0, stop, _TILE):
        for i in range(begin, min(begin + _TILE, stop)):
            for t in range(max(start, i + 1), stop):
                out[i, t] = out[t, i]


@jit()
def _gram_dense(data, norms, other, other_norms, out, formula, symmetric, memory):
    """Write kernel values of all dense rows with others, which are the same rows if `symmetric`.

    Memory for a block comes from NumPy, whose functions take long to compile.
    """
    n = data.shape[0]
    for start in range(0, n, _BLOCK_ROWS):
        stop = min(start + _BLOCK_ROWS, n)
        width = stop if symmetric else other.shape[0]
        block = memory[: (stop - start) * width].reshape(stop - start, width)
        np.dot(data[start:stop], other[:width].T, block)
        set_kernel_values(block, out, start, 0, formula, norms[start:stop], other_norms[:width])
        if symmetric:
            _mirror(out, start, stop)


# Reference counting: Numba counts references to array views except in small functions that make them.
@jit_step(fastmath=SAME_ROUNDING)
def _add_row(out, factors, index, value):
    row = factors[index]
    for i in range(out.shape[0]):
        out[i] += value * row[i]


@jit_step(fastmath=SAME_ROUNDING)
def _add_four_rows(out, factors, indices, weights):
    """Do `_add_row` four times in one pass, with the same bits."""
    one, two, three, four = factors[indices[0]], factors[indices[1]], factors[indices[2]], factors[indices[3]]
    a, b, c, d = weights[0], weights[1], weights[2], weights[3]
    for i in range(out.shape[0]):
        total = out[i] + a * one[i]
        total += b * two[i]
        total += c * three[i]
        out[i] = total + d * four[i]


@jit_step()
def _sparse_products(rows, column_of, other, first, last, products):
    """Multiply CSR rows with a dense matrix of the columns ``column_of >= 0``."""
    data, indices, indptr = rows
    columns, weights = np.empty(4, np.int64), np.empty(4, data.dtype)
    for t in range(first, last):
        out, count = products[t - first], 0
        for i in range(out.shape[0]):
            out[i] = 0
        for k in range(indptr[t], indptr[t + 1]):
            column = column_of[indices[k]]
            if column >= 0:
                columns[count], weights[count] = column, data[k]
                count += 1
                if count == 4:
                    _add_four_rows(out, other, columns, weights)
                    count = 0
        for k in range(count):
            _add_row(out, other, columns[k], weights[k])


@jit()
def _subtract_sparse(rows, norms, values, column_of, others, formula, products, first, last):
    other, other_norms, coef = others
    for start in range(first, last, _BLOCK_ROWS):
        stop = min(start + _BLOCK_ROWS, last)
        block = products[: stop - start]
        _sparse_products(rows, column_of, other, start, stop, block)
        if formula is not None:
            set_other_values(block, block, 0, 0, formula)
        _subtract(values[start:stop], block, formula, norms[start:stop], other_norms, coef)


@jit()
def _gram_sparse(rows, norms, column_of, other, other_norms, out, first_column, formula):
    """Write kernel values of all CSR rows with a block, from `first_column` on."""
    n = norms.shape[0]
    products = np.empty((_BLOCK_ROWS, other.shape[1]), rows.data.dtype)
    for start in range(0, n, _BLOCK_ROWS):
        stop = min(start + _BLOCK_ROWS, n)
        block = products[: stop - start]
        _sparse_products(rows, column_of, other, start, stop, block)
        set_kernel_values(block, out, start, first_column, formula, norms[start:stop], other_norms)


@jit_step()
def _add_sums(values, coef, sums, out):
    """Add kernel values times coefficients to `out`."""
    np.dot(values, coef, sums)
    for t in range(out.shape[0]):
        for k in range(out.shape[1]):
            out[t, k] += sums[t, k]


@jit()
def _expand(data, norms, others, formula, out):
    """Add kernel expansions to `out`."""
    other, other_norms, coef = others
    products, sums = np.empty((_NEW_ROWS, other.shape[1])), np.empty((_NEW_ROWS, coef.shape[1]))
    for start in range(0, data.shape[0], _NEW_ROWS):
        stop = min(start + _NEW_ROWS, data.shape[0])
        block = products[: stop - start]
        np.dot(data[start:stop], other, block)
        turn_into_values(block, formula, norms[start:stop], other_norms)
        _add_sums(block, coef, sums[: stop - start], out[start:stop])


@jit()
def _expand_sparse(rows, norms, column_of, others, formula, out, first, last):
    """Add kernel expansions at the CSR rows from `first` to `last` to `out`."""
    other, other_norms, coef = others
    products, sums = np.empty((_NEW_ROWS, other.shape[1])), np.empty((_NEW_ROWS, coef.shape[1]))
    for start in range(first, last, _NEW_ROWS):
        stop = min(start + _NEW_ROWS, last)
        block = products[: stop - start]
        _sparse_products(rows, column_of, other, start, stop, block)
        turn_into_values(block, formula, norms[start:stop], other_norms)
        _add_sums(block, coef, sums[: stop - start], out[start:stop])


@jit()
def sum_pairs(sums, intercept, out):
    """Compute the pairs' values (n, p) from the classes' sums (c, n, c - 1)."""
    n_classes = sums.shape[0]
    for t in range(out.shape[0]):
        column = 0
        for a in range(n_classes):
            for b in range(a + 1, n_classes):
                out[t, column] = sums[a, t, b - 1] + sums[b, t, a] + intercept[column]
                column += 1


@jit()
def count_votes(values, votes, sums):
    """Take LIBSVM's vote over pairs' values (n, p): votes and sums, (n, c)."""
    n_classes = votes.shape[1]
    for t in range(values.shape[0]):
        column = 0
        for a in range(n_classes):
            for b in range(a + 1, n_classes):
                value = values[t, column]
                # LIBSVM gives a tie to the second class.
                votes[t, a if value > 0 else b] += 1
                sums[t, a] += value
                sums[t, b] -= value
                column += 1


class Expansion:
    """Kernel expansions ``K(X, Z) @ coef`` of k coefficient vectors (m, k), prepared for many calls.

    In float64, without storing the matrix.
    """

    def __init__(self, Z: np.ndarray, coef: np.ndarray, kernel: Kernel):
        self._rows, self._coef = Z, coef
        self._kind = kernel.kind
        self._exponent = float(kernel.gamma) * LOG2_E
        self._factor = 2.0 * self._exponent if self._kind == RBF else float(kernel.gamma)
        self._formula = kernel.formula()

    @functools.cached_property
    def weights(self) -> np.ndarray:
        """Weights of the features, (d, k), which are all that the linear kernel needs."""
        centre = far_centre(self._rows)
        if centre is None:
            return np.asarray(self._rows.T @ self._coef)
        # The coefficients of a C-SVC add up to zero but for round-off, which far rows would blow up.
        sums = self._coef.sum(axis=0)
        sums[np.abs(sums) <= _ROUND_OFF * np.abs(self._coef).sum(axis=0)] = 0.0
        return np.asarray((self._rows - centre).T @ self._coef + np.outer(centre, sums))

    @functools.cached_property
    def _origin(self) -> np.ndarray | None:
        """Shift of dense rows, if any, which reduces cancellation."""
        return self._rows.mean(axis=0) if self._kind == RBF else None

    @functools.cached_property
    def _blocks(self) -> list[_Others]:
        """The shifted rows, by blocks."""
        return list(self._block_of(self._origin))

    def _block_of(self, origin: np.ndarray | None) -> Iterator[_Others]:
        single = self._coef.shape[1] == 1
        for start in range(0, self._rows.shape[0], _BLOCK_COLUMNS):
            block = slice(start, start + _BLOCK_COLUMNS)
            others = np.asarray(self._rows[block], dtype=np.float64)
            others = others if origin is None else others - origin
            other, norms = np.ascontiguousarray(self._factor * others.T), self._exponent * squared_norms(others)
            weights = np.ascontiguousarray(self._coef[block], dtype=np.float64)
            # A single sum is subtracted without storing kernel values, hence the sign.
            yield _Others(other, norms, -weights[:, 0] if single else weights)

    def at(self, X: Any, n_threads: int = 1) -> np.ndarray:
        """Evaluate at the rows of X, (n, k); the result does not depend on the number of threads."""
        if self._kind == LINEAR:
            return np.asarray(X @ self.weights)
        n, d = X.shape
        out = np.zeros((n, self._coef.shape[1]))
        if self._rows.shape[0] == 0:
            return out
        sparse = scipy.sparse.issparse(X)
        stays_sparse = sparse and _SPARSE_WIDTH <= d <= _SPARSE_MOST and X.nnz * _SPARSE_COST < n * d
        cost = 1.0 + (_SPARSE_COST * X.nnz / max(n, 1) if stays_sparse else d) / _COST_FEATURES
        n_threads = threads_worth(n_threads, _NEW_VALUE_SECONDS * cost * n * self._rows.shape[0])
        # Threads get whole blocks of rows.
        share = -(-n // (n_threads * _NEW_ROWS)) * _NEW_ROWS
        bounds = [(first, min(first + share, n)) for first in range(0, n, share)]
        with one_blas_thread(), thread_pool(min(n_threads, len(bounds))) as pool:
            if stays_sparse:
                self._add_at_sparse(scipy.sparse.csr_array(X), out, bounds, pool)
            elif pool is None:
                self._add_at(self._blocks, X, out)
            else:
                share_out(
                    pool, self._add_at, [(self._blocks, X[first:last], out[first:last]) for first, last in bounds]
                )
        return out

    def _add_at(self, blocks: list[_Others], X: Any, out: np.ndarray) -> None:
        """Add expansions at dense rows, or at sparse rows made dense block by block."""
        step = max(_NEW_ROWS, _EXPANDED_NUMBERS // max(X.shape[1], 1))
        for first in range(0, X.shape[0], step):
            rows = X[first : first + step]
            rows = rows if isinstance(rows, np.ndarray) else rows.toarray()
            # Specialisation: one layout, and never read-only.
            rows = np.require(rows, np.float64, ["C", "W"])
            rows = rows if self._origin is None else rows - self._origin
            norms, sums = self._exponent * squared_norms(rows), out[first : first + step]
            for block in blocks:
                if out.shape[1] == 1:
                    products = np.empty((_NEW_ROWS, block.norms.size))
                    _subtract_dense(rows, norms, sums[:, 0], block, self._formula, products, 0, rows.shape[0])
                else:
                    _expand(rows, norms, block, self._formula, sums)

    def _add_at_sparse(self, csr: Any, out: np.ndarray, bounds: list[tuple[int, int]], pool: Any) -> None:
        """Add expansions at CSR rows, unshifted, since a shift makes them dense."""
        rows = CsrArrays(csr.data.astype(np.float64), csr.indices.astype(np.int32), csr.indptr.astype(np.int64))
        row_norms, column_of = self._exponent * squared_norms(csr), np.arange(csr.shape[1], dtype=np.int32)
        for block in self._block_of(None):
            block = block if block.coef.ndim == 2 else block._replace(coef=-block.coef[:, None])
            arguments = (rows, row_norms, column_of, block, self._formula, out)
            share_out(pool, _expand_sparse, [(*arguments, *bound) for bound in bounds])


def kernel_expansion(X, Z: np.ndarray, coef: np.ndarray, kernel: Kernel, n_threads: int = 1) -> np.ndarray:
    """Evaluate kernel expansions at many rows, (n, k), once; see `Expansion`."""
    return Expansion(Z, coef, kernel).at(X, n_threads)


class KernelRows:
    """Rows of one finite matrix, ready for kernel products in float32 or float64.

    Dense rows with many zeros are kept as sparse ones. Sums over kernel values are in float64. The pool has the threads
    for large products. `typical_error` and `largest_error` are errors of a kernel value of a typical row and of the
    longest one, in units of the precision's rounding; `finite` says whether kernel values stay within its range.
    `product_cost` is the time of a kernel value, in units of the time for one feature.
    """

    def __init__(
        self,
        X,
        kernel: Kernel,
        *,
        dtype: Any = np.float32,
        pool: ThreadPoolExecutor | None = None,
        n_threads: int = 1,
    ):
        self._arguments = (X, kernel, pool, n_threads)
        self._index: np.ndarray | None = None
        self.kind = kernel.kind
        self.dtype = np.dtype(dtype)
        self.pool, self.n_threads = pool, n_threads
        self.gamma, self.degree, self.coef0 = float(kernel.gamma), int(kernel.degree), self.dtype.type(kernel.coef0)
        self._formula = kernel.formula(self.dtype)
        sparse = scipy.sparse.issparse(X)
        if not sparse and _mostly_zeros(X):
            X, sparse = scipy.sparse.csr_array(X), True
        elif sparse and X.nnz * _SPARSE_COST > X.shape[0] * X.shape[1]:
            X, sparse = X.toarray(), False
        if self.kind == RBF and not sparse:
            # A shift leaves distances as they are, and shorter rows lose less to cancellation.
            X = X - X.mean(axis=0)
        with np.errstate(over="ignore"):
            squared = squared_norms(X)
        self.typical_error = self._roundings(float(squared.mean()))
        self.largest_error = self._roundings(float(squared.max(initial=0.0)))
        # The kernel rbf is 2 to the power of one product minus two norms.
        exponent = self.gamma * LOG2_E
        # Overflow of float32 is ignored here: `finite` reports it.
        with np.errstate(over="ignore"):
            self._norms = (exponent * squared if self.kind == RBF else squared).astype(self.dtype)
        self._factor = {RBF: 2 * exponent, LINEAR: 1.0}.get(self.kind, self.gamma)
        self._exact: Any = X if self.kind == LINEAR else None
        self._csr: Any = None
        self._dense: Any = None
        with np.errstate(over="ignore"):
            if sparse:
                X = scipy.sparse.csr_array(X)
                # Specialisation: int32 indices where they suffice, since Numba compiles once for each type.
                index = np.int32 if max(X.nnz, *X.shape) <= np.iinfo(np.int32).max else np.int64
                arrays = X.data.astype(self.dtype), X.indices.astype(index), X.indptr.astype(index)
                self._csr = scipy.sparse.csr_array(arrays, shape=X.shape)
            else:
                # Specialisation: one layout, and never read-only.
                self._dense = np.require(X, self.dtype, ["C", "W"])
        self.finite = bool(np.isfinite(self._norms).all() and np.isfinite(self.largest_error))
        self.n_rows = X.shape[0]
        per_row = _SPARSE_COST * X.nnz / max(self.n_rows, 1) if sparse else X.shape[1]
        self.product_cost = 1.0 + per_row / _COST_FEATURES

    def _roundings(self, squared: float) -> float:
        """Bound a kernel value's error for this squared norm, in units of rounding."""
        with np.errstate(over="ignore"):
            argument = np.float64(self.gamma * squared + abs(float(self.coef0)))
            if self.kind == RBF:
                return float(1.0 + self.gamma * squared)
            if self.kind == POLY:
                return float(self.degree * np.maximum(argument, 1.0) ** self.degree)
            return float(1.0 + argument if self.kind == SIGMOID else squared)

    def seconds(self, n_values: float) -> float:
        """Estimate the time that one thread takes for so many kernel values."""
        return _VALUE_SECONDS * self.product_cost * n_values

    def take(self, index: np.ndarray) -> KernelRows:
        """Return the rows of an index array (m,), in its order."""
        subset = object.__new__(KernelRows)
        subset.__dict__.update(self.__dict__)
        subset.n_rows = len(index)
        subset._index = index if self._index is None else self._index[index]
        subset._norms = self._norms[index]
        subset._dense = None if self._dense is None else self._dense[index]
        subset._csr = None if self._csr is None else self._csr[index]
        subset._exact = None if self._exact is None else self._exact[index]
        return subset

    def in_double(self) -> KernelRows:
        """Return the same rows in float64."""
        if self.dtype == np.float64:
            return self
        X, kernel, pool, n_threads = self._arguments
        X = X if self._index is None else X[self._index]
        return KernelRows(X, kernel, dtype=np.float64, pool=pool, n_threads=n_threads)

    def diagonal(self) -> np.ndarray:
        """Return ``K(x, x)`` of each row, (n,)."""
        squared = self._norms.astype(np.float64)
        if self.kind == RBF:
            return np.ones(self.n_rows)
        if self.kind == POLY:
            return (self.gamma * squared + self.coef0) ** self.degree
        if self.kind == SIGMOID:
            return np.tanh(self.gamma * squared + self.coef0)
        return squared

    def gram(self, buffer: np.ndarray, width: int | None = None) -> np.ndarray:
        """Compute the kernel matrix of the rows with themselves, (n, width), as a view of the buffer.

        The buffer has at least n * width numbers, float32 or float64. `width` is at least n, and n if None; columns
        after the n-th are left unchanged.
        """
        width = width or self.n_rows
        out = buffer[: self.n_rows * width].reshape(self.n_rows, width)
        self.write_values(self, out)
        return out

    def write_values(self, others: KernelRows, out: np.ndarray) -> None:
        """Write kernel values with m rows of the same matrix to the first m columns of `out`."""
        if self._csr is None:
            scaled = self.dtype.type(self._factor) * others._dense
            memory = np.empty(_BLOCK_ROWS * others.n_rows, self.dtype)
            _gram_dense(self._dense, self._norms, scaled, others._norms, out, self._formula, self is others, memory)
            return
        for start, stop in others._column_blocks():
            other, column_of = others._scale_columns(slice(start, stop))
            head = (self._csr_arrays, self._norms, column_of, other, others._norms[start:stop])
            _gram_sparse(*head, out, start, self._formula)

    def subtract_expansion(self, values: np.ndarray, others: KernelRows, coef: np.ndarray) -> None:
        """Subtract an expansion in place: ``values_t -= sum_i coef_i K(x_t, z_i)``.

        The rows z, `others`, are of the same matrix.
        """
        if self.kind == LINEAR:
            values -= self._exact @ (others._exact.T @ coef)
            return
        for start, stop in others._column_blocks():
            other, column_of = others._scale_columns(slice(start, stop))
            block = _Others(other, others._norms[start:stop], coef[start:stop])
            if self._csr is None:
                dense = (self._dense, self._norms, values, block, self._formula)
                self._run(_subtract_dense, dense, (_rows_at_once(*other.shape), stop - start))
            else:
                sparse = (self._csr_arrays, self._norms, values, column_of, block, self._formula)
                self._run(_subtract_sparse, sparse, (_BLOCK_ROWS, stop - start))

    @property
    def _csr_arrays(self) -> CsrArrays:
        return CsrArrays(self._csr.data, self._csr.indices, self._csr.indptr)

    def _run(self, task, arguments: tuple, shape: tuple[int, int]) -> None:
        """Run a task with memory for blocks of this shape over all rows, on several threads where that pays."""
        n_threads = threads_worth(self.n_threads, self.seconds(self.n_rows * shape[1]))
        if self.pool is None or n_threads == 1:
            task(*arguments, np.empty(shape, self.dtype), 0, self.n_rows)
            return
        # Each thread gets whole blocks.
        blocks = -(-self.n_rows // _BLOCK_ROWS)
        bounds = [min(k * blocks // n_threads * _BLOCK_ROWS, self.n_rows) for k in range(n_threads + 1)]
        bounds[-1] = self.n_rows
        share_out(
            self.pool, task, [(*arguments, np.empty(shape, self.dtype), *bounds[k : k + 2]) for k in range(n_threads)]
        )

    def _column_blocks(self):
        """Yield the bounds of the blocks in which these rows serve as columns."""
        width = _BLOCK_COLUMNS
        if self._csr is not None:
            occurring = min(self._csr.nnz, self._csr.shape[1])
            width = int(np.clip(_SPARSE_BLOCK_BYTES // max(occurring * self.dtype.itemsize, 1), 16, width))
        for start in range(0, self.n_rows, width):
            yield start, min(start + width, self.n_rows)

    def _scale_columns(self, block: slice) -> tuple[np.ndarray, np.ndarray | None]:
        """Return rows as scaled columns, and each feature's column (CSR only)."""
        factor = self.dtype.type(self._factor)
        if self._csr is None:
            return np.ascontiguousarray((factor * self._dense[block]).T), None
        rows = self._csr[block]
        column_of = np.full(rows.shape[1], -1, dtype=np.int32)
        column_of[rows.indices] = 0
        occurring = np.flatnonzero(column_of == 0)
        column_of[occurring] = np.arange(occurring.size, dtype=np.int32)
        narrowed = scipy.sparse.csr_array(
            (factor * rows.data, column_of[rows.indices], rows.indptr), shape=(rows.shape[0], occurring.size)
        )
        memory = allocate_aligned(occurring.size * rows.shape[0] * self.dtype.itemsize, _LINE_BYTES)
        other = memory.view(self.dtype).reshape(occurring.size, rows.shape[0])
        narrowed.toarray(out=other.T)
        return other, column_of


def _rows_at_once(n_features: int, n_columns: int) -> int:
    """Return how many rows to multiply with so many columns at a time."""
    plain = (n for n in _FEWER_ROWS if n * n_features * n_columns <= _PLAIN_PRODUCT)
    return next(plain, _BLOCK_ROWS)


def _mostly_zeros(X: np.ndarray) -> bool:
    """Tell from a sample whether a sparse product of these dense rows is cheaper."""
    sample = X[:: max(1, X.shape[0] // 1000)]
    return bool(np.count_nonzero(sample) * _SPARSE_COST < sample.size)


def warm_up() -> None:
    """Compile predictions and kernel values, dense and sparse, in both precisions."""
    wide = np.eye(_SPARSE_WIDTH)
    for kernel in (Kernel("rbf"), Kernel("poly")):
        for n_sums in (1, 2):
            kernel_expansion(np.eye(2), np.eye(2), np.ones((2, n_sums)), kernel)
        kernel_expansion(scipy.sparse.csr_array(wide), wide, np.ones((_SPARSE_WIDTH, 1)), kernel)
    sum_pairs(np.zeros((3, 1, 2)), np.zeros(3), np.zeros((1, 3)))
    count_votes(np.zeros((1, 3)), np.zeros((1, 3)), np.zeros((1, 3)))
    eye = np.eye(8)
    both = np.ones((8, 8)) + eye, scipy.sparse.csr_array(eye)
    single = [KernelRows(X, Kernel(kernel)) for X in both for kernel in ("rbf", "poly")]
    for rows in (*single, *(rows.in_double() for rows in single)):
        # Working sets are solved in single precision even where the rows need double.
        for kind in (np.float32, np.float64):
            rows.gram(np.empty(64, kind))
        rows.subtract_expansion(np.zeros(8), rows, np.ones(8))
