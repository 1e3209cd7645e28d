"""Folders in which no run can start are refused in one line that names the remedy."""

import os
import re

import pytest

from privsvm.errors import PrivSVMError
from privsvm_bench.workflow.session import check_times, check_writable, scripts_folder

from .conftest import REPOSITORY


def test_a_snakefile_without_its_library_and_braces_are_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert scripts_folder(REPOSITORY).strip("'") == f"{REPOSITORY}/stages/"
    with pytest.raises(PrivSVMError, match="no working copy of PrivSVM on this machine; clone it"):
        scripts_folder(tmp_path)
    copy = tmp_path / "a{b}c"
    for name in ("stages", "lib/privsvm"):
        (copy / name).mkdir(parents=True)
    with pytest.raises(PrivSVMError, match="Snakemake takes braces in a path for wildcards"):
        scripts_folder(copy)


def test_outputs_dated_in_the_future_are_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ahead = tmp_path / "data/wine.npz"
    ahead.parent.mkdir()
    ahead.write_bytes(b"")
    check_times("data")
    os.utime(ahead, (2e9, 2e9))
    with pytest.raises(PrivSVMError, match=r"^data/wine\.npz: dated in the future") as caught:
        check_times("data")
    # The command that the line names is a remedy.
    (command,) = re.findall(r"run `(find .*)`, and", str(caught.value))
    assert os.system(command) == 0
    check_times("data")


def test_a_folder_that_cannot_be_written_is_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data/models").mkdir(parents=True)
    check_writable("data", "reports")
    # Root may write everywhere.
    monkeypatch.setattr(os, "access", lambda path, mode: path.name != "models")
    with pytest.raises(PrivSVMError, match="data/models: this folder cannot be written; make it writable"):
        check_writable("data", "reports")
