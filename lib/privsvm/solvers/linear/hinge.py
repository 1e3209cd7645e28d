"""Two-class SVM without bias: dual coordinate ascent to a certified duality gap.

``min_w 1/2 ||w||^2 + C sum_i max(0, 1 - y_i w . x_i)``, with dual variables ``0 <= alpha_i <= C`` and
``w = sum_i alpha_i y_i x_i``. Each step solves one variable exactly (Hsieh et al. 2008, A dual coordinate descent
method for large-scale linear SVM, Algorithm 1).

Between two checks of the gap, rows whose variable is at a bound, and stays there unless its margin moves by more than
it moved last time, are left out (shrinking); every check looks at all of them again, so the certificate covers the
whole problem. The solve ends when round-off and all, `privsvm.solvers.linear.certificate` bounds the distance to the
optimum; where float64 cannot get there, `privsvm.solvers.linear.exact_ascent` goes on in whole numbers, and always
ends.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import scipy.sparse

from privsvm.numerics.compiled.jit import jit, jit_step
from privsvm.numerics.rows.row_grid import grid_rows
from privsvm.numerics.rows.sparse_rows import CsrArrays
from privsvm.solvers.linear.certificate import (
    UNIT,
    Progress,
    certified,
    dot_error,
    row_lengths,
    sum_error,
    sums_of_rows,
)
from privsvm.solvers.linear.crammer_singer import shuffle, stored_rows
from privsvm.solvers.linear.exact_ascent import ascend_exactly

__all__ = ["HingeSolution", "smoothed_hinge_slopes", "solve_hinge"]

# A round of passes over the active rows ends when their share of the gap has fallen by this factor, or after so many.
_ROUND_REDUCTION = 0.1
_ROUND_EPOCHS = 50
# Stop here: further progress cannot be certified in float64.
_SURE_SHARE = 0.25


@dataclasses.dataclass(frozen=True)
class HingeSolution:
    """A solution and how good it is.

    Attributes
    ----------
    coef : ndarray (d,)
        Weight vector.
    primal, dual : float
        Objective values; the optimum lies between them.
    gap : float
        ``primal - dual``, as computed; after the exact ascent, a bound on it.
    n_epochs : int
        Passes over the rows that were left in.
    converged : bool
        Whether `coef` is certainly within the root of the target of the optimum.
    alpha : ndarray (n,)
        Dual variables; those that the exact ascent began with, if it was needed.
    exact : bool
        Whether it was.
    """

    coef: np.ndarray
    primal: float
    dual: float
    gap: float
    n_epochs: int
    converged: bool
    alpha: np.ndarray
    exact: bool


@jit()
def _choose_active(margins, previous, alpha, squared_norms, C, active):
    """List the rows that may change before the next check; returns how many there are."""
    count = 0
    for i in range(margins.shape[0]):
        if squared_norms[i] == 0.0:
            continue
        missing = 1.0 - margins[i]
        moved = abs(margins[i] - previous[i])
        if (alpha[i] <= 0.0 and -missing > moved) or (alpha[i] >= C and missing > moved):
            continue
        active[count] = i
        count += 1
    return count


@jit_step(fastmath={"contract"})
def _step(score, alpha, squared_norm, C):
    """Best dual variable of one row, and the row's share of the gap before the step."""
    missing = 1.0 - score
    share = C * max(0.0, missing) - alpha * missing
    return min(max(alpha + missing / squared_norm, 0.0), C), share


@jit(fastmath={"reassoc", "contract"})
def _epochs_dense(X, y, squared_norms, C, alpha, coef, order, state, n_epochs, target):
    n_features = coef.shape[0]
    for epoch in range(n_epochs):
        state = shuffle(order, state)
        total = 0.0
        for i in order:
            score = 0.0
            for k in range(n_features):
                score += coef[k] * X[i, k]
            best, share = _step(y[i] * score, alpha[i], squared_norms[i], C)
            total += share
            if best != alpha[i]:
                step = (best - alpha[i]) * y[i]
                for k in range(n_features):
                    coef[k] += step * X[i, k]
                alpha[i] = best
        if total <= target:
            return state, epoch + 1
    return state, n_epochs


@jit(fastmath={"reassoc", "contract"})
def _epochs_sparse(rows, y, squared_norms, C, alpha, coef, order, state, n_epochs, target):
    data, indices, indptr = rows
    for epoch in range(n_epochs):
        state = shuffle(order, state)
        total = 0.0
        for i in order:
            score = 0.0
            for k in range(indptr[i], indptr[i + 1]):
                score += coef[indices[k]] * data[k]
            best, share = _step(y[i] * score, alpha[i], squared_norms[i], C)
            total += share
            if best != alpha[i]:
                step = (best - alpha[i]) * y[i]
                for k in range(indptr[i], indptr[i + 1]):
                    coef[indices[k]] += step * data[k]
                alpha[i] = best
        if total <= target:
            return state, epoch + 1
    return state, n_epochs


def smoothed_hinge_slopes(margins: np.ndarray, smoothing: float, out: np.ndarray | None = None) -> np.ndarray:
    """Return slopes of the hinge with a quadratic part of width h, by margin.

    Parameters
    ----------
    margins : ndarray
        ``y w . x``, any shape.
    smoothing : float
        h: the loss is 0 from 1 on, ``(1 - m)^2 / (2 h)`` down to ``1 - h``, and ``1 - m - h / 2`` below.
    out : ndarray or None, default=None
        Where to write them, `margins` itself for example; None allocates an array.

    Returns
    -------
    ndarray
        Between -1 and 0, with slope at most ``1 / h``.
    """
    slopes = np.subtract(1.0, margins, out=out)
    # In place, since for hundreds of models the array exceeds the processor's cache.
    slopes /= smoothing
    np.clip(slopes, 0.0, 1.0, out=slopes)
    return np.negative(slopes, out=slopes)


def _certified(missing, alpha, norms, coef, C: float, gap: float, reserve: float) -> bool:
    """Tell whether weights are certainly within ``sqrt(gap)`` of the optimum.

    See `privsvm.solvers.linear.certificate`.

    `missing` is ``1 - y w . x`` as computed. Of a row's share, ``(C - alpha) max(0, missing) - alpha min(0, missing)``,
    each part is bounded from above by itself: where a dual variable is at its bound, and the row clearly on that side,
    round-off makes no difference.
    """
    length = math.sqrt(float(coef @ coef))
    errors = dot_error(coef.size, length) * norms + 4.0 * UNIT * (1.0 + np.abs(missing))
    shares = (C - alpha) * np.maximum(missing + errors, 0.0) + alpha * np.maximum(errors - missing, 0.0)
    error = sum_error(alpha.size, float(alpha @ norms))
    return certified(float(shares.sum()), alpha.size, error, reserve * length, gap)


def _solve_exactly(X, y: np.ndarray, C: float, gap: float, alpha: np.ndarray) -> np.ndarray:
    """Solve by whole numbers, as half of a two-class Crammer-Singer problem."""
    codes = (y > 0).astype(np.int64)
    blocks = np.outer(0.5 * alpha * y, [-1.0, 1.0])
    weights: np.ndarray = 2.0 * ascend_exactly(X, codes, 2, 0.5 * C, 0.5 * gap, blocks)[1]
    return weights


def solve_hinge(
    X, y: np.ndarray, C: float, gap: float, max_epochs: int | None = None, reserve: float = 0.0
) -> HingeSolution:
    """Solve the two-class problem to a certified distance from its optimum.

    Parameters
    ----------
    X : ndarray or CSR matrix (n, d) of float
        Rows; finite.
    y : ndarray (n,)
        Signs, -1 or 1; one of them may be missing.
    C : float
        Weight of one row's loss, positive.
    gap : float
        Square of the distance.
    max_epochs : int or None, default=None
        Give up after so many passes; None: never.
    reserve : float, default=0.0
        Relative error that the caller's arithmetic may add to the weights: the distance leaves room for it.

    Returns
    -------
    HingeSolution
        Deterministic: rows are visited in a fixed pseudo-random order. Without `max_epochs` there is one for every
        data set, and it is certified.
    """
    X, storage, squared_norms = stored_rows(X)
    epochs: Any = _epochs_sparse if isinstance(storage, CsrArrays) else _epochs_dense
    y = np.ascontiguousarray(y, dtype=np.float64)
    norms = row_lengths(squared_norms)
    # A row of zeros has loss 1 for every w; accordingly its dual variable is C.
    alpha = np.where(squared_norms == 0.0, float(C), 0.0)
    coef = np.zeros(X.shape[1])
    active = np.empty(y.size, dtype=np.int64)
    previous = np.full(y.size, np.inf)
    state = np.uint64(1)
    n_epochs, progress = 0, Progress()
    sure = exact = False
    while True:
        # With w = sum_i alpha_i y_i x_i the gap is a sum over rows of nonnegative terms.
        margins = y * np.asarray(X @ coef)
        missing = 1.0 - margins
        reached = float((C * np.maximum(missing, 0.0) - alpha * missing).sum())
        sure = reached <= gap and _certified(missing, alpha, norms, coef, C, gap, reserve)
        if sure or (max_epochs is not None and n_epochs >= max_epochs):
            break
        if max_epochs is None and (reached <= _SURE_SHARE * gap or progress.stuck(reached, n_epochs)):
            exact = True
            break
        steps = _ROUND_EPOCHS if max_epochs is None else min(_ROUND_EPOCHS, max_epochs - n_epochs)
        order = active[: _choose_active(margins, previous, alpha, squared_norms, C, active)].copy()
        previous = margins
        target = max(_ROUND_REDUCTION * reached, 0.5 * min(gap, reached))
        state, done = epochs(storage, y, squared_norms, C, alpha, coef, order, np.uint64(state), steps, target)
        n_epochs += done
        # Round-off: w is rebuilt from the dual variables, before errors build up.
        coef = sums_of_rows(X, alpha * y)
    if exact:
        coef = _solve_exactly(X, y, C, gap, alpha)
        missing, reached = 1.0 - y * np.asarray(X @ coef), 0.25 * gap
    primal = 0.5 * float(coef @ coef) + C * float(np.maximum(missing, 0.0).sum())
    return HingeSolution(coef, primal, primal - reached, reached, n_epochs, sure or exact, alpha, exact)


def warm_up() -> None:
    """Compile the solver for dense rows and for sparse ones."""
    X = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    y = np.array([-1.0, 1.0, 1.0])
    X = grid_rows(X, 2.0)
    for rows in (X, scipy.sparse.csr_array(X)):
        solve_hinge(rows, y, 1.0, 1e-3)
