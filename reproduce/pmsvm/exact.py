"""Table 6: the sizes of the datasets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reproduce.engine.context import Context
from reproduce.engine.draws import Draws
from reproduce.pmsvm.experiments import DATASETS, SHARED


def facts(parameters: Mapping[str, Any], context: Context, piece: int) -> dict[str, list[float]]:
    """Count rows, features and classes."""
    rows, prefix = context.class_rows(*parameters["source"]), f"{parameters['dataset']}//"
    return {
        f"{prefix}/n_samples": [float(rows.codes.size)],
        f"{prefix}/n_features": [float(rows.X.shape[1])],
        f"{prefix}/n_classes": [float(len(rows.labels))],
    }


DRAWS = [
    Draws(
        experiment="pmsvm_exact", name=f"{dataset}.facts", dataset=dataset, run=f"{__name__}:facts",
        cells=(f"{dataset}//",), parameters={"dataset": dataset, "source": source, "seed": SHARED["seed"]},
    )
    for dataset, source in DATASETS.items()
]  # fmt: skip
