"""Train one method on every split of one dataset."""

from __future__ import annotations

import dataclasses
import inspect
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from privsvm.base.released import ReleasedPath
from privsvm.errors import PrivSVMError
from privsvm.numerics.noise.noise_source import NoiseSource, seeded_source
from privsvm.numerics.noise.streams import seeded_stream
from privsvm.privacy.assumptions import DROPPED, FACTS, Facts, failings
from privsvm.privacy.gate import restated
from privsvm.privacy.guarantee import Guarantee
from privsvm.registry import estimator_class, is_foreign
from privsvm_bench.datasets.prepared import PreparedData
from privsvm_bench.jobs.condensing import attack_split, rows_not_condensed, training_rows
from privsvm_bench.records import Attack, CondensedRowsAttack, CondensedSplit, Entity, KnownSampleAttack

__all__ = ["WITHOUT_PRIVACY", "data_facts", "train_paths", "training_sizes"]

# What a method that states no epsilon is handed: it releases one model.
WITHOUT_PRIVACY: Mapping[str, Any] = {"epsilons": (math.inf,), "delta": None, "neighbours": None, "repeats": 1}


def _preparation(description: Mapping[str, Any]) -> str:
    """Say what the file went through: of one's own file, nothing is known that is not declared."""
    if description["prescaled"] is None:
        return "undeclared"
    if description["prescaled"]:
        return "prescaled"
    # The rule counts, whether or not it met a missing value: whether it did is told by the rows.
    if dropped := DROPPED.get(description["missing"]["rule"]):
        return dropped
    return "declared" if description["prescaled_origin"] == "declared" else "untouched"


def data_facts(description: Mapping[str, Any], condense: str, split: int) -> dict[str, Any]:
    """State where the training rows of a prepared dataset come from, for `privsvm.privacy.gate`.

    Parameters
    ----------
    description : mapping
        Of the prepared data.
    condense : {"none", "ci", "fcm"}
        How the rows are condensed.
    split : int
        Which split.

    Returns
    -------
    dict
        Fields of `privsvm.privacy.assumptions.Facts`.
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
    # What the method is told is declared: the class codes. It cannot know where they come from.
    return facts if description["classes_origin"] == "declared" else {**facts, "classes": "private labels"}


def training_sizes(prepared: PreparedData, job: Mapping[str, Any]) -> int | None:
    """Return the training rows of the largest split for the record of its models.

    Under ``add_remove`` their number is private: it is what was declared, or None.
    """
    if job.get("privacy", WITHOUT_PRIVACY)["neighbours"] == "add_remove":
        return max(prepared.description["declared_training_rows"] or (), default=None)
    return max(prepared.split(split).y_train.size for split in range(prepared.n_splits))


def _estimator(job: Mapping[str, Any], n_classes: int, n_rows: int | None, X_test: Any) -> Any:
    """Build the estimator of a method file, handing it those common parameters it knows; or another package's."""
    implementation, parameters, privacy = job["implementation"], job["parameters"], job.get("privacy", WITHOUT_PRIVACY)
    if is_foreign(implementation):
        from privsvm_bench.jobs.external_methods import ForeignMethod

        return ForeignMethod(implementation, parameters, privacy, n_classes, X_test)
    method_class = estimator_class(implementation)
    common = {
        "classes": list(range(n_classes)),
        "delta": privacy["delta"],
        "neighbours": privacy["neighbours"],
        "n_rows": n_rows,
    }
    known = inspect.signature(method_class).parameters
    return method_class(**{name: value for name, value in common.items() if name in known}, **parameters)


def _as_used(guarantee: Guarantee, facts: Mapping[str, Any]) -> Guarantee:
    """Pass what a method says of its training rows through the gate, with what is known of them here."""
    if facts["condensing"] == "none" or guarantee.status == "none":
        return restated(guarantee, **facts)
    # What a method says of its training rows, also what is wrong with it, is not said of condensed ones.
    stated = Facts(**facts)
    reasons = failings(stated, guarantee.neighbours, tuple(name for name in FACTS if name in facts))
    return dataclasses.replace(guarantee, status="claimed", epsilon_proved=math.inf, reason="; ".join(reasons))


def train_paths(
    prepared: PreparedData,
    condensed: Mapping[str, np.ndarray],
    method: str,
    job: Mapping[str, Any],
) -> tuple[list[ReleasedPath], list[Attack]]:
    """Train one method on every split.

    Parameters
    ----------
    prepared : PreparedData
        The dataset and its S splits.
    condensed : mapping of str to ndarray
        The condense stage's file, see `training_rows`.
    method : str
        Name of the method's entry; part of the key of its noise streams.
    job : mapping
        ``experiment, seed, implementation, parameters, condense``, and ``privacy`` (epsilons, delta, neighbours,
        repeats) of a method that states an epsilon.

    Returns
    -------
    paths : list of ReleasedPath (S)
    attacks : list of Attack
        On the rows of a method that condenses them, or on the blocks that entities publish; else none.

    Raises
    ------
    PrivSVMError
        One line, for parameters the method refuses.
    """
    privacy = job.get("privacy", WITHOUT_PRIVACY)
    dataset = prepared.description["dataset"]
    whole = str(condensed["condense"]) == "none"
    n_classes = len(prepared.description["classes"])
    paths: list[ReleasedPath] = []
    attacks: list[Attack] = []
    attacked: list[CondensedSplit] = []
    kind = None
    for split in range(prepared.n_splits):
        X, y = training_rows(prepared, condensed, split)

        def stream(epsilon: float, repeat: int, split: int = split) -> NoiseSource:
            return seeded_source(job["seed"], job["experiment"], dataset, method, split, float(epsilon), repeat)

        facts = data_facts(prepared.description, str(condensed["condense"]), split)
        n_rows = facts["declared_rows"]
        counts = not is_foreign(job["implementation"]) and getattr(
            estimator_class(job["implementation"]), "pays_for_counts", False
        )
        if n_rows is None and privacy["neighbours"] == "add_remove" and not counts:
            # Methods that ask for a public number get the private one, and the gate is told.
            n_rows, facts["n_rows"] = X.shape[0], "counted"
        try:
            estimator = _estimator(job, n_classes, n_rows, prepared.split(split).X_test)
            # One audit per dataset is enough, and it costs a few more solves. Condensed rows are nobody's: datasets
            # that differ in one of them are no neighbours.
            audit = whole and split == 0
            path = estimator.release_path(X, y, privacy["epsilons"], privacy["repeats"], stream, audit=audit)
        except ValueError as error:
            raise PrivSVMError(f"methods.{method} on {dataset}: {error}") from None
        if not hasattr(estimator, "n_rows"):
            facts.pop("n_rows", None)
        paths.append(dataclasses.replace(path, guarantees=tuple(_as_used(own, facts) for own in path.guarantees)))
        if split == 0 and hasattr(estimator, "public_blocks"):
            attacks.append(_attack_blocks(estimator, X, method, dataset, job))
        kind = getattr(estimator, "condense", None)
        if kind is not None:
            attacker = seeded_stream(job["seed"], "attack", job["experiment"], dataset, method, split)
            others = rows_not_condensed(prepared.split(split))
            # There are no other rows like those that were condensed before.
            others = others if whole else others[:0]
            published = estimator.condensed_rows_, estimator.condensed_codes_, estimator.group_of_
            attacked.append(attack_split(kind, X, y, published, others, attacker))
    if kind is not None:
        attacks.append(CondensedRowsAttack(method=method, dataset=dataset, condense=kind, splits=tuple(attacked)))
    return paths, attacks


def _attack_blocks(estimator: Any, X: Any, method: str, dataset: str, job: Mapping[str, Any]) -> KnownSampleAttack:
    """Attack the block that each entity of a trained `PPSVMClassifier` published of its training rows."""
    from privsvm.privacy.attacks.known_sample import audit_entity

    gamma = estimator.published_gamma_ if estimator.kernel == "gaussian" else None
    blocks = estimator.public_blocks(X)
    audited = []
    for (name, block), columns, entity in zip(blocks.items(), estimator.columns_, estimator.entities_, strict=True):
        rng = seeded_stream(job["seed"], "attack", job["experiment"], dataset, method, name)
        found = audit_entity(block, entity.standardized(X[:, columns]), estimator.kernel, gamma, rng)
        audited.append(Entity.of_audit(name, found))
    n_rows, mbar = block.shape
    return KnownSampleAttack(
        method=method,
        dataset=dataset,
        kernel=estimator.kernel,
        gamma=gamma,
        mbar=mbar,
        n_rows=n_rows,
        entities=tuple(audited),
    )
