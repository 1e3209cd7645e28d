"""Checks of delimited text that pandas and SciPy leave out: its encoding, and the number of fields of every row."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from privsvm.errors import PrivSVMError

__all__ = ["check_arff_fields", "check_fields", "check_libsvm_numbers", "decode_text", "shown"]

# UTF-8 whose leading mark, if there is one, is no part of the text.
_UTF8 = "utf-8-sig"
_LEADING_BLANK_LINES = re.compile(r"\A(?:[ \t]*\r?\n)+")
_LONGEST_FIELD = 1 << 24
# Characters of a value or a reason in a message.
_SHOWN = 80


def shown(value: Any) -> str:
    """Return a value as messages show it: as Python writes it, and cut where it is long."""
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def decode_text(data: bytes, name: str, encoding: str | None) -> str:
    """Decode a text file; what is not in its encoding is an error, not a question mark.

    Parameters
    ----------
    data : bytes
        The file.
    name : str
        What to call it in errors.
    encoding : str or None
        As Python names it; None: UTF-8, with or without its leading mark.

    Returns
    -------
    str
        Without blank lines before the first line.

    Raises
    ------
    PrivSVMError
        If the file has another encoding, or is no text.
    """
    used = _UTF8 if encoding is None or codecs.lookup(encoding).name == "utf-8" else encoding
    try:
        text = data.decode(used)
    except UnicodeError as error:
        line = data[: getattr(error, "start", 0)].count(b"\n") + 1
        remedy = "set `encoding`, for example to latin-1" if encoding is None else "correct `encoding` or the file"
        raise PrivSVMError(f"{name}: line {line} is not {encoding or 'UTF-8'} text; {remedy}") from None
    if "\0" in text:
        line = text[: text.index("\0")].count("\n") + 1
        raise PrivSVMError(f"{name}: line {line} holds a zero byte, so it is no text; set `format` or `encoding`")
    return _LEADING_BLANK_LINES.sub("", text)


def check_fields(text: str, name: str, delimiter: str, count: int, skipped: int) -> None:
    """Refuse a row with more or fewer fields than the first line, which would be cut or filled up in silence.

    Parameters
    ----------
    text : str
        The whole file.
    name : str
        What to call it in errors.
    delimiter : str
        One character; or a backslash, ``s`` and ``+`` for any blanks.
    count : int
        Fields of the first line that counts.
    skipped : int
        Lines before the first row.

    Raises
    ------
    PrivSVMError
        Naming the first such line.
    """
    lines: Iterable[str] = io.StringIO(text, newline="")
    blanks = delimiter == r"\s+"
    if blanks:
        lines = (line.replace("\t", " ").strip(" ") for line in lines)
    for line, row in _rows(lines, name, " " if blanks else delimiter):
        if len(row) == count or line <= skipped or not row or (len(row) == 1 and not row[0].strip()):
            continue
        raise PrivSVMError(
            f"{name}: line {line} has {len(row)} fields and the first one {count}; mend that line, or check "
            "`delimiter` and `header`"
        )


def _rows(lines: Iterable[str], name: str, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Split lines as pandas does; give each row with the number of its last line."""
    previous = csv.field_size_limit(_LONGEST_FIELD)
    reader = csv.reader(lines, delimiter=delimiter, skipinitialspace=True)
    try:
        for row in reader:
            yield reader.line_num, row
    except csv.Error as error:
        raise PrivSVMError(f"{name}: line {reader.line_num} is not delimited text ({error}); mend that line") from None
    finally:
        csv.field_size_limit(previous)


def check_arff_fields(text: str, name: str, numeric: Sequence[bool]) -> None:
    """Refuse a row of an ARFF file with more or fewer values than attributes, and numbers that only Python reads.

    Parameters
    ----------
    text : str
        The whole file.
    name : str
        What to call it in errors.
    numeric : sequence of bool
        Of each attribute, whether it is a number.

    Raises
    ------
    PrivSVMError
        Naming the first such line.
    """
    inside, delimiter, count = False, "", len(numeric)
    for number, raw in enumerate(io.StringIO(text), 1):
        line = raw.strip()
        if not line or line.startswith("%"):
            continue
        if not inside:
            inside = line.lower().startswith("@data")
            continue
        delimiter = delimiter or ("," if "," in line or "\t" not in line else "\t")
        quote = next((mark for mark in line if mark in "\"'"), None)
        if quote is None:
            fields = line.split(delimiter)
        else:
            fields = next(csv.reader([line], delimiter=delimiter, quotechar=quote, skipinitialspace=True))
        if len(fields) != count:
            raise PrivSVMError(f"{name}: line {number} has {len(fields)} values for {count} attributes; mend that line")
        # Python reads 1_0 as ten, and digits of all scripts.
        if "_" in line or not line.isascii():
            for field, number_here in zip(fields, numeric, strict=True):
                if number_here and ("_" in field or not field.isascii()):
                    raise PrivSVMError(f"{name}: line {number}: {shown(field)} is not a number; mend that line")


def check_libsvm_numbers(data: bytes, name: str) -> None:
    """Refuse numbers that only Python reads in a LIBSVM file: 1_0 is ten for it, as a label, an index or a value.

    Parameters
    ----------
    data : bytes
        The file.
    name : str
        What to call it in errors.

    Raises
    ------
    PrivSVMError
        Naming the first such line.
    """
    if b"_" not in data:
        return
    for number, line in enumerate(data.splitlines(), 1):
        for word in line.partition(b"#")[0].split():
            if b"_" in word:
                raise PrivSVMError(
                    f"{name}: line {number}: {shown(word.decode(errors='replace'))} is not a number; mend that line"
                )
