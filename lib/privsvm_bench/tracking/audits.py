"""MLflow runs of audits: claimed against audited epsilon, one run for each method."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from privsvm.digests import canonical_json, sha256_of_json
from privsvm_bench.records import AuditRecord, Worth
from privsvm_bench.tracking.runs import LAYOUT, CurveRun, MetricPoint, curve_name

AUDITS = "claimed-against-audited"
"""In the name of the MLflow experiment, the place of a data set."""

# As in `privsvm.privacy.lower_bounds`, whose accountants are slow to import; a test compares them.
CONFIDENCE = 0.95


def audit_runs(records: Sequence[AuditRecord], experiment: str) -> list[CurveRun]:
    """Make a run for each method that has cells, with a step for each cell.

    A step has the stated epsilon, the audited bound, its confidence and whether it refutes the stated one.
    """
    return [_run(record, experiment) for record in records if record.cells]


def _run(record: AuditRecord, experiment: str) -> CurveRun:
    status = _status(record)
    identity = {"layout": LAYOUT, "experiment": experiment, "audit": record}
    curve = curve_name(record.method, status)
    parameters = {
        "curve": curve,
        "method": record.method,
        "implementation": record.implementation,
        "status": status,
        "confidence": f"{CONFIDENCE:g}",
        "neighbours": _distinct(cell.relation for cell in record.cells),
        "delta": _distinct(f"{cell.delta:g}" for cell in record.cells),
        "draws": _distinct(f"{cell.draws}" for cell in record.cells),
    }
    return CurveRun(
        experiment=experiment,
        dataset=AUDITS,
        method=record.method,
        key=sha256_of_json(identity),
        dataset_digest="",
        name=curve,
        parameters=parameters,
        tags={
            "guarantee": status,
            "refuted": "yes" if any(cell.refuted for cell in record.cells) else "no",
        },
        metrics=tuple(_points(record)),
        timings=(),
        files={"audit.json": f"{canonical_json(record, indent=1)}\n"},
    )


def _status(record: AuditRecord) -> Worth:
    claims = [cell for cell in record.cells if cell.status == "claimed"]
    if not claims:
        return record.cells[0].status
    return "refuted" if any(cell.refuted for cell in claims) else "claimed"


def _distinct(texts: Iterator[str]) -> str:
    return ", ".join(dict.fromkeys(texts))


def at_stated(epsilon: float) -> str:
    """Name the metric of the bounds for one stated epsilon, so that no chart compares those for two."""
    return f"audited_epsilon_where_{epsilon:g}_is_stated"


def _points(record: AuditRecord) -> Iterator[MetricPoint]:
    for epsilon in {cell.epsilon: None for cell in record.cells}:
        largest = max(cell.best.epsilon for cell in record.cells if cell.epsilon == epsilon)
        if math.isfinite(largest):
            yield MetricPoint(at_stated(epsilon), largest, 0)
    for step, cell in enumerate(record.cells):
        values = {
            "epsilon": cell.epsilon,
            "log10_epsilon": math.log10(cell.epsilon) if cell.epsilon > 0 else math.nan,
            "epsilon_with_system_noise": cell.epsilon_with_system_noise,
            "audited_epsilon": cell.best.epsilon,
            "audited_ceiling": cell.best.ceiling,
            "confidence": CONFIDENCE,
            "refuted": float(cell.refuted),
            "draws": float(cell.draws),
            **{f"audited_{bound.kind}": bound.epsilon for bound in cell.bounds},
        }
        yield from (MetricPoint(name, value, step) for name, value in values.items() if math.isfinite(value))
