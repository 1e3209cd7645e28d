import json
import math
import os
import signal
import subprocess
import sys
import time
import zipfile

import numpy as np
import pytest

from privsvm.digests import canonical_json
from privsvm.errors import PrivSVMError
from privsvm.files import read_json, read_npz, write_json, write_npz, write_text
from privsvm_bench.workflow.session import lock_folder
from privsvm_bench.workflow.stage import json_argument


def test_a_pipe_is_not_replaced(tmp_path):
    """Nor is a device: root would replace /dev/null for all programs."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    (tmp_path / "link").symlink_to(pipe)
    for path in (pipe, tmp_path / "link"):
        with pytest.raises(PrivSVMError, match="is a device or a pipe"):
            write_text(path, "new")
    assert pipe.is_fifo()
    assert (tmp_path / "link").is_symlink()


def test_canonical_json_depends_on_content_alone():
    value = {"b": np.float64(0.1), "a": (1, np.int64(2)), "c": np.array([1.5, math.inf])}
    text = canonical_json(value)
    assert text == canonical_json(dict(reversed(value.items())))
    assert json.loads(text) == {"a": [1, 2], "b": 0.1, "c": [1.5, "inf"]}
    assert canonical_json(math.nan) == "null"
    assert canonical_json(-math.inf) == '"-inf"'


def test_npz_bytes_are_reproducible_and_hold_no_objects(tmp_path, monkeypatch):
    arrays = {"x": np.arange(5.0), "name": np.array("none")}
    write_npz(tmp_path / "a.npz", arrays)
    monkeypatch.setattr(time, "time", lambda: 2e9)
    write_npz(tmp_path / "b.npz", dict(reversed(arrays.items())))
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
    assert np.array_equal(read_npz(tmp_path / "a.npz")["x"], arrays["x"])
    with pytest.raises(PrivSVMError, match="Python objects"):
        write_npz(tmp_path / "c.npz", {"x": np.array([{}], dtype=object)})
    with open(tmp_path / "d.npz", "wb") as handle:
        np.savez(handle, x=np.array([{}], dtype=object))
    with pytest.raises(PrivSVMError, match=r"d\.npz"):
        read_npz(tmp_path / "d.npz")


def test_npz_bytes_do_not_depend_on_the_python(tmp_path, monkeypatch):
    """Python versions differ in the format of large files only."""
    arrays = {
        "x": np.arange(500.0),
        "Y": np.asfortranarray(np.eye(3)[:, :2]),
        "none": np.empty((0, 2)),
        "a": np.array("é"),
    }

    def versions(name):
        write_npz(tmp_path / name, arrays)
        stored = read_npz(tmp_path / name)
        assert list(stored) == sorted(arrays)
        assert all(np.array_equal(stored[key], array) for key, array in arrays.items())
        assert np.isfortran(stored["Y"])
        with zipfile.ZipFile(tmp_path / name) as archive:
            return [entry.extract_version for entry in archive.infolist()]

    assert versions("small.npz") == [20] * 4
    monkeypatch.setattr(zipfile, "ZIP64_LIMIT", 1000)
    assert versions("large.npz") == [20, 20, 20, 45]


@pytest.mark.parametrize(("reader", "name"), [(read_json, "a.json"), (read_npz, "a.npz")])
def test_unreadable_files_are_named(tmp_path, reader, name):
    with pytest.raises(PrivSVMError, match=f"{name}: file not found"):
        reader(tmp_path / name)
    for content in (b"PK\x03\x04 cut short", b"[" * 100_000, b'{"a": ' + b"9" * 5000 + b"}", b"\0" * 20, b""):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(PrivSVMError, match=f"{name}: not"):
            reader(tmp_path / name)


def test_json_round_trip(tmp_path):
    write_json(tmp_path / "a.json", {"x": [1, 2.5, None, True, "é"]})
    assert read_json(tmp_path / "a.json") == {"x": [1, 2.5, None, True, "é"]}


def test_bad_json_arguments_are_refused():
    import argparse

    with pytest.raises(argparse.ArgumentTypeError, match="not valid JSON"):
        json_argument("{")


def test_one_run_a_folder_and_a_killed_one_leaves_no_lock(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code = (
        "import time; from privsvm_bench.workflow.session import lock_folder\n"
        "lock = lock_folder(); print('held', flush=True); time.sleep(36000)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        process.stdout.readline()
        with pytest.raises(PrivSVMError, match="another run is under way in this folder"):
            lock_folder()
        os.kill(process.pid, signal.SIGKILL)
    lock_folder().release()
    lock_folder.cache_clear()
