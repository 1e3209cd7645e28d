"""Rounded normal numbers in whole numbers of Python, with as many digits as it takes.

A number in fixed point is a whole number over ``2^places``, and an *ulp* is ``2^-places``. Products and quotients are
rounded down, sums are exact. `docs/proofs/exact-noise.md` derives the error bounds, for 32 places and more.
"""

from __future__ import annotations

import functools
import math

from privsvm.numerics.compiled.vector_random import uniform_words

# Places of a first attempt: all but 2^-60 of the draws are certain then, whatever sigma is.
_PLACES = 128


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


def certain_integer(
    key: bytes, pair: int, words: tuple[int, int], second: bool, sigma: float, places: int = _PLACES
) -> int:
    """Round `sigma` times one number of a pair, with as many digits as it takes.

    The key of 32 bytes and the pair's number in its stream give the digits that follow `words`, the first 64 of the
    radius and of the angle. `second` says which number of the pair.
    """
    numerator, denominator = sigma.as_integer_ratio()
    (radius, angle), n_digits = words, 64
    negative = angle >> (62 if second else 63) & 1
    while True:
        # Leading zeros of the radius's number are skipped, and the angle has a digit less: the cosine's sign.
        while min(radius.bit_length(), n_digits - 1) < places:
            # Nonces from 1 on belong to the pair: half a block each. It is the first of 16 blocks side by side.
            block = uniform_words(key, pair, n_digits // 256 + 1, 128).view("<u4")[::16]
            digits = block.astype(">u4").tobytes()
            radius = radius << 256 | int.from_bytes(digits[:32])
            angle = angle << 256 | int.from_bytes(digits[32:])
            n_digits += 256
        exponent = n_digits - radius.bit_length()
        logarithm = minus_logarithm(radius >> radius.bit_length() - places, exponent, places)
        # Twice the angle in turns, folded: (sigma R cos phi)^2 = sigma^2 (-ln U) (1 + cos 2 phi).
        one = 1 << places
        turns = (angle >> n_digits - 1 - places) % one
        twice = cosine(min(turns, one - turns), places)
        square, slack = logarithm * (one - twice if second else one + twice) >> places, 32 * places * (exponent + 1)
        # x rounds to half of floor(2 x) + 1, rounded down; the root of whole numbers is exact.
        least, most = (
            (math.isqrt(4 * max(bound, 0) * numerator**2 // (denominator**2 << places)) + 1) // 2
            for bound in (square - slack, square + slack)
        )
        if least == most:
            return -least if negative else least
        places *= 2
