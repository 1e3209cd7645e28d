"""The greedy triples of CI-SVM, exactly and without a matrix of similarities.

The paper's procedure repeatedly takes the most similar pair of the remaining rows, then the row most similar to both.
Implemented literally, that is a search through a matrix of n^2 numbers for each of n / 3 triples. Here every row has a
short list of the rows most similar to it; `privsvm.solvers.condensing.triples` describes how they are used.

Candidates for the lists come from blocks of matrix products. Where there are few features, they are the nearest rows,
by SciPy's k-d tree, and scans skip far boxes of rows; see `privsvm.solvers.condensing.similar_rows`. The triples are as
the printed steps form them.

Equal rows are searched for, and stored in the heap, as one. The one with the smallest number is removed first.
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

from privsvm.numerics.compiled.jit import jit
from privsvm.numerics.compiled.threads import one_blas_thread, thread_pool
from privsvm.numerics.rows.rows import squared_norms
from privsvm.solvers.condensing.similar_rows import (
    BOX_ROWS,
    SCALE,
    Boxes,
    Candidates,
    Copies,
    SparseRows,
    candidate_lists,
    meet,
    scan_lists,
    set_boxes,
)
from privsvm.solvers.condensing.triples import Lists, Search, form_triples

# Constant            unit          value and reason
# Lists
# _LIST               rows          of a list; _LONG_LIST where scans skip nothing: most third rows are then in lists.
# _SCANNED            numbers       that scans may read for each remaining row before lists are made again; measured:
#                                   that takes about as long as the lists.
# Candidates from distances
# _FEW_FEATURES       features      up to which nearest rows are candidates, of _QUERIED rows at once.
# Candidates from products
# _TILE               rows          and columns of a tile of products.
# _ROOM               ratio         of the candidates that a row has room for to those that it needs.
# _SAMPLED            rows          at most of the sample that gives the initial bounds, each _SURE standard deviations
#                                   lower than expected.
# _DENSE_SHARE        share         of nonzeros above which products are of dense rows; so are those of all rows with at
#                                   most _DENSE_NUMBERS numbers.
# _UNCERTAIN_SHARE    share         of uncertain lists above which products are made again in double precision.
# _SCANNED_TOGETHER   rows          whose uncertain lists are made by one job.
# _FULL_SHARE         share         of nonzeros above which rows store their zeros, too.
_LIST, _LONG_LIST = 12, 40
_SCANNED = 50_000.0
_FEW_FEATURES, _QUERIED = 12, 4096
_TILE, _ROOM = 512, 2
_SAMPLED, _SURE = 1024, 1.5
_DENSE_SHARE = 0.02
_DENSE_NUMBERS = 50_000_000
_UNCERTAIN_SHARE, _SCANNED_TOGETHER, _FULL_SHARE = 0.1, 64, 0.25


# --- equal rows -----------------------------------------------------------------------------------------------------


def _find_copies(unit_rows, near_together: bool) -> tuple[np.ndarray, np.ndarray, Copies]:
    """Find equal rows; if asked for, number distinct rows so that near ones are near each other.

    Returns the smallest row number of each of the m distinct rows, the distinct row of each of the n rows, and the rows
    of every distinct row.
    """
    numbers, columns = np.asarray(unit_rows.data, dtype=np.float64), unit_rows.indices.astype(np.int32)
    first_of: dict[tuple[bytes, bytes], int] = {}
    first_copy = np.array(
        [
            first_of.setdefault((numbers[start:end].tobytes(), columns[start:end].tobytes()), row)
            for row, (start, end) in enumerate(itertools.pairwise(unit_rows.indptr.tolist()))
        ],
        dtype=np.int64,
    )
    first, distinct_of = np.unique(first_copy, return_inverse=True)
    if near_together and first.size:
        # Imported late: slow, and not needed for many features.
        from scipy.spatial import cKDTree

        order = cKDTree(unit_rows[first].toarray(), leafsize=BOX_ROWS).indices
        first, distinct_of = first[order], np.argsort(order)[distinct_of]
    members = np.argsort(distinct_of, kind="stable")
    ends = np.cumsum(np.bincount(distinct_of, minlength=first.size))
    return first, distinct_of, Copies(members, np.concatenate([[0], ends[:-1]])[: first.size], ends)


# --- weights, triples and means -------------------------------------------------------------------------------------


def feature_weights(X) -> np.ndarray:
    """Compute the features' weights: coefficients of variation over their sum (CI-SVM, 2018, equations 7 and 8).

    Rows are finite; the d weights are not negative, add up to 1, and are the same for dense and sparse rows. A constant
    feature has weight 0; where all are constant, all weights are equal. The coefficient of a feature without negative
    values is at most ``sqrt(n)``; other coefficients, which have no bound as the mean goes to 0, are cut there.
    """
    n, d = X.shape
    if n == 0:
        return np.full(d, 1.0 / max(d, 1))
    if scipy.sparse.issparse(X):
        rows = _sort_rows(X)
        largest, low, high = (extreme.toarray().ravel() for extreme in (abs(rows).max(0), rows.min(0), rows.max(0)))
        stored = rows.indptr.astype(np.int64), rows.indices.astype(np.int32), rows.data
        held = np.bincount(rows.indices, minlength=d)
    else:
        rows = np.ascontiguousarray(X, dtype=np.float64)
        low, high = rows.min(axis=0), rows.max(axis=0)
        largest = np.maximum(-low, high)
        stored = np.arange(n + 1) * d, np.tile(np.arange(d, dtype=np.int32), n), rows.reshape(-1)
        held = np.count_nonzero(rows, axis=0)
    # Overflow: divided by the largest entry of each feature, so that no square over- or underflows.
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
    """Sum each feature's nonzero numbers, or their squares, in the order of the rows."""
    total = np.zeros(unit.shape[0])
    for i in range(indptr.shape[0] - 1):
        for entry in range(indptr[i], indptr[i + 1]):
            if data[entry] != 0.0:
                k = indices[entry]
                value = data[entry] / unit[k] - centre[k]
                total[k] += value if power == 1 else value * value
    return total


def weighted_unit_rows(X, weights: np.ndarray) -> Any:
    """Rows (n, d) times the weights (d,), divided by their norm, as CSR.

    Rows of zeros stay unchanged.
    """
    weighted = _sort_rows(X)
    weighted.data *= weights[weighted.indices]
    _scale_rows(weighted.indptr, weighted.data)
    weighted.eliminate_zeros()
    return weighted


@jit()
def _scale_rows(indptr, data):
    """Divide rows by their norm without overflow or underflow."""
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


def _sort_rows(X) -> Any:
    """Copy rows to canonical CSR, so that sums do not depend on the storage."""
    rows = scipy.sparse.csr_array(X, dtype=np.float64, copy=True)
    rows.sum_duplicates()
    rows.eliminate_zeros()
    return rows


def greedy_triples(unit_rows, n_threads: int = 1) -> np.ndarray:
    """Group rows by three, the most similar first (CI-SVM, 2018, section 3.2, steps 1 to 4).

    Rows come from `weighted_unit_rows`. Returns row numbers (M, 3), one group after the other as they are formed: the
    pair, the smaller number first, then the third row. The last group has the one or two remaining rows, if any, and -1
    for missing members. The groups do not depend on the number of threads.
    """
    n, d = unit_rows.shape
    by_boxes = d <= _FEW_FEATURES
    first, distinct_of, copies = _find_copies(unit_rows, by_boxes)
    distinct = unit_rows[first]
    rows_of = SparseRows(
        d,
        distinct.indptr.astype(np.int64),
        distinct.indices.astype(np.int32),
        np.ascontiguousarray(distinct.data, dtype=np.float64),
    )
    m = first.size
    if distinct.nnz > _FULL_SHARE * m * d and not (np.diff(rows_of.indptr) == 0).any():
        # Vectorisation: rows that store their zeros have the same sums, by vector instructions.
        indices = np.tile(np.arange(d, dtype=np.int32), m)
        rows_of = SparseRows(d, d * np.arange(m + 1), indices, distinct.toarray().ravel())
    length = min(_LIST if by_boxes else _LONG_LIST, max(n - 1, 1))
    lists = Lists(np.zeros((m, length), np.int64), np.zeros((m, length), np.int32), np.zeros(m, np.int64))
    entries = rows_of.data.size / max(m, 1)
    n_boxes = -(-m // BOX_ROWS) if by_boxes else 0
    boxes = Boxes(np.empty((n_boxes, d)), np.empty((n_boxes, d)))
    search = Search(rows_of, copies, distinct_of, lists, boxes)
    with one_blas_thread(), thread_pool(n_threads) as pool:
        map_jobs: Any = pool.map if pool else map

        def run_jobs(jobs: Any) -> None:
            for _ in map_jobs(lambda job: job[0](*job[1:]), jobs):
                pass

        def renew(remaining: np.ndarray) -> None:
            rows = distinct if remaining.size == m else distinct[remaining]
            if by_boxes:
                set_boxes(rows_of, remaining, remaining.size, boxes)
                uncertain = _lists_by_distance(run_jobs, rows, remaining, search)
            else:
                uncertain = _lists_by_products(run_jobs, rows, remaining, search, np.float32)
                if uncertain.size > _UNCERTAIN_SHARE * remaining.size:
                    uncertain = _lists_by_products(run_jobs, rows, remaining, search, np.float64)
            listed = remaining[uncertain]
            run_jobs(
                (scan_lists, listed[start : start + _SCANNED_TOGETHER], remaining, boxes, search)
                for start in range(0, listed.size, _SCANNED_TOGETHER)
            )

        def scan_budget(n_remaining: int) -> float:
            return np.inf if by_boxes else _SCANNED * n_remaining / (entries + 10.0)

        renew(np.arange(m))
        return form_triples(search, renew, scan_budget)


def _lists_by_distance(run_jobs: Callable[[Any], None], rows: Any, remaining: np.ndarray, search: Search) -> np.ndarray:
    """Make the lists of the remaining rows from the nearest ones; return those that are uncertain."""
    # Imported late: slow, and not needed for many features.
    from scipy.spatial import cKDTree

    # Distances to a row of zeros, of which there is one at most, say nothing about similarities.
    unit = np.flatnonzero(np.diff(rows.indptr))
    has_zeros = unit.size < remaining.size
    points = rows.toarray()[unit]
    others = remaining[unit]
    ranks = np.arange(1, min(unit.size, search.lists.rows.shape[1] + 4) + 1)
    # Round-off of rows of norm 1 and of their distances, and of rounding products to whole units.
    error = np.finfo(np.float64).eps * (4 * rows.shape[1] + 32) + 1.0 / SCALE
    apart = _apart(error, np.float64)
    uncertain = np.zeros(unit.size, dtype=np.bool_)
    if unit.size:
        tree = cKDTree(points)

        def query(start: int) -> None:
            # Cache: rows in the order of the tree's leaves, as these are, take a third of the time.
            block = slice(start, start + _QUERIED)
            distances, columns = tree.query(points[block], k=ranks)
            products = 1.0 - 0.5 * distances * distances
            bounds = products[:, -1].copy() if ranks.size < unit.size else np.full(len(products), -np.inf)
            bounds = np.maximum(bounds, 0.0) if has_zeros else bounds
            candidates = Candidates(products, columns.astype(np.int32), np.full(len(products), ranks.size), bounds)
            candidate_lists(others[block], candidates, apart, others, search)
            uncertain[block] = candidates.counts < 0

        run_jobs((query, start) for start in range(0, unit.size, _QUERIED))
    return unit[uncertain]


def _apart(error: float, precision: type) -> float:
    """Bound the difference of two products in wrong order: twice their error, and round-off."""
    return 2.0 * error + 8.0 * float(np.finfo(precision).eps)


def _lists_by_products(
    run_jobs: Callable[[Any], None], rows: Any, remaining: np.ndarray, search: Search, precision: type
) -> np.ndarray:
    """Make the lists of the remaining rows from all their products; return those that are uncertain.

    A product serves both rows. Uncertain are rows with too many candidates, or too few.
    """
    m, d = rows.shape
    # The row itself may be among the best.
    wanted = search.lists.rows.shape[1] + 1
    # Round-off of products of rows of norm 1, and of rounding them to whole units.
    error = float(np.finfo(precision).eps * (np.diff(rows.indptr).max(initial=0) + 4) + 1.0 / SCALE)
    apart = _apart(error, precision)
    dense = rows.nnz > _DENSE_SHARE * m * d or m * d < _DENSE_NUMBERS
    rows = rows.astype(precision).toarray() if dense else rows.astype(precision)

    def product(first: Any, second: Any) -> np.ndarray:
        products: np.ndarray = (first @ second.T) if dense else (first @ second.T).toarray()
        return products

    starts = range(0, m, _TILE)
    candidates = Candidates(
        np.empty((m, _ROOM * wanted), precision),
        np.empty((m, _ROOM * wanted), np.int32),
        np.zeros(m, np.int64),
        np.full(m, -np.inf, precision),
    )
    # Initial bounds, which skip most rows: from the largest products with a sample. Too high ones are rare, and the
    # list is then uncertain.
    sampled = np.linspace(0, m - 1, min(_SAMPLED, m // 4, 8 * math.isqrt(m))).astype(np.int64)
    expected = wanted * sampled.size / max(m, 1)
    rank = max(1, math.ceil(expected + _SURE * (math.sqrt(expected) + 1.0)))

    def guess(start: int) -> None:
        products = product(rows[start : start + _TILE], rows[sampled])
        candidates.bounds[start : start + _TILE] = np.partition(products, -rank, axis=1)[:, -rank]

    if rank <= sampled.size // 4:
        run_jobs((guess, start) for start in starts)
    # Locks: tiles that are searched at the same time have no rows in common.
    locks = [threading.Lock() for _ in starts]

    def tile(first: int, second: int) -> None:
        products = product(rows[first : first + _TILE], rows[second : second + _TILE])
        with locks[first // _TILE], locks[second // _TILE] if second > first else contextlib.nullcontext():
            meet(products, first, second, wanted, apart, candidates)

    run_jobs((tile, first, first + offset) for offset in starts for first in range(0, m - offset, _TILE))

    def make_lists(start: int) -> None:
        part = Candidates(*(array[start : start + _TILE] for array in candidates))
        candidate_lists(remaining[start : start + _TILE], part, apart, remaining, search)

    run_jobs((make_lists, start) for start in starts)
    return np.flatnonzero(candidates.counts < 0)


def condensed_rows(X, codes: np.ndarray, groups: np.ndarray) -> tuple[Any, np.ndarray]:
    """Replace every group by its mean and its label (CI-SVM, 2018, equation 13 and the rule below it).

    Groups (M, 3) come from `greedy_triples`. Returns the M centres, dense or sparse as X is, and their labels: the most
    frequent class of the group or, where three members are of three classes, the class of the member nearest to the
    mean. Of equally near members, as two always are, the smallest row number decides.
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
    # The members of a pair are ordered by number.
    a, b, c = np.where(held, codes[groups], -1).T
    labels = np.where((b == c) & held[:, 2], b, a)
    undecided = np.flatnonzero(held[:, 2] & (a != b) & (a != c) & (b != c))
    if undecided.size:
        members = np.sort(groups[undecided], axis=1)
        # The corner nearest to the mean is opposite to the longest side.
        corners = [X[members[:, k]] for k in range(3)]
        largest = max(abs(corner).max() for corner in corners) or 1.0
        corners = [corner / largest for corner in corners]
        sides = np.stack([squared_norms(corners[(k + 1) % 3] - corners[(k + 2) % 3]) for k in range(3)], axis=1)
        # Round-off must not decide between equal sides.
        nearest = np.argmax(sides >= sides.max(axis=1, keepdims=True) * (1.0 - 1e-9), axis=1)
        labels[undecided] = codes[members[np.arange(undecided.size), nearest]]
    return centres, labels


def warm_up() -> None:
    """Compile what this module runs, for few features and for many, also in double precision."""
    rng = np.random.default_rng(0)
    for n_features in (4, _FEW_FEATURES + 1):
        X = rng.random((4, n_features))
        greedy_triples(weighted_unit_rows(X, feature_weights(X)))
    X = 1.0 + 1e-6 * rng.random((64, _FEW_FEATURES + 1))
    greedy_triples(weighted_unit_rows(X, np.full(X.shape[1], 1.0 / X.shape[1])))
