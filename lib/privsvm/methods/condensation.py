"""Condensed training rows: before one method (CI-SVM, FCM-SVM), or before all of a benchmark's methods.

A condensed row stands for about three training rows. Nothing is proved for it: the mean of three rows tells the third
to whoever knows two of them, see `privsvm.privacy.condensation_attacks`.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse

from privsvm.data.prepare import PreparedData, arrays_of_rows, rows_of_arrays
from privsvm.errors import PrivSVMError
from privsvm.methods.validation import check_choice, check_count, check_positive, is_number
from privsvm.privacy.condensation_attacks import audit_condensation
from privsvm.solvers.condense import ENGINES, condensed_rows, feature_weights, greedy_triples, weighted_unit_rows
from privsvm.solvers.fuzzy_means import fuzzy_means
from privsvm.solvers.kernels import squared_distances
from privsvm.streams import seeded_stream

__all__ = [
    "KINDS",
    "SCALES",
    "Condensed",
    "attack_record",
    "attack_split",
    "condense_rows",
    "condense_splits",
    "training_rows",
]

# Condensed information (CI-SVM), and fuzzy c-means (FCM-SVM).
KINDS = ("ci", "fcm")
SCALES = ("min_max", "none")

_GROUP = 3
# Numbers in a block of distances.
_BLOCK_NUMBERS = 4_000_000


@dataclasses.dataclass(frozen=True)
class Condensed:
    """Rows that stand for the training rows.

    Attributes
    ----------
    rows : ndarray or CSR matrix (M, d)
        Condensed rows; "fcm" always gives dense ones.
    codes : ndarray of int (M,)
        Their class codes.
    group_of : ndarray of int (n,)
        The condensed row of each training row.
    size_ratio : float
        ``M / n``.
    label_purity : float
        Share of the training rows whose class is that of their condensed row.
    groups : ndarray of int (M, 3) or None
        "ci": the training rows of each condensed row, as they were chosen; -1 in place of those the last one lacks.
    weights : ndarray (d,) or None
        "ci": weights of the features.
    n_iter : int
        "fcm": iterations of the clustering.
    """

    rows: Any
    codes: np.ndarray
    group_of: np.ndarray
    size_ratio: float
    label_purity: float
    groups: np.ndarray | None = None
    weights: np.ndarray | None = None
    n_iter: int = 0


def condense_rows(
    kind: str,
    X,
    codes: np.ndarray,
    n_classes: int,
    *,
    rng: np.random.Generator | None = None,
    n_threads: int = 1,
    scale: str = "min_max",
    engine: str = "auto",
    q: float = 2.0,
    n_centres: float | int | None = None,
    tol: float = 1e-5,
    max_iter: int = 100,
) -> Condensed:
    """Replace training rows by about a third as many.

    "ci" groups the rows by three (CI-SVM): a condensed row is the mean of its group, with the majority's class; of
    three different classes, that of the member nearest to the mean. "fcm" takes the centres of fuzzy c-means: a centre
    has the class of most of the rows that belong to it most; among equally frequent classes, that of the nearest of
    these rows; and where no row belongs to it most, that of the nearest row there is. Of equals the smallest row number
    decides.

    Parameters
    ----------
    kind : {"ci", "fcm"}
        How.
    X : ndarray or CSR matrix (n, d)
        Rows, finite.
    codes : ndarray of int (n,)
        Class codes 0..c-1.
    n_classes : int
        c.
    rng : numpy.random.Generator, optional
        "fcm" needs it: draws the first centres.
    n_threads : int, default=1
        "ci": threads. The result does not depend on it.
    scale : {"min_max", "none"}, default="min_max"
        "ci": similarities are those of features scaled to [0, 1], or of the rows as they are. Coefficients of variation
        mean nothing for features around 0. Sparse rows, whose zeros must stay, are divided by each feature's largest
        absolute value instead. Condensed rows are means of the rows as they are.
    engine : {"auto", "tree", "blocks"}, default="auto"
        "ci": see `privsvm.solvers.condense.greedy_triples`.
    q, tol, max_iter
        "fcm": see `privsvm.solvers.fuzzy_means.fuzzy_means`.
    n_centres : float or int, optional
        "fcm": centres, as a share of the rows (rounded up) or a number; a third of the rows by default.

    Returns
    -------
    Condensed

    Raises
    ------
    ValueError
        For a parameter out of range, or no rows.
    """
    check_choice("kind", kind, KINDS)
    if X.shape[0] == 0:
        raise ValueError("X has 0 rows: nothing to condense; give at least one")
    if kind == "ci":
        return _by_similarity(X, codes, scale, engine, n_threads)
    if rng is None:
        raise ValueError("rng=None: fuzzy c-means draws its first centres; give a numpy Generator")
    return _by_fuzzy_means(X, codes, n_classes, rng, q, n_centres, tol, max_iter)


def _by_similarity(X, codes: np.ndarray, scale: str, engine: str, n_threads: int) -> Condensed:
    check_choice("scale", scale, SCALES)
    check_choice("engine", engine, ("auto", *ENGINES))
    scaled = _scaled(X) if scale == "min_max" else X
    weights = feature_weights(scaled)
    groups = greedy_triples(weighted_unit_rows(scaled, weights), engine, n_threads)
    rows, condensed_codes = condensed_rows(X, codes, groups)
    group_of = np.empty(codes.size, dtype=np.int64)
    held = groups >= 0
    group_of[groups[held]] = np.repeat(np.arange(len(groups)), held.sum(axis=1))
    return Condensed(
        rows,
        condensed_codes,
        group_of,
        len(groups) / codes.size,
        float(np.mean(codes == condensed_codes[group_of])),
        groups,
        weights,
    )


def _scaled(X) -> Any:
    """Features in [0, 1]; those of sparse rows in [-1, 1], with their zeros. Constant dense ones become 0."""
    if scipy.sparse.issparse(X):
        largest = abs(X).max(axis=0).toarray().ravel()
        scaled = scipy.sparse.csr_array(X, copy=True)
        scaled.data /= largest[scaled.indices] + (largest[scaled.indices] == 0.0)
        return scaled
    # Halves: a range may be larger than the largest number.
    low, high = 0.5 * X.min(axis=0), 0.5 * X.max(axis=0)
    return (0.5 * X - low) / np.where(high > low, high - low, 1.0)


def _by_fuzzy_means(
    X,
    codes: np.ndarray,
    n_classes: int,
    rng: np.random.Generator,
    q: float,
    n_centres: float | int | None,
    tol: float,
    max_iter: int,
) -> Condensed:
    if check_positive("q", q) <= 1.0:
        raise ValueError(f"q={q!r}: must be above 1")
    check_positive("tol", tol)
    check_count("max_iter", max_iter)
    count = _count_centres(n_centres, codes.size)
    found = fuzzy_means(X, count, rng, q=q, tol=tol, max_iter=max_iter)
    labels = _labels_of_centres(X, codes, n_classes, found.centres, found.nearest)
    purity = float(np.mean(codes == labels[found.nearest]))
    return Condensed(found.centres, labels, found.nearest, count / codes.size, purity, n_iter=found.n_iter)


def _count_centres(n_centres: float | int | None, n: int) -> int:
    if n_centres is None:
        return -(-n // _GROUP)
    if isinstance(n_centres, float) and 0.0 < n_centres <= 1.0:
        return math.ceil(n_centres * n)
    if isinstance(n_centres, float) or not is_number(n_centres) or not 1 <= n_centres <= n:
        raise ValueError(
            f"n_centres={n_centres!r}: must be a share in (0, 1], a whole number from 1 to the {n} rows, or None"
        )
    return int(n_centres)


def _labels_of_centres(X, codes: np.ndarray, n_classes: int, centres: np.ndarray, nearest: np.ndarray) -> np.ndarray:
    """Class codes of fuzzy centres (M,)."""
    votes = np.bincount(nearest * n_classes + codes, minlength=len(centres) * n_classes).reshape(-1, n_classes)
    first = votes == votes.max(axis=1, keepdims=True)
    labels = np.argmax(votes, axis=1)
    # Equal votes: rows of one of these classes only. No votes: all rows.
    undecided = np.flatnonzero(first.sum(axis=1) > 1)
    step = max(1, _BLOCK_NUMBERS // codes.size)
    for start in range(0, undecided.size, step):
        some = undecided[start : start + step]
        distances = squared_distances(centres[some], X)
        eligible = (nearest[None] == some[:, None]) & first[some][:, codes]
        eligible |= votes[some].sum(axis=1, keepdims=True) == 0
        labels[some] = codes[np.argmin(np.where(eligible, distances, np.inf), axis=1)]
    return labels


def attack_record(kind: str, method: str | None, dataset: str, splits: list[dict[str, Any]]) -> dict[str, Any]:
    """Put together what attacks on condensed rows found, as the report reads it.

    Parameters
    ----------
    kind : {"ci", "fcm"}
        How the rows were condensed.
    method : str or None
        Name of the method's entry that did it; None for the workflow's stage, which does it for all methods.
    dataset : str
        Name of the dataset.
    splits : list of dict (S)
        See `attack_split`.

    Returns
    -------
    dict
        For JSON, see docs/files.md.
    """
    return {"method": method, "dataset": dataset, "attack": "condensed_rows", "condense": kind, "splits": splits}


def attack_split(
    X, condensed_rows, group_of: np.ndarray, label_purity: float, X_test, rng: np.random.Generator
) -> dict[str, Any]:
    """Attack the condensed rows of one split, whose test rows were not condensed.

    Parameters
    ----------
    X : ndarray or CSR matrix (n, d)
        Rows that were condensed.
    condensed_rows : ndarray or CSR matrix (M, d)
        What became of them.
    group_of : ndarray of int (n,)
        The condensed row of each of them.
    label_purity : float
        Share of the rows whose class is that of their condensed row.
    X_test : ndarray or CSR matrix (m, d)
        Other rows.
    rng : numpy.random.Generator
        Draws rows where there are many.

    Returns
    -------
    dict
        ``n_rows, n_condensed, size_ratio, label_purity``, and what `audit_condensation` returns.
    """
    n, n_condensed = X.shape[0], condensed_rows.shape[0]
    return {
        "n_rows": n,
        "n_condensed": n_condensed,
        "size_ratio": n_condensed / n,
        "label_purity": label_purity,
        **audit_condensation(X, condensed_rows, group_of, X_test, rng),
    }


def condense_splits(
    prepared: PreparedData, kind: str, experiment: str, seed: int
) -> tuple[dict[str, np.ndarray], dict[str, Any], list[float]]:
    """Condense the training rows of every split of a dataset, and attack what comes of it.

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
    record : dict
        See `attack_record`.
    seconds : list of float
        Time to condense each split; empty for "none".

    Raises
    ------
    PrivSVMError
        If the condensed rows of a split are all of one class, so that no method can be trained on them.
    """
    check_choice("condense", kind, ("none", *KINDS))
    dataset = prepared.description["dataset"]
    arrays, splits, seconds = {"condense": np.array(kind)}, [], []
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
        splits.append(attack_split(rows.X_train, found.rows, found.group_of, found.label_purity, rows.X_test, attacker))
    return arrays, attack_record(kind, None, dataset, splits), seconds


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
