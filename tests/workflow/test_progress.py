"""The logger plugin: one line for each finished job, and the state of the run for `make status`."""

import importlib.util
import json
import logging
import os
from types import SimpleNamespace

import pytest
from snakemake_interface_logger_plugins.registry import LoggerPluginRegistry
from snakemake_interface_logger_plugins.tests import MockOutputSettings, TestLogHandlerBase

import snakemake_logger_plugin_privsvm as plugin
from tests.conftest import REPOSITORY

# Larger than the kernel's largest process id.
NO_PROCESS = 2**22 + 1


@pytest.fixture(autouse=True)
def _working_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def run(monkeypatch, capsys):
    """Start a run of five jobs whose clock the test moves."""
    time = SimpleNamespace(now=1000.0)
    monkeypatch.setattr(plugin.time, "time", lambda: time.now)
    handler = plugin.LogHandler(MockOutputSettings(), None)

    def emit(event, message="", level=logging.INFO, **fields):
        handler.emit(logging.makeLogRecord({"event": event, "msg": message, "levelno": level, **fields}))
        return capsys.readouterr().err

    def start(number, method="svm", **fields):
        wildcards = {"folder": "", "method": method, "dataset": "wine"}
        return emit("job_info", jobid=number, rule_name="train", rule_msg=None, wildcards=wildcards, **fields)

    def finish(number, seconds):
        time.now += seconds
        return emit("job_finished", job_id=number)

    emit("run_info", stats={"train": 5, "total": 5})
    return SimpleNamespace(emit=emit, start=start, finish=finish, time=time, handler=handler)


def read_status():
    """Return the lines of stages/status.py."""
    spec = importlib.util.spec_from_file_location("status", REPOSITORY / "stages/status.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.status_lines()


class TestPluginContract(TestLogHandlerBase):
    """Tests of plugins by their interface's package."""

    __test__ = True

    def get_log_handler_cls(self):
        return plugin.LogHandler

    def get_log_handler_settings(self):
        return None


def test_snakemake_finds_the_plugin():
    assert LoggerPluginRegistry().is_installed("privsvm")


def test_finished_job_is_one_line_with_estimate(run):
    for number in range(3):
        assert run.start(number) == ""
        line = run.finish(number, 10.0)
    # Two jobs of ten seconds remain, and one runs at a time.
    assert line == "3/5  train svm wine".ljust(51) + "    10.0 s   0:30 so far, about 0:20 left\n"


@pytest.mark.parametrize(
    ("means", "prefix", "folder", "ending"),
    [
        ([0.5], "", "", ", accuracy 0.500"),
        ([0.9, 0.8, 0.85], "", "", ", accuracy 0.800 to 0.900"),
        ([0.5], "", "private/", "so far"),
        ([0.5], "nested/", "private/", "so far"),
    ],
)
def test_an_evaluation_shows_its_accuracy(run, tmp_path, means, prefix, folder, ending):
    record = tmp_path / f"{prefix}data/{folder}results/svm/wine.json"
    record.parent.mkdir(parents=True)
    record.write_text(json.dumps({"summary": {"accuracy": {"mean": means}}}))
    outputs = [record.relative_to(tmp_path).as_posix()]
    run.emit("job_info", jobid=7, rule_name="evaluate", rule_msg=None, wildcards={"folder": folder}, output=outputs)
    assert run.finish(7, 1.0).endswith(f"{ending}\n")


def test_a_job_from_the_cache_says_so(run, tmp_path):
    (tmp_path / "svm.log").write_text("taken from .cache/jobs/0123: a job with the same code\n")
    run.start(1, log=["svm.log"])
    assert run.finish(1, 1.0).endswith(", taken from .cache/jobs\n")
    run.start(2, log=["missing.log"])
    assert run.finish(2, 1.0).endswith("so far\n")


def test_text_without_event_is_hidden_between_jobs_alone(run):
    assert run.emit(None, "Select jobs to execute...") == ""
    assert run.emit("shellcmd", "x") == ""
    for number in range(5):
        run.start(number)
        run.finish(number, 1.0)
    assert run.emit(None, "Done.") == "Done.\n"


def test_errors_and_dry_runs_are_shown_in_full(run):
    assert run.emit("job_error", "Error in rule train", logging.ERROR, jobid=1) == "Error in rule train\n"
    run.handler.common_settings.verbose = True
    assert run.emit("shellcmd", "x") == "x\n"
    run.handler.common_settings.verbose = False
    run.handler.common_settings.dryrun = True
    assert run.emit("shellcmd", "x") == "x\n"


def test_quiet_rules_hides_starts_and_lines(run):
    assert run.finish(1, 1.0) == ""


def test_status_of_a_run_of_a_killed_one_and_of_none(run):
    assert read_status() == ["no run has been started here; run `make run`"]
    run.start(1, "slow")
    run.time.now += 75
    assert read_status() == ["0 of 5 jobs done", "  train slow wine: 1:15"]
    status = json.loads(plugin.STATUS_FILE.read_text())
    assert status["pid"] == os.getpid()
    plugin.STATUS_FILE.write_text(json.dumps(status | {"pid": NO_PROCESS}))
    assert read_status() == [
        "no run is under way; the last one ended with 0 of 5 jobs done; run `make run` again to continue it"
    ]


@pytest.mark.parametrize(("seconds", "text"), [(-1, "0:00"), (59.6, "1:00"), (3723, "1:02:03")])
def test_durations(seconds, text):
    assert plugin.clock(seconds) == text
