"""Trends and ratios that a paper states in words, with the interval that our own runs give them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import scipy.stats

from privsvm_bench.reproduction.distributions import LEVELS, SINGLE, Distribution

__all__ = ["Estimate", "ratio", "slope", "trend"]

_SAMPLES = 2000


class Estimate(NamedTuple):
    """A number that is computed from printed numbers, and the central 95 % of what it would be in our runs."""

    middle: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.middle:.3g} ({self.low:.3g} to {self.high:.3g})"


def _drawn(items: Sequence[Distribution]) -> np.ndarray:
    """Draws (n, k) of independent printed numbers."""
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
    """Estimate the slope of a least-squares line through printed numbers.

    Parameters
    ----------
    positions : sequence of float
        Where the numbers stand on the other axis.
    items : sequence of Distribution
        Of each number.
    exponent : bool, default=False
        Take logarithms on both axes: 1 is growth in proportion.

    Returns
    -------
    Estimate
        Of numbers that were measured once, by their distances from the line.
    """
    x = np.asarray(positions, dtype=np.float64)
    if _once(items):
        values = np.array([item.median for item in items])
        x, values = (np.log(x), np.log(np.maximum(values, 1e-12))) if exponent else (x, values)
        line = scipy.stats.linregress(x, values)
        return _student(float(line.slope), float(line.stderr), x.size - 2)
    y = _drawn(items)
    if exponent:
        x, y = np.log(x), np.log(np.maximum(y, 1e-12))
    centred = x - x.mean()
    return _estimate(y @ centred / (centred @ centred))


def ratio(first: Sequence[Distribution], second: Sequence[Distribution]) -> Estimate:
    """Estimate the ratio of two numbers, its geometric mean over several settings.

    Of numbers that were measured once, the interval is that of the mean over the settings.
    """
    if _once([*first, *second]):
        logs = np.log([max(a.median, 1e-12) / max(b.median, 1e-12) for a, b in zip(first, second, strict=True)])
        error = float(logs.std(ddof=1) / math.sqrt(logs.size)) if logs.size > 1 else 0.0
        return Estimate(*(math.exp(min(part, 700.0)) for part in _student(float(logs.mean()), error, logs.size - 1)))
    one, other = _drawn([*first, *second]).T.reshape(2, len(first), _SAMPLES)
    return _estimate(np.exp(np.mean(np.log(np.maximum(one, 1e-12) / np.maximum(other, 1e-12)), axis=0)))


def trend(found: Estimate, rises: bool = True, level: float = 0.0) -> str:
    """Judge a statement on the sign of a trend: an interval on both sides of the level decides nothing."""
    if math.isnan(found.middle) or found.low <= level <= found.high:
        return "cannot discriminate"
    return "agrees" if (found.low > level) == rises else "refuted"
