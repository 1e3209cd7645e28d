"""Tables 2 and 3: time of condensing, search and training."""

from __future__ import annotations

import functools
import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from privsvm_bench.reproduction.comparison import Row, claim, compare, explained, within
from privsvm_bench.reproduction.drawing import axis, scatter
from privsvm_bench.reproduction.experiment import Experiment, Figure, Outcome, Report, Result, Results, Table
from reproduce.ci_svm.experiments import CI, FCM, LIBSVM, RSVM, job_name, kinds_of
from reproduce.ci_svm.report.accuracy import POINTS
from reproduce.ci_svm.report.shared import COLOURS, ResultsByKind, dots, row_labels, wide_figure

# Times that differ by less than this factor are "almost flat".
FLAT = 1.5
# How far an exponent may be from that of n log n.
EXPONENT_TOLERANCE = 0.2


# --- times ----------------------------------------------------------------------------------------------------------

# Labels of a row, by its dataset and setting.
_Labels = Callable[[str, str], dict[str, Any]]

STEPS = ("condense", "search", "train")


def seconds_of(result: Result, method: str, *steps: str) -> float:
    """Median over the repeats of the time of some steps together."""
    return statistics.median(
        sum(repeat[method]["seconds"][step] for step in steps) for repeat in result["repeats"]
    )  # fmt: skip


def support_of(result: Result, method: str) -> float:
    """Median number of support vectors."""
    return statistics.median(repeat[method]["n_support"] for repeat in result["repeats"])


def exponent(sizes: Sequence[float], values: Sequence[float]) -> float:
    """Slope of a line through logarithms, by least squares."""
    logs = [math.log(size) for size in sizes], [math.log(value) for value in values]
    return statistics.linear_regression(*logs).slope


def time_report(experiment: Experiment, results: Results) -> Report:
    """Tabulate times of Tables 2 and 3, ratios, growth, and large datasets."""
    by_kind = ResultsByKind(experiment.settings, results)
    growth = results[f"{job_name(experiment.settings['growth']['dataset'])}.growth"]
    tables = [
        Table(
            name="against LIBSVM",
            title="Is CI-SVM faster than LIBSVM?",
            caption="Processor time on all rows over that on condensed ones, condensing apart, as in the paper. It "
            "calls CI-SVM's time generally less, because 33 % of the rows are left: agrees above 1. Were the time "
            "linear in the rows the ratio would be 3, were it quadratic 9. From scratch: the same search by LIBSVM "
            "itself (scikit-learn's SVC), without warm starts. Search and training: our own solver, in which "
            "solutions for a smaller C start those for larger ones.",
            rows=_against_libsvm(by_kind),
        ),
        Table(
            name="support vectors",
            title="Has CI-SVM fewer support vectors than LIBSVM?",
            caption="Ratio of the numbers of support vectors, at the C and gamma that each search chose. The paper "
            "calls CI-SVM's greatly reduced; agrees above 1.",
            rows=_support_rows(by_kind),
        ),
        Table(
            name="against FCM-SVM",
            title="Is CI-SVM faster than FCM-SVM?",
            caption="FCM-SVM's processor time over CI-SVM's. Condensing: the paper calls CI-SVM's efficiency "
            "significantly higher; agrees above 1. Search and training: almost flat in the paper; agrees between "
            f"1/{FLAT:g} and {FLAT:g}.",
            rows=_against_fcm(by_kind),
        ),
        Table(
            name="growth",
            title="Growth of condensing with the number of rows",
            caption="Slope of the logarithm of the processor time over that of the number of rows. CI-SVM: the paper "
            "counts n^2 (and searches the matrix of similarities again for every triple, which as printed is n^3); "
            f"ours agrees with n log n within {EXPONENT_TOLERANCE:g}. FCM-SVM: the paper counts n^3; agrees within "
            f"{EXPONENT_TOLERANCE:g}.",
            rows=_growth_rows(experiment, growth),
        ),
        Table(
            name="large",
            title="Large datasets",
            caption="Four fifths of the rows are trained on, with C and gamma given. Ratios: training on all rows over "
            "training on condensed ones, without and with the time of condensing.",
            rows=_large_rows(experiment, results),
        ),
        *(
            Table(
                name=f"times, {classes}",
                title=f"Tables 2 and 3: seconds, {classes}",
                caption="Processor time of one thread, median of the repeats: condensing (Table 3), and search and "
                "training together (Table 2). RSVM is a linear program, for reference only, as in the paper.",
                rows=_time_rows(by_kind, classes),
            )
            for classes in kinds_of(experiment.settings)
        ),
    ]
    return Report(
        tables=tables,
        figures=[*_growth_figure(experiment, growth.numbers), *_time_figures(by_kind)],
        notes=_time_notes(experiment, by_kind),
    )


def _time_rows(by_kind: ResultsByKind, classes: str) -> list[Row]:
    rows = []
    for dataset in kinds_of(by_kind.settings)[classes]:
        result = by_kind.results[classes].get(dataset)
        for method in by_kind.methods(classes):
            labels = row_labels(f"times, {classes}", dataset, method, "seconds of search and training")
            if result is None:
                rows.append(compare(labels, None, None, within(0.0), missing=by_kind.missing[dataset]))
                continue
            step_seconds = ", ".join(f"{step} {seconds_of(result, method, step):.3g}" for step in STEPS)
            rows.append(Row(**labels, ours=seconds_of(result, method, "search", "train"), verdict="no number",
                            explanation=f"{step_seconds}; {result['n_rows']} x {result['n_features']}, "
                                        f"{support_of(result, method):g} support vectors"))  # fmt: skip
    return rows


def _ratio_rows(by_kind: ResultsByKind, labels_of: _Labels, statement: str,
                value: Callable[[Result], float], holds: Callable[[float], bool], why: Callable[[Result], str],
                text: Callable[[Result], str]) -> list[Row]:  # fmt: skip
    """One row for the geometric mean of each kind, and one for each dataset."""
    rows = []
    for classes, datasets in kinds_of(by_kind.settings).items():
        results = by_kind.results[classes]
        labels = labels_of(f"{classes}, geometric mean", "")
        if results:
            ratios = [value(result) for result in results.values()]
            mean = statistics.geometric_mean(ratios)
            row = claim(labels, statement, mean, holds(mean), "not so on average")
            rows.append(explained(row, f"{min(ratios):.3g} to {max(ratios):.3g}"))
        else:
            rows.append(claim(labels, statement, None, False, missing=by_kind.absent(classes)))
        for dataset in datasets:
            result = results.get(dataset)
            labels = labels_of(dataset, "" if result is None else f"{result['n_rows']} rows")
            if result is None:
                rows.append(claim(labels, statement, None, False, missing=by_kind.missing[dataset]))
                continue
            ratio = value(result)
            row = claim(labels, statement, ratio, holds(ratio), functools.partial(why, result))
            rows.append(explained(row, text(result)))
    return rows


def _ratio_labels(table: str, method: str, metric: str) -> _Labels:
    return lambda dataset, setting: row_labels(table, dataset, method, metric, setting)


_LESS_TIME = "less time, 33 % of the rows"


def time_ratio(result: Result, *steps: str) -> float:
    """LIBSVM's time over CI-SVM's, for some steps together."""
    return seconds_of(result, LIBSVM, *steps) / seconds_of(result, CI, *steps)


def scratch_seconds(result: Result, method: str) -> float:
    """Median time of a method's search by LIBSVM; NaN where there is none."""
    values = [repeat[method]["scratch"]["seconds"] for repeat in result["repeats"] if "scratch" in repeat[method]]
    return statistics.median(values) if values else math.nan


def support_ratio(result: Result) -> float:
    """LIBSVM's support vectors over CI-SVM's; a constant model, which has none, counts as one."""
    return max(support_of(result, LIBSVM), 1.0) / max(support_of(result, CI), 1.0)


def _against_libsvm(by_kind: ResultsByKind) -> list[Row]:
    def scratch(result: Result) -> float:
        return scratch_seconds(result, LIBSVM) / scratch_seconds(result, CI)

    def seconds(result: Result) -> str:
        libsvm, ci = (seconds_of(result, method, "search", "train") for method in (LIBSVM, CI))
        return f"{libsvm:.3g} and {ci:.3g} s; with condensing {time_ratio(result, *STEPS):.3g}"

    def labels(metric: str) -> _Labels:
        return _ratio_labels("against LIBSVM", "LIBSVM over CI-SVM", metric)

    rows = []
    if by_kind.settings["scratch"]["repeats"] > 0:
        rows += _ratio_rows(by_kind, labels("ratio of search, from scratch by LIBSVM"), _LESS_TIME, scratch,
                            lambda ratio: ratio > 1.0, lambda result: "the search takes as long on a third of the rows",
                            lambda result: f"{scratch_seconds(result, LIBSVM):.3g} and "
                                           f"{scratch_seconds(result, CI):.3g} s")  # fmt: skip
    return rows + _ratio_rows(
        by_kind, labels("ratio of search and training"), _LESS_TIME,
        lambda result: time_ratio(result, "search", "train"), lambda ratio: ratio > 1.0,
        lambda result: "the search takes as long on a third of the rows", seconds,
    )  # fmt: skip


def _support_rows(by_kind: ResultsByKind) -> list[Row]:
    return _ratio_rows(
        by_kind, _ratio_labels("support vectors", "LIBSVM over CI-SVM", "ratio of support vectors"), "greatly reduced",
        support_ratio, lambda ratio: ratio > 1.0,
        lambda result: "the C and gamma that were chosen leave more support vectors",
        lambda result: f"{support_of(result, LIBSVM):g} and {support_of(result, CI):g}",
    )  # fmt: skip


def _against_fcm(by_kind: ResultsByKind) -> list[Row]:
    def condensing(result: Result) -> float:
        return seconds_of(result, FCM, "condense") / seconds_of(result, CI, "condense")

    def training(result: Result) -> float:
        return seconds_of(result, FCM, "search", "train") / seconds_of(result, CI, "search", "train")

    def labels(metric: str) -> _Labels:
        return _ratio_labels("against FCM-SVM", "FCM-SVM over CI-SVM", metric)

    return [
        *_ratio_rows(by_kind, labels("ratio of condensing"), "significantly higher efficiency", condensing,
                     lambda ratio: ratio > 1.0,
                     lambda result: "so many fuzzy centres hardly move from the rows they start at: few iterations",
                     lambda result: f"{1e3 * seconds_of(result, FCM, 'condense'):.3g} and "
                                    f"{1e3 * seconds_of(result, CI, 'condense'):.3g} ms"),
        *_ratio_rows(by_kind, labels("ratio of search and training"), "almost flat", training,
                     lambda ratio: 1 / FLAT <= ratio <= FLAT,
                     lambda result: "equally many rows, of which one kind is easier to separate",
                     lambda result: f"{seconds_of(result, FCM, 'search', 'train'):.3g} and "
                                    f"{seconds_of(result, CI, 'search', 'train'):.3g} s"),
    ]  # fmt: skip


def _growth_rows(experiment: Experiment, growth: Outcome) -> list[Row]:
    """Compare exponents with the paper's counts, and list the times behind them."""
    dataset = experiment.settings["growth"]["dataset"]
    rows: list[Row] = []
    for kind, method, statement in (("ci", CI, "n^2"), ("fcm", FCM, "n^3")):
        missing = growth.missing
        if growth.numbers is not None and len(growth.numbers[kind]["n_rows"]) < 2:
            missing = ("no number", "one size only")
        if growth.numbers is None or missing:
            labels = row_labels("growth", dataset, method, "exponent")
            rows.append(claim(labels, statement, None, False, missing=missing))
            continue
        numbers = growth.numbers[kind]
        rows += _condensing_growth(dataset, numbers) if kind == "ci" else [_fuzzy_growth(dataset, numbers)]
        for size, seconds in zip(numbers["n_rows"], numbers["seconds"], strict=True):
            labels = row_labels("growth", dataset, method, "seconds", f"{size} rows")
            rows.append(Row(**labels, ours=seconds, verdict="no number"))
    return rows


def _condensing_growth(dataset: str, growth: Mapping[str, Any]) -> list[Row]:
    """CI-SVM: against n log n, and against the n^2 that the paper counts."""
    sizes = growth["n_rows"]
    ours, log_linear = exponent(sizes, growth["seconds"]), exponent(sizes, [n * math.log(n) for n in sizes])
    span = f"{sizes[0]} to {sizes[-1]} rows"
    labels = row_labels("growth", dataset, CI, "exponent", span)
    close = abs(ours - log_linear) <= EXPONENT_TOLERANCE
    return [
        Row(**{**labels, "setting": f"n log n, {span}"}, ours=ours, difference=ours - log_linear,
            verdict="within tolerance" if close else "beyond tolerance",
            explanation=f"n log n has {log_linear:.3f} on these sizes"),
        claim(labels, "n^2", ours, abs(ours - 2) <= EXPONENT_TOLERANCE,
              "slower growth: ours finds neighbours in a tree, not in the matrix of all similarities"),
    ]  # fmt: skip


def _fuzzy_growth(dataset: str, growth: Mapping[str, Any]) -> Row:
    """FCM-SVM: against the n^3 that the paper counts."""
    sizes, turns = growth["n_rows"], growth["n_iter"]
    ours = exponent(sizes, growth["seconds"])
    labels = row_labels("growth", dataset, FCM, "exponent", f"{sizes[0]} to {sizes[-1]} rows")
    why = (
        f"an iteration costs n times the n / 3 centres, and there are {min(turns)} to {max(turns)} iterations: "
        "n^3 would take iterations in proportion to n"
    )
    return claim(labels, "n^3", ours, abs(ours - 3) <= EXPONENT_TOLERANCE, why)


def _large_rows(experiment: Experiment, results: Results) -> list[Row]:
    rows = []
    for dataset in experiment.settings["large"]:
        result, missing = results[f"{job_name(dataset)}.large"]
        if result is None:
            rows += [
                compare(row_labels("large", dataset, CI, metric), None, None, within(0.0), missing=missing)
                for metric in ("seconds of condensing", "ratio of training", "difference of accuracies")
            ]
        else:
            rows += _large_dataset(dataset, result)
    return rows


def _large_dataset(dataset: str, result: Result) -> list[Row]:
    """One large dataset: condensing, training with it and without, accuracies."""
    size = f"{result['n_rows']} x {result['n_features']}, {result['n_classes']} classes"

    def labels(method: str, metric: str) -> dict[str, Any]:
        return row_labels("large", dataset, method, metric, size)

    seconds, accuracy, vectors = result["seconds"], result["accuracy"], result["n_support"]
    memory = result["megabytes"]
    memory_text = "" if memory is None else f"; {memory:.0f} MB at the peak, data and library included"
    training_only = seconds["all rows"] / seconds["condensed rows"]
    with_condensing = seconds["all rows"] / (seconds["condense"] + seconds["condensed rows"])
    both = f"{seconds['all rows']:.3g} and {seconds['condensed rows']:.3g} s"
    difference = accuracy["condensed rows"] - accuracy["all rows"]
    return [
        Row(**labels(CI, "seconds of condensing"), ours=seconds["condense"], verdict="no number",
            explanation=f"label purity {result['purity']:.4f}{memory_text}"),
        explained(
            claim(labels("LIBSVM over CI-SVM", "ratio of training"), _LESS_TIME, training_only, training_only > 1.0,
                  "one training on all rows is as fast"),
            f"{both}; support vectors {vectors['all rows']} and {vectors['condensed rows']}",
        ),
        explained(
            claim(labels("LIBSVM over CI-SVM", "ratio of training, condensing counted"), _LESS_TIME,
                  with_condensing, with_condensing > 1.0,
                  "one training with our solver takes less time than condensing: only a search pays for it"),
            f"{both}, condensing {seconds['condense']:.3g} s",
        ),
        Row(**labels("CI-SVM less LIBSVM", "difference of accuracies"), ours=difference,
            verdict="within tolerance" if difference >= -POINTS else "beyond tolerance",
            explanation=f"{accuracy['condensed rows']:.4f} and {accuracy['all rows']:.4f}; on a third of the rows, "
                        f"drawn at random, {accuracy['a third of the rows']:.4f}"),
    ]  # fmt: skip


def _time_notes(experiment: Experiment, by_kind: ResultsByKind) -> list[str]:
    settings = experiment.settings
    notes = [
        "These are timings: processor time of one thread, on the machine that made this page; the paper's were taken "
        "in Matlab, and are lost in our copy. Ratios within one run are what can be compared.",
        f"Each method is run on the first fold of {settings['repeats']} splits, one after the other; the numbers are "
        "medians. The search has the paper's grid, by five-fold cross-validation on what is trained on. LIBSVM does "
        f"the same searches from scratch in {settings['scratch']['repeats']} of them. With few rows, and with many "
        "classes, each fit takes little more than what any fit takes: there ratios are small.",
    ]
    results = [result for classes in kinds_of(settings) for result in by_kind.results[classes].values()]
    if results:
        shares = {step: statistics.median(seconds_of(result, CI, step) / seconds_of(result, CI, *STEPS)
                                          for result in results) for step in STEPS}  # fmt: skip
        notes.append(
            "Of CI-SVM's time the median dataset spends "
            + ", ".join(f"{100 * share:.1f} % on {name}" for (_, share), name in
                        zip(shares.items(), ("condensing", "search", "training"), strict=True))
            + "."
        )  # fmt: skip
    return notes


def _time_figures(by_kind: ResultsByKind) -> list[Figure]:
    names = [(classes, dataset) for classes in kinds_of(by_kind.settings) for dataset in by_kind.results[classes]]
    if not names:
        return []
    figures = [_ratio_figure(by_kind, names)]
    for title, steps, methods in (
        ("Table 2: search and training", ("search", "train"), (LIBSVM, CI, FCM, RSVM)),
        ("Table 3: condensing", ("condense",), (CI, FCM)),
    ):
        data = []
        for method in methods:
            method_seconds = {dataset: seconds_of(by_kind.results[classes][dataset], method, *steps)
                   for classes, dataset in names if method in by_kind.methods(classes)}  # fmt: skip
            if method_seconds:
                data.append(dots(method, list(method_seconds), list(method_seconds.values())))
        y_axis = axis("seconds", type="log", dtick="D2")
        figures.append(wide_figure(title, "Processor time of one thread.", data, y_axis))
    return figures


def _ratio_figure(by_kind: ResultsByKind, names: Sequence[tuple[str, str]]) -> Figure:
    """Draw by how much CI-SVM is faster than LIBSVM, and has fewer support vectors."""
    labels = [dataset for _, dataset in names]
    results = [by_kind.results[classes][dataset] for classes, dataset in names]
    points = [
        {**dots(CI, labels, [time_ratio(result, "search", "train") for result in results]), "name": "time, our solver"},
        {**dots(FCM, labels, [support_ratio(result) for result in results]), "name": "support vectors"},
    ]
    if by_kind.settings["scratch"]["repeats"] > 0:
        scratch = [scratch_seconds(result, LIBSVM) / scratch_seconds(result, CI) for result in results]
        points.insert(0, {**dots(LIBSVM, labels, scratch), "name": "time, LIBSVM itself"})
    return wide_figure(
        "LIBSVM over CI-SVM",
        "Ratios of processor time for search and training (by LIBSVM itself: of the search, from scratch), and of "
        "support vectors. CI-SVM has 33 % of the rows.",
        points,
        axis("ratio", type="log", tickvals=[0.2, 0.5, 1, 2, 3, 5, 9, 20]),
        {"as fast": 1.0, "linear in the rows": 3.0, "quadratic": 9.0},
    )


def _growth_figure(experiment: Experiment, growth: Result | None) -> list[Figure]:
    """Draw times of condensing against the number of rows, where there are several."""
    if growth is None or len(growth["ci"]["n_rows"]) < 2:
        return []
    data = [
        {**dots(method, growth[kind]["n_rows"], growth[kind]["seconds"]), "mode": "lines+markers",
         "line": {"color": COLOURS[method], "width": 1.6}}
        for kind, method in (("ci", CI), ("fcm", FCM))
    ]  # fmt: skip
    sizes, last = growth["ci"]["n_rows"], growth["ci"]["seconds"][-1]
    laws: list[tuple[str, str, Callable[[float], float]]] = [
        ("n log n", "dash", lambda n: n * math.log(n)),
        ("n<sup>2</sup>", "dot", lambda n: float(n) ** 2),
    ]
    for name, dash, law in laws:
        line = {"color": "#9aa1ab", "width": 1.4, "dash": dash}
        data.append(scatter("lines", name, sizes, [last * law(n) / law(sizes[-1]) for n in sizes], line=line))
    figure = Figure(
        title=f"Condensing more and more rows of {experiment.settings['growth']['dataset']}",
        caption="Processor time of one thread. The grey lines meet CI-SVM's at its last point.",
        data=data,
        layout={"xaxis": axis("rows", type="log", dtick="D2"), "height": 440, "meta": "wide",
                "yaxis": axis("seconds", type="log", dtick="D2"), "legend": {"orientation": "h", "y": 1.12}},
    )  # fmt: skip
    return [figure]
