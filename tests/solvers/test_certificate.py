"""Solvers end for every data set, and their stated distance to the optimum holds in rational numbers."""

import itertools
import math
import unittest.mock
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_digits, load_wine
from tests.objectives import crammer_singer_objective

from privsvm.numerics.rows.row_grid import grid_rows
from privsvm.solvers.linear import certificate, crammer_singer, exact_ascent, hinge
from privsvm.solvers.linear.crammer_singer import solve_crammer_singer
from privsvm.solvers.linear.hinge import solve_hinge

SIZES = [0.0, 5e-324, 1e-310, 1e-160, 1e-20, 1e-15, 3e-8, 1e-3, 1.0, 1e6, 1e308]
SOLVERS = ["hinge", "crammer_singer"]


@st.composite
def blocks(draw, largest=8):
    """Rows that stop solvers: subnormal, huge, zero, equal, opposite, of one class, or one alone; and their classes."""
    n, d = draw(st.integers(1, largest)), draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    X = rng.normal(size=(n, d))
    X /= np.abs(X).max(axis=1, keepdims=True)
    X *= np.array(draw(st.lists(st.sampled_from(SIZES), min_size=n, max_size=n)))[:, None]
    kind = draw(st.sampled_from(["free", "free", "duplicates", "opposite", "one direction"]))
    if kind == "duplicates":
        X[:] = X[0]
    elif kind == "opposite":
        X[1::2] = -X[0]
    elif kind == "one direction":
        X[:] = X[:, :1]
    n_classes = draw(st.integers(2, 4))
    y = rng.integers(0, n_classes, size=n)
    if draw(st.booleans()):
        y[:] = draw(st.integers(0, n_classes - 1))
    return X, y, n_classes


def solve(solver, X, y, n_classes, C, gap, **options):
    if solver == "hinge":
        return solve_hinge(X, np.where(y == 0, 1.0, -1.0), C, gap, **options)
    return solve_crammer_singer(X, y, n_classes, C, gap, **options)


def exactly(matrix):
    return [[Fraction(value) for value in row] for row in matrix]


def feasible_block(solver, alpha, label, C):
    """Dual variables in the form that adds up to C, made feasible in rational numbers."""
    if solver == "hinge":
        from_bound, other = Fraction(C) - Fraction(alpha), Fraction(alpha)
        assert from_bound >= 0
        assert other >= 0
        return [from_bound, other]
    rivals = [-Fraction(value) if m != label else Fraction(0) for m, value in enumerate(alpha)]
    assert min(rivals) >= 0
    total = sum(rivals)
    # As the certificate has it: round-off away from C, they are C.
    if total > Fraction(C) * (1 - Fraction(2) ** -46):
        assert total <= Fraction(C) * (1 + Fraction(2) ** -46)
        rivals = [value * Fraction(C) / total for value in rivals]
    rivals[label] = Fraction(C) - sum(rivals)
    return rivals


def proved_distance_is_below(solver, solution, X, y, C, target):
    """Check ``sqrt(S + E^2 / 4) + E / 2 <= target`` in rational numbers; see `privsvm.solvers.linear.certificate`."""
    rows, labels = exactly(X), y.tolist()
    shares = Fraction(0)
    weights = exactly(np.atleast_2d(solution.coef))
    sums = [[Fraction(0)] * X.shape[1] for _ in weights]
    for row, label, alpha in zip(rows, labels, solution.alpha.tolist(), strict=True):
        block = feasible_block(solver, alpha, label, C)
        scores = [sum(a * b for a, b in zip(vector, row, strict=True)) for vector in weights]
        if solver == "hinge":
            sign = 1 if label == 0 else -1
            margins, pulls = [Fraction(0), 1 - sign * scores[0]], [sign * block[1]]
        else:
            margins = [score - scores[label] + (m != label) for m, score in enumerate(scores)]
            pulls = [(Fraction(C) if m == label else 0) - beta for m, beta in enumerate(block)]
        largest = max(margins)
        shares += sum(beta * (largest - margin) for beta, margin in zip(block, margins, strict=True))
        for total, pull in zip(sums, pulls, strict=True):
            for j, value in enumerate(row):
                total[j] += pull * value
    error = sum((a - b) ** 2 for v, w in zip(weights, sums, strict=True) for a, b in zip(v, w, strict=True))
    # sqrt(s + e / 4) <= t - sqrt(e) / 2, that is s <= t^2 - t sqrt(e).
    return error <= target**2 and (target**2 - shares) >= 0 and (target**2 - shares) ** 2 >= target**2 * error


@given(blocks(), st.sampled_from(SOLVERS), st.floats(-11.5, 4), st.sampled_from([1e-3, 1.0, 1.7, 1e20]),
       st.sampled_from([2e-4, 1e-7, 1e-10]), st.sampled_from([np.asarray, scipy.sparse.csr_array]))  # fmt: skip
@settings(max_examples=250, deadline=None)
def test_every_block_on_the_grid_ends_with_a_certificate_that_holds_exactly(
    problem, solver, log_C, norm, share, layout
):
    X, y, n_classes = problem
    X = grid_rows(X, norm)
    C = 10.0**log_C / norm**2
    gap = share * (C * norm) ** 2
    solution = solve(solver, layout(X), y, n_classes, C, gap)
    assert solution.converged
    if solution.exact:
        # Its dual variables are whole numbers of another kind: as in the module's own test.
        return
    assert proved_distance_is_below(solver, solution, X, y, C, Fraction(math.sqrt(gap)))


def test_beside_their_margins_tiny_scores_keep_their_digits():
    """At C R^2 = 1e-12, digits went on for 19 seconds in whole numbers: beside 1, scores of 1e-10 were mostly lost."""
    X, y = load_digits(return_X_y=True)
    X = grid_rows(X[:600] / 16.0, 1.0)
    solutions = {}
    for C in (2.0**-14, 2.0**-30, 2.0**-39):
        with unittest.mock.patch.object(crammer_singer, "ascend_exactly") as whole_numbers:
            solutions[C] = solve_crammer_singer(X, y[:600], 10, C, 2e-4 * C**2)
        assert solutions[C].converged
        assert not whole_numbers.called
        assert solutions[C].gap <= 2e-4 * C**2
        assert solutions[C].dual <= solutions[C].primal <= 600 * C
        np.testing.assert_array_equal(solutions[C].coef / C, solutions[2.0**-14].coef / 2.0**-14)
        np.testing.assert_array_equal(solutions[C].alpha / C, solutions[2.0**-14].alpha / 2.0**-14)
    # A target that could overflow does not, whatever the rows.
    assert solve_crammer_singer(X[:5], y[:5], 10, 1e-12, 1e300).converged
    assert solve_crammer_singer(X[:5] * 0.0, y[:5], 10, 1e-12, 1e300).converged


@given(blocks(), st.sampled_from(SOLVERS), st.floats(-3, 2))
@settings(max_examples=150, deadline=None)
def test_rows_off_the_grid_end_too(problem, solver, log_C):
    """No theorem needs this, but a solver that does not end would be a trap."""
    X, y, n_classes = problem
    X = np.clip(X, -1.0, 1.0)
    assert solve(solver, X, y, n_classes, 10.0**log_C, 2e-4 * 10.0 ** (2 * log_C)).converged


@given(blocks(), st.sampled_from(SOLVERS), st.floats(-3, 2), st.sampled_from([1e-2, 1e-5]), st.booleans())
@settings(max_examples=80, deadline=None)
def test_the_exact_ascent_alone_ends_within_the_target(problem, solver, log_C, share, random):
    """From zeros, or from anything: the dual value never falls, and the gap is a quarter of the target."""
    X, y, n_classes = problem
    X = grid_rows(X, 1.0)
    C, gap = 10.0**log_C, share * 10.0 ** (2 * log_C)
    n_classes = 2 if solver == "hinge" else n_classes
    y = np.minimum(y, n_classes - 1)
    start = np.random.default_rng(0).normal(size=(len(y), n_classes)) * C * random
    states = []
    original = exact_ascent._Problem.gap

    def spy(problem, vectors, blocks):
        units = problem.n_units
        # The dual objective times constants: what rivals hold, less half the squared weights.
        held = sum(value for block, label in zip(blocks, y.tolist(), strict=True) for m, value in enumerate(block)
                   if m != label)  # fmt: skip
        squares = sum(value * value for vector in vectors for value in vector) * problem.weight**2
        states.append(Fraction(C) * held / units - squares / 2)
        assert all(sum(block) == units and min(block) >= 0 for block in blocks)
        return original(problem, vectors, blocks)

    with unittest.mock.patch.object(exact_ascent._Problem, "gap", spy):
        coef = exact_ascent.ascend_exactly(X, y, n_classes, C, gap, start)
    assert all(a < b for a, b in itertools.pairwise(states))
    best = solve_crammer_singer(X, y, n_classes, C, 1e-10 * C**2)
    assert np.linalg.norm(coef - best.coef) <= (0.5 * math.sqrt(share) + 1e-5) * C * (1 + 1e-9)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("load", [load_wine, load_digits])
def test_what_float64_gives_up_whole_numbers_end(solver, load, monkeypatch):
    """The switch at the first check: as if float64 could certify nothing, and moved no more."""
    X, y = load(return_X_y=True)
    X, y = grid_rows(X[::24] / np.abs(X).max(axis=0).clip(1.0), 1.0), y[::24]
    n_classes = y.max() + 1
    y = np.minimum(y, 1) if solver == "hinge" else y
    expected = solve(solver, X, y, n_classes, 0.02, 1e-12)
    monkeypatch.setattr(certificate.Progress, "stuck", lambda *_: True)
    solution = solve(solver, X, y, n_classes, 0.02, 2e-4 * 0.02**2)
    assert solution.exact
    assert solution.converged
    assert np.linalg.norm(solution.coef - expected.coef) <= 0.51 * math.sqrt(2e-4) * 0.02 + 1e-6
    assert solution.dual <= expected.primal <= solution.primal + 1e-12


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_gap_that_is_no_number_is_no_progress(value):
    progress = certificate.Progress()
    assert not progress.stuck(value, 0)
    assert not progress.stuck(1.0, 1000)
    assert not progress.stuck(0.995, 2999)
    assert progress.stuck(0.995, 3001)


def test_a_certificate_counts_the_error_of_the_weights():
    assert certificate.certified(0.9, 10, 0.0, 0.0, 1.0)
    assert not certificate.certified(1.0, 10, 0.0, 0.0, 1.0)
    assert not certificate.certified(0.9, 10, 0.2, 0.0, 1.0)
    assert not certificate.certified(0.9, 10, 0.0, 0.1, 1.0)
    assert not certificate.certified(math.nan, 10, 0.0, 0.0, 1.0)


@given(st.integers(0, 10**6), st.integers(1, 400), st.integers(1, 5))
@settings(max_examples=60, deadline=None)
def test_the_errors_of_sums_and_products_are_bounded(seed, n, d):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * 10.0 ** rng.uniform(-8, 0, size=(n, 1))
    alpha = rng.normal(size=n) * 10.0 ** rng.uniform(-8, 0, size=n)
    with unittest.mock.patch.object(certificate, "BLOCK", 64):
        sums = certificate.sums_of_rows(X, alpha)
        pull = float(np.abs(alpha) @ np.linalg.norm(X, axis=1))
        allowed = certificate.sum_error(n, pull)
    exact = [sum(Fraction(a) * Fraction(x) for a, x in zip(alpha, column, strict=True)) for column in X.T]
    assert sum((Fraction(s) - e) ** 2 for s, e in zip(sums, exact, strict=True)) <= Fraction(allowed) ** 2
    for row in X[:5]:
        score = sum(Fraction(a) * Fraction(b) for a, b in zip(row, exact, strict=True))
        vector = np.array([float(value) for value in exact])
        error = abs(sum(Fraction(a) * Fraction(b) for a, b in zip(row, vector, strict=True)) - Fraction(row @ vector))
        lengths = certificate.row_lengths(np.array([row @ row]))
        assert error <= Fraction(certificate.dot_error(d, float(np.linalg.norm(vector))) * lengths[0])
        assert float(score) == pytest.approx(row @ vector, abs=1e-9)


def lonely_row(load, norm):
    """A data set with one row replaced by a tiny one."""
    X, y = load(return_X_y=True)
    X = X / np.abs(X).max(axis=0).clip(1.0)
    X[3] = 0.0
    X[3, 1] = norm
    return X, y


@pytest.mark.parametrize("load", [load_wine, load_digits])
@pytest.mark.parametrize("norm", [1e-13, 1e-18, 1e-160, 5e-324])
@pytest.mark.parametrize("C", [0.01, 1.0])
def test_one_tiny_row_among_others_ends(load, norm, C):
    X, y = lonely_row(load, norm)
    grid = grid_rows(X, 1.0)
    assert not grid[3].any()
    for rows in (grid, X):
        assert solve_crammer_singer(rows, y, y.max() + 1, C, 2e-4 * C**2).converged


def test_a_billionth_of_a_row_is_decided_by_its_share_of_the_weights():
    """Weights that are certified for one tiny row move by no more than that row may."""
    C = 0.5
    X = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 1e-9], [0.0, 1e-15]])
    y = np.array([0, 1, 2, 1])
    first = solve_crammer_singer(X, y, 3, C, 1e-10 * C**2)
    second = solve_crammer_singer(X[:3], y[:3], 3, C, 1e-10 * C**2)
    assert np.linalg.norm(first.coef - second.coef) <= 2e-5 * C + math.sqrt(2) * C * 1e-15
    assert hinge.solve_hinge(X, np.where(y == 1, 1.0, -1.0), C, 1e-10 * C**2).converged
    assert crammer_singer_objective(X, y, first.coef, C) == pytest.approx(first.primal)
