"""No export of a file of others holds one of their texts unescaped."""

import copy
import json
import random
import re
import tempfile
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from tests.fuzz.strategies import fuzzed, paths, value_at
from tests.release.made_up import read_folder, release_by, write_folder
from tests.reporting.synthetic_results import make_result, whole

from privsvm.base.model_file import content_digest
from privsvm.constraints import written
from privsvm.digests import canonical_json
from privsvm.errors import PrivSVMError
from privsvm.escaping import markdown_text, spreadsheet_cell
from privsvm.tables.labels import normalise_label
from privsvm.tables.schema import parse_schema, read_schema
from privsvm_bench.records import Result, read, seal
from privsvm_bench.reporting.page import report_files
from privsvm_bench.tracking.runs import collect_runs

hostile = pytest.importorskip("tests.fuzz.hostile", reason="DuckDB, ONNX and MLflow come with requirements-dev.lock")

TEXTS, RANDOM = st.sampled_from(hostile.TEXTS), st.randoms(use_true_random=False)


@st.composite
def hostile_json(draw, content, text=TEXTS):
    """Put a text in the place of a text, or of the name of a key, of a JSON value."""
    content, text = copy.deepcopy(content), draw(text)
    places = [path for path in paths(content) if isinstance(value_at(content, path), str)]
    keys = [path for path in paths(content) if isinstance(path[-1], str)]
    is_value = draw(st.integers(0, 4)) > 0
    *path, key = draw(st.sampled_from(places if is_value else keys))
    home = value_at(content, path)
    if is_value:
        home[key] = text
    else:
        renamed = {text if name == key else name: item for name, item in home.items()}
        home.clear()
        home.update(renamed)
    return content


@st.composite
def hostile_schemas(draw):
    """Put a text into a schema, or add it as a column, class or category."""
    place = draw(st.sampled_from([None, None, ("columns",), ("classes",), ("columns", "place", "categories")]))
    if place is None:
        return draw(hostile_json(hostile.SCHEMA))
    content, text = copy.deepcopy(hostile.SCHEMA), draw(TEXTS)
    home = value_at(content, place)
    home.append(text) if isinstance(home, list) else home.update({text: {"bounds": [0, 1], "fill": 0}})
    return content


def test_no_export_of_a_schema_holds_a_hostile_text():
    """A schema is handed over, and a model is released by it."""
    refusals = []

    @fuzzed
    @given(hostile_schemas(), RANDOM)
    def case(content, rng):
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary)
            text = yaml.safe_dump(content, allow_unicode=True, sort_keys=False)
            (folder / "schema.yaml").write_bytes(text.encode("utf-8", "surrogatepass"))
            try:
                schema = read_schema(folder / "schema.yaml")
            except PrivSVMError as error:
                refusals.append(hostile.check_line(error))
                return
            release_by(schema, folder / "model", folder / "ledger.jsonl")
            refusals.append(hostile.check_exports(folder / "model", folder / "ledger.jsonl", rng))

    case()
    assert not all(refusals)


@pytest.mark.parametrize("kind", ["record", "version", "table", "card", "ledger"])
def test_no_export_of_a_file_holds_a_hostile_text(kind):
    """A record, a card or a ledger gets a text, and digests that fit."""

    @fuzzed
    @given(st.data(), RANDOM)
    def case(data, rng):
        with tempfile.TemporaryDirectory() as temporary:
            model, ledger = Path(temporary) / "model", Path(temporary) / "ledger.jsonl"
            release_by(parse_schema(hostile.SCHEMA), model, ledger)
            files = dict(zip(("record", "card"), read_folder(model), strict=True))
            if kind == "version":
                files["record"]["privsvm"] = files["card"]["privsvm"] = data.draw(TEXTS)
            elif kind == "table":
                files["record"]["table"] = data.draw(hostile_json(files["record"]["table"]))
            elif kind == "ledger":
                lines = data.draw(hostile_json([json.loads(line) for line in ledger.read_text().splitlines()]))
                for line, before in zip(lines, [{"hash": "0" * 64}, *lines], strict=False):
                    line["previous"] = before["hash"]
                    line["hash"] = content_digest(line, "hash")
                ledger.write_text("".join(canonical_json(line) + "\n" for line in lines))
            else:
                files[kind] = data.draw(hostile_json(files[kind]))
            write_folder(model, files["record"], files["card"])
            hostile.check_exports(model, ledger, rng)

    case()


def test_every_accepted_text_in_every_role(tmp_path):
    """One release whose columns, categories and classes are all accepted texts is exported every way."""
    words = [*{normalise_label(text): None for text in hostile.TEXTS if written(1).accepts(text) and text.strip()}]
    content = copy.deepcopy(hostile.SCHEMA)
    content["classes"] = [word for word in words if {*word} & {*"'\";<=["}]
    numbers = {word: {"bounds": [0, 1], "fill": 0} for word in words}
    content["columns"] = {"place": {"categories": words, "unknown": words[0]}} | numbers
    release_by(parse_schema(content), tmp_path / "model", tmp_path / "ledger.jsonl")
    assert hostile.check_exports(tmp_path / "model", tmp_path / "ledger.jsonl", random.Random(0)) == []


def shapes_of_result(content, folder):
    """Return elements of the report of a result, with their attributes' names."""
    (folder / "result.json").write_bytes(json.dumps(seal(content)).encode())
    (curve,) = collect_runs([(folder / "result.json", [])])
    assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._+-]*/[A-Za-z0-9][A-Za-z0-9._+-]*", curve.experiment_name)
    files = report_files([read(Result, folder / "result.json")])
    for name, text in files.items():
        if name.endswith(".csv"):
            hostile.check_table(text)
    return elements_of(files["index.html"])


def elements_of(page):
    """Return the kinds of elements of a page, with the names of their attributes."""
    return {(tag, *sorted(given)) for tag, given in hostile.shape_of_page(page)}


def test_no_page_of_a_result_holds_a_hostile_text(tmp_path):
    content, accepted = make_result("wine", "pmsvm_wp_as_published", "claimed"), []
    usual = shapes_of_result(content, tmp_path)
    # A result may lack a part of this one, and then the page has parts of others.
    others = whole()
    usual |= elements_of(report_files(others)["index.html"])

    @fuzzed
    @given(hostile_json(content))
    def case(changed):
        try:
            elements = shapes_of_result(changed, tmp_path)
        except PrivSVMError as error:
            hostile.check_line(error)
            return
        accepted.append(changed)
        assert elements <= usual, elements - usual

    case()
    assert accepted


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
