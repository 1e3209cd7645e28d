"""PMSVM with gradient perturbation, softmax DP-SGD and GRPUA: shared behaviour and promises."""

import math

import numpy as np
import pytest
from sklearn.datasets import load_wine

from privsvm import GRPUAClassifier, PMSVMAGPClassifier, PMSVMGPClassifier, SoftmaxDPSGDClassifier
from privsvm.families.gradients.noisy_training import training_plan
from privsvm.privacy.accounting import gaussian_noise_multiplier
from privsvm.privacy.mechanisms import SampledGaussianSteps

FAST = {"batch_size": 64, "epochs": 2}


def gradient(**changes):
    return PMSVMGPClassifier(**{"classes": [0, 1, 2], **FAST, **changes})


def adaptive(**changes):
    return PMSVMAGPClassifier(**{"classes": [0, 1, 2], "learning_rate": 0.1, **FAST, **changes})


def softmax(**changes):
    return SoftmaxDPSGDClassifier(**{"classes": [0, 1, 2], **FAST, **changes})


def grpua(**changes):
    return GRPUAClassifier(**{"classes": [0, 1, 2], **FAST, **changes})


ALL = [gradient, adaptive, softmax, grpua]


def wine():
    X, y = load_wine(return_X_y=True)
    return X / X.max(axis=0) * 2 - 1, y


@pytest.mark.parametrize(
    ("n_rows", "batch_size", "epochs", "rate", "steps", "batch"),
    [
        (100, 30, 2, 1 / 4, 8, 25.0),
        (None, 64, 3, 1 / 2, 6, 89 / 2),
        (100, None, 7, 1.0, 7, 100.0),
        (10, 50, 1, 1.0, 1, 10.0),
    ],
)
def test_plan_follows_from_public_numbers(n_rows, batch_size, epochs, rate, steps, batch):
    plan = training_plan(n_rows, 89, batch_size, epochs)
    assert (plan.sample_rate, plan.n_steps, plan.expected_batch) == (rate, steps, batch)
    assert plan.declared == (n_rows is not None)


@pytest.mark.parametrize("method", ALL)
def test_record_names_the_public_numbers(method):
    X, y = wine()
    model = method(epsilon=0.7, delta=1e-6, neighbours="add_remove", n_rows=170, random_state=0).fit(X, y)
    guarantee = model.guarantee_
    assert guarantee.status == "seeded"
    assert model.privacy_ is guarantee
    assert guarantee.neighbours == "add_remove"
    # The shares of binary problems are added to choose the noise, and cost less together.
    assert (0.5 if method is grpua else 1 - 0.01) * 0.7 <= guarantee.epsilon_with_system_noise <= 0.7
    assert guarantee.delta == 1e-6
    assert (model.sample_rate_, model.n_steps_) == (1 / 3, 6)
    public = next(item for item in guarantee.assumptions if "n_rows" in item)
    for text in ("n_rows=170 (declared)", "sample_rate=0.333333", "n_steps=6", "class set", "scaling bounds"):
        assert text in public
    if method is not grpua:
        mechanism = SampledGaussianSteps(
            epsilon=0.7, delta=1e-6, neighbours="add_remove", sample_rate=1 / 3, n_steps=6, max_grad_norm=1.0
        )
        assert model.noise_multiplier_ == mechanism.noise_multiplier
        assert guarantee.noise_scale == mechanism.noise_scale


@pytest.mark.parametrize("method", ALL)
def test_weights_depend_on_the_seed_alone(method):
    X, y = wine()
    paths = [method(n_jobs=n_jobs).release_path(X, y, [1.0, 4.0], 3, 5) for n_jobs in (None, 2, 5)]
    assert len({path.coef.tobytes() + path.intercept.tobytes() for path in paths}) == 1
    alone = method(n_jobs=4).release_path(X, y, [4.0], 2, 5)
    assert np.array_equal(alone.coef[0], paths[0].coef[1, :2])
    assert not np.array_equal(paths[0].coef[0, 0], paths[0].coef[0, 1])
    first, second = (method().fit(X, y).coef_ for _ in range(2))
    assert not np.array_equal(first, second)


def test_naive_shares_of_the_budget_cost_more_noise_than_they_need():
    X, y = wine()
    naive, joint = (grpua(composition=name, random_state=0, epsilon=2.0).fit(X, y) for name in ("naive", "joint"))
    assert naive.coef_.shape == joint.coef_.shape == (3, 13)
    assert 2.0 * 0.99 <= joint.guarantee_.epsilon_with_system_noise <= 2.0
    # Shares are added to choose the noise; the releases together cost less.
    assert 1.0 < naive.guarantee_.epsilon_with_system_noise < 1.5
    assert naive.guarantee_.verify().epsilon == pytest.approx(naive.guarantee_.epsilon_with_system_noise, rel=1e-2)
    assert "3 times" in naive.guarantee_.mechanism
    assert naive.noise_multiplier_ > 1.5 * joint.noise_multiplier_


@pytest.mark.parametrize("relation", ["replace_one", "add_remove"])
def test_naive_problems_get_their_share_of_epsilon_and_of_delta(relation):
    """As the record states, each of three has the noise of a third of epsilon at a third of delta."""
    budget = {"epsilon": 1.5, "delta": 3e-5, "neighbours": relation, "n_rows": 178, "batch_size": None}
    model = grpua(composition="naive", random_state=0, **budget)
    X, y = load_wine(return_X_y=True)
    model.fit(X, y)
    multiplier = (
        gaussian_noise_multiplier(0.5, 1e-5) * (2 if relation == "replace_one" else 1) * math.sqrt(model.n_steps_)
    )
    assert model.noise_multiplier_ == pytest.approx(multiplier, rel=1e-4)
    assert model.noise_multiplier_ >= multiplier * (1 - 1e-9)


def test_naive_problems_share_no_noise():
    """Rows of zeros leave nothing but noise: the same in two problems, it would cancel in their difference."""
    _, y = wine()
    coef = grpua(composition="naive", random_state=0).fit(np.zeros((len(y), 40)), y).coef_
    assert coef.all()
    assert np.unique(np.abs(coef)).size == coef.size


def test_two_classes_make_one_binary_problem():
    X, y = wine()
    model = grpua(classes=[0, 1], random_state=0, epsilon=8.0).fit(X[y < 2], y[y < 2])
    assert model.coef_.shape == (1, 13)
    assert model.decision_function(X).shape == (178,)
    both = gradient(classes=[0, 1], random_state=0, epsilon=8.0).fit(X[y < 2], y[y < 2])
    assert both.coef_.shape == (2, 13)
    assert np.array_equal(both.predict(X), (both.decision_function(X) > 0).astype(int))
