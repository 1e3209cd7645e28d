"""Examples in the library's docstrings run and print their output."""

import doctest
import importlib
from pathlib import Path

import pytest

LIBRARY = Path(__file__).resolve().parents[1] / "lib"
WITH_EXAMPLES = [
    ".".join(path.relative_to(LIBRARY).with_suffix("").parts)
    for path in sorted(LIBRARY.rglob("*.py"))
    if ">>> " in path.read_text()
]


def test_every_method_has_an_example():
    methods = {path.stem for path in (LIBRARY / "privsvm/methods").glob("[!_]*.py")}
    # svm.py names the class of families/exact/kernel_svm.py, whose example it shares.
    assert methods - {"svm"} <= {name.rpartition(".")[2] for name in WITH_EXAMPLES}


@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_examples(name):
    done = doctest.testmod(importlib.import_module(name))
    assert done.attempted > 0
    assert done.failed == 0
