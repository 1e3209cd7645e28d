"""Crammer-Singer SVM without bias: dual ascent to a certified duality gap.

``min_W 1/2 ||W||^2 + C sum_i max_m (1 - [m = y_i] + (w_m - w_{y_i}) . x_i)`` with one weight vector a class.
The dual has one block a row: ``alpha_i`` sums to zero, with ``alpha_i^m <= C [m = y_i]`` and
``W = sum_i alpha_i x_i'``. Two kinds of steps take turns:

- A pass solves the block of one row after the other exactly (Keerthi et al. 2008, A sequential dual method for
  large scale multi-class linear SVMs, section 3). Passes soon find out which dual variables are at their bounds, but
  are slow to settle the others.
- A face step moves all variables that are inside their bounds together, by Newton's method: few rows have any, so the
  system is small. Where the step meets a bound, that variable stays there and the step goes on along the rest.

A row whose block did not change is visited less and less often. Between two checks of the gap, a row's classes and
rows that cannot change by as much as their margins moved last time are left out (shrinking); every check looks at all
of them again, so the certificate covers the whole problem.

The solve ends when round-off and all, `privsvm.solvers.linear.certificate` bounds the distance to the optimum, which is
what makes an inexact solution usable for privacy. Where float64 cannot get there, `privsvm.solvers.linear.exact_ascent`
goes on in whole numbers, and always ends.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from privsvm.numerics.compiled.jit import jit, jit_step
from privsvm.numerics.compiled.vector_code import WIDTH, add_row, score_row
from privsvm.numerics.rows.sparse_rows import (
    CsrArrays,
    score_rows,
    square_rows,
    sum_rows,
    zero_weights,
)
from privsvm.numerics.rows.well_formed import canonical_rows
from privsvm.solvers.linear.certificate import (
    BLOCK,
    UNIT,
    Progress,
    certified,
    dot_error,
    row_lengths,
    sum_error,
    sums_of_rows,
)
from privsvm.solvers.linear.crammer_singer_face import Face
from privsvm.solvers.linear.exact_ascent import ascend_exactly

# Passes between two face steps, for the first rounds and for all others. Face steps begin with round _FIRST_FACE.
_PASSES = (1, 1, 2, 2, 4)
_FIRST_FACE = 2
# Back-off: a row whose block does not change is visited after twice as many passes as before, up to this many.
_LONGEST_PAUSE = 8
# Round-off: W is rebuilt from the dual variables after so many checks, before errors build up.
_REBUILD_CHECKS = 8
# Stop here: further progress cannot be certified in float64.
_SURE_SHARE = 0.25

# C is raised until scores may differ by a quarter of a margin, at most by this power of two.
_LIFTED_EXPONENT, _LARGEST_LIFT = -2, 128

# Share of the work so far that a face step may cost. Work is counted in multiplications, not timed: the result must not
# depend on the machine's load.
_FACE_SHARE = 0.2
_WORK_PER_SCORE, _WORK_PER_ENTRY = 30.0, 5.0
# Cost per number of a product of CSR rows with each other.
_SPARSE_WORK = 10.0
# Share of nonzeros in a sample up to which dense rows are stored as CSR.
_SPARSE_SHARE = 0.1
_SPARSE_FEATURES = 64
_SAMPLE_ROWS = 32


@dataclasses.dataclass(frozen=True)
class CrammerSingerSolution:
    """A solution and its quality: weights (c, d), and primal and dual objective, with the optimum between them.

    `gap` is ``primal - dual``, as computed; after the exact ascent, a bound on it. `n_epochs` counts passes over the
    rows. `converged` says whether `coef` is certainly within the root of the target of the optimum. `alpha` (n, c) has
    the dual variables, which add up to 0 in each row but for round-off; if the exact ascent was needed (`exact`), it
    began with these.
    """

    coef: np.ndarray
    primal: float
    dual: float
    gap: float
    n_epochs: int
    converged: bool
    alpha: np.ndarray
    exact: bool


class _Visits(NamedTuple):
    """Which rows and classes the next passes visit."""

    # By row: the classes that may change, how many, the next pass, and how many passes to wait for it.
    active: np.ndarray
    counts: np.ndarray
    due: np.ndarray
    pause: np.ndarray
    # Work space: the rows of one pass.
    order: np.ndarray


@jit_step(fastmath={"contract"})
def _solve_block(scores, block, squared_norm, C, work, order_buffer, count):
    """Set ``work[:count]`` to the best dual block of a row, given its scores.

    The row's own class comes first in `scores` and `block`, then the rivals that may matter.
    """
    # Gradient of the dual with the row's own contribution taken out, but for the margin of the rivals.
    work[0] = scores[0] - squared_norm * block[0]
    origin = -np.inf
    for m in range(1, count):
        work[m] = scores[m] - squared_norm * block[m]
        # Cancellation: without the margin, next to which tiny differences are lost.
        origin = max(origin, work[m])
    origin_margin = 1.0
    if work[0] >= origin + 1.0:
        origin, origin_margin = work[0], 0.0
    # Cancellation: only differences matter. For a row of tiny norm the margin would absorb all their digits, so the
    # largest entry is the origin.
    for m in range(count):
        work[m] = (work[m] - origin) + ((0.0 if m == 0 else 1.0) - origin_margin)
    weight = squared_norm * C
    # The level is at least the level of the own class alone, and of the largest entry alone, which is 0.
    lowest = max(work[0], -weight)
    order_buffer[0] = work[0] + weight
    n_above = 1
    # Insertion sort, descending: few entries.
    for m in range(1, count):
        value = work[m]
        if value > lowest:
            k = n_above - 1
            while k >= 0 and order_buffer[k] < value:
                order_buffer[k + 1] = order_buffer[k]
                k -= 1
            order_buffer[k + 1] = value
            n_above += 1
    total = order_buffer[0] - weight
    used = 1
    while used < n_above and total < used * order_buffer[used]:
        total += order_buffer[used]
        used += 1
    level = total / used
    saturated = (level - work[0]) / squared_norm >= C
    rivals = 0.0
    for m in range(1, count):
        work[m] = min(0.0, (level - work[m]) / squared_norm)
        rivals -= work[m]
    # Feasibility: round-off, large for rows of tiny norm, must not leave the feasible set, since the dual value would
    # no longer be a lower bound.
    if rivals > C or (saturated and rivals > 0.0):
        scale = C / rivals
        rivals = 0.0
        for m in range(1, count):
            work[m] *= scale
            rivals -= work[m]
        rivals = min(rivals, C)
    work[0] = rivals


@jit()
def _assess(scores, previous, alpha, y, squared_norms, C, everything, active, counts, due):
    """Turn scores into margins, as `_margins`; list classes that may change. Return the gap and the loss.

    Listed are, for every row, its own class and the rivals that may change before the next check; none: skip the row.
    """
    n_rows, n_classes = scores.shape
    gap, loss = 0.0, 0.0
    for i in range(n_rows):
        label = y[i]
        own_value = scores[i, label]
        largest, weighted, moved, lowest = 0.0, 0.0, 0.0, np.inf
        for rival in range(n_classes - 1):
            m = rival + (rival >= label)
            margin = scores[i, m] - own_value + 1.0
            scores[i, m] = margin
            largest = max(largest, margin)
            weighted += alpha[i, m] * margin
            moved = max(moved, abs(margin - previous[i, m]))
            lowest = min(lowest, margin if alpha[i, m] < 0.0 else np.inf)
        scores[i, label] = 0.0
        loss += largest
        # With W = sum_i alpha_i x_i' the gap is a sum over rows of nonnegative terms: the row's loss minus the product
        # of its dual variables and margins.
        gap += C * largest + weighted
        due[i] = 0
        counts[i] = 0
        if squared_norms[i] == 0.0:
            continue
        # A rival enters when it overtakes those that are in, or, where none is, when its margin is violated.
        entry = -np.inf if everything else (lowest if lowest < np.inf else 0.0) - moved
        count = 1
        active[i, 0] = label
        for rival in range(n_classes - 1):
            # Branch-free: the branch would be mispredicted.
            m = rival + (rival >= label)
            active[i, count] = m
            count += (alpha[i, m] < 0.0) | (scores[i, m] >= entry)
        settled = count == 1
        if count == 2:
            # A single rival that holds all of the row's weight and stays ahead.
            rival = active[i, 1]
            settled = alpha[i, rival] <= -C and scores[i, rival] >= moved
        if not settled:
            counts[i] = count
    return gap, loss


@jit()
def _bound_shares(scores, alpha, y, norms, C, error, round_off):
    """Bound the rows' shares of the gap, and the pull of round-off: the sum of the dual variables' and rows' norms.

    A share is ``sum_m beta^m (max G - G^m)``, with ``beta^m = -alpha^m`` for the rivals and the rest of C for the row's
    own class; no term is negative, and each is bounded from above by itself: where one class holds all of C and is
    clearly ahead, round-off makes no difference. The own class of a row whose rivals hold all of C but for round-off
    has nothing: the rivals are thought to be scaled by no more than `round_off`, a relative error. Scores are off by no
    more than `error` times the row's norm in `norms`.
    """
    n_rows, n_classes = scores.shape
    shares, pull = 0.0, 0.0
    for i in range(n_rows):
        label = y[i]
        own_score, own_value = scores[i, label], alpha[i, label]
        best, best_score, next_score, size = -1, -np.inf, -np.inf, 1.0 + abs(own_score)
        for m in range(n_classes):
            score = scores[i, m]
            size = max(size, abs(score))
            if m != label:
                if score > best_score:
                    best, next_score, best_score = m, best_score, score
                elif score > next_score:
                    next_score = score
        doubt = 2.0 * error * norms[i]
        beside_own = doubt + 16.0 * UNIT * size
        for m in range(n_classes):
            if m != label and alpha[i, m] < 0.0:
                ahead = max(own_score - scores[i, m] - 1.0 + beside_own, 0.0)
                if n_classes > 2:
                    # Scores may be far below 1, and their difference is as exact as they are.
                    rival = (best_score if m != best else next_score) - scores[i, m]
                    ahead = max(ahead, rival + doubt + 4.0 * UNIT * abs(rival))
                shares -= alpha[i, m] * ahead
        if own_value < C * (1.0 - 2.0 * round_off):
            shares += (C - own_value + round_off * C) * max(best_score - own_score + 1.0 + beside_own, 0.0)
        pull += own_value * norms[i]
    return (1.0 + 8.0 * round_off) * shares, math.sqrt(2.0) * pull


@jit_step()
def _next_random(state):
    """One step of a 64-bit linear congruential generator, which is good enough for an order of rows."""
    return state * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)


@jit_step()
def _shuffle(order, state):
    """Put `order` into the next pseudo-random order, in place; return the next state (uint64)."""
    for k in range(order.shape[0] - 1, 0, -1):
        state = _next_random(state)
        j = np.int64((state >> np.uint64(33)) % np.uint64(k + 1))
        order[k], order[j] = order[j], order[k]
    return state


@jit_step()
def _due_rows(counts, due, epoch, order):
    """List the rows to visit in this pass; return how many there are."""
    n_due = 0
    for i in range(counts.shape[0]):
        if counts[i] > 0 and due[i] <= epoch:
            order[n_due] = i
            n_due += 1
    return n_due


@jit_step()
def _plan_visit(changed, due, pause, i, epoch):
    """Visit a row in the next pass if its block changed, else wait for twice as many passes as last time."""
    pause[i] = 1 if changed else min(2 * pause[i], _LONGEST_PAUSE)
    due[i] = epoch + pause[i]


@jit(fastmath={"reassoc", "contract"})
def _epochs_dense(X, squared_norms, C, alpha, weights, visits, state, n_epochs):
    """Make passes over dense rows; return the random state and the work done."""
    active, counts, due, pause, order = visits
    n_classes, n_features = weights.shape
    scores, block = np.empty(n_classes), np.empty(n_classes)
    work, order_buffer = np.empty(n_classes), np.empty(n_classes)
    spent = 0.0
    for epoch in range(n_epochs):
        n_due = _due_rows(counts, due, epoch, order)
        state = _shuffle(order[:n_due], state)
        for position in range(n_due):
            i = order[position]
            count = counts[i]
            spent += count * (_WORK_PER_SCORE + n_features)
            for a in range(count):
                m = active[i, a]
                block[a] = alpha[i, m]
                score = 0.0
                for k in range(n_features):
                    score += weights[m, k] * X[i, k]
                scores[a] = score
            _solve_block(scores, block, squared_norms[i], C, work, order_buffer, count)
            changed = False
            for a in range(count):
                step = work[a] - block[a]
                if step != 0.0:
                    changed = True
                    m = active[i, a]
                    for k in range(n_features):
                        weights[m, k] += step * X[i, k]
                    alpha[i, m] = work[a]
            _plan_visit(changed, due, pause, i, epoch)
    return state, spent


@jit()
def _epochs_sparse(rows, squared_norms, C, alpha, weights, visits, state, n_epochs):
    """Make passes over CSR rows, as `_epochs_dense` does; here the classes of one feature lie together."""
    data, indices, indptr = rows
    active, counts, due, pause, order = visits
    n_classes, padded = alpha.shape[1], weights.shape[1]
    numbers, lanes = weights.reshape(-1), np.empty(padded)
    scores, block = np.empty(n_classes), np.empty(n_classes)
    work, order_buffer = np.empty(n_classes), np.empty(n_classes)
    needed = np.empty(padded // WIDTH, dtype=np.bool_)
    spent = 0.0
    for epoch in range(n_epochs):
        n_due = _due_rows(counts, due, epoch, order)
        state = _shuffle(order[:n_due], state)
        for position in range(n_due):
            i = order[position]
            count = counts[i]
            first, end = indptr[i], indptr[i + 1]
            spent += count * _WORK_PER_SCORE
            needed[:] = False
            for a in range(count):
                needed[active[i, a] // WIDTH] = True
            for group in range(needed.shape[0]):
                if needed[group]:
                    score_row(data, indices, first, end, numbers, padded, group * WIDTH, lanes)
                    spent += (end - first) * _WORK_PER_ENTRY
            for a in range(count):
                m = active[i, a]
                scores[a], block[a] = lanes[m], alpha[i, m]
            _solve_block(scores, block, squared_norms[i], C, work, order_buffer, count)
            lanes[:] = 0.0
            needed[:] = False
            changed = False
            for a in range(count):
                if work[a] != block[a]:
                    m = active[i, a]
                    lanes[m] = work[a] - block[a]
                    alpha[i, m] = work[a]
                    needed[m // WIDTH] = True
                    changed = True
            for group in range(needed.shape[0]):
                if needed[group]:
                    add_row(data, indices, first, end, numbers, padded, group * WIDTH, lanes)
            _plan_visit(changed, due, pause, i, epoch)
    return state, spent


@jit(fastmath={"reassoc", "contract"})
def _score_dense(X, weights, scores):
    """Set the scores (n, c) of dense rows; BLAS is slow where there are few classes."""
    for i in range(X.shape[0]):
        for m in range(weights.shape[0]):
            score = 0.0
            for k in range(X.shape[1]):
                score += weights[m, k] * X[i, k]
            scores[i, m] = score


def _margins(X, y: np.ndarray, coef: np.ndarray) -> np.ndarray:
    """How far each rival is ahead, with its margin of 1: (n, c); 0 in the row's own class."""
    scores = np.asarray(X @ coef.T)
    rows = np.arange(scores.shape[0])
    margins = scores - scores[rows, y][:, None] + 1.0
    margins[rows, y] = 0.0
    return margins


def round_off_allowance(n_rows: int, n_features: int, n_classes: int, C: float, data_norm: float) -> float:
    """Bound float64's error of a duality gap, from public numbers alone.

    With R = `data_norm`, a bound on a row's L2 norm, each of the n terms of the gap is at most ``C (1 + 2 R |W|)`` in
    size. ``|W| <= sqrt(2 n C)``, since the objective never exceeds its value at zero. A term is computed with a
    relative error of a few times ``(d + c) 2^-52``.
    """
    largest_term = C * (1.0 + 2.0 * data_norm * np.sqrt(2.0 * n_rows * C))
    return float(4.0 * (n_features + n_classes + 4) * np.finfo(np.float64).eps * n_rows * largest_term)


def _has_few_numbers(X: np.ndarray) -> bool:
    """Whether to store dense rows as CSR, because that is faster."""
    if X.shape[1] < _SPARSE_FEATURES:
        return False
    step = max(1, X.shape[0] // _SAMPLE_ROWS)
    sample = X[::step]
    return bool(np.count_nonzero(sample) <= _SPARSE_SHARE * sample.size)


class _DenseRows:
    """Dense rows and their weights; here the features of one class lie together."""

    epochs: Any = staticmethod(_epochs_dense)

    def __init__(self, X, n_classes: int) -> None:
        self.matrix = self.storage = np.ascontiguousarray(X, dtype=np.float64)
        self.squared_norms = np.einsum("ij,ij->i", self.matrix, self.matrix)
        self.row_work = float(self.matrix.shape[1])
        self.weights = np.zeros((n_classes, self.matrix.shape[1]))
        self.by_feature = self.weights.T

    def rebuild_weights(self, alpha: np.ndarray) -> None:
        """Compute the weights from the dual variables."""
        self.weights[:] = sums_of_rows(self.matrix, alpha).T

    def scores(self) -> np.ndarray:
        """Scores (n, c) of all rows."""
        scores = np.empty((self.matrix.shape[0], self.weights.shape[0]))
        _score_dense(self.matrix, self.weights, scores)
        return scores


class _SparseRows:
    """CSR rows and their weights; here the classes of one feature lie together."""

    epochs: Any = staticmethod(_epochs_sparse)

    def __init__(self, X, n_classes: int) -> None:
        self.n_classes, self.shape = n_classes, X.shape
        X = canonical_rows(X) if scipy.sparse.issparse(X) else scipy.sparse.csr_array(X)
        self.storage = CsrArrays(X.data, X.indices.astype(np.int32, copy=False), X.indptr.astype(np.int64))
        self.squared_norms = square_rows(self.storage.data, self.storage.indptr)
        self.row_work = _SPARSE_WORK * self.storage.data.size / max(X.shape[0], 1)
        self.weights = zero_weights(X.shape[1], n_classes)
        self.by_feature = self.weights[:, :n_classes]

    @functools.cached_property
    def matrix(self) -> scipy.sparse.csr_array:
        """The rows as a matrix."""
        return scipy.sparse.csr_array(self.storage, shape=self.shape)

    def rebuild_weights(self, alpha: np.ndarray) -> None:
        """Compute the weights from the dual variables."""
        data, indices, indptr = self.storage
        sum_rows(data, indices, indptr[: BLOCK + 1], alpha[:BLOCK], self.weights)
        for start in range(BLOCK, alpha.shape[0], BLOCK):
            block_weights = np.empty_like(self.weights)
            sum_rows(data, indices, indptr[start : start + BLOCK + 1], alpha[start : start + BLOCK], block_weights)
            self.weights += block_weights

    def scores(self) -> np.ndarray:
        """Scores (n, c) of all rows."""
        scores = np.empty((self.shape[0], self.n_classes))
        data, indices, indptr = self.storage
        score_rows(data, indices, indptr, self.weights, scores)
        return scores


def _is_certified(rows, alpha: np.ndarray, y: np.ndarray, C: float, gap: float, reserve: float) -> bool:
    """Tell whether rebuilt weights are certainly within ``sqrt(gap)``; see `privsvm.solvers.linear.certificate`."""
    n_rows, n_classes = alpha.shape
    length = math.sqrt(float(np.vdot(rows.by_feature, rows.by_feature)))
    # The dual variable of a row's class is the rounded sum of the others.
    round_off = (n_classes + 8) * 2.0 * UNIT
    norms = row_lengths(rows.squared_norms)
    error = dot_error(rows.by_feature.shape[0], length)
    shares, pull = _bound_shares(rows.scores(), alpha, y, norms, C, error, round_off)
    return certified(shares, n_rows * n_classes, sum_error(n_rows, pull, 8.0 * round_off), reserve * length, gap)


def _lift(squared_norms: np.ndarray, C: float, gap: float) -> int:
    """Find a power of two for C that changes only the optimum's length.

    Feasible dual variables make weights no longer than ``sqrt(2) C sum ||x_i||``, and scores differ by at most
    ``sqrt(2)`` times their length times a row's. Where that is below 1, the rivals of every row share all of its C, and
    so the optimum is C times a vector without C. Beside margins of 1, the digits of its scores would be lost.
    """
    lengths = row_lengths(squared_norms)
    reach = 2.0 * C * float(lengths.sum()) * float(lengths.max(initial=0.0))
    if reach == 0.0:
        return 0
    # Overflow of C or the target is avoided.
    room = (1000 - max(math.frexp(gap)[1], 2 * math.frexp(C)[1])) // 2
    return max(0, min(_LIFTED_EXPONENT - math.frexp(reach)[1], room, _LARGEST_LIFT))


def solve_crammer_singer(
    X, y: np.ndarray, n_classes: int, C: float, gap: float, max_epochs: int | None = None, reserve: float = 0.0
) -> CrammerSingerSolution:
    """Solve the Crammer-Singer problem to a certified distance, the root of `gap`.

    Rows (n, d) are finite. Class codes count from 0, and classes may be missing; there are at least 2. `reserve` is the
    relative error that the caller's arithmetic may add to the weights: the distance leaves room for it. The solver
    gives up after `max_epochs` passes; without this limit, there is a certified solution for every data set. It is
    deterministic: rows are visited in a fixed pseudo-random order.
    """
    if not scipy.sparse.issparse(X):
        X = np.ascontiguousarray(X, dtype=np.float64)
    rows: Any = (_SparseRows if scipy.sparse.issparse(X) or _has_few_numbers(X) else _DenseRows)(X, n_classes)
    y = np.ascontiguousarray(y, dtype=np.int64)
    lift = _lift(rows.squared_norms, C, gap)
    alpha = np.zeros((X.shape[0], n_classes))
    if not lift:
        # Rows of zeros, which lose 1 whatever W is, get the same value in the dual.
        empty = np.flatnonzero(rows.squared_norms == 0.0)
        alpha[empty] = -C / (n_classes - 1)
        alpha[empty, y[empty]] = C
        return _solve(X, rows, y, alpha, C, _Stopping(gap, max_epochs, reserve))
    # Initial point: no row recovers the weight of its rivals, so that the certificate is for this C, too.
    alpha[:] = -math.ldexp(C, lift) / (n_classes - 1)
    alpha[np.arange(y.size), y] = math.ldexp(C, lift)
    rows.rebuild_weights(alpha)
    stopping = _Stopping(math.ldexp(gap, 2 * lift), max_epochs, reserve)
    solution = _solve(X, rows, y, alpha, math.ldexp(C, lift), stopping)
    # Scaling by a power of two is exact.
    coef, alpha = np.ldexp(solution.coef, -lift), np.ldexp(solution.alpha, -lift)
    reached, loss = math.ldexp(solution.gap, -2 * lift), float(_margins(X, y, coef).max(axis=1).sum())
    primal = 0.5 * float(np.vdot(coef, coef)) + C * loss
    return dataclasses.replace(solution, coef=coef, alpha=alpha, primal=primal, dual=primal - reached, gap=reached)


@dataclasses.dataclass(frozen=True)
class _Stopping:
    """When the solver stops; see `solve_crammer_singer`."""

    gap: float
    max_epochs: int | None
    reserve: float


def _solve(X, rows: Any, y: np.ndarray, alpha: np.ndarray, C: float, stopping: _Stopping) -> CrammerSingerSolution:
    """Solve the problem from a warm start, whose weights `rows` has; see `solve_crammer_singer`."""
    gap, max_epochs, reserve = stopping.gap, stopping.max_epochs, stopping.reserve
    n_rows, n_classes = alpha.shape
    face = Face(rows, y, C, n_classes)
    counts, due, order = np.empty((3, n_rows), dtype=np.int64)
    active, pause = np.empty((n_rows, n_classes), dtype=np.int64), np.ones(n_rows, dtype=np.int64)
    visits = _Visits(active, counts, due, pause, order)
    previous = np.zeros((n_rows, n_classes))
    scores = rows.scores() if rows.by_feature.any() else previous.copy()
    state = np.uint64(1)
    n_epochs, n_checks, work, progress = 0, 0, 0.0, Progress()
    rebuilt, sure, exact = True, False, False
    while True:
        reached, loss = _assess(scores, previous, alpha, y, rows.squared_norms, C, n_checks < 2, active, counts, due)
        out_of_epochs = max_epochs is not None and n_epochs >= max_epochs
        sure = rebuilt and reached <= gap and _is_certified(rows, alpha, y, C, gap, reserve)
        if rebuilt and (sure or out_of_epochs):
            break
        if max_epochs is None and ((rebuilt and reached <= _SURE_SHARE * gap) or progress.stuck(reached, n_epochs)):
            exact = True
            break
        n_checks += 1
        # If the check failed after a rebuild, the passes go on.
        rebuilt = not rebuilt and (reached <= gap or out_of_epochs or n_checks % _REBUILD_CHECKS == 0)
        if rebuilt:
            # The certificate is for the weights of the dual variables, not for the sum of all steps.
            rows.rebuild_weights(alpha)
            scores = rows.scores()
            continue
        previous = scores
        n_passes = _PASSES[min(n_checks, len(_PASSES)) - 1]
        n_passes = n_passes if max_epochs is None else min(n_passes, max_epochs - n_epochs)
        problem = (rows.storage, rows.squared_norms, C, alpha, rows.weights)
        state, spent = rows.epochs(*problem, visits, np.uint64(state), n_passes)
        n_epochs += n_passes
        work += spent
        if n_checks > _FIRST_FACE:
            work += face.step(alpha, _FACE_SHARE * work)
        scores = rows.scores()
    coef = np.ascontiguousarray(rows.by_feature.T)
    if exact:
        coef, reached = ascend_exactly(X, y, n_classes, C, gap, alpha), _SURE_SHARE * gap
        loss = float(_margins(X, y, coef).max(axis=1).sum())
    primal = 0.5 * float(np.vdot(coef, coef)) + C * loss
    return CrammerSingerSolution(coef, primal, primal - reached, reached, n_epochs, sure or exact, alpha, exact)


def warm_up() -> None:
    """Compile the solver for dense rows, CSR rows, and dense rows stored as CSR."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 3))
    y = np.arange(30) % 3
    for rows in (X, scipy.sparse.csr_array(X), np.eye(30, _SPARSE_FEATURES)):
        solve_crammer_singer(rows, y, 3, 1.0, 1e-9)
