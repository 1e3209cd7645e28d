"""Confidence intervals for shares that were counted on a sample, and with noise."""

from __future__ import annotations

import dataclasses
import math

import numpy as np

# Steps of the grid of the noise in one scale b, and how far it reaches: in scales, and in standard deviations.
_STEPS, _SCALES, _DEVIATIONS = 16, 40.0, 10.0
# Share of the error that is spent on the number of rows, where it is not public.
_FOR_NUMBER = 0.05
_BISECTIONS = 40


@dataclasses.dataclass(frozen=True, kw_only=True)
class NoisyCounts:
    """Numbers of right and wrong answers, each the sum of some noisy numbers.

    The right ones are the sum of `cells` noisy numbers, the wrong ones of `wrong_cells`, each with Laplace noise of
    scale b, `scale`. `number` counts all answers, where that is public. `answers_per_unit` answers of one person are
    taken to be right or wrong together; if fewer are, the interval is too wide.
    """

    right: float
    wrong: float
    cells: int
    wrong_cells: int
    scale: float
    number: int | None = None
    answers_per_unit: int = 1

    @property
    def reversed(self) -> NoisyCounts:
        """Counts of the same answers with right and wrong exchanged."""
        return dataclasses.replace(
            self, right=self.wrong, wrong=self.right, cells=self.wrong_cells, wrong_cells=self.cells
        )

    def weights(self, share: float) -> tuple[float, float]:
        """Weights of right and wrong answers in the statistic that is compared with a share; they add up to 1.

        Where the sum is public, both tell the same, and the one with less noise counts more. Else it must cancel.
        """
        if self.number is None:
            return 1.0 - share, share
        right = self.wrong_cells / (self.cells + self.wrong_cells)
        return right, 1.0 - right

    def numbers(self, error: float) -> tuple[float, float]:
        """Range of the number of answers, which is not inside with a share `_FOR_NUMBER` of an error."""
        if self.number is not None:
            return float(self.number), float(self.number)
        at, weights = _noise(self.scale, (1.0, self.cells + self.wrong_cells))
        reach = float(at[np.searchsorted(np.cumsum(weights), 1.0 - 0.5 * _FOR_NUMBER * error)])
        total = self.right + self.wrong
        return max(total - reach, 0.0), max(total + reach, 0.0)


def _noise(scale: float, *sums: tuple[float, int]) -> tuple[np.ndarray, np.ndarray]:
    """Distribution of weighted sums of so many Laplace numbers each: places and weights."""
    step = scale / _STEPS
    half = _SCALES * scale + _DEVIATIONS * scale * math.sqrt(2.0 * max(cells for _, cells in sums))
    size = 2 ** math.ceil(math.log2(2.0 * half / step))
    cosine = np.cos(2.0 * math.pi * np.arange(size // 2 + 1) / size)
    spectrum = np.ones(size // 2 + 1)
    for weight, cells in sums:
        if weight > 0.0:
            # Laplace numbers on the grid: probabilities go as p^|x|.
            p = math.exp(-step / (weight * scale))
            spectrum *= ((1.0 - p) ** 2 / (1.0 - 2.0 * p * cosine + p * p)) ** cells
    weights = np.fft.fftshift(np.fft.irfft(spectrum, size))
    return step * (np.arange(size) - size // 2), np.maximum(weights, 0.0)


def tail_probability(counts: NoisyCounts, share: float, number: float) -> float:
    """Compute the probability that counts speak for a larger share at least as clearly as these.

    `share` is the true share of right answers, from 0 to 1, and `number` the true number of answers. The right ones
    less the share of all are compared, for which the number of rows hardly matters. The probability is over rows drawn
    independently, and over the noise.
    """
    from scipy.special import betainc

    right_weight, wrong_weight = counts.weights(share)
    statistic = right_weight * counts.right - wrong_weight * counts.wrong
    if counts.number is not None:
        statistic += (1.0 - right_weight - share) * counts.number
    at, weights = _noise(counts.scale, (right_weight, counts.cells), (wrong_weight, counts.wrong_cells))
    drawn = math.ceil(number / counts.answers_per_unit)
    # At least so many of the drawn must be right for each value of the noise.
    least = np.ceil((statistic - at) / counts.answers_per_unit + share * drawn - 1e-9)
    inside = np.clip(least, 1.0, max(drawn, 1))
    chance = betainc(inside, drawn - inside + 1.0, share) if drawn else np.zeros(at.size)
    chance = np.where(least <= 0.0, 1.0, np.where(least > drawn, 0.0, chance))
    return float(weights @ chance)


def share_interval(counts: NoisyCounts, error: float = 0.05) -> tuple[float, float]:
    """Bound a share from both sides; it lies outside with probability `error` at most.

    Either tail has half the error, by noise and sampling together.
    """
    return _lowest(counts, error), 1.0 - _lowest(counts.reversed, error)


def estimate_share(counts: NoisyCounts, error: float = 0.05) -> tuple[float, float, float]:
    """Estimate a share, inside its interval, which follows it."""
    low, high = share_interval(counts, error)
    if counts.number is None:
        share = counts.right / max(counts.right + counts.wrong, 1.0)
    else:
        # Both counts tell of it where their sum is known, the more the less noise they have.
        right, wrong = counts.weights(0.0)
        share = (right * counts.right + wrong * (counts.number - counts.wrong)) / max(counts.number, 1)
    return min(max(share, low), high), low, high


def share_is_above(counts: NoisyCounts, share: float, error: float = 0.05) -> bool:
    """Return whether the lower end of `share_interval` lies above a share, without a search for that end."""
    numbers = counts.numbers(error)
    if counts.number is None:
        error *= 1.0 - _FOR_NUMBER
    return max(tail_probability(counts, share, number) for number in set(numbers)) < 0.5 * error


def _lowest(counts: NoisyCounts, error: float) -> float:
    """Smallest share for which counts like these are not too rare."""
    low, high = 0.0, 1.0
    for _ in range(_BISECTIONS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if share_is_above(counts, middle, error) else (low, middle)
    return low
