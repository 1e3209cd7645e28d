"""Every check of `make publishable` passes, and fails on an omission."""

import importlib.util
import re
import shutil

import pytest

from tests.blocks import REPOSITORY

_spec = importlib.util.spec_from_file_location("publishable", REPOSITORY / "tools/publishable.py")
publishable = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(publishable)
CHECKS = {f"{asker}: {thing}": check for asker, thing, check in publishable.CHECKS}
# For each check files of its input, text in it, and the omission that takes its place.
OMISSIONS = [
    ("all lists: one statement", "pyproject.toml", '    "Programming Language :: Python :: 3.12",\n', ""),
    ("all lists: one statement", "CITATION.cff", "version:", "repository-code: https://a.example\nversion:"),
    ("all lists: one statement", "docs/images/badge-python.svg", "3.11 to 3.13", "3.10 to 3.13"),
    ("all lists: one statement", ".zenodo.json", '"version": "0.1.0"', '"version": "0.2.0"'),
    ("Snakemake catalogue: words in README", "README.md", "workflow", "pipeline"),
    ("Snakemake catalogue: workflow/Snakefile", "workflow/Snakefile", "include:", "# include:"),
    ("Snakemake catalogue: how to configure", "config/README.md", "--config", "--set"),
    ("Snakemake catalogue: flag of reports", ".snakemake-workflow-catalog.yml", "\n  report: true", ""),
    ("Snakemake catalogue: reports", "stages/report.smk", "=report(", "=str("),
    ("Snakemake catalogue: lint", "stages/report.smk", 'log:\n        "logs/report.log",\n    ', ""),
    ("Snakemake catalogue: format", "workflow/Snakefile", "    input:\n", "    input:   \n"),
    ("conda-forge: packages it has", "conda/recipe.yaml", "- numba", "- numba-of-ours"),
    ("conda-forge: rules of recipes", "conda/recipe.yaml", "  license_file: LICENSE\n", ""),
    ("conda-forge: a recipe that renders", "conda/recipe.yaml", "name: privsvm", "named: privsvm"),
    ("PyPI: sdist and wheel", "pyproject.toml", 'readme = "README.md"', ""),
    ("PyPI: valid metadata", "pyproject.toml", "3 - Alpha", "3 - Aleph"),
    ("pyOpenSci: README", "README.md", "docs/comparison.md", "docs/others.md"),
    ("pyOpenSci: how to contribute", "CONTRIBUTING.md", "## Set up", "## Begin"),
    ("pyOpenSci: code of conduct", "CODE_OF_CONDUCT.md", "Contributor Covenant", "our rules"),
    ("JOSS: length of the paper", "paper/paper.md", "# Summary\n", "# Summary\n" + "word " * 1000),
    ("JOSS: sections", "paper/paper.md", "# State of the field", "# Others"),
    ("JOSS: references", "paper/paper.bib", "doi={10.7717/peerj-cs.799}", "note={}"),
    ("JOSS: licence", "LICENSE", "Apache License", "Licence"),
    ("CITATION: valid", "CITATION.cff", "title:", "name:"),
    ("scikit-learn: entry", "paper/related-projects.rst", "`_ ", "`_"),
    ("DVC: artifacts", "dvc.yaml", "  digit-eight:", "  digit_eight:"),
    ("static host: site", "site/page.html", 'href="index.html"', 'href="/index.html"'),
    ("systems: fit, save, load, predict", ".github/workflows/ci.yml", "macos-latest, ", ""),
]


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """Copy what the checks read, beside a site of two pages."""
    root = tmp_path_factory.mktemp("copy") / "repository"
    left_out = shutil.ignore_patterns("__pycache__", "*.egg-info", "_build", "*.png")
    root.mkdir()
    for name in (".github", "conda", "config", "data/own", "docs", "lib", "paper", "profiles", "stages", "workflow"):
        shutil.copytree(REPOSITORY / name, root / name, ignore=left_out)
    shutil.copytree(REPOSITORY / "tests/wheel", root / "tests/wheel", ignore=left_out)
    for path in REPOSITORY.iterdir():
        if path.is_file():
            shutil.copy(path, root)
    (root / "site").mkdir()
    for name in ("index.html", "page.html", ".nojekyll"):
        (root / "site" / name).write_text('<a href="index.html">PrivSVM</a>\n')
    return root


# Tools that an index of packages brings.
FETCHED = {"conda-forge: a recipe that renders", "PyPI: sdist and wheel", "PyPI: valid metadata", "CITATION: valid"}


@pytest.mark.parametrize(
    ("name", "file", "old", "new"),
    [pytest.param(*case, marks=[pytest.mark.long] if case[0] in FETCHED else []) for case in OMISSIONS],
)
def test_a_check_sees_an_omission(copy, name, file, old, new):
    check, path = CHECKS[name], copy / file
    text = path.read_text(encoding="utf-8")
    assert check(copy) == ""
    assert old in text
    try:
        path.write_text(text.replace(old, new), encoding="utf-8")
        assert check(copy)
    finally:
        path.write_text(text, encoding="utf-8")


def test_every_check_has_an_omission():
    assert {case[0] for case in OMISSIONS} == set(CHECKS)


def test_the_list_of_a_person_is_short_and_what_it_names_exists():
    lines = publishable.PERSON.splitlines()
    assert len(lines) <= 10
    for name in re.findall(r"[\w./-]+\.(?:cff|yaml|toml|json|md|rst)\b", publishable.PERSON):
        assert (REPOSITORY / name).is_file(), name
