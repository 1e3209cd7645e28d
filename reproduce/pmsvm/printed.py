"""The numbers and statements that pmsvm-2025 prints, with remarks on them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from reproduce.engine.judging import Printed
from reproduce.engine.measurements import cell_id
from reproduce.engine.printed import read_paper
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


PAPER = read_paper(
    __package__, attributes=_place, complete=_find_repeated, derive=derive, readings=choose_readings, sources=sources,
    claims=claims,
)  # fmt: skip
