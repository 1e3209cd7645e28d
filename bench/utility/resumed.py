"""Tables of runs that can be stopped and resumed."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from privsvm.files import write_text

__all__ = ["append", "keep"]


def keep(table: Path, fields: Sequence[str], holds: Callable[[dict[str, str]], bool]) -> list[dict[str, str]]:
    """Remove outdated rows of a table, which need not exist; return the others, in order."""
    kept = []
    if table.exists():
        with table.open(newline="") as file:
            kept = [row for row in csv.DictReader(file) if holds(row)]
    kept.sort(key=lambda row: [row[name] for name in fields])
    lines = [",".join(fields), *(",".join(row[name] for name in fields) for row in kept)]
    write_text(table, "\n".join(lines) + "\n")
    return kept


def append(table: Path, row: Sequence[Any]) -> None:
    """Add one row."""
    with table.open("a", newline="") as file:
        csv.writer(file, lineterminator="\n").writerow(row)
