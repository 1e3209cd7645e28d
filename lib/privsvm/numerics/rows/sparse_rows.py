"""Rows stored as CSR: from dense rows, and times one weight vector a class.

The weights of one feature lie together, so one instruction serves eight classes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from privsvm.numerics.compiled.jit import jit, jit_step
from privsvm.numerics.compiled.vector_code import BLOCK, INDEX, WIDTH, ZEROS, VectorCode, lowest_bit
from privsvm.numerics.rows.row_tiles import ROWS

__all__ = [
    "PADDING",
    "add_entries",
    "add_row",
    "canonical_rows",
    "compact",
    "count_numbers",
    "padded_weights",
    "padded_width",
    "score_entries",
    "score_row",
    "score_rows",
    "square_rows",
    "sum_rows",
]

# Numbers of memory after weights that are not padded, since whole machine vectors are read.
PADDING = WIDTH
# Latency hiding: independent sums.
_SUMS = 2


def _entries(generate) -> Any:
    """Build an intrinsic that goes through the entries `first` to `end` of CSR rows."""

    def typed(typingctx, data, indices, first, end, weights, stride, start, lanes):
        def generated(context, builder, signature, arguments):
            code = VectorCode(context, builder, signature, arguments)
            first, end, stride, start = (arguments[i] for i in (2, 3, 5, 6))

            def entry(e):
                """Value of a number in all lanes, and where the weights of its feature are."""
                j = builder.sext(builder.load(code.address(1, e)), INDEX)
                position = builder.add(start, builder.mul(stride, j))
                return code.spread(builder.load(code.address(0, e))), code.address(4, position)

            generate(code, first, end, entry, code.address(7, start))
            return context.get_dummy_value()

        return types.void(data, indices, first, end, weights, stride, start, lanes), generated

    return intrinsic(typed)


def _score(code, first, end, entry, lanes) -> None:
    builder = code.builder
    sums = [cgutils.alloca_once_value(builder, ZEROS) for _ in range(_SUMS)]

    def add(e, total):
        value, weights = entry(e)
        builder.store(code.multiply_add(value, code.load(weights), builder.load(total)), total)

    unrolled_end = builder.add(first, builder.and_(builder.sub(end, first), INDEX(-_SUMS)))
    with cgutils.for_range_slice(builder, first, unrolled_end, INDEX(_SUMS), intp=INDEX) as (e, _):
        for k, total in enumerate(sums):
            add(builder.add(e, INDEX(k)), total)
    with cgutils.for_range_slice(builder, unrolled_end, end, INDEX(1), intp=INDEX) as (e, _):
        add(e, sums[0])
    result = builder.load(sums[0])
    for total in sums[1:]:
        result = builder.fadd(result, builder.load(total))
    code.store(result, lanes)


def _add(code, first, end, entry, lanes) -> None:
    steps = code.load(lanes)
    with cgutils.for_range_slice(code.builder, first, end, INDEX(1), intp=INDEX) as (e, _):
        value, weights = entry(e)
        code.store(code.multiply_add(value, steps, code.load(weights)), weights)


# ``function(data, indices, first, end, weights, stride, start, lanes)``, for the entries ``first`` to ``end`` of
# CSR rows and the vectors ``start`` to ``start + WIDTH``: set lanes to the scores, or add lanes times the entries to
# the weights. The weights of feature j begin at ``j * stride``; eight of them from `start` on are read, and written.
score_row, add_row = _entries(_score), _entries(_add)


def _compare_with_zero(typingctx, X, start):
    def generate(context, builder, signature, arguments):
        kind = ir.VectorType(ir.DoubleType(), BLOCK)
        code = VectorCode(context, builder, signature, arguments)
        numbers = code.load(code.address(0, arguments[1]), kind)
        return builder.bitcast(builder.fcmp_unordered("!=", numbers, ir.Constant(kind, [0.0] * BLOCK)), INDEX)

    return types.uint64(X, start), generate


# ``function(X, start)``: bits that say which of the next numbers are not zero.
_not_zero: Any = intrinsic(_compare_with_zero)


@jit()
def compact(X):
    """Store dense rows as CSR.

    Parameters
    ----------
    X : ndarray of float64 (n, d)
        Rows; contiguous.

    Returns
    -------
    data, indices, indptr : ndarray
        The numbers that are not zero, their columns, and where each row begins.
    """
    n_rows, n_features = X.shape
    numbers = X.reshape(-1)
    indptr = np.zeros(n_rows + 1, dtype=np.int64)
    room = n_features + numbers.shape[0] // 32
    data, indices = np.empty(room), np.empty(room, dtype=np.int32)
    count = 0
    for i in range(n_rows):
        if count + n_features > room:
            room = 2 * room
            more_data, more_indices = np.empty(room), np.empty(room, dtype=np.int32)
            more_data[:count], more_indices[:count] = data[:count], indices[:count]
            data, indices = more_data, more_indices
        start = i * n_features
        blocks_end = n_features - n_features % BLOCK
        for first in range(0, blocks_end, BLOCK):
            bits = _not_zero(numbers, start + first)
            while bits != np.uint64(0):
                j = first + lowest_bit(bits)
                data[count], indices[count] = numbers[start + j], j
                count += 1
                bits &= bits - np.uint64(1)
        for j in range(blocks_end, n_features):
            if numbers[start + j] != 0.0:
                data[count], indices[count] = numbers[start + j], j
                count += 1
        indptr[i + 1] = count
    return data[:count], indices[:count], indptr


@jit()
def count_numbers(X, step):
    """Count what is not zero in every `step`-th of dense rows."""
    count = 0
    for i in range(0, X.shape[0], step):
        for j in range(X.shape[1]):
            count += X[i, j] != 0.0
    return count


@jit(fastmath={"contract"})
def square_rows(data, indptr):
    """Squared norms of CSR rows."""
    squares = np.empty(indptr.shape[0] - 1)
    for i in range(squares.shape[0]):
        total = 0.0
        for e in range(indptr[i], indptr[i + 1]):
            total += data[e] * data[e]
        squares[i] = total
    return squares


@jit_step()
def padded_width(n_classes):
    """Return the number of classes up to a whole number of machine vectors."""
    return (n_classes + WIDTH - 1) // WIDTH * WIDTH


def canonical_rows(X) -> scipy.sparse.csr_array:
    """Return sparse rows as canonical float64 CSR; X does not change."""
    X = scipy.sparse.csr_array(X, dtype=np.float64)
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def padded_weights(n_features: int, n_classes: int) -> np.ndarray:
    """Return zero weights (d, padded c), each vector in one cache line."""
    padded = padded_width(n_classes)
    memory = np.zeros(n_features * padded + WIDTH)
    start = -(memory.ctypes.data // memory.itemsize) % WIDTH
    return memory[start : start + n_features * padded].reshape(n_features, padded)


@jit()
def score_rows(data, indices, indptr, weights, scores):
    """Set scores (n, c) of all rows.

    Parameters
    ----------
    data, indices, indptr : ndarray
        CSR rows.
    weights : ndarray (d, padded)
        See `padded_weights`.
    scores : ndarray (n, c)
        Is overwritten.
    """
    padded = weights.shape[1]
    numbers, lanes = weights.reshape(-1), np.empty(padded)
    for i in range(scores.shape[0]):
        for start in range(0, padded, WIDTH):
            score_row(data, indices, indptr[i], indptr[i + 1], numbers, padded, start, lanes)
        for m in range(scores.shape[1]):
            scores[i, m] = lanes[m]


@jit()
def sum_rows(data, indices, indptr, alpha, weights):
    """Set weights (d, padded) to the sum of rows times `alpha` (n, c)."""
    padded = weights.shape[1]
    numbers, lanes = weights.reshape(-1), np.zeros(padded)
    numbers[:] = 0.0
    for i in range(alpha.shape[0]):
        for m in range(alpha.shape[1]):
            lanes[m] = alpha[i, m]
        for start in range(0, padded, WIDTH):
            add_row(data, indices, indptr[i], indptr[i + 1], numbers, padded, start, lanes)


@jit_step()
def score_entries(data, indices, first, end, weights, n_vectors, lanes, z, row):
    """Set the scores of one of eight CSR rows, for weights that are not padded.

    Parameters
    ----------
    data, indices : ndarray
        Numbers of all rows, and their features.
    first, end : int
        Which of them are the row's.
    weights : ndarray
        Numbers of the vectors for the first feature, then for the second, and so on; at least `PADDING` numbers of
        memory follow the last one.
    n_vectors : int
        Number of vectors.
    lanes : ndarray (padded_width(n_vectors),)
        Is overwritten.
    z : ndarray (n_vectors * 8,)
        For every vector, the products of eight rows.
    row : int
        Which of the eight.
    """
    for start in range(0, n_vectors, WIDTH):
        score_row(data, indices, first, end, weights, n_vectors, start, lanes)
    for k in range(n_vectors):
        z[k * ROWS + row] = lanes[k]


@jit_step()
def add_entries(data, indices, first, end, h, n_vectors, high, lanes, G, row):
    """Add products of one of eight CSR rows to vectors; see `score_entries`.

    Parameters
    ----------
    data, indices, first, end, n_vectors, lanes, row
        See `score_entries`. The indices of a row ascend.
    h : ndarray (n_vectors * 8,)
        For every vector, the numbers of eight rows.
    high : int
        Another thread may be at work on the numbers of this feature and of those behind it.
    G : ndarray
        Numbers of the vectors for the first feature, then for the second, and so on.
    """
    for k in range(lanes.shape[0]):
        # Padding: lanes beyond the vectors add zero to the next feature.
        lanes[k] = h[k * ROWS + row] if k < n_vectors else 0.0
    # Race: a whole machine vector of these would reach into the numbers of feature `high`.
    inside = end
    while inside > first and (high - indices[inside - 1]) * n_vectors < lanes.shape[0]:
        inside -= 1
    for start in range(0, n_vectors, WIDTH):
        add_row(data, indices, first, inside, G, n_vectors, start, lanes)
    numbers = lanes.copy() if inside < end else lanes
    for e in range(inside, end):
        target = G[indices[e] * n_vectors :]
        for k in range(n_vectors):
            numbers[k] = target[k]
        for start in range(0, n_vectors, WIDTH):
            add_row(data, indices, e, e + 1, numbers, 0, start, lanes)
        for k in range(n_vectors):
            target[k] = numbers[k]
