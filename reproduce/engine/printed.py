"""Every number and statement that a paper prints, once, with its verdict: from committed files alone."""

from __future__ import annotations

import collections
import csv
import dataclasses
import io
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from reproduce.engine.distributions import LEVELS, Distribution, of_whole, read_distributions
from reproduce.engine.judging import VERDICTS, Column, Judgement, Printed, judge
from reproduce.engine.panels import Panel
from reproduce.engine.statements import Claim, read_claims, read_trends

__all__ = [
    "NOT_JUDGED",
    "PRINTED_COLUMNS",
    "Comparison",
    "Paper",
    "Passage",
    "PrintedPaper",
    "all_medians",
    "cell_id",
    "count",
    "difference",
    "interval",
    "judge_paper",
    "numbers_of",
    "printed_csv",
    "read_all",
    "read_passages",
    "reading_of",
]


class Passage(NamedTuple):
    """A sentence of a paper that says something of its results, and where it is judged.

    Attributes
    ----------
    section : str
        Section and paragraph.
    statement : str
        What it says, in our words.
    rows : tuple of str
        Identifiers of statements, or beginnings of those of numbers; or one of `NOT_JUDGED`.
    """

    section: str
    statement: str
    rows: tuple[str, ...]


# Sentences without a row of their own, and why.
NOT_JUDGED = {
    "setting": "how the experiment is done; we do the same",
    "reason": "an explanation that the paper does not test",
    "theory": "a proof or a formula, not an experiment",
    "untested": "the paper reports no experiment on it",
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Comparison:
    """A table of a paper's page, such as readings of what the paper leaves open.

    Attributes
    ----------
    title, caption : str
        Heading, and what is compared.
    columns : tuple of str
        Headings of the columns.
    lines : sequence of tuple of str
        The first cell of each names it.
    """

    title: str
    caption: str
    columns: tuple[str, ...]
    lines: Sequence[tuple[str, ...]]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Paper:
    """What a paper's folder says of its printed numbers.

    Attributes
    ----------
    name, title : str
        Of its folder, and in full.
    numbers : callable
        ``rows of published.csv -> list of Printed``.
    reading : callable
        ``Judgement -> str``: what is known of a cell besides its verdict.
    derive : callable
        ``distributions -> further distributions``, of numbers that others give, such as differences.
    sources : callable
        ``cell -> cells``: the drawn numbers that a printed one is computed from.
    claims : callable
        ``(numbers as printed by id, judgements by id, distributions) -> list of Claim`` beyond those of claims.csv.
    comparisons : callable
        ``(numbers as printed by id, distributions) -> list of Comparison``.
    panels : callable
        ``(numbers as printed by id, distributions) -> list of Panel``: the paper's figures.
    notes : tuple of str
        What the page says first.
    experiments : tuple of str
        Files of distributions.
    """

    name: str
    title: str
    numbers: Callable[[Sequence[Mapping[str, str]]], list[Printed]]
    reading: Callable[[Judgement], str] = lambda judgement: ""
    derive: Callable[[Mapping[str, Distribution]], dict[str, Distribution]] = lambda distributions: {}
    sources: Callable[[str], list[str]] = lambda cell: [cell]
    claims: Callable[[Mapping[str, str], Mapping[str, Judgement], Mapping[str, Distribution]], list[Claim]] = (
        lambda published, judgements, distributions: []
    )
    comparisons: Callable[[Mapping[str, str], Mapping[str, Distribution]], list[Comparison]] = (
        lambda published, distributions: []
    )
    panels: Callable[[Mapping[str, str], Mapping[str, Distribution]], list[Panel]] = lambda published, distributions: []
    notes: tuple[str, ...] = ()
    experiments: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, kw_only=True)
class PrintedPaper:
    """A judged paper: numbers, statements, and what its rules are worth."""

    paper: Paper
    judgements: list[Judgement]
    claims: list[Claim]
    columns: list[Column]
    distributions: Mapping[str, Distribution] = dataclasses.field(default_factory=dict)
    comparisons: list[Comparison] = dataclasses.field(default_factory=list)
    panels: list[Panel] = dataclasses.field(default_factory=list)
    passages: list[Passage] = dataclasses.field(default_factory=list)

    @property
    def verdicts(self) -> list[str]:
        """Verdicts of all numbers and statements."""
        return [*(judgement.verdict for judgement in self.judgements), *(claim.verdict for claim in self.claims)]


def numbers_of(
    rows: Sequence[Mapping[str, str]], attributes: Callable[[Mapping[str, str]], Mapping[str, Any]]
) -> list[Printed]:
    """Turn the rows of a published.csv into printed numbers.

    Parameters
    ----------
    rows : sequence of mapping
        ``source, dataset, method, setting, metric, value``.
    attributes : callable
        Row to further attributes of `Printed`; ``rule`` and ``family`` have defaults.
    """
    result = []
    for row in rows:
        defaults = {
            "id": cell_id(row["dataset"], row["method"], row["setting"], row["metric"]),
            **{key: row[key] for key in ("source", "dataset", "method", "setting", "metric")},
            "text": row["value"],
            "family": row["source"],
            "rule": f"{row['source']}, {row['metric']}",
        }
        result.append(Printed(**{**defaults, **attributes(row)}))
    return result


def cell_id(dataset: str, method: str, setting: str, metric: str) -> str:
    """Join the names that identify a printed number."""
    return "/".join((dataset, method, setting, metric))


def read_passages(path: str | Path) -> list[Passage]:
    """Read which sentence of a paper is judged by which rows: ``place, statement, rows`` with rows parted by bars."""
    if not Path(path).exists():
        return []
    with open(path, encoding="utf-8", newline="") as handle:
        return [
            Passage(record["place"], record["statement"], tuple(record["rows"].split(" | ")))
            for record in csv.DictReader(handle)
        ]


def read_all(folder: str | Path, experiments: Sequence[str]) -> dict[str, Distribution]:
    """Read the distributions of several experiments; of a cell that several have, the last one counts."""
    return {
        cell: item
        for experiment in experiments
        for cell, item in read_distributions(Path(folder) / f"{experiment}.csv").items()
    }


def judge_paper(
    paper: Paper, root: str | Path, reports: str | Path, changed: Mapping[str, Distribution] | None = None
) -> PrintedPaper:
    """Judge all that a paper prints.

    Parameters
    ----------
    paper : Paper
        What its folder says.
    root : path-like
        The folder, with ``published.csv`` and ``claims.csv``.
    reports : path-like
        Folder of the experiments' tables, with ``distributions``.
    changed : mapping or None
        Distributions that take the place of committed ones.
    """
    with open(Path(root) / "published.csv", encoding="utf-8", newline="") as handle:
        numbers = paper.numbers(list(csv.DictReader(handle)))
    distributions = {**read_all(Path(reports) / "distributions", paper.experiments), **(changed or {})}
    distributions |= paper.derive(distributions)
    judgements, columns = judge(numbers, distributions)
    by_id = {judgement.printed.id: judgement for judgement in judgements}
    texts = {printed.id: printed.text for printed in numbers}
    claims = [
        *read_claims(Path(root) / "claims.csv", reports),
        *read_trends(Path(root) / "trends.csv", distributions),
        *paper.claims(texts, by_id, distributions),
    ]
    return PrintedPaper(
        paper=paper,
        judgements=judgements,
        claims=claims,
        columns=columns,
        distributions=distributions,
        comparisons=paper.comparisons(texts, distributions),
        panels=paper.panels(texts, distributions),
        passages=read_passages(Path(root) / "passages.csv"),
    )


def all_medians(distributions: Mapping[str, Distribution], cells: Sequence[str]) -> list[float]:
    """Return the medians of some numbers; an empty list if one has no distribution."""
    return [distributions[cell].median for cell in cells] if all(cell in distributions for cell in cells) else []


def count(verdicts: Sequence[str]) -> dict[str, int]:
    """Count verdicts in the order of `VERDICTS`."""
    tally = collections.Counter(verdicts)
    return {verdict: tally[verdict] for verdict in VERDICTS}


PRINTED_COLUMNS = (
    "id", "source", "printed", "statistic", "runs", "ours", "from", "to", "percentile", "p", "verdict", "power",
    "reading",
)  # fmt: skip


def _six(value: float | None, digits: int = 6) -> str:
    return "" if value is None else f"{value + 0.0:.{digits}g}"


def reading_of(paper: Paper, judgement: Judgement) -> str:
    """Say why a cell is undecided, and what else is known of it."""
    return "; ".join(sentence for sentence in (judgement.reason, paper.reading(judgement)) if sentence)


def printed_csv(judged: PrintedPaper) -> str:
    """Write the rows of a paper as CSV text, statements last."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(PRINTED_COLUMNS)
    for judgement in judged.judgements:
        printed, item = judgement.printed, judgement.distribution
        ours = ["", "", "", "", ""]
        if item is not None:
            ours = [item.statistic, str(item.runs), *(_six(value) for value in interval(item))]
        writer.writerow(
            [printed.id, printed.source, printed.text, *ours, _six(judgement.percentile, 3), _six(judgement.p, 2),
             judgement.verdict, judgement.power, reading_of(judged.paper, judgement)]
        )  # fmt: skip
    for claim in judged.claims:
        writer.writerow(
            [f"claim/{claim.id}", claim.source, claim.text, "", "", claim.ours, "", "", "", "", claim.verdict, "",
             claim.reason]
        )  # fmt: skip
    return buffer.getvalue()


def interval(item: Distribution) -> tuple[float, float, float]:
    """Median, and where the central 95 % begin and end."""
    return item.median, item.quantiles[LEVELS.index(0.025)], item.quantiles[LEVELS.index(0.975)]


def difference(cell: str, first: Distribution, second: Distribution, unit: float) -> Distribution:
    """Distribution of the absolute difference of two independent numbers, on the middle points of a fine grid."""
    points = (np.arange(400) + 0.5) / 400
    one, two = (np.interp(points, LEVELS, item.quantiles) for item in (first, second))
    fresh = tuple(abs(a - b) for a, b in zip(first.fresh, second.fresh, strict=False))
    return Distribution(
        cell=cell, statistic=f"difference of {first.statistic}", runs=min(first.runs, second.runs), unit=unit,
        fresh=fresh, quantiles=of_whole(np.abs(one[:, None] - two[None, :]).ravel().tolist()),
    )  # fmt: skip
