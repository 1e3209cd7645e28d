"""The numbers and statements that pmsvm-2025 prints, with remarks on them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from reproduce.engine.judging import Printed
from reproduce.engine.measurements import cell_id
from reproduce.engine.printed import Paper
from reproduce.pmsvm.claims import METHODS, claims, derive
from reproduce.pmsvm.readings import choose_readings, reading_cells

_GUESS = "no released file trains GRPUA: its loss, start and learning rate are our guess"
SETTINGS = ("Table 7", "Table 8")


def _place(row: Mapping[str, str]) -> dict[str, Any]:
    dataset, method, setting, metric = (row[key] for key in ("dataset", "method", "setting", "metric"))
    results: dict[str, Any] = {"missing": "HHAR's files are not available here" if dataset == "HHAR" else ""}
    if row["source"] in SETTINGS:
        return {"given": True}
    if method == "GRPUA":
        results["undecided"] = _GUESS
    if row["source"] == "Table 2":
        results["rule"] = f"Table 2, {method}: {metric}"
    elif "lr_decay" in setting:
        results |= {"rule": f"Table 9, {metric}", "family": "Table 9"}
    elif "clip=" in setting or "batch=" in setting:
        results["rule"] = f"{row['source']}, {setting.partition(';')[2]}: {metric}"
    return results


def _find_repeated(numbers: list[Printed]) -> list[Printed]:
    """Let columns that repeat Table 2 count there."""
    texts = {number.id: number.text for number in numbers}

    def first(number: Printed) -> str:
        """Find the same setting in Table 2, if both of its numbers are printed there."""
        head, _, last = number.setting.partition(";")
        if last not in ("clip=1", "batch=128"):
            return ""
        same = (
            texts.get(cell_id(number.dataset, number.method, number.setting, metric))
            == texts.get(cell_id(number.dataset, number.method, head, metric))
            for metric in ("accuracy", "accuracy SD")
        )
        return cell_id(number.dataset, number.method, head, number.metric) if all(same) else ""

    return [dataclasses.replace(number, repeats=first(number)) for number in numbers]


def sources(cell: str) -> list[str]:
    """Return the cells that a printed number is computed from, by all readings of its column."""
    if cell.endswith(";lr_decay/accuracy difference"):
        return [cell.replace(";lr_decay/accuracy difference", f";lr_decay={how}/accuracy") for how in ("no", "linear")]
    if ";noise of the stored code/" in cell:
        return [cell.replace(";noise of the stored code", "")]
    name, _, rest = cell.partition("/")
    if name == "gap":
        dataset, method, setting = rest.split("/")
        return [f"{rest}/accuracy", f"pmsvm_gap/without noise/{dataset}/{method}//accuracy"]
    if name == "gain":
        dataset, setting = rest.split("/")
        return [cell_id(dataset, method, setting, "accuracy") for method in METHODS[:3]]
    return [cell, *reading_cells(cell).values()]


PAPER = Paper(
    name="pmsvm",
    title="PMSVM (Park, Choi and Lee, NeurIPS 2025)",
    attributes=_place,
    complete=_find_repeated,
    derive=derive,
    readings=choose_readings,
    sources=sources,
    claims=claims,
    experiments=("pmsvm_exact", "pmsvm_table2", "pmsvm_lr_decay", "pmsvm_clip", "pmsvm_batch", "pmsvm_noise"),
    opening="{numbers[agrees]} of {compared} numbers come out again, and {numbers[refuted]} are refuted, though each "
    "column is judged by the reading that fits it best: paper and released scripts differ in loss, clipping norm and "
    "learning rate, and the script that the notebooks call is not released; {brief[clip-of-batches]}, where the text "
    "has 1. The paper's ranking holds for weight perturbation (PMSVM-WP: {ours[wp-best]}) and for gradients over "
    "weights ({ours[gradient-over-weight]}); whether margin gradients surpass a linear layer depends on the loss, "
    "which is open. The proof of weight perturbation rests on a bound on rows that min-max scaling does not give "
    "({privacy}); that of gradient perturbation is not questioned.",
    notes=(
        "Weight perturbation: a printed number is a mean over 20 splits, whose seeds the released notebook names; we "
        "train once for each split and draw the noise again and again. Gradient perturbation: a mean of five trainings "
        "on one split. Standard deviations are judged like means.",
        "Where text and released files differ, a column is judged by the reading that fits it best, as its name says, "
        "and the other readings have columns below.",
        "The epsilons are the paper's own; the statement on privacy judges them.",
    ),
)
