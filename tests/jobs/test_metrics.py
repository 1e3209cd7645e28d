import csv
import dataclasses
import io
import re
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics as reference

from privsvm.base.released import LinearPath
from privsvm.privacy.gate import Guarantee
from privsvm_bench.jobs.evaluation import evaluate_paths, summarise
from privsvm_bench.jobs.job import TrainJob
from privsvm_bench.jobs.model_files import load_paths, model_record, save_paths
from privsvm_bench.metrics import METRICS, Metric, Predictions, area_under_curve, compute_metrics
from privsvm_bench.records import ModelRecord, Result, read, write
from privsvm_bench.reporting.curve_tables import curve_rows, curves_csv, metrics_record
from privsvm_bench.reporting.glossary import glossary_page
from privsvm_bench.reporting.page import page_context, render_page
from privsvm_bench.tracking.runs import collect_runs


def auc_of(y, scores, n_classes):
    """The AUC of scores, which predicted codes do not change."""
    return area_under_curve(Predictions(y, np.zeros(scores.shape[:2], int), scores, n_classes))


@given(st.integers(0, 10**6), st.integers(2, 6), st.integers(1, 60), st.integers(1, 5))
@settings(max_examples=80, deadline=None)
def test_equals_scikit_learn(seed, n_classes, n, n_models):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, size=n)
    predicted = rng.integers(0, n_classes, size=(n_models, n))
    predicted[0] = y
    ours = compute_metrics(Predictions(y, predicted, rng.normal(size=(n_models, n, n_classes)), n_classes))
    assert list(ours) == list(METRICS)
    # MLflow makes folders of slashes.
    assert not any("/" in name for name in METRICS)
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
        assert np.allclose(auc_of(y, single, 2), expected)
    else:
        expected = [np.mean([reference.roc_auc_score(y == k, s[:, k]) for k in range(n_classes)]) for s in scores]
    assert np.allclose(auc_of(y, scores, n_classes), expected)


def test_summary_ignores_undefined_runs():
    values = np.array([[[0.5, 0.7], [np.nan, np.nan]], [[0.9, np.nan], [np.nan, 1.0]]])
    summary = summarise(values)
    assert summary.mean == pytest.approx([0.7, 1.0])
    assert summary.sd == pytest.approx([0.2, 0.0])
    assert summarise(np.full((1, 1, 2), np.nan)).mean == (None,)


def test_auc_counts_ties_half_and_knows_no_nan():
    y, scores = np.array([0, 1, 0, 1]), np.array([[[0.5], [0.5], [0.0], [1.0]], [[0.0], [np.nan], [0.0], [1.0]]])
    np.testing.assert_array_equal(auc_of(y, scores, 2), [3.5 / 4, np.nan])
    # Nor is it defined with one class.
    assert np.isnan(auc_of(np.zeros(5, int), np.zeros((2, 5, 1)), 2)).all()


def a_result(folder: Path) -> Result:
    """Evaluate one released path on made-up rows, through its files."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 3)), np.arange(40) % 2
    guarantees = tuple(
        Guarantee(
            status="claimed", mechanism="m", reference="r", neighbours="replace_one", epsilon_requested=epsilon,
            delta=1e-5, reason="a toy",
        )
        for epsilon in (0.5, 2.0)
    )  # fmt: skip
    path = LinearPath(
        epsilons=(0.5, 2.0), guarantees=guarantees, n_classes=2, coef=rng.normal(size=(2, 3, 1, 3)),
        intercept=np.zeros((2, 3, 1)),
    )  # fmt: skip
    privacy = {"delta": 1e-5, "epsilons": [0.5, 2.0], "neighbours": "replace_one", "repeats": 3}
    job = TrainJob(
        condense="none", experiment="toy", implementation="toy", method="method", parameters={}, seed=0, **privacy
    )
    description = {"dataset": "rows", "digest": "0", "protocol": {}, "classes": ["a", "b"], "n_features": 3}
    record = model_record(job, description, 30, [path])
    save_paths([path], folder / "m.npz", folder / "m.json", record)
    paths, record = load_paths(folder / "m.npz", folder / "m.json", ModelRecord)
    split = SimpleNamespace(X_test=X, y_test=y)
    result, _ = evaluate_paths(SimpleNamespace(split=lambda _: split), paths, record)
    write(folder / "results" / "method" / "rows.json", result)
    return read(Result, folder / "results" / "method" / "rows.json")


def test_one_entry_is_all_that_a_metric_takes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    error = Metric(
        name="toy_error",
        title="Toy error rate",
        definition="Share of the test rows that are predicted wrongly.",
        compute=lambda predictions: np.mean(predictions.codes != predictions.y, axis=1),
    )
    monkeypatch.setitem(METRICS, error.name, error)
    monkeypatch.setitem(METRICS, "hidden", dataclasses.replace(error, name="hidden", title="Hidden", drawn=False))
    result = a_result(tmp_path)
    for split, correct in zip(result.metrics["toy_error"], result.metrics["accuracy"], strict=True):
        np.testing.assert_allclose(split, 1 - np.array(correct))
    mean = result.summary["toy_error"].mean
    assert mean == pytest.approx([1 - value for value in result.summary["accuracy"].mean])
    # The report: a chart to choose, and the glossary.
    page = render_page([result])
    assert re.search(r'<option value="\d+">Toy error rate</option>', page)
    assert "Share of the test rows that are predicted wrongly." in page
    tables = page_context([result])["datasets"][0]["tables"]
    assert "hidden" not in tables
    (row,) = tables["toy_error"]
    assert [cell["score"][:5] for cell in row["cells"]] == [f"{value:.3f}" for value in mean]
    # The tables.
    assert metrics_record([result])["rows"]["method"]["toy_error"] == round(mean[0], 6)
    rows = list(csv.DictReader(io.StringIO(curves_csv(curve_rows([result])))))
    assert [float(row["toy_error"]) for row in rows] == [round(value, 6) for value in mean]
    assert {"toy_error_sd", "toy_error_low", "toy_error_high", "hidden"} <= set(rows[0])
    # MLflow: the points of the run.
    (run,) = collect_runs([(tmp_path / "results/method/rows.json", [])])
    assert [point.value for point in run.metrics if point.name == "toy_error"] == list(mean)
    assert "Toy error rate" in glossary_page()
