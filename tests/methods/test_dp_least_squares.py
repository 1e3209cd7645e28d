import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from tests.adversarial import scaled, silent

from privsvm.families.moments.second_moments import Moments, simplex_codes, solve_noisy_moments
from privsvm.methods.dp_feature_covariance import DPFeatureCovarianceClassifier
from privsvm.methods.dp_least_squares import DPLeastSquaresClassifier
from privsvm.methods.dp_newton import DPNewtonClassifier

METHODS = [DPLeastSquaresClassifier, DPFeatureCovarianceClassifier, DPNewtonClassifier]


def model_for(n_classes, **changes):
    return DPLeastSquaresClassifier(**{"classes": list(range(n_classes)), "random_state": 0, **changes})


@pytest.mark.parametrize("load", [load_breast_cancer, load_digits])
def test_without_noise_it_is_least_squares(load):
    X, y = scaled(load)
    n_classes = len(set(y))
    path = silent(model_for(n_classes), X, y, 40.0)
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
