"""Show the progress of the running benchmark."""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path

from privsvm.errors import printable
from privsvm_bench.workflow.stage import run
from snakemake_logger_plugin_privsvm import STATUS_FILE, clock, describe_left


def is_alive(pid: int) -> bool:
    """Say whether a process runs on this machine."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def last_line(log: str) -> str:
    """Return the last line of a job's log, which says how far it is; empty without one."""
    lines = Path(log).read_text(encoding="utf-8", errors="replace").splitlines() if Path(log).is_file() else []
    return f" ({printable(lines[-1])})" if lines else ""


def status_lines() -> list[str]:
    """Describe the run in this folder from its status file."""
    if not STATUS_FILE.exists():
        return ["no run has been started here; run `make run`"]
    status = json.loads(STATUS_FILE.read_text(encoding="utf-8"))
    counts = f"{status['done']} of {status['total']} jobs done"
    if not is_alive(status["pid"]):
        remedy = "; run `make run` again to continue it" if status["done"] < status["total"] else ""
        return [f"no run is under way; the last one ended with {counts}{remedy}"]
    running = [
        f"  {job['title']}: {clock(time.time() - job['since'])}{last_line(job['log'])}" for job in status["running"]
    ]
    # The estimate is of the last start or end of a job.
    left = [seconds - (time.time() - status["at"]) for seconds in status["left"] or ()]
    return [counts + describe_left(left), *running]


def main(arguments: list[str] | None = None) -> None:
    """Print the lines."""
    argparse.ArgumentParser(description=__doc__).parse_args(arguments)
    print(*status_lines(), sep="\n")


if __name__ == "__main__":
    run(main)
