"""Outputs of finished jobs are reused for equal code, parameters and inputs only."""

import errno
import os
import shutil

import pytest

from privsvm_bench.workflow.finished import FinishedJob


@pytest.fixture
def job(tmp_path, monkeypatch):
    """Make a job of given code, parameters and input with two outputs."""
    monkeypatch.chdir(tmp_path)

    def make(code="c", parameters=None, content="rows"):
        (tmp_path / "in").write_text(content)
        return FinishedJob(code, parameters or {"C": 1}, inputs=["in"], outputs=["made/out.npz", "made/out.json"])

    return make


def finish(job, text):
    for path in job.outputs:
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"{path.name} {text}")
    job.keep()
    for path in job.outputs:
        path.unlink()


def test_equal_jobs_share_their_outputs(job):
    assert not job().restore()
    finish(job(), "first")
    again = job()
    assert again.restore()
    assert [path.read_text() for path in again.outputs] == ["out.npz first", "out.json first"]
    # Editing an output leaves the kept copy unchanged.
    again.outputs[0].write_text("edited")
    # Neither does another process that has run the same job.
    finish(job(), "second")
    assert job().restore()
    assert again.outputs[0].read_text() == "out.npz first"
    assert not list(again.folder.parent.glob(".job.*"))


@pytest.mark.parametrize("change", [{"code": "d"}, {"parameters": {"C": 2}}, {"content": "other rows"}])
def test_another_code_parameter_or_input_is_another_job(job, change):
    finish(job(), "first")
    assert not job(**change).restore()


def test_without_a_digest_of_the_code_nothing_is_kept(job, tmp_path):
    finish(job(code=""), "first")
    assert not job(code="").restore()
    assert not (tmp_path / ".cache").exists()


def flip(path):
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


DAMAGE = {
    "a byte differs": lambda entry: flip(entry / "1"),
    "a byte of the record differs": lambda entry: flip(entry / "record.json"),
    "a file is missing": lambda entry: (entry / "1").unlink(),
    "the record is of another form": lambda entry: (entry / "record.json").write_text("[1]"),
    "the files changed places": lambda entry: shutil.copy(entry / "0", entry / "1"),
    "a file more": lambda entry: (entry / "2").write_text("more"),
    "a pipe": lambda entry: ((entry / "1").unlink(), os.mkfifo(entry / "1")),
    "nothing": lambda entry: (shutil.rmtree(entry), entry.mkdir()),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_entry_is_made_again(job, damage):
    """Neither output is touched by it, and the next job of the kind has the right ones."""
    finish(job(), "first")
    DAMAGE[damage](job().folder)
    again = job()
    assert not again.restore()
    assert not again.folder.exists()
    assert not any(path.exists() for path in again.outputs)
    finish(again, "first")
    assert job().restore()
    assert [path.read_text() for path in again.outputs] == ["out.npz first", "out.json first"]


def test_an_entry_of_another_job_is_not_restored(job):
    finish(job(), "first")
    job().folder.rename(job(code="d").folder)
    assert not job(code="d").restore()


CACHES = {
    "a file": lambda jobs: jobs.write_text(""),
    "a link to nothing": lambda jobs: jobs.symlink_to("nowhere"),
    "a full disk": lambda jobs: None,
}


@pytest.mark.parametrize("kind", CACHES)
def test_a_cache_that_cannot_be_written_ends_no_job(job, kind, monkeypatch, capsys):
    folder = job().folder
    folder.parent.parent.mkdir(parents=True, exist_ok=True)
    CACHES[kind](folder.parent)
    if kind == "a full disk":

        def fail(*_):
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr("privsvm_bench.workflow.finished.write_json", fail)
    finish(job(), "first")
    assert "not kept (" in capsys.readouterr().out
    assert not job().restore()


def test_an_entry_that_vanishes_meanwhile_is_made_again(job, monkeypatch):
    finish(job(), "first")
    monkeypatch.setattr(FinishedJob, "_is_intact", lambda self, folder: shutil.rmtree(folder) is None)
    assert not job().restore()
