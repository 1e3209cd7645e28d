"""A tracking server that fails: bounded attempts, one line without the password, and nothing else is lost."""

from __future__ import annotations

import contextlib
import http.server
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from privsvm.errors import PrivSVMError, without_passwords
from privsvm.pipeline.graph import track_parameters
from privsvm.pipeline.params import check_params
from privsvm.plain_yaml import read_yaml
from privsvm.tracking import store
from privsvm.tracking.mlflow_log import log_results


class Failing:
    """A server whose health is as told, and whose other answers never help."""

    def __init__(self, health: int | str, answer: int | str | None) -> None:
        self.requests: list[str] = []
        self.closing = threading.Event()
        state = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def handle_any(self) -> None:
                state.requests.append(self.path)
                status = health if self.path == "/health" else answer
                if status is None:
                    # It hangs until the client gives up.
                    time.sleep(1.5)
                    return
                if status == "drip":
                    # Never silent for as long as the limits of a request are, and never at an end.
                    with contextlib.suppress(OSError):
                        self.wfile.write(b"HTTP/1.1 200 OK\r\nX-Drip: ")
                        while not state.closing.wait(0.05):
                            self.wfile.write(b"x")
                    return
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            do_GET = do_POST = handle_any  # noqa: N815 - the names of the standard library

            def log_message(self, format: str, *args: object) -> None:
                pass

        self.listener = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.listener.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self.thread.start()

    @property
    def address(self) -> str:
        return f"http://user:s3cret@127.0.0.1:{self.listener.server_port}"


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setenv("NO_PROXY", "*")
    for name in store._REQUESTS:
        # Put back after the test.
        monkeypatch.setenv(name, "1" if name.endswith("TIMEOUT") else "2" if name.endswith("RETRIES") else "0")
    servers: list[Failing] = []

    def start(health: int | str, answer: int | str | None) -> Failing:
        servers.append(Failing(health, answer))
        return servers[-1]

    yield start
    for server in servers:
        server.closing.set()
        server.listener.shutdown()
        server.listener.server_close()
        server.thread.join()


@pytest.mark.parametrize(("health", "answer"), [(500, 500), (503, None), (200, 500), (200, None)])
def test_a_server_that_fails(failing: Any, wine_results: Any, health: int, answer: int | None) -> None:
    server = failing(health, answer)
    with pytest.raises(PrivSVMError) as caught:
        log_results(wine_results, server.address, "commit")
    message = str(caught.value)
    assert "\n" not in message
    assert "make track" in message
    assert "results and reports stand" in message
    assert "s3cret" not in message
    assert "user" not in message
    # The first request that fails, and two more attempts, are the last.
    assert len(server.requests) <= 1 + 3


@pytest.mark.parametrize(("health", "answer"), [("drip", 200), (200, "drip")])
def test_a_server_that_drips(failing: Any, wine_results: Any, monkeypatch: Any, health: Any, answer: Any) -> None:
    """No limit on a request is reached; one on the whole is."""
    monkeypatch.setattr(store, "_STANDSTILL_SECONDS", 0.5)
    server = failing(health, answer)
    with pytest.raises(
        PrivSVMError, match=r"too slow \(no run in 0\.5 s\).*results and reports stand.*make track"
    ) as caught:
        log_results(wine_results, server.address, "commit")
    assert "\n" not in str(caught.value)
    assert "s3cret" not in str(caught.value)
    assert len(server.requests) <= 2


def test_attempts_are_bounded_by_default() -> None:
    values = {name: float(value) for name, value in store._REQUESTS.items()}
    seconds = values["MLFLOW_HTTP_REQUEST_TIMEOUT"] * (values["MLFLOW_HTTP_REQUEST_MAX_RETRIES"] + 1)
    assert seconds + store._SERVER_TIMEOUT_SECONDS <= 60
    assert store._STANDSTILL_SECONDS <= 60


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("postgresql://me:p@ss/w0rd@host/db", "postgresql://host/db"),
        ("http://u:p@h:5000/x and https://token@h", "http://h:5000/x and https://h"),
        ("sqlite:///mlflow.db", "sqlite:///mlflow.db"),
        ("http://127.0.0.1:5000 for a@b.example", "http://127.0.0.1:5000 for a@b.example"),
    ],
)
def test_passwords_are_left_out(text: str, shown: str) -> None:
    assert without_passwords(text) == shown


def test_neither_commands_nor_messages_hold_a_password() -> None:
    params, places = read_yaml("params.yaml")
    params["mlflow"]["tracking_uri"] = "postgresql://me:s3cret@host/db"
    assert "s3cret" not in track_parameters(check_params(params))
    params["mlflow"]["tracking_uri"] = "ftp://me:s3cret@host/db"
    with pytest.raises(PrivSVMError, match="is not valid") as caught:
        check_params(params, places=places)
    assert "s3cret" not in str(caught.value)
    with pytest.raises(PrivSVMError, match="cannot hold runs") as caught:
        store.sqlite_path("ftp://me:s3cret@host/db")
    assert "s3cret" not in str(caught.value)
