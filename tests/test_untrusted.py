"""Readers of untrusted files check bounds before they allocate memory."""

import hashlib

import numpy as np
import pytest

from privsvm.errors import PrivSVMError
from privsvm.untrusted import LARGEST_JSON, parse_json, parse_npz, read_regular_file
from tests.archives import content_of, zip_of
from tests.steps import memory_below


def pack(compress=True, **arrays):
    return content_of(np.savez_compressed if compress else np.savez, **arrays)


@pytest.mark.parametrize(
    "array",
    [
        np.zeros((0,)), np.ones(()), np.arange(6.0).reshape(1, 2, 3), np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.zeros((2, 0, 3)), np.arange(3), np.arange(32, dtype=np.uint8),
    ],
)  # fmt: skip
@pytest.mark.parametrize("compress", [True, False])
def test_arrays_come_back(array, compress):
    read = parse_npz(pack(compress, x=array), ["x"])["x"]
    assert (read.dtype, read.shape) == (array.dtype, array.shape)
    np.testing.assert_array_equal(read, array)


def test_large_arrays_of_small_files_take_no_memory():
    data = pack(x=np.zeros(40_000_000))
    assert len(data) < 1 << 20
    with memory_below(4 << 20), pytest.raises(ValueError, match="too large for the file"):
        parse_npz(data, ["x"])


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.array([0.0, np.nan]), "not finite"),
        (np.array([-np.inf]), "not finite"),
        (np.ones(3, dtype=np.float32), "unknown type"),
        (np.ones(3, dtype=">f8"), "unknown type"),
        (np.array(["a"]), "unknown type"),
        (np.ones((1,) * 9), "another size"),
    ],
)
def test_arrays_of_other_kinds_are_refused(array, message):
    with pytest.raises(ValueError, match=message):
        parse_npz(pack(x=array), ["x"])


@pytest.mark.parametrize("names", [["x"], ["x", "y", "z"], ["x", "x"]])
def test_archives_hold_the_arrays_that_are_named(names):
    with pytest.raises(ValueError, match="and no others"):
        parse_npz(pack(x=np.ones(1), y=np.ones(2)), names)


def test_archives_of_many_entries_are_not_opened():
    with pytest.raises(ValueError, match="too many entries"):
        parse_npz(zip_of(*((str(number), b"") for number in range(200))), ["x"])


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"[" * 900 + b"]" * 900, "nested too deeply"),
        (b'{"a":"' + b'[\\"' * 50 + b'","b":' + b"[" * 41, "nested too deeply"),
        (b"[" + b"0," * 150_000 + b"0]", "too many values"),
        (b" " * LARGEST_JSON + b"1", "too many values"),
        (b'["\\ud800"]', "surrogates not allowed"),
        (b"[NaN]", "Out of range float"),
        (b"[1e999]", "Out of range float"),
    ],
)
def test_json_of_others_is_bounded(data, message):
    with pytest.raises(ValueError, match=message):
        parse_json(data)


def test_files_are_as_large_as_they_may_be(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"12345")
    assert read_regular_file(path, 5, "get it again") == b"12345"
    with pytest.raises(PrivSVMError, match="has more than the 4 bytes that such a file may have; get it again"):
        read_regular_file(path, 4, "get it again")


def test_another_file_is_not_read_into_memory(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"12345")
    assert read_regular_file(path, 5, "get it again", hashlib.sha256(b"12345").hexdigest()) == b"12345"
    with open(path, "wb") as handle:
        handle.truncate(1 << 26)
    refused = pytest.raises(PrivSVMError, match="damaged, it is not the file of its record; get it again")
    with memory_below(1 << 22), refused:
        read_regular_file(path, 1 << 30, "get it again", hashlib.sha256(b"12345").hexdigest())
