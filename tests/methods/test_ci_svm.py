"""CI-SVM and FCM-SVM: condensed rows, the models trained on them, and the labels they keep."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.preprocessing import MinMaxScaler

from privsvm import CISVMClassifier, CondensedInformation, FCMSVMClassifier, SVMClassifier
from privsvm.families.condensed.condensation import ClusterOptions, condense_by_centres, condense_rows
from privsvm.numerics.noise.streams import seeded_stream
from privsvm.solvers.condensing.condense import feature_weights, greedy_triples, weighted_unit_rows

ESTIMATORS = [CISVMClassifier(), FCMSVMClassifier(random_state=0)]
both = pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)


def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return (X - X.min(axis=0)) / np.ptp(X, axis=0), np.array(["malignant", "benign"])[y]


def rows(n, d, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, d)), rng.integers(3, size=n)


class TestCondensedInformation:
    def test_means_and_labels_of_groups(self):
        X, y = rows(50, 4)
        sampler = CondensedInformation()
        condensed, labels = sampler.fit_resample(X, np.array(["a", "b", "c"])[y])
        assert condensed.shape == (17, 4)
        assert labels.shape == (17,)
        assert sampler.size_ratio_ == 17 / 50
        assert sampler.weights_.sum() == pytest.approx(1.0)
        for number, group in enumerate(sampler.groups_):
            members = group[group >= 0]
            np.testing.assert_allclose(condensed[number], X[members].mean(axis=0), rtol=1e-12, atol=1e-15)
            np.testing.assert_array_equal(sampler.group_of_[members], number)
            assert labels[number] in np.array(["a", "b", "c"])[y[members]]
        assert sampler.label_purity_ == np.mean(np.array(["a", "b", "c"])[y] == labels[sampler.group_of_])
        fitted = CondensedInformation()
        assert fitted.fit(X, y) is fitted
        np.testing.assert_array_equal(fitted.groups_, sampler.groups_)

    def test_rows_and_labels_come_back_in_what_they_came_in(self):
        X, y = rows(50, 4)
        sampler = CondensedInformation(scale="none")
        plain, labels = sampler.fit_resample(X, y)
        assert sampler.sampling_strategy_ == {code: int((labels == code).sum()) for code in range(3)}
        condensed, condensed_labels = sampler.fit_resample(X.tolist(), y.tolist())
        assert isinstance(condensed, list)
        assert (condensed, condensed_labels) == (plain.tolist(), labels.tolist())
        frame = pd.DataFrame(X, columns=list("abcd"))
        condensed, condensed_labels = sampler.fit_resample(frame, pd.Series(y, name="label"))
        pd.testing.assert_frame_equal(condensed, pd.DataFrame(plain, columns=list("abcd")))
        pd.testing.assert_series_equal(condensed_labels, pd.Series(labels, name="label"))
        condensed, condensed_labels = sampler.fit_resample(frame.astype(pd.SparseDtype(float, 0.0)), y[:, None])
        assert all(isinstance(kind, pd.SparseDtype) for kind in condensed.dtypes)
        np.testing.assert_array_equal(condensed_labels, labels)
        assert sampler.fit_resample(X.astype(np.float32), y)[0].dtype == np.float32
        np.testing.assert_array_equal(sampler.fit_resample(X, np.eye(3, dtype=int)[y])[1], np.eye(3)[labels])
        with pytest.raises(ValueError, match="one 1 among zeros"):
            sampler.fit_resample(X, np.ones((50, 3)))

    def test_checks_of_imbalanced_learn(self):
        checks = pytest.importorskip("imblearn.utils.estimator_checks")
        # Sparse and dense rows are scaled differently (see above), which this check of two forms does not allow.
        excused = {"check_samplers_sparse", "check_samplers_pandas_sparse"}
        for sampler, excuses in ((CondensedInformation(), excused), (CondensedInformation(scale="none"), set())):
            ran = set()
            for check in checks._yield_all_checks(sampler):
                name = getattr(check, "__name__", None) or check.func.__name__
                if name not in excuses:
                    check("CondensedInformation", sampler)
                    ran.add(name)
            assert len(ran) >= 12

    def test_imbalanced_learns_pipeline(self):
        pipeline = pytest.importorskip("imblearn.pipeline")
        X, y = cancer()
        steps = pipeline.make_pipeline(MinMaxScaler(), CondensedInformation(), SVMClassifier())
        by_hand = SVMClassifier().fit(*CondensedInformation().fit_resample(X, y))
        np.testing.assert_array_equal(steps.fit(X, y).predict(X), by_hand.predict(X))

    def test_scaled_features_choose_and_rows_as_given_are_averaged(self):
        X, y = rows(60, 3)
        shifted = X * [1.0, 100.0, 1e-4] + [0.0, 1e3, 5.0]
        scaled = (X - X.min(axis=0)) / np.ptp(X, axis=0)
        sampler = CondensedInformation().fit_resample
        by_hand = greedy_triples(weighted_unit_rows(scaled, feature_weights(scaled)))
        resampler = CondensedInformation()
        condensed, _ = resampler.fit_resample(shifted, y)
        np.testing.assert_array_equal(resampler.groups_, by_hand)
        np.testing.assert_allclose(condensed[0], shifted[by_hand[0]].mean(axis=0), rtol=1e-12)
        np.testing.assert_array_equal(CondensedInformation(scale="none").fit_resample(scaled, y)[0],
                                      sampler(scaled, y)[0])  # fmt: skip

    def test_sparse_rows_are_divided_by_the_largest_absolute_value(self):
        X, y = rows(60, 5)
        X *= np.random.default_rng(1).random(X.shape) < 0.5
        X[:, 4] = 0.0
        sampler, by_hand = CondensedInformation(), CondensedInformation(scale="none")
        condensed, _ = sampler.fit_resample(scipy.sparse.csr_array(X), y)
        assert scipy.sparse.issparse(condensed)
        by_hand.fit_resample(X / np.maximum(np.abs(X).max(axis=0), 1e-300), y)
        np.testing.assert_array_equal(sampler.groups_, by_hand.groups_)

    def test_dense_and_sparse_are_the_same_where_the_smallest_value_is_zero(self):
        X, y = rows(200, 6)
        X = np.abs(X) * (np.random.default_rng(1).random(X.shape) < 0.4)
        dense, sparse = CondensedInformation(), CondensedInformation()
        first, labels = dense.fit_resample(X, y)
        second, sparse_labels = sparse.fit_resample(scipy.sparse.csr_array(X), y)
        np.testing.assert_array_equal(dense.groups_, sparse.groups_)
        np.testing.assert_array_equal(dense.weights_, sparse.weights_)
        np.testing.assert_array_equal(first, second.toarray())
        np.testing.assert_array_equal(labels, sparse_labels)

    def test_extreme_ranges(self):
        X, y = rows(30, 2)
        X = np.clip(X / np.abs(X).max(axis=0), -1.0, 1.0)
        expected, scaled = CondensedInformation(), CondensedInformation()
        expected.fit_resample(X, y)
        # Twice the largest number is the range of a column.
        scaled.fit_resample(X * [2.0**1021, 2.0**-1000], y)
        np.testing.assert_array_equal(scaled.groups_, expected.groups_)

    @pytest.mark.parametrize("changes", [{"scale": "min-max"}, {"scale": None}, {"n_jobs": 0}, {"n_jobs": 1.5}])
    def test_bad_parameters_are_named(self, changes):
        with pytest.raises(ValueError, match=f"{next(iter(changes))}="):
            CondensedInformation(**changes).fit_resample(*rows(9, 2))


@both
class TestBothClassifiers:
    def test_it_is_the_svm_of_the_condensed_rows(self, estimator):
        X, y = cancer()
        model = clone(estimator).set_params(C=10.0, gamma=0.5, class_weight={"benign": 2.0}).fit(X, y)
        classes, codes = np.unique(y, return_inverse=True)
        kind = "ci" if isinstance(estimator, CISVMClassifier) else "fcm"
        rng = seeded_stream(0, "noise", "FCMSVMClassifier", 0.0, 0)
        condensed = condense_rows(kind, X, codes, 2, rng=rng)
        svm = SVMClassifier(C=10.0, gamma=0.5, class_weight={"benign": 2.0}).fit(
            condensed.rows, classes[condensed.codes]
        )
        # Fuzzy means are products of matrices, which BLAS rounds by where they lie in memory.
        np.testing.assert_allclose(model.decision_function(X), svm.decision_function(X), rtol=0, atol=1e-9)
        np.testing.assert_array_equal(model.support_, svm.support_)
        np.testing.assert_allclose(model.dual_coef_, svm._path.pair_coef[0, 0], rtol=0, atol=1e-9)
        np.testing.assert_array_equal(model.n_support_, svm.n_support_)
        assert model.objective_ == pytest.approx(svm.objective_, rel=1e-9)
        assert model.size_ratio_ == pytest.approx(1 / 3, abs=0.01)
        assert 0.9 < model.label_purity_ <= 1.0
        assert model.group_of_.shape == y.shape

    def test_more_than_two_classes(self, estimator):
        X, y = load_iris(return_X_y=True)
        model = clone(estimator).fit(X, y)
        assert model.score(X, y) > 0.9
        assert model.dual_coef_.shape == (model.support_.size, 3)

    def test_a_class_that_is_lost(self, estimator):
        rng = np.random.default_rng(0)
        X = np.abs(np.vstack([rng.normal([5.0, 1.0], 0.1, (60, 2)), rng.normal([1.0, 5.0], 0.1, (60, 2))]))
        y = np.repeat([0, 1], 60)
        y[[7, 70]] = 2
        for changes in ({}, {"class_weight": {0: 1.0, 2: 5.0}}, {"class_weight": "balanced"}):
            model = clone(estimator).set_params(**changes).fit(X, y)
            np.testing.assert_array_equal(model.classes_, [0, 1, 2])
            assert model.n_support_[2] == 0
            np.testing.assert_array_equal(model.predict([[5.0, 1.0], [1.0, 5.0]]), [0, 1])
            assert model.decision_function(X).shape == (120, 3)

    @pytest.mark.parametrize(("n_classes", "present"), [(2, 0), (2, 1), (3, 1), (4, 3)])
    def test_one_class_left(self, estimator, n_classes, present):
        X = np.abs(np.random.default_rng(0).normal([5.0, 1.0], 0.1, (60, 2)))
        y = np.full(60, present)
        y[5] = (present + 1) % n_classes
        model = clone(estimator).set_params(classes=list(range(n_classes)))
        with pytest.warns(UserWarning, match=rf"all condensed rows are of class .*{present}"):
            model.fit(X, y)
        np.testing.assert_array_equal(model.predict(X), present)
        assert model.support_.size == 0
        assert model.dual_coef_.shape == (0, n_classes * (n_classes - 1) // 2)
        np.testing.assert_array_equal(model.n_support_, 0)

    def test_two_rows(self, estimator):
        with pytest.warns(UserWarning, match="all condensed rows"):
            model = clone(estimator).fit([[0.0, 1.0], [1.0, 0.0]], ["a", "b"])
        assert set(model.predict([[0.5, 0.5], [3.0, 1.0]])) <= {"a", "b"}


class TestFuzzyCentres:
    X = np.array([[0.0], [0.1], [0.2], [5.0], [5.1], [9.0]])

    def test_third_of_the_rows_unless_told(self):
        X, y = rows(40, 3)
        for n_centres, expected in ((None, 14), (0.5, 20), (0.01, 1), (1.0, 40), (7, 7), (40, 40)):
            options = ClusterOptions(n_centres=n_centres)
            condensed_rows = condense_by_centres(X, y, 3, np.random.default_rng(0), options)
            assert condensed_rows.rows.shape == (expected, 3)
            assert condensed_rows.size_ratio == expected / 40

    @pytest.mark.parametrize(
        "changes",
        [{"q": 1.0}, {"n_centres": 570}, {"clustering_tol": 0.0}, {"clustering_max_iter": 0}],
    )
    def test_bad_parameters_are_named(self, changes):
        with pytest.raises(ValueError, match=f"{next(iter(changes))}="):
            FCMSVMClassifier(**changes).fit(*cancer())

    def test_labels_by_majority_and_nearest_row(self):
        for seed in range(10):
            rng = np.random.default_rng(seed)
            X, y = np.round(rng.random((30, 2)), 1), rng.integers(3, size=30)
            condensed_rows = condense_by_centres(X, y, 3, np.random.default_rng(seed), ClusterOptions(n_centres=12))
            distances = np.linalg.norm(X[:, None] - condensed_rows.rows, axis=2)
            for centre, label in enumerate(condensed_rows.codes):
                mine = np.flatnonzero(condensed_rows.group_of == centre)
                votes = np.bincount(y[mine], minlength=3)
                if mine.size == 0:
                    eligible = np.arange(30)
                else:
                    eligible = mine[np.isin(y[mine], np.flatnonzero(votes == votes.max()))]
                least = distances[eligible, centre].min()
                assert label in y[eligible[distances[eligible, centre] <= least + 1e-7]]
            assert condensed_rows.label_purity == np.mean(y == condensed_rows.codes[condensed_rows.group_of])


@pytest.mark.parametrize("kind", ["ci", "fcm"])
def test_every_row_has_a_condensed_row(kind):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for n in (1, 2, 3, 4, 5, 31):
            X, y = rows(n, 3)
            condensed_rows = condense_rows(kind, X, y, 3, rng=np.random.default_rng(0))
            assert condensed_rows.rows.shape[0] == condensed_rows.codes.size == -(-n // 3)
            assert condensed_rows.group_of.shape == (n,)
            assert 0.0 <= condensed_rows.label_purity <= 1.0
