"""Scaling of rows by noisy statistics of them, paid for out of the privacy budget.

Training by clipped gradients does not need bounded features, but it depends on their scale. If no scale is public, a
part of the budget buys one: Gaussian releases of sums over all rows, in which no row counts for more than 1.

``centre``: every row is divided by its norm, the noisy mean is subtracted, and the rest is divided by its norm again
(centring before private training: Sun, Suresh and Menon 2024, The importance of feature preprocessing for
differentially private linear optimization). A tenth of the budget.

``whiten``, for a few features of unknown scales, none of them negative (negative numbers count as 0 in the search for
the scales, which then is of no use): two noisy steps towards the logarithms of their
centres and one towards their spreads standardise the features, and a noisy second moment then decorrelates them. Four
tenths of the budget. It pays where the squared number of features is well below the number of rows.

Sparse rows become dense, block by block where the table would be large; for ``centre`` they are kept as nonzeros and a
few numbers a row (`privsvm.numerics.rows.centred_grid`). Every row that is added up is on a public grid, its norm
checked in whole numbers, and what becomes of it depends on that row and on earlier releases alone, bit for bit: NumPy's
arithmetic on single numbers, and kernels of our own with a fixed order for the rest. Sums are exact, and their noise is
too (`docs/proofs/noisy_gradients.md`).

With offsets, a constant feature goes with every scaled row before it is divided by its norm; its size is public.

A share f of the budget is a Gaussian release whose squared signal (sensitivity over noise) is the share f of the
squared signal of the one Gaussian release that the budget allows.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from privsvm.base.feature_steps import standardise
from privsvm.families.moments.second_moments import MomentsMechanism, centre_rows, unit_cell_rows
from privsvm.numerics.noise.noise_source import ROUND_UP, NoiseSource, Sensitivity
from privsvm.numerics.rows.centred_grid import CentredCells
from privsvm.numerics.rows.row_blocks import dense_rows, is_by_block, map_rows
from privsvm.numerics.rows.row_grid import grid_rows, grid_spacing
from privsvm.numerics.rows.unit_grid import CELLS, cells_with_constant, unit_rows_on_grid
from privsvm.privacy.accounting import gaussian_noise_multiplier
from privsvm.privacy.events import Neighbours, relation_factor

# Shares of the budget by releases of a scaling.
_SHARES: dict[str, tuple[float, ...]] = {
    "centre": (0.1,),
    "whiten": (1 / 30, 1 / 30, 1 / 30, 0.3),
}
SCALINGS = ("none", *_SHARES)

# Public guesses of ``whiten``: a feature's size, how far a value counts, in spreads, and how long a row of logarithms
# of spreads is.
_TYPICAL_SIZE = 100.0
_FURTHEST = 2.0
_ROW_OF_SPREADS = 1.5
# The mean of log |u| of a standard normal u is -0.635.
_SPREAD_OF_LOGARITHMS = math.exp(0.635)
_SMALLEST_LOGARITHM, _LARGEST_LOGARITHM = -6.0, 1.0
# Weight of the constant that goes with a row into the second moment, and of the noise that its spectrum is lifted by.
_CONSTANT = 0.3
_LIFT = 0.4
# Value of the constant feature for offsets, beside a scaled row of about norm 1.
_OFFSET = 0.2 / math.sqrt(0.96)

# Bits of the grid of rows that are not unit rows.
_SIZE_BITS = 20


def release_multipliers(scaling: str, epsilon: float, delta: float, neighbours: Neighbours) -> tuple[float, ...]:
    """Return the noise multipliers of a scaling's releases.

    They are for the whole budget: standard deviation of the noise over one row's contribution; see
    `SampledGaussianSteps`.
    """
    multiplier = relation_factor(neighbours) * gaussian_noise_multiplier(epsilon, delta)
    return tuple(multiplier / math.sqrt(share) for share in _SHARES[scaling])


@dataclasses.dataclass(frozen=True, kw_only=True)
class ScaledRows:
    """Scaled training rows, and the scaling that a linear model of them needs in prediction.

    Rows are first divided by their norm (``centre``), or their features standardised (``whiten``): as
    ``(x - centre) / spread``, cut at `feature_bound`, with centre and spread (d,) in `features`. Then the mean (d,) is
    subtracted, and the rest multiplied by a symmetric matrix (d, d); None: the identity. The scaled rows (n, d) have
    norm at most 1. With offsets they have one number more, the last: `constant`, divided by the row's own divisor.
    """

    rows: Any
    mean: np.ndarray
    matrix: np.ndarray | None = None
    features: tuple[np.ndarray, ...] = ()
    constant: float = 0.0

    def model(self, coef: np.ndarray) -> tuple[np.ndarray, ...]:
        """Turn weights (k, d) of `rows` into weights and offsets of rows before `mean` is subtracted.

        The length of what `rows` were divided by is left out: it is the same for the scores of all classes. But with
        offsets, rows that were divided by their norm must be again, once the mean is subtracted: the weights are for
        these rows, and the mean is the last returned array. For ``whiten``, `features` come last.
        """
        offsets = np.zeros(coef.shape[0])
        if self.constant > 0.0:
            coef, offsets = coef[:, :-1], coef[:, -1] * self.constant
            if self.matrix is None:
                return np.ascontiguousarray(coef), offsets, self.mean
        unscaled = coef if self.matrix is None else coef @ self.matrix
        return unscaled, offsets - unscaled @ self.mean, *self.features


def feature_bound(n_features: int) -> float:
    """Where ``whiten`` cuts standardised features."""
    return _FURTHEST / math.sqrt(n_features)


def _noisy_sum(cells: Any, bound: float, multiplier: float, source: NoiseSource) -> np.ndarray:
    """Noisy sum of rows of whole numbers and of norm at most `bound`. Sums that do not fit into int64 wrap around."""
    total = cells.sum(axis=0, dtype=np.int64)
    noisy = source.add_rounded_normals(total, multiplier * bound * ROUND_UP, Sensitivity(bound, per_row=True))
    return noisy.astype(np.float64)


def _log(numbers: np.ndarray) -> np.ndarray:
    """Logarithms of positive numbers, off by 1e-14 at most, from sums and products of each number by itself.

    NumPy has several ways to logarithms, and picks one by the array: they round differently.
    """
    mantissa, exponent = np.frexp(numbers)
    low = mantissa < math.sqrt(0.5)
    mantissa, exponent = np.where(low, 2.0 * mantissa, mantissa), exponent - low
    ratio = (mantissa - 1.0) / (mantissa + 1.0)
    square = ratio * ratio
    # 2 artanh(ratio), with |ratio| below 0.172.
    series = np.full(mantissa.shape, 1.0 / 17.0)
    for power in range(15, 0, -2):
        series = series * square + 1.0 / power
    logarithms: np.ndarray = exponent * math.log(2.0) + 2.0 * ratio * series
    return logarithms


def _times_matrix(rows: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    """Rows times a matrix. Each row's sums have one order, whatever the other rows are; BLAS promises no such thing."""
    out = np.zeros((rows.shape[0], matrix.shape[1]))
    for k in range(rows.shape[1]):
        out += rows[:, k, None] * matrix[k]
    return out


def rows_to_scale(X: Any, scaling: str) -> Any:
    """Prepare rows once for the scaling of every release: dense rows, for ``centre`` whole numbers of unit rows."""
    if scaling == "centre":
        return unit_cell_rows(X)
    return X if is_by_block(X) else np.asarray(dense_rows(X), dtype=np.float64)


def _with_constant(rows: Any, constant: float) -> Any:
    """Divide rows, with a constant if there is one, by their norms; truncate them to the grid of unit rows."""
    if isinstance(rows, CentredCells):
        centred, constants, _ = rows.unit(constant)
        return centred.with_column(constants)
    if constant == 0.0:
        return unit_rows_on_grid(rows)
    return cells_with_constant(rows, constant) / CELLS


def scale_rows(
    X: Any,
    scaling: str,
    n_rows: int,
    multipliers: Sequence[float],
    source: NoiseSource,
    neighbours: Neighbours,
    offsets: bool = False,
) -> ScaledRows:
    """Scale training rows by noisy statistics of them.

    Rows come from `rows_to_scale`, their public number is `n_rows`, and multipliers come from `release_multipliers`. A
    replaced row moves second moments by less than twice one row's addition. With `offsets`, rows get a constant
    feature.
    """
    if scaling == "centre":
        return _centre(X, n_rows, multipliers, source, offsets)
    return _whiten(X, n_rows, multipliers, source, neighbours, offsets)


def _centre(cells: Any, n_rows: int, multipliers: Sequence[float], source: NoiseSource, offsets: bool) -> ScaledRows:
    mean = _noisy_sum(cells, CELLS, multipliers[0], source) / (CELLS * n_rows)
    rows = centre_rows(cells, mean)
    if not offsets:
        return ScaledRows(rows=rows, mean=mean)
    n_features = cells.shape[1] + 1
    return ScaledRows(rows=map_rows(rows, _with_constant, _OFFSET, n_features=n_features), mean=mean, constant=_OFFSET)


def _logarithms(rows: np.ndarray) -> np.ndarray:
    return _log(1.0 + np.maximum(rows, 0.0))


def _near_cells(logarithms: np.ndarray, location: np.ndarray) -> np.ndarray:
    """Make cells of a row and a constant, together of norm 1: far rows count for less."""
    return cells_with_constant(logarithms - location, 1.0)


def _size_cells(logarithms: np.ndarray, location: np.ndarray, bound: float) -> np.ndarray:
    sizes = _log(np.maximum(np.abs(logarithms - location), 1e-9))
    sizes = np.clip(sizes, _SMALLEST_LOGARITHM, _LARGEST_LOGARITHM) + 2.0
    cells: np.ndarray = grid_rows(sizes, bound, _SIZE_BITS) / grid_spacing(bound, _SIZE_BITS)
    return cells


def _whiten_rows(features: np.ndarray, mean: np.ndarray, matrix: np.ndarray, constant: float) -> Any:
    return _with_constant(_times_matrix(features - mean, matrix), constant)


def _whiten(
    X: Any,
    n_rows: int,
    multipliers: Sequence[float],
    source: NoiseSource,
    neighbours: Neighbours,
    offsets: bool,
) -> ScaledRows:
    n_features = X.shape[1]
    location = np.full(n_features, math.log(_TYPICAL_SIZE))
    logarithms = map_rows(X, _logarithms)
    for multiplier in multipliers[:2]:
        cells = map_rows(logarithms, _near_cells, location, n_features=n_features + 1)
        total = _noisy_sum(cells, CELLS, multiplier, source) / CELLS
        # Rows that are mapped later must see this one.
        location = location + total[:-1] / max(total[-1], 0.05 * n_rows)
    bound = _ROW_OF_SPREADS * math.sqrt(n_features)
    spacing = grid_spacing(bound, _SIZE_BITS)
    sizes = map_rows(logarithms, _size_cells, location, bound)
    mean_size = _noisy_sum(sizes, bound / spacing, multipliers[2], source)
    mean_size *= spacing / n_rows
    centre = np.expm1(np.clip(location, -30.0, 30.0))
    spread = (centre + 1.0) * np.exp(np.clip(mean_size - 2.0, _SMALLEST_LOGARITHM, _LARGEST_LOGARITHM))
    spread *= _SPREAD_OF_LOGARITHMS * math.sqrt(n_features)
    features = map_rows(X, standardise, centre, spread, feature_bound(n_features))
    cells = map_rows(features, cells_with_constant, _CONSTANT, n_features=n_features + 1)
    mechanism = MomentsMechanism(n_features=n_features + 1, n_codes=0, neighbours=neighbours, multiplier=multipliers[3])
    moment = mechanism.release(cells, np.zeros((cells.shape[0], 0)), source).gram / n_rows
    weight = max(moment[-1, -1], 0.02)
    mean = moment[:-1, -1] * _CONSTANT / weight
    covariance = moment[:-1, :-1] * _CONSTANT**2 / weight - np.outer(mean, mean)
    size = max(float(np.trace(covariance)), 1e-3 * n_features)
    covariance /= size
    spectrum, directions = np.linalg.eigh(covariance)
    spectrum = np.maximum(spectrum, 0.0) + _LIFT * mechanism.noise_scale * math.sqrt(n_features) / n_rows
    matrix = (directions * spectrum**-0.5) @ directions.T
    # About the length of a row.
    constant = _OFFSET * math.sqrt(size * n_features) if offsets else 0.0
    rows = map_rows(features, _whiten_rows, mean, matrix, constant, n_features=n_features + offsets)
    return ScaledRows(rows=rows, mean=mean, matrix=matrix, features=(centre, spread), constant=constant)
