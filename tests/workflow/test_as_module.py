"""Another workflow uses this one as a module, from a folder of its own: config/README.md."""

import re
import shutil
from pathlib import Path

import pytest

from tests.scripts import REPOSITORY

from .conftest import SMALL, Workspace

PAGE = REPOSITORY / "config/README.md"


def snakefile(home: Path) -> str:
    """Return the Snakefile of the page, for a working copy."""
    (text,) = re.findall(r"^```snakemake\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert text.count("/srv/privsvm/Snakefile") == 1
    return text.replace("/srv/privsvm/Snakefile", str(home / "Snakefile"))


@pytest.fixture
def user(finished_once, tmp_path) -> tuple[Workspace, Workspace]:
    """Make a working copy whose path needs quotes, and a folder using it."""
    home = finished_once.copy(tmp_path / "it's our copy")
    folder = tmp_path / "study"
    folder.mkdir()
    (folder / "Snakefile").write_text(snakefile(home.folder))
    other = Workspace(folder)
    other.write_params({**home.params(), "datasets": {"wine": SMALL["datasets"]["wine"]}})
    shutil.copytree(home.folder / ".cache/numba", folder / ".cache/numba")
    return home, other


@pytest.mark.long
def test_a_workflow_of_one_data_set_has_the_bits_of_a_plain_run(user):
    home, other = user
    before = home.times(".")
    # Nothing is recorded in another repository with DVC.
    other.git("init", "--quiet")
    (other.folder / ".dvc").mkdir()
    printed = other.snakemake()
    assert "error" not in printed.lower()
    made = other.hashes("data/prepared", "data/condensed", "data/models", "data/results")
    plain = home.hashes("data/prepared", "data/condensed", "data/models", "data/results")
    assert made == {name: digest for name, digest in plain.items() if "breast_cancer" not in name}
    assert len(made) >= 13
    assert {"summary.csv", "data", "reports", "mlflow.db", "logs"} <= {path.name for path in other.folder.iterdir()}
    assert not (other.folder / "logs/recorded").exists()
    # The user's rule has read our curves.
    curves = (other.folder / "reports/curves.csv").read_text().splitlines()
    assert (other.folder / "summary.csv").read_text().splitlines() == [
        line for line in curves if line.startswith(("dataset,", "wine,"))
    ]
    # The clone stays as it is.
    assert home.times(".") == before
    assert other.nothing_to_do()


def test_its_parameters_and_its_config_count(user):
    _, other = user
    other.snakemake("--until", "privsvm_prepare")
    assert "privsvm_prepare" not in other.snakemake("--dry-run")
    assert "privsvm_prepare" in other.snakemake("--dry-run", "--config", "seed=7")
    other.change("seed", 7)
    assert "privsvm_prepare" in other.snakemake("--dry-run")
    printed = other.snakemake("--dry-run", "--config", "sead=7", check=False)
    assert other.code == 1
    assert "error: " in printed
    assert "sead" in printed
    (other.folder / "params.yaml").unlink()
    printed = other.snakemake("--dry-run", check=False)
    assert other.code == 1
    assert "error: params.yaml: file not found" in printed
    assert "Traceback" not in printed


def test_from_another_folder_without_a_module(user):
    """Commands are absolute, and nothing is recorded in the other repository."""
    home, other = user
    other.git("init", "--quiet")
    (other.folder / ".dvc").mkdir()
    arguments = ("--snakefile", str(home.folder / "Snakefile"), "--dry-run", "--printshellcmds")
    printed = other.snakemake(*arguments)
    assert "rule record:" not in printed
    assert str(home.folder).replace("'", "'\"'\"'") in printed
