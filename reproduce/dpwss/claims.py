"""Statements of dpwss-2021 that no row of claims.csv can state, and the numbers that its rows read."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping

import scipy.stats

from reproduce.dpwss.experiments import TABLE3_SETTINGS
from reproduce.engine.distributions import LEVELS, Distribution
from reproduce.engine.judging import STRONG_RATIO, Judgement, log_density
from reproduce.engine.measurements import cell_id, constant
from reproduce.engine.statements import Claim, group_cells, statement

CAPABILITY = ("AUC", "accuracy", "precision", "recall", "f1", "MCC")
METRICS = (*CAPABILITY, "objective", "iterations")
# The largest difference that the paper calls the same capability.
SAME = 0.03
# Sets on which a printed rate tells a whole count from a mean of five.
_SMALL = 1000
_RESULTS = "Section 5.3"


def derive(distributions: Mapping[str, Distribution]) -> dict[str, Distribution]:
    """Subtract WSS2's numbers from the means of five runs of DPWSS; relate the largest errors to imbalance."""
    result: dict[str, Distribution] = {}
    errors: dict[str, float] = {}
    for (dataset, setting, metric), points in group_cells("mean/*/DPWSS/*/*", distributions).items():
        base = distributions.get(cell_id(dataset, "WSS2", setting.partition(";")[0], metric))
        if base is None:
            continue
        gap = points[0][1].median - base.median
        name = f"less WSS2/{dataset}/{setting}/{metric}"
        result[name] = constant(name, gap)
        if metric in CAPABILITY and ";epsilon=1;" in setting:
            errors[dataset] = max(errors.get(dataset, 0.0), abs(gap))
    for dataset, error in errors.items():
        imbalance = distributions.get(cell_id(dataset, "", "", "imbalance ratio"))
        if imbalance is not None:
            for name, value in (("largest error", error), ("imbalance", abs(math.log(imbalance.median)))):
                result[f"{name}/{dataset}"] = constant(f"{name}/{dataset}", value)
    return result


def _compare_printed(texts: Mapping[str, str]) -> Claim:
    """Compare the printed numbers of both methods."""
    gaps = []
    for cell, text in texts.items():
        dataset, method, setting, metric = cell.split("/")
        base = texts.get(cell_id(dataset, "WSS2", setting.partition(";")[0], metric))
        if method == "DPWSS" and metric in CAPABILITY and text and base:
            gaps.append((abs(float(text) - float(base)), cell))
    largest, where = max(gaps)
    return statement("three-per-cent-printed", _RESULTS, "the same in the paper's own Table 3", largest <= SAME,
                     f"largest printed difference {largest:.4f} ({where})")  # fmt: skip


def _spread(item: Distribution) -> float:
    """Return the relative standard deviation of a run."""
    width = item.quantiles[LEVELS.index(0.975)] - item.quantiles[LEVELS.index(0.025)]
    return width / (2.0 * float(scipy.stats.norm.ppf(0.975))) / max(abs(item.median), 1e-12)


def _differ_little(singles: Mapping[str, Distribution]) -> Claim:
    """Compare the spread of single runs in each metric."""
    by_setting: dict[tuple[str, ...], dict[str, float]] = {}
    for cell, item in singles.items():
        dataset, method, setting, metric = cell.split("/")
        if method == "DPWSS" and "sigma=0.9" not in setting:
            by_setting.setdefault((dataset, setting), {})[metric] = _spread(item)
    runs = [spreads for spreads in by_setting.values() if len(spreads) == len(METRICS)]
    wins = sum(spreads["iterations"] == max(spreads.values()) for spreads in runs)
    listed = ", ".join(f"{metric} {100 * statistics.median(spreads[metric] for spreads in runs):.2g} %"
                       for metric in METRICS if runs)  # fmt: skip
    return statement(
        "runs-differ", _RESULTS, "runs with the same settings differ little, mainly in the iterations",
        2 * wins > len(runs) if runs else None,
        f"iterations spread most in {wins} of {len(runs)} settings; median relative standard deviation of a run: "
        f"{listed}",
    )  # fmt: skip


def _count_whole(texts: Mapping[str, str], distributions: Mapping[str, Distribution]) -> tuple[int, int]:
    """Count the printed accuracies and recalls of small sets that are whole numbers of rows, and all of them."""
    n_whole = total = 0
    for cell, text in texts.items():
        dataset, method, _, metric = cell.split("/")
        size = distributions.get(cell_id(dataset, "", "", "n_samples"))
        if method != "DPWSS" or metric not in ("accuracy", "recall") or not text or not size or size.median > _SMALL:
            continue
        imbalance = distributions[cell_id(dataset, "", "", "imbalance ratio")].median
        rows = size.median if metric == "accuracy" else round(size.median * imbalance / (1.0 + imbalance))
        total += 1
        n_whole += abs(float(text) * rows - round(float(text) * rows)) <= 0.5e-4 * rows + 1e-9
    return n_whole, total


def _means_of_five(
    texts: Mapping[str, str], singles: Mapping[str, Distribution], distributions: Mapping[str, Distribution]
) -> Claim:
    """Tell single runs from means of five by whole counts and by the likelihood of all cells."""
    n_whole, total = _count_whole(texts, distributions)
    gain, cells = 0.0, 0
    for cell, single in singles.items():
        if texts.get(cell) and single.statistic != "exact":
            value = float(texts[cell])
            gain += log_density(value, single) - log_density(value, distributions[f"mean/{cell}"])
            cells += 1
    ours = (
        f"{n_whole} of {total} printed accuracies and recalls on sets of at most {_SMALL} rows are whole counts, as "
        f"those of one run are; log likelihood of {cells} cells as single runs over means of five {gain:+.0f}"
    )
    holds = None if not cells or not total else not (n_whole == total and gain >= STRONG_RATIO)
    return statement(
        "means-of-five", f"{_RESULTS}; Table 3", "the numbers of Table 3 are averages of five runs", holds, ours
    )


def _memory(distributions: Mapping[str, Distribution]) -> Claim:
    """Count the flags of Algorithm 2."""
    sizes = {
        dataset: item.median
        for dataset in TABLE3_SETTINGS["datasets"]
        if (item := distributions.get(cell_id(dataset, "", "", "n_samples")))
    }
    largest = max(sizes, key=lambda dataset: sizes[dataset], default="")
    ours = "" if not sizes else (
        f"line 1 of Algorithm 2 sets up a flag for each pair: {sizes[largest] ** 2:.3g} flags for the "
        f"{sizes[largest]:.0f} rows of {largest}"
    )  # fmt: skip
    return statement("memory", "Section 4.4", "time and memory of DPWSS are O(l)", False if sizes else None, ours)


def claims(
    texts: Mapping[str, str], judgements: Mapping[str, Judgement], distributions: Mapping[str, Distribution]
) -> list[Claim]:
    """Judge the statements on the form of Table 3's numbers, and on memory."""
    singles = {cell: item for cell, item in distributions.items() if cell.split("/")[1] in ("DPWSS", "WSS2")}
    return [
        _means_of_five(texts, singles, distributions), _compare_printed(texts), _differ_little(singles),
        _memory(distributions),
    ]  # fmt: skip
