"""The number and the statements that are left of ci-svm-2018: its tables and figures are lost in our copy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from privsvm.reproduction.judging import Printed
from privsvm.reproduction.printed import Paper, numbers_of


def numbers(rows: Sequence[Mapping[str, str]]) -> list[Printed]:
    """List what is printed: the share of rows that condensing leaves."""
    # Threes of rows leave a third by construction.
    return numbers_of(rows, lambda row: {"given": True})


PAPER = Paper(
    name="ci_svm",
    title="CI-SVM (2018)",
    numbers=numbers,
    notes=("Tables 1 to 3 and Figures 3 and 4 are lost in our copy of the paper; what its text says is checked.",),
)
