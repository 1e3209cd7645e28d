import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privsvm.solvers.linear.crammer_singer import round_off_allowance, solve_crammer_singer
from privsvm.solvers.linear.hinge import smoothed_hinge_slopes, solve_hinge


def random_problem(seed, n, d):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, 1)) > 0.1)
    return X, rng.choice([-1.0, 1.0], size=n)


@given(st.integers(0, 10**6), st.integers(1, 40), st.integers(1, 8), st.floats(-3, 3))
@settings(max_examples=60, deadline=None)
def test_it_is_crammer_singer_with_two_classes_and_half_the_weight(seed, n, d, log_C):
    """``w_1 - w_0`` of that problem is w, and its objective is half of this one."""
    X, y = random_problem(seed, n, d)
    C = 10.0**log_C
    gap = 1e-9 * max(1.0, C * n)
    ours = solve_hinge(X, y, C, gap)
    theirs = solve_crammer_singer(X, (y > 0).astype(int), 2, C / 2, gap / 2)
    assert ours.primal == pytest.approx(2 * theirs.primal, abs=2 * gap)
    assert np.linalg.norm(ours.coef - (theirs.coef[1] - theirs.coef[0])) <= 2 * np.sqrt(gap) * (1 + 1e-6)


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


def test_one_sign_is_enough():
    solution = solve_hinge(np.array([[1.0, 0.0]]), np.array([1.0]), 0.25, gap=1e-15)
    assert np.allclose(solution.coef, [0.25, 0.0])


def test_smoothed_slopes_are_the_derivative():
    def loss(m, h):
        return np.where(m >= 1, 0.0, np.where(m > 1 - h, (1 - m) ** 2 / (2 * h), 1 - m - h / 2))

    margins = np.linspace(-3, 3, 4001)
    for h in (0.1, 0.5, 2.0):
        slopes = smoothed_hinge_slopes(margins, h)
        assert np.allclose((loss(margins + 1e-6, h) - loss(margins - 1e-6, h)) / 2e-6, slopes, atol=1e-5 / h)
        assert slopes.min() == -1.0
        assert slopes.max() == 0.0
