"""What the Snakefile needs besides rules: the jobs' environment, checks before a run, the errors of failed jobs."""

from __future__ import annotations

import functools
import hashlib
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import filelock

from privsvm.arithmetic import pin_arithmetic
from privsvm.errors import PrivSVMError
from privsvm.files import write_text
from privsvm.warm_up import cache_folder

if TYPE_CHECKING:
    from privsvm_bench.jobs.params import Params

__all__ = [
    "argument_file",
    "check_writable",
    "collect_errors",
    "lock_folder",
    "scripts_folder",
    "set_addresses",
    "set_environment",
]


def scripts_folder(home: str | os.PathLike[str]) -> str:
    """Return what stands before the name of a script in a rule's command.

    Parameters
    ----------
    home : path-like
        Folder of the Snakefile.

    Returns
    -------
    str
        A relative path where that is the working folder: Snakemake compares commands, and a working copy that was moved
        has the same ones. Otherwise an absolute path, quoted for the shell.

    Raises
    ------
    PrivSVMError
        If there is no such folder on this machine.
    """
    folder = Path(home) / "stages"
    if not (folder.is_dir() and (Path(home) / "lib/privsvm").is_dir()):
        raise PrivSVMError(
            f"{home}: no working copy of PrivSVM on this machine; clone it, and name the clone's Snakefile in `module`"
        )
    return "stages/" if os.path.samefile(home, os.curdir) else shlex.quote(f"{os.path.abspath(folder)}/")


def set_environment(repository: str | os.PathLike[str]) -> None:
    """Set the environment that all jobs inherit; before NumPy and Numba are imported, which read it then.

    Parameters
    ----------
    repository : path-like
        Folder of the Snakefile.
    """
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
    # Calibrated noise, which all jobs share.
    environment.setdefault("PRIVSVM_CACHE", str(Path(".cache").resolve()))
    environment["NUMBA_CACHE_DIR"] = str(cache_folder(Path(repository) / "lib/privsvm"))


def set_addresses(params: Params) -> None:
    """Tell all jobs where files come from and results go to, which is no parameter of a job.

    Downloaded files are checked against their hash, and an address may hold a password.

    Parameters
    ----------
    params : Params
        The benchmark.
    """
    if params.data.mirror:
        os.environ.setdefault("PRIVSVM_MIRROR", params.data.mirror)
    os.environ["PRIVSVM_TRACKING_URI"] = params.mlflow.tracking_uri


@functools.cache
def lock_folder() -> filelock.BaseFileLock:
    """Lock the working folder until this process ends; the operating system frees it, also after ``kill -9``.

    Returns
    -------
    filelock.BaseFileLock
        The cache of this function keeps it alive.

    Raises
    ------
    PrivSVMError
        If another run holds it.
    """
    lock = filelock.FileLock(".snakemake/run.lock")
    try:
        lock.acquire(timeout=0)
    except filelock.Timeout:
        raise PrivSVMError(f"{lock.lock_file}: another run is under way in this folder; wait until it ends") from None
    return lock


def argument_file(name: str, *arguments: str) -> str:
    """Write command-line arguments to a file, one a line, which a script reads as ``@file``.

    Linux takes at most 128 KiB in a command, and a thousand jobs have longer lists of files.

    Parameters
    ----------
    name : str
        What the file's name begins with; the rest follows from its content, so that no run changes another one's file.
    *arguments : str
        Options and values without line breaks.

    Returns
    -------
    str
        ``@`` and the path.
    """
    text = "".join(f"{argument}\n" for argument in arguments)
    path = Path("logs/arguments") / f"{name}-{hashlib.sha256(text.encode()).hexdigest()[:16]}.txt"
    if not path.is_file():
        write_text(path, text)
    return f"@{path}"


def check_writable(*folders: str) -> None:
    """Refuse to start where an output folder cannot be written, before Snakemake touches anything.

    Parameters
    ----------
    *folders : str
        Output folders; every existing folder below them counts too.

    Raises
    ------
    PrivSVMError
        Naming the first folder that cannot be written.
    """
    outputs = [Path(name) for name in folders]
    below = [folder for top in outputs for folder in top.rglob("*") if folder.is_dir()]
    for folder in (Path(), *outputs, *below):
        if folder.exists() and not os.access(folder, os.W_OK | os.X_OK):
            raise PrivSVMError(f"{folder}: this folder cannot be written; make it writable (chmod u+w) and run again")


def collect_errors(logs: str | Sequence[str]) -> list[str]:
    """Collect the one-line errors of failed jobs from Snakemake's log.

    Parameters
    ----------
    logs : str or sequence of str
        Snakemake's own log files, which hold the logs of failed jobs.

    Returns
    -------
    list of str
        Different lines, in order of appearance.
    """
    texts = [
        Path(log).read_text(encoding="utf-8", errors="replace") for log in ([logs] if isinstance(logs, str) else logs)
    ]
    lines = (line.strip() for text in texts for line in text.splitlines())
    return list(dict.fromkeys(line for line in lines if line.startswith("error: ")))
