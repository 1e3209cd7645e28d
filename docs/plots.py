"""Small plots as SVG, for the figures of the methods: panels side by side, each with axes and a title."""

from html import escape

import numpy as np

BLUE, BROWN, TEAL, GREY = "#1852cc", "#7b542d", "#289676", "#8a93a3"
WIDTH, HEIGHT = 330, 264
_LEFT, _RIGHT, _TOP, _BOTTOM = 44, 12, 34, 42
_MARKS = {
    "circle": "m-{0} 0a{0} {0} 0 1 0 {1} 0a{0} {0} 0 1 0-{1} 0z",
    "square": "m-{0}-{0}h{1}v{1}h-{1}z",
    "cross": "m-{0}-{0}l{1} {1}m0-{1}l-{1} {1}",
}


class Panel:
    """Axes with what is drawn on them.

    Parameters
    ----------
    title, across, up : str
        Words above, below and on the left.
    x, y : (float, float)
        Ends of the axes.
    ticks : bool, default=True
        Whether numbers stand at the axes.
    """

    def __init__(self, title, x, y, across="", up="", ticks=True):
        self.title, self.across, self.up, self.limits, self.ticks = title, across, up, (x, y), ticks
        self.parts, self.names = [], []

    def place(self, x, y):
        """Pixels of values."""
        (low, high), (bottom, top) = self.limits
        return (
            _LEFT + (np.asarray(x, dtype=float) - low) / (high - low) * (WIDTH - _LEFT - _RIGHT),
            _TOP + (top - np.asarray(y, dtype=float)) / (top - bottom) * (HEIGHT - _TOP - _BOTTOM),
        )

    def line(self, x, y, colour=BLUE, dashes="", width=1.6, name=""):
        """Draw a line through points."""
        across, down = self.place(x, y)
        path = "L".join(f"{a:.1f} {b:.1f}" for a, b in zip(across, down, strict=True))
        look = f'fill="none" stroke="{colour}" stroke-width="{width}"'
        look += f' stroke-dasharray="{dashes}"' if dashes else ""
        self.parts.append(f'<path d="M{path}" {look}/>')
        self._named(name, f'<path d="M0 -4h18" {look}/>')

    def marks(self, x, y, colour=BLUE, shape="circle", size=2.6, hollow=False, name=""):
        """Draw a mark at every point."""
        across, down = self.place(x, y)
        outline = _MARKS[shape].format(size, 2 * size)
        look = f'fill="{"none" if hollow or shape == "cross" else colour}" stroke="{colour}"'
        path = "".join(f"M{a:.1f} {b:.1f}{outline}" for a, b in zip(across, down, strict=True))
        self.parts.append(f'<path d="{path}" {look}/>')
        self._named(name, f'<path d="M9 -4{outline}" {look}/>')

    def bars(self, x, height, width, colour=BLUE, name=""):
        """Draw upright bars from zero."""
        for middle, top in zip(x, height, strict=True):
            left, a = self.place(middle - width / 2, max(top, 0.0))
            right, b = self.place(middle + width / 2, min(top, 0.0))
            size = f'width="{right - left:.1f}" height="{b - a:.1f}"'
            self.parts.append(f'<rect x="{left:.1f}" y="{a:.1f}" {size} fill="{colour}"/>')
        self._named(name, f'<rect x="3" y="-10" width="12" height="10" fill="{colour}"/>')

    def text(self, x, y, words, anchor="middle"):
        """Write words at a point."""
        across, down = self.place(x, y)
        self.parts.append(f'<text x="{across:.1f}" y="{down:.1f}" text-anchor="{anchor}">{escape(words)}</text>')

    def cells(self, values, x, y, size):
        """Draw a table of numbers from 0 to 1 as grey squares; ``x``, ``y`` is its left upper corner."""
        for row, line in enumerate(values):
            for column, value in enumerate(line):
                across, down = self.place(x + column * size, y - row * size)
                end, below = self.place(x + (column + 1) * size, y - (row + 1) * size)
                grey = round(255 - 215 * float(value))
                box = f'x="{across:.1f}" y="{down:.1f}" width="{end - across:.1f}" height="{below - down:.1f}"'
                self.parts.append(f'<rect {box} fill="rgb({grey},{grey},{grey})"/>')

    def _named(self, name, mark):
        if name:
            self.names.append((name, mark))

    def svg(self):
        """Write the panel, its upper left corner at the origin."""
        left, right, bottom = _LEFT, WIDTH - _RIGHT, HEIGHT - _BOTTOM
        parts = [f'<text x="{left}" y="20" font-weight="600">{escape(self.title)}</text>']
        if self.ticks:
            for axis, (low, high) in enumerate(self.limits):
                for value in _round_numbers(low, high):
                    x, y = self.place(value, value)
                    words = f"{value:g}"
                    if axis == 0:
                        parts.append(f'<text x="{x:.1f}" y="{bottom + 15}" text-anchor="middle">{words}</text>')
                    else:
                        parts.append(f'<text x="{left - 5}" y="{y + 4:.1f}" text-anchor="end">{words}</text>')
        # What lies outside the axes is not drawn.
        box = f"{left} {_TOP} {right - left} {bottom - _TOP}"
        x, y, width, height = box.split()
        parts.append(f'<svg x="{x}" y="{y}" width="{width}" height="{height}" viewBox="{box}">')
        parts += [*self.parts, "</svg>"]
        parts.append(f'<path d="M{left} {_TOP}V{bottom}H{right}" fill="none" stroke="#525a68"/>')
        parts.append(
            f'<text x="{(left + right) / 2:.0f}" y="{bottom + 34}" text-anchor="middle">{escape(self.across)}</text>'
        )
        middle = (_TOP + bottom) / 2
        parts.append(
            f'<text transform="translate(12 {middle:.0f})rotate(-90)" text-anchor="middle">{escape(self.up)}</text>'
        )
        for number, (name, mark) in enumerate(self.names):
            y = _TOP + 12 + 15 * number
            box = f'x="{right - 156}" y="{y - 11}" width="156" height="14"'
            parts.append(f'<rect {box} fill="#fff" fill-opacity=".8"/>')
            parts.append(f'<g transform="translate({right - 152} {y})">{mark}<text x="23">{escape(name)}</text></g>')
        return "".join(parts)


def _round_numbers(low, high):
    """About four round numbers between two."""
    steps = [factor * 10.0**power for power in range(-3, 6) for factor in (1, 2, 5)]
    step = next(step for step in steps if (high - low) / step <= 5)
    first, last = int(np.ceil(low / step - 1e-9)), int(np.floor(high / step + 1e-9))
    return [round(step * number, 6) for number in range(first, last + 1)]


def figure(words, *panels):
    """Write panels side by side as one picture.

    Parameters
    ----------
    words : str
        What it shows, for those who do not see it.
    *panels : Panel
        From left to right.

    Returns
    -------
    str
    """
    width = WIDTH * len(panels)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {HEIGHT}" role="img" '
    head += f'aria-label="{escape(words)}" font-family="system-ui, sans-serif" font-size="11.5" fill="#1b1f27">'
    drawn = [f'<g transform="translate({WIDTH * number} 0)">{panel.svg()}</g>' for number, panel in enumerate(panels)]
    back = f'<rect width="{width}" height="{HEIGHT}" fill="#fff"/>'
    note = "<!-- Generated by docs/draw_methods.py from the methods themselves. -->"
    return "\n".join([head, note, back, *drawn, "</svg>", ""])
