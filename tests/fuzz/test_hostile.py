"""No export of a file of others holds one of their texts unescaped.

Each run has a sample; ``PRIVSVM_FUZZ_CASES=400 pytest tests/fuzz/test_hostile.py`` runs more.
"""

import collections
import os
import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from privsvm.escaping import markdown_text, spreadsheet_cell

hostile = pytest.importorskip("tests.fuzz.hostile", reason="DuckDB, ONNX and MLflow come with requirements-dev.lock")

CASES = max(60, int(os.environ.get("PRIVSVM_FUZZ_CASES", "0")))


def test_no_export_holds_a_hostile_text_unescaped():
    accepted = collections.Counter()
    for number in range(CASES):
        kind, _, refusals = hostile.run_case(number)
        accepted[kind] += not refusals
    print(f"{CASES} cases, accepted: {dict(accepted)}")
    assert accepted["of_schema"] > 0.1 * CASES
    assert accepted["of_results"] > 0


def test_every_accepted_text_in_every_role(tmp_path):
    assert hostile.every_role(random.Random(0), tmp_path) == []


@pytest.mark.parametrize("text", hostile.TEXTS, ids=range(len(hostile.TEXTS)))
def test_texts_in_markdown_are_texts(text):
    page = f"{markdown_text(text)}\n\n- {markdown_text(text)}\n\n| a |\n| --- |\n| {markdown_text(text)} |\n"
    kinds, headings, tables = hostile.shape_of_markdown(page)
    assert (headings, tables) == (0, 1)
    assert kinds <= hostile.shape_of_markdown("a\n\n- b\n\n| a |\n| --- |\n| b |\n")[0]
    assert markdown_text(text).isprintable()


@given(st.text() | st.lists(st.sampled_from([*"'=+-@ \t\r\uff1da1.,e"]), max_size=5).map("".join))
def test_cells_of_spreadsheets_come_back(text):
    cell = spreadsheet_cell(text)
    if cell.lstrip()[:1] in (*"=+-@\uff1d",):
        assert {*cell.strip()} <= {*"+-0123456789.,eE"}
    # The rule of docs/guide.md: one apostrophe less where a sign follows.
    assert re.sub(r"^'(?=['\s]*[=+@\uff1d\uff0b\uff0d\uff20-])", "", cell) == text


@pytest.mark.parametrize("value", ["-3", "+4.5", "-1,5", "1e-3", "-1e5", "P01", "a=b", "x@y", "", "no", 3, -2.5, None])
def test_numbers_and_other_texts_stay(value):
    assert spreadsheet_cell(value) is value
