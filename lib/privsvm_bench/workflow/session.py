"""Functions of the Snakefile: the jobs' environment, checks before a run, errors of failed jobs."""

from __future__ import annotations

import functools
import hashlib
import os
import re
import shlex
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import filelock

from privsvm.arithmetic import pin_arithmetic
from privsvm.errors import PrivSVMError
from privsvm.files import remove_leftovers, write_text
from privsvm.warm_up import cache_folder

if TYPE_CHECKING:
    from privsvm_bench.jobs.params import Params

# Names of half-written files of `privsvm.files.atomic_path`, and of folders of `privsvm_bench.workflow.finished`.
_PART = re.compile(r"\..+\.[a-z0-9_]{8}\.part(\..+)?")


def scripts_folder(home: str | os.PathLike[str]) -> str:
    """Return the folder of scripts as a prefix for commands of rules.

    It is relative inside the working copy, because Snakemake compares commands and a moved copy keeps them; otherwise
    absolute, quoted for the shell. Raises PrivSVMError if there is no such folder, or braces are in its path.
    """
    folder = Path(home) / "stages"
    if not (folder.is_dir() and (Path(home) / "lib/privsvm").is_dir()):
        raise PrivSVMError(
            f"{home}: no working copy of PrivSVM on this machine; clone it, and name the clone's Snakefile in `module`"
        )
    if {"{", "}"} & set(os.path.abspath(home)):
        raise PrivSVMError(f"{home}: Snakemake takes braces in a path for wildcards; move the working copy")
    return "stages/" if os.path.samefile(home, os.curdir) else shlex.quote(f"{os.path.abspath(folder)}/")


def set_environment(repository: str | os.PathLike[str]) -> None:
    """Set the jobs' environment, before NumPy and Numba are imported."""
    environment = os.environ

    def put_first(name: str, folder: str) -> None:
        others = [item for item in environment.get(name, "").split(os.pathsep) if item and item != folder]
        environment[name] = os.pathsep.join([folder, *others])

    # Jobs run with the Python that runs Snakemake, and with the library of this working copy.
    put_first("PATH", str(Path(sys.executable).parent))
    put_first("PYTHONPATH", str(Path(repository) / "lib"))
    environment["MLFLOW_DISABLE_TELEMETRY"] = "true"
    environment["DO_NOT_TRACK"] = "true"
    environment["DVC_NO_ANALYTICS"] = "true"
    pin_arithmetic()
    # All jobs share downloads.
    environment.setdefault("PRIVSVM_CACHE", str(Path(".cache").resolve()))
    environment["NUMBA_CACHE_DIR"] = str(cache_folder(Path(repository) / "lib/privsvm"))


def link_copy() -> None:
    """Link finished jobs, compiled code and own data into a copy of the workspace that DVC makes for an experiment.

    ``dvc exp run --temp`` and ``--queue`` copy into ``.dvc/tmp/exps`` what Git knows, and no more.
    """
    origin, copied, _ = os.getcwd().partition("/.dvc/tmp/exps/")
    own = [f"data/own/{path.name}" for path in Path(origin, "data/own").glob("[!.]*")]
    for name in [".cache", *own] if copied else ():
        if not os.path.lexists(name) and Path(origin, name).exists():
            os.symlink(Path(origin, name), name)


def set_addresses(params: Params) -> None:
    """Pass the mirror and the address of MLflow to all jobs in their environment.

    They are not parameters of a job: hashes of downloads are checked, and an address may hold a password.
    """
    if params.data.mirror:
        os.environ.setdefault("PRIVSVM_MIRROR", params.data.mirror)
    os.environ["PRIVSVM_TRACKING_URI"] = params.mlflow.tracking_uri


@functools.cache
def lock_folder() -> filelock.BaseFileLock:
    """Lock the working folder until this process ends, even by ``kill -9``.

    The cache of this function keeps the lock alive. Raises PrivSVMError if another run holds it.
    """
    lock = filelock.FileLock(".snakemake/run.lock")
    try:
        lock.acquire(timeout=0)
    except filelock.Timeout:
        raise PrivSVMError(f"{lock.lock_file}: another run is under way in this folder; wait until it ends") from None
    return lock


def remove_parts(*outputs: str) -> None:
    """Remove the partial outputs of killed jobs: DVC would record them with their folders.

    No other process may write the outputs, files and folders: the run has locked its folder.
    """
    for output in map(Path, outputs):
        if not output.is_dir():
            remove_leftovers(output)
            continue
        for part in list(output.rglob(".*.part*")):
            if _PART.fullmatch(part.name):
                shutil.rmtree(part) if part.is_dir() else part.unlink(missing_ok=True)


def argument_file(name: str, *arguments: str) -> str:
    """Write arguments without line breaks to a file, one per line, read as ``@file``.

    Linux limits an argument to 128 KiB, and lists of the files of a thousand jobs are longer. The file is called by
    `name` and a digest of its content, so that no run changes the file of another.
    """
    text = "".join(f"{argument}\n" for argument in arguments)
    path = Path("logs/arguments") / f"{name}-{hashlib.sha256(text.encode()).hexdigest()[:16]}.txt"
    if not path.is_file():
        write_text(path, text)
    return f"@{path}"


def check_writable(*folders: str) -> None:
    """Refuse output folders that are not writable, or contain such folders: Snakemake would show a traceback."""
    outputs = [Path(name) for name in folders]
    below = [folder for top in outputs for folder in top.rglob("*") if folder.is_dir()]
    for folder in (Path(), *outputs, *below):
        if folder.exists() and not os.access(folder, os.W_OK | os.X_OK):
            raise PrivSVMError(f"{folder}: this folder cannot be written; make it writable (chmod u+w) and run again")


def collect_errors(logs: str | Sequence[str]) -> list[str]:
    """Collect the one-line errors of failed jobs, each once, from Snakemake's own log files."""
    texts = [
        Path(log).read_text(encoding="utf-8", errors="replace") for log in ([logs] if isinstance(logs, str) else logs)
    ]
    lines = (line.strip() for text in texts for line in text.splitlines())
    return list(dict.fromkeys(line for line in lines if line.startswith("error: ")))
