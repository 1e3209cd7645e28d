"""Recovery of a working folder whose last Snakemake was killed."""

from __future__ import annotations

import fcntl
import os
import shutil
from pathlib import Path
from typing import IO

__all__ = ["clear_stale_locks"]


def clear_stale_locks(folder: str | os.PathLike[str] = ".snakemake") -> IO[str] | None:
    """Remove Snakemake's lock files when no Snakemake that could have made them is alive.

    Every Snakemake of this working folder holds a shared lock on ``privsvm.lock`` for as long as it
    lives; the kernel releases it even after ``kill -9``. Whoever gets the lock for itself alone is the
    only one, and lock files it finds are left over.

    Parameters
    ----------
    folder : path-like, default=".snakemake"
        Snakemake's folder in the working directory.

    Returns
    -------
    file object or None
        Keep it: the shared lock is held while it is open. None where the folder cannot be written.
    """
    folder = Path(folder)
    try:
        folder.mkdir(exist_ok=True)
        handle = open(folder / "privsvm.lock", "w")  # noqa: SIM115 - stays open as long as the process
    except OSError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        # Somebody else is alive: leave the locks to them.
        fcntl.flock(handle, fcntl.LOCK_SH)
        return handle
    shutil.rmtree(folder / "locks", ignore_errors=True)
    (folder / "locks").mkdir(exist_ok=True)
    fcntl.flock(handle, fcntl.LOCK_SH)
    return handle
