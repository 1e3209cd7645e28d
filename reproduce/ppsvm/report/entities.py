"""Figures 3 and 4: improvement by sharing against the number of entities."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from privsvm_bench.reproduction.comparison import Missing, Row, claim, compare, within
from privsvm_bench.reproduction.drawing import axis
from privsvm_bench.reproduction.experiment import Experiment, Figure, Report, Results, Table
from reproduce.ppsvm.report.shared import (
    COLOURS,
    KERNEL_NAMES,
    fold_rates,
)

# Metric of a row, and what the paper says of it.
_STATEMENTS = {
    "median improvement": "tends to be better with more entities",
    "share above 0": "more lies above 0 with more entities",
}


def improvements(result: Mapping[str, Any]) -> list[float]:
    """Error of an entity alone less PPSVM's, for each entity and fold."""
    differences = []
    for partition in result["partitions"]:
        shared = fold_rates(partition["PPSVM"]["main"]["errors"], partition["folds"])
        for validated in partition["alone"]["main"]:
            rates = fold_rates(validated["errors"], partition["folds"])
            differences += [alone - common for alone, common in zip(rates, shared, strict=True)]
    return differences


def rank_correlation(first: Sequence[float], second: Sequence[float]) -> float:
    """Spearman's correlation, with the mean rank for equal values; 0 where all are equal."""

    def ranks(values: Sequence[float]) -> list[float]:
        ordered = sorted(values)
        return [ordered.index(value) + (ordered.count(value) - 1) / 2 for value in values]

    pair = ranks(first), ranks(second)
    if any(len(set(values)) < 2 for values in pair):
        return 0.0
    return statistics.correlation(*pair)


def entities_report(experiment: Experiment, results: Results) -> Report:
    """Improvement by number of entities, as boxes, and what the paper says of them."""
    rows, claims, figures = [], [], []
    jobs = experiment.jobs(experiment.settings)
    for kernel, number in (("linear", 3), ("gaussian", 4)):
        for dataset in experiment.settings["datasets"]:
            dataset_jobs = {
                name: job for name, job in jobs.items() if (job["kernel"], job["dataset"]) == (kernel, dataset)
            }
            outcome = {
                job["entities"]: improvements(result)
                for name, job in dataset_jobs.items()
                if (result := results[name].numbers) is not None
            }
            for name, job in dataset_jobs.items():
                rows += _median_rows(job, outcome.get(job["entities"], []), results[name].missing)
            absent = next((results[name].missing for name in dataset_jobs if results[name].missing), None)
            claims += _claim_rows(dataset, kernel, outcome, absent)
            if outcome:
                figures.append(_boxes(dataset, kernel, number, outcome))
    return Report(
        tables=[
            Table(
                name="claims",
                title="What the paper says of Figures 3 and 4",
                caption="Agrees where the rank correlation (Spearman) is positive.",
                rows=claims,
            ),
            Table(
                name="medians",
                title="Improvement by number of entities",
                caption="Error of an entity alone less PPSVM's, over all folds and entities. The paper prints its box "
                "plots as pictures only.",
                rows=rows,
            ),
        ],
        figures=figures,
        notes=[
            "One deal of the columns for each number of entities, as in the paper. Linear: nu is chosen in every fold. "
            "Gaussian: nu and mu are chosen on the training rows of the first fold, and used in all ten; of more than "
            f"{experiment.settings['drawn']['gaussian']} entities as many are drawn to be tried alone."
        ],
    )


def _median_rows(job: Mapping[str, Any], values: Sequence[float], missing: Missing | None) -> list[Row]:
    labels = {"table": "medians", "dataset": job["dataset"], "method": f"PPSVM, {job['kernel']}",
             "setting": f"{job['entities']} entities"}  # fmt: skip
    return [
        compare({**labels, "metric": metric}, None, _summary(values, metric), within(0.0), missing=missing)
        for metric in _STATEMENTS
    ]


def _claim_rows(
    dataset: str, kernel: str, improvements_by_entities: Mapping[int, Sequence[float]], absent: Missing | None
) -> list[Row]:
    """Check what the paper says of the trend, where there are all of its points."""
    rows = []
    for metric, statement in _STATEMENTS.items():
        labels = {"table": "claims", "dataset": dataset, "method": f"PPSVM, {kernel}",
                 "metric": f"rank correlation of {metric} and entities"}  # fmt: skip
        if absent or len(improvements_by_entities) < 2:
            rows.append(claim(labels, statement, None, False, missing=absent))
            continue
        ours = rank_correlation(
            list(improvements_by_entities),
            [_summary(values, metric) or 0.0 for values in improvements_by_entities.values()],
        )
        rows.append(claim(labels, statement, ours, ours > 0, "no such tendency on our deals of the columns"))
    return rows


def _summary(values: Sequence[float], metric: str) -> float | None:
    if not values:
        return None
    if metric == "median improvement":
        return statistics.median(values)
    return sum(value > 0 for value in values) / len(values)


def _boxes(dataset: str, kernel: str, number: int, improvements_by_entities: Mapping[int, Sequence[float]]) -> Figure:
    data = [
        {"type": "box", "x": [entities] * len(values), "y": list(values), "name": str(entities), "boxpoints": False,
         "line": {"color": COLOURS["PPSVM"], "width": 1.4}, "showlegend": False}
        for entities, values in improvements_by_entities.items()
    ]  # fmt: skip
    return Figure(
        title=f"Figure {number}: improvement by sharing, {dataset}, {KERNEL_NAMES[kernel]} kernel",
        caption="Error alone less PPSVM's error, over folds and entities: median, quartiles, and range without "
        "outliers. Above 0 sharing is better.",
        data=data,
        layout={"xaxis": axis("entities", tickvals=list(improvements_by_entities)), "height": 400,
                "yaxis": axis("improvement", zeroline=True, zerolinecolor="#1b1f27")},
    )  # fmt: skip
