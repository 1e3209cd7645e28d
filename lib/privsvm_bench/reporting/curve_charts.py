"""Charts of a report as SVG: curves of metrics against epsilon, and the errors of a known-sample attack."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from privsvm.privacy.statement import STATUSES, Status, theorem_holds
from privsvm_bench import charts
from privsvm_bench.charts import RED, named, new_chart, page_svg, style, svg_text
from privsvm_bench.palette import CLAIMED, COLOURS, NONE, SYMBOLS, Look
from privsvm_bench.records import KnownSampleAttack, Result
from privsvm_bench.reporting.claim_tables import note_on
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


def _height(axes: Axes, value: float) -> float:
    """Height of a value in pixels, at 72 of which an inch is drawn."""
    height: float = axes.get_yaxis_transform().transform((0, value))[1]
    return height


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
    marker = SYMBOLS[look.symbol][0] if proof else charts.CROSSED
    size = 8 if look.symbol in ("circle", "square", "diamond") or status == "claimed" else 9.5
    faint = {"alpha": 0.65} if status == "claimed" else {}
    return {**line, **faint, "marker": marker, "markersize": size, "markerfacecolor": inside, "markeredgewidth": 1.3}


@dataclasses.dataclass(frozen=True)
class Scale:
    """A metric, the title of its axis, and the factor from its values to the axis."""

    metric: str
    title: str
    factor: float = 1.0

    def values(self, result: Result, statistic: str) -> list[float | None]:
        """Values of a curve on the axis, at its points; None where the metric is undefined."""
        values = (result.value(self.metric, statistic, index) for index in result.points)
        return [None if value is None else self.factor * round(value, 4) for value in values]

    def finite_values(self, result: Result, statistic: str) -> list[float]:
        """Values of a curve that are defined."""
        return [value for value in self.values(result, statistic) if value is not None]


ACCURACY = Scale("accuracy", "Accuracy, %", 100.0)


def accuracy_range(curves: Sequence[Result], first: str | None, scale: Scale = ACCURACY) -> tuple[float, float]:
    """Find the least and the highest value of curves, with the band of the first method."""
    values = [
        value
        for curve in curves
        for statistic in (("mean", "low", "high") if curve.method == first else ("mean",))
        for value in scale.finite_values(curve, statistic)
    ]
    return min(values, default=0.0), max(values, default=scale.factor)


@dataclasses.dataclass(frozen=True)
class CurveChart:
    """One metric of a dataset against epsilon.

    `results` are of the dataset, `grid` holds its epsilons, and `looks` those of all methods. `key` names the methods
    to draw; the first proved one is thick, with a band between percentiles. With `every_band` no method is thick, and
    all private ones have a band. Several charts may share the `limits` of the axis.

    With `chosen`, an index into the grid, each epsilon gets a line that the page's selector shows or hides, and each
    private method outside of `key` a curve of class ``more``.
    """

    results: Sequence[Result]
    grid: Sequence[float]
    looks: Mapping[str, Look]
    key: Sequence[str]
    scale: Scale = ACCURACY
    chosen: int | None = None
    every_band: bool = False
    limits: tuple[float, float] | None = None

    @property
    def chips(self) -> list[dict[str, Any]]:
        """Entries of the legend: the methods that the chart opens with, then the other private ones."""
        worst = {result.method: result.worst for result in self.results}
        others = [method for method, status in worst.items() if method not in self.key and status != "none"]
        return [{"method": name, "status": worst[name], "more": name in others} for name in [*self.key, *others]]

    def svg(self, narrow: bool = False, alone: bool = False) -> str:
        """Draw the chart; `narrow` is for a phone, without names beside the curves, `alone` is for a file."""
        curves = [
            result
            for result in self.results
            if self.scale.finite_values(result, "mean")
            and (result.method in self.key or (self.chosen is not None and result.status != "none"))
        ]
        proved = {curve.method for curve in curves if curve.theorem_holds}
        first = None if self.every_band else next((method for method in self.key if method in proved), None)
        labels = {} if narrow else {curve.method: _label(curve) for curve in curves if curve.method in self.key}
        width, height = (380, 320) if narrow else (980, max(400, 70 + _LINE * len(labels)))
        left, right = (38, 12) if narrow else (58, _MARK + _LETTER * max(map(len, labels.values()), default=0))
        bottom, top = (44 if narrow else 48), 12
        with style():
            picture, axes = new_chart(width, height, left, right, bottom, top)
            self._set_axes(axes, curves, first, narrow, width - left - right)
            for index, epsilon in enumerate(self.grid if self.chosen is not None else ()):
                axes.axvline(epsilon, color=charts.INK, linewidth=1.4, linestyle=(0, (3, 3)), gid=f"at-{index}")
            ends = []
            # Proved methods last, on top of the others, and the first on top of all.
            order = {status: -place for place, status in enumerate(STATUSES)}
            for curve in sorted(curves, key=lambda curve: (curve.method == first, order[curve.status])):
                look = self._draw(axes, curve, first)
                if curve.method in labels:
                    end = _height(axes, self.scale.finite_values(curve, "mean")[-1])
                    ends.append(_End(end, labels[curve.method], _heading(curve), look))
            _write_labels(picture, width - right, ends, height - top - 4)
            subject = self.scale.title.removesuffix(", %")
            extent = " of all methods" if self.every_band else " of the main methods" if self.chosen is None else ""
            title = f"{subject}{extent} against epsilon on {self.results[0].dataset}"
            drawn = svg_text(picture, title) if alone else page_svg(picture, title, narrow)
        for index in range(0 if alone else len(self.grid)):
            hidden = "" if index == self.chosen else " hidden"
            drawn = drawn.replace(f'<g id="at-{index}"', f'<g class="cursor" data-at="{index}"{hidden}')
        return drawn

    def _draw(self, axes: Axes, curve: Result, first: str | None) -> dict[str, Any]:
        """Draw one curve with its band, and return the arguments of its line."""
        look = _look(curve.status, self.looks[curve.method], curve.method == first)
        means, heading = self.scale.values(curve, "mean"), _heading(curve)
        if curve.is_reference:
            named(axes.axhline(self.scale.finite_values(curve, "mean")[0], **look), heading)
            return look
        drawn = [
            (curve.epsilons[index], mean) for index, mean in zip(curve.points, means, strict=True) if mean is not None
        ]
        epsilons = [epsilon for epsilon, _ in drawn]
        (line,) = axes.plot(epsilons, [mean for _, mean in drawn], **look, clip_on=False)
        points = [f"{heading}: {point}" for point in self._describe_points(curve)]
        named(line, heading, more=curve.method not in self.key, points=points)
        low, high = self.scale.finite_values(curve, "low"), self.scale.finite_values(curve, "high")
        has_band = curve.status != "none" if self.every_band else curve.method == first
        if has_band and len(low) == len(high) == len(epsilons):
            axes.fill_between(epsilons, low, high, color=look["color"], alpha=0.13, linewidth=0, gid="band")
        return look

    def _describe_points(self, curve: Result) -> list[str]:
        """Describe each drawn point: its epsilon and what is known of it, mean, deviation and percentiles."""
        columns = [self.scale.values(curve, statistic) for statistic in ("mean", "sd", "low", "high")]
        points = []
        for index, mean, spread, low, high in zip(curve.points, *columns, strict=True):
            if mean is not None:
                known = note_on(curve.guarantees[index], curve.status)
                text = f"ε = {short_number(curve.epsilons[index])} ({known}): {self._number(mean, spread)}"
                has_range = low is not None and high is not None
                points.append(text + (f" (95 % from {self._number(low)} to {self._number(high)})" if has_range else ""))
        return points

    def _number(self, mean: float | None, spread: float | None = None) -> str:
        if self.scale.factor == 1.0:
            return score_text(mean, spread)
        return f"{mean:.1f}" + ("" if spread is None else f" ± {spread:.1f}") + " %"

    def _set_axes(self, axes: Axes, curves: Sequence[Result], first: str | None, narrow: bool, width: float) -> None:
        """Set scales, ticks and titles of the axes, which are `width` pixels wide."""
        axes.set_xscale("log")
        room = 10 ** (0.03 * max(math.log10(self.grid[-1] / self.grid[0]), 1.0))
        axes.set_xlim(self.grid[0] / room, self.grid[-1] * room)
        gap = (26 if narrow else 34) * math.log10(self.grid[-1] / self.grid[0] * room**2) / width
        ticks = _thin_out(self.grid, gap)
        axes.set_xticks(ticks, [short_number(epsilon) for epsilon in ticks])
        axes.minorticks_off()
        axes.tick_params(length=0)
        axes.spines["left"].set_visible(False)
        axes.grid(axis="y")
        axes.set_xlabel("ε (smaller is more private)" if narrow else "stated epsilon (smaller is more private)")
        if not narrow:
            axes.set_ylabel(self.scale.title)
        limits = self.limits or accuracy_range(curves, first, self.scale)
        levels = MaxNLocator(7, steps=[1, 2, 5, 10]).tick_values(*limits)
        axes.set_yticks(levels, [f"{level:g}" for level in levels])
        axes.set_ylim(levels[0], levels[-1])


def _label(curve: Result) -> str:
    name = curve.method if len(curve.method) <= _LONGEST else f"{curve.method[: _LONGEST - 1]}…"
    return name + (f", {curve.worst}" if curve.status == "claimed" else "")


def _heading(curve: Result) -> str:
    return f"{curve.method} — {curve.worst}"


def attack_svg(attack: KnownSampleAttack, title: str) -> str:
    """Draw the largest error of recovered rows against the number of known rows: one line for each entity."""
    width, height, left, bottom, top = 980, max(360, 70 + _LINE * len(attack.entities)), 64, 48, 12
    labels = [f"{entity.entity[:_LONGEST]} ({entity.features} features)" for entity in attack.entities]
    right = _MARK + _LETTER * max(map(len, labels))
    with style():
        picture, axes = new_chart(width, height, left, right, bottom, top)
        axes.set_yscale("log")
        # Three digits, as in the tooltips.
        errors = [
            [max(float(f"{error or 0.0:.3g}"), _EXACT) for error in entity.curve.max_error]
            for entity in attack.entities
        ]
        axes.set_ylim(_EXACT / 3, 3 * max(10.0, *itertools.chain(*errors)))
        axes.set_yticks([10.0**power for power in range(-16, 1, 4)], [f"1e{power}" for power in range(-16, 1, 4)])
        axes.set_xlim(0, 1.02 * max(count for entity in attack.entities for count in entity.curve.known))
        axes.set(xlabel="rows of the entity that the attacker knows", ylabel="largest error (standard deviations)")
        axes.minorticks_off()
        axes.tick_params(length=0)
        axes.grid(axis="y")
        axes.axhline(_RECOVERED, color=RED, linewidth=1.2, linestyle=(0, (1.5, 3)))
        below: dict[str, Any] = {"transform": axes.get_yaxis_transform(), "color": RED, "ha": "right", "va": "top"}
        axes.text(1, _RECOVERED / 2, "below: recovered ", **below)
        ends = []
        for number, (entity, label, heights) in enumerate(zip(attack.entities, labels, errors, strict=True)):
            mark = list(SYMBOLS.values())[number % len(SYMBOLS)][0]
            look: dict[str, Any] = {"color": COLOURS[number % 6][0], "linewidth": 2.0, "marker": mark, "markersize": 8}
            curve = entity.curve
            points = [
                f"{entity.entity}: {count} known rows, {entity.rows_needed} needed; largest error "
                f"{short_number(error or 0.0)}; {short_number(100 * (share or 0.0))} % of the other rows recovered"
                for count, error, share in zip(curve.known, curve.max_error, curve.recovered_share, strict=True)
            ]
            (line,) = axes.plot(curve.known, heights, **look, clip_on=False)
            named(line, label, points=points)
            ends.append(_End(_height(axes, heights[-1]), label, label, look))
        _write_labels(picture, width - right, ends, height - top - 4)
        return page_svg(picture, title)
