"""`snakemake release` is `privsvm release` with the schema in params.yaml."""

import pytest
from mlflow.tracking import MlflowClient

import privsvm

from .conftest import OWN_ROWS

pytestmark = pytest.mark.workflow


def test_one_release(finished, tmp_path):
    table = {"label": "label", "classes": ["a", "b"], "prescaled": False}
    schema = {**table, "columns": {name: {"bounds": [0, 7], "fill": "middle"} for name in "xy"}}
    finished.change("datasets", {"wine": None, "patients": {"path": "patients.csv", "schema": schema}})
    finished.change("mlflow.register", True)
    (finished.folder / "data/own/patients.csv").write_text("\n".join(OWN_ROWS) + "\n")

    def release(*config):
        return finished.snakemake(
            "release", "--config", "epsilon=1", *config, check=False, PRIVSVM_LEDGER=str(tmp_path / "ledger.jsonl")
        )

    output = release("dataset=patients", "out=private/model")
    assert finished.code != 0
    assert "was not inspected with this schema" in output
    output = release("dataset=patients", "out=private/model", "hold_back=0.25", "without_inspection=true")
    assert finished.code == 0, output
    assert "private/model: released, epsilon 1 per row" in output
    assert "25 % of the rows, drawn at random" in output
    client = MlflowClient(f"sqlite:///{finished.folder}/mlflow.db")
    version = client.get_model_version_by_alias("benchmark-patients", "production")
    assert version.tags["use"] == "released"
    assert (finished.folder / "mlartifacts/benchmark/releases" / version.run_id / "artifacts/model/card.md").is_file()
    assert privsvm.load(finished.folder / "private/model").predict({"x": ["1"], "y": ["2"]})[0] in ("a", "b")
