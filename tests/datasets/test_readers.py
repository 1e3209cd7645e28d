"""Every reader against small hand-made files, and every kind of bad file."""

import bz2
import dataclasses
import gzip
import lzma
import os
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.io
import scipy.sparse
import yaml
from scipy.sparse import csr_array
from tests.archives import content_of, zip_of
from tests.datasets.refusal import npz, refused

from privsvm.errors import PrivSVMError
from privsvm_bench.datasets import readers
from privsvm_bench.datasets.catalogue import DataFile, DataPart, DatasetEntry, resolve
from privsvm_bench.datasets.packing import read_member
from privsvm_bench.datasets.readers import read_part

X = np.array([[1.5, -2.0], [0.1, 3.0], [0.0, 4e-3]])
Y = ["a", "b", "a"]
CSV = "x,kind,z\n1.5,a,-2\n0.1,b,3\n0,a,4e-3\n"
HEADER = {"format": "csv", "label": "kind", "header_rows": 1}


def check(entry, folder, labels=Y):
    features, labels_read = read_part(entry, "all", folder)
    np.testing.assert_array_equal(features, X)
    assert features.dtype == np.float64
    assert labels_read.tolist() == labels


def mat(version="5", **variables):
    return content_of(scipy.io.savemat, variables, format=version)


@pytest.mark.parametrize("label", ["kind", 1, -2])
def test_csv_with_header(make_entry, tmp_path, label):
    check(make_entry(CSV, format="csv", label=label, header_rows=1), tmp_path)


def test_csv_numbers_are_read_to_the_last_digit(make_entry, tmp_path):
    values = np.random.default_rng(0).random(200) * 10.0 ** np.arange(-100, 100)
    text = "".join(f"{value!r},{index % 2}\n" for index, value in enumerate(values.tolist()))
    features, _ = read_part(make_entry(text, format="csv", label=1), "all", tmp_path)
    np.testing.assert_array_equal(features.ravel(), values)


@pytest.mark.parametrize(
    ("text", "recipe", "rows", "labels"),
    [
        # A class may be called NA, and blanks may end every line.
        ("1,NA\n2,b\n", {"format": "csv", "label": 1}, [[1], [2]], ["NA", "b"]),
        (' 1 2 a \n"3"\t4 b\n', {"format": "data", "label": 2}, [[1, 2], [3, 4]], ["a", "b"]),
        (
            "9,q\n1,0\n2,1\n3,0\n", {"format": "csv", "label": 1, "rows": (1, 4), "label_map": {"0": "-1"}},
            [[1], [2], [3]], ["-1", "1", "-1"],
        ),
        ("+1 1:1 # x_y\n1.0 1:2\n-1 1:3\n", {"format": "libsvm"}, [[1], [2], [3]], ["1", "1", "-1"]),
        ("x,kind\n1,01\n2,02\n", HEADER, [[1], [2]], ["01", "02"]),
    ],
)  # fmt: skip
def test_texts(make_entry, tmp_path, text, recipe, rows, labels):
    features, labels_read = read_part(make_entry(text, **recipe), "all", tmp_path)
    assert (features.tolist(), labels_read.tolist()) == (rows, labels)


def test_libsvm_dense_and_sparse(make_entry, tmp_path):
    text = "+1 1:1.5 2:-2\n-1 1:0.1 2:3 # comment\n1.0 2:4e-3\n"
    check(make_entry(text, format="libsvm", n_features=2), tmp_path, ["1", "-1", "1"])
    sparse, _ = read_part(make_entry("1 3:2 120:-1\n2 1:0.5\n", format="libsvm"), "all", tmp_path)
    assert isinstance(sparse, csr_array)
    assert sparse.shape == (2, 120)
    assert sparse[0, 2] == 2
    assert sparse[0, 119] == -1
    assert sparse[1, 0] == 0.5
    assert sparse.nnz == 3
    # How many numbers are zero is private, and does not decide.
    full = " ".join(f"{index}:1" for index in range(1, 121))
    sparse, _ = read_part(make_entry(f"1 {full}\n2 {full}\n", format="libsvm"), "all", tmp_path)
    assert isinstance(sparse, csr_array)


def test_parquet(make_entry, tmp_path):
    frame = pd.DataFrame({"x": X[:, 0], "kind": pd.Categorical(Y), "flag": [True, False, True], "n": [1, None, 3]})
    content = content_of(frame.to_parquet)
    entry = make_entry(content, format="parquet", label="kind", entry={"missing": "zero"})
    features, labels = read_part(entry, "all", tmp_path)
    np.testing.assert_array_equal(features, [[1.5, 1, 1], [0.1, 0, np.nan], [0, 1, 3]])
    assert labels.tolist() == Y
    refused(make_entry(content[:100], format="parquet", label="kind"), tmp_path, "Parquet")


def test_npz(make_entry, tmp_path):
    recipe = {"format": "npz", "features": "X", "label": "y"}
    check(make_entry(npz(X=X, y=np.array(Y)), **recipe), tmp_path)
    check(make_entry(npz(X=X.T, y=np.array(Y)), **recipe, transpose=True), tmp_path)
    refused(make_entry(npz(X=X, z=np.array(Y)), **recipe), tmp_path, "'y'", "missing")
    refused(make_entry(npz(X=X, y=np.array(Y)[:2]), **recipe), tmp_path, "3 rows", "2 labels")
    refused(make_entry(npz(X=X, y=np.array(Y, dtype=object)), **recipe), tmp_path, "Python objects")
    refused(make_entry(npz(X=np.array([Y, Y]).T, y=np.array(Y)), **recipe), tmp_path, "not numeric")
    refused(make_entry(npz(X=X, y=np.array(Y))[:-30], **recipe), tmp_path, "npz")


@pytest.mark.parametrize("version", ["4", "5"])
def test_mat(make_entry, tmp_path, version):
    recipe = {"format": "mat", "features": "fea", "label": "gnd"}
    content = mat(version, fea=X, gnd=np.array([[1.0], [2.0], [1.0]]))
    check(make_entry(content, **recipe), tmp_path, ["1", "2", "1"])
    table = mat(version, all=np.column_stack([[1, 2, 1], X]))
    check(make_entry(table, format="mat", table="all", label=0), tmp_path, ["1", "2", "1"])
    refused(make_entry(content, format="mat", features="fae", label="gnd"), tmp_path, "did you mean 'fea'?")
    refused(make_entry(content[: len(content) // 2], **recipe), tmp_path, "file")


def test_mat_that_crashes_its_reader(make_entry, tmp_path, capfd, monkeypatch):
    """One line, whatever ends the process: SciPy's own fault (docs/upstream.md), or a signal."""
    content = bytearray(mat(X=np.eye(3), y=np.array([1, 2, 1])))
    content[177] = 255
    recipe = {"format": "mat", "features": "X", "label": "y"}
    refused(make_entry(bytes(content), **recipe), tmp_path, "not readable as a MATLAB file")
    content[177] = 0
    monkeypatch.setattr(readers, "_from_variables", lambda *_: os.abort())
    refused(make_entry(bytes(content), **recipe), tmp_path, "its reader crashed")
    assert capfd.readouterr().err == ""


def test_mat_cells_sparse_and_hdf5(make_entry, tmp_path):
    recipe = {"format": "mat", "features": "X", "label": "y"}
    cells = np.array([["a"], ["b"], ["a"]], dtype=object)
    check(make_entry(mat(X=X, y=cells), **recipe), tmp_path)
    wide = csr_array(([1.0, 2.0], ([0, 1], [3, 100])), shape=(2, 150))
    features, _ = read_part(make_entry(mat(X=wide.tocsc(), y=np.array([1, 2])), **recipe), "all", tmp_path)
    assert isinstance(features, csr_array)
    assert features[1, 100] == 2.0
    hdf5 = b"MATLAB 7.3 MAT-file".ljust(512) + b"\x89HDF\r\n\x1a\n" + b"0" * 64
    refused(make_entry(hdf5, **recipe), tmp_path, "7.3", "-v7")


def test_several_files_make_one_part(tmp_path):
    (tmp_path / "one").write_text("1,a\n2,b\n")
    (tmp_path / "two").write_text("3,a\n")
    recipe = DataPart("all", ("one", "two"), "csv", label=1)
    entry = DatasetEntry("toy", {name: DataFile(name) for name in ("one", "two")}, {"all": recipe})
    features, labels = read_part(entry, "all", tmp_path)
    assert features.ravel().tolist() == [1, 2, 3]
    assert labels.tolist() == Y
    (tmp_path / "two").write_text("3,a,4\n")
    refused(entry, tmp_path, "features")


@pytest.mark.parametrize("pack", [lzma.compress, bz2.compress, gzip.compress])
def test_packed_files(make_entry, tmp_path, pack):
    check(make_entry(pack(CSV.encode()), **HEADER), tmp_path)
    truncated = pack(CSV.encode() * 50)[:-20]
    refused(make_entry(truncated, **HEADER), tmp_path, "truncated", "download it again")


def test_zip_members(make_entry, tmp_path):
    recipe = HEADER
    check(make_entry(zip_of(("only", CSV)), **recipe), tmp_path)
    two = zip_of(("folder/first", CSV), ("second", "x"))
    check(make_entry(two, **recipe, member="folder/first"), tmp_path)
    refused(make_entry(two, **recipe), tmp_path, "2 files", "member")
    refused(make_entry(two, **recipe, member="folder/frist"), tmp_path, "did you mean 'folder/first'?")
    refused(make_entry(two[:60], **recipe), tmp_path, "truncated")
    refused(make_entry(CSV, **recipe, member="first"), tmp_path, "not a zip")
    nested = zip_of(("inner", zip_of(("deep/X", "1 2\n3 4\n"), ("deep/y", "5\n6\n"))))
    assert read_member(nested, "x", "inner/deep/y") == b"5\n6\n"
    entry = make_entry(nested, format="data", member="inner/deep/X", label_member="inner/deep/y")
    features, labels = read_part(entry, "all", tmp_path)
    assert features.tolist() == [[1, 2], [3, 4]]
    assert labels.tolist() == ["5", "6"]


def test_nested_zip_of_the_catalogue(tmp_path):
    """The zip of har_smartphone as the archive lays it out: a zip in a zip, features and labels apart."""
    entry = resolve("har_smartphone")
    small = {key: dataclasses.replace(part, n_rows=None, n_features=2) for key, part in entry.parts.items()}
    inner = {}
    for shift, name in enumerate(("train", "test")):
        inner[f"UCI HAR Dataset/{name}/X_{name}.txt"] = f"  1.5e-001 -{shift}\n  2.0e+000  {shift}\n"
        inner[f"UCI HAR Dataset/{name}/y_{name}.txt"] = "5\n1\n"
    content = zip_of(("UCI HAR Dataset.names", "x"), ("UCI HAR Dataset.zip", zip_of(*inner.items())))
    (tmp_path / "har_smartphone.zip").write_bytes(content)
    for shift, role in enumerate(("train", "test")):
        features, labels = read_part(dataclasses.replace(entry, parts=small), role, tmp_path)
        assert features.tolist() == [[0.15, -shift], [2.0, shift]]
        assert labels.tolist() == ["5", "1"]


BAD_FILES = [
    *yaml.safe_load(Path(__file__).with_name("bad_files.yaml").read_text()),
    # An array of texts is as wide as its longest one: here 4 GB.
    ("x,kind\n" + "1,a\n" * 1000 + f"2,{'b' * 1_000_000}\n", {"format": "csv", "label": 1, "header_rows": 1},
     ["1000000 characters"]),
]  # fmt: skip


@pytest.mark.parametrize(("content", "recipe", "words"), BAD_FILES)
def test_bad_files(make_entry, tmp_path, content, recipe, words):
    refused(make_entry(content, **recipe), tmp_path, str(tmp_path / "file"), *words)


def test_missing_file_and_part(make_entry, tmp_path):
    entry = make_entry("1,a\n2,b\n", format="csv", label=1)
    refused(entry, tmp_path / "elsewhere", "file not found")
    with pytest.raises(PrivSVMError, match="no part 'al'; did you mean 'all'"):
        read_part(entry, "al", tmp_path)


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
    arrays = [("X.npy", np.full((2, 1), value)) for value in (1.0, 2.0)] + [("y.npy", np.array(["a", "b"]))]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        content = zip_of(*((name, content_of(np.save, array)) for name, array in arrays))
    refused(make_entry(content, format="npz", features="X", label="y"), tmp_path, "same name")


@pytest.mark.parametrize("delimiter", [";", "|", "tab", "whitespace", ":"])
def test_a_delimiter_is_taken_as_it_is(tmp_path, delimiter):
    sign = {"tab": "\t", "whitespace": "  "}.get(delimiter, delimiter)
    (tmp_path / "own.csv").write_text("x kind\n1.5 a\n2 b\n".replace(" ", sign))
    entry = resolve("own", {"path": str(tmp_path / "own.csv"), "label": "kind", "delimiter": delimiter})
    X, labels = read_part(entry, "all", tmp_path)
    assert X.tolist() == [[1.5], [2]]
    assert labels.tolist() == ["a", "b"]


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
    content = mat(X=scipy.sparse.csc_array(np.eye(4) * (1 + 2j)), y=np.array([1, 2, 1, 2]))
    refused(make_entry(content, format="mat", features="X", label="y"), tmp_path, "'X' is not numeric")


def parquet(table, notes=None):
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.table(table)
    table = table.replace_schema_metadata({b"pandas": notes} if notes else None)
    return content_of(lambda buffer: pytest.importorskip("pyarrow.parquet").write_table(table, buffer))


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
