"""Statistics that tell the releases of two neighbouring datasets apart, chosen on releases that are then left out."""

from __future__ import annotations

import dataclasses

import numpy as np

from privsvm.privacy.lower_bounds import CONFIDENCE, counts_bound

__all__ = ["Statistic", "Threshold", "choose_statistic", "choose_threshold", "separation"]

# A number whose spread is below this share of its move tells two datasets apart for certain.
_NO_SPREAD = 1e-9

# Numbers of a release beyond these tell little more, and cost time.
_MOST_NUMBERS = 4096

_QUANTILES = 400


@dataclasses.dataclass(frozen=True)
class Statistic:
    """A number made of a release: a projection of its numbers and, where they help, of their squared distances.

    Attributes
    ----------
    centre, direction : ndarray (k,)
        ``(release - centre) @ direction``.
    squares : ndarray (k,) or None
        Weights of ``(release - centre)^2``, for neighbours that differ in the size of their noise.
    """

    centre: np.ndarray
    direction: np.ndarray
    squares: np.ndarray | None = None

    @property
    def linear(self) -> bool:
        """Whether it is a projection, which leaves normal numbers normal."""
        return self.squares is None

    def __call__(self, releases: np.ndarray) -> np.ndarray:
        """Compute the statistic (n,) of releases (n, k)."""
        moved = releases[:, : self.centre.size] - self.centre
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
    # What lies within the noise of the means is left out, lest many silent numbers drown one that speaks.
    noise = np.sqrt(1.0 / len(first) + 1.0 / len(second))
    strong = np.abs(signal) > min(2.0 * noise, float(np.abs(signal).max(initial=0.0)) / 2.0)
    return np.where(strong & (spread > 0), signal / np.where(spread > 0, spread, 1.0), 0.0)


def choose_statistic(first: np.ndarray, second: np.ndarray, linear: bool = False) -> Statistic:
    """Choose what tells two samples of releases apart best.

    Parameters
    ----------
    first, second : ndarray (n, k)
        Releases of the two datasets, which are not counted afterwards.
    linear : bool, default=False
        Whether to keep to projections.

    Returns
    -------
    Statistic
        Larger on the first dataset.
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
    if scores[1] <= 1.2 * scores[0] + 0.1:
        return Statistic(centre, _weights(first, second))
    return square


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
    """An event: the statistic is above `value` (or at most, if `below`) on the first dataset (the second, if `below`).

    Attributes
    ----------
    value : float
        Where the event begins.
    below : bool
        Which side, and which dataset it is to be likely on.
    """

    value: float
    below: bool

    def count(self, first: np.ndarray, second: np.ndarray) -> tuple[int, int, int, int]:
        """Count hits and runs where the event is likely, then where it is not."""
        hits, others = int((first > self.value).sum()), int((second > self.value).sum())
        if self.below:
            return second.size - others, second.size, first.size - hits, first.size
        return hits, first.size, others, second.size


def _grid(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    shares = np.concatenate([np.linspace(0.0, 1.0, _QUANTILES), np.logspace(-4, -2, 20), 1.0 - np.logspace(-4, -2, 20)])
    values = np.unique(np.quantile(np.concatenate([first, second]), shares))
    # Between two values, so that round-off decides nothing.
    middle = (values[1:] + values[:-1]) / 2.0
    return np.unique(np.concatenate([values, middle]))


def choose_threshold(
    first: np.ndarray,
    second: np.ndarray,
    runs: int,
    delta: float,
    symmetric: bool = False,
    confidence: float = CONFIDENCE,
) -> Threshold:
    """Choose the event that so many further runs are to count.

    Parameters
    ----------
    first, second : ndarray (n,)
        The statistic of releases that are not counted.
    runs : int
        Runs on each dataset that will be.
    delta : float
        Goes with epsilon.
    symmetric : bool, default=False
        Choose for `f_dp_bound`, where both errors count alike, in place of `counts_bound`.
    confidence : float
        Of the bound. The surer it is to be, the more often the event must occur.

    Returns
    -------
    Threshold
    """
    values = _grid(first, second)
    above = 1.0 - np.searchsorted(np.sort(first), values, side="right") / first.size
    other = 1.0 - np.searchsorted(np.sort(second), values, side="right") / second.size
    if symmetric:
        return Threshold(float(values[np.argmax(above - other)]), False)
    # An event that was not seen in n runs is taken to have the probability 1 / n.
    least, other_least = 1.0 / first.size, 1.0 / second.size
    up = counts_bound(runs * above, runs, runs * np.maximum(other, other_least), runs, delta, confidence)
    down = counts_bound(runs * (1.0 - other), runs, runs * np.maximum(1.0 - above, least), runs, delta, confidence)
    below = bool(down.max() > up.max())
    return Threshold(float(values[np.argmax(down if below else up)]), below)
