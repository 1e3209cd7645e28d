"""Vectorised ChaCha bits inside Numba code, and normal numbers from them.

NumPy's generators give one number at a call. Here a key of 256 bits fills whole buffers. The bits are the key stream of
the cipher ChaCha (Bernstein 2008; RFC 8439) with 20 rounds, of 16 blocks side by side. Normal numbers
come from them by the method of Box and Muller (1958), which needs no tables, with 64 bits for the radius (it reaches
9.5) and 64 for the direction.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from privsvm.numerics.compiled.jit import jit, jit_step

__all__ = [
    "BUFFER",
    "fill_normals",
    "logarithms",
    "normal_pair",
    "random_bits",
]

# Numbers made at a time: two buffers of them stay in the L1 cache.
BUFFER = 1024

ROUNDS = 20
# "expand 32-byte k", in four words.
_CONSTANTS = (0x61707865, 0x3320646E, 0x79622D32, 0x6B206574)
# Blocks made at a time, and the uint64 in them.
_LANES = 16
_GROUP = 8 * _LANES


def _chacha_blocks(rounds: int):
    """Build ``function(key, counter, nonce, out, start)`` that writes 16 blocks.

    Every word of ChaCha's state is a vector here, with one number for each block.
    """
    word, vector, wide = ir.IntType(32), ir.VectorType(ir.IntType(32), _LANES), ir.VectorType(ir.IntType(64), _LANES)

    def generate(context, builder, signature, arguments):
        key = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        out = context.make_array(signature.args[3])(context, builder, arguments[3]).data

        def spread(scalar, kind):
            first = builder.insert_element(ir.Constant(kind, ir.Undefined), scalar, word(0))
            return builder.shuffle_vector(first, ir.Constant(kind, ir.Undefined), ir.Constant(vector, [0] * _LANES))

        def rotated(value, count):
            high_bits = builder.shl(value, ir.Constant(vector, [count] * _LANES))
            return builder.or_(high_bits, builder.lshr(value, ir.Constant(vector, [32 - count] * _LANES)))

        lanes = ir.Constant(wide, list(range(_LANES)))
        counters = builder.add(spread(arguments[1], wide), lanes)
        upper = builder.lshr(counters, ir.Constant(wide, [32] * _LANES))
        start = [ir.Constant(vector, [value] * _LANES) for value in _CONSTANTS]
        start += [spread(builder.load(builder.gep(key, [word(i)])), vector) for i in range(8)]
        start += [builder.trunc(counters, vector), builder.trunc(upper, vector)]
        halves = arguments[2], builder.lshr(arguments[2], arguments[2].type(32))
        start += [spread(builder.trunc(half, word), vector) for half in halves]
        kept = [cgutils.alloca_once_value(builder, value) for value in start]

        def quarter(state, a, b, c, d):
            for first, second, third, count in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
                state[first] = builder.add(state[first], state[second])
                state[third] = rotated(builder.xor(state[third], state[first]), count)

        # A loop, since the unrolled rounds would dominate the compile time.
        with cgutils.for_range(builder, ir.IntType(64)(rounds // 2)):
            state = [builder.load(value) for value in kept]
            for i in range(4):
                quarter(state, i, 4 + i, 8 + i, 12 + i)
            for i in range(4):
                quarter(state, i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4)
            for value, position in zip(state, kept, strict=True):
                builder.store(value, position)
        for i in range(16):
            position = builder.add(arguments[4], arguments[4].type(i * _LANES // 2))
            target = builder.bitcast(builder.gep(out, [position]), vector.as_pointer())
            builder.store(builder.add(builder.load(kept[i]), start[i]), target, align=8)
        return context.get_dummy_value()

    def typed(typingctx, key, counter, nonce, out, start):
        return types.void(key, counter, nonce, out, start), generate

    return intrinsic(typed)


_blocks: Any = _chacha_blocks(ROUNDS)


def _bits_as_float(typingctx, value):
    if value != types.int64:
        return None

    def generate(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], ir.DoubleType())

    return types.float64(value), generate


def _float_as_bits(typingctx, value):
    if value != types.float64:
        return None

    def generate(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], ir.IntType(64))

    return types.int64(value), generate


_as_float: Any = intrinsic(_bits_as_float)
_as_bits: Any = intrinsic(_float_as_bits)


@jit()
def random_bits(key, counter, nonce, out):
    """Fill `out` (uint64, 128 m) with `key`'s stream from block `counter` on.

    Counter and nonce are uint64. A word of 16 blocks follows the same word of the 16 blocks before: two uint32 make one
    uint64.
    """
    for group in range(out.shape[0] // _GROUP):
        _blocks(key, counter + np.uint64(_LANES * group), nonce, out, np.int64(_GROUP * group))


_LN_2 = float(np.log(2.0))
_SQRT_HALF_BITS = int(np.float64(np.sqrt(0.5)).view(np.int64))
_UNIT_64 = 2.0**-64


@jit_step(fastmath={"contract"}, forceinline=True)
def _log(value):
    """Natural logarithm of a normal positive number; relative error below 1e-15."""
    bits = _as_bits(value)
    # Mantissa in [sqrt(1/2), sqrt(2)).
    exponent = (bits - _SQRT_HALF_BITS) >> 52
    mantissa = _as_float(bits - (exponent << 52))
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
    first = _as_float(_as_bits(radius * cosine) ^ (turn & _SIGN_BIT))
    return first, radius * angle * sine, radius, uniform


@jit(fastmath={"contract"})
def fill_normals(bits, out):
    """Turn uniform bits into as many standard normal numbers; for tests."""
    half = out.shape[0] // 2
    radius_bits, angle_bits, first, second = bits[:half], bits[half:], out[:half], out[half:]
    for i in range(half):
        first[i], second[i], _, _ = normal_pair(radius_bits[i], angle_bits[i])
