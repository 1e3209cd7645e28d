"""The guide is run as it stands."""

import math
import re
from pathlib import Path

import pytest
import yaml
from tests.blocks import blocks_run_by
from tests.release.conftest import in_shell, run
from tests.release.hospital import SCHEMA, write_table
from tests.scripts import REPOSITORY

from privsvm.privacy.accounting import gaussian_noise_multiplier
from privsvm.privacy.events import Gaussian
from privsvm.privacy.gate import default_delta
from privsvm.privacy.risk import trade_off
from privsvm.release.training.recipes import LARGEST_DELTA
from privsvm.tables.schema import parse_schema, read_schema

GUIDE = REPOSITORY / "docs" / "guide.md"


@pytest.fixture
def tables(tmp_path, monkeypatch):
    """The tables of the pages, in the working folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PRIVSVM_LEDGER", str(tmp_path / "ledger.jsonl"))
    write_table("patients.csv", 300, 1)
    write_table("new.csv", 10, 2)


def test_every_command_of_the_guide_runs(tables):
    ran, blocks = [], blocks_run_by(__file__)
    assert {block.page for block in blocks} == {"README.md", "docs/guide.md", "docs/production.md", "docs/epsilon.md"}
    for language, block in re.findall(r"^```(\w+)\n(.*?)^```", GUIDE.read_text(encoding="utf-8"), re.M | re.S):
        if language == "yaml":
            draft = Path("schema.yaml").read_text()
            data = ("--data", "patients.csv", "--schema", "schema.yaml")
            code, _, err = run("release", *data, "--epsilon", 1, "--out", "x")
            assert code == 1
            undecided = ("visit", "sex", "ward", "age", "pressure", "smoker", "note")
            assert all(f"column '{name}'" in err for name in undecided)
            assert "decide" in draft
            Path("schema.yaml").write_text(block)
        elif language == "sh":
            ran += [in_shell(line)[0] for line in block.splitlines()]
        else:
            outputs = {}
            exec(compile(block, "guide.md", "exec"), outputs)
            assert outputs["model"].protection_.unit == "person"
    assert ran == ["schema", "inspect", "plan", "release", "verify", "card", "predict"]
    assert Path("predicted.csv").read_text().count("\n") == 51
    (block,) = [block for block in blocks if block.page == "docs/production.md"]
    outputs = {}
    exec(compile(block.text, block.page, "exec"), outputs)
    assert outputs["alarm"].shape == (1,)


def test_every_command_of_the_readme_runs(tables):
    (block,) = [block for block in blocks_run_by(__file__) if block.page == "README.md"]
    draft, *rest = block.text.splitlines()
    assert in_shell(draft)[0] == "schema"
    assert "decide" in Path("schema.yaml").read_text()
    # "edit it"
    Path("schema.yaml").write_text(SCHEMA)
    assert [in_shell(line)[0] for line in rest] == ["inspect", "release", "predict"]
    assert Path("predicted.csv").read_text().count("\n") > 10


def test_the_commands_that_choose_epsilon_run(monkeypatch):
    monkeypatch.setattr("privsvm.release.training.planning.simulate_accuracy", lambda *arguments, **options: [])
    (block,) = [block for block in blocks_run_by(__file__) if block.page == "docs/epsilon.md"]
    assert [in_shell(line)[0] for line in block.text.splitlines()] == ["plan", "plan"]


def test_the_guide_declares_the_table_of_the_tests(tmp_path):
    (block,) = re.findall(r"^```yaml\n(.*?)^```", GUIDE.read_text(encoding="utf-8"), re.M | re.S)
    for name, text in (("guide", block), ("tests", SCHEMA.replace("rows: 10000\n", ""))):
        (tmp_path / name).write_text(text)
    assert read_schema(tmp_path / "guide") == read_schema(tmp_path / "tests")


def test_its_figures_are_computed():
    text = " ".join(GUIDE.read_text(encoding="utf-8").split())
    noise = [Gaussian(gaussian_noise_multiplier(epsilon, 1e-5)) for epsilon in (1.0, 2.0, 4.0)]
    one, two, four = (math.ceil(100 * trade_off(event, "add_remove").guess(0.5)) for event in noise)
    assert f"right at most {one} times in 100; at 2, {two}; at 4, {four} (Gaussian noise" in text
    page_text = " ".join((GUIDE.parent / "explain.md").read_text(encoding="utf-8").split())
    assert f"at epsilon 1, no result becomes more than {math.e:.1f} times as likely" in page_text
    assert f"he is right at most {one} times in 100, even if" in page_text
    assert f"at most {one - 50} more with it, and {100 - one} or more are still wrong" in page_text
    named = math.ceil(100 * trade_off(noise[0], "add_remove").true_positive_rate(0.01))
    assert f"rightly names at most {named} of 100 whose records were used" in page_text
    assert f"--guess .{one}`" in page_text
    rows = parse_schema(yaml.safe_load(SCHEMA)).rows
    assert [f"{delta:g}" for delta in (default_delta(rows), LARGEST_DELTA)] == ["1e-05", "0.0001"]
    assert "Delta defaults to 1e-5. If you declare n rows and 1/(10 n) is smaller, that is used instead." in text
    assert "accepts at most 1e-4" in text
