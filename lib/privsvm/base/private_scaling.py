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

Sparse rows become dense.

A share f of the budget is a Gaussian release whose squared signal (sensitivity over noise) is the share f of that of
the one Gaussian release that the budget allows.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse

from privsvm.numerics.rows import row_norms, unit_rows
from privsvm.privacy.accounting import gaussian_noise_multiplier
from privsvm.privacy.guarantee import Neighbours

__all__ = ["SCALINGS", "ScaledRows", "feature_bound", "release_multipliers", "rows_to_scale", "scale_rows"]

# What each scaling releases, as shares of the budget.
_SHARES: dict[str, tuple[float, ...]] = {
    "none": (),
    "centre": (0.1,),
    "whiten": (1 / 30, 1 / 30, 1 / 30, 0.3),
}
SCALINGS = tuple(_SHARES)

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


def release_multipliers(scaling: str, epsilon: float, delta: float, neighbours: Neighbours) -> tuple[float, ...]:
    """Noise multipliers of what a scaling releases.

    Parameters
    ----------
    scaling : {"none", "centre", "whiten"}
        The scaling.
    epsilon, delta : float
        The whole budget.
    neighbours : {"replace_one", "add_remove"}
        The relation.

    Returns
    -------
    tuple of float
        Standard deviation of the noise over what one row adds or takes away; see `SampledGaussianSteps`.
    """
    factor = 2.0 if neighbours == "replace_one" else 1.0
    return tuple(factor * gaussian_noise_multiplier(epsilon, delta) / math.sqrt(share) for share in _SHARES[scaling])


@dataclasses.dataclass(frozen=True, kw_only=True)
class ScaledRows:
    """Scaled training rows, and how a linear model of them reads rows as they are.

    Rows are first divided by their norm (``centre``), or their features standardised (``whiten``).

    Attributes
    ----------
    rows : ndarray (n, d)
        Rows of norm at most 1.
    mean : ndarray (d,)
        Is then subtracted.
    matrix : ndarray (d, d) or None
        Symmetric; multiplies the rest. None: the identity.
    features : tuple of ndarray (d,)
        For ``whiten``: `centre` and `spread`; features are taken as ``(x - centre) / spread``, cut at `feature_bound`.
    """

    rows: np.ndarray
    mean: np.ndarray
    matrix: np.ndarray | None = None
    features: tuple[np.ndarray, ...] = ()

    def model(self, coef: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Turn weights (k, d) of `rows` into weights and offsets of rows before `mean` is subtracted.

        The length of what `rows` were divided by is left out: it is the same for the scores of all classes.
        """
        own = coef if self.matrix is None else coef @ self.matrix
        return own, -own @ self.mean


def feature_bound(n_features: int) -> float:
    """Where ``whiten`` cuts standardised features."""
    return _FURTHEST / math.sqrt(n_features)


def _noisy_sum(rows: np.ndarray, bound: float, multiplier: float, rng: np.random.Generator) -> np.ndarray:
    """Noisy sum of rows of norm at most `bound`."""
    released: np.ndarray = rows.sum(axis=0) + rng.normal(0.0, multiplier * bound, size=rows.shape[1])
    return released


def _noisy_moment(rows: np.ndarray, multiplier: float, rng: np.random.Generator) -> np.ndarray:
    """Noisy sum of the outer products of rows of norm at most 1 with themselves; symmetric."""
    # The upper triangle, with the numbers off the diagonal times the root of 2, has the row's squared norm.
    noise = rng.normal(0.0, multiplier, size=(rows.shape[1], rows.shape[1]))
    noise = np.triu(noise, 1) / math.sqrt(2.0) + np.diag(np.diag(noise))
    released: np.ndarray = rows.T @ rows + noise + np.triu(noise, 1).T
    return released


def rows_to_scale(X: Any, scaling: str) -> np.ndarray:
    """Do once what the scaling of every release begins with: dense rows, of norm 1 for ``centre``."""
    X = X.toarray() if scipy.sparse.issparse(X) else X
    rows: np.ndarray = unit_rows(X) if scaling == "centre" else X
    return rows


def scale_rows(X: np.ndarray, scaling: str, n_rows: int, multipliers: Sequence[float], rng: np.random.Generator) -> Any:
    """Scale training rows by noisy statistics of them.

    Parameters
    ----------
    X : ndarray (n, d)
        Training rows after `rows_to_scale`.
    scaling : {"centre", "whiten"}
        The scaling.
    n_rows : int
        Public number of rows.
    multipliers : sequence of float
        See `release_multipliers`.
    rng : numpy.random.Generator
        Source of the noise.

    Returns
    -------
    ScaledRows
    """
    return (_centre if scaling == "centre" else _whiten)(X, n_rows, multipliers, rng)


def _centre(rows: np.ndarray, n_rows: int, multipliers: Sequence[float], rng: np.random.Generator) -> ScaledRows:
    mean = _noisy_sum(rows, 1.0, multipliers[0], rng) / n_rows
    return ScaledRows(rows=unit_rows(rows - mean), mean=mean)


def _whiten(X: np.ndarray, n_rows: int, multipliers: Sequence[float], rng: np.random.Generator) -> ScaledRows:
    n_features = X.shape[1]
    location = np.full(n_features, math.log(_TYPICAL_SIZE))
    logarithms = np.log1p(np.maximum(X, 0.0))
    for multiplier in multipliers[:2]:
        # A row and a constant, together of norm 1: far rows count for less.
        rows = unit_rows(np.column_stack([logarithms - location, np.ones(X.shape[0])]))
        total = _noisy_sum(rows, 1.0, multiplier, rng)
        location += total[:-1] / max(total[-1], 0.05 * n_rows)
    sizes = np.log(np.maximum(np.abs(logarithms - location), 1e-9))
    sizes = np.clip(sizes, _SMALLEST_LOGARITHM, _LARGEST_LOGARITHM) + 2.0
    bound = _ROW_OF_SPREADS * math.sqrt(n_features)
    scaled = sizes * np.minimum(1.0, bound / np.maximum(row_norms(sizes), 1e-300))[:, None]
    mean_size = _noisy_sum(scaled, bound * (1.0 + (n_features + 8) * np.finfo(float).eps), multipliers[2], rng) / n_rows
    centre = np.expm1(np.clip(location, -30.0, 30.0))
    spread = (centre + 1.0) * np.exp(np.clip(mean_size - 2.0, _SMALLEST_LOGARITHM, _LARGEST_LOGARITHM))
    spread *= _SPREAD_OF_LOGARITHMS * math.sqrt(n_features)
    cut = feature_bound(n_features)
    with np.errstate(over="ignore"):
        features = np.clip((X - centre) / spread, -cut, cut)
    rows = unit_rows(np.column_stack([features, np.full(X.shape[0], _CONSTANT)]))
    moment = _noisy_moment(rows, multipliers[3], rng) / n_rows
    weight = max(moment[-1, -1], 0.02)
    mean = moment[:-1, -1] * _CONSTANT / weight
    covariance = moment[:-1, :-1] * _CONSTANT**2 / weight - np.outer(mean, mean)
    covariance /= max(float(np.trace(covariance)), 1e-3 * n_features)
    spectrum, directions = np.linalg.eigh(covariance)
    spectrum = np.maximum(spectrum, 0.0) + _LIFT * multipliers[3] * math.sqrt(n_features) / n_rows
    matrix = (directions * spectrum**-0.5) @ directions.T
    return ScaledRows(rows=unit_rows((features - mean) @ matrix), mean=mean, matrix=matrix, features=(centre, spread))
