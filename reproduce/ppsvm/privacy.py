"""Other rows with the same published block: without known rows an entity's columns are not determined."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.stats

from privsvm.families.one_norm.ppsvm_protocol import Entity
from privsvm.numerics.rows.rows import squared_distances
from reproduce.engine.context import Context
from reproduce.engine.draws import Draws
from reproduce.ppsvm.experiments import TABLE1_SETTINGS, TABLE2_SETTINGS, table1_jobs, table2_jobs
from reproduce.ppsvm.runs import _partition, read

KERNELS = ("linear", "gaussian")


def _block(rows: np.ndarray, entity: Entity, rotation: np.ndarray, kernel: str, gamma: float) -> np.ndarray:
    """Return the block that an entity would publish of these rows with its random matrix turned by `rotation`."""
    random_matrix = entity.random_matrix @ rotation
    if kernel == "linear":
        return rows @ random_matrix.T
    return np.exp(-gamma * squared_distances(rows, random_matrix))


def turn(parameters: Mapping[str, Any], context: Context, piece: int) -> dict[str, list[float]]:
    """Turn an entity's columns and its random matrix alike, and compare the published blocks.

    Parameters: of a job of Table 1 or 2, see `reproduce.ppsvm.runs.errors`. Result: ``claim/privacy-<kernel>/<what>``
    to one number: the largest difference of the blocks over all entities, and the smallest largest difference of their
    columns, in standard deviations.
    """
    X, _ = read(parameters, context)
    partition, kernel = _partition(parameters, context, X, 0), parameters["kernel"]
    blocks, columns = [], []
    for position, (entity_columns, entity) in enumerate(zip(partition.columns, partition.entities, strict=True)):
        stream = context.stream(parameters["seed"], "privacy", position)
        rotation = (
            scipy.stats.special_ortho_group.rvs(entity_columns.size, random_state=stream)
            if entity_columns.size > 1
            else -np.eye(1)
        )
        rows = entity.standardized(X[:, entity_columns])
        gamma = 1.0 / X.shape[1]
        published = entity.publish(X[:, entity_columns], kernel, gamma)
        blocks.append(np.abs(published - _block(rows @ rotation, entity, rotation, kernel, gamma)).max())
        columns.append(np.abs(rows - rows @ rotation).max())
    return {
        f"claim/privacy-{kernel}/difference of blocks": [float(max(blocks))],
        f"claim/privacy-{kernel}/difference of columns": [float(min(columns))],
    }


def unit(cell: str) -> float:
    """Return the unit of a cell."""
    return 1e-15 if cell.endswith("blocks") else 0.1


def _draws() -> list[Draws]:
    jobs = [*table1_jobs(TABLE1_SETTINGS).values(), *table2_jobs(TABLE2_SETTINGS).values()]
    first = {job["kernel"]: job for job in reversed(jobs) if job["reading"] is None and job["dataset"] == "WDBC"}
    return [
        Draws(
            experiment="ppsvm_privacy", name=f"privacy.{kernel}", dataset="WDBC", run=f"{__name__}:turn",
            unit=unit, cells=(f"claim/privacy-{kernel}/",),
            parameters={key: first[kernel][key] for key in ("dataset", "source", "missing", "reading", "kernel",
                        "entities", "mbar", "n_folds", "seed") if key in first[kernel]},
        )
        for kernel in KERNELS
    ]  # fmt: skip


DRAWS = _draws()
