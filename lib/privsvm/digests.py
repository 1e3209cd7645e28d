"""Canonical text and digests, which identify content by any author."""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import hashlib
import json
import math
import os
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

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


def _is_text(node: Any) -> bool:
    """Whether a statement is a string alone: a docstring."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _tokens(node: Any) -> Iterator[str]:
    """Spell a syntax tree without docstrings and empty fields, which every version of Python has more of."""
    if isinstance(node, ast.AST):
        yield type(node).__name__
        for name, value in ast.iter_fields(node):
            if value is not None and value != []:
                yield name
                yield from _tokens(value)
    elif isinstance(node, list):
        yield "["
        for item in node:
            if not _is_text(item):
                yield from _tokens(item)
        yield "]"
    else:
        yield repr(node)


def sha256_of_code(path: str | os.PathLike[str]) -> str:
    """SHA-256 of a file's code, as 64 hexadecimal digits.

    Comments, docstrings and layout of a Python file do not count; of any other file, all bytes do.
    """
    with open(path, "rb") as handle:
        content = handle.read()
    if os.fspath(path).endswith(".py"):
        # Templates, and code of other versions of Python, count by their bytes.
        with warnings.catch_warnings(), contextlib.suppress(SyntaxError, ValueError, RecursionError, MemoryError):
            warnings.simplefilter("ignore")
            content = "\0".join(_tokens(ast.parse(content))).encode("utf-8", "surrogatepass")
    return hashlib.sha256(content).hexdigest()


def sha256_of_json(value: Any) -> str:
    """SHA-256 of a value's canonical JSON, as 64 hexadecimal digits."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()
