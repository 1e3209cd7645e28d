"""The hinge on rows by blocks: certified solutions, the same bits for any blocks, the sensitivity of rows in memory."""

from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privsvm import (
    OPERAClassifier,
    OvRJointGaussianClassifier,
    PrivateSVMClassifier,
    PrivateSVMLaplaceClassifier,
    open_rows,
)
from privsvm.families.output_perturbation.perturbation import public_gap, solution_sensitivity
from privsvm.numerics.rows.row_blocks import ArrayBlocks, RowsByBlock, mapped
from privsvm.numerics.rows.row_grid import grid_rows, grid_spacing
from privsvm.solvers.linear.hinge import solve_hinge
from privsvm.solvers.out_of_core import active_rows
from privsvm.solvers.out_of_core.active_rows import solve_hinge_by_block


class Blocks(ArrayBlocks):
    """Rows in memory that are read as those of a file are."""

    in_memory = False


def solve(source, codes, k, C, gap, norm, most):
    """Solve with room for so many rows in memory."""
    rows = mapped(RowsByBlock.of(source), grid_rows, norm)
    limits = mock.patch.multiple(active_rows, _HELD_NUMBERS=most * source.shape[1] * k, _HELD_ROWS=1)
    with limits:
        return solve_hinge_by_block(rows, codes, k, C, gap, norm)


def near_optimum(X, codes, k, C, gap, norm):
    """Weights that are certainly a thousand times nearer to the optimum, by the solver of rows in memory."""
    rows = grid_rows(X, norm)
    return [
        solve_hinge(rows, np.where(codes == (1 if k == 1 else label), 1.0, -1.0), C, 1e-6 * gap).coef
        for label in range(k)
    ]


def not_by_memory():
    """Make reading all rows an error."""
    return mock.patch.object(active_rows, "all_rows", side_effect=AssertionError("all rows were read"))


@given(
    st.tuples(
        st.integers(1, 400),
        st.integers(1, 6),
        st.integers(2, 4),
        st.sampled_from([1e-3, 0.1, 30.0]),
        st.sampled_from([0.3, 1.0, 5.0]),
        st.sampled_from([1e-8, 2e-4]),
        st.sampled_from([8, 40, 1000]),
        st.booleans(),
        st.integers(0, 10**6),
    )
)
@settings(max_examples=60)
def test_every_solution_is_certainly_near_its_optimum(case):
    n, d, classes, C, norm, share, most, ties, seed = case
    rng = np.random.default_rng(seed)
    X, codes = rng.normal(size=(n, d)) * rng.choice([1e-3, 0.3, 1.0]), rng.integers(0, classes, n)
    if ties:
        X = np.rint(X)
    k, gap = 1 if classes == 2 else classes, share * C**2 * norm**2
    solutions = solve(Blocks(X), codes, k, C, gap, norm, most)
    for solution, other in zip(solutions, near_optimum(X, codes, k, C, gap, norm), strict=True):
        assert np.linalg.norm(solution - other) <= 1.001 * np.sqrt(gap)


@pytest.mark.parametrize(("size", "most"), [(1e-3, 4), (3e-3, 8), (1e-2, 8), (0.05, 20)])
def test_few_rows_are_held_that_are_not_those_that_matter(size, most):
    """Where rows change sides that are not held, a solution is certified only if they change it little."""
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X, codes, C = rng.normal(size=(2000, 3)), rng.integers(0, 2, 2000), 0.1
        gap = 1e-6 * C**2
        optimum = near_optimum(X, codes, 1, C, gap, 1.0)[0]
        start = optimum + size * rng.normal(size=3)
        with mock.patch.object(active_rows, "_start", return_value=(start[None, :], 1e-3)):
            solution = solve(Blocks(X), codes, 1, C, gap, 1.0, most)[0]
        assert np.linalg.norm(solution - optimum) <= 1.001 * np.sqrt(gap)


@given(
    n=st.integers(2000, 6000),
    C=st.sampled_from([1e-3, 0.1]),
    shift=st.sampled_from([0.0, 0.3, 1.5]),
    kind=st.sampled_from(["replaced", "added"]),
    seed=st.integers(0, 10**6),
)
@settings(max_examples=8)
def test_one_row_moves_a_solution_by_no_more_than_the_sensitivity(n, C, shift, kind, seed):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 2, n)
    X = rng.normal(size=(n, 3)) + shift * (2 * codes[:, None] - 1)
    gap = public_gap(None, C, 1.0)
    # The same row, as long as may be, under both labels; or there and not there.
    first = solve(Blocks(X), codes, 1, C, gap, 1.0, 300)
    if kind == "replaced":
        other = codes.copy()
        other[0] = 1 - other[0]
        second, relation = solve(Blocks(X), other, 1, C, gap, 1.0, 300), "replace_one"
    else:
        second, relation = solve(Blocks(X[1:]), codes[1:], 1, C, gap, 1.0, 300), "add_remove"
    assert np.linalg.norm(first - second) <= solution_sensitivity(C, relation, gap)


@given(block_rows=st.integers(1, 5000), width=st.sampled_from([2**10, 2**12, 2**19]), seed=st.integers(0, 10**6))
@settings(max_examples=5)
def test_the_bits_do_not_depend_on_the_blocks(block_rows, width, seed):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 3, 5000)
    X = rng.normal(size=(5000, 4)) + np.eye(3, 4)[codes]
    given_ = codes, 3, 0.05, 1e-7, 1.0, 400
    with not_by_memory():
        expected = solve(ArrayBlocks(X), *given_)
        with mock.patch("privsvm.numerics.rows.row_blocks._WORK_NUMBERS", width):
            assert np.array_equal(solve(Blocks(X, block_rows), *given_), expected)
            assert np.array_equal(solve(ArrayBlocks(X, block_rows), *given_), expected)


@pytest.mark.parametrize(("spread", "C"), [(0.0, 0.1), (0.02, 0.1), (0.02, 1e-3), (0.1, 10.0), (0.3, 1.0)])
def test_few_rows_are_held(spread, C):
    """Classes far apart, and large C, are where few rows tell which others are on the margin."""
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 2, 20_000)
    X = 0.1 * rng.normal(size=(20_000, 5)) + spread * (2 * codes[:, None] - 1)
    gap, held = 2e-4 * C**2, []
    ascend_hinge = active_rows.ascend_hinge
    with not_by_memory(), mock.patch.object(
        active_rows, "ascend_hinge", lambda rows, *rest: held.append(len(rows)) or ascend_hinge(rows, *rest)
    ):  # fmt: skip
        solutions = solve(Blocks(X), codes, 1, C, gap, 1.0, 2000)
    assert max(held) <= 2000
    assert np.linalg.norm(solutions[0] - near_optimum(X, codes, 1, C, gap, 1.0)[0]) <= 1.001 * np.sqrt(gap)


@pytest.mark.parametrize("passes", [0, 1, 3])
def test_all_rows_are_read_where_passes_do_not_end(passes):
    rng = np.random.default_rng(0)
    X, codes = rng.normal(size=(3000, 3)), rng.integers(0, 2, 3000)
    with mock.patch.multiple(active_rows, _PASSES=passes, certified=mock.Mock(return_value=False)):
        solutions = solve(Blocks(X), codes, 1, 0.1, 1e-6, 1.0, 100)
    assert np.linalg.norm(solutions[0] - near_optimum(X, codes, 1, 0.1, 1e-6, 1.0)[0]) <= 1.001e-3


def test_shares_are_those_of_rows_that_changed_sides():
    rng = np.random.default_rng(0)
    spacing, rows, codes = grid_spacing(1.0), grid_rows(rng.normal(size=(1500, 3)), 1.0), rng.integers(0, 2, 1500)
    points = active_rows.rounded_points(rng.normal(size=(2, 3)))
    limbs, units = active_rows.taken_apart(points, spacing)
    looks = active_rows._Looks(limbs, units, np.array([1]), spacing, np.array([[0.1], [0.2]]), np.array([1e-14]), 1500)
    sums, shares, counts, held = active_rows._look_at_block(rows, codes, looks, 0)
    signs = 2.0 * codes - 1.0
    before, now = (1.0 - signs * (rows @ point) for point in points)
    far = np.abs(before) > 0.1
    near = (np.abs(now) <= 0.2) | ~far
    changed = far & ((before > 0.0) != (now > 0.0))
    large = changed & (np.abs(now) > 2.0**-8)
    total = np.minimum(np.abs(now[changed]), 2.0**-8).sum()
    assert shares[0].tolist()[1:] == [int(changed.sum()), int(large.sum())]
    assert 0.0 <= shares[0, 0] * 2.0**-44 - total <= 1e-10
    assert np.allclose(sums[0].astype(float) * spacing, (signs * (~near & (now > 0.0))) @ rows, rtol=0, atol=1e-9)
    assert counts[0, [8, 10, 12]].tolist() == [int((np.abs(now) <= width).sum()) for width in (4.0, 1.0, 0.25)]
    held_rows, held_signs = held[0].rows(3, spacing)
    assert np.array_equal(held_rows, rows[near])
    assert np.array_equal(held_signs, signs[near])


@pytest.mark.parametrize(
    "kind", [PrivateSVMClassifier, OPERAClassifier, OvRJointGaussianClassifier, PrivateSVMLaplaceClassifier]
)
@pytest.mark.parametrize("classes", [2, 3])
def test_the_classifiers_read_blocks(kind, classes, tmp_path):
    rng = np.random.default_rng(0)
    y = rng.integers(0, classes, 5000)
    X = 0.1 * rng.normal(size=(5000, 4)) + 0.5 * np.eye(3, 4)[y]
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", y)
    files = tmp_path / "X.npy", tmp_path / "y.npy"
    with mock.patch.object(active_rows, "_HELD_NUMBERS", 4000), not_by_memory():
        models = [
            kind(epsilon=4.0, C=0.1, classes=list(range(classes)), random_state=0).fit(*given_)
            for given_ in ((X, y), *((open_rows(*files, size), None) for size in (1, None)))
        ]
    assert np.array_equal(models[1].coef_, models[2].coef_)
    # The same noise on solutions that are both certified.
    assert np.linalg.norm(models[0].coef_ - models[1].coef_) <= 2.0 * np.sqrt(classes * public_gap(None, 0.1, 1.0))
    assert models[1].guarantee_ == models[0].guarantee_
    assert models[1].guarantee_.status == "seeded"
    with pytest.raises(ValueError, match=r"audit=True: X is a NpyBlocks; an audit needs all rows in memory"):
        models[1].release_path(open_rows(*files), None, [1.0], 1, audit=True)
