"""Fixed-point logarithm and cosine of any precision in Numba, with bounds.

A number is a row of a table of registers, whose entries (uint64) hold 32 bits each, the least significant ones first.
Of a fixed-point number, the first `n_limbs` entries are the fraction and the next one is the integer part. An *ulp* is
``2^(-32 n_limbs)``. Nothing is negative. Products and quotients are truncated, by less than one ulp; sums are exact.
`docs/proofs/exact-noise.md` derives the error bounds.

Registers rather than arrays keep what Numba compiles small.
"""

from __future__ import annotations

import numpy as np

from privsvm.numerics.compiled.jit import jit_step

# Bits of a limb.
LIMB, MASK = np.uint64(32), np.uint64(2**32 - 1)
_ZERO, _ONE, _TWO = np.uint64(0), np.uint64(1), np.uint64(2)

# Scratch: the functions below may overwrite the first registers.
_PRODUCT, _FIRST, _SECOND, _THIRD, _FOURTH, _FIFTH = range(6)
# The first register that they do not overwrite.
FREE = 6


@jit_step()
def registers(count, n_limbs):
    """Make a table of zeros for `count` registers from `FREE` on."""
    return np.zeros((FREE + count, 2 * n_limbs + 16), np.uint64)


@jit_step()
def set_limbs(x, out, position, low, high):
    """Set a register to zero except for two entries, from `position` on."""
    for i in range(x.shape[1]):
        x[out, i] = _ZERO
    x[out, position], x[out, position + 1] = low, high


@jit_step()
def _copy(x, a, out):
    for i in range(x.shape[1]):
        x[out, i] = x[a, i]


@jit_step()
def compare(x, a, b):
    """Return -1, 0 or 1."""
    for i in range(x.shape[1] - 1, -1, -1):
        if x[a, i] != x[b, i]:
            return 1 if x[a, i] > x[b, i] else -1
    return 0


@jit_step()
def add(x, a, b, out):
    """Set ``out = a + b``; any of them may be the same."""
    carry = _ZERO
    for i in range(x.shape[1]):
        total = x[a, i] + x[b, i] + carry
        x[out, i] = total & MASK
        carry = total >> LIMB


@jit_step()
def subtract(x, a, b, out):
    """Set ``out = a - b``, or 0 where b is larger; any of them may be the same."""
    keep = MASK if compare(x, a, b) > 0 else _ZERO
    borrow = _ZERO
    for i in range(x.shape[1]):
        total = x[a, i] + (_ONE << LIMB) - x[b, i] - borrow
        x[out, i] = total & keep
        borrow = _ONE - (total >> LIMB)


@jit_step()
def _count_entries(x, a):
    """How many entries there are up to the last that is not zero."""
    count = x.shape[1]
    while count > 0 and x[a, count - 1] == _ZERO:
        count -= 1
    return count


@jit_step()
def multiply(x, a, b, out):
    """Set ``out = a b``; the product must fit, and `out` be another register."""
    size = x.shape[1]
    set_limbs(x, out, 0, _ZERO, _ZERO)
    first, second = _count_entries(x, a), _count_entries(x, b)
    for i in range(first):
        carry, factor = _ZERO, x[a, i]
        for j in range(min(second + 1, size - i)):
            total = x[out, i + j] + factor * x[b, j] + carry
            x[out, i + j] = total & MASK
            carry = total >> LIMB


@jit_step()
def multiply_fixed(x, a, b, out, n_limbs):
    """Set ``out = a b`` for fixed-point numbers, truncated.

    Any of them may be the same.
    """
    multiply(x, a, b, _PRODUCT)
    size = x.shape[1]
    for i in range(size):
        x[out, i] = x[_PRODUCT, i + n_limbs] if i + n_limbs < size else _ZERO


@jit_step()
def _divide(x, a, divisor, out):
    """Set ``out = a / divisor``, truncated, for an integer below ``2^32``.

    Return whether it is zero.
    """
    rest, seen, used = _ZERO, _ZERO, _count_entries(x, a)
    for i in range(used, x.shape[1]):
        x[out, i] = _ZERO
    for i in range(used - 1, -1, -1):
        rest = (rest << LIMB) | x[a, i]
        quotient = rest // divisor
        rest -= quotient * divisor
        x[out, i] = quotient
        seen |= quotient
    return seen == _ZERO


@jit_step()
def shift_left(x, a, count):
    """Multiply a register by ``2^count``, count from 0 to 31."""
    carry, count = _ZERO, np.uint64(count)
    for i in range(x.shape[1]):
        value = (x[a, i] << count) | carry
        x[a, i] = value & MASK
        carry = value >> LIMB


@jit_step()
def _ratio(x, a, b, out, n_limbs):
    """Set ``out = a / b`` for fixed-point numbers, a smaller than b, truncated.

    `a` is lost.
    """
    set_limbs(x, out, 0, _ZERO, _ZERO)
    for i in range(n_limbs - 1, -1, -1):
        for bit in range(31, -1, -1):
            shift_left(x, a, 1)
            if compare(x, a, b) >= 0:
                subtract(x, a, b, a)
                x[out, i] |= _ONE << np.uint64(bit)


@jit_step()
def _area_tangent(x, a, out, n_limbs):
    """Set ``out = artanh(a)``, a at most 1/3 and known within 2 ulp.

    Off by at most ``64 n_limbs`` ulp.

    Uses the first, second and third register; `a` may be the first.
    """
    _copy(x, a, _FIRST)
    multiply_fixed(x, _FIRST, _FIRST, _SECOND, n_limbs)
    _copy(x, _FIRST, out)
    k, done = _ONE, False
    while not done:
        multiply_fixed(x, _FIRST, _SECOND, _FIRST, n_limbs)
        k += _TWO
        done = _divide(x, _FIRST, k, _THIRD)
        add(x, out, _THIRD, out)


@jit_step()
def minus_logarithm(x, a, exponent, out, n_limbs):
    """Set ``out = -ln(a 2^-exponent)`` for a in [1/2, 1).

    `a` is within 1 ulp, and the exponent an integer below ``2^32``.

    Off by at most ``128 n_limbs (exponent + 1)`` ulp.
    """
    set_limbs(x, _FIFTH, n_limbs, _ONE, _ZERO)
    add(x, _FIFTH, a, _SECOND)
    subtract(x, _FIFTH, a, _FIRST)
    _ratio(x, _FIRST, _SECOND, _THIRD, n_limbs)
    _area_tangent(x, _THIRD, out, n_limbs)
    # ln 2 = 2 artanh(1 / 3).
    _divide(x, _FIFTH, np.uint64(3), _FIRST)
    _area_tangent(x, _FIRST, _FOURTH, n_limbs)
    set_limbs(x, _FIRST, 0, np.uint64(exponent), _ZERO)
    multiply(x, _FIRST, _FOURTH, _SECOND)
    add(x, out, _SECOND, out)
    shift_left(x, out, 1)


@jit_step()
def _arc_tangent(x, inverse, out, n_limbs):
    """Set ``out = arctan(1 / inverse)`` for an integer from 5 to 2^15.

    Off by at most ``16 n_limbs + 8`` ulp.

    Uses the first and second register.
    """
    set_limbs(x, _FIRST, n_limbs, _ONE, _ZERO)
    _divide(x, _FIRST, inverse, _FIRST)
    _copy(x, _FIRST, out)
    k, done = _ONE, False
    while not done:
        _divide(x, _FIRST, inverse * inverse, _FIRST)
        k += _TWO
        done = _divide(x, _FIRST, k, _SECOND)
        if k & _TWO:
            subtract(x, out, _SECOND, out)
        else:
            add(x, out, _SECOND, out)


@jit_step()
def cosine_parts(x, a, plus, minus, n_limbs):
    """Set ``plus - minus`` to the cosine of `a` turns, 0 to 1/2 within 1 ulp.

    Off by at most ``700 n_limbs`` ulp.
    """
    # Machin: pi / 4 = 4 arctan(1 / 5) - arctan(1 / 239).
    _arc_tangent(x, np.uint64(5), _THIRD, n_limbs)
    _arc_tangent(x, np.uint64(239), _FOURTH, n_limbs)
    shift_left(x, _THIRD, 2)
    subtract(x, _THIRD, _FOURTH, _THIRD)
    multiply_fixed(x, _THIRD, a, _THIRD, n_limbs)
    shift_left(x, _THIRD, 3)
    multiply_fixed(x, _THIRD, _THIRD, _THIRD, n_limbs)
    set_limbs(x, _FIRST, n_limbs, _ONE, _ZERO)
    set_limbs(x, minus, 0, _ZERO, _ZERO)
    _copy(x, _FIRST, plus)
    k, done = _ZERO, False
    while not done:
        k += _TWO
        multiply_fixed(x, _FIRST, _THIRD, _FIRST, n_limbs)
        done = _divide(x, _FIRST, k * (k - _ONE), _FIRST)
        if k & _TWO:
            add(x, minus, _FIRST, minus)
        else:
            add(x, plus, _FIRST, plus)
