"""What several tests need and none of them changes is made once, by the first of all workers."""

from __future__ import annotations

import contextlib
import os
import shutil
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


def take_imports(root: Path) -> None:
    """Let a copy of the sources know what each file imports, by the file's digest: only changed files are parsed."""
    kept = Path(__file__).resolve().parents[1] / ".cache" / "imports"
    (root / ".cache").mkdir(exist_ok=True)
    # Not there before somebody has asked; it is written again all the time.
    with contextlib.suppress(FileNotFoundError):
        shutil.copy(kept, root / ".cache")
