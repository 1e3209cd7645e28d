"""Lists of the rows most similar to a row, exactly, from approximate products or distances.

Similarities are cosines of unit rows, summed in one order and rounded to multiples of 2^-46, so that lists do not
depend on how candidates are found, and differences by round-off count as equal. Of equals the row with the smaller
number comes first.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from privsvm.numerics.compiled.jit import jit, jit_step
from privsvm.numerics.compiled.vector_math import FAST_MATH

__all__ = [
    "SCALE",
    "UNKNOWN",
    "Candidates",
    "Copies",
    "Near",
    "SparseRows",
    "block_lists",
    "candidate_lists",
    "meet",
    "nearest_lists",
    "scan_list",
    "scan_third",
    "similarity",
    "similarity_from",
]

SCALE = 2.0**46
# Less than any similarity, in units of ``1 / SCALE``.
UNKNOWN = -(2**62)

# Products that are compared with a bound together.
_STRIDE = 32


class Copies(NamedTuple):
    """Row numbers by distinct row, ascending for each.

    First and end of those that remain.
    """

    members: np.ndarray
    head: np.ndarray
    tail: np.ndarray


class SparseRows(NamedTuple):
    """Distinct rows as CSR arrays."""

    n_features: int
    indptr: np.ndarray
    indices: np.ndarray
    data: np.ndarray


class Candidates(NamedTuple):
    """Candidates of each row: largest products, their columns, number and bound."""

    products: np.ndarray
    columns: np.ndarray
    # -1 where candidates exceed the room, or are too few.
    counts: np.ndarray
    bounds: np.ndarray


class Near(NamedTuple):
    """Rows near each distinct row, with bounds on their and others' similarity.

    There are enough of them to identify a third row. Exact similarities are computed for rows in the list only.
    """

    most: np.ndarray
    rows: np.ndarray
    # -1 where there is only the list.
    counts: np.ndarray
    bounds: np.ndarray


@jit_step(forceinline=True)
def similarity(rows_of, a, b):
    """Cosine of two rows as a whole number of units.

    The terms in the order of the features, so equal for both ways.
    """
    n_features, indptr, indices, data = rows_of
    total = 0.0
    i, j, stop_i, stop_j = indptr[a], indptr[b], indptr[a + 1], indptr[b + 1]
    if stop_i - i == n_features and stop_j - j == n_features:
        for k in range(n_features):
            total += data[i + k] * data[j + k]
        return np.int64(np.rint(total * SCALE))
    while i < stop_i and j < stop_j:
        if indices[i] == indices[j]:
            total += data[i] * data[j]
            i += 1
            j += 1
        elif indices[i] < indices[j]:
            i += 1
        else:
            j += 1
    return np.int64(np.rint(total * SCALE))


@jit_step()
def _insert_copies(sims, rows, count, value, copies, distinct, left_out):
    """Insert a row's copies, except one, into a sorted list; return its length."""
    length = rows.shape[0]
    for position in range(copies.head[distinct], copies.tail[distinct]):
        row = copies.members[position]
        if row == left_out:
            continue
        slot = count
        if count == length:
            slot -= 1
            if value < sims[slot] or (value == sims[slot] and row > rows[slot]):
                break
        else:
            count += 1
        while slot > 0 and (value > sims[slot - 1] or (value == sims[slot - 1] and row < rows[slot - 1])):
            sims[slot], rows[slot] = sims[slot - 1], rows[slot - 1]
            slot -= 1
        sims[slot], rows[slot] = value, row
    return count


@jit_step()
def _is_full(rows_of):
    """Whether no row has a zero."""
    return rows_of.data.shape[0] == rows_of.n_features * (rows_of.indptr.shape[0] - 1)


@jit_step()
def _reach_any(values, bound):
    """Whether one of some numbers is at least `bound`."""
    reached = False
    for j in range(values.shape[0]):
        reached |= values[j] >= bound
    return reached


@jit_step()
def _add(rows_of, i, dense):
    """Add a row to a dense one."""
    for position in range(rows_of.indptr[i], rows_of.indptr[i + 1]):
        dense[rows_of.indices[position]] += rows_of.data[position]


@jit_step()
def _clear(rows_of, i, dense):
    """Set a dense row to zero where a row may have numbers."""
    for position in range(rows_of.indptr[i], rows_of.indptr[i + 1]):
        dense[rows_of.indices[position]] = 0.0


@jit_step()
def _similarity_with(rows_of, dense, j):
    """Return `similarity` of a dense row with another.

    Products with zeros change no sum.
    """
    total = 0.0
    for position in range(rows_of.indptr[j], rows_of.indptr[j + 1]):
        total += dense[rows_of.indices[position]] * rows_of.data[position]
    return np.int64(np.rint(total * SCALE))


@jit_step()
def _four_similarities(rows_of, one, columns, others, out):
    """Set `similarity` of a dense row with four rows without zeros, side by side."""
    n_features, indptr, _, data = rows_of
    a, b, c, d = others[columns[0]], others[columns[1]], others[columns[2]], others[columns[3]]
    first, second = data[indptr[a] : indptr[a] + n_features], data[indptr[b] : indptr[b] + n_features]
    third, fourth = data[indptr[c] : indptr[c] + n_features], data[indptr[d] : indptr[d] + n_features]
    total_a, total_b, total_c, total_d = 0.0, 0.0, 0.0, 0.0
    for k in range(n_features):
        total_a += one[k] * first[k]
        total_b += one[k] * second[k]
        total_c += one[k] * third[k]
        total_d += one[k] * fourth[k]
    out[0], out[1] = np.int64(np.rint(total_a * SCALE)), np.int64(np.rint(total_b * SCALE))
    out[2], out[3] = np.int64(np.rint(total_c * SCALE)), np.int64(np.rint(total_d * SCALE))


@jit_step()
def _list_candidates(rows_of, copies, full, i, dense, columns, others, sims, rows):
    """Make a row's list of candidates; return its length.

    `dense` are zeros, and are so again.
    """
    left_out = copies.members[copies.head[i]]
    count, four = 0, np.empty(4, np.int64)
    _add(rows_of, i, dense)
    for first in range(0, columns.shape[0], 4):
        n_some = min(4, columns.shape[0] - first)
        if full and n_some == 4:
            _four_similarities(rows_of, dense, columns[first:], others, four)
        else:
            for k in range(n_some):
                four[k] = _similarity_with(rows_of, dense, others[columns[first + k]])
        for k in range(n_some):
            count = _insert_copies(sims, rows, count, four[k], copies, others[columns[first + k]], left_out)
    _clear(rows_of, i, dense)
    return count


@jit_step()
def _number_at(numbers, position):
    """Return the number at a position of the sorted numbers, by quickselect.

    Reorders them.

    Compile time: ``numpy.partition`` would take longer than the rest of this module.
    """
    low, high = 0, numbers.shape[0] - 1
    while low < high:
        pivot, i, j = numbers[(low + high) // 2], low, high
        while i <= j:
            while numbers[i] < pivot:
                i += 1
            while numbers[j] > pivot:
                j -= 1
            if i <= j:
                numbers[i], numbers[j] = numbers[j], numbers[i]
                i, j = i + 1, j - 1
        if position <= j:
            high = j
        elif position >= i:
            low = i
        else:
            break
    return numbers[position]


@jit_step()
def _compress(products, columns, count, wanted, error):
    """Keep the candidates that may be among the `wanted` best.

    Return their number, and the bound for others.
    """
    if count <= wanted:
        return count, np.float32(-np.inf)
    bound = np.float32(_number_at(products[:count].copy(), count - wanted) - error)
    kept = 0
    for k in range(count):
        if products[k] >= bound:
            products[kept], columns[kept] = products[k], columns[k]
            kept += 1
    return kept, bound


@jit_step()
def _keep(candidates, i, value, j, wanted, apart):
    """Add the product of rows i and j to the candidates of i, if it is large enough."""
    count = candidates.counts[i]
    products, columns = candidates.products[i], candidates.columns[i]
    if count == products.shape[0]:
        count, bound = _compress(products, columns, count, wanted, apart)
        candidates.bounds[i] = max(bound, candidates.bounds[i])
        if count == products.shape[0]:
            # All candidates are equal up to round-off: an infinite bound stops the search.
            candidates.counts[i], candidates.bounds[i] = -1, np.inf
            return
    if value >= candidates.bounds[i]:
        products[count], columns[count] = value, j
        count += 1
    candidates.counts[i] = count


@jit()
def meet(products, first, second, wanted, apart, candidates):
    """Add the largest products of two blocks of rows to the candidates of both.

    Where `first` is `second`, these are products of rows with themselves. For `wanted` and `apart` see `block_lists`.
    """
    n_others = products.shape[1]
    bounds = candidates.bounds[second : second + n_others]
    hits = np.empty(n_others + 1, np.int64)
    for r in range(products.shape[0]):
        i, row = first + r, products[r]
        # Branch-free: hits are so frequent that branches would be mispredicted.
        n_hits, bound = np.int64(0), candidates.bounds[i]
        for j in range(r if first == second else 0, n_others):
            hits[n_hits] = j
            n_hits += np.int64((row[j] >= bound) | (row[j] >= bounds[j]))
        for hit in range(n_hits):
            j = hits[hit]
            if row[j] >= candidates.bounds[i]:
                _keep(candidates, i, row[j], second + j, wanted, apart)
            if row[j] >= bounds[j] and second + j != i:
                _keep(candidates, second + j, row[j], i, wanted, apart)


@jit_step()
def _set_near(products, columns, count, bound, error, others, near, i):
    """Set the rows near a row: as many of its candidates as fit."""
    room, kept = near.rows.shape[1], 0
    if count > room:
        bound = max(bound, _number_at(products[:count].copy(), count - room - 1))
    for k in range(count):
        if products[k] > bound:
            near.most[i, kept] = np.int64(math.ceil((np.float64(products[k]) + error) * SCALE))
            near.rows[i, kept] = others[columns[k]]
            kept += 1
    near.counts[i] = kept
    near.bounds[i] = np.int64(math.ceil((np.float64(bound) + error) * SCALE)) if bound > -np.inf else UNKNOWN


@jit()
def candidate_lists(start, stop, apart, error, candidates, others, search):
    """Make the lists of rows ``start..stop`` of a `triples.Search` from candidates.

    `others` are the distinct rows by position.

    The count becomes -1 where fewer rows than a list needs reached the bound for candidates.
    """
    rows_of, copies, near = search.rows_of, search.copies, search.near
    sims, rows, counts = search.lists.sims, search.lists.rows, search.lists.counts
    full, dense, wanted = _is_full(rows_of), np.zeros(rows_of.n_features), rows.shape[1] + 1
    for position in range(start, stop):
        i, count = others[position], candidates.counts[position]
        if count < 0 or rows_of.indptr[i + 1] == rows_of.indptr[i]:
            continue
        products, columns, least = (
            candidates.products[position],
            candidates.columns[position],
            candidates.bounds[position],
        )
        if near.rows.shape[1]:
            _set_near(products, columns, count, least, error, others, near, i)
        kept, bound = _compress(products, columns, count, wanted, apart)
        if bound < least:
            candidates.counts[position] = -1
            continue
        counts[i] = _list_candidates(rows_of, copies, full, i, dense, columns[:kept], others, sims[i], rows[i])


@jit()
def block_lists(products, listed, others, error, rows_of, copies, all_sims, all_rows, counts):
    """Make the lists of the distinct rows `listed` from approximate products.

    A product is off by `error` at most. Only rows whose product comes near to those of the list's last are candidates,
    for which the similarity is computed. Returns the number of candidates beyond those that any list needs.
    """
    length, n_others, surplus = all_rows.shape[1], products.shape[1], 0
    # The row itself may be among the best. Products in wrong order differ by at most twice the error, plus round-off.
    wanted, apart = length + 1, 2.0 * error + 1e-6
    # Fallback: where more rows than this are candidates, all rows are compared one by one.
    room = 4 * wanted
    best, columns = np.empty(room, products.dtype), np.empty(room, np.int64)
    full, dense = _is_full(rows_of), np.zeros(rows_of.n_features)
    for r in range(products.shape[0]):
        i = listed[r]
        if rows_of.indptr[i + 1] == rows_of.indptr[i]:
            continue
        row, kept, bound, near = products[r], 0, np.float32(-np.inf), True
        for start in range(0, n_others, _STRIDE):
            stop = min(start + _STRIDE, n_others)
            if not _reach_any(row[start:stop], bound):
                continue
            for j in range(start, stop):
                if row[j] >= bound:
                    if kept == room:
                        kept, bound = _compress(best, columns, kept, wanted, apart)
                        if kept == room:
                            near = False
                            break
                    if row[j] >= bound:
                        best[kept], columns[kept] = row[j], j
                        kept += 1
            if not near:
                break
        sims, rows, count = all_sims[i], all_rows[i], 0
        if near:
            kept, bound = _compress(best, columns, kept, wanted, apart)
            count = _list_candidates(rows_of, copies, full, i, dense, columns[:kept], others, sims, rows)
            surplus += max(0, kept - 2 * wanted)
        else:
            least, left_out = -np.inf, copies.members[copies.head[i]]
            _add(rows_of, i, dense)
            for k in range(n_others):
                if row[k] >= least:
                    surplus += 1
                    j = others[k]
                    count = _insert_copies(sims, rows, count, _similarity_with(rows_of, dense, j), copies, j, left_out)
                    if count == length:
                        least = sims[count - 1] / SCALE - error
            _clear(rows_of, i, dense)
        counts[i] = count
    return surplus


@jit()
def nearest_lists(listed, distances, columns, error, has_zeros, others, search):
    """Make the lists of the distinct rows `listed`, in a `triples.Search`, from their nearest ones.

    `distances` and `columns` (n, k) are ascending; products derived from them are off by `error` at most. Returns which
    lists are certain: those whose last row is more similar than any that is not among the nearest, and than a row of
    zeros where there is one.
    """
    rows_of, copies, near = search.rows_of, search.copies, search.near
    sims, rows, counts = search.lists.sims, search.lists.rows, search.lists.counts
    n_rows, n_nearest = distances.shape
    length, n_near = rows.shape[1], near.rows.shape[1]
    last_near = min(n_near, n_nearest - 1)
    certain = np.zeros(n_rows, np.bool_)
    for r in range(n_rows):
        i, count = listed[r], 0
        left_out = copies.members[copies.head[i]]
        certain[r] = n_nearest == others.shape[0] and not has_zeros
        for k in range(n_nearest):
            most = np.int64(math.ceil((1.0 - 0.5 * distances[r, k] * distances[r, k] + error) * SCALE))
            j = others[columns[r, k]]
            if k < n_near:
                near.most[i, k], near.rows[i, k] = most, j
            if n_near and k == last_near:
                near.counts[i], near.bounds[i] = min(n_near, n_nearest), max(most, 0)
            if count == length and most < sims[i, count - 1]:
                certain[r] = not has_zeros or sims[i, count - 1] > 0
                if k >= last_near:
                    break
                continue
            count = _insert_copies(sims[i], rows[i], count, similarity(rows_of, i, j), copies, j, left_out)
        counts[i] = count
    return certain


@jit_step(fastmath=FAST_MATH)
def _product(rows_of, i, dense):
    """Product of a row with a dense one, added up in any order."""
    total, start, stop = 0.0, rows_of.indptr[i], rows_of.indptr[i + 1]
    if stop - start == rows_of.n_features:
        row = rows_of.data[start:stop]
        for k in range(row.shape[0]):
            total += row[k] * dense[k]
    else:
        for position in range(start, stop):
            total += rows_of.data[position] * dense[rows_of.indices[position]]
    return total


@jit_step()
def _least_product(rows_of, value):
    """Bound from below the product of rows whose similarity reaches `value` units.

    The product of rows of norm 1 is off by half of d 2^-52 at most, that with a sum by twice that, and similarities are
    rounded to units of 2^-46.
    """
    return (value - 4 - rows_of.n_features // 8) / SCALE


@jit_step()
def similarity_from(rows_of, a, b, least):
    """Similarity of two rows, or UNKNOWN where it is less than `least`."""
    n_features, indptr, _, data = rows_of
    start, stop = indptr[a], indptr[a + 1]
    if stop - start == n_features and _product(rows_of, b, data[start:stop]) < _least_product(rows_of, least):
        return np.int64(UNKNOWN)
    return similarity(rows_of, a, b)


@jit_step()
def scan_list(rows_of, copies, remaining, n_remaining, i, dense, sims, rows):
    """List the remaining rows most similar to the first copy of i; return their number."""
    left_out = copies.members[copies.head[i]]
    _add(rows_of, i, dense)
    count, least = 0, _least_product(rows_of, UNKNOWN)
    for position in range(n_remaining):
        j = remaining[position]
        if copies.head[j] < copies.tail[j] and _product(rows_of, j, dense) >= least:
            count = _insert_copies(sims, rows, count, similarity(rows_of, i, j), copies, j, left_out)
            if count == rows.shape[0]:
                least = _least_product(rows_of, sims[count - 1])
    _clear(rows_of, i, dense)
    return count


@jit_step()
def scan_third(rows_of, copies, remaining, n_remaining, a, b, dense, best, third):
    """Find the remaining row most similar to both a and b, or return `third`."""
    _add(rows_of, a, dense)
    _add(rows_of, b, dense)
    least = _least_product(rows_of, best)
    for position in range(n_remaining):
        j = remaining[position]
        if copies.head[j] < copies.tail[j] and _product(rows_of, j, dense) >= least:
            both, row = similarity(rows_of, a, j) + similarity(rows_of, b, j), copies.members[copies.head[j]]
            if third < 0 or both > best or (both == best and row < third):
                best, third = both, row
                least = _least_product(rows_of, best)
    _clear(rows_of, a, dense)
    _clear(rows_of, b, dense)
    return third
