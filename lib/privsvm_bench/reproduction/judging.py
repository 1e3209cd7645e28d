"""Verdicts on printed numbers by their place in the distribution that our implementation gives.

A rule is the comparison of one metric of one table. It is used only if it can fail: numbers of a neighbouring column,
and one constant for all cells, must be rejected by it in most cells where they differ from what is printed.
"""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Mapping, Sequence

import scipy.stats

from privsvm_bench.reproduction.distributions import LEVELS, Distribution, decimals_of

__all__ = [
    "CENTRAL",
    "MOST_PASSES",
    "VERDICTS",
    "Judgement",
    "Printed",
    "RuleCheck",
    "TableCheck",
    "judge",
    "log_density",
    "percentile",
    "two_sided",
]

# Probability inside which a number agrees.
CENTRAL = 0.95
# Wrong numbers that a rule may let pass.
MOST_PASSES = 0.2
# Expected share of false ones among the refuted numbers of a table.
FALSE_DISCOVERIES = 0.05
# Fewer wrong numbers say nothing about a rule.
_LEAST_WRONG = 4

VERDICTS: Mapping[str, str] = {
    "agrees": "inside the central 95 % of what our runs would print; where nothing is random, equal in every digit",
    "unlikely": "outside the central 95 %, but not after the correction for the number of cells in the table",
    "refuted": "outside also after the correction (false discovery rate 5 %), or other digits where nothing is random",
    "cannot discriminate": "the rule lets a wrong column or a constant pass too, or will whatever is drawn for the "
    "cells without runs; or a time is of another machine; or other rows stand in for the paper's test set",
    "no data": "the dataset cannot be had here, or the number is lost in our copy of the paper",
    "repeated": "the same digits stand in an earlier table for the same setting, and count there",
    "given": "a setting of the experiment, which we take from the paper",
    "not judged yet": "no distribution has been drawn for it",
}  # fmt: skip


@dataclasses.dataclass(frozen=True, kw_only=True)
class Printed:
    """One number as printed.

    Attributes
    ----------
    id : str
        Unique among the paper's.
    source : str
        Where it stands.
    family : str
        Numbers that are corrected for together; a table.
    dataset, method, setting, metric : str
        What it is of.
    text : str
        The number as printed; empty where it is lost.
    rule : str
        Name of the rule that judges it, one for each metric of a column.
    group : str
        Numbers that are looked at together for a deviation to one side; empty for those of the rule.
    neighbour : str
        Identifier of the number in the neighbouring column; empty without one.
    missing : str
        Why there is nothing to compare it with.
    given : bool
        Whether it is a setting.
    repeats : str
        Identifier of the same number in an earlier table, where it counts.
    stand_in : str
        Which rows stand in for the paper's own, so that a difference may be theirs.
    """

    id: str
    source: str
    family: str
    dataset: str
    method: str
    setting: str
    metric: str
    text: str
    rule: str
    neighbour: str = ""
    missing: str = ""
    given: bool = False
    repeats: str = ""
    group: str = ""
    stand_in: str = ""

    @property
    def unit(self) -> float:
        """Unit of the last printed digit."""
        return 10.0 ** -decimals_of(self.text)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Judgement:
    """Verdict on a printed number."""

    printed: Printed
    verdict: str
    percentile: float | None = None
    p: float | None = None
    distribution: Distribution | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class RuleCheck:
    """What a rule says of numbers that are known to be right or wrong.

    Attributes
    ----------
    rule : str
        Its name.
    cells : int
        Printed numbers that it can judge.
    fresh, fresh_outside : int
        Draws of our own that the distributions do not rest on, and those outside the central 95 %.
    neighbours, neighbours_pass : int
        Numbers of the neighbouring column that differ from the printed ones by more than a digit, and those inside.
    constants, constants_pass : int
        The same of one constant for all cells: the median of what is printed.
    undrawn_neighbours, undrawn_constants : int
        Such numbers of cells that have no distribution.
    """

    rule: str
    cells: int
    fresh: int
    fresh_outside: int
    neighbours: int
    neighbours_pass: int
    constants: int
    constants_pass: int
    undrawn_neighbours: int = 0
    undrawn_constants: int = 0

    @property
    def hopeless(self) -> bool:
        """Whether it would not be used even if every cell without a distribution rejected its wrong numbers."""
        return (
            self.neighbours_pass > MOST_PASSES * (self.neighbours + self.undrawn_neighbours)
            or self.constants_pass > MOST_PASSES * (self.constants + self.undrawn_constants)
            or max(self.neighbours + self.undrawn_neighbours, self.constants + self.undrawn_constants) < _LEAST_WRONG
        )

    @property
    def used(self) -> bool:
        """Whether it rejects most wrong numbers."""
        pairs = ((self.neighbours, self.neighbours_pass), (self.constants, self.constants_pass))
        enough = max(count for count, _ in pairs) >= _LEAST_WRONG
        return enough and all(passed <= MOST_PASSES * count for count, passed in pairs)


@dataclasses.dataclass(frozen=True, kw_only=True)
class TableCheck:
    """Whether the printed numbers of a table lie to one side of our distributions.

    Attributes
    ----------
    rule : str
        Its group.
    below, above : int
        Printed numbers below and above our median.
    p : float
        Of the two-sided sign test.
    """

    rule: str
    below: int
    above: int
    p: float


def percentile(value: float, unit: float, distribution: Distribution) -> float:
    """Return the probability of a smaller printed number, counting half of the equal ones.

    Parameters
    ----------
    value : float
        A number rounded to `unit`.
    unit : float
        Unit of its last digit.
    distribution : Distribution
        What our implementation gives.

    Returns
    -------
    float
        From 0 to 1.
    """
    return 0.5 * (distribution.below(value - 0.5 * unit) + distribution.below(value + 0.5 * unit, or_at=True))


def _exact(value: float, unit: float, distribution: Distribution) -> bool:
    """Whether a number that nothing random enters has the printed digits."""
    # Half a digit, and the round-off of seven digits.
    return abs(value - distribution.median) <= 0.5 * unit * (1.0 + 1e-6) + 1e-6 * abs(distribution.median)


def two_sided(value: float, unit: float, distribution: Distribution) -> float:
    """Return the p-value of a printed number; far out by the tail of `Distribution.tail`."""
    if distribution.statistic == "exact":
        return 1.0 if _exact(value, unit, distribution) else 0.0
    own = percentile(value, unit, distribution)
    edge = distribution.edge
    if edge < own < 1.0 - edge:
        return 2.0 * min(own, 1.0 - own)
    nearer = value - math.copysign(min(0.5 * unit, abs(value - distribution.median)), value - distribution.median)
    far = 2.0 * distribution.tail(nearer)
    # Not more than what the quantiles say; and runs too few to say anything at this level do not.
    return max(far, 2.0 * edge) if 2.0 * edge > 1.0 - CENTRAL else min(far, 2.0 * edge)


def log_density(value: float, distribution: Distribution) -> float:
    """Return the log density of a number under a distribution, by one of Student's form of its width."""
    low, high = (distribution.quantiles[LEVELS.index(level)] for level in (0.025, 0.975))
    # An interval of less than a printed digit is one digit wide.
    scale = max((high - low) / (2.0 * scipy.stats.norm.ppf(0.975)), 0.3 * distribution.unit)
    return float(scipy.stats.t.logpdf((value - distribution.median) / scale, 10) - math.log(scale))


def _inside(value: float, unit: float, distribution: Distribution) -> bool:
    return two_sided(value, unit, distribution) >= 1.0 - CENTRAL


def _round(value: float, unit: float) -> float:
    return round(value / unit) * unit


def _wrong(printed: Printed, numbers: Mapping[str, float], constant: float) -> dict[str, float]:
    """Numbers that are known to be wrong for a cell: those that differ by more than a digit."""
    wrong = {"neighbours": numbers.get(printed.neighbour), "constants": _round(constant, printed.unit)}
    return {
        kind: value
        for kind, value in wrong.items()
        if value is not None and abs(value - float(printed.text)) > 1.001 * printed.unit
    }


def _check_rule(
    rule: str,
    cells: Sequence[tuple[Printed, Distribution]],
    undrawn: Sequence[Printed],
    numbers: Mapping[str, float],
    constant: float,
) -> RuleCheck:
    fresh = fresh_outside = 0
    counts = {"neighbours": [0, 0], "constants": [0, 0]}
    for printed, distribution in cells:
        unit = printed.unit
        for value in distribution.fresh:
            fresh += 1
            fresh_outside += not _inside(_round(value, unit), unit, distribution)
        for kind, wrong in _wrong(printed, numbers, constant).items():
            counts[kind][0] += 1
            counts[kind][1] += _inside(wrong, unit, distribution)
    open_kinds = [kind for printed in undrawn for kind in _wrong(printed, numbers, constant)]
    return RuleCheck(
        rule=rule,
        cells=len(cells),
        fresh=fresh,
        fresh_outside=fresh_outside,
        neighbours=counts["neighbours"][0],
        neighbours_pass=counts["neighbours"][1],
        constants=counts["constants"][0],
        constants_pass=counts["constants"][1],
        undrawn_neighbours=open_kinds.count("neighbours"),
        undrawn_constants=open_kinds.count("constants"),
    )


def _refuted(values: Sequence[float]) -> float:
    """Largest p-value that Benjamini and Hochberg's step-up rejects; -1 if none."""
    ordered = sorted(values)
    best = -1.0
    for rank, value in enumerate(ordered, start=1):
        if value <= FALSE_DISCOVERIES * rank / len(ordered):
            best = value
    return best


def _settled(own: Printed, item: Distribution | None, checks: Mapping[str, RuleCheck]) -> str:
    """Verdict of a number that is not compared, or cannot be; empty for any other."""
    if own.given or own.repeats:
        return "given" if own.given else "repeated"
    if not own.text or own.missing:
        return "no data"
    if own.metric in TIMES:
        return "cannot discriminate"
    if item is not None:
        return ""
    hopeless = own.stand_in or (own.rule in checks and checks[own.rule].hopeless)
    return "cannot discriminate" if hopeless else "not judged yet"


def judge(
    numbers: Sequence[Printed], distributions: Mapping[str, Distribution]
) -> tuple[list[Judgement], list[RuleCheck], list[TableCheck]]:
    """Judge the printed numbers of a paper.

    Parameters
    ----------
    numbers : sequence of Printed
        All of them.
    distributions : mapping
        Identifier to distribution, of those that have one.

    Returns
    -------
    judgements, rules, tables
        In the order of `numbers`; one check for each rule that has a cell to judge.
    """
    values = {own.id: float(own.text) for own in numbers if own.text}
    by_rule: dict[str, list[tuple[Printed, Distribution]]] = {}
    undrawn: dict[str, list[Printed]] = {}
    for own in numbers:
        if own.text and not own.given and not own.repeats and own.id in distributions:
            by_rule.setdefault(own.rule, []).append((own, distributions[own.id]))
        elif own.text and not own.given and not own.repeats and not own.missing and own.metric not in TIMES:
            undrawn.setdefault(own.rule, []).append(own)
    columns: dict[str, list[float]] = {}
    for own in numbers:
        if own.text:
            columns.setdefault(own.rule, []).append(values[own.id])
    checks = {
        rule: _check_rule(rule, cells, undrawn.get(rule, []), values, statistics.median(columns[rule]))
        for rule, cells in by_rule.items()
    }
    p_values: dict[str, float] = {}
    sides: list[TableCheck] = []
    places: dict[str, list[float]] = {}
    by_table: dict[str, list[float]] = {}
    for rule, cells in by_rule.items():
        for own, distribution in cells:
            p_values[own.id] = two_sided(values[own.id], own.unit, distribution)
            if own.stand_in:
                continue
            if checks[rule].used and distribution.statistic != "exact":
                by_table.setdefault(own.family, []).append(p_values[own.id])
            if distribution.statistic != "exact":
                place = percentile(values[own.id], own.unit, distribution)
                places.setdefault(own.group or rule, []).append(place)
    for group, own_places in places.items():
        below, above = sum(place < 0.5 for place in own_places), sum(place > 0.5 for place in own_places)
        sign = scipy.stats.binomtest(below, below + above).pvalue if below + above else 1.0
        sides.append(TableCheck(rule=group, below=below, above=above, p=float(sign)))
    limits = {table: _refuted(own) for table, own in by_table.items()}
    judgements = []
    for own in numbers:
        item = distributions.get(own.id)
        settled = _settled(own, item, checks)
        if settled:
            judgements.append(Judgement(printed=own, verdict=settled))
        elif item is not None:
            p = p_values[own.id]
            exact = item.statistic == "exact"
            if own.stand_in or not checks[own.rule].used:
                verdict = "cannot discriminate"
            elif exact:
                verdict = "agrees" if p == 1.0 else "refuted"
            elif p >= 1.0 - CENTRAL:
                verdict = "agrees"
            else:
                verdict = "refuted" if p <= limits[own.family] else "unlikely"
            at = None if exact else percentile(values[own.id], own.unit, item)
            judgements.append(Judgement(printed=own, verdict=verdict, percentile=at, p=p, distribution=item))
    return judgements, list(checks.values()), sides


# Metrics that hang on the machine.
TIMES = (
    "fit_seconds", "fit_seconds SD", "ms_per_iteration", "ms_per_iteration SD", "training ms", "prediction ms",
    "difference of seconds",
)  # fmt: skip
