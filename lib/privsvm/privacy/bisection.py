"""Bisection, for calibrations and conversions."""

from __future__ import annotations

import math
from collections.abc import Callable

__all__ = ["arithmetic_mean", "bisect", "geometric_mean"]


def arithmetic_mean(low: float, high: float) -> float:
    """Return the middle of two numbers."""
    return 0.5 * (low + high)


def geometric_mean(low: float, high: float) -> float:
    """Return the middle of two positive numbers on a logarithmic scale."""
    return math.sqrt(low * high)


def bisect(
    holds: Callable[[float], bool],
    low: float,
    high: float,
    tolerance: float = 0.0,
    mean: Callable[[float, float], float] = arithmetic_mean,
) -> tuple[float, float]:
    """Enclose the number up to which a condition holds.

    Parameters
    ----------
    holds : callable
        The condition; taken to hold at `low`, and not to hold at `high`.
    low, high : float
        Where to begin.
    tolerance : float, default=0.0
        Largest ``high - low``, relative to `high`; by default neighbouring float64.
    mean : callable, default=arithmetic_mean
        How to choose a number between two others.

    Returns
    -------
    (low, high) : tuple of float
        Whoever needs a bound returns the end that is on the safe side: both were checked, or given.
    """
    while high - low > tolerance * high and low < (middle := mean(low, high)) < high:
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low, high
