"""Linear pairs by the interior-point method: feasible, optimal to tol by values from scratch, few support vectors."""

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.svm import SVC

from privsvm import SVMClassifier
from privsvm.families.exact import one_vs_one
from privsvm.families.exact.one_vs_one import solve_pairs
from privsvm.solvers.kernel.c_svc import SolverOptions, optimality_gap
from privsvm.solvers.kernel.interior_point import solve_linear
from privsvm.solvers.kernel.kernels import Kernel

LINEAR = Kernel("linear")


def check(X, y, upper, solution, tol):
    """Feasible and optimal to tol; offset and objective belong to the variables."""
    rows = X.toarray() if scipy.sparse.issparse(X) else X
    alpha, beta = solution.alpha, y * solution.alpha
    assert (alpha >= 0).all()
    assert (alpha <= upper).all()
    assert abs(beta.sum()) <= 1e-9 * upper.sum()
    # Distances do not change where rows are moved; the moved rows decide the round-off.
    moved = rows - rows.mean(axis=0)
    w = moved.T @ beta
    rounding = 1e-13 * alpha.sum() * np.max(np.sum(moved**2, axis=1)) + 1e-15 * np.abs(rows @ (rows.T @ beta)).max()
    gradient = y * (moved @ w) - 1.0
    assert optimality_gap(alpha, gradient, y, upper) <= tol + rounding
    size = max(abs(solution.objective), 1e-3 * alpha.sum())
    assert solution.objective == pytest.approx(alpha @ (gradient - 1.0) / 2.0, abs=1e-7 * size)
    # Weak duality, with the offset as it was returned.
    slack = np.maximum(0.0, 1.0 - y * (rows @ (rows.T @ beta) - solution.rho))
    primal = 0.5 * w @ w + upper @ slack
    assert primal + solution.objective <= (tol + 10 * rounding) * (upper.sum() + alpha.sum()) + 1e-9 * primal


@st.composite
def problems(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    sizes = [draw(st.integers(1, 40)) for _ in range(2)]
    d = draw(st.integers(1, 24))
    y = np.repeat([1.0, -1.0], sizes)
    X = rng.normal(size=(y.size, d))
    X += draw(st.sampled_from([0.0, 1.0, 10.0])) * rng.normal(size=(2, d))[(y > 0).astype(int)]
    kind = draw(st.sampled_from(["plain", "lattice", "duplicates", "constant", "zeros", "alike"]))
    if kind == "lattice":
        X = np.round(X)
    elif kind == "duplicates":
        X = X[np.sort(rng.integers(0, y.size, y.size))]
    elif kind == "constant":
        X[:, 0] = 3.0
    elif kind == "zeros":
        X[rng.random(X.shape) < 0.8] = 0.0
    elif kind == "alike":
        X = X[:, :1] + 1e-7 * X
    scale = 10.0 ** draw(st.integers(-6, 6))
    C = 10.0 ** draw(st.floats(-4, 4)) / scale**2
    upper = C * rng.uniform(0.1, 10.0, y.size)
    return (scipy.sparse.csr_array(scale * X) if draw(st.booleans()) else scale * X), y, upper


@settings(max_examples=150, deadline=None, derandomize=True)
@given(problems(), st.sampled_from([1e-2, 1e-3, 1e-5]))
def test_what_is_solved_is_optimal(problem, tol):
    X, y, upper = problem
    solution = solve_linear(X, y, upper, tol)
    if solution is not None:
        check(X, y, upper, solution, tol)


@pytest.mark.parametrize(
    ("n", "d", "C", "sparse"),
    [(400, 1, 1.0, False), (600, 3, 0.1, False), (600, 3, 1e4, False), (500, 40, 10.0, False), (900, 60, 5.0, True)],
)
def test_hundreds_of_rows_are_solved_to_the_optimum(n, d, C, sparse):
    rng = np.random.default_rng(0)
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    X = rng.normal(size=(n, d)) + 0.5 * y[:, None] * rng.normal(size=d)
    if sparse:
        X[rng.random(X.shape) < 0.9] = 0.0
    rows = scipy.sparse.csr_array(X) if sparse else X
    solution = solve_linear(rows, y, np.full(n, C), 1e-3)
    check(rows, y, np.full(n, C), solution, 1e-3)


def test_two_rows_and_separable_rows():
    X, y = np.array([[0.0], [2.0]]), np.array([1.0, -1.0])
    solution = solve_linear(X, y, np.ones(2), 1e-6)
    assert solution.alpha == pytest.approx([0.5, 0.5], rel=1e-6)
    # Decision values 1 at the first row and -1 at the second.
    assert solution.rho == pytest.approx(-1.0, rel=1e-6)
    rng = np.random.default_rng(3)
    y = np.repeat([1.0, -1.0], 100)
    X = rng.normal(size=(200, 5)) - 10.0 * y[:, None]
    solution = solve_linear(X, y, np.full(200, 1e4), 1e-3)
    check(X, y, np.full(200, 1e4), solution, 1e-3)
    assert np.count_nonzero(solution.alpha) <= 6


def test_equal_rows_of_both_classes_are_left():
    assert solve_linear(np.ones((4, 3)), np.array([1.0, 1.0, -1.0, -1.0]), np.ones(4), 1e-3) is None


def many_classes(n, d, n_classes, seed=4):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, n_classes, n)
    return rng.normal(size=(n, d)) + 0.7 * rng.normal(size=(n_classes, d))[codes], codes


@pytest.mark.parametrize("merged", [False, True])
def test_threads_change_no_bit(merged):
    X, codes = many_classes(900, 3, 5)
    X = np.round(X) if merged else X
    one, two = (solve_pairs(X, codes, 5, np.ones(900), LINEAR, SolverOptions(n_threads=k)) for k in (1, 2))
    assert np.array_equal(one.layout, two.layout)
    assert np.array_equal(one.rho, two.rho)


def watch(monkeypatch, solve=one_vs_one.solve_linear):
    """Whether the interior-point method solved each pair that it got."""
    calls = []

    def count(*arguments):
        solution = solve(*arguments)
        calls.append(solution is not None)
        return solution

    monkeypatch.setattr(one_vs_one, "solve_linear", count)
    return calls


@pytest.mark.parametrize(("n", "n_classes"), [(3600, 4), (4000, 2)])
def test_pairs_that_do_not_end_are_solved_by_the_others(monkeypatch, n, n_classes):
    X, codes = many_classes(n, 3, n_classes)
    calls = watch(monkeypatch)
    solutions = solve_pairs(X, codes, n_classes, np.ones(n), LINEAR)
    n_pairs = n_classes * (n_classes - 1) // 2
    assert calls == [True] * n_pairs
    failed = watch(monkeypatch, lambda *rest: None)
    other = solve_pairs(X, codes, n_classes, np.ones(n), LINEAR)
    assert failed == [False] * n_pairs
    assert other.converged.all()
    assert other.objective == pytest.approx(solutions.objective, rel=1e-5)


def test_wide_rows_and_limits_on_steps_are_not_for_the_method(monkeypatch):
    calls = watch(monkeypatch)
    X, codes = many_classes(300, 400, 3)
    assert solve_pairs(X, codes, 3, np.ones(300), LINEAR).converged.all()
    X, codes = many_classes(900, 3, 3)
    solve_pairs(X, codes, 3, np.ones(900), LINEAR, SolverOptions(max_iter=10))
    solve_pairs(X, codes, 3, np.ones(900), Kernel("rbf"))
    assert calls == []


def test_the_classifier_heeds_weights_of_classes_and_rows():
    X, codes = many_classes(1200, 4, 2)
    rng = np.random.default_rng(5)
    weights = np.where(rng.random(1200) < 0.3, 0.0, rng.uniform(0.1, 3.0, 1200))
    common = {"kernel": "linear", "C": 3.0, "class_weight": {0: 0.3, 1: 2.0}}
    ours = SVMClassifier(**common).fit(X, codes, sample_weight=weights)
    peer = SVC(**common, tol=1e-5).fit(X, codes, sample_weight=weights)
    assert ours.coef_ == pytest.approx(peer.coef_, abs=2e-3)
    assert ours.intercept_ == pytest.approx(peer.intercept_, abs=2e-3)
    assert (weights[ours.support_] > 0).all()
