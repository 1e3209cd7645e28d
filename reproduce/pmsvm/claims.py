"""Statements of pmsvm-2025 that no row of claims.csv can state, and the numbers that its rows read."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping

from privsvm.privacy.accounting import gaussian_epsilon, gaussian_noise_multiplier
from reproduce.engine.distributions import Distribution
from reproduce.engine.judging import Judgement
from reproduce.engine.measurements import cell_id, constant
from reproduce.engine.printed import all_medians, difference
from reproduce.engine.statements import Claim, statement
from reproduce.pmsvm.experiments import DATASETS, EPSILONS, SHARED
from reproduce.pmsvm.readings import judge_clipping, judge_loss, judge_margin

METHODS = ("PrivateSVM", "OPERA", "PMSVM-WP", "GRPUA", "Linear", "PMSVM-GP", "PMSVM-AGP")


def _cell(dataset: str, method: str, epsilon: int, suffix: str = "") -> str:
    return cell_id(dataset, method, f"epsilon={epsilon}{suffix}", "accuracy")


def _bold(texts: Mapping[str, str]) -> Claim:
    """Judge the accuracy that Table 2 prints in bold on Vehicle at epsilon 8, of the weight perturbations."""
    dataset, epsilon, bold = "Vehicle", 8, "PrivateSVM"
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
    claim = statement(
        "noise-negligible", "Section 5.3", "the time of adding noise is negligible", holds if shares else None,
        f"largest share of the training's time {share:.2g} ({worst}) on {len(shares)} sets: "
        f"{'no' if holds else 'some'} printed digit would change",
    )  # fmt: skip
    return dataclasses.replace(claim, cells=("*/PMSVM-WP//share of noise",))


def derive(distributions: Mapping[str, Distribution]) -> dict[str, Distribution]:
    """Derive differences of columns, gains, gaps to training without noise, and epsilons of the stored code's noise."""
    result, twice = {}, "pmsvm_table2/true epsilon/{}/PMSVM-WP/epsilon=1{}/{}"
    for dataset, metric in itertools.product(DATASETS, ("true epsilon", "lower bound on epsilon")):
        stated = distributions.get(twice.format(dataset, "", metric))
        if stated is not None and stated.median > 0.0:
            # The stored code has twice the noise of the text.
            multiplier = 2.0 * gaussian_noise_multiplier(stated.median, SHARED["delta"])
            name = twice.format(dataset, ";noise of the stored code", metric)
            result[name] = constant(name, gaussian_epsilon(multiplier, SHARED["delta"]))
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
        judge_loss(judgements, distributions), judge_margin(distributions), judge_clipping(judgements, distributions),
        _bold(texts), _averages(texts), _noise(texts, distributions),
    ]  # fmt: skip
