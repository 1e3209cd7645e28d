"""Processes of their own, and the peak memory of a fit in one."""

import multiprocessing
import subprocess
import sys
from collections.abc import Callable, Iterable
from typing import Any

from tests.scripts import REPOSITORY


def exit_codes(function: Callable[..., Any], calls: Iterable[tuple[Any, ...]], method: str = "fork") -> list[int]:
    """Run a function at once in a process for each tuple of arguments; return how each process ended."""
    context = multiprocessing.get_context(method)
    processes = [context.Process(target=function, args=arguments) for arguments in calls]  # type: ignore[attr-defined]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    return [process.exitcode for process in processes]


def run_python(*arguments: Any, **options: Any) -> str:
    """Run Python with these arguments to its end; return what it prints."""
    done = subprocess.run([sys.executable, *map(str, arguments)], capture_output=True, text=True, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return str(done.stdout)


def run_stage(script: str, *arguments: Any, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a script of a stage as a job does, whatever its end."""
    command = [sys.executable, f"{REPOSITORY}/stages/{script}", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


def refused_by_stage(script: str, *arguments: Any, **options: Any) -> str:
    """Return the one line with which a script of a stage ends."""
    done = run_stage(script, *arguments, **options)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1), done.stderr
    return done.stderr


HEADER = """
import resource, sys
import numpy as np
import privsvm
data = np.load(sys.argv[1])
X, y = data["X"], data["y"]
def fit(model):
    model.fit(X[:100], np.arange(100) % 2)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    model.fit(X, y)
    print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)
"""


def fit_megabytes(model, rows):
    """Measure the megabytes that fitting a model (source code) adds."""
    return float(run_python("-c", f"{HEADER}fit(privsvm.{model})", rows))
