"""Rows of a reproduction's table (published, ours, difference, verdict) and the rules for verdicts."""

from __future__ import annotations

import collections
import csv
import dataclasses
import io
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

__all__ = [
    "COLUMNS",
    "VERDICTS",
    "Missing",
    "Published",
    "Row",
    "Rule",
    "compare",
    "count_verdicts",
    "merge_rows",
    "read_published",
    "read_rows",
    "rows_csv",
    "ruled_by",
    "within",
    "within_either",
    "within_share",
]

# Dataset, method, setting and metric, to the number as printed.
Published = Mapping[tuple[str, str, str, str], str]
# Verdict and reason of rows without a number of ours.
Missing = tuple[str, str]

# All verdicts, with their meanings.
VERDICTS: Mapping[str, str] = {
    "within tolerance": "within the rule of its table",
    "beyond tolerance": "outside the rule; the row says why",
    "ruled out": "a choice that the paper leaves open, and that does not give its number",
    "no data": "the dataset cannot be had here",
    "no number": "the paper prints no number, or it is lost in our copy",
    "not available": "this version does not have the method",
    "not run": "run `make reproduce` for it",
}


@dataclasses.dataclass(frozen=True)
class Rule:
    """A rule for when two numbers agree."""

    text: str  # For the table's caption.
    agrees: Callable[[float, float], bool]  # ``(published, ours) -> bool``.


# Decimal fractions are not exact in binary: a difference that prints as 0.01 counts as 0.01.
_ROUND_OFF = 1e-9


def within(tolerance: float) -> Rule:
    """Make the rule that the difference is at most `tolerance`."""
    return Rule(f"within {tolerance:g}", lambda published, ours: abs(ours - published) <= tolerance + _ROUND_OFF)


def within_share(share: float, least: float = 0.0) -> Rule:
    """Make the rule that the difference is at most `share` of the published number, or `least` (half a digit)."""
    return Rule(
        f"within {100 * share:g} %",
        lambda published, ours: abs(ours - published) <= max(share * abs(published), least) + _ROUND_OFF,
    )


def within_either(tolerance: float, share: float) -> Rule:
    """Make the rule that the difference is at most `tolerance`, or `share` of the published number."""
    return Rule(
        f"within {tolerance:g} or {100 * share:g} %",
        lambda published, ours: abs(ours - published) <= max(tolerance, share * abs(published)) + _ROUND_OFF,
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Row:
    """One compared number; raises ValueError for an unknown verdict, or if a required explanation is missing.

    `table` names the table inside its experiment. Empty texts do not apply, such as `published` if the paper prints no
    number. `difference` is ours minus the published number. `verdict` is one of `VERDICTS`. `explanation` says why the
    number differs or is missing: a row that differs or is ruled out needs one.
    """

    table: str
    dataset: str = ""
    method: str = ""
    setting: str = ""
    metric: str = ""
    published: str = ""
    ours: float | None = None
    difference: float | None = None
    verdict: str
    explanation: str = ""

    def __post_init__(self) -> None:
        if self.verdict not in VERDICTS:
            raise ValueError(f"verdict={self.verdict!r}: must be one of {', '.join(VERDICTS)}")
        if self.verdict in ("beyond tolerance", "ruled out") and not self.explanation:
            raise ValueError(f"{self.table}, {self.dataset}, {self.metric}: differs without an explanation")


COLUMNS = tuple(field.name for field in dataclasses.fields(Row))
_PLACE = COLUMNS[:5]


def ruled_by(holds: bool) -> Rule:
    """Make a rule whose outcome is already decided."""
    return Rule("", lambda published, ours: holds)


def compare(
    place: Sequence[str],
    published: str | None = "",
    ours: float | None = None,
    agrees: Rule | bool | None = None,
    *,
    why: str | Callable[[], str] = "",
    note: str = "",
    missing: Missing | None = None,
    open_choice: bool = False,
) -> Row:
    """Compare a number of ours with a printed one, or with a statement.

    `place` has table, dataset, method, setting and metric; the last ones may be left out. `published` is the number as
    printed, or the statement. `ours` is None only together with `missing`, the verdict and reason without a number.
    `agrees` is a rule for two numbers, whether the statement holds, or None if nothing is compared. `why` explains a
    difference; a callable is called only if there is one. `note` stands in the row in any case. `open_choice` marks a
    choice that the paper leaves open: a difference rules it out.
    """
    labels: dict[str, Any] = dict(zip(_PLACE, place, strict=False))
    row = Row(**labels, published=published or "", verdict="no number")
    if missing is not None or ours is None:
        verdict, reason = missing or ("not run", "")
        return dataclasses.replace(row, verdict=verdict, explanation=reason)
    if agrees is None or (isinstance(agrees, Rule) and not published):
        return dataclasses.replace(row, ours=ours, explanation=note)
    number = float(row.published) if isinstance(agrees, Rule) else None
    inside = agrees.agrees(number, ours) if isinstance(agrees, Rule) and number is not None else bool(agrees)
    reason = "" if inside else why() if callable(why) else why
    return dataclasses.replace(
        row,
        ours=ours,
        difference=None if number is None else ours - number,
        verdict="within tolerance" if inside else "ruled out" if open_choice else "beyond tolerance",
        explanation="; ".join(filter(None, (reason, note))),
    )


def count_verdicts(rows: Iterable[Row]) -> dict[str, int]:
    """Count the rows of each verdict that occurs, in the order of `VERDICTS`."""
    counts = collections.Counter(row.verdict for row in rows)
    return {verdict: counts[verdict] for verdict in VERDICTS if counts[verdict]}


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        # Six digits are more than any paper prints; adding 0 turns -0.0 into 0.0.
        return f"{value + 0.0:.6g}" if math.isfinite(value) else str(value)
    return str(value)


def rows_csv(rows: Sequence[Row]) -> str:
    """Write rows as CSV text, with `COLUMNS` as header."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in rows:
        writer.writerow([_cell(getattr(row, column)) for column in COLUMNS])
    return buffer.getvalue()


def read_rows(path: str | Path) -> list[Row]:
    """Read the rows that `rows_csv` wrote."""
    with open(path, encoding="utf-8", newline="") as handle:
        records = list(csv.DictReader(handle))
    rows = []
    for record in records:
        numbers: dict[str, Any] = {key: float(record[key]) if record[key] else None for key in ("ours", "difference")}
        rows.append(Row(**{**record, **numbers}))
    return rows


def _cells(rows: Iterable[Row]) -> dict[tuple[str, ...], Row]:
    """Index rows by the compared number; rows with the same key are numbered in their order."""
    seen: collections.Counter[tuple[str, ...]] = collections.Counter()
    cells: dict[tuple[str, ...], Row] = {}
    for row in rows:
        key = (row.table, row.dataset, row.method, row.setting, row.metric)
        cells[*key, str(seen[key])] = row
        seen[key] += 1
    return cells


def merge_rows(earlier: Sequence[Row], present: Sequence[Row], settled: Callable[[Row], bool]) -> list[Row]:
    """Keep earlier rows wherever the present ones rest on incomplete results.

    `earlier` are the rows of the table, `present` those from the results stored here, and `settled` tells whether the
    results behind a present row are complete. Returns the settled present row if there is one, else the earlier row;
    present rows also stay on datasets without an earlier row. If all present rows are settled, these are returned.
    """
    if all(settled(row) for row in present):
        return list(present)
    old, new = _cells(earlier), _cells(present)
    # Row names may depend on results: a row without results counts only if its dataset had no rows before.
    datasets = {(row.table, row.dataset) for row in earlier}
    added = [key for key, row in new.items() if key not in old and (settled(row) or key[:2] not in datasets)]
    keys = [*old, *added]
    # Tables stay together, in the order of their first row.
    order = {name: number for number, name in enumerate(dict.fromkeys(key[0] for key in keys))}
    merged = []
    for key in sorted(keys, key=lambda key: order[key[0]]):
        row = new.get(key)
        merged.append(row if row is not None and (key not in old or settled(row)) else old[key])
    return merged


def read_published(path: str | Path) -> Published:
    """Read a paper's numbers as printed, by ``(dataset, method, setting, metric)``.

    The file is a CSV with the columns ``source, dataset, method, setting, metric, value``.
    """
    with open(path, encoding="utf-8", newline="") as handle:
        return {
            (row["dataset"], row["method"], row["setting"], row["metric"]): row["value"]
            for row in csv.DictReader(handle)
        }
