"""The numbers that dpwss-2021 prints, and the draws that judge them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from reproduce.dpwss.claims import METRICS, compare, derive, derive_printed, sources
from reproduce.dpwss.experiments import TABLE3_SETTINGS, setting_name
from reproduce.engine.judging import Printed
from reproduce.engine.printed import numbers_of, read_paper

ABSENT = {"gisette": "gisette_scale is not available here", "rcv1": "rcv1_train.binary is not available here"}


def _place(row: Mapping[str, str]) -> dict[str, Any]:
    result: dict[str, Any] = {"missing": ABSENT.get(row["dataset"], "")}
    if row["source"] != "Table 3":
        return result
    _, *column = row["setting"].split(";")
    rule = " ".join(filter(None, [row["method"], ", ".join(column)]))
    return result | {"family": f"Table 3, {row['method']}", "rule": f"Table 3, {rule}: {row['metric']}"}


def _add_lost(numbers: list[Printed]) -> list[Printed]:
    """Add the cells of Table 3 that are lost in our copy, without text."""
    keys = {(number.dataset, number.method, number.setting, number.metric) for number in numbers}
    lost = []
    for dataset in TABLE3_SETTINGS["datasets"]:
        for shrinking in TABLE3_SETTINGS["shrinking"]:
            for column in (None, *TABLE3_SETTINGS["columns"]):
                for metric in METRICS:
                    key = (dataset, "DPWSS" if column else "WSS2", setting_name(shrinking, column), metric)
                    if key not in keys:
                        values = dict(zip(("dataset", "method", "setting", "metric"), key, strict=True))
                        lost.append({"source": "Table 3", **values, "value": ""})
    return [
        number if number.text else dataclasses.replace(
            number, missing="; ".join(filter(None, (number.missing, "lost in our copy of the paper")))
        )
        for number in [*numbers, *numbers_of(lost, _place)]
    ]  # fmt: skip


PAPER = read_paper(
    __package__, attributes=_place, complete=_add_lost, derive=derive, derive_printed=derive_printed, sources=sources,
    compare=compare,
)  # fmt: skip
