"""What `record` removes, and what it says when DVC fails."""

import importlib.util
import sys
from pathlib import Path

import pytest

from privsvm.errors import PrivSVMError

SCRIPT = Path(__file__).parents[2] / "stages" / "record.py"


@pytest.fixture(scope="module")
def record():
    spec = importlib.util.spec_from_file_location("record", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_what_nothing_needs_any_more_is_removed(tmp_path, record):
    kept = [
        "audits/pmsvm_wp.json",
        "condensed/ci/wine.npz",
        "models/svm/wine.npz",
        "results/svm/wine.json",
        "timings/_condense/wine.json",
    ]
    gone = [
        "audits/opera.json",
        "condensed/none/wine.npz",
        "condensed/ci/iris.npz",
        "models/svm/iris.public/a.npz",
        "raw/iris/iris.csv",
    ]
    for name in (*kept, *gone):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert len(record.remove_other_outputs(["wine"], "ci", ["pmsvm_wp"], tmp_path)) == len(gone)
    assert sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()) == kept


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("exit 3", "exit code 3, without a message"),
        ("kill -9 $$", "ended by SIGKILL, without a message"),
        ("echo; echo 'disk is full'; exit 1", "disk is full"),
        ("echo 'ERROR: no such stage' >&2; echo 'a hint' >&2; exit 255", "no such stage"),
    ],
)
def test_why_dvc_failed_is_one_line(tmp_path, record, monkeypatch, script, reason):
    (tmp_path / "python").write_text(f"#!/bin/sh\n{script}\n")
    (tmp_path / "python").chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    with pytest.raises(PrivSVMError) as caught:
        record.run_dvc("commit", "--force", "train@svm")
    assert str(caught.value) == (
        f"dvc commit: failed ({reason}), so dvc.lock lacks the versions of these outputs; results and reports are "
        "complete: run `dvc commit` to see its messages, then `make run`"
    )


def test_dvcs_own_message_is_passed_on(tmp_path, record, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for command in (["status", "--json"], ["commit", "--force", "train@svm"]):
        with pytest.raises(PrivSVMError, match="not inside of a DVC repository") as caught:
            record.run_dvc(*command)
        assert "\n" not in str(caught.value)
