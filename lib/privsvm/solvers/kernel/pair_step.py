"""Steps of two variables on a kernel matrix in memory, for working sets and for pairs of classes.

Variables are ``b_t = y_t a_t``, so that labels occur in their bounds only, and every step keeps their sum. Values are
``v_t = y_t - sum_s b_s K(x_s, x_t)``. Source: Fan, Chen and Lin (2005) for the choice of two variables.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from privsvm.numerics.compiled.jit import jit, jit_step
from privsvm.numerics.compiled.vector_code import maximum
from privsvm.numerics.compiled.vector_math import SAME_ROUNDING

# Constant  unit       value and reason
# TAU       curvature  the least of a pair, LIBSVM's constant.
# _STEP     ratio      of a step to the optimal one: over-relaxation saves a tenth of the steps on hard problems. Of at
#                      most _FEW variables, a single best step may end in the exact solution.
# _OUT      value      that takes another one out of a maximum when it is added.
# _CHUNK    entries    that are searched together for a maximum; a power of two.
TAU = 1e-12
_STEP, _FEW = 1.1, 100
_OUT = -1e30
_CHUNK = 512


class Blocks(NamedTuple):
    """Kernel values of two classes: of each with itself, and of the second's rows with the first's.

    The three are one matrix of all rows, or a matrix each; `is_whole` says which.
    """

    first: np.ndarray
    second: np.ndarray
    cross: np.ndarray
    is_whole: bool


class Source(NamedTuple):
    """Source of a problem's kernel rows, which are copied when a step needs them first."""

    filled: np.ndarray
    # Where the problem's rows are: `n_first` rows from the first start, the others from the second one.
    blocks: Blocks
    n_first: int
    first: int
    second: int


class Masks(NamedTuple):
    """Work space of the steps, as long as the values."""

    # Zero where a variable may go up, or down, and else very negative.
    up: np.ndarray
    low: np.ndarray


@jit_step()
def _set_sides(masks, beta, lower, upper, t):
    """Set the masks of variable t."""
    zero, out = masks.up.dtype.type(0), masks.up.dtype.type(_OUT)
    masks.up[t] = zero if beta[t] < upper[t] else out
    masks.low[t] = zero if beta[t] > lower[t] else out


@jit_step(fastmath=SAME_ROUNDING, forceinline=True)
def _move(values, row_i, row_j, step, up, low):
    """Move the values along a step; return the largest that may go up and minus the smallest to go down."""
    highest, lowest = values.dtype.type(_OUT), values.dtype.type(_OUT)
    kind = values.dtype.type
    for t in range(values.shape[0]):
        value = values[t] - step * (kind(row_i[t]) - kind(row_j[t]))
        values[t] = value
        highest = maximum(highest, value + up[t])
        lowest = maximum(lowest, low[t] - value)
    return highest, lowest


@jit_step(fastmath=SAME_ROUNDING, forceinline=True)
def _first_sum(values, offsets, target):
    """Return the first position where the sum of two arrays is `target`; branch-free, hence vectorised."""
    where = np.int32(values.shape[0])
    for t in range(values.shape[0]):
        position = np.int32(t) if values[t] + offsets[t] == target else np.int32(_CHUNK)
        where = min(where, position)
    return where


@jit_step(fastmath=SAME_ROUNDING, forceinline=True)
def _largest_gain(values, row, diagonal, diagonal_i, low, value_i):
    """Return the largest second order gain of pairs with i, as bits that end in its position.

    The gain is ``(v_i - v_t)^2 / (K_ii + K_tt - 2 K_it)``. Bits of numbers that are not negative have their order.
    """
    zero, largest, tau, two = values.dtype.type(0), np.int32(-1), np.float32(TAU), row.dtype.type(2)
    for t in range(values.shape[0]):
        violation = np.float32(maximum(value_i - values[t] + low[t], zero))
        gain = violation * violation / maximum(np.float32(diagonal_i + diagonal[t] - two * row[t]), tau)
        largest = max(largest, (np.float32(gain).view(np.int32) & np.int32(-_CHUNK)) | np.int32(t))
    return largest


# Reference counting: Numba counts references to array views except in small functions that make them; counting takes
# longer than a pass over a small pair, and so does a call with that many arguments.
@jit_step(forceinline=True)
def _move_all(values, kernel, i, j, step, masks):
    """Move all values; return the largest, its position, and minus the smallest."""
    size, up, low = values.shape[0], masks.up, masks.low
    row_i, row_j = kernel[i], kernel[j]
    highest, lowest, where = values.dtype.type(_OUT), values.dtype.type(_OUT), 0
    for start in range(0, size, _CHUNK):
        stop = min(start + _CHUNK, size)
        chunk_highest, chunk_lowest = _move(
            values[start:stop], row_i[start:stop], row_j[start:stop], step, up[start:stop], low[start:stop]
        )
        if chunk_highest > highest:
            highest, where = chunk_highest, start
        lowest = maximum(lowest, chunk_lowest)
    stop = min(where + _CHUNK, size)
    return highest, where + _first_sum(values[where:stop], up[where:stop], highest), lowest


@jit_step(forceinline=True)
def _best_partner(values, kernel, i, diagonal, masks):
    """Return the variable of the largest second order gain with i, to four digits."""
    size, low = values.shape[0], masks.low
    row, diagonal_i, value_i = kernel[i], diagonal[i], values[i]
    largest, where = np.int32(-1), 0
    for start in range(0, size, _CHUNK):
        stop = min(start + _CHUNK, size)
        gain = _largest_gain(
            values[start:stop], row[start:stop], diagonal[start:stop], diagonal_i, low[start:stop], value_i
        )
        if gain > largest:
            largest, where = gain, start
    return where + (largest & np.int32(_CHUNK - 1))


@jit_step(forceinline=True)
def _copy_values(out, begin, matrix, row, start, count):
    source, target = matrix[row, start : start + count], out[begin : begin + count]
    for t in range(count):
        target[t] = source[t]


@jit_step()
def _copy_row(kernel, source, i, size, padded):
    """Copy the kernel row of variable i; its padding becomes zero."""
    out, blocks, n_first = kernel[i], source.blocks, source.n_first
    if i >= n_first:
        row = source.second + i - n_first
        _copy_values(out, 0, blocks.cross, row, source.first, n_first)
        _copy_values(out, n_first, blocks.second, row, source.second, size - n_first)
    else:
        _copy_values(out, 0, blocks.first, source.first + i, source.first, n_first)
        if blocks.is_whole:
            _copy_values(out, n_first, blocks.first, source.first + i, source.second, size - n_first)
        else:
            for t in range(size - n_first):
                out[n_first + t] = blocks.cross[t, i]
    for t in range(size, padded):
        out[t] = 0
    source.filled[i] = True


@jit_step()
def take_pair_steps(values, beta, lower, upper, kernel, diagonal, masks, tol, limit, source):
    """Solve a problem by steps of two variables, from `beta` and `values`, which are changed.

    Returns their number, the largest value that may go up, and minus the smallest that may go down.
    The values, the kernel's columns, its diagonal and the masks may be padded: by zeros, for whole vectors. A source
    of None, for kernel rows that are there, is compiled apart, without copies.
    """
    kind, size, padded = values.dtype.type, beta.shape[0], values.shape[0]
    for t in range(size):
        _set_sides(masks, beta, lower, upper, t)
    for t in range(size, padded):
        values[t], masks.up[t], masks.low[t] = kind(0), kind(_OUT), kind(_OUT)
    n_iter, i, j, step, ratio = 0, 0, 0, kind(0), _STEP if size > _FEW else 1.0
    if source is not None and not source.filled[0]:
        _copy_row(kernel, source, 0, size, padded)
    while True:
        # The first step has length zero, so that its variables do not matter.
        highest, i_next, lowest = _move_all(values, kernel, i, j, step, masks)
        if highest + lowest <= tol or n_iter >= limit:
            return n_iter, highest, lowest
        i = i_next
        if source is not None and not source.filled[i]:
            _copy_row(kernel, source, i, size, padded)
        j = _best_partner(values, kernel, i, diagonal, masks)
        if source is not None and not source.filled[j]:
            _copy_row(kernel, source, j, size, padded)
        # Double precision: the curvature has no other round-off than the kernel values.
        curvature = np.float64(diagonal[i]) + np.float64(diagonal[j]) - 2.0 * np.float64(kernel[i, j])
        length = ratio * np.float64(values[i] - values[j]) / maximum(curvature, TAU)
        # Up with i and down with j, as far as the first bound. Round-off: a variable that reaches it is set to it.
        room_i, room_j = upper[i] - beta[i], beta[j] - lower[j]
        length = length if length < room_i else room_i
        length = length if length < room_j else room_j
        beta[i] = upper[i] if length == room_i else beta[i] + length
        beta[j] = lower[j] if length == room_j else beta[j] - length
        step = kind(length)
        _set_sides(masks, beta, lower, upper, i)
        _set_sides(masks, beta, lower, upper, j)
        n_iter += 1


solve_by_pairs = jit()(take_pair_steps)
