import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from tests.adversarial import Silence, scaled

from privsvm import LandmarkDualClassifier
from privsvm.methods.landmark_dual import landmark_map
from privsvm.solvers.features.row_features import landmark_row_features


def model_for(n_classes, **changes):
    chosen = {"classes": list(range(n_classes)), "C": 0.3, "gamma": 0.05, "n_landmarks": 30, **changes}
    return LandmarkDualClassifier(**chosen)


def weights_of(path, gamma):
    """Primal weights (k, m) that belong to the dual variables of a path of one model."""
    return np.linalg.solve(landmark_map(path.support_vectors, gamma), path.pair_coef[0, 0]).T


def test_a_flipped_label_on_a_landmark_attains_the_bound():
    """On a landmark the feature vector has norm 1, so one row moves the weights by 2 C."""
    C, gamma = 1e-3, 0.7
    landmarks = [[0.0, 0.0], [1.0, 1.0]]
    model = model_for(2, landmarks=landmarks, C=C, gamma=gamma, landmarks_public=True, gap=1e-15)
    paths = [model.release_path([[1.0, 1.0]], [y], [1.0], 1, lambda e, r: Silence()) for y in (0, 1)]
    distance = np.linalg.norm(weights_of(paths[0], gamma) - weights_of(paths[1], gamma))
    assert distance == pytest.approx(2 * C, rel=2e-4)
    assert 2 * C <= paths[0].guarantees[0].sensitivity <= 2 * C * 1.001


@pytest.mark.parametrize("load", [load_breast_cancer, load_wine])
def test_the_kernel_expansion_scores_as_the_noisy_weights_on_the_features(load):
    X, y = scaled(load)
    n_classes = y.max() + 1
    noise = {}

    class Recorder(Silence):
        def rounded_normals(self, sigma, size):
            noise["w"] = np.rint(np.random.default_rng(1).normal(0.0, sigma, size)).astype(np.int64)
            noise["scale"] = sigma
            return noise["w"]

    model = model_for(n_classes)
    noisy = model.release_path(X, y, [2.0], 1, lambda e, r: Recorder())
    exact = model.release_path(X, y, [2.0], 1, lambda e, r: Silence())
    root = landmark_map(noisy.support_vectors, 0.05)
    features = landmark_row_features(X, noisy.support_vectors, 0.05, root)
    k = 1 if n_classes == 2 else n_classes
    difference = noisy.scores(X, 0)[0] - exact.scores(X, 0)[0]
    weights_noise = noise["w"] * (noisy.guarantees[0].noise_scale / noise["scale"])
    grid = noisy.guarantees[0].sensitivity * 1e-6
    assert np.allclose(difference, features @ weights_noise.reshape(k, -1).T, atol=3 * grid)
    weights = (np.linalg.inv(root) @ noisy.pair_coef[0, 0]).T
    assert np.allclose(noisy.scores(X, 0)[0], features @ weights.T, atol=1e-9)


def test_landmarks_are_public():
    X, y = scaled(load_wine)
    first, second = (model_for(3).release_path(rows, y, [1.0], 1, 0) for rows in (X, X**3))
    assert np.array_equal(first.support_vectors, second.support_vectors)
    assert np.abs(first.support_vectors).max() <= 1.0
    other = model_for(3, landmarks_seed=1, bounds=(0.0, 0.5)).fit(X, y)
    assert other.landmarks_.min() >= 0.0
    assert other.landmarks_.max() <= 0.5
    given = model_for(3, landmarks=X[:7] * 0.5, landmarks_public=True).fit(X, y)
    assert np.array_equal(given.landmarks_, X[:7] * 0.5)
    assert any("given by the user" in line for line in given.guarantee_.assumptions)
    wide = model_for(3, bounds=(np.full(13, -2.0), np.arange(13.0))).fit(X, y)
    assert (wide.landmarks_ <= np.arange(13.0)).all()


def test_given_landmarks_need_a_word_that_they_are_public():
    X, y = scaled(load_wine)
    with pytest.raises(ValueError, match=r"landmarks_public=False: .*landmarks_public=True"):
        model_for(3, landmarks=X[:7]).fit(X, y)
    guarantee = model_for(3, landmarks=X[:7], allow_unsound=True).fit(X, y).guarantee_
    assert guarantee.status == "claimed"
    assert "landmarks" in guarantee.reason
    for model in (model_for(3, landmarks=X[:7], landmarks_public=True), model_for(3, allow_unsound=True)):
        assert model.fit(X, y).guarantee_.status == "proved"


@pytest.mark.parametrize("load", [load_breast_cancer, load_digits])
def test_features_of_norm_one_predict_as_they_were_trained(load):
    """The release is an expansion of features of any length; no label depends on a row's length."""
    X, y = scaled(load)
    n_classes = y.max() + 1
    path = model_for(n_classes).release_path(X, y, [4.0], 1, 0)
    root = landmark_map(path.support_vectors, 0.05)
    features = landmark_row_features(X, path.support_vectors, 0.05, root)
    features /= np.linalg.norm(features, axis=1, keepdims=True)
    scores = features @ weights_of(path, 0.05).T
    codes = np.argmax(scores, axis=1) if n_classes > 2 else (scores[:, 0] > 0).astype(int)
    assert (path.codes(path.scores(X, 0))[0] == codes).mean() > 0.999


@pytest.mark.parametrize("landmarks", [[], [[0.0, 1.0]], np.zeros(13), np.full((2, 13), np.inf)])
def test_bad_landmarks_are_named(landmarks):
    X, y = scaled(load_wine)
    with pytest.raises(ValueError, match="landmarks="):
        model_for(3, landmarks=landmarks, landmarks_public=True).fit(X, y)
