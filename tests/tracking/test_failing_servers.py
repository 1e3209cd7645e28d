"""A tracking server that fails: bounded attempts, one line without the password, and nothing else is lost."""

import contextlib
import http.server
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from servers import free_port
from tests import refusals
from tests.local_server import local_server
from tests.waits import wait_until

from privsvm.errors import PrivSVMError, without_passwords
from privsvm.plain_yaml import read_yaml
from privsvm_bench.jobs.params import check_params
from privsvm_bench.tracking import store
from privsvm_bench.tracking.mlflow_log import log_results
from privsvm_bench.workflow.graph import track_parameters


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Start a server that answers with a status, or never; gives its address and the list of requests."""
    monkeypatch.setenv("NO_PROXY", "*")
    for name in store._REQUESTS:
        # Put back after the test.
        monkeypatch.setenv(name, "5" if name.endswith("TIMEOUT") else "2" if name.endswith("RETRIES") else "0")
    closed = threading.Event()
    with contextlib.ExitStack() as servers:

        def start(status: int | None) -> tuple[str, list[str]]:
            requests: list[str] = []

            def answer(request: http.server.BaseHTTPRequestHandler) -> None:
                requests.append(request.path)
                if status is None:
                    closed.wait()
                    return
                request.send_response(status)
                request.send_header("Content-Length", "0")
                request.end_headers()

            return f"http://user:s3cret@{servers.enter_context(local_server(answer))}", requests

        yield start
        closed.set()


def refusal(address: str, results: Any) -> str:
    message = refusals.refusal(log_results, results, address, "commit")
    assert "results and reports stand" in message
    assert "make run" in message
    assert "s3cret" not in message
    assert "user" not in message
    return message


def test_a_server_that_fails_is_asked_three_times(failing: Any, wine_results: Any) -> None:
    for status in (500, 503, None):
        address, requests = failing(status)
        refusal(address, wine_results)
        wait_until(lambda requests=requests: len(requests) >= 3)
        assert len(requests) == 3
    assert "127.0.0.1" in refusal(f"http://user:s3cret@127.0.0.1:{free_port()}", wine_results)


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
    params, key_lines = read_yaml("params.yaml")
    params["mlflow"]["tracking_uri"] = "postgresql://me:s3cret@host/db"
    assert "s3cret" not in track_parameters(check_params(params))
    params["mlflow"]["tracking_uri"] = "ftp://me:s3cret@host/db"
    for message, words in (
        (refusals.refusal(check_params, params, positions=key_lines), "is not valid"),
        (refusals.refusal(store.sqlite_path, "ftp://me:s3cret@host/db"), "cannot hold runs"),
    ):
        assert words in message
        assert "s3cret" not in message


@pytest.mark.parametrize("put", [Path.mkdir, os.mkfifo])
def test_a_database_that_is_no_file_is_refused_at_once(put, tmp_path) -> None:
    put(tmp_path / "x.db")
    with pytest.raises(PrivSVMError, match="is no file; use sqlite"), store.open_store(f"sqlite:///{tmp_path}/x.db"):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["x.db"]


@pytest.mark.parametrize("address", ["sqlite+pysqlcipher:///x.db", "postgresql+pg8000://h/x"])
def test_a_database_without_its_driver_is_one_line(address, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(PrivSVMError, match="MLflow cannot use this store") as caught, store.open_store(address):
        pass
    assert "\n" not in str(caught.value)
