"""Methods that perturb weights of multi-class SVMs: bounds are attained, and claims of papers refuted."""

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.svm import LinearSVC
from tests.adversarial import scaled, silent

from privsvm import PMSVMWPClassifier
from privsvm.families.output_perturbation.perturbation import solve_one_vs_rest
from privsvm.families.output_perturbation.weight_perturbation import weight_sensitivity
from privsvm.methods.opera import OPERAClassifier
from privsvm.methods.opera_as_published import OPERAAsPublishedClassifier
from privsvm.methods.ovr_joint_gaussian import OvRJointGaussianClassifier, centred_sensitivity, solve_centred
from privsvm.methods.pmsvm_wp_as_published import PMSVMWPAsPublishedClassifier
from privsvm.privacy.accounting import gaussian_noise_multiplier
from privsvm.solvers.linear.crammer_singer import solve_crammer_singer


def sound(n_classes, method=OPERAClassifier, **changes):
    chosen = {"classes": list(range(n_classes)), "C": 0.3, "data_norm": 1.5, **changes}
    return method(**chosen)


def published(n_classes, **changes):
    chosen = {"classes": list(range(n_classes)), "C": 0.005, "allow_unsound": True}
    return OPERAAsPublishedClassifier(**{**chosen, **changes})


def test_published_weights_are_one_vs_rest_with_squared_hinge():
    X, y = scaled(load_digits, 0.0)
    theirs = LinearSVC(C=0.005, fit_intercept=False, max_iter=10_000, random_state=42, tol=1e-8).fit(X, y)
    weights = silent(published(10), X, y).coef[0, 0]
    assert np.allclose(weights, theirs.coef_, atol=2e-3)
    assert np.linalg.norm(weights - theirs.coef_) < 2e-3 * np.linalg.norm(theirs.coef_)


def test_published_rows_are_not_clipped():
    X, y = scaled(load_wine, 0.0)
    short, long = (silent(published(3), factor * X, y).coef for factor in (1.0, 10.0))
    assert np.linalg.norm(X, axis=1).max() > 1.5
    assert not np.allclose(short, long, rtol=0.1)


@pytest.mark.parametrize("calibration", ["analytic", "classic"])
@pytest.mark.parametrize("composition", ["naive", "joint"])
@pytest.mark.parametrize("constant", [2, 4])
@pytest.mark.parametrize("load", [load_breast_cancer, load_digits])
def test_published_noise(calibration, composition, constant, load):
    X, y = scaled(load, 0.0)
    n_classes = int(y.max()) + 1
    n_vectors = 1 if n_classes == 2 else n_classes
    model = published(n_classes, calibration=calibration, composition=composition, constant=constant)
    path = model.release_path(X, y, [0.5, 4.0], 1, 0)
    for epsilon, guarantee in zip([0.5, 4.0], path.guarantees, strict=True):
        # The released code divides epsilon by the number of classes, two included, and never delta.
        share = epsilon / n_classes if composition == "naive" else epsilon
        multiplier = gaussian_noise_multiplier(share, 1e-5)
        if calibration == "classic":
            multiplier = np.sqrt(2 * np.log(1.25e5)) / share
        vectors = n_vectors if composition == "joint" else 1
        assert guarantee.sensitivity == pytest.approx(constant * 0.005 * np.sqrt(vectors))
        assert guarantee.noise_scale == pytest.approx(guarantee.sensitivity * multiplier, rel=1e-9)


def test_published_noise_has_the_scale_that_is_stated():
    X, y = scaled(load_digits, 0.0)
    path = published(10).release_path(X, y, [1.0], 40, 5)
    noise = path.coef[0] - silent(published(10), X, y).coef[0, 0]
    # 25 600 draws: the standard deviation of their spread is 0.44 %, so 3 % is nearly seven of them.
    assert noise.std() == pytest.approx(path.guarantees[0].noise_scale, rel=0.03)


def test_published_claim_and_its_reasons():
    X, y = scaled(load_wine, 0.0)

    def reason(epsilon=1.0, **changes):
        guarantee = published(3, epsilon=epsilon, **changes).fit(X, y).guarantee_
        assert guarantee.status == "claimed"
        assert guarantee.epsilon_proved == np.inf
        assert guarantee.epsilon_requested == epsilon
        assert guarantee.delta == 1e-5
        return guarantee.reason

    always = reason(composition="joint")
    for words in ("squared hinge has no bounded sensitivity", "rows of norm at most 1", "stops short of the optimum"):
        assert words in always
    assert "delta" not in always
    assert "delta 3e-05 together" in reason()
    assert "classic" not in reason(8.0)
    assert "classic" not in reason(2.9, calibration="classic")
    assert "holds below epsilon 1 only" in reason(3.0, calibration="classic")
    assert "class set" in reason(classes=None)


@pytest.mark.parametrize("constant", [2, 4])
def test_no_multiple_of_c_bounds_the_squared_hinge(constant):
    """Rows of norm at most 1: many short ones make long weights, and one long row then pulls as hard as it likes."""
    C, length = 0.05, 0.02
    n = int(0.5 / (C * length**2))
    X = np.full((n + 1, 1), length)
    y = np.ones(n + 1, dtype=int)
    model = published(2, C=C, constant=constant)
    first = silent(model, X, y)
    X[0], y[0] = 1.0, 0
    second = silent(model, X, y)
    assert np.abs(X).max() <= 1.0
    moved = np.linalg.norm(first.coef - second.coef)
    assert moved > 5 * first.guarantees[0].sensitivity
    # The hinge, on the same two datasets, stays within its bound.
    model = sound(2, C=C, data_norm=1.0)
    X[0], y[0] = length, 1
    first = silent(model, X, y)
    X[0], y[0] = 1.0, 0
    second = silent(model, X, y)
    assert np.linalg.norm(first.coef - second.coef) <= first.guarantees[0].sensitivity


@pytest.mark.parametrize("relation", ["replace_one", "add_remove"])
@pytest.mark.parametrize(("method", "times"), [(OPERAAsPublishedClassifier, 3), (PMSVMWPAsPublishedClassifier, 10)])
def test_published_claims_are_refuted_where_rows_are_long(method, times, relation):
    rng = np.random.default_rng(0)
    X, y = rng.uniform(size=(60, 400)), np.arange(60) % 3
    model = method(classes=[0, 1, 2], C=1e-4, allow_unsound=True, neighbours=relation)
    (guarantee,) = model.release_path(X, y, [1.0], 1, 0, audit=True).guarantees
    assert guarantee.witness.neighbours == relation
    assert guarantee.witness.epsilon > times * guarantee.epsilon_requested


def model_for(n_classes, **changes):
    chosen = {"classes": list(range(n_classes)), "C": 0.3, "data_norm": 1.5, **changes}
    return OvRJointGaussianClassifier(**chosen)


def largest_sum_of_squares(n_classes):
    """The bound's largest value over q, by a fine grid: an oracle of the closed form."""
    q = np.linspace(0.0, 0.5, 200_001)
    return np.max((n_classes - 1) * (0.25 - q**2) + (n_classes - 1) / n_classes * (q + 1.5) ** 2)


@pytest.mark.parametrize("n_classes", [3, 4, 5, 7, 10, 26, 1000])
def test_the_closed_form_is_the_largest_value_of_the_bound(n_classes):
    expected = 0.2 * 1.5 * np.sqrt(largest_sum_of_squares(n_classes))
    assert centred_sensitivity(0.2, 1.5, n_classes, "add_remove") == pytest.approx(expected, rel=1e-8)
    assert centred_sensitivity(0.2, 1.5, n_classes, "replace_one") == pytest.approx(2 * expected, rel=1e-8)
    # Never more than with the mean left in.
    assert expected < 0.2 * 1.5 * np.sqrt(n_classes)


def test_two_classes_have_the_sensitivity_of_one_vector():
    assert centred_sensitivity(0.2, 1.5, 2, "replace_one") == pytest.approx(0.6)
    assert centred_sensitivity(0.2, 1.5, 2, "add_remove", 1e-4) == pytest.approx(0.3 + 0.02)
    assert centred_sensitivity(0.2, 1.5, 9, "add_remove", 1e-4) == pytest.approx(0.3 * np.sqrt(17 / 4) + 0.06)
    with pytest.raises(ValueError, match="neighbours="):
        centred_sensitivity(0.2, 1.5, 3, "replace")


@given(st.integers(0, 10**6), st.integers(3, 9), st.integers(1, 9), st.floats(-2, 1.5))
@settings(max_examples=150, deadline=None)
def test_each_class_moves_within_its_ball(seed, n_classes, n, log_C):
    """The step the proof rests on, for exact solutions: |D|^2 <= <D, C s x>."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n + 1, 2))
    X /= np.maximum(1.0, np.linalg.norm(X, axis=1))[:, None]
    y = rng.integers(0, n_classes, size=n + 1)
    C = 10.0**log_C
    gap = 1e-8 * C**2
    moved = solve_one_vs_rest(X, y, n_classes, C, gap) - solve_one_vs_rest(X[1:], y[1:], n_classes, C, gap)
    signs = np.where(np.arange(n_classes) == y[0], 1.0, -1.0)
    centres = C * signs[:, None] * X[0] / 2
    radius = C * np.linalg.norm(X[0]) / 2
    assert np.linalg.norm(moved - centres, axis=1).max() <= radius + 2 * np.sqrt(gap)
    # And what follows from it.
    spread = np.linalg.norm(moved - moved.mean(axis=0))
    assert spread <= centred_sensitivity(C, 1.0, n_classes, "add_remove", gap)


@pytest.mark.parametrize("n_classes", [2, 3, 4])
@pytest.mark.parametrize("relation", ["replace_one", "add_remove"])
def test_one_row_attains_the_bound(n_classes, relation):
    C, norm = 1e-3, 2.0
    row = np.array([[norm, 0.0]])
    other = -row if relation == "replace_one" else np.zeros((1, 2))
    first, second = (solve_centred(X, np.array([1]), n_classes, C, 1e-15) for X in (row, other))
    distance = np.linalg.norm(first - second)
    assert distance == pytest.approx(centred_sensitivity(C, norm, n_classes, relation), rel=1e-6)


def test_the_mean_decides_nothing():
    X, y = scaled(load_digits)
    path = silent(model_for(10, C=0.05), X, y)
    assert np.abs(path.coef[0, 0].mean(axis=0)).max() < 1e-5
    rows = X * np.minimum(1, 1.5 / np.linalg.norm(X, axis=1))[:, None]
    plain = solve_one_vs_rest(rows, y, 10, 0.05, 1e-9)
    theirs = np.argmax(X @ plain.T, axis=1)
    ours = path.codes(path.scores(X, 0))[0]
    assert np.mean(ours == theirs) > 0.995
    assert np.linalg.norm(plain.mean(axis=0)) > 1e-3


def test_one_row_and_two_classes_attain_the_bound():
    C, norm = 1e-3, 2.0
    X = np.array([[norm]])
    first, second = (solve_crammer_singer(X, np.array([label]), 2, C, gap=1e-16).coef for label in (0, 1))
    distance = np.linalg.norm(first - second)
    assert distance == pytest.approx(2 * np.sqrt(2) * C * norm, rel=1e-9)
    assert distance == pytest.approx(weight_sensitivity(C, norm, "replace_one"), rel=1e-9)


@pytest.mark.parametrize("method", [PMSVMWPClassifier, PMSVMWPAsPublishedClassifier, OPERAAsPublishedClassifier])
def test_the_witness_is_the_same_for_sparse_rows(method):
    X, y = load_digits(return_X_y=True)
    X, y = X[:150], y[:150]
    model = method(classes=list(range(10)), C=0.01, data_norm=1.5, allow_unsound=True)
    dense, sparse = (
        model.release_path(rows, y, [1.0], 1, 0, audit=True).guarantees[0].witness.epsilon
        for rows in (X, scipy.sparse.csr_array(X))
    )
    assert dense == pytest.approx(sparse, rel=0.02)


def test_a_limit_on_the_passes_takes_the_proof_away():
    """Whether a limit is hit depends on the rows, and so would the released model."""
    X, y = load_digits(return_X_y=True)
    with pytest.raises(ValueError, match="max_epochs=3"):
        sound(10, PMSVMWPClassifier, max_epochs=3).fit(X, y)
    guarantee = sound(10, PMSVMWPClassifier, C=100.0, max_epochs=3, allow_unsound=True).fit(X, y).guarantee_
    assert guarantee.status == "claimed"
    assert "stops after a given number of passes" in guarantee.reason


@pytest.mark.parametrize(("C", "norm"), [(1e-16, 1.0), (1e-170, 1.0), (1.0, 1e-8), (1e160, 1.0)])
def test_what_float64_cannot_certify_is_refused(C, norm):
    with pytest.raises(ValueError, match="C="):
        sound(3, PMSVMWPClassifier, C=C, data_norm=norm).fit(*load_wine(return_X_y=True))


def test_published_variant_agrees_with_liblinear_on_two_classes():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(80, 3))
    y = (X[:, 0] > 0).astype(int)
    published = PMSVMWPAsPublishedClassifier(allow_unsound=True, classes=[0, 1], C=0.1)._solve(X, y, 2, 0.0)
    ours = solve_crammer_singer(X, y, 2, 0.1, gap=1e-12).coef
    assert np.allclose(published, ours, atol=1e-3)
