"""Noise mechanisms: what is added to a bounded quantity before anybody sees it."""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from privsvm.privacy.accounting import gaussian_epsilon, gaussian_noise_multiplier

__all__ = ["GaussianMechanism"]

# The grid is so fine that rounding costs less than this share of the sensitivity.
_GRID_SHARE = 1e-6


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
        if not (self.sensitivity > 0 and math.isfinite(self.sensitivity)):
            raise ValueError(f"sensitivity={self.sensitivity!r}: must be a positive finite number")
        if self.size < 1:
            raise ValueError(f"size={self.size!r}: must be at least 1")

    @property
    def grid(self) -> float:
        return 2.0 ** math.floor(math.log2(_GRID_SHARE * self.sensitivity / math.sqrt(self.size)))

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
        values = np.asarray(values, dtype=np.float64)
        if values.size != self.size:
            raise ValueError(f"values has {values.size} numbers; the mechanism was made for {self.size}")
        if not np.isfinite(values).all():
            raise ValueError("values holds a number that is not finite; nothing was released")
        rounded = np.rint(values / self.grid) * self.grid
        noisy = rounded + rng.normal(0.0, self.noise_scale, size=values.shape)
        return np.rint(noisy / self.grid) * self.grid
