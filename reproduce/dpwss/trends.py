"""Statements of dpwss-2021 on trends and spreads, judged by the distributions of Table 3's cells."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence

import scipy.stats

from privsvm_bench.reproduction.distributions import LEVELS, Distribution
from privsvm_bench.reproduction.printed import Claim, all_medians, cell_id
from privsvm_bench.reproduction.trends import slope, trend
from reproduce.dpwss.experiments import TABLE3_SETTINGS, setting_name

METRICS = ("AUC", "accuracy", "precision", "recall", "f1", "MCC")
COLUMNS = TABLE3_SETTINGS["columns"]
SIGMAS = [column["sigma"] for column in COLUMNS[:4]]
_SOURCE = "Section 5.3"
# What the paper calls the largest error of a metric.
_SAME = 0.03


def _claim(name: str, text: str, verdict: str, ours: str, source: str = _SOURCE) -> Claim:
    return Claim(id=name, source=source, text=text, verdict=verdict, ours=ours)


def _rows() -> list[tuple[str, int]]:
    return [(dataset, shrinking) for dataset in TABLE3_SETTINGS["datasets"] for shrinking in (1, 0)]


def _line(
    distributions: Mapping[str, Distribution], dataset: str, shrinking: int, columns: slice, metric: str
) -> list[Distribution]:
    cells = [cell_id(dataset, "DPWSS", setting_name(shrinking, column), metric) for column in COLUMNS[columns]]
    return [distributions[cell] for cell in cells] if all(cell in distributions for cell in cells) else []


def _ranges(distributions: Mapping[str, Distribution]) -> list[Claim]:
    found = []
    for name, text, columns in (
        ("capability-epsilon", "classification capability is not affected by the randomness", slice(3, None)),
        ("capability-sigma", "classification capability is not affected by the filter sigma", slice(4)),
    ):
        widths = [
            (max(item.median for item in line) - min(item.median for item in line), f"{metric} of {dataset}")
            for dataset, shrinking in _rows()
            for metric in METRICS
            if (line := _line(distributions, dataset, shrinking, columns, metric))
        ]
        worst = max(widths, default=None)
        verdict = "not judged yet" if worst is None else "agrees" if worst[0] <= _SAME else "refuted"
        said = "" if worst is None else f"largest range of medians {worst[0]:.4f} ({worst[1]}); the paper allows 0.03"
        found.append(_claim(name, text, verdict, said))
    return found


def _imbalance(texts: Mapping[str, str], distributions: Mapping[str, Distribution]) -> Claim:
    pairs = []
    for dataset in TABLE3_SETTINGS["datasets"]:
        printed = next(
            (text for name, text in texts.items() if name.startswith(f"{dataset}/") and "imbalance" in name), ""
        )
        gaps = []
        for shrinking in (1, 0):
            for metric in METRICS:
                base = all_medians(distributions, [cell_id(dataset, "WSS2", f"shrinking={shrinking}", metric)])
                own = _line(distributions, dataset, shrinking, slice(4), metric)
                gaps += [abs(item.median - base[0]) for item in own] if base else []
        if printed and gaps:
            pairs.append((abs(math.log(float(printed))), max(gaps)))
    if len(pairs) < 4:
        return _claim("imbalance", "imbalance has little effect on the classification capability", "not judged yet", "")
    found = scipy.stats.spearmanr(*zip(*pairs, strict=True))
    # Not finding a dependence among so few sets is no proof that there is none.
    verdict = "refuted" if found.pvalue < 0.05 else "cannot discriminate"
    said = (
        f"rank correlation of imbalance and largest error {found.statistic:.2f} on {len(pairs)} sets, "
        f"p {found.pvalue:.2f}"
    )
    return _claim("imbalance", "imbalance has little effect on the classification capability", verdict, said)


def _slopes(distributions: Mapping[str, Distribution], metric: str, rises: bool) -> dict[str, int]:
    counts = dict.fromkeys(("agrees", "refuted", "cannot discriminate"), 0)
    for dataset, shrinking in _rows():
        line = _line(distributions, dataset, shrinking, slice(4), metric)
        if line:
            counts[trend(slope(SIGMAS, line), rises)] += 1
    return counts


def _directions(distributions: Mapping[str, Distribution]) -> list[Claim]:
    found = []
    for name, text, metric, rises in (
        ("error-slope", "with sigma the error of the objective tends to increase", "objective", True),
        ("iterations-slope", "with sigma the iterations fall", "iterations", False),
    ):
        counts = _slopes(distributions, metric, rises)
        total = sum(counts.values())
        one, other = counts["agrees"], counts["refuted"]
        verdict = "not judged yet" if not total else "agrees" if one > 0.5 * total else "refuted"
        if total and max(one, other) <= 0.5 * total:
            verdict = "cannot discriminate"
        said = (
            f"slope over sigma with its 95 % interval {'above' if rises else 'below'} 0 in {one} of {total} lines, "
            f"on the other side in {other}"
        )
        found.append(_claim(name, text, verdict, said if total else ""))
    return found


def _fewer(distributions: Mapping[str, Distribution]) -> Claim:
    fewer = total = 0
    for dataset, shrinking in _rows():
        base = all_medians(distributions, [cell_id(dataset, "WSS2", f"shrinking={shrinking}", "iterations")])
        for item in _line(distributions, dataset, shrinking, slice(None), "iterations") if base else []:
            total += 1
            fewer += item.median < base[0]
    verdict = "not judged yet" if not total else "agrees" if fewer == total else "refuted"
    return _claim(
        "fewer-everywhere", "fewer iterations than WSS2 on all datasets under all settings", verdict,
        f"fewer in {fewer} of {total} settings" if total else "",
    )  # fmt: skip


def _spread(item: Distribution) -> float:
    """Relative standard deviation of one run, from that of the mean of five."""
    width = item.quantiles[LEVELS.index(0.975)] - item.quantiles[LEVELS.index(0.025)]
    return math.sqrt(5.0) * width / (2.0 * 1.96) / max(abs(item.median), 1e-12)


def _differ_little(distributions: Mapping[str, Distribution]) -> Claim:
    text = "runs with the same settings differ little, mainly in the iterations"
    wins = total = 0
    spreads: dict[str, list[float]] = {}
    for dataset, shrinking in _rows():
        own = {
            metric: [_spread(item) for item in _line(distributions, dataset, shrinking, slice(None), metric)]
            for metric in (*METRICS, "objective", "iterations")
        }
        for number in range(len(own["iterations"])):
            total += 1
            wins += own["iterations"][number] >= max(own[metric][number] for metric in own)
        for metric, values in own.items():
            spreads.setdefault(metric, []).extend(values)
    if not total:
        return _claim("runs-differ", text, "not judged yet", "")
    said = ", ".join(f"{metric} {100 * statistics.median(values):.2g} %" for metric, values in spreads.items())
    return _claim(
        "runs-differ", text, "agrees" if wins > 0.5 * total else "refuted",
        f"iterations spread most in {wins} of {total} settings; median relative standard deviation of a run: {said}",
    )  # fmt: skip


def _far(distributions: Mapping[str, Distribution]) -> Claim:
    """Look at sigma 0.9, which the paper leaves out."""
    text = "at sigma 0.9 most violating pairs are filtered out and the final objective is not reached"
    worse = []
    for dataset in TABLE3_SETTINGS["datasets"]:
        cell = cell_id(dataset, "DPWSS", "shrinking=0;epsilon=1;sigma=0.9", "objective")
        last = cell_id(dataset, "DPWSS", "shrinking=0;epsilon=1;sigma=0.7", "objective")
        base = cell_id(dataset, "WSS2", "shrinking=0", "objective")
        values = all_medians(distributions, [cell, last, base])
        if values:
            worse.append((values[0] - values[2], values[1] - values[2]))
    if not worse:
        return _claim("sigma-far", text, "not judged yet", "")
    beyond = sum(error > 2.0 for error, _ in worse)
    here, before = (statistics.median(errors) for errors in zip(*worse, strict=True))
    said = f"error of the objective above two on {beyond} of {len(worse)} sets; median {here:.3g}, at .7 {before:.3g}"
    return _claim("sigma-far", text, "agrees" if beyond > 0.5 * len(worse) else "refuted", said)


def trend_claims(texts: Mapping[str, str], distributions: Mapping[str, Distribution]) -> Sequence[Claim]:
    """Check the statements on trends, spreads and what the paper left out."""
    return [
        *_ranges(distributions),
        _imbalance(texts, distributions),
        *_directions(distributions),
        _fewer(distributions),
        _differ_little(distributions),
        _far(distributions),
        _claim("milliseconds", "training takes milliseconds on most datasets", "cannot discriminate",
               "a time of another machine"),
    ]  # fmt: skip
