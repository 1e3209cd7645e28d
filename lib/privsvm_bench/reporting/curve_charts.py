"""Charts of a report as SVG: curves of metrics against epsilon, and the errors of a known-sample attack."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from privsvm.privacy.statement import STATUSES, Status, theorem_holds
from privsvm_bench import charts
from privsvm_bench.charts import MARKERS, RED, VARIABLES, named, new_figure, style, svg_text
from privsvm_bench.palette import CLAIMED, COLOURS, NONE, SYMBOLS, Look
from privsvm_bench.reporting.text import score_text, short_number

# Height of a label and its longest text, in pixels and letters.
_LINE, _LONGEST = 16, 32
# Width of the line from a curve to its label, of the label's mark with margins, and of a letter, in pixels.
_LEAD, _MARK, _LETTER = 14, 62, 7.4
_DASHES: Mapping[Status, Any] = {"proved": "-", "seeded": "-", "claimed": (0, (6, 4)), "none": (0, (1.5, 4))}
# Positions of exact recovery and the threshold of recovery on a logarithmic axis.
_EXACT, _RECOVERED = 1e-16, 1e-8


def _thin_out(grid: Sequence[float], gap: float) -> list[float]:
    """Choose the epsilons of a grid that lie `gap` decades apart, so that their labels do not touch."""
    ticks: list[float] = []
    for epsilon in sorted(grid):
        if not ticks or math.log10(epsilon / ticks[-1]) >= gap:
            ticks.append(epsilon)
    return ticks


def _move_apart(places: Sequence[float], low: float, high: float) -> list[float]:
    """Move labels apart: from the bottom up, then back down from the top where there is no room left."""
    heights: list[float] = []
    for height in places:
        heights.append(max(height, heights[-1] + _LINE if heights else low))
    limit = high
    for index in range(len(heights) - 1, -1, -1):
        heights[index] = min(heights[index], limit)
        limit = heights[index] - _LINE
    return heights


@dataclasses.dataclass(frozen=True)
class _End:
    """The end of a curve: its height in pixels, and its label with a tooltip and the look of the line."""

    height: float
    label: str
    tooltip: str
    look: Mapping[str, Any]


def _write_labels(picture: Figure, x: float, ends: Sequence[_End], top: float) -> None:
    """Write name and mark of each curve to the right of `x`, where the curves end, below a height of `top` pixels."""
    width, height = 72 * picture.get_size_inches()

    def draw_line(xs: Sequence[float], ys: Sequence[float], **look: Any) -> Line2D:
        line = Line2D([x / width for x in xs], [y / height for y in ys], transform=picture.transFigure, **look)
        picture.add_artist(line)
        return line

    ends = sorted(ends, key=lambda end: (end.height, end.label))
    places = _move_apart([end.height for end in ends], _LINE, top)
    for place, end in zip(places, ends, strict=True):
        if abs(place - end.height) > 3:
            draw_line([x, x + _LEAD], [end.height, place], linewidth=0.7, color=end.look["color"])
        start = x + _LEAD + 4
        named(draw_line([start, start + 11, start + 22], [place] * 3, **{**end.look, "markevery": [1]}), end.tooltip)
        # A dollar sign starts a formula unless it is told otherwise.
        name = picture.text((start + 28) / width, place / height, end.label, color=end.look["color"], va="center",
                            parse_math=False, weight="bold" if end.look["linewidth"] > 3 else "normal")  # fmt: skip
        named(name, end.tooltip)


def _look(status: Status, look: Look, first: bool) -> dict[str, Any]:
    """Arguments of a curve's line: proved methods in colour, claims grey, dashed, crossed and faint, others dotted."""
    proof = theorem_holds(status)
    colour = look.light if proof else CLAIMED if status == "claimed" else NONE
    width = 3.2 if first else 1.8 if proof else 1.4
    line = {"color": colour, "linestyle": _DASHES[status], "linewidth": width}
    if status == "none":
        return {**line, "linestyle": (0, (6, 3, 1.5, 3))} if look.symbol == "dash-dot" else line
    inside = {"proved": colour, "seeded": charts.PANEL}.get(status, "none")
    marker = MARKERS[look.symbol] if proof else charts.CROSSED
    size = 8 if look.symbol in ("circle", "square", "diamond") or status == "claimed" else 9.5
    faint = {"alpha": 0.65} if status == "claimed" else {}
    return {**line, **faint, "marker": marker, "markersize": size, "markerfacecolor": inside, "markeredgewidth": 1.3}


@dataclasses.dataclass(frozen=True)
class Scale:
    """A metric, the title of its axis, and the factor from its values to the axis."""

    metric: str
    title: str
    factor: float = 1.0

    def values(self, curve: Mapping[str, Any], statistic: int) -> list[float | None]:
        """Values of a curve on the axis: mean, deviation, low or high; None where the metric is undefined."""
        columns = curve["values"].get(self.metric, [[]] * 4)
        return [None if value is None else self.factor * value for value in columns[statistic]]

    def finite_values(self, curve: Mapping[str, Any], statistic: int) -> list[float]:
        """Values of a curve that are defined."""
        return [value for value in self.values(curve, statistic) if value is not None]


ACCURACY = Scale("accuracy", "Accuracy, %", 100.0)


def accuracy_range(
    curves: Sequence[Mapping[str, Any]], first: int | None, scale: Scale = ACCURACY
) -> tuple[float, float]:
    """Find the least and the highest value of curves, with the band of the first method."""
    values = [
        value
        for curve in curves
        for statistic in ((0, 2, 3) if curve["method"] == first else (0,))
        for value in scale.finite_values(curve, statistic)
    ]
    return min(values, default=0.0), max(values, default=scale.factor)


@dataclasses.dataclass(frozen=True)
class CurveChart:
    """One metric of a dataset against epsilon.

    `figure` is an entry of `curve_figures`, with ``limits`` of the axis if several charts share one. `names` and
    `looks` are of all methods of the report. `key` holds the numbers of the methods to draw; the first proved one is
    thick, with a band between percentiles. With `every_band` no method is thick, and all private ones have a band.

    With `chosen`, an index into the grid, each epsilon gets a line that the page's selector shows or hides, and each
    private method outside of `key` a curve of class ``more``.
    """

    figure: Mapping[str, Any]
    names: Sequence[str]
    looks: Sequence[Look]
    key: Sequence[int]
    scale: Scale = ACCURACY
    chosen: int | None = None
    every_band: bool = False

    def svg(self, narrow: bool = False, alone: bool = False) -> str:
        """Draw the chart; `narrow` is for a phone, without names beside the curves, `alone` is for a file."""
        curves = [
            curve
            for curve in self.figure["curves"]
            if self.scale.finite_values(curve, 0)
            and (curve["method"] in self.key or (self.chosen is not None and curve["status"] != "none"))
        ]
        proved = {curve["method"] for curve in curves if theorem_holds(curve["status"])}
        first = None if self.every_band else next((method for method in self.key if method in proved), None)
        labels = {} if narrow else {c["method"]: self._label(c) for c in curves if c["method"] in self.key}
        width, height = (380, 320) if narrow else (980, max(400, 70 + _LINE * len(labels)))
        left, right = (38, 12) if narrow else (58, _MARK + _LETTER * max(map(len, labels.values()), default=0))
        bottom, top = (44 if narrow else 48), 12
        with style():
            picture, (axes,) = new_figure(width, height)
            axes.set_position((left / width, bottom / height, 1 - (left + right) / width, 1 - (bottom + top) / height))
            self._set_axes(axes, curves, first, narrow, width - left - right)
            for index, epsilon in enumerate(self.figure["grid"] if self.chosen is not None else ()):
                axes.axvline(epsilon, color=charts.INK, linewidth=1.4, linestyle=(0, (3, 3)), gid=f"at-{index}")
            least, most = axes.get_ylim()
            ends = []
            # Proved methods last, on top of the others, and the first on top of all.
            order = {status: -place for place, status in enumerate(STATUSES)}
            for curve in sorted(curves, key=lambda curve: (curve["method"] == first, order[curve["status"]])):
                look = self._draw(axes, curve, first)
                end = bottom + (height - top - bottom) * (self.scale.finite_values(curve, 0)[-1] - least) / (
                    most - least
                )
                if curve["method"] in labels:
                    ends.append(_End(end, labels[curve["method"]], self._heading(curve), look))
            _write_labels(picture, width - right, ends, height - top - 4)
            subject = self.scale.title.removesuffix(", %")
            extent = " of all methods" if self.every_band else " of the main methods" if self.chosen is None else ""
            title = f"{subject}{extent} against epsilon on {self.figure['name']}"
            drawn = svg_text(picture, title, None if alone else VARIABLES)
        if alone:
            return drawn
        for index in range(len(self.figure["grid"])):
            hidden = "" if index == self.chosen else " hidden"
            drawn = drawn.replace(f'<g id="at-{index}"', f'<g class="cursor" data-at="{index}"{hidden}')
        return drawn.replace("<svg ", f'<svg class="curves {"narrow" if narrow else "wide"}" ', 1)

    def _label(self, curve: Mapping[str, Any]) -> str:
        name = self.names[curve["method"]]
        short = name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…"
        return short + (f", {curve['worst']}" if curve["status"] == "claimed" else "")

    def _heading(self, curve: Mapping[str, Any]) -> str:
        return f"{self.names[curve['method']]} — {curve['worst']}"

    def _draw(self, axes: Axes, curve: Mapping[str, Any], first: int | None) -> dict[str, Any]:
        """Draw one curve with its band, and return the arguments of its line."""
        method, status = curve["method"], curve["status"]
        look = _look(status, self.looks[method], method == first)
        means = self.scale.finite_values(curve, 0)
        points = self._describe_points(curve)
        heading = self._heading(curve)
        if not curve["epsilons"]:
            named(axes.axhline(means[0], **look), heading)
            return look
        epsilons = [
            epsilon
            for epsilon, value in zip(curve["epsilons"], self.scale.values(curve, 0), strict=True)
            if value is not None
        ]
        (line,) = axes.plot(epsilons, means, **look, clip_on=False)
        named(line, heading, more=method not in self.key, points=[f"{heading}: {point}" for point in points])
        low, high = self.scale.finite_values(curve, 2), self.scale.finite_values(curve, 3)
        has_band = status != "none" if self.every_band else method == first
        if has_band and len(low) == len(high) == len(epsilons):
            axes.fill_between(epsilons, low, high, color=look["color"], alpha=0.13, linewidth=0, gid="band")
        return look

    def _describe_points(self, curve: Mapping[str, Any]) -> list[str]:
        """Describe each drawn point: its epsilon and what is known of it, mean, deviation and percentiles."""
        columns = [self.scale.values(curve, statistic) for statistic in range(4)]
        statements = (
            [
                f"ε = {short_number(epsilon)} ({known})"
                for epsilon, known in zip(curve["epsilons"], curve["known"], strict=True)
            ]
            if curve["epsilons"]
            else [""]
        )
        points = []
        for statement, mean, spread, low, high in zip(statements, *columns, strict=True):
            if mean is not None:
                text = f"{statement}: {self._number(mean, spread)}" if statement else self._number(mean, spread)
                has_range = low is not None and high is not None
                points.append(text + (f" (95 % from {self._number(low)} to {self._number(high)})" if has_range else ""))
        return points

    def _number(self, mean: float | None, spread: float | None = None) -> str:
        if self.scale.factor == 1.0:
            return score_text(mean, spread)
        return f"{mean:.1f}" + ("" if spread is None else f" ± {spread:.1f}") + " %"

    def _set_axes(
        self, axes: Axes, curves: Sequence[Mapping[str, Any]], first: int | None, narrow: bool, width: float
    ) -> None:
        """Set scales, ticks and titles of the axes, which are `width` pixels wide."""
        grid = self.figure["grid"]
        axes.set_xscale("log")
        room = 10 ** (0.03 * max(math.log10(grid[-1] / grid[0]), 1.0))
        axes.set_xlim(grid[0] / room, grid[-1] * room)
        ticks = _thin_out(grid, (26 if narrow else 34) * math.log10(grid[-1] / grid[0] * room**2) / width)
        axes.set_xticks(ticks, [short_number(epsilon) for epsilon in ticks])
        axes.minorticks_off()
        axes.tick_params(length=0)
        axes.spines["left"].set_visible(False)
        axes.grid(axis="y")
        axes.set_xlabel("ε (smaller is more private)" if narrow else "stated epsilon (smaller is more private)")
        if not narrow:
            axes.set_ylabel(self.scale.title)
        limits = self.figure.get("limits", accuracy_range(curves, first, self.scale))
        levels = MaxNLocator(7, steps=[1, 2, 5, 10]).tick_values(*limits)
        axes.set_yticks(levels, [f"{level:g}" for level in levels])
        axes.set_ylim(levels[0], levels[-1])


def attack_svg(attack: Mapping[str, Any], title: str) -> str:
    """Draw the largest error of recovered rows against the number of known rows: one line for each entity."""
    curves = attack["curves"]
    width, height, left, bottom, top = 980, max(360, 70 + _LINE * len(curves)), 64, 48, 12
    labels = [f"{curve['name'][:_LONGEST]} ({curve['features']} features)" for curve in curves]
    right = _MARK + _LETTER * max(map(len, labels))
    with style():
        picture, (axes,) = new_figure(width, height)
        axes.set_position((left / width, bottom / height, 1 - (left + right) / width, 1 - (bottom + top) / height))
        axes.set_yscale("log")
        axes.set_ylim(_EXACT / 3, 3 * max(10.0, *(error for curve in curves for error in curve["error"])))
        axes.set_yticks([10.0**power for power in range(-16, 1, 4)], [f"1e{power}" for power in range(-16, 1, 4)])
        axes.set_xlim(0, 1.02 * max(count for curve in curves for count in curve["known"]))
        axes.set(xlabel="rows of the entity that the attacker knows", ylabel="largest error (standard deviations)")
        axes.minorticks_off()
        axes.tick_params(length=0)
        axes.grid(axis="y")
        axes.axhline(_RECOVERED, color=RED, linewidth=1.2, linestyle=(0, (1.5, 3)))
        below: dict[str, Any] = {"transform": axes.get_yaxis_transform(), "color": RED, "ha": "right", "va": "top"}
        axes.text(1, _RECOVERED / 2, "below: recovered ", **below)
        low, high = (math.log10(limit) for limit in axes.get_ylim())
        ends = []
        for number, (curve, label) in enumerate(zip(curves, labels, strict=True)):
            mark = MARKERS[SYMBOLS[number % len(SYMBOLS)]]
            look: dict[str, Any] = {"color": COLOURS[number % 6][0], "linewidth": 2.0, "marker": mark, "markersize": 8}
            points = [
                f"{curve['name']}: {count} known rows, {curve['needed']} needed; largest error {short_number(error)}; "
                f"{short_number(100 * share)} % of the other rows recovered"
                for count, error, share in zip(curve["known"], curve["error"], curve["share"], strict=True)
            ]
            errors = [max(error, _EXACT) for error in curve["error"]]
            (line,) = axes.plot(curve["known"], errors, **look, clip_on=False)
            named(line, label, points=points)
            end = bottom + (height - top - bottom) * (math.log10(errors[-1]) - low) / (high - low)
            ends.append(_End(end, label, label, look))
        _write_labels(picture, width - right, ends, height - top - 4)
        return svg_text(picture, title, VARIABLES).replace("<svg ", '<svg class="curves wide" ', 1)
