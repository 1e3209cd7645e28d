import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.svm import LinearSVC
from tests.adversarial import scaled, silent
from tests.objectives import hinge_objective

from privsvm import (
    PrivateSVMClassifier,
    PrivateSVMLaplaceClassifier,
    PrivateSVMRBFClassifier,
    PrivateSVMRBFLaplaceClassifier,
)
from privsvm.solvers.features.fourier import fourier_features

CLASSES = {
    ("linear", "gaussian"): PrivateSVMClassifier,
    ("linear", "laplace"): PrivateSVMLaplaceClassifier,
    ("rbf", "gaussian"): PrivateSVMRBFClassifier,
    ("rbf", "laplace"): PrivateSVMRBFLaplaceClassifier,
}


def model_for(n_classes, kernel="linear", mechanism="gaussian", **changes):
    """Make the estimator of a kernel and a mechanism, with the parameters that it declares."""
    noise, _, published = mechanism.partition("_as_")
    chosen = {"classes": list(range(n_classes)), "C": 0.3, "data_norm": 1.5, **changes}
    if published:
        chosen["constant"] = published
    method = CLASSES[kernel, noise]
    return method(**{name: value for name, value in chosen.items() if name in method.declared})


@pytest.mark.parametrize(("relation", "times"), [("replace_one", 2), ("add_remove", 1)])
def test_one_row_attains_the_bound_in_both_norms(relation, times):
    """A row with equal features, and its label flipped (or the row removed: a row of zeros is as good)."""
    C, norm, d = 1e-3, 2.0, 16
    row = np.full((1, d), norm / np.sqrt(d))
    other = (row, [1]) if relation == "replace_one" else (np.zeros((1, d)), [1])
    for mechanism, bound in (("gaussian", times * C * norm), ("laplace", times * C * norm * np.sqrt(d))):
        model = model_for(2, C=C, data_norm=norm, mechanism=mechanism, neighbours=relation, gap=1e-14)
        paths = [silent(model, *data) for data in ((row, [0]), other)]
        distance = np.linalg.norm((paths[0].coef - paths[1].coef).ravel(), 2 if mechanism == "gaussian" else 1)
        assert distance == pytest.approx(bound, rel=2e-4)
        assert bound <= paths[0].guarantees[0].sensitivity <= bound * 1.001


@pytest.mark.parametrize(("kernel", "n_numbers"), [("linear", 30), ("rbf", 40)])
def test_laplace_scale_is_the_paper_s_and_sacro_ml_s(kernel, n_numbers):
    """4 C kappa sqrt(F) / epsilon, and 2^2.5 C sqrt(D) / epsilon for D frequencies; half of it is enough."""
    X, y = scaled(load_breast_cancer)
    published, tight = (
        model_for(2, C=0.1, data_norm=1.0, kernel=kernel, n_components=20, mechanism=mechanism, epsilon=0.8)
        .release_path(X, y, [0.8], 1, 0)
        .guarantees[0]
        for mechanism in ("laplace_as_published", "laplace")
    )
    assert published.noise_scale == pytest.approx(4 * 0.1 * np.sqrt(n_numbers) / 0.8, rel=1e-5)
    if kernel == "rbf":
        assert published.noise_scale == pytest.approx(2**2.5 * 0.1 * np.sqrt(20) / 0.8, rel=1e-5)
    assert tight.noise_scale == pytest.approx(published.noise_scale / 2, rel=0.02)
    for guarantee in (published, tight):
        assert (guarantee.status, guarantee.delta) == ("seeded", 0.0)
        assert 0.8 * (1 - 1e-6) <= guarantee.epsilon_with_system_noise <= 0.8


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_without_noise_it_is_the_hinge_svm(kernel):
    X, y = scaled(load_breast_cancer)
    model = model_for(2, C=0.5, kernel=kernel, gamma=0.05, n_components=60, gap=1e-6)
    path = silent(model, X, y)
    rows = X * np.minimum(1, 1.5 / np.linalg.norm(X, axis=1))[:, None]
    if kernel == "rbf":
        rows = fourier_features(X, path.step("fourier")["frequencies"])
    signs = np.where(y == 1, 1.0, -1.0)
    theirs = LinearSVC(loss="hinge", C=0.5, fit_intercept=False, tol=1e-8, max_iter=10**6).fit(rows, y)
    best = hinge_objective(rows, signs, theirs.coef_[0], 0.5)
    assert hinge_objective(rows, signs, path.coef[0, 0, 0], 0.5) == pytest.approx(best, rel=1e-6)


def test_the_audit_of_two_classes_comes_close_to_the_bound():
    X, y = scaled(load_breast_cancer)
    for relation in ("replace_one", "add_remove"):
        path = model_for(2, C=1e-3, neighbours=relation).release_path(X, y, [1.0], 1, 0, audit=True)
        witness = path.guarantees[0].witness
        assert witness.neighbours == relation
        assert 0.8 < witness.epsilon <= path.guarantees[0].epsilon_with_system_noise


def test_scores_are_those_of_the_released_features():
    X, y = scaled(load_wine)
    path = model_for(3, kernel="rbf").release_path(X, y, [0.5, 8.0], 2, 0)
    expected = fourier_features(X, path.step("fourier")["frequencies"]) @ path.coef[1, 1].T
    assert np.allclose(path.scores(X, 1)[1], expected, atol=1e-12)


def test_features_depend_on_their_public_seed_and_not_on_the_rows():
    X, y = scaled(load_wine)
    first, second, third = (
        model_for(3, kernel="rbf", features_seed=seed).release_path(rows, y, [1.0], 1, 0)
        for seed, rows in ((0, X), (0, X[::-1] ** 3), (1, X))
    )
    assert np.array_equal(first.step("fourier")["frequencies"], second.step("fourier")["frequencies"])
    assert not np.array_equal(first.step("fourier")["frequencies"], third.step("fourier")["frequencies"])
    assert any("seed 1" in line for line in third.guarantees[0].assumptions)
