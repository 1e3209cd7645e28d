"""Verdicts on printed numbers by their percentile in the distribution of our implementation.

A number that lies inside the interval agrees, unless a number five points or 20 % off would agree too: then the row is
too weak to tell. A column, all numbers judged by one rule, has a verdict of its own.
"""

from __future__ import annotations

import dataclasses
import hashlib
import math
import statistics
from collections.abc import Mapping, Sequence

import scipy.stats

from reproduce.engine.distributions import LEVELS, ONE_VALUE, Distribution, decimals_of

# Probability inside which a number agrees.
CENTRAL = 0.95
# Expected share of false rejections among the refuted numbers of a table, and among the refuted columns of a paper.
FALSE_DISCOVERIES = 0.05
# Log likelihood ratio that tells one reading of a column from another.
STRONG_RATIO = math.log(1000.0)
# Half of the central 95 % of a normal distribution, and the degrees of freedom of the form of a likelihood.
_NORMAL, _FREEDOM = statistics.NormalDist().inv_cdf(0.975), 10
# Metrics that are shares, with their standard deviations and differences.
SHARES = ("AUC", "accuracy", "precision", "recall", "f1", "MCC", "error")
# How far off an agreeing number may not be: a share by five points, all others by 20 %.
POINTS_OFF, SHARE_OFF = 0.05, 0.2

VERDICTS: Mapping[str, str] = {
    "agrees": "inside the central 95 % of what our runs would print; where nothing is random, equal in every digit",
    "unlikely": "outside the central 95 %, but not after the correction for the number of cells in the table",
    "refuted": "outside also after the correction (false discovery rate 5 %), or other digits where nothing is random",
    "too weak to tell": "inside, but a number five points off (20 % of a count) on one side would be inside too",
    "cannot discriminate": "neither agreement nor difference would say anything; the row says why",
    "no data": "the dataset is not available here, or the number is lost in our copy of the paper",
    "repeated": "the same digits stand in an earlier table for the same setting, and count there",
    "given": "a setting of the experiment, which we take from the paper",
    "not judged yet": "no distribution has been drawn for it; the row says why",
}
# Verdicts that decide.
DECIDED = ("agrees", "unlikely", "refuted")

# Metrics that depend on the machine.
TIMES = (
    "fit_seconds", "fit_seconds SD", "ms_per_iteration", "ms_per_iteration SD", "training ms", "prediction ms",
    "difference of seconds",
)  # fmt: skip
_OTHER_MACHINE = "a time of other hardware"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Printed:
    """One number as printed."""

    id: str  # Unique among the paper's.
    source: str  # Table or figure.
    family: str  # The table: numbers that are corrected for together.
    dataset: str
    method: str
    setting: str
    metric: str
    text: str  # The number as printed; empty if it is lost.
    rule: str  # Name of the rule that judges it, one for each metric of a column.
    missing: str = ""  # Why there is nothing to compare it with.
    given: bool = False  # Whether it is a setting.
    repeats: str = ""  # Id of the same number in an earlier table, where it counts.
    undecided: str = ""  # Why neither agreement nor difference would mean anything; mostly empty.

    @property
    def unit(self) -> float:
        """Unit of the last printed digit."""
        return 10.0 ** -decimals_of(self.text)

    @property
    def wrong_numbers(self) -> tuple[float, float]:
        """The number moved down and up by five points if it is a share, else by 20 %."""
        value = float(self.text)
        step = POINTS_OFF if self.metric.split()[0] in SHARES else SHARE_OFF * abs(value)
        return value - step, value + step

    @property
    def compared(self) -> bool:
        """Whether it has a verdict apart from its column's."""
        return bool(self.text) and not (self.given or self.repeats or self.missing)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Judgement:
    """Verdict on a printed number, and why it is undecided."""

    printed: Printed
    verdict: str
    reason: str = ""
    percentile: float | None = None
    p: float | None = None
    distribution: Distribution | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Column:
    """All numbers that one rule judges.

    `verdict` tests their percentiles against the uniform distribution, corrected over the columns of the paper; it is
    "too weak to tell" if the column would also agree with all numbers five points, or 20 %, off on one side.
    """

    rule: str
    verdict: str = ""
    cells: int  # Numbers with a distribution.
    outside: int  # Outside the central 95 %.
    below: int  # Below our median.
    above: int  # Above our median.
    p: float | None  # Of the Kolmogorov-Smirnov test against uniform; None if nothing is random.
    p_off: float | None  # The larger one of the test with all numbers moved down, or up.
    # By kind of rule ("one value", "mean of 5 runs", ...): independent draws of ours, and how many are outside.
    fresh: Mapping[str, tuple[int, int]]


def _bounds(value: float, unit: float, distribution: Distribution) -> tuple[float, float]:
    """Return the probabilities of a smaller printed number, and of one that is not larger."""
    return distribution.below(value - 0.5 * unit), distribution.below(value + 0.5 * unit, or_at=True)


def percentile(value: float, unit: float, distribution: Distribution) -> float:
    """Return the probability of a smaller printed number, counting half of the equal ones.

    `value` is rounded to `unit`, the unit of its last digit.
    """
    return sum(_bounds(value, unit, distribution)) / 2.0


def _uniform(value: float, unit: float, distribution: Distribution, key: str) -> float:
    """Percentile with equal numbers split at random, by a generator keyed by `key`: uniform if the numbers are ours."""
    low, high = _bounds(value, unit, distribution)
    if distribution.statistic == ONE_VALUE:
        # A further draw lies beyond the extremes of n draws with probability 1 / (n + 1) on each side.
        beyond = 1.0 / (distribution.runs + 1)
        low, high = (0.0, beyond) if high == 0.0 else (1.0 - beyond, 1.0) if low == 1.0 else (low, high)
    share = int.from_bytes(hashlib.sha256(key.encode()).digest()[:6], "big") / 2.0**48
    return low + share * (high - low)


def two_sided(value: float, unit: float, distribution: Distribution) -> float:
    """Return the p-value of a printed number; far out by the tail of `Distribution.tail`."""
    if distribution.statistic == "exact":
        # Half a digit, and the round-off of seven digits.
        near = 0.5 * unit * (1.0 + 1e-6) + 1e-6 * abs(distribution.median)
        return 1.0 if abs(value - distribution.median) <= near else 0.0
    level, edge = percentile(value, unit, distribution), distribution.edge
    if edge < level < 1.0 - edge:
        return 2.0 * min(level, 1.0 - level)
    nearer = value - math.copysign(min(0.5 * unit, abs(value - distribution.median)), value - distribution.median)
    far = 2.0 * distribution.tail(nearer)
    # At most the level of the outermost quantiles, unless the runs are too few for this level.
    return max(far, 2.0 * edge) if 2.0 * edge > 1.0 - CENTRAL else min(far, 2.0 * edge)


def width(distribution: Distribution) -> float:
    """Return the standard deviation that the central 95 % would have if they were normal."""
    low, high = (distribution.quantiles[LEVELS.index(level)] for level in (0.025, 0.975))
    return (high - low) / (2.0 * _NORMAL)


def log_density(value: float, distribution: Distribution) -> float:
    """Return the log density of a number under a distribution, by one of Student's form of its width."""
    # An interval of less than a printed digit is one digit wide.
    scale = max(width(distribution), 0.3 * distribution.unit)
    distance = (value - distribution.median) / scale
    constant = math.lgamma((_FREEDOM + 1) / 2) - math.lgamma(_FREEDOM / 2) - 0.5 * math.log(_FREEDOM * math.pi)
    return constant - (_FREEDOM + 1) / 2 * math.log1p(distance**2 / _FREEDOM) - math.log(scale)


def _inside(value: float, unit: float, distribution: Distribution) -> bool:
    return two_sided(value, unit, distribution) >= 1.0 - CENTRAL


def step_up(p_values: Sequence[float]) -> float:
    """Return the largest p-value that Benjamini and Hochberg's step-up rejects; -1 if none."""
    ordered = sorted(p_values)
    return max(
        (p for rank, p in enumerate(ordered, start=1) if p <= FALSE_DISCOVERIES * rank / len(ordered)), default=-1.0
    )


def _column(rule: str, cells: Sequence[tuple[Printed, Distribution]]) -> Column:
    """Sum up the cells of a rule; the verdict is filled in when all columns are known."""
    fresh: dict[str, tuple[int, int]] = {}
    uniform: list[float] = []
    moved: tuple[list[float], list[float]] = [], []
    for printed, item in cells:
        for number, drawn in enumerate(item.fresh):
            level = _uniform(
                round(drawn / printed.unit) * printed.unit, printed.unit, item, f"{printed.id} fresh {number}"
            )
            draws, outside = fresh.get(item.statistic, (0, 0))
            fresh[item.statistic] = draws + 1, outside + (abs(level - 0.5) > 0.5 * CENTRAL)
        if item.statistic != "exact":
            uniform.append(_uniform(float(printed.text), printed.unit, item, printed.id))
            for levels, off in zip(moved, printed.wrong_numbers, strict=True):
                levels.append(_uniform(off, printed.unit, item, printed.id))
    return Column(
        rule=rule, cells=len(cells),
        outside=sum(not _inside(float(printed.text), printed.unit, item) for printed, item in cells),
        below=sum(float(printed.text) < item.median for printed, item in cells),
        above=sum(float(printed.text) > item.median for printed, item in cells),
        p=_test_uniform(uniform) if uniform else None, p_off=max(map(_test_uniform, moved)) if uniform else None,
        fresh=fresh,
    )  # fmt: skip


def _test_uniform(levels: Sequence[float]) -> float:
    return float(scipy.stats.kstest(levels, "uniform").pvalue)


def _judge_columns(columns: Sequence[Column], undecided: Mapping[str, bool]) -> list[Column]:
    """Give each column its verdict."""
    limit = step_up([column.p for column in columns if column.p is not None and not undecided[column.rule]])

    def verdict(column: Column) -> str:
        if undecided[column.rule]:
            return "cannot discriminate"
        if column.p is None or column.p_off is None:
            return "refuted" if column.outside else "agrees"
        if column.p < 1.0 - CENTRAL:
            return "refuted" if column.p <= limit else "unlikely"
        return "too weak to tell" if column.p_off >= 1.0 - CENTRAL else "agrees"

    return [dataclasses.replace(column, verdict=verdict(column)) for column in columns]


def judge(
    numbers: Sequence[Printed], distributions: Mapping[str, Distribution]
) -> tuple[list[Judgement], list[Column]]:
    """Judge the printed numbers of a paper; `distributions` holds, by id, those that are known.

    Returns judgements in the order of `numbers`, and a column for each rule that has a cell with a distribution.
    """
    # Rules come in the order of their first numbers.
    by_rule: dict[str, list[tuple[Printed, Distribution]]] = {printed.rule: [] for printed in numbers if printed.text}
    by_family: dict[str, list[float]] = {}
    p_values: dict[str, float] = {}
    for printed in numbers:
        item = distributions.get(printed.id)
        if not printed.compared or item is None:
            continue
        by_rule[printed.rule].append((printed, item))
        p_values[printed.id] = two_sided(float(printed.text), printed.unit, item)
        if not _reason_against(printed) and item.statistic != "exact":
            by_family.setdefault(printed.family, []).append(p_values[printed.id])
    columns = [_column(rule, cells) for rule, cells in by_rule.items() if cells]
    undecided = {rule: all(_reason_against(printed) for printed, _ in cells) for rule, cells in by_rule.items()}
    limits = {family: step_up(members) for family, members in by_family.items()}
    judgements = [
        _judge_one(printed, distributions.get(printed.id), p_values.get(printed.id), limits.get(printed.family, -1.0))
        for printed in numbers
    ]
    return judgements, _judge_columns(columns, undecided)


def _reason_against(printed: Printed) -> str:
    """Return why neither agreement nor difference would mean anything."""
    return _OTHER_MACHINE if printed.metric in TIMES else printed.undecided


def _judge_one(printed: Printed, distribution: Distribution | None, p: float | None, limit: float) -> Judgement:
    if printed.given or printed.repeats:
        return Judgement(printed=printed, verdict="given" if printed.given else "repeated")
    if not printed.compared:
        return Judgement(printed=printed, verdict="no data", reason=printed.missing)
    undecided = _reason_against(printed)
    if distribution is None or p is None:
        verdict = "cannot discriminate" if undecided else "not judged yet"
        return Judgement(printed=printed, verdict=verdict, reason=undecided or "no runs have been drawn")
    exact = distribution.statistic == "exact"
    if exact:
        verdict = "agrees" if p == 1.0 else "refuted"
    elif p < 1.0 - CENTRAL:
        verdict = "refuted" if p <= limit else "unlikely"
    else:
        is_weak = any(_inside(value, printed.unit, distribution) for value in printed.wrong_numbers)
        verdict = "too weak to tell" if is_weak else "agrees"
    return Judgement(
        printed=printed, verdict="cannot discriminate" if undecided else verdict, reason=undecided,
        percentile=None if exact else percentile(float(printed.text), printed.unit, distribution), p=p,
        distribution=distribution,
    )  # fmt: skip
