import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.svm import LinearSVC
from tests.adversarial import scaled, silent

from privsvm.methods.opera import OPERAClassifier
from privsvm.methods.opera_as_published import OPERAAsPublishedClassifier
from privsvm.methods.pmsvm_wp_as_published import PMSVMWPAsPublishedClassifier
from privsvm.privacy.accounting import gaussian_noise_multiplier


def sound(n_classes, **changes):
    chosen = {"classes": list(range(n_classes)), "C": 0.3, "data_norm": 1.5, **changes}
    return OPERAClassifier(**chosen)


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
