"""Equal rows with one variable: the optimum, the certificate and the rows' bounds of the problem with all of them."""

import numpy as np
import pytest
import scipy.sparse
from sklearn.svm import SVC

from privsvm import SVMClassifier
from privsvm.families.exact import one_vs_one
from privsvm.families.exact.one_vs_one import solve_pairs
from privsvm.solvers.kernel.c_svc import optimality_gap
from privsvm.solvers.kernel.duplicate_rows import EqualRows
from privsvm.solvers.kernel.kernels import Kernel, kernel_matrix


def many_zeros(sparse, n=900, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.08)
    y = np.where(rng.random(n) < 0.1, rng.integers(0, 3, n), (X @ np.arange(1, d + 1) > 0.3) + (X[:, 0] > 0))
    return scipy.sparse.csr_array(X) if sparse else X, y.astype(np.int64)


@pytest.mark.parametrize("sparse", [False, True])
def test_groups_are_the_equal_rows_of_a_class(sparse):
    X, y = many_zeros(sparse)
    groups = EqualRows.find(X, y)
    dense = X.toarray() if sparse else X
    table = np.column_stack([dense, y])
    _, first = np.unique(table, axis=0, return_index=True)
    assert groups.first.tolist() == sorted(first.tolist())
    assert np.array_equal(table[groups.first][groups.group], table)


def test_few_rows_and_rows_that_differ_are_left_alone():
    X, y = many_zeros(False)
    assert EqualRows.find(X[:500], y[:500]) is None
    assert EqualRows.find(np.random.default_rng(1).normal(size=(900, 4)), y) is None


def test_rows_that_occur_twice_are_found_among_many():
    X = np.tile(np.random.default_rng(1).normal(size=(2500, 3)), (2, 1))
    groups = EqualRows.find(X, np.zeros(5000, dtype=np.int64))
    assert groups.first.tolist() == list(range(2500))
    assert groups.group.tolist() == 2 * list(range(2500))


def test_different_rows_of_one_sum_are_never_merged():
    """Rows whose hashes are equal without being so themselves."""
    X = np.zeros((800, 3))
    X[::2, 0], X[1::2, 1] = 1.0 / np.sin(1.0), 1.0 / np.sin(2.0)
    weights = np.sin(1.0 + np.arange(3))
    assert np.unique(X @ weights).size == 1
    assert EqualRows.find(X, np.zeros(800, dtype=np.int64)) is None


def test_variables_fill_one_row_after_the_other():
    groups = EqualRows(first=np.array([0, 1]), group=np.array([0, 1, 0, 0, 1]))
    upper = np.array([0.1, 1.0, 0.2, 0.3, 2.0])
    assert groups.bounds(upper) == pytest.approx([0.6, 3.0])
    layout = np.array([[0.15, -3.0], [-0.6, 0.0], [0.1, 1.0]])
    expected = [[0.1, -1.0, 0.05, 0.0, -2.0], [-0.1, 0.0, -0.2, -0.3, 0.0], [0.1, 1.0, 0.0, 0.0, 0.0]]
    variables = groups.spread(layout, upper)
    assert np.allclose(variables, expected, rtol=1e-15)
    # No rounding is taken for a support vector, and bounds are reached exactly.
    assert np.array_equal(variables == 0, np.array(expected) == 0)
    assert np.array_equal(np.abs(variables[1]), [0.1, 0.0, 0.2, 0.3, 0.0])


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("kernel", ["rbf", "poly"])
def test_merged_problems_have_the_optimum_of_all_rows(sparse, kernel, monkeypatch):
    X, y = many_zeros(sparse)
    upper = np.random.default_rng(2).uniform(0.5, 2.0, len(y))
    function = Kernel(kernel, 0.7, 2, 1.0)
    merged = solve_pairs(X, y, 3, upper, function)
    calls = []
    monkeypatch.setattr(one_vs_one.EqualRows, "find", lambda *rest: calls.append(1))
    unmerged = solve_pairs(X, y, 3, upper, function)
    assert calls
    assert merged.converged.all()
    assert merged.objective == pytest.approx(unmerged.objective, rel=1e-5)
    assert merged.starts.tolist() == unmerged.starts.tolist()
    order = np.argsort(y, kind="stable")
    dense = (X.toarray() if sparse else X)[order]
    matrix, bounds = kernel_matrix(dense, dense, function), upper[order]
    for a, b in ((0, 1), (0, 2), (1, 2)):
        rows = np.r_[merged.starts[a] : merged.starts[a + 1], merged.starts[b] : merged.starts[b + 1]]
        signs, alpha = np.where(y[order][rows] == a, 1.0, -1.0), np.abs(merged.variables(a, b))
        assert (alpha <= bounds[rows]).all()
        assert abs(signs @ alpha) < 1e-9 * bounds.sum()
        gradient = signs * (matrix[np.ix_(rows, rows)] @ (signs * alpha)) - 1.0
        assert optimality_gap(alpha, gradient, signs, bounds[rows]) <= 1.2e-3


def test_the_model_is_libsvms():
    X, y = many_zeros(True)
    ours, theirs = SVMClassifier(C=3.0, gamma=2.0).fit(X, y), SVC(C=3.0, gamma=2.0).fit(X, y)
    assert np.mean(ours.predict(X) == theirs.predict(X)) > 0.99
    assert ours.support_.size <= 1.05 * theirs.support_.size
