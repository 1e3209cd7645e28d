"""Draw docs/images/architecture.svg from the layers of .importlinter: a package may import those below it."""

import configparser
import tomllib
from pathlib import Path

from matplotlib.patches import FancyBboxPatch

from privsvm_bench.charts import INK, SOFT, new_figure, style, svg_text

REPOSITORY = Path(__file__).resolve().parents[1]
# Programs above the library.
PROGRAMS = {"stages": "jobs of the workflow", "reproduce": "papers"}
DESCRIPTIONS = tomllib.loads(Path(__file__).with_name("architecture.toml").read_text(encoding="utf-8"))
# Modules in the bar at the bottom.
FOR_ALL = (
    "__main__", "files", "models", "plain_yaml", "untrusted", "escaping", "constraints", "digests", "errors", "warm_up",
    "arithmetic",
)  # fmt: skip
WIDTH, BOX, HEIGHT, STEP = 760, 148, 44, 60


def layers(contract: str) -> list[list[str]]:
    """List rows of boxes of one package from its contract in .importlinter."""
    contracts = configparser.ConfigParser()
    contracts.read(REPOSITORY / ".importlinter")
    lines = contracts[f"importlinter:contract:{contract}"]["layers"].split("\n")
    split = [[name.strip() for name in line.split("|")] for line in lines if line]
    return [row for row in split if not set(row) <= set(FOR_ALL)]


def rows() -> list[tuple[str, list[str]]]:
    """List the rows of boxes from top to bottom with their colours."""
    return [
        ("#fdf3e1", list(PROGRAMS)),
        *(("#eef6ea", row) for row in layers("bench") if row != ["command"]),
        *(("#eaf1fc", row) for row in layers("layers")),
    ]


def draw() -> str:
    """Draw the picture as SVG."""
    order = rows()
    height = 20 + STEP * (len(order) + 1)
    with style():
        figure, (axes,) = new_figure(WIDTH, height)
        axes.set(position=(0, 0, 1, 1), xlim=(0, WIDTH), ylim=(height, 0))
        axes.axis("off")

        def box(x: float, y: float, width: float, fill: str) -> None:
            look = {"boxstyle": "round,pad=0,rounding_size=6", "facecolor": fill, "edgecolor": SOFT}
            axes.add_patch(FancyBboxPatch((x, y), width, HEIGHT, **look))

        for number, (colour, row) in enumerate(order):
            gap = min((WIDTH - BOX * len(row)) / (len(row) + 1), 60)
            x, y = (WIDTH - BOX * len(row) - gap * (len(row) - 1)) / 2, 20 + number * STEP
            for name in row:
                box(x, y, BOX, colour)
                axes.text(x + BOX / 2, y + 19, name, ha="center", size=14, weight="bold", color=INK)
                axes.text(x + BOX / 2, y + 36, (PROGRAMS | DESCRIPTIONS)[name], ha="center", size=10.5, color=SOFT)
                x += BOX + gap
        box(60, 20 + len(order) * STEP, WIDTH - 120, "#f2f3f5")
        words = f"below all: {', '.join(FOR_ALL)}"
        axes.text(WIDTH / 2, 46 + len(order) * STEP, words, ha="center", color=SOFT)
        return svg_text(figure, "Packages of PrivSVM: each may import those below it")
