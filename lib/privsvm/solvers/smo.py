"""The C-SVC dual by sequential minimal optimisation: LIBSVM's method, step by step, with other rules to choose a pair.

One step moves two variables to their best values with the others held. What LIBSVM 3.24 does is kept in all that
changes the path: float32 kernel rows and a float64 gradient, ties that go to the last variable, clipping, the rule and
the times of shrinking, the order of the variables after it, and the stopping rule.

Inside, the gradient is held as ``F = -y G``, which is to be large for the variable that goes up in the direction of its
label and small for the one that goes down. The update of F and the search for its extremes are one pass, by blocks.

Sources: Fan, Chen and Lin (2005), Working set selection using second order information (WSS 1-3); Chang and Lin (2011),
LIBSVM, sections 4 and 5; dpwss-2021, sections 3.2 and 4 (WSS 4, DPWSS).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import scipy.sparse

from privsvm.errors import nearest_name
from privsvm.numerics.jit import jit, jit_step
from privsvm.solvers.c_svc import CSVCSolution, dual_objective, rho_from_gradient
from privsvm.solvers.kernels import KERNELS

__all__ = ["SELECTIONS", "solve_smo"]

SELECTIONS = ("wss1", "wss2", "wss3", "wss4", "dpwss")

_WSS1, _WSS2, _WSS3, _WSS4, _DPWSS = range(5)
_LINEAR, _RBF, _POLY, _SIGMOID = range(4)

# LIBSVM's curvature where two rows have none between them.
_TAU = 1e-12

# Variables whose extremes are kept together, and rows whose products are summed together.
_BLOCK = 256

# Rows with more stored values than this share are faster as a dense matrix.
_DENSE_SHARE = 0.3


class _Rows(NamedTuple):
    """Training rows, in the order of the variables (dense) or in their own (sparse, found through `order`)."""

    sparse: bool
    columns: np.ndarray
    data: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray
    squares: np.ndarray
    # Row of each variable.
    order: np.ndarray
    # Work space: the row at hand, and its products.
    one_row: np.ndarray
    products: np.ndarray
    kernel: int
    gamma: float
    degree: int
    coef0: float


class _Cache(NamedTuple):
    """Kernel rows in the order of the variables, each up to some length; the least recently used makes room."""

    rows: np.ndarray
    # Training row that a slot belongs to, and the slot of each training row; -1 for none.
    owner: np.ndarray
    length: np.ndarray
    last_use: np.ndarray
    slot: np.ndarray
    clock: np.ndarray


class _State(NamedTuple):
    """Variables, in an order in which the active ones come first."""

    y: np.ndarray
    alpha: np.ndarray
    upper: np.ndarray
    F: np.ndarray
    F_bounded: np.ndarray
    diagonal: np.ndarray
    up: np.ndarray
    low: np.ndarray
    block_max: np.ndarray
    block_min: np.ndarray
    # Work space of one block.
    above: np.ndarray
    below: np.ndarray


class _Rule(NamedTuple):
    """How pairs are chosen, and when to stop."""

    selection: int
    tol: float
    sigma: float
    sharpness: float
    shrinking: bool


class _Memory(NamedTuple):
    """What the random rule needs: pairs chosen so far, and work space."""

    # Last pair of each first variable, by place; see `_remember`.
    head: np.ndarray
    # Second variables that are marked with the present stamp have been used.
    used: np.ndarray
    stamp: np.ndarray
    candidates: np.ndarray
    weights: np.ndarray


class _Buffers(NamedTuple):
    """Work space of shrinking: where each variable was, and one row in either precision."""

    source: np.ndarray
    single: np.ndarray
    double: np.ndarray


@jit_step()
def _power(base, exponent):
    result = 1.0
    while exponent > 0:
        if exponent % 2 == 1:
            result *= base
        base *= base
        exponent //= 2
    return result


@jit_step()
def _kernel_value(product, squares, kernel, gamma, degree, coef0):
    if kernel == _RBF:
        return math.exp(-gamma * (squares - 2.0 * product))
    if kernel == _POLY:
        return _power(gamma * product + coef0, degree)
    if kernel == _SIGMOID:
        return math.tanh(gamma * product + coef0)
    return product


@jit_step()
def _sparse_products(i, start, stop, rows):
    """Set the products of variable `i` with the variables ``start..stop-1``, for CSR rows."""
    x, products, order = rows.one_row, rows.products, rows.order
    first, last = rows.indptr[order[i]], rows.indptr[order[i] + 1]
    for k in range(first, last):
        x[rows.indices[k]] = rows.data[k]
    for p in range(start, stop):
        row = order[p]
        total = 0.0
        for k in range(rows.indptr[row], rows.indptr[row + 1]):
            total += x[rows.indices[k]] * rows.data[k]
        products[p] = total
    for k in range(first, last):
        x[rows.indices[k]] = 0.0


@jit_step()
def _dense_products(i, start, stop, rows):
    """Set the products of variable `i` with the variables ``start..stop-1``, for dense rows."""
    x, products, columns = rows.one_row, rows.products, rows.columns
    n_features = columns.shape[0]
    for k in range(n_features):
        x[k] = columns[k, i]
    for begin in range(start, stop, _BLOCK):
        end = min(begin + _BLOCK, stop)
        for p in range(begin, end):
            products[p] = 0.0
        for k in range(n_features):
            value = x[k]
            if value != 0.0:
                for p in range(begin, end):
                    products[p] += value * columns[k, p]


@jit_step()
def _fill_row(target, i, start, stop, rows):
    """Write the kernel values of variable `i` with the variables ``start..stop-1``.

    Products are summed in the order of the features, so that dense and sparse rows give the same bits.
    """
    if rows.sparse:
        _sparse_products(i, start, stop, rows)
    else:
        _dense_products(i, start, stop, rows)
    products, kernel = rows.products, rows.kernel
    if kernel == _LINEAR:
        for p in range(start, stop):
            target[p] = products[p]
    else:
        square, squares = rows.squares[i], rows.squares
        gamma, degree, coef0 = rows.gamma, rows.degree, rows.coef0
        for p in range(start, stop):
            target[p] = _kernel_value(products[p], square + squares[p], kernel, gamma, degree, coef0)


@jit_step()
def _fetch(i, stop, rows, cache):
    """Slot of the cache that holds the kernel row of variable `i` up to variable ``stop - 1``."""
    index = rows.order[i]
    slot = cache.slot[index]
    if slot < 0:
        slot = 0
        for s in range(cache.last_use.shape[0]):
            if cache.last_use[s] < cache.last_use[slot]:
                slot = s
        if cache.owner[slot] >= 0:
            cache.slot[cache.owner[slot]] = -1
        cache.owner[slot] = index
        cache.length[slot] = 0
        cache.slot[index] = slot
    cache.clock[0] += 1
    cache.last_use[slot] = cache.clock[0]
    if cache.length[slot] < stop:
        _fill_row(cache.rows[slot], i, cache.length[slot], stop, rows)
        cache.length[slot] = stop
    return slot


@jit_step()
def _fold(values, count):
    """Largest of ``values[:count]``, which is overwritten: by halves, since one running maximum is not vectorised."""
    if count == _BLOCK:
        while count > 8:
            count //= 2
            for k in range(count):
                values[k] = values[k] if values[k] > values[k + count] else values[k + count]
    largest = -np.inf
    for k in range(count):
        if values[k] > largest:
            largest = values[k]
    return largest


@jit_step()
def _scan(active, state):
    """Find the largest F that may rise and the smallest that may fall, of each block and of all active variables."""
    F, up, low, above, below = state.F, state.up, state.low, state.above, state.below
    largest, smallest = -np.inf, np.inf
    for begin in range(0, active, _BLOCK):
        count = min(_BLOCK, active - begin)
        for k in range(count):
            above[k] = F[begin + k] + up[begin + k]
            below[k] = -(F[begin + k] + low[begin + k])
        block_max, block_min = _fold(above, count), -_fold(below, count)
        state.block_max[begin // _BLOCK] = block_max
        state.block_min[begin // _BLOCK] = block_min
        largest = max(largest, block_max)
        smallest = min(smallest, block_min)
    return largest, smallest


@jit_step()
def _update_and_scan(row_i, row_j, step_i, step_j, active, state):
    """Move F by the steps of two variables, and `_scan` it in the same pass."""
    F, up, low, above, below = state.F, state.up, state.low, state.above, state.below
    largest, smallest = -np.inf, np.inf
    for begin in range(0, active, _BLOCK):
        count = min(_BLOCK, active - begin)
        for k in range(count):
            value = F[begin + k] - (row_i[begin + k] * step_i + row_j[begin + k] * step_j)
            F[begin + k] = value
            above[k] = value + up[begin + k]
            below[k] = -(value + low[begin + k])
        block_max, block_min = _fold(above, count), -_fold(below, count)
        state.block_max[begin // _BLOCK] = block_max
        state.block_min[begin // _BLOCK] = block_min
        largest = max(largest, block_max)
        smallest = min(smallest, block_min)
    return largest, smallest


@jit_step()
def _last_equal(values, offsets, blocks, target, active):
    """Last active variable where ``values + offsets`` is `target`, the extreme of its block."""
    for b in range((active - 1) // _BLOCK, -1, -1):
        if blocks[b] == target:
            for k in range(min((b + 1) * _BLOCK, active) - 1, b * _BLOCK - 1, -1):
                if values[k] + offsets[k] == target:
                    return k
    return -1


@jit_step()
def _second_order(row, fixed, extreme, sign, least, offsets, active, state):
    """Variable that, moved together with `fixed`, lowers the objective most to second order; -1 for none.

    Admissible are those with ``sign * (extreme - F_t)`` positive and at least `least`.
    """
    F, diagonal, gains, scratch = state.F, state.diagonal, state.above, state.below
    own = diagonal[fixed]
    best, chosen = 0.0, -1
    for begin in range(0, active, _BLOCK):
        count = min(_BLOCK, active - begin)
        for k in range(count):
            t = begin + k
            violation = sign * (extreme - (F[t] + offsets[t]))
            curvature = own + diagonal[t] - 2.0 * row[t]
            curvature = curvature if curvature > 0.0 else _TAU
            gain = violation * violation / curvature
            gain = gain if violation > 0.0 else 0.0
            gain = gain if violation >= least else 0.0
            gains[k] = gain
            scratch[k] = gain
        block_best = _fold(scratch, count)
        if block_best > 0.0 and block_best >= best:
            best = block_best
            k = count - 1
            while gains[k] != best:
                k -= 1
            chosen = begin + k
    return chosen


@jit_step()
def _draw(extreme, gap, rule, active, low, F, memory, rng):
    """Draw variable t with probability proportional to ``exp(sharpness q_t)``; -1 where no candidate is left.

    Candidates have ``extreme - F_t`` above the tolerance and a share ``q_t`` of the gap of at least sigma, and are not
    stamped as used.
    """
    candidates, weights, stamp = memory.candidates, memory.weights, memory.stamp[0]
    count, best = 0, 0.0
    for t in range(active):
        violation = extreme - (F[t] + low[t])
        if violation > rule.tol:
            share = violation / gap
            if share >= rule.sigma and memory.used[t] != stamp:
                candidates[count] = t
                weights[count] = share
                best = max(best, share)
                count += 1
    if count == 0:
        return -1
    total = 0.0
    for c in range(count):
        total += math.exp(rule.sharpness * (weights[c] - best))
        weights[c] = total
    # Of the cumulative weights, the first above the drawn level.
    level = rng.random() * total
    first, last = 0, count - 1
    while first < last:
        middle = (first + last) // 2
        if weights[middle] > level:
            last = middle
        else:
            first = middle + 1
    return candidates[first]


@jit_step()
def _refresh_sides(k, state):
    """Set whether variable `k` may move up, and down, in the direction of its label."""
    below, above = state.alpha[k] < state.upper[k], state.alpha[k] > 0.0
    may_rise = below if state.y[k] > 0 else above
    may_fall = above if state.y[k] > 0 else below
    state.up[k] = 0.0 if may_rise else -np.inf
    state.low[k] = 0.0 if may_fall else np.inf


@jit_step()
def _move_apart(i, j, step, state):
    """Let two variables of different labels grow or shrink together, and clip them the way LIBSVM does."""
    alpha, upper_i, upper_j = state.alpha, state.upper[i], state.upper[j]
    difference = alpha[i] - alpha[j]
    alpha[i] += step
    alpha[j] += step
    if difference > 0.0:
        if alpha[j] < 0.0:
            alpha[j] = 0.0
            alpha[i] = difference
    elif alpha[i] < 0.0:
        alpha[i] = 0.0
        alpha[j] = -difference
    if difference > upper_i - upper_j:
        if alpha[i] > upper_i:
            alpha[i] = upper_i
            alpha[j] = upper_i - difference
    elif alpha[j] > upper_j:
        alpha[j] = upper_j
        alpha[i] = upper_j + difference


@jit_step()
def _exchange(i, j, step, state):
    """Move `step` from one variable to another of the same label, and clip them the way LIBSVM does."""
    alpha, upper_i, upper_j = state.alpha, state.upper[i], state.upper[j]
    total = alpha[i] + alpha[j]
    alpha[i] += step
    alpha[j] -= step
    if total > upper_i:
        if alpha[i] > upper_i:
            alpha[i] = upper_i
            alpha[j] = total - upper_i
    elif alpha[j] < 0.0:
        alpha[j] = 0.0
        alpha[i] = total
    if total > upper_j:
        if alpha[j] > upper_j:
            alpha[j] = upper_j
            alpha[i] = total - upper_j
    elif alpha[i] < 0.0:
        alpha[i] = 0.0
        alpha[j] = total


@jit_step()
def _move_pair(i, j, curvature, state):
    """Move variables `i` and `j` to their best values."""
    if curvature <= 0.0:
        curvature = _TAU
    step = (state.F[i] - state.F[j]) / curvature * state.y[i]
    if state.y[i] != state.y[j]:
        _move_apart(i, j, step, state)
    else:
        _exchange(i, j, step, state)


@jit_step()
def _keep_bounded(i, was_bounded, n, state, rows, cache):
    """Keep up the part of F that variables at their upper bound make."""
    is_bounded = state.alpha[i] >= state.upper[i]
    if is_bounded != was_bounded:
        row = cache.rows[_fetch(i, n, rows, cache)]
        weight = state.y[i] * state.upper[i]
        if was_bounded:
            weight = -weight
        for k in range(n):
            state.F_bounded[k] -= weight * row[k]


@jit_step()
def _reconstruct(active, n, state, rows, cache):
    """Compute F of the variables that had been set aside."""
    if active == n:
        return
    F, alpha, y = state.F, state.alpha, state.y
    n_free = 0
    for i in range(active):
        if 0.0 < alpha[i] < state.upper[i]:
            n_free += 1
    for k in range(active, n):
        F[k] = state.F_bounded[k] + y[k]
    if n_free * n > 2 * active * (n - active):
        for k in range(active, n):
            row = cache.rows[_fetch(k, active, rows, cache)]
            for i in range(active):
                if 0.0 < alpha[i] < state.upper[i]:
                    F[k] -= alpha[i] * y[i] * row[i]
    else:
        for i in range(active):
            if 0.0 < alpha[i] < state.upper[i]:
                row = cache.rows[_fetch(i, n, rows, cache)]
                weight = alpha[i] * y[i]
                for k in range(active, n):
                    F[k] -= weight * row[k]


@jit_step()
def _may_leave(k, largest, smallest, state):
    """Whether a bounded variable is further on its side than any that can still move."""
    if state.up[k] == 0.0:
        return state.low[k] != 0.0 and state.F[k] < smallest
    return state.F[k] > largest


@jit_step()
def _swap(values, i, j):
    values[i], values[j] = values[j], values[i]


# Slice assignment would compile a second's worth of broadcasting rules.
@jit_step()
def _copy(source, target, count):
    for p in range(count):
        target[p] = source[p]


@jit_step()
def _swap_variables(i, k, state, rows, source):
    """Let two variables change places."""
    _swap(state.y, i, k)
    _swap(state.alpha, i, k)
    _swap(state.upper, i, k)
    _swap(state.F, i, k)
    _swap(state.F_bounded, i, k)
    _swap(state.diagonal, i, k)
    _swap(state.up, i, k)
    _swap(state.low, i, k)
    _swap(rows.squares, i, k)
    _swap(rows.order, i, k)
    _swap(source, i, k)


@jit_step()
def _reorder_rows(before, rows, cache, buffers):
    """Bring cached kernel rows, and dense rows, into the new order of the variables."""
    source = buffers.source
    for slot in range(cache.owner.shape[0]):
        if cache.owner[slot] < 0:
            continue
        row, length = cache.rows[slot], cache.length[slot]
        known = 0
        while known < min(before, length) and source[known] < length:
            buffers.single[known] = row[source[known]]
            known += 1
        _copy(buffers.single, row, known)
        if known < before:
            cache.length[slot] = known
    if not rows.sparse:
        for k in range(rows.columns.shape[0]):
            column = rows.columns[k]
            for p in range(before):
                buffers.double[p] = column[source[p]]
            _copy(buffers.double, column, before)


@jit_step()
def _shrink(active, largest, smallest, state, rows, cache, buffers):
    """Set variables aside that look settled, as LIBSVM does; return how many stay active."""
    before = active
    for p in range(before):
        buffers.source[p] = p
    moved = False
    i = 0
    while i < active:
        if _may_leave(i, largest, smallest, state):
            active -= 1
            while active > i:
                if not _may_leave(active, largest, smallest, state):
                    _swap_variables(i, active, state, rows, buffers.source)
                    moved = True
                    break
                active -= 1
        i += 1
    if moved:
        _reorder_rows(before, rows, cache, buffers)
    return active


@jit_step()
def _stamp_used(i, pairs, memory):
    """Stamp the variables that were chosen together with variable `i` before."""
    memory.stamp[0] += 1
    pair = memory.head[i]
    while pair >= 0:
        memory.used[pairs[pair, 1]] = memory.stamp[0]
        pair = pairs[pair, 0]


@jit_step()
def _choose_pair(largest, smallest, rule, active, state, rows, cache, memory, pairs, rng):
    """Choose two variables by the rule; -1 in place of one that cannot be found."""
    gap = largest - smallest
    if rule.selection == _WSS3:
        j = _last_equal(state.F, state.low, state.block_min, smallest, active)
        row = cache.rows[_fetch(j, active, rows, cache)]
        return _second_order(row, j, smallest, -1.0, rule.sigma * gap, state.up, active, state), j
    i = _last_equal(state.F, state.up, state.block_max, largest, active)
    if rule.selection == _WSS1:
        j = _last_equal(state.F, state.low, state.block_min, smallest, active)
    elif rule.selection == _DPWSS:
        _stamp_used(i, pairs, memory)
        j = _draw(largest, gap, rule, active, state.low, state.F, memory, rng)
    else:
        row = cache.rows[_fetch(i, active, rows, cache)]
        least = rule.sigma * gap if rule.selection == _WSS4 else 0.0
        j = _second_order(row, i, largest, 1.0, least, state.low, active, state)
    return i, j


@jit_step()
def _remember(iteration, i, j, rows, memory, pairs):
    """Note a pair; return the list of pairs, which may have been made longer.

    Each entry holds the pair before with the same first variable, the second variable, and the rows of both. Variables
    are known by their places.
    """
    if iteration > pairs.shape[0]:
        longer = np.empty((2 * pairs.shape[0], 4), dtype=np.int64)
        for k in range(pairs.shape[0]):
            _copy(pairs[k], longer[k], 4)
        pairs = longer
    pairs[iteration - 1, 0] = memory.head[i]
    pairs[iteration - 1, 1] = j
    pairs[iteration - 1, 2] = rows.order[i]
    pairs[iteration - 1, 3] = rows.order[j]
    memory.head[i] = iteration - 1
    return pairs


@jit_step()
def _take_step(i, j, active, shrinking, state, rows, cache):
    """Move a pair and bring F up to date; return its extremes."""
    n = state.y.shape[0]
    row_i = cache.rows[_fetch(i, active, rows, cache)]
    row_j = cache.rows[_fetch(j, active, rows, cache)]
    old_i, old_j = state.alpha[i], state.alpha[j]
    bounded_i, bounded_j = old_i >= state.upper[i], old_j >= state.upper[j]
    _move_pair(i, j, state.diagonal[i] + state.diagonal[j] - 2.0 * row_i[j], state)
    _refresh_sides(i, state)
    _refresh_sides(j, state)
    step_i = state.y[i] * (state.alpha[i] - old_i)
    step_j = state.y[j] * (state.alpha[j] - old_j)
    extremes = _update_and_scan(row_i, row_j, step_i, step_j, active, state)
    if shrinking:
        _keep_bounded(i, bounded_i, n, state, rows, cache)
        _keep_bounded(j, bounded_j, n, state, rows, cache)
    return extremes


@jit()
def _run(state, rows, cache, rule, memory, buffers, pairs, max_iter, rng):
    """Iterate; return the number of steps, how it ended (0 optimal, 1 no pair left, 2 limit) and pairs of rows."""
    n = state.y.shape[0]
    active, iteration, ended = n, 0, 2
    # Steps until variables are set aside again.
    period = min(n, 1000)
    counter = period + 1
    unshrunk, scanned = False, False
    largest, smallest = 0.0, 0.0
    while iteration < max_iter:
        counter -= 1
        if counter == 0:
            counter = period
            if rule.shrinking:
                if not scanned:
                    largest, smallest = _scan(active, state)
                if not unshrunk and largest - smallest <= 10.0 * rule.tol:
                    unshrunk = True
                    _reconstruct(active, n, state, rows, cache)
                    active = n
                active = _shrink(active, largest, smallest, state, rows, cache, buffers)
                scanned = False
        while True:
            i, j = -1, -1
            if not scanned:
                largest, smallest = _scan(active, state)
                scanned = True
            if largest - smallest >= rule.tol:
                i, j = _choose_pair(largest, smallest, rule, active, state, rows, cache, memory, pairs, rng)
            if (i >= 0 and j >= 0) or active == n:
                break
            # Nothing to do among the active variables: look at all of them.
            _reconstruct(active, n, state, rows, cache)
            active, counter, scanned = n, 1, False
        if i < 0 or j < 0:
            # Written so that NaN does not count as optimal.
            ended = 0 if largest - smallest < rule.tol else 1
            break
        iteration += 1
        if rule.selection == _DPWSS:
            pairs = _remember(iteration, i, j, rows, memory, pairs)
        largest, smallest = _take_step(i, j, active, rule.shrinking, state, rows, cache)
    _reconstruct(active, n, state, rows, cache)
    return iteration, ended, pairs[:, 2:]


def _prepare_rows(X, kernel: str, gamma: float, degree: int, coef0: float) -> tuple[_Rows, np.ndarray]:
    """Lay the rows out for the compiled loops; return them with the diagonal of the kernel matrix."""
    n, d = X.shape
    sparse = bool(scipy.sparse.issparse(X)) and X.nnz < _DENSE_SHARE * n * d
    if sparse:
        stored = scipy.sparse.csr_array(X, dtype=np.float64, copy=True)
        stored.sum_duplicates()
        columns = np.empty((0, 0))
        data, indices, indptr = stored.data, stored.indices.astype(np.int32), stored.indptr.astype(np.int64)
    else:
        dense = X.toarray() if scipy.sparse.issparse(X) else X
        # A copy of its own: shrinking changes the order.
        columns = np.array(np.asarray(dense, dtype=np.float64).T, order="C", copy=True)
        data, indices, indptr = np.empty(0), np.empty(0, dtype=np.int32), np.zeros(1, dtype=np.int64)
    rows = _Rows(
        sparse=sparse,
        columns=columns,
        data=data,
        indices=indices,
        indptr=indptr,
        squares=np.empty(n),
        order=np.arange(n),
        one_row=np.zeros(d),
        products=np.empty(n),
        kernel=KERNELS.index(kernel),
        gamma=float(gamma),
        degree=int(degree),
        coef0=float(coef0),
    )
    diagonal = np.empty(n)
    _squares_and_diagonal(rows, diagonal)
    return rows, diagonal


@jit()
def _squares_and_diagonal(rows, diagonal):
    """Fill in the rows' squared norms and their kernel values with themselves."""
    squares = rows.squares
    for i in range(squares.shape[0]):
        total = 0.0
        if rows.sparse:
            for k in range(rows.indptr[i], rows.indptr[i + 1]):
                total += rows.data[k] * rows.data[k]
        else:
            for k in range(rows.columns.shape[0]):
                total += rows.columns[k, i] * rows.columns[k, i]
        squares[i] = total
        diagonal[i] = _kernel_value(total, total + total, rows.kernel, rows.gamma, rows.degree, rows.coef0)


def solve_smo(
    X,
    y: np.ndarray,
    upper: np.ndarray,
    *,
    kernel: str = "rbf",
    gamma: float = 1.0,
    degree: int = 3,
    coef0: float = 0.0,
    tol: float = 1e-3,
    selection: str = "wss2",
    shrinking: bool = True,
    cache_size: float = 200.0,
    max_iter: int = -1,
    sigma: float = 0.5,
    sharpness: float = 1.0,
    rng: np.random.Generator | None = None,
) -> CSVCSolution:
    """Solve the C-SVC dual.

    Parameters
    ----------
    X : ndarray or CSR matrix (n, d)
        Rows; dense and sparse give the same bits.
    y : ndarray (n,)
        +1 or -1; both must occur.
    upper : ndarray (n,)
        Upper bounds of the dual variables, C for each row.
    kernel, gamma, degree, coef0
        See `privsvm.solvers.kernels.kernel_matrix`; `gamma` is a number.
    tol : float, default=1e-3
        Stop where the largest violation of optimality is below it.
    selection : {"wss1", "wss2", "wss3", "wss4", "dpwss"}, default="wss2"
        How a pair (i, j) is chosen, with m and M as in `privsvm.solvers.c_svc`:

        - ``wss1``: the maximal violating pair.
        - ``wss2``: i of the maximal violating pair, j with the largest decrease to second order; LIBSVM's rule.
        - ``wss3``: a constant-factor violating pair, of violation at least ``sigma (m - M)``. Of those, the one with
          j of the maximal violating pair and i with the largest decrease to second order.
        - ``wss4``: the same with the roles changed: i of the maximal violating pair.
        - ``dpwss``: i of the maximal violating pair, j drawn with probability proportional to
          ``exp(sharpness q_j)``, where ``q_j >= sigma`` is the pair's share of the violation ``m - M``, among pairs of
          violation above `tol` that were not chosen before. Ends where no such pair is left. Shrinking changes the
          places of variables, and pairs are remembered by place: a change to LIBSVM made in the plainest way does so,
          and it takes 0.98 of the steps that the paper prints for ``shrinking=1`` and sigma 0.1 (geometric mean of ten
          sets), a memory by row 0.91. Without shrinking the two are the same.
    shrinking : bool, default=True
        Whether to set variables aside that look settled at a bound.
    cache_size : float, default=200
        Memory for kernel rows in MB; at least two rows are kept.
    max_iter : int, default=-1
        Most steps; -1 means LIBSVM's limit, ``max(10^7, 100 n)``.
    sigma : float, default=0.5
        The constant factor of ``wss3``, ``wss4`` and ``dpwss``.
    sharpness : float, default=1.0
        Of ``dpwss``: 0 draws evenly.
    rng : numpy.random.Generator or None
        What ``dpwss`` draws from.

    Returns
    -------
    CSVCSolution

    Raises
    ------
    ValueError
        For an unknown kernel or selection, labels of one sign, or ``dpwss`` without `rng`.

    Notes
    -----
    LIBSVM sorts rows by class before it trains, those of label +1 first. Ties are decided by position, so the same
    number of steps takes the same order of rows.
    """
    if kernel not in KERNELS:
        raise ValueError(f"kernel={kernel!r}: {nearest_name(kernel, KERNELS)}")
    if selection not in SELECTIONS:
        raise ValueError(f"selection={selection!r}: {nearest_name(selection, SELECTIONS)}")
    if rng is None:
        if selection == "dpwss":
            raise ValueError("rng=None: selection='dpwss' draws; give a generator")
        rng = np.random.Generator(np.random.Philox(key=0))
    n = X.shape[0]
    y = np.array(y, dtype=np.float64)
    upper = np.array(upper, dtype=np.float64)
    if not (np.any(y > 0) and np.any(y < 0)):
        raise ValueError("y has labels of one sign only; both +1 and -1 must occur")
    rows, diagonal = _prepare_rows(X, kernel, gamma, degree, coef0)
    if not (np.isfinite(diagonal.astype(np.float32)).all() and np.isfinite(upper).all()):
        # Kernel rows are kept in float32, as LIBSVM keeps them.
        raise ValueError("kernel values overflow: scale the features, or choose a smaller C, gamma, degree or coef0")
    n_slots = int(min(max(cache_size * 2**20 // (4 * n), 2), n))
    cache = _Cache(
        rows=np.empty((n_slots, n), dtype=np.float32),
        owner=np.full(n_slots, -1, dtype=np.int64),
        length=np.zeros(n_slots, dtype=np.int64),
        last_use=np.zeros(n_slots, dtype=np.int64),
        slot=np.full(n, -1, dtype=np.int64),
        clock=np.zeros(1, dtype=np.int64),
    )
    n_blocks = -(-n // _BLOCK)
    state = _State(
        y=y.copy(),
        alpha=np.zeros(n),
        upper=upper.copy(),
        F=y.copy(),
        F_bounded=np.zeros(n),
        diagonal=diagonal,
        up=np.where((y > 0) & (upper > 0), 0.0, -np.inf),
        low=np.where((y < 0) & (upper > 0), 0.0, np.inf),
        block_max=np.empty(n_blocks),
        block_min=np.empty(n_blocks),
        above=np.empty(_BLOCK),
        below=np.empty(_BLOCK),
    )
    limit = max(10_000_000, 100 * n) if max_iter < 0 else max_iter
    rule = _Rule(SELECTIONS.index(selection), float(tol), float(sigma), float(sharpness), bool(shrinking))
    n_remembered = n if selection == "dpwss" else 0
    memory = _Memory(
        head=np.full(n_remembered, -1, dtype=np.int64),
        used=np.zeros(n_remembered, dtype=np.int64),
        stamp=np.zeros(1, dtype=np.int64),
        candidates=np.empty(n_remembered, dtype=np.int64),
        weights=np.empty(n_remembered),
    )
    buffers = _Buffers(np.empty(n, dtype=np.int64), np.empty(n, dtype=np.float32), np.empty(n))
    no_pairs = np.empty((1024 if n_remembered else 0, 4), dtype=np.int64)
    n_iter, ended, pairs = _run(state, rows, cache, rule, memory, buffers, no_pairs, int(limit), rng)
    alpha, F = np.empty(n), np.empty(n)
    alpha[rows.order], F[rows.order] = state.alpha, state.F
    gradient = -y * F
    return CSVCSolution(
        alpha=alpha,
        rho=rho_from_gradient(alpha, gradient, y, upper),
        gradient=gradient,
        objective=dual_objective(alpha, gradient),
        n_iter=n_iter,
        converged=ended == 0,
        n_selected=np.unique(pairs[:n_iter] @ np.array([n, 1])).size if selection == "dpwss" else None,
    )


def warm_up() -> None:
    """Compile the solver."""
    X = np.array([[0.0], [1.0], [2.0], [3.0]])
    y = np.array([-1.0, 1.0, -1.0, 1.0])
    solve_smo(X, y, np.ones(4), kernel="linear")
