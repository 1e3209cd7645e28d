"""Distributions of printed numbers: a paper would print so if our implementation were its program."""

from __future__ import annotations

import csv
import dataclasses
import functools
import io
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.stats

# Probabilities of the quantiles that are kept.
LEVELS = (
    0.0, 0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.975, 0.99, 0.995, 0.999,
    1.0,
)  # fmt: skip
_MIDDLE = LEVELS.index(0.5)
_COLUMNS = (
    "cell", "statistic", "runs", "unit", "fresh", "median", *(f"q{level:g}" for level in LEVELS),
)  # fmt: skip

# Statistic of a printed number that is the value of one run.
ONE_VALUE = "one value"
# Statistic of a single measurement: its quantiles do not show how far it varies.
SINGLE = "measured once"
# Levels at which a tail must not be lighter than the runs; it is fitted at the first.
_TAIL_LEVELS = (0.975, 0.995, 0.999)
# Draws of a statistic that stand for its distribution.
_SAMPLES = 4000
# With fewer runs the mean is taken to be normal, with the uncertainty of Student's distribution.
MANY_RUNS = 100
# With more runs, their own uncertainty no longer counts.
_MANY = 2000


@dataclasses.dataclass(frozen=True, kw_only=True)
class Distribution:
    """Distribution of one printed number under our implementation."""

    cell: str  # Identifier of the printed number.
    statistic: str  # Such as "mean of 5 runs".
    runs: int  # Runs behind it.
    unit: float  # Of the last printed digit.
    fresh: tuple[float, ...]  # Values of the statistic by runs that the quantiles do not rest on.
    quantiles: tuple[float, ...]  # At `LEVELS`.
    table: str = ""  # Experiment that measured it; empty for draws.

    @property
    def median(self) -> float:
        """Its median."""
        return self.quantiles[_MIDDLE]

    def below(self, value: float, or_at: bool = False) -> float:
        """Probability of a smaller value, or of one that is not larger."""
        edges = np.asarray(self.quantiles)
        index = int(np.searchsorted(edges, value, side="right" if or_at else "left"))
        if index == 0 or index == len(LEVELS):
            return 0.0 if index == 0 else 1.0
        low, high = edges[index - 1], edges[index]
        share = (value - low) / (high - low) if high > low else 1.0
        level = LEVELS[index - 1] + share * (LEVELS[index] - LEVELS[index - 1])
        if self.statistic == ONE_VALUE:
            # One more draw lies between any two of n neighbouring ones with probability 1 / (n + 1).
            level = (1.0 + (self.runs - 1) * level) / (self.runs + 1)
        return float(level)

    @property
    def edge(self) -> float:
        """Least probability that the runs themselves can show."""
        return max(0.005, 1.0 / (self.runs + 1)) if self.statistic == ONE_VALUE else 0.005

    def tail(self, value: float) -> float:
        """Probability of a value at least as far out on the same side, by a tail of Student's form.

        Its scale fits the outer part of the same side, so a skew one keeps its skew; it is nowhere lighter than
        the outermost quantiles.
        """
        upper = value > self.median
        freedom = self._freedom
        scale = max(self._scale(level, upper) for level in _TAIL_LEVELS)
        if scale == 0.0:
            return 1.0 / (self.runs + 1) if value != self.median else 0.5
        return float(scipy.stats.t.sf(abs(value - self.median) / scale, freedom))

    def tail_fits(self) -> tuple[float, ...]:
        """Return the probability of a tail fitted to the 97.5 % points at both 99.9 % points, where 0.001 is right."""
        results = []
        for upper in (False, True):
            scale = self._scale(_TAIL_LEVELS[0], upper)
            edge = abs(self.quantiles[LEVELS.index(0.999 if upper else 0.001)] - self.median)
            if scale > 0.0:
                results.append(float(scipy.stats.t.sf(edge / scale, self._freedom)))
        return tuple(results)

    @property
    def _freedom(self) -> int:
        return max(min(self.runs, 60) - 1, 1)

    def _scale(self, level: float, upper: bool) -> float:
        """Scale by which Student's quantile of a level is ours."""
        nearest = level if upper else round(1.0 - level, 6)
        distance = abs(self.quantiles[LEVELS.index(nearest)] - self.median)
        return float(distance / _student_quantile(level, self._freedom))


@functools.cache
def _student_quantile(level: float, freedom: int) -> float:
    return float(scipy.stats.t.ppf(level, freedom))


def decimals_of(printed: str) -> int:
    """Count the digits behind the point of a printed number."""
    return len(printed.partition(".")[2])


def _quantiles(samples: np.ndarray) -> tuple[float, ...]:
    return tuple(float(value) for value in np.quantile(np.asarray(samples, dtype=np.float64), LEVELS))


def of_whole(samples: Sequence[float]) -> tuple[float, ...]:
    """Quantiles of draws of the printed number itself."""
    return _quantiles(np.asarray(samples))


def of_mean(
    singles: Sequence[float], size: int, rng: np.random.Generator, spread: int | None = None, samples: int = _SAMPLES
) -> tuple[float, ...]:
    """Return quantiles, at `LEVELS`, of the mean of `size` runs, with the uncertainty that `singles` (n,) leave.

    `spread` asks for the standard deviation instead, with ``size - spread`` degrees of freedom. `samples` means are
    drawn by `rng`.
    """
    values = np.asarray(singles, dtype=np.float64)
    if values.size >= _MANY:
        drawn = values[rng.integers(values.size, size=(5 * samples, size))]
        return _quantiles(drawn.mean(axis=1) if spread is None else drawn.std(axis=1, ddof=spread))
    if values.size >= MANY_RUNS:
        # Polya's urn: further runs as the seen ones leave them.
        weights = rng.exponential(size=(samples, values.size))
        cumulated = np.cumsum(weights, axis=1)
        cumulated /= cumulated[:, -1:]
        drawn = np.empty((samples, size))
        for column in range(size):
            drawn[:, column] = values[np.minimum((cumulated < rng.random((samples, 1))).sum(axis=1), values.size - 1)]
        return _quantiles(drawn.mean(axis=1) if spread is None else drawn.std(axis=1, ddof=spread))
    deviation, freedom = float(values.std(ddof=1)), values.size - 1
    levels = np.clip(LEVELS, 1e-4, 1.0 - 1e-4)
    if spread is None:
        factor = deviation * math.sqrt(1.0 / size + 1.0 / values.size)
        return tuple(float(values.mean() + factor * item) for item in scipy.stats.t.ppf(levels, freedom))
    ratios = scipy.stats.f.ppf(levels, size - 1, freedom) * (size - 1) / (size - spread)
    return tuple(float(deviation * math.sqrt(item)) for item in ratios)


def of_parts(values: np.ndarray, rng: np.random.Generator, spread: int | None = None) -> tuple[float, ...]:
    """Return quantiles, at `LEVELS`, of the mean over parts (or the standard deviation, see `of_mean`).

    `values` (n, parts) are draws of each part, independent of the other parts; `rng` combines them.
    """
    n, n_parts = values.shape
    drawn = values[rng.integers(n, size=(_SAMPLES, n_parts)), np.arange(n_parts)]
    return _quantiles(drawn.mean(axis=1) if spread is None else drawn.std(axis=1, ddof=spread))


def lines_csv(columns: Sequence[str], lines: Iterable[Sequence[Any]]) -> str:
    """Write lines below their columns as CSV text."""
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerows([columns, *lines])
    return buffer.getvalue()


def read_lines(path: str | Path) -> list[dict[str, str]]:
    """Read the lines of a CSV file by column; without a file there is none."""
    if not Path(path).exists():
        return []
    with open(path, encoding="utf-8", newline="") as handle:
        return list(csv.DictReader(handle))


def _short(number: float, digits: int = 3) -> str:
    return f"{number + 0.0:.{digits}g}"


def distributions_csv(distributions: Iterable[Distribution]) -> str:
    """Write distributions as CSV text: medians in full, other quantiles as their distance from it in printed units."""
    lines = []
    for item in distributions:
        median = float(_short(item.median, 7))
        offsets = [_short(round((value - median) / item.unit, 1)) for value in item.quantiles]
        fresh = " ".join(_short(value, 6) for value in item.fresh)
        lines.append([item.cell, item.statistic, item.runs, f"{item.unit:g}", fresh, _short(median, 7), *offsets])
    return lines_csv(_COLUMNS, lines)


def read_distributions(path: str | Path) -> dict[str, Distribution]:
    """Read what `distributions_csv` wrote; without the file there is none."""
    result = {}
    for record in read_lines(path):
        unit, median = float(record["unit"]), float(record["median"])
        result[record["cell"]] = Distribution(
            cell=record["cell"],
            statistic=record["statistic"],
            runs=int(record["runs"]),
            unit=unit,
            fresh=tuple(float(value) for value in record["fresh"].split()),
            quantiles=tuple(median + unit * float(record[f"q{level:g}"]) for level in LEVELS),
        )
    return result


def merge_distributions(earlier: Mapping[str, str], present: Iterable[Distribution]) -> str:
    """Write a table by cell: the `present` ones, and the `earlier` lines of all others."""
    header, *lines = distributions_csv(sorted(present, key=lambda item: item.cell)).splitlines()
    present_lines = {next(csv.reader([line]))[0]: line for line in lines}
    merged = {**earlier, **present_lines}
    return "\n".join([header, *(merged[cell] for cell in sorted(merged))]) + "\n"


def lines_by_cell(path: str | Path) -> dict[str, str]:
    """Read the lines of a table by cell, as they stand."""
    if not Path(path).exists():
        return {}
    _, *lines = Path(path).read_text(encoding="utf-8").splitlines()
    return {next(csv.reader([line]))[0]: line for line in lines}
