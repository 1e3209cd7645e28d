"""Statements of pmsvm-2025 that no row of claims.csv can state, and the numbers that its rows read."""

from __future__ import annotations

import math
from collections.abc import Mapping

from reproduce.engine.distributions import Distribution
from reproduce.engine.judging import Judgement
from reproduce.engine.measurements import cell_id, constant
from reproduce.engine.printed import all_medians, difference
from reproduce.engine.statements import Claim, statement
from reproduce.engine.trends import Estimate
from reproduce.pmsvm.experiments import DATASETS, EPSILONS

METHODS = ("PrivateSVM", "OPERA", "PMSVM-WP", "GRPUA", "Linear", "PMSVM-GP", "PMSVM-AGP")
_MACHINE = "a ratio of times on other hardware"


def _cell(dataset: str, method: str, epsilon: int, suffix: str = "") -> str:
    return cell_id(dataset, method, f"epsilon={epsilon}{suffix}", "accuracy")


def _judge_loss(judgements: Mapping[str, Judgement]) -> Claim:
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
        "stored scripts name several losses svm, and the one that the notebooks call is not stored",
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
    return statement("averages", "Table 4", "the averages are the means of the rows", max(apart.values()) <= 0.01,
                     f"largest difference {max(apart.values()):.3g}")  # fmt: skip


def _divide_printed(texts: Mapping[str, str], one: tuple[str, ...], other: tuple[str, ...]) -> Estimate | None:
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


def _times(texts: Mapping[str, str], distributions: Mapping[str, Distribution]) -> list[Claim]:
    results = []
    for name, metric, (one, ours_one), (other, ours_other), ratio_text in (
        ("wp-over-opera", "fit_seconds", ("PMSVM-WP", "PMSVM-WP, LIBLINEAR"), ("OPERA", "OPERA, LIBLINEAR"),
         "training of PMSVM-WP over OPERA's"),
        ("grpua-over-gp", "ms_per_iteration", ("GRPUA", "GRPUA, Opacus"), ("PMSVM-GP", "PMSVM-GP, Opacus"),
         "a step of GRPUA over one of PMSVM-GP"),
    ):  # fmt: skip
        for dataset in DATASETS:
            printed = _divide_printed(texts, (dataset, one, metric), (dataset, other, metric))
            cells = [f"pmsvm_time/times/{dataset}/{method}//{metric}" for method in (ours_one, ours_other)]
            medians = all_medians(distributions, cells)
            if printed is None:
                continue
            text = f"{ratio_text}, {dataset}: {printed.middle:.3g}"
            bounds = f"from the printed deviations {printed.low:.2g} to {printed.high:.2g}"
            if not medians:
                claim = Claim(id=f"{name}-{dataset}", source="Table 4", text=text, verdict="no data")
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


def derive(distributions: Mapping[str, Distribution]) -> dict[str, Distribution]:
    """Subtract the columns of Table 9, the baselines from PMSVM-WP, and accuracies with noise from those without."""
    result = {}
    for name, item in distributions.items():
        other = distributions.get(name.replace(";lr_decay=no/", ";lr_decay=linear/"))
        if name.endswith(";lr_decay=no/accuracy") and other is not None:
            cell = name.replace("=no/accuracy", "/accuracy difference")
            result[cell] = difference(cell, item, other, 1e-3)
    for dataset in DATASETS:
        for epsilon in EPSILONS:
            medians = all_medians(distributions, [_cell(dataset, name, epsilon) for name in METHODS])
            if medians:
                name = f"gain/{dataset}/epsilon={epsilon}"
                result[name] = constant(name, medians[2] - max(medians[:2]))
            for method, private in zip(METHODS, medians, strict=False):
                noiseless = distributions.get(f"pmsvm_gap/without noise/{dataset}/{method}//accuracy")
                if noiseless is not None:
                    name = f"gap/{dataset}/{method}/epsilon={epsilon}"
                    result[name] = constant(name, noiseless.median - private)
    return result


def claims(
    texts: Mapping[str, str], judgements: Mapping[str, Judgement], distributions: Mapping[str, Distribution]
) -> list[Claim]:
    """Judge the statements on the loss, on printed numbers alone, and on times."""
    return [
        _judge_loss(judgements), _bold(texts), _averages(texts), *_times(texts, distributions),
        _noise(texts, distributions),
    ]  # fmt: skip
