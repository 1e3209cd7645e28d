"""The 1-norm SVM against `scipy.optimize.linprog` on its primal form."""

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import scale

from privsvm.errors import PrivSVMError
from privsvm.solvers.linear import one_norm_svm
from privsvm.solvers.linear.one_norm_svm import OneNormProblem

SET_OPTIONS, SET_BOUNDS = one_norm_svm._set_options, OneNormProblem._set_bounds
GRID = [10.0**exponent for exponent in range(-7, 8)]


def optimum(K, signs, C):
    """The primal program as it is printed: u = p - q, offset, slacks."""
    n, k = K.shape
    signed = K * signs[:, None]
    result = linprog(
        np.concatenate([np.ones(2 * k), [0.0], np.full(n, C)]),
        A_ub=-np.hstack([signed, -signed, signs[:, None], np.eye(n)]),
        b_ub=-np.ones(n),
        bounds=[(0, None)] * (2 * k) + [(None, None)] + [(0, None)] * n,
    )
    assert result.status == 0, result.message
    return result.fun


def objective(K, signs, C, solution):
    slack = np.maximum(1.0 - signs * (K @ solution.coef + solution.intercept), 0.0)
    return C * slack.sum() + np.abs(solution.coef).sum()


def kernels():
    X, y = load_breast_cancer(return_X_y=True)
    X, rng = scale(X), np.random.default_rng(5)
    B = rng.standard_normal((56, X.shape[1]))
    distances = ((X[:, None] - B[None]) ** 2).sum(axis=2)
    return {"features": X, "linear": X @ B.T, "gaussian": np.exp(-distances / 100)}, np.where(y == 1, 1.0, -1.0)


@pytest.mark.parametrize("kind", ["features", "linear", "gaussian"])
def test_whole_path_on_wdbc(kind):
    columns, signs = kernels()
    K = columns[kind]
    for C, solution in zip(GRID, OneNormProblem(K, signs).path(GRID), strict=True):
        expected = optimum(K, signs, C)
        assert solution.objective == pytest.approx(expected, rel=1e-7)
        assert solution.objective == pytest.approx(objective(K, signs, C, solution), rel=1e-9)
        assert abs(solution.gap) <= 1e-7 * expected


@settings(max_examples=60)
@given(
    st.integers(2, 25),
    st.integers(1, 8),
    st.sampled_from(GRID),
    st.integers(0, 2**32 - 1),
    st.sampled_from([1e-4, 1.0, 1e4]),
)
def test_any_program(n, k, C, seed, size):
    rng = np.random.default_rng(seed)
    # Few different values, so that programs are degenerate, too.
    K = size * rng.integers(-2, 3, size=(n, k)).astype(float)
    signs = rng.choice([-1.0, 1.0], size=n)
    solution = OneNormProblem(K, signs).solve(C)
    expected = optimum(K, signs, C)
    assert solution.objective == pytest.approx(expected, rel=1e-7, abs=1e-9 * C)


@settings(max_examples=25)
@given(st.integers(0, 2**32 - 1))
def test_parts_of_the_rows_from_one_problem(seed):
    rng = np.random.default_rng(seed)
    K, signs = rng.standard_normal((30, 4)), rng.choice([-1.0, 1.0], size=30)
    problem = OneNormProblem(K, signs)
    for C in rng.permutation([0.01, 1.0, 100.0]):
        rows = rng.random(30) < 0.7
        if rows.any():
            assert problem.solve(C, rows).objective == pytest.approx(optimum(K[rows], signs[rows], C), rel=1e-7)


def test_sparse_columns():
    rng = np.random.default_rng(2)
    K, signs = scipy.sparse.random_array((60, 20), density=0.1, rng=rng, format="csr"), rng.choice([-1.0, 1.0], size=60)
    sparse, dense = OneNormProblem(K, signs), OneNormProblem(K.toarray(), signs)
    for C in (0.1, 10.0):
        assert sparse.solve(C).objective == pytest.approx(dense.solve(C).objective, rel=1e-9)


def test_few_coefficients_are_not_zero():
    columns, signs = kernels()
    counts = [
        np.count_nonzero(solution.coef) for solution in OneNormProblem(columns["features"], signs).path([1e-3, 0.03, 1])
    ]
    assert counts[0] == 0
    assert 0 < counts[1] < 8
    assert counts[1] < counts[2] < 30


def test_solutions_are_in_the_given_order():
    columns, signs = kernels()
    problem = OneNormProblem(columns["linear"], signs)
    mixed = problem.path([10.0, 0.01, 1.0])
    for C, solution in zip([10.0, 0.01, 1.0], mixed, strict=True):
        assert solution.objective == pytest.approx(
            OneNormProblem(columns["linear"], signs).solve(C).objective, rel=1e-9
        )


def test_hard_for_tight_tolerances():
    # Kernel values over hundreds of orders of magnitude, and a large C: a first attempt does not always end.
    rng = np.random.default_rng(0)
    X, B = rng.standard_normal((200, 2)), 3.0 * rng.standard_normal((20, 2))
    signs = np.where(X[:, 0] ** 2 + 0.3 * rng.standard_normal(200) > 0.5, 1.0, -1.0)
    K = np.exp(-8.0 * ((X[:, None] - B[None]) ** 2).sum(axis=2))
    for C in (1.0, 3e5, 1e7):
        solution = OneNormProblem(K, signs).solve(C)
        assert solution.gap <= 1e-7 * solution.objective


@pytest.mark.parametrize("seed", [17, 89, 399])
def test_columns_that_nearly_depend_on_one_another(seed, monkeypatch):
    # Rows and kernel rows from a few different points, and a large C: at full accuracy the simplex method may go round
    # in circles, and has to be stopped.
    rng = np.random.default_rng(seed)
    n, d, levels = int(rng.integers(60, 300)), int(rng.integers(1, 4)), int(rng.integers(2, 6))
    X = rng.integers(0, levels, (n, d)) / levels
    B = X[rng.integers(0, n, max(5, n // 6))]
    gamma, C = 10 ** rng.uniform(-3, 2), 10 ** rng.uniform(3, 7)
    K = np.exp(-gamma * ((X[:, None] - B[None]) ** 2).sum(axis=2))
    signs = rng.choice([-1.0, 1.0], n)
    changes = []
    monkeypatch.setattr(
        one_norm_svm, "_set_options", lambda highs, options: (changes.append(options), SET_OPTIONS(highs, options))
    )
    solution = OneNormProblem(K, signs).solve(C)
    assert solution.objective == pytest.approx(optimum(K, signs, C), rel=1e-7)
    # The first attempt alone would not have done.
    assert len([change for change in changes if change]) > 1


def nearly_equal_columns(seed):
    """A Gaussian kernel so wide that its columns are nearly 1, its signs, and a large C."""
    rng = np.random.default_rng(seed)
    n, d, levels = int(rng.integers(40, 100)), int(rng.integers(1, 4)), int(rng.integers(2, 8))
    X = rng.integers(0, levels, (n, d)) / levels
    B = X[rng.integers(0, n, n // 6)]
    gamma, C = 10 ** rng.uniform(-5, -4), 10 ** rng.uniform(6, 7)
    return np.exp(-gamma * ((X[:, None] - B[None]) ** 2).sum(axis=2)), rng.choice([-1.0, 1.0], n), C


@pytest.mark.parametrize("seed", [95, 131, 201, 398])
def test_round_off_above_every_tolerance(seed, monkeypatch):
    # Dual variables of size C have a round-off above the tolerances: every method ends as "Unknown", but in units of C.
    K, signs, C = nearly_equal_columns(seed)
    limits = []
    problem = OneNormProblem(K, signs)
    monkeypatch.setattr(
        problem, "_set_bounds", lambda C, limit, rows: (limits.append(limit), SET_BOUNDS(problem, C, limit, rows))
    )
    solution = problem.solve(C)
    assert limits == [1.0, 1.0 / (C * np.abs(K).max())]
    assert solution.objective == pytest.approx(objective(K, signs, C, solution), rel=1e-9)
    assert solution.objective == pytest.approx(optimum(K, signs, C), rel=1e-6)
    # The problem is as before: other programs have the solution that they have without this one.
    assert problem.solve(1.0).objective == pytest.approx(OneNormProblem(K, signs).solve(1.0).objective, rel=1e-9)


def test_no_optimum_is_an_error_with_its_weight(monkeypatch):
    problem = OneNormProblem(np.array([[1.0], [2.0], [3.0]]), np.array([1.0, -1.0, 1.0]))
    with monkeypatch.context() as patched:
        patched.setattr(problem._highs, "getModelStatus", lambda: None)
        patched.setattr(problem._highs, "modelStatusToString", lambda status: "Unknown")
        with pytest.raises(PrivSVMError, match=r"C=3: .*'Unknown'; give a smaller C, or scale the features") as error:
            problem.solve(3.0)
    assert "\n" not in str(error.value)
    # What the attempts changed does not stay.
    fresh = OneNormProblem(problem._K, problem._signs)
    for name in problem._options:
        assert problem._highs.getOptionValue(name) == fresh._highs.getOptionValue(name)
    assert problem.solve(3.0) == fresh.solve(3.0)
