"""Crammer-Singer multi-class SVM without bias: sequential dual ascent to a certified duality gap.

``min_W 1/2 ||W||^2 + C sum_i max_m (1 - [m = y_i] + (w_m - w_{y_i}) . x_i)`` with one weight vector a class.
The dual has one block a row: ``alpha_i`` sums to zero, with ``alpha_i^m <= C [m = y_i]`` and
``W = sum_i alpha_i x_i'``. Each step solves one block exactly (Keerthi et al. 2008, A sequential dual method for
large scale multi-class linear SVMs, section 3).

Strong convexity of both problems in W gives ``||W - W*||^2 <= gap``, which is what makes an inexact solution
usable where the distance to the optimum has to be bounded.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import scipy.sparse
from numba import njit

__all__ = ["CrammerSingerSolution", "crammer_singer_objective", "round_off_allowance", "solve_crammer_singer"]

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
def _solve_block(scores, alpha, label, squared_norm, C, work, order_buffer):
    """Overwrite `work` with the best dual block of one row, given its class scores ``w_m . x``."""
    n_classes = alpha.shape[0]
    for m in range(n_classes):
        margin = 0.0 if m == label else 1.0
        # Gradient of the dual with the row's own contribution taken out.
        work[m] = scores[m] + margin - squared_norm * alpha[m]
        order_buffer[m] = work[m] + (squared_norm * C if m == label else 0.0)
    # Insertion sort, descending: few classes, nearly sorted from one epoch to the next.
    for m in range(1, n_classes):
        value = order_buffer[m]
        k = m - 1
        while k >= 0 and order_buffer[k] < value:
            order_buffer[k + 1] = order_buffer[k]
            k -= 1
        order_buffer[k + 1] = value
    total = order_buffer[0] - squared_norm * C
    count = 1
    while count < n_classes and total < count * order_buffer[count]:
        total += order_buffer[count]
        count += 1
    level = total / count
    saturated = (level - work[label]) / squared_norm >= C
    rivals = 0.0
    for m in range(n_classes):
        if m != label:
            work[m] = min(0.0, (level - work[m]) / squared_norm)
            rivals -= work[m]
    # Round-off (large for rows of tiny norm) must not leave the feasible set: the dual value would no longer be a
    # lower bound.
    if rivals > C or (saturated and rivals > 0.0):
        scale = C / rivals
        rivals = 0.0
        for m in range(n_classes):
            if m != label:
                work[m] *= scale
                rivals -= work[m]
        rivals = min(rivals, C)
    work[label] = rivals


@njit(cache=True)
def _next_random(state):
    """One step of a 64-bit linear congruential generator; the row order need not be better than that."""
    return state * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)


@njit(cache=True)
def _shuffle(order, state):
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
def _epochs_dense(X, y, squared_norms, C, alpha, coef, order, state, n_epochs):
    n_classes, n_features = coef.shape
    scores = np.empty(n_classes)
    work = np.empty(n_classes)
    order_buffer = np.empty(n_classes)
    for _ in range(n_epochs):
        state = _shuffle(order, state)
        for i in order:
            if squared_norms[i] == 0.0:
                continue
            for m in range(n_classes):
                score = 0.0
                for k in range(n_features):
                    score += coef[m, k] * X[i, k]
                scores[m] = score
            _solve_block(scores, alpha[i], y[i], squared_norms[i], C, work, order_buffer)
            for m in range(n_classes):
                step = work[m] - alpha[i, m]
                if step != 0.0:
                    for k in range(n_features):
                        coef[m, k] += step * X[i, k]
                    alpha[i, m] = work[m]
    return state


@njit(cache=True, fastmath={"reassoc", "contract"})
def _epochs_sparse(data, indices, indptr, y, squared_norms, C, alpha, coef, order, state, n_epochs):
    n_classes = coef.shape[0]
    scores = np.empty(n_classes)
    work = np.empty(n_classes)
    order_buffer = np.empty(n_classes)
    for _ in range(n_epochs):
        state = _shuffle(order, state)
        for i in order:
            if squared_norms[i] == 0.0:
                continue
            for m in range(n_classes):
                score = 0.0
                for k in range(indptr[i], indptr[i + 1]):
                    score += coef[m, indices[k]] * data[k]
                scores[m] = score
            _solve_block(scores, alpha[i], y[i], squared_norms[i], C, work, order_buffer)
            for m in range(n_classes):
                step = work[m] - alpha[i, m]
                if step != 0.0:
                    for k in range(indptr[i], indptr[i + 1]):
                        coef[m, indices[k]] += step * data[k]
                    alpha[i, m] = work[m]
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
    sparse = scipy.sparse.issparse(X)
    if sparse:
        X = scipy.sparse.csr_array(X, dtype=np.float64)
        squared_norms = np.asarray(X.multiply(X).sum(axis=1), dtype=np.float64).ravel()
        storage = (X.data, X.indices.astype(np.int64), X.indptr.astype(np.int64))
    else:
        X = np.ascontiguousarray(X, dtype=np.float64)
        squared_norms = np.einsum("ij,ij->i", X, X)
    y = np.ascontiguousarray(y, dtype=np.int64)
    alpha = np.zeros((X.shape[0], n_classes))
    coef = np.zeros((n_classes, X.shape[1]))
    _set_rows_without_features(y, squared_norms, C, alpha)
    order = np.arange(X.shape[0])
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
        if sparse:
            state = _epochs_sparse(*storage, y, squared_norms, C, alpha, coef, order, np.uint64(state), steps)
        else:
            state = _epochs_dense(X, y, squared_norms, C, alpha, coef, order, np.uint64(state), steps)
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
