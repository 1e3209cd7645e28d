import json

import pytest

from ..workflow.conftest import new_workspace
from .conftest import HEART, REPOSITORY

pytestmark = pytest.mark.workflow


def test_snakemake_runs_what_is_missing(tmp_path):
    workspace = new_workspace(tmp_path / "fresh")
    columns = [{"epsilon": 1, "sigma": 0.5}]

    def snakemake(*arguments: str, runs: int = 2) -> str:
        settings = {"datasets": {"heart": HEART}, "columns": columns, "runs": runs, "shrinking": [1]}
        (tmp_path / "settings.json").write_text(json.dumps(settings))
        chosen = ("--config", "experiments=dpwss_table3", f"settings={tmp_path / 'settings.json'}")
        return workspace.snakemake("-s", "reproduce/Snakefile", *chosen, *arguments)

    snakemake()
    assert (workspace.folder / "reports/reproduce/index.html").stat().st_size > 1000
    table = (workspace.folder / "reports/reproduce/dpwss_table3.csv").read_text()
    assert "heart,DPWSS" in table
    assert "Nothing to be done" in snakemake("--dry-run")
    assert "heart.shrinking-1.json" in snakemake("--dry-run", runs=3)
    # The benchmark knows nothing of it.
    assert "reproduce" not in workspace.snakemake("--dry-run")
    assert workspace.git("ls-files", "--others", "--exclude-standard").split() == ["reports/reproduce/dpwss_table3.csv"]


def test_an_unknown_experiment_is_one_line(tmp_path):
    workspace = new_workspace(tmp_path / "fresh")
    output = workspace.snakemake(
        "-s", "reproduce/Snakefile", "--config", "experiments=dpwss_tabel3", "--dry-run", check=False
    )
    assert workspace.code != 0
    assert "error: EXPERIMENTS: experiment 'dpwss_tabel3' is unknown; did you mean 'dpwss_table3'?" in output


def test_dvc_has_one_graph():
    """`dvc status` and `dvc commit` collect every dvc.yaml; one below would make the benchmark's check fail."""
    assert [path.relative_to(REPOSITORY).as_posix() for path in REPOSITORY.glob("*/dvc.yaml")] == []
