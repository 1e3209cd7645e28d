"""Functions that LLVM can vectorise inside Numba loops.

``np.exp`` and Python's ``max`` keep a loop from being vectorised. `exp2` is a polynomial on ``[-1/2, 1/2]`` with the
exponent added to the bits of the result; `maximum` is LLVM's own instruction. `exact_exp2`, `sine_and_cosine` and loops
without ``fastmath`` around them give the same bits wherever a number stands: LLVM may then vectorise, but not round
another way.
"""

from __future__ import annotations

import math

import numpy as np
from numba import types
from numba.extending import overload

from privsvm.numerics.compiled.jit import jit_step

# Sums may be reordered and numbers are finite: what vectorising needs.
FAST_MATH = {"contract", "nnan", "ninf", "nsz", "reassoc"}

# As `FAST_MATH`, but a value that is computed twice is the same.
SAME_ROUNDING = FAST_MATH - {"reassoc"}

LOG2_E = math.log2(math.e)

# Adding 1.5 * 2^23 (or 2^52) rounds to an integer and leaves it in the low bits.
_SHIFTER_32 = np.float32(1.5 * 2**23)
_SHIFTER_64 = np.float64(1.5 * 2**52)

# Below these arguments, results are the smallest normal numbers instead of subnormal ones.
_LOWEST_32 = np.float32(-126.0)
_LOWEST_64 = np.float64(-1022.0)


# Near-minimax polynomials of 2^f on [-1/2, 1/2], exact at 0: weighted least squares at 400 Chebyshev nodes. Not fitted
# at import: a compiled copy would hold the last bits of the processor that compiled it.
_A0, _A1, _A2, _A3, _A4, _A5 = map(
    np.float32,
    (1.0, 0.6931468844413757, 0.24022237956523895, 0.05550893023610115, 0.009671698324382305, 0.0013218672247603536),
)
_B0, _B1, _B2, _B3 = 1.0, 0.6931471805599463, 0.2402265069591023, 0.05550410866483205
_B4, _B5, _B6, _B7 = 0.009618129107540944, 0.0013333558143478962, 0.0001540353053004288, 1.5252737063823799e-05
_B8, _B9, _B10, _B11 = 1.3215395985363978e-06, 1.0176548966652582e-07, 7.0809898636035e-09, 4.697063755392289e-10


# Rounds as its callers do: with contraction, or one operation after the other.
@jit_step(forceinline=True)
def _power_of_two(exponent):
    """``2^exponent`` in float64, for exponents within its range."""
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
    bits = np.int64(np.float64(value).view(np.int64) + (np.float64(shifted).view(np.int64) << np.int64(52)))
    return bits.view(np.float64)


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
    bits = np.int32(np.float32(value).view(np.int32) + (np.float32(shifted).view(np.int32) << np.int32(23)))
    return bits.view(np.float32)


def _exp2_f64(exponent):
    """``2^exponent`` in float64 for exponents below 1022; relative error below 3e-15."""
    exponent = max(exponent, _LOWEST_64)
    return _power_of_two(exponent)


@jit_step(fastmath=False, forceinline=True)
def exact_exp2(exponent):
    """Compute ``2^exponent`` for exponents of at most 0, in a fixed order.

    NaN counts as minus infinity.
    """
    exponent = exponent if exponent > _LOWEST_64 else _LOWEST_64
    return _power_of_two(exponent)


# Half of pi in three parts, the first two with 33 bits: products with whole numbers below 2^20 are exact.
_TURNS = 2.0 / np.pi
_HALF_PI_1, _HALF_PI_2, _HALF_PI_3 = 1.57079632673412561417e00, 6.07710050630396597660e-11, 2.02226624871116645580e-21
# Minimax polynomials on [-pi/4, pi/4], of Sun's fdlibm.
_S1, _S2, _S3 = -1.66666666666666324348e-01, 8.33333333332248946124e-03, -1.98412698298579493134e-04
_S4, _S5, _S6 = 2.75573137070700676789e-06, -2.50507602534068634195e-08, 1.58969099521155010221e-10
_C1, _C2, _C3 = 4.16666666666666019037e-02, -1.38888888888741095749e-03, 2.48015872894767294178e-05
_C4, _C5, _C6 = -2.75573143513906633035e-07, 2.08757232129817482790e-09, -1.13596475577881948265e-11
_LARGEST_ANGLE = 2.0**31


@jit_step(fastmath=False, forceinline=True)
def sine_and_cosine(angle):
    """Sine and cosine of an angle, one operation after the other.

    An angle of 2^31 or more counts as 0.

    Up to 1e6 they are off by less than 1e-15, and beyond by about the angle's own round-off.
    """
    angle = angle if abs(angle) < _LARGEST_ANGLE else 0.0
    turns = (angle * _TURNS + _SHIFTER_64) - _SHIFTER_64
    quarter = np.int32(turns)
    rest = ((angle - turns * _HALF_PI_1) - turns * _HALF_PI_2) - turns * _HALF_PI_3
    z = rest * rest
    sine = rest + rest * z * (_S1 + z * (_S2 + z * (_S3 + z * (_S4 + z * (_S5 + z * _S6)))))
    cosine = 1.0 - (0.5 * z - z * z * (_C1 + z * (_C2 + z * (_C3 + z * (_C4 + z * (_C5 + z * _C6))))))
    odd = (quarter & np.int32(1)) != 0
    first, second = (cosine if odd else sine), (sine if odd else cosine)
    first = -first if (quarter & np.int32(2)) != 0 else first
    second = -second if ((quarter + np.int32(1)) & np.int32(2)) != 0 else second
    return first, second


def exp2(exponent):
    """Compute ``2^exponent`` below 126 (float32) or 1022 (float64)."""
    return np.exp2(exponent)


# No reassociation here: it would cancel the shifter.
@overload(exp2, jit_options={"fastmath": {"contract"}, "forceinline": True})
def _exp2_by_type(exponent):
    return {types.float32: _exp2_f32, types.float64: _exp2_f64}.get(exponent)
