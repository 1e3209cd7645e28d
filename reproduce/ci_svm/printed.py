"""The number and the statements that are left of ci-svm-2018: its tables and figures are lost in our copy."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import scipy.stats

from reproduce.engine.distributions import Distribution
from reproduce.engine.judging import Judgement, Printed
from reproduce.engine.printed import Paper, all_medians, numbers_of
from reproduce.engine.statements import Claim, statement
from reproduce.engine.trends import WORDS

# Sizes between which the printed steps are counted.
_SIZES = (1000, 10000)
# An error in standard deviations below which a row is recovered, and an AUC from which members are told apart.
_RECOVERED, _TOLD = 1e-8, 0.6


def numbers(rows: Sequence[Mapping[str, str]]) -> list[Printed]:
    """List the printed numbers: the share of rows that condensing leaves."""
    return numbers_of(rows, lambda row: {})


def _looked_at(n: int) -> int:
    """Count the similarities that the printed steps look at: all that are left for a pair, two rows for its third."""
    return sum(remaining * (remaining - 1) // 2 + 2 * (remaining - 2) for remaining in range(n, 2, -3))


def _growth() -> Claim:
    """Judge the count of the printed procedure, whose search is repeated for each group of three."""
    small, large = _SIZES
    exponent = math.log(_looked_at(large) / _looked_at(small)) / math.log(large / small)
    return statement(
        "growth-ci", "Section 3", "condensing takes a time of order n^2", exponent <= WORDS["O(n^2)"].high,
        f"step 3 searches the matrix for each of n / 3 groups: {_looked_at(small):.3g} similarities for {small} rows "
        f"and {_looked_at(large):.3g} for {large}, an exponent of {exponent:.2f}",
    )  # fmt: skip


def _low_dimensional() -> Claim:
    """Correlate the number of features with the time that condensing saves."""
    path = Path(__file__).parents[2] / "reports/reproduce/ci_svm_time.csv"
    rows: list[dict[str, str]] = []
    if path.exists():
        with open(path, encoding="utf-8", newline="") as handle:
            rows = list(csv.DictReader(handle))
    width = {
        row["dataset"]: int(match[1])
        for row in rows
        if row["method"] == "LIBSVM" and (match := re.search(r"\d+ x (\d+),", row["explanation"]))
    }
    pairs = [
        (width[row["dataset"]], float(row["ours"]))
        for row in rows
        if row["metric"] == "ratio of search and training" and row["table"] == "against LIBSVM" and row["ours"]
        and row["dataset"] in width
    ]  # fmt: skip
    source, text = "Section 4.2; Table 2", "most time is saved on sets of few features"
    if len(pairs) < 4:
        return statement("low-dimensional", source, text, None, "")
    test = scipy.stats.spearmanr(*zip(*pairs, strict=True))
    return statement(
        "low-dimensional", source, text, test.statistic < 0.0,
        f"rank correlation of features and time saved {test.statistic:.2f} on {len(pairs)} sets, p {test.pvalue:.2f}",
        "" if test.pvalue < 0.05 else "the correlation is indistinguishable from zero",
    )  # fmt: skip


def _privacy(distributions: Mapping[str, Distribution]) -> list[Claim]:
    names = ("third_member_error", "linkage_rate", "guessing_rate", "membership_auc")
    values = all_medians(distributions, [f"claim/privacy/{name}" for name in names])
    coincident = all_medians(distributions, ["claim/coincident/share of condensed rows"])
    ours = brief = ""
    if values:
        brief = f"{100 * values[1]:.0f} % of the rows of heart are linked to their condensed row"
        ours = (
            f"heart: from two rows of a group and its mean the third follows within {values[0]:.1g} standard "
            f"deviations; {100 * values[1]:.0f} % of the rows are linked to their condensed row, where guessing links "
            f"{100 * values[2]:.1f} %; training rows are told from others with an AUC of {values[3]:.2f}"
        )
    same = f"{100 * coincident[0]:.1f} % of the condensed rows of heart are training rows" if coincident else ""
    return [
        statement(
            "privacy", "Sections 1, 3 and 3.2", "condensed rows do not reveal the actual information",
            values[0] > _RECOVERED and values[1] < 0.5 and values[3] < _TOLD if values else None, ours, brief=brief,
        ),
        statement(
            "coincident", "Section 3.2", "most of the condensed rows are not rows of the original data",
            coincident[0] < 0.5 if coincident else None, same,
        ),
    ]  # fmt: skip


def claims(
    texts: Mapping[str, str], judgements: Mapping[str, Judgement], distributions: Mapping[str, Distribution]
) -> list[Claim]:
    """Judge the statements on privacy, growth and sets of few features."""
    return [*_privacy(distributions), _growth(), _low_dimensional()]


PAPER = Paper(
    name="ci_svm",
    title="CI-SVM (2018)",
    numbers=numbers,
    claims=claims,
    experiments=("ci_svm_exact",),
    notes=("Tables 1 to 3 and Figures 3 and 4 are lost in our copy of the paper; its text is checked.",),
)
