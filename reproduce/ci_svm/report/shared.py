"""What both reports of ci-svm-2018 share: names, places of rows, and drawing."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from privsvm_bench.reproduction.comparison import Missing
from privsvm_bench.reproduction.drawing import scatter
from privsvm_bench.reproduction.experiment import Figure, Result, Results, Settings
from reproduce.ci_svm.experiments import (
    BY_CLASS,
    BY_DISTANCE,
    CI,
    FCM,
    HELD_OUT,
    LIBSVM,
    METHODS,
    RSVM,
    THIRD,
    job_name,
    kinds_of,
)

# The size ratio is a third, but for the last group.
RATIO_TOLERANCE = 0.01
COLOURS = {
    LIBSVM: "#1b1f27", CI: "#0a53c4", FCM: "#c4620a", RSVM: "#2a7d4f",
    HELD_OUT: "#7a3fa8", BY_CLASS: "#2a7d4f", BY_DISTANCE: "#c4620a", THIRD: "#9aa1ab",
}  # fmt: skip
SYMBOLS = {LIBSVM: "diamond", CI: "circle", FCM: "square", RSVM: "triangle-up",
           HELD_OUT: "diamond", BY_CLASS: "triangle-up", BY_DISTANCE: "square", THIRD: "x"}  # fmt: skip

FIGURE_NUMBERS = {"two-class": 3, "multi-class": 4}
NAMED = "two-class, the kinds named"


def average_of(pairs: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Average differences; with the standard error."""
    return statistics.fmean(mean for mean, _ in pairs), math.hypot(*(error for _, error in pairs)) / len(pairs)


def in_points(value: float) -> str:
    """Write a difference of accuracies in points."""
    return f"{100 * value:+.1f}"


class ResultsByKind:
    """Results of all datasets, by kind of dataset."""

    def __init__(self, settings: Settings, results: Results):
        self.settings = settings
        # Why a dataset has no numbers.
        self.missing: dict[str, Missing | None] = {}
        self.results: dict[str, dict[str, Result]] = {}
        for classes, datasets in kinds_of(settings).items():
            self.results[classes] = {}
            for dataset in datasets:
                result, self.missing[dataset] = results[job_name(dataset)]
                if result is not None:
                    self.results[classes][dataset] = result
        # Groups that means are taken over, with the datasets each should have.
        self.groups: dict[str, list[str]] = {}
        for classes, datasets in kinds_of(settings).items():
            self.groups[classes] = list(datasets)
            named = [dataset for dataset in datasets if dataset in settings.get("named_kinds", [])]
            if classes == "two-class" and named:
                self.groups[NAMED] = named
                self.results[NAMED] = {name: result for name, result in self.results[classes].items() if name in named}

    def absent(self, classes: str) -> Missing:
        """Why there is no average over datasets of this kind."""
        reasons = [self.missing[dataset] for dataset in self.groups[classes]]
        return next((reason for reason in reasons if reason), ("not run", ""))

    def methods(self, classes: str, among: Mapping[str, Any] = METHODS) -> list[str]:
        """Methods of a kind of dataset, in the order of the settings."""
        only_two = self.settings["two_class_only"]
        return [name for name in self.settings["methods"]
                if name in among and (classes != "multi-class" or name not in only_two)]  # fmt: skip

    def differences(self, classes: str, method: str, other: str) -> dict[str, tuple[float, float]]:
        """Mean difference of accuracies, and its standard error, of each dataset."""
        return {name: paired_difference(result, method, other) for name, result in self.results[classes].items()}


def row_labels(table: str, dataset: str, method: str, metric: str, setting: str = "") -> dict[str, Any]:
    """Label a row of a table."""
    return {"table": table, "dataset": dataset, "method": method, "setting": setting, "metric": metric}


def wide_figure(
    title: str,
    caption: str,
    data: list[dict[str, Any]],
    axis: Mapping[str, Any],
    levels: Mapping[str, float] | None = None,
) -> Figure:
    """Make a figure whose x axis has the datasets; with named levels of a logarithmic y axis."""
    layout = {"xaxis": {"tickangle": -40, "automargin": True}, "height": 460, "meta": "wide", "yaxis": dict(axis),
              "legend": {"orientation": "h", "y": 1.12}, "scattermode": "group", "scattergap": 0.55}  # fmt: skip
    if levels:
        layout["shapes"] = [
            {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": level, "y1": level, "layer": "below",
             "line": {"color": "#9aa1ab", "width": 1.3, "dash": "dash"}}
            for level in levels.values()
        ]  # fmt: skip
        # Room for the names.
        layout["margin"] = {"l": 56, "r": 130, "t": 12, "b": 60}
        layout["annotations"] = [
            {"xref": "paper", "x": 1.005, "xanchor": "left", "y": math.log10(level), "yanchor": "middle",
             "text": name, "showarrow": False, "font": {"color": "#525a68"}}
            for name, level in levels.items()
        ]  # fmt: skip
    return Figure(title=title, caption=caption, data=data, layout=layout)


def dots(name: str, x: Sequence[Any], y: Sequence[float], spread: Sequence[float] | None = None) -> dict[str, Any]:
    """Draw a method's values as points, with bars where there is a spread."""
    trace = scatter("markers", name, x, y, marker={"color": COLOURS[name], "size": 8, "symbol": SYMBOLS[name]})
    if spread is not None:
        trace["error_y"] = {"type": "data", "array": list(spread), "thickness": 1.1, "width": 2}
    return trace


# --- accuracies -----------------------------------------------------------------------------------------------------


def fold_accuracies(result: Result, method: str) -> list[float]:
    """Accuracy on each fold of each repeat."""
    return [
        1.0 - wrong / size
        for repeat in result["repeats"]
        for wrong, size in zip(repeat["methods"][method]["errors"], repeat["folds"], strict=True)
    ]


def repeat_accuracies(result: Result, method: str) -> list[float]:
    """Share of all rows classified right in each repeat."""
    return [1.0 - sum(repeat["methods"][method]["errors"]) / sum(repeat["folds"]) for repeat in result["repeats"]]


def paired_difference(result: Result, method: str, other: str) -> tuple[float, float]:
    """Mean accuracy of a method less that of another on the same folds, and its standard error.

    The standard error is that of repeated cross-validation by Nadeau and Bengio (2003): the folds that are trained on
    overlap, so that the variance of a difference counts ``1/J + 1/4`` times, not ``1/J`` times, for J folds of a fifth.
    """
    pairs = zip(fold_accuracies(result, method), fold_accuracies(result, other), strict=True)
    values = [accuracy - other_accuracy for accuracy, other_accuracy in pairs]
    spread = statistics.variance(values) if len(values) > 1 else 0.0
    return statistics.fmean(values), math.sqrt((1.0 / len(values) + 0.25) * spread)


def mean_of(result: Result, method: str, field: str) -> float:
    """Mean of a field over all folds of all repeats."""
    return statistics.fmean(value for repeat in result["repeats"] for value in repeat["methods"][method][field])
