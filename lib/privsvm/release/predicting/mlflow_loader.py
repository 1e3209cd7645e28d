"""Loads what `privsvm export --to mlflow` wrote, without pickle: the name of its function is MLflow's."""

from __future__ import annotations

from privsvm.release.predicting.model import ReleasedModel, load


def _load_pyfunc(path: str) -> ReleasedModel:
    """Read the model of an MLflow model of flavour ``python_function``, whose `predict` takes data frames."""
    return load(path)
