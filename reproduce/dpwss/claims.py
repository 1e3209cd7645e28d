"""Numbers of dpwss-2021 that the rows of claims.csv read: differences, readings of sigma .7, and the printed table."""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import scipy.stats

from reproduce.dpwss.experiments import TABLE3_SETTINGS, setting_name
from reproduce.engine.distributions import LEVELS, Distribution
from reproduce.engine.judging import log_density, width
from reproduce.engine.measurements import cell_id, constant
from reproduce.engine.statements import group_cells

CAPABILITY = ("AUC", "accuracy", "precision", "recall", "f1", "MCC")
METRICS = (*CAPABILITY, "objective", "iterations")
# Sets on which a printed rate tells a whole count from a mean of five.
_SMALL = 1000
# Readings of the printed run at sigma .7: the one with the best objective of so many.
_BEST_OF = (1, 2, 3, 5)
_SETTINGS = [setting_name(shrinking, column) for shrinking in TABLE3_SETTINGS["shrinking"]
             for column in TABLE3_SETTINGS["columns"]]  # fmt: skip


def _base(dataset: str, setting: str, metric: str) -> str:
    """Name WSS2's cell beside one of DPWSS."""
    return cell_id(dataset, "WSS2", setting.partition(";")[0], metric)


def best_of(runs: int, item: Distribution) -> Distribution:
    """Return the distribution of the smallest objective of some runs, from one run's."""
    levels = 1.0 - (1.0 - np.array(LEVELS)) ** (1.0 / runs)
    return dataclasses.replace(item, fresh=(), quantiles=tuple(np.interp(levels, LEVELS, item.quantiles).tolist()))


def derive(distributions: Mapping[str, Distribution]) -> dict[str, Distribution]:
    """Subtract WSS2's numbers from DPWSS's, relate the largest errors to imbalance, and compare spreads of runs.

    ``less WSS2`` has means of five runs, and ``better of two`` the better objective of two at sigma .7; ``one run``
    counts the objectives of single runs that are within two of WSS2's.
    """
    numbers: dict[str, float] = {}
    errors: dict[str, float] = {}
    near: list[bool] = []
    for (dataset, setting, metric), points in group_cells("mean/*/DPWSS/*/*", distributions).items():
        base = distributions.get(_base(dataset, setting, metric))
        if base is None:
            continue
        gap = points[0][1].median - base.median
        numbers[f"less WSS2/{dataset}/{setting}/{metric}"] = gap
        if metric in CAPABILITY and ";epsilon=1;" in setting:
            errors[dataset] = max(errors.get(dataset, 0.0), abs(gap))
        single = distributions.get(cell_id(dataset, "DPWSS", setting, metric))
        if single is not None and metric == "objective":
            near.append(abs(single.median - base.median) <= 2.0)
            if "sigma=0.7" in setting:
                numbers[f"better of two/{dataset}/{setting}/{metric}"] = best_of(2, single).median - base.median
    for dataset, error in errors.items():
        imbalance = distributions.get(cell_id(dataset, "", "", "imbalance ratio"))
        if imbalance is not None:
            numbers |= {f"largest error/{dataset}": error, f"imbalance/{dataset}": abs(math.log(imbalance.median))}
    numbers |= {"one run/settings": len(near), "one run/within two": sum(near)}
    return {cell: constant(cell, number) for cell, number in (numbers | _spreads(distributions)).items()}


def _spreads(distributions: Mapping[str, Distribution]) -> dict[str, float]:
    """Compare the relative standard deviations of a run's metrics."""
    by_setting: dict[tuple[str, ...], dict[str, float]] = {}
    for (dataset, setting, metric), points in group_cells("*/DPWSS/*/*", distributions).items():
        item = points[0][1]
        if setting in _SETTINGS and metric in METRICS:
            by_setting.setdefault((dataset, setting), {})[metric] = width(item) / max(abs(item.median), 1e-12)
    runs = [spreads for spreads in by_setting.values() if len(spreads) == len(METRICS)]
    if not runs:
        return {}
    wins = sum(spreads["iterations"] == max(spreads.values()) for spreads in runs)
    spread = {f"runs differ/{metric}": statistics.median(spreads[metric] for spreads in runs) for metric in METRICS}
    return {"runs differ/settings": len(runs), "runs differ/iterations most": wins,
            "runs differ/share": wins / len(runs), **spread}  # fmt: skip


def sources(cell: str) -> list[str]:
    """Return the cells that a computed number rests on; none if the printed ones suffice."""
    name, _, rest = cell.partition("/")
    if name in ("less WSS2", "better of two"):
        dataset, setting, metric = rest.split("/")
        first = cell_id(dataset, "DPWSS", setting, metric)
        return [f"mean/{first}" if name == "less WSS2" else first, _base(dataset, setting, metric)]
    if name == "imbalance":
        return [cell_id(rest, "", "", "imbalance ratio")]
    if name == "largest error":
        return [
            source
            for setting in _SETTINGS
            if ";epsilon=1;" in setting
            for metric in CAPABILITY
            for source in (f"mean/{cell_id(rest, 'DPWSS', setting, metric)}", _base(rest, setting, metric))
        ]
    if name in ("runs differ", "single runs"):
        singles = [cell_id(dataset, "DPWSS", setting, metric) for dataset in TABLE3_SETTINGS["datasets"]
                   for setting in _SETTINGS for metric in METRICS]  # fmt: skip
        facts = [cell_id(dataset, "", "", fact) for dataset in TABLE3_SETTINGS["datasets"]
                 for fact in ("n_samples", "imbalance ratio")]  # fmt: skip
        return singles if name == "runs differ" else [*singles, *(f"mean/{single}" for single in singles), *facts]
    return [] if name == "printed" else [cell]


# --- the printed table ----------------------------------------------------------------------------------------------


def derive_printed(texts: Mapping[str, str], distributions: Mapping[str, Distribution]) -> dict[str, Distribution]:
    """Judge the printed table by itself, and tell single runs from means of five."""
    gaps: dict[str, list[float]] = {}
    ratios: dict[str, list[float]] = {}
    for cell, text in texts.items():
        dataset, method, setting, metric = cell.split("/")
        base = texts.get(_base(dataset, setting, metric))
        if method != "DPWSS" or not text or not base:
            continue
        gaps.setdefault(metric, []).append(float(text) - float(base))
        if metric == "iterations" and setting.startswith("shrinking=0;") and setting.endswith("sigma=0.7"):
            ratios.setdefault(dataset, []).append(float(text) / float(base))
    ratios.pop("ijcnn1", None)
    halves = [statistics.geometric_mean(values) <= 0.5 for values in ratios.values()]
    numbers: dict[str, float] = {
        "printed/largest difference": max(abs(gap) for metric in CAPABILITY for gap in gaps[metric]),
        "printed/objectives": len(gaps["objective"]),
        "printed/objectives within two": sum(abs(gap) <= 2.0 for gap in gaps["objective"]),
        "printed/largest error of the objective": max(map(abs, gaps["objective"])),
        "printed/iterations": len(gaps["iterations"]),
        "printed/fewer iterations": sum(gap < 0.0 for gap in gaps["iterations"]),
        "printed/sets": len(halves),
        "printed/sets of at most half": sum(halves),
    }
    numbers["printed/share within two"] = numbers["printed/objectives within two"] / numbers["printed/objectives"]
    n_whole, total = _count_whole(texts, distributions)
    singles = [(float(texts[cell]), item, distributions[f"mean/{cell}"]) for cell, item in distributions.items()
               if texts.get(cell) and "/DPWSS/" in cell and f"mean/{cell}" in distributions]  # fmt: skip
    if singles and total:
        gain = math.fsum(log_density(value, one) - log_density(value, mean) for value, one, mean in singles)
        numbers |= {"single runs/cells": len(singles), "single runs/log likelihood over means of five": gain,
                    "single runs/rates": total, "single runs/whole counts": n_whole,
                    "single runs/share of whole counts": n_whole / total}  # fmt: skip
    return {cell: constant(cell, number) for cell, number in numbers.items()}


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


def _read_objectives(
    texts: Mapping[str, str], distributions: Mapping[str, Distribution], ending: str
) -> Iterator[tuple[str, Distribution, float]]:
    """List the printed objectives of some columns ("" if lost), our single runs, and WSS2's objective."""
    for cell, text in texts.items():
        dataset, method, setting, metric = cell.split("/")
        item, base = distributions.get(cell), distributions.get(_base(dataset, setting, metric))
        if method == "DPWSS" and metric == "objective" and setting.endswith(ending) and item and base:
            yield text, item, base.median


def compare(texts: Mapping[str, str], distributions: Mapping[str, Distribution]) -> Sequence[tuple[str, ...]]:
    """Compare the printed objectives with readings of the run that is printed."""
    lines = []
    for sigmas, ending, readings in (("0.1, 0.3, 0.5", ("=0.1", "=0.3", "=0.5"), _BEST_OF[:1]),
                                     ("0.7", ("=0.7",), _BEST_OF)):  # fmt: skip
        rows = [row for end in ending for row in _read_objectives(texts, distributions, f"sigma{end}")]
        for runs in readings if rows else ():
            items = [(text, best_of(runs, item), base) for text, item, base in rows]
            levels = [item.below(float(text)) for text, item, _ in items if text]
            inside, below = sum(0.025 <= level <= 0.975 for level in levels), sum(level < 0.5 for level in levels)
            near = sum(abs(item.median - base) <= 2.0 for _, item, base in items)
            name = "one run" if runs == 1 else f"the best objective of {runs} runs"
            lines.append((f"sigma {sigmas}: {name}", f"{near} of {len(items)}", f"{inside} of {len(levels)}",
                          f"{below} of {len(levels)}",
                          f"{scipy.stats.kstest(levels, 'uniform').pvalue:.2g}"))  # fmt: skip
    return lines
