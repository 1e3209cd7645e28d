"""Real servers for the tests: on this machine only, and ended with all their workers."""

import contextlib
import os
import signal
import socket
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import requests
from tests.waits import PATIENCE, wait_until


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def running_server(
    command: Sequence[str], port: int, log: Path, environment: Mapping[str, str] | None = None
) -> Iterator[str]:
    """Run a command in the folder of its log until MLflow answers on the port; yields its address."""
    address = f"http://127.0.0.1:{port}"
    with log.open("w") as output:
        process = subprocess.Popen(
            command, cwd=log.parent, stdout=output, stderr=subprocess.STDOUT, env=environment, start_new_session=True
        )

    def answers() -> bool:
        assert process.poll() is None, log.read_text()
        with contextlib.suppress(requests.RequestException):
            return requests.get(f"{address}/health", timeout=PATIENCE).ok
        return False

    try:
        wait_until(answers, log.read_text, pause=0.3)
        yield address
    finally:
        # The server starts workers: end the whole group, which holds nothing else.
        for number in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=PATIENCE)
