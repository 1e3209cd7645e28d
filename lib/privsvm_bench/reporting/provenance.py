"""Where a report comes from: versions and hashes, and nothing about who or which machine."""

from __future__ import annotations

import datetime
import os
import platform
import shutil
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any

from privsvm.digests import sha256_of_file

PACKAGES = (
    "privsvm",
    "numpy",
    "scipy",
    "scikit-learn",
    "numba",
    "dp-accounting",
    "snakemake",
    "dvc",
    "mlflow",
)


def _git(folder: Path, *arguments: str) -> str | None:
    if shutil.which("git") is None:
        return None
    try:
        done = subprocess.run(
            ["git", "--no-optional-locks", *arguments],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"


def provenance(folder: str | os.PathLike[str] = ".") -> dict[str, Any]:
    """Collect the origin of this report: versions, machine and time, without user, host or absolute path.

    `folder` is the project, with its git commit and ``dvc.lock``. Returns ``commit`` (None outside git), ``dirty``,
    ``dvc_lock`` (SHA-256 or None), ``packages``, ``python``, ``processors``, ``system``, ``generated`` (UTC).
    """
    root = Path(folder)
    commit = _git(root, "rev-parse", "HEAD")
    changes = _git(root, "status", "--porcelain") if commit else None
    lock = root / "dvc.lock"
    return {
        "commit": commit,
        "dirty": bool(changes),
        "dvc_lock": sha256_of_file(lock) if lock.is_file() else None,
        "packages": {package: _version(package) for package in PACKAGES},
        "python": platform.python_version(),
        "processors": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "generated": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
    }
