"""Statements of pmsvm-2025 on trends and ratios, judged by distributions, and ratios of the printed times."""

from __future__ import annotations

import csv
import functools
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from privsvm_bench.reproduction.distributions import Distribution
from privsvm_bench.reproduction.printed import Claim, all_medians, cell_id
from privsvm_bench.reproduction.trends import slope, trend
from reproduce.pmsvm.experiments import DATASETS, EPSILONS

METHODS = ("PrivateSVM", "OPERA", "PMSVM-WP", "GRPUA", "Linear", "PMSVM-GP", "PMSVM-AGP")
_WORDS = ("agrees", "refuted", "cannot discriminate")


def _claim(name: str, source: str, text: str, verdict: str, ours: str) -> Claim:
    return Claim(id=name, source=source, text=text, verdict=verdict, ours=ours)


def _cell(dataset: str, method: str, epsilon: int, suffix: str = "") -> str:
    return cell_id(dataset, method, f"epsilon={epsilon}{suffix}", "accuracy")


def _gain(distributions: Mapping[str, Distribution], dataset: str, epsilon: int) -> float | None:
    """Accuracy of PMSVM-WP less that of the better baseline."""
    own = all_medians(distributions, [_cell(dataset, "PMSVM-WP", epsilon)])
    others = all_medians(distributions, [_cell(dataset, name, epsilon) for name in METHODS[:2]])
    return own[0] - max(others) if own and others else None


def _weight(distributions: Mapping[str, Distribution]) -> list[Claim]:
    gains = {dataset: [_gain(distributions, dataset, epsilon) for epsilon in EPSILONS] for dataset in DATASETS}
    known = {
        dataset: [value for value in own if value is not None] for dataset, own in gains.items() if None not in own
    }
    found = []
    text = "the gain of PMSVM-WP is largest at small epsilon"
    others = {dataset: own for dataset, own in known.items() if dataset != "Vehicle"}
    # The larger of the gains at 1 and 2 against that at 8.
    wins = [dataset for dataset, own in others.items() if max(own[:2]) > own[3]]
    # So few sets decide nothing but if all do, or at most half.
    verdict = "agrees" if len(wins) == len(others) else "cannot discriminate"
    verdict = "not judged yet" if not others else "refuted" if len(wins) <= 0.5 * len(others) else verdict
    said = f"larger at 1 or 2 than at 8 on {len(wins)} of {len(others)} sets (without Vehicle)" if others else ""
    found.append(_claim("wp-small-epsilon", "Section 5.2", text, verdict, said))
    vehicle = known.get("Vehicle")
    text = "PMSVM-WP underperforms on Vehicle"
    if vehicle is None:
        found.append(_claim("wp-vehicle", "Section 5.2", text, "not judged yet", ""))
    else:
        below = sum(own < 0.0 for own in vehicle)
        listed = ", ".join(f"{own:+.3f}" for own in vehicle)
        said = f"median less the better baseline's: {listed} at epsilon 1, 2, 4, 8"
        found.append(_claim("wp-vehicle", "Section 5.2", text, "agrees" if below >= 2 else "refuted", said))
    return found


def _widens(distributions: Mapping[str, Distribution]) -> Claim:
    counts = dict.fromkeys(_WORDS, 0)
    for dataset in DATASETS:
        for method in METHODS:
            cells = [_cell(dataset, method, epsilon) for epsilon in EPSILONS]
            if all(cell in distributions for cell in cells):
                line = [distributions[cell] for cell in cells]
                counts[trend(slope([math.log2(epsilon) for epsilon in EPSILONS], line))] += 1
    total = sum(counts.values())
    verdict = "not judged yet" if not total else "agrees" if counts["agrees"] > 0.75 * total else "refuted"
    said = (
        f"slope of accuracy over log epsilon with its 95 % interval above 0 in {counts['agrees']} of {total} lines, "
        f"below 0 in {counts['refuted']}"
    )
    text = "the gap to training without noise widens as epsilon falls"
    return _claim("gap-widens", "Section 5.2; Figures 2, 4 and 5", text, verdict, said if total else "")


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
    verdict = "not judged yet" if not total else "agrees" if wins > 0.75 * total else "refuted"
    said = (
        f"with the clipping norm 1 throughout, the better of batches of 64 and 128 is above full batches in {wins} of "
        f"{total} cells; the printed full column is that of the norm 10"
    )
    text = "subsampling does better than full batches"
    return _claim("subsampling", "Appendix C.2; Table 11", text, verdict, said if total else "")


@functools.cache
def _measured() -> dict[tuple[str, str, str], float]:
    """Read times on one machine from the experiment's table."""
    place = Path(__file__).parents[2] / "reports/reproduce/pmsvm_time.csv"
    if not place.exists():
        return {}
    with open(place, encoding="utf-8", newline="") as handle:
        return {
            (row["dataset"], row["method"], row["metric"]): float(row["ours"])
            for row in csv.DictReader(handle)
            if row["table"] == "times" and row["ours"]
        }


def _printed_ratio(texts: Mapping[str, str], one: tuple[str, ...], other: tuple[str, ...]) -> tuple[float, ...] | None:
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
    return middle, middle * math.exp(-width), middle * math.exp(width)


def _times(texts: Mapping[str, str]) -> list[Claim]:
    found = []
    for name, metric, (one, ours_one), (other, ours_other), said in (
        ("wp-over-opera", "fit_seconds", ("PMSVM-WP", "PMSVM-WP, LIBLINEAR"), ("OPERA", "OPERA, LIBLINEAR"),
         "training of PMSVM-WP over OPERA's"),
        ("grpua-over-gp", "ms_per_iteration", ("GRPUA", "GRPUA, Opacus"), ("PMSVM-GP", "PMSVM-GP, Opacus"),
         "a step of GRPUA over one of PMSVM-GP"),
    ):  # fmt: skip
        for dataset in DATASETS:
            printed = _printed_ratio(texts, (dataset, one, metric), (dataset, other, metric))
            own = [_measured().get((dataset, method, metric)) for method in (ours_one, ours_other)]
            if printed is None:
                continue
            middle, low, high = printed
            text = f"{said}, {dataset}: {middle:.3g} (from the printed deviations {low:.2g} to {high:.2g})"
            if own[0] is None or own[1] is None:
                verdict, ours = "no data", ""
            elif high > 10.0 * low:
                verdict, ours = "cannot discriminate", f"{own[0] / own[1]:.3g} by the paper's own libraries"
            else:
                verdict = "agrees" if low <= own[0] / own[1] <= high else "refuted"
                ours = f"{own[0] / own[1]:.3g} by the paper's own libraries on one machine"
            found.append(_claim(f"{name}-{dataset}", "Table 4", text, verdict, ours))
    return found


def _noise(texts: Mapping[str, str], distributions: Mapping[str, Distribution]) -> Claim:
    """Negligible is what leaves the printed digits of Table 4 as they are."""
    text = "the time of adding noise is negligible"
    own = {
        dataset: (distributions[cell].median, float(printed))
        for dataset in DATASETS
        if (cell := f"{dataset}/PMSVM-WP//share of noise") in distributions
        and (printed := texts.get(cell_id(dataset, "PMSVM-WP", "", "fit_seconds")))
    }
    if not own:
        return _claim("noise-negligible", "Section 5.3", text, "not judged yet", "")
    worst = max(own, key=lambda dataset: own[dataset][0])
    holds = all(share * seconds < 0.005 for share, seconds in own.values())
    said = (
        f"largest share of the training's time {own[worst][0]:.2g} ({worst}) on {len(own)} sets: "
        f"{'no' if holds else 'some'} printed digit would change"
    )
    return _claim("noise-negligible", "Section 5.3", text, "agrees" if holds else "refuted", said)


def trend_claims(texts: Mapping[str, str], distributions: Mapping[str, Distribution]) -> Sequence[Claim]:
    """Check the statements on trends, and the ratios of printed times."""
    return [
        *_weight(distributions), _widens(distributions), _subsampling(distributions), *_times(texts),
        _noise(texts, distributions),
    ]  # fmt: skip
