"""Cache of the outputs of finished jobs, keyed by code, parameters and inputs.

`dvc repro` removes all outputs of a stage before it runs the stage. A job equal to a finished one takes its outputs
from ``.cache/jobs``, so that one changed parameter retrains one method.
"""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from privsvm.digests import sha256_of_file, sha256_of_json
from privsvm.files import atomic_path

__all__ = ["FinishedJob"]

_FOLDER = Path(".cache/jobs")
# Packages whose version may change what a job computes.
_PACKAGES = ("numba", "numpy", "scikit-learn", "scipy")


class FinishedJob:
    """Cached outputs of one job.

    Parameters
    ----------
    code : str
        Digest of the code that the job runs. Empty: nothing is kept.
    parameters : mapping
        All parameters of the job.
    inputs, outputs : sequence of path-like
        Files that it reads and writes.
    """

    def __init__(
        self,
        code: str,
        parameters: Mapping[str, Any],
        inputs: Sequence[str | os.PathLike[str]],
        outputs: Sequence[str | os.PathLike[str]],
    ) -> None:
        self.outputs = [Path(name) for name in outputs]
        made_from = {
            "code": code,
            "parameters": parameters,
            "inputs": [sha256_of_file(name) for name in inputs],
            "outputs": [path.name for path in self.outputs],
            "packages": [importlib.metadata.version(name) for name in _PACKAGES],
        }
        key = sha256_of_json(made_from)
        self.folder = _FOLDER / key if code else None

    def restore(self) -> bool:
        """Copy the outputs from the cache; return whether it has them."""
        if self.folder is None or not self.folder.is_dir():
            return False
        for number, path in enumerate(self.outputs):
            with atomic_path(path) as temporary:
                shutil.copyfile(self.folder / str(number), temporary)
        print(f"taken from {self.folder}: a job with the same code, parameters and inputs made them")
        return True

    def keep(self) -> None:
        """Copy the outputs into the cache."""
        if self.folder is None:
            return
        _FOLDER.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=_FOLDER, prefix=".job.", suffix=".part") as temporary:
            for number, path in enumerate(self.outputs):
                with atomic_path(Path(temporary) / "job" / str(number)) as copy:
                    shutil.copyfile(path, copy)
            try:
                os.rename(Path(temporary) / "job", self.folder)
            except OSError:
                # Race: another process may have cached the same outputs.
                if not self.folder.is_dir():
                    raise
