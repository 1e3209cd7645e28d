"""Delimited text: records, fields and numbers, for every command that reads tables (docs/tables.md).

A record is one physical line. It ends at the next line feed whatever it holds, so that no quotation mark makes it
swallow the lines after it; an error in it concerns this record alone.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import gzip
import io
import os
import re
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO, cast

from privsvm.constraints import text
from privsvm.errors import PrivSVMError

DELIMITER = text(
    "must be one character, or whitespace, tab, comma or semicolon",
    r"whitespace|tab|comma|semicolon|[\t !#$%&*,/:;<=>?@^_`|~]",
)
# Markers that programs write for a missing value, in any case.
MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "?", "-", "."})

_NAMED = {"tab": "\t", "comma": ",", "semicolon": ";"}
_WHITESPACE = "whitespace"
# Characters of a record: a longer one is not held in memory.
LONGEST_RECORD = 1 << 24
# A first line by which spreadsheets name the delimiter.
_SEPARATOR = re.compile(r'"?sep=(.)"?', re.IGNORECASE)
# Replacement character for bytes that the encoding lacks.
_UNDECODED = re.compile(r"[\ud800-\udfff]")


def parse_number(value: str) -> float:
    """Read a number; raise ValueError for any other text.

    ASCII digits with a decimal point, perhaps an exponent, inf or nan. Python's own 1_000 and the digits of other
    scripts are more likely a text.
    """
    if "_" in value or not value.isascii():
        raise ValueError(value)
    return float(value)


@functools.cache
def _field_pattern(delimiter: str) -> re.Pattern[str]:
    """Build the pattern of one field and what ends it."""
    if delimiter == _WHITESPACE:
        blank, plain, end = "", r"[^ \t]*", r"[ \t]+"
    else:
        # Blanks around quotation marks, unless they delimit fields.
        blanks, mark = " \t".replace(delimiter, ""), re.escape(delimiter)
        blank, plain, end = f"[{blanks}]*", f"[^{mark}]*", mark
    quoted = r'"(?P<quoted>[^"]*+(?:""[^"]*+)*+)"'
    return re.compile(rf'(?:{blank}{quoted}{blank}|(?!{blank}")(?P<plain>{plain}))(?P<end>{end}|\Z)')


def split_fields(record: str, delimiter: str) -> list[str]:
    """Split a record into its fields.

    The delimiter is one character, or ``whitespace``. Fields are as they are written; one that begins with a quotation
    mark ends with one, and loses both. Raises ValueError if a quotation mark has no pair, or text behind it.
    """
    if '"' not in record:
        return record.split() if delimiter == _WHITESPACE else record.split(delimiter)
    record = record.strip(" \t") if delimiter == _WHITESPACE else record
    pattern, fields, position, end = _field_pattern(delimiter), list[str](), 0, "more"
    while end:
        match = pattern.match(record, position)
        if match is None:
            raise ValueError(
                "has a quotation mark without its pair, or text behind one (a field cannot hold a line break)"
            )
        fields.append(match["plain"] if match["quoted"] is None else match["quoted"].replace('""', '"'))
        position, end = match.end(), match["end"]
    return fields


def physical_lines(handle: TextIO) -> Iterator[str]:
    """Read lines without their ends, cut to `LONGEST_RECORD` characters; only LF ends a line."""
    while line := handle.readline(LONGEST_RECORD):
        if line[-1] != "\n" and len(line) == LONGEST_RECORD:
            while (rest := handle.readline(LONGEST_RECORD)) and rest[-1] != "\n":
                pass
            yield line
        else:
            yield line.removesuffix("\n").removesuffix("\r")


@dataclasses.dataclass(frozen=True)
class Malformed:
    """A record that is no row: the number of its line, and the mistake."""

    line: int
    reason: str
    blank: bool = False

    def __str__(self) -> str:
        return f"line {self.line} {self.reason}"


@dataclasses.dataclass
class Tally:
    """How many records were read, how many of them are malformed, and the first of those.

    `unread` counts the texts of each column that are unknown or cannot be read.
    """

    records: int = 0
    malformed: int = 0
    first: Malformed | None = None
    unread: Counter[str] = dataclasses.field(default_factory=Counter)

    def fields(self, record: list[str] | Malformed, width: int) -> list[str]:
        """Count a record, and return its fields: all of them empty if it is malformed."""
        self.records += 1
        if isinstance(record, list):
            return record
        self.malformed += 1
        self.first = self.first or record
        return [""] * width

    def __str__(self) -> str:
        return f"{self.malformed} of {self.records} rows are malformed, the first: {self.first}"


class DelimitedText:
    r"""The records of a delimited text: iterate once over it.

    The handle is opened as text with ``newline="\n"``; bytes that are not of its encoding are surrogates. `delimiter`
    is a value that `DELIMITER` accepts, or None: the one of a ``sep=`` line (`separator`), or else `default`. Of the
    `header_rows` before the first row, the last names the columns.

    `first` has the fields of the line that names the columns, without surrounding blanks; without a header of the first
    row. It is empty for an empty file. A header that ends with a delimiter has no column there. Raises PrivSVMError if
    the first line cannot be split, or a ``sep=`` line contradicts `delimiter`.
    """

    def __init__(
        self, handle: TextIO, name: str, delimiter: str | None = None, *, default: str = ",", header_rows: int = 1
    ) -> None:
        self._lines = enumerate(physical_lines(handle), 1)
        self._header = header_rows > 0
        number, line = self._first_line()
        separator = _SEPARATOR.fullmatch(line)
        self.separator = separator[1] if separator else None
        for mark in (delimiter, self.separator):
            if mark is not None and not DELIMITER.accepts(mark):
                raise PrivSVMError(f"{name}: delimiter {mark!r} {DELIMITER.wish}")
        declared = None if delimiter is None else _NAMED.get(delimiter, delimiter)
        if self.separator is not None:
            if declared not in (None, self.separator):
                raise PrivSVMError(
                    f"{name}: its first line says sep={self.separator}, and the declared delimiter is {declared!r}; "
                    "correct `delimiter`"
                )
            number, line = self._first_line()
        self.delimiter = declared or self.separator or _NAMED.get(default, default)
        for _ in range(header_rows - 1):
            number, line = next(self._lines, (0, ""))
        self.line = line
        try:
            _check_text(line)
            fields = split_fields(line, self.delimiter) if line.strip() else []
        except ValueError as error:
            returns = "\r" in line and "\0" not in line
            wish = "with the line ends of Unix or Windows" if returns else "as CSV in UTF-8"
            raise PrivSVMError(f"{name}: line {number} {error}; fix it, or save the table {wish}") from None
        self._trailing = self._header and len(fields) > 1 and not fields[-1].strip()
        self._width = len(fields)
        self.first = [field.strip() for field in fields[: len(fields) - self._trailing]]
        self._unread = [] if self._header or not fields else [(number, line)]

    def _first_line(self) -> tuple[int, str]:
        """Return the next line that is not blank, and its number."""
        return next(((number, line) for number, line in self._lines if line.strip()), (0, ""))

    def __iter__(self) -> Iterator[list[str] | Malformed]:
        for number, line in self._unread:
            yield self._record(number, line)
        for number, line in self._lines:
            yield self._record(number, line)

    def _record(self, number: int, line: str) -> list[str] | Malformed:
        try:
            _check_text(line)
            fields = split_fields(line, self.delimiter)
        except ValueError as error:
            return Malformed(number, str(error))
        if len(fields) != self._width:
            if not line.strip():
                return Malformed(number, "is blank", blank=True)
            return Malformed(number, f"has {len(fields)} fields and the first line {self._width}")
        if self._trailing and fields.pop().strip():
            return Malformed(number, "has a value behind the last column")
        return fields


def _check_text(line: str) -> None:
    """Raise ValueError for a line that is no text."""
    if len(line) >= LONGEST_RECORD:
        raise ValueError(f"has {LONGEST_RECORD} characters or more")
    if "\0" in line:
        raise ValueError("holds a zero byte")
    if "\r" in line:
        raise ValueError("holds a carriage return")
    if not line.isascii() and _UNDECODED.search(line):
        raise ValueError("is not UTF-8 text")


@contextlib.contextmanager
def open_table(path: str | os.PathLike[str], delimiter: str | None = None) -> Iterator[DelimitedText]:
    """Open a table in UTF-8; ``.gz`` is unpacked.

    Raises PrivSVMError if the file cannot be read, or its first line cannot; see `DelimitedText`.
    """
    try:
        # Tables are opened more than once, and rows read from a pipe are gone: its first rows would be left out.
        if not os.path.isfile(path) and not os.path.isdir(path) and os.path.exists(path):
            raise PrivSVMError(
                f"{path}: is a pipe or device, which can be read only once; save the table to a file first"
            )
        with gzip.open(path) if Path(path).suffix == ".gz" else open(path, "rb") as data:
            # The lines of text are the bytes' lines: no byte sequence that cannot be decoded takes in a line feed.
            handle = io.TextIOWrapper(
                cast(io.BufferedReader, data), encoding="utf-8-sig", errors="surrogateescape", newline="\n"
            )
            yield DelimitedText(handle, str(path), delimiter)
    except FileNotFoundError:
        raise PrivSVMError(f"{path}: file not found; check the path") from None
    except (OSError, EOFError, zlib.error) as error:
        raise PrivSVMError(f"{path}: cannot be read ({error}); give a delimited text with a header") from None
