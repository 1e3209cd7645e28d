import numpy as np
import pytest
from scipy.stats import qmc

from privsvm.solvers.linear.uniform_design import nested_search, uniform_design


@pytest.mark.parametrize("n_runs", [2, 9, 13, 30])
def test_every_level_of_either_factor_occurs_once(n_runs):
    levels = (2 * np.arange(1, n_runs + 1) - 1) / (2 * n_runs)
    design = uniform_design(n_runs)
    assert np.allclose(np.sort(design[:, 0]), levels)
    assert np.allclose(np.sort(design[:, 1]), levels)


def test_spread_better_than_any_of_many_random_designs():
    rng, levels = np.random.default_rng(0), (2 * np.arange(1, 31) - 1) / 60
    others = [np.column_stack([levels, rng.permutation(levels)]) for _ in range(2000)]
    result = qmc.discrepancy(uniform_design(30), method="CD")
    assert result < min(qmc.discrepancy(other, method="CD") for other in others)
    grid = np.array([(i, j) for i in (2 * np.arange(1, 7) - 1) / 12 for j in (2 * np.arange(1, 6) - 1) / 10])
    assert result < qmc.discrepancy(grid, method="CD") / 4


@pytest.mark.parametrize("target", [(0.0, 0.0), (-6.9, 1.9), (6.9, -1.9), (3.3, 0.7)])
def test_nested_search_comes_near_the_optimum(target):
    calls = []

    def evaluate(points):
        calls.append(points)
        assert (points >= [-7, -2]).all()
        assert (points <= [7, 2]).all()
        return ((points - target) ** 2 / [49, 4]).sum(axis=1)

    result = nested_search(evaluate, (-7, 7), (-2, 2))
    assert [len(points) for points in calls] == [30, 30]
    # In units of the first square's sides: the nearest of 30 spread points on half the range.
    assert np.hypot((result[0] - target[0]) / 14, (result[1] - target[1]) / 4) < 0.1
    assert calls[1].max(axis=0) - calls[1].min(axis=0) == pytest.approx([7 * 29 / 30, 2 * 29 / 30])


def test_among_equals_the_smaller_parameters():
    points = []

    def evaluate(tried):
        points.extend(tried.tolist())
        return np.zeros(len(tried))

    assert list(nested_search(evaluate, (0, 1), (0, 1))) == min(points)
