"""Figures 5 and 6: random, reduced and full kernels."""

from __future__ import annotations

import functools
import statistics
from collections.abc import Mapping
from typing import Any

from privsvm_bench.reproduction.comparison import Row, claim, compare, explained, within
from privsvm_bench.reproduction.drawing import axis, diagonal, scatter
from privsvm_bench.reproduction.experiment import Experiment, Figure, Outcome, Report, Result, Results, Table
from reproduce.ppsvm.report.shared import (
    KERNEL_NAMES,
    TOLERANCE,
    fold_rates,
    spread_text,
)

KERNEL_COLOURS = {"full": "#7a3fa8", "reduced": "#2a7d4f"}

# The search ranges of two kernels are far apart where the chosen mu differ by this factor.
_FAR_GAMMA = 5.0


def kernel_errors(result: Mapping[str, Any], name: str) -> list[float]:
    """Error of each partition with the "random", "reduced" or "full" kernel."""
    return [
        statistics.fmean(fold_rates(partition[name]["errors"], partition["folds"]))
        for partition in result["partitions"]
    ]


def kernels_report(experiment: Experiment, results: Results) -> Report:
    """Errors with the random kernel against those with the reduced and the full one."""
    rows, claims, figures = [], [], []
    for kernel, number in (("linear", 5), ("gaussian", 6)):
        points: dict[str, Mapping[str, float]] = {}
        for name, job in experiment.jobs(experiment.settings).items():
            if job["kernel"] != kernel:
                continue
            rows += _error_rows(job, results[name])
            claims += _comparable_rows(job, results[name])
            result = results[name].numbers
            if result is not None:
                points[job["dataset"]] = _means(result)
        if points:
            figures.append(_kernel_figure(kernel, number, points))
    return Report(
        tables=[
            Table(
                name="comparable",
                title="Is the random kernel as good as the others?",
                caption=f"The paper calls the errors comparable. Agrees where means differ by at most {TOLERANCE}.",
                rows=claims,
            ),
            Table(
                name="errors",
                title="All errors",
                caption="Ten-fold errors; the same folds for the three kernels. The paper shows them as points only.",
                rows=rows,
            ),
        ],
        figures=figures,
        notes=[
            "full: kernel with all training rows. reduced: with a tenth of all rows, drawn at random, as in the paper "
            "(features of test rows among them). random: with as many normal random rows.",
            "Linear: nu is chosen in every fold. Gaussian: nu and mu are chosen on the training rows of the first "
            "fold, and used in all ten. Full Gaussian kernels of more than "
            f"{experiment.settings['most_tuned_rows']} rows (German, Pima) use those of the reduced kernel.",
        ],
    )


def _means(result: Result) -> dict[str, float]:
    return {method: statistics.fmean(kernel_errors(result, method)) for method in ("random", "reduced", "full")}


def _error_rows(job: Mapping[str, Any], outcome: Outcome) -> list[Row]:
    result, missing = outcome
    rows = []
    for method in ("random", "reduced", "full"):
        labels = {"table": "errors", "dataset": job["dataset"], "method": f"{method} kernel", "setting": job["kernel"],
                 "metric": "error"}  # fmt: skip
        values = [] if result is None else kernel_errors(result, method)
        row = compare(labels, None, statistics.fmean(values) if values else None, within(0.0), missing=missing)
        if values:
            row = explained(row, spread_text(values) if len(values) > 1 else "one partition")
        rows.append(row)
    return rows


def _comparable_rows(job: Mapping[str, Any], outcome: Outcome) -> list[Row]:
    result, missing = outcome
    rows = []
    for other in ("full", "reduced"):
        labels = {"table": "comparable", "dataset": job["dataset"], "method": f"random and {other} kernel",
                 "setting": job["kernel"], "metric": "difference of errors"}  # fmt: skip
        means = None if result is None else _means(result)
        ours = None if means is None else means["random"] - means[other]
        close = ours is not None and abs(ours) <= TOLERANCE
        why = functools.partial(_why_kernel, ours or 0.0, other, job, result)
        rows.append(claim(labels, "comparable", ours, close, why, missing))
    return rows


def _why_kernel(ours: float, other: str, job: Mapping[str, Any], result: Result | None) -> str:
    what = "worse" if ours > 0 else "better"
    if job["dataset"] == "Arrhythmia":
        return f"the random kernel is {what}: 45 random rows do not span 279 features"
    reason = f"the random kernel is {what} on our {job['partitions']} partitions"
    if job["kernel"] == "linear" or result is None:
        return reason
    means = {
        method: statistics.geometric_mean(partition[method]["gamma"][0] for partition in result["partitions"])
        for method in ("random", other)
    }
    if means[other] < _FAR_GAMMA * means["random"]:
        return reason
    return (
        f"{reason}: with it mu is {means['random']:.2g}, with the {other} one {means[other]:.2g}. The range of mu is "
        "set by the closest pair of rows; rows of the data lie closer together than rows and random ones do, and the "
        "range then leaves out the small mu that would be best"
    )


def _kernel_figure(kernel: str, number: int, points: Mapping[str, Mapping[str, float]]) -> Figure:
    data = [
        scatter("markers", f"{other} kernel", [values[other] for values in points.values()],
                [members["random"] for members in points.values()], text=list(points),
                marker={"color": KERNEL_COLOURS[other], "size": 9, "symbol": symbol})
        for other, symbol in (("full", "circle"), ("reduced", "square"))
    ]  # fmt: skip
    high = 1.05 * max(max(kernel_points.values()) for kernel_points in points.values())
    return Figure(
        title=f"Figure {number}: random kernel against full and reduced ones, {KERNEL_NAMES[kernel]}",
        caption="A point is a dataset. Below the diagonal the random kernel is better.",
        data=[diagonal([0.0, high], color="#9aa1ab", dash="dot"), *data],
        layout={"xaxis": axis("error, other kernel", range=[0, high]), "height": 420,
                "yaxis": axis("error, random kernel", range=[0, high])},
    )  # fmt: skip
