"""The C-SVC duals of many pairs of classes in one compiled call.

The rows are sorted by class. All kernel values of a pair are computed at once, by tiles of two classes; for rows of few
features, kernel rows are computed when a step needs them, as long as these are few. Kernel values have single
precision, as in LIBSVM, where that is enough, else double; the gap at which a pair stops is that of values in double
precision. A pair that takes too many steps is handed over to `privsvm.solvers.kernel.block_smo`, with its variables as
the warm start.

Variables are ``b_t = y_t a_t`` and values ``v_t = y_t - sum_s b_s K(x_s, x_t)``, with labels +1 for the first class of
a pair. Source: Fan, Chen and Lin (2005) for the choice of two variables.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
from typing import Any, NamedTuple

import numpy as np

from privsvm.numerics.compiled.jit import jit, jit_step
from privsvm.numerics.compiled.threads import share_out, threads_worth
from privsvm.numerics.compiled.vector_math import FAST_MATH, SAME_ROUNDING, maximum
from privsvm.solvers.kernel.c_svc import SolverOptions
from privsvm.solvers.kernel.kernel_rows import KernelRows
from privsvm.solvers.kernel.kernel_tiles import class_rows, copy_tile, fill_row, fill_tile, make_blocks
from privsvm.solvers.kernel.kernels import Kernel
from privsvm.solvers.kernel.pair_step import TAU, extremes, move_pair, set_sides

__all__ = ["ClassSolutions", "classes_of_pairs", "scatter_pairs", "solve_class_pairs"]

# Constant         unit     value and reason
# _STEPS, _LEAST_STEPS  steps  for each variable of a pair, and in addition for every pair, before a hard pair is handed
#                           over to the solver by working sets.
# _PAIR_SECONDS    s        for a pair besides its kernel values; measured.
# _DOUBLE_ROWS     rows     up to which pairs with precomputed kernel values have values in double precision, as all
#                           pairs have whose kernel values are in double precision themselves.
# _INNER_SHARE     share    of the tolerance to which values in single precision are solved, in at most _ROUNDS rounds
#                           that each start from values in double precision.
# _OUT             value    that takes another one out of a maximum when it is added.
# _SHORT           rows     above which a pair computes kernel rows as it needs them, until it has needed _MOST_SHARE of
#                           them, or _SHARE_OF_FEATURES divided by the number of features: with many features a single
#                           row takes longer than its share of a tile; measured.
# _CHUNK           entries  that are searched together for a maximum.
# _PADDED          entries  of which the length of a pair is a multiple: whole vectors and unrolled loops.
# _APART           entries  added to each kernel row: cache lines a power of two apart would evict each other.
_STEPS, _LEAST_STEPS = 10, 2000
_PAIR_SECONDS = 5e-6
_DOUBLE_ROWS = 256
_INNER_SHARE, _ROUNDS = 0.9, 5
_OUT = -1e30
_SHORT, _MOST_SHARE, _SHARE_OF_FEATURES = 128, 0.5, 10.0
_CHUNK, _PADDED, _APART = 512, 64, 16


class End(enum.IntEnum):
    """How a pair ended."""

    SOLVED = 0
    MAX_ITER = 1
    # Too many steps: another solver continues.
    HANDED_OVER = 2


class _Work(NamedTuple):
    """Memory of one thread, for one pair after the other.

    All but the number of kernel rows is padded.
    """

    # Kernel rows; the slot of each variable's row, or -1; how many slots are filled, and how many may be one by one.
    kernel: np.ndarray
    slots: np.ndarray
    counts: np.ndarray
    diagonal: np.ndarray
    gains: np.ndarray
    up: np.ndarray
    low: np.ndarray
    values: np.ndarray
    up_double: np.ndarray
    low_double: np.ndarray


class _ClassTiles(NamedTuple):
    """Cached kernel values of classes with themselves; offset -1 for none."""

    memory: np.ndarray
    offsets: np.ndarray
    filled: np.ndarray


class _Pairs(NamedTuple):
    """Rows of the classes, bounds, and results by pair."""

    # Row where each class starts, and the two classes of each pair.
    starts: np.ndarray
    first: np.ndarray
    second: np.ndarray
    upper: np.ndarray
    # Variables in scikit-learn's layout (c - 1, n).
    layout: np.ndarray
    rho: np.ndarray
    objective: np.ndarray
    n_iter: np.ndarray
    ended: np.ndarray


@jit_step()
def _padded(size):
    return -(-size // _PADDED) * _PADDED


@jit_step(fastmath=SAME_ROUNDING, forceinline=True)
def _move(values, row_i, row_j, step, up, low):
    """Move the values along a pair's step.

    Return the largest that may go up and minus the smallest to go down.
    """
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
    """Return the first position where the sum of two arrays is `target`.

    Branch-free, so that it is vectorised.
    """
    where = np.int32(values.shape[0])
    for t in range(values.shape[0]):
        position = np.int32(t) if values[t] + offsets[t] == target else np.int32(_CHUNK)
        where = min(where, position)
    return where


@jit_step(fastmath=SAME_ROUNDING, forceinline=True)
def _first(values, target):
    """Return the first position where an array is `target`."""
    where = np.int32(values.shape[0])
    for t in range(values.shape[0]):
        position = np.int32(t) if values[t] == target else np.int32(_CHUNK)
        where = min(where, position)
    return where


@jit_step(fastmath=SAME_ROUNDING, forceinline=True)
def _set_gains(gains, values, row, diagonal, diagonal_i, low, value_i):
    """Set second order gains of pairs with i; return the largest.

    The gain is ``(v_i - v_t)^2 / (K_ii + K_tt - 2 K_it)``.
    """
    zero, largest, tau, two = values.dtype.type(0), np.float32(-1), np.float32(TAU), row.dtype.type(2)
    for t in range(gains.shape[0]):
        violation = np.float32(maximum(value_i - values[t] + low[t], zero))
        gain = violation * violation / maximum(np.float32(diagonal_i + diagonal[t] - two * row[t]), tau)
        gains[t] = gain
        largest = maximum(largest, gain)
    return largest


# Reference counting: Numba counts references to array views except in small functions that make them; counting takes
# longer than a pass over a small pair.
@jit_step()
def _move_all(values, kernel, slot_i, slot_j, step, up, low):
    """Move all values; return the largest, its position, and minus the smallest."""
    size = values.shape[0]
    row_i, row_j = kernel[slot_i], kernel[slot_j]
    highest, lowest, where = values.dtype.type(_OUT), values.dtype.type(_OUT), 0
    for start in range(0, size, _CHUNK):
        stop = min(start + _CHUNK, size)
        chunk_highest, chunk_lowest = _move(
            values[start:stop], row_i[start:stop], row_j[start:stop], step, up[start:stop], low[start:stop]
        )
        if chunk_highest > highest:
            highest, where = chunk_highest, start
        lowest = max(lowest, chunk_lowest)
    stop = min(where + _CHUNK, size)
    return highest, where + _first_sum(values[where:stop], up[where:stop], highest), lowest


@jit_step()
def _best_partner(gains, values, kernel, slot_i, i, diagonal, low):
    """Return the variable of the largest second order gain with i."""
    size = values.shape[0]
    row, diagonal_i, value_i = kernel[slot_i], diagonal[i], values[i]
    largest, where = np.float32(-1), 0
    for start in range(0, size, _CHUNK):
        stop = min(start + _CHUNK, size)
        gain = _set_gains(
            gains[start:stop], values[start:stop], row[start:stop], diagonal[start:stop], diagonal_i, low[start:stop],
            value_i,
        )  # fmt: skip
        if gain > largest:
            largest, where = gain, start
    return where + _first(gains[where : min(where + _CHUNK, size)], largest)


@jit_step()
def _fetch(i, padded, work, rows, start_a, n_a, start_b, size):
    """Compute the kernel row of variable i into the next free slot.

    Return whether there was one.
    """
    slot = work.counts[0]
    if slot == work.counts[1]:
        return False
    row = start_a + i if i < n_a else start_b + i - n_a
    tail = (rows.columns, rows.norms, rows.kind, rows.factor, rows.coef0, rows.degree)
    fill_row(work.kernel, slot, 0, n_a, row, start_a, *tail)
    fill_row(work.kernel, slot, n_a, size, row, start_b, *tail)
    for t in range(size, padded):
        work.kernel[slot, t] = 0
    work.slots[i] = slot
    work.counts[0] += 1
    return True


@jit_step()
def _solve(values, beta, lower, upper, diagonal, gains, up, low, work, rows, start_a, n_a, start_b, tol, limit):
    """Solve one pair by steps of two variables, from `beta` and `values`.

    Values have the precision of their array; they and the arrays after the bounds are padded. Returns the number of
    steps, and whether the pair was solved, or reached the limit, before the slots for kernel rows ran out.
    """
    size, kind = beta.shape[0], values.dtype.type
    zero, out = kind(0), kind(_OUT)
    kernel, slots = work.kernel, work.slots
    for t in range(size):
        set_sides(up, low, beta, lower, upper, t, out)
    for t in range(size, values.shape[0]):
        values[t], up[t], low[t] = zero, out, out
    n_iter, slot_i, slot_j, step = 0, 0, 0, zero
    while True:
        # The first step has length zero, so that the rows in the two slots do not matter.
        highest, i, lowest = _move_all(values, kernel, slot_i, slot_j, step, up, low)
        if highest + lowest <= tol or n_iter >= limit:
            return n_iter, True
        if slots[i] < 0 and not _fetch(i, values.shape[0], work, rows, start_a, n_a, start_b, size):
            return n_iter, False
        slot_i = slots[i]
        j = _best_partner(gains, values, kernel, slot_i, i, diagonal, low)
        if slots[j] < 0 and not _fetch(j, values.shape[0], work, rows, start_a, n_a, start_b, size):
            return n_iter, False
        slot_j = slots[j]
        # Double precision: the curvature has no other round-off than the kernel values.
        curvature = np.float64(diagonal[i]) + np.float64(diagonal[j]) - 2.0 * np.float64(kernel[slot_i, j])
        step = kind(move_pair(beta, lower, upper, i, j, np.float64(values[i] - values[j]) / max(curvature, TAU)))
        set_sides(up, low, beta, lower, upper, i, out)
        set_sides(up, low, beta, lower, upper, j, out)
        n_iter += 1


@jit_step(fastmath=FAST_MATH)
def _subtract_row(values, weight, kernel, s):
    row = kernel[s, : values.shape[0]]
    for t in range(values.shape[0]):
        values[t] -= weight * np.float64(row[t])


@jit_step(fastmath=FAST_MATH)
def _subtract_four(values, kernel, slots, weights):
    size = values.shape[0]
    one, two = kernel[slots[0], :size], kernel[slots[1], :size]
    three, four = kernel[slots[2], :size], kernel[slots[3], :size]
    a, b, c, d = weights[0], weights[1], weights[2], weights[3]
    for t in range(size):
        values[t] -= (a * np.float64(one[t]) + b * np.float64(two[t])) + (
            c * np.float64(three[t]) + d * np.float64(four[t])
        )


@jit_step()
def _refresh(values, n_a, beta, kernel, slots):
    """Compute the values of a pair from its variables, in double precision."""
    size, count = values.shape[0], 0
    four_slots, weights = np.empty(4, np.int64), np.empty(4)
    for t in range(size):
        values[t] = 1.0 if t < n_a else -1.0
    for s in range(size):
        if beta[s] != 0.0:
            four_slots[count], weights[count] = slots[s], beta[s]
            count += 1
            if count == 4:
                _subtract_four(values, kernel, four_slots, weights)
                count = 0
    for k in range(count):
        _subtract_row(values, weights[k], kernel, four_slots[k])


@jit_step()
def _continue(values, up, low, beta, lower, upper, work, rows, tiles, blocks, starts, a, b, tol, limit):
    """Continue to solve one pair, and compute all its kernel rows if it needs many.

    Return the number of steps.
    """
    n_a, padded = starts[a + 1] - starts[a], values.shape[0]
    n_iter, complete = 0, False
    while not complete:
        steps, complete = _solve(
            values, beta, lower, upper, work.diagonal[:padded], work.gains[:padded], up, low, work, rows, starts[a],
            n_a, starts[b], tol, limit - n_iter,
        )  # fmt: skip
        n_iter += steps
        if not complete:
            _fill_pair(work, rows, tiles, blocks, starts, a, b)
    return n_iter


@jit_step()
def _solve_pair(values, beta, lower, upper, work, rows, tiles, blocks, starts, a, b, tol, limit):
    """Solve one pair; return the number of steps, and m and M.

    The values, in double precision, are padded.
    """
    size, n_a = beta.shape[0], starts[a + 1] - starts[a]
    padded = values.shape[0]
    work.gains[:padded] = np.float32(0)
    work.slots[:size] = -1
    if rows.columns.shape[0] > 0 and size > _SHORT:
        # Cache locality: computed rows are contiguous, in the order of their computation.
        work.counts[0], work.counts[1] = 0, int(min(_MOST_SHARE, _SHARE_OF_FEATURES / rows.columns.shape[0]) * size)
        # Slot 0 is read before the first row is computed.
        work.kernel[0, :padded] = 0
    else:
        _fill_pair(work, rows, tiles, blocks, starts, a, b)
    if work.kernel.itemsize == 8 or (rows.given and size <= _DOUBLE_ROWS):
        n_iter = _continue(
            values, work.up_double[:padded], work.low_double[:padded], beta, lower, upper, work, rows, tiles, blocks,
            starts, a, b, tol, limit,
        )  # fmt: skip
        m, M = extremes(values[:size], beta, lower, upper)
        return n_iter, m, M
    single, n_iter = work.values[:padded], 0
    for _ in range(_ROUNDS):
        for t in range(size):
            single[t] = np.float32(values[t])
        n_iter += _continue(
            single, work.up[:padded], work.low[:padded], beta, lower, upper, work, rows, tiles, blocks, starts, a, b,
            np.float32(_INNER_SHARE * tol), limit - n_iter,
        )  # fmt: skip
        _refresh(values[:size], n_a, beta, work.kernel, work.slots)
        m, M = extremes(values[:size], beta, lower, upper)
        if m - M <= tol or n_iter >= limit:
            break
    return n_iter, m, M


@jit_step()
def _class_tile(tiles, k, size):
    return tiles.memory[tiles.offsets[k] : tiles.offsets[k] + size * size].reshape(size, size)


@jit_step()
def _write_class_tile(kernel, row, k, starts, rows, tiles, blocks):
    """Write a class's kernel values with itself to a pair's diagonal."""
    start, stop = starts[k], starts[k + 1]
    size = stop - start
    if tiles.offsets[k] < 0:
        fill_tile(kernel, row, start, stop, row, start, stop, rows, blocks)
        return
    tile = _class_tile(tiles, k, size)
    if not tiles.filled[k]:
        fill_tile(tile, 0, start, stop, 0, start, stop, rows, blocks)
        tiles.filled[k] = True
    copy_tile(kernel, row, row, tile, 0, size, 0, size)


@jit_step()
def _fill_pair(work, rows, tiles, blocks, starts, a, b):
    """Compute all kernel rows of a pair."""
    n_a = starts[a + 1] - starts[a]
    size = n_a + starts[b + 1] - starts[b]
    _clear(work.kernel, size, _padded(size))
    _write_class_tile(work.kernel, 0, a, starts, rows, tiles, blocks)
    _write_class_tile(work.kernel, n_a, b, starts, rows, tiles, blocks)
    fill_tile(work.kernel, n_a, starts[b], starts[b + 1], 0, starts[a], starts[a + 1], rows, blocks)
    for t in range(size):
        work.slots[t] = t


@jit_step()
def _clear(kernel, size, padded):
    padding = kernel[:size, size:padded]
    for s in range(padding.shape[0]):
        for t in range(padding.shape[1]):
            padding[s, t] = 0


@jit()
def _solve_some(numbers, pairs, rows, offsets, tile_size, tol, max_iter, limits):
    """Solve the pairs of these numbers."""
    starts = pairs.starts
    longest = 0
    for p in numbers:
        a, b = pairs.first[p], pairs.second[p]
        longest = max(longest, starts[a + 1] - starts[a] + starts[b + 1] - starts[b])
    padded, kind = _padded(longest), rows.diagonal.dtype
    work = _Work(
        kernel=np.empty((longest, padded + _APART), kind),
        slots=np.empty(longest, np.int64),
        counts=np.zeros(2, np.int64),
        diagonal=np.zeros(padded, kind),
        gains=np.empty(padded, np.float32),
        up=np.empty(padded, np.float32),
        low=np.empty(padded, np.float32),
        values=np.empty(padded, np.float32),
        up_double=np.empty(padded),
        low_double=np.empty(padded),
    )
    tiles = _ClassTiles(np.empty(tile_size, kind), offsets, np.zeros(offsets.shape[0], np.bool_))
    blocks = make_blocks(rows, longest)
    memory = np.empty((4, padded))
    for p in numbers:
        a, b = pairs.first[p], pairs.second[p]
        n_a = starts[a + 1] - starts[a]
        size = n_a + starts[b + 1] - starts[b]
        values, beta = memory[0, : _padded(size)], memory[1, :size]
        lower, upper = memory[2, :size], memory[3, :size]
        for t in range(n_a):
            values[t], beta[t], lower[t], upper[t] = 1.0, 0.0, 0.0, pairs.upper[starts[a] + t]
            work.diagonal[t] = rows.diagonal[starts[a] + t]
        for t in range(n_a, size):
            values[t], beta[t], lower[t], upper[t] = -1.0, 0.0, -pairs.upper[starts[b] + t - n_a], 0.0
            work.diagonal[t] = rows.diagonal[starts[b] + t - n_a]
        work.diagonal[size : _padded(size)] = 0
        limit = limits[p]
        if max_iter >= 0:
            limit = min(limit, max_iter)
        n_iter, m, M = _solve_pair(values, beta, lower, upper, work, rows, tiles, blocks, starts, a, b, tol, limit)
        # Offset: minus the mean value of the free variables, else the middle of its interval.
        total, n_free, quadratic, linear = 0.0, 0, 0.0, 0.0
        for t in range(size):
            label = 1.0 if t < n_a else -1.0
            if lower[t] < beta[t] < upper[t]:
                total -= values[t]
                n_free += 1
            quadratic += beta[t] * (label - values[t])
            linear += abs(beta[t])
        pairs.rho[p] = total / n_free if n_free > 0 else -0.5 * (m + M)
        pairs.objective[p] = 0.5 * quadratic - linear
        pairs.n_iter[p] = n_iter
        pairs.ended[p] = End.SOLVED if m - M <= tol else (End.MAX_ITER if n_iter == max_iter else End.HANDED_OVER)
        for t in range(n_a):
            pairs.layout[b - 1, starts[a] + t] = beta[t]
        for t in range(n_a, size):
            pairs.layout[a, starts[b] + t - n_a] = beta[t]


@jit()
def scatter_pairs(layout, starts, coef):
    """Write coefficients (c - 1, m) in scikit-learn's layout as (m, p)."""
    n_classes = starts.shape[0] - 1
    column = 0
    for a in range(n_classes):
        for b in range(a + 1, n_classes):
            for t in range(starts[a], starts[a + 1]):
                coef[t, column] = layout[b - 1, t]
            for t in range(starts[b], starts[b + 1]):
                coef[t, column] = layout[a, t]
            column += 1


@dataclasses.dataclass
class ClassSolutions:
    """Solutions of the pairs (0, 1), (0, 2), ..., (1, 2), ... of classes.

    Attributes
    ----------
    layout : ndarray (c - 1, n)
        Variables ``y_i a_i`` of the rows, sorted by class, in scikit-learn's layout.
    starts : ndarray of int (c + 1,)
        First row of each class, and the number of rows.
    rho, objective : ndarray (p,)
        Offset and objective of each pair.
    n_iter : ndarray of int (p,)
        Steps.
    converged : ndarray of bool (p,)
        Whether the stopping rule was met.
    """

    layout: np.ndarray
    starts: np.ndarray
    rho: np.ndarray
    objective: np.ndarray
    n_iter: np.ndarray
    converged: np.ndarray

    def variables(self, first: int, second: int) -> np.ndarray:
        """Return the variables of a pair: of the first class's rows, then of the second's."""
        first_rows, second_rows = (slice(self.starts[k], self.starts[k + 1]) for k in (first, second))
        return np.concatenate([self.layout[second - 1, first_rows], self.layout[first, second_rows]])


def classes_of_pairs(n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the classes of the pairs (0, 1), (0, 2), ..., (1, 2), ..., (p,) each."""
    first, second = _triangle(n_classes)
    return first.copy(), second.copy()


@functools.lru_cache(maxsize=8)
def _triangle(n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Cache `classes_of_pairs`, which takes as long as several small pairs."""
    first, second = np.triu_indices(n_classes, 1)
    return first, second


def solve_class_pairs(
    rows: KernelRows,
    upper: np.ndarray,
    solutions: ClassSolutions,
    numbers: np.ndarray,
    options: SolverOptions,
    step_budgets: np.ndarray,
) -> np.ndarray:
    """Solve pairs of classes; write the solutions to `solutions`.

    Parameters
    ----------
    rows : KernelRows (n)
        All rows, sorted by class; kernel values have their precision.
    upper : ndarray (n,)
        Upper bound of each row's variable.
    solutions : ClassSolutions
        Results; changed in place.
    numbers : ndarray of int
        Numbers of the pairs to solve.
    options : SolverOptions
        Half of the memory for kernel values is used here.
    step_budgets : ndarray (p,)
        Steps after which each pair is handed over to another solver, if fewer than the usual limit.

    Returns
    -------
    ndarray of int
        The pairs that remain for another solver. Those with steps have feasible variables.
    """
    tol, memory = options.tol, 0.5e6 * options.cache_size
    n_classes = solutions.starts.size - 1
    first, second = classes_of_pairs(n_classes)
    sizes = np.diff(solutions.starts)
    # Memory of a padded pair, at most. The choice of pairs must not depend on the number of threads.
    bytes_of_pair = rows.dtype.itemsize * (sizes[first] + sizes[second] + _PADDED + _APART) ** 2.0
    fits = (bytes_of_pair <= memory) & (sizes[first] > 0) & (sizes[second] > 0)
    chosen = numbers[fits[numbers]]
    if chosen.size == 0:
        return numbers
    pairs = _Pairs(
        starts=solutions.starts,
        first=first,
        second=second,
        upper=upper,
        layout=solutions.layout,
        rho=solutions.rho,
        objective=solutions.objective,
        n_iter=solutions.n_iter,
        ended=np.full(first.size, int(End.HANDED_OVER)),
    )
    largest = float(bytes_of_pair[chosen].max())
    seconds = rows.seconds(float(((sizes[first] + sizes[second])[chosen] ** 2).sum())) + _PAIR_SECONDS * chosen.size
    n_threads = threads_worth(max(1, min(rows.n_threads, chosen.size, int(memory / largest))), seconds)
    # Caching: tiles of classes that occur in several pairs, as many as fit. Every thread has its own cache.
    cached = np.flatnonzero(np.bincount(np.concatenate([first[chosen], second[chosen]]), minlength=n_classes) > 1)
    ends = np.cumsum(sizes[cached] ** 2)
    cached = cached[ends <= (2.0 * memory / n_threads - largest) / rows.dtype.itemsize]
    offsets = np.full(n_classes, -1)
    offsets[cached] = ends[: cached.size] - sizes[cached] ** 2
    tile_size = int((sizes[cached] ** 2).sum())
    limits = np.minimum(_STEPS * (sizes[first] + sizes[second]) + _LEAST_STEPS, step_budgets).astype(np.int64)
    arguments: tuple[Any, ...] = (pairs, class_rows(rows), offsets, tile_size, tol, options.max_iter, limits)
    if rows.pool is None or n_threads == 1:
        _solve_some(chosen, *arguments)
    else:
        # Load balance: neighbouring pairs share a class, so each thread takes every n-th pair. Contiguous arrays, since
        # code specialised for another layout may round differently.
        batches = [np.ascontiguousarray(chosen[k::n_threads]) for k in range(n_threads)]
        share_out(rows.pool, _solve_some, [(batch, *arguments) for batch in batches])
    solutions.converged[chosen] = pairs.ended[chosen] == End.SOLVED
    done = np.zeros(first.size, dtype=bool)
    done[chosen] = pairs.ended[chosen] != End.HANDED_OVER
    return numbers[~done[numbers]]


def warm_up() -> None:
    """Compile what this module runs, in single and in double precision."""
    single = [KernelRows(np.array([[0.0], [1.0], [2.0], [3.0]]), Kernel(kernel)) for kernel in ("rbf", "linear")]
    for rows in (*single, *(rows.in_double() for rows in single)):
        starts, zeros = np.array([0, 2, 4]), np.zeros(1)
        solutions = ClassSolutions(
            np.zeros((1, 4)), starts, zeros.copy(), zeros.copy(), np.zeros(1, np.int64), np.zeros(1, bool)
        )
        solve_class_pairs(rows, np.ones(4), solutions, np.array([0]), SolverOptions(cache_size=2.0), np.full(1, np.inf))
    scatter_pairs(solutions.layout, starts, np.zeros((4, 1)))
