"""Rows stored as CSR: from dense rows, and times one weight vector a class.

The weights of one feature lie together, padded to whole machine vectors, so one instruction serves eight classes.
LLVM finds no such loops by itself, so they are written as its vector instructions here.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

__all__ = [
    "WIDTH",
    "add_row",
    "compact",
    "count_numbers",
    "padded_weights",
    "score_row",
    "score_rows",
    "square_rows",
    "sum_rows",
]

# Numbers of a machine vector.
WIDTH = 8
# Numbers of a dense row that are compared with zero at a time: one for each bit of a word.
_BLOCK = 64

_VECTOR = ir.VectorType(ir.DoubleType(), WIDTH)
_ZEROS = ir.Constant(_VECTOR, [0.0] * WIDTH)
_INDEX = ir.IntType(64)
# Independent sums hide how long one addition takes.
_SUMS = 2


def _pointer(context, builder, signature, arguments, array, place, kind=None):
    """Address of one number of an array argument, as that of a vector if `kind` is given."""
    data = context.make_array(signature.args[array])(context, builder, arguments[array]).data
    address = builder.gep(data, [place])
    return address if kind is None else builder.bitcast(address, kind.as_pointer())


def _entries(generate) -> Any:
    """Build an intrinsic that goes through numbers `first` to `end` of CSR rows, `step` at a time."""

    def typed(typingctx, data, indices, first, end, weights, stride, start, lanes):
        def generated(context, builder, signature, arguments):
            first, end, stride, start = (arguments[i] for i in (2, 3, 5, 6))

            def address(array, place, kind=None):
                return _pointer(context, builder, signature, arguments, array, place, kind)

            def entry(e):
                """Value of a number in all lanes, and where the weights of its feature are."""
                j = builder.sext(builder.load(address(1, e)), _INDEX)
                value = builder.insert_element(_ZEROS, builder.load(address(0, e)), ir.IntType(32)(0))
                first_lane = ir.Constant(ir.VectorType(ir.IntType(32), WIDTH), [0] * WIDTH)
                return (
                    builder.shuffle_vector(value, _ZEROS, first_lane),
                    address(4, builder.add(start, builder.mul(stride, j)), _VECTOR),
                )

            generate(builder, first, end, entry, address(7, start, _VECTOR))
            return context.get_dummy_value()

        return types.void(data, indices, first, end, weights, stride, start, lanes), generated

    return intrinsic(typed)


def _multiply_add(builder, first, second, total):
    return builder.fadd(total, builder.fmul(first, second, flags=("contract",)), flags=("contract",))


def _score(builder, first, end, entry, lanes) -> None:
    sums = [cgutils.alloca_once_value(builder, _ZEROS) for _ in range(_SUMS)]

    def add(e, total):
        value, weights = entry(e)
        builder.store(_multiply_add(builder, value, builder.load(weights, align=8), builder.load(total)), total)

    whole = builder.add(first, builder.and_(builder.sub(end, first), _INDEX(-_SUMS)))
    with cgutils.for_range_slice(builder, first, whole, _INDEX(_SUMS), intp=_INDEX) as (e, _):
        for k, total in enumerate(sums):
            add(builder.add(e, _INDEX(k)), total)
    with cgutils.for_range_slice(builder, whole, end, _INDEX(1), intp=_INDEX) as (e, _):
        add(e, sums[0])
    result = builder.load(sums[0])
    for total in sums[1:]:
        result = builder.fadd(result, builder.load(total))
    builder.store(result, lanes, align=8)


def _add(builder, first, end, entry, lanes) -> None:
    steps = builder.load(lanes, align=8)
    with cgutils.for_range_slice(builder, first, end, _INDEX(1), intp=_INDEX) as (e, _):
        value, weights = entry(e)
        builder.store(_multiply_add(builder, value, steps, builder.load(weights, align=8)), weights, align=8)


# ``function(data, indices, first, end, weights, stride, start, lanes)``, for the entries ``first`` to ``end`` of
# CSR rows and the vectors ``start`` to ``start + WIDTH``: set lanes to the scores, or add lanes times the entries to
# the weights.
score_row, add_row = _entries(_score), _entries(_add)


@intrinsic
def _not_zero(typingctx, X, start):
    """Bits that say which of the next numbers are not zero."""

    def generate(context, builder, signature, arguments):
        kind = ir.VectorType(ir.DoubleType(), _BLOCK)
        numbers = builder.load(_pointer(context, builder, signature, arguments, 0, arguments[1], kind), align=8)
        return builder.bitcast(builder.fcmp_unordered("!=", numbers, ir.Constant(kind, [0.0] * _BLOCK)), _INDEX)

    return types.uint64(X, start), generate


@intrinsic
def _lowest_bit(typingctx, bits):
    """Place of the lowest bit that is set."""

    def generate(context, builder, signature, arguments):
        return builder.cttz(arguments[0], ir.IntType(1)(1))

    return types.int64(types.uint64), generate


@njit(cache=True)
def compact(X):
    """Store dense rows as CSR.

    Parameters
    ----------
    X : ndarray (n, d)
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
        whole = n_features - n_features % _BLOCK
        for first in range(0, whole, _BLOCK):
            bits = _not_zero(numbers, start + first)
            while bits != np.uint64(0):
                j = first + _lowest_bit(bits)
                data[count], indices[count] = numbers[start + j], j
                count += 1
                bits &= bits - np.uint64(1)
        for j in range(whole, n_features):
            if numbers[start + j] != 0.0:
                data[count], indices[count] = numbers[start + j], j
                count += 1
        indptr[i + 1] = count
    return data[:count], indices[:count], indptr


@njit(cache=True)
def count_numbers(X, step):
    """Count what is not zero in every `step`-th of dense rows."""
    count = 0
    for i in range(0, X.shape[0], step):
        for j in range(X.shape[1]):
            count += X[i, j] != 0.0
    return count


@njit(cache=True, fastmath={"reassoc", "contract"})
def square_rows(data, indptr):
    """Squared norms of CSR rows."""
    squares = np.empty(indptr.shape[0] - 1)
    for i in range(squares.shape[0]):
        total = 0.0
        for e in range(indptr[i], indptr[i + 1]):
            total += data[e] * data[e]
        squares[i] = total
    return squares


def padded_weights(n_features: int, n_classes: int) -> np.ndarray:
    """Weights of zero (d, c up to a multiple of `WIDTH`), every vector in one line of the cache."""
    padded = -(-n_classes // WIDTH) * WIDTH
    memory = np.zeros(n_features * padded + WIDTH)
    start = -(memory.ctypes.data // memory.itemsize) % WIDTH
    return memory[start : start + n_features * padded].reshape(n_features, padded)


@njit(cache=True)
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


@njit(cache=True)
def sum_rows(data, indices, indptr, alpha, weights):
    """Set weights (d, padded) to the sum over rows of their numbers `alpha` (n, c) times the row."""
    padded = weights.shape[1]
    numbers, lanes = weights.reshape(-1), np.zeros(padded)
    numbers[:] = 0.0
    for i in range(alpha.shape[0]):
        for m in range(alpha.shape[1]):
            lanes[m] = alpha[i, m]
        for start in range(0, padded, WIDTH):
            add_row(data, indices, indptr[i], indptr[i + 1], numbers, padded, start, lanes)
