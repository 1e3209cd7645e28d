"""Whether the outputs in the working copy are, byte for byte, those that dvc.lock records.

DVC looks at sizes and times first, and takes what its own database says of the rest. Here every file is read.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from privsvm.errors import PrivSVMError
from privsvm.pipeline.params import Params
from privsvm.plain_yaml import load_lock

__all__ = ["check_outputs"]

_REMEDY = "delete it and run `dvc checkout` or `make run`"


def _md5(path: Path) -> str:
    # DVC names contents by MD5, which finds accidents and not attacks.
    with open(path, "rb") as handle:
        return hashlib.file_digest(handle, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()


def _md5_of_folder(folder: Path) -> str:
    files = sorted((file.relative_to(folder).parts, file) for file in folder.rglob("*") if file.is_file())
    listing = [{"md5": _md5(file), "relpath": "/".join(parts)} for parts, file in files]
    text = json.dumps(listing, sort_keys=True)
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest() + ".dir"


def _outputs(lock: Mapping[str, Any], names: Mapping[str, set[str]]) -> Iterator[tuple[str, str]]:
    """List path and digest of the outputs of those stages that params.yaml has."""
    for stage, record in lock.get("stages", {}).items():
        group, _, name = stage.partition("@")
        if name in names.get(group, set()):
            for output in record.get("outs", ()):
                yield output["path"], output["md5"]


def check_outputs(
    params: Params, lock_file: str | os.PathLike[str] = "dvc.lock", top: str | os.PathLike[str] = "."
) -> int:
    """Compare every output with its digest in dvc.lock.

    Parameters
    ----------
    params : Params
        The benchmark's.
    lock_file : path-like
        dvc.lock.
    top : path-like
        The working copy.

    Returns
    -------
    int
        Number of outputs.

    Raises
    ------
    PrivSVMError
        If dvc.lock cannot be read or holds none, or an output is missing or differs.
    """
    try:
        lock = load_lock(Path(lock_file).read_text(encoding="utf-8"), str(lock_file))
        datasets, methods = set(params.datasets), set(params.methods)
        names = dict.fromkeys(("download", "prepare", "condense"), datasets)
        names |= {"train": methods} | {key: {""} for key in ("inputs", "jobs", "report")}
        outputs = list(_outputs(lock, names))
    except (OSError, UnicodeDecodeError, AttributeError, KeyError, TypeError):
        raise PrivSVMError(
            f"{lock_file}: cannot be read; restore it (git checkout {lock_file}) or run `make run`"
        ) from None
    if not outputs:
        raise PrivSVMError(f"{lock_file}: records no output of params.yaml; run `make run`")
    for path, digest in outputs:
        place = Path(top) / path
        if not place.exists():
            raise PrivSVMError(f"{path}: in {lock_file} but not here; run `dvc checkout` or `make run`")
        if (_md5_of_folder(place) if place.is_dir() else _md5(place)) != digest:
            raise PrivSVMError(f"{path}: not what {lock_file} records (its digest differs); {_REMEDY}")
    return len(outputs)
