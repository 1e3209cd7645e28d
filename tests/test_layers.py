"""The contracts of .importlinter hold, and dependencies are used by their public interfaces."""

import ast
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.scripts import REPOSITORY

DOWNWARD, BENCH_DOWNWARD = "Imports of the library run downward", "Imports of the benchmark run downward"


def lint_imports(root: Path) -> subprocess.CompletedProcess:
    """Run the command of `make lint` on the library below `root`."""
    (recipe,) = re.findall(r"^\t(lint-imports.*)$", (REPOSITORY / "Makefile").read_text(), re.MULTILINE)
    return subprocess.run(
        [Path(sys.executable).parent / "lint-imports", *recipe.split()[1:], "--no-cache"],
        cwd=root,
        env=os.environ | {"PYTHONPATH": str(root / "lib"), "COLUMNS": "300"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """Copy the library with its contracts."""
    root = tmp_path_factory.mktemp("copy")
    shutil.copytree(REPOSITORY / "lib", root / "lib", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    shutil.copytree(REPOSITORY / "reproduce", root / "reproduce", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(REPOSITORY / ".importlinter", root)
    return root


def test_the_contracts_hold(copy):
    done = lint_imports(copy)
    assert done.returncode == 0, done.stdout
    assert "0 broken" in done.stdout


@pytest.mark.parametrize(
    ("module", "line", "broken"),
    [
        ("solvers/linear/hinge.py", "from privsvm.privacy import accounting", DOWNWARD),
        ("methods/svm.py", "import privsvm_bench.jobs.training", "The library does not import the benchmark"),
        ("methods/grpua.py", "from privsvm.methods.opera import OPERAClassifier", "No method imports another one"),
        ("base/rows.py", "import privsvm.base.estimators", "No cycles"),
        ("reproduce/engine/jobs.py", "import privsvm.methods.opera", "The engine of reproductions calls jobs"),
        ("reproduce/engine/experiment.py", "import reproduce.index", "Papers stand on their engine"),
        ("base/rows.py", "from privsvm import SVMClassifier", "No module imports the top-level package"),
        ("privsvm_bench/metrics.py", "import privsvm.base.rows", "Datasets, metrics and records do not depend"),
        ("privsvm_bench/tracking/store.py", "import privsvm.base.released", "Reporting and tracking depend on records"),
        ("privsvm_bench/reporting/curve_tables.py", "import json", "Reporting and tracking read records, not raw JSON"),
        ("privsvm_bench/workflow/stage.py", "import stages.train", "Neither imports a program"),
        ("privsvm_bench/jobs/training.py", "import privsvm_bench.workflow.stage", BENCH_DOWNWARD),
        ("newcomer.py", "", DOWNWARD),
        ("privsvm_bench/newcomer.py", "", BENCH_DOWNWARD),
    ],
)
def test_an_import_against_a_contract_fails(copy, module, line, broken):
    home = {"privsvm_bench": "lib", "reproduce": "."}.get(module.partition("/")[0], "lib/privsvm")
    path = copy / home / module
    text = path.read_text() if path.exists() else None
    # Imports inside functions count too.
    path.write_text(f"{text or ''}\n\ndef late():\n    {line or 'pass'}\n")
    try:
        done = lint_imports(copy)
    finally:
        path.unlink() if text is None else path.write_text(text)
    assert done.returncode != 0
    if line:
        assert re.search(rf"{re.escape(broken)}.* BROKEN", done.stdout), done.stdout


def test_no_file_is_too_long():
    for folder in ("lib", "stages", "reproduce", "docs", "tests", "bench", "examples"):
        for path in (REPOSITORY / folder).rglob("*.py"):
            lines = len(path.read_text().splitlines())
            assert lines <= 900, f"{path.relative_to(REPOSITORY)} has {lines} lines; divide it"


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
