"""Snakemake's graph and DVC's graph must agree on stale stages.

A changed parameter makes the same stages stale for both tools. A changed source may make more stages stale for DVC,
whose stages depend on folders, and never fewer: stale results would be recorded as current.
"""

import contextlib
import json
import sys
from pathlib import Path

import pytest
import yaml

from tests.scripts import REPOSITORY

from .conftest import SMALL

pytestmark = pytest.mark.workflow

STAGES = yaml.safe_load((REPOSITORY / "dvc.yaml").read_text())["stages"]
REPORT_FILES = ("reports/index.html", "reports/pages", "reports/assets", "reports/tracking.json")

# A key of each section with another value for it.
CHANGES = {
    "experiment": "another",
    "seed": 20261,
    "datasets.wine.scaling": "min_max",
    "protocol.test_size": 0.3,
    "protocol.repeats": 3,
    "protocol.stratified": False,
    "condense": "ci",
    "privacy.epsilons": [0.5, 2.0],
    "privacy.delta": 1e-6,
    "privacy.neighbours": "add_remove",
    "privacy.repeats": 3,
    "methods.svm.C": 2.0,
    "methods.pmsvm_wp.data_norm": 2.0,
    "audit.draws": 500,
    "audit.epsilons": [1.0, 2.0],
    "report.reference_epsilon": 4.0,
    "mlflow.tracking_uri": "sqlite:///other.db",
    "mlflow.register": True,
}


def outs_of(stage: str) -> list[str]:
    entries = [entry for kind in ("outs", "metrics", "plots") for entry in STAGES[stage].get(kind, [])]
    return [entry if isinstance(entry, str) else next(iter(entry)) for entry in entries]


def stage_of(output: str) -> str:
    """Return the stage whose outs hold a file."""
    if output.startswith(REPORT_FILES):
        return "report"
    owners = [stage for stage in STAGES for out in outs_of(stage) if f"{output}/".startswith(f"{out}/")]
    assert len(owners) == 1, f"{output} lies in the outs of {owners}"
    return owners[0]


def followers(stages: set[str]) -> set[str]:
    """Return these stages and all that depend on them."""
    while True:
        outs = {out for stage in stages for out in outs_of(stage)}
        more = {stage for stage in STAGES if outs & set(STAGES[stage]["deps"])} | stages
        if more == stages:
            return stages
        stages = more


def stale_for_dvc(workspace) -> set[str]:
    return followers(set(json.loads(workspace.call("dvc", "status", "--json"))))


def stale_for_snakemake(workspace) -> set[str]:
    names = {name.strip() for line in workspace.stale_jobs(DVC_STAGE="test") for name in line.split(",")}
    # MLflow's database has no versions.
    return {stage_of(name) for name in names if not name.endswith(".db")}


@pytest.fixture(scope="module")
def workspace(finished_once, tmp_path_factory):
    return finished_once.copy(tmp_path_factory.mktemp("graphs") / "finished")


def test_every_parameter_has_a_changed_value():
    sections = {key.partition(".")[0] for key in CHANGES}
    # Sources of raw files change no output, because their hashes are checked.
    assert sections | {"data"} == set(yaml.safe_load((REPOSITORY / "params.yaml").read_text()))
    assert {f"privacy.{key}" for key in SMALL["privacy"]} <= set(CHANGES)
    assert {f"audit.{key}" for key in SMALL["audit"]} <= set(CHANGES)


# Both tools take seconds to look at each: the others are long.
FIRST = ("protocol.repeats", "privacy.epsilons", "methods.svm.C", "report.reference_epsilon", "mlflow.tracking_uri")
SOURCES = [
    "Snakefile", "lib/privsvm_bench/datasets/readers.py", "lib/privsvm_bench/metrics.py",
    "lib/privsvm_bench/reporting/page.py", "lib/privsvm/solvers/linear/crammer_singer.py", "stages/audit.py",
    "stages/prepare.py", "stages/track.py",
]  # fmt: skip


def long_but(first, cases):
    """Mark all cases but a few as long."""
    return [pytest.param(case, marks=() if case in first else pytest.mark.long) for case in cases]


@contextlib.contextmanager
def edit(path):
    """Restore a file after a test has changed it."""
    original = path.read_text()
    try:
        yield original
    finally:
        path.write_text(original)


@pytest.mark.parametrize("key", long_but(FIRST, CHANGES))
def test_changed_parameter(workspace, key):
    with edit(workspace.folder / "params.yaml"):
        workspace.change(key, CHANGES[key])
        for_dvc, for_snakemake = stale_for_dvc(workspace), stale_for_snakemake(workspace)
    assert for_dvc == for_snakemake
    assert "report" in for_dvc


@pytest.mark.parametrize("source", long_but(["stages/prepare.py"], SOURCES))
def test_changed_source_is_never_finer_for_dvc(workspace, source):
    path = workspace.folder / source
    with edit(path) as original:
        path.write_text(original + "\nCHANGED = True\n")
        for_dvc, for_snakemake = stale_for_dvc(workspace), stale_for_snakemake(workspace)
    assert for_snakemake <= for_dvc
    assert for_snakemake or source == "Snakefile"


@pytest.mark.long
def test_dvc_repro_trains_only_what_changed(workspace, tmp_path):
    """Models of unchanged methods come from the cache of finished jobs."""
    clone = workspace.copy(tmp_path / "clone")
    before = clone.hashes("data/models")
    clone.change("methods.svm.C", 2.0)
    printed = clone.call("dvc", "repro")
    assert printed.count("Running stage 'train'") == 1
    logs = {name: (clone.folder / f"logs/train/{name}/wine.log").read_text() for name in SMALL["methods"]}
    assert {name for name, text in logs.items() if "taken from" not in text} == {"svm"}
    after = clone.hashes("data/models")
    assert {name for name in after if after[name] != before[name]} == {
        f"data/models/svm/{dataset}.{ending}" for dataset in SMALL["datasets"] for ending in ("json", "npz")
    }
    assert json.loads(clone.call("dvc", "status", "--json")) == {}
    assert clone.nothing_to_do()
    assert "in order" in clone.call(sys.executable, "stages/check.py")


def test_stages_have_no_word_of_params(tmp_path):
    """Commands of DVC's stages are constant: no text of params.yaml reaches a shell."""
    for stage in STAGES.values():
        assert "${" not in json.dumps(stage)
    assert {Path(dep).parts[0] for stage in STAGES.values() for dep in stage["deps"]} == {
        "Snakefile", "data", "lib", "stages"
    }  # fmt: skip
