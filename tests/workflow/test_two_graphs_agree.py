"""Snakemake's graph and DVC's graph must call the same stages stale.

Every leaf of params.yaml is changed in turn, and every source file's readers are compared. A rule that reads
something its DVC stage does not name (or the other way round) would leave stale results behind silently.
"""

import copy
from pathlib import Path

import networkx
import pytest
import yaml
from dvc.repo import Repo

from privsvm.pipeline.methods import implementations

from .conftest import REPOSITORY, SMALL

pytestmark = pytest.mark.workflow

# Keys that change no output: where bytes come from (they are hash checked).
WITHOUT_EFFECT = {"data.mirror"}

# Files that no job's result depends on.
NOT_JOBS = ("stages/check.py", "stages/ui.py", "stages/record", "stages/compile", "lib/privsvm/__init__.py",
            "lib/privsvm/pipeline/workflow.py", "lib/privsvm/pipeline/params.schema.json",
            "lib/privsvm/methods/__init__.py",
            "lib/privsvm/py.typed", "lib/privsvm/reproduction/")  # fmt: skip


def leaves(value, path=()):
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from leaves(item, (*path, key))
    else:
        yield path, value


def bumped(path, value):
    """Another valid value for a leaf."""
    special = {
        "kind": "k_fold", "neighbours": "add_remove", "scaling": "min_max", "variant": "as_published", "condense": "ci",
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


def owner(output: str, stages: dict) -> str | None:
    """The DVC stage whose outs hold a file, or whose command makes it."""
    if output.startswith("data/entities/"):
        # Private files of a protocol's entities: gone at its end, and by design in no out.
        return f"train@{output.split('/')[2]}"
    owners = [
        name for name, outs in stages.items() if any(output == out or output.startswith(out + "/") for out in outs)
    ]
    assert len(owners) <= 1, f"{output} lies in the outs of {owners}"
    return owners[0] if owners else None


def stages_of(workspace) -> dict[str, list[str]]:
    """Outs of every DVC stage."""
    with Repo(str(workspace.folder)) as repo:
        return {
            stage.name: [Path(out.fs_path).relative_to(workspace.folder).as_posix() for out in stage.outs]
            for stage in repo.index.stages
        }


def stale_for_dvc(workspace) -> set[str]:
    with Repo(str(workspace.folder)) as repo:
        graph = repo.index.graph
        by_address = {stage.addressing: stage for stage in graph}
        direct = [by_address[address] for address in repo.status()]
        # Edges point from a stage to what it depends on.
        return {stage.name for first in direct for stage in {first, *networkx.ancestors(graph, first)}}


def stale_for_snakemake(workspace) -> set[str]:
    stages = stages_of(workspace)
    outputs = workspace.call("snakemake", "--cores", "1", "--dry-run", DVC_STAGE="test")
    files = [
        name.strip()
        for line in outputs.splitlines()
        if line.strip().startswith("output: ")
        for name in line.split("output: ", 1)[1].split(",")
    ]
    owners = {owner(name, stages) for name in files if not name.startswith(".cache/")}
    assert None not in owners, f"an output without a DVC stage among {files}"
    return owners


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
        if path[-1] == "variant":
            place["allow_unsound"] = True
        if path[-1] == "kind":
            params["protocol"] = {"kind": "k_fold", "folds": 3, "repeats": 2, "stratified": True}
    workspace.write_params(params)
    try:
        for_dvc, for_snakemake = stale_for_dvc(workspace), stale_for_snakemake(workspace)
    finally:
        (workspace.folder / "params.yaml").write_text(original)
    assert for_dvc == for_snakemake
    assert bool(for_dvc) == (".".join(path) not in WITHOUT_EFFECT)


def test_every_source_file_has_the_same_readers(workspace):
    stages = stages_of(workspace)
    readers: dict[str, set[str]] = {}
    for output, inputs in inputs_of_outputs(workspace):
        for source in inputs:
            readers.setdefault(source, set()).add(owner(output, stages))
    with Repo(str(workspace.folder)) as repo:
        deps = {
            stage.name: [
                Path(dep.fs_path).relative_to(workspace.folder).as_posix()
                for dep in stage.deps
                if hasattr(dep, "fs_path")
            ]
            for stage in repo.index.stages
        }
    sources = [
        path.relative_to(workspace.folder).as_posix()
        for room in ("lib", "stages")
        for path in (workspace.folder / room).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and ".egg-info" not in path.as_posix()
    ]
    methods = yaml.safe_load((workspace.folder / "params.yaml").read_text())["methods"]
    used = {entry["implementation"] for entry in methods.values()}
    idle = tuple(f"lib/privsvm/methods/{name}.py" for name in implementations() if name not in used)
    for source in sources:
        for_dvc = {
            name
            for name, paths in deps.items()
            if any(source == path or source.startswith(path + "/") for path in paths)
        }
        assert readers.get(source, set()) == for_dvc, source
        assert for_dvc or source.startswith((*NOT_JOBS, *idle)), f"{source} is read by no job and is not listed as such"


def test_files_between_stages_have_the_same_readers(workspace):
    """Data that one DVC stage makes and another one's jobs read must be a dependency of the latter."""
    stages = stages_of(workspace)
    with Repo(str(workspace.folder)) as repo:
        edges = {(a.name, b.name) for a, b in repo.index.graph.edges}
    for output, inputs in inputs_of_outputs(workspace):
        reader = owner(output, stages)
        for source in inputs:
            maker = owner(source, stages)
            if maker and reader and maker != reader:
                assert (reader, maker) in edges, f"{reader} reads {source}, which {maker} makes"


@pytest.mark.parametrize(
    "source",
    ["lib/privsvm/methods/pmsvm_wp.py", "lib/privsvm/metrics.py", "lib/privsvm/reporting/page.py",
     "stages/prepare.smk", "stages/track.py", "lib/privsvm/numerics/streams.py"],
)  # fmt: skip
def test_changed_source(workspace, source):
    path = workspace.folder / source
    original = path.read_text()
    path.write_text(original + "\n# a comment\n")
    try:
        for_dvc, for_snakemake = stale_for_dvc(workspace), stale_for_snakemake(workspace)
    finally:
        path.write_text(original)
    assert for_dvc == for_snakemake
    assert for_dvc
    if source.endswith("pmsvm.py"):
        assert for_dvc == {"train@pmsvm_wp", "report"}
