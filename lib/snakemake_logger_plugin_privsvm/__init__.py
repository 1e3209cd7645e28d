"""Snakemake logger plugin: one line for each finished job, and a status file for ``make status``.

profiles/default selects it. Dry runs and ``snakemake --verbose`` print Snakemake's own text, as .snakemake/log does.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import signal
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path
from statistics import fmean

from snakemake_interface_logger_plugins.base import LogHandlerBase
from snakemake_interface_logger_plugins.common import LogEvent

__all__ = ["STATUS_FILE", "LogHandler", "clock"]

STATUS_FILE = Path("logs/status.json")
# Jobs to wait for before the time left is estimated.
FIRST_ESTIMATE = 3

# A container may have no home folder that can be written: Snakemake's cache then lies in the working folder.
try:
    os.makedirs(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), exist_ok=True)
except OSError:
    os.environ["XDG_CACHE_HOME"] = os.path.abspath(".cache")


def clock(seconds: float) -> str:
    """Write a duration: ``0:07``, ``12:30``, ``1:02:03``."""
    minutes, rest = divmod(max(0, round(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def describe_left(seconds: Iterable[float] | None) -> str:
    """Write the bounds of the time left; empty where it is not known, or nothing is left."""
    low, high = map(clock, seconds or (0.0, 0.0))
    if high == clock(0):
        return ""
    return f", about {low} left" if low == high else f", {low} to {high} left"


def describe_findings(record: str) -> str:
    """Describe the record of a job: the least and the most accuracy, or the refuted epsilons and a failed audit."""
    content = json.loads(Path(record).read_text(encoding="utf-8"))
    if "cells" in content:
        refuted = dict.fromkeys(f"{cell['epsilon']:g}" for cell in content["cells"] if cell["refuted"])
        relations = dict.fromkeys(cell["relation"] for cell in content["cells"] if cell["refuted"])
        failed = f", audit failed {content['problem']}" if content["problem"] else ""
        found = f", refuted at epsilon {', '.join(refuted)} under {' and '.join(relations)}" if refuted else ""
        return found + failed
    means = content["summary"]["accuracy"]["mean"]
    return f", accuracy {min(means):.3f}" + (f" to {max(means):.3f}" if len(means) > 1 else "")


def from_cache(logs: Iterable[str]) -> str:
    """Say so if a job took its outputs from the cache: `FinishedJob.restore` then prints the first line of its log."""
    with contextlib.suppress(OSError):
        for log in logs:
            with open(log, "rb") as stream:
                if stream.readline().startswith(b"taken from .cache/jobs/"):
                    return ", taken from .cache/jobs"
    return ""


class LogHandler(LogHandlerBase):
    """Print a line per finished job, and warnings, errors and dry runs."""

    writes_to_stream = True
    writes_to_file = False
    # Snakemake adds its filter, which obeys --quiet, and its formatter.
    has_filter = False
    has_formatter = False
    needs_rulegraph = False

    def __post_init__(self) -> None:
        self.total = self.done = 0
        self.started = time.time()
        self.waiting: Counter[str] = Counter()
        self.running: dict[int, tuple[str, str, float]] = {}
        self.records: dict[int, str] = {}
        self.logs: dict[int, list[str]] = {}
        self.seconds: defaultdict[str, list[float]] = defaultdict(list)
        self.is_interrupted = self.said_so = False
        # Not where the signal is ignored, as in background jobs of a shell.
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, self.interrupt)

    def interrupt(self, *_: object) -> None:
        """Note that the user pressed Ctrl-C, which ends the jobs too."""
        self.is_interrupted = True
        raise KeyboardInterrupt

    def emit(self, record: logging.LogRecord) -> None:
        """Print the text of a record, if it has one."""
        try:
            text = self.describe(record)
            if text:
                stream = sys.stdout if self.common_settings.stdout else sys.stderr
                is_red = record.levelno >= logging.ERROR and stream.isatty() and not self.common_settings.nocolor
                print(f"\033[31m{text}\033[0m" if is_red else text, file=stream, flush=True)
        except BrokenPipeError:
            # The reader of the output, such as `head`, has closed the pipe.
            pass
        except Exception:
            self.handleError(record)

    def describe(self, record: logging.LogRecord) -> str:
        """Return the text of a record; empty for hidden ones."""
        if self.common_settings.dryrun:
            return self.snakemake_text(record)
        event, fields, text = getattr(record, "event", None), vars(record), ""
        match event:
            case LogEvent.RUN_INFO:
                self.waiting = Counter(fields["stats"])
                self.total, self.started = self.waiting.pop("total"), time.time()
                text = f"jobs to run: {self.total}; each has a log in logs/"
            case LogEvent.JOB_INFO:
                wildcards = {**(fields["wildcards"] or {}), "folder": ""}
                title = " ".join(filter(None, [fields["rule_name"], *wildcards.values()]))
                self.running[fields["jobid"]] = fields["rule_name"], title, time.time()
                self.logs[fields["jobid"]] = list(fields.get("log") or ())
                # Accuracies on private data are shown to nobody. Their folder may have a prefix.
                if fields["rule_name"] in ("evaluate", "audit") and not fields["wildcards"].get("folder"):
                    (self.records[fields["jobid"]],) = fields["output"]
                text = fields["rule_msg"] or ""
            case LogEvent.JOB_FINISHED:
                text = self.finish(fields["job_id"])
            case LogEvent.JOB_ERROR:
                self.running.pop(fields["jobid"], None)
            case None if self.done == self.total:
                # Before the first job and after the last one.
                text = self.snakemake_text(record)
        if event in (LogEvent.JOB_INFO, LogEvent.JOB_FINISHED, LogEvent.JOB_ERROR):
            self.write_status()
        if self.is_interrupted and record.levelno >= logging.ERROR and not self.common_settings.verbose:
            text, self.said_so = "" if self.said_so else "interrupted; run the same command to continue", True
            return text
        return self.snakemake_text(record) if self.common_settings.verbose or record.levelno > logging.INFO else text

    def snakemake_text(self, record: logging.LogRecord) -> str:
        """Return Snakemake's text of a record; empty if it has none."""
        text = self.format(record)
        return "" if text == "None" else text

    def finish(self, number: int) -> str:
        """Count a finished job and return its line."""
        self.done += 1
        if number not in self.running:
            # `--quiet rules` hides the start of jobs.
            return ""
        rule, title, started = self.running.pop(number)
        self.waiting[rule] -= 1
        self.seconds[rule].append(time.time() - started)
        width, left = len(str(self.total)), describe_left(self.time_left())
        times = f"{self.seconds[rule][-1]:7.1f} s   {clock(time.time() - self.started)} so far"
        result = describe_findings(self.records.pop(number)) if number in self.records else ""
        result += from_cache(self.logs.pop(number))
        return f"{self.done:{width}}/{self.total}  {title:<46} {times}{left}{result}"

    def time_left(self) -> tuple[float, float] | None:
        """Bound the remaining seconds, by the faster and slower half of each rule's jobs, and by parallelism."""
        finished = [second for seconds in self.seconds.values() for second in seconds]
        elapsed = time.time() - self.started
        if len(finished) < FIRST_ESTIMATE or not elapsed:
            return None
        low = high = 0.0
        for rule, count in self.waiting.items():
            known = sorted(self.seconds[rule] or finished)
            half = (len(known) + 1) // 2
            low, high = low + count * fmean(known[:half]), high + count * fmean(known[-half:])
        parallel = max(1.0, sum(finished) / elapsed)
        return low / parallel, high / parallel

    def write_status(self) -> None:
        """Write the state of the run for stages/status.py."""
        running = [
            {"title": title, "since": since, "log": (self.logs.get(number) or [""])[0]}
            for number, (_, title, since) in self.running.items()
        ]
        counts = {"done": self.done, "total": self.total, "left": self.time_left(), "at": time.time()}
        status = json.dumps({"pid": os.getpid(), **counts, "running": running})
        # Jobs report a full disk.
        with contextlib.suppress(OSError):
            STATUS_FILE.parent.mkdir(exist_ok=True)
            temporary = STATUS_FILE.with_suffix(".part")
            try:
                temporary.write_text(status, encoding="utf-8")
                temporary.replace(STATUS_FILE)
            finally:
                temporary.unlink(missing_ok=True)
