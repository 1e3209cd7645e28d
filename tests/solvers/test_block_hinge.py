"""The smoothed hinge on rows by blocks: certified solutions, and the same bits for any blocks."""

import functools
import math
from fractions import Fraction
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privsvm import ObjectivePerturbationClassifier, open_rows
from privsvm.numerics.rows.row_blocks import ArrayBlocks, RowsByBlock, mapped
from privsvm.numerics.rows.row_grid import grid_rows, grid_spacing
from privsvm.solvers.linear import block_hinge
from privsvm.solvers.linear.block_hinge import certified_rows, solve_smoothed_hinge_by_block
from privsvm.solvers.linear.smoothed_hinge import solve_smoothed_hinge


class Blocks(ArrayBlocks):
    """Rows in memory that are read as those of a file are."""

    in_memory = False


def solve(source, codes, C, smoothing, tol, linear, norm):
    rows = mapped(RowsByBlock.of(source), grid_rows, norm)
    return solve_smoothed_hinge_by_block(rows, codes, C, smoothing, tol, linear, norm)


def exact_gradient(rows, signs, coef, linear, C, smoothing):
    """The objective's gradient without any round-off."""
    total = [Fraction(w) + Fraction(b) for w, b in zip(coef.tolist(), linear.tolist(), strict=True)]
    for row, sign in zip(rows.tolist(), signs.tolist(), strict=True):
        margin = Fraction(sign) * sum(Fraction(x) * Fraction(w) for x, w in zip(row, coef.tolist(), strict=True))
        slope = min(max((1 - margin) / Fraction(smoothing), Fraction(0)), Fraction(1)) * -int(sign) * Fraction(C)
        total = [old + slope * Fraction(x) for old, x in zip(total, row, strict=True)]
    return math.sqrt(sum(number * number for number in total))


@given(
    st.tuples(
        st.integers(1, 60),
        st.integers(1, 8),
        st.integers(2, 4),
        st.sampled_from([1e-3, 0.1, 30.0]),
        st.sampled_from([0.01, 0.1, 1.0]),
        st.sampled_from([0.0, 1.0, 1e4]),
        st.sampled_from([0.3, 1.0, 5.0]),
        st.sampled_from([1e-5, 1e-2]),
        st.integers(0, 10**6),
    )
)
@settings(max_examples=60)
def test_every_gradient_is_certainly_small(case):
    n, d, classes, C, smoothing, noise, norm, share, seed = case
    rng = np.random.default_rng(seed)
    X, codes = rng.normal(size=(n, d)) * rng.choice([1e-3, 0.3, 1.0]), rng.integers(0, classes, n)
    linear = noise * C * norm * rng.normal(size=(1 if classes == 2 else classes, d))
    tol = max(share * C * norm, 2.0**-40 * float(np.linalg.norm(linear)))
    solutions = solve(ArrayBlocks(X), codes, C, smoothing, tol, linear, norm)
    rows = grid_rows(X, norm)
    for k, solution in enumerate(solutions):
        signs = np.where(codes == (1 if classes == 2 else k), 1, -1)
        assert exact_gradient(rows, signs, solution, linear[k], C, smoothing) <= tol
        other = solve_smoothed_hinge(rows, signs.astype(float), C, smoothing, tol, linear[k])
        # Both lie within the tolerance of one optimum.
        assert np.linalg.norm(solution - other.coef) <= 2.0 * tol


@given(
    n=st.integers(1, 6000),
    block_rows=st.integers(1, 5000),
    width=st.sampled_from([2**10, 2**12, 2**19]),
    seed=st.integers(0, 10**6),
)
@settings(max_examples=6)
def test_the_bits_do_not_depend_on_the_blocks(n, block_rows, width, seed):
    rng = np.random.default_rng(seed)
    X, codes, linear = rng.normal(size=(n, 4)), rng.integers(0, 3, n), rng.normal(size=(3, 4))
    given_ = codes, 0.05, 0.1, 1e-6, linear, 1.0
    expected = solve(ArrayBlocks(X), *given_)
    with mock.patch("privsvm.numerics.rows.row_blocks._WORK_NUMBERS", width):
        assert np.array_equal(solve(Blocks(X, block_rows), *given_), expected)
        assert np.array_equal(solve(ArrayBlocks(X, block_rows), *given_), expected)


def test_sums_are_those_of_fractions():
    rng = np.random.default_rng(0)
    rows, codes, spacing = grid_rows(rng.normal(size=(1500, 5)), 1.0), rng.integers(0, 2, 1500), grid_spacing(1.0)
    coef = block_hinge.rounded_points(rng.normal(size=(1, 5)) * [[3e3, 1e-4, 1.0, 1e-9, 1.0]])
    limbs, units = block_hinge.taken_apart(coef, spacing)
    assert np.array_equal(block_hinge.rounded_points(coef), coef)
    points = block_hinge._Points(limbs, units, np.array([1]), np.array([0.5]), spacing)
    pulls, squares = block_hinge._sums_of_block(rows, codes, points, 0)
    total, curved = [Fraction(0)] * 5, []
    for row, code in zip(rows.tolist(), codes.tolist(), strict=True):
        sign = 2 * code - 1
        margin = sign * sum(Fraction(x) * Fraction(w) for x, w in zip(row, coef[0].tolist(), strict=True))
        slope = min(max((1 - margin) / Fraction(1, 2), Fraction(0)), Fraction(1))
        total = [old - sign * slope * Fraction(x) for old, x in zip(total, row, strict=True)]
        curved.append(0 < slope < 1)
    off = [float(Fraction(a) * Fraction(spacing) / 2**44 - b) for a, b in zip(pulls[0].tolist(), total, strict=True)]
    assert np.linalg.norm(off) <= 1500 * block_hinge.SLOPE_ERROR
    products = rows[curved].T @ rows[curved]
    assert np.allclose(squares[0] * 2.0**30 * spacing**2, products, rtol=1e-4, atol=1e-4)


def test_the_exact_ascent_goes_on_where_newton_is_stuck():
    rng = np.random.default_rng(1)
    X, codes, linear = rng.normal(size=(30, 2)), rng.integers(0, 2, 30), rng.normal(size=(1, 2))
    run = functools.partial(solve, Blocks(X, 1), codes, 0.1, 0.1, 1e-3, linear, 1.0)
    with mock.patch.object(block_hinge, "_PATIENCE", 0), mock.patch.object(block_hinge, "SLOPE_ERROR", 1.0):
        stuck = run()
    signs = np.where(codes == 1, 1, -1)
    assert exact_gradient(grid_rows(X, 1.0), signs, stuck[0], linear[0], 0.1, 0.1) <= 1e-2
    assert np.linalg.norm(stuck - run()) <= 2e-3


def test_the_classifier_reads_blocks(tmp_path):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 5000)
    X = 0.1 * rng.normal(size=(5000, 4)) + 0.5 * np.eye(3, 4)[y]
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", y)
    models = [
        ObjectivePerturbationClassifier(epsilon=4.0, C=0.1, classes=[0, 1, 2], random_state=0).fit(*given_)
        for given_ in ((X, y), *((open_rows(tmp_path / "X.npy", tmp_path / "y.npy", size), None) for size in (1, None)))
    ]
    assert np.array_equal(models[1].coef_, models[2].coef_)
    # The same noise on minima that are both certified.
    assert np.linalg.norm(models[0].coef_ - models[1].coef_) <= 1e-5
    assert models[1].guarantee_.status == "seeded"
    assert np.mean(models[1].predict(X) == y) > 0.9


def test_more_rows_than_slopes_are_certain_for_are_refused():
    model = ObjectivePerturbationClassifier(epsilon=4.0, C=0.1, classes=[0, 1], tol=1e-10, random_state=0)
    patch_rows = mock.patch(
        "privsvm.methods.objective_perturbation.certified_rows", lambda share: certified_rows(share) / 1e3
    )
    with patch_rows, pytest.raises(ValueError, match=r"X has 1000 rows: .* at most 1e\+01; use a larger C, gap or tol"):
        model.fit(ArrayBlocks(np.ones((1000, 2))), np.arange(1000) % 2)
