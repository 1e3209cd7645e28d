"""Partitions behind Tables 1 and 2, many more than the one of the paper."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from reproduce.engine.context import Context
from reproduce.engine.draws import Draws
from reproduce.ppsvm.experiments import TABLE1_SETTINGS, TABLE2_SETTINGS, table1_jobs, table2_jobs
from reproduce.ppsvm.runs import _partition, _partition_errors, read

# Partitions in a piece, and pieces: (ten-fold errors with sharing, folds of entities alone).
PIECES = {"linear": ((10, 10), (4, 5)), "gaussian": ((5, 8), (2, 5))}
# Slow partitions get fewer draws: 20 ten-fold errors, and 50 folds, whose extremes are the central 95 %.
FEWER = ((5, 4), (1, 5))
FEWER_ON = ("Ionosphere", "WDBC", "Pima Indians", "German Credit", "Arrhythmia")


def partitions(parameters: Mapping[str, Any], context: Context, piece: int) -> dict[str, list[float]]:
    """Errors of some partitions.

    Parameters: of a job of Table 1 or 2 (see `reproduce.ppsvm.runs.errors`) with ``PPSVM`` or ``alone`` empty;
    ``cell``; ``partitions`` of a piece. Result: The cell to ten-fold means (with sharing), or to the entities' mean on
    single folds (without).
    """
    X, codes = read(parameters, context)
    values: list[float] = []
    for number in range(piece * parameters["partitions"], (piece + 1) * parameters["partitions"]):
        # Numbers of their own: the tables' partitions begin at 0.
        partition_number = 1000 + number
        partition = _partition(parameters, context, X, partition_number)
        result = _partition_errors(parameters, context, X, codes, partition, partition_number)
        sizes = np.bincount(partition.folds)
        values.extend(
            float(np.mean(np.asarray(method_result["errors"]) / sizes)) for method_result in result["PPSVM"].values()
        )
        for entities in result["alone"].values():
            rates = np.asarray([validated["errors"] for validated in entities]) / sizes
            values.extend(rates.mean(axis=0).tolist())
    return {parameters["cell"]: values}


def _draws() -> list[Draws]:
    results = []
    for experiment, jobs in (
        ("ppsvm_table1", table1_jobs(TABLE1_SETTINGS)),
        ("ppsvm_table2", table2_jobs(TABLE2_SETTINGS)),
    ):
        for job in jobs.values():
            if job["reading"] is not None:
                continue
            first, alone = next(iter(job["PPSVM"].items())), next(iter(job["alone"].items()))
            kernel, entities = job["kernel"], job["entities"]
            is_slow = kernel == "gaussian" and job["dataset"] in FEWER_ON
            shared, single = FEWER if is_slow else PIECES[kernel]
            for method, (size, pieces), changes in (
                ("PPSVM", shared, {"PPSVM": dict([first]), "alone": {}}),
                ("no sharing", single, {"PPSVM": {}, "alone": dict([alone])}),
            ):
                if method == "no sharing" and kernel == "gaussian":
                    changes["most_entities"] = min(job["most_entities"] or entities, 5)
                cell = f"{job['dataset']}/{method}/kernel={kernel};entities={entities}/error"
                results.append(
                    Draws(
                        experiment=experiment, name=cell, dataset=job["dataset"],
                        run="reproduce.ppsvm.draws:partitions",
                        parameters={**job, **changes, "cell": cell, "partitions": size},
                        # Errors on single folds are whole numbers; means over ten folds are nearly normal.
                        pieces=pieces, combine="mean" if method == "PPSVM" else "whole", size=1, unit=1e-4,
                        cells=(cell,),
                    )
                )  # fmt: skip
    # Small sets first.
    order = ["Bupa Liver", "Cleveland Heart", "Ionosphere", "WDBC", "Pima Indians", "German Credit", "Arrhythmia"]
    return sorted(results, key=lambda draws: order.index(draws.dataset) if draws.dataset in order else len(order))


DRAWS = _draws()
