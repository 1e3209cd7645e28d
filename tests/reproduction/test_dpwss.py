import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from privsvm.solvers.kernel.c_svc import CSVCSolution
from reproduce.dpwss import runs as dpwss_runs


def test_lines_of_the_example_differ(finished):
    cells = {cell.rpartition("/")[2]: values for (table, cell), values in finished.cells("dpwss_figures").items()
             if table == "Figure 1"}  # fmt: skip
    assert cells["lines"] == (2.0,)
    assert 1.0 <= cells["different lines"][0] <= 2.0
    assert cells["largest change of accuracy"][0] < 0.1


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


def test_metrics_of_a_known_model():
    X, signs = np.array([[2.0], [1.0], [-1.0], [-3.0]]), np.array([1.0, -1.0, 1.0, -1.0])
    solution = CSVCSolution(np.array([0.5, 0.0, 0.0, 1 / 3]), 0.0, np.zeros(4), -1.5, 7, True)
    metrics = dpwss_runs._measure(X, signs, solution, np.arange(4))
    assert metrics["accuracy"] == metrics["precision"] == metrics["recall"] == metrics["f1"] == 0.5
    assert (metrics["objective"], metrics["iterations"], metrics["AUC"]) == (-1.5, 7, 0.75)
