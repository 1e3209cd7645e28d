"""Snakemake's graph and DVC's graph must call the same stages stale.

Every leaf of params.yaml, a file of one's own, and the files of methods and solvers are changed in turn. A rule that
reads something its DVC stage does not depend on (or the other way round) would leave stale results behind silently.
"""

import base64
import contextlib
import copy
import json
import os
import re
import sys
from pathlib import Path
from unittest import mock

import dvc.utils.serialize
import dvc.utils.strictyaml
import networkx
import pytest
import yaml
from dvc.repo import Repo

from privsvm.files import read_json
from privsvm.pipeline.graph import SCRIPTS, file_digest
from privsvm.pipeline.methods import implementations, module_name
from privsvm.pipeline.sources import closure, compiled_modules

from .conftest import REPOSITORY, SMALL

pytestmark = pytest.mark.workflow

# Keys that change no output: where bytes come from (they are hash checked).
WITHOUT_EFFECT = {"data.mirror"}

# DVC's stages that only write what other stages depend on.
BOOKKEEPING = {"inputs", "jobs"}

# Scripts and modules that no job's result depends on: what starts, checks and shows the benchmark, what only compiles,
# public names, and the engine of reproductions.
NOT_JOBS = ("stages/check.py", "stages/ui.py", "stages/forget.py", "stages/record.py", "stages/dvc_stage.py",
            "stages/status.py", "stages/plots.py", "stages/share.py", "stages/captions/",
            "stages/release.py", "stages/release.smk",
            "lib/privsvm/tracking/comparison.py", "lib/privsvm/pipeline/slurm.py",
            "lib/privsvm/warm_up.py",
            "lib/privsvm/pipeline/start.py", "lib/privsvm/pipeline/dry_run.py", "lib/privsvm/pipeline/workflow.py",
            "lib/privsvm/pipeline/versions.py", "lib/privsvm/pipeline/graph.py",
            "lib/privsvm/pipeline/sources.py", "lib/privsvm/pipeline/params.py",
            "lib/privsvm/py.typed", "lib/privsvm/__init__.pyi",
            "lib/privsvm/model_selection/", "lib/privsvm/numerics/stopping_draws.py",
            "lib/privsvm/pipeline/recorded.py",
            "lib/privsvm/pipeline/own_files.py", "lib/privsvm/reproduction/",
            # What people call: the command, releases, audits of estimators of others.
            "lib/privsvm/__main__.py", "lib/privsvm/command.py", "lib/privsvm/release/",
            "lib/privsvm/auditing/estimators.py", "lib/privsvm/data/public_schema.py")  # fmt: skip


def leaves(value, path=()):
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from leaves(item, (*path, key))
    else:
        yield path, value


def bumped(path, value):
    """Another valid value for a leaf."""
    special = {
        "kind": "k_fold", "neighbours": "add_remove", "scaling": "min_max", "condense": "ci",
        "kernel": "rbf", "tracking_uri": "sqlite:///other.db", "test_size": 0.3,
        "delta": 1e-6, "experiment": "another", "mirror": "elsewhere",
    }  # fmt: skip
    if path[-1] in special:
        return special[path[-1]]
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, float):
        return value * 1.5
    if isinstance(value, list):
        return [*value, 2.0]
    raise AssertionError(f"no other value is known for {'.'.join(path)} = {value!r}")


def default_params():
    return {**yaml.safe_load((REPOSITORY / "params.yaml").read_text()), **SMALL}


LEAVES = [path for path, _ in leaves(default_params())]


@pytest.fixture(scope="module")
def workspace(finished_once, tmp_path_factory):
    return finished_once.copy(tmp_path_factory.mktemp("graphs") / "finished")


@pytest.fixture(scope="module", autouse=True)
def texts_parsed_once():
    """In this process, DVC parses each text once: it reads its files twice for each state, and they mostly stay."""
    parse, known = dvc.utils.serialize.parse_yaml, {}

    def parse_once(text, path, typ="safe"):
        if typ != "safe":
            return parse(text, path, typ)
        if text not in known:
            known[text] = parse(text, path)
        return copy.deepcopy(known[text])

    with contextlib.ExitStack() as patches:
        for place in (dvc.utils.serialize, sys.modules[parse.__module__], dvc.utils.strictyaml):
            patches.enter_context(mock.patch.object(place, "parse_yaml", parse_once))
        yield


def owner(output: str, stages: dict) -> str | None:
    """The DVC stage whose outs hold a file, or whose command makes it."""
    owners = [
        name for name, outs in stages.items() if any(output == out or output.startswith(out + "/") for out in outs)
    ]
    assert len(owners) <= 1, f"{output} lies in the outs of {owners}"
    return owners[0] if owners else None


def outs_of(workspace, repo: Repo) -> dict[str, list[str]]:
    """Outs of every DVC stage."""
    return {
        stage.name: [Path(out.fs_path).relative_to(workspace.folder).as_posix() for out in stage.outs]
        for stage in repo.index.stages
    }


def stages_of(workspace) -> dict[str, list[str]]:
    with Repo(str(workspace.folder)) as repo:
        return outs_of(workspace, repo)


def write_inputs(workspace) -> None:
    """Run DVC's stage `inputs`, as the first one of every `dvc repro`."""
    workspace.call(sys.executable, "stages/dvc_stage.py", DVC_STAGE="inputs")


def state_of_dvc(workspace) -> tuple[set[str], dict[str, list[str]]]:
    """Stages that `dvc repro` would run, and the outs of all.

    It runs `inputs` first, and knows through `jobs` which data a method reads.
    """
    write_inputs(workspace)
    with Repo(str(workspace.folder)) as repo:
        outs = outs_of(workspace, repo)
        graph = repo.index.graph.copy()
        by_name = {stage.name: stage for stage in graph}
        # Addresses begin with the place of dvc.yaml as seen from here.
        direct = {address.rpartition(":")[2] for address in repo.status()} - BOOKKEEPING
    # What both write has been compared by content: it leads from nobody to everybody.
    graph.remove_nodes_from([by_name[name] for name in BOOKKEEPING])
    for name, stage in by_name.items():
        if not name.startswith("train@"):
            continue
        method = name.partition("@")[2]
        inputs, jobs = (workspace.folder / f"data/{kind}/{method}.json" for kind in ("inputs/train", "jobs"))
        if not jobs.exists() or read_json(jobs)["inputs"] != file_digest(inputs):
            direct.add(name)
        for dataset in read_json(inputs)["jobs"]:
            graph.add_edges_from((stage, by_name[f"{phase}@{dataset}"]) for phase in ("prepare", "condense"))
    # Edges point from a stage to what it depends on.
    stale = {stage.name for name in direct for stage in {by_name[name], *networkx.ancestors(graph, by_name[name])}}
    return stale, outs


def stale_outputs(workspace) -> list[str]:
    """Files that Snakemake would make again."""
    outputs = workspace.call("snakemake", "--cores", "1", "--dry-run", DVC_STAGE="test")
    return [
        name.strip()
        for line in outputs.splitlines()
        if line.strip().startswith("output: ")
        for name in line.split("output: ", 1)[1].split(",")
    ]


def owners_of(files: list[str], stages: dict[str, list[str]]) -> set[str]:
    """The DVC stages that files of the workflow belong to."""
    owners = {owner(name, stages) for name in files if not name.startswith(".cache/")}
    assert None not in owners, f"an output without a DVC stage among {files}"
    return owners


def stale_for_both(workspace) -> tuple[set[str], set[str]]:
    """Stages that `dvc repro` would run, and those with files that Snakemake would make again."""
    for_dvc, stages = state_of_dvc(workspace)
    return for_dvc, owners_of(stale_outputs(workspace), stages)


def inputs_of_outputs(workspace) -> list[tuple[str, list[str]]]:
    """Every output of the workflow with the input files of its job."""
    table = workspace.call("snakemake", "--cores", "1", "--detailed-summary", DVC_STAGE="test").splitlines()
    header, *rows = [line.split("\t") for line in table if "\t" in line]
    output, inputs = header.index("output_file"), header.index("input-file(s)")
    return [(row[output], row[inputs].split(",")) for row in rows]


@pytest.mark.parametrize("path", LEAVES, ids=".".join)
def test_changed_parameter(workspace, path):
    original = (workspace.folder / "params.yaml").read_text()
    params = copy.deepcopy(default_params())
    place = params
    for key in path[:-1]:
        place = place[key]
    if path[-1] == "implementation":
        place.clear()
        place["implementation"] = "svm" if "majority" in path else "majority"
    else:
        place[path[-1]] = bumped(path, place[path[-1]])
        if path[-1] == "kind":
            params["protocol"] = {"kind": "k_fold", "folds": 3, "repeats": 2, "stratified": True}
    workspace.write_params(params)
    try:
        for_dvc, for_snakemake = stale_for_both(workspace)
    finally:
        (workspace.folder / "params.yaml").write_text(original)
    if path[-1] == "implementation":
        # One stage of DVC holds all audits: it has one fewer. Snakemake has no job for that.
        for_dvc -= {"audit"} - for_snakemake
    assert for_dvc == for_snakemake
    assert bool(for_dvc) == (".".join(path) not in WITHOUT_EFFECT)


def test_a_dataset_that_a_method_does_not_use(own_data):
    """`svm` has no job on the data of one's own."""
    own_data.change("datasets.patients.bounds", [0, 9])
    assert stale_for_both(own_data) == (OF_PATIENTS, OF_PATIENTS)


OF_PATIENTS = {
    "download@patients", "prepare@patients", "condense@patients", "train@majority", "train@pmsvm_wp", "report"
}  # fmt: skip


@pytest.mark.parametrize("change", ["one value", "one row removed", "an older file in its place", "touched"])
def test_changed_file_of_ones_own(own_data, change):
    file = own_data.folder / "data/own/patients.csv"
    before = file.stat().st_mtime_ns
    text = file.read_text()
    if change == "one value":
        file.write_text(text.replace("\n3,3,b", "\n3,4,b", 1))
        assert len(file.read_text()) == len(text)
    elif change == "one row removed":
        file.write_text("\n".join(text.splitlines()[:-1]) + "\n")
    elif change == "an older file in its place":
        other = own_data.folder / "other.csv"
        other.write_text(text.replace("\n3,3,b", "\n3,4,b", 1))
        os.utime(other, ns=(before - 10**12, before - 10**12))
        other.replace(file)
    else:
        os.utime(file, ns=(before + 10**12, before + 10**12))
    status = own_data.call("dvc", "status", "--json").strip()
    output = own_data.call(sys.executable, "stages/check.py", check=False)
    if change == "touched":
        assert status == "{}"
        assert own_data.code == 0, output
        assert own_data.nothing_to_do()
        assert stale_for_both(own_data) == (set(), set())
        return
    # DVC sees it before anything has run.
    assert json.loads(status) == {"inputs": [{"changed deps": {"data/outside": "modified"}}]}
    assert own_data.code == 1
    assert "not up to date" in output
    files = stale_outputs(own_data)
    for name in files:
        assert "patients" in name or name.startswith("reports/")
    for_dvc, stages = state_of_dvc(own_data)
    assert owners_of(files, stages) == for_dvc == OF_PATIENTS


def test_dvc_repro_runs_exactly_what_depends_on_the_file(own_data):
    file = own_data.folder / "data/own/patients.csv"
    before = own_data.times("data")
    file.write_text("\n".join(file.read_text().splitlines()[:-1]) + "\n")
    output = own_data.call("dvc", "repro")
    assert set(re.findall(r"Running stage '([^']*)'", output)) == OF_PATIENTS | BOOKKEEPING
    after = own_data.times("data")
    rerun = {
        name for name in after if after[name] != before.get(name) and not name.startswith(("data/inputs", "data/jobs"))
    }
    # DVC removes a stage's outputs: both methods run on their other datasets too, and `svm` on none.
    assert not [name for name in rerun if "/svm/" in name]
    assert {name.split("/")[2] for name in rerun if name.startswith("data/raw/")} == {"patients"}
    assert own_data.nothing_to_do()
    assert own_data.call("dvc", "status", "--json").strip() == "{}"
    assert "in order" in own_data.call(sys.executable, "stages/check.py")
    # Gone: one line, and nothing of it is taken for current.
    file.rename(own_data.folder / "data/own/elsewhere.csv")
    for command in (["snakemake", "--cores", "1", "--dry-run"], ["dvc", "repro"], ["dvc", "status", "--quiet"]):
        output = own_data.call(*command, check=False)
        assert own_data.code != 0
        assert "Traceback" not in output
    assert "patients.csv" in own_data.snakemake("--dry-run", check=False)


def test_changed_package_of_a_method(own_data):
    """The sources of another package are inputs of its own method's jobs, in both tools."""
    assert own_data.nothing_to_do()
    source = own_data.folder / "packages/house_brand/models.py"
    text = source.read_text()
    os.utime(source, (0, 0))
    assert own_data.call("dvc", "status", "--json").strip() == "{}"
    assert stale_outputs(own_data) == []
    source.write_text(text + "\n# a comment\n")
    assert json.loads(own_data.call("dvc", "status", "--json")) == {
        "inputs": [{"changed deps": {"data/outside": "modified"}}]
    }
    assert stale_for_both(own_data) == ({"train@mine", "report"}, {"train@mine", "report"})


def recorded_params(workspace) -> dict[str, list[str]]:
    """What Snakemake compares of every job besides files: the values in its `params`, by output."""
    found = {}
    for record in (workspace.folder / ".snakemake/metadata").iterdir():
        content = read_json(record)
        found[base64.b64decode(record.name).decode()] = [str(value) for value in content["params"]]
    return found


def check_that_dvc_compares_what_snakemake_compares(workspace):
    """Digests of code and parameters in a job's `params` stand in the file that its DVC stage depends on."""
    stages = stages_of(workspace)
    compared = 0
    for output, values in recorded_params(workspace).items():
        stage = owner(output, stages)
        if stage is None:
            assert output.startswith((".cache/", "logs/")), output
            continue
        group, _, name = stage.partition("@")
        file = {"condense": "condense", "audit": "audit", "report": "report"}.get(group, f"{group}/{name}")
        text = (workspace.folder / f"data/inputs/{file}.json").read_text()
        for value in values:
            digest = value.strip("'\"")
            if re.fullmatch(r"[0-9a-f]{32}", digest):
                assert digest in text, (output, file)
                compared += 1
            elif group not in ("train", "report"):
                # JSON inside JSON: its quotes are escaped there.
                assert digest.replace('"', '\\"') in text or digest == "", (output, file)
        assert any(re.fullmatch(r"[0-9a-f]{32}", value.strip("'\"")) for value in values), output
    assert compared > 10


def test_dvc_compares_what_snakemake_compares(workspace):
    write_inputs(workspace)
    check_that_dvc_compares_what_snakemake_compares(workspace)


def test_every_source_is_read_by_a_job_or_known_not_to_be():
    read = set(closure(*SCRIPTS.values()))
    read |= {name for implementation in implementations() for name in closure(module_name(implementation))}
    rules = {script.replace(".py", ".smk") for script in SCRIPTS.values()}
    # Rules that make no result, and what only hands over parameters.
    idle_rules = {"stages/common.smk", "stages/record.smk"}
    for folder in ("lib/privsvm", "stages"):
        for path in (REPOSITORY / folder).rglob("*"):
            name = path.relative_to(REPOSITORY).as_posix()
            if path.is_file() and "__pycache__" not in path.parts and name not in read | rules | idle_rules:
                assert name.startswith(NOT_JOBS) or name in compiled_modules(), (
                    f"{name} is read by no job and is not listed as such"
                )


def test_files_between_stages_have_the_same_readers(workspace):
    """Data that one DVC stage makes and another one's jobs read must come before the latter."""
    stages = stages_of(workspace)
    with Repo(str(workspace.folder)) as repo:
        graph = repo.index.graph
        before = {stage.name: {other.name for other in networkx.descendants(graph, stage)} for stage in graph}
    for output, inputs in inputs_of_outputs(workspace):
        reader = owner(output, stages)
        for source in inputs:
            maker = owner(source, stages)
            if maker and reader and maker != reader:
                assert maker in before[reader], f"{reader} reads {source}, which {maker} makes"
                if reader.startswith("train@"):
                    # Its content is compared too.
                    method, dataset = output.split("/")[2], Path(output).name.split(".")[0]
                    assert source in read_json(workspace.folder / f"data/jobs/{method}.json")["data"][dataset]


def stale_after_a_comment(workspace, source):
    path = workspace.folder / source
    original = path.read_text()
    path.write_text(original + "\n# a comment\n")
    try:
        return stale_for_both(workspace)
    finally:
        path.write_text(original)


@pytest.mark.parametrize(
    ("source", "stale"),
    [
        # A method's own file, and what only one of the methods imports.
        ("lib/privsvm/methods/pmsvm_wp.py", {"train@pmsvm_wp", "audit", "report"}),
        ("lib/privsvm/methods/majority.py", {"train@majority", "report"}),
        # A solver reruns the methods that use it, and no other one.
        ("lib/privsvm/solvers/crammer_singer.py", {"train@pmsvm_wp", "audit", "report"}),
        ("lib/privsvm/solvers/block_smo.py", {"train@svm", "report"}),
        ("lib/privsvm/solvers/noisy_gradient.py", set()),
        ("lib/privsvm/metrics.py", None),
        ("lib/privsvm/reporting/page.py", {"report"}),
        ("stages/prepare.py", None),
        ("stages/track.py", {"report"}),
        ("lib/privsvm/numerics/streams.py", None),
        # Read by no job of this benchmark.
        ("lib/privsvm/methods/rsvm.py", set()),
        ("stages/check.py", set()),
    ],
)
def test_changed_source(workspace, source, stale):
    for_dvc, for_snakemake = stale_after_a_comment(workspace, source)
    assert for_dvc == for_snakemake
    assert for_dvc if stale is None else for_dvc == stale


def test_a_rule_is_shared_and_dvc_never_finer(workspace):
    """A comment in a rule reruns nothing in Snakemake, which compares commands; DVC compares the text."""
    for_dvc, for_snakemake = stale_after_a_comment(workspace, "stages/prepare.smk")
    assert for_snakemake == set()
    assert {"prepare@wine", "prepare@breast_cancer"} <= for_dvc
    path = workspace.folder / "stages/prepare.smk"
    original = path.read_text()
    changed = original.replace("exec python ", "exec python -B ")
    assert changed != original
    path.write_text(changed)
    try:
        for_dvc, for_snakemake = stale_for_both(workspace)
    finally:
        path.write_text(original)
    assert for_snakemake
    assert for_dvc == for_snakemake
