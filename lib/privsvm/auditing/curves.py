"""Trade-off curves of recorded events: what any test of so many releases can show of them, and bounds that use them.

A curve gives the largest power that a test with so many false alarms can have. From it follows the most that counts
can be expected to show. Where the curve is one of a family, the weaker the more noise there is, the errors of a test
rule out all members that do not allow them.
"""

from __future__ import annotations

import abc
import bisect
import dataclasses
import functools
import math
from collections.abc import Sequence

import numpy as np

from privsvm.privacy.events import Gaussian, Neighbours, PoissonSampled
from privsvm.privacy.gaussian_delta import smallest_epsilon
from privsvm.privacy.losses import loss_distribution, loss_grid
from privsvm.privacy.lower_bounds import CONFIDENCE, Bound, counts_bound, limits

# False alarms at which curves are looked at.
_ALARMS = np.concatenate([np.logspace(-7, -1, 241), np.linspace(0.1, 0.999, 120)[1:]])

# Noise of the members of a family, in units of the recorded noise.
_NOISE = np.exp(np.linspace(math.log(0.4), math.log(8.0), 76))

_LOSSES = np.concatenate([np.linspace(0.0, 4.0, 161), np.linspace(4.0, 30.0, 105)[1:]])
_POINTS = 8.0


class Curve(abc.ABC):
    """A trade-off curve."""

    @abc.abstractmethod
    def power(self, alarms: np.ndarray) -> np.ndarray:
        """Largest power of a test with these probabilities of a false alarm, or more than that."""

    def counts_ceiling(self, delta: float, runs: float) -> float:
        """Bound by counts that so many runs on each neighbour can be expected to show."""
        powers = np.clip(self.power(_ALARMS), 0.0, 1.0)
        return float(np.max(counts_bound(runs * powers, runs, runs * _ALARMS, runs, delta), initial=0.0))


@dataclasses.dataclass(frozen=True)
class LaplaceCurve(Curve):
    """Of Laplace noise on one number; `shift` is the distance of neighbours over the scale."""

    shift: float

    def power(self, alarms: np.ndarray) -> np.ndarray:
        # An event in the tail of one is as many times likelier on the other, up to its own middle.
        tail = np.minimum(alarms * math.exp(min(self.shift, 500.0)), 0.5)
        with np.errstate(divide="ignore"):
            beyond = 1.0 - 0.25 * math.exp(-self.shift) / np.maximum(alarms, 1e-300)
        small = np.where(alarms < 0.5, np.where(tail < 0.5, tail, beyond), 1.0)
        past: np.ndarray = np.where(alarms < 0.5, small, 1.0 - (1.0 - alarms) * math.exp(-self.shift))
        return past


@dataclasses.dataclass(frozen=True)
class TableCurve(Curve):
    """Of releases with finitely many outcomes, by their probabilities on the two datasets."""

    first: np.ndarray
    second: np.ndarray

    @functools.cached_property
    def _steps(self) -> tuple[np.ndarray, np.ndarray]:
        order = np.argsort(-self.first / self.second, kind="stable")
        return np.append(0.0, np.cumsum(self.second[order])), np.append(0.0, np.cumsum(self.first[order]))

    def power(self, alarms: np.ndarray) -> np.ndarray:
        power: np.ndarray = np.interp(alarms, *self._steps)
        return power

    def counts_ceiling(self, delta: float, runs: float) -> float:
        """As of all curves; events are sets of outcomes, likely on either dataset."""
        alarms, powers = self._steps
        events = ((powers, alarms), (1.0 - alarms, 1.0 - powers))
        return float(max(np.max(counts_bound(runs * p, runs, runs * q, runs, delta), initial=0.0) for p, q in events))

    def epsilon(self, delta: float) -> float:
        """Compute the smallest epsilon of these two distributions."""
        epsilon = 0.0
        for one, other in ((self.first, self.second), (self.second, self.first)):

            def delta_of(at: float, one: np.ndarray = one, other: np.ndarray = other) -> float:
                return float(np.maximum(one - math.exp(at) * other, 0.0).sum())

            epsilon = max(epsilon, smallest_epsilon(delta_of, delta, 60.0))
        return epsilon


@functools.lru_cache(maxsize=512)
def _profile(rate: float, noise: float, count: int, neighbours: Neighbours, delta: float) -> tuple[np.ndarray, float]:
    """Delta for each of `_LOSSES`, and epsilon for a delta."""
    event_counts = [(PoissonSampled(rate, Gaussian(noise)), count)]
    losses = loss_distribution(event_counts, neighbours, loss_grid(event_counts, _POINTS))
    return np.asarray(losses.get_delta_for_epsilon(_LOSSES)), float(losses.get_epsilon_for_delta(delta))


@dataclasses.dataclass(frozen=True)
class SampledCurve(Curve):
    """Of the dominating pair of steps that read rows with some probability.

    `rate` is the sampling probability, `noise` the noise multiplier as recorded, and `count` the number of steps.
    """

    rate: float
    noise: float
    count: int
    neighbours: Neighbours
    delta: float

    def _power(self, alarms: np.ndarray, noise: float) -> tuple[np.ndarray, float]:
        deltas, epsilon = _profile(self.rate, noise, self.count, self.neighbours, self.delta)
        alarms = np.asarray(alarms, dtype=np.float64)[..., None]
        up = (np.exp(_LOSSES) * alarms + deltas).min(axis=-1)
        down = (1.0 - (1.0 - alarms - deltas) * np.exp(-_LOSSES)).min(axis=-1)
        return np.minimum(up, down), epsilon

    def power(self, alarms: np.ndarray) -> np.ndarray:
        return self._power(alarms, self.noise)[0]

    def _epsilon(self, power: float, alarm: float) -> float:
        """Epsilon of the member with the least noise that has not such a power: all with more noise have not, too."""

        def exceeds(member: int) -> bool:
            return power > float(self._power(np.array(alarm), self.noise * _NOISE[member])[0])

        member = bisect.bisect_left(range(len(_NOISE)), True, key=exceeds)
        return self._power(np.array(alarm), self.noise * _NOISE[member])[1] if member < len(_NOISE) else 0.0

    def f_dp_bound(self, hits: float, runs: float, other_hits: float, other_runs: float, confidence: float) -> Bound:
        """Bound epsilon by the errors of a test; see `privsvm.privacy.lower_bounds.f_dp_bound`."""
        miss = (1.0 - confidence) / 2.0
        low = self._epsilon(float(limits(hits, runs, miss)[0]), float(limits(other_hits, other_runs, miss)[1]))
        return Bound(low, max(low, self._epsilon(hits / runs, other_hits / other_runs)))

    def f_dp_ceiling(self, runs: float) -> float:
        """Compute what so many runs of the recorded noise can be expected to show."""
        powers = self.power(_ALARMS)
        best = int(np.argmax(powers - _ALARMS))
        return self.f_dp_bound(runs * powers[best], runs, runs * _ALARMS[best], runs, CONFIDENCE).epsilon


def table_of(first: Sequence[np.ndarray], second: Sequence[np.ndarray]) -> TableCurve:
    """Compose independent choices, by the probabilities of their candidates on the two datasets."""
    one: np.ndarray = np.ones(1)
    other: np.ndarray = np.ones(1)
    for probabilities, others in zip(first, second, strict=True):
        one, other = np.outer(one, probabilities).ravel(), np.outer(other, others).ravel()
        # Outcomes of equal loss are as good as one.
        losses, inverse = np.unique(np.round(np.log(one / other), 9), return_inverse=True)
        one, other = (np.bincount(inverse, weights=weights, minlength=losses.size) for weights in (one, other))
    return TableCurve(one, other)
