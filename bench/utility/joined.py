"""Rows of joined entries: their CSV files, their places among the listed entries, and the section of the page.

``python bench/utility/joined.py scores.parquet`` writes the raw scores of all entries to one file, with the
schema `SCHEMA`.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from entries import DELTA, RANKED, ROOT, TABLES, VARIANTS, refutations, status, title
from ranking import accuracies, by_rows, read, reference, under
from scores import DIGITS, SCORES
from sets import SMALLEST

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from sections import markdown_table, with_section

from privsvm.files import write_text

PAGE = ROOT / "docs" / "leaderboard.md"
_MARKS = ("<!-- joined: written by bench/utility/join.py -->", "<!-- end of joined -->")
# Training rows of the smallest sets.
_SIZES = {"fewer than 300": (0, 300), "300 to 700": (300, 700), "700 to 1,200": (700, 1200)}
_RESAMPLES = 2000
# Means of the same scores differ by round-off, 1e-16; scores have five digits.
_ROUND_OFF = 1e-9
# Of the raw scores: a row for each entry, set, relation, epsilon and split.
SCHEMA = {
    "table": "string", "entry": "string", "set": "string", "neighbours": "string", "epsilon": "float64",
    "split": "int64", "status": "string", **dict.fromkeys(SCORES, "float64"),
}  # fmt: skip


def read_rows(table: str) -> pd.DataFrame:
    """Read a table of joined entries as text."""
    return pd.read_csv(TABLES / f"{table}.csv", dtype=str, keep_default_na=False)


def replace_rows(table: str, name: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write the rows of an entry, whose name is in the first column, in the place of its earlier ones."""
    known = read_rows(table)
    columns = list(known.columns)
    made = pd.concat([known[known[columns[0]] != name], pd.DataFrame(rows).astype(str)])[columns].fillna("")
    write_text(TABLES / f"{table}.csv", made.drop_duplicates().sort_values(columns).to_csv(index=False))


def mean_place(field: pd.DataFrame, values: pd.Series) -> str:
    """Write the mean place over sets, 1 and the number of listed entries ahead, with an interval for 95 %.

    The interval is of sets drawn with replacement. An entry without an answer is last, and ties share the better place.
    """
    ahead = field.fillna(-1.0).sub(values.fillna(-1.0), axis=0) > _ROUND_OFF
    places = 1 + ahead.sum(axis=1).to_numpy()
    drawn = np.random.default_rng(0).integers(len(places), size=(_RESAMPLES, len(places)))
    low, high = np.quantile(places[drawn].mean(axis=1), [0.025, 0.975])
    return f"{places.mean():.1f} ({low:.1f} to {high:.1f})"


def losses(cells: pd.DataFrame, values: pd.Series) -> dict[str, str]:
    """Write the median points below the SVM without privacy, by size of table."""
    svm = reference(cells, "svm").groupby("set").mean().reindex(list(SMALLEST))
    medians = {words: group.median() for words, group in by_rows(100.0 * (svm - values), _SIZES).items()}
    return {f"loss, {words} rows": "" if pd.isna(median) else f"{median:.1f}" for words, median in medians.items()}


def entry_row(cells: pd.DataFrame, own: pd.DataFrame, statement: Mapping[str, str]) -> dict[str, str]:
    """Lay out the row of an entry from all listed cells and its own."""
    name = statement["name"]
    for audit in refutations(name, statement["relation"].split(", ")):
        statement = {**statement, "status": "refuted", "at_least": f"{audit['low']:.3g}", "draws": audit["draws"]}
    stated, draws = statement["status"], statement["draws"]
    row = {"entry": title(name), "status": f"**{stated}**" if stated == "refuted" else stated}
    row |= {column: statement[column] for column in ("relation", "delta", "tuning")}
    row["epsilon is at least (draws)"] = f"{statement['at_least']} ({int(draws):,})" if draws else ""
    for relation, epsilon in RANKED:
        here = under(own, relation)
        values = here[here.epsilon == epsilon].groupby("set").accuracy.mean().reindex(list(SMALLEST))
        listed = accuracies(under(cells, relation), epsilon, SMALLEST).drop(columns=name, errors="ignore")
        row[f"place at {epsilon:g}, {relation}"] = "" if values.isna().all() else mean_place(listed, values)
        if (relation, epsilon) == ("add_remove", 1.0):
            lost = losses(cells, values)
    repeats = {"True": "yes", "False": "no"}.get(statement["repeats"], "")
    return row | lost | {"splits": statement["splits"], "repeats": repeats}


def raw_scores() -> pd.DataFrame:
    """Read the raw scores of all entries; ``status`` is "ok", or says why there is no score."""
    tables = {name: pd.read_csv(TABLES / f"{name}.csv") for name in ("leaderboard", "judge", "peers", "joined_scores")}
    rows = pd.concat([table.rename(columns={"peer": "entry"}).assign(table=name) for name, table in tables.items()])
    # References have no relation.
    rows = rows.fillna({"status": "ok", "neighbours": ""})
    return rows[list(SCHEMA)].astype(SCHEMA).reset_index(drop=True)


def list_rows(cells: pd.DataFrame) -> list[dict[str, str]]:
    """Lay out the rows of all entries; a joined one takes the place of a listed one of the same name."""
    deltas = pd.read_csv(TABLES / "peers.csv").groupby("peer").delta.first()
    joined = pd.read_csv(TABLES / "joined_scores.csv").round(dict.fromkeys(SCORES, DIGITS))
    private = cells[(cells.epsilon < np.inf) & ~cells.entry.isin(list(VARIANTS)) & cells["set"].isin(SMALLEST)]
    rows = {}
    for name, own in private.groupby("entry"):
        statement = {
            "name": str(name), "status": status(str(name), set(own.neighbours)),
            "tuning": "none", "repeats": "",
            "relation": ", ".join(sorted(set(own.neighbours))), "delta": f"{deltas.get(name, DELTA):g}", "draws": "",
            "splits": str(own.split.nunique()),
        }  # fmt: skip
        rows[name] = entry_row(cells, own, statement)
    for statement in read_rows("joined").query("withdrawn == ''").to_dict("records"):
        rows[statement["name"]] = entry_row(cells, joined[joined.entry == statement["name"]], statement)
    return sorted(rows.values(), key=lambda row: float((row["place at 1, add_remove"] or "99").split()[0]))


def with_joined(page: str, rows: Sequence[Mapping[str, str]]) -> str:
    """Replace the section of joined entries."""
    gone = [f"{row.name} ({row.withdrawn})" for row in read_rows("joined").itertuples(index=False) if row.withdrawn]
    holdouts = read_rows("holdouts")
    parts = [
        markdown_table(list(rows[0]), [list(row.values()) for row in rows]),
        *([f"Withdrawn: {', '.join(gone)}."] if gone else []),
        "Accuracy at epsilon 1 on holdouts that were drawn for one run:",
        markdown_table(list(holdouts.columns), holdouts.to_numpy().tolist()),
    ]
    return with_section(page, *_MARKS, "\n\n".join(parts))


def write_section(name: str) -> None:
    """Write the section, and print the row of an entry."""
    rows = list_rows(read())
    write_text(PAGE, with_joined(PAGE.read_text(), rows))
    row = next(row for row in rows if row["entry"] == title(name))
    print("\n".join(f"{words}: {value}" for words, value in row.items()))


if __name__ == "__main__":
    raw_scores().to_parquet(sys.argv[1], index=False)
