"""The commands of the page on changing the benchmark, one after the other, as they stand there."""

import os
import re
import signal
import time
import urllib.request

import pytest

from tests.blocks import blocks_run_by
from tests.browser import PATIENCE

pytestmark = pytest.mark.workflow

(BLOCK,) = blocks_run_by(__file__)


def shell(command):
    """Run a command of a page; `make` without its first step, which would build an environment."""
    program, *words = command.split()
    if program == "make":
        words.append("PREPARE=true")
    return program, *words


def serve(workspace, command):
    """Run a command that serves a page until it is stopped; return what the page answers."""
    process = workspace.start(*shell(command))
    try:
        address = next(filter(None, (re.search(r"http://127\.0\.0\.1:\d+", line) for line in process.stdout)))[0]
        # It listens some time after it has said where.
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


def test_the_commands_of_the_page(finished):
    finished.git("add", "--all")
    finished.git("commit", "--quiet", "--message", "results")
    finished.change("methods.pmsvm_wp.C", 0.02)
    printed = {}
    for command in BLOCK.commands:
        if command == "make ui":
            printed[command] = serve(finished, command)
        else:
            printed[command] = finished.call(*shell(command))
    assert "job-finished" not in printed["make sync"]
    # Snakemake ran what the change made stale, and DVC found that done.
    run, repro = (printed[name] for name in ("snakemake --cores 8", "dvc repro"))
    assert "up to date" in repro
    assert "pmsvm_wp" in run
    assert finished.params()["methods"]["pmsvm_wp"]["C"] == 0.1
    assert "pmsvm_wp.accuracy" in printed["dvc metrics diff"]
    assert "index.html" in printed["dvc plots diff"]
    assert (finished.folder / "dvc_plots/index.html").exists()
    assert printed["make ui"] == b"OK"
