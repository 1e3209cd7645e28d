"""Every block of commands in the pages runs, or states why not; the site can be gathered."""

import math
import re
from pathlib import Path

import build_site
import pytest

from privsvm.privacy.accountants import account, relation_accounts
from privsvm.privacy.accounting import gaussian_noise_multiplier
from privsvm.privacy.events import Gaussian
from privsvm.privacy.risk import trade_off
from tests.blocks import blocks
from tests.scripts import REPOSITORY

BLOCKS = [pytest.param(block, id=f"{block.page}-{block.number}") for block in blocks()]
# Blocks that nothing runs, with the reasons on their pages.
NOT_RUN = {
    "docs/auditing.md": [
        "stands for an estimator of yours; tests/auditing runs the same call on others",
        "stands for an estimator of yours; tests/auditing runs the same fixture on others",
    ],
    "docs/cluster.md": [
        "needs an index of packages, which tests do not have",
        "needs files of data sets, which the repository does not hold",
        "changes the environment of the tests",
        "an environment for good, in which tests/cluster/run_s3.py runs",
        "needs a Kubernetes cluster and a registry of images",
        "needs an account with AWS and a registry of images",
    ],
    "docs/change.md": ["the package is yours"],
    "docs/join-leaderboard.md": [
        "tests/test_joining.py compares it with bench/utility/submissions/diffprivlib_forest/entry.py",
        "takes up to 40 minutes",
    ],
    "docs/install.md": ["needs an index of packages, which tests do not have"],
    "docs/production.md": [
        "builds an environment and serves until you stop it; "
        "tests/release/predicting/test_served_by_mlflow.py asks the server",
        "makes a key for good; tests/release/predicting/test_released.py signs and verifies",
        "goes on with a release of last year; tests/release/training/test_after.py plans and releases",
    ],
    "docs/attack-report.md": ["needs SACRO-ML, which the tests do not install"],
    "docs/reproductions.md": [
        "hours of computing, and needs data sets; tests/reproduction runs each experiment on a few rows"
    ],
    "docs/upstream.md": ["ends the process", "hangs"],
}


@pytest.mark.parametrize("block", BLOCKS)
def test_a_block_runs_or_says_why_not(block):
    where = f"{block.page}, block {block.number}"
    assert block.kind, f"{where}: no line says what runs it, or why nothing does: {block.text[:60]!r}"
    if block.kind == "not-run":
        assert block.note in NOT_RUN.get(block.page, ()), f"{where}: list its reason in NOT_RUN: {block.note!r}"
        return
    runner = REPOSITORY / block.note
    assert runner.is_file(), f"{where}: {block.note}: no such file"
    if runner == Path(__file__):
        assert block.language == "python"
        exec(compile(block.text, block.page, "exec"), {})
        return
    text = runner.read_text(encoding="utf-8")
    if runner.suffix == ".py":
        # The runner must read its blocks from the pages.
        taken = r"blocks_run_by\(__file__\)|\bpage_(command|block)\("
        assert re.search(taken, text), f"{where}: {block.note} does not take its blocks from the pages"
        return
    # Shell script: each command is one of its lines.
    lines = {line.strip().removeprefix("time ").partition(" > ")[0] for line in text.splitlines()}
    for command in block.commands:
        assert command in lines, f"{where}: {block.note} does not run {command!r}"


def test_what_nothing_runs_is_known():
    """A block that stops running fails here instead of being skipped silently."""
    skipped = {(block.page, block.note) for block in blocks() if block.kind == "not-run"}
    assert skipped == {(page, reason) for page, reasons in NOT_RUN.items() for reason in reasons}


def test_every_page_is_gathered_and_every_link_leads_somewhere():
    targets, files = build_site.pages(), {}
    for page in targets.keys() - set(build_site.BUILT):
        build_site.relink((REPOSITORY / page).read_text(encoding="utf-8"), page, targets, files)
    assert len(set(targets.values())) == len(targets)
    # The paper is no page of the site.
    paper = (REPOSITORY / "paper" / "paper.md").read_text(encoding="utf-8")
    build_site.relink(paper, "paper/paper.md", targets | {"paper/paper.md": "paper.html"}, {})
    with pytest.raises(build_site.DeadLinkError, match=r"docs/guide.md: \(nowhere.md\)"):
        build_site.relink("[a](nowhere.md)", "docs/guide.md", targets, {})
    with pytest.raises(build_site.DeadLinkError, match="a folder"):
        build_site.relink("[a](proofs)", "docs/guide.md", targets, {})


def test_the_menu_names_every_page_and_is_short():
    targets = build_site.pages()
    captions, below = build_site.menu(targets)
    entries = [target for _, section in captions for _, target in section]
    listed = [*entries, *(target for section in below.values() for _, target in section)]
    assert len(set(listed)) == len(listed)
    assert {target for target in targets.values() if "/" not in target} - set(listed) == {
        "index.md",
        "ppsvm_example.md",
    }
    assert len(entries) <= 20
    text = (REPOSITORY / "docs/decisions/README.md").read_text(encoding="utf-8")
    assert {path.name for path in (REPOSITORY / "docs/decisions").glob("[0-9]*.md")} == set(
        re.findall(r"\]\((\d[\w-]+\.md)\)", text)
    )


def test_the_table_of_odds_is_computed():
    text = (REPOSITORY / "docs/epsilon.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([\d.]+) \| (\d+) \| (\d+) \| (\d+) \|$", text, re.MULTILINE)
    assert len(rows) == 6
    for epsilon, *shown in rows:
        gain = math.exp(float(epsilon))
        computed = [round(100 * start * gain / (start * gain + 1 - start)) for start in (0.5, 0.1, 0.01)]
        assert [int(number) for number in shown] == computed, epsilon


def test_the_table_of_risks_is_computed():
    text = (REPOSITORY / "docs/epsilon.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([\d.]+) \| (\d+) \| ([\d.]+) \| ([\d]+\.\d\d) \|$", text, re.MULTILINE)
    assert len(rows) == 6
    for epsilon, *shown in rows:
        curve = trade_off(Gaussian(gaussian_noise_multiplier(float(epsilon), 1e-5)), "add_remove")
        right, often, rarely = curve.guess(0.5), curve.true_positive_rate(0.01), curve.true_positive_rate(0.001)
        known = [
            f"{math.ceil(100 * right)}",
            f"{math.ceil(1000 * often) / 10:.1f}",
            f"{math.ceil(1e4 * rarely) / 100:.2f}",
        ]
        assert shown == known, epsilon


def test_the_totals_of_several_releases_are_computed():
    """Gaussian releases are composed as the ledger does."""
    text = (REPOSITORY / "docs/production.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|$", text, re.MULTILINE)
    assert len(rows) == 3
    for epsilon, *shown in rows:
        multiplier = gaussian_noise_multiplier(float(epsilon), 1e-5)
        totals = [account(Gaussian(multiplier / math.sqrt(count)), 1e-5, "add_remove").epsilon for count in (2, 5, 10)]
        assert shown == [f"{math.ceil(100 * total) / 100:.2f}" for total in totals], epsilon


def test_the_table_of_both_relations_is_computed():
    text = (REPOSITORY / "docs/proved.md").read_text(encoding="utf-8")
    added, replaced = (
        [float(number) for number in re.findall(r"\d[\d.]*", row)]
        for row in re.findall(r"^\| `(?:add_remove|replace_one)` \| (.*) \|$", text, re.MULTILINE)
    )
    for epsilon, shown in zip(added, replaced, strict=True):
        accounts = relation_accounts(Gaussian(gaussian_noise_multiplier(epsilon, 1e-5)), 1, 1e-5, "add_remove")
        assert shown == round(accounts["replace_one"].epsilon, 2), epsilon


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
