"""Statistics that tell the releases of two neighbouring datasets apart, chosen on releases that are then left out."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
from scipy.special import ndtr

from privsvm.privacy.lower_bounds import CONFIDENCE, counts_bound

# A number whose spread is below this share of its move tells two datasets apart for certain.
_NO_SPREAD = 1e-9

# Numbers that a sum of limited ones may choose from, and how much more another of them must show.
_MOST_LIMITED, _LEAST_GAIN = 12, 0.03

# Numbers of a release beyond these tell little more, and cost time.
_MOST_NUMBERS = 4096

_QUANTILES = 400

# Thresholds between normal samples reach so many standard deviations beyond their means.
_FAR = 6.0


@dataclasses.dataclass(frozen=True)
class Statistic:
    """A number made of a release: a projection of its numbers and, where they help, of their squared distances.

    The projection is ``(release - centre) @ direction``. `squares` (k,) weigh ``(release - centre)^2``, for neighbours
    that differ in the size of their noise. `limits` (k,) cut ``release - centre``, for noise such as Laplace's: far
    numbers tell no more than near ones.
    """

    centre: np.ndarray
    direction: np.ndarray
    squares: np.ndarray | None = None
    limits: np.ndarray | None = None

    @property
    def n_numbers(self) -> int:
        """Numbers of a release that it reads."""
        return self.centre.size

    def __call__(self, releases: np.ndarray) -> np.ndarray:
        """Compute the statistic (n,) of releases (n, k)."""
        moved = releases[:, : self.centre.size] - self.centre
        if self.limits is not None:
            moved = np.clip(moved, -self.limits, self.limits)
        values: np.ndarray = moved @ self.direction
        return values if self.squares is None else values + (moved * moved) @ self.squares


def _weights(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Fisher's direction for independent numbers; of a number without spread that moves, all the weight."""
    move = first.mean(axis=0) - second.mean(axis=0)
    spread = np.sqrt((first.var(axis=0) + second.var(axis=0)) / 2.0)
    size = np.maximum(np.abs(first).max(axis=0), np.abs(second).max(axis=0))
    moves = np.abs(move) > 1e-12 * size
    # Round-off in a mean of equal numbers is no move.
    certain = moves & (spread <= _NO_SPREAD * np.abs(move))
    if certain.any():
        return np.where(certain, np.sign(move) / np.where(size > 0, size, 1.0), 0.0)
    signal = np.where(spread > 0, move / np.where(spread > 0, spread, 1.0), 0.0)
    # Drop numbers within the noise of their means: many silent ones would drown one signal.
    noise = np.sqrt(1.0 / len(first) + 1.0 / len(second))
    strong = np.abs(signal) > min(2.0 * noise, float(np.abs(signal).max(initial=0.0)) / 2.0)
    return np.where(strong & (spread > 0), signal / np.where(spread > 0, spread, 1.0), 0.0)


def _choose_numbers(
    first: np.ndarray, second: np.ndarray, runs: int, delta: float, confidence: float
) -> tuple[Statistic, float]:
    """Choose a few numbers that show most together, each as far as it tells; return their evidence too.

    Between two Laplace distributions, the privacy loss is the distance to their middle over the scale, cut at the
    centres of both. A number that is a function of others adds nothing to them, and is not chosen.
    """
    middles = np.median(first, axis=0), np.median(second, axis=0)
    move, centre = middles[0] - middles[1], (middles[0] + middles[1]) / 2.0
    spread = (np.abs(first - middles[0]).mean(axis=0) + np.abs(second - middles[1]).mean(axis=0)) / 2.0
    weights = np.divide(2.0, spread, out=np.zeros_like(spread), where=(spread > 0) & (move != 0))
    tried = np.argsort(-np.abs(move) * weights, kind="stable")[:_MOST_LIMITED].tolist()
    limits, direction = np.abs(move) / 2.0, np.zeros_like(move)
    limited_numbers = [
        np.clip(rows[:, tried] - centre[tried], -limits[tried], limits[tried]) for rows in (first, second)
    ]
    limited_numbers = [column * (np.sign(move) * weights)[tried] for column in limited_numbers]
    sums, shown = [np.zeros(len(rows)) for rows in (first, second)], 0.0
    remaining = list(range(len(tried)))
    while remaining:
        bounds = [
            most_shown(
                sums[0] + limited_numbers[0][:, index], sums[1] + limited_numbers[1][:, index], runs, delta, confidence
            )
            for index in remaining
        ]
        best = int(np.argmax(bounds))
        if bounds[best] <= shown + _LEAST_GAIN:
            break
        index, shown = remaining.pop(best), bounds[best]
        sums = [total + column[:, index] for total, column in zip(sums, limited_numbers, strict=True)]
        direction[tried[index]] = (np.sign(move) * weights)[tried[index]]
    return Statistic(centre, direction, limits=limits), shown


def choose_statistic(
    first: np.ndarray,
    second: np.ndarray,
    linear: bool = False,
    runs: int = 0,
    delta: float = 0.0,
    confidence: float = CONFIDENCE,
) -> Statistic:
    """Choose what tells two samples of releases apart best.

    The releases (n, k) are not counted afterwards. If `linear`, keep to projections. Where `runs` on each dataset will
    show more of it, at this delta and confidence, numbers are cut; 0: they never are. The statistic is larger on the
    first dataset.
    """
    first, second = first[:, :_MOST_NUMBERS], second[:, :_MOST_NUMBERS]
    half, other = max(1, len(first) // 2), max(1, len(second) // 2)
    centre = (first[:half].mean(axis=0) + second[:other].mean(axis=0)) / 2.0
    plain = Statistic(centre, _weights(first[:half], second[:other]))
    if linear:
        return Statistic(centre, _weights(first, second))
    moved, other_moved = first[:half] - centre, second[:other] - centre
    both = _weights(np.hstack([moved, moved**2]), np.hstack([other_moved, other_moved**2]))
    square = Statistic(centre, both[: centre.size], both[centre.size :])
    scores = [separation(one(first[half:]), one(second[other:])) for one in (plain, square)]
    smooth = Statistic(centre, _weights(first, second)) if scores[1] <= 1.2 * scores[0] + 0.1 else square
    if runs == 0:
        return smooth
    # Both were chosen on all of these releases, so both look a little better than they are.
    limited, shown = _choose_numbers(first, second, runs, delta, confidence)
    plainly = most_shown(smooth(first), smooth(second), runs, delta, confidence)
    return limited if shown > plainly + _LEAST_GAIN else smooth


def separation(values: np.ndarray, others: np.ndarray) -> float:
    """Say how far two samples of a statistic are apart, in standard deviations; robust against far values."""
    if not (values.size and others.size):
        return 0.0
    move = float(np.median(values) - np.median(others))
    low, high = np.quantile(np.concatenate([values - np.median(values), others - np.median(others)]), [0.16, 0.84])
    spread = float(high - low) / 2.0
    if abs(move) <= 1e-12 * float(np.abs(values).max()):
        # Equal medians, as of counts: the means may differ all the same.
        total = float(np.sqrt((values.var() + others.var()) / 2.0))
        return float(values.mean() - others.mean()) / total if total > 0 else 0.0
    return move / max(spread, 1e-9 * abs(move))


@dataclasses.dataclass(frozen=True)
class Threshold:
    """One or two events, which are counted together.

    The first dataset is likely where the statistic is `above` a number, the second where it is at most `below`.
    """

    above: float | None = None
    below: float | None = None

    @property
    def mixed(self) -> bool:
        """Whether two events are counted together."""
        return self.above is not None and self.below is not None

    def count(self, first: np.ndarray, second: np.ndarray) -> tuple[int, int, int, int]:
        """Count hits and runs where the events are likely, then where they are not."""
        counts = np.zeros(4, dtype=np.int64)
        if self.above is not None:
            counts += [(first > self.above).sum(), first.size, (second > self.above).sum(), second.size]
        if self.below is not None:
            counts += [(second <= self.below).sum(), second.size, (first <= self.below).sum(), first.size]
        hits, runs, others, other_runs = counts.tolist()
        return hits, runs, others, other_runs


def _grid(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    shares = np.concatenate([np.linspace(0.0, 1.0, _QUANTILES), np.logspace(-4, -2, 20), 1.0 - np.logspace(-4, -2, 20)])
    values = np.unique(np.quantile(np.concatenate([first, second]), shares))
    # Between two values, so that round-off decides nothing.
    middle = (values[1:] + values[:-1]) / 2.0
    return np.unique(np.concatenate([values, middle]))


def _above(sample: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Share of a sample above each value."""
    share: np.ndarray = 1.0 - np.searchsorted(np.sort(sample), values, side="right") / sample.size
    return share


def _shares(first: np.ndarray, second: np.ndarray, normal: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Thresholds, and the shares of both samples above them: as they are, or of the normal distributions they suggest.

    Of rare events few are seen or none; two normal distributions say how rare they are.
    """
    spread = math.sqrt((float(first.var()) + float(second.var())) / 2.0)
    if not (normal and spread > 0):
        values = _grid(first, second)
        return values, _above(first, values), _above(second, values)
    means = float(first.mean()), float(second.mean())
    values = np.linspace(min(means) - _FAR * spread, max(means) + _FAR * spread, _QUANTILES)
    above, other = (ndtr((mean - values) / spread) for mean in means)
    return values, above, other


def _side(
    likely: np.ndarray, rare: np.ndarray, sizes: tuple[int, int], runs: int, normal: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Shares of events where they are likely and where they are rare, both a standard error worse than they look.

    Of many events, the one with the largest expected bound is so rare that chance takes most of it away.
    """
    shares = []
    for share, size, sign in zip((likely, rare), sizes, (-1.0, 1.0), strict=True):
        # An event that was not seen in n runs is taken to have the probability 1 / n.
        least = share if normal or sign < 0 else np.maximum(share, 1.0 / size)
        error = np.sqrt(least * (1.0 - least) * (1.0 / runs + (0.0 if normal else 1.0 / size)))
        shares.append(np.clip(least + sign * error, 0.0, 1.0))
    return shares[0], shares[1]


def _sides(
    first: np.ndarray, second: np.ndarray, runs: int, normal: bool
) -> tuple[np.ndarray, tuple[tuple[np.ndarray, np.ndarray], ...]]:
    """Thresholds, and `_side` of the events above them and below."""
    values, above, other = _shares(first, second, normal)
    up = _side(above, other, (first.size, second.size), runs, normal)
    return values, (up, _side(1.0 - other, 1.0 - above, (second.size, first.size), runs, normal))


def most_shown(first: np.ndarray, second: np.ndarray, runs: int, delta: float, confidence: float) -> float:
    """Return the largest bound that so many runs would show with any threshold; see `choose_threshold`."""
    _, sides = _sides(first, second, runs, False)
    return float(max(counts_bound(runs * p, runs, runs * q, runs, delta, confidence).max() for p, q in sides))


def choose_threshold(
    first: np.ndarray,
    second: np.ndarray,
    runs: int,
    delta: float,
    symmetric: bool = False,
    confidence: float = CONFIDENCE,
    normal: bool = False,
) -> Threshold:
    """Choose the event that so many further runs are to count.

    The samples (n,) are not counted, and `runs` on each dataset will be. `symmetric` is for `f_dp_bound`, where both
    errors count alike, in place of `counts_bound`. The surer the bound is to be, the more often the event must occur.
    If `normal`, choose as if both samples were of normal distributions; the counts then assume nothing.
    """
    if symmetric:
        values, above, other = _shares(first, second, normal)
        return Threshold(above=float(values[np.argmax(above - other)]))
    values, sides = _sides(first, second, runs, normal)
    alone = [counts_bound(runs * p, runs, runs * q, runs, delta, confidence) for p, q in sides]
    # Two events that are counted together are seen twice as often.
    many = 2 * runs
    best_indices = [int(counts_bound(many * p, many, many * q, many, delta, confidence).argmax()) for p, q in sides]
    p, q = (sum(side[which][index] for side, index in zip(sides, best_indices, strict=True)) / 2.0 for which in (0, 1))
    both = float(counts_bound(many * p, many, many * q, many, delta, confidence, mixed=True))
    if both >= max(alone[0].max(), alone[1].max()):
        return Threshold(float(values[best_indices[0]]), float(values[best_indices[1]]))
    if alone[1].max() > alone[0].max():
        return Threshold(below=float(values[alone[1].argmax()]))
    return Threshold(above=float(values[alone[0].argmax()]))
