"""The fast solver against LIBSVM, and against its own promises: feasible, optimal to tol, whatever the settings."""

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.svm import SVC

from privsvm.numerics.compiled.threads import one_blas_thread
from privsvm.solvers.kernel import block_smo
from privsvm.solvers.kernel.block_smo import solve_prepared
from privsvm.solvers.kernel.c_svc import SolverOptions, dual_objective, optimality_gap
from privsvm.solvers.kernel.kernel_rows import KernelRows
from privsvm.solvers.kernel.kernels import Kernel, kernel_matrix
from privsvm.solvers.kernel.smo import solve_smo


def solve_block_smo(X, y, upper, kernel=Kernel(), options=SolverOptions()):
    """Solve the dual of plain rows."""
    with one_blas_thread():
        return solve_prepared(KernelRows(X, kernel), y, upper, options)


def noisy_problem(n, d, seed, noise=0.5):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = np.where(np.sin(2 * X[:, 0]) + X[:, -1] + noise * rng.normal(size=n) > 0, 1.0, -1.0)
    y[0], y[1] = 1.0, -1.0
    return X, y


def check(solution, X, y, upper, tol, kernel):
    """Feasible, and optimal by values computed from scratch in float64."""
    assert (solution.alpha >= 0).all()
    assert (solution.alpha <= upper).all()
    assert abs(y @ solution.alpha) <= 1e-9 * upper.sum()
    X = X.toarray() if scipy.sparse.issparse(X) else X
    Q = kernel_matrix(X, X, kernel) * np.outer(y, y)
    gradient = Q @ solution.alpha - 1
    scale = upper.max() * np.abs(np.diag(Q)).max()
    assert optimality_gap(solution.alpha, gradient, y, upper) <= tol + 0.2 * tol + 1e-12 * scale * len(y)
    assert solution.objective == pytest.approx(dual_objective(solution.alpha, gradient), rel=1e-5, abs=1e-12)
    return gradient


@settings(max_examples=60, deadline=None)
@given(
    st.tuples(
        st.integers(2, 400),
        st.integers(1, 90),
        st.sampled_from([1e-6, 0.1, 1.0, 30.0]),
        st.sampled_from(["linear", "rbf", "poly"]),
        st.booleans(),
        st.booleans(),
        st.sampled_from([1e-2, 1e-3, 1e-6]),
        st.sampled_from([0.01, 200.0]),
        st.integers(0, 10_000),
    )
)
def test_solutions_are_feasible_and_optimal(case):
    n, d, C, kernel, sparse, shrinking, tol, cache_size, seed = case
    X, y = noisy_problem(n, d, seed)
    # Rows of zeros, duplicates, and duplicates with the other label.
    X[: n // 10] = 0.0
    X[n // 2] = X[-1]
    function = Kernel(kernel, 0.5 / d, 2, 1.0)
    upper = C * np.random.default_rng(seed).uniform(0.5, 2.0, n)
    rows = scipy.sparse.csr_array(X) if sparse else X
    options = SolverOptions(tol=tol, shrinking=shrinking, cache_size=cache_size)
    solution = solve_block_smo(rows, y, upper, function, options)
    assert solution.converged
    check(solution, X, y, upper, tol, function)


@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("C", [0.1, 10.0])
def test_large_problems_are_libsvm(kernel, sparse, C):
    """Large enough for samples, several working sets and shrinking."""
    X, y = noisy_problem(3000, 6, 3)
    function = Kernel(kernel, 0.2, 2, 1.0)
    rows = scipy.sparse.csr_array(X) if sparse else X
    ours = solve_block_smo(rows, y, np.full(3000, C), function, SolverOptions(tol=1e-5))
    theirs = SVC(C=C, kernel=kernel, gamma=0.2, degree=2, coef0=1.0, tol=1e-5).fit(X, y)
    beta = y * ours.alpha
    values = kernel_matrix(X, X, function) @ beta - ours.rho
    assert np.allclose(values, theirs.decision_function(X), rtol=0, atol=1e-3)
    assert ours.rho == pytest.approx(-theirs.intercept_[0], abs=1e-3)


def test_precision_is_raised_where_single_is_not_enough():
    """Large C, and rows far from the origin: float32 alone cannot reach the tolerance."""
    X, y = noisy_problem(800, 3, 7)
    upper = np.full(800, 1e5)
    solution = solve_block_smo(X + 100.0, y, upper, Kernel("rbf", 0.5))
    assert solution.converged
    check(solution, X + 100.0, y, upper, 1e-3, Kernel("rbf", 0.5))


def test_double_takes_over_where_single_makes_no_step(monkeypatch):
    X, y = noisy_problem(500, 3, 8)
    improve = block_smo._Optimiser._improve
    monkeypatch.setattr(
        block_smo._Optimiser, "_improve", lambda self, *rest: 0 if self.dtype == np.float32 else improve(self, *rest)
    )
    solution = solve_block_smo(X, y, np.ones(500), Kernel("rbf", 0.5))
    assert solution.converged
    check(solution, X, y, np.ones(500), 1e-3, Kernel("rbf", 0.5))


@pytest.mark.parametrize("max_iter", [0, 1, 7])
def test_max_iter_is_kept(max_iter):
    X, y = noisy_problem(2000, 3, 9)
    solution = solve_block_smo(X, y, np.ones(2000), options=SolverOptions(max_iter=max_iter))
    assert solution.n_iter == max_iter
    assert not solution.converged
    assert abs(y @ solution.alpha) < 1e-9


def test_one_row_of_each_class_and_no_free_variable():
    solution = solve_block_smo(np.array([[-1.0], [1.0]]), np.array([-1.0, 1.0]), np.full(2, 0.1), Kernel("linear"))
    assert solution.alpha.tolist() == [0.1, 0.1]
    assert solution.rho == pytest.approx(0.0, abs=1e-12)
    with_many = solve_block_smo(np.zeros((50, 1)), np.where(np.arange(50) < 20, 1.0, -1.0), np.ones(50))
    assert with_many.converged
    assert with_many.alpha.sum() == pytest.approx(40.0)


def test_very_unbalanced_classes_keep_both_in_every_sample():
    rng = np.random.default_rng(10)
    X = rng.normal(size=(6000, 3))
    y = np.where(np.arange(6000) < 5, 1.0, -1.0)
    X[:5] += 1.5
    solution = solve_block_smo(X, y, np.ones(6000), Kernel("rbf", 0.3))
    theirs = SVC(gamma=0.3).fit(X, y)
    beta = np.abs(theirs.dual_coef_).sum()
    assert solution.alpha.sum() == pytest.approx(beta, rel=1e-3)


@pytest.mark.parametrize(
    ("far", "distance", "C"), [(2, 400, 1.0), (10, 18_000, 1e-4), (2, 13_000, 1e-3), (20, 130, 1.0)]
)
@pytest.mark.parametrize("seed", [0, 5])
def test_a_few_rows_far_away_do_not_spoil_the_others(far, distance, C, seed):
    """Cancellation: distances to them vanish in float32; the rest must neither overflow nor pass for optimal."""
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(2000) < 0.5, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    X = rng.normal(size=(2000, 3))
    X[:, 0] += 0.5 * y
    X[:far] += distance
    solution = solve_block_smo(X, y, np.full(2000, C))
    assert solution.converged
    check(solution, X, y, np.full(2000, C), 1e-3, Kernel())


@pytest.mark.parametrize(("n", "gamma", "cache_size"), [(3000, 0.3, 0.02), (1500, 1.0, 1e-5)])
def test_little_memory_takes_longer_but_ends_at_the_optimum(n, gamma, cache_size):
    X, y = noisy_problem(n, 5, 11)
    kernel = Kernel("rbf", gamma)
    solution = solve_block_smo(X, y, np.full(n, 10.0), kernel, SolverOptions(cache_size=cache_size))
    assert solution.converged
    check(solution, X, y, np.full(n, 10.0), 1e-3, kernel)


def test_arguments_of_sigmoid_are_precise():
    rng = np.random.default_rng(12)
    half = rng.integers(-20_000, 20_000, size=(150, 2)).astype(float)
    X = np.vstack([half, half[:, ::-1] * [1.0, -1.0]])
    y = np.where(rng.random(300) < 0.5, 1.0, -1.0)
    solution = solve_block_smo(X, y, np.ones(300), Kernel("sigmoid", 0.3))
    gram = kernel_matrix(X, X, Kernel("sigmoid", 0.3))
    gradient = gram @ (y * solution.alpha) * y - 1
    assert solution.gradient == pytest.approx(gradient, abs=1e-6)


@pytest.mark.parametrize("solve", [solve_block_smo, solve_smo])
@pytest.mark.parametrize(("kernel", "scale"), [("linear", 1e200), ("poly", 1e120)])
def test_what_overflows_is_refused(solve, kernel, scale):
    X, y = noisy_problem(60, 3, 13)
    with pytest.raises(ValueError, match="overflow"):
        solve(X * scale, y, np.ones(60), Kernel(kernel))
