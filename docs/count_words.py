"""Count free relative clauses and participle names: ``python docs/count_words.py [FOLDER]``.

Prints, for each package of the repository in FOLDER, clauses per 1,000 words of docstrings and comments, and functions
whose name begins with a participle per 1,000 functions; for pages, clauses alone. These are figures, not a gate.
"""

from __future__ import annotations

import ast
import io
import re
import subprocess
import sys
import tokenize
from collections import defaultdict
from pathlib import Path

CLAUSE = re.compile(
    r"\bwhat (?:is|are|was|were|has|have|had|does|did|can|may|must|a|an|the|it|they|its|one|each|no)\b(?![^.!?]*\?)"
    r"|\b(?:that|those) of\b|\bwhoever\b",
    re.IGNORECASE,
)
IRREGULAR = "built chosen done drawn felt found given held hidden kept known made met paid said seen shown taken told"
VERBS = {"embed", "exceed", "feed", "need", "proceed", "seed", "shed", "speed"}


def is_participle(word: str) -> bool:
    """Tell whether a part of a name is a past participle."""
    return word in IRREGULAR.split() or (word.endswith("ed") and word not in VERBS and len(word) > 3)


def count_source(source: str) -> tuple[list[str], int, int]:
    """Return docstrings and comments, and count functions and those that a participle names."""
    nodes = list(ast.walk(ast.parse(source)))
    words = [ast.get_docstring(x) or "" for x in nodes if isinstance(x, (ast.Module, ast.ClassDef, ast.FunctionDef))]
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    words += [token.string.lstrip("#") for token in tokens if token.type == tokenize.COMMENT]
    names = [node.name.strip("_").split("_")[0] for node in nodes if isinstance(node, ast.FunctionDef)]
    return words, len(names), sum(map(is_participle, names))


if __name__ == "__main__":
    root = Path(sys.argv[1] if sys.argv[1:] else Path(__file__).parents[1])
    counts: dict[str, list[int]] = defaultdict(lambda: [0] * 5)
    for name in subprocess.check_output(["git", "ls-files", "*.py", "*.md"], cwd=root, text=True).split():
        source, is_page = (root / name).read_text(encoding="utf-8"), name.endswith(".md")
        texts, functions, participles = ([source], 0, 0) if is_page else count_source(source)
        prose = re.sub(r"```.*?```", " ", " ".join(" ".join(texts).split()))
        figures = (source.count("\n"), len(prose.split()), len(CLAUSE.findall(prose)), functions, participles)
        folders = name.split("/")[:-1]
        depths = (2, 3) if folders[:1] == ["lib"] else (1,)
        for group in {"pages"} if is_page else {"/".join(folders[:depth]) or "." for depth in depths}:
            counts[group] = [a + b for a, b in zip(counts[group], figures, strict=True)]
    print(f"{'package':36}  lines    words  clauses  per 1,000  functions  participles  per 1,000")
    for name, (lines, words, clauses, functions, participles) in sorted(counts.items()):
        share, names = 1000 * clauses / max(words, 1), 1000 * participles / max(functions, 1)
        print(f"{name:36} {lines:6} {words:8} {clauses:8} {share:10.2f} {functions:10} {participles:12} {names:10.0f}")
