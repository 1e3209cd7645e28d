"""The curves of one data set as a picture: part of the page before any script runs, and a file of its own."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from privsvm.palette import Look
from privsvm.reporting.text import short_number

__all__ = ["CROSSED", "MARKS", "curve_svg"]

# Steps from the point that is marked.
CROSSED = "m-4.5-4.5h9v9h-9zl9 9m0-9l-9 9"
MARKS = {
    "circle": "m-4.2 0a4.2 4.2 0 1 0 8.4 0a4.2 4.2 0 1 0-8.4 0z",
    "square": "m-3.8-3.8h7.6v7.6h-7.6z",
    "diamond": "m0-5l5 5l-5 5l-5-5z",
    "triangle-up": "m0-5l4.8 8.6h-9.6z",
    "triangle-down": "m0 5l4.8-8.6h-9.6z",
    "pentagon": "m0-5l4.8 3.5l-1.9 5.5h-5.8l-1.9-5.5z",
    "star": "m0-5.6l1.4 3.8h3.9l-3.1 2.4l1.1 3.9l-3.3-2.3l-3.3 2.3l1.1-3.9l-3.1-2.4h3.9z",
}
# So many names fit beside the curves; of more, those that are highest on the right.
_MOST_LABELS = 24
_LINE = 15.5

# For a file of its own, which has no page to give it colours.
_STYLE = (
    "text{font:12.5px system-ui,sans-serif;fill:#1b1f27}.soft{fill:#525a68}.grid{stroke:#d9dce2}.axis{stroke:#525a68}"
    ".line{fill:none;stroke:currentColor;stroke-width:1.8}.mark{fill:currentColor}"
    ".claimed .line{stroke-dasharray:6 4;stroke-width:1.4}.claimed .mark{fill:none;stroke:currentColor}"
    ".none .line{stroke-dasharray:1.5 4;stroke-width:1.5}.seeded .mark{fill:#fff;stroke:currentColor;stroke-width:1.5}"
    ".claimed{color:#63676e}.none{color:#46505f}.best .line{stroke-width:3.2}text.label{fill:currentColor}"
)


class _Frame:
    """Pixels of the values."""

    def __init__(self, grid: Sequence[float], values: Sequence[float], narrow: bool, labels: float) -> None:
        self.width, self.height = (380, 320) if narrow else (980, 400)
        self.left, self.top, self.bottom = (38 if narrow else 58), 12, (44 if narrow else 48)
        self.right = 12 if narrow else 14 + labels
        self.logs = [math.log10(epsilon) for epsilon in grid]
        self.low_x, self.high_x = self.logs[0], self.logs[-1]
        low, high = min(values, default=0.0), max(values, default=1.0)
        step = next(step for step in (0.01, 0.02, 0.05, 0.1, 0.2) if (high - low) / step <= 7 or step == 0.2)
        self.step = step
        self.low, self.high = math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step
        if self.high <= self.low:
            self.high = self.low + step

    def x(self, epsilon: float) -> float:
        span = self.high_x - self.low_x
        share = (math.log10(epsilon) - self.low_x) / span if span else 0.5
        return self.left + 8 + share * (self.width - self.left - self.right - 16)

    def y(self, value: float) -> float:
        return self.top + (self.high - value) / (self.high - self.low) * (self.height - self.top - self.bottom)

    @property
    def ticks(self) -> list[float]:
        count = round((self.high - self.low) / self.step)
        return [self.low + self.step * number for number in range(count + 1)]


def _points(curve: Mapping[str, Any], metric: str) -> list[tuple[int, float]]:
    mean = curve["values"].get(metric, [[]])[0]
    return [(index, value) for index, value in enumerate(mean) if value is not None]


def _spread(wanted: Sequence[float], low: float, high: float) -> list[float]:
    """Move labels apart: from the top down, then back up from the bottom where there is no room left."""
    placed: list[float] = []
    for place in wanted:
        placed.append(max(place, placed[-1] + _LINE if placed else low))
    limit = high
    for index in range(len(placed) - 1, -1, -1):
        placed[index] = min(placed[index], limit)
        limit = placed[index] - _LINE
    return placed


def _axes(frame: _Frame, grid: Sequence[float], title: str, narrow: bool) -> list[str]:
    end = frame.width - frame.right
    base = frame.height - frame.bottom
    parts = []
    for tick in frame.ticks:
        y = frame.y(tick)
        parts.append(f'<path class="grid" d="M{frame.left} {y:.1f}H{end:.0f}"/>')
        parts.append(
            f'<text class="soft" x="{frame.left - 6}" y="{y + 4:.1f}" text-anchor="end">{100 * tick:.0f}</text>'
        )
    last = -math.inf
    for epsilon in grid:
        x = frame.x(epsilon)
        if x - last >= (26 if narrow else 34):
            last = x
            parts.append(
                f'<text class="soft" x="{x:.1f}" y="{base + 18}" text-anchor="middle">{short_number(epsilon)}</text>'
            )
    parts.append(f'<path class="axis" d="M{frame.left} {base}H{end:.0f}"/>')
    across = "ε (smaller is more private)" if narrow else "stated epsilon (smaller is more private)"
    middle = (frame.left + end) / 2
    parts.append(f'<text x="{middle:.0f}" y="{base + 37}" text-anchor="middle">{across}</text>')
    if not narrow:
        y = (frame.top + base) / 2
        parts.append(
            f'<text transform="translate(14 {y:.0f})rotate(-90)" text-anchor="middle">{escape(title)}, %</text>'
        )
    return parts


def _drawn(
    curve: Mapping[str, Any], points: Sequence[tuple[int, float]], frame: _Frame, symbol: str
) -> tuple[list[str], float]:
    """Return a curve's line and marks, and where it ends on the right."""
    if not curve["epsilons"]:
        y = frame.y(points[0][1])
        return [f'<path class="line" d="M{frame.left} {y:.1f}H{frame.width - frame.right:.0f}"/>'], y
    places = [(frame.x(curve["epsilons"][index]), frame.y(value)) for index, value in points]
    line = "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
    parts = [f'<path class="line" d="M{line}"/>']
    if curve["status"] != "none":
        outline = MARKS[symbol] if curve["status"] == "proved" else CROSSED
        marks = "".join(f"M{x:.1f} {y:.1f}{outline}" for x, y in places)
        parts.append(f'<path class="mark" d="{marks}"/>')
    return parts, places[-1][1]


def curve_svg(
    figure: Mapping[str, Any],
    methods: Sequence[str],
    looks: Sequence[Look],
    *,
    title: str = "Accuracy",
    metric: str = "accuracy",
    narrow: bool = False,
    chosen: int | None = None,
    alone: bool = False,
    best: Sequence[int] = (),
) -> str:
    """Draw a metric against epsilon.

    Parameters
    ----------
    figure : mapping
        One entry of `privsvm.reporting.utility.curve_figures`.
    methods : sequence of str
        Names of all methods of the report.
    looks : sequence of Look
        In the same order.
    title : str
        The metric's title.
    metric : str
        Its name.
    narrow : bool
        For a phone, without names beside the curves.
    chosen : int or None
        Index into the grid: each epsilon gets a line that the page's selector shows or hides. None draws none.
    alone : bool
        With colours of its own, as a file.
    best : sequence of int
        Curves, by their place in the figure, that are drawn thicker.

    Returns
    -------
    str
        An ``<svg>`` element.
    """
    curves = [
        (curve.get("place", place), curve, _points(curve, metric)) for place, curve in enumerate(figure["curves"])
    ]
    curves = [item for item in curves if item[2]]
    grid = figure["grid"]
    names = [methods[curve["method"]] for _, curve, _ in curves]
    longest = min(max((len(name) for name in names), default=0), 26)
    frame = _Frame(grid, [value for _, _, points in curves for _, value in points], narrow, 14 + 6.9 * longest)
    parts = _axes(frame, grid, title, narrow)
    if chosen is not None:
        base = frame.height - frame.bottom
        for index, epsilon in enumerate(grid):
            hidden = "" if index == chosen else " hidden"
            x = frame.x(epsilon)
            parts.append(f'<g data-at="{index}"{hidden}><path class="cursor" d="M{x:.1f} {frame.top}V{base}"/></g>')
    ends = []
    # Proved curves last, on top of the others.
    for (place, curve, points), name in sorted(
        zip(curves, names, strict=True), key=lambda item: ("none", "claimed", "proved").index(item[0][1]["status"])
    ):
        look = looks[curve["method"]]
        kind = f"{curve['status']}{' seeded' if curve['seeded'] else ''}{' best' if place in best else ''}"
        colour = ""
        if curve["status"] == "proved":
            colour = f' style="color:{look.light}"' if alone else f' style="--light:{look.light};--dark:{look.dark}"'
        drawn, end = _drawn(curve, points, frame, look.symbol)
        parts.append(f'<g class="curve {kind}"{colour}><title>{escape(name)}</title>{"".join(drawn)}</g>')
        ends.append((end, kind, colour, name))
    if not narrow:
        ends = sorted(sorted(ends)[:_MOST_LABELS])
        places = _spread([end for end, *_ in ends], frame.top + 4, frame.height - frame.bottom)
        x = frame.width - frame.right + 8
        for place, (end, kind, colour, name) in zip(places, ends, strict=True):
            line = f'<path class="line lead" d="M{x - 7:.0f} {end:.1f}L{x - 1:.0f} {place:.1f}"/>'
            lead = line if abs(place - end) > 3 else ""
            short = name if len(name) <= 26 else f"{name[:25]}…"
            parts.append(
                f'<g class="curve {kind}"{colour}>{lead}<text class="label" x="{x:.0f}" y="{place + 4:.1f}">'
                f"{escape(short)}</text></g>"
            )
    size = f'viewBox="0 0 {frame.width} {frame.height}"'
    label = escape(f"{title} against epsilon on {figure['name']}", quote=True)
    if alone:
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} width="{frame.width}" height="{frame.height}">'
            f"<title>{label}</title><style>{_STYLE}</style>"
            f'<rect width="100%" height="100%" fill="#fff"/>{"".join(parts)}</svg>\n'
        )
    shape = "narrow" if narrow else "wide"
    return f'<svg class="curves {shape}" {size} role="img" aria-label="{label}">{"".join(parts)}</svg>'
