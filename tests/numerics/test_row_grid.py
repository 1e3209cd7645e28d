"""Rows on a grid: bounded in whole numbers, and each by itself."""

import math
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from privsvm.numerics.rows.row_grid import BITS, LARGEST_BITS, grid_rows, grid_spacing

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
