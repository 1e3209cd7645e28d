"""Crammer-Singer multi-class SVM without bias: sequential dual ascent to a certified duality gap.

``min_W 1/2 ||W||^2 + C sum_i max_m (1 - [m = y_i] + (w_m - w_{y_i}) . x_i)`` with one weight vector a class.
The dual has one block a row: ``alpha_i`` sums to zero, with ``alpha_i^m <= C [m = y_i]`` and
``W = sum_i alpha_i x_i'``. Each step solves one block exactly (Keerthi et al. 2008, A sequential dual method for
large scale multi-class linear SVMs, section 3).

Between two checks of the gap, a row's classes and rows that cannot change by as much as their margins moved last
time are left out (shrinking); every check looks at all of them again, so the certificate covers the whole problem.

Strong convexity of both problems in W gives ``||W - W*||^2 <= gap``, which is what makes an inexact solution
usable where the distance to the optimum has to be bounded.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import scipy.sparse
from numba import njit

__all__ = [
    "CrammerSingerSolution",
    "crammer_singer_objective",
    "round_off_allowance",
    "shuffle",
    "solve_crammer_singer",
    "stored_rows",
]

_GAP_CHECK_EPOCHS = 10


@dataclasses.dataclass(frozen=True)
class CrammerSingerSolution:
    """A solution and how good it is.

    Attributes
    ----------
    coef : ndarray (c, d)
        One weight vector a class.
    primal, dual : float
        Objective values; the optimum lies between them.
    gap : float
        ``primal - dual``; bounds the squared distance of `coef` to the optimum.
    n_epochs : int
        Passes over the rows.
    converged : bool
        Whether `gap` reached its target.
    """

    coef: np.ndarray
    primal: float
    dual: float
    gap: float
    n_epochs: int
    converged: bool


@njit(cache=True)
def _solve_block(scores, block, squared_norm, C, work, order_buffer, count):
    """Overwrite ``work[:count]`` with the best dual block of one row, given the scores ``w_m . x`` of its classes.

    The row's own class comes first in `scores` and `block`, then the rivals that may matter.
    """
    top = 0
    for m in range(count):
        # Gradient of the dual with the row's own contribution taken out, but for the margin of the rivals.
        work[m] = scores[m] - squared_norm * block[m]
        if work[m] + (0.0 if m == 0 else 1.0) > work[top] + (0.0 if top == 0 else 1.0):
            top = m
    # Only differences count. Beside a row of tiny norm the margin would swallow all their digits, so the largest
    # entry is the origin.
    origin, origin_margin = work[top], 0.0 if top == 0 else 1.0
    for m in range(count):
        work[m] = (work[m] - origin) + ((0.0 if m == 0 else 1.0) - origin_margin)
        order_buffer[m] = work[m]
    order_buffer[0] += squared_norm * C
    # Insertion sort, descending: few classes, nearly sorted from one epoch to the next.
    for m in range(1, count):
        value = order_buffer[m]
        k = m - 1
        while k >= 0 and order_buffer[k] < value:
            order_buffer[k + 1] = order_buffer[k]
            k -= 1
        order_buffer[k + 1] = value
    total = order_buffer[0] - squared_norm * C
    used = 1
    while used < count and total < used * order_buffer[used]:
        total += order_buffer[used]
        used += 1
    level = total / used
    saturated = (level - work[0]) / squared_norm >= C
    rivals = 0.0
    for m in range(1, count):
        work[m] = min(0.0, (level - work[m]) / squared_norm)
        rivals -= work[m]
    # Round-off (large for rows of tiny norm) must not leave the feasible set: the dual value would no longer be a
    # lower bound.
    if rivals > C or (saturated and rivals > 0.0):
        scale = C / rivals
        rivals = 0.0
        for m in range(1, count):
            work[m] *= scale
            rivals -= work[m]
        rivals = min(rivals, C)
    work[0] = rivals


@njit(cache=True)
def _choose_active(margins, previous, alpha, y, squared_norms, C, active, counts):
    """List, for every row, its own class and the rivals that may change before the next check; none: skip the row."""
    n_rows, n_classes = margins.shape
    for i in range(n_rows):
        counts[i] = 0
        if squared_norms[i] == 0.0:
            continue
        moved = 0.0
        lowest = np.inf
        for m in range(n_classes):
            moved = max(moved, abs(margins[i, m] - previous[i, m]))
            if m != y[i] and alpha[i, m] < 0.0:
                lowest = min(lowest, margins[i, m])
        # A rival enters when it overtakes those that are in, or, where none is, when its margin is violated.
        entry = (lowest if lowest < np.inf else 0.0) - moved
        count = 1
        active[i, 0] = y[i]
        for m in range(n_classes):
            if m != y[i] and (alpha[i, m] < 0.0 or margins[i, m] >= entry):
                active[i, count] = m
                count += 1
        settled = count == 1
        if count == 2:
            # One rival that holds all of the row's weight and stays ahead.
            rival = active[i, 1]
            settled = alpha[i, rival] <= -C and margins[i, rival] >= moved
        counts[i] = 0 if settled else count


@njit(cache=True)
def _next_random(state):
    """One step of a 64-bit linear congruential generator; the row order need not be better than that."""
    return state * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)


@njit(cache=True)
def shuffle(order, state):
    """Put `order` into the next pseudo-random order, in place; return the next state (uint64)."""
    for k in range(order.shape[0] - 1, 0, -1):
        state = _next_random(state)
        j = np.int64((state >> np.uint64(33)) % np.uint64(k + 1))
        order[k], order[j] = order[j], order[k]
    return state


@njit(cache=True)
def _set_rows_without_features(y, squared_norms, C, alpha):
    """Give rows of zeros, which lose 1 whatever W is, the same value in the dual."""
    n_classes = alpha.shape[1]
    for i in range(y.shape[0]):
        if squared_norms[i] == 0.0:
            for m in range(n_classes):
                alpha[i, m] = C if m == y[i] else -C / (n_classes - 1)


@njit(cache=True, fastmath={"reassoc", "contract"})
def _epochs_dense(X, squared_norms, C, alpha, coef, active, counts, order, state, n_epochs):
    n_classes, n_features = coef.shape
    scores, block = np.empty(n_classes), np.empty(n_classes)
    work, order_buffer = np.empty(n_classes), np.empty(n_classes)
    for _ in range(n_epochs):
        state = shuffle(order, state)
        for i in order:
            count = counts[i]
            for a in range(count):
                m = active[i, a]
                block[a] = alpha[i, m]
                score = 0.0
                for k in range(n_features):
                    score += coef[m, k] * X[i, k]
                scores[a] = score
            _solve_block(scores, block, squared_norms[i], C, work, order_buffer, count)
            for a in range(count):
                step = work[a] - block[a]
                if step != 0.0:
                    m = active[i, a]
                    for k in range(n_features):
                        coef[m, k] += step * X[i, k]
                    alpha[i, m] = work[a]
    return state


@njit(cache=True, fastmath={"reassoc", "contract"})
def _epochs_sparse(data, indices, indptr, squared_norms, C, alpha, coef, active, counts, order, state, n_epochs):
    n_classes = coef.shape[0]
    scores, block = np.empty(n_classes), np.empty(n_classes)
    work, order_buffer = np.empty(n_classes), np.empty(n_classes)
    for _ in range(n_epochs):
        state = shuffle(order, state)
        for i in order:
            count = counts[i]
            for a in range(count):
                m = active[i, a]
                block[a] = alpha[i, m]
                score = 0.0
                for k in range(indptr[i], indptr[i + 1]):
                    score += coef[m, indices[k]] * data[k]
                scores[a] = score
            _solve_block(scores, block, squared_norms[i], C, work, order_buffer, count)
            for a in range(count):
                step = work[a] - block[a]
                if step != 0.0:
                    m = active[i, a]
                    for k in range(indptr[i], indptr[i + 1]):
                        coef[m, indices[k]] += step * data[k]
                    alpha[i, m] = work[a]
    return state


def _margins(X, y: np.ndarray, coef: np.ndarray) -> np.ndarray:
    """How far each rival is ahead, with its margin of 1: (n, c); 0 in the row's own class."""
    scores = np.asarray(X @ coef.T)
    rows = np.arange(scores.shape[0])
    margins = scores - scores[rows, y][:, None] + 1.0
    margins[rows, y] = 0.0
    return margins


def crammer_singer_objective(X, y: np.ndarray, coef: np.ndarray, C: float) -> float:
    """Primal objective ``1/2 ||W||^2 + C sum_i loss_i``.

    Parameters
    ----------
    X : ndarray or CSR matrix (n, d)
        Rows.
    y : ndarray of int (n,)
        Class codes.
    coef : ndarray (c, d)
        Weight vectors.
    C : float
        Weight of one row's loss.

    Returns
    -------
    float
    """
    return 0.5 * float(np.vdot(coef, coef)) + C * float(_margins(X, y, coef).max(axis=1).sum())


def round_off_allowance(n_rows: int, n_features: int, n_classes: int, C: float, data_norm: float) -> float:
    """Bound the error with which float64 computes a duality gap, from public numbers alone.

    Parameters
    ----------
    n_rows, n_features, n_classes : int
        Size of the problem.
    C : float
        Weight of one row's loss.
    data_norm : float
        Bound R on a row's L2 norm.

    Returns
    -------
    float
        Each of the n terms of the gap is at most ``C (1 + 2 R |W|)`` in size, with ``|W| <= sqrt(2 n C)`` since
        the objective never exceeds its value at zero, and is computed with a relative error of a few times
        ``(d + c) 2^-52``.
    """
    largest_term = C * (1.0 + 2.0 * data_norm * np.sqrt(2.0 * n_rows * C))
    return float(4.0 * (n_features + n_classes + 4) * np.finfo(np.float64).eps * n_rows * largest_term)


def stored_rows(X) -> tuple[Any, tuple[np.ndarray, ...], np.ndarray]:
    """Lay rows out for the kernels.

    Parameters
    ----------
    X : ndarray or sparse matrix (n, d)
        Rows.

    Returns
    -------
    X : ndarray or CSR matrix (n, d) of float64
    storage : tuple of ndarray
        What a kernel reads: the rows, or ``data, indices, indptr``.
    squared_norms : ndarray (n,)
        Of the rows.
    """
    if scipy.sparse.issparse(X):
        X = scipy.sparse.csr_array(X, dtype=np.float64)
        squared_norms = np.asarray(X.multiply(X).sum(axis=1), dtype=np.float64).ravel()
        return X, (X.data, X.indices.astype(np.int64), X.indptr.astype(np.int64)), squared_norms
    X = np.ascontiguousarray(X, dtype=np.float64)
    return X, (X,), np.einsum("ij,ij->i", X, X)


def solve_crammer_singer(X, y: np.ndarray, n_classes: int, C: float, gap: float, max_epochs: int | None = None):
    """Solve the Crammer-Singer problem until the duality gap is small enough.

    Parameters
    ----------
    X : ndarray or CSR matrix (n, d) of float
        Rows; finite.
    y : ndarray of int (n,)
        Class codes ``0..n_classes-1``; classes may be missing.
    n_classes : int
        Number of classes c, at least 2.
    C : float
        Weight of one row's loss, positive.
    gap : float
        Stop once primal minus dual is at most this. Below `round_off_allowance` it cannot be certified.
    max_epochs : int or None, default=None
        Give up after so many passes; None: never.

    Returns
    -------
    CrammerSingerSolution
        Deterministic: rows are visited in a fixed pseudo-random order. Its gap is exact up to
        `round_off_allowance`.
    """
    X, storage, squared_norms = stored_rows(X)
    epochs: Any = _epochs_sparse if len(storage) == 3 else _epochs_dense
    y = np.ascontiguousarray(y, dtype=np.int64)
    alpha = np.zeros((X.shape[0], n_classes))
    coef = np.zeros((n_classes, X.shape[1]))
    _set_rows_without_features(y, squared_norms, C, alpha)
    active = np.empty((y.size, n_classes), dtype=np.int64)
    counts = np.empty(y.size, dtype=np.int64)
    previous = np.full((y.size, n_classes), np.inf)
    state = np.uint64(1)
    n_epochs = 0
    while True:
        # With W = sum_i alpha_i x_i' the gap is a sum over rows of terms that cannot be negative: the row's loss
        # less what its dual variables make of the margins.
        margins = _margins(X, y, coef)
        largest = margins.max(axis=1)
        reached = float((C * largest + (alpha * margins).sum(axis=1)).sum())
        if reached <= gap or (max_epochs is not None and n_epochs >= max_epochs):
            break
        steps = _GAP_CHECK_EPOCHS if max_epochs is None else min(_GAP_CHECK_EPOCHS, max_epochs - n_epochs)
        _choose_active(margins, previous, alpha, y, squared_norms, C, active, counts)
        previous = margins
        common = (squared_norms, C, alpha, coef, active, counts, np.flatnonzero(counts), np.uint64(state), steps)
        state = epochs(*storage, *common)
        n_epochs += steps
        # W is rebuilt from the dual variables, so that round-off does not build up in it.
        coef = np.ascontiguousarray(np.asarray((X.T @ alpha).T))
    primal = 0.5 * float(np.vdot(coef, coef)) + C * float(largest.sum())
    return CrammerSingerSolution(coef, primal, primal - reached, reached, n_epochs, reached <= gap)


def warm_up() -> None:
    """Compile the kernels for dense and sparse rows."""
    X = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    y = np.array([0, 1, 1])
    for rows in (X, scipy.sparse.csr_array(X)):
        solve_crammer_singer(rows, y, 2, 1.0, 1e-3)
