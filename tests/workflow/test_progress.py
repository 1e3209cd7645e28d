"""The logger plugin: one line for each finished job, and the state of the run for `make status`."""

import json
import logging
import os
import signal
from pathlib import Path
from types import SimpleNamespace

import pytest
from snakemake_interface_logger_plugins.tests import MockOutputSettings, TestLogHandlerBase

import snakemake_logger_plugin_privsvm as plugin
from tests.scripts import load_script

# Larger than the kernel's largest process id.
NO_PROCESS = 2**22 + 1


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Start a run of five jobs whose clock the test moves."""
    monkeypatch.chdir(tmp_path)
    time = SimpleNamespace(now=1000.0)
    monkeypatch.setattr(plugin.time, "time", lambda: time.now)

    def emit(event, message="", level=logging.INFO, **fields):
        handler.emit(logging.makeLogRecord({"event": event, "msg": message, "levelno": level, **fields}))
        return capsys.readouterr().err

    def start(number, rule="train", folder="", **fields):
        wildcards = {"folder": folder, "method": "svm", "dataset": "wine"}
        return emit("job_info", jobid=number, rule_name=rule, rule_msg=None, wildcards=wildcards, **fields)

    def finish(number, seconds=1.0):
        time.now += seconds
        return emit("job_finished", job_id=number)

    earlier = signal.signal(signal.SIGINT, signal.default_int_handler)
    handler = plugin.LogHandler(MockOutputSettings(), None)
    emit("run_info", stats={"train": 5, "total": 5})
    yield SimpleNamespace(emit=emit, start=start, finish=finish, time=time)
    signal.signal(signal.SIGINT, earlier)


class TestPluginContract(TestLogHandlerBase):
    """Tests of plugins by their interface's package."""

    __test__ = True

    def get_log_handler_cls(self):
        return plugin.LogHandler

    def get_log_handler_settings(self):
        return None


def test_a_finished_job_is_one_line(run, tmp_path):
    for number in range(3):
        assert run.start(number) == ""
        line = run.finish(number, 10.0)
    # Two jobs of ten seconds remain, and one runs at a time.
    assert line == "3/5  train svm wine".ljust(51) + "    10.0 s   0:30 so far, about 0:20 left\n"
    (tmp_path / "svm.log").write_text("taken from .cache/jobs/0123: a job with the same code\n")
    run.start(4, log=["svm.log"])
    assert run.finish(4).endswith(", taken from .cache/jobs\n")
    assert run.emit("job_error", "Error in rule train", logging.ERROR, jobid=1) == "Error in rule train\n"


def test_jobs_that_an_interrupt_ends_are_no_errors(run):
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
    ends = [run.emit("job_error", "Error in rule train", logging.ERROR, jobid=number) for number in range(3)]
    assert ends == ["interrupted; run the same command to continue\n", "", ""]


@pytest.mark.parametrize(("folder", "ending"), [("", ", accuracy 0.800 to 0.900"), ("private/", "so far")])
def test_an_evaluation_shows_its_accuracy_unless_private(run, tmp_path, folder, ending):
    record = tmp_path / f"data/{folder}results/svm/wine.json"
    record.parent.mkdir(parents=True)
    record.write_text(json.dumps({"summary": {"accuracy": {"mean": [0.9, 0.8, 0.85]}}}))
    run.start(7, "evaluate", folder, output=[record.relative_to(tmp_path).as_posix()])
    line = run.finish(7)
    assert line.endswith(f"{ending}\n")
    assert "evaluate svm wine " in line


def test_an_audit_shows_a_refutation_and_a_failure(run, tmp_path):
    for refuted, problem, ending in (
        ([], None, "so far"),
        ([1.0, 4.0], None, ", refuted at epsilon 1, 4 under add_remove"),
        ([4.0], "at epsilon 1: rows", ", refuted at epsilon 4 under add_remove, audit failed at epsilon 1: rows"),
    ):
        cells = [{"epsilon": one, "relation": "add_remove", "refuted": one in refuted} for one in (1.0, 4.0)]
        (tmp_path / "svm.json").write_text(json.dumps({"cells": cells, "problem": problem}))
        run.start(7, "audit", output=["svm.json"])
        assert run.finish(7).endswith(f"{ending}\n")


def test_the_first_jobs_give_an_interval_of_the_time_left(run):
    for number, seconds in enumerate((10.0, 10.0, 40.0)):
        run.start(number)
        line = run.finish(number, seconds)
        assert ("left" in line) == (number == 2)
    # Two jobs remain, of 10 seconds each by the faster half and 25 by the slower one.
    assert line.endswith("1:00 so far, 0:20 to 0:50 left\n")


def test_status_of_a_run_and_of_a_killed_one(run):
    module = load_script("stages/status.py")
    assert module.status_lines() == ["no run has been started here; run `make run`"]
    Path("train.log").write_text("split 1 of 10\nfit 3 of 80 of this split\n")
    run.start(1, log=["train.log"])
    run.time.now += 75
    assert module.status_lines() == ["0 of 5 jobs done", "  train svm wine: 1:15 (fit 3 of 80 of this split)"]
    status = json.loads(plugin.STATUS_FILE.read_text())
    assert status["pid"] == os.getpid()
    for left, ending in (([100, 200], ", 0:25 to 2:05 left"), ([50, 100], ", 0:00 to 0:25 left"), ([20, 30], "")):
        plugin.STATUS_FILE.write_text(json.dumps(status | {"left": left}))
        assert module.status_lines()[0] == f"0 of 5 jobs done{ending}"
    plugin.STATUS_FILE.write_text(json.dumps(status | {"pid": NO_PROCESS}))
    assert module.status_lines() == [
        "no run is under way; the last one ended with 0 of 5 jobs done; run `make run` again to continue it"
    ]
