"""Small line charts of a paper's figures: our medians with their bands, and what is printed."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from privsvm_bench.reporting.text import short_number

__all__ = ["Line", "Panel", "legend", "panel_svg"]

# Shapes tell the lines apart too.
_STYLES = (("#1852cc", ""), ("#7b542d", "6 3"), ("#289676", "2 3"), ("#bb359c", "8 2 2 2"))


@dataclasses.dataclass(frozen=True)
class Line:
    """A line: its name, places, and at each the lower end, middle and upper end of what our runs give."""

    name: str
    x: Sequence[float]
    bands: Sequence[tuple[float, ...]]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Panel:
    """One panel of a figure.

    Attributes
    ----------
    title, x, y : str
        Heading, and what the axes show.
    lines : sequence of Line
        Ours.
    marks : sequence of (float, str)
        Printed places on the first axis, drawn as upright lines.
    points : sequence of (float, float)
        Printed numbers.
    log_x, log_y : bool
        Logarithmic axes.
    """

    title: str
    x: str
    y: str
    lines: Sequence[Line]
    marks: Sequence[tuple[float, str]] = ()
    points: Sequence[tuple[float, float]] = ()
    log_x: bool = False
    log_y: bool = False

    @property
    def empty(self) -> bool:
        """Whether no run has been drawn for it."""
        return not any(line.x for line in self.lines)


def _dashes(text: str) -> Any:
    return (0, tuple(map(float, text.split()))) if text else "-"


def panel_svg(panel: Panel) -> str:
    """Draw a panel.

    Parameters
    ----------
    panel : Panel
        What it shows; not empty.

    Returns
    -------
    str
        An ``svg`` element with a title and no reference to anything outside.
    """
    # Matplotlib is there for pages alone.
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    from privsvm_bench.charts import INK, named, new_figure, style, svg_text

    with style():
        figure, (axes,) = new_figure(330, 220)
        axes.set_position((0.18, 0.2, 0.79, 0.76))
        axes.set(xlabel=panel.x, xscale="log" if panel.log_x else "linear", yscale="log" if panel.log_y else "linear")
        axes.grid(axis="y")
        for line, (_, colour, dashes) in zip(panel.lines, legend(panel), strict=True):
            if not line.x:
                continue
            lower, middle, upper = zip(*((band[0], band[len(band) // 2], band[-1]) for band in line.bands), strict=True)
            axes.fill_between(line.x, lower, upper, color=colour, alpha=0.18, linewidth=0)
            named(axes.plot(line.x, middle, ".", ls=_dashes(dashes), color=colour)[0], line.name)
        for value, name in panel.marks:
            named(axes.axvline(value, color=INK, ls=(0, (1, 3)), lw=1), f"{name}: {value:g}")
        for x, y in panel.points:
            named(axes.plot(x, y, "D", mfc="none", mec=INK, ms=6)[0], f"printed {y:g} at {x:g}")
        for axis, log in ((axes.xaxis, panel.log_x), (axes.yaxis, panel.log_y)):
            if log:
                low, high = axis.get_view_interval()
                axis.set_major_locator(LogLocator(subs=(1,) if high >= 100 * low else (1, 2, 5)))
            axis.set_major_formatter(FuncFormatter(lambda value, _: short_number(value, digits=3)))
            axis.set_minor_locator(NullLocator())
        return svg_text(figure, panel.title, {})


def legend(panel: Panel) -> list[tuple[str, str, str]]:
    """Name, colour and dashes of each line."""
    return [(line.name, *_STYLES[number % len(_STYLES)]) for number, line in enumerate(panel.lines)]
