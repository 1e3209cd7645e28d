"""Two rows that give away which dataset DPWSS was trained on: one violating pair leaves nothing to chance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from privsvm.numerics.noise.streams import seeded_stream
from reproduce.dpwss.experiments import TABLE3_SETTINGS
from reproduce.dpwss.runs import _solve
from reproduce.engine.context import Context
from reproduce.engine.draws import Draws

# The only feature of the positive row and of the negative one; in the neighbouring dataset the first is replaced.
ROWS, NEIGHBOUR = (1.0, -1.0), (3.0, -1.0)
RUNS = 1000
# Chance that the bound on epsilon is wrong.
ERROR = 1e-6


def witness(parameters: Mapping[str, Any], context: Context, piece: int) -> dict[str, list[float]]:
    """Train on both datasets again and again; bound epsilon below by the event that the first one's model comes out.

    Parameters: ``column`` (epsilon and sigma), ``runs, shrinking, C, tol, seed``. Result: ``claim/privacy/<what>`` to
    one number.
    """
    signs = np.array([1.0, -1.0])
    weights: list[list[float]] = []
    for features in (ROWS, NEIGHBOUR):
        X = np.array(features)[:, None]
        weights.append([])
        for run in range(parameters["runs"]):
            rng = seeded_stream(parameters["seed"], "dpwss privacy", *features, run)
            solution = _solve(X, signs, parameters, parameters["column"], rng)
            weights[-1].append(float(X[:, 0] @ (solution.alpha * signs)))
    model, runs = weights[0][0], parameters["runs"]
    here, there = (sum(weight == model for weight in models) for models in weights)
    # Clopper-Pearson's bounds where the event always or never happens.
    rare = (ERROR / 2.0) ** (1.0 / runs)
    bound = float(np.log(rare / (1.0 - rare))) if (here, there) == (runs, 0) else 0.0
    return {
        "claim/privacy/epsilon at least": [bound],
        "claim/privacy/runs with the model": [float(here)],
        "claim/privacy/neighbour's runs with the model": [float(there)],
    }


def unit(cell: str) -> float:
    """Return the unit of a number."""
    return 0.1 if cell.endswith("least") else 1.0


DRAWS = [
    Draws(
        experiment="dpwss_privacy", name="privacy", dataset="two rows", run=f"{__name__}:witness",
        unit=unit, cells=("claim/privacy/",),
        parameters={
            "dataset": "two rows", "column": TABLE3_SETTINGS["columns"][0], "runs": RUNS, "shrinking": 0,
            "C": TABLE3_SETTINGS["C"], "tol": TABLE3_SETTINGS["tol"], "seed": TABLE3_SETTINGS["seed"],
        },
    )
]  # fmt: skip
