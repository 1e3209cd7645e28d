"""Stated epsilons against the bounds from audits of releases."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from privsvm.privacy.statement import theorem_holds
from privsvm_bench.charts import AuditBar
from privsvm_bench.palette import CLAIMED, Look
from privsvm_bench.records import AuditRecord, Result
from privsvm_bench.reporting.claim_tables import finite_guarantees, verdict_on
from privsvm_bench.reporting.curve_tables import nearest_epsilon


def audit_bars_of(
    results: Sequence[Result], audits: Sequence[AuditRecord], looks: Mapping[str, Look], reference_epsilon: float
) -> tuple[float, list[AuditBar]]:
    """Collect a bar for each private method, for `privsvm_bench.charts.audit_bars`, and the epsilon that is drawn.

    This is the audited epsilon nearest to `reference_epsilon`. Guarantees of `results` may hold a witness of an audit
    on their dataset. `looks` gives the order of the bars. Without audits there are none.
    """
    found: dict[float, dict[str, list[tuple[float, bool]]]] = defaultdict(lambda: defaultdict(list))
    for record in audits:
        for cell in record.cells if record.method in looks else ():
            found[cell.epsilon][record.method].append((cell.best.epsilon, cell.refuted))
    for result in results:
        for stated, guarantee in finite_guarantees(result):
            verdict, witness = verdict_on(guarantee, result.status), guarantee.witness
            if witness is not None and witness.neighbours == guarantee.neighbours:
                refuted = verdict.kind in ("broken", "contradiction")
                found[stated][result.method].append((witness.epsilon, refuted))
    private = {result.method for result in results if result.status != "none"}
    claimed = {result.method for result in results if result.status == "claimed"}
    if not found:
        return reference_epsilon, []
    grid = sorted(found)
    stated = grid[nearest_epsilon(grid, reference_epsilon)]
    bars = []
    for method in filter(private.__contains__, looks):
        bounds = found[stated].get(method, [])
        bars.append(
            AuditBar(
                name=method,
                colour=CLAIMED if method in claimed else looks[method].light,
                is_claim=method in claimed,
                bound=max((bound for bound, _ in bounds), default=None),
                refuted=any(refuted for _, refuted in bounds),
            )
        )
    return stated, sorted(bars, key=lambda bar: bar.is_claim)


def audit_rows(audits: Sequence[AuditRecord]) -> list[dict[str, Any]]:
    """Rows of the table of audits: one for each method and relation."""
    rows = []
    for record in audits:
        for relation in dict.fromkeys(cell.relation for cell in record.cells):
            cells = [cell for cell in record.cells if cell.relation == relation]
            rows.append(
                {
                    "method": record.method,
                    "status": "claimed" if any(cell.status == "claimed" for cell in cells) else cells[0].status,
                    "relation": relation,
                    "draws": cells[0].draws,
                    "cells": {cell.epsilon: cell for cell in cells},
                    "pair": cells[-1].pair,
                }
            )
    return sorted(rows, key=lambda row: (not theorem_holds(row["status"]), row["method"], row["relation"]))
