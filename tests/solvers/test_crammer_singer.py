import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_digits, load_wine
from sklearn.svm import LinearSVC

from privsvm.solvers.crammer_singer import crammer_singer_objective, solve_crammer_singer


def unit_rows(load):
    X, y = load(return_X_y=True)
    X = (X - X.min(axis=0)) / np.maximum(np.ptp(X, axis=0), 1e-9) * 2 - 1
    return X / np.linalg.norm(X, axis=1, keepdims=True), y


@pytest.mark.parametrize("load", [load_wine, load_digits])
@pytest.mark.parametrize("C", [0.005, 0.1, 2.0])
def test_objective_equals_liblinear(load, C):
    X, y = unit_rows(load)
    ours = solve_crammer_singer(X, y, y.max() + 1, C, gap=1e-9 * C * len(y))
    theirs = LinearSVC(multi_class="crammer_singer", C=C, fit_intercept=False, tol=1e-9, max_iter=10**6).fit(X, y)
    assert ours.converged
    assert ours.primal == pytest.approx(crammer_singer_objective(X, y, theirs.coef_, C), rel=1e-7)
    assert np.allclose(ours.coef, theirs.coef_, atol=1e-3 * np.abs(theirs.coef_).max())


def test_primal_is_the_objective_and_dual_is_below():
    X, y = unit_rows(load_wine)
    solution = solve_crammer_singer(X, y, 3, 0.5, gap=1e-2)
    assert solution.primal == pytest.approx(crammer_singer_objective(X, y, solution.coef, 0.5), rel=1e-12)
    optimum = solve_crammer_singer(X, y, 3, 0.5, gap=1e-11)
    assert solution.dual <= optimum.primal <= solution.primal + 1e-11


@given(st.integers(0, 10**6), st.integers(2, 6), st.integers(1, 40), st.integers(1, 8), st.floats(-3, 3))
@settings(max_examples=60, deadline=None)
def test_squared_distance_to_the_optimum_is_below_the_gap(seed, n_classes, n, d, log_C):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, 1)) > 0.1)
    y = rng.integers(0, n_classes, size=n)
    C = 10.0**log_C
    best = solve_crammer_singer(X, y, n_classes, C, gap=1e-10 * max(1.0, C * n))
    for gap in (1e-1 * C, 1e-3 * C):
        rough = solve_crammer_singer(X, y, n_classes, C, gap=gap)
        assert rough.converged
        assert rough.gap <= gap
        distance = np.linalg.norm(rough.coef - best.coef)
        assert distance <= np.sqrt(max(rough.gap, 0)) + np.sqrt(max(best.gap, 0)) + 1e-9


def test_sparse_equals_dense():
    X, y = unit_rows(load_digits)
    X = X * (np.abs(X) > 0.1)
    dense = solve_crammer_singer(X, y, 10, 0.2, gap=1e-6)
    sparse = solve_crammer_singer(scipy.sparse.csr_array(X), y, 10, 0.2, gap=1e-6)
    assert np.allclose(dense.coef, sparse.coef, atol=2 * np.sqrt(2e-6))
    assert sparse.gap <= 1e-6


def test_rows_of_zeros_cost_their_constant_loss():
    X = np.array([[1.0], [-1.0], [0.0], [0.0]])
    y = np.array([0, 1, 0, 1])
    with_zeros = solve_crammer_singer(X, y, 2, 1.0, gap=1e-12)
    without = solve_crammer_singer(X[:2], y[:2], 2, 1.0, gap=1e-12)
    assert np.allclose(with_zeros.coef, without.coef)
    assert with_zeros.primal == pytest.approx(without.primal + 2.0)


def test_same_bits_every_time():
    X, y = unit_rows(load_digits)
    first, second = (solve_crammer_singer(X, y, 10, 0.1, gap=1e-5).coef for _ in range(2))
    assert first.tobytes() == second.tobytes()


def test_stops_at_max_epochs_and_says_so():
    X, y = unit_rows(load_digits)
    solution = solve_crammer_singer(X, y, 10, 10.0, gap=1e-12, max_epochs=3)
    assert not solution.converged
    assert solution.n_epochs == 3


@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("norm", [1e-3, 5e-8, 1e-9, 1e-30, 1e-160])
def test_rows_of_tiny_norm_converge(n_classes, norm):
    """The margin must not swallow the digits of such a row: its dual block would never move, nor the gap close."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(50, 3))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    X[0] = [norm, 0.0, 0.0]
    X[1] = X[0]
    y = rng.integers(0, n_classes, 50)
    C = 0.01
    tiny = solve_crammer_singer(X, y, n_classes, C, 2e-4 * C**2, 2000)
    assert tiny.converged
    X[:2] = 0.0
    none = solve_crammer_singer(X, y, n_classes, C, 2e-4 * C**2, 2000)
    # The two rows move the weights by no more than C sqrt(2) times their norm each.
    assert np.linalg.norm(tiny.coef - none.coef) <= 2 * np.sqrt(2) * C * norm + 2 * np.sqrt(2e-4) * C
