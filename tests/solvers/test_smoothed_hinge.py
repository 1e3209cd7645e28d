from fractions import Fraction

import numpy as np
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


def test_for_no_smoothing_it_is_the_hinge_svm():
    X, y, _ = problem(2, 100, 5)
    smooth = solve_smoothed_hinge(X, y, 0.5, 1e-5, 1e-8).coef
    assert np.allclose(smooth, solve_hinge(X, y, 0.5, 1e-12).coef, atol=1e-3)


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
