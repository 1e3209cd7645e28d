"""Weston-Watkins and M3 SVMs with a smoothed hinge, to a certified gradient.

One weight vector and one offset a class, scores ``z_k = w_k . x + b_k``. Both problems charge a row for every rival
class, ``loss_i = sum_{k != y} hinge(1 - (z_y - z_k))`` with ``hinge(g) = (g + sqrt(g^2 + s^2)) / 2``, which exceeds
``max(0, g)`` by at most s / 2:

- Weston-Watkins (1998): ``1/2 sum_k ||w_k||^2 + C sum_i loss_i``. Offsets are free.
- M3, maximum minimum margin (Nie et al.; pmsvm-2025, equations 9 and 12):
  ``1/2 sum_{k<l} ||w_k - w_l||^2 + C sum_i loss_i + mu (||W||^2 + ||b||^2)``.

The paper's equation 12 weighs the margins, ``sum_i loss_i + lambda sum_{k<l} ||w_k - w_l||^2 + mu' (...)``; divided by
``2 lambda`` it is the above with ``C = 1 / (2 lambda)`` and ``mu = mu' / (2 lambda)``. With the mean of the losses in
place of their sum, as in its gradient steps, ``C = 1 / (2 lambda n)``.

Rows see differences of scores only, so the optimal weight vectors add up to zero, and there
``sum_{k<l} ||w_k - w_l||^2 = c ||W||^2``: without offsets, M3 with C and mu is Weston-Watkins with ``C / (c + 2 mu)``.
For two classes ``u = w_1 - w_0`` is a binary SVM: with 2 C for Weston-Watkins, whose objective is half the binary one,
and with ``C / (1 + mu)`` for M3.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse

__all__ = [
    "AllInOneProblem",
    "AllInOneSolution",
    "m3_problem",
    "smoothed_positive_part",
    "solve_all_in_one",
    "weston_watkins_problem",
]

# Continuation: the smoothing starts here (or at its final value, if larger) and falls by this factor: each optimum is a
# warm start for the next, sharper problem.
_FIRST_SMOOTHING, _SMOOTHING_FACTOR = 1.0, 0.25

# Share of its initial gradient to which an intermediate problem is solved.
_WAY_SHARE = 0.05

# Largest share of the gradient to which Newton's equations are solved.
_STEP_RESIDUAL = 0.1

# Line search: a step ends where this share of the initial slope remains, or a little beyond the lowest point.
_SLOPE_SHARE, _OVERSHOOT = 0.5, 0.1

# Relative round-off of an objective: by this much it may seem to increase.
_ROUND_OFF = 1e-12


def smoothed_positive_part(values: np.ndarray, smoothing: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Compute ``(g + sqrt(g^2 + s^2)) / 2``, its slope and its curvature.

    Without cancellation.

    Parameters
    ----------
    values : ndarray
        g, any shape.
    smoothing : float
        s, positive.

    Returns
    -------
    value, slope, curvature : ndarray
        The slope lies between 0 and 1, the curvature between 0 and ``1 / (2 s)``.
    """
    size = np.abs(values)
    root = np.hypot(values, smoothing)
    excess = smoothing / (root + size) * (0.5 * smoothing)
    share = excess / root
    slope = np.where(values > 0, 1.0 - share, share)
    return np.maximum(values, 0.0) + excess, slope, 0.5 * (smoothing / root) ** 2 / root


@dataclasses.dataclass(frozen=True, kw_only=True)
class AllInOneProblem:
    """``norm/2 ||W||^2 + margins/2 sum_{k<l} ||w_k - w_l||^2 + ridge (||W||^2 + ||b||^2) + C sum_i loss_i``.

    Weights V are (c, p): a row holds ``w_k`` and, where offsets are trained, ``b_k``.

    Attributes
    ----------
    X : ndarray or CSR matrix (n, p)
        Rows, with a constant feature of 1 last where offsets are trained.
    y : ndarray of int (n,)
        Class codes.
    n_classes : int
        Number of classes c.
    C : float
        Weight of one row's loss.
    smoothing : float
        s of the hinge, in units of the margin.
    norm_weight, margin_weight, ridge : float
        Weights of the regularisers.
    fit_intercept : bool
        Whether the last feature is that of the offsets.
    """

    X: Any
    y: np.ndarray
    n_classes: int
    C: float
    smoothing: float
    norm_weight: float
    margin_weight: float
    ridge: float
    fit_intercept: bool

    def regulariser_gradient(self, V: np.ndarray) -> np.ndarray:
        """Gradient (c, p) of the regularisers; linear in V."""
        gradient = (self.norm_weight + self.margin_weight * self.n_classes) * V
        if self.margin_weight:
            gradient -= self.margin_weight * V.sum(axis=0)
        if self.fit_intercept:
            gradient[:, -1] = 0.0
        return gradient + 2.0 * self.ridge * V

    def leads(self, V: np.ndarray) -> np.ndarray:
        """``z_k - z_y`` for every row and class, (n, c); linear in V.

        A rival's violation is 1 more.
        """
        scores = np.asarray(self.X @ V.T)
        return scores - scores[np.arange(self.y.size), self.y][:, None]

    def loss_parts(self, leads: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        """Sum of the losses, and slopes and curvatures (n, c) in the leads.

        Zero in a row's own class.
        """
        value, slope, curvature = smoothed_positive_part(1.0 + leads, self.smoothing)
        own_entries = np.arange(self.y.size), self.y
        value[own_entries] = slope[own_entries] = curvature[own_entries] = 0.0
        return float(value.sum()), slope, curvature

    def pull_back(self, slopes: np.ndarray) -> np.ndarray:
        """Return the gradient (c, p) in V for slopes (n, c) in the leads.

        Slopes are zero in the own class.
        """
        slopes = slopes.copy()
        slopes[np.arange(self.y.size), self.y] = -slopes.sum(axis=1)
        return np.ascontiguousarray(np.asarray(self.X.T @ slopes).T)

    def evaluate(self, V: np.ndarray) -> tuple[float, np.ndarray, np.ndarray, np.ndarray]:
        """Objective and gradient (c, p) at V, and leads and curvatures (n, c) there."""
        leads, regulariser = self.leads(V), self.regulariser_gradient(V)
        loss, slope, curvature = self.loss_parts(leads)
        value = 0.5 * float(np.vdot(V, regulariser)) + self.C * loss
        return value, regulariser + self.C * self.pull_back(slope), leads, curvature

    def objective(self, V: np.ndarray) -> float:
        """Objective at V."""
        return self.evaluate(V)[0]

    def gradient(self, V: np.ndarray) -> np.ndarray:
        """Gradient (c, p) at V."""
        return self.evaluate(V)[1]

    def hessian_product(self, curvature: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        """Multiplication of a direction (c, p) with the Hessian where losses have these curvatures."""

        def product(direction: np.ndarray) -> np.ndarray:
            return self.regulariser_gradient(direction) + self.C * self.pull_back(curvature * self.leads(direction))

        return product

    def _hessian_diagonal(self, squares, curvature: np.ndarray) -> np.ndarray:
        own_entries = np.arange(self.y.size), self.y
        curvature = curvature.copy()
        curvature[own_entries] = curvature.sum(axis=1)
        diagonal = self.C * np.asarray(squares.T @ curvature).T + 2.0 * self.ridge
        n_weights = diagonal.shape[1] - self.fit_intercept
        # Projection to directions that sum to zero over the classes.
        diagonal[:, :n_weights] += self.norm_weight + self.margin_weight * self.n_classes
        return diagonal


@dataclasses.dataclass(frozen=True)
class AllInOneSolution:
    """A solution and how good it is.

    Attributes
    ----------
    coef : ndarray (c, d)
        One weight vector a class.
    intercept : ndarray (c,)
        Offsets; zeros where none are trained.
    objective : float
        Smoothed objective.
    gradient_norm : float
        Norm of its gradient. Without offsets it bounds the distance to the optimum: by itself for Weston-Watkins, over
        ``c + 2 mu`` for M3.
    n_steps : int
        Newton steps, those for larger smoothing on the way included.
    converged : bool
        Whether the gradient's norm reached its target.
    """

    coef: np.ndarray
    intercept: np.ndarray
    objective: float
    gradient_norm: float
    n_steps: int
    converged: bool


def _problem(X, y, n_classes: int, fit_intercept: bool, **weights: float) -> AllInOneProblem:
    if scipy.sparse.issparse(X):
        X = scipy.sparse.csr_array(X, dtype=np.float64)
        if fit_intercept:
            X = scipy.sparse.hstack([X, np.ones((X.shape[0], 1))]).tocsr()
    else:
        X = np.ascontiguousarray(X, dtype=np.float64)
        if fit_intercept:
            X = np.hstack([X, np.ones((X.shape[0], 1))])
    y = np.ascontiguousarray(y, dtype=np.int64)
    return AllInOneProblem(X=X, y=y, n_classes=n_classes, fit_intercept=fit_intercept, **weights)


def weston_watkins_problem(
    X, y: np.ndarray, n_classes: int, C: float, smoothing: float, fit_intercept: bool = False
) -> AllInOneProblem:
    """Weston-Watkins problem of a data set.

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
    smoothing : float
        s of the hinge, in units of the margin; positive.
    fit_intercept : bool, default=False
        Whether to train offsets, which are not regularised. The offset of a class without rows falls without end:
        it stops where the gradient is small enough.

    Returns
    -------
    AllInOneProblem
    """
    return _problem(
        X, y, n_classes, fit_intercept, C=C, smoothing=smoothing, norm_weight=1.0, margin_weight=0.0, ridge=0.0
    )


def m3_problem(
    X, y: np.ndarray, n_classes: int, C: float, smoothing: float, ridge: float, fit_intercept: bool = True
) -> AllInOneProblem:
    """M3 problem of a data set (pmsvm-2025, equations 9 and 12).

    Parameters
    ----------
    X, y, n_classes, C, smoothing
        As for `weston_watkins_problem`.
    ridge : float
        mu, the weight of ``||W||^2 + ||b||^2``; positive for a unique solution.
    fit_intercept : bool, default=True
        Whether to train offsets.

    Returns
    -------
    AllInOneProblem
    """
    return _problem(
        X, y, n_classes, fit_intercept, C=C, smoothing=smoothing, norm_weight=0.0, margin_weight=1.0, ridge=ridge
    )


def _newton_step(product, diagonal: np.ndarray, gradient: np.ndarray, share: float) -> np.ndarray:
    """Solve Newton's equations by preconditioned conjugate gradients."""

    def prepare(residual: np.ndarray) -> np.ndarray:
        # Weights sum to zero over the classes, and so must steps: in M3 the sum is nearly unconstrained.
        ready = residual / diagonal
        return ready - ready.mean(axis=0)

    step, residual = np.zeros_like(gradient), -gradient
    ready = prepare(residual)
    direction = ready.copy()
    inner = float(np.vdot(residual, ready))
    target = share * float(np.linalg.norm(gradient))
    # Conjugate gradients end after as many steps as weights in exact arithmetic; any iterate is a descent direction.
    for _ in range(gradient.size):
        image = product(direction)
        bend = float(np.vdot(direction, image))
        if not bend > 0.0:
            break
        size = inner / bend
        step += size * direction
        residual -= size * image
        if np.linalg.norm(residual) <= target:
            break
        ready = prepare(residual)
        previous, inner = inner, float(np.vdot(residual, ready))
        direction = ready + (inner / previous) * direction
    return step


def _step_size(problem: AllInOneProblem, V, step, leads, value: float) -> float:
    """How far to go along a step: to where the slope is nearly zero; 0 where round-off hides the way down."""
    moves = problem.leads(step)
    pull = problem.regulariser_gradient(step)
    start, bend = float(np.vdot(V, pull)), float(np.vdot(step, pull))
    base = 0.5 * float(np.vdot(V, problem.regulariser_gradient(V)))

    def along(size: float) -> tuple[float, float]:
        loss, slope, _ = problem.loss_parts(leads + size * moves)
        return (
            base + size * start + 0.5 * size**2 * bend + problem.C * loss,
            start + size * bend + problem.C * float(np.vdot(slope, moves)),
        )

    steepest = -along(0.0)[1]
    if not steepest > 0.0:
        return 0.0
    low, high, size = 0.0, math.inf, 1.0
    while True:
        objective, slope = along(size)
        small = -_SLOPE_SHARE * steepest <= slope <= _OVERSHOOT * steepest
        if small and objective <= value + _ROUND_OFF * abs(value):
            return size
        low, high = (size, high) if slope < 0 else (low, size)
        size = 2.0 * size if math.isinf(high) else 0.5 * (low + high)
        if not low < size < high:
            return low


def solve_all_in_one(problem: AllInOneProblem, tol: float, max_steps: int | None = None) -> AllInOneSolution:
    """Minimise until the gradient is small enough.

    Parameters
    ----------
    problem : AllInOneProblem
        From `weston_watkins_problem` or `m3_problem`.
    tol : float
        Stop once the gradient's norm is at most this.
    max_steps : int or None, default=None
        Give up after so many Newton steps; None: only where round-off hides the way down.

    Returns
    -------
    AllInOneSolution
        Deterministic. The sum of the weight vectors is zero, up to round-off.
    """
    V = np.zeros((problem.n_classes, problem.X.shape[1]))
    X = problem.X
    squares = X.multiply(X) if scipy.sparse.issparse(X) else X * X
    n_steps = 0
    smoothing = max(_FIRST_SMOOTHING, problem.smoothing)
    while True:
        stage = dataclasses.replace(problem, smoothing=smoothing)
        last = smoothing == problem.smoothing
        target, first = tol, 0.0
        while True:
            value, gradient, leads, curvature = stage.evaluate(V)
            norm = float(np.linalg.norm(gradient))
            if first == 0.0:
                first = norm
                if not last:
                    target = max(tol, _WAY_SHARE * norm)
            if norm <= target or (max_steps is not None and n_steps >= max_steps):
                break
            share = min(_STEP_RESIDUAL, math.sqrt(norm / first))
            diagonal = stage._hessian_diagonal(squares, curvature)
            # Zero curvature: such a weight stays as it is.
            diagonal[diagonal <= 0.0] = 1.0
            step = _newton_step(stage.hessian_product(curvature), diagonal, gradient, share)
            size = _step_size(stage, V, step, leads, value)
            if size == 0.0:
                break
            V = V + size * step
            V -= V.mean(axis=0)
            n_steps += 1
        if last or (max_steps is not None and n_steps >= max_steps):
            break
        smoothing = max(problem.smoothing, _SMOOTHING_FACTOR * smoothing)
    if not last:
        # Step limit during continuation: report the objective and gradient of the original problem.
        value, gradient, *_ = problem.evaluate(V)
        norm = float(np.linalg.norm(gradient))
    n_features = V.shape[1] - problem.fit_intercept
    return AllInOneSolution(
        coef=np.ascontiguousarray(V[:, :n_features]),
        intercept=V[:, -1].copy() if problem.fit_intercept else np.zeros(problem.n_classes),
        objective=value,
        gradient_norm=norm,
        n_steps=n_steps,
        converged=norm <= tol,
    )
