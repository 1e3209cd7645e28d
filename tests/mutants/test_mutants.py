"""The list of planted bugs fits the sources, and a sample is planted and found."""

import ast
import functools
import os
import re
import subprocess
import sys

import pytest

from tests.mutants.mutant import MUTANTS
from tests.scripts import REPOSITORY

# Names of tests of accuracy, which must not find bugs.
ACCURACY = re.compile(r"accura|score|agrees_with_liblinear|from_chance", re.IGNORECASE)


def test_there_are_many_and_each_has_its_name():
    assert len(MUTANTS) >= 80
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)


def parse_source(file, text):
    """Return a source of Python without its layout; templates stay texts."""
    return ast.dump(ast.parse(text)) if file.endswith(".py") else text


@functools.cache
def text_and_tree(file):
    """Read a source, and parse it."""
    text = (REPOSITORY / file).read_text(encoding="utf-8")
    return text, parse_source(file, text)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_bug_fits_the_sources_and_names_its_test(mutant):
    text, tree = text_and_tree(mutant.file)
    assert parse_source(mutant.file, mutant.plant(text)) != tree
    assert mutant.tests
    assert mutant.says
    for test in mutant.tests:
        file, _, name = test.partition("::")
        name = name.partition("[")[0]
        assert not ACCURACY.search(name)
        assert f"def {name}(" in (REPOSITORY / file).read_text(encoding="utf-8")


def test_planted_bugs_are_found():
    """Plant a sample; `python tests/mutants/run.py` plants all."""
    command = [sys.executable, "tests/mutants/run.py", "--sample", "--keep", "--cores", "1"]
    # Without the variables of this run's workers, which would compile the library again.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    done = subprocess.run(command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    n_bugs = sum(mutant.sample for mutant in MUTANTS)
    assert n_bugs >= 3
    assert f"{n_bugs} of {n_bugs} found" in done.stdout
    assert "missed: none" in done.stdout
