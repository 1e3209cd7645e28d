"""The examples of the gallery run as the site runs them, and the gallery lists all of them."""

import re
from pathlib import Path

import pytest
import run_examples

from tests.processes import told_by_python

REPOSITORY = Path(__file__).resolve().parents[1]


EXAMPLES = run_examples.examples()
# Required output of each example.
PRINTS = {
    "accuracy_against_epsilon": r"recommended +0\.\d{3}( 0\.\d{3}){6}\n",
    "audit_an_estimator": r"^REFUTED.*\n\nnot refuted",
    "condense_before_svm": r"240 rows became 80",
    "own_method": r"^status: claimed",
    "private_pipeline": r"with a schema: proved.*\n.*consent with allow_unsound=True\nfiles: model.json, model.npz\n",
    "recommended": r"^status +seeded\n",
    "results_in_pandas": r"\nrecommended +0\.\d{3}",
    "search_for_c": r"\nseeded: epsilon (4|3\.9\d*) for the whole search",
    "solver_instead_of_svc": r"decision values differ by at most [\d.]+e-0[3-9]",
}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs(path):
    shown = run_examples.run(path)
    assert re.search(PRINTS[path.stem], shown.printed, re.DOTALL), shown.printed
    assert shown.pictures or "plt" not in shown.code
    assert all(picture.startswith(b"<?xml") and len(picture) < 200_000 for picture in shown.pictures)
    assert 15 <= sum(bool(line.strip()) for line in shown.code.splitlines()) <= 40


def test_an_example_runs_as_a_script():
    assert told_by_python("examples/own_method.py", cwd=REPOSITORY).startswith("status: claimed")


def test_the_gallery_lists_every_example_by_its_title():
    page = (REPOSITORY / "docs/python.md").read_text(encoding="utf-8")
    listed = {name: title for title, name in re.findall(r"^- \[(.*)\]\(\.\./examples/(\w+)\.py\)$", page, re.MULTILINE)}
    assert listed == {path.stem: run_examples.title_of(path) for path in EXAMPLES}
    assert set(PRINTS) == set(listed)
