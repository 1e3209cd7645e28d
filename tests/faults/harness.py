"""Faults for code that writes files: a full disk, failing writes, `kill -9` at every call, misbehaving servers.

Work runs in a fork, so that a fault cannot harm the tests. A full disk is a limit on the size of files.
"""

import contextlib
import io
import os
import resource
import signal
import socketserver
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
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
    def was_killed(self) -> bool:
        return self.code == -signal.SIGKILL


def _count_calls(names: tuple[str, ...], fault: Callable[[int], None]) -> list[int]:
    """Call a fault with the number of every system call; count these."""
    count = [0]

    def writes(real: Callable[..., Any], arguments: tuple[Any, ...], options: dict[str, Any]) -> bool:
        given = arguments[1] if len(arguments) > 1 else options.get("mode", "r")
        if real is low_open:
            return bool(int(given) & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))
        return real is not high_open or bool(set(given) & set("wax+"))

    def wrap(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            # Reads change nothing.
            if writes(real, arguments, options):
                count[0] += 1
                fault(count[0])
            return real(*arguments, **options)

        return call

    low_open, high_open = os.open, io.open
    opened = wrap(io.open)
    for module in (io, __import__("builtins")):
        module.open = opened
    for name in names:
        setattr(os, name, wrap(getattr(os, name)))
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

    return lambda: _count_calls(CALLS, fault)


def kill_at(number: int) -> Callable[[], list[int]]:
    """Kill the process at one call."""

    def fault(call: int) -> None:
        if call == number:
            os.kill(os.getpid(), signal.SIGKILL)

    return lambda: _count_calls(LAST_CALLS, fault)


def growing_to(size: int) -> Callable[[], list[int]]:
    """Let no file grow beyond so many bytes."""

    def limit() -> list[int]:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
        return [0]

    return limit


def _answer(head: str, body: bytes = b"", length: int | None = None) -> bytes:
    """Return the bytes of an answer by HTTP, which states the length of its body by default."""
    return f"HTTP/1.1 {head}\r\nContent-Length: {len(body) if length is None else length}\r\n\r\n".encode() + body


class BadServer:
    """A server on this machine with one bad habit.

    Habits: ``error`` (500 for ever), ``missing`` (404), ``hang`` (no answer), ``cut`` (never to the end), ``page`` (a
    page of HTML instead), ``wrong`` (other bytes), ``empty``, ``endless``, ``loop`` (redirects to itself).
    """

    def __init__(self, habit: str, content: bytes) -> None:
        self.requests = 0
        answers = {
            "error": _answer("500 Error"), "missing": _answer("404 Missing"), "empty": _answer("200 OK"), "hang": b"",
            "cut": _answer("200 OK", content[: len(content) // 3], len(content)),
            "page": _answer("200 OK", b"<!doctype html><p>we moved"), "wrong": _answer("200 OK", content[::-1]),
            "endless": b"HTTP/1.0 200 OK\r\n\r\n" + bytes(1 << 26), "loop": _answer("302 Found\r\nLocation: /a"),
        }  # fmt: skip
        state = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                with contextlib.suppress(OSError):
                    # Lines of the request, up to an empty one.
                    while self.rfile.readline().strip():
                        pass
                    state.requests += 1
                    # Longer than a client of the tests waits; later it closes.
                    time.sleep(3.0 if habit == "hang" else 0.0)
                    self.wfile.write(answers[habit])

        class Server(socketserver.ThreadingTCPServer):
            daemon_threads = True

        self.listener = Server(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.listener.server_address[1]}"
        threading.Thread(target=self.listener.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def close(self) -> None:
        self.listener.shutdown()
        self.listener.server_close()
