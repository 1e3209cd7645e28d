"""Statements of a paper's text, declared as rows of ``claims.csv``: cells, a way to number them, and a region.

Drawn cells have their own names, measured ones ``<experiment>/<table>/<cell>``. A statement agrees if enough of its
numbers lie in the region of its words, and is refuted if too few can.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import operator
import re
import statistics
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import scipy.stats

from reproduce.engine.distributions import SINGLE, Distribution, read_lines
from reproduce.engine.trends import WORDS, Estimate, gap_of, judge_word, ratio, slope, smallest_step

# Why a statement is undecided where its interval crosses the border of its region.
UNDECIDED = "the interval of our runs lies on both sides of the border"
_NO_CORRELATION = "the correlation is indistinguishable from zero"
# Groups from which a correlation is judged.
_LEAST_PAIRS = 4


@dataclasses.dataclass(frozen=True, kw_only=True)
class Claim:
    """A statement of a paper's text."""

    id: str
    source: str  # Its place in the paper.
    text: str  # The statement in our words.
    verdict: str  # One of `reproduce.engine.judging.VERDICTS`.
    ours: str = ""  # Our finding.
    reason: str = ""  # Why it is undecided, if it is.
    brief: str = ""  # Our finding in a few words, for a line on the paper; mostly empty.
    cells: tuple[str, ...] = ()  # Patterns of the cells that it rests on.

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
        return Claim(id=name, source=source, text=text, verdict="not judged yet")
    verdict = "cannot discriminate" if reason else "agrees" if holds else "refuted"
    return Claim(id=name, source=source, text=text, verdict=verdict, ours=ours, reason=reason, brief=brief)


# --- cells ----------------------------------------------------------------------------------------------------------

Pool = Mapping[str, Distribution]
# Text of each asterisk, to places on the axis and distributions.
Groups = dict[tuple[str, ...], list[tuple[float, Distribution]]]

_WILDCARDS = {"*": "([^/]*)", "~": "[^/]*", "#": r"(?P<place>[-+.0-9e]+)"}


@functools.cache
def _compile(pattern: str) -> re.Pattern[str]:
    def translate(part: str) -> str:
        if part.startswith("<"):
            return f"({'|'.join(map(re.escape, part[1:-1].split(',')))})"
        return _WILDCARDS.get(part) or re.escape(part)

    return re.compile("".join(map(translate, re.split("([*~#]|<[^>]*>)", pattern))))


def group_cells(patterns: str, pool: Pool) -> Groups:
    """Group the cells of some patterns, parted by bars.

    In a pattern ``*`` is any name, ``<a,b>`` one of some names, ``~`` a name that is pooled, and ``#`` the place on the
    first axis. The texts of ``*`` and ``<...>`` name a group, in which the cells of a pattern stand by place.
    """
    groups: Groups = {}
    for pattern in filter(None, patterns.split("|")):
        found: Groups = {}
        for cell, item in pool.items():
            match = _compile(pattern).fullmatch(cell)
            if match is not None:
                place = match.groupdict().get("place")
                key = tuple(text for index, text in enumerate(match.groups(), start=1)
                            if index != match.re.groupindex.get("place"))  # fmt: skip
                found.setdefault(key, []).append((float(place or 0.0), item))
        for key, points in found.items():
            groups.setdefault(key, []).extend(sorted(points, key=lambda point: point[0]))
    return groups


class _Group(NamedTuple):
    """Cells of one group, and those that they are compared with."""

    places: list[float]
    items: list[Distribution]
    others: list[Distribution]

    @property
    def medians(self) -> list[float]:
        return [item.median for item in self.items]

    @property
    def other_medians(self) -> list[float]:
        return [item.median for item in self.others]


def _trend_slope(group: _Group, scale: Callable[[float], float] | None = None) -> Estimate:
    """Estimate the slope over the share of the last place, or on another scale."""
    return slope([scale(place) if scale else place / group.places[-1] for place in group.places], group.items)


def _exponent(group: _Group) -> Estimate:
    return slope(group.places, group.items, exponent=True)


def _factor(group: _Group) -> Estimate:
    return Estimate(*((group.places[-1] / group.places[0]) ** power for power in _exponent(group)))


def _ratio(group: _Group, paired: bool = False) -> Estimate:
    # A base of one cell serves for all; a training that several figures share counts once where it was measured once.
    others = group.others * len(group.items) if len(group.others) == 1 else group.others
    pairs = {(a.median, b.median) if a.statistic == SINGLE else number: (a, b)
             for number, (a, b) in enumerate(zip(group.items, others, strict=True))}  # fmt: skip
    return ratio([a for a, _ in pairs.values()], [b for _, b in pairs.values()], paired)


# Numbers of a group without an interval.
KINDS: Mapping[str, Callable[[_Group], float]] = {
    "value": lambda group: max(group.medians),
    "mean": lambda group: statistics.fmean(group.medians),
    "range": lambda group: max(group.medians) - min(group.medians),
    "difference": lambda group: max(group.medians) - max(group.other_medians),
    "mean difference": lambda group: statistics.fmean(group.medians) - statistics.fmean(group.other_medians),
    "quotient": lambda group: group.medians[0] / group.other_medians[0],
    # Of pairs whose first is larger.
    "share": lambda group: statistics.fmean(map(operator.gt, group.medians, group.other_medians)),
    "rank": lambda group: float(scipy.stats.spearmanr(group.places, group.medians).statistic),
}
# Estimates with an interval, and the least number of points.
TRENDS: Mapping[str, tuple[Callable[[_Group], Estimate], int]] = {
    "slope": (_trend_slope, 3),
    "slope log10": (functools.partial(_trend_slope, scale=math.log10), 3),
    "step": (lambda group: smallest_step(group.items), 3),
    "exponent": (_exponent, 3),
    "factor": (_factor, 3),
    "gap": (lambda group: gap_of(group.items[0], group.others[0]), 1),
    "ratio": (_ratio, 1),
    "paired ratio": (functools.partial(_ratio, paired=True), 1),
}


# --- regions --------------------------------------------------------------------------------------------------------

_COMPARE = {">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt}


def _lies_in(region: str, number: float) -> bool:
    """Tell whether a number lies in a region: ``> 1``, ``<= 0.15`` or ``-0.03..0.03``."""
    if ".." in region:
        low, high = map(float, region.split(".."))
        return low <= number <= high
    sign, bound = region.split()
    return _COMPARE[sign](number, float(bound))


class Need(NamedTuple):
    """Shares of numbers from which a statement agrees, and up to which it is refuted; between them it is undecided."""

    agrees: Callable[[float], bool]
    refuted: Callable[[float], bool] | None = None
    reason: str = ""


# Declared before the numbers, and the same for every paper.
NEEDS: Mapping[str, Need] = {
    "all": Need(lambda share: share == 1.0),
    "nearly all": Need(lambda share: share >= 0.95),
    "typically": Need(lambda share: share > 0.75),
    "most": Need(lambda share: share > 0.5),
    "half": Need(lambda share: share >= 0.5),
    "few": Need(
        lambda share: share == 1.0, lambda share: share <= 0.5,
        "so few sets decide only if it holds on all of them, or on at most half",
    ),
}  # fmt: skip


def _need(name: str) -> Need:
    if "/" in name:
        least = float(Fraction(name))
        return Need(lambda share: share >= least)
    return NEEDS[name or "all"]


def _judge_shares(need: Need, holds: int, total: int, open_cases: int = 0) -> tuple[str, str]:
    """Return verdict and reason; numbers whose interval crosses the border may count on either side."""
    if need.agrees(holds / total):
        return "agrees", ""
    most = (holds + open_cases) / total
    if need.refuted(most) if need.refuted else not need.agrees(most):
        return "refuted", ""
    return "cannot discriminate", need.reason or UNDECIDED


# --- rows of claims.csv ---------------------------------------------------------------------------------------------


class _Medians(dict):
    """Medians of cells by name, for the texts of findings; `factor` 100 gives per cent."""

    def __init__(self, pool: Pool, factor: float = 1.0):
        super().__init__()
        self.pool, self.factor = pool, factor

    def __missing__(self, cell: str) -> float:
        return self.factor * self.pool[cell].median


def read_claims(path: str | Path, pool: Pool) -> list[Claim]:
    """Judge the statements of ``claims.csv`` by the cells in `pool`.

    Its columns are ``id, source, claim, kind, cells, over, region, need, ours, undecided, brief``. ``kind`` is one of
    `KINDS` or `TRENDS`, "each" (a region for each pattern) or "correlation" (of ``cells`` with ``over``).
    ``region`` is one of `WORDS` or a bound; ``need`` one of `NEEDS`, a fraction, or "range" (of all numbers). ``ours``
    and ``brief`` are our finding, with names in braces; ``undecided`` says why neither outcome would mean anything,
    and is mostly empty.
    """
    return [_read_claim(record, pool) for record in read_lines(path)]


def _read_claim(record: Mapping[str, str], pool: Pool) -> Claim:
    """Judge the statement of one row."""
    patterns = tuple(filter(None, f"{record['cells']}|{record['over']}".split("|")))
    claim = functools.partial(Claim, id=record["id"], source=record["source"], text=record["claim"], cells=patterns)
    if not patterns:
        return claim(verdict="cannot discriminate", reason=record["undecided"])
    judged = _judge_record(record, pool)
    if judged is None:
        return claim(verdict="not judged yet")
    verdict, reason, names = judged
    names |= {"cells": _Medians(pool), "percent": _Medians(pool, 100.0)}
    undecided = record["undecided"].format(**names)
    return claim(
        verdict="cannot discriminate" if undecided else verdict, reason=undecided or reason,
        ours=record["ours"].format(**names), brief=record["brief"].format(**names),
    )  # fmt: skip


def _judge_record(record: Mapping[str, str], pool: Pool) -> tuple[str, str, dict[str, Any]] | None:
    """Return verdict, reason and the names of the finding; None without cells."""
    kind, region, across = record["kind"], record["region"], record["need"] == "range"
    need = _need("all" if across else record["need"])
    if kind == "each":
        return _judge_each(record["cells"].split("|"), region.split("|"), pool)
    cells, others = group_cells(record["cells"], pool), group_cells(record["over"], pool)
    least = TRENDS[kind][1] if kind in TRENDS else 1
    groups = {
        key: _Group([place for place, _ in points], [item for _, item in points],
                    [item for _, item in others.get(key, ())])
        for key, points in cells.items()
        if len(points) >= least and (not record["over"] or key in others)
    }  # fmt: skip
    if not groups:
        return None
    if kind == "correlation":
        return _judge_correlation(list(groups.values()), region)
    if kind in TRENDS:
        return _judge_trends(kind, groups, region, need)
    numbers = {key: KINDS[kind](group) for key, group in groups.items()}
    values = [max(numbers.values()) - min(numbers.values())] if across else list(numbers.values())
    holds = sum(_lies_in(region, number) for number in values)
    verdict, reason = _judge_shares(need, holds, len(values))
    where = max(numbers, key=lambda key: abs(numbers[key]))
    outside = {key[0] for key, number in numbers.items() if key and not _lies_in(region, number)}
    names = {
        "holds": holds, "fails": len(values) - holds, "total": len(values), "where": ", ".join(where),
        "outside": ", ".join(sorted(outside)),
        "largest": abs(numbers[where]), "listed": ", ".join(f"{number:+.3f}" for number in numbers.values()),
        **_summary("", list(numbers.values())),
        **_summary("cell_", [value for group in groups.values() for value in group.medians]),
        **_summary("other_", [value for group in groups.values() for value in group.other_medians]),
    }  # fmt: skip
    return verdict, reason, names


def _summary(prefix: str, values: Sequence[float]) -> dict[str, Any]:
    """Name the ends, the median and the spread of numbers for a finding."""
    if not values:
        return {}
    spread = f"{min(values):.3g} to {max(values):.3g}" if len(values) > 1 else f"{values[0]:.3g}"
    return {f"{prefix}low": min(values), f"{prefix}high": max(values), f"{prefix}middle": statistics.median(values),
            f"{prefix}spread": spread}  # fmt: skip


def _judge_each(patterns: Sequence[str], regions: Sequence[str], pool: Pool) -> tuple[str, str, dict[str, Any]] | None:
    """Judge each cell by its own region; all must hold."""
    if not all(cell in pool for cell in patterns):
        return None
    holds = [_lies_in(region, pool[cell].median) for cell, region in zip(patterns, regions, strict=True)]
    return "agrees" if all(holds) else "refuted", "", {}


def _judge_correlation(groups: Sequence[_Group], region: str) -> tuple[str, str, dict[str, Any]] | None:
    """Judge the rank correlation of cells over groups."""
    if len(groups) < _LEAST_PAIRS:
        return None
    pairs = [(group.other_medians[0], group.medians[0]) for group in groups]
    test = scipy.stats.spearmanr(*zip(*pairs, strict=True))
    names = {"correlation": float(test.statistic), "p": float(test.pvalue), "total": len(pairs)}
    if test.pvalue >= 0.05:
        return "cannot discriminate", _NO_CORRELATION, names
    return "agrees" if _lies_in(region, test.statistic) else "refuted", "", names


def _judge_trends(
    kind: str, groups: Mapping[tuple[str, ...], _Group], word: str, need: Need
) -> tuple[str, str, dict[str, Any]]:
    """Judge the estimates of groups by a word; the names of the finding describe the last group."""
    verdicts, middles = [], []
    names: dict[str, Any] = {}
    for group in groups.values():
        estimate, meant = TRENDS[kind][0](group), word
        names = {
            "estimate": estimate, "slope": estimate, "word": WORDS[word].meaning, "first": group.medians[0],
            "listed": ", ".join(f"{value:.3f}" for value in group.medians),
            "span": group.places[-1] / (group.places[0] or 1.0),
        }  # fmt: skip
        if group.others:
            names["second"] = group.other_medians[0]
        if kind == "step":
            # Steps say something of a line only if it rises at all.
            names |= {"step": estimate, "slope": _trend_slope(group)}
            if judge_word("rises", names["slope"]) != "agrees":
                estimate, meant = names["slope"], "rises"
        verdicts.append(judge_word(meant, estimate))
        middles.append(estimate.middle)
    holds, fails = verdicts.count("agrees"), verdicts.count("refuted")
    verdict, reason = _judge_shares(need, holds, len(verdicts), len(verdicts) - holds - fails)
    return verdict, reason, names | {"holds": holds, "fails": fails, "total": len(verdicts), **_summary("", middles)}
