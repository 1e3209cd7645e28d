"""Rows of dpsvmdvp-2019's Figures 1 to 6 beside the numbers in the text; tables.csv has their captions."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from reproduce.dpsvmdvp.experiments import MAIN
from reproduce.engine.comparison import Published, Row, compare, ruled_by, within
from reproduce.engine.experiment import Experiment, Outcome, Result, Results

# An accuracy this near to a coin's counts as chance, this near to the SVM's as its level.
CHANCE, NEAR_CHANCE, NEAR_SVM = 0.5, 0.1, 0.02
KNEES = ("lower knee", "upper knee")
# Why an accuracy at one epsilon differs, by dataset.
_WHY_SERIES = {
    "cod-rna": "the test rows are others than the paper's, and how cod-rna was scaled is not printed",
    "splice": "at this epsilon the mean of three draws hangs on few support vectors, see the budget experiment",
}


def knees(epsilons: Sequence[float], curve: Sequence[float], svm: float) -> tuple[float | None, float | None]:
    """Find the epsilons where a curve leaves chance, and where it has reached the SVM; None if it does not.

    All accuracies up to the first are near chance, and all from the second on near the SVM's.
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


def _knee_row(
    place: Sequence[str], printed: str, knee: float | None, epsilons: Sequence[float], why: str, note: str = "",
    open_choice: bool = False,
) -> Row:  # fmt: skip
    """Compare a knee: within tolerance at the printed point of the grid, or a neighbour; it may be off the grid."""
    grid = [float(epsilon) for epsilon in epsilons]
    if knee is None:
        verdict = "ruled out" if open_choice else "beyond tolerance"
        return compare(place, printed, missing=(verdict, "; ".join(filter(None, (why, note)))))
    near = abs(grid.index(float(printed)) - grid.index(float(knee))) <= 1
    return compare(place, printed, knee, ruled_by(near), why=why, note=note, open_choice=open_choice)


# --- Figures 1 and 2 ------------------------------------------------------------------------------------------------


def budget(experiment: Experiment, results: Results) -> Iterator[Row | str]:
    """Accuracy against epsilon, and where its knees are for each set of options."""
    settings, published = experiment.settings, experiment.published()
    for job, parameters in experiment.jobs(settings).items():
        outcome = results[job]
        if parameters["kind"] == "draws":
            yield from _draws(experiment, published, outcome)
            continue
        dataset, option = parameters["dataset"], f"scaling {parameters['scaling']}; C={parameters['C']:g}"
        first = all(parameters[key] == value for key, value in settings["options"][0].items())
        for variant in parameters["variants"]:
            yield from _knee_rows(published, parameters, option, outcome, variant, first)
        printed = published.get((dataset, "SVM", "", "accuracy"))
        result, missing = outcome
        svm = None if result is None else float(result["SVM"])
        if printed is not None:
            yield compare(("knees" if first else "other choices", dataset, "SVM", option, "accuracy"), printed, svm,
                          within(NEAR_SVM), why="another level of the SVM itself", missing=missing,
                          open_choice=not first)  # fmt: skip
        yield from _curves(parameters, option, outcome, first)


def _knee_rows(
    published: Published, parameters: Mapping[str, Any], option: str, outcome: Outcome, variant: str, first: bool
) -> Iterator[Row]:
    """Compare both knees of one variant under one option; `first` where the option is the paper's."""
    result, missing = outcome
    dataset, epsilons, main = parameters["dataset"], parameters["epsilons"], first and variant == MAIN
    for index, metric in enumerate(KNEES):
        place = ("knees" if main else "other choices", dataset, f"DPSVMDVP ({variant})", option, metric)
        printed = published[dataset, "DPSVMDVP", "", metric]
        if result is None:
            yield compare(place, printed, missing=missing)
            continue
        curve, svm = _means(result["variants"][variant]), result["SVM"]
        knee = knees(epsilons, curve, svm)[index]
        why = _why_knee(metric, variant, knee, curve, svm)
        yield _knee_row(place, printed, knee, epsilons, why, open_choice=not main)


def _why_knee(metric: str, variant: str, knee: float | None, curve: Sequence[float], svm: float) -> str:
    low, high = min(curve), max(curve)
    if max(abs(value - svm) for value in curve) <= NEAR_SVM:
        text = "the SVM's level everywhere: next to no noise is added"
    elif high <= CHANCE + NEAR_CHANCE and variant.startswith(("abs", "uniform")):
        text = "at chance everywhere: the noise is what the formula promises"
    elif high <= CHANCE + NEAR_CHANCE:
        text = "at chance everywhere: the errors do not cancel, so their sum and the noise are large"
    elif knee is None and metric == "lower knee":
        text = "above chance, or another constant answer, at the smallest epsilon"
    elif knee is None:
        text = "the SVM's level is not reached"
    else:
        text = "the noise scales with a sum of errors that is round-off, and hangs on few support vectors"
    return f"{text} (accuracy from {low:.3f} to {high:.3f} on the grid, SVM {svm:.3f})"


def _curves(parameters: Mapping[str, Any], option: str, outcome: Outcome, first: bool) -> Iterator[Row]:
    """Every accuracy; the paper has a number only for the smallest epsilons of cod-rna."""
    result, missing = outcome
    dataset = parameters["dataset"]
    for variant in parameters["variants"]:
        curve = None if result is None else _means(result["variants"][variant])
        for index, epsilon in enumerate(parameters["epsilons"]):
            stated = dataset == "cod-rna" and epsilon <= 0.001 and variant == MAIN and first
            yield compare(("curves", dataset, f"DPSVMDVP ({variant})", f"{option}; epsilon={epsilon:g}", "accuracy"),
                          "0.50" if stated else "", None if curve is None else curve[index], within(NEAR_CHANCE),
                          why="the curve leaves chance earlier; the mean of three draws is not firmer than that",
                          missing=missing)  # fmt: skip
    yield compare(("curves", dataset, "SVM", option, "accuracy"), "", None if result is None else result["SVM"],
                  missing=missing)  # fmt: skip
    private = None if result is None else result["PrivateSVM"]
    if result is not None and private is None:
        missing = ("not available", result["why_no_PrivateSVM"])
    for index, epsilon in enumerate(parameters["epsilons"]):
        yield compare(("curves", dataset, "PrivateSVM", f"{option}; epsilon={epsilon:g}", "accuracy"), "",
                      None if private is None else statistics.fmean(private[index]), missing=missing)  # fmt: skip


def _draws(experiment: Experiment, published: Published, outcome: Outcome) -> Iterator[Row | str]:
    """Take the paper's three draws again and again, around one trained model."""
    (result, missing), choice = outcome, experiment.settings["draws"]
    epsilons, three = experiment.settings["epsilons"], experiment.settings["repeats"]
    for index, metric in enumerate(KNEES):
        place = ("draws", choice["dataset"], f"DPSVMDVP ({MAIN})", f"{choice['times']} times {three} draws", metric)
        printed = published[choice["dataset"], "DPSVMDVP", "", metric]
        if result is None:
            yield compare(place, printed, missing=missing)
            continue
        found = [
            knees(epsilons, [statistics.fmean(row[start : start + three]) for row in result["variants"][MAIN]],
                  result["SVM"])[index]
            for start in range(0, choice["times"] * three, three)
        ]  # fmt: skip
        reached = sorted(knee for knee in found if knee is not None)
        nowhere = f"nowhere on the grid {len(found) - len(reached)} of {len(found)} times"
        note = f"from {reached[0]:g} to {reached[-1]:g}, and {nowhere}" if reached else nowhere
        yield _knee_row(place, printed, reached[len(reached) // 2] if reached else None, epsilons, "", note)
    if result is not None:
        scales = result["scales"]
        yield (
            f"{choice['dataset']}: at epsilon 1 the Laplace scales of the {result['n_free']} free support vectors have "
            f"a median of {scales['median']:.1e}, and the largest is {scales['largest']:.1e}: whether a curve is at "
            "chance hangs on a few of them. All are proportional to the sum of the errors, "
            f"{abs(scales['sum_of_errors']):.1e}, which is the round-off of kernel values in single precision; in "
            f"double precision the sum is {abs(scales['sum_of_errors_double']):.1e}."
        )


# --- Figures 3 to 6 -------------------------------------------------------------------------------------------------


def _draws_of(parameters: Mapping[str, Any], result: Result | None) -> dict[str, list[float]]:
    """Accuracies of each method at the one epsilon; nothing of a method that did not run."""
    if result is None:
        return {}
    results = {"SVM": [result["SVM"]]}
    results |= {f"DPSVMDVP ({name})": result["variants"][name][0] for name in parameters["variants"]}
    return results | ({} if result["PrivateSVM"] is None else {"PrivateSVM": result["PrivateSVM"][0]})


def _series(experiment: Experiment, results: Results, what: str) -> Iterator[Row]:
    """Rows of an experiment that varies `what` (``n_train`` or ``n_features``) at one epsilon.

    The paper's numbers are for the main variant, in the file's order.
    """
    published, epsilon = experiment.published(), experiment.settings["epsilons"][0]
    for job, parameters in experiment.jobs(experiment.settings).items():
        (result, missing), dataset = results[job], parameters["dataset"]
        in_order, accuracies = parameters["order"] == "file", _draws_of(parameters, result)
        setting = f"epsilon={epsilon:g};{what}={parameters[what]}"
        order = "" if in_order and what == "n_features" else ";first rows" if in_order else ";shuffled"
        printed = published.get((dataset, "DPSVMDVP", setting, "accuracy"))
        main = accuracies.get(f"DPSVMDVP ({MAIN})", [0.0])
        why = ""
        if result is not None:
            firm = "the noise plays no part: " if abs(statistics.fmean(main) - result["SVM"]) < 0.005 else ""
            why = (
                f"{firm}our draws go from {min(main):.3f} to {max(main):.3f}, our SVM has {result['SVM']:.3f}; "
                f"{_WHY_SERIES[dataset]}"
            )
        for method in ("SVM", *(f"DPSVMDVP ({name})" for name in parameters["variants"]), "PrivateSVM"):
            absent = missing
            if result is not None and method not in accuracies:
                absent = ("not available", result["why_no_PrivateSVM"])
            yield compare(
                (what, dataset, method, setting + order, "accuracy"),
                printed if method == f"DPSVMDVP ({MAIN})" and in_order else "",
                statistics.fmean(accuracies[method]) if method in accuracies else None,
                within(0.02), why=why, missing=absent,
            )  # fmt: skip


def size(experiment: Experiment, results: Results) -> Iterator[Row | str]:
    """Accuracy against the number of training rows: the first of the file, and drawn at random."""
    yield from _series(experiment, results, "n_train")
    shares = [
        f"{100 * result['positive_share']:.1f} % of the first {result['n_train']}"
        for job, parameters in experiment.jobs(experiment.settings).items()
        if (parameters["dataset"], parameters["order"]) == ("cod-rna", "file")
        and (result := results[job].numbers) is not None
    ]
    if shares:
        yield (
            f"The cod-rna file is not shuffled: positive rows are {', '.join(shares)}. Shuffled rows have the same "
            "numbers of rows, drawn at random."
        )


def features(experiment: Experiment, results: Results) -> Iterator[Row]:
    """Accuracy against the number of features, and whether it rises."""
    yield from _series(experiment, results, "n_features")
    for dataset in experiment.settings["datasets"]:
        low, *_, high = experiment.settings["features"][dataset]
        (fewest, gone), (most, also_gone) = (results[f"{dataset}.d-{width}"] for width in (low, high))
        place = ("rise", dataset, f"DPSVMDVP ({MAIN})", f"from {low} to {high} features", "rise of accuracy")
        rise, why = None, ""
        if fewest is not None and most is not None:
            first, last = (statistics.fmean(end["variants"][MAIN][0]) for end in (fewest, most))
            rise = last - first
            why = (
                "the noise differs more from training set to training set; the SVM itself goes from "
                f"{fewest['SVM']:.3f} to {most['SVM']:.3f}"
            )
        yield compare(place, "rises", rise, rise is not None and rise > 0.0, why=why, missing=gone or also_gone)
