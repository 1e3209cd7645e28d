"""Convert epsilon to noise and noise to epsilon, with dp_accounting."""

from __future__ import annotations

import functools
import importlib.metadata
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from privsvm.errors import nearest_name
from privsvm.privacy.calibrations import stored_calibration
from privsvm.privacy.events import (
    NEIGHBOURS,
    EpsilonDelta,
    Event,
    Gaussian,
    Laplace,
    Neighbours,
    PoissonSampled,
    relation_factor,
)
from privsvm.privacy.gaussian_delta import exact_gaussian_epsilon, gaussian_signal
from privsvm.privacy.gaussian_losses import gaussian_losses

__all__ = [
    "GAUSSIAN_ACCOUNTANT",
    "LAPLACE_ACCOUNTANT",
    "LARGEST_DEVIATION",
    "SAMPLED_GAUSSIAN_ACCOUNTANT",
    "ZCDP_ACCOUNTANT",
    "check_budget",
    "check_sampled_gaussian",
    "delta_of_minima",
    "gaussian_epsilon",
    "gaussian_noise_multiplier",
    "loss_deviation",
    "loss_distribution",
    "loss_distribution_epsilon",
    "loss_grid",
    "objective_perturbation_divergence",
    "renyi_epsilon",
    "sampled_divergence",
    "sampled_gaussian_calibration",
    "sampled_gaussian_epsilon",
    "sampled_gaussian_noise_multiplier",
    "transform_slack",
    "zcdp_epsilon",
    "zcdp_rho",
]

GAUSSIAN_ACCOUNTANT = "analytic Gaussian, closed form"
LAPLACE_ACCOUNTANT = "discrete Laplace mechanism, closed form: L1 sensitivity over the scale"
SAMPLED_GAUSSIAN_ACCOUNTANT = "Poisson-sampled Gaussian steps, privacy loss distributions (dp_accounting)"
ZCDP_ACCOUNTANT = "zCDP of bounded-range selections, converted by Renyi divergences"

# Added to noise multipliers: covers the round-off of whoever computes a multiplier from noise and sensitivity.
_MULTIPLIER_SLACK = 1e-12
# Covers the round-off of root finders.
_ROUND_OFF_SLACK = 1e-9

_SMALLEST_EPSILON = 1e-6
# Calibrations overflow far above it.
_LARGEST_EPSILON = 1e12
# Below, float64 has few digits left for it, or for what several releases get of it.
_SMALLEST_DELTA = 1e-300

# Logarithms (base 2) of Renyi orders less 1, around the one that is best for a Gaussian release: first from afar, then
# five times closer around the best. The conversion loses its accuracy closer to 1.
_ORDERS = np.arange(-32, 33) / 4.0
_CLOSER, _ZOOM = np.arange(-8, 9) / 8.0, 5
_SMALLEST_ORDER = 1.01
_LARGEST_SAMPLED_ORDER = 1024

# Part of the name of a stored calibration: raise it with every change of its numbers.
_SAMPLED_VERSION = 1

# Points of the grid of privacy losses in one standard deviation of a step's loss: rounding the losses costs about 3 in
# 10 000 of epsilon, four times as much with half the points. More points bring more round-off and little else.
_COARSE_POINTS, _FINE_POINTS = 5.0, 20.0
_COARSEST_LOSSES = 0.02
# With smaller rates, the rounding costs more.
_MOST_LOSSES = 200_000
# Points in a standard deviation of all losses together, at most; no steps of ours need more.
_FINEST_SHARE = 20_000.0
# Losses that vary more protect nobody, and their grid would take all memory.
LARGEST_DEVIATION = 60.0

# The Fourier transforms of dp_accounting are wrong by up to 6e-12 in delta, in either direction, for 20 000 steps; the
# error grows with the steps.
_TRANSFORM_SLACK, _SLACK_STEPS = 1e-10, 200_000
_SMALLEST_SAMPLED_DELTA = 1e-9

# With less noise than this a single drawn row is visible anyway. It is used even where less would be enough.
_SMALLEST_MULTIPLIER, _LARGEST_MULTIPLIER = 0.05, 1e6
_MOST_STEPS = 10**6


def check_budget(epsilon: float, delta: float) -> None:
    """Check a privacy budget.

    Parameters
    ----------
    epsilon : float
        Must be at least 1e-6 (the calibration's accuracy) and at most 1e12.
    delta : float
        Must be at least 1e-300 (float64's accuracy) and below 1.

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
    if epsilon > _LARGEST_EPSILON:
        raise ValueError(f"epsilon={epsilon!r}: must be at most {_LARGEST_EPSILON:g}; more protects nobody")
    if not 0 < delta < 1:
        raise ValueError(f"delta={delta!r}: must lie strictly between 0 and 1")
    if delta < _SMALLEST_DELTA:
        raise ValueError(f"delta={delta!r}: must be at least {_SMALLEST_DELTA:g}, the accuracy of the accountants")


@functools.lru_cache(maxsize=4096)
def gaussian_noise_multiplier(epsilon: float, delta: float) -> float:
    """Compute the noise that makes a Gaussian release (epsilon, delta)-DP.

    Parameters
    ----------
    epsilon, delta : float
        The budget.

    Returns
    -------
    float
        The noise multiplier: standard deviation over L2 sensitivity. `gaussian_epsilon` of it never exceeds `epsilon`.

    Notes
    -----
    Analytic Gaussian mechanism (Balle and Wang 2018), valid for every epsilon; by `gaussian_delta`, which is never
    below the truth.
    """
    check_budget(epsilon, delta)
    multiplier = (1.0 + _MULTIPLIER_SLACK) / gaussian_signal(epsilon, delta)
    while gaussian_epsilon(multiplier, delta) > epsilon:
        multiplier *= 1.0 + _MULTIPLIER_SLACK
    return multiplier


def gaussian_epsilon(noise_multiplier: float, delta: float) -> float:
    """Compute the smallest epsilon for which Gaussian noise gives (epsilon, delta)-DP.

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation of the noise over the L2 sensitivity; infinite where neighbours have equal outputs.
    delta : float
        Strictly between 0 and 1.

    Returns
    -------
    float
        Never below the smallest epsilon of the Gaussian mechanism, and above it by round-off alone.
    """
    return exact_gaussian_epsilon(1.0 / noise_multiplier, delta)


def renyi_epsilon(divergence: Callable[[np.ndarray], np.ndarray], delta: float, at_two: float) -> float:
    """Convert Renyi divergences to epsilon at `delta`.

    Parameters
    ----------
    divergence : callable
        From orders above 1 to bounds on the divergence.
    delta : float
        Strictly between 0 and 1.
    at_two : float
        About the divergence of order 2, less what all orders share: says where the best order is looked for first.

    Returns
    -------
    float
        The least over all orders from 1.01, to about eleven digits: first on a coarse grid, then closer and closer
        around the best. Every order gives an upper bound.

    Notes
    -----
    Canonne, Kamath and Steinke (2020), Proposition 12.
    """
    best, epsilon = 0.5 * math.log2(2.0 * math.log(1.0 / delta) / at_two), math.inf
    for steps in (_ORDERS, *(0.25 * _CLOSER * 8.0**-zoom for zoom in range(_ZOOM))):
        logarithms = best + steps
        orders = 1.0 + 2.0**logarithms
        epsilons = divergence(orders) + np.log1p(-1.0 / orders) - np.log(delta * orders) / (orders - 1.0)
        epsilons[orders <= _SMALLEST_ORDER] = math.inf
        best, epsilon = float(logarithms[epsilons.argmin()]), min(epsilon, float(epsilons.min()))
    return max(0.0, epsilon)


def zcdp_epsilon(rho: float, delta: float) -> float:
    """Compute epsilon at `delta` of a mechanism with rho-zCDP.

    Parameters
    ----------
    rho : float
        Zero-concentrated privacy loss, positive.
    delta : float
        Strictly between 0 and 1.

    Returns
    -------
    float
        An upper bound, the best over all Renyi orders; see `renyi_epsilon`.

    Notes
    -----
    Renyi divergence of order alpha at most ``rho alpha`` (Bun and Steinke 2016).
    """
    check_budget(1.0, delta)
    return renyi_epsilon(lambda orders: rho * orders, delta, 2.0 * rho)


def objective_perturbation_divergence(orders: np.ndarray, signal: float) -> np.ndarray:
    """Bound the Renyi divergence of one minimum, without the determinants' share ``log(1 + beta)``.

    Parameters
    ----------
    orders : ndarray
        Orders, above 1.
    signal : float
        m, the largest change of the gradient over the standard deviation of the noise: ``C R / s`` if a row is added
        or removed, and twice that if one is replaced.

    Returns
    -------
    ndarray
        One bound for each order.
    """
    from scipy.special import log_ndtr

    t = np.asarray(orders, dtype=np.float64) - 1.0
    moments = np.logaddexp(
        log_ndtr(-signal / 2.0), t * (t + 1.0) * signal**2 / 2.0 + log_ndtr(signal / 2.0 + t * signal)
    )
    bounds: np.ndarray = moments / t
    return bounds


def delta_of_minima(delta: float) -> float:
    """Take off delta what perturbed objectives lose where their linear terms are absurdly long.

    `privsvm.methods.objective_perturbation` counts on linear terms no longer than ``2^10 s (sqrt(d) + 9)``. Others have
    a probability p below ``k exp(-(9 * 2^10)^2 / 2)`` for k terms of standard deviation s and length d, and the exact
    sampler wraps around with less. Such an event of the noise costs ``(1 + e^epsilon) p`` of delta. For epsilon up to
    1e7 and k up to 1e9 that is less than what is taken off here, whatever delta is.
    """
    return math.nextafter(delta * (1.0 - 2.0**-50), 0.0)


@functools.lru_cache(maxsize=4096)
def zcdp_rho(epsilon: float, delta: float) -> float:
    """Compute the largest rho, to six digits, for which rho-zCDP gives (epsilon, delta)-DP.

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


def check_sampled_gaussian(
    sample_rate: float, n_steps: int, neighbours: Neighbours, releases: tuple[float, ...] = ()
) -> None:
    """Check a plan of Poisson-sampled Gaussian steps.

    Parameters
    ----------
    sample_rate : float
        Must be above 0 and at most 1.
    n_steps : int
        Must be at least 1 and at most a million.
    neighbours : {"replace_one", "add_remove"}
        The relation.
    releases : tuple of float
        Must be positive; infinity stands for a release that costs nothing.

    Raises
    ------
    ValueError
        Naming the argument and its value.
    """
    if not 0 < sample_rate <= 1:
        raise ValueError(f"sample_rate={sample_rate!r}: must be above 0 and at most 1")
    if n_steps != int(n_steps) or not 1 <= n_steps <= _MOST_STEPS:
        raise ValueError(f"n_steps={n_steps!r}: must be a whole number from 1 to {_MOST_STEPS}")
    if neighbours not in NEIGHBOURS:
        raise ValueError(f"neighbours={neighbours!r}: {nearest_name(neighbours, NEIGHBOURS)}")
    for multiplier in releases:
        if not multiplier > 0:
            raise ValueError(f"releases={releases!r}: noise multipliers must be positive numbers")


def _check_sampled_delta(delta: float) -> None:
    """Check that delta is not lost in the round-off of the accountant."""
    check_budget(1.0, delta)
    if delta < _SMALLEST_SAMPLED_DELTA:
        raise ValueError(
            f"delta={delta!r}: must be at least {_SMALLEST_SAMPLED_DELTA:g} for sampled steps, the accuracy of the "
            "accountant"
        )


def sampled_divergence(orders: np.ndarray, sample_rate: float, noise_multiplier: float) -> np.ndarray:
    """Bound the Renyi divergence of a Gaussian step on Poisson-sampled rows, if a row is added or removed.

    Parameters
    ----------
    orders : ndarray
        Orders, above 1.
    sample_rate, noise_multiplier : float
        As in `sampled_gaussian_epsilon`.

    Returns
    -------
    ndarray
        One bound for each order; infinity above 1,024.

    Notes
    -----
    For whole orders Mironov, Talwar and Zhang (2019), section 3.3. Between them ``(order - 1)`` times the divergence,
    which is convex, is at most what the line through its neighbours says.
    """
    from scipy.special import gammaln, logsumexp

    @functools.cache
    def moment(order: int) -> float:
        j = np.arange(order + 1)
        choices = gammaln(order + 1) - gammaln(j + 1) - gammaln(order - j + 1)
        drawn = j * math.log(sample_rate) + (order - j) * math.log1p(-sample_rate)
        return float(logsumexp(choices + drawn + j * (j - 1) / (2.0 * noise_multiplier**2))) * (1.0 + 1e-12)

    bounds = np.full(len(orders), math.inf)
    for position, order in enumerate(orders.tolist()):
        if order <= _LARGEST_SAMPLED_ORDER:
            low = math.floor(order)
            above = order - low
            moments = (1.0 - above) * moment(low) + (above * moment(low + 1) if above else 0.0)
            bounds[position] = max(moments, 0.0) / (order - 1.0)
    return bounds


@functools.lru_cache(maxsize=4096)
def sampled_gaussian_epsilon(
    noise_multiplier: float,
    delta: float,
    sample_rate: float,
    n_steps: int,
    neighbours: Neighbours,
    releases: tuple[float, ...] = (),
) -> float:
    """Compute epsilon of Gaussian steps on Poisson-sampled rows, and of Gaussian releases made before them.

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation of the noise on the sum of the drawn rows' vectors, over the largest L2 norm of one such
        vector. That norm is what one row adds or removes; it is the unit for both relations.
    delta : float
        From 1e-9 to below 1.
    sample_rate : float
        Probability with which a step draws a row, independently for each row and step; public.
    n_steps : int
        Number of steps; public.
    neighbours : {"replace_one", "add_remove"}
        The relation. With ``replace_one`` a row's vector may become its opposite.
    releases : tuple of float, default=()
        Noise multipliers of plain Gaussian releases of the same rows, in the same unit: noise over what one row adds
        or removes.

    Returns
    -------
    float
        An upper bound, usually too high by at most 3 in 10 000; exact for ``sample_rate=1``. Infinity if delta is too
        small for any epsilon.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Notes
    -----
    Privacy loss distributions, rounded up (connect the dots; Doroshenko et al. 2022), of the pair
    ``(1-q) N(0, s^2) + q N(1, s^2)`` against ``N(0, s^2)``, both ways, for ``add_remove``, and against
    ``(1-q) N(0, s^2) + q N(-1, s^2)`` for ``replace_one``. Steps may depend on the outputs of earlier ones.
    """
    if not noise_multiplier > 0:
        raise ValueError(f"noise_multiplier={noise_multiplier!r}: must be a positive number")
    if sample_rate != 1:
        _check_sampled_delta(delta)
    check_sampled_gaussian(sample_rate, n_steps, neighbours, releases)
    return _sampled_epsilon(noise_multiplier, delta, sample_rate, n_steps, neighbours, releases, _FINE_POINTS)


def _sampled_epsilon(
    noise_multiplier: float,
    delta: float,
    sample_rate: float,
    n_steps: int,
    neighbours: Neighbours,
    releases: tuple[float, ...],
    points: float,
) -> float:
    """Compute `sampled_gaussian_epsilon` on a grid of `points` losses per standard deviation of the losses."""
    released = math.sqrt(sum(multiplier**-2.0 for multiplier in releases))
    if sample_rate == 1 or math.isinf(noise_multiplier):
        # Gaussian releases compose exactly.
        signal = relation_factor(neighbours) * math.hypot(math.sqrt(n_steps) / noise_multiplier, released)
        return exact_gaussian_epsilon(signal, delta)
    event_counts: list[tuple[Event, int]] = [(PoissonSampled(sample_rate, Gaussian(noise_multiplier)), int(n_steps))]
    if released > 0:
        event_counts.append((Gaussian(1.0 / released), 1))
    return loss_distribution_epsilon(event_counts, delta, neighbours, points)


def _spread(event: Event) -> tuple[float, float, float]:
    """About how large one event's losses are: their mean size, their deviation, and the largest that counts."""
    if isinstance(event, PoissonSampled):
        rate, inverse = event.sampling_probability, 1.0 / event.event.noise_multiplier
        deviation = min(rate * math.sqrt(math.expm1(min(inverse**2, 500.0))), inverse)
        mean = min(deviation, 2.0 * rate * math.erf(inverse / math.sqrt(8.0)))
        # A drawn row's loss, ten standard deviations out.
        return mean, deviation, math.log1p(rate * math.expm1(min(10.0 * inverse + 0.5 * inverse**2, 500.0)))
    if isinstance(event, Gaussian):
        return 1.0 / event.noise_multiplier, 1.0 / event.noise_multiplier, 0.0
    if isinstance(event, Laplace):
        return 1.0 / event.noise_multiplier, 1.0 / event.noise_multiplier, 2.0 / event.noise_multiplier
    assert isinstance(event, EpsilonDelta)
    return event.epsilon, event.epsilon, event.epsilon


def _together(event: Event, group: int) -> Event:
    """Return a step on rows of a group as one whose losses are about as large, to choose a grid by."""
    if group == 1 or not isinstance(event, PoissonSampled):
        return event
    return PoissonSampled(min(1.0, group * event.sampling_probability), Gaussian(event.event.noise_multiplier / group))


def loss_distribution_epsilon(
    event_counts: Sequence[tuple[Event, int]],
    delta: float,
    neighbours: Neighbours,
    points: float = _FINE_POINTS,
    group: int = 1,
) -> float:
    """Compute epsilon of composed events by their privacy loss distributions, rounded up.

    Parameters
    ----------
    event_counts : sequence of (Event, int)
        Events of the kinds `Gaussian`, `PoissonSampled` and `EpsilonDelta`, and how often each happens.
    delta : float
        Strictly between 0 and 1.
    neighbours : {"replace_one", "add_remove"}
        The relation.
    points : float, default=20
        Points of the grid of losses in one standard deviation of one event's loss.
    group : int, default=1
        Number of rows that are added or removed; above 1 only for ``add_remove``, and for no `EpsilonDelta`.

    Returns
    -------
    float
        An upper bound; infinity if delta is too small for any epsilon.

    Notes
    -----
    Connect the dots (Doroshenko et al. 2022). A plain (epsilon, delta) counts as the worst mechanism that has it. Of a
    group, a step draws a binomial number of rows, which are all alike in the worst case: a mixture of Gaussians (Ganesh
    2024, Tight group-level DP guarantees for DP-SGD with sampling via mixture of Gaussians mechanisms).
    """
    if loss_deviation(event_counts, group) > LARGEST_DEVIATION:
        return math.inf
    total = loss_distribution(event_counts, neighbours, loss_grid(event_counts, points, group), group)
    return float(total.get_epsilon_for_delta(delta - transform_slack(event_counts)))


def transform_slack(event_counts: Sequence[tuple[Event, int]]) -> float:
    """Return what the round-off of composed `loss_distribution` may take off delta."""
    most = max(count for event, count in [*event_counts, (None, 1)] if not isinstance(event, Gaussian))
    return _TRANSFORM_SLACK * max(1.0, most / _SLACK_STEPS)


def _merged(event_counts: Sequence[tuple[Event, int]], group: int) -> list[tuple[Event, int]]:
    """Make all Gaussian releases one: they compose exactly."""
    plain = group * math.sqrt(
        sum(count * event.noise_multiplier**-2.0 for event, count in event_counts if isinstance(event, Gaussian))
    )
    others = [(event, count) for event, count in event_counts if not isinstance(event, Gaussian)]
    return [*others, (Gaussian(1.0 / plain), 1)] if plain > 0 else others


def loss_grid(
    event_counts: Sequence[tuple[Event, int]],
    points: float = _FINE_POINTS,
    group: int = 1,
    most_losses: int = _MOST_LOSSES,
) -> float:
    """Choose the distance of two losses for `loss_distribution`, with at most so many of them for one event."""
    event_counts = _merged(event_counts, group)
    # Rounding makes a loss L of one event more variable by the grid's width times E|L|. The width keeps that small
    # beside the variance of all losses together. For E|L| it takes the geometric mean of that and of the deviation: a
    # large epsilon depends on the rare large losses.
    spreads = [(*_spread(_together(event, group)), count) for event, count in event_counts]
    variance = sum(count * deviation**2 for _, deviation, _, count in spreads)
    sizes = sum(count * math.sqrt(mean * deviation) for mean, deviation, _, count in spreads)
    width = min(variance / sizes / points, _COARSEST_LOSSES)
    # A plain epsilon is rounded up to the grid every time; a tiny one beside large losses does not set the grid.
    epsilons = [event.epsilon for event, _ in event_counts if isinstance(event, EpsilonDelta)]
    width = min([width, *(0.1 * epsilon / points for epsilon in epsilons)])
    return max(width, math.sqrt(variance) / _FINEST_SHARE, *(largest / most_losses for _, _, largest, _ in spreads))


def loss_deviation(event_counts: Sequence[tuple[Event, int]], group: int = 1) -> float:
    """Compute about the standard deviation of all losses together."""
    deviations = [(_spread(_together(event, group))[1], count) for event, count in _merged(event_counts, group)]
    return math.sqrt(sum(count * deviation**2 for deviation, count in deviations))


def loss_distribution(
    event_counts: Sequence[tuple[Event, int]], neighbours: Neighbours, width: float, group: int = 1
) -> Any:
    """Compose privacy loss distributions, rounded up to a grid of this width; see `loss_distribution_epsilon`.

    Events of the kind `Laplace` are allowed, too.

    Returns
    -------
    dp_accounting.pld.privacy_loss_distribution.PrivacyLossDistribution
    """
    return _composed(tuple(_merged(event_counts, group)), width, neighbours, group)


# Cached: the proof and the risk are computed from the same distribution.
@functools.lru_cache(maxsize=2)
def _composed(event_counts: tuple[tuple[Event, int], ...], width: float, neighbours: Neighbours, group: int) -> Any:
    """Compose privacy loss distributions on a grid."""
    from dp_accounting.pld import common, privacy_loss_distribution

    total = privacy_loss_distribution.identity(width)
    for event, count in event_counts:
        if isinstance(event, EpsilonDelta):
            parameters = common.DifferentialPrivacyParameters(event.epsilon, event.delta)
            event_losses = privacy_loss_distribution.from_privacy_parameters(parameters, width)
        elif isinstance(event, Laplace):
            event_losses = privacy_loss_distribution.from_laplace_mechanism(
                event.noise_multiplier / relation_factor(neighbours), value_discretization_interval=width
            )
        elif group > 1 and isinstance(event, PoissonSampled):
            rate = event.sampling_probability
            event_losses = privacy_loss_distribution.from_mixture_gaussian_mechanism(
                event.event.noise_multiplier,
                list(range(group + 1)),
                [math.comb(group, j) * rate**j * (1.0 - rate) ** (group - j) for j in range(group + 1)],
                value_discretization_interval=width,
            )
        else:
            noise = event.event if isinstance(event, PoissonSampled) else event
            assert isinstance(noise, Gaussian)
            rate = event.sampling_probability if isinstance(event, PoissonSampled) else 1.0
            event_losses = gaussian_losses(noise.noise_multiplier, rate, width, neighbours)
        total = total.compose(event_losses if count == 1 else event_losses.self_compose(count))
    return total


@functools.lru_cache(maxsize=4096)
def sampled_gaussian_calibration(
    epsilon: float,
    delta: float,
    sample_rate: float,
    n_steps: int,
    neighbours: Neighbours,
    releases: tuple[float, ...] = (),
) -> tuple[float, float]:
    """Compute the least noise for Gaussian steps on Poisson-sampled rows, and the epsilon that it gives.

    Parameters
    ----------
    epsilon, delta : float
        The budget of all steps and releases together.
    sample_rate, n_steps, neighbours, releases
        As in `sampled_gaussian_epsilon`.

    Returns
    -------
    noise_multiplier : float
        To five digits, so that all machines find the same number; never below 0.05. For ``sample_rate=1`` to nine.
    epsilon : float
        `sampled_gaussian_epsilon` of it, never above the requested one.

    Raises
    ------
    ValueError
        If an argument is out of range, or the releases alone cost more than the budget.

    Notes
    -----
    Results are kept in memory and on disk, see `privsvm.privacy.calibrations`.
    """
    check_budget(epsilon, delta)
    if sample_rate != 1:
        _check_sampled_delta(delta)
    check_sampled_gaussian(sample_rate, n_steps, neighbours, releases)
    released = relation_factor(neighbours) * math.sqrt(sum(multiplier**-2.0 for multiplier in releases))
    largest_signal = 1.0 / gaussian_noise_multiplier(epsilon, delta)
    if released >= largest_signal:
        raise ValueError(
            f"releases={releases!r}: alone they cost epsilon {gaussian_epsilon(1.0 / released, delta):.4g}, and "
            f"epsilon={epsilon!r} leaves nothing for the steps"
        )
    # The signal that remains for the steps, as if they were one Gaussian release.
    signal = math.sqrt((largest_signal - released) * (largest_signal + released)) / relation_factor(neighbours)
    if sample_rate == 1:
        multiplier = math.sqrt(n_steps) / signal * (1.0 + _ROUND_OFF_SLACK)
        while (proved := sampled_gaussian_epsilon(multiplier, delta, sample_rate, n_steps, neighbours, releases)) > (
            epsilon
        ):
            multiplier *= 1.0 + _ROUND_OFF_SLACK
        return multiplier, proved
    # By the central limit theorem, many steps are like one Gaussian release.
    guess = 1.0 / math.sqrt(math.log1p((signal / sample_rate) ** 2 / n_steps))

    def compute() -> dict[str, float]:
        multiplier = _smallest_multiplier(
            lambda multiplier, points: _sampled_epsilon(
                multiplier, delta, sample_rate, n_steps, neighbours, releases, points
            ),
            epsilon,
            guess,
        )
        proved = sampled_gaussian_epsilon(multiplier, delta, sample_rate, n_steps, neighbours, releases)
        return {"noise_multiplier": multiplier, "epsilon": proved}

    def valid(answer: Mapping[str, float]) -> bool:
        multiplier, proved = answer["noise_multiplier"], answer["epsilon"]
        return _SMALLEST_MULTIPLIER <= multiplier < math.inf and 0.0 <= proved <= epsilon

    request = {
        "accountant": SAMPLED_GAUSSIAN_ACCOUNTANT,
        "version": _SAMPLED_VERSION,
        "dp_accounting": importlib.metadata.version("dp-accounting"),
        "epsilon": float(epsilon),
        "delta": float(delta),
        "sample_rate": float(sample_rate),
        "n_steps": int(n_steps),
        "neighbours": neighbours,
        "releases": [float(multiplier) for multiplier in releases],
    }
    multiplier = stored_calibration(request, compute, valid)["noise_multiplier"]
    # Do not trust the file: account for its noise before using it.
    proved = sampled_gaussian_epsilon(multiplier, delta, sample_rate, n_steps, neighbours, releases)
    if proved > epsilon:
        answer = compute()
        multiplier, proved = answer["noise_multiplier"], answer["epsilon"]
    return multiplier, proved


def _round_up(number: float) -> float:
    """Round up to five digits, allowing for round-off."""
    unit = 10.0 ** (4 - math.floor(math.log10(number)))
    return math.ceil(number * (1.0 - _ROUND_OFF_SLACK) * unit) / unit


def _smallest_multiplier(epsilon_of: Callable[[float, float], float], epsilon: float, guess: float) -> float:
    """Find the smallest multiplier of five digits, from 0.05, whose epsilon on the fine grid is at most `epsilon`."""

    def excess(log_multiplier: float, points: float) -> float:
        """Return the logarithm of epsilon over the requested one, limited for an epsilon of zero or infinity."""
        spent = epsilon_of(math.exp(log_multiplier), points)
        return math.log(min(max(spent / epsilon, 1e-20), 1e20))

    root = _coarse_root(lambda log_multiplier: excess(log_multiplier, _COARSE_POINTS), math.log(guess))
    # The fine grid's epsilon is a little smaller: follow the coarse one's slope, then the secant.
    slope = (excess(root + 1e-3, _COARSE_POINTS) - excess(root - 1e-3, _COARSE_POINTS)) / 2e-3
    log_excess = excess(root, _FINE_POINTS)
    for _ in range(4):
        if abs(log_excess) < 1e-5 or not slope < -1e-3:
            break
        moved = root - min(max(log_excess / slope, -0.1), 0.1)
        moved_excess = excess(moved, _FINE_POINTS)
        slope, root, log_excess = (moved_excess - log_excess) / (moved - root), moved, moved_excess
    multiplier, growth = _round_up(max(math.exp(root), _SMALLEST_MULTIPLIER)), 1e-5
    # Check the answer, whatever the search did.
    while epsilon_of(multiplier, _FINE_POINTS) > epsilon:
        if multiplier > _LARGEST_MULTIPLIER:
            raise ValueError(
                f"epsilon={epsilon!r}: no noise multiplier up to {_LARGEST_MULTIPLIER:g} is enough for the accountant; "
                "the budget is too small for so many steps"
            )
        multiplier, growth = _round_up(multiplier * (1.0 + growth)), 2.0 * growth
    return multiplier


def _coarse_root(excess: Callable[[float], float], guess: float) -> float:
    """Find where a decreasing function changes sign, to 1e-5; if it does not, the nearer end of the range."""
    from scipy.optimize import brentq

    low, high = math.log(_SMALLEST_MULTIPLIER), math.log(_LARGEST_MULTIPLIER)
    lower = upper = min(max(guess, low), high)
    step = 0.1
    if excess(lower) > 0:
        while excess(upper := min(upper + step, high)) > 0:
            if upper == high:
                return high
            lower, step = upper, 2.0 * step
    else:
        while excess(lower := max(lower - step, low)) <= 0:
            if lower == low:
                return low
            upper, step = lower, 2.0 * step
    return float(brentq(excess, lower, upper, xtol=1e-5, rtol=1e-5))


def sampled_gaussian_noise_multiplier(
    epsilon: float,
    delta: float,
    sample_rate: float,
    n_steps: int,
    neighbours: Neighbours,
    releases: tuple[float, ...] = (),
) -> float:
    """Return the noise multiplier of `sampled_gaussian_calibration` alone."""
    return sampled_gaussian_calibration(epsilon, delta, sample_rate, n_steps, neighbours, releases)[0]
