"""Unit rows in whole numbers: each row is divided by its norm and truncated by itself, its norm checked exactly.

What becomes of a row depends on that row alone, bit for bit: the kernel goes through its numbers in their order. A
number that is zero changes no bit, so that dense and CSR rows have the same images.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse

from privsvm.numerics.jit import jit

__all__ = ["CELLS", "LONGEST", "unit_cells", "unit_cells_and_factors", "unit_rows_on_grid"]

# Of a length of 1.
CELLS = 2.0**20
# Norms above this are given as this.
LONGEST = 2.0**500
# A row that is too long, by round-off, is shrunk by this much at a time.
_SHRINK = 1.0 - 2.0**-30
_LARGEST_SQUARE = 2**40


@jit()
def _set_unit_cells(values, starts, constant, cells, constants, norms, factors):
    """Set cells, those of the constant feature, norms and factors of rows ``values[starts[i]:starts[i + 1]]``."""
    for i in range(norms.shape[0]):
        first, end = starts[i], starts[i + 1]
        largest = constant
        for j in range(first, end):
            largest = max(largest, abs(values[j]))
        if largest == 0.0:
            constants[i], norms[i], factors[i] = 0.0, 0.0, 0.0
            for j in range(first, end):
                cells[j] = 0.0
            continue
        # The largest number becomes 1/2 to 1, exactly; in two steps, since subnormal numbers need more than 2^1023.
        exponent = math.frexp(largest)[1]
        half = exponent // 2
        once, again = math.ldexp(1.0, -half), math.ldexp(1.0, half - exponent)
        own = constant * once * again
        total = own * own
        for j in range(first, end):
            scaled = values[j] * once * again
            total += scaled * scaled
        if not total < np.inf:
            # No row, whatever made it: a number that is none has no whole number either.
            constants[i], norms[i], factors[i] = 0.0, 0.0, 0.0
            for j in range(first, end):
                cells[j] = 0.0
            continue
        root = math.sqrt(total)
        norms[i] = min(math.ldexp(root, exponent), LONGEST)
        factor = CELLS / root
        while True:
            cell = np.int64(own * factor)
            constants[i] = float(cell)
            square = cell * cell
            for j in range(first, end):
                cell = np.int64(values[j] * once * again * factor)
                cells[j] = float(cell)
                square += cell * cell
            if square <= _LARGEST_SQUARE:
                break
            factor *= _SHRINK
        factors[i, 0], factors[i, 1], factors[i, 2] = once, again, factor


def unit_cells(X: Any, constant: float = 0.0) -> tuple[Any, np.ndarray, np.ndarray]:
    """Divide rows by their norms and truncate them toward zero to whole numbers of 2^-20.

    Parameters
    ----------
    X : ndarray or CSR matrix (n, d) of float64
        Finite numbers of any size, subnormal ones and 1e308 among them. The numbers of a CSR row are in ascending
        order of their columns, and no place is stored twice.
    constant : float, default=0.0
        Value of a further feature of every row; not negative.

    Returns
    -------
    cells : ndarray or CSR matrix (n, d)
        Whole numbers. With that of the constant feature, their squares add up to at most 2^40. Rows of zeros stay, and
        rows with numbers that are not finite become such.
    constants : ndarray (n,)
        Whole numbers of the constant feature.
    norms : ndarray (n,)
        Norms of the rows with that feature, to a few units in the last place; at most `LONGEST`.
    """
    return unit_cells_and_factors(X, constant)[:3]


def unit_cells_and_factors(X: Any, constant: float = 0.0) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray]:
    """Return what `unit_cells` does, and the three numbers (n, 3) that each row is multiplied by, one after the other.

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


def unit_rows_on_grid(X: np.ndarray) -> np.ndarray:
    """Dense unit rows, truncated toward zero to multiples of 2^-20; no norm exceeds 1, in exact arithmetic."""
    rows: np.ndarray = unit_cells(X)[0] / CELLS
    return rows
