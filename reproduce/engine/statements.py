"""Statements of a paper's text: declared in tables, judged by rows of an experiment or by words for a trend."""

from __future__ import annotations

import csv
import dataclasses
import fnmatch
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from reproduce.engine.comparison import Row, read_rows
from reproduce.engine.distributions import SINGLE, Distribution
from reproduce.engine.trends import (
    UNDECIDED,
    WORDS,
    Estimate,
    gap_of,
    judge_word,
    ratio,
    slope,
    smallest_step,
)

__all__ = ["Claim", "read_claims", "read_trends", "statement"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Claim:
    """A statement of a paper's text."""

    id: str
    source: str  # Its place in the paper.
    text: str  # The statement in our words.
    verdict: str  # One of `reproduce.engine.judging.VERDICTS`.
    ours: str  # Our finding.
    experiment: str = ""  # Whose page shows it; empty without one.
    reason: str = ""  # Why it is undecided, if it is.
    brief: str = ""  # Our finding in a few words, for a line on the paper; mostly empty.

    def __post_init__(self) -> None:
        if self.verdict == "cannot discriminate" and not self.reason:
            raise ValueError(f"{self.id}: an undecided statement says why")


def statement(
    name: str, source: str, text: str, holds: bool | None, ours: str, reason: str = "", brief: str = ""
) -> Claim:
    """Judge a statement; `holds` tells whether our runs agree, None without runs.

    `ours` is the result of our runs, and `brief` the same in a few words. `reason` says why neither outcome would mean
    anything, if so.
    """
    if holds is None:
        return Claim(id=name, source=source, text=text, verdict="not judged yet", ours="")
    verdict = "cannot discriminate" if reason else "agrees" if holds else "refuted"
    return Claim(id=name, source=source, text=text, verdict=verdict, ours=ours, reason=reason, brief=brief)


def read_claims(path: str | Path, reports: str | Path) -> list[Claim]:
    """Read the statements whose check is a table of an experiment in `reports`.

    ``claims.csv`` has ``id, source, claim, experiment, table, method, metric, said, need, undecided, brief``. The rows
    of the table with this method, metric and text (``said``; empty means any) must satisfy ``need``: "all" or "most" of
    them; "one", for a figure of one dataset that our copy does not name; "zero": numbers within two standard errors of
    0; "between" two numbers; "at most" a number; or within a "range" of a width. ``undecided`` says why neither outcome
    would mean anything, and ``brief`` is our finding, with {fails} and {total} rows; both are mostly empty.
    """
    if not Path(path).exists():
        return []
    with open(path, encoding="utf-8", newline="") as handle:
        return [_read_claim(record, Path(reports)) for record in csv.DictReader(handle)]


_CHECKED = ("within tolerance", "beyond tolerance")
_ONE_FIGURE = "it holds on some datasets only, and our copy does not name that of the figure"


def _read_claim(record: Mapping[str, str], reports: Path) -> Claim:
    """Judge one statement by the rows of its table."""
    table, need = reports / f"{record['experiment']}.csv", record["need"]
    rows = [
        row
        for row in (read_rows(table) if table.exists() else [])
        if row.table == record["table"]
        and record["method"] in ("", row.method)
        and record["metric"] in ("", row.metric)
        and (row.published or (need.startswith("between") and row.ours is not None))
        and record["said"] in ("", row.published)
    ]
    shared = {"id": record["id"], "source": record["source"], "text": record["claim"],
              "experiment": record["experiment"]}  # fmt: skip
    checked = [(row, held) for row in rows if (held := _holds_in(row, need)) is not None]
    if not checked:
        return Claim(**shared, verdict="no data" if rows else "not judged yet", ours="")
    values = [row.ours for row, _ in checked if row.ours is not None]
    spread = f"{min(values):.3g} to {max(values):.3g}" if len(values) > 1 else f"{values[0]:.3g}"
    ours = f"{record['metric'] or 'value'}: {spread}"
    holds, total = sum(held for _, held in checked), len(checked)
    if total > 1 and not need.startswith(("zero", "range")):
        ours = f"holds in {holds} of {total}; {ours}"
    enough = _holds(need, holds, total, rows)
    reason = record["undecided"] or ("" if enough or need != "one" or holds == 0 else _ONE_FIGURE)
    verdict = "cannot discriminate" if reason else "agrees" if enough else "refuted"
    brief = (record.get("brief") or "").format(fails=total - holds, total=total)
    return Claim(**shared, verdict=verdict, ours=ours, reason=reason, brief=brief)


def _holds_in(row: Row, need: str) -> bool | None:
    """Return whether a statement holds in a row; None without a number of ours.

    Numbers that are to lie between two others are rounded as these are printed.
    """
    if need.startswith("between") and row.ours is not None:
        _, low, high = need.split()
        return float(low) <= round(row.ours, len(high.partition(".")[2])) <= float(high)
    if row.verdict not in _CHECKED or row.ours is None:
        return None
    if need.startswith("at most"):
        return row.ours <= float(need.removeprefix("at most"))
    return row.verdict == _CHECKED[0]


def _holds(need: str, holds: int, total: int, rows: Sequence[Row]) -> bool:
    """Return whether enough rows hold; "zero" checks numbers and standard errors, "range" the spread of numbers."""
    if need.startswith("range"):
        values = [row.ours for row in rows if row.ours is not None]
        return max(values) - min(values) <= float(need.partition(" ")[2])
    if need == "zero":
        errors = [re.search(r"se ([0-9.]*[0-9])", row.explanation) for row in rows]
        return all(
            row.ours is not None and error is not None and abs(row.ours) <= 2.0 * float(error[1])
            for row, error in zip(rows, errors, strict=True)
        )
    return 2 * holds > total if need == "most" else holds == total


# Points from which a line is judged.
_LEAST_POINTS = 3


def read_trends(path: str | Path, distributions: Mapping[str, Distribution]) -> list[Claim]:
    """Judge the statements on trends and ratios that a word decides; `distributions` are by cell.

    ``trends.csv`` has ``id, source, claim, word, estimate, cells, over, ours, undecided``. ``word`` is one of
    `reproduce.engine.trends.WORDS`. ``cells``: names of drawn numbers, an asterisk for the place on the first
    axis, bars between several; ``over``: the cells that a gap or a ratio compares them with. ``estimate``: "slope"
    (over the share of the last place), "slope log10", "exponent", "factor" (of that exponent over the whole range),
    "step" (the smallest, once the line rises at all), "gap" or "ratio". ``ours`` is our finding, with names in braces.
    """
    if not Path(path).exists():
        return []
    with open(path, encoding="utf-8", newline="") as handle:
        return [_read_trend(record, distributions) for record in csv.DictReader(handle)]


def _points(pattern: str, distributions: Mapping[str, Distribution]) -> list[tuple[float, Distribution]]:
    """Return place and distribution of the cells of one pattern, by place."""
    head, _, tail = pattern.partition("*")
    cells = fnmatch.filter(distributions, pattern)
    return sorted(
        ((float(cell[len(head) : len(cell) - len(tail)] or 0.0), distributions[cell]) for cell in cells),
        key=lambda point: point[0],
    )


def _read_trend(record: Mapping[str, str], distributions: Mapping[str, Distribution]) -> Claim:
    name, source, text, word, kind = (record[key] for key in ("id", "source", "claim", "word", "estimate"))
    points = [point for pattern in record["cells"].split("|") for point in _points(pattern, distributions)]
    others = [item for pattern in record["over"].split("|") for _, item in _points(pattern, distributions)]
    places, items = [place for place, _ in points], [item for _, item in points]
    if not items or (record["over"] and not others) or (not record["over"] and len(items) < _LEAST_POINTS):
        return statement(name, source, text, None, "")
    said: dict[str, object] = {"word": WORDS[word].meaning}
    if kind == "gap":
        estimate = gap_of(items[0], others[0])
        said |= {"first": items[0].median, "second": others[0].median}
    elif kind == "ratio":
        # A training that several figures share counts once where it was measured once.
        pairs = {(a.median, b.median) if a.statistic == SINGLE else number: (a, b)
                 for number, (a, b) in enumerate(zip(items, others, strict=True))}  # fmt: skip
        estimate = ratio([a for a, _ in pairs.values()], [b for _, b in pairs.values()])
    elif kind in ("exponent", "factor"):
        estimate, span = slope(places, items, exponent=True), places[-1] / places[0]
        if kind == "factor":
            estimate = Estimate(*(span**power for power in estimate))
        said["span"] = span
    else:
        log = kind == "slope log10"
        estimate = slope([math.log10(place) if log else place / places[-1] for place in places], items)
        said |= {"listed": ", ".join(f"{item.median:.3f}" for item in items), "slope": estimate}
        if kind == "step":
            # Steps say something of a line only if it rises at all.
            said["step"] = smallest_step(items)
            word, estimate = (
                (word, smallest_step(items)) if judge_word("rises", estimate) == "agrees" else ("rises", estimate)
            )
    verdict = judge_word(word, estimate)
    reason = record["undecided"] or (UNDECIDED if verdict == "cannot discriminate" else "")
    ours = record["ours"].format(estimate=estimate, **said)
    return statement(name, source, text, verdict == "agrees", ours, reason)
