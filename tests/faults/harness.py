"""Faults for code that writes files: a full disk, failing writes, `kill -9` at every call, misbehaving servers.

Work runs in a fork, so that a fault cannot harm the tests. A full disk is a small mounted file system in memory, or a
limit on the size of files.
"""

from __future__ import annotations

import contextlib
import http.server
import io
import os
import resource
import shutil
import signal
import subprocess
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from privsvm.errors import PrivSVMError

# Calls that change the disk.
CALLS = ("open", "write", "fsync", "replace", "rename", "mkdir", "chmod")
# Calls at which a process is killed.
LAST_CALLS = (*CALLS, "unlink", "fdopen", "ftruncate", "close")


@dataclass(frozen=True)
class Outcome:
    """End of a process under a fault: exit code, number of calls, message."""

    code: int
    calls: int
    message: str

    @property
    def killed(self) -> bool:
        return self.code == -signal.SIGKILL


def _counted(names: tuple[str, ...], fault: Callable[[int], None]) -> list[int]:
    """Call a fault with the number of every system call; count these."""
    count = [0]

    def writes(real: Callable[..., Any], arguments: tuple[Any, ...], options: dict[str, Any]) -> bool:
        given = arguments[1] if len(arguments) > 1 else options.get("mode", "r")
        if real is low_open:
            return bool(int(given) & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))
        return real is not high_open or bool(set(given) & set("wax+"))

    def wrapped(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            # Reads change nothing.
            if writes(real, arguments, options):
                count[0] += 1
                fault(count[0])
            return real(*arguments, **options)

        return call

    low_open, high_open = os.open, io.open
    opened = wrapped(io.open)
    for module in (io, __import__("builtins")):
        module.open = opened
    for name in names:
        setattr(os, name, wrapped(getattr(os, name)))
    return count


def in_fork(work: Callable[[], object], prepare: Callable[[], list[int]] = lambda: [0]) -> Outcome:
    """Do work in a fork; code 0: done, 1: stopped with one line, 2: other."""
    reader, writer = os.pipe()
    # Not with the faults of the work.
    write = os.write
    pid = os.fork()
    if not pid:
        code, message, count = 2, "", [0]
        try:
            count = prepare()
            work()
            code = 0
        except (PrivSVMError, OSError, MemoryError) as error:
            # `privsvm_bench.workflow.stage.run` turns these into one line.
            code, message = 1, f"{error}"
        except BaseException:
            message = traceback.format_exc()
        write(writer, f"{count[0]} {message}".encode())
        os._exit(code)
    os.close(writer)
    with os.fdopen(reader, "rb") as handle:
        report = handle.read().decode()
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    calls, _, message = report.partition(" ")
    return Outcome(code, int(calls or 0), message)


def failing_at(number: int, kind: int) -> Callable[[], list[int]]:
    """Let one call and all later ones fail: a full disk stays full."""

    def fault(call: int) -> None:
        if call >= number > 0:
            raise OSError(kind, os.strerror(kind))

    return lambda: _counted(CALLS, fault)


def killed_at(number: int) -> Callable[[], list[int]]:
    """Kill the process at one call."""

    def fault(call: int) -> None:
        if call == number:
            os.kill(os.getpid(), signal.SIGKILL)

    return lambda: _counted(LAST_CALLS, fault)


def growing_to(size: int) -> Callable[[], list[int]]:
    """Let no file grow beyond so many bytes."""

    def limit() -> list[int]:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
        return [0]

    return limit


@contextlib.contextmanager
def small_disk(folder: Path, size: int) -> Iterator[bool]:
    """Mount a small file system at a folder; yield whether that worked."""
    folder.mkdir(exist_ok=True)
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    may = os.getuid() == 0 and shutil.which("mount") is not None
    mounted = may and subprocess.run(command, capture_output=True, check=False).returncode == 0
    try:
        yield mounted
    finally:
        if mounted:
            subprocess.run(["umount", "--lazy", str(folder)], check=True)


class BadServer:
    """A server on this machine with one bad habit.

    Habits: ``error`` (500 for ever), ``missing`` (404), ``hang`` (no answer), ``cut`` (never to the end), ``page`` (a
    page of HTML instead), ``wrong`` (other bytes), ``empty``, ``endless``, ``loop`` (redirects to itself).
    """

    def __init__(self, habit: str, content: bytes) -> None:
        self.requests = 0
        state = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                state.requests += 1
                with contextlib.suppress(OSError):
                    getattr(self, habit)()

            def head(self, status: int, length: int | None, **more: str) -> None:
                self.send_response(status)
                for name, value in more.items():
                    self.send_header(name, value)
                if length is not None:
                    self.send_header("Content-Length", str(length))
                self.end_headers()

            def error(self) -> None:
                self.head(500, 0)

            def missing(self) -> None:
                self.head(404, 0)

            def hang(self) -> None:
                # Longer than a client of the tests waits; later it closes.
                time.sleep(3.0)

            def cut(self) -> None:
                self.head(200, len(content))
                self.wfile.write(content[: len(content) // 3])

            def page(self) -> None:
                text = b"<!doctype html><p>we moved"
                self.head(200, len(text))
                self.wfile.write(text)

            def wrong(self) -> None:
                self.head(200, len(content))
                self.wfile.write(content[::-1])

            def empty(self) -> None:
                self.head(200, 0)

            def endless(self) -> None:
                self.head(200, None)
                for _ in range(4000):
                    self.wfile.write(bytes(1 << 14))

            def loop(self) -> None:
                self.head(302, 0, Location=self.path)

            def log_message(self, format: str, *args: object) -> None:
                pass

        class Quiet(http.server.ThreadingHTTPServer):
            def handle_error(self, request: Any, address: Any) -> None:
                """Ignore clients that closed their connection."""

        self.listener = Quiet(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.listener.server_port}"
        threading.Thread(target=self.listener.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def close(self) -> None:
        self.listener.shutdown()
        self.listener.server_close()
