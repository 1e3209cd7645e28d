"""Kernel values of rows sorted by class, by single rows or by tiles of classes.

BLAS multiplies dense rows for a tile, by blocks that stay in the processor's cache. Where a pair needs few of its rows,
computing those alone is cheaper, if they have few features.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from privsvm.numerics.compiled.jit import jit_step
from privsvm.numerics.compiled.vector_math import FAST_MATH, exp2, maximum
from privsvm.solvers.kernel.kernel_rows import KernelRows, sparse_products
from privsvm.solvers.kernel.kernels import LINEAR, RBF, set_kernel_values, set_other_values

__all__ = ["Blocks", "ClassRows", "class_rows", "copy_tile", "fill_row", "fill_tile", "make_blocks"]

# Rows of a block and its columns: half a megabyte of float32.
_ROWS, _COLUMNS = 256, 512

# Size of the dense matrix that a sparse block is multiplied with, in numbers, and its least number of columns.
_SPREAD_NUMBERS, _LEAST_COLUMNS = 250_000, 16

# Most features of dense rows that are computed one by one, and kernel values of a row that are computed together.
_FEW_FEATURES, _VALUES = 64, 512

# Cache line, in float32: columns that are copied together.
_LINE = 16


class ClassRows(NamedTuple):
    """Rows sorted by class: dense, CSR, or a precomputed kernel matrix."""

    given: bool
    sparse: bool
    matrix: np.ndarray
    dense: np.ndarray
    scaled: np.ndarray
    # Rows by columns, (d, n), of dense rows that may be computed one by one; else empty.
    columns: np.ndarray
    data: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray
    norms: np.ndarray
    diagonal: np.ndarray
    n_features: int
    factor: float
    kind: int
    coef0: float
    degree: int


class Blocks(NamedTuple):
    """Memory of one thread for products, and for sparse columns made dense."""

    products: np.ndarray
    spread: np.ndarray
    # Column of each feature among those that occur; -1 for none.
    column_of: np.ndarray


def class_rows(rows: KernelRows) -> ClassRows:
    """Lay rows out for `fill_tile`, in one type for Numba's specialisation."""
    kind = rows.dtype
    norms, matrix = np.empty(0, dtype=kind), np.empty((0, 0), dtype=kind)
    dense, csr = rows.stored_rows()
    given = dense is None and csr is None
    if given:
        matrix = rows.gram(np.empty(0, dtype=kind))
    else:
        norms = rows.norms
    dense = matrix[:0, :0] if dense is None else dense
    narrow = 0 < dense.shape[1] <= _FEW_FEATURES
    data, indices, indptr = np.empty(0, dtype=kind), np.empty(0, dtype=np.int32), np.zeros(1, dtype=np.int32)
    if csr is not None:
        data, indices, indptr = csr.data, csr.indices, csr.indptr
    return ClassRows(
        given=given,
        sparse=csr is not None,
        matrix=matrix,
        dense=dense,
        scaled=kind.type(rows.factor) * dense,
        columns=np.ascontiguousarray(dense.T) if narrow else matrix[:0, :0],
        data=data,
        indices=indices,
        indptr=indptr,
        norms=norms,
        diagonal=rows.diagonal().astype(kind),
        n_features=0 if csr is None else csr.shape[1],
        factor=float(rows.factor),
        kind=int(rows.kind),
        coef0=kind.type(rows.coef0),
        degree=int(rows.degree),
    )


# Reference counting: Numba counts references to array views except in small functions that make them; counting takes
# longer than a pass over a short row.
@jit_step(fastmath=FAST_MATH)
def _add_four(out, begin, end, columns, k, start, a, b, c, d):
    block, first, last = out[begin:end], start + begin, start + end
    one, two = columns[k, first:last], columns[k + 1, first:last]
    three, four = columns[k + 2, first:last], columns[k + 3, first:last]
    for t in range(block.shape[0]):
        block[t] += (a * one[t] + b * two[t]) + (c * three[t] + d * four[t])


@jit_step(fastmath=FAST_MATH)
def _add_one(out, begin, end, columns, k, start, a):
    block, one = out[begin:end], columns[k, start + begin : start + end]
    for t in range(block.shape[0]):
        block[t] += a * one[t]


@jit_step()
def _add_products(out, columns, row, factor, start):
    """Set ``out += factor * columns[:, row]' columns[:, start : start + len(out)]``."""
    n_features, size = columns.shape[0], out.shape[0]
    by_fours = n_features - n_features % 4
    kind = out.dtype.type
    for begin in range(0, size, _VALUES):
        end = min(begin + _VALUES, size)
        for k in range(0, by_fours, 4):
            _add_four(
                out, begin, end, columns, k, start, kind(factor * columns[k, row]), kind(factor * columns[k + 1, row]),
                kind(factor * columns[k + 2, row]), kind(factor * columns[k + 3, row]),
            )  # fmt: skip
        for k in range(by_fours, n_features):
            _add_one(out, begin, end, columns, k, start, kind(factor * columns[k, row]))


@jit_step(fastmath=FAST_MATH)
def _to_gaussian(out, norm, norms):
    for t in range(out.shape[0]):
        out[t] = exp2(-maximum(norm + norms[t] - out[t], out.dtype.type(0)))


@jit_step()
def fill_row(out, slot, first, last, row, start, columns, norms, kind, factor, coef0, degree):
    """Write a row's kernel values to columns ``first..last`` of ``out[slot]``."""
    values = out[slot, first:last]
    size = last - first
    for t in range(size):
        values[t] = 0
    _add_products(values, columns, row, factor, start)
    if kind == RBF:
        _to_gaussian(values, norms[row], norms[start : start + size])
    elif kind != LINEAR:
        block = values.reshape(1, size)
        set_other_values(block, block, 0, 0, kind, coef0, degree)


@jit_step()
def make_blocks(rows, longest):
    """Allocate memory for tiles of classes of at most `longest` rows."""
    kind = rows.diagonal.dtype
    columns = min(_COLUMNS, longest)
    numbers = max(_SPREAD_NUMBERS, _LEAST_COLUMNS * rows.n_features) if rows.sparse else 0
    return Blocks(
        products=np.empty(min(_ROWS, longest) * columns, kind),
        spread=np.empty(min(numbers, columns * rows.n_features), kind),
        column_of=np.full(rows.n_features, np.int32(-1)),
    )


@jit_step()
def _spread(rows, blocks, start, stop):
    """Make scaled sparse rows dense columns; return those of the features that occur."""
    width, count = stop - start, 0
    column_of, spread, indices = blocks.column_of, blocks.spread, rows.indices
    if not rows.sparse:
        return spread[:0].reshape(0, width)
    column_of[:] = np.int32(-1)
    for k in range(rows.indptr[start], rows.indptr[stop]):
        if column_of[indices[k]] < 0:
            column_of[indices[k]] = count
            count += 1
    spread[: count * width] = 0
    for t in range(start, stop):
        for k in range(rows.indptr[t], rows.indptr[t + 1]):
            # Entries stored twice add up.
            spread[column_of[indices[k]] * width + t - start] += rows.data.dtype.type(rows.factor) * rows.data[k]
    return spread[: count * width].reshape(count, width)


@jit_step()
def copy_tile(out, row, column, source, start, stop, first, last):
    """Copy a tile of one matrix to `row` and `column` of another."""
    for t in range(start, stop):
        target, values = out[row + t - start, column : column + last - first], source[t, first:last]
        for i in range(values.shape[0]):
            target[i] = values[i]


@jit_step()
def _reflect_line(out, row, column, stop):
    """Copy a range of a row to the same column of the symmetric matrix."""
    source, target = out[row, column:stop], out[column:stop, row]
    for i in range(source.shape[0]):
        target[i] = source[i]


@jit_step()
def _reflect(out, row, height, column, width):
    """Copy a tile to its transposed position in the symmetric matrix.

    A diagonal tile is copied from below the diagonal.
    """
    for begin in range(column, column + width, _LINE):
        end = min(begin + _LINE, column + width)
        for t in range(max(row, begin) if row == column else row, row + height):
            _reflect_line(out, t, begin, min(end, t) if row == column else end)


@jit_step()
def fill_tile(out, row, start, stop, column, other_start, other_stop, rows, blocks):
    """Write the kernel values of two ranges of rows, and their reflection.

    They go to `row` and `column` of `out`, which is symmetric; `row` is `column` for a class with itself.
    """
    if rows.given:
        copy_tile(out, row, column, rows.matrix, start, stop, other_start, other_stop)
        copy_tile(out, column, row, rows.matrix, other_start, other_stop, start, stop)
        return
    width = _COLUMNS
    if rows.sparse and rows.n_features > 0:
        width = min(_COLUMNS, max(1, blocks.spread.shape[0] // rows.n_features))
    for begin in range(other_start, other_stop, width):
        end = min(begin + width, other_stop)
        other = _spread(rows, blocks, begin, end)
        for first in range(start, stop, _ROWS):
            last = min(first + _ROWS, stop)
            # Blocks above the diagonal of a class with itself are reflected below.
            if start == other_start and begin >= last:
                continue
            block = blocks.products[: (last - first) * (end - begin)].reshape(last - first, end - begin)
            if rows.sparse:
                sparse_products(rows.data, rows.indices, rows.indptr, blocks.column_of, other, first, last, block)
            else:
                np.dot(rows.dense[first:last], rows.scaled[begin:end].T, block)
            set_kernel_values(
                block, out, row + first - start, column + begin - other_start, rows.kind, rows.norms[first:last],
                rows.norms[begin:end], rows.coef0, rows.degree,
            )  # fmt: skip
    _reflect(out, row, stop - start, column, other_stop - other_start)
