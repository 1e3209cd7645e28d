"""What the Snakefile needs besides rules: the jobs' environment, recovery from kills."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import shlex
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

from privsvm.data.catalogue import raw_files
from privsvm.errors import PrivSVMError
from privsvm.files import write_text
from privsvm.pipeline.params import Params
from privsvm.pipeline.stage import pin_threads
from privsvm.warm_up import cache_folder

try:
    import fcntl
except ImportError:
    # Windows. There Snakemake's own locks stay, and `snakemake --unlock` removes those of a killed run.
    fcntl = None  # type: ignore[assignment]

__all__ = [
    "argument_file",
    "check_writable",
    "clear_stale_locks",
    "collect_errors",
    "missing_sources",
    "runs_inside_dvc",
    "set_environment",
    "start_of_commands",
    "stop_needless_looks_for_jobs",
]


def runs_inside_dvc() -> bool:
    """Whether this Snakemake was started by ``dvc repro`` or ``dvc exp run``."""
    return "DVC_STAGE" in os.environ


def start_of_commands(home: str | os.PathLike[str]) -> str:
    """Return what stands between ``python -IS`` and the name of a script in a rule's command.

    Parameters
    ----------
    home : path-like
        Folder of the Snakefile.

    Returns
    -------
    str
        Relative paths where that is the working folder: Snakemake compares commands, and a working copy that was moved
        has the same ones. Otherwise absolute paths, quoted for the shell.

    Raises
    ------
    PrivSVMError
        If there is no such folder on this machine.
    """
    start, stages = Path("lib/privsvm/pipeline/start.py"), "stages/"
    if not (Path(home) / start).is_file():
        raise PrivSVMError(
            f"{home}: no working copy of PrivSVM on this machine; clone it, and name the clone's Snakefile in `module`"
        )
    if os.path.samefile(home, os.curdir):
        return f"{start} {stages}"
    return " ".join(shlex.quote(f"{os.path.abspath(home)}/{name}") for name in (start, stages))


def set_environment(repository: str | os.PathLike[str], params: Params) -> str:
    """Set the environment that all jobs inherit.

    Parameters
    ----------
    repository : path-like
        Folder of the Snakefile.
    params : Params
        The benchmark's.

    Returns
    -------
    str
        Name of the Numba cache folder, see `privsvm.warm_up.cache_key`.
    """
    library = Path(repository) / "lib"
    environment = os.environ

    def put_first(name: str, folder: str) -> None:
        known = [item for item in environment.get(name, "").split(os.pathsep) if item and item != folder]
        environment[name] = os.pathsep.join([folder, *known])

    # Jobs run with the Python that runs Snakemake, and with the library of this working copy.
    put_first("PATH", str(Path(sys.executable).parent))
    put_first("PYTHONPATH", str(library))
    # Where the bytes come from is no parameter of a job: they are checked against their hash.
    if params.data.mirror:
        environment.setdefault("PRIVSVM_MIRROR", params.data.mirror)
    environment["PRIVSVM_TRACKING_URI"] = params.mlflow.tracking_uri
    environment["MLFLOW_DISABLE_TELEMETRY"] = "true"
    environment["DO_NOT_TRACK"] = "true"
    environment["DVC_NO_ANALYTICS"] = "true"
    pin_threads()
    compiled = cache_folder(library / "privsvm")
    # Calibrated noise, which all jobs share.
    environment.setdefault("PRIVSVM_CACHE", str(Path(".cache").resolve()))
    environment["NUMBA_CACHE_DIR"] = str(compiled)
    return compiled.name


def stop_needless_looks_for_jobs(workflow: Any) -> None:
    """Take away the limit of 100 new jobs a second, where jobs run on this machine.

    For this limit Snakemake 9.27 looks for new jobs again a second after each job's end, and a second after each such
    look (its issue 3804): after a hundred jobs a hundred times a second, each time in a new thread.

    Parameters
    ----------
    workflow : snakemake.workflow.Workflow
        The workflow that is about to start.
    """
    if workflow.local_exec and hasattr(workflow.scheduler, "job_rate_limiter"):
        workflow.scheduler.job_rate_limiter = None


def missing_sources(params: Params) -> list[str]:
    """List files of the workflow that are gone although what was made from them is there.

    DVC removes a stage's outputs before it runs the stage; one that is killed then leaves them away. Snakemake makes a
    file between others again only for a job that it runs, but a target always.

    Parameters
    ----------
    params : Params
        The benchmark's.

    Returns
    -------
    list of str
        Raw files of prepared data, prepared data of condensed rows, models of results.
    """

    @functools.cache
    def held_by(folder: str) -> set[str]:
        try:
            return set(os.listdir(folder))
        except OSError:
            return set()

    missing: list[str] = []
    for dataset in params.datasets:
        data = f"{dataset}.npz"
        if data in held_by("data/prepared"):
            missing += [
                f"data/raw/{dataset}/{file}"
                for file in raw_files(dataset, params.dataset_settings(dataset))
                if file not in held_by(f"data/raw/{dataset}")
            ]
        elif data in held_by(f"data/condensed/{params.condense}"):
            missing.append(f"data/prepared/{data}")
    missing += [
        f"data/models/{method}/{dataset}.{ending}"
        for method, dataset in params.train_jobs()
        if f"{dataset}.json" in held_by(f"data/results/{method}")
        for ending in ("npz", "json")
        if f"{dataset}.{ending}" not in held_by(f"data/models/{method}")
    ]
    return missing


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


def clear_stale_locks(
    folder: str | os.PathLike[str] = ".snakemake",
    is_job: bool = False,
    temporary: str | os.PathLike[str] | None = None,
) -> IO[str] | None:
    """Remove what killed Snakemakes left: lock files, their servers' sockets, folders among the temporary files.

    Every Snakemake of this working folder holds a shared lock on ``privsvm.lock`` for as long as it
    lives; the kernel releases it even after ``kill -9``. Whoever gets the lock for itself alone is the
    only one, and lock files it finds are left over.

    Parameters
    ----------
    folder : path-like, default=".snakemake"
        Snakemake's folder in the working directory.
    is_job : bool, default=False
        Whether this Snakemake runs a job for another one, on another node perhaps, where a lock may not be seen that is
        held here. It clears nothing.
    temporary : path-like or None, default=None
        This Snakemake's own temporary folder, noted for whoever comes after a kill.

    Returns
    -------
    file object or None
        Keep it: the shared lock is held while it is open. None where the folder cannot be written, or its file system
        has no locks; then nothing is cleared, and ``snakemake --unlock`` serves.
    """
    if fcntl is None:
        return None
    folder = Path(folder)
    note = folder / f"temporary.{os.getpid()}"
    try:
        folder.mkdir(exist_ok=True)
        handle = open(folder / "privsvm.lock", "w")  # noqa: SIM115 - stays open as long as the process
    except OSError:
        return None
    try:
        if is_job:
            fcntl.flock(handle, fcntl.LOCK_SH)
            return handle
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        # Somebody else is alive: leave the locks to them.
        fcntl.flock(handle, fcntl.LOCK_SH)
        _write_note(note, temporary)
        return handle
    except OSError:
        handle.close()
        return None
    shutil.rmtree(folder / "locks", ignore_errors=True)
    (folder / "locks").mkdir(exist_ok=True)
    for socket in folder.glob("start.*"):
        socket.unlink(missing_ok=True)
    for left in folder.glob("temporary.*"):
        _remove_noted(left)
    fcntl.flock(handle, fcntl.LOCK_SH)
    _write_note(note, temporary)
    return handle


def _write_note(note: Path, temporary: str | os.PathLike[str] | None) -> None:
    if temporary is not None:
        with contextlib.suppress(OSError):
            note.write_bytes(os.fsencode(os.path.abspath(temporary)))


def _remove_noted(note: Path) -> None:
    """Remove the folder that a note names, if it is Snakemake's and empty, and the note."""
    with contextlib.suppress(OSError, ValueError):
        named = Path(os.fsdecode(note.read_bytes()))
        if named.is_absolute() and named.name.startswith("snakemake"):
            named.rmdir()
    with contextlib.suppress(OSError):
        note.unlink()


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
