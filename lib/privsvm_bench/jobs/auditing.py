"""Audit one method of the benchmark and record the bounds."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from privsvm.auditing.methods import Claims, MethodCell, audit_method, relations_of
from privsvm.errors import PrivSVMError
from privsvm.registry import estimator_class
from privsvm_bench.jobs.job import AuditJob
from privsvm_bench.records import AuditBound, AuditCell, AuditRecord


def _cell(cell: MethodCell) -> AuditCell:
    guarantee = cell.guarantee
    return AuditCell(
        relation=cell.relation,
        epsilon=cell.epsilon,
        delta=cell.delta,
        status=guarantee.status,
        epsilon_proved=guarantee.epsilon_proved,
        epsilon_with_system_noise=guarantee.epsilon_with_system_noise,
        event=None if guarantee.event is None else guarantee.event.kind,
        pair=cell.pair,
        draws=cell.draws,
        bounds=tuple(AuditBound(**dataclasses.asdict(bound)) for bound in cell.bounds),
        looks_at=cell.looks_at,
        reachable=cell.reachable,
        refuted=cell.confirmed,
    )


def audit_record(
    method: str, implementation: str, cells: Sequence[MethodCell], parameters: Mapping[str, Any]
) -> AuditRecord:
    """Record the audited cells of one method; see `privsvm.auditing.methods.audit_method`.

    `implementation` is the method's file, and `parameters` are those it was audited with. Raises PrivSVMError if fresh
    draws, too, refute a proof: the code or its accounting is wrong.
    """
    record = AuditRecord(
        method=method, implementation=implementation, parameters=dict(parameters), cells=tuple(map(_cell, cells))
    )
    for cell in record.cells:
        if cell.theorem_holds and cell.refuted:
            top = max(cell.bounds, key=lambda bound: bound.sure)
            raise PrivSVMError(
                f"methods.{method}: an audit refutes the proof: epsilon is at least {top.sure:.4g} ({top.kind}, "
                f"{cell.relation}, {cell.draws} draws, confirmed by fresh ones), and the proof says "
                f"{cell.epsilon_with_system_noise:.4g}; the pair: {cell.pair}"
            )
    return record


def audit_entry(job: AuditJob) -> AuditRecord:
    """Audit one entry of params.yaml, for the benchmark's neighbours or those that the method offers.

    Raises PrivSVMError, in one line, for parameters that the method refuses, or a refuted proof.
    """
    estimator = estimator_class(job.implementation)
    offered = relations_of(estimator)
    try:
        cells = audit_method(
            estimator,
            job.parameters,
            Claims(job.epsilons, job.delta, [job.neighbours] if job.neighbours in offered else offered),
            draws=job.draws,
            key=job.method,
            seed=job.seed,
        )
    except ValueError as error:
        raise PrivSVMError(f"methods.{job.method}: audit: {error}") from None
    return audit_record(job.method, job.implementation, cells, job.parameters)
