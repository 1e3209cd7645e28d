"""The numbers that dpwss-2021 prints, and the draws that judge them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from reproduce.dpwss.claims import METRICS, comparisons, derive, derive_printed, sources
from reproduce.dpwss.experiments import TABLE3_SETTINGS, setting_name
from reproduce.engine.judging import Printed
from reproduce.engine.printed import Paper, numbers_of

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


PAPER = Paper(
    name="dpwss",
    title="DPWSS (Sun et al., PeerJ Computer Science 2021)",
    attributes=_place,
    complete=_add_lost,
    derive=derive,
    derive_printed=derive_printed,
    sources=sources,
    comparisons=comparisons,
    experiments=("dpwss_exact", "dpwss_table3", "dpwss_means", "dpwss_sigma", "dpwss_privacy"),
    opening="{numbers[agrees]} of {compared} numbers come out again; {exact} of them are sizes and results of LIBSVM's "
    "WSS2, in which nothing is random. As the paper states, the classification capability is within 3 % of training "
    "without privacy, the objectives are nearly within two, and the iterations fall with sigma and hardly depend on "
    "epsilon. Three findings differ. At sigma .7 the printed objectives are better than those of single runs of "
    "Algorithm 2, and fit the better one of two runs. The iterations are not fewer on all datasets, in the printed "
    "table as in ours. The printed rates fit single runs, where the text has means of five. The proof of differential "
    "privacy bounds one random choice, but the first variable of a pair and a lone violating pair are chosen without "
    "noise: {privacy}.",
    notes=(
        "Numbers of DPWSS are judged by single runs: the text calls them means of five, and a row of its own says why "
        "they are not. Numbers of WSS2 are exact, and agree if every printed digit does.",
        "In some rows of our copy one of the three columns at sigma .7 is lost. Which one is unknown: we take it to be "
        "that of epsilon 0.1.",
        "What the text leaves open was tried on 25 printed objectives and 25 numbers of iterations at sigma .7: if "
        "pairs are never marked, or a run goes on where no pair is left, none of them is inside the central 95 %, and "
        "other orders of rows, exponents and tolerances change their log likelihood by at most 16. Means of five runs "
        "to the letter hold 35 of the 50; the better of two runs holds 44, and its log likelihood is 45 higher "
        "(`reproduce/dpwss/readings.csv`).",
    ),
)
