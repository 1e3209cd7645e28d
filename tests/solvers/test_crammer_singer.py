import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.objectives import crammer_singer_objective

from privsvm.solvers.linear import crammer_singer, crammer_singer_face
from privsvm.solvers.linear.crammer_singer import round_off_allowance, solve_crammer_singer


def public_gap(X, n_classes, C):
    """Target of the gap that the private method asks for, and what float64 may get wrong about it."""
    norm = np.linalg.norm(X, axis=1).max()
    allowance = round_off_allowance(*X.shape, n_classes, C, norm)
    return max(2e-4 * (C * norm) ** 2, 100 * allowance), allowance


def assert_within_the_target(X, rows, y, n_classes, C):
    """The distance to a solution as good as float64 certifies, never the solver's own word, is below sqrt(target)."""
    target, allowance = public_gap(X, n_classes, C)
    solution = solve_crammer_singer(rows, y, n_classes, C, target)
    best = solve_crammer_singer(X, y, n_classes, C, min(target, max(1e-12 * C * len(y), 2 * allowance)))
    assert solution.converged
    assert best.converged
    assert solution.gap <= target
    assert solution.primal == pytest.approx(crammer_singer_objective(X, y, solution.coef, C), rel=1e-12)
    assert solution.gap == pytest.approx(solution.primal - solution.dual, abs=1e-12 * solution.primal)
    assert solution.dual <= best.primal + 2 * allowance
    # The second solution is off by at most the root of its own gap.
    distance = np.linalg.norm(solution.coef - best.coef)
    assert distance <= np.sqrt(target) + np.sqrt(max(best.gap, 0.0) + allowance)


@given(
    st.tuples(
        st.integers(0, 10**6),
        st.integers(2, 7),
        st.integers(1, 80),
        st.integers(1, 9),
        st.floats(-4, 5),
        st.sampled_from(["normal", "whole", "repeated", "one direction", "binary", "many norms"]),
        st.sampled_from(["random", "separable", "one class"]),
        st.sampled_from([np.asarray, scipy.sparse.csr_array]),
    )
)
@settings(max_examples=150, deadline=None)
def test_distance_to_the_optimum_of_awkward_problems(case):
    seed, n_classes, n, d, log_C, rows, labels, layout = case
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    if rows == "whole":
        X = np.round(X)
    elif rows == "repeated":
        X = X[rng.integers(0, max(1, n // 3), n)]
    elif rows == "one direction":
        X = X[:, :1] * rng.normal(size=d)
    elif rows == "binary":
        X = (X > 0.5).astype(float)
    elif rows == "many norms":
        X *= 10.0 ** rng.uniform(-8, 2, size=(n, 1))
    if not X.any():
        X[0, 0] = 1.0
    y = rng.integers(0, n_classes, size=n) if labels == "random" else np.argmax(X @ rng.normal(size=(d, n_classes)), 1)
    if labels == "one class":
        y[:] = seed % n_classes
    C = 10.0**log_C / np.square(X).sum(axis=1).max()
    assert_within_the_target(X, layout(X), y, n_classes, C)


@given(st.integers(0, 10**6), st.integers(2, 6), st.integers(2, 60), st.integers(1, 8), st.floats(-3, 2))
@settings(max_examples=100, deadline=None)
def test_a_face_step_stays_feasible_and_raises_the_dual(seed, n_classes, n, d, log_C):
    """From any feasible point, with few or many free variables, singular system or not."""
    rng = np.random.default_rng(seed)
    X, y, C = rng.normal(size=(n, d)), rng.integers(0, n_classes, size=n), 10.0**log_C
    rows = np.arange(n)
    own_class = np.arange(n_classes) == y[:, None]
    alpha = np.where(own_class, 0.0, -rng.random((n, n_classes)) * (rng.random((n, n_classes)) < 0.5))
    total = -alpha.sum(axis=1, keepdims=True)
    # A third of the rows at the upper bound, a third below.
    alpha *= C * np.where(rows % 3 == 0, 1.0, rng.random(n))[:, None] / np.maximum(total, 1e-9)
    alpha[rows, y] = np.minimum(-alpha.sum(axis=1), C)
    stored = crammer_singer._DenseRows(X, n_classes)
    stored.rebuild_weights(alpha)

    def dual(alpha):
        return -0.5 * np.square(X.T @ alpha).sum() - alpha[~own_class].sum()

    before = dual(alpha)
    face = crammer_singer_face.Face(stored, y, C, n_classes)
    face.step(alpha, np.inf)
    assert np.all(alpha[~own_class] <= 0)
    assert np.all(alpha[own_class] <= C)
    assert np.all(alpha[own_class] >= 0)
    assert np.abs(alpha.sum(axis=1)).max() <= 1e-14 * C * n_classes
    assert np.allclose(stored.by_feature, X.T @ alpha, rtol=0, atol=1e-10 * C * n)
    assert dual(alpha) >= before - 1e-12 * (1 + abs(before))


def test_face_steps_end_what_passes_alone_do_not(monkeypatch):
    """Few strongly correlated features: passes over the rows alone take thousands of epochs."""
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(300, 6))
    X = 1.0 + 0.05 * noise
    y = np.argmax(noise @ rng.normal(size=(6, 4)), axis=1)
    assert solve_crammer_singer(X, y, 4, 1.0, 1e-9, 300).converged
    monkeypatch.setattr(crammer_singer, "_FACE_SHARE", 0.0)
    assert not solve_crammer_singer(X, y, 4, 1.0, 1e-9, 3000).converged


def test_dense_rows_with_few_numbers_are_solved_as_sparse_rows():
    rng = np.random.default_rng(1)
    X = rng.random((80, 200)) * (rng.random((80, 200)) < 0.05)
    y = rng.integers(0, 3, 80)
    dense, sparse = (solve_crammer_singer(rows, y, 3, 0.5, 1e-8) for rows in (X, scipy.sparse.csr_array(X)))
    assert dense.coef.tobytes() == sparse.coef.tobytes()
