"""Every check of `make publishable` passes, and fails on an omission."""

import re

import pytest

from tests.scripts import REPOSITORY, copy_files, list_files, load_script

publishable = load_script("tools/publishable.py")
CHECKS = publishable.LISTS["checks"]


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """Copy the repository, beside a site of two pages."""
    root = tmp_path_factory.mktemp("copy") / "repository"
    copy_files(list_files(), root)
    (root / "site").mkdir()
    for name in ("index.html", "page.html", ".nojekyll"):
        (root / "site" / name).write_text('<a href="index.html">PrivSVM</a>\n')
    return root


@pytest.mark.parametrize(
    ("check", "omission"),
    [
        pytest.param(check, omission, marks=[pytest.mark.long] * check.get("long", False))
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
