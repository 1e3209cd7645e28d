import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from privsvm.solvers.kernel.c_svc import CSVCSolution
from reproduce.dpwss import runs as dpwss_runs


def test_figures_reuse_the_results_of_the_table(finished):
    table = {(row.dataset, row.setting, row.metric): row.ours for row in finished.rows("dpwss_table3")}
    for row in finished.rows("dpwss_figures"):
        if row.metric == "iterationRatio":
            shrinking = row.setting.split(";")[0]
            expected = table[row.dataset, row.setting, "iterations"] / table[row.dataset, shrinking, "iterations"]
            assert row.ours == pytest.approx(expected, rel=1e-4)
    assert not (finished.folder / "data" / "dpwss_figures" / "heart.shrinking-1.json").exists()


def test_auc_numbers_tied_rows():
    rng = np.random.default_rng(0)
    signs = np.where(rng.random(200) < 0.4, 1.0, -1.0)
    values = signs + rng.normal(size=200)
    assert dpwss_runs.serial_auc(values, signs) == pytest.approx(roc_auc_score(signs, values))
    # Equation 29 by a descending sort that keeps ties in order.
    tied = np.round(values)
    order = np.argsort(-tied, kind="stable")
    rank = np.empty(200)
    rank[order] = np.arange(200, 0, -1)
    m, n = (signs > 0).sum(), (signs < 0).sum()
    assert dpwss_runs.serial_auc(tied, signs) == pytest.approx((rank[signs > 0].sum() - m * (m + 1) / 2) / (m * n))
    assert dpwss_runs._tied_share(np.array([1.0, 1.0, 2.0]), np.array([1.0, -1.0, -1.0])) == 0.5


def test_metrics_of_a_known_model():
    X, signs = np.array([[2.0], [1.0], [-1.0], [-3.0]]), np.array([1.0, -1.0, 1.0, -1.0])
    solution = CSVCSolution(np.array([0.5, 0.0, 0.0, 1 / 3]), 0.0, np.zeros(4), -1.5, 7, True)
    metrics = dpwss_runs._measure(X, signs, solution, np.arange(4))
    assert metrics["accuracy"] == metrics["precision"] == metrics["recall"] == metrics["f1"] == 0.5
    assert (metrics["objective"], metrics["iterations"], metrics["AUC"]) == (-1.5, 7, 0.75)
