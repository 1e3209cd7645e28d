"""Attacks on methods without a guarantee, summed up for the page."""

from __future__ import annotations

import dataclasses
import functools
import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from privsvm_bench.records import CondensedRowsAttack, CondensedSplit, KnownSampleAttack
from privsvm_bench.reporting.curve_charts import attack_svg

# Errors below it are round-off: the attacked values are known to eight digits.
RECOVERED = 1e-8

# A condensed row that is off by no more in any entry, in standard deviations, is called nearly a training row.
NEARLY = 0.1

_GROUP = 3


def tabulate_known_sample(attacks: Sequence[KnownSampleAttack]) -> list[dict[str, Any]]:
    """Add to each attack its chart and the entities whose rows it recovers, with the least and most rows needed."""
    shown = []
    for attack in attacks:
        needed = {
            entity.entity: entity.rows_needed
            for entity in attack.entities
            if entity.error_at_rows_needed is not None and entity.error_at_rows_needed <= RECOVERED
        }
        fewest, most = min(needed.values(), default=None), max(needed.values(), default=None)
        chart = functools.partial(attack_svg, attack)
        shown.append({**vars(attack), "broken": list(needed), "fewest": fewest, "most": most, "chart": chart})
    return shown


def tabulate_condensed_rows(attacks: Sequence[CondensedRowsAttack], condensed: bool = False) -> list[dict[str, Any]]:
    """Sum up the attacks on condensed rows over the splits, one row for each record.

    Figures of splits are `_median_and_range` of each field of `CondensedSplit`. ``third_member`` is the largest error
    of all splits; None if the attack does not apply or there is no group of three. `condensed` means that the rows were
    condensed for all methods: a method that condenses then reveals only such rows.
    """
    shown = []
    names = [field.name for field in dataclasses.fields(CondensedSplit)]
    for attack in attacks:
        columns = {key: [getattr(split, key) for split in attack.splits] for key in names}
        over_splits = {key: _median_and_range(values) for key, values in columns.items()}
        error, nearest = over_splits["third_member_error"], over_splits["nearest_row"]
        shares = zip(columns["groups_of_three"], columns["n_rows"], strict=True)
        lost = [count for count in columns["lost_classes"] if count]
        shown.append(
            {
                **over_splits,
                "dataset": attack.dataset,
                "method": attack.method,
                "label": attack.method or "the stage condense",
                "kind": attack.condense,
                # It condensed rows that are no person's, so nothing follows about people.
                "twice": attack.method is not None and condensed,
                "splits": len(attack.splits),
                "third_member": error["high"] if error else None,
                "third_member_known": error is not None and error["high"] <= RECOVERED,
                "grouped": _median_and_range(
                    _GROUP * groups / rows for groups, rows in shares if groups is not None and rows
                ),
                # Chance level: how often a random row would be its own nearest neighbour.
                "certain_by_chance": _median_and_range(
                    1.0 / (others + 1.0) for others in columns["other_rows"] if others
                ),
                "verbatim": nearest is not None and nearest["median"] <= RECOVERED,
                "nearly": nearest is not None and nearest["median"] <= NEARLY,
                "lost": {"low": min(lost), "high": max(lost), "splits": len(lost)} if lost else None,
                # Fewer than all where there are many.
                "drawn": over_splits["linked_rows"] if columns["linked_rows"] != columns["n_rows"] else None,
            }
        )
    return shown


def pick_condensed_findings(table: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Pick the records that the page's sentences are about; rows that were condensed before do not count.

    ``stage`` and ``means`` tell whether there are records of the workflow's stage, and of means. The others are rows of
    the table or None: ``nearest`` (to training rows, of all), ``centres`` (the same of fuzzy centres), ``third`` (the
    nearest with known third members), ``certain`` and ``auc`` (the highest).
    """
    rows = sorted((row for row in table if not row["twice"]), key=lambda row: row["nearest_row"]["median"])

    def highest(key: str) -> Mapping[str, Any] | None:
        return max((row for row in rows if row[key]), key=lambda row: row[key]["median"], default=None)

    return {
        "stage": any(row["method"] is None for row in rows),
        "means": any(row["kind"] == "ci" for row in rows),
        "nearest": next(iter(rows), None),
        "centres": next((row for row in rows if row["kind"] == "fcm"), None),
        "third": next((row for row in rows if row["third_member_known"]), None),
        "certain": highest("certain_members"),
        "auc": highest("membership_auc"),
    }


def _median_and_range(values: Iterable[float | None]) -> dict[str, float] | None:
    """Median, least and most of the known values; None if there are none."""
    numbers = [value for value in values if value is not None]
    if not numbers:
        return None
    return {"median": statistics.median(numbers), "low": min(numbers), "high": max(numbers)}
