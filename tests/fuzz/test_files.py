"""Mutations of small real files: every reader returns a value of its type, or raises an error of one line.

Each run has 15 cases per reader; ``PRIVSVM_FUZZ_CASES=1000 pytest tests/fuzz`` has 1,000 new ones. ``KNOWN_CASES``
keeps cases that once failed.
"""

from __future__ import annotations

import contextlib
import io
import os
import tracemalloc
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.io
import scipy.sparse
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.guarantees import proved
from tests.steps import counted_calls

from privsvm import DPLeastSquaresClassifier
from privsvm.base.released import ConstantPath
from privsvm.errors import PrivSVMError
from privsvm.numerics.rows.row_blocks import open_rows
from privsvm.numerics.rows.rows import is_sparse
from privsvm.numerics.rows.well_formed import check_sparse
from privsvm.privacy.guarantee import Guarantee
from privsvm.release.ledger import Ledger
from privsvm.release.model import load, save
from privsvm.tables.schema import parse_schema, read_schema
from privsvm_bench.datasets.catalogue import DataFile, DataPart, DatasetEntry
from privsvm_bench.datasets.readers import read_part
from privsvm_bench.jobs.model_files import load_paths, released, save_paths
from privsvm_bench.jobs.params import read_params
from privsvm_bench.records import SavedModels

REPOSITORY = Path(__file__).resolve().parents[2]
CASES = int(os.environ.get("PRIVSVM_FUZZ_CASES", "15"))
# Limits of the calls of functions and of the memory of one case.
CALLS, BYTES = 3_000_000, 200 << 20

ROWS = [(1.5, -2.0, "a"), (0.1, 3.0, "b"), (0.0, 4e-3, "a"), (2.0, 1e300, "b")]
CSV = "x,z,kind\n" + "".join(f"{x!r},{z!r},{kind}\n" for x, z, kind in ROWS)
LIBSVM = "+1 1:1.5 2:-2\n-1 1:0.1 2:3 # comment\n1.0 2:4e-3\n-1 1:2\n"
ARFF = "@relation r\n@attribute x numeric\n@attribute z numeric\n@attribute kind {a,b}\n@data\n" + "".join(
    f"{x!r},{z!r},{kind}\n" for x, z, kind in ROWS
)
NUMBERS = np.array([row[:2] for row in ROWS])
CODES = np.array([1, 2, 1, 2])


def npz() -> bytes:
    buffer = io.BytesIO()
    np.savez_compressed(buffer, X=NUMBERS, y=CODES)
    return buffer.getvalue()


def parquet() -> bytes:
    """Write rows with the metadata of pandas."""
    buffer = io.BytesIO()
    pd.DataFrame(ROWS, columns=["x", "z", "kind"]).to_parquet(buffer, compression=None)
    return buffer.getvalue()


def mat(X: object) -> bytes:
    buffer = io.BytesIO()
    scipy.io.savemat(buffer, {"X": X, "y": CODES})
    return buffer.getvalue()


SEEDS: dict[str, tuple[bytes, dict]] = {
    "csv": (CSV.encode(), {"format": "csv", "label": "kind", "header_rows": 1, "header_assumed": True}),
    "blanks": (CSV.replace(",", " ").encode(), {"format": "data", "label": 2, "header_rows": 1}),
    "latin": ("x,kind\n1,ä\n2,ö\n".encode("latin-1"), {"format": "csv", "label": 1, "encoding": "latin-1"}),
    "libsvm": (LIBSVM.encode(), {"format": "libsvm"}),
    "arff": (ARFF.encode(), {"format": "arff", "label": "kind"}),
    "npz": (npz(), {"format": "npz", "features": "X", "label": "y"}),
    "parquet": (parquet(), {"format": "parquet", "label": "kind"}),
    "mat": (mat(NUMBERS), {"format": "mat", "features": "X", "label": "y"}),
    "sparse mat": (mat(scipy.sparse.csc_array(NUMBERS)), {"format": "mat", "features": "X", "label": "y"}),
}
TOKENS = [
    b"", b"\0", b"\n", b"\r", b",", b'"', b"'", b" ", b"\t", b":", b"#", b"%", b"?", b"nan", b"inf", b"-1", b"1e999",
    b"1_0", b"99999999999999999999", b"2147483647", b"\xff", b"\xef\xbb\xbf", b"\xf0\x9f\x98\x80", b"{", b"}", b"[",
    b"*a", b"&a ", b"!!python/name:os.system ", b"<html>", b"PK\x03\x04", b"\x1f\x8b", b"x" * 3000,
]  # fmt: skip


@st.composite
def mutations(draw: st.DrawFn, seed: bytes) -> bytes:
    """Change, cut, insert or double a few bytes of a real file."""
    content = bytearray(seed)
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(content)))
        stop = min(len(content), start + draw(st.integers(0, 12)))
        match draw(st.sampled_from(["cut", "token", "flip", "double", "end"])):
            case "cut":
                del content[start:stop]
            case "token":
                content[start:stop] = draw(st.sampled_from(TOKENS))
            case "flip":
                if start < len(content):
                    content[start] ^= draw(st.integers(1, 255))
            case "double":
                content[start:start] = content[start:stop]
            case "end":
                del content[start:]
    return bytes(content)


fuzzed = settings(
    max_examples=CASES,
    deadline=None,
    derandomize="PRIVSVM_FUZZ_CASES" not in os.environ,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def one_line(error: PrivSVMError, start: str = "") -> None:
    assert str(error)
    assert str(error).startswith(start)
    assert "\n" not in str(error)


@contextlib.contextmanager
def little_work() -> Iterator[None]:
    """Require that a block calls few functions, however it ends."""
    with counted_calls() as calls:
        try:
            yield
        finally:
            assert calls[0] < CALLS


@contextlib.contextmanager
def little_memory_and_work() -> Iterator[None]:
    """Require that a block stays within both limits, however it ends."""
    tracemalloc.start()
    try:
        with little_work():
            yield
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < BYTES


def reads(folder: Path, content: bytes, recipe_fields: dict) -> None:
    """Read a file: require consistent rows, or one line, within the limits."""
    (folder / "file").write_bytes(content)
    recipe = DataPart(role="all", files=("file",), max_bytes=1 << 20, **recipe_fields)
    entry = DatasetEntry("toy", {"file": DataFile("file")}, {"all": recipe}, pool=("all",), missing="zero")
    try:
        with little_memory_and_work(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            X, labels = read_part(entry, "all", folder)
    except PrivSVMError as error:
        one_line(error)
    else:
        assert X.ndim == 2
        assert X.shape[0] == len(labels) > 0
        assert X.dtype == np.float64
        assert len(set(labels.tolist())) > 1
        if is_sparse(X):
            check_sparse(X)
    assert sorted(os.listdir(folder)) == ["file"]


@pytest.mark.parametrize("kind", SEEDS)
def test_data_files(tmp_path: Path, kind: str) -> None:
    seed, recipe = SEEDS[kind]

    @fuzzed
    @given(mutations(seed))
    def case(content: bytes) -> None:
        reads(tmp_path, content, recipe)

    reads(tmp_path, seed, recipe)
    case()


# Cases that once failed; tests/datasets/test_misread.py has those with a message.
KNOWN_CASES: list[tuple[str, bytes]] = [
    ("blanks", b"\n \nx z kind\n1 2 a\n"),
    ("libsvm", b"1 2:1 1:1\n"),
    ("arff", b"@data\n1,2\n"),
    ("parquet", parquet().replace(b'"index_columns": [{', b'"index_columns": [7,')),
    ("npz", npz()[:-30]),
    ("mat", mat(NUMBERS)[:140]),
]


@pytest.mark.parametrize(("kind", "content"), KNOWN_CASES)
def test_what_was_found(tmp_path: Path, kind: str, content: bytes) -> None:
    reads(tmp_path, content, SEEDS[kind][1])


def test_params(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    @fuzzed
    @given(mutations((REPOSITORY / "params.yaml").read_bytes()))
    def case(content: bytes) -> None:
        Path("params.yaml").write_bytes(content)
        try:
            with little_work():
                read_params()
        except PrivSVMError as error:
            one_line(error, "params.yaml: ")

    case()


def fuzz_together(files: Sequence[Path], read: Callable[[], Any], check: Callable[[Any, int, bool], None]) -> None:
    """Change one of several files that belong together, and read them.

    `check` gets the loaded value, the index of the changed file, and whether its bytes are equal to the original.
    """
    originals = [file.read_bytes() for file in files]

    @fuzzed
    @given(st.integers(0, len(files) - 1).flatmap(lambda which: st.tuples(st.just(which), mutations(originals[which]))))
    def case(change: tuple[int, bytes]) -> None:
        which, content = change
        for number, (file, before) in enumerate(zip(files, originals, strict=True)):
            file.write_bytes(content if number == which else before)
        try:
            with little_work():
                loaded = read()
        except PrivSVMError as error:
            one_line(error)
        else:
            check(loaded, which, content == originals[which])

    case()


def test_models(tmp_path: Path) -> None:
    """Changes of arrays and record are detected."""
    none = Guarantee(status="none", mechanism="none", reason="no noise", reference="test")
    scores = np.array([[[0.25, 0.75]]])
    path = ConstantPath(epsilons=(float("inf"),), guarantees=(none,), n_classes=2, class_scores=scores)
    files = tmp_path / "m.npz", tmp_path / "m.json"
    save_paths([path], *files, SavedModels(implementation="majority", classes=("a", "b"), **released([path])))

    def check(read: Any, which: int, same: bool) -> None:
        (path,), record = read
        # White space and the order of keys do not count in a record.
        assert same or which == 1
        assert record.implementation == "majority"
        np.testing.assert_array_equal(path.class_scores, scores)

    fuzz_together(files, lambda: load_paths(*files, SavedModels), check)


SCHEMA = """name: wards
label: died
classes: ["no", "yes"]
positive: "yes"
columns:
  age: {bounds: [0, 100], fill: 50}
  ward: {categories: [a, b], unknown: other}
  since: {date: "%Y-%m-%d", bounds: [2001-01-01, 2020-12-31], fill: middle}
  alone: {boolean: true, fill: "no"}
  name: ignore
"""


def test_schemas(tmp_path: Path) -> None:
    file = tmp_path / "schema.yaml"

    @fuzzed
    @given(mutations(SCHEMA.encode()))
    def case(content: bytes) -> None:
        file.write_bytes(content)
        try:
            with little_work():
                schema = read_schema(file)
        except PrivSVMError as error:
            one_line(error, str(file))
        else:
            assert len(schema.classes) > 1
            assert parse_schema(schema.to_json()) == schema

    file.write_text(SCHEMA)
    assert sorted(read_schema(file).columns) == ["age", "alone", "name", "since", "ward"]
    case()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            SCHEMA.replace("  ward:", "  age: {bounds: [0, 1]}\n  ward:"),
            'line 7, column 3: found duplicate key "age"',
        ),
        (SCHEMA.replace("100", ".inf"), "must be two finite numbers"),
        (SCHEMA.replace("100", "9" * 5000), "a number of more than 40 digits"),
        (SCHEMA + "person: " + "[" * 1200, "more than 30 levels"),
        (SCHEMA + "person: " + "{a: " * 40 + "1" + "}" * 40, "more than 30 levels"),
        (SCHEMA + "rows: !!python/name:os.system\n", "tags are not read"),
        (SCHEMA.replace("%Y-", "%Y%Y-"), "names a part of a date twice; name each once"),
        pytest.param(SCHEMA.replace('["no", "yes"]', '[~, "yes"]'), "None is neither a text nor", id="no class"),
        (SCHEMA.replace('["no", "yes"]', '[.nan, "yes"]'), "nan is neither a text nor a finite number"),
        (SCHEMA.replace('["no", "yes"]', '[true, "yes"]'), "write them in quotes"),
        (SCHEMA.replace("[a, b]", "[a, {b: 1}]"), "{'b': 1} is neither a text nor a finite number"),
        (SCHEMA.replace("[0, 100]", "[false, true]"), "bounds [False, True] are not a pair"),
        (SCHEMA.replace("[0, 100]", "[~, 100]"), "must be two finite numbers"),
        pytest.param(
            SCHEMA.replace("fill: 50", "fill: 6000"), "columns.age: fill 6000 is outside", id="a fill out of bounds"
        ),
        (
            SCHEMA.replace("fill: middle", "fill: 1999-01-01"),
            "columns.since: fill '1999-01-01' is outside of the bounds",
        ),
        (SCHEMA.replace("fill: 50", "fill: true"), "fill True is a truth value"),
        (SCHEMA + "version: true\n", "True is not 1"),
        (SCHEMA + "version: 1.0\n", "1.0 is not 1"),
        (SCHEMA + "rows: 1e300\n", "rows: 1e+300 is not valid; must be a whole number of at least 1 and below 2^63"),
        (SCHEMA + "person: p\nrows_per_person: 1e30\n", "rows_per_person: 1e+30 is not valid"),
        (SCHEMA + "prescaled: !!bool maybe\n", "line 11, column 12: tags are not read"),
        (
            SCHEMA.partition("columns:")[0] + "columns: [[~, ignore], [x, {bounds: [0, 1], fill: 0}]]\n",
            "must be a mapping",
        ),
        (SCHEMA.partition("columns:")[0] + "columns: [[x, ignore], [x, {bounds: [0, 1], fill: 0}]]\n", "occurs twice"),
        (SCHEMA.replace("  age:", '  "\\ud800":'), "half a surrogate pair is no text"),
    ],
)
def test_schemas_that_were_found(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "schema.yaml"
    file.write_text(text)
    with pytest.raises(PrivSVMError) as caught:
        read_schema(file)
    one_line(caught.value, str(file))
    assert message in str(caught.value)


def test_parquet(tmp_path: Path) -> None:
    """A changed file gives consistent blocks of rows, or one line."""
    parquet, pyarrow = pytest.importorskip("pyarrow.parquet"), pytest.importorskip("pyarrow")
    buffer, file = io.BytesIO(), tmp_path / "rows.parquet"
    table = pyarrow.table({"x": NUMBERS[:, 0], "z": NUMBERS[:, 1], "kind": CODES})
    parquet.write_table(table, buffer, row_group_size=3)

    def reads_rows(content: bytes) -> None:
        file.write_bytes(content)
        try:
            with little_memory_and_work():
                rows = open_rows(file, "kind")
                blocks = [rows.read(start, stop) for start, stop in rows.blocks()]
        except PrivSVMError as error:
            one_line(error, str(file))
        else:
            assert all(block.dtype == np.float64 and block.shape[1] == rows.shape[1] for block in blocks)
            assert sum(map(len, blocks)) == rows.shape[0] == len(rows.labels)

    @fuzzed
    @given(mutations(buffer.getvalue()))
    def case(content: bytes) -> None:
        reads_rows(content)

    reads_rows(buffer.getvalue())
    case()


def test_npy(tmp_path: Path) -> None:
    buffer, file = io.BytesIO(), tmp_path / "rows.npy"
    np.save(buffer, NUMBERS)

    @fuzzed
    @given(mutations(buffer.getvalue()))
    def case(content: bytes) -> None:
        file.write_bytes(content)
        try:
            with little_work():
                rows = open_rows(file)
                stored = rows.read(0, rows.shape[0])
        except PrivSVMError as error:
            one_line(error, str(file))
        else:
            assert stored.shape == rows.shape

    case()


def test_ledgers(tmp_path: Path) -> None:
    """Edits are detected, except whole lines that are missing at the end; ends of lines do not matter."""
    ledger = Ledger(tmp_path / "ledger.jsonl")
    for number in range(3):
        digest, date = f"{number:064x}", "2026-01-01"
        paid = {"account": "wards", "unit": "row", "rows": 1, "epsilon": 1.0, "delta": 1e-5, "budget": None}
        ledger.finish(ledger.begin({**paid, "id": digest, "date": date, "guarantee": proved()}), digest, date)
    original, entries = ledger.path.read_bytes(), ledger.entries()

    @fuzzed
    @given(mutations(original))
    def case(content: bytes) -> None:
        ledger.path.write_bytes(content)
        try:
            with little_work():
                kept_entries = ledger.entries()
        except PrivSVMError as error:
            one_line(error, str(ledger.path))
        else:
            # The line that names the model may be cut off; the one that pays for it may not have changed.
            assert [entry.id for entry in kept_entries] == [entry.id for entry in entries[: len(kept_entries)]]
            assert {*kept_entries[:-1]} <= {*entries}
            assert len(kept_entries) == 3 or len(content) < len(original) or not content.endswith(b"\n")

    assert len(entries) == 3
    case()


def test_released_models(tmp_path: Path) -> None:
    """Changes of model files are detected."""
    model = DPLeastSquaresClassifier(epsilon=4.0, classes=[1, 2], random_state=0).fit(NUMBERS / 1e300, CODES)
    save(model, tmp_path)
    files = tmp_path / "model.npz", tmp_path / "model.json"

    def check(loaded: Any, _: int, same: bool) -> None:
        assert same
        assert loaded.predict(NUMBERS).tolist() == model.predict(NUMBERS).tolist()

    assert load(tmp_path).predict(NUMBERS).tolist() == model.predict(NUMBERS).tolist()
    fuzz_together(files, lambda: load(tmp_path), check)
