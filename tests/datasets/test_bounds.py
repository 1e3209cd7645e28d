"""A small file cannot take all memory or time: its unpacked size is bounded, whatever its header says."""

import bz2
import contextlib
import gzip
import lzma
import multiprocessing
import struct
import sys
import zipfile
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pytest
import scipy.io
import scipy.sparse
from tests.archives import content_of, zip_of
from tests.datasets.refusal import refused
from tests.processes import run_python
from tests.steps import memory_below

from privsvm.errors import PrivSVMError
from privsvm.files import read_npz
from privsvm_bench.datasets import readers
from privsvm_bench.datasets.catalogue import resolve
from privsvm_bench.datasets.packing import read_member, unpack
from privsvm_bench.datasets.readers import read_part
from privsvm_bench.workflow.stage import run

LARGE = b"1,a\n" * (1 << 20)
CSV = {"format": "csv", "label": 1}
NPZ = {"format": "npz", "features": "X", "label": "y"}


def zip_content(content):
    return zip_of(("only.csv", content), method=zipfile.ZIP_DEFLATED)


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
    with memory_below(20 << 20):
        refused(entry, tmp_path, "more than 100000 bytes when unpacked", "`max_bytes`")
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


def claims_to_be_large():
    """Return a MATLAB file whose header states an array of 2 to the power of 62 numbers."""
    original, three = content_of(scipy.io.savemat, {"X": np.eye(3), "y": np.array([1, 2, 1])}), struct.pack("<ii", 3, 3)
    assert three in original
    return original.replace(three, struct.pack("<ii", 2**31 - 1, 2**31 - 1))


NO_TEXT = content_of(np.savez_compressed, X=np.eye(2), y=np.array(["a", "\ud800"]))


@pytest.mark.parametrize(
    ("content", "recipe", "words"),
    [
        (LARGE, {**CSV, "max_bytes": 100_000}, ["more than 100000", "`max_bytes`"]),
        ("1 1:1\n2 2000000000:1\n", {"format": "libsvm"}, ["2000000000", "`n_features`"]),
        (claims_to_be_large(), {"format": "mat", "features": "X", "label": "y"}, ["more than", "`max_bytes`"]),
        (NO_TEXT, NPZ, ["a label is not UTF-8 text"]),
    ],
    ids=["large itself", "an index far away", "claims to be large", "labels that are no text"],
)
def test_single_files_are_refused(make_entry, tmp_path, content, recipe, words):
    refused(make_entry(content, **recipe), tmp_path, *words)


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


def array_header(shape, kind="<f8"):
    described = {"descr": kind, "fortran_order": False, "shape": shape}
    return content_of(np.lib.format.write_array_header_1_0, described)


def npz_that_claims(shape):
    return zip_of(("X.npy", array_header(shape) + b"\0" * 80), ("y.npy", content_of(np.save, np.array(["a", "b"]))))


def npz_with_header(header):
    text = header.encode("latin-1", "replace")
    array = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text
    return zip_of(("X.npy", array), ("y.npy", array))


SHAPES = [(10**15, 2), (2**62, 8), (10**30,), (-1, 2), (2, 10**12)]
HEADERS = ["(1,1,(", "'''", "(" * 3000, "{}", "{1: 2}", "\0", "[]", "{'descr': 'O'}", "1 +", "\udcff"]


@pytest.mark.parametrize("content", [*map(npz_that_claims, SHAPES), *map(npz_with_header, HEADERS)])
def test_arrays_that_claim_to_be_large_or_have_no_header(make_entry, tmp_path, content):
    refused(make_entry(content, **NPZ), tmp_path, "not readable as .npz")
    (tmp_path / "m.npz").write_bytes(content)
    with pytest.raises(PrivSVMError, match=r"not a readable \.npz file"):
        read_npz(tmp_path / "m.npz")


def test_rows_without_features_take_no_memory(make_entry, tmp_path):
    """Such arrays take no bytes of a file, whatever number of rows they claim."""
    content = zip_of(("X.npy", array_header((10**9, 0))), ("y.npy", array_header((10**9,), "|S0")))
    with memory_below(50 << 20):
        refused(make_entry(content, **NPZ), tmp_path, "no features beside the label")


def test_damaged_streams(make_entry, tmp_path):
    original = content_of(np.savez_compressed, X=np.arange(2000.0).reshape(-1, 2), y=np.arange(1000) % 2)
    for offset in range(60, len(original), 97):
        content = original[:offset] + bytes([original[offset] ^ 0x55]) + original[offset + 1 :]
        (tmp_path / "file").write_bytes(content)
        entry = make_entry(content, **NPZ)
        # Either a file as it was, or the one kind of error.
        with contextlib.suppress(PrivSVMError):
            assert set(read_npz(tmp_path / "file")) == {"X", "y"}
        with contextlib.suppress(PrivSVMError):
            read_part(entry, "all", tmp_path)


def test_arrays_that_unpack_to_more_than_declared(make_entry, tmp_path):
    content = content_of(np.savez_compressed, X=np.zeros((1 << 20, 8)), y=np.arange(1 << 20) % 2)
    with memory_below(32 << 20):
        refused(make_entry(content, **NPZ, max_bytes=8 << 20), tmp_path, "more than 8388608 bytes in memory")


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


def compressed_mat(arrays):
    return content_of(scipy.io.savemat, arrays, do_compression=True)


@pytest.mark.skipif(sys.platform != "linux", reason="sizes of processes are kilobytes on Linux")
@pytest.mark.parametrize(("kind", "shape", "most"), [("mat", (2, 50_000_000), 400), ("npz", (2, 1_000_000), 20)])
def test_short_numbers_count_as_long_ones(tmp_path, kind, shape, most):
    """Zeros of one byte each take the reader's memory, not that many float64 numbers."""
    arrays = {"X": np.zeros(shape, dtype=np.uint8), "y": np.array([1, 2])}
    content = compressed_mat(arrays) if kind == "mat" else content_of(np.savez_compressed, **arrays)
    (tmp_path / "file").write_bytes(content)
    message, grown = run_python("-c", BOMB, kind, cwd=tmp_path).splitlines()
    assert message.startswith("file: ")
    assert "more than 2097152 bytes in memory; declare `max_bytes`" in message
    assert int(grown) < most << 10


def test_a_sparse_matrix_is_counted_as_it_is_read(make_entry, tmp_path):
    """A wide one stays sparse, a narrow one becomes dense."""
    for shape, fits in (((2, 10**6), True), ((10**6, 3), False)):
        X = scipy.sparse.csc_array((np.ones(2), ([0, 1], [0, 1])), shape=shape)
        content = compressed_mat({"X": X, "y": np.arange(shape[0]) % 2})
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
    table = pyarrow.table({"x": values, "kind": np.arange(n_rows) % 2})
    content = content_of(lambda buffer: parquet.write_table(table, buffer, compression="zstd"))
    assert len(content) < 50_000
    entry = make_entry(content, format="parquet", label="kind", max_bytes=2 << 20)
    before = pyarrow.total_allocated_bytes()
    with memory_below(50 << 20):
        refused(entry, tmp_path, "more than 2097152 bytes" if kind == "numbers" else "'x' is not numeric ('aaa")
    assert pyarrow.total_allocated_bytes() - before < 50 << 20
