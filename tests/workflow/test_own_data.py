"""The user's own data is private by default; methods of the user, and releases, through the workflow."""

import json
import re
import struct

import pytest
from mlflow.tracking import MlflowClient

import privsvm
from privsvm.files import read_json
from tests.scripts import REPOSITORY

from .conftest import OWN_ROWS, SECRET, SMALL, Workspace

pytestmark = pytest.mark.workflow
NUMBERS = ("metrics.json", "curves.csv")


def files(folder):
    return [path for path in folder.rglob("*") if path.is_file()]


def test_private_data_stays_on_this_machine(with_own_data, tmp_path):
    finished = with_own_data
    data = finished.folder / "data"
    numbers = [f"{folder}/{name}" for folder in ("reports", "data/private/reports") for name in NUMBERS]
    texts = [(finished.folder / name).read_text() for name in numbers]
    assert ["colleagues" in text for text in texts] == [True, True, False, False]
    assert ["patients" in text for text in texts] == [False, False, True, True]
    assert "in order" in finished.call("python", "stages/check.py")
    (finished.folder / numbers[3]).write_text(texts[3].replace("patients", "patient"))
    said = finished.call("python", "stages/check.py", check=False)
    assert f"{numbers[3]}: not the numbers of the results; delete it and run `make run`" in said
    (finished.folder / numbers[3]).write_text(texts[3])
    private = [path for path in files(data) if "patients" in path.as_posix()]
    private += [finished.folder / name for name in numbers[2:]]
    shared = [path for path in files(data) if "private" not in path.relative_to(data).parts]
    assert {path.relative_to(data).parts[0] for path in private} == {"own", "private"}
    assert len(private) > 10
    assert [path for path in shared if "colleagues" in path.name and "models" in path.parts]
    # Closed to other users.
    for folder in ("data", "logs", "reports", ".cache", ".snakemake", ".dvc/cache"):
        assert (finished.folder / folder).stat().st_mode & 0o077 == 0, folder
    assert not [path for path in private if path.is_relative_to(data / "private") and path.stat().st_mode & 0o077]
    # MLflow, reports and logs hold no cell of the table: neither its digits nor its bits, as given and scaled.
    shown = [file for folder in ("mlartifacts", "reports", "logs") for file in files(finished.folder / folder)]
    cells = [b"5.4378219", b"0.55366340", *(struct.pack("<d", number) for number in (SECRET, 2 * SECRET / 7 - 1))]
    assert len(shown) > 40
    for file in [*shown, finished.folder / "mlflow.db"]:
        assert not [cell for cell in cells if cell in file.read_bytes()], file

    # Both tools call the same jobs stale when the file's content changes, and none when its time does.
    assert finished.nothing_to_do()
    assert json.loads(finished.call("dvc", "status", "--json")) == {}
    file = data / "own/patients.csv"
    file.write_text(file.read_text())
    assert finished.nothing_to_do()
    file.write_text(file.read_text() + "6,4,b\n")
    stale = " ".join(finished.stale_jobs())
    assert "data/private/results/svm/patients.json" in stale
    assert "wine" not in stale
    assert "download" in json.loads(finished.call("dvc", "status", "--json"))
    file.write_text("\n".join(OWN_ROWS) + "\n")

    # A clone gets all but the private files.
    finished.call("dvc", "remote", "add", "--default", "shelf", str(tmp_path / "shelf"))
    finished.commit("results")
    assert "patients.csv" not in finished.git("ls-files")
    finished.call("dvc", "push")
    pushed = files(tmp_path / "shelf")
    assert len(pushed) > 20
    assert not [path for path in pushed if b"patients" in path.read_bytes()]
    # Files equal to a shared file hold no rows: "condensed" files without condensing.
    secrets = {path.read_bytes() for path in private} - {path.read_bytes() for path in shared}
    assert len(secrets) > 10
    assert secrets.isdisjoint(path.read_bytes() for path in pushed)
    finished.call("git", "clone", "--quiet", str(finished.folder), str(tmp_path / "clone"))
    clone = Workspace(tmp_path / "clone")
    clone.call("dvc", "pull", check=False)
    assert (clone.folder / "data/models/svm/colleagues.npz").is_file()
    assert not list((clone.folder / "data").rglob("*patients*"))

    # A dataset shared later moves to the public folders and is pushed.
    finished.change("datasets.patients.share", True)
    finished.snakemake()
    assert not list((data / "private").rglob("*patients*"))
    assert not any((data / "private/reports" / name).exists() for name in NUMBERS)
    finished.call("dvc", "push")
    assert [path for path in files(tmp_path / "shelf") if b"patients" in path.read_bytes()]


def test_a_copy_finds_own_data_and_finished_jobs(with_own_data):
    finished = with_own_data
    finished.commit("own data")
    told = finished.call("dvc", "exp", "run", "--temp", "--name", "tried", "-S", "methods.svm.C=3")
    # Only the models of svm are new; all other jobs take their outputs from the workspace's cache.
    trained = [line for line in told.splitlines() if re.search(r"/\d+  train ", line)]
    assert trained
    new = [line for line in trained if "taken from .cache/jobs" not in line]
    assert {re.search(r"train (\w+)", line)[1] for line in new} == {"svm"}
    assert "patients" in " ".join(trained)
    assert "tried" in finished.call("dvc", "exp", "list", "--name-only")


TOY = '''"""The most frequent class: a toy."""

from privsvm.base.parameters import parameter
from privsvm.constraints import SHARE_KEPT
from privsvm.methods.majority import MajorityClassifier

__all__ = ["ESTIMATOR", "NearestToyClassifier"]


class NearestToyClassifier(MajorityClassifier):
    shrinkage: float = parameter(0.0, SHARE_KEPT, "Nothing.")


ESTIMATOR = NearestToyClassifier
'''


def add_method(workspace, name, entry):
    """Run a method on all data sets; models and results of the others stay."""
    workspace.change(f"methods.{name}", entry)
    before = workspace.times("data/models", "data/results")
    workspace.snakemake()
    after = workspace.times("data/models", "data/results")
    assert {name: after[name] for name in before} == before
    assert workspace.nothing_to_do()
    results = {path.stem: read_json(path) for path in (workspace.folder / "data/results" / name).iterdir()}
    assert results.keys() == SMALL["datasets"].keys()
    assert all(min(result["summary"]["accuracy"]["mean"]) > 0.0 for result in results.values())


@pytest.mark.long
def test_a_class_of_another_package(finished):
    module, source = finished.folder / "packages/own_method.py", (REPOSITORY / "examples/own_method.py").read_text()
    module.parent.mkdir()
    module.write_text(source)
    add_method(finished, "mine", {"implementation": "own_method:NoisyCentroids", "states_epsilon": "budget"})
    for dataset in ("wine", "breast_cancer"):
        record = read_json(finished.folder / f"data/models/mine/{dataset}.json")
        assert record["kind"] == "predictions"
        assert {guarantee["status"] for guarantee in record["guarantees"]} == {"claimed"}
    assert "mine" in (finished.folder / "reports/curves.csv").read_text()
    # An edit of the package reruns the jobs of its method alone.
    module.write_text(source.replace("scale=4 *", "scale=8 *"))
    stale = [name for line in finished.stale_jobs() for name in line.split(", ") if "/models/" in name]
    assert {name.split("/")[2] for name in stale} == {"mine"}


def test_a_new_method_is_one_file(finished):
    (finished.folder / "lib/privsvm/methods/nearest_toy.py").write_text(TOY)
    add_method(finished, "toy", {"implementation": "nearest_toy", "shrinkage": 0.5})
    # The declaration applies, and the class has its public name, before files are generated from it.
    finished.change("methods.toy.shrinkage", 1.5)
    output = finished.snakemake("--dry-run", check=False)
    assert "params.yaml: methods.toy.shrinkage: 1.5 is not valid; must be at least 0 and below 1" in output
    assert "NearestToyClassifier()" in finished.call(
        "python", "-c", "import privsvm as p; print(p.NearestToyClassifier())"
    )
    status = finished.git("status", "--porcelain").splitlines()
    touched = {line[3:] for line in status if not line[3:].startswith(("reports/", "dvc.lock"))}
    assert touched == {"params.yaml", "lib/privsvm/methods/nearest_toy.py"}


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
