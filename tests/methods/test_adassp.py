import math

import numpy as np
import pytest

from privsvm.families.moments.second_moments import Moments
from privsvm.methods.adassp import AdaSSPClassifier, ridge_weights

RNG = np.random.default_rng(0)


def moments_of(n_rows, n_features, noise):
    """Moments of rows whose last feature is rare, with symmetric noise."""
    rows = RNG.normal(size=(n_rows, n_features)) * np.append(np.ones(n_features - 1), 0.01)
    drawn = np.triu(RNG.normal(size=(n_features, n_features)) * noise, 1)
    gram = rows.T @ rows + drawn + drawn.T + np.diag(RNG.normal(size=n_features) * noise * math.sqrt(2.0))
    return rows, Moments(gram, rows.T @ RNG.normal(size=(n_rows, 2)))


def test_without_noise_it_is_least_squares():
    rows, moments = moments_of(300, 6, 0.0)
    target = np.linalg.solve(rows.T @ rows, moments.cross)
    assert np.allclose(ridge_weights(moments, 1e-9), target, rtol=1e-6)


@pytest.mark.parametrize("noise", [0.3, 30.0, 3e4])
def test_the_ridge_is_what_the_smallest_eigenvalue_falls_short_of(noise):
    """Wang's Algorithm 2: all that is inverted is at least as large as the noise, and no ridge is added in vain."""
    for _ in range(20):
        _, moments = moments_of(300, 6, noise)
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
