import json

import pytest

from reproduce.engine.measurements import read_measurements
from tests.scripts import REPOSITORY

from ..workflow.conftest import new_workspace
from .conftest import SMALL

pytestmark = pytest.mark.workflow


def test_snakemake_runs_what_is_missing(tmp_path):
    workspace = new_workspace(tmp_path / "fresh", others=["reproduce/"])

    def snakemake(*arguments: str, runs: int = 2) -> str:
        (tmp_path / "settings.json").write_text(json.dumps({"figure1": {**SMALL["dpwss"]["figure1"], "runs": runs}}))
        chosen = ("--config", "experiments=dpwss_figures", f"settings={tmp_path / 'settings.json'}")
        return workspace.snakemake("-s", "reproduce/Snakefile", *chosen, *arguments)

    snakemake()
    # The paper's own table is not touched by other settings.
    changed = workspace.folder / "reports/reproduce/changed"
    assert (changed / "index.html").stat().st_size > 1000
    assert "heart/DPWSS" in (changed / "dpwss_figures.csv").read_text()
    assert "Nothing to be done" in snakemake("--dry-run")
    assert "figure1.json" in snakemake("--dry-run", runs=3)
    # The benchmark knows nothing of it.
    assert "reproduce" not in workspace.snakemake("--dry-run")
    assert workspace.git("ls-files", "--others", "--exclude-standard").split() == []


TOY = {
    "__init__.py": '"""A paper of one table."""\n',
    "experiments.py": """from reproduce.engine.experiment import Experiment


def jobs(settings):
    return {name: {"dataset": name, "source": source} for name, source in settings["datasets"].items()}


TABLE1 = Experiment(
    package=__package__,
    name="toy_table1",
    settings={"datasets": {"wine": ["wine", "all"]}},
    jobs=jobs,
    run="runs:count",
    measure="measurements:table1",
)
EXPERIMENTS = {TABLE1.name: TABLE1}
""",
    "runs.py": """from privsvm_bench.metrics import METRICS  # noqa: F401 - a file that the result depends on


def count(parameters, context):
    return {"n_rows": len(context.class_rows(*parameters["source"]).codes)}
""",
    "measurements.py": """from reproduce.engine.measurements import measure


def table1(experiment, results):
    for name, result in results.items():
        yield from measure("rows", name, "", "", rows=result["n_rows"])
""",
    "tables.csv": "experiment,table,title,text\ntoy_table1,,Table 1,Rows.\ntoy_table1,rows,Rows,Of each set.\n",
}


def test_a_new_paper_is_one_folder(tmp_path):
    workspace = new_workspace(tmp_path / "fresh", others=["reproduce/"])
    folder = workspace.folder / "reproduce/toy"
    folder.mkdir()
    for name, text in TOY.items():
        (folder / name).write_text(text)

    def snakemake(*arguments: str) -> str:
        return workspace.snakemake("-s", "reproduce/Snakefile", *arguments, "--config", "experiments=toy")

    snakemake()
    changed = workspace.git("status", "--short", "--untracked-files").split()[1::2]
    assert changed == ["reports/reproduce/toy_table1.csv", *sorted(f"reproduce/toy/{name}" for name in TOY)]
    assert read_measurements(workspace.folder / "reports/reproduce/toy_table1.csv") == [
        ("rows", "wine///rows", (178.0,))
    ]
    assert "Nothing to be done" in snakemake("--dry-run")

    # A changed measurement makes only the table stale; a module that the run imports makes the run stale.
    result = "data/reproduce/toy_table1/wine.json"
    for name, stale in (("reproduce/toy/measurements.py", False), ("lib/privsvm_bench/metrics.py", True)):
        with (workspace.folder / name).open("a") as file:
            file.write("# changed\n")
        output = snakemake("--dry-run")
        assert (f"output: {result}" in output) == stale
        assert "output: reports/reproduce/toy_table1.csv" in output


def test_an_unknown_experiment_is_one_line(tmp_path):
    workspace = new_workspace(tmp_path / "fresh", others=["reproduce/"])
    output = workspace.snakemake(
        "-s", "reproduce/Snakefile", "--config", "experiments=dpwss_figure", "--dry-run", check=False
    )
    assert workspace.code != 0
    assert "error: EXPERIMENTS: experiment 'dpwss_figure' is unknown; did you mean 'dpwss_figures'?" in output


def test_dvc_has_one_graph():
    """`dvc status` and `dvc commit` collect every dvc.yaml; one below would make the benchmark's check fail."""
    assert [path.relative_to(REPOSITORY).as_posix() for path in REPOSITORY.glob("*/dvc.yaml")] == []
