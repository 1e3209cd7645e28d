"""Confidence intervals for shares that were counted on a sample, and with noise."""

from __future__ import annotations

import dataclasses
import math

import numpy as np

__all__ = ["NoisyCounts", "share_interval", "tail_probability"]

# Steps of the grid of the noise in one scale b, and how far it reaches: in scales, and in standard deviations.
_STEPS, _SCALES, _DEVIATIONS = 16, 40.0, 10.0
# Share of the error that is spent on the number of rows, where it is not public.
_FOR_NUMBER = 0.05
_BISECTIONS = 40


@dataclasses.dataclass(frozen=True, kw_only=True)
class NoisyCounts:
    """Numbers of right and wrong answers, each the sum of some noisy numbers.

    Attributes
    ----------
    right, wrong : float
        With noise.
    cells : int
        Noisy numbers in each of the two.
    scale : float
        Scale b of the Laplace noise on each of them.
    number : int or None
        Answers in all, where that is public.
    answers_per_unit : int
        Answers that are taken to be right or wrong together, those of one person. Fewer that are make the interval too
        wide.
    """

    right: float
    wrong: float
    cells: int
    scale: float
    number: int | None = None
    answers_per_unit: int = 1

    def numbers(self, error: float) -> tuple[float, float]:
        """Range of the number of answers, which is not inside with a share `_FOR_NUMBER` of an error."""
        if self.number is not None:
            return float(self.number), float(self.number)
        at, weights = _noise(self.scale, 2 * self.cells, 1.0, 0.0)
        reach = float(at[np.searchsorted(np.cumsum(weights), 1.0 - 0.5 * _FOR_NUMBER * error)])
        total = self.right + self.wrong
        return max(total - reach, 0.0), max(total + reach, 0.0)


def _noise(scale: float, cells: int, first: float, second: float) -> tuple[np.ndarray, np.ndarray]:
    """Distribution of `first` times one sum of Laplace numbers plus `second` times another: places and weights."""
    step = scale / _STEPS
    half = _SCALES * scale + _DEVIATIONS * scale * math.sqrt(2.0 * cells)
    size = 2 ** math.ceil(math.log2(2.0 * half / step))
    cosine = np.cos(2.0 * math.pi * np.arange(size // 2 + 1) / size)
    spectrum = np.ones(size // 2 + 1)
    for weight in (first, second):
        if weight > 0.0:
            # Laplace numbers on the grid: probabilities go as p^|x|.
            p = math.exp(-step / (weight * scale))
            spectrum *= ((1.0 - p) ** 2 / (1.0 - 2.0 * p * cosine + p * p)) ** cells
    weights = np.fft.fftshift(np.fft.irfft(spectrum, size))
    return step * (np.arange(size) - size // 2), np.maximum(weights, 0.0)


def tail_probability(counts: NoisyCounts, share: float, number: float) -> float:
    """Probability that counts speak for a larger share at least as clearly as these.

    Parameters
    ----------
    counts : NoisyCounts
        Of which the right ones less the share of all are compared: what the number of rows is hardly matters for that.
    share : float
        True share of right answers, from 0 to 1.
    number : float
        True number of answers.

    Returns
    -------
    float
        Over rows drawn independently, and over the noise.
    """
    from scipy.special import betainc

    statistic = (1.0 - share) * counts.right - share * counts.wrong
    at, weights = _noise(counts.scale, counts.cells, 1.0 - share, share)
    drawn = math.ceil(number / counts.answers_per_unit)
    # At least so many of the drawn must be right for each value of the noise.
    least = np.ceil((statistic - at) / counts.answers_per_unit + share * drawn - 1e-9)
    inside = np.clip(least, 1.0, max(drawn, 1))
    chance = betainc(inside, drawn - inside + 1.0, share) if drawn else np.zeros(at.size)
    chance = np.where(least <= 0.0, 1.0, np.where(least > drawn, 0.0, chance))
    return float(weights @ chance)


def share_interval(counts: NoisyCounts, error: float = 0.05) -> tuple[float, float]:
    """Bound a share from both sides.

    Parameters
    ----------
    counts : NoisyCounts
        Right and wrong answers.
    error : float, default=0.05
        Probability, at most, that the share is not inside.

    Returns
    -------
    low, high : float
        Where either tail has half the error, of what noise and sampling do together.
    """
    other = dataclasses.replace(counts, right=counts.wrong, wrong=counts.right)
    return _lowest(counts, error), 1.0 - _lowest(other, error)


def _lowest(counts: NoisyCounts, error: float) -> float:
    """Smallest share for which counts like these are not too rare."""
    numbers = counts.numbers(error)
    if counts.number is None:
        error *= 1.0 - _FOR_NUMBER
    low, high = 0.0, 1.0
    for _ in range(_BISECTIONS):
        middle = 0.5 * (low + high)
        rare = max(tail_probability(counts, middle, number) for number in set(numbers)) < 0.5 * error
        low, high = (middle, high) if rare else (low, middle)
    return low
