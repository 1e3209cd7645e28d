"""What several tests need and none of them changes is made once, by the first of all workers."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import filelock
import pytest


def made_once(tmp_path_factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """A folder that the first of all workers fills, and the others wait for."""
    base = tmp_path_factory.getbasetemp()
    # The workers of one run have folders of their own below a common one.
    shared = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / name
    shared.mkdir(exist_ok=True)
    with filelock.FileLock(shared / "lock"):
        if not (shared / "done").exists():
            make(shared / "finished")
            (shared / "done").touch()
    return shared / "finished"
