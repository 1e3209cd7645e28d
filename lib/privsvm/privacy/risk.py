"""Leakage of a release: bounds on every test that tells neighbours apart, from all deltas of an event at once.

An event has a delta for every epsilon, of which a stated (epsilon, delta) is one. A test with false-positive rate a has
a true-positive rate of at most ``e^epsilon a + delta(epsilon)`` and of at most
``1 - e^-epsilon (1 - a - delta(epsilon))``, for each epsilon; the least of these bounds is the trade-off curve of the
event (Dong, Roth and Su 2022, Gaussian differential privacy). As a function of ``e^epsilon``, delta is convex, and
``delta(-epsilon) = 1 - e^-epsilon (1 - delta(epsilon))``, since the relation of neighbours is symmetric: a chord
between two points that lie nowhere below the curve of delta lies nowhere below it.

Every curve here is an upper bound, so the least of several is one. docs/proofs/risk.md has the proofs.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections.abc import Callable
from statistics import NormalDist

import numpy as np

from privsvm.privacy.accountants import (
    ExactGaussian,
    LossDistributions,
    ObjectivePerturbationAccountant,
    PureBudgets,
    group_account,
    scale_event,
)
from privsvm.privacy.events import (
    EpsilonDelta,
    Event,
    ExponentialMechanism,
    Laplace,
    Neighbours,
    OneOf,
    PoissonSampled,
    leaves,
)
from privsvm.privacy.gaussian_delta import ROUND_UP, gaussian_delta
from privsvm.privacy.losses import LARGEST_DEVIATION, loss_deviation, loss_distribution, loss_grid, transform_slack
from privsvm.privacy.objective_perturbation_delta import corner_delta
from privsvm.privacy.renyi import renyi_divergence

# Both kinds of errors have at least this rate where the Gaussian curve of `TradeOff.mu` lies nowhere below.
SMALLEST_RATE = 1e-6

# Widest grid of Laplace noise over its scale: of released vectors, and of the counts beside them that measure a model.
LAPLACE_GRID, COUNT_GRID = 2.0**-14, 2.0**-6

# Covers the round-off of conversions from Renyi divergences and of linear interpolation.
_ROUND_OFF = 1e-9

# Points of a curve from privacy loss distributions at most, and of one that is compared with Gaussian ones.
_MOST_LOSSES, _MU_POINTS = 100_000, 301
_LARGEST_LOSS = 700.0
_SMALLEST_DELTA = 1e-12

# Golden-section search: the bracket shrinks to 1e-11 of its width.
_GOLDEN, _SEARCH_STEPS = 0.5 * (math.sqrt(5.0) - 1.0), 52

# Logarithms (base 2) of Renyi orders less 1, around the one that is best for a Gaussian release at delta e^-5.
_ORDERS = np.linspace(-8.0, 8.0, 4001)
_SMALLEST_EXCESS = 0.01


def _least(function: Callable[[float], float], low: float, high: float) -> float:
    """Least value of a function that falls, then rises: the least of those that golden-section search looks at."""
    best = min(function(low), function(high))
    if high <= low:
        return best
    first, second = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at_first, at_second = function(first), function(second)
    for _ in range(_SEARCH_STEPS):
        best = min(best, at_first, at_second)
        if at_first <= at_second:
            high, second, at_second = second, first, at_first
            first = high - _GOLDEN * (high - low)
            at_first = function(first)
        else:
            low, first, at_first = first, second, at_second
            second = low + _GOLDEN * (high - low)
            at_second = function(second)
    return min(best, at_first, at_second)


@dataclasses.dataclass(frozen=True)
class _Curve:
    """Upper bound on delta, as a function of epsilon.

    `delta` holds for each epsilon from `start` on, does not rise, and stops falling noticeably at `reach`. `signal`
    belongs to Gaussian noise, where the curve is its own.
    """

    delta: Callable[[float], float]
    start: float
    reach: float
    signal: float | None = None

    def true_positive_rate(self, rate: float) -> float:
        """Largest true-positive rate at a false-positive rate."""

        def likelier(epsilon: float) -> float:
            return (math.exp(epsilon) * rate if epsilon <= _LARGEST_LOSS else float(rate > 0.0)) + self.delta(epsilon)

        def rarer(epsilon: float) -> float:
            return 1.0 - math.exp(-epsilon) * (1.0 - rate - self.delta(epsilon))

        up, down = (_least(line, self.start, self.reach) for line in (likelier, rarer))
        return min(up * ROUND_UP, down + (ROUND_UP - 1.0), 1.0)

    def excess(self, slope: float) -> float:
        """Largest true-positive rate less `slope`, at least 1, times the false-positive rate, of any test."""
        epsilon = max(math.nextafter(math.log(slope), 0.0), 0.0)
        if epsilon >= self.start:
            return min(self.delta(epsilon), 1.0)
        # The chord from -start to start.
        delta, high, low = self.delta(self.start), math.exp(self.start), math.exp(-self.start)
        share = (slope - low) / (high - low)
        return min(((1.0 - share) * (1.0 - low * (1.0 - delta)) + share * delta) * ROUND_UP, 1.0)

    @functools.cached_property
    def mu(self) -> float:
        """Signal of a Gaussian curve that lies nowhere below where both error rates are at least `SMALLEST_RATE`."""
        if self.signal is not None:
            return self.signal
        quantile = NormalDist().inv_cdf
        largest_mu = 0.0
        for alarms, power in [(SMALLEST_RATE, self.true_positive_rate(SMALLEST_RATE)), *self._corners()]:
            if power >= 1.0:
                return math.inf
            if alarms >= SMALLEST_RATE:
                largest_mu = max(largest_mu, quantile(power) - quantile(alarms))
        return largest_mu * (1.0 + _ROUND_OFF)

    def _corners(self) -> list[tuple[float, float]]:
        """Find the corners of a trade-off curve of lines: the convex hull's of some points of delta.

        Two concave curves need be compared at the corners of one alone. The other half follows by symmetry.
        """
        epsilons = np.linspace(self.start, self.reach, _MU_POINTS)
        deltas = np.minimum.accumulate([min(self.delta(float(epsilon)), 1.0) for epsilon in epsilons])
        slopes = np.exp(epsilons)
        points = list(zip(slopes.tolist(), deltas.tolist(), strict=True))
        if self.start > 0.0:
            points.insert(0, (1.0 / points[0][0], 1.0 - (1.0 - points[0][1]) / points[0][0]))
        hull: list[tuple[float, float]] = []
        for slope, delta in points:
            while len(hull) > 1 and _above(hull[-2], hull[-1], (slope, delta)):
                hull.pop()
            hull.append((slope, delta))
        corners = []
        for (slope, delta), (next_slope, next_delta) in itertools.pairwise(hull):
            if next_slope > slope:
                alarms = (delta - next_delta) / (next_slope - slope)
                corners.append((alarms, delta + alarms * slope))
        return corners


def _above(first: tuple[float, float], middle: tuple[float, float], last: tuple[float, float]) -> bool:
    """Whether the middle one of three points lies on or above the line through the others."""
    rise = (middle[1] - first[1]) * (last[0] - first[0])
    return rise >= (last[1] - first[1]) * (middle[0] - first[0])


@dataclasses.dataclass(frozen=True)
class TradeOff:
    """Bounds on all tests that tell from a release which of two neighbours it came from.

    They hold for tests that know everything but the one row, or the rows of a group: all other rows, the method, and
    its releases. `alternatives` are the curves of possible events; of each alternative, several that all hold.
    """

    alternatives: tuple[tuple[_Curve, ...], ...]

    def true_positive_rate(self, false_positive_rate: float) -> float:
        """Bound how often a test is right that a row was used, for how often it is wrong."""
        if not 0.0 <= false_positive_rate <= 1.0:
            raise ValueError(f"false_positive_rate={false_positive_rate!r}: must lie between 0 and 1")
        return self._worst(lambda curve: curve.true_positive_rate(false_positive_rate))

    def guess(self, prior: float) -> float:
        """Bound how often the best guess is right, where a row was used with this probability."""
        if not 0.0 <= prior <= 1.0:
            raise ValueError(f"prior={prior!r}: must lie between 0 and 1")
        rare = min(prior, 1.0 - prior)
        if rare == 0.0:
            return 1.0
        slope = (1.0 - rare) / rare
        return self._worst(lambda curve: min((1.0 - rare + rare * curve.excess(slope)) * ROUND_UP, 1.0))

    @property
    def advantage(self) -> float:
        """The most by which a true-positive rate exceeds its false-positive rate."""
        return self._worst(lambda curve: curve.excess(1.0))

    @property
    def mu(self) -> float:
        """Distance, in standard deviations, of two Gaussians that are at least as easy to tell apart.

        At false-positive and false-negative rates from `SMALLEST_RATE` on; of Gaussian noise, at all.
        """
        return self._worst(lambda curve: curve.mu)

    def _worst(self, bound: Callable[[_Curve], float]) -> float:
        return max(min(map(bound, curves)) for curves in self.alternatives)


@dataclasses.dataclass(frozen=True)
class Risk:
    """Bounds on the leakage of a release about one row or a group of rows; no number is below the truth.

    `rows` rows are in question together. A test with this `false_positive_rate`, which calls unused rows used, has at
    most this `true_positive_rate`; `advantage` is the most by which a true-positive rate may exceed its false-positive
    rate. With the `prior` probability that the rows were used, the best guess is right with probability `guess` at
    most. `mu` is the distance, in standard deviations, of two Gaussians that are at least as easy to tell apart; see
    `TradeOff.mu`.
    """

    rows: int
    false_positive_rate: float
    true_positive_rate: float
    prior: float
    guess: float
    advantage: float
    mu: float


def _laplace_curve(epsilon: float, grid: float) -> _Curve:
    """Curve of one vector with Laplace noise: of one number that moves as far, and of rounding it to a grid."""

    def delta(at: float) -> float:
        return -math.expm1(0.5 * (at - epsilon)) * ROUND_UP + grid * grid / 8.0 if at < epsilon else 0.0

    return _Curve(delta, 0.0, min(epsilon, _LARGEST_LOSS))


def _pure_curve(epsilon: float) -> _Curve:
    """Curve of the worst release with pure differential privacy: randomised response."""

    def delta(at: float) -> float:
        return -math.expm1(at - epsilon) / (1.0 + math.exp(-epsilon)) * ROUND_UP if at < epsilon else 0.0

    return _Curve(delta, 0.0, min(epsilon, _LARGEST_LOSS))


def _point_curve(epsilon: float, delta: float) -> _Curve:
    """Curve of whatever is (epsilon, delta)-DP."""
    return _Curve(lambda at: delta, epsilon, epsilon)


def _curve_from(start: float, delta: Callable[[float], float]) -> _Curve:
    """Curve of a function of epsilon, up to where it is tiny."""
    width = 2.0**-10
    while delta(start + width) > _SMALLEST_DELTA and width < _LARGEST_LOSS:
        width *= 1.5
    return _Curve(delta, start, min(start + width, max(start, _LARGEST_LOSS)))


def _renyi_curves(event: Event, neighbours: Neighbours) -> list[_Curve]:
    """Curves from Renyi divergences; none where a part has none."""
    at_two = renyi_divergence(event, np.array([2.0]), neighbours)
    if at_two is None or not 0.0 < at_two[0] < math.inf:
        return []
    excess = 2.0 ** (0.5 * math.log2(10.0 / float(at_two[0])) + _ORDERS)
    orders = 1.0 + excess[excess > _SMALLEST_EXCESS]
    orders = np.concatenate([[1.0 + _SMALLEST_EXCESS], orders])
    divergences = renyi_divergence(event, orders, neighbours)
    assert divergences is not None
    # Canonne, Kamath and Steinke (2020), Proposition 12.
    constants = (orders - 1.0) * (divergences + np.log1p(-1.0 / orders)) - np.log(orders)

    def delta(epsilon: float) -> float:
        least = float((constants - (orders - 1.0) * epsilon).min())
        return math.exp(min(least, 0.0)) * (1.0 + _ROUND_OFF)

    # The Kullback-Leibler divergence is at most any of them (Pinsker's inequality).
    total_variation = math.sqrt(0.5 * float(divergences.min())) * (1.0 + _ROUND_OFF)
    return [_curve_from(0.0, delta), _Curve(lambda epsilon: min(total_variation, 1.0), 0.0, 0.0)]


def _loss_curves(event: Event, neighbours: Neighbours, laplace_grid: float, group: int = 1) -> list[_Curve]:
    """Curve from privacy loss distributions, rounded up; none where losses vary so much that nobody is protected."""
    event_counts = [
        (EpsilonDelta(leaf.epsilon, 0.0) if isinstance(leaf, ExponentialMechanism) else leaf, count)
        for leaf, count in leaves(event)
        if leaf != EpsilonDelta(0.0, 0.0)
    ]
    if loss_deviation(event_counts, group) > LARGEST_DEVIATION:
        return []
    width = loss_grid(event_counts, group=group, most_losses=_MOST_LOSSES // 2)
    total = loss_distribution(event_counts, neighbours, width, group)
    n_laplace = sum(count for event, count in event_counts if isinstance(event, Laplace))
    slack = transform_slack(event_counts) + n_laplace * laplace_grid**2 / 8.0
    ends = (float(total.get_epsilon_for_delta(delta)) for delta in (slack, 1e-6, 1e-3))
    reach = min(next(filter(math.isfinite, ends), _LARGEST_LOSS), _LARGEST_LOSS)
    # Between points of the grid, delta is linear.
    epsilons = width * np.arange(0, math.ceil(reach / width) + 2, math.ceil(reach / width / _MOST_LOSSES))
    slopes = np.exp(epsilons)
    deltas = np.minimum.accumulate(np.asarray(total.get_delta_for_epsilon(epsilons)) + slack) * (1.0 + _ROUND_OFF)

    def delta(epsilon: float) -> float:
        return float(np.interp(math.exp(min(epsilon, _LARGEST_LOSS)), slopes, deltas))

    return [_Curve(delta, 0.0, float(epsilons[-1]))]


def _corner_curves(event: Event, neighbours: Neighbours) -> list[_Curve]:
    """Curve of perturbed objectives by themselves; none where there are too many corners."""
    corners = ObjectivePerturbationAccountant(neighbours)
    start, arguments = corners.curvature(event), corners.arguments(event)
    if math.isinf(corner_delta(0.0, *arguments)):
        return []

    def delta(epsilon: float) -> float:
        # The share of delta that `delta_of_minima` takes off.
        return min(corner_delta(max(epsilon - start, 0.0), *arguments) * (1.0 + 2.0**-48), 1.0)

    return [_curve_from(start, delta)]


def _group_curve(curve: _Curve, rows: int) -> _Curve:
    """Curve for k rows: at k epsilon, that for one at epsilon times ``1 + e^epsilon + ... + e^((k - 1) epsilon)``."""

    def delta(epsilon: float) -> float:
        one = epsilon / rows
        times = float(rows) if one == 0.0 else math.expm1(epsilon) / math.expm1(one)
        return min(curve.delta(one) * times * ROUND_UP**4, 1.0)

    return _Curve(delta, rows * curve.start * ROUND_UP, min(rows * curve.reach, _LARGEST_LOSS))


def _curves(event: Event, neighbours: Neighbours, laplace_grid: float) -> list[_Curve]:
    """Curves of an event by all means that know every part of it; the first alone where it is exact."""
    (first, count), *others = leaves(event)
    alone = count == 1 and not others
    exact, pure, corners = (
        ExactGaussian(neighbours),
        PureBudgets(neighbours),
        ObjectivePerturbationAccountant(neighbours),
    )
    if exact.knows(event):
        signal = exact.signal(event) * ROUND_UP
        reach = 0.5 * signal * signal + 40.0 * signal
        return [_Curve(functools.partial(gaussian_delta, signal=signal), 0.0, reach, signal)]
    curves = []
    if pure.knows(event):
        added = pure.epsilon(event, 0.0) * ROUND_UP
        if alone and isinstance(first, Laplace):
            return [_laplace_curve(added, laplace_grid)]
        curves.append(_pure_curve(added))
    if LossDistributions(neighbours).knows(event) or all(isinstance(leaf, Laplace) for leaf, _ in leaves(event)):
        return [*curves, *_loss_curves(event, neighbours, laplace_grid)]
    curves += _renyi_curves(event, neighbours)
    if alone and isinstance(first, EpsilonDelta):
        curves.append(_point_curve(first.epsilon, first.delta))
    return curves + (_corner_curves(event, neighbours) if corners.knows(event) else [])


@functools.lru_cache(maxsize=256)
def _alternative(
    event: Event, neighbours: Neighbours, rows: int, deltas: tuple[float, ...], laplace_grid: float
) -> tuple[_Curve, ...]:
    """All curves that hold for one event that surely happens."""
    scaled = event if rows == 1 else scale_event(event, rows)
    curves = _curves(scaled, neighbours, laplace_grid)
    if rows > 1 and any(isinstance(leaf, PoissonSampled) for leaf, _ in leaves(event)):
        curves += [_group_curve(curve, rows) for curve in _curves(event, neighbours, laplace_grid)]
        if LossDistributions(neighbours, rows=rows).knows(event):
            curves += _loss_curves(event, neighbours, laplace_grid, rows)
    if not curves or (rows == 1 and curves[0].signal is None):
        points = [(group_account(event, rows, delta, neighbours).epsilon, delta) for delta in deltas]
        curves += [_point_curve(epsilon, delta) for epsilon, delta in points if math.isfinite(epsilon)]
    return tuple(curves) or (_Curve(lambda epsilon: 1.0, 0.0, 0.0),)


def trade_off(event: Event, neighbours: Neighbours, rows: int = 1, delta: float | None = None) -> TradeOff:
    """Bound all tests that tell neighbours apart by a release.

    Neighbours differ in `rows` rows. What (epsilon, `delta`) alone says of a stated delta is among the bounds. They are
    exact for Gaussian noise, however often composed, and for Laplace noise on one vector; from privacy loss
    distributions for compositions with Laplace noise or drawn rows; otherwise from corners, Renyi divergences, and
    (epsilon, delta) alone.
    """
    if not isinstance(rows, int) or isinstance(rows, bool) or rows < 1:
        raise ValueError(f"rows={rows!r}: must be a whole number of at least 1")
    deltas = () if delta is None else (delta,)
    event_counts = leaves(event)
    if len(event_counts) == 1 and isinstance(event_counts[0][0], OneOf) and event_counts[0][1] == 1:
        return TradeOff(
            tuple(
                _alternative(alternative, neighbours, rows, deltas, COUNT_GRID)
                for alternative in event_counts[0][0].events
            )
        )
    return TradeOff((_alternative(event, neighbours, rows, deltas, LAPLACE_GRID),))
