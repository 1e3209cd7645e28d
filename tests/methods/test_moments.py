"""Methods that release second moments: the same without noise as their plain forms, and bounded sensitivities."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from tests.adversarial import KINDS, Silence, neighbours, scaled, silent

from privsvm.families.moments.joint_moments import class_sums
from privsvm.families.moments.private_scaling import rows_to_scale
from privsvm.families.moments.second_moments import (
    Moments,
    MomentsMechanism,
    centre_rows,
    code_cells,
    constant_feature,
    simplex_codes,
    solve_noisy_moments,
)
from privsvm.methods.adassp import AdaSSPClassifier, ridge_weights
from privsvm.methods.dp_feature_covariance import DPFeatureCovarianceClassifier, preconditioner
from privsvm.methods.dp_lda import CONSTANT, DPLDAClassifier, discriminants
from privsvm.methods.dp_least_squares import DPLeastSquaresClassifier
from privsvm.methods.dp_newton import DPNewtonClassifier, step_sums
from privsvm.numerics.noise.noise_source import NoiseSource
from privsvm.numerics.rows.unit_grid import CELLS
from privsvm.privacy.events import relation_factor
from privsvm.solvers.gradients.huber_descent import HuberDescent, descend, gradient_cells

METHODS = [DPLeastSquaresClassifier, DPFeatureCovarianceClassifier, DPNewtonClassifier]


def model_for(method, n_classes, **changes):
    return method(**{"classes": list(range(n_classes)), "random_state": 0, **changes})


@pytest.mark.parametrize("load", [load_breast_cancer, load_digits])
def test_without_noise_it_is_least_squares(load):
    X, y = scaled(load)
    n_classes = len(set(y))
    path = silent(model_for(DPLeastSquaresClassifier, n_classes), X, y, 40.0)
    centre, coef = path.step("direction")["centre"][0, 0], np.column_stack([path.coef[0, 0], path.intercept[0, 0]])
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    # The estimator of James and Stein shrinks by the noise that there would have been.
    assert 0.9 < (centre @ unit.mean(axis=0)) / (unit.mean(axis=0) @ unit.mean(axis=0)) <= 1.0
    rest = unit - centre
    rest = np.column_stack([rest / np.linalg.norm(rest, axis=1, keepdims=True), np.ones(len(X))])
    ours = path.codes(path.scores(X, 0))[0]
    scores = rest @ coef.T
    assert np.allclose(path.scores(X, 0)[0], scores, atol=1e-9)
    codes = simplex_codes(n_classes)
    target = np.linalg.lstsq(rest, codes[y], rcond=None)[0]
    theirs = np.argmax(rest @ target @ codes.T, axis=1)
    assert np.mean(ours == theirs) > 0.96
    assert np.mean(ours == y) > 0.9


def test_the_filter_inverts_what_stands_out_and_flattens_the_rest():
    gram, cross = np.diag([1e6, 1.0, -1.0]), np.eye(3)
    weights = solve_noisy_moments(Moments(gram, cross), 2.0)
    flat = 1 / np.hypot(1.0, 2.0 * np.sqrt(3))
    assert np.allclose(weights, np.diag([1e-6, flat, flat]), rtol=1e-6)


@pytest.mark.parametrize(("method", "digits"), zip(METHODS, (0.85, 0.87, 0.87), strict=True))
def test_accuracy(method, digits):
    """Measured: wine .94, breast cancer .95, digits .92 on rows not trained on; far below chance to fail."""
    for load, n_classes, least in ((load_wine, 3, 0.85), (load_breast_cancer, 2, 0.9), (load_digits, 10, digits)):
        X, y = scaled(load)
        model = method(classes=list(range(n_classes)), epsilon=4.0, random_state=0).fit(X, y)
        assert model.score(X, y) > least
        assert model.coef_.shape == (n_classes if n_classes > 2 else 1, X.shape[1])


@pytest.mark.parametrize("relation", ["replace_one", "add_remove"])
@pytest.mark.parametrize(("method", "share"), zip(METHODS, (0.8, 0.2, 0.2), strict=True))
def test_the_audit_comes_close_and_refutes_nothing(method, share, relation):
    X, y = scaled(load_wine)
    model = method(classes=[0, 1, 2], random_state=0, neighbours=relation, n_rows=178)
    path = model.release_path(X, y, [0.5, 8.0], 1, 0, audit=True)
    for epsilon, guarantee in zip((0.5, 8.0), path.guarantees, strict=True):
        assert guarantee.status == "seeded"
        assert guarantee.witness.confidence is None
        assert share * epsilon < guarantee.witness.epsilon <= guarantee.epsilon_with_system_noise


def exact_moments(load, n_classes):
    """Exact moments of centred unit rows with the constant feature, and the rows."""
    X, y = load(return_X_y=True)
    X = (X - X.min(axis=0)) / np.maximum(np.ptp(X, axis=0), 1e-9) * 2 - 1
    cells = rows_to_scale(X, "centre")
    rows = constant_feature(centre_rows(cells, cells.mean(axis=0) * 2.0**-20))[0]
    mechanism = MomentsMechanism(
        n_features=rows.shape[1], n_codes=n_classes - 1, neighbours="replace_one", multiplier=1.0
    )
    return mechanism.release(rows, code_cells(n_classes)[y], Silence()), rows * 2.0**-20, y


@pytest.mark.parametrize(("load", "n_classes"), [(load_wine, 3), (load_digits, 10)])
def test_sums_of_classes_are_read_off_the_moments(load, n_classes):
    moments, rows, y = exact_moments(load, n_classes)
    sums = class_sums(moments, 1e-9, len(y))
    assert np.allclose(rows[:, -1], CONSTANT, atol=1e-5)
    exact = np.array([rows[y == code].sum(axis=0) for code in range(n_classes)])
    assert np.allclose(sums[:, :-1], exact[:, :-1], atol=0.01)
    assert np.allclose(sums[:, -1], np.bincount(y), atol=0.01)


def test_without_noise_it_is_linear_discriminant_analysis():
    moments, rows, y = exact_moments(load_wine, 3)
    scores = rows @ discriminants(moments, 1e-9, len(y)).T
    theirs = LinearDiscriminantAnalysis(solver="lsqr").fit(rows[:, :-1], y).decision_function(rows[:, :-1])
    assert np.allclose(scores, theirs, atol=0.01 * np.abs(theirs).max())


def test_what_the_noise_hides_does_not_speak_for_a_class():
    """With much noise classes are about equal, counts are above 0, and scores are finite."""
    moments, _, y = exact_moments(load_wine, 3)
    counts = class_sums(moments, 1e4, len(y))[:, -1]
    assert np.ptp(counts) == 0.0
    assert counts.min() > 0.0
    assert np.isfinite(discriminants(moments, 1e4, len(y))).all()


def test_classes_are_as_probable_as_they_are_frequent():
    """Rows that say nothing get the label of the larger class."""
    y = np.repeat([0, 1], [100, 900])
    rows = np.random.default_rng(0).normal(size=(1000, 3))
    model = DPLDAClassifier(classes=[0, 1], epsilon=20.0, random_state=0).fit(rows, y)
    assert model.predict(rows).mean() > 0.99


RNG = np.random.default_rng(0)


def draw_moments(n_rows, n_features, noise):
    """Moments of rows whose last feature is rare, with symmetric noise."""
    rows = RNG.normal(size=(n_rows, n_features)) * np.append(np.ones(n_features - 1), 0.01)
    drawn = np.triu(RNG.normal(size=(n_features, n_features)) * noise, 1)
    gram = rows.T @ rows + drawn + drawn.T + np.diag(RNG.normal(size=n_features) * noise * math.sqrt(2.0))
    return rows, Moments(gram, rows.T @ RNG.normal(size=(n_rows, 2)))


def test_without_noise_adassp_is_least_squares():
    rows, moments = draw_moments(300, 6, 0.0)
    target = np.linalg.solve(rows.T @ rows, moments.cross)
    assert np.allclose(ridge_weights(moments, 1e-9), target, rtol=1e-6)


@pytest.mark.parametrize("noise", [0.3, 30.0, 3e4])
def test_the_ridge_is_what_the_smallest_eigenvalue_falls_short_of(noise):
    """Wang's Algorithm 2: all that is inverted is at least as large as the noise, and no ridge is added in vain."""
    for _ in range(20):
        _, moments = draw_moments(300, 6, noise)
        smallest = np.linalg.eigvalsh(moments.gram)[0]
        size = noise * math.sqrt(6 * math.log(2 * 36 / 0.05))
        ridge = max(0.0, size - smallest)
        expected = np.linalg.solve(moments.gram + ridge * np.eye(6), moments.cross)
        weights = ridge_weights(moments, noise)
        assert np.allclose(weights, expected, rtol=1e-6)
        assert np.linalg.norm(weights) <= np.linalg.norm(moments.cross) / size * (1.0 + 1e-9)


def test_more_classes_are_one_against_the_rest():
    """Scores of codes equal one regression a class, less their mean."""
    codes = RNG.integers(3, size=5000)
    rows = RNG.normal(size=(5000, 4)) + np.eye(3, 4)[codes]
    model = AdaSSPClassifier(classes=[0, 1, 2], epsilon=40.0, random_state=0).fit(rows, codes)
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True) - model.centre_
    rest = np.column_stack([unit / np.linalg.norm(unit, axis=1, keepdims=True), np.ones(5000)])
    responses = np.eye(3)[codes] * 2.0 - 1.0
    scores = rest @ np.linalg.lstsq(rest, responses, rcond=None)[0]
    ours = model.decision_function(rows)
    centred = scores - scores.mean(axis=1, keepdims=True)
    assert np.corrcoef(ours.ravel(), centred.ravel())[0, 1] > 0.999


@given(st.integers(0, 10**6), st.sampled_from(KINDS), st.sampled_from([2, 3, 12]), st.integers(2, 8),
       st.sampled_from([1e-3, 1.0, 1e30]), st.sampled_from([0.0, 0.1, 1.0, 100.0]))  # fmt: skip
@settings(max_examples=150, deadline=None)
def test_no_neighbour_moves_a_hessian_and_its_gradient_by_more_than_the_bound(seed, kind, n_classes, n, size, reach):
    """In whole numbers, given any centre and any weights that were released before; before and after rounding."""
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(n, 3)) * size, rng.integers(0, n_classes, size=n)
    *pair, relation = neighbours(X, y, n_classes, kind, rng)
    centre, weights = rng.normal(size=3) * 0.3, rng.normal(size=(n_classes, 4)) * reach
    mechanism = MomentsMechanism(n_features=4, n_codes=n_classes, neighbours=relation, multiplier=1.0)
    first, second = (
        step_sums(constant_feature(centre_rows(rows_to_scale(rows, "centre"), centre))[0], labels, n_classes, weights)
        for rows, labels in pair
    )
    bound = {"replace_one": 8, "add_remove": 3}[relation]
    for shift, sums in ((0, (first, second)), (mechanism.shift, (mechanism.rounded(first), mechanism.rounded(second)))):
        moved = (sums[0] - sums[1]).astype(object)
        # Every number of the Hessian above its diagonal is there twice, as its weight asks for.
        square = int((moved[:, :4] ** 2).sum() + 2 * (moved[:, 4:] ** 2).sum())
        if shift:
            assert square <= (mechanism.sensitivity * 2.0 ** (40 - shift)) ** 2
        else:
            assert square <= bound * 2**80


def test_the_bound_is_attained_at_the_first_step():
    """From weights of zero all slopes are clipped: of opposite rows with one label."""
    cells = np.array([[CELLS, 0.0], [-CELLS, 0.0]])
    first, second = (step_sums(cells[i : i + 1], np.zeros(1, dtype=int), 3, np.zeros((3, 2))) for i in range(2))
    moved = (first - second) * 2.0**-40
    assert np.linalg.norm(np.hstack([moved[:, :2], np.sqrt(2) * moved[:, 2:]])) == pytest.approx(np.sqrt(8.0), abs=1e-5)


def slow_newton(X, y, n_classes, n_steps, damping):
    """The same in floating point, row by row."""
    weights = np.zeros((n_classes, X.shape[1]))
    for _ in range(n_steps):
        hessian, gradient = np.zeros((X.shape[1],) * 2), np.zeros_like(weights)
        for x, label in zip(X, y, strict=True):
            scores = weights @ x
            gaps = 1 - (scores[label] - scores)
            rivals = np.arange(n_classes) != label
            slopes = np.where(rivals, -(1 + gaps / np.hypot(gaps, 1)) / 2, 0.0)
            slopes[label] = -slopes.sum()
            slopes /= max(np.linalg.norm(slopes), 1.0)
            gradient += np.outer(slopes, x)
            hessian += max(np.mean(1 / np.hypot(gaps, 1)[rivals]), slopes @ slopes) * np.outer(x, x)
        values, vectors = np.linalg.eigh(hessian)
        inverse = (vectors / np.hypot(values, damping)) @ vectors.T
        weights += 3 * np.sqrt(n_classes - 1) * gradient @ inverse
    return weights


@pytest.mark.parametrize("load", [load_breast_cancer, load_wine])
def test_without_noise_it_is_newton_s_method(load):
    X, y = scaled(load)
    n_classes = len(set(y))
    model = model_for(DPNewtonClassifier, n_classes, n_steps=3)
    path = model.release_path(X, y, [20.0], 1, lambda epsilon, repeat: Silence())
    rows = X / np.linalg.norm(X, axis=1, keepdims=True) - path.step("direction")["centre"][0, 0]
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    scale, constant = np.sqrt(0.96), 0.2
    rows = np.column_stack([scale * rows, np.full(len(rows), constant)])
    guarantee = path.guarantees[0]
    damping = 2 * guarantee.noise_scale / np.sqrt(2) * np.sqrt(rows.shape[1])
    slow = slow_newton(rows, y, n_classes, 3, damping)
    slow = slow[1:] - slow[:1] if n_classes == 2 else slow
    ours = np.column_stack([path.coef[0, 0] / scale, path.intercept[0, 0] / constant])
    assert np.linalg.norm(ours - slow) < 1e-3 * np.linalg.norm(slow)


def test_steps_pay_for_what_rounding_adds_to_the_gram_matrix():
    """Where budgets are so small that the noise's grid is coarse; the largest signal is at an angle of zero."""
    plan = model_for(DPFeatureCovarianceClassifier, 2)._training(lambda share: 2e7 / np.sqrt(share), 401)
    (rest,) = plan.events
    moments = MomentsMechanism(
        n_features=401, n_codes=0, neighbours="replace_one", multiplier=rest.noise_multiplier / np.sqrt(0.15)
    )
    assert moments.rounding_share > 0.02
    steps = 40 * (rest.noise_multiplier / plan.step_multiplier) ** 2
    assert 0.15 * moments.rounding_share**2 + steps < 1
    assert steps == pytest.approx(1 - 0.15 * moments.rounding_share, rel=1e-2)


@given(st.integers(0, 10**6), st.sampled_from(KINDS), st.integers(2, 4), st.integers(2, 8),
       st.sampled_from([1e-3, 1.0, 1e30]), st.sampled_from([0.0, 1.0, 100.0]))  # fmt: skip
@settings(max_examples=100, deadline=None)
def test_no_neighbour_moves_a_sum_of_gradients_by_more_than_the_bound(seed, kind, n_classes, n, size, reach):
    """In whole numbers, given any centre and any weights that were released before."""
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(n, 3)) * size, rng.integers(0, n_classes, size=n)
    *pair, relation = neighbours(X, y, n_classes, kind, rng)
    centre = rng.normal(size=3) * 0.3
    weights = rng.normal(size=(1 if n_classes == 2 else n_classes, 4)) * reach
    sums = []
    for rows, labels in pair:
        cells = constant_feature(centre_rows(rows_to_scale(rows, "centre"), centre))[0]
        sums.append(gradient_cells(cells, labels, n_classes, np.ones(n_classes), weights).astype(object).ravel())
    moved = int(((sums[0] - sums[1]) ** 2).sum())
    assert moved <= (int(relation_factor(relation)) * 2**38) ** 2


def test_the_preconditioner_evens_out_what_stands_out_of_the_noise():
    gram = np.diag([1e4, 1e2, 1.0, -1.0])
    for scale in (1.0, 1e6):
        matrix = preconditioner(gram * scale, 5.0 * scale, 1.0)
        assert np.allclose(matrix, matrix.T)
        assert np.linalg.eigvalsh(matrix).min() > 0
        assert np.trace(matrix) == pytest.approx(4.0)
        # The inverse, flat where noise hides the spectrum.
        assert matrix[1, 1] / matrix[0, 0] == pytest.approx(100.0, rel=1e-2)
        assert matrix[2, 2] == pytest.approx(matrix[3, 3], rel=1e-9)
        assert matrix[2, 2] / matrix[0, 0] == pytest.approx(1e4 / np.hypot(1.0, 10.0), rel=1e-2)
    root = preconditioner(gram, 5.0, 0.5)
    assert root[1, 1] / root[0, 0] == pytest.approx(10.0, rel=1e-2)
    assert np.isfinite(preconditioner(np.zeros((2, 2)), 1e-3, 1.0)).all()


def test_the_preconditioner_multiplies_what_is_released():
    rng = np.random.default_rng(0)
    cells = constant_feature(rng.normal(size=(60, 4)))[0]
    codes = rng.integers(0, 3, size=60)
    noisy = HuberDescent(n_steps=7, length=3.0, noise_multiplier=2.0)

    def trained(matrix, descent=noisy):
        return descend(cells, codes, 3, np.ones(3), descent, NoiseSource(bytes(32)), matrix)

    assert np.array_equal(trained(None), trained(np.eye(5)))
    # One step from zero is linear in the matrix, noise and all.
    once = HuberDescent(n_steps=1, length=3.0, noise_multiplier=2.0)
    matrix = preconditioner(cells.T @ cells, 1.0, 1.0)
    assert np.allclose(trained(matrix, once), trained(None, once) @ matrix, rtol=1e-12)


def test_the_power_of_the_preconditioner_changes_the_model():
    X, y = scaled(load_wine)
    models = [model_for(DPFeatureCovarianceClassifier, 3, power=power).fit(X, y) for power in (0.25, 0.5, 1.0)]
    assert len({model.coef_.tobytes() for model in models}) == 3
    assert len({model.centre_.tobytes() for model in models}) == 1
