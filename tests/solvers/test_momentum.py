"""Sums of the last steps lower the objective, keep to the bounds, and leave the values those of the variables."""

import numpy as np
import pytest
from tests.solvers.test_block_smo import check

from privsvm.solvers.kernel import block_smo
from privsvm.solvers.kernel.block_smo import solve_block_smo
from privsvm.solvers.kernel.c_svc import SolverOptions
from privsvm.solvers.kernel.kernel_rows import KernelRows
from privsvm.solvers.kernel.kernels import Kernel
from privsvm.solvers.kernel.momentum import RecentSteps


def made_problem(bound, seed=0, n=60):
    """Rows with their kernel matrix, labels, feasible variables with their values, and bounds."""
    rng = np.random.default_rng(seed)
    rows = KernelRows(rng.normal(size=(n, 5)), Kernel("rbf", 0.1), dtype=np.float64)
    matrix, y = rows.gram(np.empty(n * n)), np.where(np.arange(n) % 2, 1.0, -1.0)
    lower, upper = np.where(y > 0, 0.0, -bound), np.where(y > 0, bound, 0.0)
    beta = y * min(0.5, 0.5 * bound)
    return rng, rows, matrix, y, beta, y - matrix @ beta, lower, upper


def random_steps(rng, matrix, count, size, n=60):
    """Steps of a few variables each, whose sum is 0, with their effects."""
    recent = RecentSteps()
    for _ in range(count):
        step = np.zeros(n)
        step[rng.permutation(n)[:size]] = rng.normal(size=size)
        step[step != 0] -= step.sum() / size
        recent.add(step, matrix @ step)
    return recent


def objective(beta, y, matrix):
    return 0.5 * beta @ matrix @ beta - y @ beta


@pytest.mark.parametrize("bound", [0.01, 0.5, 10.0])
@pytest.mark.parametrize("seed", range(5))
def test_steps_keep_to_the_problem_and_lower_the_objective(bound, seed):
    rng, rows, matrix, y, beta, values, lower, upper = made_problem(bound, seed)
    recent, before = random_steps(rng, matrix, 12, 20), objective(beta, y, matrix)
    for _ in range(5):
        recent.improve(rows, beta, values, lower, upper)
        assert (lower <= beta).all()
        assert (beta <= upper).all()
        assert abs(beta.sum()) <= 1e-9 * max(1.0, np.abs(beta).sum())
        assert np.allclose(values, y - matrix @ beta, rtol=0, atol=1e-9 * max(1.0, np.abs(beta).sum()))
        after = objective(beta, y, matrix)
        assert after <= before + 1e-12 * abs(before)
        before = after


def test_far_from_the_bounds_no_step_would_lower_the_objective_more():
    rng, rows, matrix, _, beta, values, lower, upper = made_problem(1.0)
    recent = random_steps(rng, matrix, 12, 20)
    recent.improve(rows, beta, values, lower - 1e3, upper + 1e3)
    assert np.abs(np.array(recent._steps) @ values).max() < 1e-6


def test_variables_at_their_bounds_are_held():
    """The best step is blocked at once; what is left of it without the blocked variables is not."""
    rng, rows, matrix, y, beta, values, lower, upper = made_problem(1.0)
    lower, upper = lower - 1e3, upper + 1e3
    recent = random_steps(rng, matrix, 20, 30)
    step, _ = recent._best(values)
    out = int(np.argmax(np.abs(step)))
    (upper if step[out] > 0 else lower)[out] = beta[out]
    before = objective(beta, y, matrix)
    fixed = beta[out]
    recent.improve(rows, beta, values, lower, upper)
    assert beta[out] == fixed
    assert objective(beta, y, matrix) < before - 1e-3
    assert np.allclose(values, y - matrix @ beta, rtol=0, atol=1e-6)


def test_one_step_and_steps_that_cost_too_much_change_nothing():
    rng, rows, matrix, _, beta, values, lower, upper = made_problem(1.0)
    for count, at_bounds in ((1, False), (5, True)):
        recent, start = random_steps(rng, matrix, count, 20), upper if at_bounds else beta
        moved, moved_values = start.copy(), values.copy()
        recent.improve(rows, moved, moved_values, lower, upper)
        assert np.array_equal(moved, start)
        assert np.array_equal(moved_values, values)


@pytest.mark.parametrize("C", [0.9, 5.0])
def test_more_free_variables_than_a_working_set_holds_take_few_passes(C, monkeypatch):
    """A kernel matrix near the identity, whose large eigenvalue all variables share: nearly all of them are free."""
    n = 3000
    rng = np.random.default_rng(3)
    X = rng.normal(size=(n, 60)) * rng.uniform(0.8, 1.2, size=(n, 1))
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    computed = []
    subtract, fill = KernelRows.subtract_expansion, KernelRows.fill
    monkeypatch.setattr(
        KernelRows,
        "subtract_expansion",
        lambda self, values, others, coef: (
            computed.append(self.n_rows * others.n_rows),
            subtract(self, values, others, coef),
        ),
    )
    monkeypatch.setattr(
        KernelRows,
        "fill",
        lambda self, out, slots, index: (computed.append(self.n_rows * len(index)), fill(self, out, slots, index)),
    )
    crowded = []
    improve = RecentSteps.improve
    monkeypatch.setattr(RecentSteps, "improve", lambda self, *rest: (crowded.append(1), improve(self, *rest)))
    kernel, upper = Kernel("rbf", 3.0 / 60), np.full(n, C)
    solution = solve_block_smo(X, y, upper, kernel, SolverOptions(cache_size=0.5))
    assert solution.converged
    assert np.mean(solution.alpha > 0) > 0.9
    assert len(crowded) > 5
    assert sum(computed) < 15 * n * n
    check(solution, X, y, upper, 1e-3, kernel)
    in_two = solve_block_smo(X, y, upper, kernel, SolverOptions(cache_size=0.5, n_threads=2))
    assert np.array_equal(solution.alpha, in_two.alpha)


def test_the_furthest_variables_are_those_that_may_move():
    values = np.array([0.0, 0.0, 0.0, 0.1, 3.0, 2.0, -5.0, -4.0, -3.0])
    free, upwards, downwards = np.arange(4), np.array([4, 5]), np.array([6, 7, 8])
    assert sorted(block_smo._furthest(values, free, upwards, downwards, 4)) == [4, 5, 6, 7]
    # If one side has too few, the other gives more.
    assert sorted(block_smo._furthest(values, free, upwards[:0], downwards, 4)) == [3, 6, 7, 8]
    assert sorted(block_smo._furthest(values, free[:0], upwards[:1], downwards, 4)) == [4, 6, 7, 8]
    assert sorted(block_smo._furthest(values, free[:0], upwards, downwards[:1], 4)) == [4, 5, 6]
