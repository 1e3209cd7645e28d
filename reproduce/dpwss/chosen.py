"""More ways to print one run where the text says a mean of five, tried at sigma 0.7 without shrinking."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from privsvm.numerics.noise.streams import seeded_stream
from privsvm_bench.reproduction.context import Context
from reproduce.dpwss.readings import DRAWS as READING_DRAWS
from reproduce.dpwss.readings import readings

# The run's place by objective, best first, and how many there are to choose from.
CHOSEN = {
    "one run": (0, 1),
    "the middle run of five by objective": (2, 5),
    "the better run of two": (0, 2),
    "the best run of three": (0, 3),
}
_GROUPS = 300


def chosen(parameters: Mapping[str, Any], context: Context, piece: int) -> dict[str, list[float]]:
    """Choose among runs to the letter; see `reproduce.dpwss.readings.readings`."""
    runs = readings(parameters, context, piece)
    prefix = f"{parameters['dataset']}/{parameters['epsilon']:g}"
    objective, iterations = (
        np.array(runs[f"to the letter/{prefix}/{metric}"]) for metric in ("objective", "iterations")
    )
    result: dict[str, list[float]] = {}
    for name, (rank, size) in CHOSEN.items():
        rng = seeded_stream(
            parameters["seed"], "dpwss chosen", parameters["dataset"], parameters["epsilon"], piece, size
        )
        groups = rng.integers(objective.size, size=(_GROUPS, size))
        chosen_runs = groups[np.arange(_GROUPS), objective[groups].argsort(axis=1)[:, rank]]
        result[f"{name}/{prefix}/objective"] = objective[chosen_runs].tolist()
        result[f"{name}/{prefix}/iterations"] = iterations[chosen_runs].tolist()
    return result


DRAWS = [
    dataclasses.replace(plan, name=plan.name.replace("selections", "chosen"), run=f"{__name__}:chosen")
    for plan in READING_DRAWS
    if plan.name.endswith("selections")
]
