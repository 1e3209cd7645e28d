"""SVG pictures by matplotlib: one style, reproducible bytes, colours of the surrounding page."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Mapping
from html import escape
from typing import Any

import matplotlib as mpl
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.path import Path

from privsvm_bench.palette import COLOURS

__all__ = ["BLUE", "BROWN", "CLAIMED", "CROSSED", "GREY", "INK", "LINE", "MARKERS", "NONE", "PANEL", "RED", "SOFT",
           "TEAL", "VARIABLES", "named", "new_figure", "style", "svg_text"]  # fmt: skip

INK, SOFT, LINE, PANEL, RED = "#1b1f27", "#525a68", "#d9dce2", "#ffffff", "#a4161a"
CLAIMED, NONE, GREY = "#63676e", "#46505f", "#8a93a3"
BLUE, BROWN, TEAL = (light for light, _ in COLOURS[:3])
# CSS variables that a page sets for light and dark screens.
VARIABLES = {INK: "--ink", SOFT: "--soft", LINE: "--line", PANEL: "--panel", CLAIMED: "--claimed", NONE: "--none"}
VARIABLES |= {light: f"--c{light[1:]}" for light, _ in COLOURS}

MARKERS = {
    "circle": "o", "square": "s", "diamond": "D", "triangle-up": "^", "triangle-down": "v", "pentagon": "p", "star": "*"
}  # fmt: skip
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
    """Start a figure.

    Parameters
    ----------
    width, height : float
        In pixels.
    columns : int, default=1
        Axes side by side.

    Returns
    -------
    figure : matplotlib.figure.Figure
    axes : list of matplotlib.axes.Axes
    """
    figure = Figure((width / 72, height / 72), dpi=72)
    return figure, list(figure.subplots(1, columns, squeeze=False)[0])


def named(artist: Artist, tooltip: str) -> None:
    """Show a tooltip when the mouse is over an artist."""
    artist.set_gid(f"title: {tooltip}")


def svg_text(figure: Figure, title: str, variables: Mapping[str, str] | None = None) -> str:
    """Write a figure as SVG.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
        Drawn inside of `style`.
    title : str
        Alternative text. Names of shapes are hashed with it, so that two pictures of one page need different titles or
        sizes.
    variables : mapping or None
        CSS variable of each colour, for a picture inside a page.

    Returns
    -------
    str
        An ``<svg>`` element.
    """
    stream = io.StringIO()
    width, height = 72 * figure.get_size_inches()
    with mpl.rc_context({"svg.hashsalt": f"{title} {width:g} {height:g}"}):
        no_metadata = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        figure.savefig(stream, format="svg", metadata=no_metadata, transparent=variables is not None)

    def tag(match: re.Match[str]) -> str:
        # Round to a tenth of a pixel: the last bits differ between processors.
        text = _NUMBER.sub(lambda number: f"{float(number[0]):.1f}".removesuffix(".0"), match[0])
        text = re.sub(r' transform="rotate\(-0 [^"]*"', "", re.sub(r"\s+", " ", text))
        text = re.sub(r' id="(?!title: |at-|[mpC][0-9a-f]{10})[^"]*"', "", text)
        text = re.sub(r'<g id="title: ([^"]*)"', r"<g><title>\1</title", text)
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
    body = re.sub(r"<[^>]*>", tag, body)
    body = re.sub(r'<g([^>]*)>((?:<use [^>]*? style="([^"]*)"/>)(?:<use [^>]*? style="\3"/>)*)(?=</g>)', hoist, body)
    head = f'viewBox="0 0 {width:g} {height:g}" role="img" aria-label="{escape(title)}"'
    content = body[body.index(">") + 1 :].strip()
    if variables is None:
        size = f'width="{width:g}" height="{height:g}"'
        namespaces = 'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'
        return f"<svg {namespaces} {size} {head}>\n<title>{escape(title)}</title>\n{content}\n"
    return f"<svg {head}>{content}"
