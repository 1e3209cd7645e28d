"""Scalar functions that LLVM can vectorise inside Numba loops: exponentials, and a maximum without NaN rules.

``np.exp`` and Python's ``max`` keep a loop from being vectorised. `exp2` is a polynomial on ``[-1/2, 1/2]`` with the
exponent added to the bits of the result; `maximum` is LLVM's own instruction.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload

from privsvm.numerics.jit import jit_step

__all__ = ["FAST_MATH", "LOG2_E", "exp2", "maximum"]

# Sums may be reordered and numbers are finite: what vectorising needs.
FAST_MATH = {"contract", "nnan", "ninf", "nsz", "reassoc"}

LOG2_E = float(np.log2(np.e))

# Adding 1.5 * 2^23 (or 2^52) rounds to an integer and leaves it in the low bits.
_SHIFTER_32 = np.float32(1.5 * 2**23)
_SHIFTER_64 = np.float64(1.5 * 2**52)

# Below these, results are set to the smallest normal numbers instead of running into subnormal ones.
_LOWEST_32 = np.float32(-126.0)
_LOWEST_64 = np.float64(-1022.0)


def _coefficients(degree: int) -> np.ndarray:
    """Coefficients of a polynomial near 2^f on [-1/2, 1/2], exact at 0 and nearly minimax in its relative error."""
    nodes = 0.5 * np.cos((np.arange(400) + 0.5) / 400 * np.pi)
    interval = [-0.5, 0.5]
    weights = np.abs(nodes) * 2.0**-nodes
    slope = np.expm1(nodes * np.log(2.0)) / nodes
    fit = np.polynomial.Polynomial.fit(nodes, slope, degree - 1, domain=interval, window=interval, w=weights)
    return np.concatenate([[1.0], fit.coef])


_A0, _A1, _A2, _A3, _A4, _A5 = (np.float32(value) for value in _coefficients(5))
_B0, _B1, _B2, _B3, _B4, _B5, _B6, _B7, _B8, _B9, _B10, _B11 = (np.float64(value) for value in _coefficients(11))


def _reinterpreted(source, target):
    """Build an intrinsic that reads the bits of one Numba type as another."""

    def typed(typingctx, value):
        if value != source:
            return None

        def generate(context, builder, signature, arguments):
            return builder.bitcast(arguments[0], context.get_value_type(target))

        return target(source), generate

    return intrinsic(typed)


_bits_32 = _reinterpreted(types.float32, types.int32)
_from_bits_32 = _reinterpreted(types.int32, types.float32)
_bits_64 = _reinterpreted(types.float64, types.int64)
_from_bits_64 = _reinterpreted(types.int64, types.float64)


def _maximum(typingctx, first, second):
    if first != second or not isinstance(first, types.Float):
        return None

    def generate(context, builder, signature, arguments):
        kind = arguments[0].type
        function = builder.module.declare_intrinsic("llvm.maxnum", [kind], ir.FunctionType(kind, [kind, kind]))
        return builder.call(function, arguments, fastmath=("nnan", "nsz", "ninf"))

    return first(first, second), generate


# Larger of two floating-point numbers of one type, inside Numba code; not for NaN.
maximum: Any = intrinsic(_maximum)


# No reassociation here: it would cancel the shifter.
@jit_step(fastmath={"contract"}, forceinline=True)
def _exp2_f32(exponent):
    """``2^exponent`` in float32 for exponents below 126; relative error below 3e-7."""
    exponent = max(exponent, _LOWEST_32)
    shifted = exponent + _SHIFTER_32
    rest = exponent - (shifted - _SHIFTER_32)
    value = _A5 * rest + _A4
    value = value * rest + _A3
    value = value * rest + _A2
    value = value * rest + _A1
    value = value * rest + _A0
    return _from_bits_32(np.int32(_bits_32(value) + (_bits_32(shifted) << np.int32(23))))


@jit_step(fastmath={"contract"}, forceinline=True)
def _exp2_f64(exponent):
    """``2^exponent`` in float64 for exponents below 1022; relative error below 3e-15."""
    exponent = max(exponent, _LOWEST_64)
    shifted = exponent + _SHIFTER_64
    rest = exponent - (shifted - _SHIFTER_64)
    value = _B11 * rest + _B10
    value = value * rest + _B9
    value = value * rest + _B8
    value = value * rest + _B7
    value = value * rest + _B6
    value = value * rest + _B5
    value = value * rest + _B4
    value = value * rest + _B3
    value = value * rest + _B2
    value = value * rest + _B1
    value = value * rest + _B0
    return _from_bits_64(_bits_64(value) + (_bits_64(shifted) << np.int64(52)))


def exp2(exponent):
    """``2^exponent`` inside Numba code, for exponents below 126 (float32) or 1022 (float64)."""
    return np.exp2(exponent)


@overload(exp2, jit_options={"forceinline": True})
def _exp2_by_type(exponent):
    if exponent == types.float32:
        return lambda exponent: _exp2_f32(exponent)
    if exponent == types.float64:
        return lambda exponent: _exp2_f64(exponent)
    return None
