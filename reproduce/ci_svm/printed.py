"""The number and the statements that are left of ci-svm-2018: its tables and figures are lost in our copy."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from reproduce.engine.distributions import Distribution
from reproduce.engine.judging import Judgement, Printed
from reproduce.engine.measurements import constant
from reproduce.engine.printed import Paper, numbers_of
from reproduce.engine.statements import Claim, group_cells, statement
from reproduce.engine.trends import WORDS

# Sizes between which the printed steps are counted.
_SIZES = (1000, 10000)


def numbers(rows: Sequence[Mapping[str, str]]) -> list[Printed]:
    """List the printed numbers: the share of rows that condensing leaves."""
    return numbers_of(rows, lambda row: {})


def _count_similarities(n: int) -> int:
    """Count the similarities that the printed steps look at: all that are left for a pair, two rows for its third."""
    return sum(remaining * (remaining - 1) // 2 + 2 * (remaining - 2) for remaining in range(n, 2, -3))


def claims(
    texts: Mapping[str, str], judgements: Mapping[str, Judgement], distributions: Mapping[str, Distribution]
) -> list[Claim]:
    """Judge the count of the printed procedure, whose search is repeated for each group of three."""
    small, large = _SIZES
    few, many = _count_similarities(small), _count_similarities(large)
    exponent = math.log(many / few) / math.log(large / small)
    ours = (
        f"step 3 searches the matrix for each of n / 3 groups: {few:.3g} similarities for {small} rows and {many:.3g} "
        f"for {large}, an exponent of {exponent:.2f}"
    )
    text, holds = "condensing takes a time of order n^2", exponent <= WORDS["O(n^2)"].high
    return [statement("growth-ci", "Section 3", text, holds, ours)]


def derive(distributions: Mapping[str, Distribution]) -> dict[str, Distribution]:
    """Divide LIBSVM's time of search and training by CI-SVM's."""
    cell = "ci_svm_time/times/*/{}//seconds of search and training"
    ours, base = (group_cells(cell.format(method), distributions) for method in ("CI-SVM", "LIBSVM"))
    return {
        (name := f"gain/{key[0]}"): constant(name, base[key][0][1].median / points[0][1].median)
        for key, points in ours.items()
        if key in base
    }


PAPER = Paper(
    name="ci_svm",
    title="CI-SVM (2018)",
    numbers=numbers,
    derive=derive,
    claims=claims,
    experiments=("ci_svm_exact",),
    notes=("Tables 1 to 3 and Figures 3 and 4 are lost in our copy of the paper; its text is checked.",),
)
