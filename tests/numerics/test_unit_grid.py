"""Unit rows in whole numbers: never too long, close to the rows, one row at a time."""

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from privsvm.numerics.rows.unit_grid import CELLS, LONGEST, unit_cells, unit_rows_on_grid

FINITE = st.floats(allow_nan=False, allow_infinity=False)


def rows_of_all_sizes(seed=0, n=120, d=9):
    rng = np.random.default_rng(seed)
    with np.errstate(under="ignore"):
        X = rng.normal(size=(n, d)) * np.logspace(-322, 307, n)[:, None]
    X[5], X[6, 1:], X[7] = 0.0, 0.0, 1.7e308
    X[8] = 5e-324
    return X


@given(st.lists(FINITE, min_size=1, max_size=8), st.sampled_from([0.0, 1.0, 0.3, 1e-300, 1e300]))
@settings(max_examples=400, deadline=None)
def test_cells_are_the_unit_row_truncated(row, constant):
    cells, constants, norms = unit_cells(np.array([row]), constant)
    numbers = [Fraction(value) for value in [*row, constant]]
    integers = [int(value) for value in [*cells[0], constants[0]]]
    assert sum(value * value for value in integers) <= 2**40
    square = sum(value * value for value in numbers)
    if square == 0:
        assert not any(integers)
        assert norms[0] == 0.0
        return
    for value, cell in zip(numbers, integers, strict=True):
        # Compared by squares; the largest number of steps that round-off may take away is 1.
        assert value * cell >= 0
        assert cell * cell * square <= value * value * 2**40 * (1 + Fraction(1, 2**45))
        assert (abs(cell) + 1) ** 2 * square >= value * value * 2**40 * (1 - Fraction(1, 2**45))
    if norms[0] < LONGEST:
        assert abs(Fraction(float(norms[0])) ** 2 / square - 1) < Fraction(1, 2**40) or norms[0] < 1e-300


@pytest.mark.parametrize("constant", [0.0, 1.0])
def test_a_row_depends_on_itself_alone(constant):
    X = rows_of_all_sizes()
    order = np.random.default_rng(1).permutation(len(X))
    of_all_rows = unit_cells(X, constant)
    for rows, kept in ((X[order], order), (X[3:50], slice(3, 50)), (X[::7].copy(), slice(None, None, 7))):
        for of_rows, all_rows in zip(unit_cells(rows, constant), of_all_rows, strict=True):
            assert np.array_equal(of_rows, all_rows[kept])
    padded = unit_cells(np.hstack([X, np.zeros((len(X), 5))]), constant)
    assert np.array_equal(padded[0][:, :9], of_all_rows[0])
    assert np.array_equal(padded[2], of_all_rows[2])
    sparse = unit_cells(scipy.sparse.csr_array(X), constant)
    assert np.array_equal(sparse[0].toarray(), of_all_rows[0])
    assert np.array_equal(sparse[1], of_all_rows[1])
    assert np.array_equal(sparse[2], of_all_rows[2])


def test_unit_rows_on_grid():
    X = rows_of_all_sizes()
    rows = unit_rows_on_grid(X)
    for row in rows:
        assert sum(Fraction(value) ** 2 for value in row) <= 1
        assert np.array_equal(row * CELLS, np.rint(row * CELLS))
    norms = np.linalg.norm(rows, axis=1)
    assert norms[5] == 0.0
    assert np.delete(norms, 5).min() > 1 - 1e-5


def test_rows_that_are_none_leave_nothing():
    # As whole numbers they would be -2^63, whose square is 0: longer than any row, and not found to be.
    rows = np.array([[np.nan, 1.0], [1.0, np.inf], [-np.inf, 0.0], [0.0, np.nan], [3.0, 4.0]])
    cells, constants, _ = unit_cells(rows, 0.5)
    assert not cells[:4].any()
    assert not constants[:4].any()
    assert cells[4].all()
