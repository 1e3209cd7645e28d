"""Fixtures that several tests read and none changes, made once for all workers."""

import os
from collections.abc import Callable
from pathlib import Path

import filelock
import pytest


def make_once(tmp_path_factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """Return a folder that the first worker fills while the others wait."""
    base = tmp_path_factory.getbasetemp()
    # Workers of one run have separate folders below a common one.
    shared = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / name
    shared.mkdir(exist_ok=True)
    with filelock.FileLock(shared / "lock"):
        if not (shared / "done").exists():
            make(shared / "finished")
            (shared / "done").touch()
    return shared / "finished"
