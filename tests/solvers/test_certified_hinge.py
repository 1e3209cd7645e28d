"""The hinge solvers of two classes and of Crammer and Singer share LIBLINEAR's optimum.

`tests/solvers/test_certificate.py` proves their distance to the optimum.
"""

import numpy as np
import pytest
import scipy.sparse
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.svm import LinearSVC
from tests.adversarial import unit_rows
from tests.objectives import crammer_singer_objective, hinge_objective

from privsvm.solvers.linear.crammer_singer import solve_crammer_singer
from privsvm.solvers.linear.hinge import solve_hinge


def signs_of(codes):
    """Put one class against the rest."""
    return np.where(codes == 1, 1.0, -1.0)


def two_classes(X, codes, C, **options):
    return solve_hinge(X, signs_of(codes), C, **options)


def all_classes(X, codes, C, **options):
    return solve_crammer_singer(X, codes, codes.max() + 1, C, **options)


SOLVERS = pytest.mark.parametrize("solve", [two_classes, all_classes])


@pytest.mark.parametrize(
    ("solve", "load"),
    [
        (two_classes, load_breast_cancer),
        (two_classes, load_digits),
        (all_classes, load_wine),
        (all_classes, load_digits),
    ],
)
@pytest.mark.parametrize("C", [0.005, 0.1, 2.0])
def test_objective_equals_liblinear(solve, load, C):
    X, y = unit_rows(load)
    ours = solve(X, y, C, gap=1e-9 * C * len(y))
    common = {"C": C, "fit_intercept": False, "tol": 1e-9, "max_iter": 10**6}
    if solve is two_classes:
        theirs = LinearSVC(loss="hinge", **common).fit(X, signs_of(y)).coef_[0]
        best = hinge_objective(X, signs_of(y), theirs, C)
    else:
        theirs = LinearSVC(multi_class="crammer_singer", **common).fit(X, y).coef_
        best = crammer_singer_objective(X, y, theirs, C)
    assert ours.converged
    assert ours.primal == pytest.approx(best, rel=1e-7)
    assert np.allclose(ours.coef, theirs, atol=1e-3 * np.abs(theirs).max())


@SOLVERS
def test_sparse_equals_dense(solve):
    X, y = unit_rows(load_digits)
    X = X * (np.abs(X) > 0.1)
    dense, sparse = (solve(rows, y, 0.2, gap=1e-6) for rows in (X, scipy.sparse.csr_array(X)))
    assert np.allclose(dense.coef, sparse.coef, atol=2 * np.sqrt(2e-6))
    assert sparse.gap <= 1e-6


@SOLVERS
def test_rows_of_zeros_cost_their_constant_loss(solve):
    X, y = np.array([[1.0], [-1.0], [0.0], [0.0]]), np.array([0, 1, 0, 1])
    with_zeros, without = (solve(X[:n], y[:n], 1.0, gap=1e-12) for n in (4, 2))
    assert np.allclose(with_zeros.coef, without.coef)
    assert with_zeros.primal == pytest.approx(without.primal + 2.0)


@SOLVERS
def test_stops_at_max_epochs_and_says_so(solve):
    X, y = unit_rows(load_digits)
    solution = solve(X, y, 10.0, gap=1e-12, max_epochs=3)
    assert not solution.converged
    assert solution.n_epochs == 3
