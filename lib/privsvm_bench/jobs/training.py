"""Train one method on every split of one dataset."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Mapping
from typing import Any

import numpy as np

from privsvm.base.released import ReleasedPath
from privsvm.errors import PrivSVMError
from privsvm.numerics.noise.noise_source import NoiseSource, seeded_source
from privsvm.numerics.noise.streams import seeded_stream
from privsvm.privacy.gate import Guarantee, restore
from privsvm.privacy.statement import DROPPED, FACTS, Facts
from privsvm.registry import estimator_class, is_foreign
from privsvm_bench.datasets.prepared import PreparedData
from privsvm_bench.jobs.condensing import attack_split, rows_not_condensed, training_rows
from privsvm_bench.jobs.job import TrainJob
from privsvm_bench.records import Attack, CondensedRowsAttack, CondensedSplit, Entity, KnownSampleAttack


def _preparation(description: Mapping[str, Any]) -> str:
    """Name the preparation of the file; own data must declare it."""
    if description["prescaled"] is None:
        return "undeclared"
    if description["prescaled"]:
        return "prescaled"
    # The rule counts even if no value is missing: whether one is depends on private rows.
    if dropped := DROPPED.get(description["missing"]["rule"]):
        return dropped
    return "declared" if description["prescaled_origin"] == "declared" else "untouched"


def data_facts(description: Mapping[str, Any], condense: str, split: int) -> dict[str, Any]:
    """State the origin of one split's training rows for `privsvm.privacy.gate`.

    `description` is the prepared data's; `condense` is "none", "ci" or "fcm".
    """
    scaling, protocol = description["scaling"], description["protocol"]
    drawn = "stratified" if protocol.get("stratified") else "label-blind"
    declared = description["declared_training_rows"]
    facts = {
        "preparation": _preparation(description),
        "condensing": condense,
        "split": {"given": "of the files", "resubstitution": "every row"}.get(protocol["kind"], drawn),
        "scaling": scaling["origin"],
        "bounds": scaling.get("bounds_origin", "none"),
        "n_features": "declared" if description["n_features_origin"] == "declared" else "private rows",
        "declared_rows": None if declared is None else declared[split],
    }
    # The method sees declared class codes and cannot know that the classes were taken from labels.
    return facts if description["classes_origin"] == "declared" else {**facts, "classes": "private labels"}


def training_sizes(prepared: PreparedData, job: TrainJob) -> int | None:
    """Return the training rows of the largest split, for the record.

    Under ``add_remove`` it is private: the declared number, or None.
    """
    if job.neighbours == "add_remove":
        return max(prepared.description["declared_training_rows"] or (), default=None)
    return max(prepared.split(split).y_train.size for split in range(prepared.n_splits))


def _declared_columns(prepared: PreparedData) -> dict[str, Any]:
    """Return the range of dense rows that were scaled by bounds, and the features that have two values."""
    scaling = prepared.description["scaling"]
    if scaling["kind"] != "bounds" or prepared.description["sparse"]:
        return {}
    return {"bounds": tuple(scaling["range"]), "indicators": prepared.description["indicators"] or None}


def _estimator(job: TrainJob, prepared: PreparedData, n_rows: int | None, X_test: Any) -> Any:
    """Build the estimator of a method with the common parameters that it accepts."""
    n_classes = len(prepared.description["classes"])
    if is_foreign(job.implementation):
        from privsvm_bench.jobs.external_methods import ForeignMethod

        return ForeignMethod(job.implementation, job.parameters, n_classes, X_test, job.delta, job.neighbours)
    method_class = estimator_class(job.implementation)
    common = {
        "classes": list(range(n_classes)),
        "delta": job.delta,
        "neighbours": job.neighbours,
        "n_rows": n_rows,
        **_declared_columns(prepared),
    }
    accepted = inspect.signature(method_class).parameters
    return method_class(**({name: value for name, value in common.items() if name in accepted} | job.parameters))


def _as_used(guarantee: Guarantee, facts: Mapping[str, Any]) -> Guarantee:
    """Restate a method's guarantee with the facts about its training rows."""
    if facts["condensing"] == "none" or guarantee.status == "none":
        return restore(guarantee, **facts)
    # The method judged condensed rows: neither its proof nor its reasons hold for the training rows.
    declared_facts = Facts(**facts)
    reasons = declared_facts.judge(guarantee.neighbours, [name for name in FACTS if name in facts])[1]
    reason = "; ".join(reasons)
    return dataclasses.replace(guarantee.with_broken_assumption(reason), reason=reason)


def train_paths(
    prepared: PreparedData,
    condensed: Mapping[str, np.ndarray],
    job: TrainJob,
) -> tuple[list[ReleasedPath], list[Attack]]:
    """Train one method on every split; return a path for each split, and attacks.

    `condensed` is the content of the condense stage's file, see `training_rows`. The names of the method and the
    experiment are parts of the key of the noise streams. Attacks are those on the rows of a condensing method, or on
    the blocks that entities publish; otherwise there are none. Raises PrivSVMError, in one line, for parameters that
    the method refuses.
    """
    dataset = prepared.description["dataset"]
    is_uncondensed = str(condensed["condense"]) == "none"
    paths: list[ReleasedPath] = []
    attacks: list[Attack] = []
    attacked: list[CondensedSplit] = []
    kind = None
    for split in range(prepared.n_splits):
        # `make status` shows the last line of a running job's log.
        print(f"split {split + 1} of {prepared.n_splits}", flush=True)
        X, y = training_rows(prepared, condensed, split)

        def stream(epsilon: float, repeat: int, split: int = split) -> NoiseSource:
            return seeded_source(job.seed, job.experiment, dataset, job.method, split, float(epsilon), repeat)

        facts = data_facts(prepared.description, str(condensed["condense"]), split)
        n_rows = facts["declared_rows"]
        pays_for_counts = not is_foreign(job.implementation) and getattr(
            estimator_class(job.implementation), "pays_for_counts", False
        )
        if n_rows is None and job.neighbours == "add_remove" and not pays_for_counts:
            # The method needs a public number of rows and gets the private one; the gate records this.
            n_rows, facts["n_rows"] = X.shape[0], "counted"
        try:
            estimator = _estimator(job, prepared, n_rows, prepared.split(split).X_test)
            # One audit per dataset, because it costs further solves. None of condensed rows: data sets that differ
            # in one of these are not neighbours.
            audit = is_uncondensed and split == 0
            path = estimator.release_path(X, y, job.epsilons, job.repeats, stream, audit=audit)
        except ValueError as error:
            raise PrivSVMError(f"methods.{job.method} on {dataset}: {error}") from None
        if not hasattr(estimator, "n_rows"):
            facts.pop("n_rows", None)
        paths.append(
            dataclasses.replace(path, guarantees=tuple(_as_used(guarantee, facts) for guarantee in path.guarantees))
        )
        if split == 0 and hasattr(estimator, "public_blocks"):
            attacks.append(_attack_blocks(estimator, X, dataset, job))
        kind = getattr(estimator, "condense", None)
        if kind is not None:
            attacker = seeded_stream(job.seed, "attack", job.experiment, dataset, job.method, split)
            others = rows_not_condensed(prepared.split(split))
            # No test row resembles rows that were condensed before.
            others = others if is_uncondensed else others[:0]
            published = estimator.condensed_rows_, estimator.condensed_codes_, estimator.group_of_
            attacked.append(attack_split(kind, X, y, published, others, attacker))
    if kind is not None:
        attacks.append(CondensedRowsAttack(method=job.method, dataset=dataset, condense=kind, splits=tuple(attacked)))
    return paths, attacks


def _attack_blocks(estimator: Any, X: Any, dataset: str, job: TrainJob) -> KnownSampleAttack:
    """Attack the block that each entity of a trained PPSVM published."""
    from privsvm.privacy.attacks.known_sample import audit_entity

    gamma = estimator.published_gamma_ if estimator.kernel == "gaussian" else None
    blocks = estimator.public_blocks(X)
    audited = []
    for (name, block), columns, entity in zip(blocks.items(), estimator.columns_, estimator.entities_, strict=True):
        rng = seeded_stream(job.seed, "attack", job.experiment, dataset, job.method, name)
        audit = audit_entity(block, entity.standardized(X[:, columns]), estimator.kernel, gamma, rng)
        audited.append(Entity.of_audit(name, audit))
    n_rows, mbar = block.shape
    return KnownSampleAttack(
        method=job.method,
        dataset=dataset,
        kernel=estimator.kernel,
        gamma=gamma,
        mbar=mbar,
        n_rows=n_rows,
        entities=tuple(audited),
    )
