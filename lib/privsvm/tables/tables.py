"""Rows of a table as features, by a public schema: each row by itself, whatever the others hold.

Every cell is read by a function of itself and of the schema alone, so a row has the same features in any company, bit
for bit. No cell is an error: what cannot be read counts as the declared fill value, what lies outside the bounds as
the nearer end, an unknown category as the declared one. A message that depends on the rows would tell of them.
"""

from __future__ import annotations

import contextlib
import csv
import gzip
import json
import os
import re
import zlib
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO, cast

import numpy as np

from privsvm.errors import PrivSVMError, nearest_name
from privsvm.tables.labels import normalise_label
from privsvm.tables.schema import Column, Schema, with_point

__all__ = [
    "Encoder",
    "bounded_contribution",
    "delimiter_of",
    "header_of",
    "identifier",
    "labelled_table",
    "read_chunks",
    "table_columns",
    "training_table",
    "units_table",
]

_CHUNK = 20_000
_LONGEST = 2**31 - 1
# Texts of one column whose code is remembered.
_REMEMBERED = 100_000
_DELIMITERS = {",": "a comma", ";": "a semicolon", "\t": "a tab", "|": "a bar"}
# A number that a program wrote as a fraction. Other spellings stay apart: 007 and 7, or 1e3 and 1000, may be two.
_WHOLE = re.compile(r"(0|-?[1-9]\d*)\.0+", re.ASCII)


class Encoder:
    """Turns columns of values into features.

    Parameters
    ----------
    schema : Schema
        The declaration.

    Attributes
    ----------
    feature_names : tuple of str (d)
        ``age``, or ``ward=a`` for the indicator of a category.
    """

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.feature_names = tuple(
            label
            for name, column in schema.features.items()
            for label in ([f"{name}={word}" for word in column.words] if column.kind == "categories" else [name])
        )
        self._codes: dict[str, dict[str, int]] = {name: {} for name in schema.features}
        self._classes = {name: code for code, name in enumerate(schema.ordered_classes)}
        self._labels: dict[str, int] = {}

    def features(self, columns: Mapping[str, Sequence[Any]]) -> np.ndarray:
        """Encode rows.

        Parameters
        ----------
        columns : mapping of str to sequence (n)
            Values by the name of their column: texts of a file, or values of a data frame.

        Returns
        -------
        ndarray (n, d)
            Numbers, dates and booleans in [-1, 1], categories as indicators 0 and 1.
        """
        n_rows = len(columns[next(iter(self.schema.features))])
        X = np.zeros((n_rows, len(self.feature_names)))
        place = 0
        for name, column in self.schema.features.items():
            values = columns[name]
            if column.kind == "categories":
                codes = self._category_codes(name, column, values)
                known = np.flatnonzero(codes >= 0)
                X[known, place + codes[known]] = 1.0
                place += len(column.words)
            else:
                X[:, place] = _scaled(column, values, self.schema.decimal)
                place += 1
        return X

    def labels(self, values: Sequence[Any]) -> np.ndarray:
        """Return class codes (n), -1 for a label that is none of the classes."""
        return _looked_up(values, self._labels, lambda value: self._classes.get(normalise_label(value), -1))

    def _category_codes(self, name: str, column: Column, values: Sequence[Any]) -> np.ndarray:
        words = {word: code for code, word in enumerate(column.words)}
        unknown = -1 if column.unknown is None else words[column.unknown]
        missing = words.get("", unknown) if column.fill is None else words[column.fill]

        def code(value: Any) -> int:
            try:
                word = "" if _is_missing(value) else normalise_label(value)
            except ValueError:
                # Whole numbers of thousands of digits have no text.
                return unknown
            return missing if word == "" else words.get(word, unknown)

        return _looked_up(values, self._codes[name], code)


def _is_missing(value: Any) -> bool:
    """Whether a value of a data frame stands for none: it is not equal to itself, or nobody can tell (pandas.NA)."""
    try:
        return value is None or bool(value != value)
    except (TypeError, ValueError):
        return True


def _looked_up(values: Sequence[Any], known: dict[str, int], code: Callable[[Any], int]) -> np.ndarray:
    """Codes (n) of values; those of texts are worked out once."""
    found = np.empty(len(values), dtype=np.int64)
    for row, value in enumerate(values):
        # Of other types, different values may be equal as keys (1 and True).
        answer = known.get(value) if type(value) is str else None
        if answer is None:
            answer = code(value)
            if type(value) is str and len(known) < _REMEMBERED:
                known[value] = answer
        found[row] = answer
    return found


def _scaled(column: Column, values: Sequence[Any], decimal: str | None) -> np.ndarray:
    """Numbers (n,) in [-1, 1]; missing ones as declared."""
    if decimal == "," and column.kind == "number":
        values = list(map(with_point, values))
    read: Callable[[Any], float] = float if column.kind == "number" else column.number
    try:
        numbers = np.fromiter(map(read, values), dtype=np.float64, count=len(values))
    except (ValueError, TypeError, OverflowError):
        # One by one, with the same function: a cell that is no number changes none of the others.
        numbers = np.fromiter(map(column.number, values), dtype=np.float64, count=len(values))
    low, high = column.limits
    middle = 0.5 * low + 0.5 * high
    fill = middle if column.fill is None else column.number(column.fill)
    inside = np.clip(np.where(np.isfinite(numbers), numbers, fill), low, high)
    # Halves first: the width of finite bounds may overflow.
    scaled: np.ndarray = np.clip((0.5 * inside - 0.5 * middle) / (0.25 * high - 0.25 * low), -1.0, 1.0)
    return scaled


def _open(path: str | os.PathLike[str]) -> TextIO:
    options: dict[str, Any] = {"encoding": "utf-8-sig", "errors": "replace", "newline": ""}
    return cast(TextIO, gzip.open(path, "rt", **options) if Path(path).suffix == ".gz" else open(path, **options))


def delimiter_of(path: str | os.PathLike[str]) -> str:
    """Find what parts the names of a table's columns: the usual delimiter that gives most of them; no row is read."""
    lines = {delimiter: _first_line(path, delimiter) for delimiter in _DELIMITERS}
    # A quote within a name: it was parted inside quotes.
    return max(lines, key=lambda delimiter: len(lines[delimiter]) * ('"' not in "".join(lines[delimiter])))


def _lines(path: str | os.PathLike[str], delimiter: str) -> Generator[list[str], None, None]:
    """Read the lines of a delimited text, the header first; what cannot be read is an error that names the file."""
    # No limit that a cell could exceed, which would be an error that depends on it.
    csv.field_size_limit(_LONGEST)
    try:
        # Tables are opened more than once, and what was read from a pipe is gone: its first rows would be left out.
        if not os.path.isfile(path) and not os.path.isdir(path) and os.path.exists(path):
            raise PrivSVMError(f"{path}: is no file but a pipe or device, which can be read once; save the table first")
        with _open(path) as handle:
            yield from csv.reader(handle, delimiter=delimiter)
    except FileNotFoundError:
        raise PrivSVMError(f"{path}: file not found; check the path") from None
    except (OSError, EOFError, zlib.error, csv.Error) as error:
        raise PrivSVMError(f"{path}: cannot be read ({error}); give a delimited text with a header") from None


def _first_line(path: str | os.PathLike[str], delimiter: str) -> list[str]:
    with contextlib.closing(_lines(path, delimiter)) as lines:
        return [name.strip() for name in next(lines, [])]


def header_of(path: str | os.PathLike[str], delimiter: str = ",") -> list[str]:
    """Read the names of a table's columns, and nothing else of it.

    Parameters
    ----------
    path : path-like
        Delimited text; ``.gz`` is unpacked.
    delimiter : str, default=","
        One character.

    Returns
    -------
    list of str

    Raises
    ------
    PrivSVMError
        If the file is missing or empty, has another delimiter or encoding, or names a column twice or not at all.
    """
    names = _first_line(path, delimiter)
    if not names:
        raise PrivSVMError(f"{path}: the file is empty; its first line must name the columns")
    if any("\ufffd" in name for name in names):
        raise PrivSVMError(f"{path}: the names of its columns are not UTF-8 text; save the table as UTF-8")
    if len(names) == 1 and (found := delimiter_of(path)) != delimiter and len(_first_line(path, found)) > 1:
        raise PrivSVMError(
            f"{path}: one column by the delimiter {delimiter!r}, and several by {_DELIMITERS[found]}; set `delimiter: "
            f"{json.dumps(found)}` in the schema"
        )
    for name, count in Counter(names).items():
        if count > 1 or not name:
            raise PrivSVMError(f"{path}: column {name!r} is named {count} times; give each column a name of its own")
    return names


def _check_columns(path: Any, names: Sequence[str], schema: Schema, extra: Sequence[str], whole: bool) -> None:
    """Raise one error for all columns that the schema and the file do not share."""
    missing = [name for name in (*schema.features, *extra) if name not in names]
    known = {*schema.columns, schema.label, schema.person}
    undeclared = [name for name in names if name not in known] if whole else []
    problems = []
    if missing:
        hint = nearest_name(missing[0], names) if len(missing) == 1 else ""
        problems.append(f"no column {', '.join(map(repr, missing))}" + (f" ({hint})" if hint.startswith("did") else ""))
    if undeclared:
        listed = ", ".join(map(repr, undeclared))
        problems.append(f"{listed} not in the schema: declare each, or write `{undeclared[0]}: ignore`")
    if problems:
        raise PrivSVMError(f"{path}: {'; '.join(problems)}; correct the schema or the file")


def read_chunks(
    path: str | os.PathLike[str], schema: Schema, extra: Sequence[str] = (), *, whole: bool = False, rows: int = _CHUNK
) -> Iterator[dict[str, Sequence[str]]]:
    """Read a delimited text in blocks of rows.

    Parameters
    ----------
    path : path-like
        The file; ``.gz`` is unpacked.
    schema : Schema
        Names the columns to read.
    extra : sequence of str
        Further columns to read: label, person.
    whole : bool, default=False
        Whether columns that the schema does not name are an error, which says all of them.
    rows : int
        Rows in a block.

    Yields
    ------
    dict of str to sequence of str
        Texts by column. A line that is too short has empty ones, of one that is too long the rest is left out.

    Raises
    ------
    PrivSVMError
        If the file cannot be read, or its header is not that of the schema.
    """
    names = header_of(path, schema.delimiter)
    _check_columns(path, names, schema, extra, whole)
    wanted = [(name, names.index(name)) for name in dict.fromkeys([*schema.features, *extra])]
    width = len(names)
    lines = _lines(path, schema.delimiter)
    next(lines)
    block: list[list[str]] = []
    for line in lines:
        if line:
            block.append(line if len(line) == width else (line + [""] * width)[:width])
        if len(block) == rows:
            yield _columns(block, wanted)
            block = []
    if block:
        yield _columns(block, wanted)


def _columns(block: list[list[str]], wanted: Sequence[tuple[str, int]]) -> dict[str, Sequence[str]]:
    turned = list(zip(*block, strict=True))
    return {name: turned[place] for name, place in wanted}


def table_columns(path: str | os.PathLike[str], delimiter: str = ",") -> dict[str, list[str]]:
    """Read all columns of a table as texts, for a look at them; what is found is private."""
    names = header_of(path, delimiter)
    lines = _lines(path, delimiter)
    next(lines)
    rows = [(line + [""] * len(names))[: len(names)] for line in lines if line]
    return {name: [row[place] for row in rows] for place, name in enumerate(names)}


def labelled_table(path: str | os.PathLike[str], schema: Schema) -> tuple[np.ndarray, np.ndarray]:
    """Read a table for a benchmark: all rows, with their labels as they are written.

    Parameters
    ----------
    path : path-like
        The file.
    schema : Schema
        Its declaration.

    Returns
    -------
    X : ndarray (n, d)
        Features, see `Encoder.features`.
    labels : ndarray of n texts
    """
    encoder = Encoder(schema)
    blocks, labels = [np.zeros((0, len(encoder.feature_names)))], []
    for columns in read_chunks(path, schema, [schema.label], whole=True):
        blocks.append(encoder.features(columns))
        labels += [normalise_label(label) for label in columns[schema.label]]
    return np.concatenate(blocks), np.array(labels, dtype=np.str_)


def training_table(path: str | os.PathLike[str], schema: Schema) -> tuple[np.ndarray, np.ndarray]:
    """Read a table to train on: X and codes of `units_table`."""
    X, codes, _ = units_table(path, schema)
    return X, codes


def units_table(path: str | os.PathLike[str], schema: Schema) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Read a table, and whose rows they are.

    Parameters
    ----------
    path : path-like
        The file.
    schema : Schema
        The declaration.

    Returns
    -------
    X : ndarray (n, d)
        Features, see `Encoder.features`.
    codes : ndarray of int64 (n)
        Class codes.
    units : ndarray of int64 (n)
        Number of the person, from 0 in the order of the file; without a column for persons, of the row.

    Notes
    -----
    A row whose label is none of the classes counts as one of the first class with all features 0: it stays one row,
    so that neighbours keep their number of rows. With a column for persons, the first rows of each in the file count,
    as many as are declared; a row without an identifier counts for nobody and is left out, which moves no other row.
    """
    encoder = Encoder(schema)
    extra = [schema.label] + ([schema.person] if schema.person else [])
    blocks, labels = [np.zeros((0, len(encoder.feature_names)))], [np.zeros(0, dtype=np.int64)]
    units = [np.zeros(0, dtype=np.int64)]
    numbers: dict[str, int] = {}
    seen: Counter[str] = Counter()
    for columns in read_chunks(path, schema, extra, whole=True):
        X, codes = encoder.features(columns), encoder.labels(columns[schema.label])
        X[codes < 0] = 0.0
        codes[codes < 0] = 0
        if schema.person:
            persons = columns[schema.person]
            kept = bounded_contribution(persons, schema.rows_per_person or 1, seen)
            X, codes = X[kept], codes[kept]
            names = (identifier(persons[row]) for row in np.flatnonzero(kept).tolist())
            units.append(np.array([numbers.setdefault(name, len(numbers)) for name in names], dtype=np.int64))
        blocks.append(X)
        labels.append(codes)
    found = np.concatenate(labels)
    return np.concatenate(blocks), found, np.concatenate(units) if schema.person else np.arange(len(found))


def identifier(value: Any) -> str:
    """Write the name of a person the one way that rows of one person share.

    Parameters
    ----------
    value : object
        Text or number.

    Returns
    -------
    str
        Without surrounding blanks, and 7 for 7.0. No two other texts are one person: the rows of either would decide
        which rows of the other count.
    """
    text = str(value).strip()
    whole = _WHOLE.fullmatch(text)
    return whole[1] if whole else text


def bounded_contribution(persons: Sequence[str], most: int, seen: Counter[str]) -> np.ndarray:
    """Choose the first rows of every person.

    Parameters
    ----------
    persons : sequence of str (n)
        Identifiers, in the order of the file; nothing else is read.
    most : int
        Rows that count for each.
    seen : Counter
        Rows of earlier blocks by person; is updated.

    Returns
    -------
    ndarray of bool (n)
    """
    kept = np.zeros(len(persons), dtype=bool)
    for row, value in enumerate(persons):
        person = identifier(value)
        if person:
            kept[row] = seen[person] < most
            seen[person] += 1
    return kept
