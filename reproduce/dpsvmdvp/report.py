"""The report of dpsvmdvp-2019: Figures 1 to 6."""

from __future__ import annotations

import dataclasses
import functools
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from privsvm_bench.reproduction.comparison import Missing, Published, Row, claim, compare, within
from privsvm_bench.reproduction.drawing import axis, scatter
from privsvm_bench.reproduction.experiment import Experiment, Figure, Outcome, Report, Result, Results, Settings, Table
from reproduce.dpsvmdvp.experiments import MAIN, budget_jobs, size_jobs

COLOURS = {
    "SVM": "#1b1f27", "PrivateSVM": "#7a3fa8", "signed, free": "#0a53c4", "signed, free, double": "#5aa2e8",
    "signed, all": "#2a7d4f", "abs, free": "#c4620a", "uniform, free": "#a4161a",
}  # fmt: skip

# An accuracy this near to a coin's counts as chance, this near to the SVM's as its level.
CHANCE, NEAR_CHANCE, NEAR_SVM = 0.5, 0.1, 0.02

KNEES = ("lower knee", "upper knee")

TEST_SET = (
    "cod-rna.t, the paper's test set, cannot be had here: cod-rna.r, LIBSVM's third file of the same features, stands "
    "in for it"
)


# Why an accuracy at one epsilon differs, by dataset.
_WHY_SERIES = {
    "cod-rna": "the test rows are others than the paper's, and how cod-rna was scaled is not printed",
    "splice": "at this epsilon the mean of three draws hangs on few support vectors, see the budget experiment",
}


def _option_name(option: Mapping[str, Any]) -> str:
    return f"scaling {option['scaling']}; C={option['C']:g}"


def knees(epsilons: Sequence[float], curve: Sequence[float], svm: float) -> tuple[float | None, float | None]:
    """Find where a curve leaves chance, and where it has reached the SVM.

    Returns
    -------
    lower : float or None
        Largest epsilon up to which all accuracies are near chance.
    upper : float or None
        Smallest epsilon from which on all are near the SVM's.
    """
    lower = upper = None
    for epsilon, accuracy in zip(epsilons, curve, strict=True):
        if abs(accuracy - CHANCE) > NEAR_CHANCE:
            break
        lower = epsilon
    for epsilon, accuracy in reversed(list(zip(epsilons, curve, strict=True))):
        if accuracy < svm - NEAR_SVM:
            break
        upper = epsilon
    return lower, upper


def _means(table: Sequence[Sequence[float]]) -> list[float]:
    return [statistics.fmean(row) for row in table]


def _near_on_grid(epsilons: Sequence[float], first: float, second: float | None) -> bool:
    """Whether two epsilons are the same point of the grid or neighbours."""
    grid = [float(epsilon) for epsilon in epsilons]
    return second is not None and abs(grid.index(float(first)) - grid.index(float(second))) <= 1


# --- Figures 1 and 2 ------------------------------------------------------------------------------------------------


def budget_report(experiment: Experiment, results: Results) -> Report:
    """Accuracy against epsilon, and where its knees are for each set of options."""
    settings, published = experiment.settings, experiment.published()
    main_option = _option_name(settings["options"][0])
    chosen: list[Row] = []
    others: list[Row] = []
    curves: list[Row] = []
    figures: list[Figure] = []
    for job, parameters in budget_jobs(settings).items():
        if parameters["kind"] == "draws":
            continue
        option, result = _option_name(parameters), results[job].numbers
        first = option == main_option
        for variant in parameters["variants"]:
            rows = _knee_rows(published, parameters, results[job], variant, first)
            (chosen if first and variant == MAIN else others).extend(rows)
        (chosen if first else others).extend(_svm_rows(published, parameters, results[job], first))
        curves += _budget_rows(parameters, results[job], first)
        if result is not None:
            figures.append(_budget_figure(parameters, result))
    draws, draw_figures, draw_notes = _draws(settings, results, published)
    return Report(
        tables=_budget_tables(chosen, draws, others, curves),
        figures=[*figures, *draw_figures],
        notes=[f"{TEST_SET}.", *draw_notes],
    )


def _budget_tables(chosen: list[Row], draws: list[Row], others: list[Row], curves: list[Row]) -> list[Table]:
    return [
        Table(
            name="knees",
            title="The published knees",
            caption="The paper describes its Figures 1 and 2 by two epsilons: up to the lower one the accuracy is "
            f"that of a coin (here: within {NEAR_CHANCE} of {CHANCE}), from the upper one on that of the SVM "
            f"(within {NEAR_SVM}). Agrees at the same point of the grid or a neighbouring one; the "
            f"SVM's level within {NEAR_SVM}. The features are as in LIBSVM's files; C = 1 and gamma = 1/features "
            "are its defaults.",
            rows=chosen,
        ),
        Table(
            name="draws",
            title="How firm the knees are",
            caption="The paper takes the mean of three draws. Here that is done again and again for one trained "
            "model: the middle one of the knees, and how far they spread. Agrees as above.",
            rows=draws,
        ),
        Table(
            name="other choices",
            title="Other choices of what the paper does not print",
            caption="The same comparison for other scalings, another C, and other readings of the formula. A "
            "choice that does not give the published knee is ruled out.",
            rows=others,
        ),
        Table(
            name="curves",
            title="All accuracies",
            caption="The paper prints its curves as pictures only, so that most have no number to compare with.",
            rows=curves,
        ),
    ]


def _knee_rows(
    published: Published, parameters: Mapping[str, Any], outcome: Outcome, variant: str, first: bool
) -> list[Row]:
    """Compare both knees of one variant under one option; `first` where the option is the paper's."""
    result, missing = outcome
    dataset, epsilons, option = parameters["dataset"], parameters["epsilons"], _option_name(parameters)
    main = first and variant == MAIN
    rows = []
    for index, metric in enumerate(KNEES):
        printed = published[dataset, "DPSVMDVP", "", metric]
        labels = {
            "table": "knees" if main else "other choices", "dataset": dataset, "method": f"DPSVMDVP ({variant})",
            "setting": option, "metric": metric,
        }  # fmt: skip
        if result is None:
            rows.append(compare(labels, printed, None, within(0.0), missing=missing))
            continue
        curve, svm = _means(result["variants"][variant]), result["SVM"]
        results = knees(epsilons, curve, svm)[index]
        agrees = _near_on_grid(epsilons, float(printed), results)
        rows.append(
            Row(
                **labels,
                published=printed,
                ours=results,
                difference=None if results is None else results - float(printed),
                verdict="within tolerance" if agrees else "beyond tolerance" if main else "ruled out",
                explanation="" if agrees else _why_knee(metric, variant, results, curve, svm),
            )
        )
    return rows


def _why_knee(metric: str, variant: str, knee: float | None, curve: Sequence[float], svm: float) -> str:
    low, high = min(curve), max(curve)
    where = f"accuracy from {low:.3f} to {high:.3f} on the grid, SVM {svm:.3f}"
    if max(abs(value - svm) for value in curve) <= NEAR_SVM:
        return f"the SVM's level everywhere ({where}): next to no noise is added"
    if high <= CHANCE + NEAR_CHANCE and variant.startswith(("abs", "uniform")):
        return f"at chance everywhere ({where}): the noise is what the formula promises"
    if high <= CHANCE + NEAR_CHANCE:
        return f"at chance everywhere ({where}): the errors do not cancel, so their sum and the noise are large"
    if metric == "lower knee" and knee is None:
        return f"above chance, or another constant answer, at the smallest epsilon ({where})"
    if metric == "upper knee" and knee is None:
        return f"the SVM's level is not reached ({where})"
    return f"the noise scales with a sum of errors that is round-off, and hangs on few support vectors ({where})"


def _svm_rows(published: Published, parameters: Mapping[str, Any], outcome: Outcome, first: bool) -> list[Row]:
    """Compare the level of the SVM, where the paper names it: it tells the scalings apart."""
    result, missing = outcome
    printed = published.get((parameters["dataset"], "SVM", "", "accuracy"))
    if printed is None:
        return []
    labels = {"table": "knees" if first else "other choices", "dataset": parameters["dataset"], "method": "SVM",
             "setting": _option_name(parameters), "metric": "accuracy"}  # fmt: skip
    ours = None if result is None else float(result["SVM"])
    row = compare(labels, printed, ours, within(NEAR_SVM), "another level of the SVM itself", missing)
    return [row if first or row.verdict != "beyond tolerance" else dataclasses.replace(row, verdict="ruled out")]


def _budget_rows(parameters: Mapping[str, Any], outcome: Outcome, first: bool) -> list[Row]:
    """Every accuracy; the paper has a number only for the smallest epsilons of cod-rna."""
    result, missing = outcome
    dataset, option = parameters["dataset"], _option_name(parameters)
    labels = {"table": "curves", "dataset": dataset, "metric": "accuracy"}
    rows = []
    for variant in parameters["variants"]:
        curve = None if result is None else _means(result["variants"][variant])
        for index, epsilon in enumerate(parameters["epsilons"]):
            stated = dataset == "cod-rna" and epsilon <= 0.001 and variant == MAIN and first
            rows.append(
                compare(
                    {**labels, "method": f"DPSVMDVP ({variant})", "setting": f"{option}; epsilon={epsilon:g}"},
                    "0.50" if stated else None,
                    None if curve is None else curve[index],
                    within(NEAR_CHANCE),
                    "the curve leaves chance earlier; the mean of three draws is not firmer than that",
                    missing,
                )
            )
    svm = None if result is None else result["SVM"]
    rows.append(compare({**labels, "method": "SVM", "setting": option}, None, svm, within(0.0), missing=missing))
    return rows + _private_rows(labels, parameters, outcome)


def _private_rows(labels: Mapping[str, str], parameters: Mapping[str, Any], outcome: Outcome) -> list[Row]:
    result, missing = outcome
    curve: list[float] | None = None
    if result is not None and result["PrivateSVM"] is None:
        missing = ("not available", result["why_no_PrivateSVM"])
    elif result is not None:
        curve = _means(result["PrivateSVM"])
    return [
        compare(
            {**labels, "method": "PrivateSVM", "setting": f"{_option_name(parameters)}; epsilon={epsilon:g}"},
            None, None if curve is None else curve[index], within(0.0), missing=missing,
        )
        for index, epsilon in enumerate(parameters["epsilons"])
    ]  # fmt: skip


def _budget_figure(parameters: Mapping[str, Any], result: Result) -> Figure:
    epsilons = parameters["epsilons"]
    data = [
        scatter("lines", "SVM", epsilons, [result["SVM"]] * len(epsilons),
                line={"color": COLOURS["SVM"], "dash": "dot"})
    ]  # fmt: skip
    for variant, table in result["variants"].items():
        data.append(_curve(f"DPSVMDVP ({variant})", epsilons, table, COLOURS.get(variant, "#63676e")))
    if result["PrivateSVM"] is not None:
        data.append(_curve("PrivateSVM", epsilons, result["PrivateSVM"], COLOURS["PrivateSVM"]))
    return Figure(
        title=f"{parameters['dataset']}: accuracy against epsilon ({_option_name(parameters)})",
        caption=f"{result['n_train']} training rows, {result['n_test']} test rows, the larger class "
        f"{result['test_majority']:.3f}. Mean, smallest and largest of {parameters['repeats']} draws.",
        data=data,
        layout={"xaxis": axis("epsilon (claimed by DPSVMDVP)", type="log"),
                "yaxis": axis("accuracy", range=[0.3, 1.0]), "height": 400,
                "legend": {"orientation": "h", "y": -0.28}},
    )  # fmt: skip


def _curve(name: str, x: Sequence[float], table: Sequence[Sequence[float]], colour: str) -> dict[str, Any]:
    """Means of draws, with bars from the smallest to the largest."""
    means = _means(table)
    bars = {
        "type": "data", "symmetric": False, "thickness": 1, "width": 2,
        "array": [max(row) - mean for row, mean in zip(table, means, strict=True)],
        "arrayminus": [mean - min(row) for row, mean in zip(table, means, strict=True)],
    }  # fmt: skip
    return scatter("lines+markers", name, x, means, line={"color": colour, "width": 1.8}, marker={"size": 6},
                   error_y=bars)  # fmt: skip


# --- the paper's three draws, again and again -----------------------------------------------------------------------


def _draws(settings: Settings, results: Results, published: Published) -> tuple[list[Row], list[Figure], list[str]]:
    """Rows, figure and finding of the job of many draws."""
    choice = settings["draws"]
    if choice["dataset"] not in settings["datasets"]:
        return [], [], []
    result, missing = results[f"{choice['dataset']}.draws"]
    if result is None:
        return _draw_rows(settings, published, None, [], missing), [], []
    table, three = result["variants"][MAIN], settings["repeats"]
    starts = range(0, choice["times"] * three, three)
    curves = [[statistics.fmean(row[start : start + three]) for row in table] for start in starts]
    return (
        _draw_rows(settings, published, result, curves, missing),
        [_draw_figure(settings, curves)],
        [_draw_note(choice["dataset"], result)],
    )


def _draw_rows(
    settings: Settings, published: Published, result: Result | None, curves: Sequence[Sequence[float]],
    missing: Missing | None,
) -> list[Row]:  # fmt: skip
    choice, epsilons = settings["draws"], settings["epsilons"]
    rows = []
    for index, metric in enumerate(KNEES):
        labels = {"table": "draws", "dataset": choice["dataset"], "method": f"DPSVMDVP ({MAIN})", "metric": metric,
                 "setting": f"{choice['times']} times {settings['repeats']} draws"}  # fmt: skip
        printed = published[choice["dataset"], "DPSVMDVP", "", metric]
        if result is None:
            rows.append(compare(labels, printed, None, within(0.0), missing=missing))
            continue
        results = [knees(epsilons, curve, result["SVM"])[index] for curve in curves]
        reached = sorted(knee for knee in results if knee is not None)
        middle = reached[len(reached) // 2] if reached else None
        nowhere = f"nowhere on the grid {len(results) - len(reached)} of {len(results)} times"
        rows.append(
            Row(
                **labels,
                published=printed,
                ours=middle,
                difference=None if middle is None else middle - float(printed),
                verdict="within tolerance" if _near_on_grid(epsilons, float(printed), middle) else "beyond tolerance",
                explanation=f"from {reached[0]:g} to {reached[-1]:g}, and {nowhere}" if reached else nowhere,
            )
        )
    return rows


def _draw_figure(settings: Settings, curves: Sequence[Sequence[float]]) -> Figure:
    choice = settings["draws"]
    line = {"width": 1, "color": COLOURS[MAIN]}
    return Figure(
        title=f"{choice['dataset']}: the paper's experiment {choice['times']} times",
        caption=f"One trained model; one line is the mean of {settings['repeats']} draws. DPSVMDVP (signed, free).",
        data=[
            {"type": "scatter", "mode": "lines", "x": list(settings["epsilons"]), "y": curve, "showlegend": False,
             "line": line}
            for curve in curves
        ],
        layout={"xaxis": axis("epsilon (claimed)", type="log"), "yaxis": axis("accuracy", range=[0.3, 1.0]),
                "height": 400},
    )  # fmt: skip


def _draw_note(dataset: str, result: Result) -> str:
    scales = result["scales"]
    return (
        f"{dataset}: at epsilon 1 the Laplace scales of the {result['n_free']} free support vectors have a "
        f"median of {scales['median']:.1e}, and the largest is {scales['largest']:.1e}: whether a curve is at chance "
        f"hangs on a few of them. All are proportional to the sum of the errors, {abs(scales['sum_of_errors']):.1e}, "
        "which is the round-off of kernel values in single precision; in double precision the sum is "
        f"{abs(scales['sum_of_errors_double']):.1e}."
    )


# --- Figures 3 to 6 -------------------------------------------------------------------------------------------------

# Method as the figures name it, with ", shuffled" where the rows are: points of what varies, and their draws.
_Series = dict[str, list[tuple[float, list[float]]]]


def _series_report(experiment: Experiment, results: Results, what: str) -> tuple[list[Row], list[Figure]]:
    """Rows and figures of an experiment that varies `what` (``n_train`` or ``n_features``) at one epsilon."""
    published, epsilon = experiment.published(), experiment.settings["epsilons"][0]
    rows: list[Row] = []
    series: dict[str, _Series] = {}
    for job, parameters in experiment.jobs(experiment.settings).items():
        rows += _series_rows(published, what, epsilon, parameters, results[job])
        suffix = "" if parameters["order"] == "file" else ", shuffled"
        for method, values in _draws_of(parameters, results[job].numbers).items():
            lines = series.setdefault(parameters["dataset"], {})
            lines.setdefault(method + suffix, []).append((float(parameters[what]), values))
    return rows, [_series_figure(published, what, epsilon, dataset, lines) for dataset, lines in series.items()]


def _draws_of(parameters: Mapping[str, Any], result: Result | None) -> dict[str, list[float]]:
    """Accuracies of each method at the one epsilon; nothing of a method that did not run."""
    if result is None:
        return {}
    results = {"SVM": [result["SVM"]]}
    results |= {f"DPSVMDVP ({name})": result["variants"][name][0] for name in parameters["variants"]}
    if result["PrivateSVM"] is not None:
        results["PrivateSVM"] = result["PrivateSVM"][0]
    return results


def _series_rows(
    published: Published, what: str, epsilon: float, parameters: Mapping[str, Any], outcome: Outcome
) -> list[Row]:
    """Rows of one training set. The paper's numbers are of the main variant, on the file's order."""
    result, missing = outcome
    dataset, in_order, results = parameters["dataset"], parameters["order"] == "file", _draws_of(parameters, result)
    setting = f"epsilon={epsilon:g};{what}={parameters[what]}"
    printed = published.get((dataset, "DPSVMDVP", setting, "accuracy"))
    order = "" if in_order and what == "n_features" else ";first rows" if in_order else ";shuffled"
    rows = []
    for method in ("SVM", *(f"DPSVMDVP ({name})" for name in parameters["variants"]), "PrivateSVM"):
        absent = missing
        if result is not None and method not in results:
            absent = ("not available", result["why_no_PrivateSVM"])
        rows.append(
            compare(
                {"table": what, "dataset": dataset, "metric": "accuracy", "method": method, "setting": setting + order},
                printed if method == f"DPSVMDVP ({MAIN})" and in_order else None,
                statistics.fmean(results[method]) if method in results else None,
                within(0.02),
                functools.partial(_why_series, dataset, result),
                absent,
            )
        )
    return rows


def _why_series(dataset: str, result: Result | None) -> str:
    assert result is not None
    draws = result["variants"][MAIN][0]
    spread = f"our draws go from {min(draws):.3f} to {max(draws):.3f}, our SVM has {result['SVM']:.3f}"
    if abs(statistics.fmean(draws) - result["SVM"]) < 0.005:
        spread = f"the noise plays no part: {spread}"
    return f"{spread}; {_WHY_SERIES[dataset]}"


def _series_figure(published: Published, what: str, epsilon: float, dataset: str, lines: _Series) -> Figure:
    data = []
    for name, points in lines.items():
        method = name.removesuffix(", shuffled")
        colour = COLOURS.get(method.removeprefix("DPSVMDVP (").removesuffix(")"), "#63676e")
        trace = _curve(name, [x for x, _ in points], [values for _, values in points], colour)
        if method != name:
            trace["line"]["dash"] = "dash"
        data.append(trace)
    printed = [
        (float(key[2].split(f"{what}=")[1]), float(value))
        for key, value in published.items()
        if key[0] == dataset and f"{what}=" in key[2]
    ]
    data.append(scatter("markers", "DPSVMDVP, published", [x for x, _ in printed], [y for _, y in printed],
                        marker={"symbol": "diamond-open", "size": 12, "color": "#1b1f27",
                                "line": {"width": 2}}))  # fmt: skip
    label = "training rows" if what == "n_train" else "features"
    return Figure(
        title=f"{dataset}: accuracy against the number of {label} at epsilon {epsilon:g}",
        caption="Mean, smallest and largest of the draws. Diamonds: what the paper's text says.",
        data=data,
        layout={"xaxis": axis(label), "yaxis": axis("accuracy"), "height": 520,
                "legend": {"orientation": "h", "y": -0.2}},
    )  # fmt: skip


def size_report(experiment: Experiment, results: Results) -> Report:
    """Accuracy against the number of training rows: the first of the file, and drawn at random."""
    rows, figures = _series_report(experiment, results, "n_train")
    notes = [TEST_SET + "."]
    shares = [
        f"{100 * result['positive_share']:.1f} % of the first {result['n_train']}"
        for job, parameters in size_jobs(experiment.settings).items()
        if (parameters["dataset"], parameters["order"]) == ("cod-rna", "file")
        and (result := results[job].numbers) is not None
    ]
    if shares:
        notes.append(
            f"The cod-rna file is not shuffled: positive rows are {', '.join(shares)}. The dashed curves have the same "
            "numbers of rows, drawn at random."
        )
    return Report(
        tables=[
            Table(
                name="n_train",
                title="Number of training rows (Figures 3 and 4)",
                caption="epsilon = 0.1. The paper's text rounds to whole percents: agrees within 0.02.",
                rows=rows,
            )
        ],
        figures=figures,
        notes=notes,
    )


def features_report(experiment: Experiment, results: Results) -> Report:
    """Accuracy against the number of features."""
    rows, figures = _series_report(experiment, results, "n_features")
    return Report(
        tables=[
            Table(
                name="n_features",
                title="Number of features (Figures 5 and 6)",
                caption="The first features of each row, epsilon = 0.1. Agrees within 0.02.",
                rows=rows,
            ),
            Table(
                name="rise",
                title="Does the accuracy rise with the number of features?",
                caption="The paper says that it does. Agrees where the mean with all features is above that with the "
                "fewest.",
                rows=_rise_rows(experiment.settings, results),
            ),
        ],
        figures=figures,
        notes=[TEST_SET + "."],
    )


def _rise_rows(settings: Settings, results: Results) -> list[Row]:
    rows = []
    for dataset, widths in settings["features"].items():
        if dataset not in settings["datasets"]:
            continue
        (fewest, gone), (most, also_gone) = (results[f"{dataset}.d-{width}"] for width in (widths[0], widths[-1]))
        labels = {"table": "rise", "dataset": dataset, "method": f"DPSVMDVP ({MAIN})",
                 "setting": f"from {widths[0]} to {widths[-1]} features", "metric": "rise of accuracy"}  # fmt: skip
        if fewest is None or most is None:
            rows.append(claim(labels, "rises", None, False, missing=gone or also_gone))
            continue
        first, last = (statistics.fmean(end["variants"][MAIN][0]) for end in (fewest, most))
        rows.append(
            claim(labels, "rises", last - first, last > first,
                  "the noise differs more from training set to training set; the SVM itself goes from "
                  f"{fewest['SVM']:.3f} to {most['SVM']:.3f}")
        )  # fmt: skip
    return rows
