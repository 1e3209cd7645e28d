"""The C-SVC dual of the linear kernel by an interior-point method.

A step costs as much as a weighted sum of all ``x x'``, independently of C and of collinear features, and some ten to
thirty steps reach the optimum, where pairs of variables may need millions. The final point is exact: variables move to
the bounds that they approach, and the violation of optimality is computed anew. A problem that does not converge is
left to the other solvers. Without this method, one of 21 random linear problems takes 1.6 times as long as by LIBSVM
(1,218 x 3, 26 classes, C 45), with it none takes longer.

With the rows ``y_i (x_i, 1)`` of a matrix A, the problem is ``min 1/2 ||w||^2 + u's`` subject to
``A (w, b) - z + s = 1`` and ``z, s >= 0``; the dual variables a are as in `privsvm.solvers.kernel.c_svc`. Sources:
Mehrotra (1992) for the predictor and corrector; Ferris and Munson (2002) for the small matrix in place of the kernel's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse
from scipy.linalg import lapack

from privsvm.numerics.compiled.jit import jit
from privsvm.solvers.kernel.c_svc import CSVCSolution, dual_objective, optimality_gap, rho_from_gradient

# Constant           unit        value and reason
# _MOST_STEPS        steps       until a problem is left to the other solvers; _LEAST_STEP is the shortest one.
# _STEP              share       of the way to the nearest bound that a step goes.
# _END               share       of the mean bound times the squared tolerance: complementarity at which the final point
#                                is tried, once margins are within _MARGIN_SHARE of the tolerance.
# _RIDGE             share       of the diagonal that is added where round-off leaves the small matrix indefinite.
# _BLOCK             rows        whose weighted products are summed together: they stay in the cache.
# _FEW_FEATURES      features    up to which sparse rows are made dense; of more, above _DENSE_SHARE of nonzeros.
# _TYPICAL_STEPS     steps       of a solution; each takes _STEP_SECONDS, _ROW_SECONDS a row, _PRODUCT_SECONDS a product
#                                of two dense features, or _STORED_SECONDS of two stored numbers; measured.
_MOST_STEPS, _LEAST_STEP = 80, 1e-7
_STEP = 0.995
_END, _MARGIN_SHARE = 0.1, 0.1
_RIDGE = 1e-12
_BLOCK = 2048
_FEW_FEATURES, _DENSE_SHARE = 16, 0.3
_TYPICAL_STEPS, _STEP_SECONDS = 15.0, 1.2e-4
_ROW_SECONDS, _PRODUCT_SECONDS, _STORED_SECONDS = 4e-8, 5e-11, 1e-9


@jit()
def _add_sparse_products(data, indices, indptr, theta, gram):
    """Add ``A' diag(theta) A`` to the lower triangle of `gram`; indices ascend in each row."""
    for t in range(theta.shape[0]):
        for e in range(indptr[t], indptr[t + 1]):
            value, row = theta[t] * data[e], gram[indices[e]]
            for f in range(indptr[t], e + 1):
                row[indices[f]] += value * data[f]


class _SignedRows:
    """The matrix A of one problem: rows with their signs, of mean squared norm 1, dense ones centred.

    `square` is the mean squared norm before scaling, `centre` the vector (d,) subtracted from the rows.
    """

    def __init__(self, X: Any, signs: np.ndarray) -> None:
        n, d = X.shape
        self.centre = np.zeros(d)
        self._A: Any
        if _stays_sparse(X):
            csr = scipy.sparse.csr_array(X, dtype=np.float64, copy=True)
            csr.sum_duplicates()
            self.square = float(csr.data @ csr.data) / n
        else:
            dense = np.asarray(X.toarray() if scipy.sparse.issparse(X) else X, dtype=np.float64)
            self.centre = dense.mean(axis=0)
            self._A = np.empty((n, d + 1))
            np.subtract(dense, self.centre, out=self._A[:, :d])
            self.square = float(np.vdot(self._A[:, :d], self._A[:, :d])) / n
        self.usable = 0.0 < self.square < np.inf
        factors = signs / np.sqrt(self.square) if self.usable else signs
        if _stays_sparse(X):
            csr.data *= np.repeat(factors, np.diff(csr.indptr))
            self._A = scipy.sparse.hstack([csr, scipy.sparse.csr_array(signs[:, None])], format="csr")
            self._entries = self._A.data, self._A.indices.astype(np.int64), self._A.indptr.astype(np.int64)
        else:
            self._A[:, :d] *= factors[:, None]
            self._A[:, d] = signs

    def times(self, weights: np.ndarray) -> np.ndarray:
        """Return ``A weights``."""
        return np.asarray(self._A @ weights)

    def sums(self, values: np.ndarray) -> np.ndarray:
        """Return ``A' values``."""
        return np.asarray(self._A.T @ values)

    def gram(self, theta: np.ndarray) -> np.ndarray:
        """Return ``A' diag(theta) A``, of which the lower triangle is set."""
        size = self._A.shape[1]
        gram = np.zeros((size, size))
        if scipy.sparse.issparse(self._A):
            _add_sparse_products(*self._entries, theta, gram)
            return gram
        for start in range(0, theta.size, _BLOCK):
            block = self._A[start : start + _BLOCK]
            gram += block.T @ (theta[start : start + _BLOCK, None] * block)
        return gram


def _solver_of(gram: np.ndarray) -> Callable[[np.ndarray], np.ndarray] | None:
    """Factorise a matrix by its lower triangle; return a function that solves with it, None if that fails."""
    # LAPACK is column-major: the upper triangle of the transposed matrix is the lower one.
    factor, failed = lapack.dpotrf(gram.T, lower=0, clean=0)
    if failed:
        gram[np.diag_indices_from(gram)] *= 1.0 + _RIDGE
        factor, failed = lapack.dpotrf(gram.T, lower=0, clean=0)
    return None if failed else lambda side: np.asarray(lapack.dpotrs(factor, side, lower=0)[0])


def _final_point(A: _SignedRows, signs: np.ndarray, upper: np.ndarray, at_zero: Any, at_upper: Any, alpha: Any):
    """Move variables to the bounds that they approach, and balance the free ones.

    Return the variables, their gradient and their weights; None where the free ones cannot balance the others.
    """
    alpha = np.where(at_zero, 0.0, np.where(at_upper, upper, alpha))
    excess, room = float(signs @ alpha), np.minimum(alpha, upper - alpha)
    total = float(room.sum())
    if abs(excess) > total:
        if excess != 0.0:
            return None
    elif total > 0.0:
        alpha = np.clip(alpha - signs * (excess / total) * room, 0.0, upper)
    weights = A.sums(alpha)
    weights[-1] = 0.0
    return alpha, A.times(weights) - 1.0, weights


def _optimise(A: _SignedRows, signs: np.ndarray, upper: np.ndarray, tol: float):
    """Return the final point, as `_final_point`, and the number of steps; None where no step leads to it."""
    n = upper.size
    mean_upper = float(upper.mean())
    alpha, room, surplus, slack = 0.5 * upper, 0.5 * upper, np.full(n, 0.5), np.full(n, 1.5)
    missing, weights, mu = np.ones(n), np.zeros(A.centre.size + 1), 0.5 * mean_upper

    def direction(target: np.ndarray, solve: Any) -> tuple[np.ndarray, np.ndarray]:
        side = A.sums(theta * target + alpha)
        side[:-1] -= weights[:-1]
        step = solve(side)
        return step, A.times(step)

    for n_steps in range(1, _MOST_STEPS + 1):
        theta = alpha * room / (surplus * room + slack * alpha)
        gram = A.gram(theta)
        gram[np.diag_indices(weights.size - 1)] += 1.0
        solve = _solver_of(gram)
        if solve is None:
            return None
        # Predictor: the step that would end complementarity.
        predicted = theta * (missing - direction(missing, solve)[1])
        share, other = predicted / alpha, predicted / room
        longest = max(1.0, -share.min(), 1.0 + share.max(), other.max(), 1.0 - other.min())
        second = float(predicted @ (slack * (1.0 - other) - surplus * (1.0 + share)))
        reduction = 1.0 - 1.0 / longest + second / (2.0 * n * mu * longest**2)
        centre = mu * max(reduction, 0.0) ** 3
        # Corrector: second order terms, and a way back to the middle.
        d_surplus = (centre + predicted * surplus * (1.0 + share)) / alpha
        d_slack = (centre - predicted * slack * (1.0 - other)) / room
        target = missing + d_surplus - d_slack
        step, change = direction(target, solve)
        d_alpha = theta * (target - change)
        share, other = d_alpha / alpha, d_alpha / room
        d_surplus -= surplus * (1.0 + share)
        d_slack -= slack * (1.0 - other)
        longest = max(-share.min(), other.max(), -(d_surplus / surplus).min(), -(d_slack / slack).min())
        length = min(1.0, _STEP / longest) if longest > 0.0 else 1.0
        if not length > _LEAST_STEP:
            return None
        weights += length * step
        alpha += length * d_alpha
        room -= length * d_alpha
        surplus += length * d_surplus
        slack += length * d_slack
        missing -= length * change
        mu = float(alpha @ surplus + room @ slack) / (2.0 * n)
        if not mu > 0.0:
            return None
        if mu <= _END * tol * tol * mean_upper and np.abs(missing + surplus - slack).max() <= _MARGIN_SHARE * tol:
            point = _final_point(A, signs, upper, alpha < surplus * upper, room < slack * upper, alpha)
            if point is not None and optimality_gap(point[0], point[1], signs, upper) <= tol:
                return (*point, n_steps)
    return None


def _stays_sparse(X: Any) -> bool:
    """Tell whether these rows are kept sparse."""
    narrow = X.shape[1] <= _FEW_FEATURES
    return scipy.sparse.issparse(X) and not narrow and bool(X.nnz <= _DENSE_SHARE * X.shape[0] * X.shape[1])


def usual_seconds(X: Any, n_rows: np.ndarray) -> np.ndarray:
    """Estimate the time that this method takes for problems of so many of these rows."""
    size = X.shape[1] + 1.0
    products = size * size * _PRODUCT_SECONDS
    if _stays_sparse(X):
        products = (1.0 + X.nnz / max(X.shape[0], 1)) ** 2 * _STORED_SECONDS
    small = size**3 / 3.0 * _PRODUCT_SECONDS
    seconds: np.ndarray = _TYPICAL_STEPS * (_STEP_SECONDS + small + n_rows * (_ROW_SECONDS + products))
    return seconds


def solve_linear(X: Any, y: np.ndarray, upper: np.ndarray, tol: float) -> CSVCSolution | None:
    """Solve the C-SVC dual of the linear kernel; None where the method does not converge.

    Rows are finite float64, labels +1 and -1, both present, and the variables' upper bounds positive and finite. `tol`
    is the largest violation of optimality.
    """
    A = _SignedRows(X, y)
    if not A.usable:
        return None
    with np.errstate(all="ignore"):
        found = _optimise(A, y, A.square * upper, tol)
    if found is None:
        return None
    scaled, gradient, weights, n_steps = found
    alpha = np.where(scaled == A.square * upper, upper, np.minimum(scaled / A.square, upper))
    return CSVCSolution(
        alpha=alpha,
        rho=rho_from_gradient(alpha, gradient, y, upper) + float(A.centre @ weights[:-1]) / np.sqrt(A.square),
        gradient=gradient,
        objective=dual_objective(alpha, gradient),
        n_iter=n_steps,
        converged=True,
    )


def warm_up() -> None:
    """Compile what this module runs."""
    eye = scipy.sparse.csr_array(np.eye(_FEW_FEATURES + 1))
    signs = np.where(np.arange(_FEW_FEATURES + 1) % 2, 1.0, -1.0)
    solve_linear(eye, signs, np.ones(signs.size), 1e-3)
