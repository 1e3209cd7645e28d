"""What the reports of pmsvm-2025 share: how accuracies are compared and drawn."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from privsvm_bench.reproduction.comparison import Missing, Published, Row, compare, within
from privsvm_bench.reproduction.drawing import axis, diagonal, scatter
from privsvm_bench.reproduction.experiment import Figure

WEIGHT_METHODS = ("PrivateSVM", "OPERA", "PMSVM-WP")

COLOURS = {
    "PrivateSVM": "#7a3fa8", "OPERA": "#2a7d4f", "PMSVM-WP": "#0a53c4", "GRPUA": "#c4620a", "Linear": "#63676e",
    "PMSVM-GP": "#5aa2e8", "PMSVM-AGP": "#a4161a", "OvR joint Gaussian": "#3aa6a0", "Objective perturbation": "#d46aa5",
}  # fmt: skip


def colour_of(method: str) -> str:
    """Colour of a method, whatever its composition."""
    return COLOURS.get(method.split(" (")[0], "#1b1f27")


# Chance that the printed deviations miss: five draws on one split estimate their spread badly, and two rows of the
# smallest test part are 0.027.
LEAST_TOLERANCE = 0.02


def spread_of(values: Sequence[float]) -> float:
    """Compute the standard deviation of all runs there are."""
    return statistics.pstdev(values)


def printed_accuracy(published: Published, dataset: str, method: str, setting: str) -> tuple[str | None, float]:
    """Find the printed mean and its standard deviation."""
    key = (dataset, method, setting)
    return published.get((*key, "accuracy")), float(published.get((*key, "accuracy SD"), "0"))


def accuracy_row(
    labels: Mapping[str, str],
    published: Published,
    key: tuple[str, str, str],
    values: Sequence[float] | None,
    tolerance: Callable[[float, float], float],
    why: Callable[[str, Sequence[float]], str],
    missing: Missing | None,
) -> Row:
    """Compare a mean accuracy; `tolerance` is asked with the printed standard deviation and ours."""
    printed, spread = printed_accuracy(published, *key)
    if values is None:
        return compare({**labels, "metric": "accuracy"}, printed, None, within(0.0), missing=missing)
    return compare(
        {**labels, "metric": "accuracy"},
        printed,
        statistics.fmean(values),
        within(tolerance(spread, spread_of(values))),
        lambda: why(printed or "", values),
    )


def ruled_out(row: Row) -> Row:
    """Call a reading beyond tolerance ruled out: it is ours, not the paper's."""
    return dataclasses.replace(row, verdict="ruled out") if row.verdict == "beyond tolerance" else row


def two_printed(spread: float, our_spread: float) -> float:
    """Tolerate two of the printed standard deviations."""
    return 2.0 * spread


def two_either(spread: float, our_spread: float) -> float:
    """Tolerate two standard deviations, the printed one or ours, or a least difference."""
    return max(2.0 * spread, 2.0 * our_spread, LEAST_TOLERANCE)


GRADIENT_CAPTION = (
    "Means over five draws of noise on one split, as in the paper. A number agrees within two standard deviations, the "
    f"larger of the printed one and ours, or within {LEAST_TOLERANCE}: five draws say little of their own spread (some "
    "printed ones are 0.000), and one row of the smallest test part is 0.014."
)


def range_text(values: Sequence[float]) -> str:
    """Say how far our runs are apart."""
    return f"our {len(values)} runs range from {min(values):.3f} to {max(values):.3f}"


def against_published(title: str, rows: Sequence[Row]) -> list[Figure]:
    """Ours against published, one colour for each method."""
    data: list[dict[str, Any]] = []
    for method in dict.fromkeys(row.method for row in rows):
        points = [row for row in rows if row.method == method and row.published and row.ours is not None]
        if points:
            data.append(
                scatter("markers", method, [float(row.published) for row in points], [row.ours for row in points],
                        text=[f"{row.dataset}, {row.setting}" for row in points],
                        marker={"size": 8, "color": colour_of(method)})
            )  # fmt: skip
    if not data:
        return []
    return [
        Figure(
            title=f"{title}: ours against published",
            caption="Mean accuracies; one point for each dataset and setting. On the line they are equal.",
            data=[*data, diagonal([0, 1], color="#9aa0a8")],
            layout={"xaxis": axis("published"), "yaxis": axis("ours"), "height": 420},
        )
    ]


DATASET_COLOURS = {"Cornell": "#0a53c4", "Dermatology": "#c4620a", "HHAR": "#63676e", "ISOLET": "#2a7d4f",
                   "USPS": "#7a3fa8", "Vehicle": "#a4161a"}  # fmt: skip
