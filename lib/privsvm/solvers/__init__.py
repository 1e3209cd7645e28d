"""Numerical cores on plain arrays. Knows nothing of privacy."""

from __future__ import annotations

import importlib

__all__ = ["KERNEL_MODULES", "warm_up"]

# Modules with Numba kernels; each has a ``warm_up`` that calls them on a tiny problem.
KERNEL_MODULES = ("crammer_singer", "kernels")


def warm_up() -> list[str]:
    """Compile every Numba kernel, for the argument types the library calls it with.

    Returns
    -------
    list of str
        Names of the modules.
    """
    for name in KERNEL_MODULES:
        importlib.import_module(f"privsvm.solvers.{name}").warm_up()
    return list(KERNEL_MODULES)
