"""The C-SVC duals of many pairs of classes in one compiled call: for pairs of some hundred to a few thousand rows.

The rows are sorted by class. Of a pair all kernel values are computed at once, by tiles of two classes; of rows of few
features, those of single rows when a step asks for them, as long as these are few. Kernel values have single precision,
as in LIBSVM, where that is enough, else double; the gap at which a pair stops is that of values in double precision.
A pair that takes too many steps is left for `privsvm.solvers.kernel.block_smo`, which goes on from where it is.

Variables are ``b_t = y_t a_t`` and values ``v_t = y_t - sum_s b_s K(x_s, x_t)``, with labels +1 for the first class of
a pair. Source: Fan, Chen and Lin (2005) for the choice of two variables.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any, NamedTuple

import numpy as np

from privsvm.numerics.compiled.jit import jit, jit_step
from privsvm.numerics.compiled.threads import share_out, threads_worth
from privsvm.numerics.compiled.vector_math import FAST_MATH, SAME_ROUNDING, maximum
from privsvm.solvers.kernel.block_smo import extremes
from privsvm.solvers.kernel.kernel_rows import KernelRows
from privsvm.solvers.kernel.kernel_tiles import class_rows, copy_tile, fill_row, fill_tile, make_blocks

__all__ = ["ClassSolutions", "classes_of_pairs", "scatter_pairs", "solve_class_pairs"]

# How a pair ended.
SOLVED, LIMIT, LEFT = range(3)

# Steps for each variable of a pair, and more for all, before it is left to the solver for hard problems.
_STEPS, _LEAST_STEPS = 10, 2000

# What a pair takes besides its kernel values (measured).
_PAIR_SECONDS = 5e-6

# Given kernel values of at most this many rows have values in double precision; so have all that are in it themselves.
_DOUBLE_ROWS = 256

# The others have values in single precision, to this share of the tolerance; so often from values in double precision.
_INNER_SHARE, _ROUNDS = 0.9, 5

# A coefficient below zero curvature, LIBSVM's constant.
_TAU = 1e-12

# Added to a value, this takes it out of a maximum.
_OUT = -1e30

# Pairs of more rows than this compute kernel rows as they need them, until they have needed this share of them: fewer
# where the rows have many features, since one row alone takes longer than its part of a tile then (measured).
_SHORT, _MOST_SHARE, _SHARE_OF_FEATURES = 128, 0.5, 10.0

# Entries that are searched together for a maximum. Pairs are padded to whole vectors, and loops over them unrolled;
# kernel rows are a little longer, since rows a power of two apart would share one place of the cache.
_CHUNK, _PADDED, _APART = 512, 64, 16


class _Work(NamedTuple):
    """Memory of one thread, for one pair after the other; all but the number of kernel rows is padded."""

    # Kernel rows; where that of each variable is, or -1; how many are there, and how many may be computed one by one.
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


class _Kept(NamedTuple):
    """Tiles of classes with themselves, where each begins (-1 for one that is not kept), and whether it is there."""

    memory: np.ndarray
    places: np.ndarray
    there: np.ndarray


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
    """Move the values along a pair's step; return the largest that may go up and minus the smallest to go down."""
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
    """First place where the sum of two arrays is `target`; it is somewhere. Without a branch for each."""
    where = np.int32(values.shape[0])
    for t in range(values.shape[0]):
        place = np.int32(t) if values[t] + offsets[t] == target else np.int32(_CHUNK)
        where = min(where, place)
    return where


@jit_step(fastmath=SAME_ROUNDING, forceinline=True)
def _first(values, target):
    """First place where an array is `target`."""
    where = np.int32(values.shape[0])
    for t in range(values.shape[0]):
        place = np.int32(t) if values[t] == target else np.int32(_CHUNK)
        where = min(where, place)
    return where


@jit_step(fastmath=SAME_ROUNDING, forceinline=True)
def _set_gains(gains, values, row, diagonal, own, low, value_i):
    """Second order gains of the pairs with i, ``(v_i - v_t)^2 / (K_ii + K_tt - 2 K_it)``; return the largest."""
    zero, largest, tau, two = values.dtype.type(0), np.float32(-1), np.float32(_TAU), row.dtype.type(2)
    for t in range(gains.shape[0]):
        violation = np.float32(maximum(value_i - values[t] + low[t], zero))
        gain = violation * violation / maximum(np.float32(own + diagonal[t] - two * row[t]), tau)
        gains[t] = gain
        largest = maximum(largest, gain)
    return largest


# Parts of arrays are made in functions that do nothing else: elsewhere Numba counts references to them, which takes
# longer than a pass over a small pair.
@jit_step()
def _move_all(values, kernel, slot_i, slot_j, step, up, low):
    """Move all values; return the largest that may go up, which one that is, and minus the smallest to go down."""
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
    """Variable of the largest second order gain with i."""
    size = values.shape[0]
    row, own, value_i = kernel[slot_i], diagonal[i], values[i]
    largest, where = np.float32(-1), 0
    for start in range(0, size, _CHUNK):
        stop = min(start + _CHUNK, size)
        gain = _set_gains(
            gains[start:stop], values[start:stop], row[start:stop], diagonal[start:stop], own, low[start:stop], value_i
        )
        if gain > largest:
            largest, where = gain, start
    return where + _first(gains[where : min(where + _CHUNK, size)], largest)


@jit_step()
def _fetch(i, whole, work, rows, start_a, n_a, start_b, size):
    """Compute the kernel row of variable i, behind those that are there; return whether there was room for it."""
    slot = work.counts[0]
    if slot == work.counts[1]:
        return False
    row = start_a + i if i < n_a else start_b + i - n_a
    tail = (rows.columns, rows.norms, rows.kind, rows.factor, rows.coef0, rows.degree)
    fill_row(work.kernel, slot, 0, n_a, row, start_a, *tail)
    fill_row(work.kernel, slot, n_a, size, row, start_b, *tail)
    for t in range(size, whole):
        work.kernel[slot, t] = 0
    work.slots[i] = slot
    work.counts[0] += 1
    return True


@jit_step()
def _solve(values, beta, lower, upper, diagonal, gains, up, low, work, rows, start_a, n_a, start_b, tol, limit):
    """Solve one pair by steps of two variables, from `beta` and `values`.

    Values are in the precision in which they are given; they and what follows the bounds are padded. Returns the number
    of steps, and whether the pair was solved, or reached the limit, without more kernel rows than there is room for.
    """
    size, kind = beta.shape[0], values.dtype.type
    zero, out = kind(0), kind(_OUT)
    kernel, slots = work.kernel, work.slots
    for t in range(size):
        up[t] = zero if beta[t] < upper[t] else out
        low[t] = zero if beta[t] > lower[t] else out
    for t in range(size, values.shape[0]):
        values[t], up[t], low[t] = zero, out, out
    n_iter, slot_i, slot_j, step = 0, 0, 0, zero
    while True:
        # Before the first step nothing moves, whatever the two rows hold.
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
        # In double precision as exact as the kernel values.
        curvature = np.float64(diagonal[i]) + np.float64(diagonal[j]) - 2.0 * np.float64(kernel[slot_i, j])
        move = np.float64(values[i] - values[j]) / max(curvature, _TAU)
        room_i, room_j = upper[i] - beta[i], beta[j] - lower[j]
        # A variable that reaches its bound is set to it exactly.
        if room_i <= move and room_i <= room_j:
            move = room_i
            beta[i] = upper[i]
            beta[j] = lower[j] if room_i == room_j else beta[j] - move
        elif room_j <= move:
            move = room_j
            beta[j] = lower[j]
            beta[i] += move
        else:
            beta[i] += move
            beta[j] -= move
        step = kind(move)
        up[i] = zero if beta[i] < upper[i] else out
        low[i] = zero if beta[i] > lower[i] else out
        up[j] = zero if beta[j] < upper[j] else out
        low[j] = zero if beta[j] > lower[j] else out
        n_iter += 1


@jit_step(fastmath=FAST_MATH)
def _subtract_row(values, weight, kernel, s):
    row = kernel[s, : values.shape[0]]
    for t in range(values.shape[0]):
        values[t] -= weight * np.float64(row[t])


@jit_step(fastmath=FAST_MATH)
def _subtract_four(values, kernel, places, weights):
    size = values.shape[0]
    one, two = kernel[places[0], :size], kernel[places[1], :size]
    three, four = kernel[places[2], :size], kernel[places[3], :size]
    a, b, c, d = weights[0], weights[1], weights[2], weights[3]
    for t in range(size):
        values[t] -= (a * np.float64(one[t]) + b * np.float64(two[t])) + (
            c * np.float64(three[t]) + d * np.float64(four[t])
        )


@jit_step()
def _refresh(values, n_a, beta, kernel, slots):
    """Compute the values of a pair from its variables, in double precision."""
    size, count = values.shape[0], 0
    places, weights = np.empty(4, np.int64), np.empty(4)
    for t in range(size):
        values[t] = 1.0 if t < n_a else -1.0
    for s in range(size):
        if beta[s] != 0.0:
            places[count], weights[count] = slots[s], beta[s]
            count += 1
            if count == 4:
                _subtract_four(values, kernel, places, weights)
                count = 0
    for k in range(count):
        _subtract_row(values, weights[k], kernel, places[k])


@jit_step()
def _solve_on(values, up, low, beta, lower, upper, work, rows, kept, blocks, starts, a, b, tol, limit):
    """Solve one pair from where it is, and compute all its kernel rows if it needs many; return the number of steps."""
    n_a, whole = starts[a + 1] - starts[a], values.shape[0]
    n_iter, complete = 0, False
    while not complete:
        steps, complete = _solve(
            values, beta, lower, upper, work.diagonal[:whole], work.gains[:whole], up, low, work, rows, starts[a], n_a,
            starts[b], tol, limit - n_iter,
        )  # fmt: skip
        n_iter += steps
        if not complete:
            _fill_pair(work, rows, kept, blocks, starts, a, b)
    return n_iter


@jit_step()
def _solve_pair(values, beta, lower, upper, work, rows, kept, blocks, starts, a, b, tol, limit):
    """Solve one pair; return the number of steps, and m and M. The values, in double precision, are padded."""
    size, n_a = beta.shape[0], starts[a + 1] - starts[a]
    whole = values.shape[0]
    work.gains[:whole] = np.float32(0)
    work.slots[:size] = -1
    if rows.columns.shape[0] > 0 and size > _SHORT:
        # One after the other in memory, so that what is touched stays in the cache.
        work.counts[0], work.counts[1] = 0, int(min(_MOST_SHARE, _SHARE_OF_FEATURES / rows.columns.shape[0]) * size)
        # Is read before the first row is computed.
        work.kernel[0, :whole] = 0
    else:
        _fill_pair(work, rows, kept, blocks, starts, a, b)
    if work.kernel.itemsize == 8 or (rows.given and size <= _DOUBLE_ROWS):
        n_iter = _solve_on(
            values, work.up_double[:whole], work.low_double[:whole], beta, lower, upper, work, rows, kept, blocks,
            starts, a, b, tol, limit,
        )  # fmt: skip
        m, M = extremes(values[:size], beta, lower, upper)
        return n_iter, m, M
    own, n_iter = work.values[:whole], 0
    for _ in range(_ROUNDS):
        for t in range(size):
            own[t] = np.float32(values[t])
        n_iter += _solve_on(
            own, work.up[:whole], work.low[:whole], beta, lower, upper, work, rows, kept, blocks, starts, a, b,
            np.float32(_INNER_SHARE * tol), limit - n_iter,
        )  # fmt: skip
        _refresh(values[:size], n_a, beta, work.kernel, work.slots)
        m, M = extremes(values[:size], beta, lower, upper)
        if m - M <= tol or n_iter >= limit:
            break
    return n_iter, m, M


@jit_step()
def _tile(kept, k, size):
    return kept.memory[kept.places[k] : kept.places[k] + size * size].reshape(size, size)


@jit_step()
def _place_tile(kernel, row, k, starts, rows, kept, blocks):
    """Write the kernel values of a class with itself to the diagonal of a pair's matrix."""
    start, stop = starts[k], starts[k + 1]
    size = stop - start
    if kept.places[k] < 0:
        fill_tile(kernel, row, start, stop, row, start, stop, rows, blocks)
        return
    tile = _tile(kept, k, size)
    if not kept.there[k]:
        fill_tile(tile, 0, start, stop, 0, start, stop, rows, blocks)
        kept.there[k] = True
    copy_tile(kernel, row, row, tile, 0, size, 0, size)


@jit_step()
def _fill_pair(work, rows, kept, blocks, starts, a, b):
    """Compute all kernel rows of a pair."""
    n_a = starts[a + 1] - starts[a]
    size = n_a + starts[b + 1] - starts[b]
    _clear(work.kernel, size, _padded(size))
    _place_tile(work.kernel, 0, a, starts, rows, kept, blocks)
    _place_tile(work.kernel, n_a, b, starts, rows, kept, blocks)
    fill_tile(work.kernel, n_a, starts[b], starts[b + 1], 0, starts[a], starts[a + 1], rows, blocks)
    for t in range(size):
        work.slots[t] = t


@jit_step()
def _clear(kernel, size, whole):
    part = kernel[:size, size:whole]
    for s in range(part.shape[0]):
        for t in range(part.shape[1]):
            part[s, t] = 0


@jit()
def _solve_some(which, pairs, rows, places, tile_numbers, tol, max_iter, limits):
    """Solve the pairs of these numbers."""
    starts = pairs.starts
    longest = 0
    for p in which:
        a, b = pairs.first[p], pairs.second[p]
        longest = max(longest, starts[a + 1] - starts[a] + starts[b + 1] - starts[b])
    whole, kind = _padded(longest), rows.diagonal.dtype
    work = _Work(
        kernel=np.empty((longest, whole + _APART), kind),
        slots=np.empty(longest, np.int64),
        counts=np.zeros(2, np.int64),
        diagonal=np.zeros(whole, kind),
        gains=np.empty(whole, np.float32),
        up=np.empty(whole, np.float32),
        low=np.empty(whole, np.float32),
        values=np.empty(whole, np.float32),
        up_double=np.empty(whole),
        low_double=np.empty(whole),
    )
    kept = _Kept(np.empty(tile_numbers, kind), places, np.zeros(places.shape[0], np.bool_))
    blocks = make_blocks(rows, longest)
    memory = np.empty((4, whole))
    for p in which:
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
        n_iter, m, M = _solve_pair(values, beta, lower, upper, work, rows, kept, blocks, starts, a, b, tol, limit)
        # The offset: the mean of minus the values of the free variables, else the middle of its interval.
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
        pairs.ended[p] = SOLVED if m - M <= tol else (LIMIT if n_iter == max_iter else LEFT)
        for t in range(n_a):
            pairs.layout[b - 1, starts[a] + t] = beta[t]
        for t in range(n_a, size):
            pairs.layout[a, starts[b] + t - n_a] = beta[t]


@jit()
def scatter_pairs(layout, starts, coef):
    """Write coefficients in scikit-learn's layout (c - 1, m), of rows sorted by class, as (m, p) for the p pairs."""
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
        Where each class begins.
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
        own, other = (slice(self.starts[k], self.starts[k + 1]) for k in (first, second))
        return np.concatenate([self.layout[second - 1, own], self.layout[first, other]])


def classes_of_pairs(n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    """First and second classes of the pairs (0, 1), (0, 2), ..., (1, 2), ..., (p,) each."""
    first, second = _triangle(n_classes)
    return first.copy(), second.copy()


@functools.lru_cache(maxsize=8)
def _triangle(n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Do what `classes_of_pairs` says, once: making these takes as long as a few pairs of a small problem."""
    first, second = np.triu_indices(n_classes, 1)
    return first, second


def solve_class_pairs(
    rows: KernelRows,
    upper: np.ndarray,
    solutions: ClassSolutions,
    columns: np.ndarray,
    *,
    tol: float,
    max_iter: int,
    memory: float,
    patience: np.ndarray | None = None,
) -> np.ndarray:
    """Solve pairs of classes; write what is found into `solutions`.

    Parameters
    ----------
    rows : KernelRows (n)
        All rows, sorted by class; kernel values have their precision.
    upper : ndarray (n,)
        Upper bound of each row's variable.
    solutions : ClassSolutions
        Gets the results.
    columns : ndarray of int
        Numbers of the pairs to solve.
    tol : float
        Largest violation of optimality.
    max_iter : int
        Most steps for a pair, -1 for no limit.
    memory : float
        Bytes for kernel values.
    patience : ndarray (p,) or None
        Steps after which each pair is left to another solver, if those are fewer than else.

    Returns
    -------
    ndarray of int
        The pairs that are left for another solver. Those that were begun have feasible variables.
    """
    n_classes = solutions.starts.size - 1
    first, second = classes_of_pairs(n_classes)
    sizes = np.diff(solutions.starts)
    # Padded, so never larger than this; what fits must not depend on the number of threads.
    bytes_of_pair = rows.dtype.itemsize * (sizes[first] + sizes[second] + _PADDED + _APART) ** 2.0
    fits = (bytes_of_pair <= memory) & (sizes[first] > 0) & (sizes[second] > 0)
    mine = columns[fits[columns]]
    if mine.size == 0:
        return columns
    pairs = _Pairs(
        starts=solutions.starts,
        first=first,
        second=second,
        upper=upper,
        layout=solutions.layout,
        rho=solutions.rho,
        objective=solutions.objective,
        n_iter=solutions.n_iter,
        ended=np.full(first.size, LEFT),
    )
    largest = float(bytes_of_pair[mine].max())
    seconds = rows.seconds(float(((sizes[first] + sizes[second])[mine] ** 2).sum())) + _PAIR_SECONDS * mine.size
    n_threads = threads_worth(max(1, min(rows.n_threads, mine.size, int(memory / largest))), seconds)
    # Of the classes that several pairs have, as many as find room; every thread has its own.
    several = np.flatnonzero(np.bincount(np.concatenate([first[mine], second[mine]]), minlength=n_classes) > 1)
    ends = np.cumsum(sizes[several] ** 2)
    several = several[ends <= (2.0 * memory / n_threads - largest) / rows.dtype.itemsize]
    places = np.full(n_classes, -1)
    places[several] = ends[: several.size] - sizes[several] ** 2
    tile_numbers = int((sizes[several] ** 2).sum())
    limits = _STEPS * (sizes[first] + sizes[second]) + _LEAST_STEPS
    if patience is not None:
        limits = np.minimum(limits, patience).astype(np.int64)
    settings: tuple[Any, ...] = (pairs, class_rows(rows), places, tile_numbers, tol, max_iter, limits)
    if rows.pool is None or n_threads == 1:
        _solve_some(mine, *settings)
    else:
        # Neighbours share a class, so each thread gets some of every class. As arrays of one kind: what is compiled for
        # another may round differently.
        parts = [np.ascontiguousarray(mine[k::n_threads]) for k in range(n_threads)]
        share_out(rows.pool, _solve_some, [(part, *settings) for part in parts])
    solutions.converged[mine] = pairs.ended[mine] == SOLVED
    done = np.zeros(first.size, dtype=bool)
    done[mine] = pairs.ended[mine] != LEFT
    return columns[~done[columns]]


def warm_up() -> None:
    """Compile what this module runs, for kernel values in single precision and in double."""
    single = [KernelRows(np.array([[0.0], [1.0], [2.0], [3.0]]), kernel) for kernel in ("rbf", "linear")]
    for rows in (*single, *(rows.in_double() for rows in single)):
        starts, zeros = np.array([0, 2, 4]), np.zeros(1)
        solutions = ClassSolutions(
            np.zeros((1, 4)), starts, zeros.copy(), zeros.copy(), np.zeros(1, np.int64), np.zeros(1, bool)
        )
        solve_class_pairs(rows, np.ones(4), solutions, np.array([0]), tol=1e-3, max_iter=-1, memory=1e6)
    scatter_pairs(solutions.layout, starts, np.zeros((4, 1)))
