"""Condensed training rows of a benchmark: what its stage makes for all methods, and what attacks on it find."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from privsvm.base.validation import check_choice
from privsvm.errors import PrivSVMError
from privsvm.numerics.noise.streams import seeded_stream
from privsvm_bench.datasets.prepared import PreparedData, Split, arrays_of_rows, rows_of_arrays
from privsvm_bench.records import Condense, CondensedRowsAttack, CondensedSplit, CondenseTimings

__all__ = ["attack_split", "condense_splits", "rows_not_condensed", "training_rows"]


def attack_split(
    kind: str,
    X,
    codes: np.ndarray,
    condensed: tuple[Any, np.ndarray, np.ndarray],
    X_test,
    rng: np.random.Generator,
) -> CondensedSplit:
    """Attack the condensed rows of one split, whose test rows were not condensed.

    Parameters
    ----------
    kind : {"ci", "fcm"}
        How the rows were condensed.
    X : ndarray or CSR matrix (n, d)
        Rows that were condensed.
    codes : ndarray of int (n,)
        Their class codes.
    condensed : tuple of (ndarray or CSR matrix (M, d), ndarray of int (M,), ndarray of int (n,))
        What became of them: condensed rows, their class codes, and the condensed row of each row.
    X_test : ndarray or CSR matrix (m, d)
        Other rows of the same kind; may be none.
    rng : numpy.random.Generator
        Draws rows where there are many.

    Returns
    -------
    CondensedSplit
    """
    # Imported late, here and below: most jobs read rows that were not condensed.
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
    """Test rows (m, d) of a split that are not among its training rows; there may be none."""
    return split.X_test[~np.isin(split.test_index, split.train_index)]


def condense_splits(
    prepared: PreparedData, kind: Condense, experiment: str, seed: int
) -> tuple[dict[str, np.ndarray], CondensedRowsAttack, CondenseTimings]:
    """Condense the training rows of every split of a dataset, and attack the result.

    Parameters
    ----------
    prepared : PreparedData
        The dataset and its S splits.
    kind : {"none", "ci", "fcm"}
        How; for "none" the arrays hold this word alone, and the record has no splits.
    experiment : str
        Part of the key of the random streams.
    seed : int
        Of the benchmark.

    Returns
    -------
    arrays : dict of str to ndarray
        What `training_rows` reads.
    record : CondensedRowsAttack
        What attacks on the condensed rows found.
    timings : CondenseTimings
        Time to condense each split; empty for "none".

    Raises
    ------
    PrivSVMError
        If the condensed rows of a split are all of one class, so that no method can be trained on them.
    """
    dataset = prepared.description["dataset"]
    arrays: dict[str, np.ndarray] = {"condense": np.array(kind)}
    splits: list[CondensedSplit] = []
    seconds: list[float] = []
    if kind != "none":
        from privsvm.families.condensed.condensation import KINDS, condense_rows

        check_choice("condense", kind, ("none", *KINDS))
    for number in range(prepared.n_splits if kind != "none" else 0):
        rows = prepared.split(number)
        draws = seeded_stream(seed, "condense", experiment, dataset, kind, number)
        started = time.perf_counter()
        found = condense_rows(kind, rows.X_train, rows.y_train, len(prepared.classes), rng=draws)
        seconds.append(time.perf_counter() - started)
        if np.ptp(found.codes) == 0:
            raise PrivSVMError(
                f"condense: {kind!r} leaves only rows of class {prepared.classes[found.codes[0]]} in split {number} of "
                f"{dataset}; set condense to none, or take the dataset out"
            )
        arrays |= {f"y_{number}": found.codes, **arrays_of_rows(f"X_{number}", found.rows)}
        attacker = seeded_stream(seed, "attack", experiment, dataset, kind, number)
        condensed = found.rows, found.codes, found.group_of
        others = rows_not_condensed(rows)
        splits.append(attack_split(kind, rows.X_train, rows.y_train, condensed, others, attacker))
    record = CondensedRowsAttack(method=None, dataset=dataset, condense=kind, splits=tuple(splits))
    return arrays, record, CondenseTimings(dataset=dataset, condense=kind, condense_seconds=tuple(seconds))


def training_rows(prepared: PreparedData, condensed: Mapping[str, np.ndarray], split: int) -> tuple[Any, np.ndarray]:
    """Training rows of one split, after condensation.

    Parameters
    ----------
    prepared : PreparedData
        The dataset.
    condensed : mapping of str to ndarray
        From `condense_splits`.
    split : int
        Index of the split.

    Returns
    -------
    X : ndarray or CSR matrix (n, d)
    y : ndarray of int (n,)
    """
    if str(condensed["condense"]) == "none":
        rows = prepared.split(split)
        return rows.X_train, rows.y_train
    return rows_of_arrays(f"X_{split}", condensed), condensed[f"y_{split}"]
