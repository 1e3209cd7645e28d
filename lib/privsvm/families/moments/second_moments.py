"""Noisy means and second moments of unit rows and their labels: exact sums, exact noise, and one joint sensitivity.

Rows z have norm 1 at most, and a class has a code t, a unit vector. Their moments are the Gram matrix, the sum of
``z z'``, and the cross moments, the sum of ``z t'``. Both are blocks of the sum of ``w w'`` for the rows ``w = (z, t)``
of squared norm 2 at most. Without the third block, and with every number off the diagonal written once and counted
with the root of 2, that is a vector of which one replaced row changes ``2 sqrt(2)`` at most, since
``||w w' - v v'||^2 = |w|^4 + |v|^4 - 2 (w v)^2``: no more than the cross moments alone need. One row that is added
changes it by ``sqrt(3)``. The Gram matrix alone changes by ``sqrt(2)`` and by 1. Two rows that move it so far are at a
right angle, and those that move sums of gradients most are on one line: under ``replace_one``, where such sums
follow, a small share of the budget buys the Gram matrix for nothing (`share_beside`). The proofs are in
`docs/proofs/second_moments.md`.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any, NamedTuple

import numpy as np

from privsvm.numerics.noise.noise_source import NoiseSource, Sensitivity
from privsvm.numerics.rows.centred_grid import CentredCells
from privsvm.numerics.rows.row_blocks import dense_rows, is_by_block, map_rows
from privsvm.numerics.rows.unit_grid import CELLS, cells_with_constant, unit_cells, unit_rows_on_grid
from privsvm.privacy.accounting import gaussian_noise_multiplier
from privsvm.privacy.events import Neighbours, relation_factor

# The constant feature of a row of length 1, and its value beside a unit row before both are divided by their norm.
CONSTANT = 0.2
_CONSTANT = CONSTANT / math.sqrt(1.0 - CONSTANT**2)

# Bits of a product of two whole numbers, and rows whose products are exact in float64.
_PRODUCT_BITS = 40
_EXACT_ROWS = 2**12
# Rounding costs this share of the sensitivity at most, unless the noise has more cells than are quickly drawn.
_ROUNDING_BITS = 20
_MANY_CELLS = 2.0**40
# A few operations are off by less.
_ROUND_UP = 1.0 + 2.0**-48

# Truncation turns a row so little that this times a root of its length, in cells, covers it.
_TURNED = 8.0

# The share of the budget that buys the centre.
_SMALLEST_SHARE, _LARGEST_SHARE = 0.02, 0.25


def simplex_codes(n_classes: int) -> np.ndarray:
    """Make the codes of classes: unit vectors as far from each other as can be.

    In the rows of (c, c - 1). Two of them have the product ``-1 / (c - 1)``. Two classes have the codes -1 and 1.
    """
    codes = np.zeros((n_classes, n_classes - 1))
    for j in range(1, n_classes):
        codes[:j, j - 1], codes[j, j - 1] = -1.0, j
        codes[: j + 1, j - 1] /= math.sqrt(j * (j + 1))
    return codes * math.sqrt(n_classes / (n_classes - 1))


def code_cells(n_classes: int) -> np.ndarray:
    """Codes of classes (c, c - 1) in whole numbers of 2^-20, truncated toward zero; no squares add up to above 2^40."""
    cells = np.trunc(simplex_codes(n_classes) * CELLS)
    for row in cells:
        while sum(int(cell) ** 2 for cell in row) > 2**_PRODUCT_BITS:
            row -= np.sign(row)
    return cells


def rows_per_noise(n_rows: int, epsilon: float, delta: float, neighbours: Neighbours) -> float:
    """Return how many rows add up to the noise on a sum of unit rows that has the whole budget; public."""
    return n_rows / (relation_factor(neighbours) * gaussian_noise_multiplier(epsilon, delta))


def share_of_centre(n_features: int, rows: float) -> float:
    """Choose the share of the budget that buys the centre, from public numbers.

    Enough for a noise of two thirds of a row on the mean, for `rows_per_noise` rows, but from 2 % to 25 %.
    """
    return min(max(1.5 * math.sqrt(n_features) / rows, _SMALLEST_SHARE), _LARGEST_SHARE)


def share_beside(moment: float, joint: float, condition: float, n_features: int, rounding: float) -> float:
    """Share of a budget for sums of gradients beside a Gram matrix, where a row is replaced: more than the rest.

    Rows z and v at an angle a move the Gram matrix by ``sqrt(2) sin(a)`` and, times a matrix, are at an angle b with
    ``tan(b / 2) >= tan(a / 2) / condition`` (Bauer and Householder 1960). Slopes times these rows move a sum of
    gradients by ``2 cos(b / 2)`` at most. So with ``x = tan(a / 2)^2`` both together need ``moment 4 x / (1 + x)^2 +
    steps / (1 + x / condition^2)``, for the worst x from 0 to 1.

    Rounding moves the Gram matrix of rows at any angle, by the share r of the sensitivity at most. The square of ``(1 -
    r) sin(a) + r`` is at most ``(1 - r) sin(a)^2 + r``: of the moment's share, the part r is gone for every x.

    `moment` is the share of the Gram matrix, were it released alone, and `joint` the share of both together.
    `condition` is the condition number of the matrix that rows are multiplied by before their gradients. Truncation to
    whole numbers turns and shortens a row of `n_features` a little. `rounding` is `MomentsMechanism.rounding_share`.
    The result lies between ``joint - moment`` and `joint`.
    """
    flat, least = condition**-2.0, joint - moment
    # Rounding, and rows that truncation makes shorter than 1, move the Gram matrix whatever the angle is.
    joint -= moment * (rounding + 2.0 * n_features / CELLS**2)
    moment *= 1.0 - rounding
    # The derivative is 0 at flat joint (1 + x)^3 = 4 moment (1 - (1 - 2 flat) x).
    cubic = flat * joint * np.array([1.0, 3.0, 3.0, 1.0])
    cubic[2:] += 4.0 * moment * np.array([1.0 - 2.0 * flat, -1.0])
    roots = np.roots(cubic) if np.any(cubic) else np.empty(0)
    x = np.append(np.clip(roots.real, 0.0, 1.0), [0.0, 1.0])
    most = float(((joint - 4.0 * moment * x / (1.0 + x) ** 2) * (1.0 + flat * x)).min())
    return max(most * (1.0 - _TURNED * (math.sqrt(n_features) + 1.0) / CELLS), least)


def noisy_centre(
    cells: Any, n_rows: float, multiplier: float, source: NoiseSource, public: np.ndarray | float = 0.0
) -> np.ndarray:
    """Release the mean of unit rows, shrunk toward a public one by its noise.

    Rows are whole numbers of 2^-20, of norm 2^20 at most, of which there are publicly `n_rows`. `multiplier` is the
    standard deviation of the noise over one row's addition. How far the sum with exact noise is from the public sum, by
    ``1 - d sigma^2 / ||difference||^2`` or 0 (James and Stein), over the number of rows.
    """
    sigma = multiplier * CELLS * _ROUND_UP
    exact = cells.sum(axis=0, dtype=np.int64)
    total = source.add_rounded_normals(exact, sigma, Sensitivity(CELLS, per_row=True)).astype(np.float64)
    total -= public * (CELLS * n_rows)
    square = float(total @ total)
    kept = max(0.0, 1.0 - cells.shape[1] * sigma**2 / square) if square > 0.0 else 0.0
    centre: np.ndarray = total * (kept / (CELLS * n_rows)) + public
    return centre


def unit_cell_rows(X: Any) -> Any:
    """Turn rows into unit rows of whole numbers of 2^-20, once for all releases of a training."""
    return map_rows(X if is_by_block(X) else dense_rows(X), _unit)


def _unit(rows: Any) -> Any:
    return unit_cells(rows)[0]


def centre_rows(cells: Any, centre: np.ndarray) -> Any:
    """Subtract a released centre from rows (n, d) of whole numbers of 2^-20, and divide by their norms, row by row."""
    if is_by_block(cells):
        return map_rows(cells, centre_rows, centre)
    if isinstance(cells, np.ndarray):
        return unit_rows_on_grid(cells / CELLS - centre)
    return CentredCells.of(cells, centre)


def constant_feature(rows: Any, constant: float = _CONSTANT) -> tuple[Any, float, float]:
    """Append a constant to unit rows and divide by the norm of both.

    Returns whole numbers (n, d + 1) of 2^-20, whose squares add up to at most 2^40, and two numbers scale and constant:
    a unit row becomes ``(scale row, constant)``.
    """
    scale = 1.0 / math.hypot(1.0, constant)
    return map_rows(rows, _with_constant, constant, n_features=rows.shape[1] + 1), scale, constant * scale


def _with_constant(rows: Any, constant: float) -> Any:
    if isinstance(rows, CentredCells):
        centred, constants, _ = rows.unit(constant)
        return centred.with_column(constants)
    return cells_with_constant(rows, constant)


def exact_moments(cells: Any, codes: Any) -> np.ndarray:
    """Add up outer products of whole numbers below 2^20, exactly.

    Of rows (n, d) and the codes (n, k) of their classes: Gram matrix and cross moments side by side (d, d + k). Sums
    beyond int64 wrap around.
    """
    if is_by_block(cells):
        moments: np.ndarray = cells.total(_moments_of_block, codes)
        return moments
    n_features = cells.shape[1]
    total = np.zeros((n_features, n_features + codes.shape[1]), dtype=np.int64)
    for start in range(0, cells.shape[0], _EXACT_ROWS):
        block = cells[start : start + _EXACT_ROWS]
        # At most 2^52: exact whatever the order. Of a matrix with itself, BLAS computes one half.
        total[:, :n_features] += (block.T @ block).astype(np.int64)
        total[:, n_features:] += (block.T @ codes[start : start + _EXACT_ROWS]).astype(np.int64)
    return total


def _moments_of_block(cells: np.ndarray, codes: np.ndarray, first: int) -> np.ndarray:
    return exact_moments(cells, codes)


class Moments(NamedTuple):
    """Released moments."""

    # (d, d), symmetric.
    gram: np.ndarray
    # (d, k).
    cross: np.ndarray


def solve_noisy_moments(moments: Moments, spread: float) -> np.ndarray:
    """Solve least squares from noisy moments.

    ``f(A) B`` with ``f(w) = 1 / sqrt(w^2 + lambda^2)`` and ``lambda = spread sqrt(d)``, where `spread` is the standard
    deviation of the noise on each number of the moments A and B.
    """
    spectrum, directions = np.linalg.eigh(moments.gram)
    damped = 1.0 / np.hypot(spectrum, spread * math.sqrt(spectrum.size))
    weights: np.ndarray = (directions * damped) @ (directions.T @ moments.cross)
    return weights


@dataclasses.dataclass(frozen=True, kw_only=True)
class MomentsMechanism:
    """Release the moments of rows of norm 1 at most, and of the codes of their classes.

    The length d of a row and k of a code are public; without codes (0) the Gram matrix is released alone. `multiplier`
    is the standard deviation of the noise over the norm that one row adds, half of the change by a replaced row.
    `whole_multiplier` is the multiplier of a larger release that begins with this one; None if there is none. Noise is
    added in whole numbers of ``2^(shift - 40)``. `sensitivity` bounds the change that one row makes to the vector
    described at the head of this module, rounding included: `rounding_share` of it, near 1 where the noise's grid is
    coarse. `noise_scale` is the standard deviation of the noise on each of its numbers; `spread`, less by a root of 2,
    is for cross moments and off the diagonal of the Gram matrix. `cells_sensitivity` and `sigma` are in units of the
    noise's grid, `exact_sensitivity` is without rounding.
    """

    n_features: int
    n_codes: int
    neighbours: Neighbours
    multiplier: float
    whole_multiplier: float | None = None

    shift: int = dataclasses.field(init=False)
    exact_sensitivity: float = dataclasses.field(init=False)
    cells_sensitivity: float = dataclasses.field(init=False)
    rounding_share: float = dataclasses.field(init=False)
    sigma: float = dataclasses.field(init=False)
    sensitivity: float = dataclasses.field(init=False)
    noise_scale: float = dataclasses.field(init=False)
    spread: float = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        size = self.n_features + self.n_codes
        shift = max(0, _PRODUCT_BITS - _ROUNDING_BITS - math.ceil(math.log2(size)))
        cells = self.multiplier * 2.0 ** (_PRODUCT_BITS - shift + 1)
        shift += max(0, math.ceil(math.log2(cells / _MANY_CELLS)))
        unit, labelled = 2.0 ** (shift - _PRODUCT_BITS), self.n_codes > 0
        if self.neighbours == "replace_one":
            exact = math.sqrt(8.0 if labelled else 2.0)
        else:
            exact = math.sqrt(3.0 if labelled else 1.0)
        # Rounding moves each of two numbers by half a unit at most. There are d of weight 1 and, with the root of 2,
        # d (d - 1) / 2 + d k others: sqrt(d^2 + 2 d k) in all.
        rounding = size if shift > 0 else 0
        in_cells = (exact * 2.0 ** (_PRODUCT_BITS - shift) + rounding) * _ROUND_UP
        sigma = self.multiplier * in_cells / relation_factor(self.neighbours) * _ROUND_UP
        vars(self).update(
            shift=shift,
            exact_sensitivity=exact,
            cells_sensitivity=in_cells,
            rounding_share=rounding / in_cells * _ROUND_UP**2,
            sigma=sigma,
            sensitivity=in_cells * unit,
            noise_scale=sigma * unit,
            spread=sigma * unit / math.sqrt(2.0),
        )

    def rounded(self, exact: np.ndarray) -> np.ndarray:
        """Round exact moments (d, d + k) to the noise's grid; whole numbers of it."""
        half = (1 << self.shift) >> 1
        rounded: np.ndarray = (exact + half) >> self.shift
        return rounded

    def release(self, cells: Any, codes: Any, source: NoiseSource) -> Moments:
        """Release noisy moments.

        Rows and the codes of their classes, rows of `code_cells`, are whole numbers of 2^-20, of norm 2^20 at most.
        """
        return self.noisy(exact_moments(cells, codes), source)

    def noisy(self, exact: np.ndarray, source: NoiseSource) -> Moments:
        """Release exact moments (d, d + k) of `exact_moments` with noise."""
        n_features = self.n_features
        sums = self.rounded(exact)
        gram, cross = sums[:, :n_features], sums[:, n_features:]
        root_half = math.sqrt(0.5)
        others = self.sigma * root_half * _ROUND_UP
        diagonal, upper = np.diag_indices(n_features), np.triu_indices(n_features, 1)
        follows = self.whole_multiplier is not None
        sensitivity = self.cells_sensitivity * self.multiplier / (self.whole_multiplier or self.multiplier)
        stated = Sensitivity(sensitivity, more=True)
        gram[diagonal] = source.add_rounded_normals(gram[diagonal], self.sigma, stated)
        stated = Sensitivity(sensitivity * root_half, more=self.n_codes > 0 or follows)
        gram[upper] = source.add_rounded_normals(gram[upper], others, stated)
        gram[upper[::-1]] = gram[upper]
        if self.n_codes:
            cross = source.add_rounded_normals(cross, others, stated._replace(more=follows))
        # Reduced by the modulus of the sums, which may have wrapped around: a function of the exact ones.
        unit = 2.0 ** (self.shift - _PRODUCT_BITS)
        return Moments(*(((sums << self.shift) >> self.shift) * unit for sums in (gram, cross)))

    def largest_distance(self) -> float:
        """Distance of the moments of two rows as far from each other as rows with a constant feature are, and noisy.

        Of two opposite rows with one label, or of one row and none: nearly the sensitivity. Without labels, of rows at
        a right angle to each other, if they have two features.
        """
        rows = np.zeros((2, self.n_features - 1))
        rows[:, 0] = 1.0, -1.0
        if self.n_codes == 0 and rows.shape[1] > 1:
            rows[1, :2] = -(_CONSTANT**2), math.sqrt(1.0 - _CONSTANT**4)
        cells = constant_feature(rows)[0]
        codes = np.zeros((2, self.n_codes))
        codes[:, :1] = CELLS
        first, second = (exact_moments(cells[i : i + 1], codes[i : i + 1]) for i in range(2))
        moved = (first - second if self.neighbours == "replace_one" else first) * 2.0**-_PRODUCT_BITS
        gram, cross = moved[:, : self.n_features], moved[:, self.n_features :]
        return math.sqrt(float(np.square(gram).sum() + 2.0 * np.square(cross).sum()))
