"""Read and write the files between stages: atomically, in canonical form, without pickle."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import math
import os
import secrets
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from privsvm.errors import PrivSVMError

__all__ = [
    "ExtendedFloat",
    "atomic_path",
    "canonical_json",
    "missing_file",
    "read_json",
    "read_npz",
    "sha256_of_file",
    "write_json",
    "write_npz",
    "write_text",
]


@contextlib.contextmanager
def atomic_path(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Write a file completely or not at all.

    The body writes to a temporary name in the same folder. On success that file is synced to disk and renamed to
    `path`. On failure it is removed, and a file at `path` stays as it was.

    Parameters
    ----------
    path : path-like
        Where the finished file belongs. Its folder is created if it is missing.

    Yields
    ------
    pathlib.Path
        The temporary name to write to. It keeps the suffix of `path`.
    """
    target = Path(path)
    # A random part, because a process left over from a killed run may still be writing the same file.
    temporary = target.with_name(f".{target.stem}.{secrets.token_hex(4)}.part{target.suffix}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        with open(temporary, "rb") as handle:
            os.fsync(handle.fileno())
        os.replace(temporary, target)
        folder = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    finally:
        temporary.unlink(missing_ok=True)


def _plain(value: Any) -> Any:
    """Convert dataclasses, NumPy scalars, arrays, tuples and infinities to JSON values."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, float) and math.isinf(value):
        return "inf" if value > 0 else "-inf"
    if isinstance(value, float) and math.isnan(value):
        return None
    return value


def canonical_json(value: Any, indent: int | None = None, spaced: bool = False) -> str:
    """Serialise to JSON text that depends on the content alone.

    Parameters
    ----------
    value : object
        Dataclasses, mappings, sequences, strings, numbers, booleans, None; NumPy scalars and arrays too.
    indent : int or None
        Spaces per level, or None for one line.
    spaced : bool, default=False
        Put spaces into one line too, as people write it.

    Returns
    -------
    str
        Keys sorted; infinities as the text ``"inf"`` / ``"-inf"``, NaN as null.
    """
    separators = (",", ":") if indent is None and not spaced else None
    return json.dumps(_plain(value), sort_keys=True, indent=indent, separators=separators, allow_nan=False)


def _number_or_infinity(value: Any) -> float:
    if value in ("inf", "-inf"):
        return float(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or math.isnan(value):
        raise ValueError("a number or 'inf'")
    return float(value)


class _TextInfinity:
    """Tells pydantic how to read what `canonical_json` made of an infinite number."""

    @staticmethod
    def __get_pydantic_core_schema__(source: Any, handler: Any) -> Any:
        # Imported by whoever validates: who only annotates does not wait for it.
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

    Raises
    ------
    PrivSVMError
        If the file is missing or is not JSON.
    """
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise missing_file(path) from None
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise PrivSVMError(f"{path}: not valid JSON ({error}); delete it and run again") from None


def write_npz(path: str | os.PathLike[str], arrays: Mapping[str, np.ndarray]) -> None:
    """Write arrays as an ``.npz`` atomically, the same bytes for the same arrays.

    Parameters
    ----------
    path : path-like
        Ends in ``.npz``.
    arrays : mapping of str to ndarray
        No object arrays: files are data, not code.

    Raises
    ------
    PrivSVMError
        If an array holds Python objects.
    """
    checked = {name: np.asarray(array) for name, array in sorted(arrays.items())}
    for name, array in checked.items():
        if array.dtype.hasobject:
            raise PrivSVMError(f"{path}: array {name!r} holds Python objects; convert it to numbers or text")
    with atomic_path(path) as temporary:
        np.savez_compressed(temporary, **checked)  # type: ignore[arg-type]


def read_npz(path: str | os.PathLike[str]) -> dict[str, np.ndarray]:
    """Read every array of an ``.npz`` file; object arrays are refused.

    Raises
    ------
    PrivSVMError
        If the file is missing, truncated or not an ``.npz``.
    """
    try:
        with np.load(path, allow_pickle=False) as stored:
            return {name: stored[name] for name in stored.files}
    except FileNotFoundError:
        raise missing_file(path) from None
    except (ValueError, OSError, EOFError, KeyError, zipfile.BadZipFile) as error:
        raise PrivSVMError(f"{path}: not a readable .npz file ({error}); delete it and run again") from None


def sha256_of_file(path: str | os.PathLike[str]) -> str:
    """SHA-256 of a file's bytes, as 64 hexadecimal digits."""
    with open(path, "rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()
