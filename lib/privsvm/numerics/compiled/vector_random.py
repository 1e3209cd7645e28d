"""Vectorised ChaCha bits inside Numba code, and normal numbers from them.

NumPy's generators give one number at a call. Here a key of 256 bits fills whole buffers. The bits are the key stream of
the cipher ChaCha (Bernstein 2008; RFC 8439) with 20 rounds, of 16 blocks side by side. Normal numbers
come from them by the method of Box and Muller (1958), which needs no tables, with 64 bits for the radius (it reaches
9.5) and 64 for the direction.
"""

from __future__ import annotations

import math

import numpy as np

from privsvm.numerics.compiled.jit import jit, jit_step
from privsvm.numerics.compiled.vector_code import LANES, chacha_blocks

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


_LN_2 = float(np.log(2.0))
_SQRT_HALF_BITS = int(np.float64(np.sqrt(0.5)).view(np.int64))
_UNIT_64 = 2.0**-64


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


@jit()
def logarithms(values, out):
    """Natural logarithms of an array; for tests."""
    for i in range(out.shape[0]):
        out[i] = _log(values[i])


_ANGLE_UNIT = float(np.pi / 2) * 2.0**-63
_SIGN_BIT = np.int64(-(2**63))
_S = tuple((-1.0) ** k / math.factorial(2 * k + 1) for k in range(11))
_C = tuple((-1.0) ** k / math.factorial(2 * k) for k in range(11))


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
