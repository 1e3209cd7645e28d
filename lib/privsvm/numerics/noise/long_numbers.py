"""Logarithms and cosines in whole numbers of Python, with as many digits as it takes.

A number in fixed point is a whole number over ``2^places``, and an *ulp* is ``2^-places``. Products and quotients are
rounded down, sums are exact. `docs/proofs/exact-noise.md` derives the error bounds, for 32 places and more.
"""

from __future__ import annotations

import functools


def _area_tangent(value: int, places: int) -> int:
    """Compute artanh of a number of at most 1/3, known within 2 ulp; off by at most ``2 places`` ulp."""
    square, power, total, k = value * value >> places, value, 0, 1
    while power:
        total += power // k
        power, k = power * square >> places, k + 2
    return total


def _arc_tangent(inverse: int, places: int) -> int:
    """Compute ``arctan(1 / inverse)`` for a whole number from 5 on; off by at most ``places / 2 + 8`` ulp."""
    power, total, k = (1 << places) // inverse, 0, 1
    while power:
        total += power // k if k & 2 == 0 else -(power // k)
        power, k = power // (inverse * inverse), k + 2
    return total


@functools.lru_cache(maxsize=8)
def _constants(places: int) -> tuple[int, int]:
    """Compute half of ln 2 and a quarter of pi, by ``artanh(1/3)`` and Machin's formula."""
    return _area_tangent((1 << places) // 3, places), 4 * _arc_tangent(5, places) - _arc_tangent(239, places)


def minus_logarithm(mantissa: int, exponent: int, places: int) -> int:
    """Compute ``-ln(m 2^-exponent)`` for m in [1/2, 1), known within 1 ulp.

    Off by at most ``4 places (exponent + 1)`` ulp.
    """
    one = 1 << places
    ratio = (one - mantissa << places) // (one + mantissa)
    return 2 * (_area_tangent(ratio, places) + exponent * _constants(places)[0])


def cosine(turns: int, places: int) -> int:
    """Compute the cosine of 0 to 1/2 turns, known within 1 ulp; off by at most ``22 places`` ulp."""
    angle = 8 * (_constants(places)[1] * turns >> places)
    square, term, total, k = angle * angle >> places, 1 << places, 0, 0
    while term:
        total += term if k & 2 == 0 else -term
        k += 2
        term = term * square // (k * (k - 1) << places)
    return total
