"""All pairs of classes in one call: feasible, optimal to tol by values from scratch, and the same with more threads."""

import itertools
from unittest.mock import Mock

import numpy as np
import pytest
import scipy.sparse

from privsvm.families.exact import one_vs_one
from privsvm.families.exact.one_vs_one import solve_pairs
from privsvm.solvers.kernel import pair_smo
from privsvm.solvers.kernel.c_svc import SolverOptions, optimality_gap
from privsvm.solvers.kernel.kernels import Kernel, kernel_matrix


def rows_of_classes(n, d, n_classes, seed=0):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, n_classes, n)
    X = rng.normal(size=(n, d)) + 1.2 * rng.normal(size=(n_classes, d))[codes]
    return X, codes


def pairs_of(codes, n_classes):
    """Two classes, the rows of both in the order of the pair's problem, and their signs, in the columns' order."""
    order = np.argsort(codes, kind="stable")
    for first, second in itertools.combinations(range(n_classes), 2):
        index = np.concatenate([order[codes[order] == first], order[codes[order] == second]])
        yield first, second, index, np.where(codes[index] == first, 1.0, -1.0)


@pytest.mark.parametrize("together", [pair_smo._TOGETHER, 0.0], ids=["one matrix", "many"])
@pytest.mark.parametrize(
    ("n", "d", "C", "kernel", "sparse"),
    [
        (700, 6, 5.0, "rbf", False),
        (300, 3, 100.0, "rbf", False),
        (1500, 4, 5.0, "poly", False),
        (900, 90, 5.0, "rbf", False),
        (900, 40, 1.0, "linear", True),
        (900, 40, 5.0, "rbf", True),
        (900, 90, 5.0, "rbf", True),
        (120, 5, 1.0, "sigmoid", False),
    ],
)
def test_every_pair_is_optimal(monkeypatch, n, d, C, kernel, sparse, together):
    monkeypatch.setattr(pair_smo, "_TOGETHER", together)
    X, codes = rows_of_classes(n, d, 3)
    if sparse:
        X[np.random.default_rng(1).random(X.shape) < 0.8] = 0.0
    upper = C * np.random.default_rng(2).uniform(0.5, 2.0, n)
    function = Kernel(kernel, 0.3 / d, 2, -0.5 if kernel == "sigmoid" else 1.0)
    rows = scipy.sparse.csr_array(X) if sparse else X
    solutions = solve_pairs(rows, codes, 3, upper, function)
    assert solutions.converged.all()
    for column, (first, second, index, y) in enumerate(pairs_of(codes, 3)):
        beta = solutions.variables(first, second)
        alpha = y * beta
        assert (alpha >= 0).all()
        assert (alpha <= upper[index]).all()
        assert abs(beta.sum()) <= 1e-9 * upper.sum()
        gradient = y * (kernel_matrix(X[index], X[index], function) @ beta) - 1.0
        assert optimality_gap(alpha, gradient, y, upper[index]) <= 1.2e-3
        assert solutions.objective[column] == pytest.approx(alpha @ (gradient - 1.0) / 2.0, rel=1e-5)


@pytest.mark.parametrize(
    ("n", "n_classes", "together", "cache_size"), [(900, 5, 50e6, 200.0), (900, 5, 0.0, 200.0), (2000, 10, 50e6, 2.0)]
)
def test_threads_change_no_bit(monkeypatch, n, n_classes, together, cache_size):
    """Kernel values are in one matrix, in one for each class and pair, and in one for each pair."""
    monkeypatch.setattr(pair_smo, "_TOGETHER", together)
    X, codes = rows_of_classes(n, 5, n_classes)
    options = [SolverOptions(cache_size=cache_size, n_threads=k) for k in (1, 2)]
    one, two = (solve_pairs(X, codes, n_classes, np.ones(n), Kernel("rbf", 0.2), some) for some in options)
    assert one.converged.all()
    assert np.array_equal(one.layout, two.layout)
    assert np.array_equal(one.rho, two.rho)


def test_hard_pairs_are_handed_on(monkeypatch):
    """A pair of too many steps is left to the other solver, which goes on from its variables."""
    X, codes = rows_of_classes(600, 3, 3)
    reference = solve_pairs(X, codes, 3, np.full(600, 5.0), Kernel("rbf", 0.5))
    solve = Mock(wraps=one_vs_one.solve_prepared)
    monkeypatch.setattr(one_vs_one, "solve_prepared", solve)
    monkeypatch.setattr(pair_smo, "_STEPS", 0)
    monkeypatch.setattr(pair_smo, "_LEAST_STEPS", 20)
    solutions = solve_pairs(X, codes, 3, np.full(600, 5.0), Kernel("rbf", 0.5))
    starts = [call.kwargs["start"] for call in solve.call_args_list]
    assert len(starts) == 3
    assert all(start is not None and start.any() for start in starts)
    assert solutions.converged.all()
    assert solutions.objective == pytest.approx(reference.objective, rel=1e-5)


@pytest.mark.parametrize(
    ("kernel", "gamma", "C", "tol"), [("rbf", 300.0, 50.0, 1e-3), ("linear", 1.0, 100.0, 1e-3), ("rbf", 0.2, 5.0, 1e-6)]
)
@pytest.mark.parametrize("n", [250, 1300])
def test_where_single_precision_is_not_enough_pairs_have_double(monkeypatch, kernel, gamma, C, tol, n):
    """Rows of large distances, large bounds, small tolerances: no pair is left to the solver for hard ones."""
    X, codes = rows_of_classes(n, 6, 4)
    X[np.random.default_rng(5).random(n) < 0.6] = 0.0
    X[:3] *= 30.0
    handed_on = []
    solve = one_vs_one.solve_prepared
    monkeypatch.setattr(
        one_vs_one, "solve_prepared", lambda *rest, **more: (handed_on.append(1), solve(*rest, **more))[1]
    )
    monkeypatch.setattr(pair_smo, "_LEAST_STEPS", 10**6)
    upper = np.full(n, C)
    solutions = solve_pairs(X, codes, 4, upper, Kernel(kernel, gamma), SolverOptions(tol=tol))
    assert not handed_on
    assert solutions.converged.all()
    for column, (first, second, index, y) in enumerate(pairs_of(codes, 4)):
        beta = solutions.variables(first, second)
        gradient = y * (kernel_matrix(X[index], X[index], Kernel(kernel, gamma)) @ beta) - 1.0
        assert optimality_gap(y * beta, gradient, y, upper[index]) <= tol + 1e-9 * C * np.abs(X).max() ** 2
        assert solutions.objective[column] == pytest.approx(y * beta @ (gradient - 1.0) / 2.0, rel=1e-7)
