"""The curves of one dataset as a picture: a file, and part of the page before any script runs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from privsvm.privacy.statement import STATUSES, Status, theorem_holds
from privsvm_bench.charts import (
    CLAIMED,
    CROSSED,
    INK,
    MARKERS,
    NONE,
    PANEL,
    VARIABLES,
    named,
    new_figure,
    style,
    svg_text,
)
from privsvm_bench.palette import Look
from privsvm_bench.reporting.text import short_number

__all__ = ["accuracy_range", "curve_svg", "thinned"]

# Height of a label and its longest text, in pixels and letters.
_LINE, _LONGEST = 16, 32
_DASHES: Mapping[Status, Any] = {"proved": "-", "seeded": "-", "claimed": (0, (6, 4)), "none": (0, (1.5, 4))}


def thinned(grid: Sequence[float], gap: float) -> list[float]:
    """Choose the epsilons of a grid that lie `gap` decades apart, so that their labels do not touch."""
    kept: list[float] = []
    for epsilon in sorted(grid):
        if not kept or math.log10(epsilon / kept[-1]) >= gap:
            kept.append(epsilon)
    return kept


def _spread(wanted: Sequence[float], low: float, high: float) -> list[float]:
    """Move labels apart: from the bottom up, then back down from the top where there is no room left."""
    heights: list[float] = []
    for height in wanted:
        heights.append(max(height, heights[-1] + _LINE if heights else low))
    limit = high
    for index in range(len(heights) - 1, -1, -1):
        heights[index] = min(heights[index], limit)
        limit = heights[index] - _LINE
    return heights


def _look(status: Status, look: Look, first: bool) -> dict[str, Any]:
    """Arguments of a curve's line: proved methods in colour, claims grey, dashed, crossed and faint, others dotted."""
    proof = theorem_holds(status)
    colour = look.light if proof else CLAIMED if status == "claimed" else NONE
    width = 3.2 if first else 1.8 if proof else 1.4
    line = {"color": colour, "linestyle": _DASHES[status], "linewidth": width}
    if status == "none":
        return {**line, "linestyle": (0, (6, 3, 1.5, 3))} if look.symbol == "dash-dot" else line
    inside = {"proved": colour, "seeded": PANEL}.get(status, "none")
    marker = MARKERS[look.symbol] if proof else CROSSED
    size = 8 if look.symbol in ("circle", "square", "diamond") or status == "claimed" else 9.5
    faint = {"alpha": 0.65} if status == "claimed" else {}
    return {**line, **faint, "marker": marker, "markersize": size, "markerfacecolor": inside, "markeredgewidth": 1.3}


def _percents(curve: Mapping[str, Any], statistic: int) -> list[float]:
    """Accuracies of a curve in percent: mean, deviation, low or high."""
    return [100 * value for value in curve["values"]["accuracy"][statistic] if value is not None]


def accuracy_range(curves: Sequence[Mapping[str, Any]], first: int | None) -> tuple[float, float]:
    """Find the least and the highest accuracy of curves in percent, with the band of the first method."""
    drawn = [curve for curve in curves if "accuracy" in curve["values"]]
    values = [value for curve in drawn for value in _percents(curve, 0)]
    values += [
        value for curve in drawn if curve["method"] == first for place in (2, 3) for value in _percents(curve, place)
    ]
    return min(values, default=0.0), max(values, default=100.0)


def curve_svg(
    figure: Mapping[str, Any],
    names: Sequence[str],
    looks: Sequence[Look],
    *,
    key: Sequence[int],
    narrow: bool = False,
    chosen: int | None = None,
    alone: bool = False,
) -> str:
    """Draw accuracy against epsilon for a few methods.

    `figure` is an entry of `privsvm_bench.reporting.utility.curve_figures`, with ``limits`` of the axis of accuracy if
    several pictures share one. `names` and `looks` are of all methods of the report. `key` holds the numbers of the
    methods to draw; the first proved one is thick, with a band between percentiles.

    `narrow` is for a phone, without names beside the curves. `alone` includes the colours, for a file. With `chosen`,
    an index into the grid, each epsilon gets a line that the page's selector shows or hides, and each private method
    that is not in `key` a curve of class ``more``.
    """
    curves = [
        curve
        for curve in figure["curves"]
        if any(value is not None for value in curve["values"].get("accuracy", [[]])[0])
        and (curve["method"] in key or (chosen is not None and curve["status"] != "none"))
    ]
    grid, proved = figure["grid"], {curve["method"] for curve in curves if theorem_holds(curve["status"])}
    first = next((method for method in key if method in proved), None)
    labels = {
        curve["method"]: _shortened(names[curve["method"]]) + (", claimed" if curve["status"] == "claimed" else "")
        for curve in curves
        if curve["method"] in key
    }
    width, height = (380, 320) if narrow else (980, 400)
    left, right = (38, 12) if narrow else (58, 28 + 7.4 * max(map(len, labels.values()), default=0))
    bottom, top = (44 if narrow else 48), 12
    with style():
        picture, (axes,) = new_figure(width, height)
        axes.set_position((left / width, bottom / height, 1 - (left + right) / width, 1 - (bottom + top) / height))
        _set_axes(axes, figure, curves, first, narrow, width - left - right)
        if chosen is not None:
            for index, epsilon in enumerate(grid):
                axes.axvline(epsilon, color=INK, linewidth=1.4, linestyle=(0, (3, 3)), gid=f"at-{index}")
        ends = []
        # Proved methods last, on top of the others, and the first on top of all.
        order = {status: -place for place, status in enumerate(STATUSES)}
        for curve in sorted(curves, key=lambda curve: (curve["method"] == first, order[curve["status"]])):
            method = curve["method"]
            look = _look(curve["status"], looks[method], method == first)
            accuracies = _percents(curve, 0)
            if curve["epsilons"]:
                pairs = zip(curve["epsilons"], curve["values"]["accuracy"][0], strict=True)
                epsilons = [epsilon for epsilon, value in pairs if value is not None]
                (line,) = axes.plot(epsilons, accuracies, **look, clip_on=False)
                low, high = _percents(curve, 2), _percents(curve, 3)
                if method == first and len(low) == len(high) == len(epsilons):
                    axes.fill_between(epsilons, low, high, color=look["color"], alpha=0.13, linewidth=0)
            else:
                line = axes.axhline(accuracies[0], **look)
            named(line, names[method], more=method not in key)
            if method in key:
                ends.append((accuracies[-1], labels[method], look))
        if not narrow:
            least, most = axes.get_ylim()
            scale = (height - top - bottom) / (most - least)
            ends = sorted(ends, key=lambda end: end[:2])
            heights = [bottom + scale * (end - least) for end, _, _ in ends]
            x = width - right + 8
            for y, place, (_, label, look) in zip(
                heights, _spread(heights, bottom, height - top - 4), ends, strict=True
            ):
                # A dollar sign starts a formula unless it is told otherwise.
                picture.text(x / width, place / height, label, color=look["color"], va="center", parse_math=False,
                             weight="bold" if look["linewidth"] > 3 else "normal")  # fmt: skip
                if abs(place - y) > 3:
                    lead = Line2D([(x - 8) / width, (x - 3) / width], [y / height, place / height], linewidth=0.7,
                                  color=look["color"], transform=picture.transFigure)  # fmt: skip
                    picture.add_artist(lead)
        title = f"Accuracy{' of the main methods' if chosen is None else ''} against epsilon on {figure['name']}"
        drawn = svg_text(picture, title, None if alone else VARIABLES)
    if alone:
        return drawn
    for index in range(len(grid)):
        hidden = "" if index == chosen else " hidden"
        drawn = drawn.replace(f'<g id="at-{index}"', f'<g class="cursor" data-at="{index}"{hidden}')
    return drawn.replace("<svg ", f'<svg class="curves {"narrow" if narrow else "wide"}" ', 1)


def _shortened(name: str) -> str:
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…"


def _set_axes(
    axes: Axes,
    figure: Mapping[str, Any],
    curves: Sequence[Mapping[str, Any]],
    first: int | None,
    narrow: bool,
    width: float,
) -> None:
    """Set scales, ticks and titles of the axes, which are `width` pixels wide."""
    grid = figure["grid"]
    axes.set_xscale("log")
    room = 10 ** (0.03 * max(math.log10(grid[-1] / grid[0]), 1.0))
    axes.set_xlim(grid[0] / room, grid[-1] * room)
    ticks = thinned(grid, (26 if narrow else 34) * math.log10(grid[-1] / grid[0] * room**2) / width)
    axes.set_xticks(ticks, [short_number(epsilon) for epsilon in ticks])
    axes.minorticks_off()
    axes.tick_params(length=0)
    axes.spines["left"].set_visible(False)
    axes.grid(axis="y")
    axes.set_xlabel("ε (smaller is more private)" if narrow else "stated epsilon (smaller is more private)")
    if not narrow:
        axes.set_ylabel("Accuracy, %")
    levels = MaxNLocator(7, steps=[1, 2, 5, 10]).tick_values(*figure.get("limits", accuracy_range(curves, first)))
    axes.set_yticks(levels, [f"{level:g}" for level in levels])
    axes.set_ylim(levels[0], levels[-1])
