"""What a run says of itself: one line a job, a word now and then while a long one runs, and what to open at the end."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from privsvm.errors import printable

__all__ = ["STATUS_FILE", "Progress", "clock", "show_progress", "status_lines"]

STATUS_FILE = Path("logs/status.json")

# After so many seconds without a line, a word on what is running.
_SILENCE = 30.0

# An estimate of the time that is left needs so large a share of the jobs: the first ones wait for the compiler.
_SHARE_KNOWN = 0.25

# What Snakemake says of every job, and of itself. Its own log file keeps all of it.
_OWN_EVENTS = {
    "job_info",
    "job_started",
    "job_finished",
    "progress",
    "shellcmd",
    "resources_info",
    "workflow_started",
    "run_info",
}
_OWN_WORDS = (
    "Select jobs",
    "Execute ",
    "Using shell",
    "Using workflow specific profile",
    "Assuming unrestricted",
    "Conda environments",
    "Building DAG",
    "Complete log",
    "Elapsed time",
    "Retry in",
)


def clock(seconds: float) -> str:
    """Write a duration: ``0:07``, ``12:30``, ``1:02:03``."""
    minutes, rest = divmod(max(0, round(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def _title(rule: str, wildcards: Mapping[str, Any]) -> str:
    """Name a job: its rule, and the method and data set that it is of."""
    method, dataset = wildcards.get("method"), wildcards.get("dataset")
    others = " ".join(str(value) for name, value in wildcards.items() if name not in ("method", "dataset", "condense"))
    what = " on ".join(str(part) for part in (method, dataset) if part)
    return printable(" ".join(part for part in (f"{rule:<10}", what, others) if part))


class Progress(logging.Filter):
    """Takes the place of Snakemake's words about jobs on the screen.

    Parameters
    ----------
    workflow : snakemake.workflow.Workflow
        The run.
    write : callable
        Takes one line.
    now : callable
        Seconds.
    """

    def __init__(self, workflow: Any, write: Callable[[str], None], now: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self.workflow, self.write, self.now = workflow, write, now
        self.started = self.spoke = now()
        self.jobs: dict[int, dict[str, Any]] = {}
        self.done = 0
        self.left: Counter[str] | None = None
        self.seconds: defaultdict[str, list[float]] = defaultdict(list)
        self._lock = threading.Lock()

    def filter(self, record: logging.LogRecord) -> bool:
        """Say it in one line, or let Snakemake say it."""
        if self.workflow.dryrun or self.workflow.touch:
            return True
        event = str(getattr(record, "event", None) or "")
        with self._lock:
            if event == "job_info":
                self._begin(record)
            elif event == "job_finished":
                self._end(record)
        if event in _OWN_EVENTS:
            return False
        return not (record.levelno <= logging.INFO and str(record.msg).startswith(_OWN_WORDS))

    def _begin(self, record: logging.LogRecord) -> None:
        fields = vars(record)
        if self.left is None:
            self.left = Counter(job.rule.name for job in self.workflow.dag.needrun_jobs())
            self.total = sum(self.left.values())
            self.started = self.now()
            cores = f"on {self.workflow.resource_settings.cores} cores"
            self._say(f"{self.total} jobs {cores if self.workflow.local_exec else 'on a cluster'}; details in logs/")
        job = {
            "rule": fields["rule_name"],
            "title": _title(fields["rule_name"], fields["wildcards"] or {}),
            "log": [str(path) for path in fields["log"] or []],
            "since": self.now(),
        }
        self.jobs[fields["jobid"]] = job
        if job["rule"] == "compile":
            self._say("compiling the solvers: once, half a minute or so; a change of their sources repeats it")
        self._store()

    def _end(self, record: logging.LogRecord) -> None:
        job = self.jobs.pop(vars(record)["job_id"], None)
        if job is None or self.left is None:
            return
        took = self.now() - job["since"]
        self.done += 1
        self.left[job["rule"]] -= 1
        self.seconds[job["rule"]].append(took)
        if job["rule"] != "all":
            width = len(str(self.total))
            rest = self.rest()
            later = f", about {clock(rest)} left" if rest is not None and self.done < self.total - 1 else ""
            spent = f"{clock(self.now() - self.started)} so far{later}"
            self._say(f"{self.done:{width}d}/{self.total}  {job['title']:<46} {took:7.1f} s   {spent}")
        self._store()

    def rest(self) -> float | None:
        """Estimate the seconds that are left: each rule's mean, by how many jobs have run beside each other."""
        known = [second for seconds in self.seconds.values() for second in seconds]
        elapsed = self.now() - self.started
        if self.left is None or len(known) < max(3, _SHARE_KNOWN * self.total) or elapsed <= 0:
            return None
        mean = sum(known) / len(known)
        work = sum(
            count * (sum(self.seconds[rule]) / len(self.seconds[rule]) if self.seconds[rule] else mean)
            for rule, count in self.left.items()
            if rule != "all"
        )
        return work / max(1.0, sum(known) / elapsed)

    def heartbeat(self) -> None:
        """Name the longest running job after a silence, and renew the status."""
        with self._lock:
            if self.jobs and self.now() - self.spoke >= _SILENCE:
                oldest = min(self.jobs.values(), key=lambda job: job["since"])
                others = f", and {len(self.jobs) - 1} more" if len(self.jobs) > 1 else ""
                self._say(f"   ... {oldest['title'].strip()}: {clock(self.now() - oldest['since'])}{others}")
                self._store()

    def _say(self, line: str) -> None:
        self.spoke = self.now()
        self.write(line)

    def _store(self) -> None:
        status = {
            "pid": os.getpid(),
            "done": self.done,
            "total": getattr(self, "total", 0),
            "elapsed": self.now() - self.started,
            "rest": self.rest(),
            "written": time.time(),
            "running": [
                {"title": job["title"].strip(), "log": job["log"], "seconds": self.now() - job["since"]}
                for job in self.jobs.values()
            ],
        }
        # A full disk is for the jobs to complain of.
        with contextlib.suppress(OSError):
            STATUS_FILE.parent.mkdir(exist_ok=True)
            temporary = STATUS_FILE.with_suffix(".part")
            temporary.write_text(json.dumps(status), encoding="utf-8")
            os.replace(temporary, STATUS_FILE)


def show_progress(workflow: Any, logger: logging.Logger) -> None:
    """Put one line a job in the place of Snakemake's words; ``PRIVSVM_OUTPUT=snakemake`` keeps these.

    Parameters
    ----------
    workflow : snakemake.workflow.Workflow
        The run.
    logger : logging.Logger
        Snakemake's.
    """
    settings = workflow.output_settings
    if (
        os.environ.get("PRIVSVM_OUTPUT") == "snakemake"
        or settings.verbose
        or settings.quiet
        or workflow.subprocess_exec
    ):
        return
    for handler in logger.handlers:
        if type(handler).__name__ != "ColorizingTextHandler":
            continue
        stream = handler.stream  # type: ignore[attr-defined]

        def write(line: str, stream: Any = stream) -> None:
            print(line, file=stream, flush=True)

        progress = Progress(workflow, write)
        handler.addFilter(progress)

        def beat(progress: Progress = progress) -> None:
            while True:
                time.sleep(_SILENCE / 3)
                progress.heartbeat()

        threading.Thread(target=beat, daemon=True, name="progress").start()


def status_lines(path: Path = STATUS_FILE) -> list[str]:
    """Say what a run is doing, from the file that it renews.

    Parameters
    ----------
    path : pathlib.Path
        The file.

    Returns
    -------
    list of str
    """
    try:
        status = json.loads(path.read_text(encoding="utf-8"))
        waited = time.time() - status["written"]
        alive = Path(f"/proc/{status['pid']}").exists() if Path("/proc/self").exists() else waited < 2 * _SILENCE
    except FileNotFoundError:
        return ["no run has been started here; run `make run`"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return [f"{path}: not readable; the next run writes it again"]
    counts = f"{status['done']} of {status['total']} jobs done"
    if not alive:
        unfinished = "; start it again: it goes on where it stopped" if status["running"] else ""
        return [f"no run is under way; the last one ended with {counts}{unfinished}"]
    rest = "" if status["rest"] is None else f", about {clock(status['rest'])} left"
    lines = [f"{counts}, {clock(status['elapsed'] + waited)} so far{rest}"]
    for job in status["running"]:
        lines.append(f"  {job['title']}: {clock(job['seconds'] + waited)}")
        for name in job["log"]:
            with contextlib.suppress(OSError, IndexError):
                last = Path(name).read_text(encoding="utf-8", errors="replace").strip().splitlines()[-1]
                lines.append(f"    {name}: {printable(last)[:160]}")
    return lines
