"""Unit rows in whole numbers, each normalised by itself, with exact norms.

What becomes of a row depends on that row alone, bit for bit: the kernel goes through its numbers in their order. A
number that is zero changes no bit, so that dense and CSR rows have the same images.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse

from privsvm.numerics.compiled.jit import jit, jit_step

# Grid cells of a unit length.
CELLS = 2.0**20
# Largest norm that is reported.
LONGEST = 2.0**500
# Round-off: a row that is too long is shrunk by this factor at a time.
_SHRINK = 1.0 - 2.0**-30
_LARGEST_SQUARE = 2**40
# Bit masks: all bits except the sign, and the bits of infinity.
_NO_SIGN, _INFINITE = 2**63 - 1, 0x7FF << 52
# Rows whose squares are summed side by side.
_SIDE_BY_SIDE = 4


@jit_step()
def _powers(bits, constant):
    """Return powers of two that scale a row to 1/2..1, and their exponent.

    It takes two of them, since subnormal numbers need more than 2^1023. Without their signs, numbers are in the order
    of their bits; those that are not finite are above all.
    """
    largest = 0
    for j in range(bits.shape[0]):
        largest = max(largest, bits[j] & _NO_SIGN)
    if largest >= _INFINITE:
        return 0.0, 0.0, 0
    size = max(constant, np.int64(largest).view(np.float64))
    if size == 0.0:
        return 0.0, 0.0, 0
    exponent = math.frexp(size)[1]
    half = exponent // 2
    return math.ldexp(1.0, -half), math.ldexp(1.0, half - exponent), exponent


@jit_step(forceinline=True)
def _square(value, once, again):
    scaled = value * once * again
    return scaled * scaled


@jit_step()
def _add_squares(values, starts, first, n_rows, once, again, totals):
    """Add squares of up to four rows from `first` on to totals, in order.

    Four sums side by side take little longer than one, as each addition waits for the one before.
    """
    common_length = 0
    if n_rows == _SIDE_BY_SIDE:
        common_length = starts[first + 1] - starts[first]
        for r in range(1, n_rows):
            common_length = min(common_length, starts[first + r + 1] - starts[first + r])
        row_0, row_1 = values[starts[first] :], values[starts[first + 1] :]
        row_2, row_3 = values[starts[first + 2] :], values[starts[first + 3] :]
        total_0, total_1, total_2, total_3 = totals[0], totals[1], totals[2], totals[3]
        for j in range(common_length):
            total_0 += _square(row_0[j], once[0], again[0])
            total_1 += _square(row_1[j], once[1], again[1])
            total_2 += _square(row_2[j], once[2], again[2])
            total_3 += _square(row_3[j], once[3], again[3])
        totals[0], totals[1], totals[2], totals[3] = total_0, total_1, total_2, total_3
    for r in range(n_rows):
        row = values[starts[first + r] + common_length : starts[first + r + 1]]
        total = totals[r]
        for j in range(row.shape[0]):
            total += _square(row[j], once[r], again[r])
        totals[r] = total


@jit_step()
def _set_row(values, constant, factors, cells):
    """Set the cells of a row, and return the constant feature's cell.

    Shrinks the last of the three factors.
    """
    once, again, factor = factors[0], factors[1], factors[2]
    while True:
        constant_cell = np.int64(constant * once * again * factor)
        square = constant_cell * constant_cell
        for j in range(values.shape[0]):
            cell = np.int64(values[j] * once * again * factor)
            cells[j] = float(cell)
            square += cell * cell
        if square <= _LARGEST_SQUARE:
            factors[2] = factor
            return float(constant_cell)
        factor *= _SHRINK


@jit()
def _set_unit_cells(values, starts, constant, cells, constants, norms, factors):
    """Set cells, constants, norms and factors of rows from ``starts``."""
    bits = values.view(np.int64)
    once, again, totals = np.empty(_SIDE_BY_SIDE), np.empty(_SIDE_BY_SIDE), np.empty(_SIDE_BY_SIDE)
    exponents = np.empty(_SIDE_BY_SIDE, np.int64)
    for first in range(0, norms.shape[0], _SIDE_BY_SIDE):
        n_rows = min(_SIDE_BY_SIDE, norms.shape[0] - first)
        for r in range(n_rows):
            row_bits = bits[starts[first + r] : starts[first + r + 1]]
            once[r], again[r], exponents[r] = _powers(row_bits, constant)
            totals[r] = _square(constant, once[r], again[r])
        _add_squares(values, starts, first, n_rows, once, again, totals)
        for r in range(n_rows):
            i = first + r
            start, end = starts[i], starts[i + 1]
            # Zeros, infinities and NaN: such a row becomes a row of zeros.
            if not 0.0 < totals[r] < np.inf:
                constants[i], norms[i] = 0.0, 0.0
                factors[i, :] = 0.0
                cells[start:end] = 0.0
                continue
            root = math.sqrt(totals[r])
            norms[i] = min(math.ldexp(root, exponents[r]), LONGEST)
            factors[i, 0], factors[i, 1], factors[i, 2] = once[r], again[r], CELLS / root
            constants[i] = _set_row(values[start:end], constant, factors[i], cells[start:end])


def unit_cells(X: Any, constant: float = 0.0) -> tuple[Any, np.ndarray, np.ndarray]:
    """Divide rows by their norms and truncate them to multiples of 2^-20.

    Numbers are finite and of any size, subnormal ones and 1e308 among them. The numbers of a CSR row are in ascending
    order of their columns, and no place is stored twice. `constant`, not negative, is the value of a further feature of
    every row.

    Returns the cells (n, d) and the constant feature's cells (n,), whole numbers whose squares add up to at most 2^40:
    rows of zeros stay, and rows with numbers that are not finite become such. Norms (n,) of the rows with that feature
    come last, to a few units in the last place; at most `LONGEST`.
    """
    return unit_cells_and_factors(X, constant)[:3]


def unit_cells_and_factors(X: Any, constant: float = 0.0) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray]:
    """Return `unit_cells`, and the three factors (n, 3) of each row.

    They are 0 for rows that become rows of zeros.
    """
    sparse = scipy.sparse.issparse(X)
    values = np.require(X.data if sparse else X, dtype=np.float64, requirements=["C", "W"]).reshape(-1)
    starts = X.indptr.astype(np.int64) if sparse else np.arange(X.shape[0] + 1, dtype=np.int64) * X.shape[1]
    cells, constants, norms = np.empty(values.size), np.empty(X.shape[0]), np.empty(X.shape[0])
    factors = np.empty((X.shape[0], 3))
    _set_unit_cells(values, starts, float(constant), cells, constants, norms, factors)
    if sparse:
        rows = scipy.sparse.csr_array((cells, X.indices, X.indptr), shape=X.shape)
        return rows, constants, norms, factors
    return cells.reshape(X.shape), constants, norms, factors


def cells_with_constant(X: np.ndarray, constant: float) -> np.ndarray:
    """Return the `unit_cells` of dense rows, with the constant feature's as a last column."""
    cells, constants, _ = unit_cells(X, constant)
    return np.column_stack([cells, constants])


def unit_rows_on_grid(X: np.ndarray) -> np.ndarray:
    """Dense unit rows, truncated toward zero to multiples of 2^-20.

    No norm exceeds 1, in exact arithmetic.
    """
    rows: np.ndarray = unit_cells(X)[0] / CELLS
    return rows
