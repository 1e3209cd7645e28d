"""Small line charts of a paper's figures as SVG: our medians with their bands, and what is printed."""

from __future__ import annotations

import dataclasses
import html
import math
from collections.abc import Sequence

from privsvm.reporting.text import short_number

__all__ = ["Line", "Panel", "legend", "panel_svg"]

_WIDTH, _HEIGHT = 330, 220
_LEFT, _RIGHT, _TOP, _BOTTOM = 54, 10, 10, 40
# Colours that keep a contrast of 3 on white; shapes tell the lines apart too.
_STYLES = (("#1f5fa8", ""), ("#b3401f", "6 3"), ("#4b6b2a", "2 3"), ("#6b4a9c", "8 2 2 2"))


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


class _Axis:
    """Place values between two ends of the drawing."""

    def __init__(self, values: Sequence[float], log: bool, start: float, end: float):
        self.log, self.start, self.end = log, start, end
        scaled = [self._scale(value) for value in values]
        low, high = min(scaled), max(scaled)
        room = 0.06 * (high - low) or 0.5
        self.low, self.high = low - room, high + room

    def _scale(self, value: float) -> float:
        return math.log10(max(value, 1e-9)) if self.log else value

    def place(self, value: float) -> float:
        share = (self._scale(value) - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    def ticks(self) -> list[float]:
        if self.log:
            found = [10.0**power for power in range(math.ceil(self.low), math.floor(self.high) + 1)]
            return (
                found
                if len(found) > 1
                else [10.0 ** (self.low + share * (self.high - self.low)) for share in (0.1, 0.9)]
            )
        step = 10.0 ** math.floor(math.log10((self.high - self.low) / 2.0))
        step *= next(factor for factor in (1, 2, 5, 10) if (self.high - self.low) / (step * factor) <= 5.0)
        first = math.ceil(self.low / step)
        return [step * number for number in range(first, math.floor(self.high / step) + 1)]


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
    xs = [*(x for line in panel.lines for x in line.x), *(x for x, _ in panel.marks), *(x for x, _ in panel.points)]
    ys = [*(y for line in panel.lines for band in line.bands for y in band), *(y for _, y in panel.points)]
    across = _Axis(xs, panel.log_x, _LEFT, _WIDTH - _RIGHT)
    up = _Axis(ys, panel.log_y, _HEIGHT - _BOTTOM, _TOP)
    title = html.escape(panel.title)
    parts = [
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{title}" font-size="10" fill="#1b1f27">',
        f"<title>{title}</title>",
        f'<path d="M{_LEFT} {_TOP}V{_HEIGHT - _BOTTOM}H{_WIDTH - _RIGHT}" fill="none" stroke="#6b7280"/>',
    ]
    parts += [
        f'<text x="{across.place(value):.1f}" y="{_HEIGHT - _BOTTOM + 13}" text-anchor="middle">'
        f"{short_number(value, digits=3)}</text>"
        for value in across.ticks()
    ]
    for value in up.ticks():
        y = up.place(value)
        parts.append(
            f'<path d="M{_LEFT} {y:.1f}H{_WIDTH - _RIGHT}" stroke="#e5e7eb"/>'
            f'<text x="{_LEFT - 4}" y="{y + 3:.1f}" text-anchor="end">{short_number(value, digits=3)}</text>'
        )
    for value, name in panel.marks:
        x = across.place(value)
        parts.append(
            f'<path d="M{x:.1f} {_TOP}V{_HEIGHT - _BOTTOM}" stroke="#1b1f27" stroke-dasharray="1 3">'
            f"<title>{html.escape(name)}: {value:g}</title></path>"
        )
    for number, line in enumerate(panel.lines):
        parts += _line(line, across, up, *_STYLES[number % len(_STYLES)])
    for x, y in panel.points:
        cx, cy = across.place(x), up.place(y)
        parts.append(
            f'<path d="M{cx:.1f} {cy - 5:.1f}l5 5l-5 5l-5 -5z" fill="none" stroke="#1b1f27" stroke-width="1.5">'
            f"<title>printed {y:g} at {x:g}</title></path>"
        )
    middle = (_LEFT + _WIDTH - _RIGHT) / 2
    parts.append(f'<text x="{middle}" y="{_HEIGHT - 8}" text-anchor="middle">{html.escape(panel.x)}</text>')
    parts.append("</svg>")
    return "".join(parts)


def _line(line: Line, across: _Axis, up: _Axis, colour: str, dashes: str) -> list[str]:
    if not line.x:
        return []
    places = [across.place(x) for x in line.x]
    lower = [f"{x:.1f} {up.place(band[0]):.1f}" for x, band in zip(places, line.bands, strict=True)]
    upper = [f"{x:.1f} {up.place(band[-1]):.1f}" for x, band in zip(places, line.bands, strict=True)]
    middle = [f"{x:.1f} {up.place(band[len(band) // 2]):.1f}" for x, band in zip(places, line.bands, strict=True)]
    dots = "".join(f"M{place}h.01" for place in middle)
    return [
        f'<path d="M{"L".join([*upper, *lower[::-1]])}Z" fill="{colour}" opacity=".18"/>',
        f'<path d="M{"L".join(middle)}" fill="none" stroke="{colour}" stroke-width="1.6" stroke-dasharray="{dashes}">'
        f"<title>{html.escape(line.name)}</title></path>",
        f'<path d="{dots}" stroke="{colour}" stroke-width="4.5" stroke-linecap="round"/>',
    ]


def legend(panel: Panel) -> list[tuple[str, str, str]]:
    """Name, colour and dashes of each line."""
    return [(line.name, *_STYLES[number % len(_STYLES)]) for number, line in enumerate(panel.lines)]
