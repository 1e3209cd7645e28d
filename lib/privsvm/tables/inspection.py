"""Findings of a look at the rows. Its answers are private: they are for the owner of the table alone."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from privsvm.tables.delimited import Tally
from privsvm.tables.labels import normalise_label
from privsvm.tables.schema import Column, Schema, day_number
from privsvm.tables.tables import column_numbers, delimiter_of, read_chunks, table_columns

_FEW = 20
_EXACT = 1e-6
# Letters of a value that is quoted.
_LONG = 30


def inspect_table(
    path: str | os.PathLike[str], schema: Schema | None = None, delimiter: str | None = None
) -> list[str]:
    """List how much of a table can be read, and its likely mistakes.

    One line for each column, how many of its values could be read, and one for each finding. The delimiter is for a
    file without a declaration; None: as in its header.
    """
    tally = Tally()
    if schema is None:
        columns = table_columns(path, delimiter_of(path) if delimiter is None else delimiter, tally)
        numbers = {name: _numbers(values) for name, values in columns.items()}
        lines = [_share_read(name, np.isfinite(column), "are numbers") for name, column in numbers.items()]
        findings = [text for name, column in numbers.items() for text in _looks_scaled(name, column)]
        return lines + _about_records(tally) + findings
    extra = [schema.label, *filter(None, (schema.person, schema.latest_by))]
    table: dict[str, list[str]] = {}
    for block in read_chunks(path, schema, extra, all_columns=True, tally=tally):
        for name, values in block.items():
            table.setdefault(name, []).extend(values)
    if not table:
        return ["no rows: the model will hold noise alone"]
    lines = [_share_read(schema.label, _are_among(table[schema.label], schema.classes))]
    findings = _about_records(tally) + _about_labels(schema, table[schema.label])
    for name, column in schema.features.items():
        if column.kind == "categories":
            read = np.isin([*map(column.category_key, table[name])], [*map(column.category_key, column.words)])
            findings += _about_categories(name, column, table[name], read)
        else:
            numbers_read = column_numbers(column, table[name], schema.decimal)
            read = np.isfinite(numbers_read)
            findings += _about_numbers(name, column, table[name], numbers_read, schema.decimal)
            findings += _about_formats(name, column, table[name])
        lines.append(_share_read(name, read))
    if schema.latest_by in table and schema.latest_by not in schema.features:
        days = column_numbers(schema.columns[schema.latest_by], table[schema.latest_by], schema.decimal)
        lines.append(_share_read(schema.latest_by, np.isfinite(days)))
    if schema.person:
        persons = [*map(schema.person_of, table[schema.person])]
        lines.append(_share_read(schema.person, np.array([person != "" for person in persons])))
        findings += _about_persons(schema, persons)
    return lines + findings


def _are_among(values: Sequence[str], words: Sequence[str]) -> np.ndarray:
    """Return which values (n,) are among some words."""
    keys = set(map(normalise_label, words))
    return np.array([normalise_label(value) in keys for value in values])


def _share_read(name: str, read: np.ndarray, words: str = "could be read") -> str:
    return f"{name}: {int(np.sum(read))} of {len(read)} values {words}"


def _about_records(tally: Tally) -> list[str]:
    return [f"{tally}; each counts as a row without any value: mend them"] * bool(tally.malformed)


def _about_labels(schema: Schema, labels: Sequence[str]) -> list[str]:
    counts, strange = Counter(map(normalise_label, labels)), np.array(labels)[~_are_among(labels, schema.classes)]
    findings = [f"{len(labels)} rows: too few for any noise to leave something"] if len(labels) < _FEW else []
    if len(strange):
        findings.append(
            f"label: {len(strange)} rows have none of the classes{_such_as(strange)}; each counts as an empty row of "
            "the first class: remove these rows from the file, or declare their class"
        )
    present = [name for name in schema.classes if counts[normalise_label(name)]]
    if len(present) == 1:
        findings.append(f"label: only class {present[0]!r} occurs; the model cannot tell classes apart")
    absent = [name for name in schema.classes if name not in present]
    return findings + [f"label: class {name!r} does not occur" for name in absent if len(present) > 1]


def _about_categories(name: str, column: Column, values: Sequence[str], read: np.ndarray) -> list[str]:
    unread = [value for value, listed in zip(values, read, strict=True) if not listed]
    unknown = column.leave_out_missing(unread)
    missing = len(unread) - len(unknown)
    bucket = "no category at all" if column.unknown is None else repr(column.unknown)
    words = f"{name}: {len(unknown)} values are none of the categories{_such_as(unknown)}; they count as {bucket}"
    return [words] * bool(unknown) + [f"{name}: {missing} values are missing; they count as {bucket}"] * bool(missing)


def _about_numbers(
    name: str, column: Column, values: Sequence[str], numbers: np.ndarray, decimal: str | None
) -> list[str]:
    finite_numbers = numbers[np.isfinite(numbers)]
    low, high = column.limits
    outside = [
        value
        for value, number in zip(values, numbers, strict=True)
        if np.isfinite(number) and not low <= number <= high
    ]
    findings = []
    unread = [value for value, number in zip(values, numbers, strict=True) if not np.isfinite(number)]
    strange = column.leave_out_missing(unread, decimal)
    if not len(finite_numbers):
        findings.append(f"{name}: NONE of its values could be read: its feature will be the same in all rows")
    if len(unread) > len(strange):
        findings.append(f"{name}: {len(unread) - len(strange)} values are missing; they count as the fill value")
    if strange:
        commas = decimal != "," and any(column.read(value, ",") == column.read(value, ",") for value in strange)
        remedy = '; where commas are decimal marks, set `decimal: ","`' if commas else ""
        findings.append(
            f"{name}: {len(strange)} values cannot be read{_such_as(strange)}; they count as the fill value{remedy}"
        )
    if outside:
        findings.append(
            f"{name}: {len(outside)} values lie outside the bounds{_such_as(outside)}; each counts as the nearer end"
        )
    if len(finite_numbers) and np.ptp(finite_numbers) < 0.05 * (high - low):
        findings.append(f"{name}: the values fill less than a twentieth of the bounds; narrower public ones would help")
    if (
        column.kind == "number"
        and len(finite_numbers) > 2
        and (finite_numbers.min(), finite_numbers.max()) == (low, high)
        and low != round(low)
    ):
        findings.append(
            f"{name}: the bounds are the least and the greatest value exactly; were they read off the rows?"
        )
    return findings + (_looks_scaled(name, numbers) if column.kind == "number" else [])


def _about_formats(name: str, column: Column, values: Sequence[str]) -> list[str]:
    if len(column.formats) < 2:
        return []
    read = {value: {day_number(value.strip(), form) for form in column.formats} for value in {*values}}
    unclear = [value for value in values if sum(map(math.isfinite, read[value])) > 1]
    words = f"{name}: {len(unclear)} values are two dates by two formats{_such_as(unclear)}; the first format counts"
    return [words] * bool(unclear)


def _such_as(values: Iterable[str]) -> str:
    """Quote the most frequent of some values, shortly."""
    frequent = [value for value, _ in Counter(map(str.strip, values)).most_common(3)]
    return ", such as " + ", ".join(repr(value[:_LONG] + "..." if len(value) > _LONG else value) for value in frequent)


def _numbers(values: Sequence[str]) -> np.ndarray:
    """Read numbers (n,) of a column of which nothing is declared, with points or commas; NaN for other text."""
    by_point, by_comma = (column_numbers(Column(bounds=(0, 1)), values, mark) for mark in (None, ","))
    return np.where(np.isfinite(by_point), by_point, by_comma)


def _looks_scaled(name: str, numbers: np.ndarray) -> list[str]:
    """Tell whether a column looks as if it had been scaled by its own rows."""
    numbers = numbers[np.isfinite(numbers)]
    if len(np.unique(numbers)) < 3:
        return []
    if abs(numbers.mean()) < _EXACT and any(abs(numbers.std(ddof=ddof) - 1.0) < _EXACT for ddof in (0, 1)):
        return [f"{name}: mean 0 and deviation 1 exactly: standardised by these rows, which no epsilon covers"]
    fractions = bool((numbers != np.round(numbers)).any())
    if fractions and (numbers.min(), numbers.max()) in ((0.0, 1.0), (-1.0, 1.0)):
        return [
            f"{name}: from {numbers.min():g} to {numbers.max():g} exactly: perhaps scaled by these rows, which no "
            "epsilon covers"
        ]
    return []


def _about_persons(schema: Schema, persons: Sequence[str]) -> list[str]:
    counts = Counter(persons)
    nobody = counts.pop("", 0)
    most = schema.rows_per_person or 1
    left_out = sum(count - most for count in counts.values() if count > most)
    findings = [f"{schema.person}: {nobody} rows name nobody and are left out"] if nobody else []
    if left_out:
        findings.append(
            f"{schema.person}: {left_out} rows beyond {schema.rows_that_count} of their person are left out"
        )
    return findings
