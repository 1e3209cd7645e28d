"""Read and write the files between stages: atomically, in canonical form, without pickle."""

from __future__ import annotations

import contextlib
import glob
import json
import math
import os
import secrets
import threading
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from privsvm.digests import canonical_json
from privsvm.errors import PrivSVMError


@contextlib.contextmanager
def atomic_path(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Write a file completely or not at all.

    The body writes to a temporary name in the same folder, which is created if it is missing, with the suffix of
    `path`. On success that file is synced to disk and renamed to `path`. On failure it is removed, and a file at `path`
    stays as it was. Raises PrivSVMError for a device or a pipe, which would be gone for all programs.
    """
    target = Path(path)
    if target.exists() and not (target.is_file() or target.is_dir()):
        raise PrivSVMError(f"{target}: is a device or a pipe, which a file would replace; give another name")
    # A random part, because a process left over from a killed run may still be writing the same file.
    temporary = target.with_name(f".{target.stem}.{secrets.token_hex(4)}.part{target.suffix}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        with open(temporary, "rb") as handle:
            os.fsync(handle.fileno())
        os.replace(temporary, target)
        sync_folder(target.parent)
    finally:
        temporary.unlink(missing_ok=True)


def sync_folder(folder: Path) -> None:
    """Bring a folder's new names to the disk; on POSIX, where folders can be synced."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def remove_leftovers(path: str | os.PathLike[str]) -> None:
    """Remove what killed processes left of attempts to write a file; see `atomic_path`.

    For a file with a single writer.
    """
    target = Path(path)
    for leftover in target.parent.glob(f".{glob.escape(target.stem)}.*.part{glob.escape(target.suffix)}"):
        leftover.unlink(missing_ok=True)


def _number_or_infinity(value: Any) -> float:
    if value in ("inf", "-inf"):
        return float(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or math.isnan(value):
        raise ValueError(f"{value!r} is not valid; must be a number or 'inf'")
    return float(value)


class _TextInfinity:
    """Tells pydantic how to read what `canonical_json` made of an infinite number."""

    @staticmethod
    def __get_pydantic_core_schema__(source: Any, handler: Any) -> Any:
        # Imported by code that validates: code that only annotates does not wait for it.
        from pydantic_core import core_schema

        return core_schema.no_info_plain_validator_function(_number_or_infinity)


ExtendedFloat = Annotated[float, _TextInfinity()]
"""A number that may be infinite, which JSON files hold as the text ``"inf"`` or ``"-inf"``."""


def missing_file(path: str | os.PathLike[str]) -> PrivSVMError:
    """Build the error that names a missing file and how to make it."""
    return PrivSVMError(f"{path}: file not found; run `snakemake --cores 8` to make it")


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write text (UTF-8) atomically; see `atomic_path`."""
    with atomic_path(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(path: str | os.PathLike[str], value: Any, indent: int | None = 1) -> None:
    """Write canonical JSON atomically; see `canonical_json`."""
    write_text(path, canonical_json(value, indent=indent) + "\n")


def read_json(path: str | os.PathLike[str]) -> Any:
    """Read a JSON file.

    Raises PrivSVMError if the file is missing or is not JSON.
    """
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise missing_file(path) from None
    except (ValueError, RecursionError) as error:
        # Numbers of thousands of digits and deep nesting are JSON, but not of ours.
        raise PrivSVMError(f"{path}: not valid JSON ({error}); delete it and run again") from None


def write_npz(path: str | os.PathLike[str], arrays: Mapping[str, np.ndarray]) -> None:
    """Write arrays as an ``.npz`` atomically, the same bytes for the same arrays.

    Files are data, not code: raises PrivSVMError if an array holds Python objects.
    """
    checked = {name: np.asarray(array) for name, array in sorted(arrays.items())}
    for name, array in checked.items():
        if array.dtype.hasobject:
            raise PrivSVMError(f"{path}: array {name!r} holds Python objects; convert it to numbers or text")
    with atomic_path(path) as temporary, zipfile.ZipFile(temporary, "w") as archive:
        for name, array in checked.items():
            entry = zipfile.ZipInfo(f"{name}.npy")
            entry.compress_type = zipfile.ZIP_DEFLATED
            # Not as NumPy writes it: it asks for the format of large files always, which Pythons before 3.11.4 write in
            # other bytes. Told the size, the archive takes that format only where it must.
            entry.file_size = array.nbytes
            with archive.open(entry, "w") as file:
                np.lib.format.write_array(file, array, allow_pickle=False)


def read_npz(path: str | os.PathLike[str]) -> dict[str, np.ndarray]:
    """Read every array of an ``.npz`` file; object arrays are refused.

    Raises PrivSVMError if the file is missing, truncated or not an ``.npz``.
    """
    try:
        with np.load(path, allow_pickle=False) as stored:
            return {name: stored[name] for name in stored.files}
    except FileNotFoundError:
        raise missing_file(path) from None
    except Exception as error:
        # Headers of arrays are expressions, which fail in every way that Python knows.
        raise PrivSVMError(f"{path}: not a readable .npz file ({error}); delete it and run again") from None


def fork_safe_lock() -> Any:
    """Make a lock of a module, which a copy of this process (``os.fork``) gets unlocked.

    Another thread may hold a plain lock while the process is copied; in the copy, nobody would release it. The thread
    that copies the process takes this one first, even if it holds it already.
    """
    lock = threading.RLock()
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release)
    return lock


def append_line(path: str | os.PathLike[str], text: str) -> None:
    """Add a line to a file that its owner alone can read: the whole line is on the disk, or nothing of it."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        size = os.fstat(descriptor).st_size
        # An editor or a copy may have taken the last line's end.
        ended = size == 0 or os.pread(descriptor, 1, size - 1) == b"\n"
        waiting = (text if ended else f"\n{text}").encode() + b"\n"
        try:
            # Without a buffer, which would be written at its old place after a failure.
            while waiting:
                waiting = waiting[os.write(descriptor, waiting) :]
            os.fsync(descriptor)
        except BaseException:
            # Perhaps on the disk, perhaps not: taken back, since nothing was drawn or released on it.
            os.ftruncate(descriptor, size)
            raise
    finally:
        os.close(descriptor)
    if size == 0:
        sync_folder(Path(path).parent)
