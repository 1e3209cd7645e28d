"""OneNormSVMClassifier and ReducedSVMClassifier, and the choice of C and gamma that they share with PPSVM."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_wine, make_circles
from sklearn.model_selection import cross_val_score
from sklearn.preprocessing import StandardScaler, scale
from sklearn.svm import LinearSVC

from privsvm import OneNormSVMClassifier, ReducedSVMClassifier
from privsvm.families.one_norm import one_norm_training
from privsvm.families.one_norm.one_norm_training import count_kernel_rows, gamma_range, train_one_norm
from privsvm.numerics.rows.rows import squared_distances


def wdbc():
    X, y = load_breast_cancer(return_X_y=True)
    return scale(X), y


CIRCLES, RINGS = make_circles(300, noise=0.1, factor=0.4, random_state=0)


def test_a_small_weight_uses_few_features_and_stays_accurate():
    X, y = wdbc()
    model = OneNormSVMClassifier(C=0.05).fit(X, y)
    assert 0 < np.count_nonzero(model.coef_) < 12
    assert model.score(X, y) > 0.95
    assert abs(model.gap_) < 1e-7 * model.objective_
    other = LinearSVC(penalty="l1", loss="squared_hinge", dual=False, C=0.05).fit(X, y)
    assert np.mean(model.predict(X) == other.predict(X)) > 0.97


def test_gaussian_model_keeps_only_the_rows_it_needs():
    model = OneNormSVMClassifier(kernel="gaussian", gamma=2.0).fit(CIRCLES, RINGS)
    assert model.score(CIRCLES, RINGS) > 0.97
    assert 0 < model.support_.size < 40
    kernel = np.exp(-2.0 * squared_distances(CIRCLES, CIRCLES[model.support_]))
    assert np.allclose(model.decision_function(CIRCLES), kernel @ model.coef_[0] + model.intercept_[0])


@pytest.mark.parametrize("kernel", ["linear", "gaussian"])
def test_reduced_kernel(kernel):
    X, y = wdbc()
    model = ReducedSVMClassifier(kernel=kernel, random_state=0).fit(X, y)
    assert model.support_.size == 57
    assert model.dual_coef_.shape == (1, 57)
    if kernel == "linear":
        values = X @ X[model.support_].T
        assert np.allclose(model.coef_, model.dual_coef_ @ X[model.support_])
    else:
        values = np.exp(-squared_distances(X, X[model.support_]) / 30)
    assert np.allclose(model.decision_function(X), values @ model.dual_coef_[0] + model.intercept_[0])
    assert model.score(X, y) > 0.95


def test_all_rows_of_the_kernel_are_the_whole_kernel():
    full_kernel = OneNormSVMClassifier(kernel="gaussian", gamma=2.0).fit(CIRCLES, RINGS)
    reduced = ReducedSVMClassifier(kernel="gaussian", gamma=2.0, mbar=300, random_state=0).fit(CIRCLES, RINGS)
    assert reduced.objective_ == pytest.approx(full_kernel.objective_, rel=1e-8)


@pytest.mark.parametrize("estimator", [OneNormSVMClassifier(), ReducedSVMClassifier(random_state=0)])
@pytest.mark.parametrize("kernel", ["linear", "gaussian"])
def test_more_classes_are_each_against_the_rest(estimator, kernel):
    X, y = load_wine(return_X_y=True)
    X = scale(X)
    estimator = estimator.set_params(kernel=kernel)
    model = estimator.fit(X, y)
    assert model.decision_function(X).shape == (178, 3)
    assert model.score(X, y) > 0.95
    for label in range(3):
        if kernel == "linear" and isinstance(estimator, OneNormSVMClassifier):
            single = OneNormSVMClassifier().fit(X, y == label)
            assert np.abs(single.coef_).sum() == pytest.approx(np.abs(model.coef_[label]).sum(), rel=1e-6)


class TestTuning:
    def test_the_weight_has_the_fewest_errors_on_a_tenth(self, monkeypatch):
        X, y = wdbc()
        test = np.zeros(len(y), dtype=bool)
        drawn = np.random.default_rng(0)
        monkeypatch.setattr(one_norm_training, "noise_generators", lambda rng, estimator: lambda epsilon, repeat: drawn)
        model = OneNormSVMClassifier(C="tune").fit(X, y)
        again = np.random.default_rng(0)
        test[again.choice(569, 57, replace=False)] = True
        errors = {
            exponent: np.mean(
                OneNormSVMClassifier(C=10.0**exponent).fit(X[~test], y[~test]).predict(X[test]) != y[test]
            )
            for exponent in range(-7, 8)
        }
        assert 10.0 ** min(errors, key=lambda exponent: (errors[exponent], exponent)) == model.C_

    def test_tuned_gaussian_beats_bad_guesses(self):
        tuned = ReducedSVMClassifier(kernel="gaussian", C="tune", gamma="tune", random_state=0)
        assert cross_val_score(tuned, CIRCLES, RINGS, cv=3).mean() > 0.95
        for C, gamma in ((1e-3, 1.0), (1.0, 1e-4)):
            poor = ReducedSVMClassifier(kernel="gaussian", C=C, gamma=gamma, random_state=0)
            assert cross_val_score(poor, CIRCLES, RINGS, cv=3).mean() < 0.9

    def test_a_given_gamma_stays(self):
        model = ReducedSVMClassifier(kernel="gaussian", C="tune", gamma=0.5, random_state=0).fit(CIRCLES, RINGS)
        assert model.gamma_ == 0.5
        assert np.log10(model.C_) in range(-7, 8)

    def test_too_few_rows_to_hold_any_back(self):
        X, y = np.arange(8.0)[:, None], np.repeat([0, 1], 4)
        model = OneNormSVMClassifier(kernel="gaussian", C="tune", gamma="tune", random_state=0).fit(X, y)
        assert model.C_ == 1.0
        assert model.score(X, y) == 1.0

    def test_range_of_gamma(self):
        X = np.array([[0.0], [0.0], [2.0], [9.0]])
        low, high = gamma_range(squared_distances(X, X))
        # The closest different rows are 2 apart.
        assert np.exp(-low * 4) == pytest.approx(0.999)
        assert np.exp(-high * 4) == pytest.approx(0.15)
        assert gamma_range(np.zeros((3, 3))) == pytest.approx((0.0010005, 1.89712), rel=1e-4)

    def test_unscaled_rows(self):
        X, y = load_breast_cancer(return_X_y=True)
        model = OneNormSVMClassifier(C=1.0).fit(X, y)
        assert abs(model.gap_) < 1e-6 * model.objective_
        assert model.score(X, y) > 0.9
        scaled = StandardScaler().fit(X)
        assert OneNormSVMClassifier(C=1.0).fit(scaled.transform(X), y).score(scaled.transform(X), y) > 0.97


@pytest.mark.parametrize(("mbar", "expected"), [(0.1, 57), (1, 1), (569, 569), (0.001, 1), (30.0, 30)])
def test_rows_of_the_kernel(mbar, expected):
    assert count_kernel_rows(mbar, 569) == expected


def test_separated_programs_share_columns_but_not_signs():
    rng = np.random.default_rng(0)
    K, codes = rng.standard_normal((40, 5)), rng.integers(0, 3, 40)
    model = train_one_norm(K, codes, 3, "linear", 1.0, np.nan, rng)
    singles = [train_one_norm(K, (codes == label).astype(int), 2, "linear", 1.0, np.nan, rng) for label in range(3)]
    assert model.objective == pytest.approx(sum(single.objective for single in singles), rel=1e-9)
