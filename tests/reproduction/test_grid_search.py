"""The grid search against scikit-learn and single fits, with warm starts and stored distances."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.preprocessing import minmax_scale
from sklearn.svm import SVC

from privsvm import SVMClassifier
from privsvm.solvers.kernel.block_smo import solve_prepared
from privsvm.solvers.kernel.c_svc import SolverOptions, optimality_gap
from privsvm.solvers.kernel.gram_rows import PrecomputedRows
from privsvm.solvers.kernel.kernel_rows import KernelRows
from privsvm.solvers.kernel.kernels import Kernel, kernel_matrix
from reproduce.ci_svm.grid_search import (
    PAPER_CS,
    PAPER_GAMMAS,
    SearchGrid,
    row_distances,
    search_c_and_gamma,
)

SETS = {"breast_cancer": load_breast_cancer, "iris": load_iris, "wine": load_wine}
SMALL_CS, SMALL_GAMMAS = (0.03125, 2.0, 128.0), (0.0078125, 0.5, 8.0)


def load_bundled(name, n=10_000):
    X, y = SETS[name](return_X_y=True)
    order = np.random.default_rng(0).permutation(y.size)[:n]
    return minmax_scale(X[order], (-1, 1)), y[order], np.arange(order.size) % 5


def noisy(n, d, seed, n_classes=2):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    codes = np.clip((X[:, 0] + 0.5 * rng.normal(size=n)) * n_classes / 3 + n_classes / 2, 0, n_classes - 1).astype(int)
    return X, codes, rng.integers(0, 3, n)


def rows_right(make, X, codes, folds, Cs, gammas):
    """Count correct rows of separately trained models of each grid point."""
    right = np.zeros((len(Cs), len(gammas)))
    for number in np.unique(folds):
        test = folds == number
        for i, C in enumerate(Cs):
            for j, gamma in enumerate(gammas):
                model = make(C, gamma).fit(X[~test], codes[~test])
                right[i, j] += (model.predict(X[test]) == codes[test]).sum()
    return right


@pytest.mark.parametrize(("name", "n_classes"), [("breast_cancer", 2), ("iris", 3), ("wine", 3)])
def test_accuracies_are_those_of_scikit_learn(name, n_classes):
    X, codes, folds = load_bundled(name, 300)
    search = search_c_and_gamma(
        X, codes, n_classes, SearchGrid(PAPER_CS[::2], PAPER_GAMMAS[::2], tol=1e-5), folds=folds
    )
    theirs = rows_right(
        lambda C, gamma: SVC(C=C, gamma=gamma, tol=1e-5), X, codes, folds, PAPER_CS[::2], PAPER_GAMMAS[::2]
    )
    assert np.abs(search.accuracy * codes.size - theirs).max() <= 1
    assert (np.rint(search.accuracy * codes.size) != theirs).sum() <= 1
    assert search.n_solves + search.n_skipped == 5 * 25 * n_classes * (n_classes - 1) // 2
    assert search.n_skipped > 0


@pytest.mark.parametrize("cache_size", [200, 0.1])
def test_accuracies_are_those_of_fits_from_the_start(cache_size):
    """A small cache keeps no distances in memory."""
    X, codes, folds = noisy(240, 4, 1, n_classes=4)
    grid = {"Cs": SMALL_CS, "gammas": SMALL_GAMMAS}
    search = search_c_and_gamma(X, codes, 4, SearchGrid(**grid, cache_size=cache_size, tol=1e-5), folds=folds)
    ours = rows_right(lambda C, gamma: SVMClassifier(C=C, gamma=gamma, tol=1e-5), X, codes, folds, *grid.values())
    assert np.abs(search.accuracy * codes.size - ours).max() <= 1


def test_a_class_may_be_absent_from_training_rows():
    """A class may be absent from a fold's training rows or from all rows."""
    X, codes, folds = noisy(150, 3, 3, n_classes=3)
    codes = 2 * codes
    # All rows of class 4 are in one fold, so that its models are trained without this class.
    folds[codes == 4] = 1
    folds[0] = 1
    search = search_c_and_gamma(X, codes, 5, SearchGrid(SMALL_CS, SMALL_GAMMAS, tol=1e-5), folds=folds)
    ours = rows_right(
        lambda C, gamma: SVMClassifier(C=C, gamma=gamma, tol=1e-5, classes=range(5)),
        X,
        codes,
        folds,
        SMALL_CS,
        SMALL_GAMMAS,
    )
    assert np.abs(search.accuracy * codes.size - ours).max() <= 1
    # Without fold 1 only one of two classes remains.
    two = np.where(codes == 4, 1, 0)
    with pytest.raises(ValueError, match="one class only"):
        search_c_and_gamma(X, two, 2, folds=folds)


def test_ties_go_to_the_smallest():
    # Two distant clusters: all grid points are equally accurate.
    far = np.array([[-9.0], [9.0]] * 10)
    equal = search_c_and_gamma(far, np.arange(20) % 2, 2, SearchGrid([1.0, 4.0], [0.5, 2.0]), folds=np.arange(20) // 4)
    assert (equal.accuracy == 1).all()
    assert (equal.C, equal.gamma) == (1.0, 0.5)


def test_no_variable_at_its_bound_ends_the_path():
    far = np.array([[-9.0], [9.0]] * 10)
    alone = search_c_and_gamma(far, np.arange(20) % 2, 2, SearchGrid([10.0, 20.0], [8.0]), folds=np.arange(20) // 4)
    assert (alone.n_solves, alone.n_skipped) == (5, 5)


def feasible(rng, y, upper):
    """Draw feasible variables with ``y'a = 0``, some at either bound."""
    alpha = upper * np.clip(rng.uniform(-0.5, 1.5, y.size), 0, 1)
    positive, negative = alpha[y > 0].sum(), alpha[y < 0].sum()
    alpha[y > 0] *= min(1.0, negative / positive) if positive else 1.0
    alpha[y < 0] *= min(1.0, positive / negative) if negative else 1.0
    return alpha


@settings(max_examples=40, deadline=None)
@given(
    n=st.integers(4, 900),
    d=st.integers(1, 40),
    C=st.sampled_from([1e-3, 1.0, 100.0]),
    in_memory=st.booleans(),
    tol=st.sampled_from([1e-3, 1e-6]),
    seed=st.integers(0, 10_000),
)
def test_any_start_ends_at_the_optimum(n, d, C, in_memory, tol, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = np.where(X[:, 0] + 0.5 * rng.normal(size=n) > 0, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    gamma = 0.5 / d
    upper = C * rng.uniform(0.5, 2.0, n)
    rows = PrecomputedRows(np.exp(-gamma * row_distances(X))) if in_memory else KernelRows(X, Kernel("rbf", gamma))
    options = SolverOptions(tol=tol)
    cold = solve_prepared(rows, y, upper, options)
    warm = solve_prepared(rows, y, upper, options, start=feasible(rng, y, upper))
    assert cold.converged
    assert warm.converged
    assert (warm.alpha >= 0).all()
    assert (warm.alpha <= upper).all()
    assert abs(y @ warm.alpha) <= 1e-9 * upper.sum()
    gradient = (kernel_matrix(X, X, Kernel("rbf", gamma)) * np.outer(y, y)) @ warm.alpha - 1
    assert optimality_gap(warm.alpha, gradient, y, upper) <= 1.2 * tol + 1e-12 * C * n
    # Each is within tol times the distance of the other, which is at most the sum of the bounds.
    assert abs(warm.objective - cold.objective) <= 2 * tol * upper.sum() + 1e-9


def test_the_optimum_as_a_start_is_left_as_it_is():
    X, codes, _ = noisy(700, 3, 5)
    y = np.where(codes == 0, 1.0, -1.0)
    rows = PrecomputedRows(np.exp(-0.3 * row_distances(X)))
    cold = solve_prepared(rows, y, np.full(700, 2.0), SolverOptions(tol=1e-4))
    warm = solve_prepared(rows, y, np.full(700, 2.0), SolverOptions(), start=cold.alpha)
    assert warm.n_iter == 0
    assert np.array_equal(warm.alpha, cold.alpha)


def test_float32_gives_up_in_time():
    """Nearly equal kernel values and a large C exhaust float32."""
    rng = np.random.default_rng(1)
    X = rng.integers(0, 4, size=(800, 60)) / 1.5 - 1.0
    y = np.where(X @ rng.normal(size=60) + 4.0 * rng.normal(size=800) > 0, 1.0, -1.0)
    rows = PrecomputedRows(np.exp(-(2.0**-13) * row_distances(X)))
    solution = solve_prepared(rows, y, np.full(800, 2.0**16), SolverOptions())
    assert solution.converged
    assert solution.n_iter < 4_000_000


@settings(max_examples=25, deadline=None)
@given(
    n=st.integers(1, 200), d=st.integers(1, 20), gamma=st.sampled_from([1e-4, 0.3, 8.0]), seed=st.integers(0, 10_000)
)
def test_stored_rows_are_rows(n, d, gamma, seed):
    """Compare Gram matrix, subsets and expansions with the matrix in float64."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) + 10.0
    gram = kernel_matrix(X, X, Kernel("rbf", gamma))
    rows = PrecomputedRows(np.exp(-gamma * row_distances(X)))
    subset = rng.permutation(n)[: rng.integers(1, n + 1)]
    positions = rng.integers(0, subset.size, size=7)
    for stored, error in ((rows, 1e-6), (rows.in_double(), 1e-12)):
        taken, taken_twice = stored.take(subset), stored.take(subset).take(positions)
        dtype = stored.dtype
        assert np.allclose(stored.gram(np.empty(n * n, dtype)), gram, rtol=0, atol=error)
        assert np.allclose(
            taken.gram(np.empty(subset.size**2, dtype)), gram[np.ix_(subset, subset)], rtol=0, atol=error
        )
        coef = rng.normal(size=7)
        for target, index in ((stored, np.arange(n)), (taken, subset)):
            values = np.ones(index.size)
            target.subtract_expansion(values, taken_twice, coef)
            assert np.allclose(values, 1 - gram[np.ix_(index, subset[positions])] @ coef, rtol=0, atol=10 * error)
