import numpy as np
import pytest
import scipy.sparse
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit
from sklearn.datasets import load_breast_cancer
from sklearn.svm import SVC
from tests.table_3 import LARGE, TABLE_3, printed, table_3_rows

from privsvm.solvers.kernel.c_svc import SolverOptions, optimality_gap
from privsvm.solvers.kernel.kernels import KERNELS, Kernel, kernel_matrix
from privsvm.solvers.kernel.smo import SELECTIONS, PairSelection, UniformStreams, solve_smo, solve_smo_runs
from privsvm.solvers.kernel.smo_steps import Choice, Memory, Numbers, Rule, draw


def grouped(X, y):
    """Rows of label +1 first, as LIBSVM trains on them."""
    order = np.argsort(-y, kind="stable")
    return X[order], y[order]


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return grouped((X - X.mean(axis=0)) / X.std(axis=0), np.where(y == 1, 1.0, -1.0))


def problem(seed, n, d, sparse=False):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, 1)) > 0.1)
    if sparse:
        X = X * (rng.random((n, d)) < 0.2)
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    # Some rows twice, with the same or another label.
    X[n // 2] = X[0]
    return X, y, 10.0 ** rng.uniform(-2, 2, size=n)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.long if name in LARGE else ()) for name in TABLE_3]
)
@pytest.mark.parametrize("shrinking", [1, 0])
def test_wss2_column_of_dpwss_table_3(name, shrinking, tmp_path):
    """LIBSVM 3.24 made that column: its objective, its accuracy, and every single step."""
    expected = printed(name, shrinking)
    X, y = grouped(*table_3_rows(name, tmp_path))
    solution = solve_smo(X, y, np.ones(y.size), Kernel("linear"), SolverOptions(shrinking=bool(shrinking)))
    decision = X @ (X.T @ (solution.alpha * y)) - solution.rho
    assert solution.converged
    assert solution.objective == pytest.approx(expected["objective"], rel=1e-4)
    assert np.mean((decision > 0) == (y > 0)) == pytest.approx(expected["accuracy"], abs=5.1e-5)
    assert solution.n_iter == expected["iterations"]


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("shrinking", [True, False])
@pytest.mark.parametrize("weights", [None, {1: 0.3, -1: 4.0}])
def test_equals_libsvm(cancer, kernel, shrinking, weights):
    X, y = cancer
    parameters = {"gamma": 0.02, "degree": 2, "coef0": 0.5}
    # scikit-learn's LIBSVM takes the first class, -1, for positive.
    libsvm = SVC(kernel=kernel, C=2.0, tol=1e-5, class_weight=weights, shrinking=shrinking, **parameters).fit(X, y)
    order = np.argsort(y, kind="stable")
    upper = np.full(y.size, 2.0) * ([1.0] * y.size if weights is None else np.vectorize(weights.get)(y))
    function, options = Kernel(kernel, **parameters), SolverOptions(tol=1e-5, shrinking=shrinking)
    ours = solve_smo(X[order], -y[order], upper[order], function, options)
    gram = kernel_matrix(X, X[order], function)
    decision = gram @ (y[order] * ours.alpha) + ours.rho
    assert np.allclose(decision, libsvm.decision_function(X), atol=1e-3)
    assert ours.n_iter == pytest.approx(libsvm.n_iter_[0], rel=0.01)
    assert np.flatnonzero(ours.alpha).size == libsvm.n_support_.sum()


@pytest.mark.parametrize("kernel", KERNELS)
def test_sparse_gives_the_same_bits(kernel):
    X, y, upper = problem(1, 300, 40, sparse=True)
    dense, sparse = (solve_smo(rows, y, upper, Kernel(kernel, 0.1)) for rows in (X, scipy.sparse.csr_array(X)))
    assert dense.alpha.tobytes() == sparse.alpha.tobytes()
    assert dense.n_iter == sparse.n_iter
    full = scipy.sparse.csr_array(X + 1.0)
    assert solve_smo(full, y, upper).alpha.tobytes() == solve_smo(X + 1.0, y, upper).alpha.tobytes()


@given(
    st.integers(0, 10**6),
    st.integers(4, 600),
    st.integers(1, 8),
    st.sampled_from(SELECTIONS),
    st.sampled_from(["linear", "rbf", "poly"]),
    st.booleans(),
    st.sampled_from([1e-1, 1e-3]),
)
@settings(max_examples=60, deadline=None)
def test_the_solution_is_feasible_and_optimal(seed, n, d, selection, kernel, shrinking, tol):
    X, y, upper = problem(seed, n, d)
    function, options = Kernel(kernel, 0.3, 2), SolverOptions(tol, 20_000, shrinking)
    rng = np.random.default_rng(seed)
    solution = solve_smo(X, y, upper, function, options, PairSelection(selection, 0.4), rng)
    assert np.all(solution.alpha >= 0)
    assert np.all(solution.alpha <= upper)
    assert abs(solution.alpha @ y) <= 1e-9 * max(1.0, upper.sum())
    Q = y[:, None] * y * kernel_matrix(X, X, function)
    gradient = Q @ solution.alpha - 1.0
    # Kernel rows are kept in single precision.
    assert np.allclose(gradient, solution.gradient, atol=1e-6 * (1 + np.abs(Q) @ solution.alpha).max())
    assert solution.objective == pytest.approx(0.5 * solution.alpha @ (solution.gradient - 1.0))
    gap = optimality_gap(solution.alpha, solution.gradient, y, upper)
    if solution.converged:
        assert gap <= tol
    else:
        assert selection == "dpwss" or solution.n_iter == 20_000
        assert gap >= tol


@pytest.mark.parametrize("selection", SELECTIONS)
def test_a_tiny_cache_gives_the_same_bits(selection):
    X, y, upper = problem(3, 1200, 3)
    large, small = (
        solve_smo(
            X, y, upper, Kernel(), SolverOptions(cache_size=size), PairSelection(selection), np.random.default_rng(0)
        )
        for size in (200.0, 1e-9)
    )
    assert large.n_iter == small.n_iter > 1500
    assert large.alpha.tobytes() == small.alpha.tobytes()


@pytest.mark.parametrize("selection", SELECTIONS)
def test_stops_at_max_iter_and_says_so(cancer, selection):
    X, y = cancer
    upper, kernel = np.ones(y.size), Kernel("linear")
    for limit in (0, 1, 37):
        rng = np.random.default_rng(0)
        solution = solve_smo(X, y, upper, kernel, SolverOptions(max_iter=limit), PairSelection(selection), rng)
        assert solution.n_iter == limit
        assert not solution.converged
        # The gradient belongs to alpha also where variables had been set aside.
        Q = y[:, None] * y * (X @ X.T)
        assert np.allclose(solution.gradient, Q @ solution.alpha - 1.0, atol=1e-3)


def test_rows_without_weight_take_no_part(cancer):
    X, y = cancer
    upper = np.where(np.arange(y.size) % 3 == 0, 0.0, 1.0)
    kept = upper > 0
    weighted, reduced = solve_smo(X, y, upper), solve_smo(X[kept], y[kept], upper[kept])
    assert not weighted.alpha[~kept].any()
    assert weighted.objective == pytest.approx(reduced.objective, rel=1e-6)
    assert weighted.converged


@pytest.mark.parametrize("upper", [1e-12, 1e12])
def test_extreme_bounds_and_rows_that_are_all_alike(upper):
    X = np.repeat([[1.0, 2.0]], 6, axis=0)
    y = np.array([1.0, -1.0] * 3)
    solution = solve_smo(X, y, np.full(6, upper), Kernel("linear"), SolverOptions(max_iter=1000))
    # Nothing tells the labels apart, so all variables go to their bounds.
    assert solution.objective == pytest.approx(-6 * upper)


def algorithm_2(X, y, C, tol, sigma, sharpness, uniforms):
    """Algorithms 1 and 2 in plain NumPy, full matrix of selected pairs and all; returns alpha and the pairs."""
    n = y.size
    Q = (y[:, None] * y * (X @ X.T)).astype(np.float32).astype(np.float64)
    diagonal = np.einsum("ij,ij->i", X, X)
    alpha, G = np.zeros(n), -np.ones(n)
    selected = np.zeros((n, n), dtype=bool)
    pairs = []
    while True:
        up = ((alpha < C) & (y > 0)) | ((alpha > 0) & (y < 0))
        low = ((alpha < C) & (y < 0)) | ((alpha > 0) & (y > 0))
        m = np.max((-y * G)[up])
        i = np.flatnonzero(up & (-y * G == m))[-1]
        M = np.max((y * G)[low])
        q = (m + y * G) / (m + M)
        candidates = np.flatnonzero(~selected[i] & low & (m + y * G > tol) & (q >= sigma))
        if m + M < tol or candidates.size == 0:
            return alpha, pairs
        cumulative = np.cumsum(np.exp(sharpness * (q[candidates] - q[candidates].max())))
        j = candidates[np.searchsorted(cumulative, uniforms.random() * cumulative[-1], side="right")]
        selected[i, j] = True
        pairs.append((i, j))
        # Best step along (y_i, -y_j), cut off at the box.
        curvature = diagonal[i] + diagonal[j] - 2 * y[i] * y[j] * Q[i, j]
        step = (-y[i] * G[i] + y[j] * G[j]) / max(curvature, 1e-12)
        step = min(step, C - alpha[i] if y[i] > 0 else alpha[i], alpha[j] if y[j] > 0 else C - alpha[j])
        before = alpha[[i, j]].copy()
        alpha[i] += y[i] * step
        alpha[j] -= y[j] * step
        alpha[np.abs(alpha) < 1e-14] = 0.0
        alpha[np.abs(alpha - C) < 1e-14] = C
        G += Q[i] * (alpha[i] - before[0]) + Q[j] * (alpha[j] - before[1])


@pytest.mark.parametrize(("sigma", "sharpness"), [(0.1, 0.5), (0.7, 5.0 / 3.0), (0.5, 20.0)])
def test_dpwss_is_algorithm_2(sigma, sharpness):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(60, 4))
    y = np.where(X[:, 0] + 0.7 * rng.normal(size=60) > 0, 1.0, -1.0)
    alpha, pairs = algorithm_2(X, y, 1.0, 1e-3, sigma, sharpness, np.random.default_rng(9))
    options, selection = SolverOptions(shrinking=False), PairSelection("dpwss", sigma, sharpness)
    ours = solve_smo(X, y, np.ones(60), Kernel("linear"), options, selection, np.random.default_rng(9))
    assert ours.n_iter == len(pairs) == len(set(pairs)) > 30
    assert np.allclose(ours.alpha, alpha, atol=1e-9)


@njit
def draw_often(draws, extreme, gap, rule, active, low, F, memory, numbers):
    """Return the drawn variables, and the outcome of the last draw."""
    drawn = np.empty(draws, dtype=np.int64)
    for k in range(draws):
        choice, drawn[k] = draw(extreme, gap, rule, active, low, F, memory, numbers, 0)
    return drawn, choice


@pytest.mark.parametrize(("sigma", "sharpness"), [(0.2, 0.0), (0.2, 4.0), (0.5, 1000.0)])
def test_draws_have_the_stated_probabilities(sigma, sharpness):
    rng = np.random.default_rng(2)
    n, tol, stamp = 30, 0.3, 7
    F = rng.normal(size=n)
    low = np.where(rng.random(n) < 0.7, 0.0, np.inf)
    used = np.where(rng.random(n) < 0.2, stamp, stamp - 1)
    extreme = 1.0
    gap = extreme - np.min((F + low)[np.isfinite(low)])
    share = (extreme - F) / gap
    candidate = np.isfinite(low) & (used != stamp) & (extreme - F > tol) & (share >= sigma)
    # Only candidates are ever drawn, and never where there is none.
    arguments = (extreme, gap, Rule(SELECTIONS.index("dpwss"), tol, sigma, sharpness, True, 1), n, low, F)
    work = np.empty(n, dtype=np.int64), np.empty(n)
    memory = Memory(np.empty(0, dtype=np.int64), np.full(n, stamp), np.array([stamp]), *work)
    draws = 40_000
    numbers = Numbers(rng.random((1, draws)), np.zeros(1, dtype=np.int64))
    assert draw_often(1, *arguments, memory, numbers)[1] == Choice.NO_PAIR
    memory = memory._replace(used=used)
    counts = np.bincount(draw_often(draws, *arguments, memory, numbers)[0], minlength=n)
    # All numbers have been used.
    assert draw_often(1, *arguments, memory, numbers)[1] == Choice.NO_NUMBERS
    assert not counts[~candidate].any()
    weights = np.exp(sharpness * (share - share[candidate].max())) * candidate
    expected = draws * weights / weights.sum()
    common = expected > 5
    observed = np.append(counts[common], counts[~common].sum())
    rare = expected[~common].sum()
    statistic = np.sum((counts[common] - expected[common]) ** 2 / expected[common])
    assert observed[-1] <= scipy.stats.poisson.isf(1e-7, rare)
    assert scipy.stats.chi2.sf(statistic, max(common.sum() - 1, 1)) > 1e-6


@pytest.mark.parametrize("shrinking", [True, False])
def test_dpwss_counts_distinct_pairs(shrinking):
    X, y, _ = problem(8, 400, 3)
    options, rng = SolverOptions(shrinking=shrinking), np.random.default_rng(0)
    solution = solve_smo(X, y, np.full(y.size, 10.0), Kernel("linear"), options, PairSelection("dpwss", 0.1), rng)
    # More than the memory holds at first.
    assert solution.n_iter > 1024
    if shrinking:
        assert 0 < solution.n_selected <= solution.n_iter
    else:
        assert solution.n_selected == solution.n_iter
    assert solve_smo(X, y, np.ones(y.size)).n_selected is None


@pytest.mark.parametrize("shrinking", [True, False])
@pytest.mark.parametrize(
    ("kernel", "n", "cache_size"), [("linear", 400, 200.0), ("rbf", 400, 200.0), ("rbf", 300, 0.1)]
)
def test_runs_are_solves_one_after_the_other(kernel, n, cache_size, shrinking):
    X, y, upper = problem(8, n, 3)
    function, options = Kernel(kernel, 0.3), SolverOptions(shrinking=shrinking, cache_size=cache_size)
    sharpness = [0.5, 20.0, 3.0, 0.0, 0.5]
    for rows in (X, scipy.sparse.csr_array(X)):
        ours, theirs = ([np.random.default_rng(seed) for seed in (0, 1)] for _ in range(2))
        # Two generators for five runs.
        streams = UniformStreams([ours[run % 2] for run in range(5)])
        runs, more = (
            solve_smo_runs(rows, y, upper, function, options, PairSelection("dpwss", sigma, sharpness), streams)
            for sigma in (0.1, 0.3)
        )
        streams.give_back()
        for run, solution in enumerate([*runs, *more]):
            number, sigma = run % 5, 0.1 if run < 5 else 0.3
            rng = theirs[number % 2]
            selection = PairSelection("dpwss", sigma, sharpness[number])
            alone = solve_smo(rows, y, upper, function, options, selection, rng)
            assert solution.alpha.tobytes() == alone.alpha.tobytes()
            assert solution.gradient.tobytes() == alone.gradient.tobytes()
            assert (solution.rho, solution.objective) == (alone.rho, alone.objective)
            assert (solution.n_iter, solution.n_selected) == (alone.n_iter, alone.n_selected)
            assert solution.converged == alone.converged
        # More than are drawn together.
        assert sum(solution.n_iter for solution in runs) > 2048
        assert [rng.random() for rng in ours] == [rng.random() for rng in theirs]
