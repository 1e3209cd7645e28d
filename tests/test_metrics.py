import warnings

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics as reference

from privsvm.metrics import METRICS, Predictions, _average_ranks, area_under_curve, compute_metrics
from privsvm.pipeline.evaluation import summarise


@given(st.integers(0, 10**6), st.integers(2, 6), st.integers(1, 60), st.integers(1, 5))
@settings(max_examples=80, deadline=None)
def test_equals_scikit_learn(seed, n_classes, n, n_models):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, size=n)
    predicted = rng.integers(0, n_classes, size=(n_models, n))
    predicted[0] = y
    ours = compute_metrics(Predictions(y, predicted, rng.normal(size=(n_models, n, n_classes)), n_classes))
    assert list(ours) == list(METRICS)
    for name, values in ours.items():
        low, high = METRICS[name].range
        assert ((low <= values) & (values <= high) | np.isnan(values)).all(), name
    average = {"average": "binary", "pos_label": 1} if n_classes == 2 else {"average": "macro"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for model in range(n_models):
            answer = predicted[model]
            expected = {
                "accuracy": reference.accuracy_score(y, answer),
                "balanced_accuracy": np.mean([np.mean(answer[y == k] == k) for k in np.unique(y)]),
                "macro_f1": reference.f1_score(y, answer, average="macro", zero_division=0),
                "mcc": reference.matthews_corrcoef(y, answer),
                "precision": reference.precision_score(y, answer, zero_division=0, **average),
                "recall": reference.recall_score(y, answer, zero_division=0, **average),
            }
            for name, value in expected.items():
                assert ours[name][model] == pytest.approx(value, abs=1e-12), name


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_auc_equals_scikit_learn(n_classes):
    rng = np.random.default_rng(n_classes)
    y = rng.permutation(np.arange(50) % n_classes)
    scores = np.round(rng.normal(size=(4, 50, n_classes)), 1)
    if n_classes == 2:
        expected = [reference.roc_auc_score(y, s[:, 1] - s[:, 0]) for s in scores]
        single = scores[..., 1:] - scores[..., :1]
        assert np.allclose(area_under_curve(y, single, 2), expected)
    else:
        expected = [np.mean([reference.roc_auc_score(y == k, s[:, k]) for k in range(n_classes)]) for s in scores]
    assert np.allclose(area_under_curve(y, scores, n_classes), expected)


def test_auc_is_undefined_with_one_class():
    assert np.isnan(area_under_curve(np.zeros(5, int), np.zeros((2, 5, 1)), 2)).all()


def test_summary_ignores_undefined_runs():
    values = np.array([[[0.5, 0.7], [np.nan, np.nan]], [[0.9, np.nan], [np.nan, 1.0]]])
    summary = summarise(values)
    assert summary.mean == pytest.approx([0.7, 1.0])
    assert summary.sd == pytest.approx([0.2, 0.0])
    assert summarise(np.full((1, 1, 2), np.nan)).mean == (None,)


def test_ranks_are_those_of_scipy():
    """The same bits, with ties, infinities and NaN."""
    rng = np.random.default_rng(4)
    values = rng.integers(-3, 4, size=(50, 31)) / 2.0
    values[3, 4], values[5, 6:9], values[7] = np.nan, np.inf, 0.0
    values[10:20] = rng.normal(size=(10, 31))
    np.testing.assert_array_equal(_average_ranks(values), scipy.stats.rankdata(values, axis=-1))
