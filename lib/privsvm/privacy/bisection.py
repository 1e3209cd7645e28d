"""Bisection, for calibrations and conversions."""

from __future__ import annotations

import math
from collections.abc import Callable

__all__ = ["bisect"]


def bisect(
    holds: Callable[[float], bool], low: float, high: float, tolerance: float = 0.0, geometric: bool = False
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
    geometric : bool, default=False
        Whether to bisect logarithms, of positive numbers.

    Returns
    -------
    (low, high) : tuple of float
        Whoever needs a bound takes the end that is on the safe side: both were checked, or given.
    """
    while high - low > tolerance * high:
        middle = math.sqrt(low * high) if geometric else 0.5 * (low + high)
        if not low < middle < high:
            break
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low, high
