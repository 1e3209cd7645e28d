"""PPSVM: separable kernels, the entities' messages, and the trainer's model."""

import dataclasses

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer, load_wine, make_circles
from sklearn.model_selection import cross_val_score
from sklearn.preprocessing import StandardScaler, scale
from sklearn.svm import LinearSVC

from privsvm import OneNormSVMClassifier, PPSVMClassifier, ReducedSVMClassifier, load
from privsvm.families.one_norm import one_norm_training
from privsvm.families.one_norm.one_norm_training import count_kernel_rows, gamma_range, train_one_norm
from privsvm.families.one_norm.ppsvm_protocol import Entity, combine_blocks, deal_columns
from privsvm.families.one_norm.ppsvm_training import PublicKernel, train_on_blocks
from privsvm.numerics.rows.rows import squared_distances

X, Y = load_breast_cancer(return_X_y=True)
Z = scale(X)


@given(st.integers(1, 40), st.data(), st.integers(0, 2**32 - 1))
def test_every_column_has_one_entity_and_shares_are_even(n_features, data, seed):
    entities = data.draw(st.integers(1, n_features))
    column_sets = deal_columns(n_features, entities, np.random.default_rng(seed))
    assert len(column_sets) == entities
    assert np.array_equal(np.sort(np.concatenate(column_sets)), np.arange(n_features))
    sizes = [entity_columns.size for entity_columns in column_sets]
    assert max(sizes) - min(sizes) <= 1
    assert all(np.array_equal(entity_columns, np.sort(entity_columns)) for entity_columns in column_sets)


def test_columns_of_ones_choice():
    column_sets = deal_columns(4, [[3, 0], [1], [2]], np.random.default_rng(0))
    assert [entity_columns.tolist() for entity_columns in column_sets] == [[0, 3], [1], [2]]


@pytest.mark.parametrize(
    ("entities", "message"),
    [
        (5, r"entities=5: an entity would have no column, since n_features = 4"),
        ([[0, 1], [], [2, 3]], r"entity 1 has no column"),
        ([[0, 1], [2]], r"column 3 is held 0 times"),
        ([[0, 1, 2], [2, 3]], r"column 2 is held 2 times"),
        ([[0, 1, 2], [3, 4]], r"column 4 is held 1 times"),
        ([], r"column 0 is held 0 times"),
        ([["a"]], r"must be a whole number, or lists"),
    ],
)
def test_bad_partitions(entities, message):
    with pytest.raises(ValueError, match=message):
        deal_columns(4, entities, np.random.default_rng(0))


@pytest.mark.parametrize("kernel", ["linear", "gaussian"])
def test_blocks_combine_to_the_kernel_of_all_columns(kernel):
    model = PPSVMClassifier(kernel=kernel, entities=5, gamma=0.02, random_state=0).fit(X, Y)
    order = np.concatenate(model.columns_)
    B = np.hstack([entity.random_matrix for entity in model.entities_])
    rows = Z[:, order]
    expected = rows @ B.T if kernel == "linear" else np.exp(-0.02 * squared_distances(rows, B))
    assert np.allclose(model.public_kernel(X), expected, rtol=1e-10, atol=1e-10 if kernel == "linear" else 1e-300)
    assert B.shape == (57, 30)


def test_a_linear_model_has_weights_of_the_features():
    model = PPSVMClassifier(entities=3, random_state=0).fit(X, Y)
    B = np.hstack([entity.random_matrix for entity in model.entities_])
    w = np.zeros(30)
    w[np.concatenate(model.columns_)] = B.T @ model.coef_[0]
    assert np.allclose(model.decision_function(X), Z @ w + model.intercept_[0])


def test_blocks_of_one_gamma_train_models_of_any():
    published = PPSVMClassifier(kernel="gaussian", gamma=0.01, random_state=0).fit(X, Y)
    block = published.public_kernel(X)
    codes = Y.astype(np.int64)
    rng = np.random.default_rng(0)
    model, arrays = train_on_blocks(block**5.0, codes, 2, PublicKernel("gaussian", 0.05), 1.0, False, rng)
    assert arrays["steps"][0].arrays["power"] == 1.0
    again, _ = train_on_blocks(block, codes, 2, PublicKernel("gaussian", 0.01), 1.0, False, rng)
    direct = PPSVMClassifier(kernel="gaussian", gamma=0.05, random_state=0).fit(X, Y)
    assert direct.objective_ == pytest.approx(model.objective, rel=1e-6)
    assert again.objective == pytest.approx(published.objective_, rel=1e-9)


def test_tuned_gaussian_uses_the_power_of_what_was_published():
    model = PPSVMClassifier(kernel="gaussian", C="tune", gamma="tune", random_state=0, mbar=20).fit(X[::3], Y[::3])
    power = model._path.step("power")["power"][0]
    assert power == pytest.approx(model.gamma_ * 30)
    values = model.public_kernel(X) ** power @ model.coef_[0] + model.intercept_[0]
    assert np.allclose(model.decision_function(X), values)
    assert model.score(X, Y) > 0.93


@pytest.mark.parametrize("chosen", [{}, {"kernel": "gaussian", "C": "tune", "gamma": "tune", "standardize": False}])
def test_a_saved_model_predicts_as_all_entities_together(chosen, tmp_path):
    rows, labels = load_wine(return_X_y=True)
    rows = scale(rows) + 1.0
    model = PPSVMClassifier(entities=4, mbar=20, random_state=0, **chosen).fit(rows, labels)
    kernel = model.public_kernel(rows)
    expected = dataclasses.replace(model._path, steps=model._path.steps[1:]).scores(kernel, 0)[0]
    assert np.allclose(model.decision_function(rows), expected)
    assert np.allclose(model.decision_function(scipy.sparse.csr_array(rows)), expected)
    model.save(tmp_path)
    assert np.array_equal(load(tmp_path).predict(rows), model.predict(rows))


@pytest.mark.parametrize("kernel", ["linear", "gaussian"])
def test_more_classes_share_the_blocks(kernel):
    rows, labels = load_wine(return_X_y=True)
    model = PPSVMClassifier(kernel=kernel, entities=4, mbar=0.2, random_state=0).fit(rows, labels)
    assert model.coef_.shape == (3, 36)
    assert model.score(rows, labels) > 0.95


class TestEntity:
    def test_standardises_by_its_training_rows(self):
        entity = Entity.draw(X[:300, :4], 10, np.random.default_rng(0))
        assert np.allclose(entity.standardized(X[:300, :4]), scale(X[:300, :4]))
        assert np.allclose(entity.standardized(X[:, :4]), (X[:, :4] - X[:300, :4].mean(0)) / X[:300, :4].std(0))

    def test_a_constant_column_becomes_zero(self):
        columns = np.column_stack([np.full(7, 0.1), np.arange(7.0)])
        entity = Entity.draw(columns, 3, np.random.default_rng(0))
        assert (entity.standardized(columns)[:, 0] == 0.0).all()

    def test_may_leave_its_columns_as_they_are(self):
        entity = Entity.draw(X[:, :2], 3, np.random.default_rng(0), standardize=False)
        assert np.array_equal(entity.publish(X[:, :2], "linear", 1.0), X[:, :2] @ entity.random_matrix.T)

    def test_entries_are_standard_normal(self):
        entity = Entity.draw(np.arange(200.0).reshape(2, 100), 5000, np.random.default_rng(0))
        # 5e5 draws: the mean has a standard deviation of 0.0014, the variance of 0.002; six of them, below 1e-8.
        assert abs(entity.random_matrix.mean()) < 6 * 0.0014
        assert abs(entity.random_matrix.var() - 1) < 6 * 0.002

    @pytest.mark.parametrize("value", [np.nan, np.inf])
    def test_refuses_what_is_not_finite(self, value):
        columns = X[:, :2].copy()
        entity = Entity.draw(columns, 3, np.random.default_rng(0))
        columns[5, 1] = value
        with pytest.raises(ValueError, match="NaN or infinity"):
            Entity.draw(columns, 3, np.random.default_rng(0))
        with pytest.raises(ValueError, match="NaN or infinity"):
            entity.publish(columns, "linear", 1.0)

    def test_refuses_no_column_and_another_number_of_columns(self):
        with pytest.raises(ValueError, match="at least one column"):
            Entity.draw(np.empty((5, 0)), 3, np.random.default_rng(0))
        with pytest.raises(ValueError, match="holds 2 columns, and was given 3"):
            Entity.draw(X[:, :2], 3, np.random.default_rng(0)).publish(X[:, :3], "linear", 1.0)

    def test_sparse_columns(self):
        columns = np.where(np.abs(Z[:, :4]) > 1, Z[:, :4], 0)
        dense, sparse = (
            Entity.draw(rows, 5, np.random.default_rng(0)).publish(rows, "gaussian", 0.1)
            for rows in (columns, scipy.sparse.csr_array(columns))
        )
        assert np.array_equal(dense, sparse)


class TestBlocks:
    def test_not_finite(self):
        with pytest.raises(ValueError, match="the block of second holds NaN"):
            combine_blocks({"first": np.ones((5, 2)), "second": np.full((5, 2), np.nan)}, "linear")

    def test_none_and_unknown_kernel(self):
        with pytest.raises(ValueError, match="no entity has published"):
            combine_blocks({}, "linear")
        with pytest.raises(ValueError, match="kernel='poly'"):
            combine_blocks({"first": np.ones((5, 2))}, "poly")


CIRCLES, RINGS = make_circles(300, noise=0.1, factor=0.4, random_state=0)


def test_a_small_weight_uses_few_features_and_stays_accurate():
    model = OneNormSVMClassifier(C=0.05).fit(Z, Y)
    assert 0 < np.count_nonzero(model.coef_) < 12
    assert model.score(Z, Y) > 0.95
    assert abs(model.gap_) < 1e-7 * model.objective_
    other = LinearSVC(penalty="l1", loss="squared_hinge", dual=False, C=0.05).fit(Z, Y)
    assert np.mean(model.predict(Z) == other.predict(Z)) > 0.97


def test_gaussian_model_keeps_only_the_rows_it_needs():
    model = OneNormSVMClassifier(kernel="gaussian", gamma=2.0).fit(CIRCLES, RINGS)
    assert model.score(CIRCLES, RINGS) > 0.97
    assert 0 < model.support_.size < 40
    kernel = np.exp(-2.0 * squared_distances(CIRCLES, CIRCLES[model.support_]))
    assert np.allclose(model.decision_function(CIRCLES), kernel @ model.coef_[0] + model.intercept_[0])


@pytest.mark.parametrize("kernel", ["linear", "gaussian"])
def test_reduced_kernel(kernel):
    model = ReducedSVMClassifier(kernel=kernel, random_state=0).fit(Z, Y)
    assert model.support_.size == 57
    assert model.dual_coef_.shape == (1, 57)
    if kernel == "linear":
        values = Z @ Z[model.support_].T
        assert np.allclose(model.coef_, model.dual_coef_ @ Z[model.support_])
    else:
        values = np.exp(-squared_distances(Z, Z[model.support_]) / 30)
    assert np.allclose(model.decision_function(Z), values @ model.dual_coef_[0] + model.intercept_[0])
    assert model.score(Z, Y) > 0.95


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
        test = np.zeros(len(Y), dtype=bool)
        drawn = np.random.default_rng(0)
        monkeypatch.setattr(one_norm_training, "noise_generators", lambda rng, estimator: lambda epsilon, repeat: drawn)
        model = OneNormSVMClassifier(C="tune").fit(Z, Y)
        again = np.random.default_rng(0)
        test[again.choice(569, 57, replace=False)] = True
        errors = {
            exponent: np.mean(
                OneNormSVMClassifier(C=10.0**exponent).fit(Z[~test], Y[~test]).predict(Z[test]) != Y[test]
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
        model = OneNormSVMClassifier(C=1.0).fit(X, Y)
        assert abs(model.gap_) < 1e-6 * model.objective_
        assert model.score(X, Y) > 0.9
        scaled = StandardScaler().fit(X)
        assert OneNormSVMClassifier(C=1.0).fit(scaled.transform(X), Y).score(scaled.transform(X), Y) > 0.97


@pytest.mark.parametrize(("mbar", "expected"), [(0.1, 57), (1, 1), (569, 569), (0.001, 1), (30.0, 30)])
def test_rows_of_the_kernel(mbar, expected):
    assert count_kernel_rows(mbar, 569) == expected


def test_separated_programs_share_columns_but_not_signs():
    rng = np.random.default_rng(0)
    K, codes = rng.standard_normal((40, 5)), rng.integers(0, 3, 40)
    model = train_one_norm(K, codes, 3, "linear", 1.0, np.nan, rng)
    singles = [train_one_norm(K, (codes == label).astype(int), 2, "linear", 1.0, np.nan, rng) for label in range(3)]
    assert model.objective == pytest.approx(sum(single.objective for single in singles), rel=1e-9)
