import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privsvm.numerics.rows.unit_grid import CELLS, unit_cells
from privsvm.solvers.linear.newton_rows import weighted_rows


def make_rows(rng, n, d, n_classes, reach):
    """Unit rows, labels and weights."""
    cells = unit_cells(rng.normal(size=(n, d)))[0]
    return cells, rng.integers(0, n_classes, size=n), rng.normal(size=(n_classes, d)) * reach


@given(st.integers(0, 10**6), st.sampled_from([2, 3, 10, 300]), st.integers(1, 8),
       st.sampled_from([0.0, 1e-3, 1.0, 1e3, 1e6, 1e30, 1e200]))  # fmt: skip
@settings(max_examples=100, deadline=None)
def test_no_row_and_no_slopes_are_longer_than_1(seed, n_classes, d, reach):
    """In whole numbers, for any weights; and each row by itself, bit for bit."""
    rng = np.random.default_rng(seed)
    cells, labels, weights = make_rows(rng, 9, d, n_classes, reach)
    rows, slopes = weighted_rows(cells, labels, n_classes, weights)
    for scaled, numbers in ((rows, cells), (slopes, slopes)):
        assert np.array_equal(scaled, np.trunc(scaled))
        assert (np.abs(scaled) <= np.abs(numbers)).all()
        assert all(sum(int(value) ** 2 for value in row) <= 2**40 for row in scaled)
    assert (slopes.sum(axis=1) == 0.0).all()
    order = rng.permutation(9)[:5]
    for chosen in (order, order[:1]):
        again = weighted_rows(cells[chosen], labels[chosen], n_classes, weights)
        assert np.array_equal(again[0], rows[chosen])
        assert np.array_equal(again[1], slopes[chosen])


def loss(scores, label):
    gaps = 1.0 - (scores[label] - np.delete(scores, label))
    return ((gaps + np.hypot(gaps, 1.0)) / 2).sum()


@pytest.mark.parametrize("n_classes", [2, 5])
def test_slopes_are_those_of_the_loss_clipped(n_classes):
    """Beside differences of the loss; a row times its slopes is its part of the gradient, whatever its curvature is."""
    rng = np.random.default_rng(1)
    cells, labels, weights = make_rows(rng, 60, 4, n_classes, 4.0)
    rows, slopes = weighted_rows(cells, labels, n_classes, weights)
    scores, step, clipped = cells / CELLS @ weights.T, 1e-5, 0
    for row in range(60):
        moves = step * np.eye(n_classes)
        slow = np.array(
            [loss(scores[row] - move, labels[row]) - loss(scores[row] + move, labels[row]) for move in moves]
        )
        slow /= 2 * step
        norm = np.linalg.norm(slow)
        clipped += norm > 1
        gradient = np.outer(slopes[row], rows[row]) / CELLS**2
        assert np.allclose(gradient, np.outer(slow / max(norm, 1.0), cells[row] / CELLS), atol=3e-5)
    assert 5 < clipped < 55


def test_curvatures_are_those_of_parabolas_that_lie_nowhere_below_the_loss():
    """Of two classes, and of slopes that are not clipped: half the curvature, along the difference of scores."""
    cells, gaps = np.array([[CELLS]]), np.linspace(-20.0, 20.0, 401)
    checked = 0
    for gap in gaps:
        # The scores' difference is one less the gap.
        weights = np.array([[0.5 - gap / 2], [gap / 2 - 0.5]])
        rows, slopes = weighted_rows(cells, np.array([0]), 2, weights)
        curvature = (rows[0, 0] / CELLS) ** 2
        slope = (1 + gap / np.hypot(gap, 1)) / 2
        assert curvature == pytest.approx(max(1 / np.hypot(gap, 1), min(2 * slope**2, 1.0)), abs=3e-5)
        if 2 * slope**2 > 1:
            assert slopes[0, 0] * rows[0, 0] / CELLS**2 == pytest.approx(np.sqrt(0.5), abs=1e-5)
            continue
        checked += 1
        value = (gap + np.hypot(gap, 1)) / 2
        above = value + slope * (gaps - gap) + curvature / 2 * (gaps - gap) ** 2 / 2
        # Truncating a curvature to 2^-18 costs so much at a distance of 40.
        assert (above >= (gaps + np.hypot(gaps, 1)) / 2 - 2e-3).all()
    assert checked > 200
