"""Source files that a job depends on: at least those that Python loads, none of other methods."""

import hashlib
import json
import os
import shutil
from pathlib import Path

import pytest

from privsvm.digests import sha256_of_code
from privsvm.errors import PrivSVMError
from privsvm_bench.workflow import sources
from privsvm_bench.workflow.sources import closure, closure_digest
from tests.processes import run_python
from tests.scripts import REPOSITORY

LOADED = """
import importlib, json, sys
importlib.import_module(sys.argv[1])
modules = [module for name, module in sys.modules.items() if name.split(".")[0] in ("privsvm", "privsvm_bench")]
print(json.dumps([module.__file__ for module in modules]))
"""


@pytest.mark.parametrize(
    "module",
    ["privsvm.methods.ppsvm", "privsvm.methods.recommended", "privsvm_bench.reporting.page"],
)
def test_closure_holds_all_that_python_loads(module):
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY / "lib")}
    paths = json.loads(run_python("-c", LOADED, module, env=environment))
    loaded = {Path(path).relative_to(REPOSITORY).as_posix() for path in paths}
    assert len(loaded) > 5
    assert loaded <= set(closure(module))


def test_closure_has_lazy_imports_and_package_data():
    needed = closure("stages/report.py")
    assert "lib/privsvm_bench/reporting/page.py" in needed
    assert "lib/privsvm_bench/reporting/templates/report.html.jinja" in needed
    assert "stages/report.py" in needed
    assert "lib/privsvm_bench/datasets/catalogue.json" in closure("stages/download.py")


def test_every_file_of_package_data_belongs_to_a_module():
    named = {
        path for patterns in sources.PACKAGE_DATA.values() for pattern in patterns for path in REPOSITORY.glob(pattern)
    }
    data_files = {
        path
        for folder in ("lib/privsvm", "lib/privsvm_bench", "reproduce/engine")
        for path in (REPOSITORY / folder).rglob("*")
        if path.is_file() and path.suffix not in {".py", ".pyc", ".nbi", ".nbc"} and path.name != "py.typed"
    }
    assert data_files | set(REPOSITORY.glob("reproduce/*/settings.yaml")) == named


@pytest.mark.parametrize("name", ["majority", "svm"])
def test_a_method_needs_no_other_method_nor_its_solver(name):
    needed = closure("stages/train.py", f"privsvm.methods.{name}")
    assert [file for file in needed if file.startswith("lib/privsvm/methods/")] == [
        "lib/privsvm/methods/__init__.py",
        f"lib/privsvm/methods/{name}.py",
    ]
    assert "lib/privsvm/solvers/linear/crammer_singer.py" not in needed
    assert "lib/privsvm/solvers/linear/crammer_singer.py" in closure("privsvm.methods.crammer_singer")


def test_digest_follows_code_and_not_words_or_times(tmp_path, monkeypatch):
    for folder in ("lib", "stages"):
        shutil.copytree(REPOSITORY / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(sources, "ROOT", tmp_path)

    def digest():
        sources._digest_of_file.cache_clear()
        return closure_digest("stages/train.py", "privsvm.methods.svm")

    before = digest()
    edited = tmp_path / "lib/privsvm/methods/svm.py"
    os.utime(edited, (0, 0))
    (tmp_path / "lib/privsvm/methods/majority.py").write_text("")
    assert digest() == before
    edited.write_text('"""Other words."""\n# A comment.\n' + edited.read_text().partition('"""\n')[2] + "\n\n")
    assert digest() == before
    edited.write_text(edited.read_text() + "CONSTANT = 1\n")
    assert digest() != before


WORDS = '''"""A module."""

SIZE = 3
"""Rows."""


class Rows:
    """Rows."""

    def add(self, row=""):
        """Add a row."""
        return f"{row}", (self, SIZE)  # Both.
'''
CODE = """SIZE = 3
class Rows:
    def add(self, row=''): return f"{row}", (self,
        SIZE)
"""


def test_code_is_all_but_words(tmp_path):
    def digest(text, name="module.py"):
        (tmp_path / name).write_text(text)
        return sha256_of_code(tmp_path / name)

    assert digest(WORDS) == digest(CODE)
    for old, new in (
        ("3", "4"),
        ("''", "'a'"),
        ("Rows", "Row"),
        ("{row}", "{row!r}"),
        ("(self,", "(self +"),
        ("=''", ""),
    ):
        assert digest(CODE.replace(old, new)) != digest(CODE)
    # The same under every version of Python.
    assert digest(WORDS).startswith("f5946d738b7dc6d8")
    # Other files, and those that no parser accepts, count by their bytes.
    for text, name in (("a = # b", "broken.py"), ("x: 1 # a", "file.yaml"), ("-" * 5000 + "1", "deep.py")):
        assert digest(text, name) == hashlib.sha256(text.encode()).hexdigest()


@pytest.mark.parametrize("entry", ["stages/nothing.py", "privsvm.nothing", "numpy"])
def test_mistakes_are_one_line(entry):
    with pytest.raises(PrivSVMError, match=f"^{entry}: neither a file nor a module of .*$"):
        closure(entry)
