"""From epsilon to noise and back, by dp_accounting."""

from __future__ import annotations

import functools
import math

__all__ = [
    "GAUSSIAN_ACCOUNTANT",
    "LAPLACE_ACCOUNTANT",
    "ZCDP_ACCOUNTANT",
    "check_budget",
    "gaussian_epsilon",
    "gaussian_noise_multiplier",
    "zcdp_epsilon",
    "zcdp_rho",
]

GAUSSIAN_ACCOUNTANT = "analytic Gaussian (dp_accounting)"
LAPLACE_ACCOUNTANT = "discrete Laplace mechanism, closed form: L1 sensitivity over the scale"
ZCDP_ACCOUNTANT = "zCDP of bounded-range selections, converted by RDP (dp_accounting)"

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


def zcdp_epsilon(rho: float, delta: float) -> float:
    """Epsilon at `delta` of a mechanism with rho-zCDP.

    Parameters
    ----------
    rho : float
        Zero-concentrated privacy loss, positive.
    delta : float
        Strictly between 0 and 1.

    Returns
    -------
    float
        An upper bound: the best of a fine grid of Renyi orders around ``1 + sqrt(log(1/delta) / rho)``.

    Notes
    -----
    Renyi divergence of order alpha at most ``rho alpha`` (Bun and Steinke 2016), converted as in Canonne, Kamath and
    Steinke (2020), Proposition 12.
    """
    import dp_accounting

    check_budget(1.0, delta)
    center = math.sqrt(math.log(1.0 / delta) / rho)
    orders = [1.0 + center * 2.0 ** (step / 64.0) for step in range(-256, 257)]
    accountant = dp_accounting.rdp.RdpAccountant(orders)
    return float(accountant.compose(dp_accounting.ZCDpEvent(rho)).get_epsilon(delta))


@functools.lru_cache(maxsize=4096)
def zcdp_rho(epsilon: float, delta: float) -> float:
    """Largest rho, to six digits, for which rho-zCDP gives (epsilon, delta)-DP.

    Parameters
    ----------
    epsilon, delta : float
        The budget.

    Returns
    -------
    float
        `zcdp_epsilon` of it never exceeds `epsilon`.
    """
    check_budget(epsilon, delta)
    # rho alone is below epsilon, and rho + 2 sqrt(rho log(1/delta)) = epsilon is always enough (Bun and Steinke 2016).
    log_term = math.log(1.0 / delta)
    low, high = (epsilon / (math.sqrt(log_term) + math.sqrt(log_term + epsilon))) ** 2, epsilon
    while zcdp_epsilon(low, delta) > epsilon:
        low /= 2.0
    while high > low * (1.0 + 1e-6):
        middle = math.sqrt(low * high)
        if zcdp_epsilon(middle, delta) <= epsilon:
            low = middle
        else:
            high = middle
    return low
