"""The two files that versions are compared by: metrics.json and curves.csv. No dates, no seconds."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from privsvm_bench.metrics import METRICS
from privsvm_bench.palette import CLAIMED, NONE, looks_of
from privsvm_bench.records import Result

_DECIMALS = 6
_EPSILONS = ("epsilon_proved", "epsilon_with_system_noise")


def _round(value: float | None) -> float | None:
    if value is None or not math.isfinite(value):
        return value
    # Adding zero turns a rounded -0.0 into 0.0, which would otherwise differ as text.
    return round(value, _DECIMALS) + 0.0


def nearest_epsilon(epsilons: Sequence[float], reference: float) -> int:
    """Find the index of the epsilon nearest to a positive reference, by ratio; the smaller (more private) wins a tie.

    Infinity counts only if the grid has nothing else.
    """

    def distance(index: int) -> tuple[float, float]:
        epsilon = epsilons[index]
        ratio = abs(math.log(epsilon / reference)) if math.isfinite(epsilon) else math.inf
        return (round(ratio, 12), epsilon)

    return min(range(len(epsilons)), key=distance)


def epsilon_grids(results: Iterable[Result], reference_epsilon: float = 1.0) -> dict[str, list[float]]:
    """List the finite epsilons used on each dataset, sorted.

    A dataset without any private method takes the union over all datasets, so that its reference lines can be drawn;
    `reference_epsilon` stands in if no method of the whole report has a finite epsilon.
    """
    grids: dict[str, set[float]] = {}
    for result in results:
        grid = grids.setdefault(result.dataset, set())
        grid.update(epsilon for epsilon in result.epsilons if math.isfinite(epsilon))
    union = set().union(*grids.values()) or {reference_epsilon}
    return {dataset: sorted(grid or union) for dataset, grid in grids.items()}


def metrics_record(results: Iterable[Result], reference_epsilon: float = 1.0) -> dict[str, dict[str, dict[str, Any]]]:
    """Build the file of ``dvc metrics``: each method at the grid epsilon nearest to the reference.

    Returns ``{dataset: {method: {"status", "randomness", "epsilon", "epsilon_proved", metric, ...}}}``. Undefined
    values are left out, so every number is a number: ``epsilon`` of a method without one, ``epsilon_proved`` without a
    proof, ``epsilon_with_system_noise`` without a theorem.
    """
    table: dict[str, dict[str, dict[str, Any]]] = {}
    for result in results:
        index = nearest_epsilon(result.epsilons, reference_epsilon)
        entry: dict[str, Any] = {"status": result.worth(index)}
        if result.guarantees[index].randomness is not None:
            entry["randomness"] = result.guarantees[index].randomness
        if math.isfinite(result.epsilons[index]):
            entry["epsilon"] = _round(result.epsilons[index])
        for name in _EPSILONS if result.theorem_holds else ():
            epsilon = getattr(result.guarantees[index], name)
            if math.isfinite(epsilon):
                entry[name] = _round(epsilon)
        for metric in METRICS:
            mean = result.value(metric, "mean", index)
            if mean is not None:
                entry[metric] = _round(mean)
        spread = result.value("accuracy", "sd", index)
        if spread is not None:
            entry["accuracy_sd"] = _round(spread)
        table.setdefault(result.dataset, {})[result.method] = entry
    return table


def metric_columns(metric: str) -> list[str]:
    """Name the columns of one metric."""
    return [metric, f"{metric}_sd", f"{metric}_low", f"{metric}_high"]


def curve_columns(metrics: Iterable[str] = METRICS) -> list[str]:
    """Column names of curves.csv, in order."""
    first = ("dataset", "method", "status", "colour", "randomness", "epsilon", "log10_epsilon")
    return [
        *first,
        *_EPSILONS,
        "delta",
        "neighbours",
        *(column for metric in metrics for column in metric_columns(metric)),
    ]


def curve_rows(results: Sequence[Result], reference_epsilon: float = 1.0) -> list[dict[str, Any]]:
    """Build one row per dataset, method and epsilon, with the keys `curve_columns`.

    ``status`` is of that epsilon, ``colour`` the report's for the method. A method without epsilon has one row per
    epsilon of its dataset's grid: a horizontal line. ``epsilon_proved`` and ``epsilon_with_system_noise`` are ``inf``
    for a claim, the first also for seeded noise; both are None if no epsilon is stated.
    """
    grids = epsilon_grids(results, reference_epsilon)
    implementations = sorted({result.implementation for result in results})
    colours = {name: look.light for name, look in zip(implementations, looks_of(implementations), strict=True)}
    rows = []
    for result in results:
        colour = {"claimed": CLAIMED, "none": NONE}.get(result.status, colours[result.implementation])
        if result.is_reference:
            points = [(epsilon, 0) for epsilon in grids[result.dataset]]
        else:
            points = [(result.epsilons[index], index) for index in result.points]
        rows += [_curve_row(result, epsilon, index, colour) for epsilon, index in points]
    return rows


def _curve_row(result: Result, epsilon: float, index: int, colour: str) -> dict[str, Any]:
    guarantee = result.guarantees[index]
    row: dict[str, Any] = {
        "dataset": result.dataset,
        "method": result.method,
        "status": result.worth(index),
        "colour": colour,
        "randomness": guarantee.randomness,
        "epsilon": _round(epsilon),
        "log10_epsilon": _round(math.log10(epsilon)),
        **{name: _epsilon_cell(result, getattr(guarantee, name)) for name in _EPSILONS},
        # Never rounded to decimals: a delta of 1e-7 would become 0, which is a stronger claim.
        "delta": guarantee.delta if result.status != "none" else None,
        "neighbours": guarantee.neighbours or result.neighbours,
    }
    for metric in METRICS:
        statistics = zip(metric_columns(metric), ("mean", "sd", "low", "high"), strict=True)
        row |= {column: _round(result.value(metric, statistic, index)) for column, statistic in statistics}
    return row


def _epsilon_cell(result: Result, epsilon: float) -> float | None:
    """One of a guarantee's epsilons: infinite on a curve that is claimed anywhere, None where none is stated."""
    return {"claimed": math.inf, "none": None}.get(result.status, _round(epsilon))


def curves_csv(rows: Iterable[Mapping[str, Any]], columns: Sequence[str] | None = None) -> str:
    """Write rows of `curve_rows` as CSV text; an undefined value is an empty cell, infinity is ``inf``."""
    buffer = io.StringIO()
    fields = curve_columns() if columns is None else columns
    writer = csv.DictWriter(buffer, fields, lineterminator="\n", extrasaction="ignore")
    writer.writeheader()
    writer.writerows(rows)
    return buffer.getvalue()
