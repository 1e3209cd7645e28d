"""Every number and statement that a paper prints, once, with its verdict: from committed files alone."""

from __future__ import annotations

import collections
import dataclasses
import fnmatch
import importlib
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from reproduce.engine.distributions import LEVELS, Distribution, lines_csv, of_whole, read_distributions, read_lines
from reproduce.engine.judging import DECIDED, VERDICTS, Column, Judgement, Printed, judge
from reproduce.engine.measurements import Measurement, as_distributions, cell_id, read_measurements
from reproduce.engine.panels import Panel
from reproduce.engine.statements import Claim, read_claims


class Passage(NamedTuple):
    """A sentence of a paper on its results, and the rows that judge it."""

    section: str  # With the paragraph.
    statement: str  # In our words.
    rows: tuple[str, ...]  # Identifiers of statements, or beginnings of identifiers of numbers; or of `NOT_JUDGED`.


# Sentences without a row of their own, and why.
NOT_JUDGED = {
    "setting": "how the experiment is done; we do the same",
    "reason": "an explanation that the paper does not test",
    "theory": "a proof or a formula, not an experiment",
    "untested": "the paper reports no experiment on it",
}


class Remark(NamedTuple):
    """An explanation of cells: a pattern of their names, their verdicts (empty means any), and the text."""

    cells: str
    verdicts: str
    text: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class Comparison:
    """A table of a paper's page, such as readings of an open choice; the first cell of each line names it."""

    title: str
    caption: str
    columns: tuple[str, ...]
    lines: Sequence[tuple[str, ...]]


Texts = Mapping[str, str]
Distributions = Mapping[str, Distribution]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Paper:
    """The printed numbers of a paper; `Texts` are the numbers as printed, by id."""

    name: str  # Of its folder.
    title: str
    # Of a row of published.csv: attributes of `Printed` beyond the defaults of `numbers_of`.
    attributes: Callable[[Mapping[str, str]], Mapping[str, Any]] = lambda row: {}
    # The numbers with those that are lost or repeated.
    complete: Callable[[list[Printed]], list[Printed]] = lambda numbers: numbers
    # Further distributions, of numbers that others give, such as differences.
    derive: Callable[[Distributions], dict[str, Distribution]] = lambda distributions: {}
    # Numbers that are computed from printed ones too.
    derive_printed: Callable[[Texts, Distributions], dict[str, Distribution]] = lambda texts, distributions: {}
    # Numbers with the readings of their columns, copies of them for other readings, and the distributions of the first.
    readings: Callable[
        [Sequence[Printed], Distributions], tuple[Sequence[Printed], Sequence[Printed], dict[str, Distribution]]
    ] = lambda numbers, distributions: (numbers, (), {})
    # The cells that one is computed from: itself if it is drawn, none if the printed numbers suffice.
    sources: Callable[[str], list[str]] = lambda cell: [cell]
    # Statements beyond claims.csv.
    claims: Callable[[Texts, Mapping[str, Judgement], Distributions], list[Claim]] = (
        lambda texts, judgements, distributions: []
    )
    # The lines of the table that ``comparison`` of paper.toml describes.
    compare: Callable[[Texts, Distributions], Sequence[tuple[str, ...]]] = lambda texts, distributions: []
    comparison: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    panels: Callable[[Texts, Distributions], list[Panel]] = lambda texts, distributions: []  # The paper's figures.
    notes: tuple[str, ...] = ()  # The beginning of its page.
    # A paragraph for the overview, with names in braces: see `PrintedPaper.paragraph`.
    opening: str = ""
    experiments: tuple[str, ...] = ()  # Files of distributions.


def read_paper(package: str, **functions: Any) -> Paper:
    """Read the words of a paper from ``paper.toml`` in the folder of its package; `functions` are other attributes."""
    folder = Path(importlib.import_module(package).__path__[0])
    words = tomllib.loads((folder / "paper.toml").read_text(encoding="utf-8"))
    words |= {key: tuple(words[key]) for key in ("experiments", "notes")}
    return Paper(name=folder.name, **words, **functions)


@dataclasses.dataclass(frozen=True, kw_only=True)
class PrintedPaper:
    """A judged paper: numbers, statements, and the power of its rules."""

    paper: Paper
    judgements: list[Judgement]
    claims: list[Claim]
    columns: list[Column]
    distributions: Distributions = dataclasses.field(default_factory=dict)
    measurements: Mapping[str, list[Measurement]] = dataclasses.field(default_factory=dict)  # By experiment.
    comparisons: list[Comparison] = dataclasses.field(default_factory=list)
    panels: list[Panel] = dataclasses.field(default_factory=list)
    passages: list[Passage] = dataclasses.field(default_factory=list)
    remarks: list[Remark] = dataclasses.field(default_factory=list)

    @property
    def verdicts(self) -> list[str]:
        """Verdicts of all numbers and statements."""
        return [*(judgement.verdict for judgement in self.judgements), *(claim.verdict for claim in self.claims)]

    @property
    def paragraph(self) -> str:
        """The paper's opening: ``numbers`` by verdict, those ``compared``, agreeing ``exact`` ones, and findings."""
        numbers = count([judgement.verdict for judgement in self.judgements])
        return self.paper.opening.format(
            numbers=numbers, compared=sum(numbers[word] for word in DECIDED),
            exact=sum(row.verdict == "agrees" and row.percentile is None for row in self.judgements),
            ours={claim.id: claim.ours for claim in self.claims},
            brief={claim.id: claim.brief for claim in self.claims},
            verdict={claim.id: claim.verdict for claim in self.claims},
            privacy="; ".join(claim.brief or claim.text for claim in self.claims
                              if claim.id.startswith("privacy") and claim.verdict == "refuted"),
        )  # fmt: skip

    def reading(self, judgement: Judgement) -> str:
        """Explain a cell: why it is undecided, its side of our median, and the remarks on it."""
        printed, item = judgement.printed, judgement.distribution
        sentences = [judgement.reason]
        if item is not None and printed.id != item.cell:
            sentences.append(f"by the reading that fits the column best, {printed.rule.rpartition(':')[0]}")
        if judgement.verdict in ("unlikely", "refuted") and item is not None:
            sentences.append(f"printed {'above' if float(printed.text) > item.median else 'below'} ours")
        sentences += [
            remark.text
            for remark in self.remarks
            if fnmatch.fnmatchcase(printed.id, remark.cells)
            and judgement.verdict in (remark.verdicts.split("|") if remark.verdicts else (judgement.verdict,))
        ]
        if item is not None and item.table:
            sentences.append(f"judged by {item.table}: a further run takes minutes of processor time")
        return "; ".join(filter(None, sentences))


def numbers_of(
    rows: Sequence[Mapping[str, str]], attributes: Callable[[Mapping[str, str]], Mapping[str, Any]]
) -> list[Printed]:
    """Turn the rows of a published.csv, ``source, dataset, method, setting, metric, value``, into printed numbers.

    `attributes` maps a row to further attributes of `Printed`; ``rule`` and ``family`` have defaults.
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


def read_all(folder: str | Path, experiments: Sequence[str]) -> dict[str, Distribution]:
    """Read the distributions of several experiments; of a cell that several have, the last one counts."""
    return {
        cell: item
        for experiment in experiments
        for cell, item in read_distributions(Path(folder) / f"{experiment}.csv").items()
    }


def judge_paper(
    paper: Paper, root: str | Path, reports: str | Path, changed: Distributions | None = None,
    measured: Mapping[str, list[Measurement]] | None = None,
) -> PrintedPaper:  # fmt: skip
    """Judge all that a paper prints.

    `root` is its folder, with ``published.csv``, ``claims.csv``, ``passages.csv`` and ``remarks.csv``. `reports` has
    the tables of measurements, and distributions in ``distributions``. `changed` distributions and `measured`
    experiments take the place of committed ones.
    """
    root, reports = Path(root), Path(reports)
    numbers = paper.complete(numbers_of(read_lines(root / "published.csv"), paper.attributes))
    measurements = {path.stem: read_measurements(path) for path in sorted(reports.glob(f"{paper.name}_*.csv"))}
    measurements |= measured or {}
    distributions = {
        cell: item
        for experiment, members in measurements.items()
        for cell, item in as_distributions(experiment, members).items()
    }
    distributions |= {**read_all(reports / "distributions", paper.experiments), **(changed or {})}
    distributions |= paper.derive(distributions)
    texts = {printed.id: printed.text for printed in numbers}
    distributions |= paper.derive_printed(texts, distributions)
    judged, others, chosen = paper.readings(numbers, distributions)
    judgements, columns = judge(judged, {**distributions, **chosen})
    columns += judge(others, distributions)[1]
    by_id = {judgement.printed.id: judgement for judgement in judgements}
    return PrintedPaper(
        paper=paper,
        judgements=judgements,
        claims=[
            *read_claims(root / "claims.csv", distributions),
            *paper.claims(texts, by_id, distributions),
        ],
        columns=columns,
        distributions=distributions,
        measurements=measurements,
        comparisons=[Comparison(**paper.comparison, lines=lines)]
        if (lines := paper.compare(texts, distributions))
        else [],
        panels=paper.panels(texts, distributions),
        passages=[
            Passage(line["place"], line["statement"], tuple(line["rows"].split(" | ")))
            for line in read_lines(root / "passages.csv")
        ],
        remarks=[Remark(*line.values()) for line in read_lines(root / "remarks.csv")],
    )


def all_medians(distributions: Mapping[str, Distribution], cells: Sequence[str]) -> list[float]:
    """Return the medians of some numbers; an empty list if one has no distribution."""
    return [distributions[cell].median for cell in cells] if all(cell in distributions for cell in cells) else []


def count(verdicts: Sequence[str]) -> dict[str, int]:
    """Count verdicts in the order of `VERDICTS`."""
    tally = collections.Counter(verdicts)
    return {verdict: tally[verdict] for verdict in VERDICTS}


PRINTED_COLUMNS = (
    "id", "source", "printed", "statistic", "runs", "ours", "from", "to", "percentile", "p", "verdict", "reading",
)  # fmt: skip


def _six(value: float | None, digits: int = 6) -> str:
    return "" if value is None else f"{value + 0.0:.{digits}g}"


def rows_csv(judged: PrintedPaper) -> str:
    """Write the rows of a paper as CSV text, statements last."""
    lines = []
    for judgement in judged.judgements:
        printed, item = judgement.printed, judgement.distribution
        ours = ["", "", "", "", ""]
        if item is not None:
            ours = [item.statistic, str(item.runs), *(_six(value) for value in interval(item))]
        lines.append(
            [printed.id, printed.source, printed.text, *ours, _six(judgement.percentile, 3), _six(judgement.p, 2),
             judgement.verdict, judged.reading(judgement)]
        )  # fmt: skip
    lines += [
        [f"claim/{claim.id}", claim.source, claim.text, "", "", claim.ours, "", "", "", "", claim.verdict, claim.reason]
        for claim in judged.claims
    ]
    return lines_csv(PRINTED_COLUMNS, lines)


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
