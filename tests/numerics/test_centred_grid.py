"""Sparse rows less a vector: the bits of dense rows, and no more memory than the sparse ones take."""

import numpy as np
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from privsvm.families.moments.second_moments import centre_rows, constant_feature
from privsvm.numerics.rows.centred_grid import CentredCells
from privsvm.numerics.rows.unit_grid import CELLS, unit_cells

VALUES = st.one_of(st.just(0.0), st.floats(-1e3, 1e3), st.sampled_from([-0.0, 5e-324, 1e-300, 1e300]))
# Released means, including those that nearly cancel a value.
CENTRES = st.one_of(st.just(0.0), st.floats(-2.0, 2.0), st.sampled_from([-0.0, 5e-324, -1e-310, 2.0**-20, 0.5, 1.0]))
SHAPE = 5, 6


def bits(array):
    return np.ascontiguousarray(array).view(np.uint64)


def dense_divisions(cells, centre, constants, appended):
    """The same on dense rows, as the methods use them."""
    rows, unit_constants = unit_cells(cells / CELLS - centre)[0], None
    for constant, is_appended in zip(constants, appended, strict=True):
        divided, *unit_constants = unit_cells(rows / CELLS, constant)
        rows = np.column_stack([divided, unit_constants[0]]) if is_appended else divided
    return rows, unit_constants


@given(
    arrays(np.float64, SHAPE, elements=VALUES),
    arrays(np.float64, SHAPE[1], elements=CENTRES),
    st.lists(st.tuples(st.sampled_from([0.0, 0.2, 1.0, 1e-300]), st.booleans()), max_size=3),
    st.permutations(range(SHAPE[0])),
)
@settings(max_examples=150, deadline=None)
def test_bits_are_those_of_dense_rows(X, centre, divisions, order):
    sparse = scipy.sparse.csr_array(X)
    # Stored zeros make no difference.
    sparse.data[::2] *= np.where(np.arange(sparse.data[::2].size) % 3 == 0, 0.0, 1.0)
    cells = unit_cells(sparse.toarray())[0]
    rows = CentredCells.of(unit_cells(sparse)[0], centre)
    unit_constants = None
    for constant, is_appended in divisions:
        rows, *unit_constants = rows.unit(constant)
        rows = rows.with_column(unit_constants[0]) if is_appended else rows
    expected, numbers = (
        dense_divisions(cells, centre, *zip(*divisions, strict=True))
        if divisions
        else (dense_divisions(cells, centre, (), ()))
    )
    assert rows.shape == expected.shape
    assert np.array_equal(bits(rows.toarray()), bits(expected))
    assert unit_constants is None or all(
        np.array_equal(bits(one), bits(two)) for one, two in zip(unit_constants, numbers, strict=True)
    )
    first_rows = np.array(order[:3])
    assert np.array_equal(bits(rows[first_rows].toarray()), bits(expected[first_rows]))


def test_what_is_held_grows_with_the_numbers_that_are_not_zero():
    X = scipy.sparse.random_array((200, 3000), density=0.005, format="csr", rng=np.random.default_rng(0))
    centre = np.random.default_rng(1).normal(size=3000) / 100
    cells = unit_cells(X)[0]
    rows = constant_feature(centre_rows(cells, centre))[0]
    assert isinstance(rows, CentredCells)
    assert rows.nbytes < 0.05 * rows.toarray().nbytes
    expected = constant_feature(centre_rows(cells.toarray(), centre))[0]
    assert np.array_equal(bits(rows.toarray()), bits(expected))
