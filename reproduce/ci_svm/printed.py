"""The number and the statements that are left of ci-svm-2018: its tables and figures are lost in our copy."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import scipy.stats

from privsvm_bench.reproduction.distributions import Distribution
from privsvm_bench.reproduction.judging import Judgement, Printed
from privsvm_bench.reproduction.printed import Claim, Paper, numbers_of


def numbers(rows: Sequence[Mapping[str, str]]) -> list[Printed]:
    """List what is printed: the share of rows that condensing leaves."""
    # Threes of rows leave a third by construction.
    return numbers_of(rows, lambda row: {"given": True})


def claims(
    texts: Mapping[str, str], judgements: Mapping[str, Judgement], distributions: Mapping[str, Distribution]
) -> list[Claim]:
    """Check whether sets of few features save most time."""
    text = "most time is saved on sets of few features"
    place = Path(__file__).parents[2] / "reports/reproduce/ci_svm_time.csv"
    pairs = []
    if place.exists():
        with open(place, encoding="utf-8", newline="") as handle:
            rows = list(csv.DictReader(handle))
        width = {
            row["dataset"]: int(found[1])
            for row in rows
            if row["method"] == "LIBSVM" and (found := re.search(r"\d+ x (\d+),", row["explanation"]))
        }
        pairs = [
            (width[row["dataset"]], float(row["ours"]))
            for row in rows
            if row["metric"] == "ratio of search and training" and row["table"] == "against LIBSVM" and row["ours"]
            and row["dataset"] in width
        ]  # fmt: skip
    if len(pairs) < 4:
        verdict, ours = "not judged yet", ""
    else:
        own = scipy.stats.spearmanr(*zip(*pairs, strict=True))
        verdict = "cannot discriminate" if own.pvalue >= 0.05 else "agrees" if own.statistic < 0.0 else "refuted"
        ours = (
            f"rank correlation of features and time saved {own.statistic:.2f} on {len(pairs)} sets, p {own.pvalue:.2f}"
        )
    return [
        Claim(id="low-dimensional", source="Section 4.2; Table 2", text=text, verdict=verdict, ours=ours,
              experiment="ci_svm_time")
    ]  # fmt: skip


PAPER = Paper(
    name="ci_svm",
    title="CI-SVM (2018)",
    numbers=numbers,
    claims=claims,
    notes=("Tables 1 to 3 and Figures 3 and 4 are lost in our copy of the paper; what its text says is checked.",),
)
