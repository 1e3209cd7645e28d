"""Mutations of small real files: every reader returns a value of its type, or raises an error of one line."""

import os
import re
import tomllib
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.io
import scipy.sparse
from hypothesis import given
from tests.archives import content_of
from tests.fuzz.strategies import fuzzed, little_memory_and_work, mutations
from tests.guarantees import proved
from tests.scripts import REPOSITORY

from privsvm.errors import PrivSVMError
from privsvm.numerics.rows.row_blocks import open_rows
from privsvm.numerics.rows.rows import is_sparse
from privsvm.numerics.rows.well_formed import check_sparse
from privsvm.release.documents.ledger import Ledger
from privsvm.tables.schema import parse_schema, read_schema
from privsvm_bench.datasets.catalogue import DataFile, DataPart, DatasetEntry
from privsvm_bench.datasets.readers import read_part
from privsvm_bench.jobs.params import read_params

ROWS = [(1.5, -2.0, "a"), (0.1, 3.0, "b"), (0.0, 4e-3, "a"), (2.0, 1e300, "b")]
CSV = "x,z,kind\n" + "".join(f"{x!r},{z!r},{kind}\n" for x, z, kind in ROWS)
LIBSVM = "+1 1:1.5 2:-2\n-1 1:0.1 2:3 # comment\n1.0 2:4e-3\n-1 1:2\n"
NUMBERS = np.array([row[:2] for row in ROWS])
CODES = np.array([1, 2, 1, 2])


NPZ = content_of(np.savez_compressed, X=NUMBERS, y=CODES)
MAT = content_of(scipy.io.savemat, {"X": NUMBERS, "y": CODES})
SPARSE_MAT = content_of(scipy.io.savemat, {"X": scipy.sparse.csc_array(NUMBERS), "y": CODES})
# With the metadata of pandas.
PARQUET = content_of(pd.DataFrame(ROWS, columns=["x", "z", "kind"]).to_parquet, compression=None)
SEEDS: dict[str, tuple[bytes, dict[str, Any]]] = {
    "csv": (CSV.encode(), {"format": "csv", "label": "kind", "header_rows": 1, "header_assumed": True}),
    "blanks": (CSV.replace(",", " ").encode(), {"format": "data", "label": 2, "header_rows": 1}),
    "latin": (
        "x,kind\n1,ä\n2,ö\n".encode("latin-1"),
        {"format": "csv", "label": 1, "header_rows": 1, "encoding": "latin-1"},
    ),
    "libsvm": (LIBSVM.encode(), {"format": "libsvm"}),
    "npz": (NPZ, {"format": "npz", "features": "X", "label": "y"}),
    "parquet": (PARQUET, {"format": "parquet", "label": "kind"}),
    "mat": (MAT, {"format": "mat", "features": "X", "label": "y"}),
    "sparse mat": (SPARSE_MAT, {"format": "mat", "features": "X", "label": "y"}),
}


def attempt(read: Callable[[], Any], check: Callable[[Any], None], start: str = "") -> None:
    """Require a value that passes a check, or one line with a beginning, within the limits."""
    try:
        with little_memory_and_work(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            value = read()
    except PrivSVMError as error:
        message = str(error)
    else:
        check(value)
        return
    assert re.fullmatch(rf"{re.escape(start)}.+", message)


def fuzz(
    file: Path, seed: bytes, read: Callable[[], Any], check: Callable[[Any], None] = lambda value: None, start: str = ""
) -> None:
    """Write mutations of a file, and attempt to read each."""

    @fuzzed
    @given(mutations(seed))
    def case(content: bytes) -> None:
        file.write_bytes(content)
        attempt(read, check, start)

    file.write_bytes(seed)
    check(read())
    case()


def reader_of(folder: Path, kind: str) -> Callable[[], Any]:
    """Return a function that reads the one file of a data set."""
    recipe = DataPart(role="all", files=("file",), max_bytes=1 << 20, **SEEDS[kind][1])
    entry = DatasetEntry("toy", {"file": DataFile("file")}, {"all": recipe}, pool=("all",), missing="zero")

    def read() -> Any:
        try:
            return read_part(entry, "all", folder)
        finally:
            assert os.listdir(folder) == ["file"]

    return read


def check_rows(data: Any) -> None:
    """Require consistent rows and labels."""
    X, labels = data
    assert X.ndim == 2
    assert X.shape[0] == len(labels) > 0
    assert X.dtype == np.float64
    assert len(set(labels.tolist())) > 1
    if is_sparse(X):
        check_sparse(X)


@pytest.mark.parametrize("kind", SEEDS)
def test_data_files(tmp_path: Path, kind: str) -> None:
    fuzz(tmp_path / "file", SEEDS[kind][0], reader_of(tmp_path, kind), check_rows)


# Cases that once failed; tests/datasets/test_readers.py has others, with messages.
KNOWN_CASES: list[tuple[str, bytes]] = [
    ("blanks", b"\n \nx z kind\n1 2 a\n"),
    ("libsvm", b"1 2:1 1:1\n"),
    ("parquet", PARQUET.replace(b'"index_columns": [{', b'"index_columns": [7,')),
    ("npz", NPZ[:-30]),
    ("mat", MAT[:140]),
]


@pytest.mark.parametrize(("kind", "content"), KNOWN_CASES)
def test_data_files_that_were_found(tmp_path: Path, kind: str, content: bytes) -> None:
    (tmp_path / "file").write_bytes(content)
    attempt(reader_of(tmp_path, kind), check_rows)


def test_params(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    fuzz(Path("params.yaml"), (REPOSITORY / "params.yaml").read_bytes(), read_params, start="params.yaml: ")


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
EDITS = tomllib.loads(Path(__file__).with_name("schemas.toml").read_text(encoding="utf-8")) | {
    "a long number": {"old": "100", "new": "9" * 5000, "says": "a number of more than 40 digits"},
    "deep lists": {"end": "person: " + "[" * 1200, "says": "more than 30 levels"},
    "deep mappings": {"end": "person: " + "{a: " * 40 + "1" + "}" * 40, "says": "more than 30 levels"},
}


def test_schemas(tmp_path: Path) -> None:
    file = tmp_path / "schema.yaml"

    def check(schema: Any) -> None:
        assert len(schema.classes) > 1
        assert parse_schema(schema.to_json()) == schema

    fuzz(file, SCHEMA.encode(), lambda: read_schema(file), check, str(file))


@pytest.mark.parametrize("name", EDITS)
def test_schemas_that_were_found(tmp_path: Path, name: str) -> None:
    edit = EDITS[name]
    text = SCHEMA.replace(edit["old"], edit["new"]) if "old" in edit else SCHEMA + edit.get("end", "")
    if "columns" in edit:
        text = f"{SCHEMA.partition('columns:')[0]}columns: {edit['columns']}\n"
    file = tmp_path / "schema.yaml"
    file.write_text(text)
    with pytest.raises(PrivSVMError, match=rf"^{re.escape(str(file))}.*{re.escape(edit['says'])}"):
        read_schema(file)


def test_parquet(tmp_path: Path) -> None:
    """A changed file gives consistent blocks of rows, or one line."""
    parquet, pyarrow = pytest.importorskip("pyarrow.parquet"), pytest.importorskip("pyarrow")
    file, table = tmp_path / "rows.parquet", pyarrow.table({"x": NUMBERS[:, 0], "z": NUMBERS[:, 1], "kind": CODES})

    def read() -> Any:
        rows = open_rows(file, "kind")
        return rows, [rows.read(start, stop) for start, stop in rows.blocks()]

    def check(opened: Any) -> None:
        rows, blocks = opened
        assert all(block.dtype == np.float64 and block.shape[1] == rows.shape[1] for block in blocks)
        assert sum(map(len, blocks)) == rows.shape[0] == len(rows.labels)

    seed = content_of(lambda buffer: parquet.write_table(table, buffer, row_group_size=3))
    fuzz(file, seed, read, check, str(file))


def test_npy(tmp_path: Path) -> None:
    file = tmp_path / "rows.npy"

    def read() -> Any:
        rows = open_rows(file)
        return rows, rows.read(0, rows.shape[0])

    def check(opened: Any) -> None:
        assert opened[1].shape == opened[0].shape

    fuzz(file, content_of(np.save, NUMBERS), read, check, str(file))


def test_ledgers(tmp_path: Path) -> None:
    """Edits are detected, except whole lines that are missing at the end; ends of lines do not matter."""
    ledger = Ledger(tmp_path / "ledger.jsonl")
    for number in range(3):
        digest, date = f"{number:064x}", "2026-01-01"
        paid = {"account": "wards", "unit": "row", "rows": 1, "epsilon": 1.0, "delta": 1e-5, "budget": None}
        ledger.finish(ledger.begin({**paid, "id": digest, "date": date, "guarantee": proved()}), digest, date)
    original, entries = ledger.path.read_bytes(), ledger.entries()

    def check(intact: Any) -> None:
        # The line that names the model may be cut off; the one that pays for it may not have changed.
        content = ledger.path.read_bytes()
        assert [entry.id for entry in intact] == [entry.id for entry in entries[: len(intact)]]
        assert all(entry in entries for entry in intact[:-1])
        assert len(intact) == 3 or len(content) < len(original) or not content.endswith(b"\n")

    assert len(entries) == 3
    fuzz(ledger.path, original, ledger.entries, check, str(ledger.path))
