"""The numbers and statements that ppsvm-2007 prints, and what is known of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from privsvm_bench.reproduction.distributions import Distribution
from privsvm_bench.reproduction.judging import Judgement, Printed
from privsvm_bench.reproduction.printed import Claim, Paper, all_medians, cell_id, numbers_of, statement
from reproduce.ppsvm.experiments import DATASETS

# Blocks that differ by less are equal but for round-off; columns that differ by more are other columns.
_ROUND_OFF, _CHANGED = 1e-9, 0.1
_WIDE = "the error on a single fold spreads so widely that an agreement says nothing"


def _place(row: Mapping[str, str]) -> dict[str, Any]:
    if not row["method"]:
        # Sizes, beside those of the dataset before.
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
    """Say what is known of a cell."""
    printed, item = judgement.printed, judgement.distribution
    if judgement.verdict == "not judged yet":
        return "a partition of this set takes minutes of processor time"
    if item is None or judgement.verdict not in ("unlikely", "refuted"):
        return ""
    side = "above" if float(printed.text) > item.median else "below"
    text = f"printed {side} ours"
    if printed.dataset == "Bupa Liver":
        text += "; which class the paper means is open, and other readings move the error both ways"
    if printed.dataset == "Cleveland Heart" and printed.method == "no sharing":
        text += "; no entity's few features of this set separate the classes so well in our folds"
    return text


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
            )
        )  # fmt: skip
    return result


PAPER = Paper(
    name="ppsvm",
    title="PPSVM (Mangasarian, Wild and Fung, 2007)",
    numbers=numbers,
    reading=reading,
    claims=claims,
    experiments=("ppsvm_exact", "ppsvm_table1", "ppsvm_table2", "ppsvm_privacy"),
    notes=(
        "Sharing: a ten-fold mean of one partition. No sharing: a printed number is a whole number of errors on one "
        "fold, averaged over the entities, so it is judged by single folds of our partitions.",
    ),
)
