import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_digits
from tests.adversarial import scaled, silent

from privsvm.families.output_perturbation.perturbation import solve_one_vs_rest
from privsvm.methods.ovr_joint_gaussian import OvRJointGaussianClassifier, centred_sensitivity, solve_centred


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
