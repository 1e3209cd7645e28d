"""Environments of libraries whose requirements conflict with ours, built from their locks on first use."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
_FOLDERS = (HERE / "utility" / "peers", HERE / "audit" / "peers")
LOCKS = {lock.stem: lock for folder in _FOLDERS for lock in folder.glob("*.lock")}


def peer_python(name: str) -> Path:
    """Return the Python of a peer's environment, built on first use.

    ``PRIVSVM_PEERS`` names the folder of the environments, by default ``.cache/peers``.
    """
    folder = Path(os.environ.get("PRIVSVM_PEERS", HERE.parent / ".cache" / "peers")) / name
    python = folder / "bin" / "python"
    if not python.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["uv", "venv", "--quiet", "--python", sys.executable, folder], check=True)
        install = ["uv", "pip", "install", "--quiet", "--no-deps", "--python", python, "--require-hashes", "-r"]
        subprocess.run([*install, LOCKS[name]], check=True)
    return python


def single_threaded(*without: str) -> dict[str, str]:
    """Return this environment with one thread for BLAS and OpenMP, and without some variables."""
    kept = {name: value for name, value in os.environ.items() if name not in without}
    return kept | dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


@functools.cache
def peer_version(python: Path, package: str) -> str:
    """Return the version of a package in the environment of a Python."""
    code = f"import importlib.metadata; print(importlib.metadata.version({package!r}))"
    return subprocess.run([python, "-c", code], check=True, capture_output=True, text=True).stdout.strip()
