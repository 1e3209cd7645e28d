"""Exactly rounded normal numbers ``rint(sigma Z)`` from ChaCha20's bits.

Z is made by the method of Box and Muller from two real numbers, whose binary digits are bits of the key stream: 64 of
them for a start, and as many more as it takes. Almost always float64 and a bound on its error tell which integer is the
nearest (Ziv 1991, Fast evaluation of elementary mathematical functions with correctly rounded last bit). The rest is
computed with more and more digits until it is certain. So each integer has exactly the probability that the ideal
normal number rounds to it, and the tails have no end. `docs/proofs/exact-noise.md` derives the bounds.

Number `index` of a key depends on nothing but key, index and sigma.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from privsvm.numerics.compiled.jit import jit, jit_step
from privsvm.numerics.compiled.vector_random import BUFFER, normal_pair, random_bits
from privsvm.numerics.noise.long_numbers import (
    FREE,
    LIMB,
    MASK,
    add,
    compare,
    cosine_parts,
    minus_logarithm,
    multiply,
    multiply_fixed,
    registers,
    set_limbs,
    shift_left,
    subtract,
)

# Largest sigma: below it, sums with the shifter are exact; larger noise would need a slow draw each time.
SMALLEST_SIGMA, LARGEST_SIGMA = 2.0**-20, 2.0**46

_HALF = BUFFER // 2
_UNIT_ROUND_OFF = 2.0**-53
# Error of float64, relative to sigma: shares of the radius, and of its divisor.
_BY_RADIUS, _BY_INVERSE, _UNREAD = 24.0 * _UNIT_ROUND_OFF, 3.0 * _UNIT_ROUND_OFF, 2.0**-64
_SMALLEST_UNIFORM, _SMALLEST_RADIUS = 2.0**-40, 2.0**-20
# Shifter: adding it rounds to an integer.
_SHIFTER = 1.5 * 2.0**52

# Limbs of the long numbers of a first attempt.
_PLACES = 6
# Registers.
_MANTISSA, _TURNS, _LOGARITHM, _PLUS, _MINUS, _SQUARE, _SLACK, _WEIGHT, _LEFT, _RIGHT = range(FREE, FREE + 10)
_ZERO, _ONE = np.uint64(0), np.uint64(1)


class RoundedStream(NamedTuple):
    """A stream of rounded normal numbers: key, a buffer, and work space."""

    # ChaCha20 key, 8 uint32.
    key: np.ndarray
    # Number of the current buffer, -1 for none, and its sigma.
    buffer: np.ndarray
    sigma: np.ndarray
    # The integers, int64.
    cells: np.ndarray
    bits: np.ndarray
    numbers: np.ndarray
    errors: np.ndarray


@jit_step()
def _open_stream(words):
    """Open the stream of a key of 8 uint32."""
    return RoundedStream(
        words, np.full(1, -1), np.zeros(1), np.empty(BUFFER, np.int64), np.empty(BUFFER, np.uint64), np.empty(BUFFER),
        np.empty(_HALF),
    )  # fmt: skip


def open_rounded_stream(key: bytes) -> RoundedStream:
    """Open the stream of a key of 32 bytes, for use in compiled loops."""
    return _open_stream(np.frombuffer(key, dtype="<u4").astype(np.uint32))


def check_sigma(sigma: float) -> None:
    """Raise ValueError if the sampler has no such standard deviation."""
    if not SMALLEST_SIGMA <= sigma <= LARGEST_SIGMA:
        raise ValueError(f"sigma={sigma!r}: must lie between 2^-20 and 2^46 cells of the grid")


@jit(fastmath={"contract"})
def _fill_normals_and_errors(bits, numbers, errors):
    """Turn uniform bits into as many standard normal numbers, with error bounds of pairs."""
    half = errors.shape[0]
    radius_bits, angle_bits, first, second = bits[:half], bits[half:], numbers[:half], numbers[half:]
    for i in range(half):
        first[i], second[i], radius, uniform = normal_pair(radius_bits[i], angle_bits[i])
        error = _BY_RADIUS * radius + (_BY_INVERSE * uniform + _UNREAD) / (uniform * radius)
        errors[i] = error if (uniform >= _SMALLEST_UNIFORM) & (radius >= _SMALLEST_RADIUS) else np.inf


@jit()
def _round(sigma, numbers, errors, cells):
    """Round to the nearest integers; return how many of them are not certain.

    No contraction here.
    """
    doubtful = 0
    for i in range(numbers.shape[0]):
        value = sigma * numbers[i]
        shifted = value + _SHIFTER
        nearest = shifted - _SHIFTER
        cells[i] = np.int64(nearest)
        doubtful += not abs(value - nearest) + sigma * errors[i] < 0.5
    return doubtful


@jit_step()
def _digits(key, pair, first_word, half, block, out):
    """Fill `out` with a uniform number's binary digits, 32 to a limb, highest first.

    The bits of `first_word` come first. Refinements follow, 256 bits each: `half` (0 or 1) of the block whose counter
    is the pair's number and whose nonce is the refinement's number, from 1.
    """
    out[0], out[1] = first_word >> LIMB, first_word & MASK
    for i in range(2, out.shape[0]):
        refinement, position = divmod(i - 2, 8)
        if position == 0:
            random_bits(key, np.uint64(pair), np.uint64(refinement + 1), block)
        # The first of 16 blocks side by side.
        out[i] = block[8 * (8 * half + position)] & MASK


@jit_step()
def _set_mantissa(x, key, pair, first_word, block, n_limbs):
    """Set the mantissa of the radius's number; return minus its exponent.

    It is in [1/2, 1), and truncated.
    """
    count, zeros = n_limbs + 1, 0
    while True:
        digits = np.empty(zeros + count, np.uint64)
        _digits(key, pair, first_word, 0, block, digits)
        seen, zeros = zeros, 0
        while zeros < digits.shape[0] and digits[zeros] == _ZERO:
            zeros += 1
        if zeros <= seen:
            break
    shift = 0
    while (digits[zeros] << np.uint64(shift)) & np.uint64(2**31) == _ZERO:
        shift += 1
    # One limb more than needed, so that the shift brings in digits.
    set_limbs(x, _RIGHT, 0, _ZERO, _ZERO)
    for i in range(count):
        x[_RIGHT, n_limbs - i] = digits[zeros + i]
    _move_fraction(x, shift, _MANTISSA, n_limbs)
    return 32 * zeros + shift


@jit_step()
def _move_fraction(x, shift, out, n_limbs):
    """Shift the right register, of one limb more than `out`, and truncate it."""
    shift_left(x, _RIGHT, shift)
    set_limbs(x, out, 0, _ZERO, _ZERO)
    for i in range(n_limbs):
        x[out, i] = x[_RIGHT, i + 1]


@jit_step()
def _set_turns(x, key, pair, first_word, block, n_limbs):
    """Set twice the angle in turns, folded to [0, 1/2] and truncated."""
    digits = np.empty(n_limbs + 1, np.uint64)
    _digits(key, pair, first_word, 1, block, digits)
    set_limbs(x, _RIGHT, 0, _ZERO, _ZERO)
    for i in range(n_limbs + 1):
        x[_RIGHT, n_limbs - i] = digits[i]
    # The first digit is dropped: it is the sign of the cosine.
    _move_fraction(x, 1, _TURNS, n_limbs)
    if x[_TURNS, n_limbs - 1] >= np.uint64(2**31):
        set_limbs(x, _LEFT, n_limbs, _ONE, _ZERO)
        subtract(x, _LEFT, _TURNS, _TURNS)


@jit_step()
def _side(x, shift, k):
    """Compare the square times the weight with ``(2 k + 1)^2 2^shift``.

    Returns 1 or -1; or 0 if the square, which is known within the slack, may lie on either side.
    """
    odd = np.uint64(2 * k + 1)
    set_limbs(x, _PLUS, 0, odd & MASK, odd >> LIMB)
    multiply(x, _PLUS, _PLUS, _MINUS)
    shift_left(x, _MINUS, shift % 32)
    set_limbs(x, _RIGHT, 0, _ZERO, _ZERO)
    for i in range(5):
        x[_RIGHT, shift // 32 + i] = x[_MINUS, i]
    subtract(x, _SQUARE, _SLACK, _PLUS)
    multiply(x, _PLUS, _WEIGHT, _LEFT)
    if compare(x, _LEFT, _RIGHT) > 0:
        return 1
    add(x, _SQUARE, _SLACK, _PLUS)
    multiply(x, _PLUS, _WEIGHT, _LEFT)
    return -1 if compare(x, _LEFT, _RIGHT) < 0 else 0


@jit_step()
def _settle_root(x, shift, nearest):
    """Go up or down to the integer nearest to the root; -1 if that is not certain yet."""
    above = _side(x, shift, nearest)
    while above == 1:
        nearest += 1
        above = _side(x, shift, nearest)
    below = 1 if nearest == 0 else _side(x, shift, nearest - 1)
    while below == -1:
        nearest -= 1
        above, below = -1, 1 if nearest == 0 else _side(x, shift, nearest - 1)
    return nearest if above == -1 and below == 1 else -1


@jit_step()
def _set_square(x, key, pair, radius_word, angle_word, second, n_limbs):
    """Set registers to the squared normal number and its error bound.

    Return the number, roughly.
    """
    block = np.empty(128, np.uint64)
    exponent = _set_mantissa(x, key, pair, radius_word, block, n_limbs)
    _set_turns(x, key, pair, angle_word, block, n_limbs)
    minus_logarithm(x, _MANTISSA, exponent, _LOGARITHM, n_limbs)
    cosine_parts(x, _TURNS, _PLUS, _MINUS, n_limbs)
    # Twice the squared sine or cosine: 1 -+ the cosine of twice the angle.
    set_limbs(x, _LEFT, n_limbs, _ONE, _ZERO)
    if second:
        add(x, _LEFT, _MINUS, _LEFT)
        subtract(x, _LEFT, _PLUS, _RIGHT)
    else:
        add(x, _LEFT, _PLUS, _LEFT)
        subtract(x, _LEFT, _MINUS, _RIGHT)
    multiply_fixed(x, _LOGARITHM, _RIGHT, _SQUARE, n_limbs)
    error = np.uint64(1024 * n_limbs) * np.uint64(exponent + 1)
    set_limbs(x, _SLACK, 0, error & MASK, error >> LIMB)
    size = 0.0
    for i in range(3):
        size += np.float64(x[_SQUARE, n_limbs - i]) * 2.0 ** (-32.0 * i)
    return np.sqrt(size)


@jit()
def certain_integer(key, pair, radius_word, angle_word, second, sigma, n_limbs):
    """Round `sigma` times one number of a pair, with as many digits as it takes.

    `pair` is the pair's number in the key's stream, `radius_word` and `angle_word` (uint64) the first digits of its two
    uniform numbers, and `second` says which number of the pair. `sigma` goes from 2^-20 to 2^46. `n_limbs`, at least 2,
    is the length of the long numbers to start with.
    """
    fraction, exponent = math.frexp(sigma)
    factor = np.uint64(fraction * 2.0**53)
    while True:
        x = registers(10, n_limbs)
        nearest = np.int64(np.rint(sigma * _set_square(x, key, pair, radius_word, angle_word, second, n_limbs)))
        set_limbs(x, _LEFT, 0, factor & MASK, factor >> LIMB)
        multiply(x, _LEFT, _LEFT, _WEIGHT)
        shift = 32 * n_limbs - 2 * (exponent - 53) - 2
        nearest = _settle_root(x, shift, nearest)
        if nearest >= 0:
            negative = (angle_word >> np.uint64(62 if second else 63)) & _ONE
            return -nearest if negative else nearest
        n_limbs *= 2


@jit()
def fill_rounded_normals(key, first_pair, bits, sigma, numbers, errors, cells):
    """Turn uniform bits into as many integers ``rint(sigma Z)``.

    `key` gives more digits where they are needed, and `first_pair` is the first pair's number in its stream. Of `bits`
    (2 m,) one half is for the radius, the other for the angle. `sigma` goes from 2^-20 to 2^46; `numbers` (2 m,) and
    `errors` (m,) are work space, and `cells` (2 m,) is the result. Returns how many were computed with more digits than
    float64 has.
    """
    half = errors.shape[0]
    _fill_normals_and_errors(bits, numbers, errors)
    doubtful = _round(sigma, numbers[:half], errors, cells[:half])
    doubtful += _round(sigma, numbers[half:], errors, cells[half:])
    if doubtful > 0:
        for i in range(2 * half):
            pair = i % half
            value = sigma * numbers[i]
            if not abs(value - (value + _SHIFTER - _SHIFTER)) + sigma * errors[pair] < 0.5:
                # Specialisation: a constant number of limbs would compile a variant of its own.
                cells[i] = certain_integer(
                    key, first_pair + pair, bits[pair], bits[half + pair], i >= half, sigma, np.int64(_PLACES)
                )  # fmt: skip
    return doubtful


@jit()
def load_rounded_normals(stream, index, sigma):
    """Fill the buffer that integer `index` is in.

    The stream, whose `cells` hold the integers, may go back. `sigma` is the standard deviation of the normal numbers
    before rounding, see `check_sigma`. Returns where in the buffer the integer is.
    """
    buffer, position = divmod(index, BUFFER)
    if stream.buffer[0] != buffer or stream.sigma[0] != sigma:
        # Eight words a block.
        random_bits(stream.key, np.uint64(buffer * (BUFFER // 8)), np.uint64(0), stream.bits)
        fill_rounded_normals(
            stream.key, buffer * _HALF, stream.bits, sigma, stream.numbers, stream.errors, stream.cells
        )  # fmt: skip
        stream.buffer[0], stream.sigma[0] = buffer, sigma
    return position


@jit()
def fill_from_stream(stream, first, sigma, out):
    """Fill `out` (int64) with integers of a stream from number `first` on; see `load_rounded_normals`."""
    done = 0
    while done < out.shape[0]:
        begin = load_rounded_normals(stream, first + done, sigma)
        count = min(BUFFER - begin, out.shape[0] - done)
        for i in range(count):
            out[done + i] = stream.cells[begin + i]
        done += count


@jit()
def _set_rounded_normals(words, sigma, out):
    # Allocation in a compiled function is faster than NumPy's. Specialisation: pass int64, not a literal.
    fill_from_stream(_open_stream(words), np.int64(0), sigma, out)


def rounded_normals(key: bytes, sigma: float, size: int) -> np.ndarray:
    """Draw ``rint(sigma Z)`` for the first standard normal numbers Z of a key.

    Each key of 32 bytes serves one sigma, from 2^-20 to 2^46.
    """
    check_sigma(sigma)
    out = np.empty(size, dtype=np.int64)
    _set_rounded_normals(np.frombuffer(key, dtype="<u4").astype(np.uint32), float(sigma), out)
    return out


def warm_up() -> None:
    """Compile what this module runs."""
    rounded_normals(bytes(32), 1.0, 1)
