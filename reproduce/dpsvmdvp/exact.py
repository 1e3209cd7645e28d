"""Table 1: the sizes of the two datasets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reproduce.dpsvmdvp.experiments import SHARED
from reproduce.engine.context import Context
from reproduce.engine.draws import Draws


def facts(parameters: Mapping[str, Any], context: Context, piece: int) -> dict[str, list[float]]:
    """Count rows of both parts, features and classes."""
    train, prefix = context.rows(*parameters["train"]), f"{parameters['dataset']}//"
    result = {
        f"{prefix}/n_features": [float(train.X.shape[1])],
        f"{prefix}/n_classes": [2.0],
        f"{prefix}/n_train": [float(train.signs.size)],
    }
    if parameters["same test part"]:
        result[f"{prefix}/n_test"] = [float(context.rows(*parameters["test"]).signs.size)]
    return result


DRAWS = [
    Draws(
        experiment="dpsvmdvp_exact", name=f"{dataset}.facts", dataset=dataset, run=f"{__name__}:facts",
        cells=(f"{dataset}//",),
        # cod-rna's test part here is another file than the paper's.
        parameters={"dataset": dataset, **source, "same test part": dataset == "splice", "seed": SHARED["seed"]},
    )
    for dataset, source in SHARED["datasets"].items()
]  # fmt: skip
