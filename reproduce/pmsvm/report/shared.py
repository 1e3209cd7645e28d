"""What the reports of pmsvm-2025 share: how accuracies are compared and drawn."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from privsvm.reproduction.comparison import Row, compare, within
from privsvm.reproduction.experiment import Figure, missing_result

PUBLISHED = Path(__file__).parents[1] / "published.csv"
WEIGHT_METHODS = ("PrivateSVM", "OPERA", "PMSVM-WP")

COLOURS = {
    "PrivateSVM": "#7a3fa8", "OPERA": "#2a7d4f", "PMSVM-WP": "#0a53c4", "GRPUA": "#c4620a", "Linear": "#63676e",
    "PMSVM-GP": "#5aa2e8", "PMSVM-AGP": "#a4161a", "OvR joint Gaussian": "#3aa6a0", "Objective perturbation": "#d46aa5",
}  # fmt: skip


def _colour(method: str) -> str:
    """Color of a method, whatever its composition."""
    return COLOURS.get(method.split(" (")[0], "#1b1f27")


# What the paper leaves to chance: five draws of noise on one split say little of their own spread, and two rows of the
# smallest test part are 0.027.
LEAST_TOLERANCE = 0.02


Published = Mapping[tuple[str, str, str, str], str]


def _spread(values: Sequence[float]) -> float:
    return statistics.pstdev(values)


def _printed(published: Published, dataset: str, method: str, setting: str) -> tuple[str | None, float]:
    """Find the printed mean and its standard deviation."""
    key = (dataset, method, setting)
    return published.get((*key, "accuracy")), float(published.get((*key, "accuracy SD"), "0"))


def _accuracy_row(
    place: Mapping[str, str],
    published: Published,
    key: tuple[str, str, str],
    values: Sequence[float] | None,
    tolerance: Callable[[float, float], float],
    why: Callable[[str, Sequence[float]], str],
    missing: tuple[str, str] | None,
    ruled_out: bool = False,
) -> Row:
    """Compare a mean accuracy; `tolerance` is asked with the printed standard deviation and ours."""
    printed, spread = _printed(published, *key)
    if missing or values is None:
        return compare({**place, "metric": "accuracy"}, printed, None, within(0.0), missing=missing)
    row = compare(
        {**place, "metric": "accuracy"},
        printed,
        statistics.fmean(values),
        within(tolerance(spread, _spread(values))),
        lambda: why(printed or "", values),
    )
    return dataclasses.replace(row, verdict="ruled out") if ruled_out and row.verdict == "differs" else row


def _two_printed(spread: float, own: float) -> float:
    return 2.0 * spread


def _two_either(spread: float, own: float) -> float:
    return max(2.0 * spread, 2.0 * own, LEAST_TOLERANCE)


GRADIENT_CAPTION = (
    "Means over five draws of noise on one split, as in the paper. A number agrees within two standard deviations, the "
    f"larger of the printed one and ours, or within {LEAST_TOLERANCE}: five draws say little of their own spread (some "
    "printed ones are 0.000), and one row of the smallest test part is 0.014."
)


def _range(values: Sequence[float]) -> str:
    return f"our {len(values)} runs range from {min(values):.3f} to {max(values):.3f}"


def _against_published(title: str, rows: Sequence[Row]) -> list[Figure]:
    """Ours against published, one colour for each method."""
    data: list[dict[str, Any]] = []
    for method in dict.fromkeys(row.method for row in rows):
        points = [row for row in rows if row.method == method and row.published and row.ours is not None]
        if points:
            data.append(
                {
                    "type": "scatter", "mode": "markers", "name": method,
                    "x": [float(row.published) for row in points], "y": [row.ours for row in points],
                    "text": [f"{row.dataset}, {row.setting}" for row in points],
                    "marker": {"size": 8, "color": _colour(method)},
                }
            )  # fmt: skip
    if not data:
        return []
    data.append({"type": "scatter", "mode": "lines", "x": [0, 1], "y": [0, 1], "hoverinfo": "skip", "showlegend": False,
                 "line": {"color": "#9aa0a8", "width": 1}})  # fmt: skip
    return [
        Figure(
            title=f"{title}: ours against published",
            caption="Mean accuracies; one point for each dataset and setting. On the line they are equal.",
            data=data,
            layout={"xaxis": {"title": {"text": "published"}}, "yaxis": {"title": {"text": "ours"}}, "height": 420},
        )
    ]


DATASET_COLOURS = {"Cornell": "#0a53c4", "Dermatology": "#c4620a", "HHAR": "#63676e", "ISOLET": "#2a7d4f",
                   "USPS": "#7a3fa8", "Vehicle": "#a4161a"}  # fmt: skip


def _ablation_rows(
    table: str,
    published: Published,
    parameters: Mapping[str, Any],
    result: Mapping[str, Any] | None,
    why: Callable[[str, tuple[str, str, str], Mapping[str, Sequence[Sequence[float]]], int], str],
    printed_as: Callable[[str], str] = str,
    ruled_out: bool = False,
    chosen: Callable[[str], bool] = lambda name: True,
) -> list[Row]:
    """Rows of all variants of one job."""
    missing = missing_result(result)
    rows = []
    means: dict[str, list[list[float]]] = {}
    if result is not None and not missing:
        means = {name: [own["accuracy"] for own in found] for name, found in result["variants"].items()}
    for name in parameters["variants"]:
        if not chosen(name):
            continue
        method, _, column = name.partition(", ")
        for index, epsilon in enumerate(parameters["epsilons"]):
            key = (parameters["dataset"], method, f"epsilon={epsilon:g};{printed_as(column)}")
            place = {"table": table, "dataset": key[0], "method": method, "setting": f"epsilon={epsilon:g};{column}"}
            rows.append(
                _accuracy_row(
                    place, published, key, means[name][index] if means else None, _two_either,
                    lambda printed, values, name=name, key=key, index=index: why(name, key, means, index), missing,
                    ruled_out,
                )
            )  # fmt: skip
    return rows


def _why_ablation(
    published: Published, suffix: str = ""
) -> Callable[[str, tuple[str, str, str], Mapping[str, Sequence[Sequence[float]]], int], str]:
    def why(name: str, key: tuple[str, str, str], values: Mapping[str, Sequence[Sequence[float]]], index: int) -> str:
        reasons, setting = [], key[2].partition(";")[0]
        printed = float(published[(*key, "accuracy")])
        twin = values[name + suffix] if suffix else []
        if twin and _agrees(published, key, twin[index]):
            mean = statistics.fmean(twin[index])
            reasons.append(f"with the notebook's epochs and the stored scripts' scaling, {mean:.3f} agrees")
        again = published.get((*key[:2], setting, "accuracy"))
        same = ("lr_decay=no", "clip=1", "batch=128")
        if key[2].endswith(same) and again is not None and abs(float(again) - printed) > 0.01:
            reasons.append(f"the paper's own Table 2 prints {again} for the same setting")
        return "; ".join([*reasons, f"the script of this table is not stored; {_range(values[name][index])}"])

    return why


def _agrees(published: Published, key: tuple[str, str, str], values: Sequence[float]) -> bool:
    """Whether a mean agrees with the printed one, by the rule of the gradient methods."""
    printed, spread = _printed(published, *key)
    return abs(statistics.fmean(values) - float(printed or "nan")) <= _two_either(spread, _spread(values))
