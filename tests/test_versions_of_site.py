"""Sites of several versions, built in a small repository with a tag."""

import json
import shutil
import subprocess
import sys

import pytest

from tests.blocks import REPOSITORY, blocks_run_by
from tests.browser import headless_browser, needs_browser
from tests.waits import PATIENCE

INDEX = "# Small\n\n{words}\n"


def call(folder, *command):
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    """Make a repository of two pages, whose tag differs from the working copy."""
    folder = tmp_path_factory.mktemp("small") / "repository"
    (folder / "docs").mkdir(parents=True)
    for name in ("Makefile", "docs/build_site.py", "docs/run_examples.py", "docs/conf.py"):
        shutil.copyfile(REPOSITORY / name, folder / name)
    shutil.copytree(REPOSITORY / "docs/templates", folder / "docs/templates")
    (folder / ".gitignore").write_text("site\n.cache\n__pycache__\n")
    (folder / "docs/README.md").write_text("# All pages\n\n## Start\n\n- [Start](start.md)\n")
    (folder / "docs/start.md").write_text("# Start\n\nHere.\n")
    git = ("git", "-c", "user.name=test", "-c", "user.email=test@example.org")
    call(folder, "git", "init", "--quiet")
    for words in ("as it was", "as it is"):
        (folder / "README.md").write_text(INDEX.format(words=words))
        call(folder, "git", "add", "--all")
        call(folder, *git, "commit", "--quiet", "--message", words)
        if words == "as it was":
            call(folder, "git", "tag", "v0.1.0")
    return folder


def run(folder, command):
    """Run a command of the page with this Python."""
    return call(folder, sys.executable, *command.split()[1:])


@pytest.fixture(scope="module")
def sites(repository):
    """Build the sites of the working copy and of the tag."""
    present = (sys.executable, "docs/build_site.py")
    call(repository, *present)
    (block,) = blocks_run_by(__file__)
    for command in block.commands:
        shutil.rmtree(repository / "site/v0.1.0", ignore_errors=True)
        run(repository, command)
        assert "as it was" in (repository / "site/v0.1.0/index.html").read_text()
    call(repository, *present)
    return repository / "site"


def test_a_tag_has_a_folder_of_its_own(sites):
    assert "as it is" in (sites / "index.html").read_text()
    assert "as it was" in (sites / "v0.1.0/index.html").read_text()
    assert "<title>Start - PrivSVM v0.1.0</title>" in (sites / "v0.1.0/start.html").read_text()
    first, second = json.loads((sites / "versions.json").read_text())
    assert first["name"].startswith("v0.1.0-1-g")
    assert (first["url"], second) == ("index.html", {"name": "v0.1.0", "url": "v0.1.0/index.html"})


def test_an_unknown_version_is_one_line(repository):
    done = subprocess.run(
        [sys.executable, "docs/build_site.py", "--version", "v9"],
        cwd=repository, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr == "error: --version v9: no such tag; there are: v0.1.0\n"


@needs_browser
def test_the_list_of_versions_leads_from_file_to_file(sites, tmp_path):
    from selenium.webdriver.support.ui import Select, WebDriverWait

    with headless_browser(tmp_path / "browser") as browser:
        browser.get((sites / "start.html").as_uri())
        chosen = Select(browser.find_element("id", "versions"))
        assert chosen.first_selected_option.text.endswith("(present)")
        chosen.select_by_visible_text("v0.1.0")
        wait = WebDriverWait(browser, PATIENCE)
        wait.until(lambda _: "as it was" in browser.find_element("tag name", "body").text)
        chosen = Select(browser.find_element("id", "versions"))
        assert chosen.first_selected_option.text == "v0.1.0"
        chosen.select_by_index(0)
        wait.until(lambda _: "as it is" in browser.find_element("tag name", "body").text)
        assert not [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]
