"""A first draft of a schema from a table's header, and from its values where the user asks for it."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from privsvm.data.schema import FORMS, Column, day_number
from privsvm.data.settings import normalise_label
from privsvm.data.tables import header_of, table_columns

__all__ = ["draft_schema"]

_FORMATS = ("%Y-%m-%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y")
_MOST_CATEGORIES = 20


def _quoted(text: object) -> str:
    import json

    return json.dumps(str(text), ensure_ascii=False)


def draft_schema(
    path: str | os.PathLike[str], *, label: str | None = None, person: str | None = None, delimiter: str = ",",
    look: bool = False,
) -> str:  # fmt: skip
    """Draft a schema.

    Parameters
    ----------
    path : path-like
        The table.
    label, person : str or None
        Columns, where they are known.
    delimiter : str, default=","
        Of the file.
    look : bool, default=False
        Whether the values are read too. What is drafted from them is marked, and no release takes it before a person
        has confirmed every line.

    Returns
    -------
    str
        YAML. What needs a decision says ``decide``.
    """
    names = header_of(path, delimiter)
    values = table_columns(path, delimiter) if look else {}
    lines = [
        "# Draft of a public schema. Nothing in it may be read off the rows: take ranges and codes from elsewhere.",
        f"# Each column is one of {FORMS}.",
        "version: 1",
        f"name: {_account(path)} # of the data set: its account in the ledger",
        f"label: {_quoted(label) if label in names else 'decide'} # the column to predict",
        'classes: decide # every label that may occur, in quotes: ["no", "yes"]',
    ]
    lines.append("prescaled: decide # false: the file was not scaled or filled in by statistics of its own rows")
    if person is None:
        lines += ["# person: patient_id # if a person may have several rows; then also", "# rows_per_person: 5"]
    else:
        lines += [f"person: {_quoted(person)}", "rows_per_person: 5 # at most so many count"]
    if delimiter != ",":
        lines.append(f"delimiter: {_quoted(delimiter)}")
    if look:
        lines.insert(0, "# PRIVATE: drafted from the values of the rows. Do not hand it on before `looked` is gone.")
    lines.append("columns:")
    for name in names:
        if name not in (label, person):
            lines.append(f"  {_quoted(name)}: {_looked(values[name]) if look else 'decide'}")
    return "\n".join(lines) + "\n"


def _account(path: str | os.PathLike[str]) -> str:
    stem = "".join(sign if sign.isalnum() or sign in "-_" else "-" for sign in Path(path).name.split(".")[0])
    return stem.strip("-_") or "my-data"


def _looked(values: Sequence[str]) -> str:
    """Guess what a column is from its values."""
    present = [value for value in values if value.strip()]
    number = Column(bounds=(0, 1))
    read = [number.number(value) for value in present]
    distinct = Counter(normalise_label(value) for value in present)
    if present and all(value == value for value in read) and len(distinct) > 2:
        return f"{{bounds: [{min(read):g}, {max(read):g}], looked: true}}"
    for form in _FORMATS:
        days = [day_number(value.strip(), form) for value in present]
        if present and all(day == day for day in days):
            first, last = (present[days.index(end)].strip() for end in (min(days), max(days)))
            return f"{{date: {_quoted(form)}, bounds: [{_quoted(first)}, {_quoted(last)}], looked: true}}"
    if 0 < len(distinct) <= _MOST_CATEGORIES:
        listed = ", ".join(_quoted(word) for word in sorted(distinct))
        return f"{{categories: [{listed}], unknown: other, looked: true}}"
    return "ignore"
