"""Environments of libraries whose requirements conflict with ours, built from their locks on first use, and workers."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import select
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
_FOLDERS = (HERE / "utility" / "peers", HERE / "audit" / "peers")
LOCKS = {lock.stem: lock for folder in _FOLDERS for lock in folder.glob("*.lock")}
# The uv of this environment, which is not always on the PATH.
UV = [sys.executable, "-m", "uv"]


def peer_python(name: str, lock: Path | None = None) -> Path:
    """Return the Python of the environment of a peer, or of another lock, built on first use.

    ``PRIVSVM_PEERS`` names the folder of the environments, by default ``.cache/peers``.
    """
    folder = Path(os.environ.get("PRIVSVM_PEERS", HERE.parent / ".cache" / "peers")) / name
    python = folder / "bin" / "python"
    if not python.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run([*UV, "venv", "--quiet", "--python", sys.executable, folder], check=True)
        install = [*UV, "pip", "install", "--quiet", "--no-deps", "--python", python, "--require-hashes", "-r"]
        try:
            subprocess.run([*install, lock or LOCKS[name]], check=True)
        except BaseException:
            # Half of an environment would be taken for a whole one.
            shutil.rmtree(folder)
            raise
    return python


def single_threaded(*without: str) -> dict[str, str]:
    """Return this environment with one thread for BLAS and OpenMP, and without some variables."""
    kept = {name: value for name, value in os.environ.items() if name not in without}
    return kept | dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


@functools.cache
def peer_version(python: Path, package: str) -> str:
    """Return the version of a package in the environment of a Python."""
    code = f"import importlib.metadata; print(importlib.metadata.version({package!r}))"
    return subprocess.run([python, "-c", code], check=True, capture_output=True, text=True).stdout.strip()


class LineWorker:
    """A process that answers lines of JSON on one thread, and is started again after its end."""

    def __init__(self, command: Sequence[str | Path], environment: dict[str, str], *, quiet: bool = False) -> None:
        self._command, self._environment = command, environment
        self._errors = subprocess.DEVNULL if quiet else None
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> bool:
        """Start the process unless it runs; return whether it was started."""
        if self._process is not None and self._process.poll() is None:
            return False
        pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": self._errors}
        # A group of its own ends with its children.
        self._process = subprocess.Popen(self._command, text=True, env=self._environment, process_group=0, **pipes)
        return True

    @property
    def process(self) -> subprocess.Popen[str]:
        """The last process that was started."""
        assert self._process is not None
        return self._process

    def ask(self, message: dict[str, Any] | None) -> None:
        """Send a message."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()

    def answer(self, seconds: float | None = None) -> dict[str, Any] | None:
        """Wait for an answer; empty if the process ended, None after so many seconds."""
        assert self.process.stdout is not None
        if not select.select([self.process.stdout], [], [], seconds)[0]:
            return None
        line = self.process.stdout.readline()
        return json.loads(line) if line else {}

    def run_task(self, task: dict[str, Any], minutes: float) -> dict[str, Any] | None:
        """Run a task; return its answer, or None and end the process if there is none in time."""
        self.start()
        self.ask(task)
        answer = self.answer(60 * minutes)
        if not answer:
            self.end()
        return answer or None

    def end(self) -> None:
        """End the process and its children."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
