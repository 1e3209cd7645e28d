"""Optimisation on plain arrays. Nothing here knows of privacy."""

from __future__ import annotations

import fcntl
import importlib
import os
from pathlib import Path

__all__ = ["JIT_MODULES", "LOCK", "compile_once", "warm_up"]

# Modules with jit functions; each has a ``warm_up`` that calls them on a tiny problem.
JIT_MODULES = (
    "crammer_singer",
    "hinge",
    "kernels",
    "kernel_rows",
    "gram_rows",
    "block_smo",
    "smo",
    "noisy_gradient",
    "condense",
)

MARKER, LOCK = "warm", "lock"


def warm_up() -> None:
    """Compile every jit function for the argument types that the library calls it with."""
    for name in JIT_MODULES:
        importlib.import_module(f"privsvm.solvers.{name}").warm_up()


def compile_once() -> bool:
    """Fill the folder ``NUMBA_CACHE_DIR`` with all compiled functions, unless it is filled already.

    Of many processes that start on an empty folder, the first compiles and the others wait for it.

    Returns
    -------
    bool
        Whether this call compiled. False without ``NUMBA_CACHE_DIR``: Numba then compiles on first use.
    """
    folder = os.environ.get("NUMBA_CACHE_DIR")
    if not folder or (Path(folder) / MARKER).exists():
        return False
    Path(folder).mkdir(parents=True, exist_ok=True)
    with open(Path(folder) / LOCK, "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if (Path(folder) / MARKER).exists():
            return False
        warm_up()
        (Path(folder) / MARKER).touch()
        return True
