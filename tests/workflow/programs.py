"""Snakemake, DVC and scripts as forks of a process that has imported already what they import.

Their imports take longer than what most tests make them do. Everything else is as at a start of its own: arguments,
folder, environment, search path, output, exit code. Nothing of this repository is imported before the fork.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib
import json
import os
import runpy
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NoReturn

SCRIPTS = Path(sys.executable).parent
MAIN = {"snakemake": "snakemake.cli", "dvc": "dvc.cli"}

# With what they would import once they know what to do.
IMPORTED_BEFORE = (
    *MAIN.values(), "snakemake.executors.dryrun", "snakemake.executors.local", "dvc.cli.parser", "dvc.repo",
    "dvc.repo.fetch", "dvc.repo.index", "dvc.stage.cache", "networkx", "pandas", "pydantic", "ruamel.yaml",
    "scmrepo.git",
)  # fmt: skip


def can_run(command: Sequence[str]) -> bool:
    """Whether a command is one of the programs, or Python with the file of a script."""
    return command[0] in MAIN or (command[0] == sys.executable and command[1].endswith(".py"))


def become(command: list[str], folder: str, environment: dict[str, str], output: str) -> NoReturn:
    """Turn this process into one that was started by a command in a folder."""
    os.setsid()
    for number, (name, flags) in enumerate(
        [(os.devnull, os.O_RDONLY), (output, os.O_WRONLY | os.O_APPEND), (output, os.O_WRONLY | os.O_APPEND)]
    ):
        os.dup2(os.open(name, flags), number)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.dont_write_bytecode = bool(environment.get("PYTHONDONTWRITEBYTECODE"))
    file = Path(command[1]).absolute() if command[0] == sys.executable else SCRIPTS / command[0]
    added = [place for place in environment.get("PYTHONPATH", "").split(os.pathsep) if place]
    sys.path[:0] = [str(file.parent), *added]
    code = 1
    try:
        if command[0] in MAIN:
            sys.argv = [str(file), *command[1:]]
            code = sys.modules[MAIN[command[0]]].main() or 0
        else:
            sys.argv = command[1:]
            runpy.run_path(command[1], run_name="__main__")
            code = 0
    except SystemExit as error:
        if isinstance(error.code, str):
            print(error.code, file=sys.stderr)
        else:
            code = error.code or 0
    except BaseException:
        traceback.print_exc()
    finally:
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def serve() -> None:
    """Fork once for each line of JSON; answer with the number of the process, then with its exit code."""
    for name in IMPORTED_BEFORE:
        importlib.import_module(name)
    for line in sys.stdin:
        process = os.fork()
        if not process:
            become(**json.loads(line))
        print(process, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), flush=True)


@cache
def server() -> subprocess.Popen:
    """Start the process to fork from, one for each worker; it ends with it."""
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "DVC_STAGE")}
    return subprocess.Popen(
        [sys.executable, "-P", __file__], env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )


def call(command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> tuple[int, str]:
    """Run a command to its end; return its exit code and what it printed."""
    pipes = server()
    assert pipes.stdin
    assert pipes.stdout
    with tempfile.NamedTemporaryFile("r") as output:
        order = {
            "command": list(command), "folder": str(folder), "environment": dict(environment), "output": output.name,
        }  # fmt: skip
        pipes.stdin.write(json.dumps(order) + "\n")
        pipes.stdin.flush()
        process = int(pipes.stdout.readline())
        try:
            code = int(pipes.stdout.readline())
        except BaseException:
            # The test's time is over.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process, signal.SIGKILL)
            server.cache_clear()
            raise
        return code, output.read()


if __name__ == "__main__":
    serve()
