"""Condensed information: the greedy triples of CI-SVM, exactly and without the matrix of similarities.

The paper's procedure takes, again and again, the most similar pair of the rows that are left, then the row that is most
similar to both. Followed literally, that is a search through a matrix of n^2 numbers for each of n / 3 triples. Here
every row keeps a short list of the rows most similar to it, and, where scans are long, the numbers of more rows that
are near to it; see `privsvm.solvers.condensing.triples` for how they are used.

Two engines make the lists: a k-d tree for few features, and blocks of matrix products for many features or sparse
rows. Both give the same triples, those of the printed steps; see `privsvm.solvers.condensing.kd_tree` and
`privsvm.solvers.condensing.similar_rows`.

Equal rows are searched for, and kept in the heap, as one. The one with the smallest number always leaves first.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse

from privsvm.errors import nearest_name
from privsvm.numerics.compiled.jit import jit
from privsvm.numerics.compiled.threads import one_blas_thread, thread_pool
from privsvm.numerics.rows.rows import squared_norms
from privsvm.solvers.condensing.kd_tree import plant, rows_met, tree_lists
from privsvm.solvers.condensing.similar_rows import (
    SCALE,
    Candidates,
    Copies,
    Near,
    SparseRows,
    block_lists,
    candidate_lists,
    meet,
)
from privsvm.solvers.condensing.triples import Lists, form_triples

__all__ = [
    "ENGINES",
    "condensed_rows",
    "feature_weights",
    "greedy_triples",
    "warm_up",
    "weighted_unit_rows",
]

ENGINES = ("tree", "blocks")

# Rows in a list.
_LIST = 12
# Rows that the blocks keep as near to a row, so that most third rows are certain without a scan: one for so many
# numbers that a scan reads, but none where these are few; at most so many, and so many of all rows together.
_NEAR_READ, _NEAR, _NEAR_NUMBERS = 3000.0, 160, 16_000_000
# "auto" takes the tree up to so many features, where the searches for a sample of rows promise that it is faster.
_TREE_FEATURES = 64
_SAMPLE = 32
# Nanoseconds on one thread: of each row or box that the tree meets, and more for each feature; of each pair of rows in
# the blocks, and what these take for each row besides, more than the tree does. Fitted to 60 random shapes.
_MET, _MET_FEATURE = 3.3, 0.16
_PAIR, _ROW = 2.5, 2500.0
# All lists are made anew when that takes less than the scans since they were made, as fitted to the least total:
# nanoseconds of a pair of rows and of a row; of each row that a scan looks at, and more for each of its numbers.
_LISTED_PAIR, _LISTED_ROW = 0.25, 10_000.0
_SCANNED, _SCANNED_NUMBER = 3.0, 0.3
# Products are made from dense rows above this share of numbers that are not 0, or where all rows have no more numbers;
# a block of products has about so many. In single precision, unless more than a share of all similarities must then
# be computed exactly. Above another share rows hold their zeros, too.
_DENSE_SHARE = 0.02
_DENSE_NUMBERS = 50_000_000
_BLOCK_NUMBERS = 4_000_000
# Rows and columns of a tile of products, and candidates that a row has room for, over those that it wants.
_TILE, _ROOM = 512, 2
# Rows that tell what will do, at most, and standard deviations by which such a guess is lower than expected.
_SAMPLED, _SURE = 1024, 1.5
_COMPUTED_SHARE, _FULL_SHARE = 0.1, 0.25


# --- equal rows -----------------------------------------------------------------------------------------------------


@jit()
def _hash_rows(indptr, indices, bits, hashes):
    """Hash the entries of every row."""
    for i in range(hashes.shape[0]):
        value = np.uint64(14695981039346656037)
        for position in range(indptr[i], indptr[i + 1]):
            for part in (np.uint64(indices[position]), bits[position]):
                value = (value ^ part) * np.uint64(1099511628211)
                value ^= value >> np.uint64(29)
        hashes[i] = value


@jit()
def _tell_apart(indptr, indices, bits, first):
    """Make rows their own first copy if they differ from the one they were given."""
    for i in range(first.shape[0]):
        length = indptr[i + 1] - indptr[i]
        same = length == indptr[first[i] + 1] - indptr[first[i]]
        for k in range(length if same else 0):
            at, other = indptr[i] + k, indptr[first[i]] + k
            same &= indices[at] == indices[other] and bits[at] == bits[other]
        if not same:
            first[i] = i


def _find_copies(unit_rows) -> tuple[np.ndarray, np.ndarray, Copies]:
    """Find equal rows.

    Returns
    -------
    first : ndarray of int (m,)
        Smallest row number of each distinct row, ascending.
    distinct_of : ndarray of int (n,)
        Distinct row of every row.
    copies : Copies
        Rows of every distinct row.
    """
    n = unit_rows.shape[0]
    bits = np.ascontiguousarray(unit_rows.data, dtype=np.float64).view(np.uint64)
    indptr, indices = unit_rows.indptr.astype(np.int64), unit_rows.indices.astype(np.int32)
    hashes = np.empty(n, np.uint64)
    _hash_rows(indptr, indices, bits, hashes)
    _, first_of_hash, inverse = np.unique(hashes, return_index=True, return_inverse=True)
    first_copy = first_of_hash[inverse]
    _tell_apart(indptr, indices, bits, first_copy)
    first, distinct_of = np.unique(first_copy, return_inverse=True)
    members = np.argsort(distinct_of, kind="stable")
    ends = np.cumsum(np.bincount(distinct_of, minlength=first.size))
    return first, distinct_of, Copies(members, np.concatenate([[0], ends[:-1]])[: first.size], ends)


# --- weights, triples and means -------------------------------------------------------------------------------------


def feature_weights(X) -> np.ndarray:
    """Weights of the features: their coefficients of variation, divided by the sum of all.

    Parameters
    ----------
    X : ndarray or CSR matrix (n, d)
        Rows, finite.

    Returns
    -------
    ndarray (d,)
        Not negative, of sum 1; the same for dense and sparse rows. A constant feature has weight 0. No feature that is
        never negative has a coefficient above ``sqrt(n)``; those of others, which have no bound as the mean goes to 0,
        are cut there. Where all features are constant all weights are equal.

    References
    ----------
    CI-SVM (2018), equations 7 and 8.
    """
    n, d = X.shape
    if n == 0:
        return np.full(d, 1.0 / max(d, 1))
    if scipy.sparse.issparse(X):
        rows = _sorted_rows(X)
        largest, low, high = (part.toarray().ravel() for part in (abs(rows).max(0), rows.min(0), rows.max(0)))
        stored = rows.indptr.astype(np.int64), rows.indices.astype(np.int32), rows.data
        held = np.bincount(rows.indices, minlength=d)
    else:
        rows = np.ascontiguousarray(X, dtype=np.float64)
        low, high = rows.min(axis=0), rows.max(axis=0)
        largest = np.maximum(-low, high)
        stored = np.arange(n + 1) * d, np.tile(np.arange(d, dtype=np.int32), n), rows.reshape(-1)
        held = np.count_nonzero(rows, axis=0)
    # Divided by the largest entry of each feature, so that no square over- or underflows.
    unit = np.where(largest > 0, largest, 1.0)
    missing, varies = n - held, low != high
    mean = _sums_of_powers(*stored, unit, np.zeros(d), 1) / n
    squares = _sums_of_powers(*stored, unit, mean, 2) + missing * mean**2
    deviation = np.sqrt(squares / max(n - 1, 1))
    size, most = np.abs(mean), math.sqrt(n)
    variation = np.full(d, most)
    np.divide(deviation, size, out=variation, where=deviation < most * size)
    variation[~varies] = 0.0
    total = variation.sum()
    return variation / total if total > 0 else np.full(d, 1.0 / max(d, 1))


@jit()
def _sums_of_powers(indptr, indices, data, unit, centre, power):
    """Sum the numbers of each feature that are not 0, or their squares, in the order of the rows."""
    total = np.zeros(unit.shape[0])
    for i in range(indptr.shape[0] - 1):
        for place in range(indptr[i], indptr[i + 1]):
            if data[place] != 0.0:
                k = indices[place]
                value = data[place] / unit[k] - centre[k]
                total[k] += value if power == 1 else value * value
    return total


def weighted_unit_rows(X, weights: np.ndarray) -> Any:
    """Rows (n, d) times the weights (d,), divided by their norm, as CSR; rows of zeros stay what they are."""
    weighted = _sorted_rows(X)
    weighted.data *= weights[weighted.indices]
    _scale_rows(weighted.indptr, weighted.data)
    weighted.eliminate_zeros()
    return weighted


@jit()
def _scale_rows(indptr, data):
    """Divide rows by their norm, the largest entry first, so that no square over- or underflows."""
    for i in range(indptr.shape[0] - 1):
        largest, square = 0.0, 0.0
        for position in range(indptr[i], indptr[i + 1]):
            largest = max(largest, abs(data[position]))
        if largest > 0.0:
            for position in range(indptr[i], indptr[i + 1]):
                data[position] /= largest
                square += data[position] * data[position]
            for position in range(indptr[i], indptr[i + 1]):
                data[position] /= math.sqrt(square)


def _sorted_rows(X) -> Any:
    """Copy rows to CSR, in the order of the features and without stored zeros, so that sums do not depend on either."""
    rows = scipy.sparse.csr_array(X, dtype=np.float64, copy=True)
    rows.sum_duplicates()
    rows.eliminate_zeros()
    return rows


def greedy_triples(unit_rows, engine: str = "auto", n_threads: int = 1) -> np.ndarray:
    """Group rows by three, the most similar first.

    Parameters
    ----------
    unit_rows : CSR matrix (n, d)
        From `weighted_unit_rows`.
    engine : {"auto", "tree", "blocks"}, default="auto"
        How similar rows are found. The groups do not depend on it. "auto" takes what is likely to be faster, which
        depends on the number of rows and on how many dimensions they fill: the tree for some thousand rows of up to 64
        features, for more rows up to about 20, and where rows lie in clusters or near a surface. "tree" makes the rows
        dense.
    n_threads : int, default=1
        Threads that make the first lists. The groups do not depend on it.

    Returns
    -------
    ndarray of int (M, 3)
        Row numbers of every group, in the order in which groups are formed: the pair, the smaller number first, then
        the third row. The last group has the one or two rows that are left, if any, and -1 in place of those it lacks.

    Raises
    ------
    ValueError
        For an unknown engine.

    References
    ----------
    CI-SVM (2018), section 3.2, steps 1 to 4.
    """
    if engine not in ("auto", *ENGINES):
        raise ValueError(f"engine={engine!r}: {nearest_name(engine, ('auto', *ENGINES))}")
    n, d = unit_rows.shape
    first, distinct_of, copies = _find_copies(unit_rows)
    distinct = unit_rows if first.size == n else unit_rows[first]
    rows_of = SparseRows(
        d,
        distinct.indptr.astype(np.int64),
        distinct.indices.astype(np.int32),
        np.ascontiguousarray(distinct.data, dtype=np.float64),
    )
    m = first.size
    empty = np.diff(rows_of.indptr) == 0
    if distinct.nnz > _FULL_SHARE * m * d and not empty.any():
        # Sums over rows that hold their zeros are the same, and vectors make them.
        indices = np.tile(np.arange(d, dtype=np.int32), m)
        rows_of = SparseRows(d, d * np.arange(m + 1), indices, distinct.toarray().ravel())
    by_tree = engine == "tree" or (engine == "auto" and d <= _TREE_FEATURES and m > 0)
    tree, places = plant(distinct.toarray() if by_tree else np.zeros((0, d)), empty)
    if by_tree and engine == "auto":
        sample = np.linspace(0, m - 1, _SAMPLE).astype(np.int64)
        met = rows_met(tree, copies, sample, np.empty(_LIST, np.int64), np.empty(_LIST, np.int32))
        by_tree = met * (_MET + _MET_FEATURE * d) <= _PAIR * m + _ROW
    length = min(_LIST, max(n - 1, 1))
    lists = Lists(np.zeros((m, length), np.int64), np.zeros((m, length), np.int32), np.zeros(m, np.int64))
    entries = rows_of.data.size / max(m, 1)
    n_near = int(min(m * (entries + 10.0) / _NEAR_READ, _NEAR, _NEAR_NUMBERS / max(m, 1)))
    shape = m, n_near if not by_tree and n_near > 2 * length else 0
    near = Near(np.zeros(shape, np.int64), np.zeros(shape, np.int32), np.full(m, -1), np.zeros(m, np.int64))
    with one_blas_thread(), thread_pool(n_threads) as pool:
        spread: Any = pool.map if pool else map

        def do(jobs: Any) -> None:
            for _ in spread(lambda job: job[0](*job[1:]), jobs):
                pass

        def renew(left: np.ndarray) -> None:
            _make_lists(do, distinct, left, rows_of, copies, lists, near)

        def scanned(n_left: int) -> float:
            made = n_left * (_LISTED_PAIR * n_left + _LISTED_ROW) / n_threads
            return made / (_SCANNED + _SCANNED_NUMBER * entries)

        if by_tree:
            parts = np.linspace(0, m, 8 * n_threads + 1).astype(np.int64)
            do((tree_lists, tree, copies, empty, *part, *lists) for part in itertools.pairwise(parts))
            return form_triples(by_tree, tree, places, rows_of, copies, distinct_of, lists, near)
        renew(np.arange(m))
        return form_triples(by_tree, tree, places, rows_of, copies, distinct_of, lists, near, renew, scanned)


def _make_lists(do: Callable[[Any], None], all_distinct, left: np.ndarray, rows_of, copies, lists, near) -> None:
    """Make the lists of some of the rows that are left each, from products with all of them.

    A product of two rows serves both. Rows that have too many candidates, or too few, are done once more, alone.
    """
    distinct = all_distinct if left.size == all_distinct.shape[0] else all_distinct[left]
    m, d = distinct.shape
    dense = distinct.nnz > _DENSE_SHARE * m * d or m * d < _DENSE_NUMBERS
    longest = np.diff(distinct.indptr).max(initial=0)
    # One of the best may be the row itself.
    wanted = max(lists.rows.shape[1] + 1, near.rows.shape[1])
    near.counts[left] = -1

    def settings(precision: type) -> tuple[Any, float]:
        rows = distinct.astype(precision)
        # Of products of rows of norm 1, and of rounding them to whole units.
        return (rows.toarray() if dense else rows), np.finfo(precision).eps * (longest + 4) + 1.0 / SCALE

    rows, error = settings(np.float32)

    def product(some: Any, others: Any) -> np.ndarray:
        found: np.ndarray = (some @ others.T) if dense else (some @ others.T).toarray()
        return found

    def alone(places: np.ndarray) -> int:
        return block_lists(product(rows[places], rows), left[places], left, error, rows_of, copies, *lists)

    # Half the digits are enough unless they leave most rows to choose from, as rows of nearly one direction do.
    sample = np.arange(min(_SAMPLE, math.ceil(m / 16)))
    if alone(sample) > _COMPUTED_SHARE * sample.size * m:
        rows, error = settings(np.float64)
    # Two products whose order is wrong differ by twice the error, and round-off.
    apart = 2.0 * error + 1e-6
    starts = range(0, m, _TILE)
    # Most rows need not be looked at if the largest products with a few of them tell what will do. Where they tell
    # too much, which is rare, the list is made once more.
    guesses = np.full(m, -np.inf, rows.dtype)
    sampled = np.linspace(0, m - 1, min(_SAMPLED, m // 4, 8 * math.isqrt(m))).astype(np.int64)
    expected = wanted * sampled.size / max(m, 1)
    rank = max(1, math.ceil(expected + _SURE * (math.sqrt(expected) + 1.0)))

    def guess(start: int) -> None:
        products = product(rows[start : start + _TILE], rows[sampled])
        guesses[start : start + _TILE] = np.partition(products, -rank, axis=1)[:, -rank]

    if rank <= sampled.size // 4:
        do((guess, start) for start in starts)
    room = _ROOM * wanted
    candidates = Candidates(
        np.empty((m, room), rows.dtype), np.empty((m, room), np.int32), np.zeros(m, np.int64), guesses
    )
    # Two tiles that are searched at the same time have no rows in common.
    held = [threading.Lock() for _ in starts]

    def tile(first: int, second: int) -> None:
        products = product(rows[first : first + _TILE], rows[second : second + _TILE])
        with held[first // _TILE], held[second // _TILE] if second > first else contextlib.nullcontext():
            meet(products, first, second, wanted, apart, candidates)

    do((tile, first, first + away) for away in starts for first in range(0, m - away, _TILE))
    given = apart, error, candidates, left, rows_of, copies, *lists, near
    do((candidate_lists, start, min(start + _TILE, m), *given) for start in starts)
    crowded = np.flatnonzero(candidates.counts < 0)
    step = max(1, min(512, max(64, _BLOCK_NUMBERS // max(m, 1))))
    do((alone, crowded[start : start + step]) for start in range(0, crowded.size, step))


def condensed_rows(X, codes: np.ndarray, groups: np.ndarray) -> tuple[Any, np.ndarray]:
    """Replace every group by its mean and its label.

    Parameters
    ----------
    X : ndarray or CSR matrix (n, d)
        Rows.
    codes : ndarray of int (n,)
        Class codes.
    groups : ndarray of int (M, 3)
        From `greedy_triples`.

    Returns
    -------
    centres : ndarray or CSR matrix (M, d)
    labels : ndarray of int (M,)
        The most frequent class of the group; where three members are of three classes, that of the member nearest to
        the mean. Of equally near ones, as two members always are, the smallest row number decides.

    References
    ----------
    CI-SVM (2018), equation 13 and the rule below it.
    """
    n_groups = groups.shape[0]
    held = groups >= 0
    sizes = held.sum(axis=1)
    adding = scipy.sparse.csr_array(
        (np.ones(sizes.sum()), groups[held], np.concatenate([[0], np.cumsum(sizes)])), shape=(n_groups, codes.size)
    )
    sums = adding @ X
    if scipy.sparse.issparse(sums):
        centres: Any = sums.tocsr()
        centres.sort_indices()
        centres.data /= np.repeat(sizes, np.diff(centres.indptr))
    else:
        centres = sums / sizes[:, None]
    # The two members of a pair come with the smaller number first.
    a, b, c = np.where(held, codes[groups], -1).T
    labels = np.where((b == c) & held[:, 2], b, a)
    undecided = np.flatnonzero(held[:, 2] & (a != b) & (a != c) & (b != c))
    if undecided.size:
        members = np.sort(groups[undecided], axis=1)
        # Nearest to the mean is the corner opposite to the longest side.
        corners = [X[members[:, k]] for k in range(3)]
        largest = max(abs(corner).max() for corner in corners) or 1.0
        corners = [corner / largest for corner in corners]
        sides = np.stack([squared_norms(corners[(k + 1) % 3] - corners[(k + 2) % 3]) for k in range(3)], axis=1)
        # Round-off must not choose.
        nearest = np.argmax(sides >= sides.max(axis=1, keepdims=True) * (1.0 - 1e-9), axis=1)
        labels[undecided] = codes[members[np.arange(undecided.size), nearest]]
    return centres, labels


def warm_up() -> None:
    """Compile what this module runs, also for rows of nearly one direction, which need double precision."""
    X = np.eye(4) + 0.5
    rows = weighted_unit_rows(X, feature_weights(X))
    for engine in ("auto", *ENGINES):
        greedy_triples(rows, engine)
    rows = weighted_unit_rows(1.0 + 1e-6 * np.random.default_rng(0).random((64, 4)), np.full(4, 0.25))
    greedy_triples(rows, "blocks")
