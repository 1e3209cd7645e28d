"""Stated epsilons against what audits of releases show."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

from privsvm.privacy.guarantee import Guarantee, Witness, theorem_holds
from privsvm_bench.records import AuditBound, AuditCell, AuditRecord, Result
from privsvm_bench.reporting.text import counted, short_number

__all__ = ["audit_rows", "audit_traces", "with_audits"]

_KINDS = {
    "counts": "counts of an event, without assumption",
    "f_dp": "both errors of a test, for the trade-off curve of Gaussian noise",
    "gaussian": "the distance of normal samples",
    "one_run": "guesses about the canaries of one release",
}

_NEVER = 1e3


def _shown(value: float) -> float | None:
    """Round a number for the page's script; None where it is infinite, or as good as that."""
    return None if not value < _NEVER else float(f"{value:.5g}")


def _verdict(cell: AuditCell) -> str:
    best = cell.best
    if cell.theorem_holds:
        return (
            f"at least ε = {short_number(best.epsilon)} of the proof's {short_number(cell.epsilon_with_system_noise)}"
        )
    if cell.refuted:
        return f"refuted below ε = {short_number(best.epsilon)}, by fresh draws too"
    return f"at least ε = {short_number(best.epsilon)}"


def _bound_text(bound: AuditBound) -> str:
    ceiling = f"; so many draws are expected to show {short_number(bound.ceiling)} at most" if bound.ceiling > 0 else ""
    return f"{short_number(bound.epsilon)} by {_KINDS[bound.kind]}{ceiling}"


def audit_traces(audits: Sequence[AuditRecord], method_index: Mapping[str, int]) -> list[dict[str, Any]]:
    """Traces of the chart of audits: one for each method and status.

    Parameters
    ----------
    audits : sequence of AuditRecord
        One for each method.
    method_index : mapping
        Number of each method of the report; records of others are left out.
    """
    traces = []
    for record in audits:
        if record.method not in method_index or not record.cells:
            continue
        status = "claimed" if any(cell.status == "claimed" for cell in record.cells) else record.cells[0].status
        points = [
            {
                "x": cell.epsilon,
                "low": _shown(cell.best.epsilon),
                "estimate": _shown(cell.best.estimate),
                "ceiling": _shown(cell.best.ceiling),
                "refuted": cell.refuted,
                "text": [
                    _verdict(cell),
                    *map(_bound_text, cell.bounds),
                    f"{cell.relation}, δ = {short_number(cell.delta)}, {counted(cell.draws, 'draw')}",
                    f"Pair: {cell.pair}",
                ],
            }
            for cell in record.cells
        ]
        traces.append({"method": method_index[record.method], "status": status, "points": points})
    return sorted(traces, key=lambda trace: (not theorem_holds(trace["status"]), trace["method"]))


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
                    "cells": {
                        cell.epsilon: {
                            "low": short_number(cell.best.epsilon),
                            "ceiling": short_number(cell.best.ceiling),
                            "refuted": cell.refuted,
                        }
                        for cell in cells
                    },
                    "pair": cells[-1].pair,
                }
            )
    return sorted(rows, key=lambda row: (not theorem_holds(row["status"]), row["method"], row["relation"]))


def _witness(cell: AuditCell) -> Witness:
    return Witness(
        epsilon=cell.best.epsilon,
        neighbours=cell.relation,
        confidence=0.95,
        description=f"{cell.pair}; {cell.draws} releases{', and as many fresh ones' if cell.refuted else ''}",
    )


def with_audits(results: Sequence[Result], audits: Sequence[AuditRecord]) -> list[Result]:
    """Give claims without a witness of their own that of the audit of their method.

    Returns
    -------
    list of Result
        Guarantees that say ``claimed`` have a witness where their stated epsilon was audited.
    """
    audit_cells: dict[tuple[str, float, str], AuditCell] = {
        (record.method, cell.epsilon, cell.relation): cell
        for record in audits
        for cell in record.cells
        if cell.status == "claimed"
    }

    def audited(method: str, guarantee: Guarantee) -> Guarantee:
        cell = audit_cells.get((method, guarantee.epsilon_requested, guarantee.neighbours or ""))
        if guarantee.status != "claimed" or guarantee.witness is not None or cell is None:
            return guarantee
        return dataclasses.replace(guarantee, witness=_witness(cell))

    return [
        dataclasses.replace(result, guarantees=tuple(audited(result.method, stated) for stated in result.guarantees))
        if result.status == "claimed" and any(math.isfinite(epsilon) for epsilon in result.epsilons)
        else result
        for result in results
    ]
