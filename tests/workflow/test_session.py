"""Folders in which no run can start are refused in one line that names the remedy."""

import pytest

from privsvm.errors import PrivSVMError
from privsvm_bench.workflow.session import scripts_folder
from tests.scripts import REPOSITORY


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
