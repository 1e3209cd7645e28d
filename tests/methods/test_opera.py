import numpy as np
import pytest
import scipy.sparse
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.svm import LinearSVC
from tests.adversarial import Silence, scaled

from privsvm.methods.opera import OPERAClassifier
from privsvm.methods.opera_as_published import OPERAAsPublishedClassifier, classic_noise_multiplier
from privsvm.privacy.accounting import gaussian_epsilon, gaussian_noise_multiplier


def sound(n_classes, **changes):
    chosen = {"classes": list(range(n_classes)), "C": 0.3, "data_norm": 1.5, **changes}
    return OPERAClassifier(**chosen)


def published(n_classes, **changes):
    chosen = {"classes": list(range(n_classes)), "C": 0.005, "allow_unsound": True}
    return OPERAAsPublishedClassifier(**{**chosen, **changes})


METHODS = {"sound": OPERAClassifier, "as_published": OPERAAsPublishedClassifier}


def either(variant, n_classes, **changes):
    chosen = {"classes": list(range(n_classes)), "C": 0.3, "data_norm": 1.5, "allow_unsound": True, **changes}
    return METHODS[variant](**chosen)


def silent(model, X, y):
    """The path with noise that is zero: exact weights, on the mechanism's grid."""
    return model.release_path(X, y, [1.0], 1, lambda epsilon, repeat: Silence())


def test_guarantee_of_the_sound_variant():
    X, y = scaled(load_wine, 0.0)
    naive, joint = (
        sound(3, epsilon=0.9, delta=1e-6, composition=composition, random_state=0).fit(X, y).guarantee_
        for composition in ("naive", "joint")
    )
    for guarantee in (naive, joint):
        assert guarantee.status == "seeded"
        assert guarantee.delta == 1e-6
    assert 0.9 * (1 - 1e-6) <= joint.epsilon_with_system_noise <= 0.9
    # The shares of the budget are added to choose the noise; the releases together cost less.
    joint_multiplier = naive.noise_scale / naive.sensitivity / np.sqrt(3)
    assert naive.epsilon_with_system_noise == pytest.approx(gaussian_epsilon(joint_multiplier, 1e-6), rel=1e-6)
    assert naive.epsilon_with_system_noise < 0.6
    assert naive.sensitivity == pytest.approx(2 * 0.3 * 1.5, rel=0.016)
    assert naive.noise_scale == pytest.approx(naive.sensitivity * gaussian_noise_multiplier(0.3, 1e-6 / 3), rel=1e-6)
    assert joint.sensitivity == pytest.approx(np.sqrt(3) * naive.sensitivity, rel=1e-5)
    assert joint.noise_scale == pytest.approx(joint.sensitivity * gaussian_noise_multiplier(0.9, 1e-6), rel=1e-9)
    assert joint.noise_scale < 0.65 * naive.noise_scale
    stated = " | ".join(naive.assumptions)
    for words in ("rows have norm at most 1.5", "others are refused", "outside the guarantee", "seed is secret"):
        assert words in stated
    assert sound(3).composition == OPERAClassifier().composition == "naive"


def test_sparse_rows_give_the_same_published_model():
    X, y = scaled(load_digits, 0.0)
    X, y = np.where(X < 0.4, 0.0, X)[:300], y[:300]
    model = published(10, C=0.05, data_norm=1.5)
    dense, sparse = (model.release_path(rows, y, [1.0], 2, 0, audit=True) for rows in (X, scipy.sparse.csr_matrix(X)))
    assert np.allclose(dense.coef, sparse.coef, atol=1e-3)
    for one, other in zip(dense.guarantees, sparse.guarantees, strict=True):
        assert one.noise_scale == other.noise_scale
        assert one.witness.epsilon == pytest.approx(other.witness.epsilon, rel=0.02)


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
def test_published_claim_is_refuted_where_rows_are_long(relation):
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(60, 400))
    y = np.arange(60) % 3
    model = published(3, C=1e-4, neighbours=relation)
    guarantee = model.release_path(X, y, [1.0], 1, 0, audit=True).guarantees[0]
    assert guarantee.witness.neighbours == relation
    assert guarantee.witness.epsilon > 3 * guarantee.epsilon_requested


@pytest.mark.parametrize("variant", ["sound", "as_published"])
@pytest.mark.parametrize("labels", [[0, 0, 0, 0], [0, 0, 1, 1]])
def test_classes_without_rows_keep_their_place(variant, labels):
    X = np.array([[0.0, 1.0], [0.0, 0.9], [1.0, 0.0], [0.9, 0.0]])
    model = either(variant, 4, C=1.0, epsilon=1e6, random_state=0).fit(X, labels)
    assert model.coef_.shape == (4, 2)
    assert model.predict(X).tolist() == labels
    # Nothing speaks for them: their scores are negative.
    missing = model.decision_function(X)[:, 2:]
    assert missing.max() < 0.0


def test_what_needs_consent_raises_without_it():
    X, y = scaled(load_wine, 0.0)
    with pytest.raises(ValueError, match="allow_unsound=False: the epsilon of OPERA as published does not hold"):
        published(3, allow_unsound=False).fit(X, y)


def test_the_classic_bound():
    assert classic_noise_multiplier(0.5, 1e-5) == pytest.approx(2 * np.sqrt(2 * np.log(125_000)))
    # The classical bound asks for more noise than the analytic one where it holds.
    assert classic_noise_multiplier(0.5, 1e-5) > gaussian_noise_multiplier(0.5, 1e-5)
