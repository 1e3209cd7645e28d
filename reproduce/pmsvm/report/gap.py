"""Figures 2, 4 and 5: what privacy costs, from the results of Table 2."""

from __future__ import annotations

import statistics
from collections.abc import Mapping

from privsvm.reproduction.comparison import Row, claim, compare, within
from privsvm.reproduction.experiment import Experiment, Figure, Report, Results, Settings, Table, missing_result
from reproduce.pmsvm.experiments import GRADIENT_METHODS, gap_jobs
from reproduce.pmsvm.report.shared import COLOURS, WEIGHT_METHODS


def _private_means(settings: Settings, results: Results, dataset: str, method: str) -> list[float] | None:
    """Mean accuracy of Table 2 at each epsilon."""
    job = f"{dataset}.OPERA-PrivateSVM" if method in ("OPERA", "PrivateSVM") else f"{dataset}.{method}"
    result = results.get(job)
    if result is None or missing_result(result):
        return None
    name = {
        "PMSVM-WP": "as published",
        "OPERA": "OPERA, sensitivity 4 C",
        "PrivateSVM": "PrivateSVM, sensitivity 4 C",
    }.get(method, f"{method}, as released")
    found = result["variants"][name]
    if method in WEIGHT_METHODS:
        return [statistics.fmean(values) for values in found["as released"]]
    return [statistics.fmean(own["accuracy"]) for own in found]


def gap_report(experiment: Experiment, results: Results) -> Report:
    """Gaps by dataset, and their means over the datasets."""
    settings = experiment.settings
    rows: list[Row] = []
    gaps: dict[str, dict[str, list[float]]] = {}
    for job, parameters in gap_jobs(settings).items():
        result, dataset = results[job], parameters["dataset"]
        missing = missing_result(result)
        for method in (*WEIGHT_METHODS, *GRADIENT_METHODS):
            plain = None
            if result is not None and not missing:
                plain = statistics.fmean(result["accuracies"][method])
            private = _private_means(settings, results, dataset, method)
            place = {"table": "gaps", "dataset": dataset, "method": method}
            rows.append(
                compare({**place, "setting": "epsilon=infinity", "metric": "accuracy"}, None, plain, within(0.0),
                        missing=missing)
            )  # fmt: skip
            for index, epsilon in enumerate(settings["epsilons"]):
                gap = None if plain is None or private is None else plain - private[index]
                rows.append(
                    compare({**place, "setting": f"epsilon={epsilon:g}", "metric": "gap"}, None, gap, within(0.0),
                            missing=missing)
                )  # fmt: skip
            if plain is not None and private is not None:
                gaps.setdefault(method, {})[dataset] = [plain - value for value in private]
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


def _gap_statements(settings: Settings, gaps: Mapping[str, Mapping[str, list[float]]]) -> list[Row]:
    means = {
        method: [statistics.fmean(values) for values in zip(*own.values(), strict=True)] for method, own in gaps.items()
    }
    low, high = settings["epsilons"][0], settings["epsilons"][-1]
    rows = []
    for method in (*WEIGHT_METHODS, *GRADIENT_METHODS):
        own = means.get(method)
        place = {"table": "statements", "dataset": "mean", "method": method}
        worst = ""
        if own:
            name = max(gaps[method], key=lambda dataset: gaps[method][dataset][-1])
            worst = f"largest on {name}: {gaps[method][name][-1]:.3f}"
        rows.append(
            claim({**place, "setting": f"epsilon={high:g}", "metric": "gap"}, "under 0.15", own[-1] if own else None,
                  bool(own) and own[-1] < 0.15, worst or "not run")
        )  # fmt: skip
    for method, others in (("PMSVM-WP", ("PrivateSVM", "OPERA")), ("PMSVM-GP", ("GRPUA",)), ("PMSVM-AGP", ("GRPUA",))):
        for other in others:
            pair = means.get(method), means.get(other)
            difference = pair[0][0] - pair[1][0] if pair[0] and pair[1] else None
            place = {"table": "statements", "dataset": "mean", "method": method, "setting": f"epsilon={low:g}"}
            rows.append(
                claim({**place, "metric": f"gap minus that of {other}"}, "smaller", difference,
                      difference is not None and difference < 0.0, "it is not smaller")
            )  # fmt: skip
    return rows


def _gap_figures(settings: Settings, gaps: Mapping[str, Mapping[str, list[float]]]) -> list[Figure]:
    figures = []
    for title, methods in (("Weight perturbation", WEIGHT_METHODS), ("Gradient perturbation", GRADIENT_METHODS)):
        names = list(dict.fromkeys(name for method in methods for name in gaps.get(method, {})))
        for dataset in (None, *names):
            data = []
            for method in methods:
                own = gaps.get(method, {})
                values = list(own.values()) if dataset is None else [own[dataset]] if dataset in own else []
                if values:
                    data.append(
                        {"type": "scatter", "mode": "lines+markers", "name": method, "x": settings["epsilons"],
                         "y": [statistics.fmean(column) for column in zip(*values, strict=True)],
                         "line": {"color": COLOURS[method]}}
                    )  # fmt: skip
            if data:
                figures.append(
                    Figure(
                        title=f"{title}: accuracy gap, {dataset or 'mean over the datasets'}",
                        caption="Accuracy without noise minus accuracy with noise.",
                        data=data,
                        layout={"xaxis": {"title": {"text": "epsilon as stated"}, "type": "log",
                                          "tickvals": settings["epsilons"]},
                                "yaxis": {"title": {"text": "gap"}}, "height": 340},
                    )
                )  # fmt: skip
    return figures
