"""Compile all jit functions ahead of their use, as ``privsvm warm-up`` does."""

from __future__ import annotations

import hashlib
import importlib
import importlib.metadata
import os
import subprocess
import sys
from pathlib import Path

from privsvm.arithmetic import pin_arithmetic

# Modules with jit functions. Each has a function ``warm_up()`` that calls them on a tiny problem.
MODULES = (
    "numerics.noise.exact_draws",
    "numerics.noise.rounded_normals",
    "solvers.kernel.block_smo",
    "solvers.condensing.condense",
    "solvers.linear.crammer_singer",
    "solvers.gradients.huber_descent",
    "solvers.kernel.interior_point",
    "solvers.kernel.kernel_rows",
    "solvers.kernel.kernels",
    "solvers.gradients.noisy_gradient",
    "solvers.kernel.pair_smo",
    "solvers.features.row_features",
    "solvers.kernel.smo",
)


def warm_up(*modules: str) -> None:
    """Compile modules' functions unless cached, and load them from the cache.

    Names are from `MODULES`; without any, those that this process has imported.
    """
    names = [name for name in modules or MODULES if modules or f"{__package__}.{name}" in sys.modules]
    if names and (folder := os.environ.get("NUMBA_CACHE_DIR")):
        _compile(names, Path(folder))
    for name in names:
        importlib.import_module(f"{__package__}.{name}").warm_up()


def _compile(names: list[str], folder: Path) -> None:
    """Compile modules into the cache, in a process of its own.

    A process that compiles a function inlines other copies of its steps than one that loads it from the cache, and a
    reordered sum (``reassoc``) of such a copy may have other last bits. Other processes therefore only load.
    """
    # Imported late: evaluating a linear model compiles nothing.
    import filelock

    folder.mkdir(parents=True, exist_ok=True)
    # Lock: one process compiles while the others wait.
    with filelock.FileLock(folder / "warm_up.lock"):
        if missing := [name for name in names if not _marker(folder, name).exists()]:
            # If this fails, the caller compiles in its own process and reports the error.
            subprocess.run([sys.executable, "-m", __name__, *missing], stderr=subprocess.DEVNULL, check=False)


def _marker(folder: str | os.PathLike[str], name: str) -> Path:
    """Return the file that says that a module is compiled; Numba files functions by their source's path."""
    return Path(folder, f"{name}-{hashlib.sha256(os.fsencode(Path(__file__).resolve())).hexdigest()[:8]}")


def cache_key(package: str | os.PathLike[str] = Path(__file__).parent) -> str:
    """Return a hash of the sources that are compiled, and of Numba's version.

    Numba's cache does not notice a changed function of another file, so each state of the sources has its own folder.
    `package` is the folder of ``privsvm``, possibly of another clone.
    """
    digest = hashlib.sha256(importlib.metadata.version("numba").encode())
    for folder in ("numerics", "solvers"):
        for path in sorted(Path(package, folder).rglob("*.py")):
            digest.update(path.relative_to(package).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def cache_folder(package: str | os.PathLike[str] = Path(__file__).parent) -> Path:
    """Return the Numba cache folder of a workflow in the working folder."""
    return Path(".cache/numba").resolve() / cache_key(package)


if __name__ == "__main__":
    if "NUMBA_CACHE_DIR" not in os.environ:
        # Same settings as in the jobs of a workflow.
        pin_arithmetic()
        os.environ["NUMBA_CACHE_DIR"] = str(cache_folder())
    for module in sys.argv[1:] or MODULES:
        importlib.import_module(f"{__package__}.{module}").warm_up()
        _marker(os.environ["NUMBA_CACHE_DIR"], module).touch()
