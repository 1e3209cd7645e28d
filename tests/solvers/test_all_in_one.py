import numpy as np
import pytest
import scipy.optimize
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from tests.adversarial import scaled
from tests.objectives import hinge_objective

from privsvm.solvers.linear.all_in_one import (
    m3_problem,
    smoothed_positive_part,
    solve_all_in_one,
    weston_watkins_problem,
)
from privsvm.solvers.linear.hinge import solve_hinge


def tight(problem, share=1e-9):
    """The optimum, to a gradient that is tiny beside the one at zero weights."""
    at_zero = np.linalg.norm(problem.gradient(np.zeros((problem.n_classes, problem.X.shape[1]))))
    solution = solve_all_in_one(problem, share * at_zero)
    assert solution.converged
    return solution


def packed(solution, problem):
    if problem.fit_intercept:
        return np.hstack([solution.coef, solution.intercept[:, None]])
    return solution.coef


def written_out(X, y, problem, coef, intercept, kind):
    """The objective as the paper writes it, by loops over rows, classes and pairs of classes."""
    n_classes = len(coef)
    total = 0.0
    for row, label in zip(X, y, strict=True):
        scores = [coef[k] @ row + intercept[k] for k in range(n_classes)]
        for k in range(n_classes):
            if k != label:
                violation = 1 - (scores[label] - scores[k])
                total += problem.C * (violation + np.sqrt(violation**2 + problem.smoothing**2)) / 2
    if kind == "weston_watkins":
        return total + 0.5 * sum(w @ w for w in coef)
    for k in range(n_classes):
        for m in range(k + 1, n_classes):
            total += 0.5 * (coef[k] - coef[m]) @ (coef[k] - coef[m])
    return total + problem.ridge * ((coef**2).sum() + (intercept**2).sum())


def random_problem(seed, kind, n_classes, fit_intercept, sparse=False):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(int(rng.integers(1, 15)), 3)) * rng.choice([0.1, 1, 10])
    y = rng.integers(0, n_classes, size=len(X))
    C, smoothing, ridge = 10 ** rng.uniform(-3, 2), 10 ** rng.uniform(-2, 0.5), 10 ** rng.uniform(-3, 1)
    rows = scipy.sparse.csr_matrix(X) if sparse else X
    if kind == "weston_watkins":
        problem = weston_watkins_problem(rows, y, n_classes, C, smoothing, fit_intercept)
    else:
        problem = m3_problem(rows, y, n_classes, C, smoothing, ridge, fit_intercept)
    return X, y, problem, rng


KINDS = st.sampled_from(["weston_watkins", "m3"])


@given(st.floats(-1e8, 1e8), st.floats(-6, 1))
def test_smoothed_positive_part_is_exact_far_from_zero_too(value, log_smoothing):
    smoothing = 10.0**log_smoothing
    loss, slope, curvature = (float(term) for term in smoothed_positive_part(np.array(value), smoothing))
    root = np.hypot(value, smoothing)
    # The product of (root + g) and (root - g) is s^2: nothing cancels in the one without a difference.
    expected = (value + root) / 2 if value > 0 else smoothing**2 / (2 * (root - value))
    assert loss == pytest.approx(expected, rel=1e-12)
    assert max(value, 0) < loss <= max(value, 0) + smoothing / 2 * (1 + 1e-12) + 1e-15 * abs(value) or loss == value
    assert slope == pytest.approx(expected / root, rel=1e-12)
    assert curvature == pytest.approx(smoothing**2 / (2 * root**3), rel=1e-12)


@given(st.integers(0, 10**6), KINDS, st.integers(2, 5), st.booleans(), st.booleans())
@settings(max_examples=60, deadline=None)
def test_objective_is_the_paper_s_and_its_derivatives_are_finite_differences(
    seed, kind, n_classes, fit_intercept, sparse
):
    X, y, problem, rng = random_problem(seed, kind, n_classes, fit_intercept, sparse)
    V, direction = rng.normal(size=(2, n_classes, 3 + fit_intercept))
    coef, intercept = V[:, :3], V[:, 3] if fit_intercept else np.zeros(n_classes)
    expected = written_out(X, y, problem, coef, intercept, kind)
    assert problem.objective(V) == pytest.approx(expected, rel=1e-10)
    # A step well inside the smoothing's width, seen from a row.
    step = 1e-4 * problem.smoothing / (1 + np.abs(X).max())
    rise = (problem.objective(V + step * direction) - problem.objective(V - step * direction)) / (2 * step)
    scale = np.linalg.norm(problem.gradient(V)) * np.linalg.norm(direction)
    assert np.vdot(problem.gradient(V), direction) == pytest.approx(rise, rel=1e-4, abs=1e-5 * scale)
    bend = (problem.gradient(V + step * direction) - problem.gradient(V - step * direction)) / (2 * step)
    product = problem.hessian_product(problem.evaluate(V)[3])(direction)
    assert np.allclose(product, bend, rtol=1e-4, atol=1e-5 * np.abs(bend).max())


@given(st.integers(0, 10**6), KINDS, st.integers(2, 5), st.booleans(), st.booleans())
@settings(max_examples=60, deadline=None)
def test_solution_is_stationary_adds_up_to_zero_and_no_worse_than_scipy_s(seed, kind, n_classes, fit_intercept, sparse):
    _, _, problem, _ = random_problem(seed, kind, n_classes, fit_intercept and kind == "m3", sparse)
    solution = tight(problem)
    V = packed(solution, problem)
    assert np.linalg.norm(problem.gradient(V)) == pytest.approx(solution.gradient_norm, rel=1e-6, abs=1e-12)
    assert np.abs(V.sum(axis=0)).max() <= 1e-12 * (1 + np.abs(V).max())
    assert solution.objective == pytest.approx(problem.objective(V), rel=1e-12)
    shape = V.shape
    other = scipy.optimize.minimize(
        lambda v: (problem.objective(v.reshape(shape)), problem.gradient(v.reshape(shape)).ravel()),
        np.zeros(V.size), jac=True, method="L-BFGS-B", options={"maxiter": 2000, "ftol": 1e-15, "gtol": 1e-12},
    )  # fmt: skip
    assert solution.objective <= other.fun * (1 + 1e-9)
    # The objective is that strongly convex where weights add up to zero: the gradient bounds the distance.
    convexity = 1.0 if kind == "weston_watkins" else 2 * problem.ridge
    distance = np.linalg.norm(V - other.x.reshape(shape))
    tail = solution.gradient_norm + np.linalg.norm(problem.gradient(other.x.reshape(shape)))
    assert distance <= tail / convexity * (1 + 1e-6) + 1e-12


@pytest.mark.parametrize("kind", ["weston_watkins", "m3"])
def test_sparse_rows_give_the_same_solution(kind):
    X, y = scaled(load_digits, 0.0)
    X = np.where(X < 0.3, 0.0, X)
    for fit_intercept in (False, True):
        solutions = []
        for rows in (X, scipy.sparse.csr_matrix(X)):
            if kind == "weston_watkins":
                problem = weston_watkins_problem(rows, y, 10, 0.1, 0.05, fit_intercept)
            else:
                problem = m3_problem(rows, y, 10, 0.1, 0.05, 0.01, fit_intercept)
            solutions.append(tight(problem))
        assert np.allclose(solutions[0].coef, solutions[1].coef, atol=1e-6)
        assert np.allclose(solutions[0].intercept, solutions[1].intercept, atol=1e-6)


def quadratic_program(X, y, n_classes, C):
    """Weston-Watkins without smoothing, from its dual by scipy: alpha_ik in [0, C] for every rival k of row i."""
    pairs = [(i, k) for i in range(len(y)) for k in range(n_classes) if k != y[i]]
    # Contribution of one dual variable to the weights: x_i in its own class, -x_i in the rival's.
    tensors = np.zeros((len(pairs), n_classes, X.shape[1]))
    for p, (i, k) in enumerate(pairs):
        tensors[p, y[i]] += X[i]
        tensors[p, k] -= X[i]
    tensors = tensors.reshape(len(pairs), -1)
    gram = tensors @ tensors.T
    result = scipy.optimize.minimize(
        lambda a: (0.5 * a @ gram @ a - a.sum(), gram @ a - 1.0),
        np.zeros(len(pairs)), jac=True, bounds=[(0, C)] * len(pairs), method="L-BFGS-B",
        options={"maxiter": 20_000, "maxfun": 100_000, "ftol": 1e-16, "gtol": 1e-12},
    )  # fmt: skip
    coef = (result.x @ tensors).reshape(n_classes, -1)
    return coef, -result.fun


@pytest.mark.parametrize("seed", range(4))
def test_weston_watkins_tends_to_the_quadratic_program(seed):
    rng = np.random.default_rng(seed)
    n, n_classes = 12, 3
    X, y, C = rng.normal(size=(n, 4)), rng.integers(0, n_classes, size=n), [0.05, 0.5, 5.0, 50.0][seed]
    coef, dual = quadratic_program(X, y, n_classes, C)
    errors = []
    for smoothing in (1e-1, 1e-2, 1e-3, 1e-4):
        solution = tight(weston_watkins_problem(X, y, n_classes, C, smoothing), 1e-7)
        # The smoothed loss exceeds the hinge by at most s / 2 for each rival, and never falls below it.
        excess = C * n * (n_classes - 1) * smoothing / 2
        assert dual * (1 - 1e-6) <= solution.objective <= dual + excess + 1e-6 * dual
        distance = np.linalg.norm(solution.coef - coef)
        # Strong convexity turns that into a distance.
        assert distance <= np.sqrt(2 * excess) + 1e-3
        errors.append(distance)
    assert errors[-1] < 1e-2 * np.linalg.norm(coef)
    assert errors[-1] < errors[0]


@pytest.mark.parametrize("C", [1e-3, 0.1, 10.0])
def test_two_classes_are_a_binary_svm(C):
    X, y = scaled(load_breast_cancer, 0.0)
    signs = np.where(y == 1, 1.0, -1.0)
    smoothing, ridge = 1e-3, 0.2
    excess = C * len(y) * smoothing / 2
    # Weston-Watkins: u = w_1 - w_0 has ||W||^2 = ||u||^2 / 2, so the objective is half the binary one with 2 C.
    solution = tight(weston_watkins_problem(X, y, 2, C, smoothing), 1e-8)
    difference = solution.coef[1] - solution.coef[0]
    binary = solve_hinge(X, signs, 2 * C, 1e-7 * C)
    best = hinge_objective(X, signs, binary.coef, 2 * C) / 2
    assert best - 1e-7 * C <= solution.objective <= best + excess + 1e-7 * best
    assert np.linalg.norm(difference - binary.coef) <= 2 * np.sqrt(excess) + np.sqrt(1e-7 * C) + 1e-6
    # M3: 1/2 ||u||^2 + ridge ||u||^2 / 2, so (1 + ridge) times the binary objective with C / (1 + ridge).
    solution = tight(m3_problem(X, y, 2, C, smoothing, ridge, fit_intercept=False), 1e-8)
    binary = solve_hinge(X, signs, C / (1 + ridge), 1e-7 * C)
    best = hinge_objective(X, signs, binary.coef, C / (1 + ridge)) * (1 + ridge)
    assert best - 1e-6 * C <= solution.objective <= best + excess + 1e-7 * best


@pytest.mark.parametrize("load", [load_iris, load_wine, load_digits])
def test_m3_without_offsets_is_weston_watkins(load):
    X, y = scaled(load, 0.0)
    n_classes, C, ridge = int(y.max()) + 1, 0.3, 0.7
    m3 = tight(m3_problem(X, y, n_classes, C, 0.05, ridge, fit_intercept=False))
    ww = tight(weston_watkins_problem(X, y, n_classes, C / (n_classes + 2 * ridge), 0.05))
    assert np.allclose(m3.coef, ww.coef, atol=1e-6 * np.abs(ww.coef).max())
    assert m3.objective == pytest.approx((n_classes + 2 * ridge) * ww.objective, rel=1e-9)


def test_m3_is_the_paper_s_smoothed_problem():
    """Equation 12, sum of losses + lambda margins + mu' norms, over 2 lambda."""
    X, y = scaled(load_iris, 0.0)
    weight, norms, smoothing = 0.05, 0.01, 0.1

    def published(v):
        V = v.reshape(3, 5)
        margins = sum(np.sum((V[k, :4] - V[m, :4]) ** 2) for k in range(3) for m in range(k))
        scores = X @ V[:, :4].T + V[:, 4]
        violations = np.delete(
            (1 - scores[np.arange(150), y][:, None] + scores).ravel(), np.arange(150) * 3 + y
        )  # fmt: skip
        losses = ((violations + np.sqrt(violations**2 + smoothing**2)) / 2).sum()
        return losses + weight * margins + norms * np.sum(V**2)

    problem = m3_problem(X, y, 3, 1 / (2 * weight), smoothing, norms / (2 * weight))
    solution = tight(problem)
    V = packed(solution, problem)
    assert solution.objective == pytest.approx(published(V.ravel()) / (2 * weight), rel=1e-12)
    other = scipy.optimize.minimize(published, V.ravel() + 0.01, method="BFGS", options={"gtol": 1e-6})
    assert np.allclose(other.x.reshape(3, 5), V, atol=1e-4)


def test_offsets_of_weston_watkins_are_free():
    X, y = scaled(load_wine, 0.0)
    problem = weston_watkins_problem(X, y, 3, 0.2, 0.05, fit_intercept=True)
    solution = tight(problem)
    # Labels shifted by a constant feature: the offsets follow it, the weights stay.
    shifted = tight(weston_watkins_problem(X + 5.0, y, 3, 0.2, 0.05, fit_intercept=True))
    assert np.allclose(solution.coef, shifted.coef, atol=1e-5)
    assert np.allclose(solution.intercept, shifted.intercept + 5.0 * shifted.coef.sum(axis=1), atol=1e-4)
    without = tight(weston_watkins_problem(X, y, 3, 0.2, 0.05))
    assert solution.objective < 0.99 * without.objective
    assert np.array_equal(without.intercept, np.zeros(3))


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("kind", ["weston_watkins", "m3"])
def test_awkward_data(kind, fit_intercept):
    make = weston_watkins_problem if kind == "weston_watkins" else m3_problem
    extra = () if kind == "weston_watkins" else (0.1,)
    cases = [
        (np.zeros((3, 2)), np.array([0, 1, 2])),  # no features to speak of
        (np.ones((1, 2)), np.array([1])),  # one row, two classes missing
        (np.vstack([np.ones((4, 2)), -np.ones((4, 2))]), np.array([0, 1] * 4)),  # the same rows under two labels
    ]
    for X, y in cases:
        problem = make(X, y, 3, 2.0, 0.1, *extra, fit_intercept)
        solution = solve_all_in_one(problem, 1e-4)
        assert solution.converged
        assert np.isfinite(solution.coef).all()
        assert np.isfinite(solution.intercept).all()


def test_a_limit_on_the_steps_is_reported():
    X, y = scaled(load_digits, 0.0)
    problem = weston_watkins_problem(X, y, 10, 1.0, 1e-3)
    solution = solve_all_in_one(problem, 1e-6, max_steps=2)
    assert not solution.converged
    assert solution.n_steps == 2
    assert solution.objective == pytest.approx(problem.objective(solution.coef), rel=1e-12)
    assert solution.gradient_norm == pytest.approx(np.linalg.norm(problem.gradient(solution.coef)), rel=1e-9)
    assert solution.objective < problem.objective(np.zeros_like(solution.coef))


def test_an_unreachable_target_ends():
    X, y = scaled(load_wine, 0.0)
    solution = solve_all_in_one(weston_watkins_problem(X, y, 3, 1.0, 0.1), 1e-40)
    assert not solution.converged
    assert solution.gradient_norm < 1e-8
