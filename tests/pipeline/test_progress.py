"""What a run says on the screen: one line a job, an estimate, nothing of Snakemake's lists."""

import json
import logging
import os
from types import SimpleNamespace

import pytest

from privsvm.pipeline import progress
from privsvm.pipeline.progress import Progress, clock, status_lines


@pytest.fixture
def run(tmp_path, monkeypatch):
    """A run of six jobs, whose clock the test moves."""
    monkeypatch.chdir(tmp_path)
    jobs = [SimpleNamespace(rule=SimpleNamespace(name=name)) for name in ("train",) * 5 + ("all",)]
    workflow = SimpleNamespace(
        dryrun=False, touch=False, local_exec=True, resource_settings=SimpleNamespace(cores=2),
        dag=SimpleNamespace(needrun_jobs=lambda: jobs),
    )  # fmt: skip
    lines, time = [], SimpleNamespace(now=0.0)
    shown = Progress(workflow, lines.append, lambda: time.now)

    def say(event, message="", **fields):
        record = logging.makeLogRecord({"event": event, "msg": message, "levelno": logging.INFO, **fields})
        return shown.filter(record)

    def job(number, seconds, method="a\x1b[2J"):
        say("job_info", jobid=number, rule_name="train", wildcards={"method": method, "dataset": "wine"}, log=["x.log"])
        time.now += seconds
        say("job_finished", job_id=number)

    return SimpleNamespace(say=say, job=job, lines=lines, time=time, workflow=workflow, shown=shown)


def test_a_job_is_one_line_with_an_estimate(run):
    for number in range(4):
        run.job(number, 10.0)
    assert run.lines[0].startswith("6 jobs on 2 cores")
    assert len(run.lines) == 5
    assert "3/6  train" in run.lines[3]
    assert "on wine" in run.lines[3]
    # Two of five jobs of ten seconds are left, one after the other.
    assert run.lines[3].endswith("0:30 so far, about 0:20 left")
    # What a name holds does not reach the terminal.
    assert "\x1b" not in "".join(run.lines)


def test_lists_are_hidden_and_errors_and_dry_runs_are_not(run):
    assert not run.say("shellcmd", "x")
    assert not run.say(None, "Select jobs to execute...")
    assert run.say(None, "Nothing to be done")
    assert run.say("job_error", "x", levelno=logging.ERROR)
    run.workflow.dryrun = True
    assert run.say("shellcmd", "x")


def test_a_long_job_is_named_after_a_silence(run):
    run.say("job_info", jobid=1, rule_name="train", wildcards={"method": "slow", "dataset": "wine"}, log=["x.log"])
    run.time.now = 20.0
    run.shown.heartbeat()
    assert len(run.lines) == 1
    run.time.now = 75.0
    run.shown.heartbeat()
    assert run.lines[1].strip() == "... train      slow on wine: 1:15"


def test_the_status_of_a_run_and_of_none(run, tmp_path):
    assert "no run has been started" in status_lines()[0]
    (tmp_path / "x.log").write_text("first\nstep 7 of 9\n")
    run.say("job_info", jobid=1, rule_name="train", wildcards={"method": "slow", "dataset": "wine"}, log=["x.log"])
    lines = status_lines()
    assert lines[0].startswith("0 of 6 jobs done")
    assert "slow on wine" in lines[1]
    assert lines[2].strip() == "x.log: step 7 of 9"
    status = json.loads(progress.STATUS_FILE.read_text())
    assert status["pid"] == os.getpid()
    # No process has the largest number.
    progress.STATUS_FILE.write_text(json.dumps(status | {"pid": 2**22 + 1}))
    assert status_lines() == [
        "no run is under way; the last one ended with 0 of 6 jobs done; start it again: it goes on where it stopped"
    ]
    progress.STATUS_FILE.write_text("{")
    assert "not readable" in status_lines()[0]


@pytest.mark.parametrize(("seconds", "words"), [(-1, "0:00"), (59.6, "1:00"), (3723, "1:02:03")])
def test_durations(seconds, words):
    assert clock(seconds) == words
