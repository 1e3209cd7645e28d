"""Unit rows in whole numbers, each normalised by itself, with exact norms.

What becomes of a row depends on that row alone, bit for bit: the kernel goes through its numbers in their order. A
number that is zero changes no bit, so that dense and CSR rows have the same images.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse

from privsvm.numerics.compiled.jit import jit

# Grid cells of a unit length.
CELLS = 2.0**20
# Largest norm that is reported.
LONGEST = 2.0**500
# Round-off: a row that is too long is shrunk by this factor at a time.
_SHRINK = 1.0 - 2.0**-30
_LARGEST_SQUARE = np.int64(2**40)


@jit()
def _set_unit_cells(values, starts, constant, cells, constants, norms, factors):
    """Set cells, constants, norms and factors of rows from ``starts``."""
    for i in range(norms.shape[0]):
        row, row_cells = values[starts[i] : starts[i + 1]], cells[starts[i] : starts[i + 1]]
        largest = constant
        for value in row:
            largest = max(largest, abs(value))
        # Powers of two that scale the row to 1/2..1: two of them, since subnormal numbers need more than 2^1023.
        exponent = math.frexp(largest)[1] if largest < np.inf else 0
        once, again = math.ldexp(1.0, -(exponent // 2)), math.ldexp(1.0, exponent // 2 - exponent)
        total = constant * once * again
        total *= total
        for value in row:
            scaled = value * once * again
            total += scaled * scaled
        # Zeros, infinities and NaN: such a row becomes a row of zeros.
        if not 0.0 < total < np.inf:
            constants[i] = norms[i] = 0.0
            factors[i] = 0.0
            row_cells[:] = 0.0
            continue
        root = math.sqrt(total)
        norms[i] = min(math.ldexp(root, exponent), LONGEST)
        factor, square = CELLS / root, _LARGEST_SQUARE + 1
        while square > _LARGEST_SQUARE:
            constant_cell = np.int64(constant * once * again * factor)
            square = constant_cell * constant_cell
            for j in range(row.shape[0]):
                cell = np.int64(row[j] * once * again * factor)
                row_cells[j] = cell
                square += cell * cell
            constants[i], factors[i, 0], factors[i, 1], factors[i, 2] = constant_cell, once, again, factor
            factor *= _SHRINK


def unit_cells(X: Any, constant: float = 0.0) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray]:
    """Divide rows by their norms and truncate them to multiples of 2^-20.

    Numbers are finite and of any size, subnormal ones and 1e308 among them. The numbers of a CSR row are in ascending
    order of their columns, and no place is stored twice. `constant`, not negative, is the value of a further feature of
    every row.

    Returns the cells (n, d) and the constant feature's cells (n,), whole numbers whose squares add up to at most 2^40:
    rows of zeros stay, and rows with numbers that are not finite become such. Norms (n,) of the rows with that feature
    follow, to a few units in the last place; at most `LONGEST`. The three factors (n, 3) of each row come last; 0 for
    rows that become rows of zeros.
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
    return np.column_stack(unit_cells(X, constant)[:2])


def unit_rows_on_grid(X: np.ndarray) -> np.ndarray:
    """Dense unit rows, truncated toward zero to multiples of 2^-20.

    No norm exceeds 1, in exact arithmetic.
    """
    rows: np.ndarray = unit_cells(X)[0] / CELLS
    return rows
