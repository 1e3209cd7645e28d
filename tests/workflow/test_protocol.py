"""PPSVM in the workflow: who reads what, what becomes public, and that it computes what one process does."""

import json
import os
import re
import shutil
import signal
import sys
import time

import numpy as np
import pytest
from dvc.repo import Repo

from privsvm.base.ppsvm_protocol import Entity, combine_blocks, deal_columns
from privsvm.base.ppsvm_training import train_on_blocks
from privsvm.data.prepared import load_prepared
from privsvm.files import read_json, read_npz
from privsvm.numerics.streams import job_seed, seeded_stream
from privsvm.pipeline.model_files import load_paths
from privsvm.pipeline.sources import compiled_code_key
from privsvm.records import ModelRecord
from tests.once import made_once

from . import test_two_graphs_agree
from .conftest import SMALL, Workspace, new_workspace
from .test_kills import processes_in
from .test_two_graphs_agree import stale_for_both

pytestmark = pytest.mark.workflow

METHODS = {
    "majority": {"implementation": "majority", "datasets": ["wine"]},
    "ppsvm_linear": {"implementation": "ppsvm", "entities": 3, "C": 1.0, "mbar": 20, "datasets": ["breast_cancer"]},
    # Three classes, columns that are not dealt at random.
    "ppsvm_gaussian": {
        "implementation": "ppsvm",
        "kernel": "gaussian",
        "entities": [[0, 2, 4, 6, 8, 10, 12], [1, 3, 5, 7, 9, 11]],
        "C": "tune",
        "gamma": "tune",
        "datasets": ["wine"],
    },
}
JOBS = {"ppsvm_linear": ("breast_cancer", 3), "ppsvm_gaussian": ("wine", 2)}


def killed_and_finished(folder):
    """Run the protocol, kill it when private files lie about, run it again."""
    workspace = new_workspace(folder, {**SMALL, "methods": METHODS})
    process = workspace.start("snakemake", "--cores", "2")
    secrets = folder / "data/entities"
    deadline = time.monotonic() + 1200
    while not list(secrets.glob("*/*/*/secret.npz")):
        assert process.poll() is None, process.communicate()[0]
        assert time.monotonic() < deadline
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    while processes_in(folder.resolve()):
        time.sleep(0.05)
    for file in secrets.rglob("*.npz"):
        assert file.stat().st_mode & 0o777 == 0o600
        assert file.parent.stat().st_mode & 0o777 == 0o700
    workspace.snakemake()


@pytest.fixture(scope="session")
def done_once(tmp_path_factory):
    """A working copy in which the protocol was killed once and has run. Do not change it."""
    return Workspace(made_once(tmp_path_factory, "protocol", killed_and_finished))


@pytest.fixture
def done(done_once, tmp_path):
    return done_once.copy(tmp_path / "done")


@pytest.fixture(scope="module")
def jobs(done_once):
    """Every job of a run from nothing: its rule, its input files, its output files, its command."""
    printed = done_once.snakemake("--dry-run", "--forceall", "--printshellcmds", DVC_STAGE="test")
    found = []
    for text in re.split(r"\n(?=\[\w{3} \w{3} )", printed):
        rule = re.search(r"^(?:local)?rule (\w+):", text, re.MULTILINE)
        if rule:
            files = {
                key: [name.strip() for name in names.split(",")]
                for key, names in re.findall(r"^    (input|output): (.*)$", text, re.MULTILINE)
            }
            command = re.search(r"\bexec .*", text)
            found.append(
                {
                    "rule": rule[1],
                    "input": [name for name in files.get("input", []) if not name.startswith(("lib/", "stages/"))],
                    "output": files.get("output", []),
                    "command": command[0] if command else "",
                }
            )
    return found


def of_rule(jobs, rule):
    found = [job for job in jobs if job["rule"] == rule]
    assert found, rule
    return found


class TestInputs:
    def test_the_trainer_reads_blocks_labels_and_the_agreement(self, jobs):
        trainers = of_rule(jobs, "train_on_blocks")
        assert len(trainers) == 2
        for job in trainers:
            method = job["output"][0].split("/")[2]
            dataset, entities = JOBS[method]
            public = f"data/models/{method}/{dataset}.public"
            assert set(job["input"]) == {
                f"{public}/agreement.json",
                f"{public}/labels.npz",
                *(f"{public}/train.entity-{number}.npz" for number in range(1, entities + 1)),
            }

    def test_an_entity_reads_its_own_private_files_alone(self, jobs):
        for rule in ("draw", "publish", "answer"):
            for job in of_rule(jobs, rule):
                (entity,) = {re.search(r"entity-\d+", name)[0] for name in job["output"]}
                private = [name for name in job["input"] if name.startswith("data/entities/")]
                assert private
                assert all(f"/{entity}/" in name for name in private)
                assert not any("data/prepared" in name or ".entity-" in name for name in job["input"])

    def test_nobody_else_reads_private_files(self, jobs):
        readers = {job["rule"] for job in jobs if any(name.startswith("data/entities/") for name in job["input"])}
        assert readers == {"draw", "publish", "answer", "attack"}
        writers = {job["rule"] for job in jobs if any(name.startswith("data/entities/") for name in job["output"])}
        assert writers == {"partition", "draw"}

    def test_only_the_world_before_the_protocol_reads_the_whole_table(self, jobs):
        protocol = {job["rule"] for job in jobs if any("ppsvm" in name for name in job["output"])}
        readers = {job["rule"] for job in jobs if any(name.startswith("data/prepared/") for name in job["input"])}
        assert protocol & readers == {"agree", "partition"}
        # What `agree` writes of it are labels and sizes; nothing is read from `partition` but by its entity.
        assert not any(
            name.startswith("data/condensed/") for job in jobs if job["rule"] in protocol for name in job["input"]
        )

    def test_no_job_is_told_the_seed_of_another(self, jobs, done_once):
        seed = str(done_once.params()["seed"])
        seeds = []
        for job in jobs:
            if job["rule"] in ("agree", "partition", "draw", "train_on_blocks", "attack"):
                assert not re.search(rf"\b{seed}\b", job["command"])
                seeds.append(re.search(r'"(?:\w+_)?seed":(\d+)', job["command"])[1])
        # One deal of the columns a dataset, one seed for each entity, trainer and attack.
        assert len(set(seeds)) == 2 + 5 + 2 + 2

    def test_blocks_and_labels_are_enough_to_train(self, jobs, done_once, tmp_path):
        """The trainer's command in a folder that holds its inputs and nothing else."""
        for job in of_rule(jobs, "train_on_blocks"):
            for name in [*job["input"], *job["output"]]:
                (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / "logs/train_on_blocks" / job["output"][0].split("/")[2]).mkdir(parents=True)
            for name in job["input"]:
                shutil.copy(done_once.folder / name, tmp_path / name)
            for code in ("lib", "stages"):
                if not (tmp_path / code).exists():
                    (tmp_path / code).symlink_to(done_once.folder / code)
            compiled = done_once.folder / ".cache/numba" / compiled_code_key(done_once.folder)
            assert compiled.is_dir()
            environment = {"PYTHONPATH": str(done_once.folder / "lib"), "NUMBA_CACHE_DIR": str(compiled)}
            type(done_once)(tmp_path).call("bash", "-c", job["command"], **environment)
            for name in job["output"]:
                if "timings" not in name:
                    assert (tmp_path / name).read_bytes() == (done_once.folder / name).read_bytes()


def raw_columns(workspace, dataset):
    """Columns of all rows and of each split's training and test rows: in the file's units, scaled, and as z-scores."""
    prepared = load_prepared(workspace.folder / f"data/prepared/{dataset}.npz")
    for split in range(prepared.n_splits):
        rows = prepared.split(split)
        for X in (rows.X_train, rows.X_test):
            yield X
            spread = X.std(axis=0)
            yield (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1)
        for index in (rows.train_index, rows.test_index):
            yield prepared.X[index]
    yield prepared.X


def holds_a_column(array, columns):
    """Whether a column or row of an array is one of the columns, exactly or in other units."""
    array = np.asarray(array)
    if array.dtype.kind not in "fiu":
        return False
    flat = array.reshape(-1, array.shape[-1]).astype(float) if array.ndim else np.empty((0, 0))
    for found in (flat, flat.T):
        if found.shape[0] != columns.shape[0] or found.shape[0] < 3:
            continue
        with np.errstate(invalid="ignore", divide="ignore"):
            found = (found - found.mean(axis=0)) / found.std(axis=0)
            known = (columns - columns.mean(axis=0)) / columns.std(axis=0)
        if np.nanmax(np.abs(found.T @ known), initial=0) / len(known) >= 1 - 1e-6:
            return True
    return False


def public_arrays(workspace, method):
    for file in sorted((workspace.folder / "data/models" / method).rglob("*.npz")):
        for name, array in read_npz(file).items():
            yield f"{file.name}: {name}", array


@pytest.mark.parametrize("method", JOBS)
class TestSearch:
    def test_no_public_file_holds_a_column(self, done_once, method):
        tables = list(raw_columns(done_once, JOBS[method][0]))
        # Numbers that two columns cannot share by chance.
        values = np.unique(np.concatenate([table.ravel() for table in tables]))
        telling = values[values != np.round(values, 6)]
        assert telling.size > 1000
        searched = 0
        for name, array in public_arrays(done_once, method):
            searched += 1
            if array.dtype.kind == "f":
                assert not np.isin(array, telling).any(), name
            for table in tables:
                assert not holds_a_column(array, table), name
        dataset, entities = JOBS[method]
        # Two splits of blocks, answers and labels; digests and names; the model's arrays.
        assert searched >= 2 * (2 * entities + 2)
        texts = [file.read_text() for file in (done_once.folder / "data/models" / method).rglob("*.json")]
        assert texts
        numbers = {repr(float(value)) for value in telling}
        for text in texts:
            assert not numbers & set(re.findall(r"-?\d+\.\d+(?:e-?\d+)?", text))
        assert not holds_a_column(read_npz(done_once.folder / f"data/prepared/{dataset}.npz")["y"], tables[0])

    def test_the_search_finds_what_is_planted(self, done_once, method):
        dataset, _ = JOBS[method]
        tables = list(raw_columns(done_once, dataset))
        block = read_npz(done_once.folder / f"data/models/{method}/{dataset}.public/train.entity-1.npz")[
            "train_0"
        ].copy()
        scaled, z_scores = tables[0], tables[1]
        assert scaled.shape == z_scores.shape == (len(block), scaled.shape[1])
        for column in (scaled[:, 3], z_scores[:, 3], 7 - 0.1 * scaled[:, 3]):
            planted = block.copy()
            planted[:, 5] = column
            assert any(holds_a_column(planted, table) for table in tables)
            assert any(holds_a_column(planted.T, table) for table in tables)
        values = np.unique(np.concatenate([table.ravel() for table in tables]))
        assert np.isin(scaled[:, 3], values).all()


def test_private_files_are_gone_and_in_no_output_of_dvc(done_once):
    assert not (done_once.folder / "data/entities").exists()
    with Repo(str(done_once.folder)) as repo:
        outs = [os.path.relpath(out.fs_path, done_once.folder) for stage in repo.index.stages for out in stage.outs]
    assert not [out for out in outs if "data/entities".startswith(out) or out.startswith("data/entities")]
    names = {file.name for file in done_once.folder.rglob("*.npz")}
    assert "labels.npz" in names
    assert not {"columns.npz", "secret.npz"} & names


def test_a_second_run_has_nothing_to_do(done_once):
    assert done_once.nothing_to_do()
    assert done_once.call("dvc", "status", "--json").strip() == "{}"


@pytest.mark.parametrize("method", JOBS)
def test_the_jobs_compute_what_one_process_does(done_once, method):
    dataset, n_entities = JOBS[method]
    params, entry = done_once.params(), METHODS[method]
    kernel = entry.get("kernel", "linear")

    def stream(*purpose, key):
        return seeded_stream(job_seed(params["seed"], params["experiment"], *purpose), *key)

    prepared = load_prepared(done_once.folder / f"data/prepared/{dataset}.npz")
    parts = deal_columns(prepared.X.shape[1], entry["entities"], stream("columns", dataset, key=["columns"]))
    assert len(parts) == n_entities
    gamma = 1 / prepared.X.shape[1]
    results = read_json(done_once.folder / f"data/results/{method}/{dataset}.json")
    paths, record = load_paths(
        done_once.folder / f"data/models/{method}/{dataset}.npz",
        done_once.folder / f"data/models/{method}/{dataset}.json",
        ModelRecord,
    )
    for split, path in enumerate(paths):
        rows = prepared.split(split)
        mbar = entry.get("mbar", max(1, round(0.1 * rows.y_train.size)))
        blocks = {"train": {}, "test": {}}
        for number, part in enumerate(parts, start=1):
            secrets = stream("ppsvm", dataset, method, f"entity-{number}", key=["ppsvm", split])
            entity = Entity.draw(rows.X_train[:, part], mbar, secrets)
            blocks["train"][number] = entity.publish(rows.X_train[:, part], kernel, gamma)
            blocks["test"][number] = entity.publish(rows.X_test[:, part], kernel, gamma)
        model, arrays = train_on_blocks(
            combine_blocks(blocks["train"], kernel), rows.y_train, path.n_classes, kernel, gamma, entry["C"],
            entry.get("gamma") == "tune", stream("trainer", dataset, method, key=["tuning", split]),
        )  # fmt: skip
        for name, array in arrays.items():
            np.testing.assert_array_equal(getattr(path, name), array)
        codes = path.codes(path.scores(combine_blocks(blocks["test"], kernel), 0))[0]
        assert results["metrics"]["accuracy"][split] == [[pytest.approx(np.mean(codes == rows.y_test), abs=1e-15)]]
        assert results["objective"][split] == pytest.approx(model.objective, rel=1e-12)
    # Better than the most frequent class, and nothing is claimed.
    assert min(min(results["metrics"]["accuracy"]))[0] > 0.8
    assert results["status"] == "none"
    assert record.guarantees[0].randomness == "seeded"
    assert record.n_features == prepared.X.shape[1]


@pytest.mark.parametrize("method", JOBS)
def test_the_audit_recovers_every_entity(done_once, method):
    dataset, n_entities = JOBS[method]
    attacks = read_json(done_once.folder / f"data/results/{method}/{dataset}.attacks.json")
    assert [entity["entity"] for entity in attacks["entities"]] == [f"entity-{n}" for n in range(1, n_entities + 1)]
    extra = attacks["kernel"] == "gaussian"
    for entity in attacks["entities"]:
        assert entity["rows_needed"] == entity["features"] + extra
        assert entity["possible"]
        assert entity["error_at_rows_needed"] < 1e-8


class TestChanges:
    def test_evaluating_anew_needs_no_private_file(self, done):
        source = done.folder / "lib/privsvm/metrics.py"
        source.write_text(source.read_text() + "\n# a comment\n")
        output = done.snakemake("--dry-run")
        rules = set(re.findall(r"^(?:local)?rule (\w+):", output, re.MULTILINE))
        assert "evaluate_blocks" in rules
        assert not rules & {"agree", "partition", "draw", "publish", "answer", "train_on_blocks", "attack"}

    def test_sync_leaves_no_private_file(self, done):
        for file in (done.folder / "data").rglob("*"):
            os.utime(file, (time.time(), time.time() + hash(file) % 100))
        done.snakemake("--touch", "--forceall", "--quiet", "all", cores=1)
        assert done.nothing_to_do()
        assert not (done.folder / "data/entities").exists()

    @pytest.mark.parametrize(
        ("key", "value"), [("methods.ppsvm_linear.C", 2.0), ("methods.ppsvm_gaussian.entities", 4)]
    )
    def test_both_graphs_call_the_same_stages_stale(self, done_once, tmp_path_factory, key, value):
        workspace = done_once.copy(tmp_path_factory.mktemp("graphs") / "done")
        workspace.change(key, value)
        for_dvc, for_snakemake = stale_for_both(workspace)
        assert for_dvc == for_snakemake
        assert for_dvc == {"report", f"train@{key.split('.')[1]}"}

    def test_both_graphs_see_a_changed_source(self, done):
        path = done.folder / "stages/protocol/draw.py"
        path.write_text(path.read_text() + "\n# a comment\n")
        for_dvc, for_snakemake = stale_for_both(done)
        assert for_dvc == for_snakemake
        assert {"train@ppsvm_linear", "train@ppsvm_gaussian", "report"} <= for_dvc

    def test_dvc_compares_what_snakemake_compares(self, done_once):
        test_two_graphs_agree.check_that_dvc_compares_what_snakemake_compares(done_once)


def agree(workspace, folder, **changes):
    """Run the first job of ppsvm_gaussian with other parameters; return what it printed."""
    entry = {key: value for key, value in METHODS["ppsvm_gaussian"].items() if key != "implementation"}
    job = {"columns_seed": 1, "parameters": {**entry, **changes}}
    return workspace.call(
        sys.executable, "stages/protocol/agree.py", "--method", "ppsvm_gaussian",
        "--prepared", "data/prepared/wine.npz", "--agreement", str(folder / "agreement.json"),
        "--labels", str(folder / "labels.npz"), "--test-labels", str(folder / "test_labels.npz"),
        "--parameters", json.dumps(job), check=False,
    )  # fmt: skip


def test_fewer_entities_leave_no_block_behind(done_once, tmp_path):
    shutil.copytree(done_once.folder / "data/models/ppsvm_gaussian/wine.public", tmp_path / "public")
    assert (tmp_path / "public/test.entity-2.npz").exists()
    agree(done_once, tmp_path / "public", entities=1)
    assert done_once.code == 0
    assert {file.name for file in (tmp_path / "public").iterdir()} == {
        "agreement.json", "labels.npz", "test_labels.npz", "train.entity-1.npz", "test.entity-1.npz"
    }  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "parts"),
    [
        ({"entities": 14}, ["methods.ppsvm_gaussian on wine", "entities=14", "no column"]),
        ({"mbar": 1000}, ["methods.ppsvm_gaussian on wine", "mbar=1000", "training rows"]),
        ({"entities": [[0, 1], [1, 2]]}, ["methods.ppsvm_gaussian on wine", "column 1 is held 2 times"]),
    ],
)
def test_mistakes_are_one_line(done_once, tmp_path, changes, parts):
    output = agree(done_once, tmp_path, **changes)
    assert done_once.code == 1
    (line,) = output.strip().splitlines()
    assert line.startswith("error: params.yaml: ")
    for part in parts:
        assert part in line
    assert not list(tmp_path.iterdir())
