"""Every block of commands in the pages runs somewhere, or says why it does not; the site can be gathered."""

import re
from pathlib import Path

import build_site
import pytest

REPOSITORY = Path(__file__).resolve().parents[1]
PAGES = [*REPOSITORY.glob("*.md"), *sorted((REPOSITORY / "docs").rglob("*.md"))]
BLOCK = re.compile(
    r"(?:^<!-- (runs|not-run): (.*?) -->\n)?^```(sh|bash|console|python)\n(.*?)^```", re.MULTILINE | re.DOTALL
)
BLOCKS = [
    pytest.param(page, *match.groups(), id=f"{page.name}-{number}")
    for page in PAGES
    for number, match in enumerate(BLOCK.finditer(page.read_text(encoding="utf-8")))
]
# Programs whose subcommands count: `make run`, `dvc repro`.
WITH_COMMANDS = {"make", "dvc", "snakemake", "privsvm"}


def commands(block):
    """The first two words of each command of a block."""
    for line in block.splitlines():
        for command in line.split("#")[0].split("&&"):
            words = [word for word in command.split() if "=" not in word]
            if words and words[0] in WITH_COMMANDS:
                yield words[0], next((word for word in words[1:] if not word.startswith("-")), "")


@pytest.mark.parametrize(("page", "kind", "said", "language", "block"), BLOCKS)
def test_a_block_runs_or_says_why_not(page, kind, said, language, block):
    assert kind, f"{page.name}: no line says what runs this {language} block, or why nothing does: {block[:60]!r}"
    if kind == "not-run":
        assert len(said.split()) >= 4, f"{page.name}: {said!r} is no reason"
        return
    runner = REPOSITORY / said
    assert runner.is_file(), f"{page.name}: {said}: no such file"
    text = runner.read_text(encoding="utf-8")
    if said == "tests/test_pages.py":
        assert language == "python"
        exec(compile(block, page.name, "exec"), {})
    elif f'"{page.name}"' in text or f"docs/{page.name}" in text:
        # That test takes the blocks from the page itself.
        assert "```" in text
    else:
        # The commands are those of a script that runs the workflow as a whole.
        folder = "".join(path.read_text(encoding="utf-8") for path in sorted(runner.parent.glob("*")) if path.is_file())
        for program, name in commands(block):
            assert re.search(rf"\b{program}\b", folder), f"{page.name}: {said} does not run {program}"
            assert name in folder or program == "snakemake", f"{page.name}: {said} does not run {program} {name}"


def test_what_nothing_runs_is_known():
    """A block that stops running is seen here, not silently skipped."""
    left_out = sorted({block.values[0].name for block in BLOCKS if block.values[1] == "not-run"})
    assert left_out == ["auditing.md", "cluster.md", "offline.md", "reproductions.md"]


def test_every_page_is_gathered_and_every_link_leads_somewhere():
    places, files = build_site.pages(), {}
    for page in places:
        build_site.relinked((REPOSITORY / page).read_text(encoding="utf-8"), page, places, files)
    assert len(set(places.values())) == len(places)
    with pytest.raises(build_site.DeadLinkError, match=r"docs/guide.md: \(nowhere.md\)"):
        build_site.relinked("[a](nowhere.md)", "docs/guide.md", places, {})
    with pytest.raises(build_site.DeadLinkError, match="a folder"):
        build_site.relinked("[a](proofs)", "docs/guide.md", places, {})
    # Sphinx itself refuses a page that no list names.
    listed = set(re.findall(r"^([\w/-]+)$", (REPOSITORY / "docs/index.md").read_text(), re.MULTILINE))
    assert {place.removesuffix(".md") for place in places.values() if "/" not in place} - listed == {
        "index", "ppsvm_example"
    }  # fmt: skip


def test_the_reference_has_every_public_name_and_command():
    import privsvm
    from privsvm.command import _parser

    text = build_site.reference()
    for name in set(dir(privsvm)) - {"annotations"}:
        if not name.startswith("_") and getattr(getattr(privsvm, name), "__module__", "").startswith("privsvm."):
            assert f"### {name}\n" in text
    usage = _parser().format_help()
    for command in re.search(r"^  command\n((?:    .*\n)+)", usage, re.MULTILINE)[1].splitlines():
        if command[4] != " ":
            assert f"### privsvm {command.split()[0]}\n" in text


def test_tests_that_the_pitfalls_name_exist():
    page = (REPOSITORY / "docs/pitfalls.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (fatal|severe|subtle) \|.*\| `(tests/\S+\.py)` \|$", page, re.MULTILINE)
    assert len(rows) >= 10
    assert [name for name, _ in rows] == sorted((name for name, _ in rows), key=["fatal", "severe", "subtle"].index)
    for _, name in rows:
        assert (REPOSITORY / name).is_file(), name
