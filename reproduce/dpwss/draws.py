"""Random runs of DPWSS behind Table 3: the printed numbers are single runs, see `reproduce.dpwss.claims`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from privsvm.numerics.noise.streams import seeded_stream
from privsvm.solvers.kernel.c_svc import SolverOptions
from privsvm.solvers.kernel.kernels import Kernel
from privsvm.solvers.kernel.smo import PairSelection, UniformStreams, solve_smo_runs
from reproduce.dpwss.experiments import TABLE3_SETTINGS, setting_name
from reproduce.dpwss.runs import _libsvm_order, _measure
from reproduce.engine.context import Context
from reproduce.engine.draws import Draws

# Runs in a piece and pieces; by the time that one run takes.
PIECES: dict[str, tuple[int, int]] = {"a5a": (5, 6), "w5a": (5, 6), "ijcnn1": (4, 1), "a1a": (35, 6), "w1a": (35, 6)}
OTHERS = (105, 2)
# Megabytes of kernel rows, which the runs of a piece share: all rows of ijcnn1, for half the time and the same bits.
CACHE = {"ijcnn1": 2200.0}

METRICS = ("AUC", "accuracy", "precision", "recall", "f1", "MCC", "objective", "iterations")


def unit(cell: str) -> float:
    """Return the unit of the last digit that Table 3 prints."""
    return {"objective": 0.01, "iterations": 1.0}.get(cell.rpartition("/")[2], 1e-4)


def table3(parameters: Mapping[str, Any], context: Context, piece: int) -> dict[str, list[float]]:
    """Train several times with one setting.

    Parameters: ``dataset, source`` (name, part, positive label), ``shrinking``, ``setting``, ``column`` (epsilon and
    sigma), ``runs`` of a piece, ``C, tol, seed``. Result: cell of the table to the values of all runs.
    """
    rows = context.rows(*parameters["source"])
    order = _libsvm_order(rows.signs)
    X, signs = rows.X[order], rows.signs[order]
    column, runs, dataset = parameters["column"], parameters["runs"], parameters["dataset"]
    streams = [
        seeded_stream(parameters["seed"], "dpwss draws", dataset, parameters["setting"], piece, run)
        for run in range(runs)
    ]
    options = SolverOptions(
        tol=parameters["tol"], shrinking=bool(parameters["shrinking"]), cache_size=CACHE.get(dataset, 100.0)
    )
    sharpness = column["epsilon"] / (2.0 * (1.0 - column["sigma"]))
    selection, upper = PairSelection("dpwss", column["sigma"], sharpness), np.full(signs.size, parameters["C"])
    solutions = solve_smo_runs(X, signs, upper, Kernel("linear"), options, selection, UniformStreams(streams))
    measured = [_measure(X, signs, solution, order) for solution in solutions]
    prefix = f"{dataset}/DPWSS/{parameters['setting']}"
    return {f"{prefix}/{metric}": [float(metrics[metric]) for metrics in measured] for metric in METRICS}


def _draws() -> list[Draws]:
    settings = TABLE3_SETTINGS
    result = []
    for dataset, source in settings["datasets"].items():
        runs, pieces = PIECES.get(dataset, OTHERS)
        for shrinking in settings["shrinking"]:
            for column in settings["columns"]:
                setting = setting_name(shrinking, column)
                result.append(
                    Draws(
                        experiment="dpwss_table3",
                        name=f"{dataset}.{setting}",
                        dataset=dataset,
                        run="reproduce.dpwss.draws:table3",
                        parameters={
                            "dataset": dataset, "source": source, "shrinking": shrinking, "setting": setting,
                            "column": column, "runs": runs, "C": settings["C"], "tol": settings["tol"],
                            "seed": settings["seed"],
                        },
                        pieces=pieces, combine="mean", size=1, unit=unit,
                        means=("dpwss_means", settings["runs"]),
                        cells=(f"{dataset}/DPWSS/{setting}/",),
                    )
                )  # fmt: skip
    # Small sets first.
    large = list(PIECES)[::-1]
    return sorted(result, key=lambda draws: large.index(draws.dataset) if draws.dataset in large else -1)


DRAWS = _draws()
