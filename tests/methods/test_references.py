"""Non-private multi-class references: Crammer-Singer, Weston-Watkins and M3."""

import math

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC
from tests.adversarial import scaled
from tests.objectives import crammer_singer_objective, hinge_objective

from privsvm.base.stored_paths import path_from_arrays
from privsvm.methods.crammer_singer import CrammerSingerClassifier
from privsvm.methods.m3_svm import M3SVMClassifier
from privsvm.methods.weston_watkins import WestonWatkinsClassifier
from privsvm.solvers.linear.hinge import solve_hinge

ESTIMATORS = [CrammerSingerClassifier(), WestonWatkinsClassifier(), M3SVMClassifier()]


def names(estimator):
    return type(estimator).__name__


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=names)
class TestEveryReference:
    def test_it_is_not_private_and_says_so(self, estimator):
        X, y = scaled(load_wine, 0.0)
        path = clone(estimator).release_path(X, y, [1.0, 2.0], 5, 0, audit=True)
        (guarantee,) = path.guarantees
        assert guarantee.status == "none"
        assert "non-private" in guarantee.reason
        assert guarantee.epsilon_proved == math.inf
        assert path.kind == "linear"
        assert path.epsilons == (math.inf,)
        assert path.coef.shape == (1, 1, 3, 13)
        assert path.fit_seconds > 0.0

    def test_a_stored_path_predicts_the_same(self, estimator):
        X, y = scaled(load_wine, 0.0)
        model = clone(estimator).fit(X, y)
        path = model.release_path(X, y, [1.0], 1)
        again = path_from_arrays(path.kind, path.arrays(), epsilons=path.epsilons, guarantees=path.guarantees,
                                 n_classes=path.n_classes)  # fmt: skip
        assert np.array_equal(again.codes(again.scores(X, 0))[0], model.predict(X))
        assert np.allclose(model.decision_function(X), X @ model.coef_.T + model.intercept_)

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

    def test_it_learns_ten_classes(self, estimator):
        X, y = scaled(load_digits, 0.0)
        assert clone(estimator).set_params(C=0.1).fit(X, y).score(X, y) > 0.95

    def test_sparse_rows_give_the_same_model(self, estimator):
        X, y = scaled(load_digits, 0.0)
        X = np.where(X < 0.4, 0.0, X)
        tight = {"gap": 1e-10} if isinstance(estimator, CrammerSingerClassifier) else {"tol": 1e-8}
        dense, sparse = (
            clone(estimator).set_params(C=0.02, **tight).fit(rows, y) for rows in (X, scipy.sparse.csr_matrix(X))
        )
        assert np.allclose(dense.coef_, sparse.coef_, atol=2e-4)
        assert np.allclose(dense.decision_function(X), sparse.decision_function(scipy.sparse.csr_array(X)), atol=2e-3)

    def test_a_class_without_rows_keeps_its_place(self, estimator):
        X, y = scaled(load_wine, 0.0)
        model = clone(estimator).set_params(classes=[2, 7, 1, 0]).fit(X, y)
        assert model.classes_.tolist() == [2, 7, 1, 0]
        assert model.coef_.shape == (4, 13)
        assert model.score(X, y) > 0.9
        assert 7 not in model.predict(X)

    @pytest.mark.parametrize("value", [0, -1.0, math.inf, math.nan, True, "1"])
    def test_bad_numbers_are_named(self, estimator, value):
        X, y = scaled(load_wine, 0.0)
        checked = {
            "CrammerSingerClassifier": ["C", "gap"],
            "WestonWatkinsClassifier": ["C", "smoothing", "tol"],
            "M3SVMClassifier": ["C", "smoothing", "tol", "ridge"],
        }[type(estimator).__name__]
        for name in checked:
            with pytest.raises(ValueError, match=f"{name}="):
                clone(estimator).set_params(**{name: value}).fit(X, y)

    def test_a_limit_is_checked_and_reported(self, estimator):
        X, y = scaled(load_digits, 0.0)
        name = "max_epochs" if isinstance(estimator, CrammerSingerClassifier) else "max_iter"
        for value in (0, 2.5, True, "3"):
            with pytest.raises(ValueError, match=f"{name}="):
                clone(estimator).set_params(**{name: value}).fit(X, y)
        with pytest.warns(ConvergenceWarning, match=f"{name}=3"):
            model = clone(estimator).set_params(**{name: 3}).fit(X, y)
        assert model.n_iter_ <= 3

    def test_rows_that_are_not_finite_and_wrong_labels_are_refused(self, estimator):
        X, y = scaled(load_wine, 0.0)
        with pytest.raises(ValueError, match=r"label .*2.*not in classes"):
            clone(estimator).set_params(classes=[0, 1]).fit(X, y)
        X[3, 1] = np.nan
        with pytest.raises(ValueError, match="NaN"):
            clone(estimator).fit(X, y)


@pytest.mark.parametrize("C", [1e-3, 0.1, 10.0])
@pytest.mark.parametrize("load", [load_wine, load_digits, load_breast_cancer])
def test_crammer_singer_is_certified_and_liblinear_s(load, C):
    X, y = scaled(load, 0.0)
    model = CrammerSingerClassifier(C=C).fit(X, y)
    assert model.gap_ <= 1e-4 * model.objective_
    assert model.dual_objective_ <= model.objective_
    assert model.gap_ == pytest.approx(model.objective_ - model.dual_objective_, rel=1e-6, abs=1e-9)
    assert model.objective_ == pytest.approx(crammer_singer_objective(X, y, model.coef_, C), rel=1e-12)
    assert np.array_equal(model.intercept_, np.zeros(len(model.classes_)))
    peer = LinearSVC(C=C, multi_class="crammer_singer", fit_intercept=False, tol=1e-6, max_iter=20_000).fit(X, y)
    # scikit-learn keeps the difference of two classes' vectors, which add up to zero.
    weights = np.vstack([-peer.coef_ / 2, peer.coef_ / 2]) if len(peer.coef_) == 1 else peer.coef_
    best = crammer_singer_objective(X, y, weights, C)
    assert model.dual_objective_ <= best * (1 + 1e-9)
    assert model.objective_ <= best * (1 + 1e-4)


def test_a_gap_beyond_float64_ends():
    X, y = scaled(load_wine, 0.0)
    model = CrammerSingerClassifier(C=0.1, gap=1e-30).fit(X, y)
    assert model.gap_ < 1e-10 * model.objective_


def test_a_small_optimum_far_below_the_start_is_certified_too():
    """Separable rows and a large C: the optimum is a tiny share of the objective at zero weights."""
    X = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]] * 20)
    y = np.arange(60) % 3
    model = CrammerSingerClassifier(C=1e4).fit(X, y)
    assert model.objective_ < 1e-4 * 1e4 * 60
    assert model.gap_ <= 1e-4 * model.objective_


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


def test_weston_watkins_offsets_are_an_option():
    X, y = scaled(load_wine, 0.0)
    without, with_offsets = (WestonWatkinsClassifier(fit_intercept=flag).fit(X + 3.0, y) for flag in (False, True))
    assert np.array_equal(without.intercept_, np.zeros(3))
    assert np.abs(with_offsets.intercept_).min() > 0.01
    with pytest.raises(ValueError, match="fit_intercept='yes'"):
        WestonWatkinsClassifier(fit_intercept="yes").fit(X, y)


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
