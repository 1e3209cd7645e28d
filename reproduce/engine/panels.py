"""Small charts: lines of our numbers with their bands, and the printed numbers."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from privsvm_bench.palette import COLOURS
from privsvm_bench.reporting.text import short_number
from reproduce.engine.comparison import Row

__all__ = ["Line", "Panel", "charts_of", "legend", "panel_svg"]

# Dashes tell the lines apart too.
_DASHES = ("", "6 3", "2 3", "8 2 2 2")
# Numbers of a table from which they are drawn against the printed ones.
_LEAST_PRINTED = 8


@dataclasses.dataclass(frozen=True)
class Line:
    """A line: its name, places, and at each our number, or the lower end, middle and upper end of our runs.

    Its style is matplotlib's: ".-" for points on a line, "." for points, "-" for a line, "D" for printed numbers, which
    have the colour of the line before.
    """

    name: str
    x: Sequence[Any]
    bands: Sequence[tuple[float, ...]]
    style: str = ".-"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Panel:
    """One panel of a figure, with our lines."""

    title: str
    x: str
    y: str
    lines: Sequence[Line]
    marks: Sequence[tuple[float, str]] = ()  # Printed places on the first axis, drawn as upright lines.
    points: Sequence[tuple[float, float]] = ()  # Printed numbers.
    log_x: bool = False
    log_y: bool = False

    @property
    def empty(self) -> bool:
        """Whether it has no numbers of ours."""
        return not any(line.x for line in self.lines)


def _dashes(text: str) -> Any:
    return (0, tuple(map(float, text.split()))) if text else "-"


def panel_svg(panel: Panel) -> str:
    """Draw a panel that is not empty, as an ``svg`` element with a title and no outside reference."""
    # Lazy import: only pages need matplotlib.
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    from privsvm_bench.charts import INK, named, new_figure, style, svg_text

    with style():
        # Names along the axis need room.
        names = any(isinstance(place, str) for line in panel.lines for place in line.x)
        figure, (axes,) = new_figure(*((700, 330) if names else (330, 220)))
        axes.set_position((0.1, 0.36, 0.88, 0.6) if names else (0.18, 0.2, 0.79, 0.76))
        axes.set(xlabel=panel.x, xscale="log" if panel.log_x else "linear", yscale="log" if panel.log_y else "linear")
        axes.grid(axis="y")
        for line, (_, colour, dashes) in zip(panel.lines, legend(panel), strict=True):
            if not line.x:
                continue
            lower, middle, upper = zip(*((band[0], band[len(band) // 2], band[-1]) for band in line.bands), strict=True)
            if len(line.bands[0]) > 1:
                axes.fill_between(line.x, lower, upper, color=colour, alpha=0.18, linewidth=0)
            marker, dash = line.style.rstrip("-"), _dashes(dashes) if line.style.endswith("-") else "none"
            filled = "none" if marker == "D" else colour
            drawn = axes.plot(line.x, middle, marker=marker, mfc=filled, ls=dash, color=colour)[0]
            named(drawn, line.name)
        for value, name in panel.marks:
            named(axes.axvline(value, color=INK, ls=(0, (1, 3)), lw=1), f"{name}: {value:g}")
        for x, y in panel.points:
            named(axes.plot(x, y, "D", mfc="none", mec=INK, ms=6)[0], f"printed {y:g} at {x:g}")
        axes.tick_params(axis="x", rotation=40 if names else 0)
        for axis, log in ((axes.xaxis, panel.log_x), (axes.yaxis, panel.log_y))[names:]:
            if log:
                low, high = axis.get_view_interval()
                axis.set_major_locator(LogLocator(subs=(1,) if high >= 100 * low else (1, 2, 5)))
            axis.set_major_formatter(FuncFormatter(lambda value, _: short_number(value, digits=3)))
            axis.set_minor_locator(NullLocator())
        return svg_text(figure, panel.title, {})


def legend(panel: Panel) -> list[tuple[str, str, str]]:
    """Name, colour and dashes of each line."""
    result: list[tuple[str, str, str]] = []
    number = -1
    for line in panel.lines:
        number += line.style != "D" or number < 0
        result.append((line.name, COLOURS[number % len(COLOURS)][0], _DASHES[number % len(_DASHES)]))
    return result


def charts_of(records: Iterable[Mapping[str, str]], rows: Sequence[Row]) -> list[Panel]:
    """Draw rows of a report: charts with a number of ours.

    Each record has ``table, method, metric`` of the rows (empty means any; bars part several); ``title``; ``x``: an
    attribute of a row, "number" (the first of its setting) or a key of its setting; ``lines`` and ``by``: a line and a
    chart for each value, with attributes in braces; ``log``: the axes that are logarithmic. Our numbers against printed
    ones follow, for each table and metric that has several.
    """
    panels = []
    for record in records:
        chosen = [
            row
            for row in rows
            if row.ours is not None
            and all(getattr(row, key) in record[key].split("|") for key in ("table", "method", "metric") if record[key])
        ]
        places = {id(row): place for row in chosen if (place := _place(row, record["x"])) != ""}
        if any(isinstance(place, str) for place in places.values()):
            places = {key: place if isinstance(place, str) else f"{place:g}" for key, place in places.items()}
        names = {id(row): tuple(_named(row, record[key], record["x"]) for key in ("by", "lines")) for row in chosen}
        for title in dict.fromkeys(names[key][0] for key in places):
            lines = []
            members = [row for row in chosen if id(row) in places and names[id(row)][0] == title]
            for name in dict.fromkeys(names[id(row)][1] for row in members):
                line = [row for row in members if names[id(row)][1] == name]
                style = "." if record["x"] == "dataset" else ".-"
                ours = [(row.ours,) for row in line if row.ours is not None]
                lines.append(Line(name, [places[id(row)] for row in line], ours, style))
                printed = [row for row in line if row.published and row.difference is not None]
                if printed:
                    numbers = [(float(row.published),) for row in printed]
                    lines.append(Line(f"{name}, printed", [places[id(row)] for row in printed], numbers, "D"))
            panels.append(_panel(", ".join(filter(None, (record["title"], title))), record["x"], lines, record["log"]))
    return [*panels, *_against_printed(rows)]


def _panel(title: str, x: str, lines: Sequence[Line], log: str) -> Panel:
    return Panel(title=title, x=x, y="", lines=lines, log_x="x" in log, log_y="y" in log)


def _against_printed(rows: Sequence[Row]) -> list[Panel]:
    """Draw ours against the printed numbers; on the line they are equal."""
    panels = []
    for table, metric in dict.fromkeys((row.table, row.metric) for row in rows):
        points = [
            (float(row.published), row.ours, row.method)
            for row in rows
            if (row.table, row.metric) == (table, metric)
            and row.published
            and row.difference is not None
            and row.ours is not None
        ]
        if len({x for x, _, _ in points}) < _LEAST_PRINTED:
            continue
        numbers = [number for x, y, _ in points for number in (x, y)]
        ends = [min(numbers), max(numbers)]
        # Numbers of one sign over several powers of ten.
        log = "xy" if ends[0] > 0 and ends[1] > 100 * ends[0] else ""
        lines = []
        for name in dict.fromkeys(method for _, _, method in points):
            members = [(x, y) for x, y, method in points if method == name]
            lines.append(Line(name, [x for x, _ in members], [(y,) for _, y in members], "."))
        title = f"{table}, {metric}: ours against printed"
        panels.append(_panel(title, "printed", [*lines, Line("equal", ends, [(end,) for end in ends], "-")], log))
    return panels


def _place(row: Row, name: str) -> Any:
    """Where a row stands on the first axis."""
    if name in ("dataset", "method", "setting", "metric"):
        return getattr(row, name)
    text = row.setting if name == "number" else f"{row.setting};".partition(f"{name}=")[2].partition(";")[0]
    number = (re.search if name == "number" else re.match)(r"-?\d+(\.\d*)?(e-?\d+)?", text)
    return text if number is None else float(number[0])


def _named(row: Row, template: str, x: str) -> str:
    """Fill a template; ``rest`` is the setting without the value on the first axis."""
    rest = ", ".join(part for part in map(str.strip, row.setting.split(";")) if not part.startswith(f"{x}="))
    return template.format(dataset=row.dataset, method=row.method, metric=row.metric, rest=rest,
                           status=", claimed" if row.setting.endswith("claimed") else "")  # fmt: skip
