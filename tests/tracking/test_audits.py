"""What audits found is in MLflow: claimed against audited epsilon, confidence and status, a run for each method."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from mlflow.entities import ViewType
from mlflow.tracking import MlflowClient
from tests.reporting.synthetic_results import make_audit_cell

from privsvm.errors import PrivSVMError
from privsvm.files import write_json
from privsvm.privacy import lower_bounds
from privsvm_bench.records import AuditRecord, parse, write
from privsvm_bench.tracking.audits import AUDITS, CONFIDENCE, audit_runs
from privsvm_bench.tracking.experiments import experiment_links
from privsvm_bench.tracking.mlflow_log import log_results

EXPERIMENT = f"demo/{AUDITS}"


RECORDS = [
    AuditRecord(method="dpwss", implementation="dpwss", parameters={"allow_unsound": True},
                cells=(make_audit_cell("claimed", 1.0, 6.0, refuted=True),)),
    AuditRecord(method="pmsvm_wp", implementation="pmsvm_wp", parameters={},
                cells=(make_audit_cell("seeded", 1.0, 0.9), make_audit_cell("seeded", 4.0, 3.8))),
]  # fmt: skip


@pytest.fixture
def audits(tmp_path: Path) -> list[Path]:
    paths = [tmp_path / "data" / "audits" / f"{record.method}.json" for record in RECORDS]
    for path, record in zip(paths, RECORDS, strict=True):
        write(path, record)
    return paths


def runs_of(uri: str) -> dict[str, Any]:
    client = MlflowClient(uri)
    experiment = client.get_experiment_by_name(EXPERIMENT)
    runs = client.search_runs([experiment.experiment_id], run_view_type=ViewType.ACTIVE_ONLY)
    return {f"{run.data.params['method']} {run.data.tags['current']}": run for run in runs}


def test_every_cell_is_logged_once_with_claim_bound_confidence_and_status(
    uri: str, tmp_path: Path, wine_results: Any, audits: list[Path]
) -> None:
    keys = log_results(wine_results, uri, "abc", audits)
    assert len(keys) == len(wine_results)
    assert log_results(wine_results, uri, "abc", audits) == keys
    runs = runs_of(uri)
    assert set(runs) == {"dpwss yes", "pmsvm_wp yes"}
    proved, claimed = runs["pmsvm_wp yes"], runs["dpwss yes"]
    assert (proved.data.params["status"], claimed.data.params["status"]) == ("seeded", "refuted")
    assert (proved.data.tags["refuted"], claimed.data.tags["refuted"]) == ("no", "yes")
    assert proved.data.params["confidence"] == "0.95"
    assert proved.data.params["neighbours"] == "replace_one"
    assert "refuted" in claimed.info.run_name
    client = MlflowClient(uri)
    expected = {
        "epsilon": [1.0, 4.0], "epsilon_with_system_noise": [1.0, 4.0], "audited_epsilon": [0.9, 3.8],
        "confidence": [0.95, 0.95], "audited_counts": [0.45, 1.9], "audited_ceiling": [0.9, 3.6],
        "refuted": [0.0, 0.0], "draws": [2000.0, 2000.0],
    }  # fmt: skip
    for name, values in expected.items():
        points = sorted((point.step, point.value) for point in client.get_metric_history(proved.info.run_id, name))
        assert [value for _, value in points] == pytest.approx(values), name
    assert claimed.data.metrics["audited_epsilon"] == 6.0
    assert claimed.data.metrics["refuted"] == 1.0
    # Nothing is proved there.
    assert "epsilon_with_system_noise" not in claimed.data.metrics
    files = {
        path.name: path.read_text() for path in tmp_path.glob(f"mlartifacts/{EXPERIMENT}/{proved.info.run_id}/*/*")
    }
    assert set(files) == {"audit.json"}
    assert parse(AuditRecord, files["audit.json"], "stored") == RECORDS[1]


def test_another_audit_takes_the_place_of_the_first(uri: str, wine_results: Any, audits: list[Path]) -> None:
    log_results(wine_results, uri, "abc", audits)
    write(audits[1], dataclasses.replace(RECORDS[1], cells=(make_audit_cell("seeded", 1.0, 0.7),)))
    log_results(wine_results, uri, "abc", audits)
    runs = runs_of(uri)
    assert set(runs) == {"dpwss yes", "pmsvm_wp yes", "pmsvm_wp no"}
    assert runs["pmsvm_wp yes"].data.metrics["audited_epsilon"] == 0.7


def test_bounds_for_each_stated_epsilon_have_a_metric(uri: str, wine_results: Any, audits: list[Path]) -> None:
    """No chart of a metric compares bounds for two epsilons."""
    log_results(wine_results, uri, "abc", audits)
    assert set(experiment_links(uri, "http://127.0.0.1:5000", {"demo/wine", EXPERIMENT})) == {"demo/wine", EXPERIMENT}
    assert "audited_epsilon" in MlflowClient(uri).get_experiment_by_name(EXPERIMENT).tags["mlflow.note.content"]
    runs = {run.method: run for run in audit_runs(RECORDS, "demo")}
    metrics = {name: {point.name: point.value for point in run.metrics} for name, run in runs.items()}
    assert (
        metrics["pmsvm_wp"]["audited_epsilon_where_1_is_stated"],
        metrics["pmsvm_wp"]["audited_epsilon_where_4_is_stated"],
    ) == (0.9, 3.8)
    assert metrics["dpwss"]["audited_epsilon_where_1_is_stated"] == 6.0


def test_names_begin_with_the_status() -> None:
    runs = {run.method: run for run in audit_runs(RECORDS, "demo")}
    assert runs["dpwss"].name == "refuted: dpwss"
    assert runs["pmsvm_wp"].name == "seeded: pmsvm_wp"


def test_the_confidence_is_that_of_the_bounds() -> None:
    assert CONFIDENCE == lower_bounds.CONFIDENCE


def test_a_malformed_record_is_named_before_anything_is_logged(new_uri: str, tmp_path: Path, wine_results: Any) -> None:
    path = tmp_path / "broken.json"
    write_json(path, {"method": 1})
    with pytest.raises(PrivSVMError, match=r"broken\.json"):
        log_results(wine_results, new_uri, "abc", [path])
    assert not (tmp_path / "mlflow.db").exists()
