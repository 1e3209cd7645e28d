"""Evaluate the released models of one method on one dataset."""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from privsvm.base.released import ReleasedPath
from privsvm.data.prepared import PreparedData
from privsvm.metrics import METRICS, Predictions, compute_metrics

__all__ = ["evaluate_paths", "result_record", "summarise"]


def evaluate_paths(prepared: PreparedData, paths: Sequence[ReleasedPath]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Predict the test rows of every split with every released model.

    Parameters
    ----------
    prepared : PreparedData
        The dataset and its S splits.
    paths : sequence of ReleasedPath (S)
        The models of each split.

    Returns
    -------
    outcome : dict
        ``metrics`` (name to nested list (S, E, R)), ``summary``, ``predictions_sha256``, ``n_test``.
    seconds : dict
        ``predict_seconds`` and ``rows_predicted``, one entry a split.
    """
    metrics: dict[str, list] = {name: [] for name in METRICS}
    predictions = hashlib.sha256()
    predict_seconds, rows_predicted, n_test = [], [], 0
    for index, path in enumerate(paths):
        split = prepared.split(index)
        n_test = max(n_test, split.y_test.size)
        spent = 0.0
        values: dict[str, list] = {name: [] for name in METRICS}
        for epsilon_index in range(len(path.epsilons)):
            started = time.perf_counter()
            scores = path.scores(split.X_test, epsilon_index)
            codes = path.codes(scores)
            spent += time.perf_counter() - started
            predictions.update(np.ascontiguousarray(codes, dtype="<i4").tobytes())
            found = compute_metrics(Predictions(split.y_test, codes, scores, path.n_classes))
            for name, column in found.items():
                values[name].append(column.tolist())
        for name in METRICS:
            metrics[name].append(values[name])
        predict_seconds.append(spent)
        rows_predicted.append(int(split.y_test.size * len(path.epsilons) * path.n_repeats))
    outcome = {
        "metrics": metrics,
        "summary": {name: summarise(np.array(metrics[name], dtype=float)) for name in METRICS},
        "predictions_sha256": predictions.hexdigest(),
        "n_test": n_test,
    }
    return outcome, {"predict_seconds": predict_seconds, "rows_predicted": rows_predicted}


def result_record(record: Mapping[str, Any], outcome: Mapping[str, Any]) -> dict[str, Any]:
    """Put together what is said about the models of one job and what they achieved.

    Parameters
    ----------
    record : mapping
        The models' record.
    outcome : mapping
        From `evaluate_paths`.

    Returns
    -------
    dict
        A results record, see docs/files.md.
    """
    private = math.isfinite(float(record["epsilons"][0]))
    return {
        **{name: value for name, value in record.items() if name not in ("kind", "classes")},
        **outcome,
        "status": record["guarantees"][0]["status"],
        "delta": record["delta"] if private else None,
        "neighbours": record["neighbours"] if private else None,
    }


def summarise(values: np.ndarray) -> dict[str, list[float]]:
    """Mean and spread over splits and repeats.

    Parameters
    ----------
    values : ndarray (S, E, R)
        One metric; NaN where undefined.

    Returns
    -------
    dict of str to list (E)
        ``mean``; ``sd``, standard deviation (n - 1) over all runs, 0 for a single one; ``low`` and
        ``high``, 2.5 and 97.5 percentiles.
    """
    summary: dict[str, list[float]] = {"mean": [], "sd": [], "low": [], "high": []}
    for epsilon_index in range(values.shape[1]):
        runs = values[:, epsilon_index].ravel()
        runs = runs[~np.isnan(runs)]
        undefined = runs.size == 0
        summary["mean"].append(float("nan") if undefined else float(runs.mean()))
        summary["sd"].append(float("nan") if undefined else float(runs.std(ddof=1)) if runs.size > 1 else 0.0)
        for name, percentile in (("low", 2.5), ("high", 97.5)):
            summary[name].append(float("nan") if undefined else float(np.percentile(runs, percentile)))
    return summary
