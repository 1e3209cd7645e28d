"""Evaluate the released models of one method on one dataset."""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from privsvm.base.released import ReleasedPath
from privsvm_bench.datasets.prepared import PreparedData
from privsvm_bench.metrics import METRICS, Predictions, compute_metrics
from privsvm_bench.records import EvaluateTimings, ModelRecord, Result, Summary


def evaluate_paths(
    prepared: PreparedData, paths: Sequence[ReleasedPath], models: ModelRecord
) -> tuple[Result, EvaluateTimings]:
    """Predict the test rows of each split with every released model; `paths` has one path for each split."""
    metrics: dict[str, list[list[list[float]]]] = {name: [] for name in METRICS}
    predictions = hashlib.sha256()
    predict_seconds, rows_predicted, n_test = [], [], 0
    for index, path in enumerate(paths):
        split = prepared.split(index)
        n_test = max(n_test, split.y_test.size)
        spent = 0.0
        for values in metrics.values():
            values.append([])
        for epsilon_index in range(len(path.epsilons)):
            started = time.perf_counter()
            scores = path.scores(split.X_test, epsilon_index)
            codes = path.codes(scores)
            spent += time.perf_counter() - started
            predictions.update(np.ascontiguousarray(codes, dtype="<i4").tobytes())
            values_by_metric = compute_metrics(Predictions(split.y_test, codes, scores, path.n_classes))
            for name, column in values_by_metric.items():
                metrics[name][-1].append(column.tolist())
        predict_seconds.append(spent)
        rows_predicted.append(int(split.y_test.size * len(path.epsilons) * path.n_repeats))
    private = math.isfinite(models.epsilons[0])
    result = Result.of_models(
        models,
        status=models.guarantees[0].status,
        delta=models.delta if private else None,
        neighbours=models.neighbours if private else None,
        n_test=n_test,
        predictions_sha256=predictions.hexdigest(),
        metrics={name: _replace_undefined(values) for name, values in metrics.items()},
        summary={name: summarise(np.array(values, dtype=float)) for name, values in metrics.items()},
    )
    timings = EvaluateTimings(predict_seconds=tuple(predict_seconds), rows_predicted=tuple(rows_predicted))
    return result, timings


def _replace_undefined(values: Any) -> Any:
    """Turn nested lists into nested tuples, with None in place of NaN."""
    if isinstance(values, list):
        return tuple(_replace_undefined(value) for value in values)
    return None if math.isnan(values) else values


def summarise(values: np.ndarray) -> Summary:
    """Summarise a metric (S, E, R) over splits and repeats, for each epsilon; NaN where it is undefined.

    ``sd`` is the standard deviation (n - 1) over all runs, 0 for a single one; ``low`` and ``high`` are the 2.5 and
    97.5 percentiles. All are None if no run is defined.
    """
    columns: list[tuple[float | None, ...]] = []
    for epsilon_index in range(values.shape[1]):
        runs = values[:, epsilon_index].ravel()
        runs = runs[~np.isnan(runs)]
        spread = float(runs.std(ddof=1)) if runs.size > 1 else 0.0
        known = (float(runs.mean()), spread, *np.percentile(runs, [2.5, 97.5]).tolist()) if runs.size else None
        columns.append(known or (None,) * 4)
    mean, sd, low, high = zip(*columns, strict=True)
    return Summary(mean=mean, sd=sd, low=low, high=high)
