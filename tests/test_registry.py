import importlib.metadata
import re
import sys

import pytest

import privsvm.methods
from privsvm.registry import ForeignSource, estimator_class, foreign_source, implementations, is_foreign
from tests.processes import run_python
from tests.refusals import refusal
from tests.scripts import REPOSITORY


def test_every_method_file_is_an_implementation():
    folder = REPOSITORY / "lib/privsvm/methods"
    files = {path.stem for path in folder.glob("[!_]*.py")} | {
        path.parent.name for path in folder.glob("*/__init__.py")
    }
    assert files == set(implementations())
    for implementation in implementations():
        assert callable(estimator_class(implementation)().fit)


def test_classes_are_found_in_the_text_of_their_files():
    """No list names them; a file may have others beside its method, and nothing is imported."""
    for implementation in implementations():
        assert privsvm.methods._modules()[estimator_class(implementation).__name__] == implementation
    names = {*privsvm.methods.__all__} - {
        estimator_class(implementation).__name__ for implementation in implementations()
    }
    assert names == {"CondensedInformation"}
    code = "import privsvm.methods, sys; print(len(privsvm.methods.__all__), {'numpy', 'numba'} & {*sys.modules})"
    assert run_python("-c", code) == f"{len(implementations()) + 1} set()\n"


def test_a_class_of_another_package():
    name = "sklearn.dummy:DummyClassifier"
    assert is_foreign(name)
    assert estimator_class(name).__name__ == "DummyClassifier"
    source = foreign_source(name)
    assert isinstance(source, ForeignSource)
    assert (source.package, source.version) == ("sklearn", importlib.metadata.version("scikit-learn"))


def test_the_digest_follows_the_source(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    package = tmp_path / "own_package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "module.py").write_text("class Mine:\n    pass\n")
    first = foreign_source("own_package.module:Mine")
    assert first == ForeignSource("own_package", "", first.digest)
    (package / "module.py").write_text('class Mine:\n    """Words."""\n\n    pass  # More.\n')
    assert foreign_source("own_package.module:Mine") == first
    (package / "module.py").write_text("class Mine:\n    x = 1\n")
    assert foreign_source("own_package.module:Mine").digest != first.digest


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("pmsvn_wp", "did you mean"),
        ("sklearn.dummy:DummyClasifier", "did you mean 'DummyClassifier'"),
        ("sklearn.dumy:DummyClassifier", "cannot be imported"),
        ("os; rm -rf:x", "is unknown"),
        ("no_such_package_anywhere.module:Class", "no package 'no_such_package_anywhere' is installed"),
        ("subprocess:Popen", "'subprocess' is of Python's standard library"),
        ("builtins:eval", "'builtins' is of Python's standard library"),
        ("antigravity:x", "'antigravity' is of Python's standard library"),
        ("test.support:Class", "'test' is of Python's standard library"),
        ("_testcapi:Class", "'_testcapi' is of Python's standard library"),
        ("__main__:Class", "'__main__' is of Python's standard library"),
        ("own.handed_on:Popen", "'subprocess' is of Python's standard library"),
        ("own.handed_on:NoMethods", "has no methods fit and predict"),
        ("own.handed_on:Instances", "has no methods fit and predict"),
        ("own.handed_on:predict", "has no class 'predict'"),
        ("own.raises:Class", "cannot be imported .a b."),
        ("own.leaves:Class", "cannot be imported .3."),
    ],
)
def test_what_is_not_there_is_one_line(name, message, tmp_path, monkeypatch):
    package = tmp_path / "own"
    package.mkdir()
    modules = {
        "handed_on": HANDED_ON, "raises": "raise RuntimeError('a\\nb')", "leaves": "import sys\nsys.exit(3)",
        "__init__": "",
    }  # fmt: skip
    for module, text in modules.items():
        (package / f"{module}.py").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr("sys.modules", {key: item for key, item in sys.modules.items() if key.split(".")[0] != "own"})
    assert re.search(message, refusal(estimator_class, name))
    assert "antigravity" not in sys.modules


# Constructing one of them fails the test.
HANDED_ON = """
from subprocess import Popen
class NoMethods:
    def __init__(self, *arguments, **others):
        raise SystemError
    fit = print
class Instances(NoMethods):
    predict = 3
def predict():
    raise SystemError
"""
