"""Lists on pages are complete, pages show what their tables hold, and examples in docstrings print their output."""

import csv
import doctest
import importlib
import re

import build_site
import pytest

from privsvm.base import released
from privsvm.base.feature_steps import STEPS
from privsvm.registry import implementations
from tests.blocks import PAGES
from tests.mutants.mutant import MUTANTS
from tests.scripts import REPOSITORY, load_script


def test_pages_that_only_the_site_has():
    assert build_site.BUILT == ("docs/method-parameters.md", "docs/mutants.md")
    parameters, bugs = map(build_site.built_page, build_site.BUILT)
    assert re.findall(r"^## (\w+)$", parameters, re.MULTILINE) == list(implementations())
    assert "| `C` | float | `1.0` | Upper bound of a dual variable" in parameters
    rows = [re.split(r"(?<!\\) \| ", line) for line in bugs.splitlines() if line.startswith("| ")][2:]
    assert [row[0].removeprefix("| ") for row in rows] == [mutant.name.replace("|", "\\|") for mutant in MUTANTS]
    assert {len(row) for row in rows} == {4}


def test_the_picture_has_a_box_for_every_package():
    boxes = {name for _, row in load_script("docs/draw_architecture.py").rows() for name in row}
    packages = {path.parent.name for path in REPOSITORY.glob("lib/privsvm*/*/__init__.py")}
    assert packages <= boxes


def test_every_table_of_a_reproduction_is_listed():
    names = {path.stem for path in (REPOSITORY / "reports/reproduce").glob("*.csv")}
    pages = {path.stem: path.read_text() for path in (REPOSITORY / "docs/reproductions").glob("*.md")}
    listed = {paper: re.findall(r"^\| \[`(\w+)`\]", text, re.MULTILINE) for paper, text in pages.items()}
    assert names == {name for experiments in listed.values() for name in experiments}
    assert all(name.startswith(f"{paper}_") for paper, experiments in listed.items() for name in experiments)


def test_the_architecture_names_every_folder():
    text = (REPOSITORY / "ARCHITECTURE.md").read_text()
    packages = [path.parent.name for path in REPOSITORY.glob("lib/privsvm*/*/__init__.py")]
    assert len(packages) > 8
    for name in packages:
        assert f"{name}/`" in text, name


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(REPOSITORY).as_posix())
def test_make_targets_that_pages_name_exist(page):
    makefile = (REPOSITORY / "Makefile").read_text()
    assert 10 < len(re.findall(r"^([a-z-]+):.*##", makefile, re.MULTILINE)) <= 15
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    named = re.findall(r"`make ([a-z][a-z0-9-]+)|^make ([a-z][a-z0-9-]+)", page.read_text(), re.MULTILINE)
    assert {first or second for first, second in named} <= targets


def test_the_page_on_files_describes_every_kind_of_model():
    page = (REPOSITORY / "docs/files.md").read_text()
    for kind in [*released.PATHS, *STEPS]:
        assert f"`{kind}`" in page


def proof_pages():
    return sorted((REPOSITORY / "docs/proofs").glob("*.md"))


def test_every_proved_method_has_a_proof_page():
    # The example in a class's docstring, a doctest, shows the status.
    proved = {path.stem for path in (REPOSITORY / "lib/privsvm/methods").glob("*.py") if "'proved'" in path.read_text()}
    assert len(proved) >= 10
    assert proved <= load_script("docs/proof_pages.py").proofs().keys()


@pytest.mark.parametrize("page", proof_pages(), ids=lambda path: path.stem)
def test_code_and_tests_that_a_proof_names_exist(page):
    named = re.findall(r"`((?:lib|tests)/[\w/]+\.py)::(\w+)`", page.read_text())
    assert named or page.stem == "README"
    for file, name in named:
        text = (REPOSITORY / file).read_text()
        assert re.search(rf"^\s*(def|class) {name}\b", text, re.MULTILINE), f"{page.name}: {file}::{name}"


def test_the_sample_report_shows_the_recorded_numbers():
    """The first table at each epsilon has the best proved accuracy of docs/images/curves.csv."""
    page = (REPOSITORY / "docs/sample-report.html").read_text(encoding="utf-8")
    assert len(page.encode()) < 400_000
    with (REPOSITORY / "docs/images/curves.csv").open(newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["status"] in ("proved", "seeded")]
    dataset = rows[0]["dataset"]
    row = rf"<a>{dataset}</a></th>\s*<td>.*?</td><td class=\"number\">([\d.]+)\xa0%.*?ε = ([\d.]+), δ"
    shown = {(dataset, float(epsilon)): accuracy for accuracy, epsilon in re.findall(row, page, re.DOTALL)}
    best = {
        place: max(float(row["accuracy"]) for row in rows if (row["dataset"], float(row["epsilon"])) == place)
        for place in shown
    }
    assert len(shown) == len({row["epsilon"] for row in rows})
    assert shown == {place: f"{100 * accuracy:.1f}" for place, accuracy in best.items()}, (
        "run make run and python docs/write_sample_report.py"
    )


LIBRARY = REPOSITORY / "lib"
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
