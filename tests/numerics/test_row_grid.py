"""Rows on a grid, of unit norm or less a vector: bounded in whole numbers, and each by itself."""

import math
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from privsvm.families.moments.second_moments import centre_rows, constant_feature
from privsvm.numerics.rows.centred_grid import CentredCells
from privsvm.numerics.rows.row_grid import BITS, LARGEST_BITS, grid_rows, grid_spacing
from privsvm.numerics.rows.unit_grid import CELLS, LONGEST, unit_cells, unit_rows_on_grid

SIZES = [0.0, -0.0, 5e-324, 1e-310, 2.3e-308, 1e-160, 1e-15, 1e-9, 0.1, 0.5, 1.0, 1.5, 3.0, 1e6, 1e160, 1e308]
NUMBERS = st.one_of(
    st.floats(-2, 2),
    st.builds(math.copysign, st.sampled_from(SIZES), st.sampled_from([-1.0, 1.0])),
    st.floats(allow_nan=False, allow_infinity=False),
)
NORMS = st.one_of(
    st.sampled_from([1.0, 0.5, 1.5, 2.0, 2.0 - 2**-52, 1.0 + 2**-52, math.sqrt(2), 1e-100, 1e100, 1e-6, 12.0]),
    st.floats(1e-100, 1e100),
)
FINENESS = st.sampled_from([1, 18, 20, BITS, 31, LARGEST_BITS])


def bound_squares(norm, bits):
    """The largest sum of squares of a row, in whole numbers."""
    return math.floor((Fraction(norm) / Fraction(grid_spacing(norm, bits))) ** 2)


@st.composite
def matrices(draw):
    n, d = draw(st.integers(1, 6)), draw(st.integers(1, 9))
    X = np.array(draw(st.lists(NUMBERS, min_size=n * d, max_size=n * d))).reshape(n, d)
    kind = draw(st.sampled_from(["free", "equal", "duplicates", "one"]))
    if kind == "equal":
        X[:] = X[:, :1]
    elif kind == "duplicates":
        X[:] = X[0]
    elif kind == "one":
        X[:, 1:] = 0.0
    return X


@given(matrices(), NORMS, FINENESS)
@settings(max_examples=400, deadline=None)
def test_the_norm_of_every_row_is_bounded_in_whole_numbers(X, norm, bits):
    spacing = Fraction(grid_spacing(norm, bits))
    for row, exact in zip(grid_rows(X, norm, bits), X, strict=True):
        cells = [Fraction(value) / spacing for value in row]
        assert all(cell.denominator == 1 for cell in cells)
        assert sum(cell**2 for cell in cells) <= bound_squares(norm, bits)
        assert sum(Fraction(value) ** 2 for value in row) <= Fraction(norm) ** 2
        # No number grows or changes its sign.
        assert all(abs(Fraction(a)) <= abs(Fraction(b)) for a, b in zip(row, exact, strict=True))
        assert all(a == 0 or (a > 0) == (b > 0) for a, b in zip(row, exact, strict=True))
        assert not np.signbit(row[row == 0]).any()
        largest = np.abs(exact).max()
        if largest == 0:
            continue
        shape = math.sqrt(sum((Fraction(value) / Fraction(largest)) ** 2 for value in exact))
        length = Fraction(largest) * Fraction(shape) / Fraction(norm)
        if length < 1 - 1e-12:
            assert all(abs(Fraction(a) - Fraction(b)) < spacing for a, b in zip(row, exact, strict=True))
        elif length > 1 + 1e-12:
            # It loses no more than truncation and round-off: the image is as long as the bound lets it be.
            for a, b in zip(row, exact, strict=True):
                ideal = Fraction(b) / length / spacing
                assert abs(Fraction(a) / spacing - ideal) <= 1 + Fraction(norm) / spacing / 2**28


@given(matrices(), NORMS, FINENESS, st.randoms(use_true_random=False))
@settings(max_examples=300, deadline=None)
def test_the_image_of_a_row_depends_on_that_row_alone(X, norm, bits, random):
    """Bit for bit: alone, removed, in another order, among more rows, and as CSR with zeros stored or not."""
    images = grid_rows(X, norm, bits)
    order = list(range(len(X)))
    random.shuffle(order)
    assert grid_rows(X[order], norm, bits).tobytes() == images[order].tobytes()
    assert grid_rows(X[1:], norm, bits).tobytes() == images[1:].tobytes()
    assert (
        grid_rows(np.vstack([X, 1e308 * np.ones((5, X.shape[1]))]), norm, bits)[: len(X)].tobytes() == images.tobytes()
    )
    assert grid_rows(np.asfortranarray(X), norm, bits).tobytes() == images.tobytes()
    sparse = scipy.sparse.csr_array(X)
    indices, starts = np.tile(np.arange(X.shape[1]), len(X)), np.arange(len(X) + 1) * X.shape[1]
    stored = scipy.sparse.csr_array((X.ravel(), indices, starts), shape=X.shape)
    for rows in (sparse, stored):
        row_images = grid_rows(rows, norm, bits)
        assert row_images.toarray().tobytes() == images.tobytes()
        assert (row_images.data != 0).all()
    wide = np.hstack([X, np.zeros((len(X), 3))])
    assert grid_rows(wide, norm, bits)[:, : X.shape[1]].tobytes() == images.tobytes()


@pytest.mark.parametrize("d", [3, 1000, 200_000])
def test_long_rows_of_many_numbers(d):
    rng = np.random.default_rng(d)
    X = rng.normal(size=(3, d)) * np.array([[1.0], [1e300], [1e-3 / math.sqrt(d)]])
    for bits in (BITS, LARGEST_BITS):
        spacing, bound = grid_spacing(1.7, bits), bound_squares(1.7, bits)
        for row in grid_rows(X, 1.7, bits):
            assert sum(int(cell) ** 2 for cell in row / spacing) <= bound
        assert np.allclose(np.linalg.norm(grid_rows(X, 1.7, bits)[:2], axis=1), 1.7, rtol=1e-4)


@pytest.mark.parametrize("bits", [BITS, BITS + 1, LARGEST_BITS])
@pytest.mark.parametrize("d", [255, 256, 257, 512, 1025, 70_000, 140_000])
def test_rows_far_too_long_do_not_pass_by_a_sum_that_wraps(bits, d):
    """Each number is as long as the whole row may be: without clipping, 64 bits do not hold the sum of squares."""
    for norm, times in ((1.0, 1.0), (1.0, 2.0 - 2.0**-52), (2.0 - 2.0**-52, 1.0), (1.0, 1e9)):
        image = grid_rows(np.full((1, d), norm * times), norm, bits)[0] / grid_spacing(norm, bits)
        assert (image == image[0]).all()
        assert (
            d * int(image[0]) ** 2 <= bound_squares(norm, bits) < d * (int(image[0]) + 2 + (int(image[0]) >> 27)) ** 2
        )


def test_the_limbs_of_a_sum_of_squares_carry():
    """More numbers than 64 bits can hold the squared lower halves of."""
    d = 3 * 2**20
    norm = 2.0 - 2**-30
    row = np.full((1, d), norm / math.sqrt(d) * 1.0000001)
    spacing = grid_spacing(norm, LARGEST_BITS)
    (image,) = grid_rows(row, norm, LARGEST_BITS)
    cell = int(image[0] / spacing)
    assert (image == image[0]).all()
    assert d * cell**2 <= bound_squares(norm, LARGEST_BITS)
    assert d * (cell + 2 + (cell >> 29)) ** 2 > bound_squares(norm, LARGEST_BITS)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_not_finite_are_refused(bad):
    X = np.ones((3, 2))
    X[1, 1] = bad
    for rows in (X, scipy.sparse.csr_array(X)):
        with pytest.raises(ValueError, match="not finite"):
            grid_rows(rows, 1.0)
    with pytest.raises(ValueError, match="bits=41"):
        grid_rows(np.ones((1, 1)), 1.0, LARGEST_BITS + 1)


def test_no_rows_and_no_numbers():
    assert grid_rows(np.empty((0, 3)), 1.0).shape == (0, 3)
    assert grid_rows(scipy.sparse.csr_array((2, 3)), 1.0).nnz == 0


def test_rows_of_the_caller_stay_as_they_are():
    """Numbers that round to 0 are removed from a copy."""
    X = scipy.sparse.csr_array(np.array([[1e-15, 0.5], [0.25, 1e-15]]))
    before = X.copy()
    assert grid_rows(X, 1.0).nnz == 2
    for name in ("data", "indices", "indptr"):
        assert np.array_equal(getattr(X, name), getattr(before, name))


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
    cells, constants, norms, _ = unit_cells(np.array([row]), constant)
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
    cells, constants, *_ = unit_cells(rows, 0.5)
    assert not cells[:4].any()
    assert not constants[:4].any()
    assert cells[4].all()


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
        divided, *unit_constants, _ = unit_cells(rows / CELLS, constant)
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
