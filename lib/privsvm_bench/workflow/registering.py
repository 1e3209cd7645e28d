"""Registers models in MLflow, for the jobs that log results and release a model."""

from __future__ import annotations

import tempfile
from pathlib import Path

from privsvm_bench.jobs.job import TrackJob


def register(folder: Path, job: TrackJob, name: str, place: str, record_key: str | None = None) -> None:
    """Register the model in a folder; names of models and MLflow experiments begin with the benchmark's.

    `place` is the rest of the experiment's name, and `record_key` belongs to the curve whose run gets the files.
    """
    # Slow to import.
    from privsvm_bench.jobs.registration import export_for_registry
    from privsvm_bench.tracking.registry import register_model

    with tempfile.TemporaryDirectory() as temporary:
        files = Path(temporary, "mlflow")
        tags = export_for_registry(folder, files)
        register_model(files, tags, f"{job.experiment}-{name}", job.address, f"{job.experiment}/{place}", record_key)
