"""Measurements of ci-svm-2018: accuracies, their differences, and times; tables.csv has the captions."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator, Sequence

from reproduce.ci_svm.experiments import CI, FCM, LIBSVM, RSVM, job_name, kinds_of, methods_for
from reproduce.engine.experiment import Experiment, Result, Results
from reproduce.engine.measurements import Measurement, measure

# Methods of the paper; further ones are variants of CI-SVM.
_METHODS = (LIBSVM, CI, FCM, RSVM)


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


def search_accuracies(result: Result, method: str) -> list[float]:
    """Accuracies that the searches found on a method's own rows."""
    return [accuracy for repeat in result["repeats"] for accuracy in repeat["methods"][method]["searched"]]


def paired_difference(
    result: Result, method: str, other: str, accuracies: Callable[[Result, str], list[float]] = fold_accuracies
) -> tuple[float, float]:
    """Mean accuracy of a method less the other's on the same folds, and its standard error.

    The error is Nadeau and Bengio's (2003): training folds overlap, so that the variance of a difference counts
    ``1/J + 1/4`` times, not ``1/J`` times, for J folds of a fifth.
    """
    pairs = zip(accuracies(result, method), accuracies(result, other), strict=True)
    values = [accuracy - other_accuracy for accuracy, other_accuracy in pairs]
    spread = statistics.variance(values) if len(values) > 1 else 0.0
    return statistics.fmean(values), math.sqrt((1.0 / len(values) + 0.25) * spread)


def average(pairs: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Average differences; with the standard error."""
    return statistics.fmean(mean for mean, _ in pairs), math.hypot(*(error for _, error in pairs)) / len(pairs)


def mean_of(result: Result, method: str, field: str) -> float:
    """Mean of a field over all folds of all repeats."""
    return statistics.fmean(value for repeat in result["repeats"] for value in repeat["methods"][method][field])


def accuracy(experiment: Experiment, results: Results) -> Iterator[Measurement]:
    """Accuracies of Figures 3 and 4, differences of methods by dataset and on average, and condensed rows."""
    settings = experiment.settings
    for classes, datasets in kinds_of(settings).items():
        methods = methods_for(settings, classes)
        found = {name: results[job_name(name)] for name in datasets if job_name(name) in results}
        for dataset, result in found.items():
            for method in methods:
                if method in _METHODS:
                    values = repeat_accuracies(result, method)
                    yield from measure("accuracy", dataset, method, "", accuracy=statistics.fmean(values),
                                       accuracy_SD=statistics.stdev(values) if len(values) > 1 else 0.0)  # fmt: skip
            ratio = mean_of(result, CI, "n_rows") / mean_of(result, LIBSVM, "n_rows")
            yield from measure("condensed rows", dataset, CI, "", size_ratio=ratio,
                               label_purity=mean_of(result, CI, "purity"))  # fmt: skip
            yield from measure("condensed rows", dataset, FCM, "", label_purity=mean_of(result, FCM, "purity"))
        groups = {f"{classes}, mean": list(found)}
        named = [name for name in found if name in settings.get("named_kinds", [])]
        if classes == "two-class" and named:
            groups["two-class, the kinds named, mean"] = named
        pairs = [(CI, other) for other in (LIBSVM, FCM, RSVM) if other in methods]
        pairs += [(variant, LIBSVM) for variant in methods if variant not in _METHODS]
        for method, other in pairs:
            differences = {name: paired_difference(result, method, other) for name, result in found.items()}
            yield from _differences(differences, groups, method, other, "")
        for method in (CI, FCM):
            differences = {name: paired_difference(result, method, LIBSVM, search_accuracies)
                           for name, result in found.items()}  # fmt: skip
            yield from _differences(differences, groups, method, LIBSVM, "searched ")
    picture = settings["picture"]["dataset"]
    if f"{job_name(picture)}.picture" in results:
        yield from _picture(picture, results[f"{job_name(picture)}.picture"])


def variants(experiment: Experiment, results: Results) -> Iterator[Measurement]:
    """Differences of methods under choices that the paper leaves open, by dataset and on average."""
    pairs = (
        (CI, LIBSVM), (f"{CI}, features from -1 to 1", f"{LIBSVM}, features from -1 to 1"),
        (f"{CI} without weights", CI), (RSVM, LIBSVM), (CI, RSVM),
    )  # fmt: skip
    for classes, datasets in kinds_of(experiment.settings).items():
        found = {name: results[job_name(name)] for name in datasets if job_name(name) in results}
        for method, other in pairs if classes == "multi-class" else pairs[:3]:
            for kind, accuracies in (("", fold_accuracies), ("searched ", search_accuracies)):
                differences = {name: paired_difference(result, method, other, accuracies)
                               for name, result in found.items()}  # fmt: skip
                yield from _differences(differences, {f"{classes}, mean": list(found)}, method, other, kind)


def _picture(dataset: str, result: Result) -> Iterator[Measurement]:
    """Figure 2: two features of rows and of condensed rows, by class."""
    for rows, codes in (("rows", "codes"), ("condensed", "condensed_codes")):
        for code in sorted(set(result[codes])):
            points = [row for row, own in zip(result[rows], result[codes], strict=True) if own == code]
            values = [value for point in points for value in point]
            yield from measure("Figure 2", dataset, rows, f"class {code}", points=values)


def _differences(
    differences: dict[str, tuple[float, float]], groups: dict[str, list[str]], method: str, other: str, kind: str
) -> Iterator[Measurement]:
    """List differences by dataset, and their averages over groups of datasets."""
    means = {name: average([differences[member] for member in members]) for name, members in groups.items() if members}
    for name, (difference, error) in {**means, **differences}.items():
        metrics = {f"difference of {kind}accuracies": difference, f"{kind}standard error": error}
        yield from measure("differences", name, f"{method} less {other}", "", **metrics)


def seconds_of(result: Result, method: str, *steps: str) -> float:
    """Median over the repeats of the time of some steps together."""
    return statistics.median(sum(repeat[method]["seconds"][step] for step in steps) for repeat in result["repeats"])


def times(experiment: Experiment, results: Results) -> Iterator[Measurement]:
    """Tabulate times of Tables 2 and 3, and growth."""
    settings = experiment.settings
    for classes, datasets in kinds_of(settings).items():
        for dataset in datasets:
            if job_name(dataset) not in results:
                continue
            result = results[job_name(dataset)]
            yield from measure("times", dataset, "all rows", "", rows=result["n_rows"], features=result["n_features"])
            for method in methods_for(settings, classes):
                support = statistics.median(repeat[method]["n_support"] for repeat in result["repeats"])
                metrics = {"seconds of search and training": seconds_of(result, method, "search", "train"),
                           "seconds of condensing": seconds_of(result, method, "condense"),
                           # A constant model, which has no support vector, counts as one.
                           "support vectors": max(support, 1.0)}  # fmt: skip
                yield from measure("times", dataset, method, "", **metrics)
    growth = settings["growth"]["dataset"]
    for kind, method in (("ci", CI), ("fcm", FCM)):
        numbers = results.get(f"{job_name(growth)}.growth", {}).get(kind, {"n_rows": [], "seconds": []})
        for n_rows, seconds in zip(numbers["n_rows"], numbers["seconds"], strict=True):
            yield from measure("growth", growth, method, f"{n_rows} rows", seconds=seconds)
