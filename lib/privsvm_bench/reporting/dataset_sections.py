"""Tables and curves of the accuracy on every dataset."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from privsvm.errors import without_absolute_paths
from privsvm.registry import is_foreign
from privsvm_bench.metrics import METRICS
from privsvm_bench.records import Result
from privsvm_bench.reporting.claim_tables import note_on, right_guess
from privsvm_bench.reporting.curve_tables import nearest_epsilon
from privsvm_bench.reporting.results import by_status, group_by
from privsvm_bench.reporting.text import percent_score, score_text, short_number, unique

# No better than guessing, within this much.
_WORTHLESS = 0.005


def metrics_to_draw(results: Iterable[Result]) -> dict[str, str]:
    """Names and titles of the metrics to draw; the others are in curves.csv."""
    present = {name for result in results for name in result.summary}
    return {name: metric.title for name, metric in METRICS.items() if metric.drawn and name in present}


def dataset_sections(
    results: Iterable[Result], grids: Mapping[str, list[float]], metrics: Iterable[str]
) -> list[dict[str, Any]]:
    """Facts of each dataset, and a table for each metric."""
    of_dataset, names = group_by(results, "dataset"), list(metrics)
    return [_section(dataset, of_dataset[dataset], grid, names) for dataset, grid in grids.items()]


def _section(dataset: str, members: Sequence[Result], grid: Sequence[float], metrics: Sequence[str]) -> dict[str, Any]:
    first = members[0]
    return {
        "name": dataset,
        "grid": grid,
        "tables": {metric: [_table_row(result, grid, metric) for result in members] for metric in metrics},
        "first": first,
        "repeats": max(result.repeats for result in members),
        "protocols": unique(short_number(without_absolute_paths(result.protocol)) for result in members),
        "statuses": {status: len(group) for status, group in by_status(members).items()},
    }


def _percents(result: Result, index: int) -> str:
    return percent_score(result.value("accuracy", "mean", index), result.value("accuracy", "sd", index))


def _table_row(result: Result, grid: Sequence[float], metric: str) -> dict[str, Any]:
    """One row of a dataset's table; cells follow the dataset's grid, of which a reference has one."""
    position = {epsilon: index for index, epsilon in enumerate(result.epsilons)}
    indices = [0] if result.is_reference else [position.get(epsilon) for epsilon in grid]
    return {
        "method": result.method,
        "status": result.status,
        "reference": result.is_reference,
        "cells": [
            {"score": "", "note": ""}
            if index is None
            else {
                "score": score_text(result.value(metric, "mean", index), result.value(metric, "sd", index)),
                "note": note_on(result.guarantees[index], result.status),
            }
            for index in indices
        ],
    }


def key_methods(results: Sequence[Result], reference_epsilon: float) -> list[str]:
    """Choose the five methods that a chart of one dataset opens with.

    They are the recommended method and the best other proved one, or the two best; the SVM without privacy, the
    majority class, and the claim with the highest accuracy at the smallest epsilon, first of classes of other packages.
    """

    def by_accuracy(members: Iterable[Result], epsilon: float) -> list[Result]:
        scored = [
            (result.value("accuracy", "mean", nearest_epsilon(result.epsilons, epsilon)), result.method, result)
            for result in members
        ]
        known = [(mean, method, result) for mean, method, result in scored if mean is not None]
        return [result for _, _, result in sorted(known, key=lambda item: item[:2], reverse=True)]

    proved = by_accuracy((result for result in results if result.theorem_holds), reference_epsilon)
    proved.sort(key=lambda result: result.implementation != "recommended")
    smallest = min(epsilon for result in results for epsilon in result.epsilons)
    claims = by_accuracy((result for result in results if result.status == "claimed"), smallest)
    claims.sort(key=lambda result: not is_foreign(result.implementation))
    references = {result.method: result for result in results if result.is_reference}
    known = [references[method] for method in ("svm", "majority") if method in references]
    return [result.method for result in [*proved[:2], *(known or [*references.values()][:2]), *claims[:1]]]


def best_proved(
    results: Iterable[Result], reference_epsilon: float, preferred: str | None = None
) -> list[dict[str, Any]]:
    """Find the best proved method of each dataset near the reference epsilon, and its references without privacy.

    A `preferred` method is taken where it is proved.
    """
    of_dataset = group_by(results, "dataset")
    return [_best_row(dataset, members, reference_epsilon, preferred) for dataset, members in of_dataset.items()]


def _best_row(
    dataset: str, members: Sequence[Result], reference_epsilon: float, preferred: str | None
) -> dict[str, Any]:
    row: dict[str, Any] = {"dataset": dataset, "best": None, "svm": None, "majority": None, "worthless": False}
    references = {result.method: result for result in members if result.method in ("svm", "majority")}
    row |= {method: _percents(result, 0) for method, result in references.items()}
    candidates = []
    for result in members:
        index = nearest_epsilon(result.epsilons, reference_epsilon)
        mean = result.value("accuracy", "mean", index)
        if result.theorem_holds and mean is not None:
            candidates.append((mean, result.method, result, index))
    if not candidates:
        return row
    mean, method, result, index = max(candidates, key=lambda item: (item[1] == preferred, item[:2]))
    guarantee = result.guarantees[index]
    row["best"] = {
        "method": method,
        "score": _percents(result, index),
        "epsilon": guarantee.epsilon_with_system_noise,
        "delta": guarantee.delta,
        "neighbours": guarantee.neighbours,
        "status": result.status,
        "guess": math.ceil(100.0 * right_guess(guarantee)),
    }
    row["best"]["mean"] = mean
    without = references["svm"].value("accuracy", "mean", 0) if "svm" in references else None
    row["best"]["loss"] = None if without is None else 100.0 * (without - mean)
    majority = references["majority"].value("accuracy", "mean", 0) if "majority" in references else None
    # Where classes are even, the majority of the training rows is not that of the test rows.
    row["worthless"] = mean <= max(majority or 0.0, 1.0 / result.n_classes) + _WORTHLESS
    return row
