"""SVG pictures by matplotlib: one style, reproducible bytes, colours of the surrounding page."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import math
import re
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import matplotlib as mpl
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.path import Path

from privsvm_bench.palette import CLAIMED, COLOURS, NONE

INK, SOFT, LINE, PANEL, RED = "#1b1f27", "#525a68", "#d9dce2", "#ffffff", "#a4161a"
GREY = "#8a93a3"
BLUE, BROWN, TEAL = (light for light, _ in COLOURS[:3])
# CSS variables that a page sets for light and dark screens.
VARIABLES = {
    INK: "--ink",
    SOFT: "--soft",
    LINE: "--line",
    PANEL: "--panel",
    CLAIMED: "--claimed",
    NONE: "--none",
    RED: "--broken",
}
VARIABLES |= {light: f"--c{light[1:]}" for light, _ in COLOURS}

# A crossed box: a claim that does not hold.
CROSSED = Path([(-1, -1), (1, -1), (1, 1), (-1, 1), (-1, -1), (1, 1), (-1, 1), (1, -1)], [1, 2, 2, 2, 2, 2, 1, 2])

_STYLE: Any = {
    # Text stays text, for screen readers, search and the font of the page.
    "svg.fonttype": "none", "font.sans-serif": ["DejaVu Sans"], "font.size": 12,
    "axes.labelsize": 12, "axes.titlesize": 12, "axes.titleweight": "bold",
    "axes.titlelocation": "left", "legend.fontsize": 11, "legend.frameon": False, "text.color": INK,
    "axes.labelcolor": INK, "axes.edgecolor": SOFT, "xtick.color": SOFT, "ytick.color": SOFT, "xtick.major.pad": 6,
    "grid.color": LINE,
    "grid.linewidth": 1, "axes.axisbelow": True, "axes.spines.top": False, "axes.spines.right": False,
    "lines.linewidth": 1.8, "lines.scale_dashes": False, "figure.facecolor": PANEL, "axes.facecolor": "none",
}  # fmt: skip
_NUMBER = re.compile(r"-?\d+\.\d+")


def style() -> contextlib.AbstractContextManager[None]:
    """Set matplotlib's parameters for a ``with`` block that draws a picture."""
    return mpl.rc_context(_STYLE)


def new_figure(width: float, height: float, columns: int = 1) -> tuple[Figure, list[Axes]]:
    """Start a figure of a size in pixels, with axes side by side."""
    figure = Figure((width / 72, height / 72), dpi=72)
    return figure, list(figure.subplots(1, columns, squeeze=False)[0])


def new_chart(width: float, height: float, left: float, right: float, bottom: float, top: float) -> tuple[Figure, Axes]:
    """Start a figure with one pair of axes inside of margins, all in pixels."""
    figure, (axes,) = new_figure(width, height)
    axes.set_position((left / width, bottom / height, 1 - (left + right) / width, 1 - (bottom + top) / height))
    return figure, axes


def named(artist: Artist, tooltip: str, more: bool = False, points: Sequence[str] = ()) -> None:
    """Show a tooltip when the mouse is over an artist, and one for each of a line's markers.

    With `more`, the class of the artist is ``more``.
    """
    lines = [f"{'more' if more else 'title'}: {tooltip}", *points]
    artist.set_gid("\n".join(" ".join(line.split()) for line in lines))


def svg_text(figure: Figure, title: str, variables: Mapping[str, str] | None = None) -> str:
    """Write a figure, drawn inside of `style`, as an ``<svg>`` element with `title` as alternative text.

    Names of shapes are hashed with the title, so that two pictures of one page need different titles or sizes.
    `variables` gives the CSS variable of each colour, for a picture inside a page.
    """
    stream = io.StringIO()
    width, height = 72 * figure.get_size_inches()
    with mpl.rc_context({"svg.hashsalt": f"{title} {width:g} {height:g}"}):
        no_metadata = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        figure.savefig(stream, format="svg", metadata=no_metadata, transparent=variables is not None)

    points: list[str] = []  # Tooltips of the markers that follow.

    def tag(match: re.Match[str]) -> str:
        if tooltips := re.fullmatch(r'<g id="(title|more): ([^"]*)"([^>]*)>', match[0]):
            title, *points[:] = tooltips[2].split("\n")
            kind = "" if tooltips[1] == "title" else ' class="more"'
            return f"<g{kind}{tooltips[3]}><title>{title}</title>"
        # Round to a tenth of a pixel: the last bits differ between processors.
        text = _NUMBER.sub(lambda number: f"{float(number[0]):.1f}".removesuffix(".0"), match[0])
        text = re.sub(r' transform="rotate\(-0 [^"]*"', "", re.sub(r"\s+", " ", text))
        text = text.replace('<g id="band"', '<g class="band"')
        text = re.sub(r' id="(?!at-|[mpC][0-9a-f]{10})[^"]*"', "", text)
        if points and text.startswith("<use "):
            text = f"{text.removesuffix('/>')}><title>{points.pop(0)}</title></use>"
        if variables is not None:
            text = text.replace("font-family: 'DejaVu Sans', sans-serif; ", "").replace("xlink:href", "href")
        for colour, variable in (variables or {}).items():
            text = text.replace(colour, f"var({variable})")
        return text

    def hoist(match: re.Match[str]) -> str:
        # matplotlib repeats the common style of all marks of a line.
        return f'<g{match[1]} style="{match[3]}">' + match[2].replace(f' style="{match[3]}"', "")

    body = stream.getvalue().partition("<svg")[2]
    body = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>|<!--.*?-->|<g/>|\n\s+(?=<)", "", body, flags=re.DOTALL)
    body = re.sub(r'<g([^>]*)>((?:<use [^>]*? style="([^"]*)"/>)(?:<use [^>]*? style="\3"/>)*)(?=</g>)', hoist, body)
    body = re.sub(r"<[^>]*>", tag, body)
    head = f'viewBox="0 0 {width:g} {height:g}" role="img" aria-label="{escape(title)}"'
    content = body[body.index(">") + 1 :].strip()
    if variables is None:
        size = f'width="{width:g}" height="{height:g}"'
        namespaces = 'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'
        return f"<svg {namespaces} {size} {head}>\n<title>{escape(title)}</title>\n{content}\n"
    return f"<svg {head}>{content}"


def page_svg(figure: Figure, title: str, narrow: bool = False) -> str:
    """Write a figure as `svg_text` does, in the colours of the report; `narrow` ones are for a phone."""
    kind = "narrow" if narrow else "wide"
    return svg_text(figure, title, VARIABLES).replace("<svg ", f'<svg class="curves {kind}" ', 1)


@dataclasses.dataclass(frozen=True)
class AuditBar:
    """One method's row of `audit_bars`."""

    name: str
    colour: str
    is_claim: bool  # Whether the stated epsilon lacks a proof.
    bound: float | None  # The largest epsilon that an audit shows; None without an audit.
    refuted: bool  # Whether the audit refutes the stated epsilon.

    @property
    def words(self) -> str:
        """The bound in words."""
        if self.bound is None:
            return "not audited"
        if math.isinf(self.bound):
            return "no ε holds: refuted"
        return f"at least {self.bound:.2f}{': refuted' if self.refuted else ''}"


# Bars end at this multiple of the stated epsilon.
_BAR_END = 3.0


def audit_bars(bars: Sequence[AuditBar], stated: float, title: str, *, narrow: bool = False, alone: bool = True) -> str:
    """Draw the audit of each method as a bar in its row, against a line at the epsilon that all state.

    Proved methods come first in `bars`. `title` is the alternative text. `narrow` is for a phone, with the names above
    the bars, and `alone` for a file. Returns an ``<svg>`` element.
    """
    heading, row, top, bottom = 28, 38 if narrow else 22, 24, 46
    width, left, right = (
        (380, 10, 10) if narrow else (900, 8 + 7.4 * max((len(bar.name) for bar in bars), default=0), 165)
    )
    groups = {
        "Proved methods: no bar may pass the line": [bar for bar in bars if not bar.is_claim],
        "Claims: a bar past the line refutes the claim": [bar for bar in bars if bar.is_claim],
    }
    groups = {words: members for words, members in groups.items() if members}
    inner = sum(heading + row * len(members) for members in groups.values())
    height, end = inner + top + bottom, _BAR_END * stated
    with style():
        figure, axes = new_chart(width, height, left, right, bottom, top)
        axes.set(
            xlim=(0, end), ylim=(inner, 0), yticks=[], xlabel=f"ε that an audit shows, at least (bars end at {end:g})"
        )
        axes.set_xticks([step * stated for step in range(4)], [f"{step * stated:g}" for step in range(4)])
        axes.spines["left"].set_visible(False)

        def write(x: float, y: float, text: str, **look: Any) -> None:
            """Write at a place in pixels, from the upper left corner."""
            figure.text(x / width, 1 - y / height, text, va="center", parse_math=False, **look)

        line = left + (width - left - right) / _BAR_END
        write(line - 5, top / 2, f"stated ε = {stated:g}", ha="right", color=RED)
        write(line + 5, top / 2, "more than stated", ha="left", color=RED)
        y = 0.0
        for words, members in groups.items():
            write(4, top + y + heading / 2, words, weight="bold")
            y += heading
            for bar in members:
                middle, text = (y + 27, y + 10) if narrow else (y + row / 2, y + row / 2)
                half = 8 if narrow else row / 2
                axes.fill_between([stated, end], middle - half, middle + half, color=RED, alpha=0.07, linewidth=0)
                length = 0.0 if bar.bound is None else min(bar.bound, end)
                (patch,) = axes.barh(middle, length, height=13, color=bar.colour)
                named(patch, bar.name)
                axes.vlines(stated, middle - half, middle + half, color=RED, linewidth=1.6)
                write(left if narrow else left - 8, top + text, bar.name, ha="left" if narrow else "right")
                write(
                    width - right if narrow else width - right + 8, top + text, bar.words,
                    ha="right" if narrow else "left", color=RED if bar.refuted else INK,
                    weight="bold" if bar.refuted else "normal",
                )  # fmt: skip
                y += row
        return svg_text(figure, title) if alone else page_svg(figure, title, narrow)
