"""Cache of the outputs of finished jobs, keyed by code, parameters and inputs.

`dvc repro` removes all outputs of a stage before it runs the stage. A job equal to a finished one takes its outputs
from ``.cache/jobs``, so that one changed parameter retrains one method. Every entry holds the digests of its files.
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
from privsvm.errors import PrivSVMError
from privsvm.files import atomic_path, read_json, write_json

_FOLDER = Path(".cache/jobs")
_RECORD = "record.json"
# Packages whose version may change the results of a job.
_PACKAGES = ("numba", "numpy", "scikit-learn", "scipy")


class FinishedJob:
    """Cached outputs of one job, found by its code, its parameters and the content of its inputs.

    `code` is the digest of the code that the job runs; if empty, nothing is kept.
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
        """Copy the outputs from the cache; return whether it has them. A damaged entry is removed."""
        if self.folder is None or not self.folder.is_dir():
            return False
        if not self._is_intact(self.folder):
            print(f"{self.folder}: damaged or incomplete; the job runs")
            shutil.rmtree(self.folder, ignore_errors=True)
            return False
        try:
            for number, path in enumerate(self.outputs):
                with atomic_path(path) as temporary:
                    shutil.copyfile(self.folder / str(number), temporary)
        except FileNotFoundError:
            # Another process has removed the entry.
            return False
        print(f"taken from {self.folder}: a job with the same code, parameters and inputs made them")
        return True

    def keep(self) -> None:
        """Copy the outputs into the cache, if possible; a job needs no cache."""
        if self.folder is None:
            return
        try:
            _FOLDER.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=_FOLDER, prefix=".job.", suffix=".part") as temporary:
                for number, path in enumerate(self.outputs):
                    with atomic_path(Path(temporary) / "job" / str(number)) as copy:
                        shutil.copyfile(path, copy)
                write_json(Path(temporary) / "job" / _RECORD, _record(self.folder, self.outputs))
                os.rename(Path(temporary) / "job", self.folder)
        except OSError as error:
            # Race: another process may have cached the same outputs.
            if not os.path.lexists(self.folder):
                print(f"{self.folder}: not kept ({error.strerror}); an equal job would run again")

    def _is_intact(self, folder: Path) -> bool:
        """Tell whether an entry holds this job's outputs as they were written, and no other file."""
        record, kept = folder / _RECORD, [folder / str(number) for number in range(len(self.outputs))]
        try:
            return (
                {*folder.iterdir()} == {record, *kept}
                and all(path.is_file() for path in (record, *kept))
                and read_json(record) == _record(folder, kept)
            )
        except (OSError, PrivSVMError):
            return False


def _record(folder: Path, outputs: Sequence[Path]) -> dict[str, Any]:
    """Name the job of an entry and the digests of its outputs."""
    return {"job": folder.name, "sha256": [sha256_of_file(path) for path in outputs]}
