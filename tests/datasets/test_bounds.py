"""A small file cannot take all memory or time: its unpacked size is bounded, whatever its header says."""

import bz2
import contextlib
import gzip
import io
import lzma
import multiprocessing
import struct
import sys
import tracemalloc
import zipfile
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pytest
import scipy.io
import scipy.sparse
from tests.datasets.refusal import refused
from tests.processes import run_python

from privsvm.errors import PrivSVMError
from privsvm.files import read_npz
from privsvm_bench.datasets import readers
from privsvm_bench.datasets.catalogue import DataFile, resolve
from privsvm_bench.datasets.download import fetch_file
from privsvm_bench.datasets.packing import read_member, unpack
from privsvm_bench.datasets.readers import read_part
from privsvm_bench.workflow.stage import run

LARGE = b"1,a\n" * (1 << 20)
CSV = {"format": "csv", "label": 1}


def zip_content(content, method=zipfile.ZIP_DEFLATED):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        archive.writestr("only.csv", content)
    return buffer.getvalue()


def lzw(content):
    """Codes of nine bits, one for each byte, with the table cleared before they would widen."""
    bits, count, group = 0, 0, 0
    for value in content:
        for code in ([256] if group == 250 else []) + [value]:
            bits |= code << count
            count += 9
            group += 1
            if code == 256:
                count += -count % 72
                group = 0
    return b"\x1f\x9d\x8c" + bits.to_bytes(-(-count // 8), "little")


@pytest.mark.parametrize(
    "pack", [gzip.compress, lzma.compress, bz2.compress, zip_content], ids=lambda pack: pack.__module__
)
def test_bombs(make_entry, tmp_path, pack):
    packed = pack(bytes(40 << 20))
    assert len(packed) < 100_000
    entry = make_entry(packed, **CSV, max_bytes=100_000)
    tracemalloc.start()
    refused(entry, tmp_path, "more than 100000 bytes when unpacked", "`max_bytes`")
    assert tracemalloc.get_traced_memory()[1] < 20 << 20
    tracemalloc.stop()
    if pack is not zip_content:
        assert unpack(pack(LARGE), "x", len(LARGE)) == LARGE


def test_the_old_format_of_unix():
    packed = lzw(LARGE[:1000])
    assert unpack(packed, "x", 1000) == LARGE[:1000]
    with pytest.raises(PrivSVMError, match="more than 999 bytes"):
        unpack(packed, "x", 999)
    for damaged in (packed[:2], packed[:4], packed[:40] + b"\xff" * 9):
        with pytest.raises(PrivSVMError, match=r"^x: compressed file is truncated or corrupt \(Invalid .*; delete it"):
            unpack(damaged, "x", 1000)


def test_a_zip_in_a_zip():
    with pytest.raises(PrivSVMError, match="more than 100000 bytes"):
        read_member(zip_content(zip_content(LARGE)), "x", "only.csv/only.csv", 100_000)


def test_files_that_are_large_themselves(make_entry, tmp_path):
    refused(make_entry(LARGE, **CSV, max_bytes=100_000), tmp_path, "more than 100000", "`max_bytes`")


def patch(content, old, new):
    assert old in content
    return content.replace(old, new)


@pytest.mark.parametrize(
    ("offset", "value"),
    # In the central directory: the method of packing, and the flag of encryption.
    [(10, 99), (10, 12345), (8, 1)],
)
def test_zips_of_an_unusual_kind(make_entry, tmp_path, offset, value):
    content = zip_content(LARGE[:400])
    start = content.index(b"PK\x01\x02")
    content = content[: start + offset] + struct.pack("<H", value) + content[start + offset + 2 :]
    local = {10: 8, 8: 6}[offset]
    content = content[:local] + struct.pack("<H", value) + content[local + 2 :]
    refused(make_entry(content, **CSV), tmp_path, "packed in an unusual way")


def npz_that_claims(shape):
    array = io.BytesIO()
    np.lib.format.write_array_header_1_0(array, {"descr": "<f8", "fortran_order": False, "shape": shape})
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("X.npy", array.getvalue() + b"\0" * 80)
        labels = io.BytesIO()
        np.save(labels, np.array(["a", "b"]))
        archive.writestr("y.npy", labels.getvalue())
    return buffer.getvalue()


@pytest.mark.parametrize("shape", [(10**15, 2), (2**62, 8), (10**30,), (-1, 2), (2, 10**12)])
def test_arrays_that_claim_to_be_large(make_entry, tmp_path, shape):
    content = npz_that_claims(shape)
    refused(make_entry(content, format="npz", features="X", label="y"), tmp_path, "not readable as .npz")
    (tmp_path / "m.npz").write_bytes(content)
    with pytest.raises(PrivSVMError, match=r"not a readable \.npz file"):
        read_npz(tmp_path / "m.npz")


def test_rows_without_features_take_no_memory(make_entry, tmp_path):
    """Such arrays take no bytes of a file, whatever number of rows they claim."""
    rows = 10**9

    def array(kind, shape):
        header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}".ljust(117).encode() + b"\n"
        return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header

    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("X.npy", array("<f8", (rows, 0)))
        archive.writestr("y.npy", array("|S0", (rows,)))
    entry = make_entry(buffer.getvalue(), format="npz", features="X", label="y")
    tracemalloc.start()
    try:
        refused(entry, tmp_path, "no features beside the label")
        assert tracemalloc.get_traced_memory()[1] < 50 << 20
    finally:
        tracemalloc.stop()


def test_damaged_streams(make_entry, tmp_path):
    buffer = io.BytesIO()
    np.savez_compressed(buffer, X=np.arange(2000.0).reshape(-1, 2), y=np.arange(1000) % 2)
    original = buffer.getvalue()
    for offset in range(60, len(original), 97):
        content = original[:offset] + bytes([original[offset] ^ 0x55]) + original[offset + 1 :]
        (tmp_path / "file").write_bytes(content)
        entry = make_entry(content, format="npz", features="X", label="y")
        # Either a file as it was, or the one kind of error.
        with contextlib.suppress(PrivSVMError):
            assert set(read_npz(tmp_path / "file")) == {"X", "y"}
        with contextlib.suppress(PrivSVMError):
            read_part(entry, "all", tmp_path)


def test_arrays_that_unpack_to_more_than_declared(make_entry, tmp_path):
    buffer = io.BytesIO()
    np.savez_compressed(buffer, X=np.zeros((1 << 20, 8)), y=np.arange(1 << 20) % 2)
    entry = make_entry(buffer.getvalue(), format="npz", features="X", label="y", max_bytes=8 << 20)
    tracemalloc.start()
    refused(entry, tmp_path, "more than 8388608 bytes in memory")
    assert tracemalloc.get_traced_memory()[1] < 32 << 20
    tracemalloc.stop()


def test_an_index_far_away(make_entry, tmp_path):
    refused(make_entry("1 1:1\n2 2000000000:1\n", format="libsvm"), tmp_path, "2000000000", "`n_features`")


def test_a_matlab_file_that_claims_to_be_large(make_entry, tmp_path):
    buffer = io.BytesIO()
    scipy.io.savemat(buffer, {"X": np.eye(3), "y": np.array([1, 2, 1])})
    content = patch(buffer.getvalue(), struct.pack("<ii", 3, 3), struct.pack("<ii", 2**31 - 1, 2**31 - 1))
    refused(make_entry(content, format="mat", features="X", label="y"), tmp_path, "more than", "`max_bytes`")


BOMB = """
import resource, sys
from privsvm.errors import PrivSVMError
from privsvm_bench.datasets.catalogue import DataFile, DataPart, DatasetEntry
from privsvm_bench.datasets.readers import read_part
part = DataPart(role="all", files=("file",), max_bytes=2 << 20, format=sys.argv[1], features="X", label="y")
entry = DatasetEntry("toy", {"file": DataFile("file")}, {"all": part}, pool=("all",))
import scipy.io
before = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
try:
    read_part(entry, "all", ".")
except PrivSVMError as error:
    print(error)
print(max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)) - before)
"""


def keep(write, **arrays):
    buffer = io.BytesIO()
    write(buffer, arrays)
    return buffer.getvalue()


def save_mat(buffer, arrays):
    scipy.io.savemat(buffer, arrays, do_compression=True)


def save_npz(buffer, arrays):
    np.savez_compressed(buffer, **arrays)


@pytest.mark.skipif(sys.platform != "linux", reason="sizes of processes are kilobytes on Linux")
@pytest.mark.parametrize(
    ("kind", "save", "shape", "most"), [("mat", save_mat, (2, 50_000_000), 400), ("npz", save_npz, (2, 1_000_000), 20)]
)
def test_short_numbers_count_as_long_ones(tmp_path, kind, save, shape, most):
    """Zeros of one byte each take the reader's memory, not that many float64 numbers."""
    (tmp_path / "file").write_bytes(keep(save, X=np.zeros(shape, dtype=np.uint8), y=np.array([1, 2])))
    message, grown = run_python("-c", BOMB, kind, cwd=tmp_path).splitlines()
    assert message.startswith("file: ")
    assert "more than 2097152 bytes in memory; declare `max_bytes`" in message
    assert int(grown) < most << 10


def test_a_sparse_matrix_is_counted_as_it_is_read(make_entry, tmp_path):
    """A wide one stays sparse, a narrow one becomes dense."""
    for shape, fits in (((2, 10**6), True), ((10**6, 3), False)):
        X = scipy.sparse.csc_array((np.ones(2), ([0, 1], [0, 1])), shape=shape)
        content = keep(save_mat, X=X, y=np.arange(shape[0]) % 2)
        entry = make_entry(content, format="mat", features="X", label="y", max_bytes=20 << 20)
        if fits:
            assert read_part(entry, "all", tmp_path)[0].shape == shape
        else:
            refused(entry, tmp_path, "more than 20971520 bytes in memory")


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such limit")
def test_the_reader_of_matlab_files_has_an_end_to_its_memory():
    context = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(1, context, initializer=readers._confine, initargs=(1 << 20,)) as pool:
        assert len(pool.submit(bytearray, 1 << 20).result()) == 1 << 20
        with pytest.raises(MemoryError):
            pool.submit(bytearray, 1 << 30).result()


HEADERS = ["(1,1,(", "'''", "(" * 3000, "{}", "{1: 2}", "\0", "[]", "{'descr': 'O'}", "1 +", "\udcff"]


@pytest.mark.parametrize("header", HEADERS)
def test_headers_of_arrays_that_are_no_expressions(make_entry, tmp_path, header):
    text = header.encode("latin-1", "replace")
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name in ("X", "y"):
            archive.writestr(f"{name}.npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text)
    refused(make_entry(buffer.getvalue(), format="npz", features="X", label="y"), tmp_path, "not readable as .npz")
    (tmp_path / "m.npz").write_bytes(buffer.getvalue())
    with pytest.raises(PrivSVMError, match=r"not a readable \.npz file"):
        read_npz(tmp_path / "m.npz")


def test_labels_that_are_no_text(make_entry, tmp_path):
    content = keep(save_npz, X=np.eye(2), y=np.array(["a", "\ud800"]))
    refused(make_entry(content, format="npz", features="X", label="y"), tmp_path, "a label is not UTF-8 text")


def test_downloads_that_do_not_end(server, tmp_path, monkeypatch):
    monkeypatch.setenv("PRIVSVM_CACHE", str(tmp_path / "cache"))
    server.files["a"] = LARGE
    file = DataFile("a.csv", urls=(server.url("a"),), max_bytes=100_000)
    with pytest.raises(PrivSVMError, match="more than 100000 bytes"):
        fetch_file(file, tmp_path / "raw" / "a.csv", dataset="toy")
    assert not list((tmp_path / "raw").iterdir())
    assert not list((tmp_path / "cache/downloads").glob("*/*"))


def test_the_limit_is_declared_for_a_dataset(tmp_path):
    (tmp_path / "own.csv").touch()
    settings = {"path": str(tmp_path / "own.csv"), "label": "kind"}
    assert resolve("own", {**settings, "max_bytes": 10}).parts["all"].max_bytes == 10
    usual = resolve("own", settings)
    assert usual.parts["all"].max_bytes == usual.files["own.csv"].max_bytes == 2 << 30


def test_a_lack_of_memory_is_one_line(capsys):
    def main(arguments):
        raise MemoryError("Unable to allocate 5 TiB")

    with pytest.raises(SystemExit) as ended:
        run(main)
    assert ended.value.code == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert error.startswith("error: out of memory (Unable to allocate 5 TiB)")


@pytest.mark.parametrize("kind", ["numbers", "texts"])
def test_parquet_rows_that_are_stored_once(make_entry, tmp_path, kind):
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    if kind == "numbers":
        values, n_rows = pyarrow.array(np.zeros(1_000_000)), 1_000_000
    else:
        n_rows = 3000
        indices = pyarrow.array(np.zeros(n_rows, dtype=np.int32))
        values = pyarrow.DictionaryArray.from_arrays(indices, ["a" * 1_000_000])
    buffer = io.BytesIO()
    parquet.write_table(pyarrow.table({"x": values, "kind": np.arange(n_rows) % 2}), buffer, compression="zstd")
    content = buffer.getvalue()
    assert len(content) < 50_000
    entry = make_entry(content, format="parquet", label="kind", max_bytes=2 << 20)
    tracemalloc.start()
    before = pyarrow.total_allocated_bytes()
    refused(entry, tmp_path, "more than 2097152 bytes" if kind == "numbers" else "'x' is not numeric ('aaa")
    assert tracemalloc.get_traced_memory()[1] < 50 << 20
    tracemalloc.stop()
    assert pyarrow.total_allocated_bytes() - before < 50 << 20
