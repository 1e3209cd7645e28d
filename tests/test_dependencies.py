"""Dependencies are used by their public interfaces: nothing is replaced, no private name is used."""

import ast
import re
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
# Excluded, because its examples would match.
THIS_FILE = Path(__file__).relative_to(REPOSITORY).as_posix()
SOURCES = sorted(
    path.relative_to(REPOSITORY).as_posix()
    for pattern in ("lib/**/*.py", "stages/**/*.py", "tests/**/*.py", "reproduce/**/*.py", "bench/**/*.py", "docs/*.py",
                    "examples/**/*.py")
    for path in REPOSITORY.glob(pattern)
)  # fmt: skip
PACKAGES = re.compile(
    r"(?:snakemake|snakemake_(?:interface|executor)\w+|numba|llvmlite|dvc\w*|mlflow|sklearn|joblib|_?pytest|xdist)(?=\.|$)"
)
DOTTED = re.compile(r"[\w.]+")
PRIVATE = re.compile(r"\b_(?!_\w+__\b)\w+")
# Functions that replace an attribute of their first argument, an object or its dotted name.
REPLACING = {"setattr", "delattr", "setitem", "delitem", "patch", "object"}
# Uses without a public alternative, at most five, each explained in docs/upstream.md.
ALLOWED = {("tests/methods/test_svc.py", "sklearn.svm")}


def list_imports(tree):
    """Map each imported name to its dotted name."""
    names = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                first = alias.name.split(".")[0]
                names[alias.asname or first] = alias.name if alias.asname else first
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    return names


def full_name(node, names):
    """Return the dotted name in a dependency, or None."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value if PACKAGES.match(node.value) else None
    attributes = []
    while isinstance(node, ast.Attribute):
        attributes.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name) or node.id not in names:
        return None
    name = ".".join([names[node.id], *reversed(attributes)])
    return name if PACKAGES.match(name) else None


def internals(source):
    """List replaced attributes and private names of dependencies."""
    tree = ast.parse(source)
    names = list_imports(tree)
    used = {name for name in names.values() if PACKAGES.match(name)}
    used |= {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module}
    replaced = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store | ast.Del):
            replaced.add(full_name(node, names))
        elif isinstance(node, ast.Attribute) or (isinstance(node, ast.Constant) and DOTTED.fullmatch(str(node.value))):
            used.add(full_name(node, names))
        elif isinstance(node, ast.Call) and node.args:
            function = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if function in REPLACING:
                replaced.add(full_name(node.args[0], names))
    private = {name for name in used if name and PACKAGES.match(name) and PRIVATE.search(name)}
    return (replaced | private) - {None}


def test_dependencies_are_used_by_public_names():
    sources = {path: (REPOSITORY / path).read_text(encoding="utf-8") for path in SOURCES if path != THIS_FILE}
    violations = {(path, name) for path, source in sources.items() for name in internals(source)}
    assert violations == ALLOWED
    assert len(ALLOWED) <= 5
