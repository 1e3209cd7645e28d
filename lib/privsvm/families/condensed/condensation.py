"""Condensed training rows: means of triples (CI-SVM), or centres (FCM-SVM).

A condensed row represents about three training rows. Nothing is proved for it: an attacker who knows two of three rows
and their mean can compute the third, see `privsvm.privacy.attacks.condensation_attacks`.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import scipy.sparse

from privsvm.constraints import whole
from privsvm.numerics.rows.rows import squared_distances
from privsvm.solvers.condensing.condense import (
    condensed_rows,
    feature_weights,
    greedy_triples,
    weighted_unit_rows,
)
from privsvm.solvers.condensing.fuzzy_means import fuzzy_means

# Condensed information (CI-SVM), and fuzzy c-means (FCM-SVM).
KINDS = ("ci", "fcm")
SCALES = ("min_max", "none")

_GROUP = 3
# Numbers in a block of distances.
_BLOCK_NUMBERS = 4_000_000


@dataclasses.dataclass(frozen=True)
class Condensed:
    """M condensed rows (M, d) with class codes; they represent the n training rows. "fcm" always gives dense rows.

    `group_of` has the condensed row of each training row, and `size_ratio` is ``M / n``. `label_purity` is the share of
    the training rows that have the class of their condensed row. For "ci", `groups` (M, 3) are the training rows of
    each condensed row, in the order of their choice, with -1 for members that the last one lacks; `weights` (d,) are of
    the features. For "fcm", `n_iter` counts iterations of the clustering.
    """

    rows: Any
    codes: np.ndarray
    group_of: np.ndarray
    size_ratio: float
    label_purity: float
    groups: np.ndarray | None = None
    weights: np.ndarray | None = None
    n_iter: int = 0


@dataclasses.dataclass(frozen=True)
class ClusterOptions:
    """Options of fuzzy c-means; see `privsvm.solvers.condensing.fuzzy_means.fuzzy_means` for `q`, `tol` and `max_iter`.

    `n_centres` is a share of the rows (rounded up) or a number; a third of the rows by default.
    """

    q: float = 2.0
    n_centres: float | int | None = None
    tol: float = 1e-5
    max_iter: int = 100


def condense_rows(kind: str, X: Any, codes: np.ndarray, n_classes: int, *, rng: Any = None) -> Condensed:
    """Replace training rows by about a third as many, with the default options of a kind; "fcm" draws from `rng`."""
    return condense_by_triples(X, codes) if kind == "ci" else condense_by_centres(X, codes, n_classes, rng)


def condense_by_triples(X: Any, codes: np.ndarray, scale: str = "min_max", n_threads: int = 1) -> Condensed:
    """Group the rows by three (CI-SVM), by features scaled to [0, 1], or by the rows themselves (`scale` "none").

    A condensed row is the mean of its unscaled group, with the majority's class; of three different classes, the class
    of the member nearest to the mean. Among equals the smallest row number decides. Coefficients of variation mean
    nothing for features around 0. Sparse rows, whose zeros must stay, are divided by each feature's largest absolute
    value instead. The result does not depend on `n_threads`.
    """
    scaled = _scale_features(X) if scale == "min_max" else X
    weights = feature_weights(scaled)
    groups = greedy_triples(weighted_unit_rows(scaled, weights), n_threads)
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


def _scale_features(X: Any) -> Any:
    """Scale features to [0, 1], or of sparse rows to [-1, 1]; constant dense features become 0."""
    if scipy.sparse.issparse(X):
        largest = abs(X).max(axis=0).toarray().ravel()
        scaled = scipy.sparse.csr_array(X, copy=True)
        scaled.data /= largest[scaled.indices] + (largest[scaled.indices] == 0.0)
        return scaled
    # Overflow: halves, since a range may exceed the largest number.
    low, high = 0.5 * X.min(axis=0), 0.5 * X.max(axis=0)
    return (0.5 * X - low) / np.where(high > low, high - low, 1.0)


def condense_by_centres(
    X: Any, codes: np.ndarray, n_classes: int, rng: np.random.Generator, options: ClusterOptions = ClusterOptions()
) -> Condensed:
    """Take the centres of fuzzy c-means.

    A centre has the class of most of the rows that belong to it most; among equally frequent classes, the nearest of
    these rows decides; and where no row belongs to it most, the nearest row of all. Among equals the smallest row
    number decides.
    """
    count = _count_centres(options.n_centres, codes.size)
    means = fuzzy_means(X, count, rng, q=options.q, tol=options.tol, max_iter=options.max_iter)
    labels = _labels_of_centres(X, codes, n_classes, means.centres, means.nearest)
    purity = float(np.mean(codes == labels[means.nearest]))
    return Condensed(means.centres, labels, means.nearest, count / codes.size, purity, n_iter=means.n_iter)


def _count_centres(n_centres: float | int | None, n: int) -> int:
    if n_centres is None:
        return -(-n // _GROUP)
    if isinstance(n_centres, float) and 0.0 < n_centres <= 1.0:
        return math.ceil(n_centres * n)
    if isinstance(n_centres, float) or not whole(1, n).accepts(n_centres):
        raise ValueError(
            f"n_centres={n_centres!r}: must be a share in (0, 1], a whole number from 1 to the {n} rows, or None"
        )
    return int(n_centres)


def _labels_of_centres(
    X: Any, codes: np.ndarray, n_classes: int, centres: np.ndarray, nearest: np.ndarray
) -> np.ndarray:
    """Return the class codes of fuzzy centres (M,)."""
    votes = np.bincount(nearest * n_classes + codes, minlength=len(centres) * n_classes).reshape(-1, n_classes)
    first = votes == votes.max(axis=1, keepdims=True)
    labels: np.ndarray = np.argmax(votes, axis=1)
    # Ties are decided among rows of the tied classes; no votes, among all rows.
    undecided = np.flatnonzero(first.sum(axis=1) > 1)
    step = max(1, _BLOCK_NUMBERS // codes.size)
    for start in range(0, undecided.size, step):
        block = undecided[start : start + step]
        distances = squared_distances(centres[block], X)
        eligible = (nearest[None] == block[:, None]) & first[block][:, codes]
        eligible |= votes[block].sum(axis=1, keepdims=True) == 0
        labels[block] = codes[np.argmin(np.where(eligible, distances, np.inf), axis=1)]
    return labels
