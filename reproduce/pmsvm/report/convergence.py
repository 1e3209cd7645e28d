"""Figures 3 and 6: loss and accuracy against steps."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from typing import Any

from privsvm_bench.reproduction.comparison import Row, claim
from privsvm_bench.reproduction.drawing import axis, scatter
from privsvm_bench.reproduction.experiment import Experiment, Figure, Outcome, Report, Results, Table
from reproduce.pmsvm.experiments import (
    convergence_jobs,
)


def convergence_report(experiment: Experiment, results: Results) -> Report:
    """Curves, and what the paper says of them."""
    rows: list[Row] = []
    figures: list[Figure] = []
    for job, parameters in convergence_jobs(experiment.settings).items():
        rows += _statements(parameters, results[job])
        result = results[job].numbers
        if result is not None:
            figures += _figures(parameters, result["variants"])
    return Report(
        tables=[
            Table(
                name="statements",
                title="What the paper says of its curves",
                caption="The paper draws its curves and prints no number. It says that the loss diverges at epsilon 1 "
                "(here: ends more than 5 % above its smallest value), that it is minimised for large epsilon (ends "
                "below that of the first epoch), and that Adam is faster at first (test accuracy after one epoch, mean "
                "over epsilons).",
                rows=rows,
            )
        ],
        figures=figures,
        notes=["The loss is the cross-entropy over the number of classes, on the training rows, without regulariser."],
    )


def _statements(parameters: Mapping[str, Any], outcome: Outcome) -> list[Row]:
    """Check three statements on the curves of one dataset: the smallest epsilon, the largest, the first epoch."""
    result, missing = outcome
    curves = None if result is None else result["variants"]
    low, high = parameters["epsilons"][0], parameters["epsilons"][-1]
    rows = []
    for method in parameters["variants"]:
        labels = {"table": "statements", "dataset": parameters["dataset"], "method": method}
        rise = fall = None
        if curves is not None:
            noisy, clear = curves[method][0]["loss"], curves[method][-1]["loss"]
            rise, fall = noisy[-1] / min(noisy) - 1.0, clear[-1] / clear[0] - 1.0
        rows += [
            claim({**labels, "setting": f"epsilon={low:g}", "metric": "last loss over the smallest, minus 1"},
                  "the loss diverges", rise, rise is not None and rise > 0.05,
                  "the loss ends within 5 % of its smallest value", missing),
            claim({**labels, "setting": f"epsilon={high:g}", "metric": "last loss over the first, minus 1"},
                  "the loss is minimised", fall, fall is not None and fall < 0.0,
                  "the loss ends above that of the first epoch", missing),
        ]  # fmt: skip
    early = None
    if curves is not None:
        early = statistics.fmean(
            adaptive["accuracy"][0] - plain["accuracy"][0]
            for plain, adaptive in zip(curves["PMSVM-GP"], curves["PMSVM-AGP"], strict=True)
        )
    labels = {"table": "statements", "dataset": parameters["dataset"], "method": "PMSVM-AGP", "setting": "first epoch"}
    rows.append(
        claim({**labels, "metric": "test accuracy minus that of PMSVM-GP"}, "faster in the early stages", early,
              early is not None and early > 0.0, "the first epoch of PMSVM-GP is at least as good", missing)
    )  # fmt: skip
    return rows


def _figures(parameters: Mapping[str, Any], curves: Mapping[str, Any]) -> list[Figure]:
    figures = []
    for metrics, title in ((("loss",), "loss"), (("accuracy", "training accuracy"), "accuracy")):
        data = [
            _trace(method, number, epsilon, curve, metric)
            for method in ("PMSVM-GP", "PMSVM-AGP")
            for number, (epsilon, curve) in enumerate(zip(parameters["epsilons"], curves[method], strict=True))
            for metric in metrics
        ]
        figures.append(
            Figure(
                title=f"{parameters['dataset']}: {title} against steps",
                caption=f"Means of {parameters['runs']} runs, after each epoch."
                + (" Pale: on the training rows." if title == "accuracy" else ""),
                data=data,
                layout={"xaxis": axis("step"), "yaxis": axis(title), "height": 400,
                        "legend": {"orientation": "h", "y": -0.3}},
            )
        )  # fmt: skip
    return figures


def _trace(method: str, number: int, epsilon: float, curve: Mapping[str, Any], metric: str) -> dict[str, Any]:
    training = metric == "training accuracy"
    style = {
        "dash": "dot" if method == "PMSVM-GP" else "solid",
        "color": ("#a4161a", "#c4620a", "#2a7d4f", "#0a53c4")[number % 4],
        "width": 1.8,
    }
    return scatter("lines", f"{method}, epsilon {epsilon:g}" + (", training rows" if training else ""),
                   curve["steps"], curve[metric], opacity=0.35 if training else 1.0, showlegend=not training,
                   line=style)  # fmt: skip
