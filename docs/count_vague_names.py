"""Count names and comments that say little, as figures to look at, not to pass.

Run `python docs/count_vague_names.py`, with `--files` for the files that hold most of them.
"""

from __future__ import annotations

import argparse
import ast
import collections
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("lib", "stages", "reproduce", "bench", "tests", "docs", "examples")
VAGUE = {
    "begun", "few", "found", "known", "left", "own", "part", "parts", "place", "places", "said", "some", "together",
    "told", "ways", "whole", "worth",
}  # fmt: skip
INVERTED = re.compile(r"#\s*(What|Those|Where|Of|Were)\b")


def bound_names(tree: ast.AST) -> Iterator[str]:
    """Yield every name that a module binds."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.alias) and node.asname:
            yield node.asname


def comments(text: str) -> list[str]:
    """List the comments of a module; the lines of one block are one comment."""
    blocks: list[str] = []
    last = -2
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            if token.start[0] == last + 1 and not token.line[: token.start[1]].strip():
                blocks[-1] += f" {token.string}"
            else:
                blocks.append(token.string)
            last = token.start[0]
    return blocks


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--files", action="store_true", help="list the files that hold most vague names")
    options = parser.parse_args()
    total, vague, opened, blocks = 0, 0, 0, 0
    by_file: collections.Counter[str] = collections.Counter()
    for path in sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        names = list(bound_names(ast.parse(text)))
        hits = sum(name.strip("_") in VAGUE for name in names)
        block = comments(text)
        inverted = sum(INVERTED.match(comment) is not None for comment in block)
        by_file[path.relative_to(ROOT).as_posix()] = hits + inverted
        total, vague, opened, blocks = total + len(names), vague + hits, opened + inverted, blocks + len(block)
    print(f"{1000 * vague / total:.1f} of 1,000 bound names are vague ({vague} of {total})")
    print(f"{100 * opened / blocks:.1f} % of comments open with an inverted clause ({opened} of {blocks})")
    if options.files:
        for name, hits in by_file.most_common(60):
            print(f"{hits:4} {name}")


if __name__ == "__main__":
    main()
