from fractions import Fraction

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from privsvm.numerics.rows.row_grid import grid_rows
from privsvm.solvers.linear import smoothed_hinge
from privsvm.solvers.linear.exact_ascent import ascend_smoothed_exactly
from privsvm.solvers.linear.hinge import solve_hinge
from privsvm.solvers.linear.smoothed_hinge import solve_smoothed_hinge


def problem(seed, n, d, scale=1.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * scale
    X /= np.maximum(1.0, np.linalg.norm(X, axis=1))[:, None]
    y = np.where(rng.random(n) < 0.4, 1.0, -1.0)
    return X, y, rng


def objective_and_gradient(w, X, y, C, h, b):
    """Objective and gradient, in the type of the weights."""
    missing = 1 - y * (X @ w)
    losses = np.where(missing <= 0, 0, np.where(missing < h, missing**2 / (2 * h), missing - h / 2))
    slopes = -np.clip(missing / h, 0, 1)
    return w @ w / 2 + C * losses.sum() + b @ w, w + b + C * (X.T @ (slopes * y))


def exact_gradient(w, X, y, C, h, b):
    """Squared norm of the gradient, in rational numbers."""
    w, b, C, h = [Fraction(v) for v in w], [Fraction(v) for v in b], Fraction(C), Fraction(h)
    gradient = [p + q for p, q in zip(w, b, strict=True)]
    for row, sign in zip(X.tolist(), y.tolist(), strict=True):
        row = [Fraction(value) for value in row]
        missing = 1 - int(sign) * sum(p * q for p, q in zip(row, w, strict=True))
        slope = min(max(missing / h, 0), 1)
        gradient = [g - C * slope * int(sign) * value for g, value in zip(gradient, row, strict=True)]
    return sum(value**2 for value in gradient)


@given(st.tuples(st.integers(0, 10**6), st.integers(1, 12), st.integers(1, 4), st.floats(-5, 3), st.floats(-3, 2),
                 st.floats(-3, 2), st.sampled_from([1e-2, 1e-6, 1e-9]), st.booleans()))  # fmt: skip
@settings(max_examples=150, deadline=None)
def test_the_certificate_holds_in_rational_numbers(case):
    """The gradient at the solution is within the tolerance, and so the optimum, for rows of every size on the grid."""
    seed, n, d, log_C, log_h, log_b, share, sparse = case
    X, y, rng = problem(seed, n, d)
    X = grid_rows(X * 10.0 ** rng.choice([-320, -160, -7, 0, 30], size=(n, 1)), 1.0)
    C, h = 10.0**log_C, 10.0**log_h
    b = rng.normal(size=d) * C * 10.0**log_b
    tol = share * C
    solution = solve_smoothed_hinge(scipy.sparse.csr_array(X) if sparse else X, y, C, h, tol, b)
    if not solution.exact:
        assert solution.gradient_norm <= tol
        assert exact_gradient(solution.coef, X, y, C, h, b) <= Fraction(tol) ** 2


@given(st.tuples(st.integers(0, 10**6), st.integers(1, 8), st.integers(1, 3), st.floats(-5, 3), st.floats(-3, 2),
                 st.floats(-3, 2), st.sampled_from([1e-2, 1e-5]), st.booleans()))  # fmt: skip
@settings(max_examples=80, deadline=None)
def test_whole_numbers_end_where_float64_gives_up(case):
    seed, n, d, log_C, log_h, log_b, share, random = case
    X, y, rng = problem(seed, n, d)
    X = grid_rows(X * 10.0 ** rng.choice([-320, -7, 0, 30], size=(n, 1)), 1.0)
    C, h = 10.0**log_C, 10.0**log_h
    b = rng.normal(size=d) * C * 10.0**log_b
    best = solve_smoothed_hinge(X, y, C, h, 1e-9 * C, b)
    start = np.array([np.nan, np.inf, -np.inf, 7.0, -7.0, 0.5, 1e-320, 1.0])[:n] if random else np.zeros(n)
    solution = ascend_smoothed_exactly(X, y, C, h, b, share * C, start)
    assert np.linalg.norm(solution - best.coef) <= (0.5 * share + 1e-9) * C * (1 + 1e-9) + 1e-15 * np.linalg.norm(b)


def test_a_solve_that_float64_cannot_certify_ends(monkeypatch):
    X, y, rng = problem(5, 30, 3)
    b = rng.normal(size=3)
    expected = solve_smoothed_hinge(X, y, 1.0, 0.1, 1e-9, b)
    monkeypatch.setattr(smoothed_hinge, "_gradient_error", lambda *_: np.inf)
    solution = solve_smoothed_hinge(X, y, 1.0, 0.1, 1e-4, b)
    assert solution.exact
    assert not expected.exact
    assert np.linalg.norm(solution.coef - expected.coef) <= 0.51e-4


@pytest.mark.parametrize(("C", "h"), [(1e-3, 0.5), (0.1, 0.05), (1.0, 2.0), (30.0, 0.3)])
def test_it_is_the_minimum(C, h):
    X, y, rng = problem(1, 200, 8)
    b = rng.normal(size=8) * C * 5
    solution = solve_smoothed_hinge(X, y, C, h, 1e-9 * C, b).coef
    theirs = scipy.optimize.minimize(
        objective_and_gradient, np.zeros(8), args=(X, y, C, h, b), jac=True, method="L-BFGS-B",
        options={"maxiter": 10_000, "ftol": 1e-16, "gtol": 1e-10 * C},
    )  # fmt: skip
    best = objective_and_gradient(solution, X, y, C, h, b)[0]
    assert best <= theirs.fun + 1e-12 * abs(theirs.fun)
    assert np.linalg.norm(solution - theirs.x) <= 1e-4 * max(1.0, np.linalg.norm(solution))


def test_for_no_smoothing_it_is_the_hinge_svm():
    X, y, _ = problem(2, 100, 5)
    smooth = solve_smoothed_hinge(X, y, 0.5, 1e-5, 1e-8).coef
    assert np.allclose(smooth, solve_hinge(X, y, 0.5, 1e-12).coef, atol=1e-3)


@pytest.mark.parametrize("linear_size", [0.0, 1.0, 1e4])
def test_duplicates_and_zero_rows_and_one_label(linear_size):
    X = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 0.0], [0.6, 0.8]])
    y, b = np.ones(4), np.array([linear_size, -linear_size])
    solution = solve_smoothed_hinge(X, y, 10.0, 0.01, 1e-6, b)
    _, gradient = objective_and_gradient(solution.coef, X, y, 10.0, 0.01, b)
    assert np.linalg.norm(gradient) <= 1.01e-6


def test_without_rows_that_matter_it_is_the_linear_term():
    b = np.array([3.0, -2.0])
    solution = solve_smoothed_hinge(np.zeros((5, 2)), np.ones(5), 1.0, 0.5, 1e-9, b)
    assert np.array_equal(solution.coef, -b)
    assert solution.n_steps == 0


def test_many_features_and_sparse_rows():
    rng = np.random.default_rng(4)
    X = scipy.sparse.random_array((300, 5000), density=0.01, rng=rng, format="csr")
    X = scipy.sparse.diags_array(1 / np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())) @ X
    X = X.tocsr()
    y = np.where(rng.random(300) < 0.5, 1.0, -1.0)
    b = rng.normal(size=5000) * 0.01
    solution = solve_smoothed_hinge(X, y, 1.0, 0.1, 1e-8, b)
    dense = solve_smoothed_hinge(X.toarray(), y, 1.0, 0.1, 1e-8, b)
    assert np.linalg.norm(solution.coef - dense.coef) <= 2e-8
    assert solution.n_steps < 50
