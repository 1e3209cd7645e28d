"""The numbers and statements that ppsvm-2007 prints, with remarks on them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.stats

from reproduce.engine.distributions import LEVELS, ONE_VALUE, Distribution, of_mean
from reproduce.engine.printed import read_paper


def _place(row: Mapping[str, str]) -> dict[str, Any]:
    return {"rule": f"{row['source']}, {row['method']}"} if row["method"] else {"family": "Table 1, sizes"}


def derive(distributions: Mapping[str, Distribution]) -> dict[str, Distribution]:
    """Take the partitions of the experiments on Tables 1 and 2 where no further ones have been drawn."""
    result = {}
    for experiment in ("ppsvm_table1", "ppsvm_table2"):
        for table in ("sharing", "no sharing"):
            start = f"{experiment}/{table}/"
            for name in distributions:
                cell = name.removeprefix(start)
                if cell != name and cell.endswith("/error") and cell not in distributions:
                    result[cell] = _sum_up(cell, name, table, distributions)
    return result


def _sum_up(cell: str, name: str, table: str, distributions: Mapping[str, Distribution]) -> Distribution:
    """Return the distribution that measurements sum up: partitions, or the range of single folds."""

    def number(metric: str) -> float:
        return distributions[f"{name.removesuffix('error')}{metric}"].median

    mean = number("error")
    if table == "sharing":
        runs, statistic = int(number("partitions")), "one run"
        # So few are taken to be normal: only their mean and their spread count.
        values = mean + number("error SD") * scipy.stats.zscore(np.arange(runs), ddof=1)
        quantiles = of_mean(values, 1, np.random.default_rng(0))
    else:
        runs, statistic = int(number("folds")), ONE_VALUE
        # Two halves of normal distributions, which reach the extremes where so many folds do.
        edges = (1 / (runs + 1), runs / (runs + 1))
        widths = [(number(metric) - mean) / scipy.stats.norm.ppf(level)
                  for metric, level in zip(("lowest fold", "highest fold"), edges, strict=True)]  # fmt: skip
        normal = scipy.stats.norm.ppf(np.clip(LEVELS, *edges))
        quantiles = tuple(float(mean + widths[int(value > 0)] * value) for value in normal)
    return Distribution(
        cell=cell,
        statistic=statistic,
        runs=runs,
        table=name.partition("/")[0],
        unit=1e-4,
        fresh=(),
        quantiles=quantiles,
    )


PAPER = read_paper(__package__, attributes=_place, derive=derive)
