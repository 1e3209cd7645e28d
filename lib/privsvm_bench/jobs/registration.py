"""The model of the benchmark that MLflow's registry gets."""

from __future__ import annotations

import json
import math
from pathlib import Path

from privsvm.base.model_file import Description, write_model
from privsvm.base.released import LinearPath
from privsvm.digests import canonical_json
from privsvm.errors import PrivSVMError
from privsvm.privacy.gate import restore
from privsvm_bench.jobs.model_files import load_paths
from privsvm_bench.records import ModelRecord


def write_first_model(models: Path, epsilon: float, folder: Path) -> None:
    """Write the first of a job's models at the epsilon nearest to one, as `privsvm.load` reads it."""
    paths, record = load_paths(models, models.with_suffix(".json"), ModelRecord)
    index = min(range(len(record.epsilons)), key=lambda index: abs(math.log(record.epsilons[index] / epsilon)))
    if not isinstance(paths[0], LinearPath):
        raise PrivSVMError(f"{models}: holds {paths[0].kind} models, and linear ones alone are registered")
    # Witnesses are computed from the rows.
    guarantee = restore(json.loads(canonical_json(record.guarantees[index])) | {"witness": None})
    recipe = {"method": record.method, "parameters": record.parameters}
    described = Description(classes=record.classes, n_features=record.n_features, recipe=recipe)
    write_model(folder, paths[0].one_model(index, 0, record.n_features), described, guarantee)
