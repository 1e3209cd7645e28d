"""No job is forgotten while Slurm's controller is silent, and no run waits for ever: on a stand-in of the plugin.

`make test-slurm` does the same with the plugin and a Slurm.
"""

import asyncio
import json
import os
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from tests.cluster import figures

from privsvm.errors import PrivSVMError
from privsvm.pipeline import slurm
from privsvm.pipeline.workflow import clear_stale_locks

REPOSITORY = Path(__file__).resolve().parents[2]
SILENT = (None, None)


class Clock:
    """Time that passes when it is told to."""

    now = 0.0

    def monotonic(self):
        return self.now


class Executor:
    """What the plugin's executor does with the answer to its question."""

    run_uuid = "run-7"
    next_seconds_between_status_checks = 180

    def __init__(self, plugin):
        self.plugin, self.failed, self.submitted, self.errors = plugin, [], [], []
        self.workflow = SimpleNamespace(
            executor_settings=SimpleNamespace(init_seconds_before_status_checks=5, status_command="sacct"),
            remote_execution_settings=SimpleNamespace(seconds_between_status_checks=20),
            scheduler=SimpleNamespace(executor_error_callback=self.errors.append),
        )

    def report_job_error(self, job, msg):
        self.failed.append((job.external_jobid, msg))

    async def check_active_jobs(self, active_jobs):
        states, _ = await self.plugin.query_job_status("squeue", None)
        for job in active_jobs if states is not None else ():
            if states.get(job.external_jobid) != "COMPLETED":
                yield job

    def run_job(self, job):
        self.submitted.append(job)


@pytest.fixture
def plugin(monkeypatch):
    """The patched plugin, the answers that Slurm gives to it, and whether the controller is there."""
    plugin = SimpleNamespace(answers=[], up=True)

    async def query_job_status(command, logger):
        return plugin.answers.pop(0)

    # Patched as a class of each test's own.
    plugin.Executor = type(
        "Executor", (Executor,), {name: vars(Executor)[name] for name in ("check_active_jobs", "run_job")}
    )
    plugin.query_job_status = query_job_status
    plugin.clock = Clock()
    monkeypatch.setitem(sys.modules, "snakemake_executor_plugin_slurm", plugin)
    monkeypatch.setattr(slurm, "_succeeds", lambda *command: plugin.up and command[0] != "sacct")
    monkeypatch.setattr(slurm, "_PAUSE", 0)
    monkeypatch.setattr(slurm, "time", plugin.clock)
    monkeypatch.delenv(slurm.PATIENCE, raising=False)
    slurm.be_patient(SimpleNamespace(remote_exec=False))
    slurm._can_ask.cache_clear()
    yield plugin
    slurm._can_ask.cache_clear()


def jobs(*numbers):
    return [SimpleNamespace(external_jobid=number) for number in numbers]


def left(executor, active):
    async def look():
        return [job.external_jobid async for job in executor.check_active_jobs(active)]

    return asyncio.run(look())


def test_jobs_are_kept_while_the_controller_is_silent_for_less_than_the_limit(plugin):
    executor = plugin.Executor(plugin)
    plugin.answers = [SILENT, SILENT, ({"1": "COMPLETED", "2": "RUNNING"}, 0.1), SILENT]
    for seconds in (0, 599):
        plugin.clock.now = seconds
        assert left(executor, jobs("1", "2")) == ["1", "2"]
    assert left(executor, jobs("1", "2")) == ["2"]
    # An answer starts the count again.
    plugin.clock.now = 5000
    assert left(executor, jobs("2")) == ["2"]
    assert not executor.failed
    assert executor.next_seconds_between_status_checks == 20
    # Where no accounts are kept.
    assert executor.workflow.executor_settings.status_command == "squeue"


@pytest.mark.parametrize("answer", [SILENT, ({"1": "RUNNING"}, 0.1)], ids=["nobody answers", "accounts alone answer"])
def test_a_lost_controller_ends_in_an_error_that_says_what_to_do(plugin, answer):
    executor = plugin.Executor(plugin)
    plugin.up = False
    plugin.answers = [answer, answer]
    assert left(executor, jobs("1")) == ["1"]
    plugin.clock.now = 600
    with pytest.raises(Exception, match=r"^error: Slurm: the controller has not answered for 600 s.*--name=run-7"):
        left(executor, jobs("1"))


def test_a_job_that_slurm_no_longer_knows_fails(plugin, monkeypatch):
    executor = plugin.Executor(plugin)
    known = ["1"]
    monkeypatch.setattr(slurm, "_succeeds", lambda *command: command[1] == "ping" or command[-1] in known)
    plugin.answers = [({}, 0.1), ({"1": "RUNNING"}, 0.1), ({}, 0.1), ({}, 0.1), ({"8": "RUNNING"}, 0.1)]
    for seconds in (0, 30, 60, 120):
        plugin.clock.now = seconds
        # In the last look its number is not in the list, but known to the controller.
        assert left(executor, jobs("1")) == ["1"]
    known.clear()
    # A task of an array is listed by the array.
    assert left(executor, jobs("1", "8_3")) == ["8_3"]
    assert [number for number, _ in executor.failed] == ["1"]


def test_a_job_is_submitted_when_the_controller_is_back_or_never(plugin, monkeypatch):
    executor = plugin.Executor(plugin)
    states = [False, False, True]
    monkeypatch.setattr(slurm, "_succeeds", lambda *command: states.pop(0))
    executor.run_job("job")
    assert executor.submitted == ["job"]
    assert not states

    def never(*command):
        plugin.clock.now += 400
        return False

    monkeypatch.setattr(slurm, "_succeeds", never)
    executor.run_job("another")
    executor.run_job("a third")
    assert executor.submitted == ["job"]
    assert [str(error).split(":")[0] for error in executor.errors] == ["error"]


def test_members_of_a_group_run_in_one_snakemake(plugin):
    assert plugin.Executor(plugin).additional_general_args() == "--executor local"


def test_accounts_are_asked_only_where_they_are_kept(plugin, monkeypatch, tmp_path):
    monkeypatch.undo()
    program = tmp_path / "sacct"
    program.write_text("#!/bin/sh\necho Slurm accounting storage is disabled >&2\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    assert not plugin.is_query_tool_available("sacct")
    program.write_text("#!/bin/sh\n")
    # Asked once a run.
    assert not plugin.is_query_tool_available("sacct")
    slurm._can_ask.cache_clear()
    assert plugin.is_query_tool_available("sacct")
    assert not plugin.is_query_tool_available("no-such-program")


@pytest.mark.parametrize("text", ["", "ten", "0", "-1", "nan", "inf"])
def test_a_wrong_limit_is_refused(monkeypatch, text):
    monkeypatch.setitem(sys.modules, "snakemake_executor_plugin_slurm", SimpleNamespace())
    monkeypatch.setenv(slurm.PATIENCE, text)
    with pytest.raises(PrivSVMError, match=f"^{slurm.PATIENCE}={text}: must be a number of seconds above 0"):
        slurm.be_patient(SimpleNamespace(remote_exec=False))
    # A job does not look at it.
    slurm.be_patient(SimpleNamespace(remote_exec=True))


def test_the_profile_says_what_the_default_profile_says(tmp_path):
    default, cluster = (
        yaml.safe_load((REPOSITORY / f"profiles/{name}/profile.yaml").read_text()) for name in ("default", "slurm")
    )
    assert {key for key in default if cluster.get(key) != default[key]} == {"latency-wait"}
    assert cluster["latency-wait"] > default["latency-wait"]
    # Jobs are seen before they leave `squeue`.
    assert 3 * cluster["slurm-init-seconds-before-status-checks"] < 300
    assert cluster["seconds-between-status-checks"] < 300


def test_every_rule_travels_in_a_group_or_runs_where_snakemake_does():
    text = "".join(path.read_text() for path in [REPOSITORY / "Snakefile", *(REPOSITORY / "stages").rglob("*.smk")])
    bodies = dict(re.findall(r"^rule (\w+):\n((?:    .*\n|\n)+)", text, re.MULTILINE))
    rules, local = set(bodies), {name for name, body in bodies.items() if "    localrule: True\n" in body}
    assert len(local) == 6
    profile = yaml.safe_load((REPOSITORY / "profiles/slurm/profile.yaml").read_text())
    assert rules == local | set(profile["groups"])
    assert set(profile["set-resources"]) <= rules
    assert set(profile["groups"].values()) == set(profile["group-components"])


def test_a_job_on_another_node_removes_no_lock(tmp_path):
    locks = tmp_path / "locks"
    locks.mkdir()
    (locks / "0.input.lock").touch()
    with clear_stale_locks(tmp_path, is_job=True):
        assert list(locks.iterdir())
        # While it runs, another Snakemake keeps its hands off too.
        with clear_stale_locks(tmp_path):
            assert list(locks.iterdir())
    clear_stale_locks(tmp_path).close()
    assert not list(locks.iterdir())


def test_a_file_system_without_locks_is_left_to_snakemake(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr("fcntl.flock", refuse)
    (tmp_path / "locks").mkdir()
    (tmp_path / "locks/0.input.lock").touch()
    assert clear_stale_locks(tmp_path) is None
    assert list((tmp_path / "locks").iterdir())


def test_the_page_says_what_was_measured():
    measured = json.loads(figures.MEASURED.read_text())
    page = figures.PAGE.read_text()
    assert figures.with_figures(page, measured) == page
    assert figures.with_figures(page, {**measured, "load": measured["load"] + 1}) != page
    # The limit of `make test-slurm`.
    here, there = (sum(measured["small"][side]) for side in ("here", "there"))
    assert there <= 4 * here
