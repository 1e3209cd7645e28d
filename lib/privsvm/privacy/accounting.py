"""Convert epsilon to noise, and noise to epsilon."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

from privsvm.errors import nearest_name
from privsvm.privacy.accountants import ExactGaussian, LossDistributions
from privsvm.privacy.bisection import bisect
from privsvm.privacy.events import (
    NEIGHBOURS,
    Composed,
    Event,
    Gaussian,
    Neighbours,
    PoissonSampled,
    SelfComposed,
    relation_factor,
)
from privsvm.privacy.gaussian_delta import exact_gaussian_epsilon, gaussian_signal
from privsvm.privacy.losses import COARSE_POINTS, FINE_POINTS
from privsvm.privacy.renyi import renyi_epsilon

# Added to noise multipliers: covers the round-off of computing a multiplier from noise and sensitivity.
_MULTIPLIER_SLACK = 1e-12
# Covers the round-off of root finders.
_ROUND_OFF_SLACK = 1e-9

_SMALLEST_EPSILON = 1e-6
# Calibrations overflow far above it.
_LARGEST_EPSILON = 1e12
# Below, float64 has few digits left for it, or for what several releases get of it.
_SMALLEST_DELTA = 1e-300

# Below, delta is lost in the round-off of privacy loss distributions.
_SMALLEST_SAMPLED_DELTA = 1e-9

# With less noise than this a single drawn row is visible anyway. It is used even where less would be enough.
_SMALLEST_MULTIPLIER, _LARGEST_MULTIPLIER = 0.05, 1e6
_MOST_STEPS = 10**6


def check_budget(epsilon: float, delta: float) -> None:
    """Raise ValueError, naming the argument, unless epsilon lies in 1e-6 .. 1e12 and delta in 1e-300 .. 1."""
    if not (epsilon > 0 and math.isfinite(epsilon)):
        raise ValueError(f"epsilon={epsilon!r}: must be a positive finite number")
    if epsilon < _SMALLEST_EPSILON:
        raise ValueError(
            f"epsilon={epsilon!r}: must be at least {_SMALLEST_EPSILON:g}, the accuracy of the calibration"
        )
    if epsilon > _LARGEST_EPSILON:
        raise ValueError(f"epsilon={epsilon!r}: must be at most {_LARGEST_EPSILON:g}; more protects nobody")
    if not 0 < delta < 1:
        raise ValueError(f"delta={delta!r}: must lie strictly between 0 and 1")
    if delta < _SMALLEST_DELTA:
        raise ValueError(f"delta={delta!r}: must be at least {_SMALLEST_DELTA:g}, the accuracy of the accountants")


@functools.lru_cache(maxsize=4096)
def gaussian_noise_multiplier(epsilon: float, delta: float) -> float:
    """Compute the noise that makes a Gaussian release (epsilon, delta)-DP.

    Noise is its standard deviation over the L2 sensitivity; `gaussian_epsilon` of it never exceeds `epsilon`. Analytic
    Gaussian mechanism (Balle and Wang 2018), valid for every epsilon; by `gaussian_delta`, which is never below the
    truth.
    """
    check_budget(epsilon, delta)
    multiplier = (1.0 + _MULTIPLIER_SLACK) / gaussian_signal(epsilon, delta)
    while gaussian_epsilon(multiplier, delta) > epsilon:
        multiplier *= 1.0 + _MULTIPLIER_SLACK
    return multiplier


def gaussian_epsilon(noise_multiplier: float, delta: float) -> float:
    """Return the smallest epsilon of Gaussian noise, over its L2 sensitivity, at delta; of infinite noise 0."""
    return exact_gaussian_epsilon(1.0 / noise_multiplier, delta)


@functools.lru_cache(maxsize=4096)
def zcdp_rho(epsilon: float, delta: float) -> float:
    """Compute the largest rho, to six digits, for which rho-zCDP gives (epsilon, delta)-DP.

    Its `account` never exceeds `epsilon`. At order a, the Renyi divergence is at most ``rho a`` (Bun and Steinke 2016).
    """
    check_budget(epsilon, delta)

    def enough(rho: float) -> bool:
        return renyi_epsilon(lambda orders: rho * orders, delta) <= epsilon

    # rho alone is below epsilon, and rho + 2 sqrt(rho log(1/delta)) = epsilon is always enough (Bun and Steinke 2016).
    log_term = math.log(1.0 / delta)
    low, high = (epsilon / (math.sqrt(log_term) + math.sqrt(log_term + epsilon))) ** 2, epsilon
    while not enough(low):
        low /= 2.0
    return bisect(enough, low, high, 1e-6, geometric=True)[0]


def check_sampled_gaussian(
    sample_rate: float, n_steps: int, neighbours: Neighbours, releases: tuple[float, ...] = ()
) -> None:
    """Raise ValueError, naming the argument and its value, for a plan of sampled steps that is out of range."""
    if not 0 < sample_rate <= 1:
        raise ValueError(f"sample_rate={sample_rate!r}: must be above 0 and at most 1")
    if n_steps != int(n_steps) or not 1 <= n_steps <= _MOST_STEPS:
        raise ValueError(f"n_steps={n_steps!r}: must be a whole number from 1 to {_MOST_STEPS}")
    if neighbours not in NEIGHBOURS:
        raise ValueError(f"neighbours={neighbours!r}: {nearest_name(neighbours, NEIGHBOURS)}")
    for multiplier in releases:
        if not multiplier > 0:
            raise ValueError(f"releases={releases!r}: noise multipliers must be positive numbers")


def sampled_gaussian_event(
    noise_multiplier: float, sample_rate: float, n_steps: int, releases: tuple[float, ...] = ()
) -> Event:
    """Make the event of Gaussian steps on Poisson-sampled rows, and of Gaussian releases made before them.

    A step draws each row with the public probability `sample_rate`, independently, and may depend on the outputs of
    earlier steps. `noise_multiplier` is the standard deviation of the noise on the sum of the drawn rows' vectors, over
    the largest L2 norm of one such vector: the contribution of one row, the unit for both relations. `releases` are
    multipliers of plain Gaussian releases in the same unit, infinite where a release costs nothing.
    """
    steps = SelfComposed(PoissonSampled(sample_rate, Gaussian(noise_multiplier)), int(n_steps))
    return Composed((steps, *(Gaussian(multiplier) for multiplier in releases if math.isfinite(multiplier))))


@functools.lru_cache(maxsize=4096)
def calibrate_sampled_gaussian(
    epsilon: float,
    delta: float,
    sample_rate: float,
    n_steps: int,
    neighbours: Neighbours,
    releases: tuple[float, ...] = (),
) -> float:
    """Compute the least noise for Gaussian steps on Poisson-sampled rows.

    `account` of the event (`sampled_gaussian_event`) with this multiplier never exceeds `epsilon`. It has five digits,
    so that all machines find the same number, and is never below 0.05; for ``sample_rate=1`` it has nine. Under
    ``replace_one`` a row's vector may become its opposite. Raises ValueError for an argument out of range (delta below
    1e-9 for sampled rows), and where the releases alone cost more than the budget.
    """
    check_budget(epsilon, delta)
    if sample_rate != 1 and delta < _SMALLEST_SAMPLED_DELTA:
        raise ValueError(
            f"delta={delta!r}: must be at least {_SMALLEST_SAMPLED_DELTA:g} for sampled steps, the accuracy of the "
            "accountant"
        )
    check_sampled_gaussian(sample_rate, n_steps, neighbours, releases)
    released = relation_factor(neighbours) * math.sqrt(sum(multiplier**-2.0 for multiplier in releases))
    largest_signal = 1.0 / gaussian_noise_multiplier(epsilon, delta)
    if released >= largest_signal:
        raise ValueError(
            f"releases={releases!r}: alone they cost epsilon {gaussian_epsilon(1.0 / released, delta):.4g}, and "
            f"epsilon={epsilon!r} leaves nothing for the steps"
        )

    def spent(multiplier: float, points: float = FINE_POINTS) -> float:
        exact, losses = ExactGaussian(neighbours), LossDistributions(neighbours, points)
        event = sampled_gaussian_event(multiplier, sample_rate, n_steps, releases)
        return (exact if sample_rate == 1 else losses).epsilon(event, delta)

    # The signal that remains for the steps, as if they were one Gaussian release.
    signal = math.sqrt((largest_signal - released) * (largest_signal + released)) / relation_factor(neighbours)
    if sample_rate == 1:
        multiplier = math.sqrt(n_steps) / signal * (1.0 + _ROUND_OFF_SLACK)
        while spent(multiplier) > epsilon:
            multiplier *= 1.0 + _ROUND_OFF_SLACK
        return multiplier
    # By the central limit theorem, many steps are like one Gaussian release.
    root = -0.5 * math.log(math.log1p((signal / sample_rate) ** 2 / n_steps))
    for points, step in ((COARSE_POINTS, 0.1), (FINE_POINTS, 1e-3)):
        root = _root(functools.partial(spent, points=points), epsilon, root, step)
    multiplier, growth = _round_up(max(math.exp(root), _SMALLEST_MULTIPLIER)), 1e-5
    # Check the answer, whatever the search did.
    while spent(multiplier) > epsilon:
        if multiplier > _LARGEST_MULTIPLIER:
            raise ValueError(
                f"epsilon={epsilon!r}: no noise multiplier up to {_LARGEST_MULTIPLIER:g} is enough for the accountant; "
                "the budget is too small for so many steps"
            )
        multiplier, growth = _round_up(multiplier * (1.0 + growth)), 2.0 * growth
    return multiplier


def _round_up(number: float) -> float:
    """Round up to five digits, allowing for round-off."""
    unit = 10.0 ** (4 - math.floor(math.log10(number)))
    return math.ceil(number * (1.0 - _ROUND_OFF_SLACK) * unit) / unit


def _root(spent: Callable[[float], float], epsilon: float, guess: float, step: float) -> float:
    """Find the log multiplier where so much is spent, with steps from a guess; or an end of the range."""
    from scipy.optimize import brentq

    @functools.cache
    def excess(log_multiplier: float) -> float:
        # Limited for an epsilon of zero or infinity.
        return math.log(min(max(spent(math.exp(log_multiplier)) / epsilon, 1e-20), 1e20))

    low, high = math.log(_SMALLEST_MULTIPLIER), math.log(_LARGEST_MULTIPLIER)
    lower = upper = min(max(guess, low), high)
    while excess(upper) > 0 and upper < high:
        lower, upper, step = upper, min(upper + step, high), 2.0 * step
    while excess(lower) <= 0 and lower > low:
        lower, upper, step = max(lower - step, low), lower, 2.0 * step
    if excess(upper) > 0 or excess(lower) <= 0:
        return upper if excess(upper) > 0 else lower
    return float(brentq(excess, lower, upper, xtol=1e-6, rtol=1e-6))
