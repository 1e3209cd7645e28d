"""Two-class SVM with a smoothed hinge loss and a linear term, without bias: Newton's method to a certified gradient.

``min_w 1/2 ||w||^2 + C sum_i loss(y_i w . x_i) + b . w`` with the loss whose slopes are
`privsvm.solvers.hinge.smoothed_hinge_slopes`. The objective is 1-strongly convex, so ``||w - w*||`` is at most the norm
of its gradient at w. It is made of quadratic pieces: a Newton step whose end lies on the same piece as the optimum ends
in the optimum. Steps come from conjugate gradients on the rows in the quadratic part of the loss; along a step the
slope of the objective grows, and is followed to a point just short of its zero, so every step goes down.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from privsvm.solvers.hinge import smoothed_hinge_slopes

__all__ = ["SmoothedHingeSolution", "gradient_allowance", "solve_smoothed_hinge"]

# Newton's equations are solved to this share of the gradient, and a step ends where this share of its slope is left.
_STEP_RESIDUAL = 0.05
_SLOPE_SHARE = 0.5

# A step may end this share of its slope beyond the lowest point: round-off.
_OVERSHOOT = 1e-9


@dataclasses.dataclass(frozen=True)
class SmoothedHingeSolution:
    """A solution and how good it is.

    Attributes
    ----------
    coef : ndarray (d,)
        Weight vector.
    gradient_norm : float
        Norm of the objective's gradient at `coef`, as computed; bounds the distance to the optimum.
    n_steps : int
        Newton steps.
    """

    coef: np.ndarray
    gradient_norm: float
    n_steps: int


def gradient_allowance(
    n_rows: int, n_features: int, C: float, data_norm: float, smoothing: float, linear_norm: float
) -> float:
    """Bound what float64 may get wrong about the gradient's norm near the optimum.

    Parameters
    ----------
    n_rows, n_features : int
        Upper limits of the problem's size.
    C : float
        Weight of one row's loss.
    data_norm : float
        Largest norm R of a row.
    smoothing : float
        Width h of the loss's quadratic part.
    linear_norm : float
        Largest norm of the linear term.

    Returns
    -------
    float
        The sum over rows of vectors of norm at most ``C R`` is off by a share of ``n + 8`` round-offs. A margin is off
        by ``d + 8`` round-offs of ``||w|| R``, and with it a slope by ``1 / h`` times that. The optimum has
        ``||w|| <= 2 ||b|| + sqrt(2 n C)``: there the objective is no larger than at 0. It holds for w within ``C R`` of
        the optimum.
    """
    unit = float(np.finfo(np.float64).eps)
    pull = n_rows * C * data_norm
    norm = 2.0 * linear_norm + math.sqrt(2.0 * n_rows * C) + C * data_norm
    slope = (n_features + 8) * (1.0 + norm * data_norm) / smoothing
    return unit * (pull * (n_rows + 8 + slope) + (n_features + 8) * (norm + linear_norm))


def _newton_step(rows, weight: float, gradient: np.ndarray) -> np.ndarray:
    """Solve ``(I + weight rows^T rows) step = -gradient`` by conjugate gradients, to a share of the gradient."""
    step, residual = np.zeros_like(gradient), -gradient
    direction = residual.copy()
    squared = float(residual @ residual)
    target = _STEP_RESIDUAL**2 * squared
    # In exact arithmetic there are no more steps than features; round-off may add some, and any of them will do.
    for _ in range(2 * gradient.size + 10):
        if squared <= target:
            break
        image = direction + weight * np.asarray(rows.T @ np.asarray(rows @ direction))
        size = squared / float(direction @ image)
        step += size * direction
        residual -= size * image
        previous, squared = squared, float(residual @ residual)
        direction = residual + (squared / previous) * direction
    return step


def _step_size(
    start: float,
    curvature: float,
    margins: np.ndarray,
    slopes: np.ndarray,
    moves: np.ndarray,
    C: float,
    smoothing: float,
):
    """How far to go along a step: to where the objective's slope is nearly zero, from below.

    `start` and `curvature` are the slope of the quadratic term and the linear term at 0, and how fast it grows;
    `slopes` are those of the losses at `margins`.
    """

    def slope(size: float) -> float:
        losses = float(smoothed_hinge_slopes(margins + size * moves, smoothing) @ moves)
        return start + size * curvature + C * losses

    steepest = -(start + C * float(slopes @ moves))
    low, high, size = 0.0, math.inf, 1.0
    while True:
        found = slope(size)
        if -_SLOPE_SHARE * steepest <= found <= _OVERSHOOT * steepest:
            return size
        low, high = (size, high) if found < 0 else (low, size)
        size = 2.0 * size if math.isinf(high) else 0.5 * (low + high)
        if not low < size < high:
            return size


def solve_smoothed_hinge(
    X,
    y: np.ndarray,
    C: float,
    smoothing: float,
    tol: float,
    linear: np.ndarray | None = None,
    start: np.ndarray | None = None,
) -> SmoothedHingeSolution:
    """Solve the two-class problem until the gradient is small enough.

    Parameters
    ----------
    X : ndarray or CSR matrix (n, d) of float
        Rows; finite.
    y : ndarray (n,)
        Signs, -1 or 1; one of them may be missing.
    C : float
        Weight of one row's loss, positive.
    smoothing : float
        Width h of the loss's quadratic part, positive.
    tol : float
        Stop once the gradient's norm is at most this. Below `gradient_allowance` it cannot be certified.
    linear : ndarray (d,) or None, default=None
        Linear term b; None: zero.
    start : ndarray (d,) or None, default=None
        Where to start; None: the optimum without rows, ``-b``.

    Returns
    -------
    SmoothedHingeSolution
        Deterministic. There is no limit on the number of steps.
    """
    y = np.ascontiguousarray(y, dtype=np.float64)
    linear = np.zeros(X.shape[1]) if linear is None else linear
    coef = -linear if start is None else start.copy()
    n_steps = 0
    while True:
        margins = y * np.asarray(X @ coef)
        slopes = smoothed_hinge_slopes(margins, smoothing)
        gradient = coef + linear + C * np.asarray(X.T @ (slopes * y))
        norm = float(np.linalg.norm(gradient))
        if norm <= tol:
            return SmoothedHingeSolution(coef, norm, n_steps)
        curved = X[np.flatnonzero((margins < 1.0) & (margins > 1.0 - smoothing))]
        step = _newton_step(curved, C / smoothing, gradient)
        moves = y * np.asarray(X @ step)
        size = _step_size(
            float((coef + linear) @ step), float(step @ step), margins, slopes, moves, C, smoothing
        )  # fmt: skip
        coef = coef + size * step
        n_steps += 1
