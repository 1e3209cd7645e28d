"""Two-class SVM with a smoothed hinge and a linear term, certified.

``min_w 1/2 ||w||^2 + C sum_i loss(y_i w . x_i) + b . w`` with the loss whose slopes are
`privsvm.solvers.linear.hinge.smoothed_hinge_slopes`. The objective is 1-strongly convex, so ``||w - w*||`` is at most
the norm of its gradient at w. It is made of quadratic pieces: a Newton step whose end lies on the same piece as the
optimum ends in the optimum. Steps come from conjugate gradients on the rows in the quadratic part of the loss; along a
step the slope of the objective grows, and is followed to a point just short of its zero, so every step goes down. Where
float64 gets no nearer, or its round-off cannot be bounded any closer, `privsvm.solvers.linear.exact_ascent` goes on in
whole numbers, and always ends.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from privsvm.numerics.rows.rows import squared_norms
from privsvm.solvers.linear.certificate import UNIT, Progress, dot_error, growth, row_lengths, sum_error, sums_of_rows
from privsvm.solvers.linear.exact_ascent import ascend_smoothed_exactly
from privsvm.solvers.linear.hinge import smoothed_hinge_slopes

# Newton's equations are solved to this share of the gradient, and a step ends where this share of its slope remains.
_STEP_RESIDUAL = 0.05
_SLOPE_SHARE = 0.5

# Round-off: a step may end this share of its slope beyond the lowest point.
_OVERSHOOT = 1e-9


# Stop here: further progress cannot be certified in float64; and for so many steps, the gradient need not shrink.
_SURE_SHARE = 0.25
_PATIENCE = 200


@dataclasses.dataclass(frozen=True)
class SmoothedHingeSolution:
    """A weight vector (d,) and its quality.

    `gradient_norm`, the computed norm of the objective's gradient plus a bound on its error, bounds the distance to the
    optimum. If the exact ascent was needed (`exact`), it is the norm where the ascent began. `n_steps` counts Newton
    steps.
    """

    coef: np.ndarray
    gradient_norm: float
    n_steps: int
    exact: bool


def _gradient_error(margins, slopes, lengths, coef, linear, C: float, smoothing: float) -> float:
    """Bound the error of a computed gradient; see `privsvm.solvers.linear.certificate`.

    A slope is off only where its row is in the quadratic part of the loss, or too near to tell.
    """
    missing = 1.0 - margins
    errors = dot_error(coef.size, float(np.linalg.norm(coef))) * lengths + 8.0 * UNIT * (1.0 + np.abs(missing))
    doubtful = (missing >= -errors) & (missing <= smoothing + errors)
    of_slopes = float(np.minimum(errors / smoothing, 1.0)[doubtful] @ lengths[doubtful])
    pull = float(np.abs(slopes) @ lengths)
    rest = 8.0 * UNIT * (float(np.linalg.norm(coef)) + float(np.linalg.norm(linear)) + C * pull)
    return (C * (of_slopes + sum_error(margins.size, pull)) + rest) * (1.0 + growth(margins.size + 40.0))


def _newton_step(rows, weight: float, gradient: np.ndarray) -> np.ndarray:
    """Solve ``(I + weight rows^T rows) step = -gradient`` approximately."""
    step, residual = np.zeros_like(gradient), -gradient
    direction = residual.copy()
    squared = float(residual @ residual)
    target = _STEP_RESIDUAL**2 * squared
    # Conjugate gradients end after as many steps as features in exact arithmetic; round-off may add some, and any
    # iterate is a descent direction.
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


def _step_size(start: float, curvature: float, margins, slopes, moves, C: float, smoothing: float):
    """Return the step length at which the slope is nearly zero, from below.

    `start` and `curvature` are the slope of the quadratic term and the linear term at 0, and how fast it grows;
    `slopes` belong to the losses at `margins`.
    """

    def slope(size: float) -> float:
        losses = float(smoothed_hinge_slopes(margins + size * moves, smoothing) @ moves)
        return start + size * curvature + C * losses

    steepest = -(start + C * float(slopes @ moves))
    low, high, size = 0.0, math.inf, 1.0
    while True:
        slope_here = slope(size)
        if -_SLOPE_SHARE * steepest <= slope_here <= _OVERSHOOT * steepest:
            return size
        low, high = (size, high) if slope_here < 0 else (low, size)
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
) -> SmoothedHingeSolution:
    """Solve the two-class problem until the distance to the optimum is certainly at most `tol`.

    Rows are finite; signs are -1 or 1, and one of them may be missing. C is the weight of one row's loss, `smoothing`
    the width h of its quadratic part; both are positive. `linear` is the term b (d,); None: zero. The solution is
    deterministic, and there is one for every data set.
    """
    y = np.ascontiguousarray(y, dtype=np.float64)
    linear = np.zeros(X.shape[1]) if linear is None else linear
    coef = -linear
    lengths = row_lengths(squared_norms(X))
    n_steps, progress = 0, Progress(_PATIENCE)
    while True:
        margins = y * np.asarray(X @ coef)
        slopes = smoothed_hinge_slopes(margins, smoothing)
        gradient = coef + linear + C * sums_of_rows(X, slopes * y)
        norm = float(np.linalg.norm(gradient))
        sure = math.inf
        if norm <= tol:
            error = _gradient_error(margins, slopes, lengths, coef, linear, C, smoothing)
            sure = norm * (1.0 + growth(2.0 * coef.size + 20.0)) + error
        if sure <= tol:
            return SmoothedHingeSolution(coef, sure, n_steps, exact=False)
        if norm <= _SURE_SHARE * tol or progress.stuck(norm, n_steps):
            coef = ascend_smoothed_exactly(X, y, C, smoothing, linear, tol, -slopes)
            return SmoothedHingeSolution(coef, norm, n_steps, exact=True)
        curved = X[np.flatnonzero((margins < 1.0) & (margins > 1.0 - smoothing))]
        step = _newton_step(curved, C / smoothing, gradient)
        moves = y * np.asarray(X @ step)
        size = _step_size(
            float((coef + linear) @ step), float(step @ step), margins, slopes, moves, C, smoothing
        )  # fmt: skip
        coef = coef + size * step
        n_steps += 1
