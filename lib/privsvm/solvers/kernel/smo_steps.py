"""The compiled loop of `privsvm.solvers.kernel.smo`.

The gradient is stored as ``F = -y G``, large for the variable that goes up in the direction of its label and small for
the one that goes down. One pass, by blocks, updates F and searches for its extremes.
"""

from __future__ import annotations

import enum
import math
from typing import NamedTuple

import numpy as np

from privsvm.numerics.compiled.jit import jit, jit_step

SELECTIONS = ("wss2", "dpwss")

_WSS2, _DPWSS = range(2)
_LINEAR, _RBF, _POLY, _SIGMOID = range(4)

# Curvature of a pair of equal rows, LIBSVM's constant.
_TAU = 1e-12

# Variables with common extremes, and rows whose products are summed together.
BLOCK = 256


class End(enum.IntEnum):
    """How a run ended."""

    OPTIMAL = 0
    NO_PAIR = 1
    MAX_ITER = 2
    # Random numbers have run out; the run can be continued.
    NO_NUMBERS = 3


class Choice(enum.IntEnum):
    """Outcome of the choice of a pair, or of its second variable."""

    CHOSEN = 0
    NO_PAIR = 1
    NO_NUMBERS = 2


class Rows(NamedTuple):
    """Rows, dense by feature or CSR."""

    sparse: bool
    columns: np.ndarray
    data: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray
    squares: np.ndarray
    # Row of each variable, and whether variables have left the order of the rows.
    order: np.ndarray
    moved: np.ndarray
    # Work space: one row (dense: its nonzero values, and their features), and its products.
    one_row: np.ndarray
    features: np.ndarray
    products: np.ndarray
    kernel: int
    gamma: float
    degree: int
    coef0: float


class Cache(NamedTuple):
    """Kernel rows in the order of the rows; the least recently used one is evicted."""

    rows: np.ndarray
    # Training row in each slot, and the slot of each training row; -1 for none.
    owner: np.ndarray
    last_use: np.ndarray
    slot: np.ndarray
    clock: np.ndarray


class State(NamedTuple):
    """Variables, the active ones first."""

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


class Rule(NamedTuple):
    """How pairs are chosen, and when to stop."""

    selection: int
    tol: float
    sigma: float
    sharpness: float
    shrinking: bool
    max_iter: int


class Memory(NamedTuple):
    """Pairs that the random rule has chosen, and its work space."""

    # Last pair of each first variable, by position; see `_remember`.
    head: np.ndarray
    # Stamp of each second variable: the current stamp marks those used already.
    used: np.ndarray
    stamp: np.ndarray
    candidates: np.ndarray
    weights: np.ndarray


class Numbers(NamedTuple):
    """Uniform random numbers of each generator, and how many are used."""

    values: np.ndarray
    used: np.ndarray


class Progress(NamedTuple):
    """State of a run between two calls."""

    # Active variables.
    active: int
    iteration: int
    # Steps until the next shrinking.
    counter: int
    # Whether all variables were brought back near the optimum, and whether the extremes of F are current.
    unshrunk: bool
    scanned: bool
    largest: float
    smallest: float


class Buffers(NamedTuple):
    """Kernel rows of a pair in the order of the variables."""

    first: np.ndarray
    second: np.ndarray


class Work(NamedTuple):
    """State that the loop changes in place."""

    state: State
    rows: Rows
    cache: Cache
    memory: Memory
    buffers: Buffers


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
def _sparse_products(i, rows):
    """Set products of CSR row `i` with all rows."""
    x, products = rows.one_row, rows.products
    first, last = rows.indptr[i], rows.indptr[i + 1]
    for k in range(first, last):
        x[rows.indices[k]] = rows.data[k]
    for p in range(products.shape[0]):
        total = 0.0
        for k in range(rows.indptr[p], rows.indptr[p + 1]):
            total += x[rows.indices[k]] * rows.data[k]
        products[p] = total
    for k in range(first, last):
        x[rows.indices[k]] = 0.0


@jit_step()
def _dense_products(i, rows):
    """Set products of dense row `i` with all rows."""
    x, features, products, columns = rows.one_row, rows.features, rows.products, rows.columns
    count = 0
    for k in range(columns.shape[0]):
        if columns[k, i] != 0.0:
            x[count], features[count] = columns[k, i], k
            count += 1
    single = count - count % 4
    for begin in range(0, products.shape[0], BLOCK):
        end = min(begin + BLOCK, products.shape[0])
        for p in range(begin, end):
            products[p] = 0.0
        # Memory traffic: four features at a time, still added in order, read and write each product once.
        for q in range(0, single, 4):
            x_a, x_b, x_c, x_d = x[q], x[q + 1], x[q + 2], x[q + 3]
            a, b, c, d = features[q], features[q + 1], features[q + 2], features[q + 3]
            for p in range(begin, end):
                total = (products[p] + x_a * columns[a, p]) + x_b * columns[b, p]
                products[p] = (total + x_c * columns[c, p]) + x_d * columns[d, p]
        for q in range(single, count):
            value, k = x[q], features[q]
            for p in range(begin, end):
                products[p] += value * columns[k, p]


@jit_step()
def _fill_row(target, i, rows):
    """Write the kernel values of row `i` with all rows.

    Products are summed in the order of the features, so that dense and sparse rows give the same bits.
    """
    if rows.sparse:
        _sparse_products(i, rows)
    else:
        _dense_products(i, rows)
    products, kernel, square, squares = rows.products, rows.kernel, rows.squares[i], rows.squares
    gamma, degree, coef0 = rows.gamma, rows.degree, rows.coef0
    for p in range(products.shape[0]):
        target[p] = _kernel_value(products[p], square + squares[p], kernel, gamma, degree, coef0)


@jit_step()
def _fetch(index, rows, cache):
    """Return the kernel row of a row, in the order of the rows."""
    slot = cache.slot[index]
    if slot < 0:
        slot = 0
        for s in range(cache.last_use.shape[0]):
            if cache.last_use[s] < cache.last_use[slot]:
                slot = s
        if cache.owner[slot] >= 0:
            cache.slot[cache.owner[slot]] = -1
        cache.owner[slot] = index
        cache.slot[index] = slot
        _fill_row(cache.rows[slot], index, rows)
    cache.clock[0] += 1
    cache.last_use[slot] = cache.clock[0]
    return cache.rows[slot]


@jit_step()
def _row_of(i, active, rows, cache, buffer):
    """Return the kernel row of variable `i` in the order of the variables, up to the active ones."""
    row = _fetch(rows.order[i], rows, cache)
    if rows.moved[0]:
        for p in range(active):
            buffer[p] = row[rows.order[p]]
        row = buffer
    return row


@jit_step()
def _fold(values, count):
    """Return the largest of ``values[:count]`` by halving, which is vectorised."""
    if count == BLOCK:
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
def _update_and_scan(row_i, row_j, step_i, step_j, active, state):
    """Move F by the steps of two variables; find the largest F that may rise and the smallest to fall, by block."""
    F, up, low, above, below = state.F, state.up, state.low, state.above, state.below
    largest, smallest = -np.inf, np.inf
    for begin in range(0, active, BLOCK):
        count = min(BLOCK, active - begin)
        for k in range(count):
            value = F[begin + k] - (row_i[begin + k] * step_i + row_j[begin + k] * step_j)
            F[begin + k] = value
            above[k] = value + up[begin + k]
            below[k] = -(value + low[begin + k])
        block_max, block_min = _fold(above, count), -_fold(below, count)
        state.block_max[begin // BLOCK] = block_max
        state.block_min[begin // BLOCK] = block_min
        largest = max(largest, block_max)
        smallest = min(smallest, block_min)
    return largest, smallest


@jit_step()
def _scan(active, state):
    """Find the extremes of F where it does not move."""
    return _update_and_scan(state.F, state.F, 0.0, 0.0, active, state)


@jit_step()
def _last_equal(values, offsets, blocks, target, active):
    """Return the last active variable where ``values + offsets`` is `target`."""
    for b in range((active - 1) // BLOCK, -1, -1):
        if blocks[b] == target:
            for k in range(min((b + 1) * BLOCK, active) - 1, b * BLOCK - 1, -1):
                if values[k] + offsets[k] == target:
                    return k
    return -1


@jit_step()
def _second_order(row, fixed, extreme, offsets, active, state):
    """Return the best partner of `fixed` to second order, with ``extreme - F_t`` positive; -1 for none."""
    F, diagonal, gains, scratch = state.F, state.diagonal, state.above, state.below
    fixed_diagonal = diagonal[fixed]
    best, chosen = 0.0, -1
    for begin in range(0, active, BLOCK):
        count = min(BLOCK, active - begin)
        for k in range(count):
            t = begin + k
            violation = extreme - (F[t] + offsets[t])
            curvature = fixed_diagonal + diagonal[t] - 2.0 * row[t]
            curvature = curvature if curvature > 0.0 else _TAU
            gain = violation * violation / curvature
            gain = gain if violation > 0.0 else 0.0
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
def draw(extreme, gap, rule, active, low, F, memory, numbers, stream):
    """Draw variable t with probability proportional to ``exp(sharpness q_t)``.

    Candidates have ``extreme - F_t`` above the tolerance and a share ``q_t`` of the gap of at least sigma, and are not
    stamped as used. Returns a `Choice`, and the variable or -1.
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
        return Choice.NO_PAIR, -1
    if numbers.used[stream] == numbers.values.shape[1]:
        return Choice.NO_NUMBERS, -1
    total = 0.0
    for c in range(count):
        total += math.exp(rule.sharpness * (weights[c] - best))
        weights[c] = total
    # Inverse transform sampling: the first cumulative weight above the drawn level, by bisection.
    level = numbers.values[stream, numbers.used[stream]] * total
    numbers.used[stream] += 1
    first, last = 0, count - 1
    while first < last:
        middle = (first + last) // 2
        if weights[middle] > level:
            last = middle
        else:
            first = middle + 1
    return Choice.CHOSEN, candidates[first]


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
    """Move two variables of different labels, clipped as by LIBSVM."""
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
    """Move `step` between two variables of one label, clipped as by LIBSVM."""
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
def _keep_bounded(i, was_bounded, state, rows, cache):
    """Update the share of F from bounded variables after `i` has moved."""
    is_bounded = state.alpha[i] >= state.upper[i]
    if is_bounded != was_bounded:
        row = _fetch(rows.order[i], rows, cache)
        weight = state.y[i] * state.upper[i]
        if was_bounded:
            weight = -weight
        for k in range(rows.order.shape[0]):
            state.F_bounded[k] -= weight * row[rows.order[k]]


@jit_step()
def _reconstruct(active, n, state, rows, cache):
    """Compute F of the variables that had been set aside."""
    if active == n:
        return
    F, alpha, y, order = state.F, state.alpha, state.y, rows.order
    n_free = 0
    for i in range(active):
        if 0.0 < alpha[i] < state.upper[i]:
            n_free += 1
    for k in range(active, n):
        F[k] = state.F_bounded[k] + y[k]
    if n_free * n > 2 * active * (n - active):
        for k in range(active, n):
            row = _fetch(order[k], rows, cache)
            for i in range(active):
                if 0.0 < alpha[i] < state.upper[i]:
                    F[k] -= alpha[i] * y[i] * row[order[i]]
    else:
        for i in range(active):
            if 0.0 < alpha[i] < state.upper[i]:
                row = _fetch(order[i], rows, cache)
                weight = alpha[i] * y[i]
                for k in range(active, n):
                    F[k] -= weight * row[order[k]]


@jit_step()
def _may_leave(k, largest, smallest, state):
    """Tell whether a bounded variable's F lies beyond the F of all that can move."""
    if state.up[k] == 0.0:
        return state.low[k] != 0.0 and state.F[k] < smallest
    return state.F[k] > largest


@jit_step()
def _swap(values, i, j):
    values[i], values[j] = values[j], values[i]


@jit_step()
def _swap_variables(i, k, state, rows):
    """Swap the positions of two variables."""
    _swap(state.y, i, k)
    _swap(state.alpha, i, k)
    _swap(state.upper, i, k)
    _swap(state.F, i, k)
    _swap(state.F_bounded, i, k)
    _swap(state.diagonal, i, k)
    _swap(state.up, i, k)
    _swap(state.low, i, k)
    _swap(rows.order, i, k)
    rows.moved[0] = True


@jit_step()
def _shrink(active, largest, smallest, state, rows):
    """Set variables aside that look settled, as LIBSVM does; return how many stay active."""
    i = 0
    while i < active:
        if _may_leave(i, largest, smallest, state):
            active -= 1
            while active > i:
                if not _may_leave(active, largest, smallest, state):
                    _swap_variables(i, active, state, rows)
                    break
                active -= 1
        i += 1
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
def _choose_pair(extremes, rule, active, work, pairs, numbers, stream):
    """Choose two variables by the rule; return a `Choice`, and both variables."""
    state, rows, cache, memory, buffers = work
    largest, smallest = extremes
    i = _last_equal(state.F, state.up, state.block_max, largest, active)
    if rule.selection == _DPWSS:
        _stamp_used(i, pairs, memory)
        choice, j = draw(largest, largest - smallest, rule, active, state.low, state.F, memory, numbers, stream)
        return choice, i, j
    j = _second_order(_row_of(i, active, rows, cache, buffers.first), i, largest, state.low, active, state)
    return Choice.CHOSEN if i >= 0 and j >= 0 else Choice.NO_PAIR, i, j


@jit_step()
def _remember(iteration, i, j, rows, memory, pairs):
    """Append a pair; return the list of pairs, which may have been reallocated.

    Each entry holds the previous pair with the same first variable, the second variable, and the rows of both.
    Variables are identified by position.
    """
    if iteration > pairs.shape[0]:
        longer = np.empty((2 * pairs.shape[0], 4), dtype=np.int64)
        for k in range(pairs.shape[0]):
            for m in range(4):
                longer[k, m] = pairs[k, m]
        pairs = longer
    pairs[iteration - 1, 0] = memory.head[i]
    pairs[iteration - 1, 1] = j
    pairs[iteration - 1, 2] = rows.order[i]
    pairs[iteration - 1, 3] = rows.order[j]
    memory.head[i] = iteration - 1
    return pairs


@jit_step()
def _take_step(i, j, active, shrinking, work):
    """Move a pair and bring F up to date; return its extremes."""
    state, rows, cache, _, buffers = work
    row_i = _row_of(i, active, rows, cache, buffers.first)
    row_j = _row_of(j, active, rows, cache, buffers.second)
    old_i, old_j = state.alpha[i], state.alpha[j]
    bounded_i, bounded_j = old_i >= state.upper[i], old_j >= state.upper[j]
    _move_pair(i, j, state.diagonal[i] + state.diagonal[j] - 2.0 * row_i[j], state)
    _refresh_sides(i, state)
    _refresh_sides(j, state)
    step_i = state.y[i] * (state.alpha[i] - old_i)
    step_j = state.y[j] * (state.alpha[j] - old_j)
    extremes = _update_and_scan(row_i, row_j, step_i, step_j, active, state)
    if shrinking:
        _keep_bounded(i, bounded_i, state, rows, cache)
        _keep_bounded(j, bounded_j, state, rows, cache)
    return extremes


@jit()
def run(progress, work, rule, pairs, numbers, stream):
    """Iterate; return the run's `Progress`, its `End`, and the pairs so far.

    A run that is out of random numbers can be continued with more of them.
    """
    state, rows, cache, memory, _ = work
    n = state.y.shape[0]
    active, iteration, counter, unshrunk, scanned, largest, smallest = progress
    ended = End.MAX_ITER
    # Steps from one shrinking to the next.
    period = min(n, 1000)
    while iteration < rule.max_iter:
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
                active = _shrink(active, largest, smallest, state, rows)
                scanned = False
        while True:
            choice, i, j = Choice.NO_PAIR, -1, -1
            if not scanned:
                largest, smallest = _scan(active, state)
                scanned = True
            if largest - smallest >= rule.tol:
                extremes = largest, smallest
                choice, i, j = _choose_pair(extremes, rule, active, work, pairs, numbers, stream)
            if choice != Choice.NO_PAIR or active == n:
                break
            # Unshrink: no active pair violates optimality, so look at all variables.
            _reconstruct(active, n, state, rows, cache)
            active, counter, scanned = n, 1, False
        if choice == Choice.NO_NUMBERS:
            # The next call counts this step again.
            return Progress(active, iteration, counter + 1, unshrunk, scanned, largest, smallest), End.NO_NUMBERS, pairs
        if choice == Choice.NO_PAIR:
            # NaN compares false, so that it does not count as optimal.
            ended = End.OPTIMAL if largest - smallest < rule.tol else End.NO_PAIR
            break
        iteration += 1
        if rule.selection == _DPWSS:
            pairs = _remember(iteration, i, j, rows, memory, pairs)
        largest, smallest = _take_step(i, j, active, rule.shrinking, work)
    _reconstruct(active, n, state, rows, cache)
    return Progress(active, iteration, counter, unshrunk, scanned, largest, smallest), ended, pairs


@jit()
def reset(y, upper, diagonal, work):
    """Set all variables to 0, in the rows' order; kernel rows are kept."""
    state, rows, _, memory, _ = work
    rows.moved[0] = False
    for k in range(y.shape[0]):
        rows.order[k] = k
        state.y[k], state.upper[k] = y[k], upper[k]
        state.diagonal[k] = diagonal[k]
        state.alpha[k], state.F[k], state.F_bounded[k] = 0.0, y[k], 0.0
        _refresh_sides(k, state)
    for k in range(memory.head.shape[0]):
        memory.head[k] = -1


@jit()
def count_distinct(n_iter, memory, pairs):
    """Count the distinct pairs of rows among the first `n_iter` ones; overwrites how pairs are linked."""
    head = memory.head
    for k in range(head.shape[0]):
        head[k] = -1
    for k in range(n_iter):
        pairs[k, 0] = head[pairs[k, 2]]
        head[pairs[k, 2]] = k
    distinct = 0
    for k in range(head.shape[0]):
        memory.stamp[0] += 1
        pair = head[k]
        while pair >= 0:
            if memory.used[pairs[pair, 3]] != memory.stamp[0]:
                memory.used[pairs[pair, 3]] = memory.stamp[0]
                distinct += 1
            pair = pairs[pair, 0]
    return distinct


@jit()
def squares_and_diagonal(rows, diagonal):
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
