"""Rows of dpwss-2021's Table 3 and Figures 1 to 21 beside the printed numbers; tables.csv has their captions."""

from __future__ import annotations

import functools
import math
import statistics
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from reproduce.dpwss.experiments import TABLE3, setting_name, table3_jobs
from reproduce.engine.comparison import (
    Published,
    Row,
    Rule,
    compare,
    within,
    within_either,
    within_share,
)
from reproduce.engine.experiment import Experiment, Outcome, Result, Results
from reproduce.engine.panels import Line, Panel

# Metric to its value in each run.
Runs = Mapping[str, list[float]]

METRICS = ("AUC", "accuracy", "precision", "recall", "f1", "MCC", "objective", "iterations")
RULES: dict[str, dict[str, Rule]] = {
    "WSS2": {
        **{metric: within(0.00005) for metric in METRICS[:6]},
        # Half of the last printed digit where 1e-4 of a small objective is less.
        "objective": within_share(1e-4, least=0.005),
        "iterations": within_share(0.0),
    },
    "DPWSS": {
        **{metric: within(0.01) for metric in METRICS[:2]},
        # The paper: "the maximum error between them is no more than 3 %".
        **{metric: within(0.03) for metric in METRICS[2:6]},
        "objective": within_either(2.0, 0.01),
        "iterations": within_share(0.15),
    },
}
# Rows of the sets below 1000 rows (the paper's Table 2).
SIZES = {"australian": 690, "breast": 683, "diabetes": 768, "fourclass": 862, "heart": 270, "ionosphere": 351,
         "sonar": 208}  # fmt: skip
# Dataset, method and setting.
_Key = tuple[str, str, str]


def _why(published: Published, key: _Key, metric: str, runs: Runs) -> str:
    """Say what is known of a difference; the conditions are checked on the numbers."""
    printed, (dataset, method, setting) = float(published[(*key, metric)]), key
    precision, recall = (float(published.get((*key, name), "nan")) for name in ("precision", "recall"))
    from_others = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
    if metric == "f1" and abs(from_others - printed) > 0.002:
        return f"the printed precision and recall give an F1 of {from_others:.4f}, not {printed:g}"
    if method == "DPWSS":
        return _why_random(RULES[method][metric], printed, runs[metric], runs, metric in METRICS[6:])
    if metric == "AUC" and max(runs["tied"]) > 0.001:
        return f"{100 * runs['tied'][0]:.1f} % of the pairs of rows are tied, and numbered by the order of the rows"
    if (
        setting == "shrinking=0"
        and published.get((dataset, method, "shrinking=1", metric)) == published[(*key, metric)]
    ):
        return "the paper prints the same number with and without shrinking, where the two solutions differ a little"
    return "LIBSVM's program is not repeated to the last step here"


def _why_random(rule: Rule, printed: float, values: list[float], runs: Runs, counted: bool = True) -> str:
    """Say where a printed number lies among our runs, some of which may have ended early."""
    objectives = runs["objective"]
    best = min(range(len(objectives)), key=objectives.__getitem__)
    early = sum(value > 0.95 * objectives[best] for value in objectives)
    spread = f"our {len(values)} runs range from {min(values):.4g} to {max(values):.4g}"
    if counted and early and rule.agrees(printed, values[best]):
        return (
            f"{early} of our {len(values)} runs ended early, with no unused pair left, and pull the mean; the printed "
            f"numbers look like those of single runs; {spread}; the best of them, {values[best]:.4g}, is within "
            "tolerance"
        )
    if min(values) <= printed <= max(values):
        return f"random draws: {spread}, and the printed value lies among them"
    if not counted:
        return f"not explained: {spread}; the paper prints neither its seeds nor its program"
    stopped = sum(not flag for flag in runs["converged"])
    return (
        f"a run ends when no unused pair is left ({stopped} of ours did), which hangs on the draws and on details of "
        f"the paper's program that it does not print; {spread}"
    )


def table3(experiment: Experiment, results: Results) -> Iterator[Row | str]:
    """Every number of Table 3 beside ours."""
    published = experiment.published()
    # Whether a printed accuracy on a small set is a whole number of rows.
    whole: list[bool] = []
    for job, parameters in table3_jobs(experiment.settings).items():
        result, missing = results[job]
        for setting, column in parameters["columns"].items():
            key = (parameters["dataset"], "DPWSS" if column else "WSS2", setting)
            runs: Runs | None = result[setting] if result else None
            for metric in METRICS:
                yield compare((key[1], *key, metric), published.get((*key, metric)),
                              None if runs is None else statistics.fmean(runs[metric]), RULES[key[1]][metric],
                              why=functools.partial(_why, published, key, metric, runs or {}),
                              missing=missing)  # fmt: skip
            accuracy, size = published.get((*key, "accuracy")), SIZES.get(key[0])
            if column and result and accuracy is not None and size:
                count = float(accuracy) * size
                whole.append(abs(count - round(count)) <= 0.00005 * size + 1e-9)
    if whole:
        yield (
            f"{sum(whole)} of {len(whole)} printed DPWSS accuracies on sets below 1000 rows are whole numbers of rows: "
            "those of one run, although the paper calls them means of five, which seldom are."
        )


# Numbers that the paper draws: name, metric, tolerance, how a DPWSS value and that of WSS2 give it, and digits.
_DERIVED: tuple[tuple[str, str, Rule, Callable[[float, float], float], int], ...] = (
    ("objError", "objective", within_either(2.0, 0.0), lambda ours, base: abs(ours - base), 2),
    ("iterationRatio", "iterations", within_share(0.15), lambda ours, base: ours / base, 3),
)


def figures(experiment: Experiment, results: Results) -> Iterator[Row | Panel | str]:
    """Figures 2 to 5 (objError) and 6 to 21 (iterationRatio) from Table 3's results, and Figure 1."""
    published, source = experiment.published(), experiment.borrows or TABLE3
    for name, metric, rule, derive, digits in _DERIVED:
        for job, parameters in table3_jobs(source.settings).items():
            (result, missing), dataset = results[job], parameters["dataset"]
            base = setting_name(parameters["shrinking"], None)
            for column in source.settings["columns"]:
                setting = setting_name(parameters["shrinking"], column)
                values = [float(published.get(key, "nan")) for key in
                          ((dataset, "DPWSS", setting, metric), (dataset, "WSS2", base, metric))]  # fmt: skip
                printed = derive(*values)
                place = (name, dataset, "DPWSS", setting, name)
                text = "" if math.isnan(printed) else f"{printed:.{digits}f}"
                if result is None:
                    yield compare(place, text, missing=missing)
                    continue
                reference, runs = result[base][metric][0], result[setting]
                each = [derive(value, reference) for value in runs[metric]]
                why = functools.partial(_why_random, rule, printed, each, runs)
                ours = derive(statistics.fmean(runs[metric]), reference)
                yield compare(place, text, ours, rule, why=why)
    yield from _figure1(experiment.settings["figure1"], results["figure1"])
    first, second = experiment.settings["figure1"]["features"]
    shift = experiment.settings["figure1"]["shift"]
    yield (
        f"Figure 1: the paper names neither the two columns nor how far it moves the classes. Chosen: columns {first} "
        f"and {second} of heart_scale (maximum heart rate, ST depression), moved by {shift} for the positive class and "
        "by the opposite for the negative one."
    )


def _figure1(choice: Mapping[str, Any], outcome: Outcome) -> Iterator[Row | Panel]:
    result, missing = outcome
    lines = [] if result is None else result["lines"]
    worst = max((abs(line["accuracy"] - lines[0]["accuracy"]) for line in lines[1:]), default=None)
    distinct = len({(tuple(line["weights"]), line["offset"]) for line in lines[1:]}) if lines else None
    place = ("Figure 1", "heart", "DPWSS", "two columns, classes moved apart")
    yield compare((*place, "largest change of accuracy"), "similar accuracy", worst,
                  worst is not None and worst <= 0.03, missing=missing,
                  why="the line moved by more than the 3 % that the paper names")  # fmt: skip
    yield compare((*place, "different lines"), "all different", None if distinct is None else float(distinct),
                  distinct == len(lines) - 1, why="some runs gave the same line", missing=missing)  # fmt: skip
    if result is not None:
        yield _figure1_panel(choice, result)


def _figure1_panel(choice: Mapping[str, Any], result: Result) -> Panel:
    """Draw the rows, and where each decision function is 0; the first is that of WSS2."""
    points, drawn = result["points"], []
    for sign, name in ((1.0, "positive"), (-1.0, "negative")):
        chosen = [point for point, other in zip(points, result["signs"], strict=True) if other == sign]
        drawn.append(Line(name, [x for x, _ in chosen], [(y,) for _, y in chosen], "."))
    (low, high), (bottom, top) = ((min(values), max(values)) for values in zip(*points, strict=True))
    for number, line in enumerate(result["lines"]):
        (w0, w1), b = line["weights"], line["offset"]
        ends = (
            [(x, -(w0 * x + b) / w1) for x in (low, high)] if abs(w1) > 1e-12 else [(-b / w0, bottom), (-b / w0, top)]
        )
        drawn.append(Line(f"DPWSS {number}" if number else "WSS2", [x for x, _ in ends], [(y,) for _, y in ends], "-"))
    first, second = choice["features"]
    column = choice["column"]
    title = f"Figure 1: lines of WSS2 and of DPWSS (epsilon {column['epsilon']:g}, sigma {column['sigma']:g})"
    return Panel(title=title, x=f"column {first} of heart, moved", y=f"column {second}, moved", lines=drawn)
