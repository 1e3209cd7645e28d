"""Rows of a table as features, by a public schema: each row by itself, whatever the others hold.

Every cell is read by a function of itself and of the schema alone, so a row has the same features in any company, bit
for bit. No cell is an error: what cannot be read counts as the declared fill value, what lies outside the bounds as
the nearer end, an unknown category as the declared one. No record is an error either: a malformed one counts as a row
whose cells are all empty. A message that depends on the rows would tell of them.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import json
import math
import numbers
import os
import re
import sys
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from privsvm.constraints import plain
from privsvm.errors import PrivSVMError, list_names, nearest_name
from privsvm.tables.delimited import DelimitedText, Tally, open_table, parse_number, split_fields
from privsvm.tables.labels import normalise_label
from privsvm.tables.schema import Column, Schema, parse_schema, with_point

_CHUNK = 20_000
# Digits of whole numbers that float64 may not tell apart.
_LONG_CODE = 16
# Types whose cells are converted all at once.
_NUMBERS = {int, float, bool, np.float64}
# Types of columns of NumPy, pandas and Arrow, as they write them.
_NUMBER_TYPE = re.compile(r"(sparse\[|dictionary<values=)?(u?int\d|float|double|halffloat|decimal)", re.IGNORECASE)
_DELIMITERS = {",": "a comma", ";": "a semicolon", "\t": "a tab", "|": "a bar"}


class Encoder:
    """Turns columns of values into features; remembers none of them, since it is stored with models.

    `feature_names` (d) are such as ``age``, or ``ward=a`` for the indicator of a category.
    """

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.feature_names = tuple(
            label
            for name, column in schema.features.items()
            for label in ([f"{name}={word}" for word in column.words] if column.kind == "categories" else [name])
        )
        self._classes = {normalise_label(name): code for code, name in enumerate(schema.class_order)}

    # Of tiny and huge numbers, NumPy would raise or warn as its user has set it.
    @np.errstate(all="ignore")
    def features(self, columns: Mapping[str, Sequence[Any]], unread: Counter[str] | None = None) -> np.ndarray:
        """Encode rows.

        Columns have texts of a file, or values of a data frame. Numbers, dates and booleans lie in [-1, 1], categories
        become indicators 0 and 1. `unread` counts the texts of each column that are unknown or cannot be read.
        """
        n_rows = len(columns[next(iter(self.schema.features))])
        X = np.zeros((n_rows, len(self.feature_names)))
        feature_index = 0
        for name, column in self.schema.features.items():
            values = columns[name]
            if column.kind == "categories":
                read = _category_codes(column, values)
                codes = np.where(np.isnan(read), category_codes(column)[1], read).astype(np.int64)
                encoded_rows = np.flatnonzero(codes >= 0)
                X[encoded_rows, feature_index + codes[encoded_rows]] = 1.0
                feature_index += len(column.words)
            else:
                read = column_numbers(column, values, self.schema.decimal)
                X[:, feature_index] = _scale_numbers(column, read)
                feature_index += 1
            if unread is not None:
                strange = [values[row] for row in np.flatnonzero(~np.isfinite(read)).tolist()]
                unread[name] += len(column.leave_out_missing(strange, self.schema.decimal))
        return X

    def labels(self, values: Sequence[Any]) -> np.ndarray:
        """Return class codes (n), -1 for a label that is none of the classes."""
        return _read_cells(values, lambda value: self._classes.get(normalise_label(value), -1), -1).astype(np.int64)


def _category_codes(column: Column, values: Sequence[Any]) -> np.ndarray:
    """Read the codes (n,) of a column, NaN for unknown values."""
    words, _, missing = category_codes(column)

    def code(value: Any) -> float:
        word = "" if _is_missing(value) else column.category_key(value)
        return missing if word == "" else words.get(word, math.nan)

    # Whole numbers of thousands of digits, for example, have no text.
    return _read_cells(values, code, math.nan)


def category_codes(column: Column) -> tuple[dict[str, int], int, int]:
    """Return the code of each word as `Column.category_key` writes it, of unknown values and of missing ones.

    Words are the categories, then the marks of missing cells. A code of -1 stands for none of the categories.
    """
    words = {column.category_key(word): code for code, word in enumerate(column.words)}
    unknown = -1 if column.unknown is None else words[column.category_key(column.unknown)]
    missing = words.get("", unknown) if column.fill is None else words[column.category_key(column.fill)]
    return words | {column.category_key(mark): missing for mark in column.missing or ()}, unknown, missing


def _is_missing(value: Any) -> bool:
    """Whether a value of a data frame stands for none: it is not equal to itself, or nobody can tell (pandas.NA)."""
    try:
        return value is None or value is np.ma.masked or bool(value != value)
    except Exception:
        return True


def _read_cells(
    values: Sequence[Any], read: Callable[[Any], float], unreadable: float, once: bool = True
) -> np.ndarray:
    """Read cells (n), each by itself: what `read` cannot read is `unreadable`, and none raises.

    Texts that repeat are read `once`. Warnings are not caught, which is not safe beside other threads: `read` converts
    nothing that NumPy warns of.
    """
    numbers, number_of_text = np.empty(len(values)), dict[str, float]()
    for row, value in enumerate(values):
        # Different values of other types may be equal as keys (1 and True).
        remembers = once and type(value) is str
        number = number_of_text.get(value) if remembers else None
        if number is None:
            try:
                number = read(value if type(value) is str else plain(value, items=False))
            except Exception:
                number = unreadable
            if remembers:
                number_of_text[value] = number
        numbers[row] = number
    return numbers


def parse_numbers(texts: Sequence[str]) -> np.ndarray:
    """Read numbers (n,) as `parse_number` does; raise ValueError for other text."""
    # One look at all texts is faster than one at each.
    written = "".join(texts)
    read = float if "_" not in written and written.isascii() else parse_number
    return np.fromiter(map(read, texts), dtype=np.float64, count=len(texts))


def column_numbers(column: Column, values: Sequence[Any], decimal: str | None) -> np.ndarray:
    """Read numbers (n,) of a column; not finite for cells that are none, or missing."""
    numbers, marks = _cell_numbers(column, values, decimal), column.missing_numbers(decimal)
    return np.where(np.isin(numbers, marks), np.nan, numbers) if marks else numbers


def _cell_numbers(column: Column, values: Sequence[Any], decimal: str | None) -> np.ndarray:
    """Read numbers (n,) of a column, whatever marks a missing one."""
    kinds = set(map(type, values)) if column.kind == "number" else {object}
    # One by one otherwise, to the same numbers: a cell that is none changes none of the others.
    with contextlib.suppress(ValueError, OverflowError):
        if kinds == {str}:
            return parse_numbers([*map(with_point, values)] if decimal == "," else values)
        if kinds <= _NUMBERS:
            return np.array(values, dtype=np.float64)
    read = functools.partial(column.read, decimal=decimal) if decimal == "," else column.number
    return _read_cells(values, read, np.nan, once=column.kind != "number")


def _scale_numbers(column: Column, numbers: np.ndarray) -> np.ndarray:
    """Map numbers (n,) to [-1, 1]; missing ones as declared."""
    low, high = column.limits
    middle = 0.5 * low + 0.5 * high
    inside = np.clip(np.where(np.isfinite(numbers), numbers, column.fill_number), low, high)
    # Halves first: the width of finite bounds may overflow.
    scaled: np.ndarray = np.clip((0.5 * inside - 0.5 * middle) / (0.25 * high - 0.25 * low), -1.0, 1.0)
    return scaled


def take_columns(X: Any, schema: Schema, check_cells: bool = False) -> dict[str, list[Any]]:
    """Take the columns that a schema declares.

    X is a data frame or a mapping, which may have other columns; a mapping of single values, which is one row; or rows
    with the columns in the schema's order. Raises PrivSVMError if columns are missing, are there twice, differ in their
    number of rows, or hold categories as numbers that lose them, such as 7 for 007. Columns of rows to train on are
    refused by their type, whatever their cells are; with `check_cells`, for a released model, the cells decide.
    """
    X = plain(X, items=False)
    if hasattr(X, "__arrow_c_stream__") and not hasattr(X, "iloc"):
        import pyarrow

        # By Python's values: pandas would turn whole numbers beside missing ones into others.
        X = pyarrow.table(X)
    elif not (hasattr(X, "columns") or isinstance(X, Mapping)):
        X = _name_columns(X, [*schema.features])
    names = Counter(list(X if isinstance(X, Mapping) else X.column_names if hasattr(X, "column_names") else X.columns))
    missing = [name for name in schema.features if name not in names]
    if missing:
        raise PrivSVMError(f"X: no column {list_names(missing)}; the schema declares it")
    twice = [name for name in schema.features if names[name] > 1]
    if twice:
        raise PrivSVMError(f"X: several columns are called {list_names(twice)}; give each its own name")
    given = {name: plain(X[name], items=False) for name in schema.features}
    single = [
        name for name, cells in given.items() if isinstance(cells, (str, bytes)) or not hasattr(cells, "__iter__")
    ]
    if len(single) == len(given):
        given = {name: [cell] for name, cell in given.items()}
    elif single:
        raise PrivSVMError(f"X: column {single[0]!r} is a single value and others are not; give lists, or one row")
    columns = {name: _cells_of(column) for name, column in given.items()}
    for name, column in schema.features.items():
        _check_codes(name, column, given[name], columns[name] if check_cells else None)
    rows = {len(column) for column in columns.values()}
    if len(rows) > 1:
        raise PrivSVMError(f"X: its columns have {' and '.join(map(str, sorted(rows)))} rows; give all the same number")
    return columns


def _name_columns(X: Any, names: Sequence[str]) -> dict[str, Any]:
    """Name the columns of rows: an array, or a sequence of sequences or mappings."""
    is_array = type(X) in (np.ndarray, np.ma.MaskedArray)
    try:
        rows = X if is_array else [plain(row, items=False) for row in X]
        rows = X if is_array else [[*map(row.get, names)] if type(row) is dict else list(row) for row in rows]
        widths = {len(row) for row in rows} - {len(names)}
    except TypeError:
        raise PrivSVMError(f"X: is neither a table nor rows of {len(names)} values each; give one of them") from None
    if widths:
        raise PrivSVMError(f"X: {min(widths)} columns, and the schema declares {len(names)}; name them")
    columns = X.T if is_array else list(zip(*rows, strict=True))
    return dict(zip(names, columns if len(rows) else [()] * len(names), strict=True))


def codes_by_number(column: Column) -> dict[Any, str]:
    """Return the categories whose text a number does not keep, such as 007, 2.50 or 1E3, by that number."""
    codes = dict[Any, str]()
    for word in column.words:
        with contextlib.suppress(ValueError, OverflowError):
            number = int(word) if word.isdecimal() else parse_number(word)
            if math.isfinite(number) and normalise_label(number) != column.category_key(word):
                codes[number] = word
    return codes


def _check_codes(name: str, column: Column, given: Any, cells: Sequence[Any] | None) -> None:
    """Raise PrivSVMError where a column of categories has the type of numbers that lose them, or cells such as 7."""
    kind, codes, lost = getattr(given, "dtype", getattr(given, "type", None)), codes_by_number(column), list[str]()
    if isinstance(kind, np.dtype) and kind.kind in "iuf":
        # One missing value makes floats of all of them.
        lost = [word for word in column.words if word.lstrip("-").isdecimal() and len(word) >= _LONG_CODE]
    if cells is None and _NUMBER_TYPE.match(str(getattr(getattr(kind, "categories", None), "dtype", kind))):
        lost += codes.values()
    elif cells is not None and codes:
        given_numbers = (cell for cell in cells if isinstance(cell, numbers.Number) and not _is_missing(cell))
        lost += [codes[number] for number in given_numbers if number in codes]
    if lost:
        raise PrivSVMError(
            f"X: column {name!r} holds numbers, and category {lost[0]!r} is a text that they lose; read the column as "
            f"text (dtype={{{name!r}: str}}), or declare codes of digits with `numeric: true` before training"
        )


def _cells_of(column: Any) -> list[Any]:
    """Turn a column into Python's values; a cell of which its package makes none is an object that nobody can read."""
    try:
        return column.to_pylist() if hasattr(column, "to_pylist") else list(column)
    except (ArithmeticError, ValueError):
        # Texts that are not UTF-8 and times out of range, of Arrow.
        cells = getattr(column, "array", column)
        return [_cell_of(cells, row) for row in range(len(cells))]


def _cell_of(cells: Any, row: int) -> Any:
    try:
        cell = cells[row]
        return cell.as_py() if hasattr(cell, "as_py") else cell
    except Exception:
        return object()


def delimiter_of(path: str | os.PathLike[str]) -> str:
    """Find what separates the names of a table's columns; no row is read.

    It is the one of a ``sep=`` line; else the usual delimiter that gives most names.
    """
    with open_table(path) as table:
        return table.separator or _likely_delimiter(table.line)


def _likely_delimiter(line: str) -> str:
    def columns(delimiter: str) -> int:
        try:
            names = split_fields(line, delimiter)
        except ValueError:
            return 0
        # A quotation mark within a name: the line was split between two of them.
        return len(names) * ('"' not in "".join(names))

    return max(_DELIMITERS, key=columns)


def header_of(path: str | os.PathLike[str], delimiter: str | None = None) -> list[str]:
    """Read the names of a table's columns, and nothing else of it.

    Raises PrivSVMError if the file is missing or empty, has another delimiter or encoding, or names a column twice or
    not at all. A delimiter of None is the one of a ``sep=`` line, or a comma.
    """
    with open_table(path, delimiter) as table:
        return _check_names(path, table)


def _check_names(path: Any, table: DelimitedText) -> list[str]:
    names = table.first
    if not names:
        raise PrivSVMError(f"{path}: the file is empty; its first line must name the columns")
    likely = _likely_delimiter(table.line)
    if len(names) == 1 and likely != table.delimiter and likely in table.line:
        raise PrivSVMError(
            f"{path}: one column by the delimiter {table.delimiter!r}, and several by {_DELIMITERS[likely]}; set "
            f"`delimiter: {json.dumps(likely)}` in the schema"
        )
    if "" in names:
        raise PrivSVMError(f"{path}: column {names.index('') + 1} has no name; give each column its own name")
    for name, count in Counter(names).items():
        if count > 1:
            raise PrivSVMError(f"{path}: column {name!r} is named {count} times; give each column its own name")
    return names


def _check_columns(path: Any, names: Sequence[str], schema: Schema, extra: Sequence[str], all_columns: bool) -> None:
    """Raise one error for all columns that the schema and the file do not share."""
    missing = [name for name in (*schema.features, *extra) if name not in names]
    declared = {*schema.columns, schema.label, schema.person}
    undeclared = [name for name in names if name not in declared] if all_columns else []
    problems = []
    if missing:
        hint = nearest_name(missing[0], names) if len(missing) == 1 else ""
        hint = hint if hint.startswith("did") else ""
        composed = functools.partial(unicodedata.normalize, "NFC")
        if {*map(composed, missing)} <= {*map(composed, names)}:
            hint = "written in another Unicode form there: save the file in NFC"
        problems.append(f"no column {list_names(missing)}" + (f" ({hint})" if hint else ""))
    if undeclared:
        problems.append(f"{list_names(undeclared)} not in the schema: declare each, or write `{undeclared[0]}: ignore`")
    if problems:
        # Without `all_columns`, further columns come from `privsvm predict --keep`.
        kept = not all_columns and not {*missing} & {*schema.features}
        raise PrivSVMError(f"{path}: {'; '.join(problems)}; correct {'--keep' if kept else 'the schema'} or the file")


def read_chunks(
    path: str | os.PathLike[str],
    schema: Schema,
    extra: Sequence[str] = (),
    *,
    all_columns: bool = False,
    rows: int = _CHUNK,
    tally: Tally | None = None,
    header: Sequence[str] | None = None,
) -> Iterator[dict[str, Sequence[str]]]:
    """Read a delimited text in blocks of rows.

    `extra` are further columns to read: label, person. With `all_columns`, those that the schema does not name are an
    error, which says all of them. `tally` counts the records, and the malformed ones among them, whose texts are all
    empty. `header` names the columns of a file whose first line is a row already. Raises PrivSVMError if the file
    cannot be read, or its header differs from the schema.
    """
    tally = Tally() if tally is None else tally
    with open_table(path, schema.delimiter) as table:
        names = _check_names(path, table) if header is None else list(header)
        _check_columns(path, names, schema, extra, all_columns)
        wanted = [(name, names.index(name)) for name in dict.fromkeys([*schema.features, *extra])]
        block: list[list[str]] = []
        for record in table if header is None else itertools.chain([table.first], table):
            block.append(tally.fields(record, len(names)))
            if len(block) == rows:
                yield _columns(block, wanted)
                block = []
        if block:
            yield _columns(block, wanted)


def _columns(block: list[list[str]], wanted: Sequence[tuple[str, int]]) -> dict[str, Sequence[str]]:
    columns = list(zip(*block, strict=True))
    return {name: columns[position] for name, position in wanted}


def table_columns(
    path: str | os.PathLike[str], delimiter: str | None = None, tally: Tally | None = None
) -> dict[str, list[str]]:
    """Read all columns of a table as text, for inspection; their values are private."""
    tally = Tally() if tally is None else tally
    with open_table(path, delimiter) as table:
        names = _check_names(path, table)
        rows = [tally.fields(record, len(names)) for record in table]
    return {name: [row[position] for row in rows] for position, name in enumerate(names)}


def read_labelled_table(
    path: str | os.PathLike[str], schema: Schema, header: Sequence[str] | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Read a table for a benchmark: all rows, with their labels as they are written.

    Raises PrivSVMError for the first malformed record, too: rows of a benchmark are not released.
    """
    encoder, tally = Encoder(schema), Tally()
    names = {normalise_label(name): name for name in schema.classes}
    blocks, labels = [np.zeros((0, len(encoder.feature_names)))], []
    for columns in read_chunks(path, schema, [schema.label], all_columns=True, tally=tally, header=header):
        if tally.first is not None:
            raise PrivSVMError(f"{path}: {tally.first}; fix that line")
        blocks.append(encoder.features(columns))
        labels += [names.get(label, label) for label in map(normalise_label, columns[schema.label])]
    return np.concatenate(blocks), np.array(labels, dtype=np.str_)


def units_table(path: str | os.PathLike[str], schema: Schema) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Read a table, and whose rows they are.

    Returns features, class codes, and the number of each row's person, from 0 in the order of the file; without a
    column for persons, of the row.

    A row whose label is none of the classes counts as one of the first class with all features 0: it stays one row, so
    that neighbours keep their number of rows. With a column for persons, the first rows of each in the file count, or
    the latest by a column of dates, as many as are declared; a row without an identifier counts for nobody and is left
    out, which moves no other row.
    """
    schema = parse_schema(schema)
    encoder = Encoder(schema)
    extra = [schema.label, *filter(None, (schema.person, schema.latest_by))]
    # The latest rows are known after the last one.
    most = sys.maxsize if schema.latest_by else schema.rows_per_person or 1
    blocks, labels = [np.zeros((0, len(encoder.feature_names)))], [np.zeros(0, dtype=np.int64)]
    units, days = [np.zeros(0, dtype=np.int64)], [np.zeros(0)]
    numbers: dict[str, int] = {}
    seen: Counter[str] = Counter()
    for columns in read_chunks(path, schema, extra, all_columns=True):
        X, codes = encoder.features(columns), encoder.labels(columns[schema.label])
        X[codes < 0] = 0.0
        codes[codes < 0] = 0
        if schema.person:
            persons = [*map(schema.person_of, columns[schema.person])]
            kept = bound_contribution(persons, most, seen)
            X, codes = X[kept], codes[kept]
            names = itertools.compress(persons, kept)
            units.append(np.array([numbers.setdefault(name, len(numbers)) for name in names], dtype=np.int64))
            if schema.latest_by:
                by = schema.columns[schema.latest_by]
                days.append(column_numbers(by, columns[schema.latest_by], schema.decimal)[kept])
        blocks.append(X)
        labels.append(codes)
    X, codes = np.concatenate(blocks), np.concatenate(labels)
    persons_of_rows = np.concatenate(units) if schema.person else np.arange(len(codes))
    if schema.latest_by:
        kept = choose_latest(persons_of_rows, np.concatenate(days), schema.rows_per_person or 1)
        X, codes, persons_of_rows = X[kept], codes[kept], persons_of_rows[kept]
    return X, codes, persons_of_rows


def choose_latest(units: np.ndarray, days: np.ndarray, most: int) -> np.ndarray:
    """Choose the latest rows (n,) of every unit, at most so many, by their days; NaN comes before all days.

    Of rows of one day, the first in the file count.
    """
    order = np.lexsort((-days, units))
    rank = np.arange(len(units)) - np.searchsorted(units[order], units[order])
    kept = np.zeros(len(units), dtype=bool)
    kept[order[rank < most]] = True
    return kept


def bound_contribution(persons: Sequence[str], most: int, seen: Counter[str]) -> np.ndarray:
    """Choose the first rows of every person.

    Identifiers are as `Schema.person_of` writes them, in the order of the file; nothing else is read. `most` rows count
    for each, and `seen`, the rows of earlier blocks by person, is updated.
    """
    kept = np.zeros(len(persons), dtype=bool)
    for row, person in enumerate(persons):
        if person:
            kept[row] = seen[person] < most
            seen[person] += 1
    return kept
