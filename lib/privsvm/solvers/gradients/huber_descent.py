"""Full-batch descent on noisy sums of clipped gradients of the Huber hinge.

Rows are unit rows in whole numbers of 2^-20 (`privsvm.numerics.rows.unit_grid`), weights are rounded to whole numbers
of norm below 2^32, and slopes to whole numbers of 2^-18. So every product and every partial sum of a matrix product is
a whole number below 2^53: whatever order BLAS takes, float64 is exact, and a row's part in a sum depends on that row,
its label, the weights and public numbers alone, bit for bit. What comes after the scores is additions, products,
quotients and roots number by number, which IEEE 754 rounds in one way. `docs/proofs/recommended.md` has the bounds.

The loss of a row with label y and scores z is ``sum_{k != y} huber(z_y - z_k)``, where the slope of ``huber`` is -1 up
to a margin of 0 and grows linearly to 0 at a margin of 2. A row's slopes are clipped to norm 1, and then multiplied by
the weight of its class.

For two classes there is one vector v: the scores are ``z`` and ``-z`` over the root of 2, with ``z = v x``. For more,
noise is projected to the vectors that add up to zero, as the sums do before it.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any, NamedTuple

import numpy as np

from privsvm.numerics.compiled.jit import jit
from privsvm.numerics.noise.noise_source import ROUND_UP, NoiseSource, Sensitivity
from privsvm.numerics.rows.row_blocks import dense_rows, is_by_block, map_rows
from privsvm.numerics.rows.unit_grid import CELLS

# Margin at which the slope ends, and over which it falls.
_CORNER, _WIDTH = 1.0, 1.0
_ROOT = math.sqrt(2.0)
_SLOPE_BITS = 18
_BOUND = 2.0**_SLOPE_BITS
# Fixed point: sums count in 2^-38; noise is on a grid so fine that rounding a sum costs a row 2^-20 of its bound, or a
# little more.
GRADIENT_BITS = 38
_NOISE_BITS = 20
# Exact sums: rows whose products, below 2^38, are summed in float64: at most 2^14. Fewer stay in the cache.
_EXACT_ROWS = 2**14
_CACHED = 2**17
# Weights are rounded to a norm of about this.
_WEIGHT_BITS = 31
_LEAST_WEIGHTS, _LARGEST_WEIGHTS = 2.0**-400, 2.0**100
# Cells per standard deviation: more take long to draw.
_MANY_CELLS = 2.0**40
# Round-off of a quotient, with margin.
_ROUND_OFF = 1.0 - 2.0**-40


@dataclasses.dataclass(frozen=True, kw_only=True)
class HuberDescent:
    """Steps and noise of a descent: T steps, each along one noisy sum over all rows.

    `length` is the length of all steps together, as a multiple of the sum of clipped gradients. `noise_multiplier` is
    the standard deviation of the noise on every number of a sum, over the norm that one row adds; 0 for none.
    `whole_multiplier` is the noise multiplier of a larger release, which all steps end; None if each step is a release
    by itself. `averaged`, above 0 and at most 1, is the share of steps, the last ones, whose weights are averaged.
    """

    n_steps: int
    length: float
    noise_multiplier: float = 0.0
    whole_multiplier: float | None = None
    averaged: float = 0.3

    @property
    def noise_variance(self) -> float:
        """Variance of the noise in a weight, were gradients the same whatever the weights are."""
        n_steps = self.n_steps * (1.0 - 2.0 / 3.0 * self.averaged)
        return n_steps * (self.length / self.n_steps * self.noise_multiplier) ** 2


def _round_weights(weights: np.ndarray) -> tuple[np.ndarray, float]:
    """Round weights to whole numbers of total norm below 2^32; return them and the unit."""
    numbers = weights.ravel(order="K")
    with np.errstate(over="ignore", invalid="ignore"):
        norm = math.sqrt(numbers.dot(numbers))
    if not _LEAST_WEIGHTS <= norm <= _LARGEST_WEIGHTS:
        # Weights are negligible, or training has diverged.
        return np.zeros_like(weights), 0.0
    scale = math.ldexp(1.0, _WEIGHT_BITS - math.frexp(norm)[1])
    return np.rint(weights * scale), 1.0 / scale


def exact_product(cells: Any, matrix: np.ndarray) -> Any:
    """Multiply whole rows (n, d) of norm at most 2^20 with a finite matrix (d, m) rounded to be exact.

    Each row of the product (n, m) depends on that row and the matrix alone, bit for bit. For the rows see
    `privsvm.numerics.rows.unit_grid.unit_cells`.
    """
    if is_by_block(cells):
        return map_rows(cells, exact_product, matrix, n_features=matrix.shape[1])
    rounded, unit = _round_weights(matrix)
    product: np.ndarray = dense_rows(cells) @ rounded
    product *= unit / CELLS
    return product


def condition_of_product(matrix: np.ndarray) -> float:
    """Condition number of what `exact_product` multiplies rows by.

    Rounded up, and infinite beyond a million.
    """
    spectrum = np.linalg.svd(_round_weights(matrix)[0], compute_uv=False)
    least = float(spectrum.min())
    condition = float(spectrum.max()) / least if least > 0.0 else math.inf
    return condition * (1.0 + 1e-6) if condition < 1e6 else math.inf


def slope_bits(n_classes: int) -> int:
    """Return the bits of a slope whose squares have exact sums over the classes."""
    return min(_SLOPE_BITS, 26 - math.ceil(math.log2(n_classes)))


class _RowBlock(NamedTuple):
    """Some rows, and what their slopes depend on that is the same in all steps."""

    cells: np.ndarray
    codes: np.ndarray
    # Bound on the norm of each row's slopes.
    bounds: np.ndarray


def _row_blocks(cells: np.ndarray, codes: np.ndarray, n_classes: int, class_weights: np.ndarray) -> list[_RowBlock]:
    """Rows in parts whose sums are exact, and which stay in the cache."""
    codes = codes.astype(np.int64)
    bounds = class_weights[codes] * (_BOUND if n_classes == 2 else _BOUND * _ROUND_OFF)
    size = max(64, min(_EXACT_ROWS, _CACHED // max(cells.shape[1], 1)))
    return [
        _RowBlock(*(array[start : start + size] for array in (cells, codes, bounds)))
        for start in range(0, cells.shape[0], size)
    ]


def _slopes_of_two(scores: np.ndarray, unit: float, block: _RowBlock) -> np.ndarray:
    """Return the slopes of two classes (n, 1), as `_set_slopes`: NumPy is fast enough, and compiles nothing."""
    sign = np.where(block.codes == 1, 1.0, -1.0)[:, None]
    slopes = np.clip((_CORNER - _ROOT * sign * (scores * unit)) * (_ROOT / _WIDTH), 0.0, 1.0)
    rounded: np.ndarray = -sign * np.minimum(np.trunc(slopes * block.bounds[:, None]), _BOUND)
    return rounded


@jit()
def _set_slopes(scores, unit, codes, bounds, steepest):
    """Replace scores (n, c) of several classes, in units of `unit`, by clipped slopes as whole numbers of 2^-18.

    In these whole numbers, a row of slopes has at most the norm in `bounds`, and at most 2^18; sums of whole numbers
    are exact. `steepest` is a slope of 1 before clipping.
    """
    n_rows, n_vectors = scores.shape
    for i in range(n_rows):
        row, label = scores[i], codes[i]
        start = row[label] * unit - _CORNER
        row[label] = total = squares = 0.0
        for k in range(n_vectors):
            if k != label:
                slope = np.trunc(min(max((row[k] * unit - start) * (steepest / _WIDTH), 0.0), steepest))
                row[k] = slope
                total += slope
                squares += slope * slope
        factor = bounds[i] / max(math.sqrt(squares + total * total), steepest)
        total = squares = 0.0
        for k in range(n_vectors):
            slope = np.trunc(row[k] * factor)
            row[k] = slope
            total += slope
            squares += slope * slope
        row[label] = -total
        # Safety net: a row beyond the bound, which cannot occur, would be dropped.
        if squares + total * total > _BOUND * _BOUND:
            row[:] = 0.0


def _sum_of_blocks(row_blocks: list[_RowBlock], n_classes: int, weights: np.ndarray) -> np.ndarray:
    """Do what `gradient_cells` says, for rows in parts."""
    total = np.zeros(weights.shape, dtype=np.int64)
    rounded, unit = _round_weights(weights)
    steepest = math.ldexp(1.0, slope_bits(n_classes))
    for block in row_blocks:
        slopes = block.cells @ rounded.T
        if n_classes == 2:
            slopes = _slopes_of_two(slopes, unit / CELLS, block)
        else:
            _set_slopes(slopes, unit / CELLS, block.codes, block.bounds, steepest)
        total += (slopes.T @ block.cells).astype(np.int64)
    return total


def gradient_cells(
    cells: Any, codes: np.ndarray, n_classes: int, class_weights: np.ndarray, weights: np.ndarray
) -> np.ndarray:
    """Sum the clipped gradients of all rows, before rounding and noise.

    `cells` (n, d) are unit rows as whole numbers of 2^-20, class weights (c,) lie between 0 and 1, and weights are
    (k, d): k is 1 for two classes, and c for more. Returns int64 (k, d), whole numbers of 2^-38. One row adds at most
    2^38 to its norm. A sum beyond int64 wraps around.
    """
    if is_by_block(cells):
        total: np.ndarray = cells.total(_gradient_of_block, codes, arguments=(n_classes, class_weights, weights))
        return total
    return _sum_of_blocks(_row_blocks(cells, codes, n_classes, class_weights), n_classes, weights)


def _gradient_of_block(
    cells: np.ndarray, codes: np.ndarray, n_classes: int, class_weights: np.ndarray, weights: np.ndarray, first: int
) -> np.ndarray:
    return gradient_cells(cells, codes, n_classes, class_weights, weights)


class _StepNoise:
    """The noise of one descent's steps, and where it comes from."""

    def __init__(self, descent: HuberDescent, size: int, source: NoiseSource) -> None:
        multiplier, whole_multiplier = descent.noise_multiplier, descent.whole_multiplier
        self.source, self.is_none = source, multiplier == 0.0
        if self.is_none:
            return
        # The noise's grid is wider than the sums' by this power of two.
        shift = max(0, GRADIENT_BITS - _NOISE_BITS - math.ceil(math.log2(size) / 2.0))
        self.shift = shift + max(0, math.ceil(math.log2(multiplier * 2.0 ** (GRADIENT_BITS - shift) / _MANY_CELLS)))
        self.half = (np.int64(1) << self.shift) >> 1
        self.grid = 2.0 ** (self.shift - GRADIENT_BITS)
        # Sensitivity: rounding adds at most one step in each number.
        one_row = (2.0 ** (GRADIENT_BITS - self.shift) + math.sqrt(size)) * ROUND_UP
        self.sigma = multiplier * one_row * ROUND_UP
        # Budgets stated for the last step, and for the steps before it.
        self.stated = self.stated_before = Sensitivity(one_row, per_row=True, grid=self.grid)
        if whole_multiplier is not None:
            share = one_row * multiplier / whole_multiplier
            self.stated = Sensitivity(share, per_row=True, grid=self.grid)
            self.stated_before = Sensitivity(share, per_row=True, grid=self.grid, more=True)

    def release(self, total: np.ndarray, last: bool) -> np.ndarray:
        """Release a sum of clipped gradients."""
        if self.is_none:
            return total * 2.0**-GRADIENT_BITS
        rounded = (total + self.half) >> self.shift
        noisy = self.source.add_rounded_normals(rounded, self.sigma, self.stated if last else self.stated_before)
        # Post-processing: the release is reduced by the modulus of the sums.
        released: np.ndarray = ((noisy << self.shift) >> self.shift) * self.grid
        return released


def descend(
    cells: Any,
    codes: np.ndarray,
    n_classes: int,
    class_weights: np.ndarray,
    descent: HuberDescent,
    source: NoiseSource,
    preconditioner: np.ndarray | None = None,
) -> np.ndarray:
    """Train from weights of zero on the rows of `gradient_cells`.

    The preconditioner (d, d), made of public numbers and earlier releases, multiplies the released gradients. Returns
    the mean (c, d) of the weights of the last steps (`HuberDescent.averaged`); the vectors add up to zero.
    """
    n_vectors = 1 if n_classes == 2 else n_classes
    shape = n_vectors, cells.shape[1]
    weights, mean = np.zeros(shape), np.zeros(shape)
    first = descent.n_steps - math.ceil(descent.averaged * descent.n_steps)
    noise = _StepNoise(descent, weights.size, source)
    row_blocks = None if is_by_block(cells) else _row_blocks(cells, codes, n_classes, class_weights)
    length = descent.length / descent.n_steps
    for step in range(descent.n_steps):
        if row_blocks is None:
            total = gradient_cells(cells, codes, n_classes, class_weights, weights)
        else:
            total = _sum_of_blocks(row_blocks, n_classes, weights)
        gradient = noise.release(total, step == descent.n_steps - 1)
        if n_vectors > 1:
            gradient -= gradient.sum(axis=0) / n_vectors
        if preconditioner is not None:
            gradient = gradient @ preconditioner
        weights = weights - length * gradient
        if step >= first:
            mean += (weights - mean) / (step - first + 1)
    return mean if n_vectors > 1 else np.concatenate([-mean, mean]) / _ROOT


def warm_up() -> None:
    """Compile what this module runs."""
    gradient_cells(np.zeros((1, 1)), np.zeros(1, dtype=np.int64), 3, np.ones(3), np.ones((3, 1)))
