"""Small charts: lines of our numbers with their bands, and the printed numbers."""

from __future__ import annotations

import dataclasses
import re
import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from privsvm_bench.palette import COLOURS
from privsvm_bench.reporting.text import short_number
from reproduce.engine.measurements import Measurement

# Dashes tell the lines apart too.
_DASHES = ("", "6 3", "2 3", "8 2 2 2")


@dataclasses.dataclass(frozen=True)
class Line:
    """A line: its name, places, and at each our number, or the lower end, middle and upper end of our runs.

    Its style is matplotlib's: ".-" for points on a line, "." for points, "-" for a line.
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
            drawn = axes.plot(line.x, middle, marker=marker, ls=dash, color=colour)[0]
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
    """Return name, colour and dashes of each line."""
    return [(line.name, COLOURS[number % len(COLOURS)][0], _DASHES[number % len(_DASHES)])
            for number, line in enumerate(panel.lines)]  # fmt: skip


def charts_of(records: Iterable[Mapping[str, str]], measurements: Iterable[Measurement]) -> list[Panel]:
    """Draw measurements of an experiment.

    Each record has ``table, method, metric`` of the cells (empty means any; bars part several); ``title``; ``x``: a
    name of the cell, "number" (the first of its setting), a key of its setting, "point" for curves or "pairs" for
    points; ``lines`` and ``by``: a line and a chart for each value, with names in braces; ``log``: logarithmic axes.
    """
    named_cells = [(item, dict(zip(_NAMES, item.cell.split("/"), strict=True))) for item in measurements]
    panels = []
    for record in records:
        charts: dict[str, dict[str, list[tuple[Any, float]]]] = {}
        for item, names in named_cells:
            labels = {**names, "table": item.table}
            if any(record[key] and labels[key] not in record[key].split("|") for key in ("table", "method", "metric")):
                continue
            points: list[tuple[Any, float]] = list(enumerate(item.values, start=1))
            if record["x"] == "pairs":
                points = list(zip(item.values[::2], item.values[1::2], strict=True))
            elif record["x"] != "point":
                points = [(_place(names, record["x"]), statistics.fmean(item.values))]
            line = charts.setdefault(_fill(names, record["by"], record["x"]), {})
            line.setdefault(_fill(names, record["lines"], record["x"]), []).extend(points)
        for title, lines in charts.items():
            dots = record["x"] in ("dataset", "pairs")
            drawn = [Line(name, *_columns(points), "." if dots and len(points) > 2 else ".-")
                     for name, points in lines.items()]  # fmt: skip
            title = ", ".join(filter(None, (record["title"], title)))
            panels.append(Panel(title=title, x=record["x"], y="", lines=drawn, log_x="x" in record["log"],
                                log_y="y" in record["log"]))  # fmt: skip
    return panels


_NAMES = ("dataset", "method", "setting", "metric")


def _columns(points: Sequence[tuple[Any, float]]) -> tuple[list[Any], list[tuple[float, ...]]]:
    """Return places and bands; a name among the places makes all of them names."""
    places = [place for place, _ in points if place != ""]
    if any(isinstance(place, str) for place in places):
        places = [place if isinstance(place, str) else f"{place:g}" for place in places]
    return places, [(value,) for place, value in points if place != ""]


def _place(names: Mapping[str, str], name: str) -> Any:
    """Return the place of a cell on the first axis."""
    if name in names:
        return names[name]
    text = names["setting"] if name == "number" else f"{names['setting']};".partition(f"{name}=")[2].partition(";")[0]
    number = (re.search if name == "number" else re.match)(r"-?\d+(\.\d*)?(e-?\d+)?", text)
    return text if number is None else float(number[0])


def _fill(names: Mapping[str, str], template: str, x: str) -> str:
    """Fill a template; ``rest`` is the setting without the value on the first axis."""
    parts = [part.strip() for part in names["setting"].split(";")]
    return template.format(**names, rest=", ".join(part for part in parts if not part.startswith(f"{x}=")))
