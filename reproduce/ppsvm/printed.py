"""The numbers and statements that ppsvm-2007 prints, with remarks on them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.stats

from reproduce.engine.comparison import Row, read_rows
from reproduce.engine.distributions import LEVELS, ONE_VALUE, Distribution, of_mean
from reproduce.engine.judging import Judgement, Printed
from reproduce.engine.printed import Paper, all_medians, cell_id, numbers_of
from reproduce.engine.statements import Claim, statement
from reproduce.ppsvm.experiments import DATASETS

# Blocks that differ by less are equal but for round-off; columns that differ by more are other columns.
_ROUND_OFF, _CHANGED = 1e-9, 0.1
_WIDE = "the error on a single fold spreads so widely that an agreement says nothing"


def _place(row: Mapping[str, str]) -> dict[str, Any]:
    if not row["method"]:
        # Sizes: the neighbour is the previous dataset.
        names = list(DATASETS)
        before = names[names.index(row["dataset"]) - 1]
        return {"family": "Table 1, sizes", "neighbour": cell_id(before, "", "", row["metric"])}
    other = "no sharing" if row["method"] == "PPSVM" else "PPSVM"
    return {
        "wide": "" if row["method"] == "PPSVM" else _WIDE,
        "rule": f"{row['source']}, {row['method']}",
        "neighbour": cell_id(row["dataset"], other, row["setting"], row["metric"]),
    }


def numbers(rows: Sequence[Mapping[str, str]]) -> list[Printed]:
    """List the numbers of Tables 1 and 2; Table 2 prints the sizes once more."""
    return numbers_of(rows, _place)


def reading(judgement: Judgement) -> str:
    """Return the remark on a cell."""
    printed, item = judgement.printed, judgement.distribution
    if item is not None and item.table:
        return f"judged by the partitions of {item.table}: a further one takes minutes of processor time"
    if item is None or judgement.verdict not in ("unlikely", "refuted"):
        return ""
    side = "above" if float(printed.text) > item.median else "below"
    text = f"printed {side} ours"
    if printed.dataset == "Bupa Liver":
        text += "; which class the paper means is open, and other readings move the error both ways"
    if printed.dataset == "Cleveland Heart" and printed.method == "no sharing":
        text += "; no entity's few features of this set separate the classes so well in our folds"
    return text


def derive(distributions: Mapping[str, Distribution]) -> dict[str, Distribution]:
    """Take the partitions of the experiments on Tables 1 and 2 where no further ones have been drawn."""
    result = {}
    for kernel, experiment in (("linear", "ppsvm_table1"), ("gaussian", "ppsvm_table2")):
        table = Path(__file__).parents[2] / f"reports/reproduce/{experiment}.csv"
        for row in read_rows(table) if table.exists() else []:
            method = {"sharing": "PPSVM", "no sharing": "no sharing"}.get(row.table, "")
            cell = cell_id(row.dataset, method, f"kernel={kernel};entities={row.setting.partition(' ')[0]}", "error")
            if method and row.ours is not None and cell not in distributions:
                result[cell] = _of_row(cell, row, row.ours, experiment)
    return result


def _of_row(cell: str, row: Row, mean: float, experiment: str) -> Distribution:
    """Read the distribution that a row of a table sums up: partitions, or the range of single folds."""
    if row.table == "sharing":
        match = re.search(r"sd ([\d.]+) over (\d+) partitions", row.explanation)
        assert match is not None
        runs, statistic = int(match[2]), "one run"
        # So few are taken to be normal: only their mean and their spread count.
        quantiles = of_mean(mean + float(match[1]) * scipy.stats.zscore(np.arange(runs), ddof=1), 1,
                            np.random.default_rng(0))  # fmt: skip
    else:
        match = re.search(r"our (\d+) single folds: ([\d.]+) to ([\d.]+)", row.explanation)
        assert match is not None
        runs, statistic = int(match[1]), ONE_VALUE
        # Two halves of normal distributions, which reach the extremes where so many folds do.
        widths = [(float(match[side]) - mean) / scipy.stats.norm.ppf(level)
                  for side, level in ((2, 1 / (runs + 1)), (3, runs / (runs + 1)))]  # fmt: skip
        normal = scipy.stats.norm.ppf(np.clip(LEVELS, 1 / (runs + 1), runs / (runs + 1)))
        quantiles = tuple(float(mean + widths[int(value > 0)] * value) for value in normal)
    return Distribution(
        cell=cell, statistic=statistic, runs=runs, table=experiment, unit=1e-4, fresh=(), quantiles=quantiles
    )


def claims(
    texts: Mapping[str, str], judgements: Mapping[str, Judgement], distributions: Mapping[str, Distribution]
) -> list[Claim]:
    """Judge Remarks 2.2 and 3.2 as they stand: nothing is known but the published block."""
    result = []
    for kernel, source in (("linear", "Remark 2.2"), ("gaussian", "Remark 3.2")):
        values = all_medians(
            distributions, [f"claim/privacy-{kernel}/difference of {what}" for what in ("blocks", "columns")]
        )
        ours = ""
        if values:
            ours = (
                f"columns and random matrix turned alike give the same block within {values[0]:.1g}, though every "
                f"entity's columns change by {values[1]:.2g} standard deviations or more"
            )
        result.append(
            statement(
                f"privacy-{kernel}", source,
                f"from the {kernel} block alone the columns cannot be computed",
                values[0] <= _ROUND_OFF and values[1] >= _CHANGED if values else None, ours,
                brief=f"{kernel} kernel: nothing is known but the block",
            )
        )  # fmt: skip
    return result


PAPER = Paper(
    name="ppsvm",
    title="PPSVM (Mangasarian, Wild and Fung, 2007)",
    numbers=numbers,
    reading=reading,
    derive=derive,
    claims=claims,
    experiments=("ppsvm_exact", "ppsvm_table1", "ppsvm_table2", "ppsvm_privacy"),
    notes=(
        "Sharing: a ten-fold mean of one partition. No sharing: a printed number is a whole number of errors on one "
        "fold, averaged over the entities, so it is judged by single folds of our partitions.",
    ),
)
