"""The contracts of .importlinter hold, and an import against them fails `lint-imports`."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

DOWNWARD, BENCH_DOWNWARD = "Imports of the library run downward", "Imports of the benchmark run downward"
REPOSITORY = Path(__file__).resolve().parents[1]


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
        ("base/validation.py", "import privsvm.base.estimators", "No cycles"),
        ("reproduce/engine/jobs.py", "import privsvm.methods.opera", "The engine of reproductions calls jobs"),
        ("reproduce/engine/experiment.py", "import reproduce.index", "Papers stand on their engine"),
        ("base/validation.py", "from privsvm import SVMClassifier", "No module imports the top-level package"),
        ("privsvm_bench/metrics.py", "import privsvm.base.validation", "Datasets, metrics and records do not depend"),
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
