"""Train one method on every split of one dataset."""

from __future__ import annotations

import dataclasses
import inspect
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from privsvm.base.released import ReleasedPath
from privsvm.base.validation import INFERRED_CLASSES
from privsvm.data.prepared import PreparedData
from privsvm.errors import PrivSVMError
from privsvm.numerics.noise_source import NoiseSource, seeded_source
from privsvm.numerics.streams import seeded_stream
from privsvm.pipeline.condensing import attack_split, rows_not_condensed, training_rows
from privsvm.pipeline.methods import estimator_class, is_foreign
from privsvm.privacy.guarantee import Guarantee
from privsvm.records import CondensedRowsAttack, CondensedSplit

__all__ = ["train_paths"]

_PUBLIC_SIZE = "n_rows is the size of the benchmark's training set: public, and the same for both neighbours"
_FIXED_SPLIT = "neighbouring data sets are training sets: how the rows were split is fixed and public"


def _broken_assumptions(prepared: PreparedData, condense: str) -> list[str]:
    """List what the data's preparation took from private rows, so that no method's proof covers it."""
    description = prepared.description
    broken = []
    origin = description["scaling"]["origin"]
    if origin not in ("none", "declared"):
        broken.append(f"the scaling ({description['scaling']['kind']}) was taken from {origin}, which are private")
    if description["classes_origin"] != "declared":
        broken.append(INFERRED_CLASSES)
    if description["prescaled"]:
        broken.append("the published file was scaled by statistics of its own rows")
    if description["missing"]["columns_dropped"]:
        broken.append("columns were dropped because of missing values in private rows")
    if description["n_features_origin"] != "declared":
        broken.append("the number of features was taken from the private rows")
    if condense != "none":
        change = "one row can change many condensed rows, and no noise is set for that"
        broken.append(f"the rows were condensed ({condense}): {change}")
    return broken


def _estimator(job: Mapping[str, Any], n_classes: int, n_rows: int, X_test: Any) -> Any:
    """Build the estimator of a method file, handing it those common parameters it knows; or another package's."""
    implementation, parameters, privacy = job["implementation"], job["parameters"], job["privacy"]
    if is_foreign(implementation):
        from privsvm.pipeline.foreign import ForeignMethod

        return ForeignMethod(implementation, parameters, privacy, n_classes, X_test)
    method_class = estimator_class(implementation)
    common = {
        "classes": list(range(n_classes)),
        "delta": privacy["delta"],
        "neighbours": privacy["neighbours"],
        # The size of a benchmark's training set is public: it follows from the dataset's and the protocol.
        "n_rows": n_rows,
    }
    known = inspect.signature(method_class).parameters
    return method_class(**{name: value for name, value in common.items() if name in known}, **parameters)


def _as_used(
    guarantees: tuple[Guarantee, ...], estimator: Any, broken: list[str], whole: bool
) -> tuple[Guarantee, ...]:
    """Add to the guarantees of a method what holds in this benchmark, and what does not."""
    if not whole:
        # What a method says of its training rows, also what is wrong with it, is not said of condensed ones.
        return tuple(
            guarantee
            if guarantee.status == "none"
            else dataclasses.replace(guarantee, status="claimed", epsilon_proved=math.inf, reason="; ".join(broken))
            for guarantee in guarantees
        )
    guarantees = tuple(guarantee.with_assumption(_FIXED_SPLIT) for guarantee in guarantees)
    if hasattr(estimator, "n_rows"):
        guarantees = tuple(guarantee.with_assumption(_PUBLIC_SIZE) for guarantee in guarantees)
    for reason in broken:
        guarantees = tuple(guarantee.with_broken_assumption(reason) for guarantee in guarantees)
    return guarantees


def train_paths(
    prepared: PreparedData,
    condensed: Mapping[str, np.ndarray],
    method: str,
    job: Mapping[str, Any],
) -> tuple[list[ReleasedPath], list[CondensedRowsAttack]]:
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
        ``experiment, seed, implementation, parameters, privacy`` (epsilons, delta, neighbours, repeats)
        and ``condense``.

    Returns
    -------
    paths : list of ReleasedPath (S)
    attacks : list of CondensedRowsAttack
        On the rows of a method that condenses them; else none.

    Raises
    ------
    PrivSVMError
        One line, for parameters the method refuses.
    """
    privacy = job["privacy"]
    dataset = prepared.description["dataset"]
    whole = str(condensed["condense"]) == "none"
    broken = _broken_assumptions(prepared, str(condensed["condense"]))
    n_classes = len(prepared.description["classes"])
    paths: list[ReleasedPath] = []
    attacked: list[CondensedSplit] = []
    kind = None
    for split in range(prepared.n_splits):
        X, y = training_rows(prepared, condensed, split)

        def stream(epsilon: float, repeat: int, split: int = split) -> NoiseSource:
            return seeded_source(job["seed"], job["experiment"], dataset, method, split, float(epsilon), repeat)

        try:
            estimator = _estimator(job, n_classes, X.shape[0], prepared.split(split).X_test)
            # One audit per dataset is enough, and it costs a few more solves. Condensed rows are nobody's: datasets
            # that differ in one of them are no neighbours.
            audit = whole and split == 0
            path = estimator.release_path(X, y, privacy["epsilons"], privacy["repeats"], stream, audit=audit)
        except ValueError as error:
            raise PrivSVMError(f"methods.{method} on {dataset}: {error}") from None
        paths.append(dataclasses.replace(path, guarantees=_as_used(path.guarantees, estimator, broken, whole)))
        kind = getattr(estimator, "condense", None)
        if kind is not None:
            attacker = seeded_stream(job["seed"], "attack", job["experiment"], dataset, method, split)
            others = rows_not_condensed(prepared.split(split))
            # There are no other rows like those that were condensed before.
            others = others if whole else others[:0]
            published = estimator.condensed_rows_, estimator.condensed_codes_, estimator.group_of_
            attacked.append(attack_split(kind, X, y, published, others, attacker))
    if kind is None:
        return paths, []
    return paths, [CondensedRowsAttack(method=method, dataset=dataset, condense=kind, splits=tuple(attacked))]
