"""Tables 1 and 2: the sizes of the datasets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reproduce.engine.context import Context
from reproduce.engine.draws import Draws
from reproduce.ppsvm.experiments import SETTINGS
from reproduce.ppsvm.runs import read


def facts(parameters: Mapping[str, Any], context: Context, piece: int) -> dict[str, list[float]]:
    """Count rows and features, after the treatment of missing values."""
    (n_rows, n_features), prefix = read(parameters, context)[0].shape, f"{parameters['dataset']}//"
    return {f"{prefix}/n_samples": [float(n_rows)], f"{prefix}/n_features": [float(n_features)]}


DRAWS = [
    Draws(
        experiment="ppsvm_exact", name=f"{dataset}.facts", dataset=dataset, run=f"{__name__}:facts",
        cells=(f"{dataset}//",),
        parameters={
            "dataset": dataset, "source": details["source"], "missing": details["missing"], "reading": None,
            "seed": SETTINGS["shared"]["seed"],
        },
    )
    for dataset, details in SETTINGS["shared"]["datasets"].items()
]  # fmt: skip
