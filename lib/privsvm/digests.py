"""Canonical text and digests: what identifies content, whoever wrote it."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

__all__ = ["canonical_json", "sha256_of_file", "sha256_of_json"]


# Types whose values JSON holds as they are.
_KEPT = frozenset({str, int, bool, type(None)})


def _plain(value: Any) -> Any:
    """Convert dataclasses, NumPy scalars, arrays, tuples and infinities to JSON values."""
    # Nearly all values are of these types; the questions below are slow.
    kind = type(value)
    if kind in _KEPT or (kind is float and math.isfinite(value)):
        return value
    if kind is list:
        return [_plain(item) for item in value]
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

    Values are dataclasses, mappings, sequences, strings, numbers, booleans and None, NumPy scalars and arrays too. Keys
    are sorted; infinities become the text ``"inf"`` / ``"-inf"``, NaN null. `indent` is spaces per level, or None for
    one line, into which `spaced` puts spaces too, as people write it.
    """
    separators = (",", ":") if indent is None and not spaced else None
    return json.dumps(_plain(value), sort_keys=True, indent=indent, separators=separators, allow_nan=False)


def sha256_of_file(path: str | os.PathLike[str]) -> str:
    """SHA-256 of a file's bytes, as 64 hexadecimal digits."""
    with open(path, "rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def sha256_of_json(value: Any) -> str:
    """SHA-256 of a value's canonical JSON, as 64 hexadecimal digits."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()
