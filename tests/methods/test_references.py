"""Non-private multi-class references: Crammer-Singer, Weston-Watkins and M3."""

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.exceptions import ConvergenceWarning
from tests.adversarial import scaled
from tests.objectives import crammer_singer_objective, hinge_objective

from privsvm.methods.crammer_singer import CrammerSingerClassifier
from privsvm.methods.m3_svm import M3SVMClassifier
from privsvm.methods.weston_watkins import WestonWatkinsClassifier
from privsvm.solvers.linear.hinge import solve_hinge

ESTIMATORS = [CrammerSingerClassifier(), WestonWatkinsClassifier(), M3SVMClassifier()]


def names(estimator):
    return type(estimator).__name__


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=names)
class TestEveryReference:
    def test_two_classes_keep_two_vectors(self, estimator):
        X, y = scaled(load_breast_cancer, 0.0)
        labels = np.array(["malignant", "benign"])[y]
        model = clone(estimator).set_params(C=3.0).fit(X, labels)
        assert model.coef_.shape == (2, 30)
        assert model.intercept_.shape == (2,)
        values = model.decision_function(X)
        assert values.shape == (len(y),)
        assert np.array_equal(model.predict(X) == model.classes_[1], values > 0)
        assert model.score(X, labels) > 0.95

    def test_a_limit_is_checked_and_reported(self, estimator):
        X, y = scaled(load_digits, 0.0)
        name = "max_epochs" if isinstance(estimator, CrammerSingerClassifier) else "max_iter"
        with pytest.warns(ConvergenceWarning, match=f"{name}=3"):
            model = clone(estimator).set_params(**{name: 3}).fit(X, y)
        assert model.n_iter_ <= 3


@pytest.mark.parametrize("C", [1e-3, 10.0])
def test_crammer_singer_is_certified(C):
    """`tests/solvers/test_hinge.py` compares the solver with LIBLINEAR."""
    X, y = scaled(load_wine, 0.0)
    model = CrammerSingerClassifier(C=C).fit(X, y)
    assert model.gap_ <= 1e-4 * model.objective_
    assert model.dual_objective_ <= model.objective_
    assert model.gap_ == pytest.approx(model.objective_ - model.dual_objective_, rel=1e-6, abs=1e-9)
    assert model.objective_ == pytest.approx(crammer_singer_objective(X, y, model.coef_, C), rel=1e-12)
    assert np.array_equal(model.intercept_, np.zeros(len(model.classes_)))


def test_a_gap_beyond_float64_ends():
    X, y = scaled(load_wine, 0.0)
    model = CrammerSingerClassifier(C=0.1, gap=1e-30).fit(X, y)
    assert model.gap_ < 1e-10 * model.objective_


def published_objective(X, y, model, coef, intercept):
    """Compute the papers' objective by loops over rows, classes and pairs of classes."""
    total, n_classes = 0.0, len(coef)
    for row, label in zip(X, y, strict=True):
        scores = coef @ row + intercept
        for k in set(range(n_classes)) - {label}:
            violation = 1 - (scores[label] - scores[k])
            total += model.C * (violation + np.sqrt(violation**2 + model.smoothing**2)) / 2
    if isinstance(model, WestonWatkinsClassifier):
        return total + 0.5 * sum(w @ w for w in coef)
    total += sum(0.5 * (coef[k] - coef[m]) @ (coef[k] - coef[m]) for k in range(n_classes) for m in range(k))
    return total + model.ridge * ((coef**2).sum() + (intercept**2).sum())


@pytest.mark.parametrize("C", [0.05, 2.0])
@pytest.mark.parametrize(
    "model",
    [
        WestonWatkinsClassifier(smoothing=0.1),
        WestonWatkinsClassifier(smoothing=0.1, fit_intercept=True),
        M3SVMClassifier(smoothing=0.1, ridge=0.3),
        M3SVMClassifier(smoothing=0.1, ridge=0.3, fit_intercept=False),
    ],
    ids=["weston_watkins", "weston_watkins_offsets", "m3", "m3_without_offsets"],
)
def test_smoothed_references_minimise_what_is_published(model, C):
    """No direct minimisation, which knows neither gradients nor that weights add up to zero, ends lower."""
    X, y = scaled(load_wine, 0.0)
    X, y = X[::9, :3] + 0.5, y[::9]
    model = clone(model).set_params(C=C, tol=1e-7).fit(X, y)
    assert model.objective_ == pytest.approx(published_objective(X, y, model, model.coef_, model.intercept_))

    def objective(v):
        V = v.reshape(3, 4)
        return published_objective(X, y, model, V[:, :3], V[:, 3] * model.fit_intercept)

    start = np.random.default_rng(0).normal(size=12)
    direct = scipy.optimize.minimize(objective, start, method="BFGS", options={"gtol": 1e-5})
    assert model.objective_ <= direct.fun * (1 + 1e-8)
    V = direct.x.reshape(3, 4)
    assert direct.fun == pytest.approx(model.objective_, rel=1e-6)
    assert np.allclose(V[:, :3], model.coef_, atol=1e-3)


@pytest.mark.parametrize("C", [1e-3, 0.1, 10.0])
def test_two_classes_are_a_binary_svm(C):
    X, y = scaled(load_breast_cancer, 0.0)
    signs = np.where(y == 1, 1.0, -1.0)
    excess = C * len(y) * 1e-3 / 2
    # Weston-Watkins: u = w_1 - w_0 has ||W||^2 = ||u||^2 / 2, so the objective is half the binary one with 2 C.
    # M3: 1/2 ||u||^2 + ridge ||u||^2 / 2, so (1 + ridge) times the binary objective with C / (1 + ridge).
    for model, weight, factor in (
        (WestonWatkinsClassifier(C=C, smoothing=1e-3, tol=1e-7), 2 * C, 0.5),
        (M3SVMClassifier(C=C, smoothing=1e-3, ridge=0.2, fit_intercept=False, tol=1e-7), C / 1.2, 1.2),
    ):
        model.fit(X, y)
        binary = solve_hinge(X, signs, weight, 1e-7 * C)
        best = hinge_objective(X, signs, binary.coef, weight) * factor
        assert best - 1e-6 * C <= model.objective_ <= best + excess + 1e-7 * best


def test_rows_without_features_and_labels_that_contradict_end():
    cases = [
        (np.zeros((3, 2)), [0, 1, 2]),
        (np.ones((1, 2)), [1]),
        (np.vstack([np.ones((4, 2)), -np.ones((4, 2))]), [0, 1] * 4),
    ]
    for X, y in cases:
        for model in (WestonWatkinsClassifier(C=2.0, classes=[0, 1, 2]), M3SVMClassifier(C=2.0, classes=[0, 1, 2])):
            model.fit(X, y)
            assert np.isfinite(model.coef_).all()
            assert np.abs(model.coef_.sum(axis=0)).max() < 1e-12


@pytest.mark.parametrize("C", [1e-300, 1e-303, 5e-324, 1e308])
@pytest.mark.parametrize("size", [1e-150, 1.0, 1e150])
def test_no_weight_keeps_crammer_singer_from_its_end(C, size):
    """It ends with its certificate, or says at once that float64 cannot tell solutions apart."""
    X, y = scaled(load_wine, 0.0)
    model = CrammerSingerClassifier(C=C)
    if 1e-4 * C * len(y) < 2.0**-1022:
        with pytest.raises(ValueError, match=r"^C=4.94066e-324, gap=0.0001: [^\n]*use a larger C$"):
            model.fit(X[::6] * size, y[::6])
        return
    model.fit(X[::6] * size, y[::6])
    assert np.isfinite(model.coef_).all()
    assert model.gap_ <= 1e-4 * model.objective_
