"""The C-SVC duals of many pairs of classes in one compiled call: for pairs of some hundred to a few thousand rows.

The rows are sorted by class. A pair needs no setting up: its kernel rows are computed when a step asks for them, and
the memory for them serves one pair after the other. Kernel values have single precision, as in LIBSVM, where that is
enough, else double; the gap at which a pair stops is that of values in double precision. A pair that takes too many
steps is left for `privsvm.solvers.block_smo`, which goes on from where it is.

Variables are ``b_t = y_t a_t`` and values ``v_t = y_t - sum_s b_s K(x_s, x_t)``, with labels +1 for the first class of
a pair. Source: Fan, Chen and Lin (2005) for the choice of two variables.
"""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import numpy as np

from privsvm.numerics.jit import jit, jit_step
from privsvm.numerics.vector_math import FAST_MATH, exp2, maximum
from privsvm.solvers.block_smo import extremes
from privsvm.solvers.kernel_rows import KernelRows
from privsvm.solvers.kernels import LINEAR, RBF, set_kernel_values

__all__ = ["ClassSolutions", "scatter_pairs", "solve_class_pairs"]

# How a pair ended.
SOLVED, LIMIT, LEFT = range(3)

# Steps for each variable of a pair, and more for all, before it is left to the solver for hard problems.
_STEPS, _LEAST_STEPS = 10, 2000

# Pairs of at most this many rows have values in double precision, which costs them little; so have all whose kernel
# values have it.
_DOUBLE_ROWS = 256

# Larger ones in single precision, to this share of the tolerance; so often from values in double precision.
_INNER_SHARE, _ROUNDS = 0.9, 5

# A coefficient below zero curvature, LIBSVM's constant.
_TAU = 1e-12

# Added to a value, this takes it out of a maximum.
_OUT = -1e30

# Entries that are searched together for a maximum.
_CHUNK = 64

# Kernel values of one row that are computed together, and features at a time.
_BLOCK = 512

# Rows of more features than this are worth a product of matrices; so are all where a pair has at most so many rows,
# since to compute one row of such a pair takes longer than its values do.
_FEW_FEATURES = 64
_SHORT_ROWS = 80


class _Source(NamedTuple):
    """Where kernel values come from: rows by columns (d, n), or the whole matrix (n, n)."""

    stored: bool
    matrix: np.ndarray
    columns: np.ndarray
    norms: np.ndarray
    diagonal: np.ndarray
    kind: int
    factor: float
    coef0: float
    degree: int


class _Work(NamedTuple):
    """Memory of one thread, for one pair after the other."""

    # Kernel rows, and where the row of each variable is; -1 where it is not. One over the curvatures, of the rows of
    # first variables.
    kernel: np.ndarray
    inverse: np.ndarray
    inverted: np.ndarray
    slots: np.ndarray
    used: np.ndarray
    diagonal: np.ndarray
    gains: np.ndarray
    up: np.ndarray
    low: np.ndarray
    values: np.ndarray
    up_single: np.ndarray
    low_single: np.ndarray


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


@jit_step(fastmath=FAST_MATH)
def _add_four(out, one, two, three, four, a, b, c, d):
    for t in range(out.shape[0]):
        out[t] += (a * one[t] + b * two[t]) + (c * three[t] + d * four[t])


@jit_step(fastmath=FAST_MATH)
def _add_products(out, columns, row, factor, start):
    """``out += factor * columns[:, row]' columns[:, start : start + len(out)]``."""
    n_features, size = columns.shape[0], out.shape[0]
    whole = n_features - n_features % 4
    kind = out.dtype.type
    for begin in range(0, size, _BLOCK):
        end = min(begin + _BLOCK, size)
        part = out[begin:end]
        first, last = start + begin, start + end
        for k in range(0, whole, 4):
            _add_four(
                part, columns[k, first:last], columns[k + 1, first:last], columns[k + 2, first:last],
                columns[k + 3, first:last], kind(factor * columns[k, row]), kind(factor * columns[k + 1, row]),
                kind(factor * columns[k + 2, row]), kind(factor * columns[k + 3, row]),
            )  # fmt: skip
        for k in range(whole, n_features):
            value, one = kind(factor * columns[k, row]), columns[k, first:last]
            for t in range(part.shape[0]):
                part[t] += value * one[t]


@jit_step(fastmath=FAST_MATH)
def _to_gaussian(out, norm, norms):
    for t in range(out.shape[0]):
        out[t] = exp2(-maximum(norm + norms[t] - out[t], out.dtype.type(0)))


@jit_step()
def _fill(out, row, start, columns, norms, kind, factor, coef0, degree):
    """Kernel values of a row with the rows from `start` on."""
    size = out.shape[0]
    for t in range(size):
        out[t] = np.float32(0)
    _add_products(out, columns, row, factor, start)
    if kind == RBF:
        _to_gaussian(out, norms[row], norms[start : start + size])
    elif kind != LINEAR:
        block, own = out.reshape(1, size), norms[row : row + 1]
        set_kernel_values(block, block, 0, 0, kind, own, norms[start : start + size], coef0, degree)


@jit_step(fastmath=FAST_MATH)
def _invert(inverse, row, own, diagonal):
    """One over the curvature of a row's pairs, ``K_ii + K_tt - 2 K_it``; in single precision."""
    two, one, tau = row.dtype.type(2), np.float32(1), np.float32(_TAU)
    for t in range(row.shape[0]):
        inverse[t] = one / maximum(np.float32(own + diagonal[t] - two * row[t]), tau)


@jit_step()
def _invert_row(inverse, kernel, place, diagonal, own, size):
    _invert(inverse[place, :size], kernel[place, :size], own, diagonal[:size])


@jit_step()
def _copy_all(kernel, place, matrix, row, start_a, n_a, start_b, size):
    """Copy a row's kernel values with the rows of both classes."""
    for t in range(n_a):
        kernel[place, t] = matrix[row, start_a + t]
    for t in range(n_a, size):
        kernel[place, t] = matrix[row, start_b + t - n_a]


@jit()
def _fill_all(
    kernel, place, row, start_a, n_a, start_b, size, columns, norms, kind, factor, coef0, degree
):  # fmt: skip
    """Kernel values of a row with the rows of both classes."""
    out = kernel[place, :size]
    _fill(out[:n_a], row, start_a, columns, norms, kind, factor, coef0, degree)
    _fill(out[n_a:], row, start_b, columns, norms, kind, factor, coef0, degree)


@jit_step()
def _fetch(i, work, source, rows_a, rows_b):
    """Place of the kernel row of variable i, which is computed if it is not there."""
    if work.slots[i] < 0:
        n_a = rows_a[1] - rows_a[0]
        place, size = work.used[0], n_a + rows_b[1] - rows_b[0]
        row = rows_a[0] + i if i < n_a else rows_b[0] + i - n_a
        if source.stored:
            _copy_all(work.kernel, place, source.matrix, row, rows_a[0], n_a, rows_b[0], size)
        else:
            _fill_all(
                work.kernel, place, row, rows_a[0], n_a, rows_b[0], size, source.columns, source.norms, source.kind,
                source.factor, source.coef0, source.degree,
            )  # fmt: skip
        work.slots[i] = place
        work.inverted[place] = False
        work.used[0] += 1
    return work.slots[i]


@jit_step(fastmath=FAST_MATH, forceinline=True)
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


@jit_step(fastmath=FAST_MATH, forceinline=True)
def _set_gains(gains, values, inverse, low, value_i):
    """Second order gains of the pairs with i, ``(v_i - v_t)^2 / (K_ii + K_tt - 2 K_it)``; in single precision."""
    zero = values.dtype.type(0)
    for t in range(gains.shape[0]):
        violation = np.float32(maximum(value_i - values[t] + low[t], zero))
        gains[t] = violation * violation * inverse[t]


@jit_step(fastmath=FAST_MATH, forceinline=True)
def _largest(gains):
    largest = np.float32(-1)
    for t in range(gains.shape[0]):
        largest = maximum(largest, gains[t])
    return largest


# Parts of arrays are made in functions that do nothing else: elsewhere Numba counts references to them, which takes
# longer than a pass over a small pair.
@jit_step()
def _move_all(values, kernel, place_i, place_j, step, up, low):
    """Move all values; return the largest that may go up, where to look for it, and minus the smallest to go down."""
    size = values.shape[0]
    row_i, row_j = kernel[place_i], kernel[place_j]
    highest, lowest, where = values.dtype.type(_OUT), values.dtype.type(_OUT), 0
    for start in range(0, size, _CHUNK):
        stop = min(start + _CHUNK, size)
        chunk_highest, chunk_lowest = _move(
            values[start:stop], row_i[start:stop], row_j[start:stop], step, up[start:stop], low[start:stop]
        )
        if chunk_highest > highest:
            highest, where = chunk_highest, start
        lowest = max(lowest, chunk_lowest)
    while values[where] + up[where] != highest:
        where += 1
    return highest, where, lowest


@jit_step()
def _best_partner(gains, values, inverse, place_i, low, value_i):
    """Variable of the largest second order gain with i."""
    size = values.shape[0]
    row = inverse[place_i]
    largest, where = np.float32(-1), 0
    for start in range(0, size, _CHUNK):
        stop = min(start + _CHUNK, size)
        _set_gains(gains[start:stop], values[start:stop], row[start:stop], low[start:stop], value_i)
        gain = _largest(gains[start:stop])
        if gain > largest:
            largest, where = gain, start
    while gains[where] != largest:
        where += 1
    return where


@jit_step()
def _solve(values, up, low, beta, lower, upper, work, rows_a, rows_b, source, tol, limit):
    """Solve one pair by steps of two variables, from `beta` and `values`; return the number of steps.

    Values are in the precision in which they are given.
    """
    size, kind = values.shape[0], values.dtype.type
    zero, out = kind(0), kind(_OUT)
    kernel, inverse, gains, slots, diagonal = work.kernel, work.inverse, work.gains, work.slots, work.diagonal
    for t in range(size):
        up[t] = zero if beta[t] < upper[t] else out
        low[t] = zero if beta[t] > lower[t] else out
    n_iter, slot_i, slot_j, step = 0, 0, 0, zero
    while True:
        # Before the first step nothing has moved, whatever the two rows hold.
        highest, i, lowest = _move_all(values, kernel, slot_i, slot_j, step, up, low)
        if highest + lowest <= tol or n_iter >= limit:
            return n_iter
        slot_i = slots[i]
        if slot_i < 0:
            slot_i = _fetch(i, work, source, rows_a, rows_b)
        if not work.inverted[slot_i]:
            # Once, for all steps in which this variable is the first.
            _invert_row(inverse, kernel, slot_i, diagonal, diagonal[i], size)
            work.inverted[slot_i] = True
        j = _best_partner(gains, values, inverse, slot_i, low, values[i])
        slot_j = slots[j]
        if slot_j < 0:
            slot_j = _fetch(j, work, source, rows_a, rows_b)
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
def _subtract_row(values, weight, row):
    for t in range(values.shape[0]):
        values[t] -= weight * np.float64(row[t])


@jit_step()
def _refresh(values, n_a, beta, work, source, rows_a, rows_b):
    """Compute the values of a pair from its variables, in double precision."""
    size = values.shape[0]
    for t in range(size):
        values[t] = 1.0 if t < n_a else -1.0
    for s in range(size):
        if beta[s] != 0.0:
            _subtract_row(values, beta[s], work.kernel[_fetch(s, work, source, rows_a, rows_b), :size])


@jit_step()
def _solve_pair(values, beta, lower, upper, work, rows_a, rows_b, source, tol, limit):
    """Solve one pair; return the number of steps, and m and M by values in double precision."""
    size, n_a = values.shape[0], rows_a[1] - rows_a[0]
    work.used[0] = 0
    work.slots[:size] = -1
    work.kernel[0, :size] = work.kernel.dtype.type(0)
    n_iter = 0
    if size <= _DOUBLE_ROWS or work.kernel.itemsize == 8:
        n_iter += _solve(
            values, work.up[:size], work.low[:size], beta, lower, upper, work, rows_a, rows_b, source, tol, limit
        )
    else:
        own = work.values[:size]
        for _ in range(_ROUNDS):
            for t in range(size):
                own[t] = np.float32(values[t])
            n_iter += _solve(
                own, work.up_single[:size], work.low_single[:size], beta, lower, upper, work, rows_a, rows_b, source,
                np.float32(_INNER_SHARE * tol), limit - n_iter,
            )  # fmt: skip
            _refresh(values, n_a, beta, work, source, rows_a, rows_b)
            m, M = extremes(values, beta, lower, upper)
            if m - M <= tol or n_iter >= limit:
                break
    m, M = extremes(values, beta, lower, upper)
    return n_iter, m, M


@jit()
def _solve_some(which, pairs, source, tol, max_iter, limits):
    """Solve the pairs of these numbers."""
    starts = pairs.starts
    longest = 0
    for p in which:
        a, b = pairs.first[p], pairs.second[p]
        longest = max(longest, starts[a + 1] - starts[a] + starts[b + 1] - starts[b])
    work = _Work(
        kernel=np.empty((longest, longest), source.diagonal.dtype),
        inverse=np.empty((longest, longest), np.float32),
        inverted=np.zeros(longest, np.bool_),
        slots=np.empty(longest, np.int64),
        used=np.zeros(1, np.int64),
        diagonal=np.empty(longest, source.diagonal.dtype),
        gains=np.empty(longest, np.float32),
        up=np.empty(longest),
        low=np.empty(longest),
        values=np.empty(longest, np.float32),
        up_single=np.empty(longest, np.float32),
        low_single=np.empty(longest, np.float32),
    )
    memory = np.empty((4, longest))
    for p in which:
        a, b = pairs.first[p], pairs.second[p]
        rows_a, rows_b = (starts[a], starts[a + 1]), (starts[b], starts[b + 1])
        n_a = rows_a[1] - rows_a[0]
        size = n_a + rows_b[1] - rows_b[0]
        values, beta, lower, upper = memory[0, :size], memory[1, :size], memory[2, :size], memory[3, :size]
        for t in range(n_a):
            values[t], beta[t], lower[t], upper[t] = 1.0, 0.0, 0.0, pairs.upper[rows_a[0] + t]
            work.diagonal[t] = source.diagonal[rows_a[0] + t]
        for t in range(n_a, size):
            values[t], beta[t], lower[t], upper[t] = -1.0, 0.0, -pairs.upper[rows_b[0] + t - n_a], 0.0
            work.diagonal[t] = source.diagonal[rows_b[0] + t - n_a]
        limit = limits[p]
        if max_iter >= 0:
            limit = min(limit, max_iter)
        n_iter, m, M = _solve_pair(values, beta, lower, upper, work, rows_a, rows_b, source, tol, limit)
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
            pairs.layout[b - 1, rows_a[0] + t] = beta[t]
        for t in range(n_a, size):
            pairs.layout[a, rows_b[0] + t - n_a] = beta[t]


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
    first, second = np.triu_indices(n_classes, 1)
    sizes = np.diff(solutions.starts)
    # Kernel values, and one over the curvatures.
    fits = (4.0 + rows.dtype.itemsize) * (sizes[first] + sizes[second]) ** 2 <= memory / rows.n_threads
    fits &= (sizes[first] > 0) & (sizes[second] > 0)
    mine = columns[fits[columns]]
    short = mine.size > 0 and float(np.mean(sizes[first[mine]] + sizes[second[mine]])) <= _SHORT_ROWS
    source = _source(rows, memory, short) if mine.size else None
    if source is None:
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
    n_threads = min(rows.n_threads, mine.size)
    limits = _STEPS * (sizes[first] + sizes[second]) + _LEAST_STEPS
    if patience is not None:
        limits = np.minimum(limits, patience).astype(np.int64)
    settings: tuple[Any, ...] = (pairs, source, tol, max_iter, limits)
    if rows.pool is None or n_threads == 1:
        _solve_some(mine, *settings)
    else:
        # Neighbours share a class, so each thread gets some of every class.
        jobs = [rows.pool.submit(_solve_some, mine[k::n_threads], *settings) for k in range(n_threads)]
        for job in jobs:
            job.result()
    solutions.converged[mine] = pairs.ended[mine] == SOLVED
    done = np.zeros(first.size, dtype=bool)
    done[mine] = pairs.ended[mine] != LEFT
    return columns[~done[columns]]


def _source(rows: KernelRows, memory: float, short: bool) -> _Source | None:
    """Decide where kernel values come from; None if neither way is good for these rows."""
    diagonal = rows.diagonal().astype(rows.dtype)
    empty = np.empty((0, 0), dtype=rows.dtype)
    whole = float(rows.dtype.itemsize) * rows.n_rows**2 <= memory
    # Of one type whatever the rows are: another would be compiled anew.
    tail: tuple[Any, ...] = (rows.kind, float(rows.factor), rows.dtype.type(rows.coef0), int(rows.degree))
    narrow = rows.narrow_rows(_FEW_FEATURES)
    if narrow is not None and not (short and whole):
        columns = np.ascontiguousarray(narrow.T)
        return _Source(False, empty, columns, rows.norms, diagonal, *tail)
    if whole:
        matrix = rows.gram(np.empty(rows.n_rows**2, dtype=rows.dtype))
        return _Source(True, matrix, empty, np.empty(0, dtype=rows.dtype), diagonal, *tail)
    return None


def warm_up(precise: bool = False) -> None:
    """Compile what this module runs, for kernel values in single precision or in double."""
    for kernel in ("rbf", "linear"):
        rows = KernelRows(np.array([[0.0], [1.0], [2.0], [3.0]]), kernel)
        rows = rows.in_double() if precise else rows
        starts, zeros = np.array([0, 2, 4]), np.zeros(1)
        solutions = ClassSolutions(
            np.zeros((1, 4)), starts, zeros.copy(), zeros.copy(), np.zeros(1, np.int64), np.zeros(1, bool)
        )
        solve_class_pairs(rows, np.ones(4), solutions, np.array([0]), tol=1e-3, max_iter=-1, memory=1e6)
    scatter_pairs(solutions.layout, starts, np.zeros((4, 1)))
