"""Patience with Slurm: no job of a run is lost when its controller does not answer, and no run waits for ever.

Versions 2.7 and 2.8 of snakemake-executor-plugin-slurm forget all active jobs when a look at their states fails, and
Snakemake then waits for them for ever. They look with ``sacct`` wherever that program is installed, also where Slurm
keeps no accounts. They ask for ever about a job that Slurm no longer knows, and a job whose submission fails counts as
failed, though the controller may be back a second later. `be_patient` mends these four.

They also start Snakemake again for every member of a group, by a job step of its own, which takes longer than most of
our jobs. `be_patient` has the members run in the Snakemake of their group.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Sequence
from functools import cache
from typing import Any

from privsvm.errors import PrivSVMError

__all__ = ["PATIENCE", "be_patient"]

# Environment variable: seconds for which the controller may be silent.
PATIENCE = "PRIVSVM_SLURM_PATIENCE"
_PATIENCE = 600.0

_PLUGIN = "snakemake_executor_plugin_slurm"

# Seconds between two questions whether the controller is back, and for which an answer is waited.
_PAUSE = 2.0
_ANSWER = 60.0

# Seconds after which a job that no list names is looked for by its number: a new one may be late in the accounts.
_LATE = 60.0


def _seconds() -> float:
    text = os.environ.get(PATIENCE, str(_PATIENCE))
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 < seconds < float("inf"):
        raise PrivSVMError(f"{PATIENCE}={text}: must be a number of seconds above 0; unset it for {_PATIENCE:g}")
    return seconds


def _succeeds(*command: str) -> bool:
    """Whether a program is there, answers in time and ends with 0."""
    try:
        return subprocess.run(command, capture_output=True, timeout=_ANSWER, check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


@cache
def _can_ask(tool: str) -> bool:
    """Whether a program can be asked for states of jobs: ``sacct`` only where Slurm keeps accounts."""
    return _succeeds("sacct", "--noheader", "--allocations") if tool == "sacct" else _succeeds(tool, "--version")


class _Patience:
    """How long Slurm has been silent, and which jobs it does not know.

    Parameters
    ----------
    seconds : float
        How long it may be silent.
    """

    def __init__(self, seconds: float):
        self.seconds = seconds
        self.over = threading.Event()
        self.answer: dict[str, str] | None = None
        self.silent_since: float | None = None
        self.unknown_since: dict[str, float] = {}

    def after_silence(self, run: str) -> None:
        """Note that a question was not answered; raise an error when it was the last one."""
        from snakemake_interface_common.exceptions import WorkflowError

        now = time.monotonic()
        if self.silent_since is None:
            self.silent_since = now
        if now - self.silent_since >= self.seconds:
            self.over.set()
            raise WorkflowError(self.error(run))

    def error(self, run: str) -> str:
        """Say that the controller is lost, and what to do."""
        return (
            f"error: Slurm: the controller has not answered for {self.seconds:g} s, and what it runs goes on; when "
            f"`scontrol ping` finds it again, run `scancel --name={run}` and then the same command again"
        )

    def is_lost(self, job: str) -> bool:
        """Whether Slurm does not know a job any more, by its last answer and, after a while, the controller's own."""
        # A task of an array may be listed by the array's number alone.
        if self.answer is None or job in self.answer or job.split("_")[0] in self.answer:
            self.unknown_since.pop(job, None)
            return False
        since = self.unknown_since.setdefault(job, time.monotonic())
        return time.monotonic() - since >= _LATE and not _succeeds("scontrol", "show", "job", job)


def be_patient(workflow: Any) -> None:
    """Mend Snakemake's plugin for Slurm in this process. Where it is not installed nothing happens.

    Parameters
    ----------
    workflow : snakemake.workflow.Workflow
        The workflow that is read. Jobs, which are submitted by another process, are left as they are.

    Raises
    ------
    PrivSVMError
        If `PATIENCE` is no number of seconds.
    """
    plugin = sys.modules.get(_PLUGIN)
    if plugin is None or workflow.remote_exec or hasattr(plugin, "privsvm_patience"):
        return
    patience = plugin.privsvm_patience = _Patience(_seconds())  # type: ignore[attr-defined]
    executor = plugin.Executor
    ask, check, submit = plugin.query_job_status, executor.check_active_jobs, executor.run_job

    async def query_job_status(command: str, logger: Any) -> Any:
        states, duration = await ask(command, logger)
        patience.answer = states
        return states, duration

    async def check_active_jobs(self: Any, active_jobs: Sequence[Any]) -> AsyncIterator[Any]:
        patience.answer = None
        settings = self.workflow.executor_settings
        if settings.status_command == "sacct" and not _can_ask("sacct"):
            # As the plugin then would, saying so at every look.
            settings.status_command = "squeue"
        left = [job async for job in check(self, active_jobs)]
        if active_jobs and patience.answer is None:
            # The plugin would forget them.
            left = list(active_jobs)
        # Accounts are kept by another server, which answers that a job runs long after the controller was lost.
        if left and (patience.answer is None or not await asyncio.to_thread(_succeeds, "scontrol", "ping")):
            patience.after_silence(self.run_uuid)
        else:
            patience.silent_since = None
        for job in left:
            if patience.silent_since is None and patience.is_lost(job.external_jobid):
                self.report_job_error(job, msg=f"Slurm does not know its job {job.external_jobid} any more. ")
            else:
                yield job
        # The plugin looks ever more rarely, up to every 180 s, whatever Snakemake was asked for.
        between = self.workflow.remote_execution_settings.seconds_between_status_checks
        limit = max(settings.init_seconds_before_status_checks, between)
        self.next_seconds_between_status_checks = min(self.next_seconds_between_status_checks, limit)

    def run_job(self: Any, job: Any) -> None:
        until = time.monotonic() + patience.seconds
        while not patience.over.is_set() and not _succeeds("scontrol", "ping"):
            if time.monotonic() >= until:
                from snakemake_interface_common.exceptions import WorkflowError

                patience.over.set()
                self.workflow.scheduler.executor_error_callback(WorkflowError(patience.error(self.run_uuid)))
            patience.over.wait(_PAUSE)
        if not patience.over.is_set():
            submit(self, job)

    plugin.is_query_tool_available = _can_ask  # type: ignore[attr-defined]
    plugin.query_job_status = query_job_status  # type: ignore[attr-defined]
    executor.additional_general_args = lambda self: "--executor local"
    executor.check_active_jobs = check_active_jobs
    executor.run_job = run_job
