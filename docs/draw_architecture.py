"""Draw docs/images/architecture.svg from the imports of the library and the rows of .importlinter.

An arrow from A to B: some module of A imports one of B. Arrows that follow from others (A to C where A goes to B and
B to C) are left out, as are those to the packages at the bottom, which all may import. Run
`python docs/draw_architecture.py` to renew the picture; a test compares the two.
"""

import ast
import configparser
import itertools
import math
from html import escape
from pathlib import Path

import grimp

REPOSITORY = Path(__file__).resolve().parents[1]
PICTURE = REPOSITORY / "docs" / "images" / "architecture.svg"
# Programs outside the library, above all of it.
PROGRAMS = {"stages": "jobs of the workflow", "reproduce": "papers"}
WHAT = {
    "command": "privsvm",
    "release": "models to hand over",
    "reproduction": "engine of reproductions",
    "pipeline": "what the stages call",
    "reporting": "page and figures",
    "tracking": "MLflow",
    "recommended": "the one to choose",
    "charts": "style of pictures",
    "records": "results and models",
    "metrics": "one entry per metric",
    "palette": "colours of methods",
    "data": "catalogue, splits",
    "methods": "one file per method",
    "model_selection": "searches",
    "auditing": "what releases show",
    "base": "shared by methods",
    "solvers": "no privacy",
    "privacy": "no solvers",
    "numerics": "compiled helpers",
}
# At the bottom, a bar in place of arrows.
FOR_ALL = ("__main__", "files", "models", "plain_yaml", "constraints", "digests", "errors", "warm_up", "arithmetic")
# The pipeline finds methods by the name that params.yaml gives, which no import shows.
BY_NAME = {("pipeline", "methods")}
WIDTH, BOX, HEIGHT, STEP = 760, 148, 44, 80

Edges = dict[str, set[str]]


def rows() -> list[list[str]]:
    """List the rows of boxes from top to bottom: programs, then the layers of .importlinter."""
    contracts = configparser.ConfigParser()
    contracts.read(REPOSITORY / ".importlinter")
    layers = contracts["importlinter:contract:layers"]["layers"].split("\n")
    found = [[name.strip() for name in layer.split("|")] for layer in layers if layer]
    return [list(PROGRAMS), *(row for row in found if not set(row) <= set(FOR_ALL))]


def imports() -> Edges:
    """Find which package imports which further down, directly."""
    graph = grimp.build_graph("privsvm", cache_dir=None)
    place = {name: number for number, row in enumerate(rows()) for name in row}
    edges: Edges = {name: set() for name in place}

    def add(importer: str, imported: str) -> None:
        target = imported.split(".")[1]
        if place.get(importer, math.inf) < place.get(target, 0):
            edges[importer].add(target)

    for module in sorted(graph.modules - {"privsvm"}):
        for imported in graph.find_modules_directly_imported_by(module) - {"privsvm"}:
            add(module.split(".")[1], imported)
    for program in PROGRAMS:
        for path in sorted((REPOSITORY / program).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text())):
                names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
                if isinstance(node, ast.ImportFrom) and node.module:
                    names = [f"{node.module}.{alias.name}" for alias in node.names]
                for name in names:
                    if name.startswith("privsvm.") and f"privsvm.{name.split('.')[1]}" in graph.modules:
                        add(program, name)
    return edges


def without_detours(edges: Edges) -> Edges:
    """Leave out every arrow that a longer path implies."""

    def reach(node: str, skip: str | None = None) -> set[str]:
        found: set[str] = set()
        for target in edges[node] - {skip}:
            found |= {target} | reach(target)
        return found

    return {
        node: {target for target in targets if target not in reach(node, target)} for node, targets in edges.items()
    }


def crossings(above: list[str], below: list[str], pieces: set[tuple[str, str]]) -> int:
    """Count the pairs of arrows between two rows that cross."""
    ends = [(above.index(a), below.index(b)) for a, b in pieces if a in above and b in below]
    return sum((a - c) * (b - d) < 0 for (a, b), (c, d) in itertools.combinations(ends, 2))


def arrange(edges: Edges) -> tuple[list[list[str]], dict[tuple[str, str], list[str]]]:
    """Order every row so that few arrows cross.

    Returns
    -------
    order : list of list of str
        The boxes of each row from left to right, and bends (``A>B@row``), where an arrow passes a row.
    paths : dict of (str, str) to list of str
        What each arrow passes, from its first box to its last.
    """
    order = rows()
    place = {name: number for number, row in enumerate(order) for name in row}
    paths, pieces = {}, set()
    for start, targets in sorted(edges.items()):
        for end in sorted(targets):
            bends = [f"{start}>{end}@{number}" for number in range(place[start] + 1, place[end])]
            for number, bend in enumerate(bends, place[start] + 1):
                order[number].append(bend)
            paths[start, end] = [start, *bends, end]
            pieces |= set(itertools.pairwise(paths[start, end]))

    def cost() -> tuple[int, int]:
        length = sum(
            abs(2 * above.index(a) - len(above) - 2 * below.index(b) + len(below))
            for above, below in itertools.pairwise(order)
            for a, b in pieces
            if a in above and b in below
        )
        return sum(crossings(above, below, pieces) for above, below in itertools.pairwise(order)), length

    best = cost()
    improved = True
    while improved:
        improved = False
        for row in order:
            for i, j in itertools.combinations(range(len(row)), 2):
                row[i], row[j] = row[j], row[i]
                if cost() < best:
                    best, improved = cost(), True
                else:
                    row[i], row[j] = row[j], row[i]
    return order, paths


def draw() -> str:
    """Make the picture's text."""
    edges = without_detours(imports())
    for start, end in BY_NAME:
        edges[start].add(end)
    order, paths = arrange(edges)
    middle: dict[str, tuple[float, float]] = {}
    for number, row in enumerate(order):
        widths = [16 if ">" in name else BOX for name in row]
        gap = min((WIDTH - sum(widths)) / (len(row) + 1), 60)
        x = (WIDTH - sum(widths) - gap * (len(row) - 1)) / 2
        for name, width in zip(row, widths, strict=True):
            middle[name] = (x + width / 2, 20 + number * STEP + HEIGHT / 2)
            x += width + gap

    height = 20 + (len(order) + 1) * STEP - 24
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        'font-family="system-ui, sans-serif" role="img" aria-label="Packages of PrivSVM and what they import">',
        "<!-- Generated by docs/draw_architecture.py from the imports. -->",
        '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0L8 4L0 8z" fill="#5b6472"/></marker></defs>',
        f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>',
    ]
    for (start, end), path in paths.items():
        x, y = middle[start]
        line = f"M{x:.0f} {y + HEIGHT / 2:.0f}"
        y += HEIGHT / 2
        for name in path[1:]:
            to_x, to_y = middle[name]
            top = to_y - HEIGHT / 2 - (2 if name == end else 0)
            bend = (top - y) / 2
            line += f"C{x:.0f} {y + bend:.0f} {to_x:.0f} {top - bend:.0f} {to_x:.0f} {top:.0f}"
            x, y = to_x, top
            if name != end:
                y += HEIGHT
                line += f"L{x:.0f} {y:.0f}"
        dashes = ' stroke-dasharray="5 4"' if (start, end) in BY_NAME else ""
        lines.append(
            f'<path d="{line}" fill="none" stroke="#5b6472" stroke-width="1.3"{dashes} marker-end="url(#head)"/>'
        )
    for name in itertools.chain.from_iterable(order):
        if ">" in name:
            continue
        x, y = middle[name]
        fill = "#fdf3e1" if name in PROGRAMS else "#eaf1fc"
        lines += [
            f'<rect x="{x - BOX / 2:.0f}" y="{y - HEIGHT / 2:.0f}" width="{BOX}" height="{HEIGHT}" rx="6" '
            f'fill="{fill}" stroke="#5b6472"/>',
            f'<text x="{x:.0f}" y="{y - 3:.0f}" text-anchor="middle" font-size="14" font-weight="600">{name}</text>',
            f'<text x="{x:.0f}" y="{y + 14:.0f}" text-anchor="middle" font-size="11" fill="#3d4552">'
            f"{escape((PROGRAMS | WHAT)[name])}</text>",
        ]
    y = 20 + len(order) * STEP
    lines += [
        f'<rect x="60" y="{y - 8}" width="{WIDTH - 120}" height="32" rx="6" fill="#f2f3f5" stroke="#5b6472"/>',
        f'<text x="{WIDTH / 2:.0f}" y="{y + 13}" text-anchor="middle" font-size="12" fill="#3d4552">'
        f"below all: {', '.join(FOR_ALL)}</text>",
    ]
    return "\n".join([*lines, "</svg>", ""])


if __name__ == "__main__":
    PICTURE.write_text(draw())
