"""The report of dpwss-2021: Table 3 and Figures 1 to 21."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from privsvm.reproduction.comparison import (
    Row,
    Rule,
    claim,
    compare,
    read_published,
    within,
    within_either,
    within_share,
)
from privsvm.reproduction.experiment import Experiment, Figure, Report, Results, Settings, Table, missing_result
from reproduce.dpwss.experiments import TABLE3, setting_name, table3_jobs

PUBLISHED = Path(__file__).with_name("published.csv")

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


def _published_f1(published: Mapping[tuple[str, str, str, str], str], key: tuple[str, str, str]) -> float | None:
    """F1 that the printed precision and recall give."""
    values = [published.get((*key, metric)) for metric in ("precision", "recall")]
    if None in values:
        return None
    precision, recall = (float(value) for value in values if value is not None)
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def _why(
    published: Mapping[tuple[str, str, str, str], str],
    key: tuple[str, str, str],
    metric: str,
    runs: Mapping[str, list[float]],
) -> str:
    """Say what is known of a difference; the conditions are checked on the numbers."""
    dataset, method, setting = key
    printed = float(published[(*key, metric)])
    if metric == "f1" and abs((_published_f1(published, key) or printed) - printed) > 0.002:
        return f"the printed precision and recall give an F1 of {_published_f1(published, key):.4f}, not {printed:g}"
    if method == "WSS2":
        if metric == "AUC" and max(runs["tied"]) > 0.001:
            return f"{100 * runs['tied'][0]:.1f} % of the pairs of rows are tied, and numbered by the order of the rows"
        with_shrinking = published.get((dataset, method, "shrinking=1", metric))
        if setting == "shrinking=0" and with_shrinking == published[(*key, metric)]:
            return (
                "the paper prints the same number with and without shrinking, where the two solutions differ a little"
            )
        return "LIBSVM's program is not repeated to the last step here"
    values = runs[metric]
    low, high = min(values), max(values)
    spread = f"our {len(values)} runs range from {low:.4g} to {high:.4g}"
    best, early = _best_run(runs)
    if metric in ("objective", "iterations") and early and DPWSS_RULES[metric].agrees(printed, values[best]):
        return f"{_ended_early(early, len(values))}; {spread}; the best of them, {values[best]:.4g}, agrees"
    if low <= printed <= high:
        return f"random draws: {spread}, and the printed value lies among them"
    others = [
        float(published[other])
        for other in published
        if other[0] == dataset and other[1] == "DPWSS" and other[2].split(";")[1:] == setting.split(";")[1:]
        and other[3] == metric
    ]  # fmt: skip
    if len(others) == 2 and max(others) - min(others) > 0.15 * max(abs(item) for item in others):
        return (
            f"the paper's own two values, with and without shrinking, are {min(others):g} and {max(others):g}; {spread}"
        )
    if metric in ("objective", "iterations"):
        stopped = sum(1 for flag in runs["converged"] if not flag)
        return (
            f"a run ends when no unused pair is left ({stopped} of ours did), which hangs on the draws and on details "
            f"of the paper's program that it does not print; {spread}"
        )
    return f"not explained: {spread}; the paper prints neither its seeds nor its program"


def _best_run(runs: Mapping[str, list[float]]) -> tuple[int, int]:
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
    published = read_published(PUBLISHED)
    wss2, dpwss = [], []
    grid = []
    for job, parameters in table3_jobs(experiment.settings).items():
        result = results[job]
        missing = missing_result(result)
        for setting, column in parameters["columns"].items():
            method = "DPWSS" if column else "WSS2"
            key = (parameters["dataset"], method, setting)
            runs = {} if missing or result is None else result[setting]
            for metric in METRICS:
                place = dict(zip(("dataset", "method", "setting", "metric"), (*key, metric), strict=True))
                row = compare(
                    {"table": method, **place},
                    published.get((*key, metric)),
                    None if missing else statistics.fmean(runs[metric]),
                    (DPWSS_RULES if column else WSS2_RULES)[metric],
                    lambda key=key, metric=metric, runs=runs: _why(published, key, metric, runs),
                    missing,
                )
                (dpwss if column else wss2).append(row)
            if column and not missing and (*key, "accuracy") in published:
                grid.append((float(published[(*key, "accuracy")]), _n_rows(parameters["dataset"])))
    notes = [
        "Rows of label +1 come first, as LIBSVM trains. The AUC follows equation 29 to the letter: tied rows are "
        "numbered by their place in the file.",
        "breast: the printed numbers are those of the benign class, so it counts as positive here.",
    ]
    whole = [abs(accuracy * n - round(accuracy * n)) <= 0.00005 * n + 1e-9 for accuracy, n in grid if n and n < 1000]
    if whole:
        notes.append(
            f"{sum(whole)} of {len(whole)} printed DPWSS accuracies on sets below 1000 rows are whole numbers of rows: "
            "those of one run, although the paper calls them means of five, which seldom are."
        )
    return Report(tables=[_table3_wss2(wss2), _table3_dpwss(dpwss)], figures=_table3_figures(dpwss), notes=notes)


def _n_rows(dataset: str) -> int | None:
    """Rows of the small sets (the paper's Table 2)."""
    sizes = {"australian": 690, "breast": 683, "diabetes": 768, "fourclass": 862, "heart": 270, "ionosphere": 351}
    return {**sizes, "sonar": 208}.get(dataset)


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
    figures = []
    for metric, kind in (("AUC", "linear"), ("accuracy", "linear"), ("objective", "log"), ("iterations", "log")):
        data = []
        for name in dict.fromkeys(row.dataset for row in rows):
            own = [row for row in rows if row.dataset == name and row.metric == metric]
            points = [row for row in own if row.published and row.ours is not None]
            if points:
                sign = -1.0 if metric == "objective" else 1.0
                data.append(
                    {
                        "type": "scatter", "mode": "markers", "name": name,
                        "x": [sign * float(row.published) for row in points],
                        "y": [sign * float(row.ours or 0.0) for row in points],
                        "text": [row.setting for row in points],
                        "marker": {"size": 7, "symbol": "circle" if len(data) < 10 else "diamond"},
                    }
                )  # fmt: skip
        everything = [value for trace in data for value in (*trace["x"], *trace["y"])]
        if not everything:
            continue
        ends = [min(everything), max(everything)]
        data.append({"type": "scatter", "mode": "lines", "x": ends, "y": ends, "line": {"color": "#9aa0a8", "width": 1},
                     "hoverinfo": "skip", "showlegend": False})  # fmt: skip
        what = "minus the objective" if metric == "objective" else metric
        figures.append(
            Figure(
                title=f"DPWSS, {what}: ours against published",
                caption="One point for each setting; on the line they are equal.",
                data=data,
                layout={"xaxis": {"title": {"text": "published"}, "type": kind},
                        "yaxis": {"title": {"text": "ours"}, "type": kind}, "height": 420,
                        "showlegend": metric == "AUC"},
            )
        )  # fmt: skip
    return figures


def _ratio(published: Mapping[tuple[str, str, str, str], str], key: tuple[str, str], shrinking: int, metric: str):
    """Find the printed values of a DPWSS setting and of WSS2; None where one is not printed."""
    dataset, setting = key
    ours = published.get((dataset, "DPWSS", setting, metric))
    base = published.get((dataset, "WSS2", f"shrinking={shrinking}", metric))
    return None if ours is None or base is None else (float(ours), float(base))


def figures_report(experiment: Experiment, results: Results) -> Report:
    """Figures 2 to 5 (objError) and 6 to 21 (iterationRatio) from Table 3's results, and Figure 1."""
    published = read_published(PUBLISHED)
    settings, table3 = experiment.settings, experiment.borrows or TABLE3
    errors, ratios = [], []
    for job, parameters in table3_jobs(table3.settings).items():
        result, dataset, shrinking = results[job], parameters["dataset"], parameters["shrinking"]
        missing = missing_result(result)
        for column in table3.settings["columns"]:
            setting = setting_name(shrinking, column)
            place = {"dataset": dataset, "method": "DPWSS", "setting": setting}
            ours: dict[str, float | None] = {"objective": None, "iterations": None}
            base: Mapping[str, list[float]] = {}
            if result is not None and not missing:
                base = result[setting_name(shrinking, None)]
                objective = statistics.fmean(result[setting]["objective"])
                ours["objective"] = abs(objective - base["objective"][0])
                ours["iterations"] = statistics.fmean(result[setting]["iterations"]) / base["iterations"][0]
            printed = _ratio(published, (dataset, setting), shrinking, "objective")
            errors.append(
                compare(
                    {"table": "objError", **place, "metric": "objError"},
                    None if printed is None else f"{abs(printed[0] - printed[1]):.2f}",
                    ours["objective"],
                    within_either(2.0, 0.0),
                    lambda result=result, setting=setting, base=base, printed=printed: _why_figure(
                        result, setting, "objective", within_either(2.0, 0.0), printed, base
                    ),
                    missing,
                )
            )
            printed = _ratio(published, (dataset, setting), shrinking, "iterations")
            ratios.append(
                compare(
                    {"table": "iterationRatio", **place, "metric": "iterationRatio"},
                    None if printed is None else f"{printed[0] / printed[1]:.3f}",
                    ours["iterations"],
                    within_share(0.15),
                    lambda result=result, setting=setting, base=base, printed=printed: _why_figure(
                        result, setting, "iterations", within_share(0.15), printed, base
                    ),
                    missing,
                )
            )
    figure1 = results["figure1"]
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
            _figure1_table(settings, figure1),
        ],
        figures=[*_figure1(settings, figure1), *_error_figures(errors), *_ratio_figures(ratios)],
        notes=[
            "Figure 1: the paper names neither the two columns nor how far it moves the classes. Chosen: "
            f"columns {settings['figure1']['features'][0]} and {settings['figure1']['features'][1]} of heart_scale "
            f"(maximum heart rate, ST depression), moved by {settings['figure1']['shift']} for the positive class and "
            "by the opposite for the negative one.",
        ],
    )


def _why_figure(
    result: Mapping[str, Any] | None,
    setting: str,
    metric: str,
    rule: Rule,
    printed: tuple[float, float] | None,
    base: Mapping[str, list[float]],
) -> str:
    """Say what is known of a difference in objError or iterationRatio."""
    assert result is not None
    assert printed is not None
    runs, reference = result[setting], base[metric][0]

    def derived(value: float, other: float) -> float:
        return abs(value - other) if metric == "objective" else value / other

    values = [derived(value, reference) for value in runs[metric]]
    number = derived(*printed)
    spread = f"our {len(values)} runs range from {min(values):.3g} to {max(values):.3g}"
    best, early = _best_run(runs)
    if early and rule.agrees(number, values[best]):
        return f"{_ended_early(early, len(values))}; {spread}; the best of them, {values[best]:.3g}, agrees"
    if min(values) <= number <= max(values):
        return f"random draws: {spread}, and the printed value lies among them"
    return f"when a run ends hangs on the draws and on details of the paper's program that it does not print; {spread}"


def _figure1_table(settings: Settings, result: Mapping[str, Any] | None) -> Table:
    missing = missing_result(result)
    lines = [] if missing or result is None else result["lines"]
    worst = max((abs(line["accuracy"] - lines[0]["accuracy"]) for line in lines[1:]), default=None)
    place = {"dataset": "heart", "method": "DPWSS", "metric": "largest change of accuracy"}
    distinct = len({(tuple(line["weights"]), line["offset"]) for line in lines[1:]}) if lines else None
    rows = [
        claim(
            {"table": "Figure 1", "setting": "two columns, classes moved apart", **place},
            "similar accuracy",
            worst,
            worst is not None and worst <= 0.03,
            "the line moved by more than the 3 % that the paper names",
            missing,
        ),
        claim(
            {"table": "Figure 1", "setting": "two columns, classes moved apart", **place, "metric": "different lines"},
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


def _figure1(settings: Settings, result: Mapping[str, Any] | None) -> list[Figure]:
    if result is None or missing_result(result):
        return []
    points, signs = result["points"], result["signs"]
    low, high = min(point[0] for point in points), max(point[0] for point in points)
    y_low, y_high = min(point[1] for point in points), max(point[1] for point in points)
    data: list[dict[str, Any]] = []
    for sign, name, colour in ((1.0, "positive", "#0a53c4"), (-1.0, "negative", "#c4620a")):
        chosen = [point for point, own in zip(points, signs, strict=True) if own == sign]
        data.append({"type": "scatter", "mode": "markers", "name": name, "x": [p[0] for p in chosen],
                     "y": [p[1] for p in chosen], "marker": {"size": 5, "color": colour}})  # fmt: skip
    support = [points[index] for index in result["support"]]
    data.append({"type": "scatter", "mode": "markers", "name": "support vectors of WSS2", "x": [p[0] for p in support],
                 "y": [p[1] for p in support],
                 "marker": {"size": 11, "symbol": "circle-open", "color": "#1b1f27"}})  # fmt: skip
    for number, line in enumerate(result["lines"]):
        (w0, w1), b = line["weights"], line["offset"]
        if abs(w1) > 1e-12:
            x = [low, high]
            y = [-(w0 * value + b) / w1 for value in x]
        else:
            x, y = [-b / w0] * 2, [y_low, y_high]
        data.append({"type": "scatter", "mode": "lines", "x": x, "y": y,
                     "name": "WSS2" if number == 0 else f"DPWSS {number}",
                     "line": {"color": "#1b1f27" if number == 0 else "#a4161a", "width": 2 if number == 0 else 1.2,
                              "dash": "solid" if number == 0 else "dot"}})  # fmt: skip
    column = settings["figure1"]["column"]
    pad = 0.1 * (y_high - y_low)
    return [
        Figure(
            title="Figure 1: lines of WSS2 and of DPWSS on two columns of heart",
            caption=f"DPWSS: epsilon {column['epsilon']:g}, sigma {column['sigma']:g}. Circles: support vectors.",
            data=data,
            layout={"xaxis": {"title": {"text": f"column {settings['figure1']['features'][0]}, moved"}},
                    "yaxis": {"title": {"text": f"column {settings['figure1']['features'][1]}, moved"},
                              "range": [y_low - pad, y_high + pad]}, "height": 460, "meta": "wide"},
        )
    ]  # fmt: skip


def _number(text: str) -> float | None:
    return float(text) if text else None


def _error_figures(rows: list[Row]) -> list[Figure]:
    """Figures 2 to 5: by sigma at epsilon 1 and by epsilon at sigma 0.7, with and without shrinking."""
    figures = []
    for shrinking in (1, 0):
        for fixed, other in (("epsilon=1", "sigma"), ("sigma=0.7", "epsilon")):
            prefix = f"shrinking={shrinking};"
            chosen = [row for row in rows if row.setting.startswith(prefix) and fixed in row.setting.split(";")]
            data = []
            for index, setting in enumerate(dict.fromkeys(row.setting for row in chosen)):
                part = [row for row in chosen if row.setting == setting and (row.ours is not None or row.published)]
                name = next(item for item in setting.split(";") if item.startswith(other))
                colour = ("#0a53c4", "#c4620a", "#2a7d4f", "#7a3fa8")[index % 4]
                names = [row.dataset for row in part]
                data.append(
                    {
                        "type": "scatter",
                        "mode": "markers",
                        "name": f"{name}, ours",
                        "x": names,
                        "y": [row.ours for row in part],
                        "marker": {"color": colour, "size": 8},
                    }
                )
                data.append({"type": "scatter", "mode": "markers", "name": f"{name}, published", "x": names,
                             "y": [_number(row.published) for row in part],
                             "marker": {"color": colour, "size": 10, "symbol": "diamond-open"}})  # fmt: skip
            if data:
                figures.append(
                    Figure(
                        title=f"objError with {fixed}, {'with' if shrinking else 'without'} shrinking",
                        caption="Filled: ours. Hollow: from the published table.",
                        data=data,
                        layout={"yaxis": {"title": {"text": "objError"}, "type": "log"}, "height": 420,
                                "legend": {"orientation": "h", "y": -0.3}},
                    )
                )  # fmt: skip
    return figures


def _ratio_figures(rows: list[Row]) -> list[Figure]:
    """Figures 6 to 21: one for each dataset."""
    figures = []
    for dataset in dict.fromkeys(row.dataset for row in rows):
        data = []
        for shrinking, colour in ((1, "#0a53c4"), (0, "#c4620a")):
            part = [row for row in rows if row.dataset == dataset and row.setting.startswith(f"shrinking={shrinking};")]
            labels = [
                ", ".join(item.replace("epsilon", "ε").replace("sigma", "σ") for item in row.setting.split(";")[1:])
                for row in part
            ]
            word = "shrinking" if shrinking else "no shrinking"
            data.append(
                {
                    "type": "bar",
                    "name": f"{word}, ours",
                    "x": labels,
                    "y": [row.ours for row in part],
                    "marker": {"color": colour},
                }
            )
            data.append({"type": "scatter", "mode": "markers", "name": f"{word}, published", "x": labels,
                         "y": [_number(row.published) for row in part],
                         "marker": {"color": colour, "size": 11, "symbol": "diamond-open",
                                    "line": {"width": 2}}})  # fmt: skip
        values = [value for trace in data for value in trace["y"] if value is not None]
        if not values:
            continue
        missing = "" if any(row.ours is not None for row in rows if row.dataset == dataset) else " No data here."
        figures.append(
            Figure(
                title=f"iterationRatio on {dataset}",
                caption=f"Bars: ours. Diamonds: published. Below 1, DPWSS takes fewer iterations.{missing}",
                data=data,
                layout={"yaxis": {"title": {"text": "iterationRatio"}, "range": [0, 1.08 * max(values)]},
                        "legend": {"orientation": "h", "y": -0.45}, "margin": {"l": 56, "r": 12, "t": 12, "b": 90}},
            )
        )  # fmt: skip
    return figures
