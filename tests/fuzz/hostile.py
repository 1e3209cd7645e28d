"""Plant hostile texts in files that others may hand over, and look for them in everything that is written from these.

A release of three classes is made up, with its card and ledger. A text takes the
place of one text of a file; digests, card and ledger are made again, as a forger would. What is then accepted is
exported, and every export is read as its reader does.
"""

import contextlib
import copy
import csv
import functools
import html.parser
import importlib.metadata
import io
import itertools
import json
import random
import re
import sqlite3
import sys
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
from tests.fuzz.crafted import paths, put
from tests.release.made_up import release_by, write_folder
from tests.reporting.synthetic_results import METHODS, make_result, result_of

from privsvm.base.model_file import RECORD, content_digest
from privsvm.command import main
from privsvm.constraints import written
from privsvm.digests import canonical_json
from privsvm.errors import PrivSVMError
from privsvm.release.model import load
from privsvm.tables.labels import normalise_label
from privsvm.tables.schema import parse_schema, read_schema
from privsvm_bench.jobs.params import read_params
from privsvm_bench.records import Result, read, sealed
from privsvm_bench.reporting import report_files
from privsvm_bench.tracking.runs import collect_runs

REPOSITORY = Path(__file__).resolve().parents[2]

TEXTS = [
    "0.1\nDROP TABLE precious;\n-- ", "0.1\rDROP TABLE precious;", "a\u2028DROP TABLE precious;",
    "a\x85DROP TABLE precious;", "'; DROP TABLE precious; --", '"; DROP TABLE precious; --',
    "' || (DELETE FROM precious) || '", "*/ DROP TABLE precious; /*", "-- DROP TABLE precious;",
    "\\'; DROP TABLE precious; --", "x' OR '1'='1", 'a" AS b FROM precious --', "$$; DROP TABLE precious; $$",
    '0.1; python_version < "3"\n./evil', "0.1\n--index-url https://evil.example", "0.1 --hash=sha256:0",
    "0.1 @ file:///tmp/evil", "<script>alert(1)</script>", '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)", "</title><svg onload=alert(1)>", "</style><script>alert(1)</script>", "&lt;script&gt;",
    "<!--", "]]>", "{{ 7 * 7 }}", "${7*7}", "{0.__class__}", "%s%n", "[a](javascript:alert(1))",
    "![a](https://evil.example/x.png)", "<https://evil.example>", "a | b | c", "# heading", "---", "===", "- item",
    "1. item", "+ item", "> quote", "```", "~~~", "    code", "a\n\n# b", "*a* _b_ `c` ~~d~~", "\\", "a\\",
    "[a]: https://evil.example", "=cmd|'/C calc'!A0", '=HYPERLINK("https://evil.example")', "+1+cmd", "-1+cmd",
    "@SUM(1)", "\t=1+1", "\r=1+1", " =1+1", "\uff1d1+1", "'=1+1", "\u202egnp.exe", "\u2066a\u2069", "a\x00b",
    "\x1b[2J", "\x9b31m", "\ud800", "a\u0301\u200b\ufeff", "x" * 100_000, "", " ", "\n", "None", "NaN", "1e400",
    "../../../etc/passwd", "\\input{/etc/passwd}", "$(id)", "`id`", "; id", "a && id", "%0a", "\u00a0", "\U0001f4a9",
    "_", "__class__",
]  # fmt: skip

SCHEMA = {
    "version": 1, "name": "wards", "label": "outcome", "classes": ["home", "ward", "died"], "rows": 400,
    "prescaled": False,
    "card": {
        "purpose": "triage", "intended_use": "by nurses", "owner": "ward 7", "contact": "a@b.example",
        "expires": "2031-01-01",
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


def run(*arguments):
    """Run a command; its exit code, output and errors."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main([str(argument) for argument in arguments])
    return code, out.getvalue(), err.getvalue()


def rows_of(model, rng):
    """Texts of a table for a model, some of them hostile, in which every declared word occurs."""
    words = [word for column in model.schema_.features.values() for word in column.words]
    cells = ["", "17", "2020-05-01", "yes", *words, *filter(is_cell, TEXTS)]
    names = [*model.schema_.features, *({"row", "key"} - {*model.schema_.features})]
    rows = {name: [rng.choice(cells) for _ in range(60)] for name in names}
    rows["row"], rows["key"] = (
        [str(row) for row in range(60)],
        [rng.choice([*filter(is_cell, TEXTS)]) for _ in range(60)],
    )
    return rows


def is_cell(text):
    """Whether a table can hold a text, a line of UTF-8; queries cut blanks and tabs, and no others of Unicode."""
    return not {"\n", "\r", "\x00", "\ud800"} & {*text} and len(text) < 1000 and text.strip() == text.strip(" \t")


@functools.cache
def shape_of_markdown(text):
    """Kinds of the tokens of a page, without those of plain text; it holds no HTML, link and picture."""
    kinds = []
    for token in MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(text):
        kinds += [each.type for each in (token, *(token.children or [])) if each.type not in TOKENS_OF_TEXT]
    foreign = {"html_inline", "html_block", "link_open", "image", "fence", "code_block", "em_open", "s_open"}
    assert not foreign & {*kinds}, foreign & {*kinds}
    return {*kinds}, kinds.count("heading_open"), kinds.count("table_open")


class Elements(html.parser.HTMLParser):
    """Elements of a page with their attributes, and comments."""

    def __init__(self, page):
        super().__init__()
        self.found = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, tuple(attributes)))

    def handle_comment(self, data):
        self.found.append((f"comment {data}", ()))


def shape_of_page(page):
    """Elements and attributes of a page."""
    return Elements(page).found


def check_databases(query, rows, labels):
    """Run a query as a script, then for its answers."""
    assert query.startswith("-- PrivSVM ")
    frame = {name: [cell or None for cell in cells] for name, cells in rows.items()}
    names = ", ".join('"{}" TEXT'.format(name.replace('"', '""')) for name in rows)
    marks = ", ".join("?" * len(rows))
    for connection in (sqlite3.connect(":memory:"), duckdb.connect()):
        for statement in ("CREATE TABLE precious (x INTEGER)", "INSERT INTO precious VALUES (7)"):
            connection.execute(statement)
        connection.execute(f"CREATE TABLE patients ({names})")
        connection.executemany(f"INSERT INTO patients VALUES ({marks})", list(zip(*frame.values(), strict=True)))
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
    given = {
        name: np.array([*map(normalise_label, rows[name])], dtype=object) if column.words
        else np.array([column.read(cell, model.schema_.decimal) for cell in rows[name]])
        for name, column in model.schema_.features.items()
    }  # fmt: skip
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    assert session.run(["predicted"], given)[0].tolist() == labels


def check_flavour(folder):
    """Read what MLflow and pip read of a folder."""
    own = importlib.metadata.version("privsvm")
    assert (folder / "requirements.txt").read_text() == f"privsvm=={own}\n"
    required = Requirement((folder / "requirements.txt").read_text().strip())
    assert (required.name, str(required.specifier), required.url, required.marker) == (
        "privsvm",
        f"=={own}",
        None,
        None,
    )
    written = yaml.safe_load((folder / "python_env.yaml").read_text())
    assert written["dependencies"] == ["-r requirements.txt"]
    assert [*yaml.safe_load((folder / "MLmodel").read_text())["flavors"]] == ["python_function"]


def check_table(text):
    """No cell of a CSV is a formula."""
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


def one_line(error):
    """The message of a refusal."""
    assert "\n" not in str(error)
    return [str(error)]


def exports(folder, ledger, rng, out):
    """Export a release every way, and check what is accepted; refusals are one line, which are returned."""
    refusals = []

    def accepted(*arguments):
        code, told, err = run(*arguments)
        assert unseen(told + err) <= {"\n"}, unseen(told + err)
        if code:
            assert (code, err.count("\n")) == (1, 1), err
            refusals.append(err)
            return None
        return told

    try:
        model = load(folder)
    except PrivSVMError as error:
        return one_line(error)
    rows = rows_of(model, rng)
    labels = model.predict(rows).tolist()
    with open(out / "rows.csv", "w", newline="", encoding="utf-8") as handle:
        writer = csv.writer(handle)
        writer.writerow(rows)
        writer.writerows(zip(*rows.values(), strict=True))
    query, graph, flavour, table = (out / name for name in ("query.sql", "model.onnx", "flavour", "predicted.csv"))
    keep = ("--keep", "row", "--keep", "key")
    if accepted("export", folder, "--to", "sql", "--table", "patients", "--keep", "row", "--out", query) is not None:
        check_databases(query.read_text(encoding="utf-8"), rows, labels)
    if accepted("export", folder, "--to", "onnx", "--out", graph) is not None:
        check_graph(graph.read_bytes(), model, rows, labels)
    if accepted("predict", folder, out / "rows.csv", *keep, "--out", table) is not None:
        check_csv(table.read_text(encoding="utf-8"), rows, labels)
    if accepted("export", folder, "--to", "mlflow", "--out", flavour) is not None:
        check_flavour(flavour)
        assert shape_of_page((flavour / "data" / "card.html").read_text(encoding="utf-8")) == shape_of_page(
            innocent()[0]
        )
    if (text := accepted("dossier", folder)) is not None:
        shape, innocent_shape = shape_of_markdown(text), shape_of_markdown(innocent()[1])
        assert shape[0] <= innocent_shape[0]
        assert shape[1:] == innocent_shape[1:]
    accepted("card", folder)
    accepted("verify", folder, "--ledger", ledger)
    accepted("ledger", "--ledger", ledger)
    accepted("ledger", "--export", "--ledger", ledger)
    return refusals


def unseen(text):
    """Characters of a text that no terminal should get."""
    return {letter for letter in text if unicodedata.category(letter)[0] == "C" or letter in "\u2028\u2029"}


@functools.cache
def innocent():
    """Page and dossier of a release without hostile texts."""
    with tempfile.TemporaryDirectory() as temporary:
        folder, ledger = Path(temporary) / "model", Path(temporary) / "ledger.jsonl"
        release_by(parse_schema(SCHEMA), folder, ledger)
        return (folder / "card.html").read_text(encoding="utf-8"), run("dossier", folder)[1]


def replaced(rng, content, text):
    """Put a text in the place of a text, or of the name of a key, of a JSON value."""
    places = [path for path in paths(content) if isinstance(value_at(content, path), str)]
    keys = [path for path in paths(content) if isinstance(path[-1], str)]
    if rng.random() < 0.8:
        put(content, rng.choice(places), text)
        return
    path = rng.choice(keys)
    home = value_at(content, path[:-1])
    renamed = {text if name == path[-1] else name: item for name, item in home.items()}
    home.clear()
    home.update(renamed)


def value_at(content, path):
    for key in path:
        content = content[key]
    return content


def of_schema(rng, text, folder):
    """A schema that somebody hands over, and a model that is released by it."""
    content = copy.deepcopy(SCHEMA)
    if rng.random() < 0.3:
        where = rng.choice([("columns",), ("classes",), ("columns", "place", "categories")])
        home = value_at(content, where)
        home.append(text) if isinstance(home, list) else home.update({text: {"bounds": [0, 1], "fill": 0}})
    else:
        replaced(rng, content, text)
    path = folder / "schema.yaml"
    path.write_bytes(yaml.safe_dump(content, allow_unicode=True, sort_keys=False).encode("utf-8", "surrogatepass"))
    try:
        schema = read_schema(path)
    except PrivSVMError as error:
        return one_line(error)
    release_by(schema, folder / "model", folder / "ledger.jsonl")
    return exports(folder / "model", folder / "ledger.jsonl", rng, folder)


def every_role(rng, folder):
    """One release whose columns, categories and classes are all texts that are accepted."""
    words = [*{normalise_label(text): None for text in TEXTS if written(1).accepts(text) and text.strip()}]
    content = copy.deepcopy(SCHEMA)
    content["classes"] = [word for word in words if {*word} & {*"'\";<=["}]
    content["columns"] = {
        "place": {"categories": words, "unknown": words[0]},
        **{word: {"bounds": [0, 1], "fill": 0} for word in words},
    }
    release_by(parse_schema(content), folder / "model", folder / "ledger.jsonl")
    return exports(folder / "model", folder / "ledger.jsonl", rng, folder)


def of_files(rng, text, folder):
    """A record, a card or a ledger with a text in it, and digests that fit."""
    model, ledger = folder / "model", folder / "ledger.jsonl"
    release_by(parse_schema(SCHEMA), model, ledger)
    record, card = (json.loads((model / name).read_text()) for name in (RECORD, "card.json"))
    match rng.choice(["record", "record", "version", "table", "card", "ledger"]):
        case "record":
            replaced(rng, record, text)
        case "version":
            record["privsvm"] = card["privsvm"] = text
        case "table":
            replaced(rng, record["table"], text)
        case "card":
            replaced(rng, card, text)
        case "ledger":
            lines = [json.loads(line) for line in ledger.read_text().splitlines()]
            replaced(rng, rng.choice(lines), text)
            for line, before in zip(lines, [{"hash": "0" * 64}, *lines], strict=False):
                line["previous"] = before["hash"]
                line["hash"] = content_digest(line, "hash")
            ledger.write_text("".join(canonical_json(line) + "\n" for line in lines))
    write_folder(model, record, card)
    return exports(model, ledger, rng, folder)


def of_params(rng, text, folder):
    """A params.yaml: names are names, and what is named as code is a classifier of an installed package."""
    content = yaml.safe_load((REPOSITORY / "params.yaml").read_text())
    if rng.random() < 0.5:
        content["methods"]["own"] = {"implementation": rng.choice(CODE), "args": ["sh", "-c", "id"]}
    else:
        replaced(rng, content, text)
    path = folder / "params.yaml"
    path.write_bytes(yaml.safe_dump(content, allow_unicode=True, sort_keys=False).encode("utf-8", "surrogatepass"))
    before = {*sys.modules}
    try:
        params = read_params(path)
    except PrivSVMError as error:
        assert not ({*sys.modules} - before) & {"antigravity", "this", "code"}
        return one_line(error)
    for name in (params.experiment, *params.datasets, *params.methods):
        assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._+-]*", name)
    assert not {entry.implementation for entry in params.methods.values()} & {*CODE}
    return []


def of_results(rng, text, folder):
    """A result of the benchmark: its page, its table, and its card in MLflow."""
    content = make_result("wine", "pmsvm_wp_as_published", "claimed")
    replaced(rng, content, text)
    try:
        elements, (kinds, *counts) = shapes_of_result(json.dumps(content), folder)
    except PrivSVMError as error:
        return one_line(error)
    usual, (usual_kinds, *usual_counts) = result_without_attack()
    assert elements <= usual, elements - usual
    assert kinds <= usual_kinds
    assert counts == usual_counts
    return []


def shapes_of_result(content, folder):
    """Elements of the report of a result, with the names of their attributes, and the shape of its card."""
    path = folder / "result.json"
    path.write_bytes(json.dumps(sealed(json.loads(content))).encode())
    (curve,) = collect_runs([(path, [])])
    assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._+-]*/[A-Za-z0-9][A-Za-z0-9._+-]*", curve.experiment_name)
    files = report_files([read(Result, path)])
    for name, text in files.items():
        if name.endswith(".csv"):
            check_table(text)
    return elements_of(files["index.html"]), shape_of_markdown(curve.files["card.md"])


def elements_of(page):
    """Kinds of elements of a page, with the names of their attributes."""
    return {(tag, *sorted(name for name, _ in given)) for tag, given in shape_of_page(page)}


@functools.cache
def result_without_attack():
    with tempfile.TemporaryDirectory() as temporary:
        content = json.dumps(make_result("wine", "pmsvm_wp_as_published", "claimed"))
        elements, shape = shapes_of_result(content, Path(temporary))
    # A result of others may lack what this one has, and then the page has parts of others.
    results = [result_of(make_result("wine", method, status)) for method, status in METHODS.items()]
    return elements | elements_of(report_files(results)["index.html"]), shape


# Classes and functions of the standard library, and what is none of its names.
CODE = [
    "subprocess:Popen", "os:system", "builtins:eval", "antigravity:x", "this:x", "os.path:join", "runpy:run_path",
    "pathlib:Path", "shutil:rmtree", "code:InteractiveConsole", "importlib.machinery:SourceFileLoader", "__main__:x",
]  # fmt: skip
KINDS = (of_schema, of_files, of_schema, of_params, of_schema, of_results)


def run_case(number, seed=0):
    """Run one case: its kind, the text, and the refusals, none where all was accepted."""
    rng = random.Random(f"{seed} {number}")
    kind, text = KINDS[number % len(KINDS)], rng.choice(TEXTS)
    with tempfile.TemporaryDirectory() as temporary:
        try:
            refusals = kind(rng, text, Path(temporary))
        except Exception as error:
            raise AssertionError(f"case {number}, {kind.__name__}, {text[:60]!r}: {error}") from error
    return kind.__name__, text, refusals
