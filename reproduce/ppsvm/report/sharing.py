"""Figures 1 and 2: the results of both tables as points."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from privsvm_bench.reproduction.comparison import Published, Row, compare, within
from privsvm_bench.reproduction.drawing import axis, diagonal, scatter
from privsvm_bench.reproduction.experiment import Experiment, Figure, Outcome, Report, Results, Table
from reproduce.ppsvm.report.shared import (
    COLOURS,
    KERNEL_NAMES,
    TOLERANCE,
    alone_mean,
    main_jobs,
    mean_error,
    printed_error,
)


def sharing_report(experiment: Experiment, results: Results) -> Report:
    """Figures 1 and 2, from the results of the tables."""
    published = experiment.published()
    gaussian = experiment.borrows
    assert gaussian is not None
    assert gaussian.borrows is not None
    tables, figures = [], []
    for number, kernel, source in ((1, "linear", gaussian.borrows), (2, "gaussian", gaussian)):
        jobs = main_jobs(source)
        tables.append(
            Table(
                name=f"Figure {number}",
                title=f"Figure {number}: {KERNEL_NAMES[kernel]} kernel",
                caption=f"The coordinates of the points: the mean errors of Table {number}. Agrees within {TOLERANCE}.",
                rows=[row for name, job in jobs.items() for row in _rows(published, number, job, results[name])],
            )
        )
        figures += _figure(published, number, jobs, results)
    return Report(
        tables=tables,
        figures=figures,
        notes=[
            "The published no sharing errors are of a single fold (see ppsvm_table1): points that lie far from ours "
            "do so along the horizontal axis."
        ],
    )


def _rows(published: Published, number: int, job: Mapping[str, Any], outcome: Outcome) -> list[Row]:
    result, missing = outcome
    labels = {"table": f"Figure {number}", "dataset": job["dataset"], "setting": f"{job['entities']} entities",
             "metric": "error"}  # fmt: skip
    return [
        compare({**labels, "method": method}, printed_error(published, job, method),
                None if result is None else mean(result, job), within(TOLERANCE), why, missing)
        for method, mean, why in (
            ("no sharing", alone_mean, "the published number is of a single fold"),
            ("PPSVM", mean_error, f"see ppsvm_table{number}"),
        )
    ]  # fmt: skip


def _figure(published: Published, number: int, jobs: Mapping[str, Mapping[str, Any]], results: Results) -> list[Figure]:
    """Draw errors with sharing against those without: ours, and the paper's where both are printed."""
    ours, printed = {}, {}
    for name, job in jobs.items():
        label, result = f"{job['dataset']}, {job['entities']}", results[name].numbers
        alone, shared = (printed_error(published, job, method) for method in ("no sharing", "PPSVM"))
        if alone and shared:
            printed[label] = float(alone), float(shared)
        if result is not None:
            ours[label] = alone_mean(result, job), mean_error(result, job)
    if not ours:
        return []
    series = (("ours", ours, COLOURS["PPSVM"], "circle"), ("published", printed, COLOURS["no sharing"], "diamond-open"))
    data = [
        scatter("markers", name, [alone for alone, _ in points.values()], [shared for _, shared in points.values()],
                text=list(points), marker={"color": colour, "size": 9, "symbol": symbol, "line": {"width": 1.5}})
        for name, points, colour, symbol in series
        if points
    ]  # fmt: skip
    high = 1.05 * max(max(pair) for points in (ours, printed) for pair in points.values())
    kernel = KERNEL_NAMES["linear" if number == 1 else "gaussian"]
    figure = Figure(
        title=f"Figure {number}: error with and without sharing, {kernel} kernel",
        caption="A point is a dataset and a number of entities. Below the diagonal sharing is better.",
        data=[diagonal([0.0, high], color="#9aa1ab", dash="dot"), *data],
        layout={"xaxis": axis("error without sharing", range=[0, high]), "height": 420,
                "yaxis": axis("error of PPSVM", range=[0, high])},
    )  # fmt: skip
    return [figure]
