"""From epsilon to noise and back, by dp_accounting."""

from __future__ import annotations

import functools
import math

__all__ = ["GAUSSIAN_ACCOUNTANT", "check_budget", "gaussian_epsilon", "gaussian_noise_multiplier"]

GAUSSIAN_ACCOUNTANT = "analytic Gaussian (dp_accounting)"

# The calibration's root finder may end a few units of round-off below the smallest valid noise.
_ROUND_OFF_SLACK = 1e-9

_SMALLEST_EPSILON = 1e-6


def check_budget(epsilon: float, delta: float) -> None:
    """Refuse a privacy budget that means nothing.

    Parameters
    ----------
    epsilon : float
        Must be at least 1e-6 (the calibration's accuracy) and finite.
    delta : float
        Must lie strictly between 0 and 1.

    Raises
    ------
    ValueError
        Naming the argument and its value.
    """
    if not (epsilon > 0 and math.isfinite(epsilon)):
        raise ValueError(f"epsilon={epsilon!r}: must be a positive finite number")
    if epsilon < _SMALLEST_EPSILON:
        raise ValueError(
            f"epsilon={epsilon!r}: must be at least {_SMALLEST_EPSILON:g}, the accuracy of the calibration"
        )
    if not 0 < delta < 1:
        raise ValueError(f"delta={delta!r}: must lie strictly between 0 and 1")


@functools.lru_cache(maxsize=4096)
def gaussian_noise_multiplier(epsilon: float, delta: float) -> float:
    """Noise standard deviation, per unit of L2 sensitivity, that makes a Gaussian release (epsilon, delta)-DP.

    Parameters
    ----------
    epsilon, delta : float
        The budget.

    Returns
    -------
    float
        The noise multiplier; `gaussian_epsilon` of it never exceeds `epsilon`.

    Notes
    -----
    Analytic Gaussian mechanism, Balle and Wang (2018), Algorithm 1, valid for every epsilon.
    """
    import dp_accounting

    check_budget(epsilon, delta)
    multiplier = float(dp_accounting.get_sigma_gaussian(epsilon, delta)) * (1 + _ROUND_OFF_SLACK)
    while gaussian_epsilon(multiplier, delta) > epsilon:
        multiplier *= 1 + _ROUND_OFF_SLACK
    return multiplier


def gaussian_epsilon(noise_multiplier: float, delta: float) -> float:
    """Smallest epsilon for which Gaussian noise gives (epsilon, delta)-DP.

    Parameters
    ----------
    noise_multiplier : float
        Noise standard deviation over L2 sensitivity; infinite where neighbours give equal outputs.
    delta : float
        Strictly between 0 and 1.

    Returns
    -------
    float
        Epsilon, exact for the Gaussian mechanism: upper bound and attained.
    """
    import dp_accounting

    if math.isinf(noise_multiplier):
        return 0.0
    return float(dp_accounting.get_epsilon_gaussian(noise_multiplier, delta))
