"""Rows of ci-svm-2018's accuracies and times, and the paper's statements on them; tables.csv has the captions."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

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
    VARIANTS,
    job_name,
    kinds_of,
)
from reproduce.engine.comparison import Missing, Row, compare, within
from reproduce.engine.experiment import Experiment, Outcome, Result, Results, Settings
from reproduce.engine.panels import Line, Panel

# Accuracies within three points count as the same.
POINTS = 0.03
# Standard errors that an improvement must exceed.
ERRORS = 2.0
# The size ratio is a third, but for the last group.
RATIO_TOLERANCE = 0.01
# Times that differ by less than this factor are "almost flat".
FLAT = 1.5
# Largest difference to the exponent of n log n.
EXPONENT_TOLERANCE = 0.2
NAMED = "two-class, the kinds named"
_IMPROVED, _FLAT = "greatly improved", "basically flat, even slightly lower"
_DIFFERENCE = "difference of accuracies"

# Mean difference of each dataset, and its standard error.
_Pairs = Mapping[str, tuple[float, float]]


# --- numbers of a result --------------------------------------------------------------------------------------------


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


def _with_error(values: Sequence[float]) -> tuple[float, float]:
    """Mean of values on folds, and its standard error.

    For repeated cross-validation, by Nadeau and Bengio (2003): training folds overlap, so that the variance of a
    difference counts ``1/J + 1/4`` times, not ``1/J`` times, for J folds of a fifth.
    """
    spread = statistics.variance(values) if len(values) > 1 else 0.0
    return statistics.fmean(values), math.sqrt((1.0 / len(values) + 0.25) * spread)


def paired_difference(result: Result, method: str, other: str) -> tuple[float, float]:
    """Mean accuracy of a method less the other's on the same folds, and its standard error."""
    pairs = zip(fold_accuracies(result, method), fold_accuracies(result, other), strict=True)
    return _with_error([accuracy - other_accuracy for accuracy, other_accuracy in pairs])


def _searched(result: Result, method: str, other: str) -> tuple[float, float]:
    """Accuracy that the search found for a method less another's; the searches of one dataset share its rows."""
    return _with_error(
        [
            accuracy - other_accuracy
            for repeat in result["repeats"]
            for accuracy, other_accuracy in zip(
                *(repeat["methods"][name]["searched"] for name in (method, other)), strict=True
            )
        ]
    )


def mean_of(result: Result, method: str, field: str) -> float:
    """Mean of a field over all folds of all repeats."""
    return statistics.fmean(value for repeat in result["repeats"] for value in repeat["methods"][method][field])


def average_of(pairs: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Average differences; with the standard error."""
    return statistics.fmean(mean for mean, _ in pairs), math.hypot(*(error for _, error in pairs)) / len(pairs)


def _points(value: float) -> str:
    """Write a difference of accuracies in points."""
    return f"{100 * value:+.1f}"


def _above(pairs: _Pairs) -> str:
    return f"above 0 on {sum(difference > 0 for difference, _ in pairs.values())} of {len(pairs)}"


class _Kinds:
    """Results of all datasets, by kind of dataset."""

    def __init__(self, settings: Settings, results: Results):
        self.settings = settings
        # Why a dataset has no numbers.
        self.missing: dict[str, Missing | None] = {}
        self.results: dict[str, dict[str, Result]] = {}
        # Groups that means are taken over, with the datasets each should have.
        self.groups: dict[str, list[str]] = {}
        for classes, datasets in kinds_of(settings).items():
            self.groups[classes], self.results[classes] = list(datasets), {}
            for dataset in datasets:
                result, self.missing[dataset] = results[job_name(dataset)]
                if result is not None:
                    self.results[classes][dataset] = result
            named = [dataset for dataset in datasets if dataset in settings.get("named_kinds", [])]
            if classes == "two-class" and named:
                self.groups[NAMED] = named
                self.results[NAMED] = {name: result for name, result in self.results[classes].items() if name in named}

    def each(self) -> Iterator[tuple[str, str, Result | None, Missing | None]]:
        """Yield kind and name of each dataset, and its result or why there is none."""
        for classes in kinds_of(self.settings):
            for dataset in self.groups[classes]:
                yield classes, dataset, self.results[classes].get(dataset), self.missing[dataset]

    def absent(self, classes: str) -> Missing:
        """Why there is no average over datasets of this kind."""
        reasons = [self.missing[dataset] for dataset in self.groups[classes]]
        return next((reason for reason in reasons if reason), ("not run", ""))

    def methods(self, classes: str, among: Mapping[str, Any] = METHODS) -> list[str]:
        """Methods of a kind of dataset, in the order of the settings."""
        only_two = self.settings["two_class_only"]
        return [name for name in self.settings["methods"]
                if name in among and (classes != "multi-class" or name not in only_two)]  # fmt: skip

    def differences(
        self, classes: str, method: str, other: str, difference: Callable[..., tuple[float, float]] = paired_difference
    ) -> dict[str, tuple[float, float]]:
        """Mean difference of accuracies, and its standard error, of each dataset."""
        return {name: difference(result, method, other) for name, result in self.results[classes].items()}

    def gains(self, classes: str, datasets: Sequence[str]) -> dict[str, float]:
        """Mean accuracy of each variant less CI-SVM's, over some datasets."""
        results = [self.results[classes][dataset] for dataset in datasets]
        return {
            variant: statistics.fmean(paired_difference(result, variant, CI)[0] for result in results)
            for variant in self.methods(classes, VARIANTS)
        }

    def main_cause(self, classes: str) -> str:
        """Describe the average gain of each variant."""
        gains = self.gains(classes, list(self.results[classes]))
        return f"points gained by changing one thing: {_listed(gains)}" if gains else "no variant was run"


def _listed(gains: Mapping[str, float]) -> str:
    return ", ".join(f"{variant.removeprefix('CI-SVM, ')} {_points(gain)}" for variant, gain in gains.items())


# --- accuracies -----------------------------------------------------------------------------------------------------


def accuracy(experiment: Experiment, results: Results) -> Iterator[Row | Panel | str]:
    """Accuracies of Figures 3 and 4, CI-SVM's difference to LIBSVM, the paper's words, and an explanation."""
    kinds = _Kinds(experiment.settings, results)
    yield from _close(kinds)
    yield from _claims(kinds)
    yield from _judged(kinds)
    yield from _variants(kinds)
    printed = experiment.published()["all", CI, "", "size ratio"]
    for classes, dataset, result, missing in kinds.each():
        for method in kinds.methods(classes):
            values = repeat_accuracies(result, method) if result else []
            spread = statistics.stdev(values) if len(values) > 1 else 0.0
            yield compare((classes, dataset, method, "", "accuracy"), "", statistics.fmean(values) if values else None,
                          note=f"sd {spread:.4f} over {len(values)} repeats; {_size(result)}" if result else "",
                          missing=missing)  # fmt: skip
        ratio = purity = None
        note = ""
        if result is not None:
            ratio = mean_of(result, CI, "n_rows") / mean_of(result, LIBSVM, "n_rows")
            purity, note = mean_of(result, CI, "purity"), f"FCM-SVM {mean_of(result, FCM, 'purity'):.4f}"
            if result["n_classes"] > 2:
                note += f"; rows in triples of three classes {mean_of(result, CI, 'mixed'):.4f}"
        place = ("condensed rows", dataset, CI, "")
        yield compare((*place, "size ratio"), printed, ratio, within(RATIO_TOLERANCE), missing=missing,
                      why="few rows: the last group of one or two counts")  # fmt: skip
        yield compare((*place, "label purity"), "", purity, note=note, missing=missing)
    for classes in kinds.groups:
        pairs = kinds.differences(classes, CI, LIBSVM)
        if pairs:
            below = sum(difference < -POINTS for difference, _ in pairs.values())
            yield (
                f"{classes.capitalize()}: CI-SVM is {_points(average_of(list(pairs.values()))[0])} points from LIBSVM "
                f"on average over {len(pairs)} datasets; it is {_above(pairs)}, and more than three points below on "
                f"{below}."
            )
    yield from _picture(experiment.settings["picture"], results)


def _size(result: Result) -> str:
    return f"{result['n_rows']} x {result['n_features']}, {result['n_classes']} classes"


def _close(kinds: _Kinds) -> Iterator[Row]:
    """Whether CI-SVM is within three points of LIBSVM: means of each group first, then each dataset."""
    table, method = "within three points", "CI-SVM less LIBSVM"
    for classes in kinds.groups:
        pairs, place = kinds.differences(classes, CI, LIBSVM), (table, f"{classes}, mean", method, "", _DIFFERENCE)
        if not pairs:
            yield compare(place, missing=kinds.absent(classes))
            continue
        mean, error = average_of(list(pairs.values()))
        median = statistics.median(difference for difference, _ in pairs.values())
        low = [dataset for dataset, (difference, _) in pairs.items() if difference < -POINTS]
        note = (
            f"se {error:.4f}; median {_points(median)} points; more than three points below on {len(low)} of "
            f"{len(pairs)}{': ' if low else ''}{', '.join(low)}"
        )
        yield compare(place, "", mean, mean >= -POINTS, why=kinds.main_cause(classes), note=note)
    for classes, dataset, result, missing in kinds.each():
        place = (table, dataset, method, "", _DIFFERENCE)
        if result is None:
            yield compare(place, missing=missing)
            continue
        difference, error = paired_difference(result, CI, LIBSVM)
        note = f"se {error:.4f}; label purity {mean_of(result, CI, 'purity'):.3f}"
        why = "" if difference >= -POINTS else _why_below(kinds.gains(classes, [dataset]), -difference)
        yield compare(place, "", difference, difference >= -POINTS, why=why, note=note)


_CAUSES = {
    HELD_OUT: "the search, judged on condensed rows, misses better C and gamma",
    BY_CLASS: "triples cross the borders between classes",
    BY_DISTANCE: "the cosine groups rows on one ray, however far apart",
}


def _why_below(gains: Mapping[str, float], short: float) -> str:
    """Name the variant that gives back most of CI-SVM's shortfall."""
    best = max((variant for variant in gains if variant in _CAUSES), key=lambda variant: gains[variant], default=None)
    if best is None:
        return "no variant was run"
    cause = "no single change gives back half of it"
    if gains[best] >= 0.5 * short:
        cause = _CAUSES[best]
    elif gains.get(THIRD, short) <= 0.1 * short:
        cause = "a third of the rows is too few: as many drawn at random do hardly better"
    return f"{cause} (points gained: {_listed(gains)})"


def _claims(kinds: _Kinds) -> Iterator[Row]:
    """Check the paper's statements on mean differences of accuracies."""
    words = {
        "two-class": ((RSVM, "consistent"), (LIBSVM, _IMPROVED), (FCM, _IMPROVED)),
        NAMED: ((RSVM, "consistent"), (LIBSVM, _IMPROVED), (FCM, _IMPROVED)),
        "multi-class": ((LIBSVM, _IMPROVED), (FCM, _IMPROVED), (LIBSVM, _FLAT), (FCM, _FLAT)),
    }
    for classes, other, statement in ((classes, *pair) for classes, pairs in words.items() for pair in pairs):
        if classes not in kinds.results or other not in kinds.methods(classes):
            continue
        pairs = kinds.differences(classes, CI, other)
        place = ("claims", f"{classes}, mean", f"CI-SVM less {other}", "", _DIFFERENCE)
        if not pairs:
            yield compare(place, statement, missing=kinds.absent(classes))
            continue
        mean, error = average_of(list(pairs.values()))
        holds, why = abs(mean) <= POINTS, f"{_points(mean)} points; {kinds.main_cause(classes)}"
        if statement == _IMPROVED:
            shown = kinds.differences(classes, CI, other, _searched)
            seems = statistics.fmean(difference for difference, _ in shown.values())
            holds = mean > ERRORS * error
            why = "not improved on rows that were held out" if mean <= 0 else "improved by less than can be told"
            if seems > 0 >= mean:
                why += f"; cross-validated on its own condensed rows CI-SVM seems {_points(seems)} points better"
        yield compare(place, statement, mean, holds, why=why, note=f"se {error:.4f}; {_above(pairs)}")


def _judged(kinds: _Kinds) -> Iterator[Row]:
    """Compare the accuracies of the searches, each method judged on the rows that it trains on."""

    def place(dataset: str, method: str) -> tuple[str, ...]:
        metric = "difference of searched accuracies"
        return "judged on condensed rows", dataset, f"{method} less LIBSVM", "", metric

    for classes in kinds.groups:
        for method in (CI, FCM):
            statement, pairs = _IMPROVED if method == CI else "", kinds.differences(classes, method, LIBSVM, _searched)
            if not pairs:
                yield compare(place(f"{classes}, mean", method), statement, missing=kinds.absent(classes))
                continue
            mean, error = average_of(list(pairs.values()))
            held_out, _ = average_of(list(kinds.differences(classes, method, LIBSVM).values()))
            yield compare(place(f"{classes}, mean", method), statement, mean,
                          mean > ERRORS * error if method == CI else None,
                          why="not improved even when judged on condensed rows",
                          note=f"se {error:.4f}; {_above(pairs)}; on rows held out {_points(held_out)} points",
                          )  # fmt: skip
    for _, dataset, result, _ in kinds.each():
        if result is not None:
            mean, error = _searched(result, CI, LIBSVM)
            held_out, _ = paired_difference(result, CI, LIBSVM)
            note = f"se {error:.4f}; on rows held out {_points(held_out)} points"
            yield compare(place(dataset, CI), "", mean, note=note)


def _variants(kinds: _Kinds) -> Iterator[Row]:
    """Average the accuracy less LIBSVM's, in turn with one thing changed."""
    for classes in kinds.groups:
        for method in (CI, *kinds.methods(classes, VARIANTS)):
            place = ("variants", f"{classes}, mean", method, "", "accuracy less LIBSVM's")
            pairs = kinds.differences(classes, method, LIBSVM)
            if not pairs:
                yield compare(place, missing=kinds.absent(classes))
                continue
            (mean, error), note = average_of(list(pairs.values())), ""
            if method != CI:
                gain, its_error = average_of(list(kinds.differences(classes, method, CI).values()))
                note = f"; {_points(gain)} points against CI-SVM (se {100 * its_error:.1f})"
            worst = min(pairs, key=lambda dataset: pairs[dataset][0])
            yield compare(place, "", mean, note=f"se {error:.4f}{note}; lowest on {worst}, {_points(pairs[worst][0])}")


def _picture(choice: Mapping[str, Any], results: Results) -> Iterator[Panel]:
    """Figure 2: rows, and condensed rows with lines to their rows."""
    result = results[f"{job_name(choice['dataset'])}.picture"].numbers
    if result is None:
        return
    # A gap between two spokes.
    gap = [math.nan, math.nan]
    spokes = [
        point
        for centre, group in zip(result["condensed"], result["groups"], strict=True)
        for member in group
        if member >= 0
        for point in (centre, result["rows"][member], gap)
    ]
    triples = Line("triples", [point[0] for point in spokes], [(point[1],) for point in spokes], "-")
    for title, rows, codes, lines in (
        ("Figure 2(a): rows", "rows", "codes", []),
        ("Figure 2(b): condensed rows, means of triples", "condensed", "condensed_codes", [triples]),
    ):
        points = [(row, code) for row, code in zip(result[rows], result[codes], strict=True)]
        classes = [
            Line(f"class {code}", [row[0] for row, label in points if label == code],
                 [(row[1],) for row, label in points if label == code], ".")
            for code in sorted(set(result[codes]))
        ]  # fmt: skip
        yield Panel(title=f"{title}, {choice['dataset']}", x="feature 1", y="feature 2", lines=[*classes, *lines])


# --- times ----------------------------------------------------------------------------------------------------------

STEPS = ("condense", "search", "train")


def seconds_of(result: Result, method: str, *steps: str) -> float:
    """Median over the repeats of the time of some steps together."""
    return statistics.median(sum(repeat[method]["seconds"][step] for step in steps) for repeat in result["repeats"])


def _support(result: Result, method: str) -> float:
    """Median number of support vectors."""
    return statistics.median(repeat[method]["n_support"] for repeat in result["repeats"])


def _scratch(result: Result, method: str) -> float:
    """Median time of a method's search by LIBSVM; NaN where there is none."""
    values = [repeat[method]["scratch"]["seconds"] for repeat in result["repeats"] if "scratch" in repeat[method]]
    return statistics.median(values) if values else math.nan


def exponent(sizes: Sequence[float], values: Sequence[float]) -> float:
    """Slope of a line through logarithms, by least squares."""
    logs = [math.log(size) for size in sizes], [math.log(value) for value in values]
    return statistics.linear_regression(*logs).slope


_LESS_TIME = "less time, 33 % of the rows"
_AS_LONG = "the search takes as long on a third of the rows"
# Table, method in the numerator, name of the ratio, the paper's statement, value of each method, whether the ratio may
# be as far below 1 as above, why it may differ, and the form of both numbers.
_RATIOS: tuple[tuple[str, str, str, str, Callable[[Result, str], float], bool, str, str], ...] = (
    ("against LIBSVM", LIBSVM, "ratio of search, from scratch by LIBSVM", _LESS_TIME, _scratch, False, _AS_LONG,
     "{:.3g} and {:.3g} s"),
    ("against LIBSVM", LIBSVM, "ratio of search and training", _LESS_TIME,
     lambda result, method: seconds_of(result, method, "search", "train"), False, _AS_LONG, "{:.3g} and {:.3g} s"),
    # A constant model, which has no support vector, counts as one.
    ("support vectors", LIBSVM, "ratio of support vectors", "greatly reduced",
     lambda result, method: max(_support(result, method), 1.0), False,
     "the C and gamma that were chosen leave more support vectors", "{:g} and {:g}"),
    ("against FCM-SVM", FCM, "ratio of condensing", "significantly higher efficiency",
     lambda result, method: 1e3 * seconds_of(result, method, "condense"), False,
     "so many fuzzy centres hardly move from the rows they start at: few iterations", "{:.3g} and {:.3g} ms"),
    ("against FCM-SVM", FCM, "ratio of search and training", "almost flat",
     lambda result, method: seconds_of(result, method, "search", "train"), True,
     "equally many rows, of which one kind is easier to separate", "{:.3g} and {:.3g} s"),
)  # fmt: skip


def times(experiment: Experiment, results: Results) -> Iterator[Row | str]:
    """Tabulate times of Tables 2 and 3, ratios, growth, and large datasets."""
    settings, kinds = experiment.settings, _Kinds(experiment.settings, results)
    for table, other, metric, statement, value, flat, why, form in _RATIOS:
        if value is _scratch and not settings["scratch"]["repeats"]:
            continue

        def ratio(result: Result, value: Callable[..., float] = value, other: str = other) -> float:
            return value(result, other) / value(result, CI)

        def holds(number: float, flat: bool = flat) -> bool:
            return 1 / FLAT <= number <= FLAT if flat else number > 1.0

        for classes in kinds_of(settings):
            ratios = [ratio(result) for result in kinds.results[classes].values()]
            mean = statistics.geometric_mean(ratios) if ratios else None
            yield compare((table, f"{classes}, geometric mean", f"{other} over CI-SVM", "", metric), statement, mean,
                          mean is not None and holds(mean), why="not so on average",
                          note=f"{min(ratios):.3g} to {max(ratios):.3g}" if ratios else "",
                          missing=None if ratios else kinds.absent(classes))  # fmt: skip
            for dataset in kinds.groups[classes]:
                result = kinds.results[classes].get(dataset)
                place = (table, dataset, f"{other} over CI-SVM", f"{result['n_rows']} rows" if result else "", metric)
                if result is None:
                    yield compare(place, statement, missing=kinds.missing[dataset])
                    continue
                note = form.format(*(_support(result, method) if table == "support vectors" else value(result, method)
                                     for method in (other, CI)))  # fmt: skip
                if (table, metric) == ("against LIBSVM", "ratio of search and training"):
                    both = seconds_of(result, LIBSVM, *STEPS) / seconds_of(result, CI, *STEPS)
                    note += f"; with condensing {both:.3g}"
                yield compare(place, statement, ratio(result), holds(ratio(result)), why=why, note=note)
    yield from _growth(settings["growth"]["dataset"], results[f"{job_name(settings['growth']['dataset'])}.growth"])
    for dataset in settings["large"]:
        yield from _large(dataset, results[f"{job_name(dataset)}.large"])
    for classes, dataset, result, missing in kinds.each():
        for method in kinds.methods(classes):
            note = ""
            if result is not None:
                note = ", ".join(f"{step} {seconds_of(result, method, step):.3g}" for step in STEPS)
                note += f"; {result['n_rows']} x {result['n_features']}, {_support(result, method):g} support vectors"
            yield compare((f"times, {classes}", dataset, method, "", "seconds of search and training"), "",
                          None if result is None else seconds_of(result, method, "search", "train"), note=note,
                          missing=missing)  # fmt: skip
    found = [result for members in kinds.results.values() for result in members.values()]
    if found:
        shares = (statistics.median(seconds_of(result, CI, step) / seconds_of(result, CI, *STEPS) for result in found)
                  for step in STEPS)  # fmt: skip
        condensing, search, training = (f"{100 * share:.1f} %" for share in shares)
        yield (
            f"Of CI-SVM's time the median dataset spends {condensing} on condensing, {search} on search, {training} on "
            "training."
        )


def _growth(dataset: str, outcome: Outcome) -> Iterator[Row]:
    """Compare exponents with the paper's counts, and list the times behind them."""
    for kind, method, statement in (("ci", CI, "n^2"), ("fcm", FCM, "n^3")):
        numbers = {} if outcome.numbers is None else outcome.numbers[kind]
        sizes, seconds = numbers.get("n_rows", []), numbers.get("seconds", [])
        if len(sizes) < 2:
            missing = outcome.missing or ("no number", "one size only")
            yield compare(("growth", dataset, method, "", "exponent"), statement, missing=missing)
            continue
        ours, span = exponent(sizes, seconds), f"{sizes[0]} to {sizes[-1]} rows"
        place = ("growth", dataset, method, span, "exponent")
        if kind == "ci":
            law = exponent(sizes, [n * math.log(n) for n in sizes])
            row = compare((*place[:3], f"n log n, {span}", "exponent"), f"{law}", ours, within(EXPONENT_TOLERANCE),
                          why=f"n log n has {law:.3f} on these sizes")  # fmt: skip
            yield Row(**{**vars(row), "published": "", "explanation": f"n log n has {law:.3f} on these sizes"})
            why = "slower growth: ours finds neighbours in a tree, not in the matrix of all similarities"
        else:
            why = (
                "an iteration costs n times the n / 3 centres, and there are "
                f"{min(numbers['n_iter'])} to {max(numbers['n_iter'])} iterations: n^3 would take iterations in "
                "proportion to n"
            )
        yield compare(place, statement, ours, abs(ours - int(statement[-1])) <= EXPONENT_TOLERANCE, why=why)
        for n_rows, time in zip(sizes, seconds, strict=True):
            yield compare(("growth", dataset, method, f"{n_rows} rows", "seconds"), "", time)


def _large(dataset: str, outcome: Outcome) -> Iterator[Row]:
    """One large dataset: condensing, training with it and without, accuracies."""
    result, missing = outcome
    if result is None:
        for metric in ("seconds of condensing", "ratio of training", _DIFFERENCE):
            yield compare(("large", dataset, CI, "", metric), missing=missing)
        return
    seconds, accuracies, vectors = result["seconds"], result["accuracy"], result["n_support"]
    memory = "" if result["megabytes"] is None else (
        f"; {result['megabytes']:.0f} MB at the peak, data and library included"
    )  # fmt: skip
    training = seconds["all rows"] / seconds["condensed rows"]
    counted = seconds["all rows"] / (seconds["condense"] + seconds["condensed rows"])
    both = f"{seconds['all rows']:.3g} and {seconds['condensed rows']:.3g} s"
    difference = accuracies["condensed rows"] - accuracies["all rows"]

    def place(method: str, metric: str) -> tuple[str, ...]:
        return "large", dataset, method, _size(result), metric

    yield compare(place(CI, "seconds of condensing"), "", seconds["condense"],
                  note=f"label purity {result['purity']:.4f}{memory}")  # fmt: skip
    yield compare(place("LIBSVM over CI-SVM", "ratio of training"), _LESS_TIME, training, training > 1.0,
                  why="one training on all rows is as fast",
                  note=f"{both}; support vectors {vectors['all rows']} and {vectors['condensed rows']}")  # fmt: skip
    yield compare(place("LIBSVM over CI-SVM", "ratio of training, condensing counted"), _LESS_TIME, counted,
                  counted > 1.0, note=f"{both}, condensing {seconds['condense']:.3g} s",
                  why="one training with our solver takes less time than condensing: only a search pays for it",
                  )  # fmt: skip
    yield compare(place("CI-SVM less LIBSVM", _DIFFERENCE), "", difference, difference >= -POINTS,
                  note=f"{accuracies['condensed rows']:.4f} and {accuracies['all rows']:.4f}; on a third of the rows, "
                  f"drawn at random, {accuracies['a third of the rows']:.4f}")  # fmt: skip
