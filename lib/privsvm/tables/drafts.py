"""A first draft of a schema from a table's header, and from its values where the user asks for it."""

from __future__ import annotations

import json
import os
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from privsvm.errors import PrivSVMError, nearest_name
from privsvm.tables.delimited import MISSING
from privsvm.tables.labels import normalise_label
from privsvm.tables.schema import FORMS, Column, day_number
from privsvm.tables.tables import delimiter_of, header_of, table_columns

_FORMATS = ("%Y-%m-%d", "%d.%m.%Y", "%d.%m.%y", "%d/%m/%Y", "%m/%d/%Y", "iso", "%d.%m.%Y %H:%M")
_MOST_CATEGORIES = 20


def _quote(text: object) -> str:
    return json.dumps(str(text), ensure_ascii=False)


def draft_schema(
    path: str | os.PathLike[str], *, label: str | None = None, person: str | None = None, delimiter: str | None = None,
    look: bool = False,
) -> str:  # fmt: skip
    """Draft a schema.

    `label` and `person` are columns, where they are known. If it is to `look`, the values are read too: drafts made
    from them are marked, and no release takes it before a person has confirmed every line. The YAML says ``decide``
    where a decision is needed. Raises PrivSVMError if the file cannot be read, or its header does not name these
    columns.
    """
    delimiter = delimiter_of(path) if delimiter is None else delimiter
    names = header_of(path, delimiter)
    for what, column in (("label", label), ("person", person)):
        if column is not None and column not in names:
            raise PrivSVMError(f"{path}: no column {column!r} for --{what}; {nearest_name(column, names)}")
    values = table_columns(path, delimiter) if look else {}
    lines = [
        "# Draft of a public schema. Nothing in it may be read off the rows: take ranges and codes from elsewhere.",
        f"# Each column is one of {FORMS}.",
        '# missing: [-999, "n.d."] # values that stand for missing ones',
        "# `fill` stands for missing values: a usual value from elsewhere, or the middle of the range.",
        "version: 1",
        f"name: {_account(path)} # of the data set: its account in the ledger",
        f"label: {'decide' if label is None else _quote(label)} # the column to predict",
        'classes: decide # every label that may occur, in quotes: ["no", "yes"]',
    ]
    lines.append("prescaled: decide # false: the file was not scaled or filled in by statistics of its own rows")
    if person is None:
        lines += ["# person: patient_id # if a person may have several rows; then also", "# rows_per_person: decide"]
    else:
        lines += [
            f"person: {_quote(person)}",
            "rows_per_person: decide # so many count, by a rule that you know without the table; 1 if there is none",
            "# latest_by: visit_date # a date column, by which the latest of them count; else the first in the file",
        ]
    if delimiter != ",":
        lines.append(f"delimiter: {_quote(delimiter)}")
        commas = any(_has_commas(column) for column in values.values())
        lines.append(f'{"" if commas else "# "}decimal: "," # where numbers are written 1,5')
    if look:
        lines.insert(0, "# PRIVATE: drafted from the values of the rows. Do not hand it on before `looked` is gone.")
    lines.append(
        "# card: {purpose: what the model is for, intended_use: who may use it and how, owner: name, contact: address, "
        "expires: YYYY-MM-DD}"
    )
    lines.append("columns:")
    for name in names:
        if name not in (label, person):
            lines.append(f"  {_quote(name)}: {_guess_kind(values[name], delimiter != ',') if look else 'decide'}")
    return "\n".join(lines) + "\n"


def _account(path: str | os.PathLike[str]) -> str:
    """Name an account after a file, in the letters that names of accounts are made of."""
    plain = unicodedata.normalize("NFKD", Path(path).name.split(".")[0]).encode("ascii", "ignore").decode()
    return re.sub(r"[^A-Za-z0-9_]+", "-", plain).strip("-_") or "my-data"


def _present(values: Sequence[str]) -> list[str]:
    return [value for value in values if value.strip().lower() not in MISSING]


def _has_commas(values: Sequence[str]) -> bool:
    """Whether a column holds numbers, and some of them only if a comma is the decimal mark."""
    present, number = _present(values), Column(bounds=(0, 1))
    by_comma = [number.read(value, ",") for value in present]
    return all(value == value for value in by_comma) and any("," in value for value in present)


def _guess_kind(values: Sequence[str], commas: bool) -> str:
    """Guess a column's kind from its values."""
    present = _present(values)
    number, yes_or_no = Column(bounds=(0, 1)), Column(boolean=True)
    decimal = "," if commas and _has_commas(values) else None
    read = [number.read(value, decimal) for value in present]
    distinct = Counter(normalise_label(value) for value in present)
    if len(distinct) == 2 and sorted(map(yes_or_no.number, distinct)) == [0.0, 1.0]:
        return "{boolean: true, fill: middle, looked: true}"
    if present and all(value == value for value in read) and len(distinct) > 2:
        return f"{{bounds: [{min(read):g}, {max(read):g}], fill: middle, looked: true}}"
    present = list(dict.fromkeys(present))
    for form in _FORMATS:
        days = [day_number(value.strip(), form) for value in present]
        if present and all(day == day for day in days):
            first, last = (present[days.index(end)].strip() for end in (min(days), max(days)))
            return f"{{date: {_quote(form)}, bounds: [{_quote(first)}, {_quote(last)}], fill: middle, looked: true}}"
    if 0 < len(distinct) <= _MOST_CATEGORIES:
        listed = ", ".join(_quote(word) for word in sorted(distinct))
        return f"{{categories: [{listed}], unknown: other, looked: true}}"
    return "decide # neither numbers, nor dates, nor few words"
