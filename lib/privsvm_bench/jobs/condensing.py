"""Condense the training rows of a benchmark for all methods, and attack the condensed rows."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from privsvm.constraints import one_of
from privsvm.errors import PrivSVMError
from privsvm.numerics.noise.streams import seeded_stream
from privsvm_bench.datasets.prepared import PreparedData, Split, arrays_of_rows, rows_of_arrays
from privsvm_bench.records import Condense, CondensedRowsAttack, CondensedSplit, CondenseTimings


def attack_split(
    kind: str,
    X,
    codes: np.ndarray,
    condensed: tuple[Any, np.ndarray, np.ndarray],
    X_test,
    rng: np.random.Generator,
) -> CondensedSplit:
    """Attack the condensed rows of one split; `kind` is "ci" or "fcm".

    `X` (n, d) are the original rows, `codes` (n,) their class codes. `condensed` holds the condensed rows (M, d), their
    class codes (M,), and for each original row the index of its condensed row (n,). `X_test` (m, d) are rows that were
    not condensed; there may be none. `rng` samples rows if there are many.
    """
    # Lazy imports here and below: most jobs read rows that were not condensed.
    from privsvm.privacy.attacks.condensation_attacks import audit_condensation

    rows, condensed_codes, group_of = condensed
    n, n_condensed = X.shape[0], rows.shape[0]
    return CondensedSplit(
        n_rows=n,
        n_condensed=n_condensed,
        size_ratio=n_condensed / n,
        label_purity=float(np.mean(codes == condensed_codes[group_of])),
        lost_classes=int(np.setdiff1d(codes, condensed_codes).size),
        **audit_condensation(X, rows, group_of, X_test, rng, means=kind == "ci"),
    )


def rows_not_condensed(split: Split) -> Any:
    """Select the test rows (m, d) of a split that are not training rows; may be empty."""
    return split.X_test[~np.isin(split.test_index, split.train_index)]


def condense_splits(
    prepared: PreparedData, kind: Condense, experiment: str, seed: int
) -> tuple[dict[str, np.ndarray], CondensedRowsAttack, CondenseTimings]:
    """Condense the training rows of every split, and attack the result.

    Returns the input of `training_rows`, the results of the attacks, and seconds for each split. For the kind "none"
    the arrays hold this word alone, and record and timings have no splits. `experiment` and `seed` are parts of the key
    of the random streams. Raises PrivSVMError if the condensed rows of a split are all of one class.
    """
    dataset = prepared.description["dataset"]
    arrays: dict[str, np.ndarray] = {"condense": np.array(kind)}
    splits: list[CondensedSplit] = []
    seconds: list[float] = []
    if kind != "none":
        from privsvm.families.condensed.condensation import KINDS, condense_rows

        one_of("none", *KINDS).check("condense", kind)
    for number in range(prepared.n_splits if kind != "none" else 0):
        rows = prepared.split(number)
        draws = seeded_stream(seed, "condense", experiment, dataset, kind, number)
        started = time.perf_counter()
        groups = condense_rows(kind, rows.X_train, rows.y_train, len(prepared.classes), rng=draws)
        seconds.append(time.perf_counter() - started)
        if np.ptp(groups.codes) == 0:
            label = prepared.classes[groups.codes[0]]
            raise PrivSVMError(
                f"condense: {kind!r} leaves only rows of class {label} in split {number} of {dataset}; set condense to "
                "none, or take the dataset out"
            )
        arrays |= {f"y_{number}": groups.codes, **arrays_of_rows(f"X_{number}", groups.rows)}
        attacker = seeded_stream(seed, "attack", experiment, dataset, kind, number)
        condensed = groups.rows, groups.codes, groups.group_of
        others = rows_not_condensed(rows)
        splits.append(attack_split(kind, rows.X_train, rows.y_train, condensed, others, attacker))
    record = CondensedRowsAttack(method=None, dataset=dataset, condense=kind, splits=tuple(splits))
    return arrays, record, CondenseTimings(dataset=dataset, condense=kind, condense_seconds=tuple(seconds))


def training_rows(prepared: PreparedData, condensed: Mapping[str, np.ndarray], split: int) -> tuple[Any, np.ndarray]:
    """Return the training rows (n, d) of one split and their class codes (n,), after condensation."""
    if str(condensed["condense"]) == "none":
        rows = prepared.split(split)
        return rows.X_train, rows.y_train
    return rows_of_arrays(f"X_{split}", condensed), condensed[f"y_{split}"]
