"""Every check of `make publishable` passes, and fails on an omission."""

import re
import shutil

import pytest

from tests.scripts import REPOSITORY, load_script

publishable = load_script("tools/publishable.py")
CHECKS = publishable.LISTS["checks"]


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """Copy what the checks read, beside a site of two pages."""
    root = tmp_path_factory.mktemp("copy") / "repository"
    left_out = shutil.ignore_patterns("__pycache__", "*.egg-info", "_build", "*.png")
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


def is_long(check):
    """Return whether an index of packages brings the tools of a check."""
    return any(tool in check.get("command", "") for tool in ("uv tool run", "tests/wheel/check.py"))


@pytest.mark.parametrize(
    ("check", "omission"),
    [
        pytest.param(check, omission, marks=[pytest.mark.long] * is_long(check))
        for check in CHECKS
        for omission in check["omissions"]
    ],
    ids=lambda value: value["asks"] if isinstance(value, dict) else value[0],
)
def test_a_check_sees_an_omission(copy, check, omission):
    file, old, new = omission
    path = copy / file
    text = path.read_text(encoding="utf-8")
    assert publishable.find_missing(check, copy) == ""
    assert old in text
    try:
        path.write_text(text.replace(old, new), encoding="utf-8")
        assert publishable.find_missing(check, copy)
    finally:
        path.write_text(text, encoding="utf-8")


def test_every_check_has_an_omission():
    assert all(check["omissions"] for check in CHECKS)


def test_the_list_of_a_person_is_short_and_what_it_names_exists():
    lines = publishable.LISTS["person"]
    assert len(lines) <= 10
    for name in re.findall(r"[\w./-]+\.(?:cff|yaml|toml|json|md|rst)\b", "\n".join(lines)):
        assert (REPOSITORY / name).is_file(), name
