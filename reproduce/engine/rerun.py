"""A rerun beside the committed results: changes that a machine may make, and others."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import scipy.stats

from reproduce.engine.distributions import Distribution
from reproduce.engine.judging import width

# Chance with which a rerun of equal programs is called different, for one cell.
_CHANCE = 1e-4


class RerunLine(NamedTuple):
    """One cell: committed and rerun medians, how far apart they are, what that means, and whether it confirms."""

    cell: str
    committed: float
    rerun: float
    apart: float
    reading: str
    confirms: bool


def beside(committed: Mapping[str, Distribution], rerun: Mapping[str, Distribution]) -> list[RerunLine]:
    """Put the cells of a rerun beside the committed ones, where both have them.

    Medians of random cells are apart in standard errors of their difference; exact cells in units of the last printed
    digit.
    """
    lines = []
    for cell, item in rerun.items():
        base = committed.get(cell)
        if base is None:
            continue
        difference = item.median - base.median
        if base.statistic == "exact":
            apart = difference / base.unit
            is_same, confirms = difference == 0.0, abs(apart) < 0.5
            near = "round-off: below the printed digits, which a machine may change"
            far = "differs in printed digits, which no machine may change"
        else:
            # The median of a statistic of `size` runs is known from all runs together.
            size = int("".join(letter for letter in base.statistic if letter.isdigit()) or 1)
            share = math.sqrt(0.5 * math.pi * size * (1.0 / base.runs + 1.0 / item.runs))
            apart = difference / (max(width(base), width(item)) * share + 0.1 * base.unit)
            is_same = base.quantiles == item.quantiles
            confirms = abs(apart) <= scipy.stats.norm.isf(_CHANCE / 2.0)
            near = "within what other draws change"
            far = "further apart than draws of equal programs are but once in ten thousand"
        reading = "the same" if is_same else near if confirms else far
        lines.append(RerunLine(cell, base.median, item.median, apart, reading, confirms))
    return lines
