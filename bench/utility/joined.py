"""Rows of joined entries: their CSV files, their places among the listed entries, and the section of the page.

``python bench/utility/joined.py scores.parquet`` writes the raw scores of all entries to one file, with the
schema `SCHEMA`.
"""

from __future__ import annotations

import csv
import dataclasses
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from entries import DELTA, ENTRIES, RANKED, ROOT, TABLES, VARIANTS, title
from ranking import accuracies, by_rows, read, reference, under
from scores import DIGITS, SCORES
from sets import SMALLEST

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from sections import csv_text, markdown_table, with_section

from privsvm.files import write_text

PAGE = ROOT / "docs" / "leaderboard.md"
_MARKS = ("<!-- joined: written by bench/utility/join.py -->", "<!-- end of joined -->")
# Training rows of the smallest sets.
_SIZES = {"fewer than 300": (0, 300), "300 to 700": (300, 700), "700 to 1,200": (700, 1200)}
_RESAMPLES = 2000
HEADER = (
    "entry", "status", "relation", "delta", "tuning", "epsilon is at least (draws)",
    *(f"place at {epsilon:g}, {relation}" for relation, epsilon in RANKED),
    *(f"loss, {words} rows" for words in _SIZES), "splits", "repeats",
)  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Table:
    """A CSV file with some rows for each entry, whose name is in the first column."""

    path: Path
    fields: tuple[str, ...]

    def rows(self) -> list[dict[str, str]]:
        """Read all rows; none without the file."""
        if not self.path.exists():
            return []
        with self.path.open(encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))

    def replace(self, name: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Write the rows of an entry in the place of its earlier ones."""
        others = [row for row in self.rows() if row[self.fields[0]] != name]
        everything = sorted([*others, *rows], key=lambda row: [str(row[field]) for field in self.fields])
        write_text(self.path, csv_text(self.fields, everything))

    def add(self, row: Mapping[str, Any]) -> None:
        """Write a row after the others."""
        write_text(self.path, csv_text(self.fields, [*self.rows(), row]))


KEYS = ("entry", "set", "neighbours", "epsilon", "split")
JOINED_SCORES = Table(TABLES / "joined_scores.csv", (*KEYS, *SCORES))
STATEMENTS = Table(
    TABLES / "joined.csv",
    ("name", "entry_file", "status", "relation", "delta", "tuning", "noise", "reference", "splits", "repeats", "draws",
     "at_least", "refuted", "pair", "withdrawn"),
)  # fmt: skip
HOLDOUTS = Table(
    TABLES / "holdouts.csv",
    ("name", "seed", "columns", "classes", "entry", "recommended", "svm", "majority"),
)


def mean_place(field: pd.DataFrame, values: pd.Series) -> str:
    """Write the mean place over sets, 1 and the number of listed entries ahead, with an interval for 95 %.

    The interval is of sets drawn with replacement. An entry without an answer is last, and ties share the better place.
    """
    places = 1 + field.fillna(-1.0).gt(values.fillna(-1.0), axis=0).sum(axis=1).to_numpy()
    drawn = np.random.default_rng(0).integers(len(places), size=(_RESAMPLES, len(places)))
    low, high = np.quantile(places[drawn].mean(axis=1), [0.025, 0.975])
    return f"{places.mean():.1f} ({low:.1f} to {high:.1f})"


def losses(cells: pd.DataFrame, values: pd.Series) -> list[str]:
    """Write the median points below the SVM without privacy, by size of table."""
    svm = reference(cells, "svm").groupby("set").mean().reindex(list(SMALLEST))
    groups = by_rows(100.0 * (svm - values), _SIZES).values()
    return [f"{group.median():.1f}" if group.notna().any() else "" for group in groups]


def entry_row(cells: pd.DataFrame, own: pd.DataFrame, statement: Mapping[str, str]) -> list[str]:
    """Lay out the row of an entry from all listed cells and its own."""
    name, shown = statement["name"], []
    for relation, epsilon in RANKED:
        here = under(own, relation)
        values = here[here.epsilon == epsilon].groupby("set").accuracy.mean().reindex(list(SMALLEST))
        listed = accuracies(under(cells, relation), epsilon, SMALLEST).drop(columns=name, errors="ignore")
        shown.append("" if values.isna().all() else mean_place(listed, values))
        if (relation, epsilon) == ("add_remove", 1.0):
            lost = losses(cells, values)
    status, draws = statement["status"], statement["draws"]
    return [
        title(name), f"**{status}**" if status == "refuted" else status, statement["relation"], statement["delta"],
        statement["tuning"], f"{statement['at_least']} ({int(draws):,})" if draws else "", *shown, *lost,
        statement["splits"], {"True": "yes", "False": "no"}.get(statement["repeats"], ""),
    ]  # fmt: skip


def read_joined() -> pd.DataFrame:
    """Read the cells of joined entries, to as many digits as the others."""
    rows = pd.DataFrame(JOINED_SCORES.rows(), columns=[*KEYS, *SCORES]).replace("", np.nan)
    rows = rows.astype({"epsilon": float, "split": int, **dict.fromkeys(SCORES, float)})
    return rows.round(dict.fromkeys(SCORES, DIGITS))


# Of the raw scores: a row for each entry, set, relation, epsilon and split.
SCHEMA = {
    "table": "string", "entry": "string", "set": "string", "neighbours": "string", "epsilon": "float64",
    "split": "int64", "status": "string", **dict.fromkeys(SCORES, "float64"),
}  # fmt: skip


def raw_scores() -> pd.DataFrame:
    """Read the raw scores of all entries; ``status`` is "ok", or says why there is no score."""
    tables = {name: pd.read_csv(TABLES / f"{name}.csv") for name in ("leaderboard", "judge", "peers", "joined_scores")}
    rows = pd.concat([table.rename(columns={"peer": "entry"}).assign(table=name) for name, table in tables.items()])
    # References have no relation.
    rows = rows.fillna({"status": "ok", "neighbours": ""})
    return rows[list(SCHEMA)].astype(SCHEMA).reset_index(drop=True)


def list_rows(cells: pd.DataFrame) -> list[list[str]]:
    """Lay out the rows of all entries; a joined one takes the place of a listed one of the same name."""
    deltas, joined = pd.read_csv(TABLES / "peers.csv").groupby("peer").delta.first(), read_joined()
    private = cells[(cells.epsilon < np.inf) & ~cells.entry.isin(list(VARIANTS)) & cells["set"].isin(SMALLEST)]
    rows = {}
    for name, own in private.groupby("entry"):
        word = "proved" if name in ENTRIES else "claimed"
        statement = {
            "name": str(name), "status": word, "tuning": "none", "repeats": "",
            "relation": ", ".join(sorted(set(own.neighbours))), "delta": f"{deltas.get(name, DELTA):g}", "draws": "",
            "splits": str(own.split.nunique()),
        }  # fmt: skip
        rows[name] = entry_row(cells, own, statement)
    for statement in STATEMENTS.rows():
        if not statement["withdrawn"]:
            name = statement["name"]
            rows[name] = entry_row(cells, joined[joined.entry == name], statement)
    return sorted(rows.values(), key=lambda row: float((row[7] or "99").split()[0]))


def section(cells: pd.DataFrame) -> str:
    """Write the section of the page."""
    withdrawn = [f"{row['name']} ({row['withdrawn']})" for row in STATEMENTS.rows() if row["withdrawn"]]
    blocks = [markdown_table(HEADER, list_rows(cells))]
    if withdrawn:
        blocks.append(f"Withdrawn: {', '.join(withdrawn)}.")
    holdouts = [list(row.values()) for row in HOLDOUTS.rows()]
    blocks += [
        "Accuracy at epsilon 1 on holdouts that were drawn for one run:",
        markdown_table(HOLDOUTS.fields, holdouts),
    ]
    return "\n\n".join(blocks)


def with_joined(page: str, cells: pd.DataFrame) -> str:
    """Replace the section of joined entries."""
    return with_section(page, *_MARKS, section(cells))


def write_section(name: str) -> None:
    """Write the section, and print the row of an entry."""
    cells = read()
    write_text(PAGE, with_joined(PAGE.read_text(), cells))
    row = next(row for row in list_rows(cells) if row[0] == title(name))
    print("\n".join(f"{words}: {value}" for words, value in zip(HEADER, row, strict=True)))


if __name__ == "__main__":
    raw_scores().to_parquet(sys.argv[1], index=False)
