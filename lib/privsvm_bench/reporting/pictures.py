"""The curves of one data set as a picture: part of the page before any script runs, and a file of its own."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from privsvm.privacy.guarantee import STATUSES, Status, theorem_holds
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

__all__ = ["curve_svg", "thinned"]

# So many names fit beside the curves; of more, those that are highest on the right.
_MOST_LABELS = 24
_LINE, _LONGEST = 15.5, 26
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


def _look(status: Status, look: Look, best: bool) -> dict[str, Any]:
    """Arguments of a curve's line: proved methods in colour, claimed grey, dashed and crossed, others dotted."""
    proof = theorem_holds(status)
    colour = look.light if proof else CLAIMED if status == "claimed" else NONE
    width = 3.2 if best else 1.8 if proof else 1.4
    line = {"color": colour, "linestyle": _DASHES[status], "linewidth": width}
    if status == "none":
        return line
    inside = {"proved": colour, "seeded": PANEL}.get(status, "none")
    marker = MARKERS[look.symbol] if proof else CROSSED
    size = 8 if look.symbol in ("circle", "square", "diamond") or status == "claimed" else 9.5
    return {**line, "marker": marker, "markersize": size, "markerfacecolor": inside, "markeredgewidth": 1.3}


def curve_svg(
    figure: Mapping[str, Any],
    methods: Sequence[str],
    looks: Sequence[Look],
    *,
    narrow: bool = False,
    chosen: int | None = None,
    alone: bool = False,
    best: Sequence[int] = (),
) -> str:
    """Draw accuracy against epsilon.

    Parameters
    ----------
    figure : mapping
        One entry of `privsvm_bench.reporting.utility.curve_figures`.
    methods : sequence of str
        Names of all methods of the report.
    looks : sequence of Look
        In the same order.
    narrow : bool
        For a phone, without names beside the curves.
    chosen : int or None
        Index into the grid: each epsilon gets a line that the page's selector shows or hides. None draws none.
    alone : bool
        With colours of its own, as a file.
    best : sequence of int
        Methods, by their number, that are drawn thicker.
    """
    curves = [
        curve for curve in figure["curves"] if any(v is not None for v in curve["values"].get("accuracy", [[]])[0])
    ]
    grid = figure["grid"]
    longest = min(max((len(methods[curve["method"]]) for curve in curves), default=0), _LONGEST)
    width, height = (380, 320) if narrow else (980, 400)
    left, right = (38, 12) if narrow else (58, 28 + 7.6 * longest)
    bottom, top = (44 if narrow else 48), 12
    with style():
        picture, (axes,) = new_figure(width, height)
        axes.set_position((left / width, bottom / height, 1 - (left + right) / width, 1 - (bottom + top) / height))
        axes.set_xscale("log")
        room = 10 ** (0.03 * max(math.log10(grid[-1] / grid[0]), 1.0))
        axes.set_xlim(grid[0] / room, grid[-1] * room)
        gap = (26 if narrow else 34) * math.log10(grid[-1] / grid[0] * room**2) / (width - left - right)
        ticks = thinned(grid, gap)
        axes.set_xticks(ticks, [short_number(epsilon) for epsilon in ticks])
        axes.minorticks_off()
        axes.tick_params(length=0)
        axes.spines["left"].set_visible(False)
        axes.grid(axis="y")
        axes.set_xlabel("ε (smaller is more private)" if narrow else "stated epsilon (smaller is more private)")
        if not narrow:
            axes.set_ylabel("Accuracy, %")
        if chosen is not None:
            for index, epsilon in enumerate(grid):
                axes.axvline(epsilon, color=INK, linewidth=1.4, linestyle=(0, (3, 3)), gid=f"at-{index}")
        ends = []
        # Proved methods last, on top of the others.
        for curve in sorted(curves, key=lambda curve: -STATUSES.index(curve["status"])):
            look = _look(curve["status"], looks[curve["method"]], curve["method"] in best)
            accuracies = [100 * value for value in curve["values"]["accuracy"][0] if value is not None]
            if curve["epsilons"]:
                pairs = zip(curve["epsilons"], curve["values"]["accuracy"][0], strict=True)
                epsilons = [epsilon for epsilon, value in pairs if value is not None]
                (line,) = axes.plot(epsilons, accuracies, **look, clip_on=False)
            else:
                line = axes.axhline(accuracies[0], **look)
            named(line, methods[curve["method"]])
            ends.append((accuracies[-1], curve["method"], look))
        shown = [end for curve in curves for end in curve["values"]["accuracy"][0] if end is not None]
        levels = MaxNLocator(7, steps=[1, 2, 5, 10]).tick_values(
            100 * min(shown, default=0), 100 * max(shown, default=1)
        )
        axes.set_yticks(levels, [f"{level:g}" for level in levels])
        axes.set_ylim(levels[0], levels[-1])
        if not narrow:
            scale = (height - top - bottom) / (levels[-1] - levels[0])
            ends = sorted(ends, key=lambda end: end[:2])[-_MOST_LABELS:]
            heights = [bottom + scale * (end - levels[0]) for end, _, _ in ends]
            x = width - right + 8
            for y, label, (_, method, look) in zip(
                heights, _spread(heights, bottom, height - top - 4), ends, strict=True
            ):
                name = methods[method] if len(methods[method]) <= _LONGEST else f"{methods[method][: _LONGEST - 1]}…"
                weight = "bold" if method in best else "normal"
                # A dollar sign starts a formula unless it is told otherwise.
                picture.text(x / width, label / height, name, color=look["color"], va="center", weight=weight,
                             parse_math=False)  # fmt: skip
                if abs(label - y) > 3:
                    lead = Line2D([(x - 7) / width, (x - 1) / width], [y / height, label / height], linewidth=0.7,
                                  color=look["color"], transform=picture.transFigure)  # fmt: skip
                    picture.add_artist(lead)
        title = f"Accuracy{' of all methods' if chosen is None else ''} against epsilon on {figure['name']}"
        drawn = svg_text(picture, title, None if alone else VARIABLES)
    if alone:
        return drawn
    for index in range(len(grid)):
        hidden = "" if index == chosen else " hidden"
        drawn = drawn.replace(f'<g id="at-{index}"', f'<g class="cursor" data-at="{index}"{hidden}')
    return drawn.replace("<svg ", f'<svg class="curves {"narrow" if narrow else "wide"}" ', 1)
