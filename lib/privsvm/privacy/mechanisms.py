"""Noise mechanisms: what is added to a bounded quantity before anybody sees it."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from privsvm.errors import nearest_name
from privsvm.privacy.accounting import (
    GAUSSIAN_ACCOUNTANT,
    LAPLACE_ACCOUNTANT,
    ZCDP_ACCOUNTANT,
    check_budget,
    gaussian_epsilon,
    gaussian_noise_multiplier,
    zcdp_epsilon,
    zcdp_rho,
)

__all__ = [
    "COMPOSITIONS",
    "ExponentialSelections",
    "GaussianMechanism",
    "LaplaceMechanism",
    "VectorsMechanism",
]

COMPOSITIONS = ("joint", "naive")

# The grid is so fine that rounding costs less than this share of the sensitivity.
_GRID_SHARE = 1e-6

# Keeps quotients and products of budgets from rounding up.
_ROUND_OFF_SLACK = 1e-12


def _check_mechanism(sensitivity: float, size: int) -> None:
    """Refuse a mechanism that means nothing."""
    if not (sensitivity > 0 and math.isfinite(sensitivity)):
        raise ValueError(f"sensitivity={sensitivity!r}: must be a positive finite number")
    if size < 1:
        raise ValueError(f"size={size!r}: must be at least 1")


def _grid_below(spacing: float) -> float:
    """Largest power of two that is at most `spacing`."""
    return 2.0 ** math.floor(math.log2(spacing))


def _add_on_grid(values: np.ndarray, size: int, grid: float, draw: Callable[..., Any]) -> np.ndarray:
    """Round a vector of `size` finite numbers to the grid, add noise, and round again."""
    values = np.asarray(values, dtype=np.float64)
    if values.size != size:
        raise ValueError(f"values has {values.size} numbers; the mechanism was made for {size}")
    if not np.isfinite(values).all():
        raise ValueError("values holds a number that is not finite; nothing was released")
    noisy = np.rint(values / grid) * grid + draw(size=values.shape)
    return np.rint(noisy / grid) * grid


@dataclasses.dataclass(frozen=True)
class GaussianMechanism:
    """Add Gaussian noise to a vector of bounded L2 sensitivity, on a fixed grid.

    The vector is rounded to a grid of public spacing before the noise is added and the sum is rounded
    after, so the low bits of a floating-point sum carry nothing. Rounding moves two neighbouring
    vectors apart by at most ``grid * sqrt(size)``, which is added to the sensitivity. The noise itself
    is drawn in float64: idealised numerics.

    Parameters
    ----------
    epsilon, delta : float
        The budget.
    sensitivity : float
        Largest L2 distance between the vectors of two neighbouring data sets, before rounding.
    size : int
        How many numbers the vector has; public.

    Attributes
    ----------
    grid : float
        Spacing of the released numbers, a power of two.
    total_sensitivity : float
        `sensitivity` with the cost of rounding.
    noise_scale : float
        Standard deviation of the noise on each number.
    """

    epsilon: float
    delta: float
    sensitivity: float
    size: int

    def __post_init__(self) -> None:
        _check_mechanism(self.sensitivity, self.size)

    @property
    def grid(self) -> float:
        return _grid_below(_GRID_SHARE * self.sensitivity / math.sqrt(self.size))

    @property
    def total_sensitivity(self) -> float:
        return self.sensitivity + self.grid * math.sqrt(self.size)

    @property
    def noise_scale(self) -> float:
        return self.total_sensitivity * gaussian_noise_multiplier(self.epsilon, self.delta)

    @property
    def epsilon_proved(self) -> float:
        """The epsilon that the accountant gives for this noise; never above `epsilon`."""
        return gaussian_epsilon(self.noise_scale / self.total_sensitivity, self.delta)

    def release(self, values: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Release a noisy copy of a vector.

        Parameters
        ----------
        values : ndarray of any shape with `size` elements
            The exact quantity.
        rng : numpy.random.Generator
            Source of the noise; one release for each state of it.

        Returns
        -------
        ndarray of the same shape
            Multiples of `grid`.

        Raises
        ------
        ValueError
            If `values` has another size, or a number that is not finite.
        """
        return _add_on_grid(values, self.size, self.grid, functools.partial(rng.normal, 0.0, self.noise_scale))


@dataclasses.dataclass(frozen=True)
class LaplaceMechanism:
    """Add Laplace noise to a vector of bounded L1 sensitivity, on a fixed grid. Pure differential privacy.

    Rounding, as for `GaussianMechanism`, moves two neighbouring vectors apart by at most ``grid * size`` in the L1
    norm, which is added to the sensitivity.

    Parameters
    ----------
    epsilon : float
        The budget; delta is 0.
    sensitivity : float
        Largest L1 distance between the vectors of two neighbouring data sets, before rounding.
    size : int
        How many numbers the vector has; public.

    Attributes
    ----------
    grid : float
        Spacing of the released numbers, a power of two.
    total_sensitivity : float
        `sensitivity` with the cost of rounding.
    noise_scale : float
        Scale b of the noise on each number; its standard deviation is ``sqrt(2) b``.
    """

    epsilon: float
    sensitivity: float
    size: int

    def __post_init__(self) -> None:
        check_budget(self.epsilon, 0.5)
        _check_mechanism(self.sensitivity, self.size)

    @property
    def grid(self) -> float:
        return _grid_below(_GRID_SHARE * self.sensitivity / self.size)

    @property
    def total_sensitivity(self) -> float:
        return self.sensitivity + self.grid * self.size

    @property
    def noise_scale(self) -> float:
        return self.total_sensitivity / self.epsilon * (1.0 + _ROUND_OFF_SLACK)

    @property
    def epsilon_proved(self) -> float:
        """Sensitivity over scale; never above `epsilon`."""
        return self.total_sensitivity / self.noise_scale

    def release(self, values: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Release a noisy copy of a vector; see `GaussianMechanism.release`."""
        return _add_on_grid(values, self.size, self.grid, functools.partial(rng.laplace, 0.0, self.noise_scale))


@dataclasses.dataclass(frozen=True, kw_only=True)
class VectorsMechanism:
    """Release several vectors that depend on the same rows.

    Parameters
    ----------
    noise : {"gaussian", "laplace"}
        Gaussian noise gives (epsilon, delta)-DP, Laplace noise (epsilon, 0)-DP.
    composition : {"joint", "naive"}
        ``joint``: one release of all vectors as one, whose L2 sensitivity is ``sqrt(k)`` times that of one vector and
        whose L1 sensitivity is k times. ``naive``: k releases, each with ``epsilon / k`` and ``delta / k``. For
        Laplace noise both are the same.
    epsilon, delta : float
        The budget of all vectors together.
    sensitivity : float
        Largest L2 distance between one vector of two neighbouring data sets. The L1 distance of `size` numbers is at
        most ``sqrt(size)`` times that.
    n_vectors, size : int
        Number k of vectors, and how many numbers one has; public.

    Attributes
    ----------
    total_sensitivity, noise_scale : float
        As in `GaussianMechanism` and `LaplaceMechanism`; of one release.
    delta_proved : float
        0 for Laplace noise.
    accountant : str
        What turned sensitivity and noise into epsilon.
    """

    noise: str
    composition: str
    epsilon: float
    delta: float
    sensitivity: float
    n_vectors: int
    size: int

    def __post_init__(self) -> None:
        for name, known in (("noise", ("gaussian", "laplace")), ("composition", COMPOSITIONS)):
            if getattr(self, name) not in known:
                raise ValueError(f"{name}={getattr(self, name)!r}: {nearest_name(getattr(self, name), known)}")
        check_budget(self.epsilon, self.delta)

    @property
    def _releases(self) -> int:
        return self.n_vectors if self.composition == "naive" else 1

    @property
    def _mechanism(self) -> GaussianMechanism | LaplaceMechanism:
        """The mechanism of one release."""
        together = self.n_vectors // self._releases
        share = self.epsilon if self._releases == 1 else self.epsilon / self._releases * (1.0 - _ROUND_OFF_SLACK)
        if self.noise == "laplace":
            sensitivity = together * math.sqrt(self.size) * self.sensitivity
            return LaplaceMechanism(share, sensitivity, together * self.size)
        delta = self.delta if self._releases == 1 else self.delta / self._releases * (1.0 - _ROUND_OFF_SLACK)
        return GaussianMechanism(share, delta, math.sqrt(together) * self.sensitivity, together * self.size)

    @property
    def total_sensitivity(self) -> float:
        return self._mechanism.total_sensitivity

    @property
    def noise_scale(self) -> float:
        return self._mechanism.noise_scale

    @property
    def epsilon_proved(self) -> float:
        """The epsilon of all vectors together; never above `epsilon`."""
        return self._releases * self._mechanism.epsilon_proved

    @property
    def delta_proved(self) -> float:
        return 0.0 if self.noise == "laplace" else self.delta

    @property
    def accountant(self) -> str:
        one = LAPLACE_ACCOUNTANT if self.noise == "laplace" else GAUSSIAN_ACCOUNTANT
        return one if self._releases == 1 else f"{one}, for each of {self._releases} vectors; the budgets are added"

    def release(self, vectors: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Release noisy copies of vectors.

        Parameters
        ----------
        vectors : ndarray (k, size)
            The exact quantities.
        rng : numpy.random.Generator
            Source of the noise.

        Returns
        -------
        ndarray (k, size)
        """
        mechanism = self._mechanism
        parts = np.asarray(vectors, dtype=np.float64).reshape(self._releases, -1)
        return np.stack([mechanism.release(part, rng) for part in parts]).reshape(self.n_vectors, self.size)


@dataclasses.dataclass(frozen=True, kw_only=True)
class ExponentialSelections:
    """Select the best of public candidates again and again, by the exponential mechanism.

    A candidate is drawn with probability proportional to ``exp(step_epsilon * score / (2 sensitivity))``, as the
    largest score after Gumbel noise. One such selection has privacy loss of range ``step_epsilon``, and so
    ``step_epsilon^2 / 8``-zCDP; selections add up (Cesar and Rogers 2021, Bounding, concentrating, and truncating,
    Lemma 3.4). For few selections the sum of their ``step_epsilon`` is the better bound, and is used.

    Parameters
    ----------
    epsilon, delta : float
        The budget of all selections together.
    sensitivity : float
        Most that any score changes between two neighbouring data sets, given the earlier selections.
    n_selections : int
        How many selections are made; public.

    Attributes
    ----------
    step_epsilon : float
        Budget of one selection.
    noise_scale : float
        Scale of the Gumbel noise on a score.
    accountant : str
        What turned the selections' budgets into epsilon.
    """

    epsilon: float
    delta: float
    sensitivity: float
    n_selections: int

    def __post_init__(self) -> None:
        check_budget(self.epsilon, self.delta)
        _check_mechanism(self.sensitivity, self.n_selections)

    @property
    def step_epsilon(self) -> float:
        concentrated = math.sqrt(8.0 * zcdp_rho(self.epsilon, self.delta) / self.n_selections)
        return max(concentrated, self.epsilon / self.n_selections) * (1.0 - _ROUND_OFF_SLACK)

    @property
    def noise_scale(self) -> float:
        return 2.0 * self.sensitivity / self.step_epsilon

    @property
    def epsilon_proved(self) -> float:
        """The epsilon that the accountant gives for all selections; never above `epsilon`."""
        return min(self._concentrated_epsilon, self.n_selections * self.step_epsilon)

    @property
    def _concentrated_epsilon(self) -> float:
        return zcdp_epsilon(self.n_selections * self.step_epsilon**2 / 8.0, self.delta)

    @property
    def accountant(self) -> str:
        concentrated = self._concentrated_epsilon <= self.n_selections * self.step_epsilon
        return ZCDP_ACCOUNTANT if concentrated else "sum over the selections (pure differential privacy)"

    def select(self, scores: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Select one candidate in each row of scores.

        Parameters
        ----------
        scores : ndarray (k, m)
            Scores of m candidates in k selections; the highest is best.
        rng : numpy.random.Generator
            Source of the noise.

        Returns
        -------
        ndarray of int (k,)
            Indices of the selected candidates.

        Raises
        ------
        ValueError
            If a score is not finite.
        """
        if not np.isfinite(scores).all():
            raise ValueError("scores holds a number that is not finite; nothing was selected")
        return np.argmax(scores + rng.gumbel(0.0, self.noise_scale, size=scores.shape), axis=-1)
