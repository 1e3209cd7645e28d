"""HTML page of a paper: every printed number and statement with its verdict, and the power of the rules."""

from __future__ import annotations

import collections
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.stats

from privsvm_bench.evidence import Sources
from privsvm_bench.reporting.text import short_number
from reproduce.engine.cells import FIRST_RUN, LATER_RUN, RERUNS, command, expected_seconds, recorded_seconds
from reproduce.engine.distributions import MANY_RUNS, ONE_VALUE
from reproduce.engine.draws import Draws
from reproduce.engine.experiment import Experiment
from reproduce.engine.judging import CENTRAL, DECIDED, VERDICTS, Column, Judgement
from reproduce.engine.panels import charts_of, legend, panel_svg
from reproduce.engine.printed import NOT_JUDGED, Passage, PrintedPaper, count, interval
from reproduce.engine.rendering import anchor, environment

# Tables of at most so many numbers are open from the start.
_SMALL = 60


def count_undecided(judged: PrintedPaper) -> dict[str, int]:
    """Count the rows that cannot discriminate by reason, most frequent first."""
    rows = [(row.verdict, row.reason) for row in judged.judgements]
    rows += [(claim.verdict, claim.reason) for claim in judged.claims]
    reasons = collections.Counter(reason for verdict, reason in rows if verdict == "cannot discriminate")
    return dict(reasons.most_common())


class Calibration(NamedTuple):
    """Fresh draws of our own, and those outside the central 95 %.

    The draws of one run give several numbers, which are not independent: intervals are a little too narrow.
    """

    fresh: int
    outside: int

    def interval(self, among: int = 1) -> tuple[float, float]:
        """Return the exact interval of their share that `among` such intervals have together with 95 %, in per cent."""
        limits = scipy.stats.binomtest(self.outside, self.fresh).proportion_ci(1.0 - 0.05 / among)
        return 100 * float(limits.low), 100 * float(limits.high)

    def holds(self, among: int = 1) -> bool:
        """Whether 5 % lies in that interval."""
        low, high = self.interval(among)
        return low <= 100 * (1.0 - CENTRAL) <= high

    def __str__(self) -> str:
        (low, high), share = self.interval(), 100 * self.outside / self.fresh
        return f"{self.outside} of {self.fresh} ({share:.1f} %; interval {low:.1f} to {high:.1f} %)"


def calibration_by_kind(columns: Sequence[Column]) -> dict[str, Calibration]:
    """Count the fresh draws of some columns by the kind of rule that judges them."""
    counts: dict[str, tuple[int, int]] = {}
    for column in columns:
        for kind, (fresh, outside) in column.fresh.items():
            before = counts.get(kind, (0, 0))
            counts[kind] = before[0] + fresh, before[1] + outside
    return {kind: Calibration(*count) for kind, count in counts.items()}


def calibration(columns: Sequence[Column]) -> Calibration | None:
    """Count the fresh draws of some columns; None without any."""
    kinds = calibration_by_kind(columns).values()
    return Calibration(sum(kind.fresh for kind in kinds), sum(kind.outside for kind in kinds)) if kinds else None


def column_misses(columns: Sequence[Column]) -> str:
    """Say how many single columns miss 5 % alone, how many do so by chance, and how many do after the correction."""
    fresh = [item for column in columns if (item := calibration([column])) is not None]
    alone, corrected = (sum(not item.holds(among) for item in fresh) for among in (1, len(fresh)))
    return (
        f"{alone} of {len(fresh)} columns miss 5 % in their own 95 % interval, where chance lets up to "
        f"{(1.0 - CENTRAL) * len(fresh):.1f} do so; corrected over the columns {corrected or 'none'} "
        f"{'do' if corrected > 1 else 'does'}"
    )


def tails(judged: PrintedPaper) -> tuple[int, float, float, float] | None:
    """Check the form of the tails: sides, and 5 %, median and 95 % of their probability of one in a thousand."""
    fits = [
        value
        for judgement in judged.judgements
        # The outermost quantiles of fewer runs show the form itself, or a handful of values.
        if judgement.distribution
        and judgement.distribution.runs >= MANY_RUNS
        and judgement.distribution.statistic not in ("exact", ONE_VALUE)
        for value in judgement.distribution.tail_fits()
    ]
    if len(fits) < 20:
        return None
    low, middle, high = np.quantile(fits, [0.05, 0.5, 0.95])
    return len(fits), float(low), float(middle), float(high)


def maps(judged: PrintedPaper) -> list[dict[str, Any]]:
    """Lay out the verdicts of a paper: a map for each table, a line for each dataset, a cell for each number."""
    cells = []
    for judgement in judged.judgements:
        printed, item = judgement.printed, judgement.distribution
        ours = "none" if item is None else short_number(item.median, digits=5)
        level = "" if judgement.percentile is None else f", percentile {100 * judgement.percentile:.1f} %"
        what = ", ".join(label for label in (printed.dataset, printed.method, printed.setting, printed.metric) if label)
        tip = f"{what}: printed {printed.text or 'lost'}, ours {ours}{level}: {judgement.verdict}"
        cells.append((printed.family, printed.dataset or "all", judgement.verdict, printed.id, tip))
    for claim in judged.claims:
        tip = f"{claim.text}: {claim.ours or 'nothing'}: {claim.verdict}"
        cells.append(("statements", "text", claim.verdict, f"claim/{claim.id}", tip))
    lines: dict[str, dict[str, list[tuple[str, str, str]]]] = {}
    verdicts: dict[str, list[str]] = {}
    for table, line, *cell in cells:
        lines.setdefault(table, {}).setdefault(line, []).append((cell[0], cell[1], cell[2]))
        verdicts.setdefault(table, []).append(cell[0])
    return [{"name": name, "lines": values, "counts": count(verdicts[name])} for name, values in lines.items()]


def _passage_rows(judged: PrintedPaper, passage: Passage) -> list[tuple[str, str, str]]:
    """Return anchor, name and verdict of the rows that judge a sentence; numbers of a table are counted together."""
    result = []
    claims = {claim.id: claim for claim in judged.claims}
    for row in passage.rows:
        if row in NOT_JUDGED:
            result.append(("", NOT_JUDGED[row], ""))
        elif row in claims:
            result.append((anchor(f"claim/{row}"), claims[row].text, claims[row].verdict))
        else:
            members = [item for item in judged.judgements if row in (item.printed.source, item.printed.family)]
            members = members or [item for item in judged.judgements if item.printed.id.startswith(row)]
            words = ", ".join(
                f"{number} {word}" for word, number in count([item.verdict for item in members]).items() if number
            )
            single = len(members) == 1
            name, verdict = (row, members[0].verdict) if single else (f"{row}: {words}", "")
            result.append((anchor(members[0].printed.id) if members else "", name, verdict))
    return result


def summary(judged: PrintedPaper) -> dict[str, Any]:
    """Sum up a paper."""
    counts = count(judged.verdicts)
    return {
        "paper": judged.paper,
        "paragraph": judged.paragraph,
        "printed": len(judged.verdicts),
        "compared": sum(counts[word] for word in DECIDED),
        "counts": counts,
        "maps": maps(judged),
        "undecided": count_undecided(judged),
    }


def _list_measurements(judged: PrintedPaper, experiments: Iterable[Experiment]) -> list[dict[str, Any]]:
    """List the measurements of each experiment by table, and draw its charts."""
    result = []
    for experiment in experiments:
        measurements = judged.measurements.get(experiment.name, [])
        charts = [panel for panel in charts_of(experiment.records("charts.csv"), measurements) if not panel.empty]
        captions = experiment.captions()
        tables: dict[str, list[tuple[str, str]]] = {}
        for table, cell, values in measurements:
            tables.setdefault(table, []).append((cell, " ".join(short_number(value, digits=4) for value in values)))
        result.append({
            "experiment": experiment, "caption": captions[""], "note": captions.get("note", ("", ""))[1],
            "charts": [(panel.title, panel_svg(panel), legend(panel)) for panel in charts],
            "tables": [(*captions.get(name, (name, "")), cells) for name, cells in tables.items()],
        })  # fmt: skip
    return result


def index_page(judged: Sequence[PrintedPaper]) -> str:
    """Render the overview of all papers: each in short, and every table as a map of its verdicts."""
    papers = [summary(paper) for paper in judged]
    template = environment().get_template("index.html.jinja")
    return template.render(
        judged=papers,
        printed=sum(item["printed"] for item in papers),
        undecided=sum(item["counts"]["cannot discriminate"] for item in papers),
        meanings=VERDICTS,
    )


def _name_data(draws: Sequence[Draws]) -> dict[str, str]:
    """Name the data of the catalogue by the paper's names of its datasets, as far as draws read any."""
    data: dict[str, str] = {}
    for plan in draws:
        one = {plan.dataset: plan.parameters.get("source") or plan.parameters.get("train")}
        for name, source in plan.parameters.get("datasets", one).items():
            if source:
                data.setdefault(name, source[0])
    return data


def paper_page(
    judged: PrintedPaper, draws: Sequence[Draws], sources: Sources, experiments: Iterable[Experiment] = ()
) -> str:
    """Render the page of a paper as HTML that makes no network request; `draws` are all of the paper."""
    families: dict[str, dict[str, list[tuple[Judgement, float | None]]]] = {}
    times = recorded_seconds(sources, draws)
    for row in judged.judgements:
        seconds = expected_seconds(times, draws, judged.paper, row.printed)
        family = families.setdefault(row.printed.family, {})
        family.setdefault(row.printed.dataset or "all", []).append((row, seconds))
    verdicts = {name: [row.verdict for rows in groups.values() for row, _ in rows] for name, groups in families.items()}
    drawn = [panel for panel in judged.panels if not panel.empty]
    template = environment().get_template("paper.html.jinja")
    return template.render(
        judged=judged,
        paper=judged.paper,
        command=command,
        interval=interval,
        reruns={FIRST_RUN: 0.0, LATER_RUN: 0.0} | sources.parts(RERUNS, judged.paper.name),
        first_run=FIRST_RUN,
        later_run=LATER_RUN,
        item=summary(judged),
        columns=[(column, calibration([column])) for column in judged.columns],
        calibration=calibration(judged.columns),
        kinds=calibration_by_kind(judged.columns),
        misses=column_misses(judged.columns),
        panels=[(panel.title, panel_svg(panel)) for panel in drawn],
        missing_panels=[panel.title for panel in judged.panels if panel.empty],
        legend=legend(drawn[0]) if drawn else [],
        passages=[(passage, _passage_rows(judged, passage)) for passage in judged.passages],
        tails=tails(judged),
        families=families,
        counts={name: count(words) for name, words in verdicts.items()},
        small={name for name, words in verdicts.items() if len(words) <= _SMALL},
        measured=_list_measurements(judged, experiments),
        sources=sources,
        data=_name_data(draws),
        verdicts=VERDICTS,
    )
