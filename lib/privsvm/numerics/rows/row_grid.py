"""Rows on a public grid: clipped and truncated one by one, with checked norms.

What becomes of a row depends on that row and on public numbers alone, bit for bit: the kernel goes through the numbers
of one row in their order, without the liberties of ``fastmath`` and without BLAS, which picks another order for another
number of rows. A number that is zero changes no bit, so that dense and CSR rows have the same images.

Truncation toward zero lengthens no row, so it costs nothing in a sensitivity.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import scipy.sparse

from privsvm.numerics.compiled.jit import jit, jit_step
from privsvm.numerics.compiled.vector_code import maximum

# The spacing is the power of two at or below the norm, divided by 2^BITS: a row loses less than sqrt(d) 2^-26 of the
# norm, and its numbers can be squared and summed in 64 bits.
BITS = 26
# Halves of whole numbers below 2^41 fit into 21 bits, and their squares into 42: sums of squares are held in two words,
# the lower one of 42 bits.
LARGEST_BITS = 40
_HALF = 21
# For numbers below 2^27, one word holds the sum of so many squares; and the sums of so many halves' products.
_SHORT, _SHORT_BLOCK, _LONG_BLOCK = 27, 256, 2**16
# Round-off: a row that is too long is shrunk by this factor at a time.
_SHRINK = 1.0 - 2.0**-30


def grid_spacing(norm: float, bits: int = BITS) -> float:
    """Return the grid's spacing for rows of norm at most `norm`: a power of two."""
    if not 1 <= bits <= LARGEST_BITS:
        raise ValueError(f"bits={bits!r}: must lie between 1 and {LARGEST_BITS}")
    return math.ldexp(1.0, math.frexp(norm)[1] - 1 - bits)


@jit_step()
def _fits(values, first, end, scale, factor, short, bound_high, bound_low, out):
    """Set the whole numbers of one row.

    Tell whether their sum of squares is within the bound, which is exact.

    They are below 2^27 if `short`, and below 2^41 otherwise.
    """
    if short:
        total, bound = np.int64(0), (bound_high << np.int64(2 * _HALF)) + bound_low
        for start in range(first, end, _SHORT_BLOCK):
            for j in range(start, min(start + _SHORT_BLOCK, end)):
                cell = np.int64(values[j] * scale * factor)
                out[j] = float(cell)
                total += cell * cell
            if total > bound:
                return False
        return True
    half = np.int64(1) << np.int64(_HALF)
    square = half * half
    total_high, total_low = np.int64(0), np.int64(0)
    for start in range(first, end, _LONG_BLOCK):
        high, middle, low = np.int64(0), np.int64(0), np.int64(0)
        for j in range(start, min(start + _LONG_BLOCK, end)):
            cell = np.int64(values[j] * scale * factor)
            out[j] = float(cell)
            size = abs(cell)
            upper, lower = size >> np.int64(_HALF), size & (half - np.int64(1))
            high += upper * upper
            middle += upper * lower
            low += lower * lower
        # The sum of squares is high 2^42 + 2 middle 2^21 + low; carry, so that the lower word stays below 2^42.
        total_high += high + (middle >> np.int64(_HALF - 1))
        total_low += (low & (square - np.int64(1))) + (
            (middle & ((half >> np.int64(1)) - np.int64(1))) << np.int64(_HALF + 1)
        )
        total_high += (low >> np.int64(2 * _HALF)) + (total_low >> np.int64(2 * _HALF))
        total_low &= square - np.int64(1)
        if total_high > bound_high:
            return False
    return total_high < bound_high or total_low <= bound_low


@jit()
def _set_grid_rows(values, starts, ratio, norm_exponent, spacing_exponent, bound_high, bound_low, out):
    """Set `out` to images of rows, with numbers ``starts[i]..starts[i + 1]``.

    `ratio` is the norm over the spacing, and the norm is below ``2^norm_exponent``. The bound on the sum of squares is
    ``bound_high 2^42 + bound_low``.
    """
    short = norm_exponent - spacing_exponent <= _SHORT
    for i in range(starts.shape[0] - 1):
        first, end = starts[i], starts[i + 1]
        largest = 0.0
        for j in range(first, end):
            largest = maximum(largest, abs(values[j]))
        exponent = math.frexp(largest)[1]
        # All numbers of the row are below the spacing.
        if largest == 0.0 or exponent <= spacing_exponent:
            out[first:end] = 0.0
            continue
        # Exact, except for numbers too small to leave anything on the grid: the largest becomes 1/2 to 1.
        scale = math.ldexp(1.0, -exponent)
        factor = np.inf
        if exponent <= norm_exponent:
            # Exact too.
            factor = math.ldexp(1.0, exponent - spacing_exponent)
            if _fits(values, first, end, scale, factor, short, bound_high, bound_low, out):
                continue
        total = 0.0
        for j in range(first, end):
            scaled = values[j] * scale
            total += scaled * scaled
        factor = min(factor, ratio / math.sqrt(total))
        while not _fits(values, first, end, scale, factor, short, bound_high, bound_low, out):
            factor *= _SHRINK


def grid_rows(X: Any, norm: float, bits: int = BITS) -> Any:
    """Clip rows to a norm and truncate them toward zero to a public grid.

    Numbers are finite and of any size, subnormal ones and 1e308 among them; ValueError otherwise. The numbers of a CSR
    row are in ascending order of their columns, and no place is stored twice. The bound `norm` on the L2 norm is
    public, 1e-200 to 1e200, as is the fineness `bits`: see `grid_spacing`. Rows become whole multiples of
    `grid_spacing` with a sum of squares, as whole numbers, of at most ``(norm / spacing)^2``. A row shorter than `norm`
    loses less than the spacing in each place.
    """
    sparse = scipy.sparse.issparse(X)
    values = X.data if sparse else np.ascontiguousarray(X, dtype=np.float64).reshape(-1)
    if not np.isfinite(values).all():
        raise ValueError("X holds a number that is not finite")
    starts = X.indptr.astype(np.int64) if sparse else np.arange(X.shape[0] + 1, dtype=np.int64) * X.shape[1]
    spacing = grid_spacing(norm, bits)
    bound = math.floor((Fraction(norm) / Fraction(spacing)) ** 2)
    cells = np.empty(values.size)
    _set_grid_rows(
        values,
        starts,
        norm / spacing,
        math.frexp(norm)[1],
        math.frexp(spacing)[1] - 1,
        bound >> (2 * _HALF),
        bound & ((1 << (2 * _HALF)) - 1),
        cells,
    )
    cells *= spacing
    if sparse:
        # A copy: zeros are removed in place, and X is the caller's.
        rows = scipy.sparse.csr_array((cells, X.indices, X.indptr), shape=X.shape, copy=True)
        rows.eliminate_zeros()
        return rows
    return cells.reshape(X.shape)
