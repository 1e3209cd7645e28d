"""Audit one method of the benchmark and record the bounds."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from privsvm.auditing.estimators import audit
from privsvm.auditing.methods import Claims, MethodCell, audit_method, relations_of, two_clouds
from privsvm.auditing.neighbours import make_pairs, pairs_around
from privsvm.errors import PrivSVMError, without_absolute_paths
from privsvm.numerics.noise.streams import seeded_stream
from privsvm.registry import estimator_class, is_foreign
from privsvm_bench.jobs.external_methods import ForeignMethod
from privsvm_bench.jobs.job import AuditJob
from privsvm_bench.records import AuditBound, AuditCell, AuditRecord

# Features of the widest made-up rows.
_WIDTH = 64


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
    if is_foreign(job.implementation):
        cells, problems = _audit_foreign(job)
        record = audit_record(job.method, job.implementation, cells, job.parameters)
        return dataclasses.replace(record, problem="; ".join(problems) or None)
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


@dataclasses.dataclass(frozen=True)
class _Untrained:
    """An estimator that fits a class of another package for as many labels as there are; `methods` are by number."""

    methods: Mapping[int, ForeignMethod]
    stated: float
    stream: np.random.Generator

    def fit(self, X: np.ndarray, y: np.ndarray) -> Any:
        """Return the fitted model of the class."""
        return self.methods[len(np.unique(y))].untrained(self.stated, self.stream).fit(X, y)


def _audit_foreign(job: AuditJob) -> tuple[list[MethodCell], list[str]]:
    """Audit a class of another package by training it, on rows as short as those that the benchmark hands it.

    Made-up rows have two classes or three: noise may be missing for the third one alone. Returns the cells, and why a
    class cannot be trained on these few rows.
    """
    cells: list[MethodCell] = []
    problems: list[str] = []
    methods = {
        n: ForeignMethod(job.implementation, job.parameters, n, np.zeros((0, 1)), job.delta, job.neighbours)
        for n in (2, 3)
    }
    # Rows of many features are long within the bounds, as those of real tables are: a class has to clip them.
    pairs = [
        pair for n in methods for width in (1, _WIDTH) for pair in make_pairs(n, job.neighbours, 1.0, (1.0,), width)
    ]
    pairs += pairs_around(*two_clouds(), job.neighbours, job.seed)
    pairs = [pair for pair in pairs if max(np.abs(rows).max() for rows, _ in (pair.first, pair.second)) <= 1]
    for epsilon in job.epsilons:
        numbers, guarantee = itertools.count(), methods[2].guarantee(epsilon)

        def make(epsilon: float = epsilon, numbers: Iterator[int] = numbers) -> _Untrained:
            stream = seeded_stream(job.seed, "audit", job.method, epsilon, next(numbers))
            return _Untrained(methods, epsilon, stream)

        try:
            found = audit(
                make, epsilon=epsilon, delta=guarantee.delta, relation=job.neighbours, draws=job.draws, pairs=pairs
            )
        except Exception as error:
            problem = without_absolute_paths(f"at epsilon {epsilon:g}: {' '.join(str(error).split())}")
            print(f"audit: {job.method}: not audited {problem}")
            problems.append(problem)
            continue
        cells.append(
            MethodCell(
                relation=job.neighbours,
                epsilon=epsilon,
                delta=found.delta,
                guarantee=guarantee,
                pair=found.pair.words,
                draws=found.draws,
                bounds=found.bounds,
                looks_at="public attributes and answers of the trained model",
                confirmed=found.refuted,
            )
        )
    return cells, problems
