"""Small working copies of the repository in which the real workflow runs on a small benchmark."""

import contextlib
import hashlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import yaml

from privsvm.warm_up import MODULES, warm_up
from tests.once import made_once

from . import programs

REPOSITORY = Path(__file__).resolve().parents[2]

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

# Folders of the repository that no benchmark reads. A third of all files: each takes a part of every copy and of DVC's
# and Git's looks at a working copy.
NOT_READ = ("tests/", "bench/", "conda/", "docs/images/", "docs/proofs/", "examples/", "paper/", "reproduce/")

# What must be equal from run to run; timings, logs and databases are not among it.
REPRODUCIBLE = ("data/prepared", "data/condensed", "data/models", "data/results", "reports/metrics.json",
                "reports/curves.csv", "reports/tracking.json")  # fmt: skip


# Data of one's own beside wine, which one of the methods does not use.
OWN_ROWS = ["x,y,label", *(f"{i % 7},{i % 5},{'ab'[i % 2]}" for i in range(40))]
OWN = {
    **SMALL,
    "datasets": {
        "wine": {"scaling": "bounds"},
        "patients": {"path": "patients.csv", "label": "label", "classes": ["a", "b"], "bounds": [0, 7]},
    },
    "methods": {
        "svm": {**SMALL["methods"]["svm"], "datasets": ["wine"]},
        **{name: SMALL["methods"][name] for name in ("majority", "pmsvm_wp")},
        # A method of another package, which `Workspace.environment` makes importable.
        "mine": {"implementation": "house_brand.models:Mine", "datasets": ["wine"]},
    },
}
OWN_PACKAGE = "from privsvm import MajorityClassifier\n\n\nclass Mine(MajorityClassifier):\n    pass\n"


def copy_or_share(source: str, target: str) -> str:
    """Copy a file, times and all; what is only ever replaced, Git's objects and compiled code, gets one more name."""
    if source.endswith((".nbc", ".nbi", ".pyc")) or "/.git/objects/" in source:
        os.link(source, target)
        return target
    return shutil.copy2(source, target)


class Workspace:
    """A working copy: its folder, and how to run things in it."""

    def __init__(self, folder: Path):
        self.folder = folder

    def environment(self, **changes: str) -> dict[str, str]:
        kept = {
            name: value for name, value in os.environ.items() if not name.startswith(("SNAKEMAKE", "DVC_", "PYTEST"))
        }
        kept.pop("PRIVSVM_MIRROR", None)
        # Bytecode is kept outside the tree, and starts stay fast.
        kept.pop("PYTHONDONTWRITEBYTECODE", None)
        return {
            **kept,
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": os.pathsep.join(
                [str(self.folder / "packages"), *filter(None, [os.environ.get("PYTHONPATH")])]
            ),
            "DVC_NO_ANALYTICS": "true",
            "GIT_AUTHOR_NAME": "test", "GIT_AUTHOR_EMAIL": "test@example.org",
            "GIT_COMMITTER_NAME": "test", "GIT_COMMITTER_EMAIL": "test@example.org",
            **changes,
        }  # fmt: skip

    def start(self, *command: str, copied: str = "nothing", **environment: str) -> subprocess.Popen:
        """Start a command plainly, as a user would, and all that it starts; or all but copies of "servers" of jobs.

        With copies of all "programs", the command itself is one.
        """
        known = self.environment(**environment)
        if copied != "nothing":
            known = {"servers": programs.with_servers, "programs": programs.with_programs}[copied](known)
        return self._start(command, known)

    def _start(self, command: Sequence[str], environment: dict[str, str]) -> subprocess.Popen:
        return subprocess.Popen(
            command, cwd=self.folder, env=environment, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip

    def call(self, *command: str, check: bool = True, **environment: str) -> str:
        """Run a command; return what it printed. With check=False the exit code stands in `code`."""
        if programs.can_run(command):
            self.code, output = programs.call(command, self.folder, self.environment(**environment))
        else:
            known = self.environment(**environment)
            # What a Makefile calls is forked too; shell scripts of tests start plainly.
            process = self._start(command, programs.with_programs(known) if command[0] == "make" else known)
            try:
                output, _ = process.communicate()
            except BaseException:
                os.killpg(process.pid, signal.SIGKILL)
                raise
            self.code = process.returncode
        assert not check or self.code == 0, f"{' '.join(command)} ended with {self.code}:\n{output[-6000:]}"
        return output

    def snakemake(self, *arguments: str, cores: int = 2, **options) -> str:
        return self.call("snakemake", "--cores", str(cores), *arguments, **options)

    def params(self) -> dict:
        return yaml.safe_load((self.folder / "params.yaml").read_text())

    def write_params(self, params: dict) -> None:
        (self.folder / "params.yaml").write_text(yaml.safe_dump(params, sort_keys=False))

    def change(self, key: str, value) -> None:
        """Set one dotted key of params.yaml."""
        params = self.params()
        *path, last = key.split(".")
        place = params
        for name in path:
            place = place[name]
        place[last] = value
        self.write_params(params)

    def stale_jobs(self) -> list[str]:
        """Outputs that `snakemake -n` would make again."""
        output = self.snakemake("--dry-run")
        return [line.split("output: ", 1)[1] for line in output.splitlines() if line.strip().startswith("output: ")]

    def nothing_to_do(self) -> bool:
        return "Nothing to be done" in self.snakemake("--dry-run")

    def hashes(self, *names: str) -> dict[str, str]:
        """SHA-256 of every file below the given paths, or of all that must be reproducible."""
        found = {}
        for name in names or REPRODUCIBLE:
            path = self.folder / name
            for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
                if file.is_file():
                    digest = hashlib.sha256(file.read_bytes()).hexdigest()
                    found[file.relative_to(self.folder).as_posix()] = digest
        return found

    def times(self, *names: str) -> dict[str, int]:
        """Modification times below the given folders: tells what was made again."""
        return {
            file.relative_to(self.folder).as_posix(): file.stat().st_mtime_ns
            for name in names
            for file in sorted((self.folder / name).rglob("*"))
            if file.is_file()
        }

    def git(self, *arguments: str) -> str:
        return self.call("git", *arguments)

    def copy(self, folder: Path) -> "Workspace":
        """A second working copy in the same state, times and all."""
        compiled = shutil.ignore_patterns(*self.compiled_folders().values())
        shutil.copytree(self.folder, folder, symlinks=True, ignore=compiled, copy_function=copy_or_share)
        other = Workspace(folder)
        other.take_compiled(self, copy_or_share)
        return other

    def compiled_folders(self) -> dict[str, str]:
        """Where Numba files what it compiles of a package: under a hash of the package's folder."""
        folders = {package: self.folder / "lib/privsvm" / package for package in ("numerics", "solvers")}
        return {name: f"{name}_{hashlib.sha1(str(folder).encode()).hexdigest()}" for name, folder in folders.items()}

    def take_compiled(self, other: "Workspace", copy_function: Callable = shutil.copy2) -> None:
        """Take what Numba compiled in another working copy of the same sources, or in the repository itself.

        Should the names of Numba's folders change, all is compiled once more, which tests only take longer for.
        """
        theirs, ours = other.compiled_folders(), self.compiled_folders()
        for package in theirs:
            for source in (other.folder / ".cache/numba").glob(f"*/{theirs[package]}"):
                target = self.folder / ".cache/numba" / source.parent.name
                shutil.copytree(source, target / ours[package], copy_function=copy_function, dirs_exist_ok=True)


def copy_repository(workspace: Workspace, params: dict, others: Sequence[str] = ()) -> None:
    """Copy the repository as it is now, but for what no benchmark reads, commit it, and set a benchmark."""
    left_out = tuple(folder for folder in NOT_READ if folder not in others)
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=REPOSITORY, capture_output=True, text=True, check=True,
    )  # fmt: skip
    for name in filter(None, listing.stdout.split("\0")):
        source = REPOSITORY / name
        # What a run makes is left out; a table of measurements is what a generated file is made from.
        made = name.startswith("reports/") and not name.startswith("reports/utility/")
        if source.is_file() and not made and not name.startswith(left_out) and name != "dvc.lock":
            target = workspace.folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target)
    # What Python compiled of these files is theirs, as they have the same times.
    for folder in ("lib", "stages"):
        for compiled in (REPOSITORY / folder).rglob("__pycache__/*.pyc"):
            target = workspace.folder / compiled.relative_to(REPOSITORY)
            # Another worker may take a temporary file away.
            with contextlib.suppress(FileNotFoundError):
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(compiled, target)
    workspace.write_params({**workspace.params(), **params})
    workspace.git("init", "--quiet", "--initial-branch", "main")
    workspace.git("add", "--all")
    workspace.git("commit", "--quiet", "--message", "benchmark")


def new_workspace(folder: Path, params: dict | None = None, others: Sequence[str] = ()) -> Workspace:
    """Copy the repository and set a small benchmark, with what is compiled already and what each file imports."""
    workspace = Workspace(folder)
    copy_repository(workspace, params or SMALL, others)
    # Compiled once for all tests and working copies.
    warm_up(*MODULES)
    workspace.take_compiled(Workspace(REPOSITORY))
    return workspace


@pytest.fixture
def fresh(tmp_path) -> Workspace:
    """A working copy in which nothing has run."""
    return new_workspace(tmp_path / "fresh")


@pytest.fixture(scope="session")
def finished_once(tmp_path_factory) -> Workspace:
    """A working copy in which the small benchmark has run once, for all workers. Do not change it."""
    return Workspace(made_once(tmp_path_factory, "workflow", lambda folder: new_workspace(folder).snakemake(cores=2)))


@pytest.fixture
def finished(finished_once, tmp_path) -> Workspace:
    """A copy of the finished benchmark to play with."""
    return finished_once.copy(tmp_path / "finished")


def run_with_own_data(folder: Path) -> None:
    workspace = new_workspace(folder, OWN)
    (folder / "data/own/patients.csv").write_text("\n".join(OWN_ROWS) + "\n")
    (folder / "packages/house_brand").mkdir(parents=True)
    (folder / "packages/house_brand/__init__.py").touch()
    (folder / "packages/house_brand/models.py").write_text(OWN_PACKAGE)
    (folder.parent / "printed").write_text(workspace.snakemake())


@pytest.fixture(scope="session")
def own_data_once(tmp_path_factory) -> Workspace:
    """A working copy with data of one's own that has run once, and beside it what that printed. Do not change it."""
    return Workspace(made_once(tmp_path_factory, "own_data", run_with_own_data))


@pytest.fixture
def own_data(own_data_once, tmp_path) -> Workspace:
    """A copy of it to play with."""
    return own_data_once.copy(tmp_path / "own_data")
