"""Smoothed hinge problems out of core: Newton's method to a certified gradient.

The problems are those of `privsvm.solvers.linear.smoothed_hinge`, one for each class or a single one for two, solved
side by side: a pass over the rows serves all of them. A pass has the gradients at one point of each problem, and second
derivatives, `I + C / h` times the products of the rows in the quadratic part of the loss; from these the next point
comes, by a step that is shortened until the objective's slope along it has nearly ended. The quadratic part is wide at
first and becomes narrower step by step: from a point far away, a narrow one shows few second derivatives.

Rows lie on a public grid. They, the weights and the slopes are split into whole numbers so small that every sum of a
matrix product is exact. So products with rows have no round-off, a slope is off by little more than the grid that
it is rounded to, and sums over rows by nothing: they are the same bits for any blocks and any workers, and the bound on
the gradient's error grows with the number of rows alone. Second derivatives need no such care: of each 1,024 rows, the
sum is rounded to a grid.

Where float64 gets no nearer, all rows are read into memory and `privsvm.solvers.linear.exact_ascent` goes on.
"""

from __future__ import annotations

import dataclasses
import math
from typing import NamedTuple

import numpy as np

from privsvm.numerics.rows.row_blocks import RowsByBlock
from privsvm.numerics.rows.row_grid import grid_spacing
from privsvm.solvers.linear.certificate import UNIT, Progress, growth
from privsvm.solvers.linear.exact_ascent import ascend_smoothed_exactly

__all__ = ["SLOPE_ERROR", "certified_rows", "rounded_points", "solve_smoothed_hinge_by_block", "taken_apart"]

# Rows are whole numbers of norm below 2^27, split into two of 14 bits.
_ROW_BITS, _HALF_BITS = 27, 14
# Weights are three whole numbers, the first of norm 2^25; slopes count in 2^-44, split into two numbers of 22 bits.
_WEIGHT_BITS, _SLOPE_BITS = 25, 44
# Error of a slope: half of its grid, plus twice the round-off before that, except for weights of huge norm.
SLOPE_ERROR = 2.0 ** -(_SLOPE_BITS + 1) + 2.0**-48
# Rows whose sums are rounded together; blocks begin at multiples of it.
_CHUNK = 1024
# Second derivatives: rows are truncated by so many bits, and sums over a chunk are rounded to 2^16 of their units.
_CUT_BITS, _SUM_BITS = 7, 16

# Line search: a step ends where this share of its slope remains, or at most that much beyond its end; see
# `smoothed_hinge`.
_SLOPE_SHARE, _OVERSHOOT, _PATIENCE = 0.5, 1e-9, 1000
# Continuation: the quadratic part shrinks by this factor after a full step, or after so many steps.
_NARROWING, _STEPS = 4.0, 4
# Most trials of a step: slopes at the level of round-off carry no information.
_TRIALS = 30


class _Points(NamedTuple):
    """Current point of each problem as whole numbers, which workers get."""

    # Limbs (3, k, d), and the unit of a product with a row.
    limbs: np.ndarray
    units: np.ndarray
    problems: np.ndarray
    smoothing: np.ndarray
    spacing: float


def _limb_bits(n_features: int) -> int:
    """Return the bits of the lower limbs of a weight, for exact products."""
    return 52 - _ROW_BITS - math.ceil(math.log2(max(n_features, 1)) / 2.0)


def taken_apart(coef: np.ndarray, spacing: float) -> tuple[np.ndarray, np.ndarray]:
    """Split points (k, d) into limbs, with units (3, k) of their products with rows."""
    bits = _limb_bits(coef.shape[1])
    limbs, units = np.zeros((3, *coef.shape)), np.zeros((3, coef.shape[0]))
    for k, weights in enumerate(coef):
        exponent = math.frexp(float(np.linalg.norm(weights)))[1]
        remainder = weights
        for limb in range(3):
            unit = math.ldexp(1.0, exponent - _WEIGHT_BITS - limb * bits)
            limbs[limb, k] = np.rint(remainder / unit)
            remainder = remainder - limbs[limb, k] * unit
            units[limb, k] = unit * spacing
    return limbs, units


def rounded_points(coef: np.ndarray) -> np.ndarray:
    """Round points to numbers that their limbs represent exactly."""
    limbs, units = taken_apart(coef, 1.0)
    limb_values = limbs * units[:, :, None]
    points: np.ndarray = (limb_values[2] + limb_values[1]) + limb_values[0]
    return points


def _sums_of_block(rows: np.ndarray, codes: np.ndarray, points: _Points, first: int) -> tuple[np.ndarray, np.ndarray]:
    """Sum slopes times rows (k, d) in 2^-44 units, and Hessians (k, d, d)."""
    n_points, d = points.problems.size, rows.shape[1]
    gradient = np.zeros((n_points, d), dtype=object)
    hessian = np.zeros((n_points, d, d), dtype=np.int64)
    all_limbs = points.limbs.reshape(-1, d).T
    for start in range(0, rows.shape[0], _CHUNK):
        cells = rows[start : start + _CHUNK] / points.spacing
        labels = codes[start : start + _CHUNK, None]
        signs = np.where(labels == points.problems, 1.0, -1.0)
        products = (cells @ all_limbs).reshape(-1, 3, n_points) * points.units
        # Round-off: the smaller limbs are subtracted last.
        missing = (1.0 - signs * products[:, 0]) - signs * (products[:, 1] + products[:, 2])
        integers = np.rint(_slopes(missing, points.smoothing) * 2.0**_SLOPE_BITS) * signs
        upper = np.rint(integers * 2.0 ** -(_SLOPE_BITS // 2))
        halves = np.concatenate([upper, integers - upper * 2.0 ** (_SLOPE_BITS // 2)], axis=1)
        high = np.rint(cells * 2.0**-_HALF_BITS)
        sums = halves.T @ np.concatenate([high, cells - high * 2.0**_HALF_BITS], axis=1)
        whole_sums = sums.astype(np.int64).astype(object).reshape(2, n_points, 2, d)
        by_half = (whole_sums[0] << (_SLOPE_BITS // 2)) + whole_sums[1]
        gradient += (by_half[:, 0] << _HALF_BITS) + by_half[:, 1]
        cut = np.rint(cells * 2.0**-_CUT_BITS)
        for k in range(n_points):
            curved = cut[(missing[:, k] > 0.0) & (missing[:, k] < points.smoothing[k])]
            hessian[k] += np.rint((curved.T @ curved) * 2.0**-_SUM_BITS).astype(np.int64)
    return gradient, hessian


def _slopes(missing: np.ndarray, smoothing: np.ndarray | float) -> np.ndarray:
    """Return slopes of the loss from the margins' distances to 1."""
    slopes: np.ndarray = -np.clip(missing / smoothing, 0.0, 1.0)
    return slopes


def certified_rows(share: float) -> float:
    """Return for how many rows a gradient is certain to `share` of a row's."""
    return share / SLOPE_ERROR


@dataclasses.dataclass
class _Search:
    """One problem: where it is, and how far along a step."""

    point: np.ndarray
    step: np.ndarray
    # Smoothing of the current problem.
    smoothing: float
    gradient: np.ndarray | None = None
    low: float = 0.0
    low_slope: float = 0.0
    high: float = math.inf
    high_slope: float = 0.0
    size: float = 1.0
    n_trials: int = 0
    n_steps: int = 0

    def trial(self) -> np.ndarray:
        """Point to look at next."""
        return self.point + self.size * self.step

    def goes_on(self, gradient: np.ndarray) -> bool:
        """Take note of the gradient at the trial; whether the step ends elsewhere."""
        self.n_trials += 1
        if self.gradient is None or self.n_trials > _TRIALS:
            return False
        steepest, slope = -float(self.gradient @ self.step), float(gradient @ self.step)
        if -_SLOPE_SHARE * steepest <= slope <= _OVERSHOOT * steepest:
            return False
        # Accept: the gradient's norm is at most half, which bounds the number of such steps.
        if float(np.linalg.norm(gradient)) <= 0.5 * float(np.linalg.norm(self.gradient)):
            return False
        if slope < 0.0:
            self.low, self.low_slope = self.size, slope
        else:
            self.high, self.high_slope = self.size, slope
        if math.isinf(self.high):
            self.size *= 2.0
            return True
        start = self.low_slope if self.low else -steepest
        share = start / (start - self.high_slope)
        size = self.low + (self.high - self.low) * min(max(0.9 * share, 0.05), 0.9)
        if not self.low < size < self.high:
            return False
        self.size = size
        return True

    def turn(self, point: np.ndarray, gradient: np.ndarray, hessian: np.ndarray) -> None:
        """Begin a step at a point."""
        self.point, self.gradient = point, gradient
        self.step = -np.linalg.solve(hessian, gradient)
        self.low, self.high, self.size, self.n_trials = 0.0, math.inf, 1.0, 0
        self.n_steps += 1

    def narrow(self, point: np.ndarray, smoothing: float) -> None:
        """Go on from a point with the next smoothing."""
        self.point, self.step, self.gradient, self.n_steps = point, np.zeros_like(point), None, 0
        self.smoothing = max(smoothing, self.smoothing / _NARROWING)


def _all_rows(rows: RowsByBlock) -> np.ndarray:
    """Read all rows after their steps."""
    blocks = []
    for start, stop in rows.source.blocks():
        made = rows.source.read(start, stop)
        for step in rows.steps:
            made = step(made)
        blocks.append(made)
    return np.concatenate(blocks)


def solve_smoothed_hinge_by_block(
    rows: RowsByBlock,
    codes: np.ndarray,
    C: float,
    smoothing: float,
    tol: float,
    linear: np.ndarray,
    norm: float,
) -> np.ndarray:
    """Solve the problems of all classes until each gradient is small enough.

    Parameters
    ----------
    rows : RowsByBlock (n, d)
        From `privsvm.numerics.rows.row_grid.grid_rows`: whole multiples of ``grid_spacing(norm)``.
    codes : ndarray of int (n,)
        Class codes.
    C, smoothing : float
        See `privsvm.solvers.linear.smoothed_hinge.solve_smoothed_hinge`.
    tol : float
        Stop once the distance of each solution to its optimum is certainly at most this.
    linear : ndarray (k, d)
        Linear terms; with one of them, rows of class 1 have the sign 1, with more, those of each problem's own class.
    norm : float
        Public bound on the rows' norm.

    Returns
    -------
    ndarray (k, d)
        The same bits for any blocks and any workers, unless the exact ascent was needed.
    """
    (n_rows, d), spacing = rows.shape, grid_spacing(norm)
    problems = np.array([1]) if linear.shape[0] == 1 else np.arange(linear.shape[0])
    # Initial width: most rows are in the quadratic part from the start.
    widths = [max(smoothing, 2.0 + float(np.linalg.norm(term)) * norm) for term in linear]
    searches = [_Search(-term, np.zeros(d), width) for term, width in zip(linear, widths, strict=True)]
    solutions, waiting = np.zeros_like(linear), list(range(linear.shape[0]))
    progress = [Progress(_PATIENCE) for _ in searches]
    n_passes = 0
    while waiting:
        trials = rounded_points(np.stack([searches[k].trial() for k in waiting]))
        limbs, units = taken_apart(trials, spacing)
        widths_now = np.array([searches[k].smoothing for k in waiting])
        points = _Points(limbs, units, problems[waiting], widths_now, spacing)
        pulls, squares = rows.total(_sums_of_block, codes, arguments=(points,))
        n_passes += 1
        still = []
        for position, k in enumerate(waiting):
            coef, search = trials[position], searches[k]
            pull = pulls[position].astype(np.float64) * (spacing * 2.0**-_SLOPE_BITS)
            gradient = coef + linear[k] + C * pull
            size, term = float(np.linalg.norm(coef)), float(np.linalg.norm(linear[k]))
            # Round-off of slopes, then of the sums here.
            slope = SLOPE_ERROR + 2.0**-70 * d * size * norm / smoothing
            error = C * n_rows * norm * slope + 8.0 * UNIT * (size + term + C * n_rows * norm)
            length = float(np.linalg.norm(gradient))
            last = search.smoothing == smoothing
            if last and length * (1.0 + growth(2.0 * d + 20.0)) + error * (1.0 + 2.0**-40) <= tol:
                solutions[k] = coef
                continue
            if last and progress[k].stuck(length, n_passes):
                signs = np.where(codes == problems[k], 1.0, -1.0)
                held = _all_rows(rows)
                alpha = _slopes(1.0 - signs * (held @ coef), smoothing)
                solutions[k] = ascend_smoothed_exactly(held, signs, C, smoothing, linear[k], tol, -alpha)
                continue
            at_end = search.gradient is not None and (search.size == 1.0 or search.n_steps >= _STEPS)
            if search.goes_on(gradient):
                pass
            elif at_end and not last:
                search.narrow(coef, smoothing)
            else:
                curvature = C / search.smoothing * spacing**2 * 2.0 ** (2 * _CUT_BITS + _SUM_BITS)
                search.turn(coef, gradient, np.eye(d) + curvature * squares[position])
            still.append(k)
        waiting = still
    return solutions
