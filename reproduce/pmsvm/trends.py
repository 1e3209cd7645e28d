"""Statements of pmsvm-2025 on trends and ratios, judged by distributions, and ratios of the printed times."""

from __future__ import annotations

import csv
import functools
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from reproduce.engine.distributions import Distribution
from reproduce.engine.judging import Judgement
from reproduce.engine.printed import all_medians, cell_id
from reproduce.engine.statements import Claim, statement
from reproduce.engine.trends import TYPICALLY, Estimate, judge_word, slope
from reproduce.pmsvm.experiments import DATASETS, EPSILONS

METHODS = ("PrivateSVM", "OPERA", "PMSVM-WP", "GRPUA", "Linear", "PMSVM-GP", "PMSVM-AGP")
_MACHINE = "a ratio of times on other hardware"


def _cell(dataset: str, method: str, epsilon: int, suffix: str = "") -> str:
    return cell_id(dataset, method, f"epsilon={epsilon}{suffix}", "accuracy")


def _gain(distributions: Mapping[str, Distribution], dataset: str, epsilon: int) -> float | None:
    """Accuracy of PMSVM-WP less the accuracy of the better baseline."""
    weighted = all_medians(distributions, [_cell(dataset, "PMSVM-WP", epsilon)])
    baselines = all_medians(distributions, [_cell(dataset, name, epsilon) for name in METHODS[:2]])
    return weighted[0] - max(baselines) if weighted and baselines else None


def _weight(distributions: Mapping[str, Distribution]) -> list[Claim]:
    gains = {dataset: [_gain(distributions, dataset, epsilon) for epsilon in EPSILONS] for dataset in DATASETS}
    complete = {
        dataset: [value for value in values if value is not None]
        for dataset, values in gains.items()
        if None not in values
    }
    others = {dataset: values for dataset, values in complete.items() if dataset != "Vehicle"}
    # The larger of the gains at 1 and 2 against that at 8.
    wins = [dataset for dataset, values in others.items() if max(values[:2]) > values[3]]
    undecided = 0.5 * len(others) < len(wins) < len(others)
    result = [
        statement(
            "wp-small-epsilon", "Section 5.2", "the gain of PMSVM-WP is largest at small epsilon",
            len(wins) == len(others) if others else None,
            f"larger at 1 or 2 than at 8 on {len(wins)} of {len(others)} sets (without Vehicle)",
            "so few sets decide only if it holds on all of them, or on at most half" if undecided else "",
        )
    ]  # fmt: skip
    vehicle = complete.get("Vehicle", [])
    listed = ", ".join(f"{gain:+.3f}" for gain in vehicle)
    result.append(
        statement(
            "wp-vehicle", "Section 5.2", "PMSVM-WP underperforms on Vehicle",
            sum(gain < 0.0 for gain in vehicle) >= 2 if vehicle else None,
            f"median less the better baseline's: {listed} at epsilon 1, 2, 4, 8",
        )
    )  # fmt: skip
    return result


def _widens(distributions: Mapping[str, Distribution]) -> Claim:
    verdicts = []
    for dataset in DATASETS:
        for method in METHODS:
            cells = [_cell(dataset, method, epsilon) for epsilon in EPSILONS]
            if all(cell in distributions for cell in cells):
                line = [distributions[cell] for cell in cells]
                verdicts.append(judge_word("rises", slope([math.log2(epsilon) for epsilon in EPSILONS], line)))
    holds = verdicts.count("agrees")
    return statement(
        "gap-widens", "Section 5.2; Figures 2, 4 and 5", "the gap to training without noise widens as epsilon falls",
        holds > TYPICALLY * len(verdicts) if verdicts else None,
        f"slope of accuracy over log epsilon with its 95 % interval above 0 in {holds} of {len(verdicts)} lines, below "
        f"0 in {verdicts.count('refuted')}",
    )  # fmt: skip


def _subsampling(distributions: Mapping[str, Distribution]) -> Claim:
    wins = total = 0
    for dataset in DATASETS:
        for epsilon in EPSILONS:
            batches = all_medians(
                distributions, [_cell(dataset, "PMSVM-AGP", epsilon, f";batch={batch}") for batch in ("64", "128")]
            )
            full = all_medians(distributions, [_cell(dataset, "PMSVM-AGP", epsilon, ";batch=full")])
            if batches and full:
                total += 1
                wins += max(batches) > full[0]
    return statement(
        "subsampling", "Appendix C.2; Table 11", "subsampling does better than full batches",
        wins > TYPICALLY * total if total else None,
        f"with the clipping norm 1 throughout, the better of batches of 64 and 128 is above full batches in {wins} of "
        f"{total} cells; the printed full column is that of the norm 10",
    )  # fmt: skip


@functools.cache
def _table(experiment: str) -> list[dict[str, str]]:
    """Read the committed table of an experiment."""
    path = Path(__file__).parents[2] / f"reports/reproduce/{experiment}.csv"
    if not path.exists():
        return []
    with open(path, encoding="utf-8", newline="") as handle:
        return list(csv.DictReader(handle))


def _privacy() -> Claim:
    """Bound the epsilon of the released weight perturbation below, where the paper claims 1."""
    rows = [row for row in _table("pmsvm_table2") if row["method"] == "PMSVM-WP" and row["setting"] == "epsilon=1"
            and row["ours"]]  # fmt: skip
    bounds, true = (
        {row["dataset"]: float(row["ours"]) for row in rows if row["metric"] == metric}
        for metric in ("lower bound on epsilon", "true epsilon")
    )
    ours = brief = ""
    if bounds and true:
        brief = (
            f"weight perturbation: epsilon is at least {min(bounds.values()):.2g} to {max(bounds.values()):.2g} where "
            "1 is claimed"
        )
        worst = max(bounds, key=lambda dataset: bounds[dataset])
        ours = (
            f"one replaced row within the range of every feature moves the weights so far that epsilon is at least "
            f"{min(bounds.values()):.2g} to {max(bounds.values()):.2g} (the witness on {worst}) where 1 is claimed; by "
            f"the norms that rows reach after min-max scaling it is {min(true.values()):.2g} to "
            f"{max(true.values()):.2g}"
        )
    return statement(
        "privacy", "Sections 3 and 5; released notebook",
        "PMSVM-WP as released satisfies differential privacy at the claimed epsilon",
        max(bounds.values()) <= 1.0 if bounds else None, ours, brief=brief,
    )  # fmt: skip


def _released_loss(judgements: Mapping[str, Judgement]) -> Claim:
    """Look at Table 2's PMSVM-GP, which the released loss of the name svm gives."""
    cells = [
        judgement
        for judgement in judgements.values()
        if judgement.distribution
        and (judgement.printed.source, judgement.printed.method) == ("Table 2", "PMSVM-GP")
        and judgement.printed.metric == "accuracy"
    ]
    inside = sum(cell_judgement.verdict == "agrees" for cell_judgement in cells)
    return statement(
        "loss", "Section 3; equations 12 to 15", "PMSVM-GP trains the smoothed margin loss", False if cells else None,
        f"the released loss of the name svm is softmax cross-entropy; with it {inside} of {len(cells)} printed "
        "accuracies of Table 2 lie inside",
    )  # fmt: skip


# Accuracies that Table 2 prints in bold on Vehicle at epsilon 8, of the weight perturbations.
_BOLD = ("Vehicle", 8, "PrivateSVM")


def _bold(texts: Mapping[str, str]) -> Claim:
    dataset, epsilon, bold = _BOLD
    printed = {method: float(texts[_cell(dataset, method, epsilon)]) for method in METHODS[:3]}
    best = max(printed, key=lambda method: printed[method])
    return statement(
        "bold", "Table 2", "the best accuracy within each kind of perturbation is in bold", best == bold,
        f"on {dataset} at epsilon {epsilon} {printed[bold]:g} of {bold} is, and {printed[best]:g} of {best} is not",
    )  # fmt: skip


def _averages(texts: Mapping[str, str]) -> Claim:
    """Compare the column Average of Table 4 with its rows, which are rounded to two digits."""
    apart = {}
    for method, metric in (("OPERA", "fit_seconds"), ("PMSVM-WP", "fit_seconds"), ("GRPUA", "ms_per_iteration"),
                           ("PMSVM-GP", "ms_per_iteration")):  # fmt: skip
        rows = [float(texts[cell_id(dataset, method, "", metric)]) for dataset in DATASETS]
        apart[method] = abs(sum(rows) / len(rows) - float(texts[cell_id("average", method, "", metric)]))
    return statement("averages", "Table 4", "the averages are those of the rows", max(apart.values()) <= 0.01,
                     f"largest difference {max(apart.values()):.3g}")  # fmt: skip


def _measured() -> dict[tuple[str, str, str], float]:
    """Return times on one machine from the experiment's table."""
    return {
        (row["dataset"], row["method"], row["metric"]): float(row["ours"])
        for row in _table("pmsvm_time")
        if row["table"] == "times" and row["ours"]
    }


def _printed_ratio(texts: Mapping[str, str], one: tuple[str, ...], other: tuple[str, ...]) -> Estimate | None:
    """Ratio of two printed means with two standard errors on the scale of logarithms."""
    values = []
    for dataset, method, metric in (one, other):
        mean, deviation = (float(texts.get(cell_id(dataset, method, "", name), "nan") or "nan")
                           for name in (metric, f"{metric} SD"))  # fmt: skip
        # Rounding of the last digit counts as well.
        values.append((mean, math.hypot(deviation, 0.005 / math.sqrt(3.0))))
    if any(math.isnan(mean) or mean <= 0.0 for mean, _ in values):
        return None
    (first, error), (second, other_error) = values
    width = 2.0 * math.hypot(error / first, other_error / second)
    middle = first / second
    return Estimate(middle, middle * math.exp(-width), middle * math.exp(width))


def _times(texts: Mapping[str, str]) -> list[Claim]:
    results = []
    for name, metric, (one, ours_one), (other, ours_other), ratio_text in (
        ("wp-over-opera", "fit_seconds", ("PMSVM-WP", "PMSVM-WP, LIBLINEAR"), ("OPERA", "OPERA, LIBLINEAR"),
         "training of PMSVM-WP over OPERA's"),
        ("grpua-over-gp", "ms_per_iteration", ("GRPUA", "GRPUA, Opacus"), ("PMSVM-GP", "PMSVM-GP, Opacus"),
         "a step of GRPUA over one of PMSVM-GP"),
    ):  # fmt: skip
        for dataset in DATASETS:
            printed = _printed_ratio(texts, (dataset, one, metric), (dataset, other, metric))
            medians = [_measured().get((dataset, method, metric)) for method in (ours_one, ours_other)]
            if printed is None:
                continue
            text = f"{ratio_text}, {dataset}: {printed.middle:.3g}"
            bounds = f"from the printed deviations {printed.low:.2g} to {printed.high:.2g}"
            if medians[0] is None or medians[1] is None:
                claim = Claim(id=f"{name}-{dataset}", source="Table 4", text=text, verdict="no data", ours="")
            else:
                claim = statement(
                    f"{name}-{dataset}", "Table 4", text, True,
                    f"{medians[0] / medians[1]:.3g} by the paper's own libraries on one machine; {bounds}", _MACHINE,
                )  # fmt: skip
            results.append(claim)
    return results


def _noise(texts: Mapping[str, str], distributions: Mapping[str, Distribution]) -> Claim:
    """Judge "negligible": the printed digits of Table 4 stay the same."""
    shares = {
        dataset: (distributions[cell].median, float(printed))
        for dataset in DATASETS
        if (cell := f"{dataset}/PMSVM-WP//share of noise") in distributions
        and (printed := texts.get(cell_id(dataset, "PMSVM-WP", "", "fit_seconds")))
    }
    worst, (share, _) = max(shares.items(), key=lambda item: item[1][0], default=("", (0.0, 0.0)))
    holds = all(share * seconds < 0.005 for share, seconds in shares.values())
    return statement(
        "noise-negligible", "Section 5.3", "the time of adding noise is negligible", holds if shares else None,
        f"largest share of the training's time {share:.2g} ({worst}) on {len(shares)} sets: "
        f"{'no' if holds else 'some'} printed digit would change",
    )  # fmt: skip


def trend_claims(
    texts: Mapping[str, str], judgements: Mapping[str, Judgement], distributions: Mapping[str, Distribution]
) -> Sequence[Claim]:
    """Judge the statements on privacy, trends and times."""
    return [
        _privacy(), _released_loss(judgements), _bold(texts), *_weight(distributions), _widens(distributions),
        _subsampling(distributions), _averages(texts), *_times(texts), _noise(texts, distributions),
    ]  # fmt: skip
