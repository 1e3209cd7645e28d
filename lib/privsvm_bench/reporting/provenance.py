"""Where a report comes from: versions and hashes, and nothing about who or which machine."""

from __future__ import annotations

import datetime
import os
import platform
from importlib import metadata
from pathlib import Path
from typing import Any

from privsvm.digests import sha256_of_file
from privsvm_bench.evidence import describe_commit

PACKAGES = ("privsvm", "numpy", "scipy", "scikit-learn", "numba", "dp-accounting", "snakemake", "dvc", "mlflow-skinny")


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"


def provenance() -> dict[str, Any]:
    """Collect the origin of this report: versions, machine and time, without user, host or absolute path.

    Returns ``commit`` of the working folder (None outside git), ``dirty``, ``dvc_lock`` (SHA-256 or None),
    ``packages``, ``python``, ``processors``, ``system``, ``generated`` (UTC).
    """
    commit, lock = describe_commit(), Path("dvc.lock")
    return {
        "commit": commit.removesuffix("-dirty") or None,
        "dirty": commit.endswith("-dirty"),
        "dvc_lock": sha256_of_file(lock) if lock.is_file() else None,
        "packages": {package: _version(package) for package in PACKAGES},
        "python": platform.python_version(),
        "processors": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "generated": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
    }
