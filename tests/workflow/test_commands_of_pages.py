"""Commands of the page on changing the benchmark, run in their order."""

import os
import re
import signal
import time
import urllib.request

import pytest

from tests.blocks import blocks_run_by
from tests.waits import PATIENCE

from .conftest import Workspace

pytestmark = pytest.mark.workflow

CHANGES, REMOVAL = blocks_run_by(__file__)


def serve(workspace: Workspace, command: str) -> bytes:
    """Run a command that serves a page; return the answer of the page."""
    process = workspace.start(*command.split())
    try:
        address = next(filter(None, (re.search(r"http://127\.0\.0\.1:\d+", line) for line in process.stdout)))[0]
        # The server prints its address before it listens.
        while process.poll() is None:
            try:
                with urllib.request.urlopen(f"{address}/health", timeout=PATIENCE) as answer:
                    return answer.read()
            except OSError:
                time.sleep(0.2)
        raise AssertionError(process.stdout.read())
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.communicate()


def run(workspace: Workspace, command: str) -> str:
    program, *arguments = command.split()
    return workspace.make(*arguments) if program == "make" else workspace.call("sh", "-c", command)


@pytest.mark.long
def test_commands_on_changes(finished):
    finished.commit("results")
    finished.change("methods.pmsvm_wp.C", 0.02)
    printed = {}
    for command in CHANGES.commands:
        # Recipe without its first step.
        printed[command] = serve(finished, "python stages/ui.py") if command == "make ui" else run(finished, command)
    # Snakemake ran the stale jobs, and left nothing to DVC.
    assert "pmsvm_wp" in printed["snakemake --cores 8"]
    assert "up to date" in printed["dvc repro"]
    assert finished.params()["methods"]["pmsvm_wp"]["C"] == 0.1
    assert "pmsvm_wp.accuracy" in printed["dvc metrics diff"]
    assert ".svm." not in printed["dvc metrics diff"]
    assert "index.html" in printed["dvc plots diff"]
    assert (finished.folder / "dvc_plots/index.html").exists()
    assert printed["make ui"] == b"OK"


@pytest.mark.long
def test_commands_that_remove_own_data(with_own_data):
    params = with_own_data.params()
    del params["datasets"]["patients"]
    with_own_data.write_params(params)
    for command in REMOVAL.commands:
        run(with_own_data, command)
    with_own_data.commit("without patients")
    assert not list((with_own_data.folder / "data").rglob("*patients*"))
    for name in (".cache", ".dvc", "data", "logs", "mlartifacts", "mlflow.db*", "reports"):
        paths = [path for top in with_own_data.folder.glob(name) for path in (top, *top.rglob("*"))]
        files = [path for path in paths if path.is_file()]
        assert not [path for path in files if b"patients" in path.read_bytes()], name
    assert with_own_data.nothing_to_do()
