"""The report of dpwss-2021: Table 3 and Figures 1 to 21."""

from __future__ import annotations

import dataclasses
import functools
import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from privsvm_bench.reproduction.comparison import (
    Published,
    Row,
    Rule,
    claim,
    compare,
    within,
    within_either,
    within_share,
)
from privsvm_bench.reproduction.drawing import axis, diagonal, scatter
from privsvm_bench.reproduction.experiment import Experiment, Figure, Outcome, Report, Result, Results, Settings, Table
from reproduce.dpwss.experiments import TABLE3, setting_name, table3_jobs

# Metric to its value in each run.
Runs = Mapping[str, list[float]]

METRICS = ("AUC", "accuracy", "precision", "recall", "f1", "MCC", "objective", "iterations")

WSS2_RULES: dict[str, Rule] = {
    # Half of the last printed digit where 1e-4 of a small objective is less.
    "objective": within_share(1e-4, least=0.005),
    "iterations": within_share(0.0),
    **{metric: within(0.00005) for metric in ("AUC", "accuracy", "precision", "recall", "f1", "MCC")},
}
DPWSS_RULES: dict[str, Rule] = {
    "objective": within_either(2.0, 0.01),
    "iterations": within_share(0.15),
    **{metric: within(0.01) for metric in ("AUC", "accuracy")},
    # The paper: "the maximum error between them is no more than 3 %".
    **{metric: within(0.03) for metric in ("precision", "recall", "f1", "MCC")},
}


def _published_f1(published: Published, key: tuple[str, str, str]) -> float | None:
    """F1 that the printed precision and recall give."""
    values = [published.get((*key, metric)) for metric in ("precision", "recall")]
    if None in values:
        return None
    precision, recall = (float(value) for value in values if value is not None)
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def _why(published: Published, key: tuple[str, str, str], metric: str, runs: Runs) -> str:
    """Say what is known of a difference; the conditions are checked on the numbers."""
    printed = float(published[(*key, metric)])
    from_others = _published_f1(published, key)
    if metric == "f1" and abs((from_others or printed) - printed) > 0.002:
        return f"the printed precision and recall give an F1 of {from_others:.4f}, not {printed:g}"
    if key[1] == "WSS2":
        return _why_wss2(published, key, metric, runs)
    return _why_dpwss(published, key, metric, runs)


def _why_wss2(published: Published, key: tuple[str, str, str], metric: str, runs: Runs) -> str:
    dataset, method, setting = key
    if metric == "AUC" and max(runs["tied"]) > 0.001:
        return f"{100 * runs['tied'][0]:.1f} % of the pairs of rows are tied, and numbered by the order of the rows"
    with_shrinking = published.get((dataset, method, "shrinking=1", metric))
    if setting == "shrinking=0" and with_shrinking == published[(*key, metric)]:
        return "the paper prints the same number with and without shrinking, where the two solutions differ a little"
    return "LIBSVM's program is not repeated to the last step here"


def _why_dpwss(published: Published, key: tuple[str, str, str], metric: str, runs: Runs) -> str:
    printed, values = float(published[(*key, metric)]), runs[metric]
    spread = f"our {len(values)} runs range from {min(values):.4g} to {max(values):.4g}"
    counted = metric in ("objective", "iterations")
    best, early = _best_run(runs)
    if counted and early and DPWSS_RULES[metric].agrees(printed, values[best]):
        return f"{_ended_early(early, len(values))}; {spread}; the best of them, {values[best]:.4g}, agrees"
    if min(values) <= printed <= max(values):
        return f"random draws: {spread}, and the printed value lies among them"
    pair = _both_shrinkings(published, key, metric)
    if len(pair) == 2 and max(pair) - min(pair) > 0.15 * max(abs(item) for item in pair):
        return f"the paper's own two values, with and without shrinking, are {min(pair):g} and {max(pair):g}; {spread}"
    if counted:
        stopped = sum(1 for flag in runs["converged"] if not flag)
        return (
            f"a run ends when no unused pair is left ({stopped} of ours did), which hangs on the draws and on details "
            f"of the paper's program that it does not print; {spread}"
        )
    return f"not explained: {spread}; the paper prints neither its seeds nor its program"


def _both_shrinkings(published: Published, key: tuple[str, str, str], metric: str) -> list[float]:
    """Find the printed values of one epsilon and sigma, with and without shrinking."""
    dataset, _, setting = key
    return [
        float(value)
        for (printed_set, method, other, name), value in published.items()
        if (printed_set, method, name) == (dataset, "DPWSS", metric) and other.split(";")[1:] == setting.split(";")[1:]
    ]


def _best_run(runs: Runs) -> tuple[int, int]:
    """Find the run with the best objective, and count those that stopped more than 5 % above it."""
    objectives = runs["objective"]
    best = min(range(len(objectives)), key=objectives.__getitem__)
    return best, sum(1 for value in objectives if value > 0.95 * objectives[best])


def _ended_early(early: int, total: int) -> str:
    return (
        f"{early} of our {total} runs ended early, with no unused pair left, and pull the mean; the printed numbers "
        "look like those of single runs"
    )


def table3_report(experiment: Experiment, results: Results) -> Report:
    """Every number of Table 3 beside ours."""
    published = experiment.published()
    rows: list[Row] = []
    # Printed accuracies on small sets, and their numbers of rows.
    grid: list[tuple[float, int]] = []
    for job, parameters in table3_jobs(experiment.settings).items():
        result, missing = results[job]
        for setting, column in parameters["columns"].items():
            key = (parameters["dataset"], "DPWSS" if column else "WSS2", setting)
            rows += _drawn(published, key, Outcome(result[setting] if result else None, missing))
            accuracy, size = published.get((*key, "accuracy")), SIZES.get(key[0])
            if column and result and accuracy is not None and size:
                grid.append((float(accuracy), size))
    wss2, dpwss = ([row for row in rows if row.table == name] for name in ("WSS2", "DPWSS"))
    notes = [
        "Rows of label +1 come first, as LIBSVM trains. The AUC follows equation 29 to the letter: tied rows are "
        "numbered by their place in the file.",
        "breast: the printed numbers are those of the benign class, so it counts as positive here.",
    ]
    on_grid = [abs(accuracy * n - round(accuracy * n)) <= 0.00005 * n + 1e-9 for accuracy, n in grid]
    if on_grid:
        notes.append(
            f"{sum(on_grid)} of {len(on_grid)} printed DPWSS accuracies on sets below 1000 rows are whole "
            "numbers of rows: those of one run, although the paper calls them means of five, which seldom are."
        )
    return Report(tables=[_table3_wss2(wss2), _table3_dpwss(dpwss)], figures=_table3_figures(dpwss), notes=notes)


def _drawn(published: Published, key: tuple[str, str, str], outcome: Outcome) -> list[Row]:
    """Eight numbers of one dataset, method and setting: means of the runs."""
    runs, missing = outcome
    rules = DPWSS_RULES if key[1] == "DPWSS" else WSS2_RULES
    return [
        compare(
            {"table": key[1], **dict(zip(("dataset", "method", "setting"), key, strict=True)), "metric": metric},
            published.get((*key, metric)),
            None if runs is None else statistics.fmean(runs[metric]),
            rules[metric],
            functools.partial(_why, published, key, metric, runs or {}),
            missing,
        )
        for metric in METRICS
    ]


# Rows of the sets below 1000 rows (the paper's Table 2).
SIZES = {"australian": 690, "breast": 683, "diabetes": 768, "fourclass": 862, "heart": 270, "ionosphere": 351,
         "sonar": 208}  # fmt: skip


def _table3_wss2(rows: list[Row]) -> Table:
    return Table(
        name="WSS2",
        title="WSS2, the paper's non-private column",
        caption="Linear kernel, C = 1, tolerance 1e-3, metrics on the training rows. A number agrees where the "
        "objective is within 1e-4 of it (or half the last printed digit), the iterations are equal, and the metrics "
        "are equal to the four printed digits.",
        rows=rows,
    )


def _table3_dpwss(rows: list[Row]) -> Table:
    return Table(
        name="DPWSS",
        title="DPWSS",
        caption="Mean of five runs. A number agrees where the objective is within 2 or 1 %, the iterations are within "
        "15 %, AUC and accuracy are within 0.01, and precision, recall, F1 and MCC are within 0.03 (the paper's own "
        "bound on the error).",
        rows=rows,
    )


def _table3_figures(rows: list[Row]) -> list[Figure]:
    """Ours against published, one chart for each kind of number."""
    kinds = (("AUC", "linear"), ("accuracy", "linear"), ("objective", "log"), ("iterations", "log"))
    figures = [_against_published([row for row in rows if row.metric == metric], metric, kind)
               for metric, kind in kinds]  # fmt: skip
    return [figure for figure in figures if figure is not None]


def _against_published(rows: list[Row], metric: str, kind: str) -> Figure | None:
    sign, what = (-1.0, "minus the objective") if metric == "objective" else (1.0, metric)
    data: list[dict[str, Any]] = []
    for name in dict.fromkeys(row.dataset for row in rows):
        points = [row for row in rows if row.dataset == name and row.published and row.ours is not None]
        if points:
            marker = {"size": 7, "symbol": "circle" if len(data) < 10 else "diamond"}
            ours = [sign * float(row.ours or 0.0) for row in points]
            printed = [sign * float(row.published) for row in points]
            data.append(scatter("markers", name, printed, ours, text=[row.setting for row in points], marker=marker))
    everything = [value for trace in data for value in (*trace["x"], *trace["y"])]
    if not everything:
        return None
    return Figure(
        title=f"DPWSS, {what}: ours against published",
        caption="One point for each setting; on the line they are equal.",
        data=[*data, diagonal([min(everything), max(everything)], color="#9aa0a8")],
        layout={"xaxis": axis("published", type=kind), "yaxis": axis("ours", type=kind), "height": 420,
                "showlegend": metric == "AUC"},
    )  # fmt: skip


@dataclasses.dataclass(frozen=True)
class _Derived:
    """A number that the paper draws, derived from a DPWSS value and that of WSS2."""

    name: str
    metric: str
    rule: Rule
    derive: Callable[[float, float], float]
    digits: int


DERIVED = (
    _Derived("objError", "objective", within_either(2.0, 0.0), lambda ours, base: abs(ours - base), 2),
    _Derived("iterationRatio", "iterations", within_share(0.15), lambda ours, base: ours / base, 3),
)


def figures_report(experiment: Experiment, results: Results) -> Report:
    """Figures 2 to 5 (objError) and 6 to 21 (iterationRatio) from Table 3's results, and Figure 1."""
    published = experiment.published()
    settings, table3 = experiment.settings, experiment.borrows or TABLE3
    errors, ratios = (
        [
            _derived_row(published, derived, parameters, setting_name(parameters["shrinking"], column), results[job])
            for job, parameters in table3_jobs(table3.settings).items()
            for column in table3.settings["columns"]
        ]
        for derived in DERIVED
    )
    choice = settings["figure1"]
    return Report(
        tables=[
            Table(
                name="objError",
                title="objError (Figures 2 to 5)",
                caption="|objective by DPWSS - objective by WSS2|, from Table 3. Agrees within 2, the bound the paper "
                "names.",
                rows=errors,
            ),
            Table(
                name="iterationRatio",
                title="iterationRatio (Figures 6 to 21)",
                caption="Iterations by DPWSS over iterations by WSS2, from Table 3. Agrees within 15 %.",
                rows=ratios,
            ),
            _figure1_table(results["figure1"]),
        ],
        figures=[*_figure1(settings, results["figure1"].numbers), *_error_figures(errors), *_ratio_figures(ratios)],
        notes=[
            "Figure 1: the paper names neither the two columns nor how far it moves the classes. Chosen: "
            f"columns {choice['features'][0]} and {choice['features'][1]} of heart_scale "
            f"(maximum heart rate, ST depression), moved by {choice['shift']} for the positive class and "
            "by the opposite for the negative one.",
        ],
    )


def _derived_row(
    published: Published, derived: _Derived, parameters: Mapping[str, Any], setting: str, outcome: Outcome
) -> Row:
    """Compare one derived number: what the printed table gives, and what our runs give."""
    result, missing = outcome
    dataset, base = parameters["dataset"], setting_name(parameters["shrinking"], None)
    labels = {"table": derived.name, "dataset": dataset, "method": "DPWSS", "setting": setting, "metric": derived.name}
    values = [published.get((dataset, "DPWSS", setting, derived.metric)),
              published.get((dataset, "WSS2", base, derived.metric))]  # fmt: skip
    number = None if None in values else derived.derive(*(float(value) for value in values if value is not None))
    printed = None if number is None else f"{number:.{derived.digits}f}"
    if result is None:
        return compare(labels, printed, None, derived.rule, missing=missing)
    reference = result[base][derived.metric][0]
    ours = derived.derive(statistics.fmean(result[setting][derived.metric]), reference)

    def why() -> str:
        assert number is not None
        each = [derived.derive(value, reference) for value in result[setting][derived.metric]]
        return _why_derived(derived.rule, number, each, *_best_run(result[setting]))

    return compare(labels, printed, ours, derived.rule, why)


def _why_derived(rule: Rule, number: float, values: Sequence[float], best: int, early: int) -> str:
    """Say what is known of a difference in objError or iterationRatio."""
    spread = f"our {len(values)} runs range from {min(values):.3g} to {max(values):.3g}"
    if early and rule.agrees(number, values[best]):
        return f"{_ended_early(early, len(values))}; {spread}; the best of them, {values[best]:.3g}, agrees"
    if min(values) <= number <= max(values):
        return f"random draws: {spread}, and the printed value lies among them"
    return f"when a run ends hangs on the draws and on details of the paper's program that it does not print; {spread}"


def _figure1_table(outcome: Outcome) -> Table:
    result, missing = outcome
    lines = [] if result is None else result["lines"]
    worst = max((abs(line["accuracy"] - lines[0]["accuracy"]) for line in lines[1:]), default=None)
    distinct = len({(tuple(line["weights"]), line["offset"]) for line in lines[1:]}) if lines else None
    labels = {"table": "Figure 1", "setting": "two columns, classes moved apart", "dataset": "heart", "method": "DPWSS"}
    rows = [
        claim(
            {**labels, "metric": "largest change of accuracy"},
            "similar accuracy",
            worst,
            worst is not None and worst <= 0.03,
            "the line moved by more than the 3 % that the paper names",
            missing,
        ),
        claim(
            {**labels, "metric": "different lines"},
            "all different",
            None if distinct is None else float(distinct),
            distinct == len(lines) - 1,
            "some runs gave the same line",
            missing,
        ),
    ]
    return Table(
        name="Figure 1",
        title="Figure 1: private and non-private lines",
        caption="Similar accuracy means within 0.03, the largest error the paper names.",
        rows=rows,
    )


def _figure1(settings: Settings, result: Result | None) -> list[Figure]:
    if result is None:
        return []
    points = result["points"]
    data = []
    for sign, name, colour in ((1.0, "positive", "#0a53c4"), (-1.0, "negative", "#c4620a")):
        chosen = [point for point, point_sign in zip(points, result["signs"], strict=True) if point_sign == sign]
        data.append(scatter("markers", name, *zip(*chosen, strict=True), marker={"size": 5, "color": colour}))
    support = [points[index] for index in result["support"]]
    data.append(scatter("markers", "support vectors of WSS2", *zip(*support, strict=True),
                        marker={"size": 11, "symbol": "circle-open", "color": "#1b1f27"}))  # fmt: skip
    data += [_separating_line(number, line, points) for number, line in enumerate(result["lines"])]
    heights = [point[1] for point in points]
    pad = 0.1 * (max(heights) - min(heights))
    first, second = settings["figure1"]["features"]
    column = settings["figure1"]["column"]
    return [
        Figure(
            title="Figure 1: lines of WSS2 and of DPWSS on two columns of heart",
            caption=f"DPWSS: epsilon {column['epsilon']:g}, sigma {column['sigma']:g}. Circles: support vectors.",
            data=data,
            layout={"xaxis": axis(f"column {first}, moved"),
                    "yaxis": axis(f"column {second}, moved", range=[min(heights) - pad, max(heights) + pad]),
                    "height": 460, "meta": "wide"},
        )
    ]  # fmt: skip


def _separating_line(number: int, line: Mapping[str, Any], points: Sequence[Sequence[float]]) -> dict[str, Any]:
    """Draw where a decision function is 0; line 0 is that of WSS2."""
    (w0, w1), b = line["weights"], line["offset"]
    if abs(w1) > 1e-12:
        x = [min(point[0] for point in points), max(point[0] for point in points)]
        y = [-(w0 * value + b) / w1 for value in x]
    else:
        x, y = [-b / w0] * 2, [min(point[1] for point in points), max(point[1] for point in points)]
    style = (
        {"color": "#1b1f27", "width": 2, "dash": "solid"}
        if number == 0
        else {"color": "#a4161a", "width": 1.2, "dash": "dot"}
    )
    return scatter("lines", "WSS2" if number == 0 else f"DPWSS {number}", x, y, line=style)


def _number(text: str) -> float | None:
    return float(text) if text else None


def _error_figures(rows: list[Row]) -> list[Figure]:
    """Figures 2 to 5: by sigma at epsilon 1 and by epsilon at sigma 0.7, with and without shrinking."""
    figures = []
    for shrinking in (1, 0):
        for fixed, other in (("epsilon=1", "sigma"), ("sigma=0.7", "epsilon")):
            prefix = f"shrinking={shrinking};"
            chosen = [row for row in rows if row.setting.startswith(prefix) and fixed in row.setting.split(";")]
            data = _error_traces(chosen, other)
            if data:
                figures.append(
                    Figure(
                        title=f"objError with {fixed}, {'with' if shrinking else 'without'} shrinking",
                        caption="Filled: ours. Hollow: from the published table.",
                        data=data,
                        layout={"yaxis": axis("objError", type="log"), "height": 420,
                                "legend": {"orientation": "h", "y": -0.3}},
                    )
                )  # fmt: skip
    return figures


def _error_traces(rows: list[Row], varied: str) -> list[dict[str, Any]]:
    """Ours and published by dataset, a pair for each value of what is varied."""
    data = []
    for index, setting in enumerate(dict.fromkeys(row.setting for row in rows)):
        shown = [row for row in rows if row.setting == setting and (row.ours is not None or row.published)]
        name = next(item for item in setting.split(";") if item.startswith(varied))
        colour = ("#0a53c4", "#c4620a", "#2a7d4f", "#7a3fa8")[index % 4]
        names = [row.dataset for row in shown]
        data += [
            scatter("markers", f"{name}, ours", names, [row.ours for row in shown],
                    marker={"color": colour, "size": 8}),
            scatter("markers", f"{name}, published", names, [_number(row.published) for row in shown],
                    marker={"color": colour, "size": 10, "symbol": "diamond-open"}),
        ]  # fmt: skip
    return data


def _ratio_figures(rows: list[Row]) -> list[Figure]:
    """Figures 6 to 21: one for each dataset."""
    figures = []
    for dataset in dict.fromkeys(row.dataset for row in rows):
        matching = [row for row in rows if row.dataset == dataset]
        data = [*_ratio_traces(matching, 1, "#0a53c4"), *_ratio_traces(matching, 0, "#c4620a")]
        values = [value for trace in data for value in trace["y"] if value is not None]
        if not values:
            continue
        missing = "" if any(row.ours is not None for row in matching) else " No data here."
        figures.append(
            Figure(
                title=f"iterationRatio on {dataset}",
                caption=f"Bars: ours. Diamonds: published. Below 1, DPWSS takes fewer iterations.{missing}",
                data=data,
                layout={"yaxis": axis("iterationRatio", range=[0, 1.08 * max(values)]),
                        "legend": {"orientation": "h", "y": -0.45}, "margin": {"l": 56, "r": 12, "t": 12, "b": 90}},
            )
        )  # fmt: skip
    return figures


def _ratio_traces(rows: list[Row], shrinking: int, colour: str) -> list[dict[str, Any]]:
    shrinking_rows = [row for row in rows if row.setting.startswith(f"shrinking={shrinking};")]
    labels = [
        ", ".join(item.replace("epsilon", "ε").replace("sigma", "σ") for item in row.setting.split(";")[1:])
        for row in shrinking_rows
    ]
    word = "shrinking" if shrinking else "no shrinking"
    return [
        {"type": "bar", "name": f"{word}, ours", "x": labels, "y": [row.ours for row in shrinking_rows],
         "marker": {"color": colour}},
        scatter("markers", f"{word}, published", labels, [_number(row.published) for row in shrinking_rows],
                marker={"color": colour, "size": 11, "symbol": "diamond-open", "line": {"width": 2}}),
    ]  # fmt: skip
