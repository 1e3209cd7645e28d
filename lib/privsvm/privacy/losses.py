"""Privacy loss distributions of composed events, rounded up, by dp_accounting."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

from privsvm.privacy.events import EpsilonDelta, Event, Gaussian, Laplace, Neighbours, PoissonSampled, relation_factor

# Points of the grid of privacy losses in one standard deviation of a step's loss: rounding the losses costs about 3 in
# 10 000 of epsilon, four times as much with half the points. More points bring more round-off and little else.
COARSE_POINTS, FINE_POINTS = 5.0, 20.0
_COARSEST_LOSSES = 0.02
# With smaller rates, the rounding costs more.
_MOST_LOSSES = 200_000
# Points in a standard deviation of all losses together, at most; no steps of ours need more.
_FINEST_SHARE = 20_000.0
# On a finer grid, the probability of a loss vanishes in round-off.
_FINEST_LOSSES = 1e-8
# Losses that vary more protect nobody, and their grid would take all memory.
LARGEST_DEVIATION = 60.0

# The Fourier transforms of dp_accounting are wrong by up to 6e-12 in delta, in either direction, for 20 000 steps; the
# error grows with the steps.
_TRANSFORM_SLACK, _SLACK_STEPS = 1e-10, 200_000


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


def _spreads(event_counts: Sequence[tuple[Event, int]], group: int) -> list[tuple[float, float, float, int]]:
    """Spread and count of all events; a step on rows of a group counts as one whose losses are about as large."""
    spreads = []
    for event, count in _merge_gaussians(event_counts, group):
        if isinstance(event, PoissonSampled) and group > 1:
            rate = min(1.0, group * event.sampling_probability)
            event = PoissonSampled(rate, Gaussian(event.event.noise_multiplier / group))
        spreads.append((*_spread(event), count))
    return spreads


def transform_slack(event_counts: Sequence[tuple[Event, int]]) -> float:
    """Bound the delta that the round-off of composed `loss_distribution` may lose."""
    most = max(count for event, count in [*event_counts, (None, 1)] if not isinstance(event, Gaussian))
    return _TRANSFORM_SLACK * max(1.0, most / _SLACK_STEPS)


def _merge_gaussians(event_counts: Sequence[tuple[Event, int]], group: int) -> list[tuple[Event, int]]:
    """Make all Gaussian releases one: they compose exactly."""
    plain = group * math.sqrt(
        sum(count * event.noise_multiplier**-2.0 for event, count in event_counts if isinstance(event, Gaussian))
    )
    others = [(event, count) for event, count in event_counts if not isinstance(event, Gaussian)]
    return [*others, (Gaussian(1.0 / plain), 1)] if plain > 0 else others


def loss_grid(
    event_counts: Sequence[tuple[Event, int]],
    points: float = FINE_POINTS,
    group: int = 1,
    most_losses: int = _MOST_LOSSES,
) -> float:
    """Choose the distance of two losses for `loss_distribution`, with at most so many of them for one event."""
    # Rounding makes a loss L of one event more variable by the grid's width times E|L|. The width keeps that small
    # beside the variance of all losses together. For E|L| it takes the geometric mean of that and of the deviation: a
    # large epsilon depends on the rare large losses.
    spreads = _spreads(event_counts, group)
    variance = sum(count * deviation**2 for _, deviation, _, count in spreads)
    sizes = sum(count * math.sqrt(mean * deviation) for mean, deviation, _, count in spreads)
    width = min(variance / sizes / points, _COARSEST_LOSSES)
    # A plain epsilon is rounded up to the grid every time; a tiny one beside large losses does not set the grid.
    epsilons = [event.epsilon for event, _ in event_counts if isinstance(event, EpsilonDelta)]
    width = min([width, *(0.1 * epsilon / points for epsilon in epsilons)])
    coarsest = (largest / most_losses for _, _, largest, _ in spreads)
    return max(width, _FINEST_LOSSES, math.sqrt(variance) / _FINEST_SHARE, *coarsest)


def loss_deviation(event_counts: Sequence[tuple[Event, int]], group: int = 1) -> float:
    """Compute about the standard deviation of all losses together."""
    return math.sqrt(sum(count * deviation**2 for _, deviation, _, count in _spreads(event_counts, group)))


def loss_distribution(
    event_counts: Sequence[tuple[Event, int]], neighbours: Neighbours, width: float, group: int = 1
) -> Any:
    """Compose privacy loss distributions, rounded up to a grid of this width.

    Events are `Gaussian`, `Laplace`, `PoissonSampled` and `EpsilonDelta`, with how often each happens; `width` is the
    distance of two losses, see `loss_grid`. A `group` above 1 is for ``add_remove``, and for `Gaussian` and
    `PoissonSampled` alone. Returns a PrivacyLossDistribution of dp_accounting.

    Connect the dots (Doroshenko et al. 2022). A sampled step is the pair ``(1-q) N(0, s^2) + q N(1, s^2)`` against
    ``N(0, s^2)``, both ways, for ``add_remove``, and against ``(1-q) N(0, s^2) + q N(-1, s^2)`` for ``replace_one``. A
    plain (epsilon, delta) counts as the worst mechanism that has it. Of a group, a step draws a binomial number of
    rows, which are all alike in the worst case: a mixture of Gaussians (Ganesh 2024, Tight group-level DP guarantees
    for DP-SGD with sampling via mixture of Gaussians mechanisms).
    """
    return _compose_losses(tuple(_merge_gaussians(event_counts, group)), width, neighbours, group)


# Cached: the proof and the risk are computed from the same distribution.
@functools.lru_cache(maxsize=2)
def _compose_losses(
    event_counts: tuple[tuple[Event, int], ...], width: float, neighbours: Neighbours, group: int
) -> Any:
    from dp_accounting.pld import privacy_loss_distribution

    total = privacy_loss_distribution.identity(width)
    for event, count in event_counts:
        event_losses = _discretise(event, width, neighbours, group)
        total = total.compose(event_losses if count == 1 else event_losses.self_compose(count))
    return total


def _discretise(event: Event, width: float, neighbours: Neighbours, group: int) -> Any:
    """Round the losses of one event up to a grid."""
    import dp_accounting
    from dp_accounting.pld import common, privacy_loss_distribution

    if isinstance(event, EpsilonDelta):
        parameters = common.DifferentialPrivacyParameters(event.epsilon, event.delta)
        return privacy_loss_distribution.from_privacy_parameters(parameters, width)
    if isinstance(event, Laplace):
        return privacy_loss_distribution.from_laplace_mechanism(
            event.noise_multiplier / relation_factor(neighbours), value_discretization_interval=width
        )
    noise = event.event if isinstance(event, PoissonSampled) else event
    assert isinstance(noise, Gaussian)
    rate = event.sampling_probability if isinstance(event, PoissonSampled) else 1.0
    if group > 1 and isinstance(event, PoissonSampled):
        return privacy_loss_distribution.from_mixture_gaussian_mechanism(
            noise.noise_multiplier,
            list(range(group + 1)),
            [math.comb(group, j) * rate**j * (1.0 - rate) ** (group - j) for j in range(group + 1)],
            value_discretization_interval=width,
        )
    relations = dp_accounting.NeighboringRelation
    return privacy_loss_distribution.from_gaussian_mechanism(
        noise.noise_multiplier,
        value_discretization_interval=width,
        sampling_prob=rate,
        neighboring_relation=relations.REPLACE_ONE if neighbours == "replace_one" else relations.ADD_OR_REMOVE_ONE,
    )
