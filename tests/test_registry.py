import importlib.metadata
from pathlib import Path

import pytest

from privsvm.errors import PrivSVMError
from privsvm.registry import (
    ForeignSource,
    estimator_class,
    foreign_source,
    implementations,
    is_foreign,
)


def test_every_method_file_is_an_implementation():
    files = {path.stem for path in (Path(__file__).parents[1] / "lib/privsvm/methods").glob("[!_]*.py")}
    assert files == set(implementations())
    for implementation in implementations():
        assert callable(estimator_class(implementation)().fit)


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
    (package / "module.py").write_text("class Mine:\n    x = 1\n")
    assert foreign_source("own_package.module:Mine").digest != first.digest


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("pmsvn_wp", "did you mean"),
        ("sklearn.dummy:DummyClasifier", "did you mean 'DummyClassifier'"),
        ("sklearn.dumy:DummyClassifier", "cannot be imported"),
        ("os; rm -rf:x", "is unknown"),
        ("no_such_package_anywhere.module:Class", "install its package"),
    ],
)
def test_what_is_not_there_is_one_line(name, message):
    with pytest.raises(PrivSVMError, match=message) as caught:
        estimator_class(name)
    assert "\n" not in str(caught.value)


def test_a_package_that_is_not_installed():
    with pytest.raises(PrivSVMError, match="no package 'no_such_package_anywhere' is installed"):
        foreign_source("no_such_package_anywhere.module:Class")
