"""Figures 2, 4 and 5: what privacy costs, from the results of Table 2."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from privsvm_bench.reproduction.comparison import Row, claim, compare, within
from privsvm_bench.reproduction.drawing import axis, scatter
from privsvm_bench.reproduction.experiment import Experiment, Figure, Outcome, Report, Results, Settings, Table
from reproduce.pmsvm.experiments import (
    GRADIENT_METHODS,
    gap_jobs,
)
from reproduce.pmsvm.report.shared import (
    COLOURS,
    WEIGHT_METHODS,
)


def _private_means(settings: Settings, results: Results, dataset: str, method: str) -> list[float] | None:
    """Mean accuracy of Table 2 at each epsilon."""
    job = f"{dataset}.OPERA-PrivateSVM" if method in ("OPERA", "PrivateSVM") else f"{dataset}.{method}"
    result = results[job].numbers if job in results else None
    if result is None:
        return None
    name = {
        "PMSVM-WP": "as published",
        "OPERA": "OPERA, sensitivity 4 C",
        "PrivateSVM": "PrivateSVM, sensitivity 4 C",
    }.get(method, f"{method}, as released")
    outcome = result["variants"][name]
    if method in WEIGHT_METHODS:
        return [statistics.fmean(values) for values in outcome["as released"]]
    return [statistics.fmean(variant_result["accuracy"]) for variant_result in outcome]


def gap_report(experiment: Experiment, results: Results) -> Report:
    """Gaps by dataset, and their means over the datasets."""
    settings = experiment.settings
    rows: list[Row] = []
    gaps: dict[str, dict[str, list[float]]] = {}
    for job, parameters in gap_jobs(settings).items():
        for method in (*WEIGHT_METHODS, *GRADIENT_METHODS):
            dataset = parameters["dataset"]
            private = _private_means(settings, results, dataset, method)
            gap_rows = _gap_rows(settings, dataset, method, results[job], private)
            rows += gap_rows
            result = [row.ours for row in gap_rows if row.metric == "gap" and row.ours is not None]
            if result:
                gaps.setdefault(method, {})[dataset] = result
    statements = _gap_statements(settings, gaps)
    return Report(
        tables=[
            Table(
                name="statements",
                title="What the paper says of its Figure 2",
                caption="Means over the datasets that can be had. The paper says that the gap is under 0.15 for large "
                "epsilon, and that at small epsilon its methods have the smaller one.",
                rows=statements,
            ),
            Table(
                name="gaps",
                title="All gaps",
                caption="Accuracy without noise minus mean accuracy with noise, both as released. The paper prints no "
                "number.",
                rows=rows,
            ),
        ],
        figures=_gap_figures(settings, gaps),
        notes=[
            "A small gap can also mean that a method is poor without noise: OPERA and PrivateSVM on Vehicle, for one.",
        ],
    )


def _gap_rows(
    settings: Settings, dataset: str, method: str, outcome: Outcome, private: Sequence[float] | None
) -> list[Row]:
    """Accuracy without noise, and the gap at each epsilon."""
    result, missing = outcome
    plain = None if result is None else statistics.fmean(result["accuracies"][method])
    labels = {"table": "gaps", "dataset": dataset, "method": method}
    infinite = {**labels, "setting": "epsilon=infinity", "metric": "accuracy"}
    rows = [compare(infinite, None, plain, within(0.0), missing=missing)]
    for index, epsilon in enumerate(settings["epsilons"]):
        gap = None if plain is None or private is None else plain - private[index]
        at_epsilon = {**labels, "setting": f"epsilon={epsilon:g}", "metric": "gap"}
        rows.append(compare(at_epsilon, None, gap, within(0.0), missing=missing))
    return rows


def _gap_statements(settings: Settings, gaps: Mapping[str, Mapping[str, list[float]]]) -> list[Row]:
    means = {
        method: [statistics.fmean(values) for values in zip(*gap.values(), strict=True)] for method, gap in gaps.items()
    }
    low, high = settings["epsilons"][0], settings["epsilons"][-1]
    rows = []
    for method in (*WEIGHT_METHODS, *GRADIENT_METHODS):
        gap_means = means.get(method)
        worst = ""
        if gap_means:
            name = max(gaps[method], key=lambda dataset: gaps[method][dataset][-1])
            worst = f"largest on {name}: {gaps[method][name][-1]:.3f}"
        labels = {"table": "statements", "dataset": "mean", "method": method, "setting": f"epsilon={high:g}",
                 "metric": "gap"}  # fmt: skip
        largest = gap_means[-1] if gap_means else None
        rows.append(claim(labels, "under 0.15", largest, largest is not None and largest < 0.15, worst or "not run"))
    for method, other in (
        ("PMSVM-WP", "PrivateSVM"), ("PMSVM-WP", "OPERA"), ("PMSVM-GP", "GRPUA"), ("PMSVM-AGP", "GRPUA")
    ):  # fmt: skip
        ours, theirs = means.get(method), means.get(other)
        difference = ours[0] - theirs[0] if ours and theirs else None
        labels = {"table": "statements", "dataset": "mean", "method": method, "setting": f"epsilon={low:g}",
                 "metric": f"gap minus that of {other}"}  # fmt: skip
        smaller = difference is not None and difference < 0.0
        rows.append(claim(labels, "smaller", difference, smaller, "it is not smaller"))
    return rows


def _gap_figures(settings: Settings, gaps: Mapping[str, Mapping[str, list[float]]]) -> list[Figure]:
    figures = []
    for title, methods in (("Weight perturbation", WEIGHT_METHODS), ("Gradient perturbation", GRADIENT_METHODS)):
        names = list(dict.fromkeys(name for method in methods for name in gaps.get(method, {})))
        for dataset in (None, *names):
            data = _gap_traces(settings, {method: gaps.get(method, {}) for method in methods}, dataset)
            if data:
                figures.append(
                    Figure(
                        title=f"{title}: accuracy gap, {dataset or 'mean over the datasets'}",
                        caption="Accuracy without noise minus accuracy with noise.",
                        data=data,
                        layout={"xaxis": axis("epsilon as stated", type="log", tickvals=settings["epsilons"]),
                                "yaxis": axis("gap"), "height": 340},
                    )
                )  # fmt: skip
    return figures


def _gap_traces(
    settings: Settings, gaps: Mapping[str, Mapping[str, list[float]]], dataset: str | None
) -> list[dict[str, Any]]:
    """Lines of all methods on one dataset; None: of their means over all."""
    data = []
    for method, dataset_gaps in gaps.items():
        values = [gap for name, gap in dataset_gaps.items() if dataset in (None, name)]
        if values:
            means = [statistics.fmean(column) for column in zip(*values, strict=True)]
            line = {"color": COLOURS[method]}
            data.append(scatter("lines+markers", method, settings["epsilons"], means, line=line))
    return data
