"""What Tables 2 and 3 print and no draw enters: facts of the datasets, results of WSS2, and a selection's cost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from reproduce.dpwss.draws import METRICS
from reproduce.dpwss.draws import unit as table3_unit
from reproduce.dpwss.experiments import TABLE3_SETTINGS, setting_name
from reproduce.dpwss.runs import _libsvm_order, _measure, _solve
from reproduce.engine.context import Context
from reproduce.engine.draws import Draws


def unit(cell: str) -> float:
    """Return the unit of the last printed digit."""
    metric = cell.rpartition("/")[2]
    whole_metrics = ("n_samples", "n_features", "smallest value", "largest value")
    return 1.0 if metric in whole_metrics else 0.01 if metric == "imbalance ratio" else table3_unit(cell)


def facts(parameters: Mapping[str, Any], context: Context, piece: int) -> dict[str, list[float]]:
    """Count rows, features up to the last one that is not always zero, and positive rows for each negative one.

    Also the smallest and the largest value of a feature.
    """
    rows = context.rows(*parameters["source"])
    used = np.asarray(abs(rows.X).sum(axis=0)).ravel() > 0
    prefix = f"{parameters['dataset']}//"
    return {
        f"{prefix}/n_samples": [float(rows.signs.size)],
        f"{prefix}/n_features": [float(np.flatnonzero(used)[-1] + 1)],
        f"{prefix}/imbalance ratio": [float((rows.signs > 0).sum() / (rows.signs < 0).sum())],
        f"{prefix}/smallest value": [float(rows.X.min())],
        f"{prefix}/largest value": [float(rows.X.max())],
    }


def wss2(parameters: Mapping[str, Any], context: Context, piece: int) -> dict[str, list[float]]:
    """Train once with LIBSVM's selection."""
    rows = context.rows(*parameters["source"])
    order = _libsvm_order(rows.signs)
    X, signs = rows.X[order], rows.signs[order]
    result = _measure(X, signs, _solve(X, signs, parameters, None, None), order)
    return {
        f"{parameters['dataset']}/WSS2/{parameters['setting']}/{metric}": [float(result[metric])] for metric in METRICS
    }


def selection_cost(parameters: Mapping[str, Any], context: Context, piece: int) -> dict[str, list[float]]:
    """Select the first working set by Algorithm 1, line by line, and count the entries that it reads and keeps.

    Parameters: ``sizes`` (numbers of rows), ``sigma, epsilon, tol, seed``. Result: ``claim/memory/<size> rows/entries``
    to one number.
    """
    result = {}
    for size in parameters["sizes"]:
        rng = context.stream(parameters["seed"], "selection", size)
        signs, gradient, used = np.where(rng.random(size) < 0.5, 1.0, -1.0), rng.normal(size=size), np.zeros(size, bool)
        entries, largest_up, largest_low, scores = 0, -np.inf, -np.inf, []
        # All dual variables are 0: a positive row is in I_up, a negative one in I_low. `used` is row i of the flags.
        for t in range(size):
            entries += 2
            if signs[t] > 0.0:
                largest_up = max(largest_up, -gradient[t])
            else:
                largest_low = max(largest_low, -gradient[t])
        for t in range(size):
            entries += 3
            score = (largest_up + signs[t] * gradient[t]) / (largest_up + largest_low)
            violates = signs[t] < 0.0 and largest_up - gradient[t] > parameters["tol"]
            if violates and not used[t] and score >= parameters["sigma"]:
                scores.append(score)
        entries += len(scores)
        result[f"claim/memory/{size} rows/entries"] = [float(entries)]
    return result


def _draws() -> list[Draws]:
    settings, results = TABLE3_SETTINGS, []
    shared = {"C": settings["C"], "tol": settings["tol"], "seed": settings["seed"]}
    kept: dict[str, Any] = {"experiment": "dpwss_exact", "unit": unit}
    for dataset, source in settings["datasets"].items():
        dataset_parameters = {"dataset": dataset, "source": source, **shared}
        results.append(
            Draws(name=f"{dataset}.facts", dataset=dataset, run=f"{__name__}:facts", parameters=dataset_parameters,
                  cells=(f"{dataset}//",), **kept)
        )  # fmt: skip
        for shrinking in settings["shrinking"]:
            setting = setting_name(shrinking, None)
            parameters = {**dataset_parameters, "shrinking": shrinking, "setting": setting}
            results.append(
                Draws(name=f"{dataset}.{setting}", dataset=dataset, run=f"{__name__}:wss2", parameters=parameters,
                      cells=(f"{dataset}/WSS2/{setting}/",), **kept)
            )  # fmt: skip
    selection = {"sizes": [100, 1000, 10000], **settings["columns"][0], **shared}
    return [*results, Draws(name="selection", dataset="random rows", run=f"{__name__}:selection_cost",
                            parameters=selection, cells=("claim/memory/",), **kept)]  # fmt: skip


DRAWS = _draws()
