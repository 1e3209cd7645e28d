"""Bisection, for calibrations and conversions."""

from __future__ import annotations

import math
from collections.abc import Callable


def bisect(
    holds: Callable[[float], bool], low: float, high: float, tolerance: float = 0.0, geometric: bool = False
) -> tuple[float, float]:
    """Enclose the number up to which a condition holds.

    It is taken to hold at `low`, and not to hold at `high`. `tolerance` is the largest ``high - low`` relative to
    `high`, by default of neighbouring float64 numbers. For a bound, take the end of (low, high) that is on the safe
    side: both were checked, or given.
    """
    while high - low > tolerance * high:
        middle = math.sqrt(low * high) if geometric else 0.5 * (low + high)
        if not low < middle < high:
            break
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low, high
