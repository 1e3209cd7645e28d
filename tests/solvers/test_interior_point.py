"""Linear pairs by the interior-point method: feasible, optimal to tol by values from scratch, few support vectors."""

import itertools

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.svm import SVC

from privsvm import SVMClassifier
from privsvm.families.exact import one_vs_one
from privsvm.families.exact.one_vs_one import solve_pairs
from privsvm.solvers.kernel import interior_point, pair_smo
from privsvm.solvers.kernel.c_svc import SolverOptions, optimality_gap
from privsvm.solvers.kernel.interior_point import solve_linear_pairs
from privsvm.solvers.kernel.kernels import Kernel
from privsvm.solvers.kernel.pair_smo import ClassSolutions

LINEAR = Kernel("linear")


def nothing_yet(codes, n_classes):
    n_pairs = n_classes * (n_classes - 1) // 2
    return ClassSolutions(
        layout=np.zeros((n_classes - 1, codes.size)),
        starts=np.searchsorted(codes, np.arange(n_classes + 1)),
        rho=np.zeros(n_pairs),
        objective=np.zeros(n_pairs),
        n_iter=np.zeros(n_pairs, dtype=np.int64),
        converged=np.ones(n_pairs, dtype=bool),
    )


def solved(X, codes, n_classes, upper, tol=1e-3):
    """Rows sorted by class; the solutions, and which pairs were left."""
    solutions = nothing_yet(codes, n_classes)
    n_pairs = solutions.rho.size
    return solutions, solve_linear_pairs(X, upper, solutions, np.arange(n_pairs), tol=tol)


def check(X, codes, n_classes, upper, solutions, tol):
    """Feasible and optimal to tol; offset and objective belong to the variables."""
    dense = X.toarray() if scipy.sparse.issparse(X) else X
    for column, (a, b) in enumerate(itertools.combinations(range(n_classes), 2)):
        index = np.concatenate([np.flatnonzero(codes == a), np.flatnonzero(codes == b)])
        pair_rows, y, bounds = dense[index], np.where(codes[index] == a, 1.0, -1.0), upper[index]
        beta = solutions.variables(a, b)
        alpha = y * beta
        assert (alpha >= 0).all()
        assert (alpha <= bounds).all()
        assert abs(beta.sum()) <= 1e-9 * bounds.sum()
        # Distances do not change where rows are moved, and round-off is that of the moved ones.
        moved = pair_rows - pair_rows.mean(axis=0)
        w = moved.T @ beta
        rounding = (
            1e-13 * alpha.sum() * np.max(np.sum(moved**2, axis=1))
            + 1e-15 * np.abs(pair_rows @ (pair_rows.T @ beta)).max()
        )
        gradient = y * (moved @ w) - 1.0
        assert optimality_gap(alpha, gradient, y, bounds) <= tol + rounding
        size = max(abs(solutions.objective[column]), 1e-3 * alpha.sum())
        assert solutions.objective[column] == pytest.approx(alpha @ (gradient - 1.0) / 2.0, abs=1e-7 * size)
        # Weak duality, with the offset as it was returned.
        slack = np.maximum(0.0, 1.0 - y * (pair_rows @ (pair_rows.T @ beta) - solutions.rho[column]))
        primal = 0.5 * w @ w + bounds @ slack
        assert (
            primal + solutions.objective[column] <= (tol + 10 * rounding) * (bounds.sum() + alpha.sum()) + 1e-9 * primal
        )


@st.composite
def problems(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_classes = draw(st.integers(2, 4))
    sizes = [draw(st.integers(1, 40)) for _ in range(n_classes)]
    d = draw(st.integers(1, 24))
    codes = np.repeat(np.arange(n_classes), sizes)
    X = (
        rng.normal(size=(codes.size, d))
        + draw(st.sampled_from([0.0, 1.0, 10.0])) * rng.normal(size=(n_classes, d))[codes]
    )
    kind = draw(st.sampled_from(["plain", "lattice", "duplicates", "constant", "zeros", "alike"]))
    if kind == "lattice":
        X = np.round(X)
    elif kind == "duplicates":
        X = X[np.sort(rng.integers(0, codes.size, codes.size))]
    elif kind == "constant":
        X[:, 0] = 3.0
    elif kind == "zeros":
        X[rng.random(X.shape) < 0.8] = 0.0
    elif kind == "alike":
        X = X[:, :1] + 1e-7 * X
    scale = 10.0 ** draw(st.integers(-6, 6))
    C = 10.0 ** draw(st.floats(-4, 4)) / scale**2
    upper = C * (rng.uniform(0.1, 10.0, codes.size) if draw(st.booleans()) else rng.uniform(0.5, 2.0, n_classes)[codes])
    rows = scipy.sparse.csr_array(scale * X) if draw(st.booleans()) else scale * X
    return rows, codes, n_classes, upper


@settings(max_examples=150, deadline=None, derandomize=True)
@given(problems(), st.sampled_from([1e-2, 1e-3, 1e-5]))
def test_what_is_solved_is_optimal_and_what_is_left_is_as_it_was(problem, tol):
    X, codes, n_classes, upper = problem
    solutions, remaining = solved(X, codes, n_classes, upper, tol)
    pairs = list(itertools.combinations(range(n_classes), 2))
    for column in remaining:
        assert not solutions.variables(*pairs[column]).any()
        assert solutions.n_iter[column] == 0
    if remaining.size == 0:
        check(X, codes, n_classes, upper, solutions, tol)


@pytest.mark.parametrize(
    ("n", "d", "C", "sparse"),
    [(400, 1, 1.0, False), (600, 3, 0.1, False), (600, 3, 1e4, False), (500, 40, 10.0, False), (900, 60, 5.0, True)],
)
def test_no_usual_pair_is_left_and_objectives_are_those_of_libsvm(n, d, C, sparse):
    rng = np.random.default_rng(0)
    codes = np.sort(rng.integers(0, 3, n))
    X = rng.normal(size=(n, d)) + 0.5 * rng.normal(size=(3, d))[codes]
    if sparse:
        X[rng.random(X.shape) < 0.9] = 0.0
    rows = scipy.sparse.csr_array(X) if sparse else X
    solutions, remaining = solved(rows, codes, 3, np.full(n, C))
    assert remaining.size == 0
    check(rows, codes, 3, np.full(n, C), solutions, 1e-3)
    for column, (a, b) in enumerate(itertools.combinations(range(3), 2)):
        in_pair = (codes == a) | (codes == b)
        peer = SVC(kernel="linear", C=C, tol=1e-4, max_iter=3_000_000).fit(X[in_pair], codes[in_pair])
        beta = np.zeros(in_pair.sum())
        beta[peer.support_] = peer.dual_coef_[0]
        weights = X[in_pair].T @ beta
        value = 0.5 * weights @ weights - np.abs(beta).sum()
        # LIBSVM may have stopped at its limit: then ours is better.
        assert solutions.objective[column] <= value + 1e-5 * abs(value)


@pytest.mark.parametrize("sparse", [False, True])
def test_few_variables_are_between_their_bounds(sparse):
    """Rows on a lattice: hundreds lie on the margin, but no more need be between the bounds than there are weights."""
    rng = np.random.default_rng(1)
    codes = np.repeat([0, 1], 400)
    d = 20
    X = (rng.random((800, d)) < 0.1).astype(float) + (codes[:, None] == np.arange(d) % 2) * (rng.random((800, d)) < 0.1)
    # Every row is there once, so that none are merged.
    table = np.unique(np.column_stack([codes, X]), axis=0)
    codes, X = table[:, 0].astype(int), table[:, 1:]
    rows = scipy.sparse.csr_array(X) if sparse else X
    upper = np.full(len(X), 0.01)
    solutions, remaining = solved(rows, codes, 2, upper)
    assert remaining.size == 0
    check(rows, codes, 2, upper, solutions, 1e-3)
    alpha = np.abs(solutions.layout[0])
    assert ((alpha > 0) & (alpha < upper)).sum() <= d + 1


def test_equal_rows_are_merged_and_their_variables_shared_out():
    rng = np.random.default_rng(2)
    codes = np.repeat([0, 1, 2], 200)
    X = np.round(rng.normal(size=(600, 2)) + codes[:, None])
    upper = rng.uniform(0.5, 2.0, 600)
    solutions, remaining = solved(X, codes, 3, upper)
    assert remaining.size == 0
    check(X, codes, 3, upper, solutions, 1e-3)
    plain = nothing_yet(codes, 3)
    assert interior_point._solve_all(X, upper, plain, np.arange(3), 1e-3, None, 1).size == 0
    assert solutions.objective == pytest.approx(plain.objective, rel=1e-6)
    for a, b in itertools.combinations(range(3), 2):
        # One of each kind at most, and of these no more than weights there are.
        alpha = np.abs(solutions.variables(a, b))
        bounds = np.concatenate([upper[codes == a], upper[codes == b]])
        assert ((alpha > 0) & (alpha < bounds)).sum() <= 3


def test_two_rows_and_separable_rows():
    X, codes = np.array([[0.0], [2.0]]), np.array([0, 1])
    solutions, remaining = solved(X, codes, 2, np.ones(2), 1e-6)
    assert remaining.size == 0
    assert solutions.layout[0] == pytest.approx([0.5, -0.5], rel=1e-6)
    # Decision values 1 at the first row and -1 at the second.
    assert solutions.rho[0] == pytest.approx(-1.0, rel=1e-6)
    rng = np.random.default_rng(3)
    codes = np.repeat([0, 1], 100)
    X = rng.normal(size=(200, 5)) + 20.0 * codes[:, None]
    solutions, remaining = solved(X, codes, 2, np.full(200, 1e4))
    assert remaining.size == 0
    check(X, codes, 2, np.full(200, 1e4), solutions, 1e-3)
    assert np.count_nonzero(solutions.layout) <= 6


def test_equal_rows_of_both_classes_are_left():
    solutions, remaining = solved(np.ones((4, 3)), np.array([0, 0, 1, 1]), 2, np.ones(4))
    assert remaining.tolist() == [0]
    assert not solutions.layout.any()


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


def watched(monkeypatch):
    """Numbers of pairs that the interior-point method gets, and how many it leaves."""
    calls = []
    solve = one_vs_one.solve_linear_pairs

    def counted(X, upper, solutions, columns, **more):
        remaining = solve(X, upper, solutions, columns, **more)
        calls.append((columns.size, remaining.size))
        return remaining

    monkeypatch.setattr(one_vs_one, "solve_linear_pairs", counted)
    return calls


@pytest.mark.parametrize(("n", "n_classes"), [(900, 4), (4000, 2)])
def test_pairs_that_do_not_end_are_solved_by_the_others(monkeypatch, n, n_classes):
    X, codes = many_classes(n, 3, n_classes)
    calls = watched(monkeypatch)
    solutions = solve_pairs(X, codes, n_classes, np.ones(n), LINEAR)
    n_pairs = n_classes * (n_classes - 1) // 2
    assert calls == [(n_pairs, 0)]
    solve = interior_point._solve_all
    monkeypatch.setattr(interior_point, "_solve_all", lambda X, upper, solutions, columns, *rest: columns)
    other = solve_pairs(X, codes, n_classes, np.ones(n), LINEAR)
    assert solve is not interior_point._solve_all
    assert all(remaining == asked for asked, remaining in calls[1:])
    assert len(calls) > 1
    assert other.converged.all()
    assert other.objective == pytest.approx(solutions.objective, rel=1e-5)


def test_easy_pairs_of_few_rows_are_solved_by_steps_and_hard_ones_are_left_to_the_method(monkeypatch):
    X, codes = many_classes(600, 40, 3)
    calls = watched(monkeypatch)
    easy = solve_pairs(X, codes, 3, np.full(600, 1e-3), LINEAR)
    assert calls == []
    assert easy.converged.all()
    # Labels that say nothing.
    codes = np.random.default_rng(6).integers(0, 3, 600)
    upper = np.full(600, 100.0)
    hard = solve_pairs(X, codes, 3, upper, LINEAR)
    assert calls == [(3, 0)]
    order = np.argsort(codes, kind="stable")
    check(X[order], codes[order], 3, upper, hard, 1e-3)


def prepared_calls(monkeypatch):
    """How many steps each call of the solver by working sets may take, and the steps that it took."""
    calls = []
    solve = one_vs_one.solve_prepared

    def counted(*arguments, pair_budget=np.inf, **more):
        solution = solve(*arguments, pair_budget=pair_budget, **more)
        calls.append((pair_budget, solution.n_iter))
        return solution

    monkeypatch.setattr(one_vs_one, "solve_prepared", counted)
    return calls


def test_a_hard_pair_of_many_rows_is_left_to_the_method_and_goes_on_where_that_fails(monkeypatch):
    n = 1500
    X, codes = many_classes(n, 200, 2)
    codes = np.random.default_rng(7).integers(0, 2, n)
    order = np.argsort(codes, kind="stable")
    calls, sets = watched(monkeypatch), prepared_calls(monkeypatch)
    solutions = solve_pairs(X, codes, 2, np.ones(n), LINEAR)
    assert calls == [(1, 0)]
    ((patience, taken),) = sets
    assert patience <= taken < patience + 1
    assert solutions.n_iter[0] > taken
    assert solutions.converged.all()
    check(X[order], codes[order], 2, np.ones(n), solutions, 1e-3)
    monkeypatch.setattr(interior_point, "_solve_all", lambda X, upper, solutions, columns, *rest: columns)
    other = solve_pairs(X, codes, 2, np.ones(n), LINEAR)
    assert calls == [(1, 0), (1, 1)]
    assert [bound for bound, _ in sets] == [patience, patience, np.inf]
    assert other.n_iter[0] == sets[1][1] + sets[2][1]
    assert other.converged.all()
    assert other.objective == pytest.approx(solutions.objective, rel=1e-5)
    check(X[order], codes[order], 2, np.ones(n), other, 1e-3)


def test_few_rows_of_one_class_are_for_working_sets(monkeypatch):
    X, codes = many_classes(6000, 60, 2)
    calls, sets = watched(monkeypatch), prepared_calls(monkeypatch)
    assert solve_pairs(X, codes, 2, np.ones(6000), LINEAR).converged.all()
    assert (calls, sets) == ([(1, 0)], [])
    kept = np.sort(np.concatenate([np.flatnonzero(codes == 0), np.flatnonzero(codes == 1)[:20]]))
    solutions = solve_pairs(X[kept], codes[kept], 2, np.ones(kept.size), LINEAR)
    assert calls == [(1, 0)]
    assert len(sets) == 1
    order = np.argsort(codes[kept], kind="stable")
    check(X[kept][order], codes[kept][order], 2, np.ones(kept.size), solutions, 1e-3)


def test_wide_rows_are_not_for_the_method(monkeypatch):
    X, codes = many_classes(300, 400, 3)
    calls, starts = watched(monkeypatch), []
    solve = one_vs_one.solve_prepared
    monkeypatch.setattr(one_vs_one, "solve_prepared", lambda *rest, **more: (starts.append(1), solve(*rest, **more))[1])
    monkeypatch.setattr(pair_smo, "_STEPS", 0)
    monkeypatch.setattr(pair_smo, "_LEAST_STEPS", 20)
    assert solve_pairs(X, codes, 3, np.ones(300), LINEAR).converged.all()
    assert calls == []
    assert len(starts) == 3


def test_a_limit_on_steps_keeps_to_pairs(monkeypatch):
    X, codes = many_classes(900, 3, 3)
    calls = watched(monkeypatch)
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
