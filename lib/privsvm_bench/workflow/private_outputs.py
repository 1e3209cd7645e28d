"""Keep the user's own data private: separate folders that their owner alone can enter.

Files made from a data set with a ``path`` in params.yaml and without ``share: true`` lie in ``data/private``. Its
outputs in dvc.yaml have ``cache: false`` and ``push: false``: DVC compares them, and keeps no copies.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from privsvm.errors import PrivSVMError
from privsvm.files import write_text
from privsvm_bench.jobs.params import Params

KINDS = ("raw", "prepared", "condensed", "models", "results")
"""Folders below ``data`` and ``data/private``: the outputs of dvc.yaml."""

README = "README.txt"
"""File of ``data/private/<kind>`` that no job makes."""

# Folders that a run writes to. Reports, logs and MLflow's runs hold numbers of private data sets too.
_FOLDERS = (
    "data", "private", "logs", "reports", "dvc_plots", "mlruns", "mlartifacts", ".cache", ".snakemake", ".dvc/cache",
    ".dvc/tmp",
)  # fmt: skip
# Options of `privsvm release` that `snakemake release --config` accepts.
_RELEASE = (
    "accuracy", "budget", "dataset", "delta", "epsilon", "hold_back", "ledger", "neighbours", "out", "sign",
    "without_inspection", "yes",
)  # fmt: skip


def private_folder(params: Params, dataset: str) -> str:
    """Return the folder of a data set below ``data``: "private/" or empty."""
    return "private/" if params.is_private(dataset) else ""


def make_output_folders() -> None:
    """Create the output folders of dvc.yaml, which DVC requires."""
    for kind in KINDS:
        Path("data", kind).mkdir(parents=True, exist_ok=True)
    for kind in (*KINDS, "reports"):
        # DVC warns about empty folders.
        readme = Path("data/private", kind, README)
        if not readme.is_file():
            write_text(readme, "What is made from your own data. `dvc push` never sends it.\n")
    Path("data/audits").mkdir(exist_ok=True)


def close_folders(params: Params) -> None:
    """Deny other users access to our files if a data set is private."""
    if os.name != "posix" or not any(params.is_private(dataset) for dataset in params.datasets):
        return
    os.umask(0o077)
    for folder in map(Path, _FOLDERS):
        if folder.exists():
            folder.chmod(0o700)
    if Path("mlflow.db").exists():
        Path("mlflow.db").chmod(0o600)


def take_release(config: dict[str, Any]) -> dict[str, Any]:
    """Move the settings of one release out of Snakemake's configuration."""
    return {name: config.pop(name) for name in _RELEASE if name in config}


def released_file(params: Params, settings: Mapping[str, Any]) -> str:
    """Return the path of the dataset to train the released model on.

    Raises PrivSVMError if the settings name none of the user's datasets, or lack an epsilon or a folder.
    """
    missing = [name for name in ("dataset", "epsilon", "out") if name not in settings]
    if missing:
        raise PrivSVMError(
            f"release: --config lacks {', '.join(missing)}; write `snakemake release --cores 1 --config dataset=name "
            "epsilon=1 out=private/model`"
        )
    for key in ("dataset", "ledger", "out", "sign"):
        if not isinstance(settings.get(key, ""), str):
            raise PrivSVMError(
                f"release: --config {key}: Snakemake has read the value as {settings[key]}; write one that is no "
                f"number, such as {key}=./name"
            )
    name = settings["dataset"]
    path = params.own_file(name) if name in params.datasets else None
    if path is None:
        raise PrivSVMError(f"release: dataset={name} is not a data set of your own (with `path` in params.yaml)")
    return path


if __name__ == "__main__":
    make_output_folders()
