"""Exactly rounded normal numbers ``rint(sigma Z)`` from ChaCha20's bits.

A key of 256 bits fills whole buffers with the key stream of the cipher ChaCha (Bernstein 2008; RFC 8439) of 20 rounds,
16 blocks side by side. Z is made by the method of Box and Muller (1958), which needs no tables, from two real numbers,
whose binary digits are bits of the key stream: 64 of them for a start, and as many more as it takes. Almost always
float64 and a bound on its error tell which integer is the nearest (Ziv 1991, Fast evaluation of elementary mathematical
functions with correctly rounded last bit). The rest is computed with more and more digits until it is certain. So each
integer has exactly the probability that the ideal normal number rounds to it, and the tails have no end.
`docs/proofs/exact-noise.md` derives the bounds.

Number `index` of a key depends on nothing but key, index and sigma.
"""

from __future__ import annotations

import math

import numpy as np

from privsvm.numerics.compiled.jit import jit, jit_step
from privsvm.numerics.compiled.vector_code import LANES, chacha_blocks
from privsvm.numerics.noise.long_numbers import cosine, minus_logarithm

# Numbers made at a time: two buffers of them stay in the L1 cache.
BUFFER = 1024

# The uint64 of blocks made at a time.
_GROUP = 8 * LANES


@jit()
def random_bits(key, counter, nonce, out):
    """Fill `out` (uint64, 128 m) with `key`'s stream from block `counter` on.

    Counter and nonce are uint64. A word of 16 blocks follows the same word of the 16 blocks before: two uint32 make one
    uint64.
    """
    for group in range(out.shape[0] // _GROUP):
        chacha_blocks(key, counter + np.uint64(LANES * group), nonce, out, np.int64(_GROUP * group))


def uniform_words(key: bytes, counter: int, nonce: int, size: int) -> np.ndarray:
    """Return uint64 of the stream of a key of 32 bytes, from block `counter` on: see `random_bits`."""
    words = np.empty(-(-size // _GROUP) * _GROUP, dtype=np.uint64)
    random_bits(np.frombuffer(key, dtype="<u4").astype(np.uint32), np.uint64(counter), np.uint64(nonce), words)
    return words[:size]


# Largest sigma: below it, sums with the shifter are exact; larger noise would need a slow draw each time.
SMALLEST_SIGMA, LARGEST_SIGMA = 2.0**-20, 2.0**46

_LN_2 = math.log(2.0)
_SQRT_HALF_BITS = int(np.float64(np.sqrt(0.5)).view(np.int64))
_UNIT_64 = 2.0**-64
_ANGLE_UNIT = float(np.pi / 2) * 2.0**-63
_SIGN_BIT = np.int64(-(2**63))
_S = tuple((-1.0) ** k / math.factorial(2 * k + 1) for k in range(11))
_C = tuple((-1.0) ** k / math.factorial(2 * k) for k in range(11))
# Error of float64, relative to sigma: shares of the radius, and of its divisor.
_UNIT_ROUND_OFF = 2.0**-53
_BY_RADIUS, _BY_INVERSE, _UNREAD = 24.0 * _UNIT_ROUND_OFF, 3.0 * _UNIT_ROUND_OFF, 2.0**-64
_SMALLEST_UNIFORM, _SMALLEST_RADIUS = 2.0**-40, 2.0**-20
# Shifter: adding it rounds to an integer.
_SHIFTER = 1.5 * 2.0**52
# Stands for an integer that is not certain; none is so large.
_DOUBTFUL = np.int64(-(2**63))
# Places of a first attempt: all but 2^-60 of the draws are certain then, whatever sigma is.
_PLACES = 128
# Buffers that are filled at a time: they stay in the L2 cache.
_BUFFERS = 16


def check_sigma(sigma: float) -> None:
    """Raise ValueError if the sampler has no such standard deviation."""
    if not SMALLEST_SIGMA <= sigma <= LARGEST_SIGMA:
        raise ValueError(f"sigma={sigma!r}: must lie between 2^-20 and 2^46 cells of the grid")


@jit_step(fastmath={"contract"}, forceinline=True)
def _log(value):
    """Natural logarithm of a normal positive number; relative error below 1e-15."""
    bits = np.float64(value).view(np.int64)
    # Mantissa in [sqrt(1/2), sqrt(2)).
    exponent = (bits - _SQRT_HALF_BITS) >> 52
    mantissa = np.int64(bits - (exponent << 52)).view(np.float64)
    s = (mantissa - 1.0) / (mantissa + 1.0)
    z = s * s
    # 2 artanh(s), |s| < 0.172: the truncation error is below 1e-17 of it.
    value = 1.0 / 21.0
    value = value * z + 1.0 / 19.0
    value = value * z + 1.0 / 17.0
    value = value * z + 1.0 / 15.0
    value = value * z + 1.0 / 13.0
    value = value * z + 1.0 / 11.0
    value = value * z + 1.0 / 9.0
    value = value * z + 1.0 / 7.0
    value = value * z + 1.0 / 5.0
    value = value * z + 1.0 / 3.0
    return exponent * _LN_2 + (2.0 * s + 2.0 * s * z * value)


@jit_step(fastmath={"contract"}, forceinline=True)
def normal_pair(radius_bits, angle_bits):
    """Turn two words into two independent standard normal numbers.

    Also return their radius and its uniform number.

    `docs/proofs/exact-noise.md` bounds what float64 may get wrong about them.
    """
    uniform = (np.float64(radius_bits) + 0.5) * _UNIT_64
    radius = np.sqrt(-2.0 * _log(uniform))
    turn = np.int64(angle_bits)
    # An angle within a quarter turn of 0, and one bit for the sign of the cosine.
    angle = np.float64(turn << np.int64(1)) * _ANGLE_UNIT
    z = angle * angle
    # Taylor series: the truncation error is below 2e-17.
    sine, cosine = _S[10], _C[10]
    sine, cosine = sine * z + _S[9], cosine * z + _C[9]
    sine, cosine = sine * z + _S[8], cosine * z + _C[8]
    sine, cosine = sine * z + _S[7], cosine * z + _C[7]
    sine, cosine = sine * z + _S[6], cosine * z + _C[6]
    sine, cosine = sine * z + _S[5], cosine * z + _C[5]
    sine, cosine = sine * z + _S[4], cosine * z + _C[4]
    sine, cosine = sine * z + _S[3], cosine * z + _C[3]
    sine, cosine = sine * z + _S[2], cosine * z + _C[2]
    sine, cosine = sine * z + _S[1], cosine * z + _C[1]
    sine, cosine = sine * z + _S[0], cosine * z + _C[0]
    first = np.int64(np.float64(radius * cosine).view(np.int64) ^ (turn & _SIGN_BIT)).view(np.float64)
    return first, radius * angle * sine, radius, uniform


@jit_step(forceinline=True)
def error_bound(radius, uniform):
    """Bound the error of a pair's numbers in float64, from `normal_pair`'s radius and its uniform number."""
    error = _BY_RADIUS * radius + (_BY_INVERSE * uniform + _UNREAD) / (uniform * radius)
    return error if (uniform >= _SMALLEST_UNIFORM) & (radius >= _SMALLEST_RADIUS) else np.inf


@jit_step(forceinline=True)
def _nearest(value, error):
    """Round to the nearest integer. No contraction here, as in its caller."""
    nearest = (value + _SHIFTER) - _SHIFTER
    return np.int64(nearest) if abs(value - nearest) + error < 0.5 else _DOUBTFUL


@jit()
def _round(words, sigma, cells):
    """Set integers from as many words (k, 2 m), those of the radius first in each row, where float64 is certain."""
    half = words.shape[1] // 2
    for buffer in range(words.shape[0]):
        radius_words, angle_words = words[buffer, :half], words[buffer, half:]
        first_cells, second_cells = cells[buffer, :half], cells[buffer, half:]
        for i in range(half):
            first, second, radius, uniform = normal_pair(radius_words[i], angle_words[i])
            error = sigma * error_bound(radius, uniform)
            first_cells[i] = _nearest(sigma * first, error)
            second_cells[i] = _nearest(sigma * second, error)


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


def round_words(key: bytes, first_pair: int, words: np.ndarray, sigma: float, cells: np.ndarray) -> int:
    """Turn words (k, 2 m) of uniform bits into as many integers ``rint(sigma Z)``, cosines first in each row.

    The key of 32 bytes gives more digits where they are needed, and `first_pair` is the first pair's number in its
    stream. Returns how many took more digits than float64 has.
    """
    _round(words, sigma, cells)
    doubtful, half = np.argwhere(cells == _DOUBTFUL).tolist(), words.shape[1] // 2
    for buffer, i in doubtful:
        place = i % half
        pair_words = int(words[buffer, place]), int(words[buffer, half + place])
        cells[buffer, i] = certain_integer(key, first_pair + half * buffer + place, pair_words, i >= half, sigma)
    return len(doubtful)


def rounded_normals(key: bytes, sigma: float, size: int, first: int = 0) -> np.ndarray:
    """Draw ``rint(sigma Z)`` for `size` standard normal numbers Z of a key, from number `first` on.

    Each key of 32 bytes serves one sigma, from 2^-20 to 2^46.
    """
    check_sigma(sigma)
    begin, end = first // BUFFER, -(-(first + size) // BUFFER)
    cells = np.empty((end - begin, BUFFER), dtype=np.int64)
    for start in range(begin, end, _BUFFERS):
        part = cells[start - begin : start - begin + _BUFFERS]
        # Eight words a block.
        words = uniform_words(key, start * BUFFER // 8, 0, part.size).reshape(part.shape)
        round_words(key, start * BUFFER // 2, words, float(sigma), part)
    skipped = first - begin * BUFFER
    return cells.reshape(-1)[skipped : skipped + size]


def warm_up() -> None:
    """Compile what this module runs."""
    rounded_normals(bytes(32), 1.0, 1)
