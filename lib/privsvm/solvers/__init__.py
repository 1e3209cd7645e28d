"""Optimisation on plain arrays. Nothing here knows of privacy."""

from __future__ import annotations

import importlib
import itertools
import os
import sys
from pathlib import Path

__all__ = ["EARLY_MODULES", "JIT_GROUPS", "JIT_MODULES", "MARKER", "compile_once", "full_name", "warm_up"]

# Modules with jit functions, of this package or with their package's name; each has a ``warm_up`` that calls them on a
# tiny problem. The modules of a group call each other's functions. One process compiles a group, while others may
# compile other groups. The slowest groups come first.
JIT_GROUPS = {
    "gradient": ("noisy_gradient",),
    "noise": ("numerics.rounded_normals", "numerics.exact_draws"),
    "kernel_svm": ("kernels", "kernel_rows", "gram_rows", "row_store", "block_smo", "pair_smo"),
    "linear_svm": ("crammer_singer", "hinge"),
    "condense": ("condense",),
    "row_features": ("row_features",),
    "smo": ("smo",),
    "linear_pairs": ("interior_point",),
    "descent": ("huber_descent",),
}
# Groups whose functions those of a group call: they are compiled first, by one process too.
_CALLED = {"gradient": ("noise",)}
JIT_MODULES = tuple(name for names in JIT_GROUPS.values() for name in names)
# What a run compiles early: all but what few data lead to, which then is compiled on first use.
EARLY_MODULES = tuple(name for name in JIT_MODULES if name not in JIT_GROUPS["linear_pairs"])

# File in the cache folder that says that `EARLY_MODULES` are compiled. Every group has a marker of its own beside it.
MARKER = "warm"


# Modules with jit functions of their own for sparse rows: their ``warm_up(sparse=True)`` compiles those.
_SPARSE_MODULES = ("kernel_rows", "crammer_singer", "hinge")

# Modules with variants for rows that need double precision: their ``warm_up(precise=True)`` compiles those.
_PRECISE_MODULES = ("kernel_rows", "row_store", "block_smo", "pair_smo", "condense")


def full_name(name: str) -> str:
    """Full name of a module of `JIT_MODULES`."""
    return f"privsvm.{name}" if "." in name else f"{__name__}.{name}"


def warm_up(group: str, sparse: bool = False, precise: bool = False) -> None:
    """Compile the jit functions of a group for the argument types that the library mostly calls them with.

    Parameters
    ----------
    group : str
        Key of `JIT_GROUPS`.
    sparse : bool, default=False
        Also for sparse rows.
    precise : bool, default=False
        Also for rows and bounds that need double precision where single is the default.
    """
    for name in JIT_GROUPS[group]:
        module = importlib.import_module(full_name(name))
        module.warm_up()
        if sparse and name in _SPARSE_MODULES:
            module.warm_up(sparse=True)
        if precise and name in _PRECISE_MODULES:
            module.warm_up(precise=True)
            if sparse and name in _SPARSE_MODULES:
                module.warm_up(sparse=True, precise=True)


def compile_once(*modules: str, sparse: bool = False, precise: bool = False) -> list[str]:
    """Fill the folder ``NUMBA_CACHE_DIR`` with compiled functions, unless they are there already.

    Of several processes that need the same group, one compiles it; the others wait, or compile another group that they
    need. Numba compiles what only rare parameters need on first use.

    Parameters
    ----------
    *modules : str
        Names from `JIT_MODULES`, whose groups are compiled. Without any, those of `EARLY_MODULES` that this process has
        imported.
    sparse : bool, default=False
        Also for sparse rows.
    precise : bool, default=False
        Also for rows that need double precision where single is the default.

    Returns
    -------
    list of str
        The groups that this call has compiled; none without ``NUMBA_CACHE_DIR``, when Numba compiles on first use.
    """
    if "NUMBA_CACHE_DIR" not in os.environ:
        return []
    folder = Path(os.environ["NUMBA_CACHE_DIR"])
    needed = modules or [name for name in EARLY_MODULES if full_name(name) in sys.modules]
    wanted = [group for group, names in JIT_GROUPS.items() if set(needed) & set(names)]
    wanted += [called for group in wanted for called in _CALLED.get(group, ())]
    if wanted:
        # Imported late: whoever predicts compiles nothing.
        from privsvm.numerics.quick_compiler import hasten

        hasten()
    waiting = [group for group in JIT_GROUPS if group in wanted]
    compiled: list[str] = []
    while waiting := [group for group in waiting if not _marker(folder, group, sparse, precise).exists()]:
        # Take a group that no other process compiles; if there is none, wait for the first one.
        ready = [group for group in waiting if not set(_CALLED.get(group, ())) & set(waiting)]
        for group, wait in [*((group, False) for group in ready), (ready[0], True)]:
            if _compile(folder, group, sparse, precise, wait, compiled):
                break
    return compiled


def _marker(folder: Path, group: str, sparse: bool, precise: bool) -> Path:
    """Return the path of the file that says that a group is compiled, for all kinds of rows that it knows."""
    names = set(JIT_GROUPS[group])
    sparse, precise = sparse and bool(names & set(_SPARSE_MODULES)), precise and bool(names & set(_PRECISE_MODULES))
    return folder / f"{group}{'.sparse' * sparse}{'.precise' * precise}"


def _compile(folder: Path, group: str, sparse: bool, precise: bool, wait: bool, compiled: list[str]) -> bool:
    """Compile a group unless another process does; tell whether it is compiled now."""
    folder.mkdir(parents=True, exist_ok=True)
    # Imported late: whoever predicts compiles nothing.
    import filelock

    try:
        lock = filelock.FileLock(folder / f"{group}.lock").acquire(timeout=-1 if wait else 0)
    except filelock.Timeout:
        return False
    with lock:
        if not _marker(folder, group, sparse, precise).exists():
            warm_up(group, sparse, precise)
            # What is compiled for more kinds of rows is compiled for fewer.
            for kinds in itertools.product({False, sparse}, {False, precise}):
                _marker(folder, group, *kinds).touch()
            compiled.append(group)
        return True
