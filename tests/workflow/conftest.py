"""Working copies of the repository in which the real workflow runs on a small benchmark."""

import hashlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
import yaml

from privsvm.digests import sha256_of_file
from privsvm.warm_up import MODULES, warm_up
from tests.once import make_once
from tests.scripts import REPOSITORY, copy_files, list_files

SMALL = {
    "datasets": {"wine": {"scaling": "bounds"}, "breast_cancer": {"scaling": "bounds"}},
    "protocol": {"kind": "holdout", "repeats": 2, "test_size": 0.25, "stratified": True},
    "privacy": {"epsilons": [0.5, 4.0], "delta": 1e-5, "neighbours": "replace_one", "repeats": 2},
    "audit": {"draws": 400, "epsilons": [1.0]},
    "methods": {
        "svm": {"implementation": "svm", "kernel": "linear", "C": 1.0},
        "majority": {"implementation": "majority"},
        "pmsvm_wp": {"implementation": "pmsvm_wp", "C": 0.05, "data_norm": 1.0},
    },
}
# The user's own data, and their entry.
SECRET = 5.4378219065
OWN_ROWS = ["x,y,label", *(f"{SECRET if i == 17 else i % 7},{i % 5},{'ab'[i % 2]}" for i in range(40))]
OWN_ENTRY = {"path": "patients.csv", "label": "label", "classes": ["a", "b"], "bounds": [0, 7], "prescaled": False}

# Folders that no benchmark reads.
NOT_READ = ("tests/", "bench/", "conda/", "docs/images/", "docs/proofs/", "examples/", "paper/", "reproduce/")
# Equal from run to run; timings, logs and databases are not.
REPRODUCIBLE = ("data/prepared", "data/condensed", "data/models", "data/results", "reports/metrics.json",
                "reports/curves.csv", "reports/tracking.json")  # fmt: skip


class Workspace:
    """A working copy: its folder, and how to run programs in it."""

    def __init__(self, folder: Path):
        self.folder = folder

    def environment(self, **changes: str) -> dict[str, str]:
        variables = {
            name: value for name, value in os.environ.items() if not name.startswith(("SNAKEMAKE", "DVC", "PYTEST"))
        }
        for name in ("PRIVSVM_MIRROR", "NUMBA_CACHE_DIR"):
            variables.pop(name, None)
        return {
            **variables,
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            # Equivalent to `pip install --editable .` in a clone.
            "PYTHONPATH": f"{self.folder / 'lib'}{os.pathsep}{self.folder / 'packages'}",
            "DVC_NO_ANALYTICS": "true",
            "GIT_AUTHOR_NAME": "test", "GIT_AUTHOR_EMAIL": "test@example.org",
            "GIT_COMMITTER_NAME": "test", "GIT_COMMITTER_EMAIL": "test@example.org",
            **changes,
        }  # fmt: skip

    def start(self, *command: str, **environment: str) -> subprocess.Popen:
        """Start a program as a user does."""
        return subprocess.Popen(
            command, cwd=self.folder, env=self.environment(**environment), text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip

    def call(self, *command: str, check: bool = True, **environment: str) -> str:
        """Run a program; return its output. With check=False, `code` is its exit code."""
        process = self.start(*command, **environment)
        try:
            output, _ = process.communicate()
        except BaseException:
            # Timeout of the test.
            os.killpg(process.pid, signal.SIGKILL)
            raise
        self.code = process.returncode
        assert not check or self.code == 0, f"{' '.join(command)} ended with {self.code}:\n{output[-6000:]}"
        return output

    def snakemake(self, *arguments: str, cores: int = 2, **options) -> str:
        return self.call("snakemake", "--cores", str(cores), *arguments, **options)

    def make(self, *arguments: str, **options) -> str:
        """Run a recipe of the Makefile without building an environment."""
        return self.call("make", *arguments, "PREPARE=true", **options)

    def params(self) -> dict:
        return yaml.safe_load((self.folder / "params.yaml").read_text())

    def write_params(self, params: dict) -> None:
        (self.folder / "params.yaml").write_text(yaml.safe_dump(params, sort_keys=False))

    def change(self, key: str, value) -> None:
        """Set one dotted key of params.yaml."""
        params = self.params()
        *path, last = key.split(".")
        section = params
        for name in path:
            section = section[name]
        section[last] = value
        self.write_params(params)

    def stale_jobs(self, **environment: str) -> list[str]:
        """List the outputs that `snakemake -n` would make again."""
        output = self.snakemake("--dry-run", **environment)
        return [line.split("output: ", 1)[1] for line in output.splitlines() if line.strip().startswith("output: ")]

    def nothing_to_do(self) -> bool:
        return "Nothing to be done" in self.snakemake("--dry-run")

    def files(self, *names: str) -> dict[str, Path]:
        """Find every file at or below the given paths, by its name in the working copy."""
        paths = (path for name in names for path in (self.folder / name, *(self.folder / name).rglob("*")))
        return {path.relative_to(self.folder).as_posix(): path for path in sorted(paths) if path.is_file()}

    def hashes(self, *names: str) -> dict[str, str]:
        """Digest every file at or below the given paths, or all reproducible ones."""
        return {name: sha256_of_file(path) for name, path in self.files(*(names or REPRODUCIBLE)).items()}

    def times(self, *names: str) -> dict[str, int]:
        """Return modification times of files at or below the given paths."""
        return {name: path.stat().st_mtime_ns for name, path in self.files(*names).items()}

    def git(self, *arguments: str) -> str:
        return self.call("git", *arguments)

    def commit(self, message: str) -> None:
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", message)

    def copy(self, folder: Path) -> "Workspace":
        """Copy the working copy with all its times."""
        shutil.copytree(self.folder, folder, symlinks=True)
        other = Workspace(folder)
        other.take_compiled(self)
        return other

    def take_compiled(self, other: "Workspace") -> None:
        """Copy Numba's cache of another working copy of the same sources.

        Numba and `privsvm.warm_up` name it after the sources' folder. If that changes, everything is compiled again.
        """
        for theirs, ours in zip(*(at.list_endings() for at in (other, self)), strict=True):
            for source in (other.folder / ".cache/numba").glob(f"*/*{theirs}"):
                target = self.folder / ".cache/numba" / source.parent.name / (source.name.removesuffix(theirs) + ours)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copytree(source, target, dirs_exist_ok=True) if source.is_dir() else target.touch()

    def list_endings(self) -> list[str]:
        """Return endings of cache folders and of marks of compiled modules."""
        package = (self.folder / "lib/privsvm").resolve()
        compiled = sorted(
            path.parent for name in ("numerics", "solvers") for path in package.glob(f"{name}/*/__init__.py")
        )
        folders = [hashlib.sha1(str(folder).encode()).hexdigest() for folder in compiled]
        return [*folders, hashlib.sha256(os.fsencode(package / "warm_up.py")).hexdigest()[:8]]


def copy_repository(workspace: Workspace, params: dict, others: Sequence[str] = ()) -> None:
    """Copy and commit the repository, and set a benchmark."""
    left_out = tuple(folder for folder in NOT_READ if folder not in others)

    def is_read(name: str) -> bool:
        # Skip outputs of runs; docs/generate.py reads tables of measurements.
        measured = name.startswith("reports/utility/") or name == "reports/audits.csv"
        made = name == "dvc.lock" or (name.startswith("reports/") and not measured)
        return not made and not name.startswith(left_out)

    copy_files(filter(is_read, list_files()), workspace.folder)
    workspace.write_params({**workspace.params(), **params})
    workspace.git("init", "--quiet", "--initial-branch", "main")
    workspace.commit("benchmark")


def new_workspace(folder: Path, params: dict | None = None, others: Sequence[str] = ()) -> Workspace:
    """Copy the repository with its compiled code, and set a small benchmark."""
    workspace = Workspace(folder)
    copy_repository(workspace, params or SMALL, others)
    warm_up(*MODULES)
    workspace.take_compiled(Workspace(REPOSITORY))
    return workspace


@pytest.fixture
def fresh(tmp_path) -> Workspace:
    """Make a working copy in which nothing has run."""
    return new_workspace(tmp_path / "fresh")


@pytest.fixture(scope="session")
def finished_once(tmp_path_factory) -> Workspace:
    """Share a finished small benchmark between workers; do not change it."""
    return Workspace(make_once(tmp_path_factory, "workflow", lambda folder: new_workspace(folder).snakemake()))


def add_own_data(workspace: Workspace) -> None:
    """Add a private dataset, and one that its owner shares."""
    for name, rows in (("patients", OWN_ROWS), ("colleagues", [OWN_ROWS[0], *OWN_ROWS[:0:-1]])):
        (workspace.folder / f"data/own/{name}.csv").write_text("\n".join(rows) + "\n")
        workspace.change(f"datasets.{name}", {**OWN_ENTRY, "path": f"{name}.csv"})
    workspace.change("datasets.colleagues.share", True)


@pytest.fixture
def with_own_data(finished_once, tmp_path_factory, tmp_path) -> Workspace:
    """Copy the finished benchmark with own data, for changes."""

    def make(folder: Path) -> None:
        workspace = finished_once.copy(folder)
        add_own_data(workspace)
        assert "error" not in workspace.snakemake()

    return Workspace(make_once(tmp_path_factory, "own data", make)).copy(tmp_path / "finished")


@pytest.fixture
def finished(finished_once, tmp_path) -> Workspace:
    """Copy the finished benchmark, for changes."""
    return finished_once.copy(tmp_path / "finished")
