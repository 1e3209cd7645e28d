"""The hinge solvers share LIBLINEAR's optimum; `test_certificate.py` proves their distance to the optimum."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.svm import LinearSVC
from tests.adversarial import unit_rows
from tests.objectives import crammer_singer_objective, hinge_objective

from privsvm.solvers.linear.crammer_singer import round_off_allowance, solve_crammer_singer
from privsvm.solvers.linear.hinge import smoothed_hinge_slopes, solve_hinge


def random_problem(seed, n, d):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, 1)) > 0.1)
    return X, rng.choice([-1.0, 1.0], size=n)


@given(st.integers(0, 10**6), st.integers(1, 30), st.integers(1, 6), st.floats(-4, 2), st.floats(-3, 3))
@settings(max_examples=60, deadline=None)
def test_the_objective_with_50_digits_is_within_the_allowance(seed, n, d, log_C, log_norm):
    import mpmath

    X, y = random_problem(seed, n, d)
    norm, C = 10.0**log_norm, 10.0**log_C
    X *= norm / max(np.linalg.norm(X, axis=1).max(), 1e-300)
    allowance = round_off_allowance(n, d, 1, C, norm)
    solution = solve_hinge(X, y, C, gap=max(1e-3 * C, 4 * allowance), max_epochs=20_000)
    with mpmath.workdps(50):
        primal = mpmath.mpf(0)
        for weight in solution.coef:
            primal += mpmath.mpf(weight) ** 2 / 2
        for row, sign in zip(X, y, strict=True):
            margin = mpmath.fsum(mpmath.mpf(a) * mpmath.mpf(b) for a, b in zip(row, solution.coef, strict=True)) * sign
            primal += mpmath.mpf(C) * max(mpmath.mpf(0), 1 - margin)
        assert abs(primal - mpmath.mpf(solution.primal)) <= allowance


def test_smoothed_slopes_are_the_derivative():
    def loss(m, h):
        return np.where(m >= 1, 0.0, np.where(m > 1 - h, (1 - m) ** 2 / (2 * h), 1 - m - h / 2))

    margins = np.linspace(-3, 3, 4001)
    for h in (0.1, 0.5, 2.0):
        slopes = smoothed_hinge_slopes(margins, h)
        assert np.allclose((loss(margins + 1e-6, h) - loss(margins - 1e-6, h)) / 2e-6, slopes, atol=1e-5 / h)
        assert slopes.min() == -1.0
        assert slopes.max() == 0.0


def signs_of(codes):
    """Put one class against the rest."""
    return np.where(codes == 1, 1.0, -1.0)


def two_classes(X, codes, C, **options):
    return solve_hinge(X, signs_of(codes), C, **options)


def all_classes(X, codes, C, **options):
    return solve_crammer_singer(X, codes, codes.max() + 1, C, **options)


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


@pytest.mark.parametrize("solve", [two_classes, all_classes])
def test_stops_at_max_epochs_and_says_so(solve):
    X, y = unit_rows(load_digits)
    solution = solve(X, y, 10.0, gap=1e-12, max_epochs=3)
    assert not solution.converged
    assert solution.n_epochs == 3
