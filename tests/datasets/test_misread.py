"""Text files that were once read as something else: now they are read as they are meant (see bad_files.yaml, too)."""

import io
import warnings
import zipfile

import numpy as np
import pytest
import scipy.io
import scipy.sparse
from tests.datasets.refusal import npz, refused

from privsvm.errors import PrivSVMError
from privsvm_bench.datasets.catalogue import resolve
from privsvm_bench.datasets.readers import read_part

HEADER = {"format": "csv", "label": "kind", "header_rows": 1}


def test_blanks_may_end_every_line(make_entry, tmp_path):
    X, _ = read_part(make_entry(' 1 2 a \n"3"\t4 b\n', format="data", label=2), "all", tmp_path)
    assert X.tolist() == [[1, 2], [3, 4]]


NAMES = ["Müller", "Möller", "Maller"]


@pytest.mark.parametrize("encoding", ["latin-1", "utf-8", "utf-16", "cp1252", "utf-8-sig"])
def test_labels_of_other_encodings_stay_apart(make_entry, tmp_path, encoding):
    """Once all that was not UTF-8 became one and the same sign, so that two classes were one."""
    content = ("x,kind\n" + "".join(f"{row},{NAMES[row % 3]}\n" for row in range(6))).encode(encoding)
    _, labels = read_part(make_entry(content, **HEADER, encoding=encoding), "all", tmp_path)
    assert labels.tolist() == NAMES * 2
    if not encoding.startswith("utf-8"):
        refused(make_entry(content, **HEADER), tmp_path, "is not UTF-8 text", "`encoding`")


def test_a_byte_of_another_encoding_is_named_by_its_line(make_entry, tmp_path):
    refused(make_entry("x,kind\n1,a\n2,ä\n".encode("latin-1"), **HEADER), tmp_path, "line 3 is not UTF-8 text")
    entry = make_entry("x,kind\n1,a\n2,ä\n".encode("latin-1"), **HEADER, encoding="ascii")
    refused(entry, tmp_path, "line 3 is not ascii text", "correct `encoding`")


def test_two_arrays_of_one_name(make_entry, tmp_path):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for value in (1.0, 2.0):
            array = io.BytesIO()
            np.save(array, np.full((2, 1), value))
            archive.writestr("X.npy", array.getvalue())
        array = io.BytesIO()
        np.save(array, np.array(["a", "b"]))
        archive.writestr("y.npy", array.getvalue())
    entry = make_entry(buffer.getvalue(), format="npz", features="X", label="y")
    refused(entry, tmp_path, "same name")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"delimiter": "[,;]"}, ["delimiter", "one character"]),
        ({"encoding": "klingon"}, ["encoding", "'klingon'", "latin-1"]),
        ({"encoding": "hex"}, ["encoding", "'hex'", "latin-1"]),
        ({"encoding": "utf-8", "format": "npz"}, ["encoding", "no effect with format 'npz'"]),
        ({"delimiter": ",", "format": "libsvm"}, ["delimiter", "no effect with format 'libsvm'"]),
    ],
)
def test_settings_of_text(tmp_path, settings, words):
    (tmp_path / "own.csv").touch()
    with pytest.raises(PrivSVMError) as caught:
        resolve("own", {"path": str(tmp_path / "own.csv"), "label": "kind", **settings})
    assert str(caught.value).startswith("datasets.own.")
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize("delimiter", [";", "|", "tab", "whitespace", ":"])
def test_a_delimiter_is_taken_as_it_is(tmp_path, delimiter):
    sign = {"tab": "\t", "whitespace": "  "}.get(delimiter, delimiter)
    (tmp_path / "own.csv").write_text("x kind\n1.5 a\n2 b\n".replace(" ", sign))
    entry = resolve("own", {"path": str(tmp_path / "own.csv"), "label": "kind", "delimiter": delimiter})
    X, labels = read_part(entry, "all", tmp_path)
    assert X.tolist() == [[1.5], [2]]
    assert labels.tolist() == ["a", "b"]


LIBSVM = {"format": "libsvm"}
ARFF = {"format": "arff", "label": "kind"}
ARFF_HEAD = "@relation r\n@attribute x_1 numeric\n@attribute kind {a_b,c}\n@data\n"


def test_what_is_declared_or_a_comment_may_look_like_it(make_entry, tmp_path):
    text = ARFF_HEAD.replace("c}", "?}") + "1,a_b\n2,?\n"
    assert read_part(make_entry(text, **ARFF), "all", tmp_path)[1].tolist() == ["a_b", "?"]
    text = "+1 1:1 # x_y\n1.0 1:2\n-1 1:3\n"
    assert read_part(make_entry(text, **LIBSVM), "all", tmp_path)[1].tolist() == ["1", "1", "-1"]
    text = "x,kind\n1,01\n2,02\n"
    assert read_part(make_entry(text, **HEADER), "all", tmp_path)[1].tolist() == ["01", "02"]


@pytest.mark.parametrize(
    ("arrays", "recipe", "words"),
    [
        ({"t": np.arange(4.0)}, {"table": "t"}, ["'t' has 1 dimensions"]),
        ({"t": np.float64(3)}, {"table": "t"}, ["'t' has 0 dimensions"]),
        ({"t": np.array([["a", "b"]])}, {"table": "t"}, ["holds <U1"]),
        # Both became the same sign of what cannot be read.
        ({"X": np.eye(2), "y": np.array([b"\xfe", b"\xff"])}, {"features": "X", "label": "y"}, ["not UTF-8"]),
    ],
)
def test_arrays_that_are_no_table(make_entry, tmp_path, arrays, recipe, words):
    refused(make_entry(npz(**arrays), format="npz", **recipe), tmp_path, *words)


def test_a_sparse_matrix_of_complex_numbers_keeps_no_half(make_entry, tmp_path):
    buffer = io.BytesIO()
    scipy.io.savemat(buffer, {"X": scipy.sparse.csc_array(np.eye(4) * (1 + 2j)), "y": np.array([1, 2, 1, 2])})
    refused(make_entry(buffer.getvalue(), format="mat", features="X", label="y"), tmp_path, "'X' is not numeric")


def parquet(table, notes=None):
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.table(table)
    buffer = io.BytesIO()
    write = pytest.importorskip("pyarrow.parquet").write_table
    write(table.replace_schema_metadata({b"pandas": notes} if notes else None), buffer)
    return buffer.getvalue()


@pytest.mark.parametrize(
    "notes",
    [
        b"{not json",
        b"[1, 2]",
        b'{"index_columns": ["kind"], "columns": [], "column_indexes": []}',
        b'{"index_columns": [{"kind": "range"}], "columns": [], "column_indexes": []}',
        b'{"index_columns": [], "columns": [], "column_indexes": [{"name": null, "field_name": null, '
        b'"pandas_type": "bytes", "numpy_type": "os.system", "metadata": {}}]}',
    ],
)
def test_parquet_with_broken_notes_of_pandas(make_entry, tmp_path, notes):
    content = parquet({"x": [1.0, 2.0], "kind": [1, 2]}, notes)
    refused(make_entry(content, format="parquet", label="kind"), tmp_path, "not readable as Parquet")


def test_a_label_of_bytes_and_a_long_text_in_parquet(make_entry, tmp_path):
    content = parquet({"x": [1.0, 2.0], "kind": [b"\xff", b"a"]})
    refused(make_entry(content, format="parquet", label="kind"), tmp_path, "not UTF-8")
    content = parquet({"x": ["a" * 100_000, "b"], "kind": [1, 2]})
    with pytest.raises(PrivSVMError) as caught:
        read_part(make_entry(content, format="parquet", label="kind"), "all", tmp_path)
    assert len(str(caught.value)) < len(str(tmp_path)) + 300
