"""Trends and ratios that a paper states in words, and the meaning of each word as a number.

A statement agrees if the whole interval of our runs lies in the region of its word, and is refuted if none of it does.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import scipy.stats

from reproduce.engine.distributions import LEVELS, SINGLE, Distribution

_SAMPLES = 2000


class Estimate(NamedTuple):
    """A number computed from printed numbers, and the central 95 % of its distribution in our runs."""

    middle: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.middle:.3g} ({self.low:.3g} to {self.high:.3g})"


class Region(NamedTuple):
    """Numbers for which a word holds."""

    low: float
    high: float
    meaning: str


# Declared before the numbers, and the same for every paper.
WORDS: Mapping[str, Region] = {
    "rises": Region(0.0, math.inf, "a slope above 0"),
    "falls": Region(-math.inf, 0.0, "a slope below 0"),
    "steadily": Region(0.0, math.inf, "no step downwards"),
    "little effect": Region(1.0 / 1.1, 1.1, "at most 10 % between the ends of the range"),
    "linear": Region(0.75, 1.25, "an exponent of 0.75 to 1.25"),
    "O(n^2)": Region(-math.inf, 2.0, "an exponent of at most 2"),
    "O(n^3)": Region(-math.inf, 3.0, "an exponent of at most 3"),
    "slightly more": Region(1.0, 1.25, "a ratio of 1 to 1.25"),
    "less": Region(0.0, 1.0, "a ratio below 1"),
    "far less": Region(0.0, 0.5, "at most half"),
    "several times": Region(2.0, math.inf, "at least twice"),
    "much higher": Region(0.2, math.inf, "at least 0.2 higher"),
    "close": Region(-0.02, 0.02, "a difference of at most 0.02"),
    "roughly": Region(-0.05, 0.05, "a difference of at most 0.05"),
}


def judge_word(word: str, estimate: Estimate) -> str:
    """Judge one of `WORDS` by an estimate: "agrees", "refuted" or "cannot discriminate".

    An interval on both sides of a border decides nothing.
    """
    low, high, _ = WORDS[word]
    if low < estimate.low and estimate.high < high:
        return "agrees"
    return "refuted" if estimate.high < low or estimate.low > high else "cannot discriminate"


def _draw(items: Sequence[Distribution]) -> np.ndarray:
    """Draw independent printed numbers (n, k), at the same quantiles for each list of this length."""
    rng = np.random.Generator(np.random.Philox(key=[20260, len(items)]))
    return np.column_stack([np.interp(rng.random(_SAMPLES), LEVELS, item.quantiles) for item in items])


def _estimate(values: np.ndarray) -> Estimate:
    low, middle, high = np.quantile(values, [0.025, 0.5, 0.975])
    return Estimate(float(middle), float(low), float(high))


def _once(items: Sequence[Distribution]) -> bool:
    return any(item.statistic == SINGLE for item in items)


def _student(middle: float, error: float, freedom: int) -> Estimate:
    """Estimate with the interval of Student's distribution; without a degree of freedom it has no bounds."""
    width = error * float(scipy.stats.t.ppf(0.975, freedom)) if freedom > 0 else math.inf
    return Estimate(middle, middle - width, middle + width)


def slope(positions: Sequence[float], items: Sequence[Distribution], exponent: bool = False) -> Estimate:
    """Estimate the slope of a least-squares line through printed numbers at positions on the other axis.

    With `exponent`, both axes are logarithmic: 1 is growth in proportion. Numbers that were measured once are judged by
    their distances from the line.
    """
    x = np.asarray(positions, dtype=np.float64)
    if _once(items):
        values = np.array([item.median for item in items])
        x, values = (np.log(x), np.log(np.maximum(values, 1e-12))) if exponent else (x, values)
        line = scipy.stats.linregress(x, values)
        return _student(float(line.slope), float(line.stderr), x.size - 2)
    y = _draw(items)
    if exponent:
        x, y = np.log(x), np.log(np.maximum(y, 1e-12))
    centred = x - x.mean()
    return _estimate(y @ centred / (centred @ centred))


def smallest_step(items: Sequence[Distribution]) -> Estimate:
    """Estimate the smallest step from one printed number of a line to the next."""
    return _estimate(np.diff(_draw(items), axis=1).min(axis=1))


def gap_of(first: Distribution, second: Distribution) -> Estimate:
    """Estimate the difference of two printed numbers."""
    drawn = _draw([first, second])
    return _estimate(drawn[:, 0] - drawn[:, 1])


def ratio(first: Sequence[Distribution], second: Sequence[Distribution], paired: bool = False) -> Estimate:
    """Estimate the ratio of two numbers, its geometric mean over several settings.

    Of numbers that were measured once, the interval is for the mean over the settings. Two numbers of a run of which
    one contains the other rise and fall together: as `paired`, they are drawn at the same quantiles.
    """
    if _once([*first, *second]):
        logs = np.log([max(a.median, 1e-12) / max(b.median, 1e-12) for a, b in zip(first, second, strict=True)])
        error = float(logs.std(ddof=1) / math.sqrt(logs.size)) if logs.size > 1 else 0.0
        return Estimate(
            *(math.exp(min(log_bound, 700.0)) for log_bound in _student(float(logs.mean()), error, logs.size - 1))
        )
    items = [*first, *second]
    middles = np.maximum([item.median for item in items], 1e-12)
    # Delta method: the tails of a mean of a few runs reach below 0, where a logarithm has no value.
    drawn = np.column_stack([_draw(first), _draw(second)]) if paired else _draw(items)
    one, other = (np.log(middles) + drawn / middles - 1.0).T.reshape(2, len(first), _SAMPLES)
    return _estimate(np.exp(np.clip(np.mean(one - other, axis=0), -700.0, 700.0)))
