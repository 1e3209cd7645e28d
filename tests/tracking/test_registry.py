"""MLflow's registry holds releases under `production`, and seeded models for comparison only."""

from pathlib import Path
from typing import Any

import mlflow.pyfunc
import numpy as np
import pytest
from mlflow.exceptions import MlflowException
from mlflow.tracking import MlflowClient
from tests.release.made_up import release_of_wards
from tests.tracking.conftest import ROWS
from tests.tracking.test_mlflow_log import execute, only, runs_of

from privsvm import load
from privsvm.errors import PrivSVMError
from privsvm_bench.tracking.mlflow_log import log_results
from privsvm_bench.tracking.registry import register_model
from privsvm_bench.workflow.registering import FOR_COMPARISON, export_for_registry, write_first_model


@pytest.mark.parametrize(("epsilon", "index"), [(0.01, 0), (0.9, 1), (6.0, 2)])
def test_the_first_model_at_the_nearest_epsilon_predicts_alike(
    models: tuple[Path, Any], tmp_path: Path, epsilon: float, index: int
) -> None:
    file, path = models
    write_first_model(file, epsilon, tmp_path)
    model = load(tmp_path)
    np.testing.assert_allclose(model.scores(ROWS), path.scores(ROWS, index)[0], atol=1e-9)
    assert (model.guarantee_.status, model.guarantee_.epsilon_requested) == ("seeded", [0.1, 1.0, 30.0][index])


def test_a_seeded_model_is_registered_for_comparison_alone(
    models: tuple[Path, Any], uri: str, tmp_path: Path, write_result: Any
) -> None:
    (key,) = log_results([write_result("recommended")], uri, "abc")
    write_first_model(models[0], 1.0, tmp_path)
    tags = export_for_registry(tmp_path, tmp_path / "flavour")
    for _ in range(2):
        register_model(tmp_path / "flavour", tags, "demo-wine", uri, "demo/wine", key)
    client = MlflowClient(uri)
    (version,) = client.search_model_versions("name = 'demo-wine'")
    assert version.tags["use"] == FOR_COMPARISON == "seeded: for comparison only"
    assert version.run_id == only(runs_of(uri), "recommended").info.run_id
    with pytest.raises(MlflowException):
        client.get_model_version_by_alias("demo-wine", "production")
    files = tmp_path / "mlartifacts/demo/wine" / version.run_id / "artifacts/model"
    assert (files / "card.md").read_text() == version.description
    assert "seeded: for comparison only" in version.description
    np.testing.assert_array_equal(mlflow.pyfunc.load_model(str(files)).predict(ROWS), load(tmp_path).predict(ROWS))
    assert "One run is one curve" in client.get_experiment_by_name("demo/wine").tags["mlflow.note.content"]


def test_the_alias_production_goes_to_the_newest_release(models: tuple[Path, Any], uri: str, tmp_path: Path) -> None:
    client = MlflowClient(uri)
    (tmp_path / "seeded").mkdir()
    write_first_model(models[0], 1.0, tmp_path / "seeded")
    release_of_wards(tmp_path)
    for number, folder in enumerate(("model", "seeded", "model"), start=1):
        tags = export_for_registry(tmp_path / folder, tmp_path / f"flavour {number}")
        register_model(tmp_path / f"flavour {number}", tags, "demo-wards", uri, "demo/releases")
        version = client.get_model_version_by_alias("demo-wards", "production")
        assert (version.version, version.tags["use"]) in ((1, "released"), ("1", "released"))
    assert len(client.search_model_versions("name = 'demo-wards'")) == 2
    assert "Who is protected" in version.description


def test_the_next_call_finishes_one_that_ended_before_the_alias(uri: str, tmp_path: Path) -> None:
    client = MlflowClient(uri)
    release_of_wards(tmp_path)
    tags = export_for_registry(tmp_path / "model", tmp_path / "flavour")
    arguments = tmp_path / "flavour", tags, "demo-wards", uri, "demo/releases"
    stop = "BEGIN SELECT RAISE(ABORT, 'the end'); END"
    execute(tmp_path / "mlflow.db", f"CREATE TRIGGER no_alias BEFORE INSERT ON registered_model_aliases {stop}")
    with pytest.raises(PrivSVMError):
        register_model(*arguments)
    (version,) = client.search_model_versions("name = 'demo-wards'")
    assert "use" not in version.tags
    execute(tmp_path / "mlflow.db", "DROP TRIGGER no_alias")
    for _ in range(2):
        register_model(*arguments)
        (version,) = client.search_model_versions("name = 'demo-wards'")
        assert client.get_model_version_by_alias("demo-wards", "production").version == version.version
        assert version.tags == tags
    # A card that says more is not registered.
    (tmp_path / "model/card.html").write_text("<script>alert(1)</script>")
    with pytest.raises(ValueError, match="is not the page"):
        export_for_registry(tmp_path / "model", tmp_path / "other")
