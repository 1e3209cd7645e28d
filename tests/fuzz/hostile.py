"""Read every export of a release as its reader does, and look for texts that became more than text."""

import csv
import functools
import importlib.metadata
import io
import itertools
import json
import re
import sqlite3
import tempfile
import unicodedata
from pathlib import Path

import duckdb
import numpy as np
import onnx
import onnxruntime
import yaml
from markdown_it import MarkdownIt
from packaging.requirements import Requirement
from tests.elements import Elements
from tests.release.conftest import run
from tests.release.made_up import release_by

from privsvm.errors import PrivSVMError
from privsvm.release.predicting.model import load
from privsvm.tables.labels import normalise_label
from privsvm.tables.schema import parse_schema

TEXTS = [*json.loads(Path(__file__).with_name("texts.json").read_text()), "x" * 100_000]
SCHEMA = {
    "version": 1, "name": "wards", "label": "outcome", "classes": ["home", "ward", "died"], "rows": 400,
    "prescaled": False,
    "card": {
        "purpose": "triage", "intended_use": "by nurses", "owner": "ward 7", "contact": "a@b.example",
        "expires": "9999-12-31",
    },
    "columns": {
        "age": {"bounds": [0, 100], "fill": 50},
        "place": {"categories": ["north", "south"], "unknown": "other"},
        "day": {"bounds": ["2020-01-01", "2020-12-31"], "date": "iso", "fill": "2020-06-01"},
        "smoker": {"boolean": True, "fill": "no"},
        "note": "ignore",
    },
}  # fmt: skip
TOKENS_OF_TEXT = {"text", "text_special", "softbreak", "code_inline", "inline"}
FOREIGN = {"html_inline", "html_block", "link_open", "image", "fence", "code_block", "em_open", "s_open"}


def is_cell(text):
    """Tell whether a table can hold a text, a line of UTF-8; queries cut only blanks and tabs."""
    return not {"\n", "\r", "\x00", "\ud800"} & {*text} and len(text) < 1000 and text.strip() == text.strip(" \t")


CELLS = [*filter(is_cell, TEXTS)]


def draw_rows(model, rng):
    """Draw the cells of a table for a model, some of them hostile, in which every declared word occurs."""
    words = [word for column in model.schema_.features.values() for word in column.words]
    names = [*model.schema_.features, *({"row", "key"} - {*model.schema_.features})]
    rows = {name: rng.choices(["", "17", "2020-05-01", "yes", *words, *CELLS], k=60) for name in names}
    return rows | {"row": [str(row) for row in range(60)], "key": rng.choices(CELLS, k=60)}


@functools.cache
def shape_of_markdown(text):
    """Return the kinds of the tokens of a page, without plain text; it holds no HTML, link or picture."""
    kinds = []
    for token in MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(text):
        kinds += [each.type for each in (token, *(token.children or [])) if each.type not in TOKENS_OF_TEXT]
    assert not FOREIGN & {*kinds}, FOREIGN & {*kinds}
    return {*kinds}, kinds.count("heading_open"), kinds.count("table_open")


def shape_of_page(page):
    """List the elements of a page with their attributes, and comments."""
    return Elements(page).tags


def check_databases(query, rows, labels):
    """Run a query as a script, then for its answers."""
    assert query.startswith("-- PrivSVM ")
    names = ", ".join('"{}" TEXT'.format(name.replace('"', '""')) for name in rows)
    marks = ", ".join("?" * len(rows))
    cells = [[cell or None for cell in row] for row in zip(*rows.values(), strict=True)]
    for connection in (sqlite3.connect(":memory:"), duckdb.connect()):
        for statement in ("CREATE TABLE precious (x INTEGER)", "INSERT INTO precious VALUES (7)"):
            connection.execute(statement)
        connection.execute(f"CREATE TABLE patients ({names})")
        connection.executemany(f"INSERT INTO patients VALUES ({marks})", cells)
        # As a script, in which a second statement would run.
        connection.executescript(query) if hasattr(connection, "executescript") else connection.execute(query)
        answers = sorted(connection.execute(query.rstrip().removesuffix(";")).fetchall(), key=lambda row: int(row[0]))
        assert [row[1] for row in answers] == labels
        assert connection.execute("SELECT x FROM precious").fetchall() == [(7,)]
        assert len(connection.execute("SELECT * FROM patients").fetchall()) == len(labels)
        connection.close()


def check_graph(data, model, rows, labels):
    """Load a graph, compare its labels, and read its description."""
    graph = onnx.load_model_from_string(data)
    onnx.checker.check_model(graph)
    assert graph.doc_string.isprintable()
    columns = {
        name: np.array([*map(normalise_label, rows[name])], dtype=object) if column.words
        else np.array([column.read(cell, model.schema_.decimal) for cell in rows[name]])
        for name, column in model.schema_.features.items()
    }  # fmt: skip
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    assert session.run(["predicted"], columns)[0].tolist() == labels


def check_flavour(folder):
    """Read the parts of a folder that MLflow and pip read."""
    own = importlib.metadata.version("privsvm")
    wheel, *required = (folder / "requirements.txt").read_text().splitlines()
    assert [path.name for path in (folder / "wheels").iterdir()] == [f"privsvm-{own}-py3-none-any.whl"]
    assert wheel == f"wheels/privsvm-{own}-py3-none-any.whl"
    assert [Requirement(line).name for line in required] == ["mlflow-skinny", "pandas"]
    written = yaml.safe_load((folder / "python_env.yaml").read_text())
    assert written["dependencies"] == ["-r requirements.txt"]
    described = yaml.safe_load((folder / "MLmodel").read_text())
    assert [*described["flavors"]] == ["python_function"]
    names = [*load(folder / "data").schema_.features]
    assert [column["name"] for column in json.loads(described["signature"]["inputs"])] == names
    assert json.loads((folder / "input_example.json").read_text())["columns"] == names
    page = (folder / "data" / "card.html").read_text(encoding="utf-8")
    assert shape_of_page(page) == shape_of_page(innocent()[0])


def check_table(text):
    """Require that no cell of a CSV is a formula."""
    for cell in itertools.chain(*csv.reader(io.StringIO(text))):
        assert not re.match(r"\s*[=+@\uff1d-]", cell) or re.fullmatch(r"[-+]?[0-9.]+(e[-+]?[0-9]+)?", cell), cell


def check_csv(text, rows, labels):
    """Read predictions as a spreadsheet does; keys come back by one rule."""
    names, *cells = csv.reader(io.StringIO(text))
    assert names[:3] == ["row", "key", "predicted"]
    assert {*map(len, cells)} == {len(names)}
    check_table(text)
    original = [[re.sub(r"^'(?=['\s]*[=+\-@\uff1d])", "", cell) for cell in row[:3]] for row in cells]
    assert original == [list(row) for row in zip(rows["row"], rows["key"], labels, strict=True)]


def check_line(error):
    """Return the message of a refusal, which must be one line."""
    assert "\n" not in str(error)
    return [str(error)]


def call(refusals, *arguments):
    """Run a command; return its output, or add its one line to the refusals."""
    code, out, err = run(*arguments)
    seen = {letter for letter in out + err if unicodedata.category(letter)[0] == "C" or letter in "\u2028\u2029"}
    assert seen <= {"\n"}, seen
    if not code:
        return out
    assert (code, err.count("\n")) == (1, 1), err
    refusals.append(err)
    return None


def check_exports(folder, ledger, rng):
    """Export a release every way, and check the exports; return the refusals, each one line."""
    out, refusals = folder.parent, []
    try:
        model = load(folder)
    except PrivSVMError as error:
        return check_line(error)
    rows = draw_rows(model, rng)
    labels = model.predict(rows).tolist()
    with open(out / "rows.csv", "w", newline="", encoding="utf-8") as handle:
        csv.writer(handle).writerows([rows, *zip(*rows.values(), strict=True)])
    query, graph, flavour, table = (out / name for name in ("query.sql", "model.onnx", "flavour", "predicted.csv"))
    export = ("export", folder, "--to")
    if call(refusals, *export, "sql", "--table", "patients", "--keep", "row", "--out", query) is not None:
        check_databases(query.read_text(encoding="utf-8"), rows, labels)
    if call(refusals, *export, "onnx", "--out", graph) is not None:
        check_graph(graph.read_bytes(), model, rows, labels)
    keep = ("--keep", "row", "--keep", "key")
    if call(refusals, "predict", folder, out / "rows.csv", *keep, "--out", table) is not None:
        check_csv(table.read_text(encoding="utf-8"), rows, labels)
    if call(refusals, *export, "mlflow", "--out", flavour) is not None:
        check_flavour(flavour)
    if (text := call(refusals, "dossier", folder)) is not None:
        shape, innocent_shape = shape_of_markdown(text), shape_of_markdown(innocent()[1])
        assert shape[0] <= innocent_shape[0]
        assert shape[1:] == innocent_shape[1:]
    call(refusals, "card", folder)
    for command in (("verify", folder), ("ledger",), ("ledger", "--export")):
        call(refusals, *command, "--ledger", ledger)
    return refusals


@functools.cache
def innocent():
    """Return page and dossier of a release without hostile texts."""
    with tempfile.TemporaryDirectory() as temporary:
        folder, ledger = Path(temporary) / "model", Path(temporary) / "ledger.jsonl"
        release_by(parse_schema(SCHEMA), folder, ledger)
        return (folder / "card.html").read_text(encoding="utf-8"), run("dossier", folder)[1]
