"""The two scripts as they are called."""

import json
import re
import shutil
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest
from mlflow.tracking import MlflowClient
from tests.processes import refused_by_stage, run_stage
from tests.scripts import REPOSITORY, load_script

from privsvm.errors import PrivSVMError
from privsvm_bench.jobs.params import read_params

STAGES = REPOSITORY / "stages"


def track(folder: Path, results: Any) -> subprocess.CompletedProcess[str]:
    files = [path for path, _ in results]
    parameters = json.dumps({"tracking_uri": "sqlite:///mlflow.db", "experiment": "demo", "epsilon": 1.0})
    output = ("--output", "reports/tracking.json", "--parameters", parameters)
    models = ("--models", "data/models/pmsvm_wp/wine.npz")
    return run_stage("track.py", "--results", *files, *output, *models, cwd=folder)


def test_track_writes_the_same_keys_again_and_registers_models(
    tmp_path: Path, wine_results: Any, models: tuple[Path, Any]
) -> None:
    (tmp_path / "data/models/pmsvm_wp").mkdir(parents=True)
    for suffix in (".npz", ".json"):
        shutil.copy(models[0].with_suffix(suffix), tmp_path / "data/models/pmsvm_wp")
    done = track(tmp_path, wine_results)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["track: 4 results on 1 datasets are in MLflow"]
    written = (tmp_path / "reports/tracking.json").read_bytes()
    keys = json.loads(written)["wine"]
    assert sorted(keys) == ["majority", "pmsvm_wp", "pmsvm_wp_as_published", "svm"]
    assert len(set(keys.values())) == 4
    client = MlflowClient(f"sqlite:///{tmp_path}/mlflow.db")
    (version,) = client.search_model_versions("name = 'demo-wine-pmsvm_wp'")
    assert client.get_run(version.run_id).data.tags["record_key"] == keys["pmsvm_wp"]
    assert track(tmp_path, wine_results[::-1]).returncode == 0
    assert (tmp_path / "reports/tracking.json").read_bytes() == written
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "data", "logs", "mlartifacts", "mlflow.db", "mlflow.db.lock", "reports"
    ]  # fmt: skip
    arguments = ("--results", wine_results[0][0], "--output", "out.json", "--parameters", "{}")
    assert "tracking_uri" in refused_by_stage("track.py", *arguments, cwd=tmp_path)


COMPLETE = (STAGES.parent / ".test/params.yaml").read_text()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        *((text, "^error: params.yaml: ") for text in ("mlflow: {}\n", "mlflow: 3\n", "- a\n", "a: b: c\n", None)),
        (COMPLETE, "run `make run` first"),
    ],
)
def test_ui_without_parameters_or_results_says_what_to_do(tmp_path: Path, text: str | None, message: str) -> None:
    if text is not None:
        (tmp_path / "params.yaml").write_text(text)
    assert re.search(message, refused_by_stage("ui.py", cwd=tmp_path))
    assert not (tmp_path / "mlflow.db").exists()


@pytest.fixture
def ui() -> Any:
    return load_script("stages/ui.py")


def test_ui_without_the_packages_of_its_page(
    ui: Any, tmp_path: Path, wine_results: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(STAGES.parent / "params.yaml", tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(ui.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(PrivSVMError, match="run `make ui`"):
        ui.main([])
    assert not (tmp_path / "mlflow.db").exists()


def test_a_busy_port_is_passed_over(ui: Any, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        other = ui.free_port(port)
    assert port < other < port + 50
    assert f"port {port} is busy, using {other}" in capsys.readouterr().out


def test_ui_leaves_out_results_of_methods_that_were_taken_out(
    ui: Any, tmp_path: Path, wine_results: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    params = read_params(STAGES.parent / "params.yaml")
    monkeypatch.chdir(tmp_path)
    assert [tmp_path / path for path in ui.find_results(params)] == sorted(path for path, _ in wine_results)
    kept = {name: params.methods[name] for name in ("svm", "majority")}
    found = ui.find_results(params.model_copy(update={"methods": kept}))
    assert {path.parent.name for path in found} == {"svm", "majority"}
