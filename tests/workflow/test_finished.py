"""Outputs of finished jobs are reused for equal code, parameters and inputs only."""

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
    assert job().restore()
    assert again.outputs[0].read_text() == "out.npz first"


@pytest.mark.parametrize("change", [{"code": "d"}, {"parameters": {"C": 2}}, {"content": "other rows"}])
def test_another_code_parameter_or_input_is_another_job(job, change):
    finish(job(), "first")
    assert not job(**change).restore()


def test_without_a_digest_of_the_code_nothing_is_kept(job, tmp_path):
    finish(job(code=""), "first")
    assert not job(code="").restore()
    assert not (tmp_path / ".cache").exists()


def test_outputs_that_another_process_has_kept_stay(job):
    finish(job(), "first")
    finish(job(), "second")
    again = job()
    assert again.restore()
    assert again.outputs[0].read_text() == "out.npz first"
    assert not list(again.folder.parent.glob(".job.*"))
