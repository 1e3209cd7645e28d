"""Noise mechanisms for quantities of bounded sensitivity."""

from __future__ import annotations

import dataclasses
import functools
import math

import numpy as np

from privsvm.errors import nearest_name
from privsvm.numerics.noise.exact_draws import LARGEST_CHOICE_SCALE, LARGEST_SCALE
from privsvm.numerics.noise.noise_source import ROUND_UP, NoiseSource, Sensitivity
from privsvm.numerics.noise.rounded_normals import LARGEST_SIGMA, SMALLEST_SIGMA
from privsvm.privacy.accounting import (
    calibrate_sampled_gaussian,
    check_budget,
    gaussian_noise_multiplier,
    zcdp_rho,
)
from privsvm.privacy.events import Neighbours

COMPOSITIONS = ("joint", "naive")

# The one assumption on randomness in every record of exact noise.
NOISE_ASSUMPTION = (
    "noise is exact, made of bits that nobody without the key can tell from uniform ones: ChaCha20 with keys of 256 "
    "bits, and HMAC-SHA-256 for the keys of parts of a job; epsilon and delta hold against all who cannot break that"
)

# The grid is chosen so fine that rounding costs less than this share of the sensitivity.
_GRID_SHARE = 1e-6

# Keeps quotients and products of budgets from rounding up.
_ROUND_OFF_SLACK = 1e-12

# Standard deviations of more cells take long to draw. Beside such noise, a grid so wide costs nothing that counts.
_MANY_CELLS = 2.0**40

# In cells of the grid. A vector's numbers are clipped to this; with noise they stay within the range of int64, or wrap.
_LARGEST_CELL = 2**61


def _check_mechanism(sensitivity: float, size: int) -> None:
    """Check what all mechanisms need."""
    if not (sensitivity > 0 and math.isfinite(sensitivity)):
        raise ValueError(f"sensitivity={sensitivity!r}: must be a positive finite number")
    if size < 1:
        raise ValueError(f"size={size!r}: must be at least 1")


def _grid_cells(values: np.ndarray, size: int, grid: float) -> np.ndarray:
    """Round a vector of `size` numbers to whole numbers of the grid's spacing, as int64.

    Whatever the numbers are, there is an answer: a refusal would tell neighbours apart. They are clipped, which moves
    no two vectors further apart; NaN counts as 0.
    """
    values = np.asarray(values, dtype=np.float64)
    if values.size != size:
        raise ValueError(f"values has {values.size} numbers; the mechanism was made for {size}")
    with np.errstate(over="ignore"):
        cells = np.rint(values / grid)
    cells = np.where(np.isnan(cells), 0.0, cells)
    clipped: np.ndarray = np.clip(cells, -_LARGEST_CELL, _LARGEST_CELL).astype(np.int64)
    return clipped


def noise_grid(spacing: float, noise_scale: float = 0.0) -> float:
    """Round a spacing down to a power of two, or up where Gaussian noise has so many cells that it is slow."""
    return 2.0 ** math.floor(math.log2(max(spacing, noise_scale / _MANY_CELLS)))


def gaussian_cells(noise_scale: float, grid: float) -> float:
    """Return the standard deviation of Gaussian noise in cells of a grid, rounded up.

    Raises ValueError if the noise has more cells than the sampler draws, which follows from public numbers.
    """
    cells = math.nextafter(noise_scale / grid, math.inf)
    if not SMALLEST_SIGMA <= cells <= LARGEST_SIGMA:
        raise ValueError(
            f"noise of standard deviation {noise_scale:.3g} is {cells:.2g} steps of its grid; {SMALLEST_SIGMA:.1g} to "
            f"{LARGEST_SIGMA:.1e} can be drawn: use a larger epsilon or delta"
        )
    return cells


def gaussian_on_grid(
    values: np.ndarray,
    size: int,
    grid: float,
    noise_scale: float,
    sensitivity: float,
    source: NoiseSource,
) -> np.ndarray:
    """Round `size` numbers to a grid, a power of two, and add exact rounded Gaussian noise: see `gaussian_cells`.

    `sensitivity` is for the rounded numbers, and stated to the source.
    """
    cells = _grid_cells(values, size, grid)
    # A sum that does not fit wraps around: a function of the exact one.
    noisy = source.add_rounded_normals(cells, noise_scale / grid, Sensitivity(sensitivity / grid, grid=grid))
    released: np.ndarray = noisy * grid
    return released


@dataclasses.dataclass(frozen=True)
class GaussianMechanism:
    """Add Gaussian noise to a vector of bounded L2 sensitivity, on a fixed grid.

    The vector is rounded to whole numbers of a grid of public spacing, a power of two, which moves two neighbouring
    vectors apart by at most ``grid * sqrt(size)``: `total_sensitivity` is `sensitivity`, before rounding, with this
    cost. The noise is Gaussian noise of standard deviation `noise_scale` rounded to the grid exactly
    (`privsvm.numerics.noise.rounded_normals`). For a vector on the grid, rounding before or after the sum is the same:
    so the release is post-processing of the ideal Gaussian mechanism. Numbers too large for the grid are clipped, and
    NaN counts as 0: nothing that depends on the data is refused. The length `size` is public.
    """

    epsilon: float
    delta: float
    sensitivity: float
    size: int
    grid: float = dataclasses.field(init=False)
    total_sensitivity: float = dataclasses.field(init=False)
    noise_scale: float = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        _check_mechanism(self.sensitivity, self.size)
        multiplier, root = gaussian_noise_multiplier(self.epsilon, self.delta), math.sqrt(self.size)
        grid = noise_grid(_GRID_SHARE * self.sensitivity / root, multiplier * self.sensitivity)
        total = (self.sensitivity + grid * root) * ROUND_UP
        scale = gaussian_cells(total * multiplier, grid) * grid
        vars(self).update(grid=grid, total_sensitivity=total, noise_scale=scale)

    def release(self, values: np.ndarray, source: NoiseSource) -> np.ndarray:
        """Release a noisy copy of a vector; raise ValueError if `values` does not have `size` numbers."""
        return gaussian_on_grid(values, self.size, self.grid, self.noise_scale, self.total_sensitivity, source)


@dataclasses.dataclass(frozen=True)
class LaplaceMechanism:
    """Add discrete Laplace noise to a vector of bounded L1 sensitivity, on a fixed grid. Pure differential privacy.

    Rounding, as for `GaussianMechanism`, moves two neighbouring vectors apart by at most ``grid * size`` in the L1
    norm, which `total_sensitivity` adds to `sensitivity`. The noise is a whole multiple of the grid's spacing, a power
    of two, and is added in whole numbers, with exact probabilities (`privsvm.numerics.noise.exact_draws`). Neighbouring
    vectors therefore have the same possible releases, with no gaps far from the vector. The length `size` is public.

    The scale b of the noise, `noise_scale`, is a multiple of the spacing: the probability of noise x is proportional to
    ``exp(-|x| / b)``. Its standard deviation is ``sqrt(2) b``, to about the square of ``grid / b``. Raises ValueError
    if the noise would not fit into int64. The vector is then so long, or epsilon so small, that the noise would drown
    it anyway.
    """

    epsilon: float
    sensitivity: float
    size: int
    grid: float = dataclasses.field(init=False)
    total_sensitivity: float = dataclasses.field(init=False)
    noise_scale: float = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        check_budget(self.epsilon, 0.5)
        _check_mechanism(self.sensitivity, self.size)
        grid = noise_grid(_GRID_SHARE * self.sensitivity / self.size)
        total = self.sensitivity + grid * self.size
        cells = math.ceil(total / grid / self.epsilon * (1.0 + _ROUND_OFF_SLACK))
        if cells > LARGEST_SCALE:
            raise ValueError(
                f"epsilon={self.epsilon!r}, size={self.size!r}: Laplace noise on so many numbers for so small an "
                f"epsilon has a scale of {cells:.1e} steps of its grid; at most {LARGEST_SCALE:.1e} fit into whole "
                "numbers"
            )
        vars(self).update(grid=grid, total_sensitivity=total, noise_scale=cells * grid)

    def release(self, values: np.ndarray, source: NoiseSource) -> np.ndarray:
        """Release a noisy copy of a vector; see `GaussianMechanism.release`."""
        cells, scale = _grid_cells(values, self.size, self.grid), round(self.noise_scale / self.grid)
        stated = Sensitivity(self.total_sensitivity / self.grid, grid=self.grid)
        released: np.ndarray = source.add_discrete_laplace(cells, scale, stated) * self.grid
        return released


@dataclasses.dataclass(frozen=True, kw_only=True)
class VectorsMechanism:
    """Release k vectors of public length `size` that depend on the same rows.

    Gaussian noise gives (epsilon, delta)-DP, Laplace noise (epsilon, 0)-DP. `sensitivity` is the largest L2 distance
    between corresponding vectors of two neighbouring datasets; the L1 distance of `size` numbers is at most
    ``sqrt(size)`` times that. `composition` is ``joint``: one release of all vectors as one, with ``sqrt(k)`` times the
    L2 sensitivity, and k times the L1 sensitivity, of one vector; or ``naive``: k releases, each with ``epsilon / k``
    and ``delta / k``. For Laplace noise both are the same. `one` is the mechanism of each of the `n_releases`, with
    its `total_sensitivity` and `noise_scale`.
    """

    noise: str
    composition: str
    epsilon: float
    delta: float
    sensitivity: float
    n_vectors: int
    size: int
    n_releases: int = dataclasses.field(init=False)
    one: GaussianMechanism | LaplaceMechanism = dataclasses.field(init=False)
    total_sensitivity: float = dataclasses.field(init=False)
    noise_scale: float = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        for name, allowed in (("noise", ("gaussian", "laplace")), ("composition", COMPOSITIONS)):
            if getattr(self, name) not in allowed:
                raise ValueError(f"{name}={getattr(self, name)!r}: {nearest_name(getattr(self, name), allowed)}")
        releases = self.n_vectors if self.composition == "naive" else 1
        joint_vectors = self.n_vectors // releases
        share = self.epsilon if releases == 1 else self.epsilon / releases * (1.0 - _ROUND_OFF_SLACK)
        one: GaussianMechanism | LaplaceMechanism
        if self.noise == "laplace":
            sensitivity = joint_vectors * math.sqrt(self.size) * self.sensitivity
            one = LaplaceMechanism(share, sensitivity, joint_vectors * self.size)
        else:
            delta = self.delta if releases == 1 else self.delta / releases * (1.0 - _ROUND_OFF_SLACK)
            sensitivity = math.sqrt(joint_vectors) * self.sensitivity
            one = GaussianMechanism(share, delta, sensitivity, joint_vectors * self.size)
        numbers = {"total_sensitivity": one.total_sensitivity, "noise_scale": one.noise_scale}
        vars(self).update(n_releases=releases, one=one, **numbers)

    def release(self, vectors: np.ndarray, source: NoiseSource) -> np.ndarray:
        """Release noisy copies of vectors."""
        blocks = np.asarray(vectors, dtype=np.float64).reshape(self.n_releases, -1)
        return np.stack([self.one.release(block, source) for block in blocks]).reshape(self.n_vectors, self.size)


@dataclasses.dataclass(frozen=True, kw_only=True)
class ExponentialSelections:
    """Select the best of public candidates repeatedly, by the exponential mechanism, from scores in whole numbers.

    A candidate is drawn with probability proportional to ``exp(score / noise_scale)``, exactly
    (`privsvm.numerics.noise.exact_draws`). One such selection has privacy loss of range ``step_epsilon``, which is
    ``2 sensitivity / noise_scale``, and so ``step_epsilon^2 / 8``-zCDP; selections add up (Cesar and Rogers 2021,
    Bounding, concentrating, and truncating, Lemma 3.4). For few selections the sum of their ``step_epsilon`` is the
    better bound, and is used.

    `sensitivity` is the largest change of any score between two neighbouring datasets, given the earlier selections. Of
    small ones, rounding `noise_scale` up loses a part of the budget; from 2^20 on the loss is negligible. The number of
    selections is public. Raises ValueError if an argument is out of range, or the budget of a selection so small that
    the scale does not fit.
    """

    epsilon: float
    delta: float
    sensitivity: int
    n_selections: int

    def __post_init__(self) -> None:
        check_budget(self.epsilon, self.delta)
        _check_mechanism(self.sensitivity, self.n_selections)
        if self.noise_scale > LARGEST_CHOICE_SCALE:
            raise ValueError(
                f"epsilon={self.epsilon!r}, n_selections={self.n_selections!r}: so small a budget of a selection needs "
                f"a scale of {self.noise_scale:.1e}; at most {LARGEST_CHOICE_SCALE:.1e} fits into whole numbers"
            )

    # Every one of thousands of selections asks for it.
    @functools.cached_property
    def noise_scale(self) -> int:
        concentrated = math.sqrt(8.0 * zcdp_rho(self.epsilon, self.delta) / self.n_selections)
        budget = max(concentrated, self.epsilon / self.n_selections) * (1.0 - _ROUND_OFF_SLACK)
        return math.ceil(2 * self.sensitivity / budget)

    @property
    def step_epsilon(self) -> float:
        return 2 * self.sensitivity / self.noise_scale * ROUND_UP

    def select(self, scores: np.ndarray, source: NoiseSource) -> np.ndarray:
        """Select one candidate in each row of scores.

        The highest of m scores is best in each of the k rows. Raises TypeError unless scores are int64.
        """
        if scores.dtype != np.int64:
            raise TypeError(f"scores: are {scores.dtype}; must be int64")
        chosen: np.ndarray = source.choose(scores, self.noise_scale, Sensitivity(self.sensitivity))
        return chosen


@dataclasses.dataclass(frozen=True, kw_only=True)
class SampledGaussianSteps:
    """Add Gaussian noise to sums over Poisson-sampled rows, step after step.

    A step draws each row with probability `sample_rate`, clips the drawn rows' vectors to the L2 norm `max_grad_norm`,
    and releases their sum with noise. The vectors may depend on the sums that earlier steps released. Rate and number
    of steps are public. `releases` are the noise multipliers of earlier plain Gaussian releases of the same rows; the
    budget is for all steps and releases together.

    `noise_multiplier` is the standard deviation of the noise on each entry of a sum, `noise_scale`, over
    `max_grad_norm`, for both relations. Raises ValueError if an argument is out of range, or the releases alone cost
    more than the budget.
    """

    epsilon: float
    delta: float
    neighbours: Neighbours
    sample_rate: float
    n_steps: int
    max_grad_norm: float
    releases: tuple[float, ...] = ()
    noise_multiplier: float = dataclasses.field(init=False)
    noise_scale: float = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        if not (self.max_grad_norm > 0 and math.isfinite(self.max_grad_norm)):
            raise ValueError(f"max_grad_norm={self.max_grad_norm!r}: must be a positive finite number")
        multiplier = calibrate_sampled_gaussian(
            self.epsilon, self.delta, self.sample_rate, self.n_steps, self.neighbours, self.releases
        )
        vars(self).update(noise_multiplier=multiplier, noise_scale=multiplier * self.max_grad_norm)
