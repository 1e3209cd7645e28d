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

SCALE = 2.0**46
# Less than any similarity, in units of ``1 / SCALE``.
UNKNOWN = -(2**62)

# Rows of a box, and what round-off may add to a bound that it gives.
BOX_ROWS, _SLACK = 64, 1e-12


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


class Boxes(NamedTuple):
    """Least and largest number of each feature among every 64 rows that remain, (b, d); no boxes for many features."""

    low: np.ndarray
    high: np.ndarray


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
    kind = products.dtype.type
    if count <= wanted:
        return count, kind(-np.inf)
    bound = kind(_number_at(products[:count].copy(), count - wanted) - error)
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

    Where `first` is `second`, these are products of rows with themselves. Each row keeps the `wanted` best ones, and
    those that are less than `apart` below them.
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


@jit()
def set_boxes(rows_of, remaining, n_remaining, boxes):
    """Set the boxes of the rows that remain."""
    dense = np.zeros(rows_of.n_features)
    for b in range(min(boxes.low.shape[0], -(-n_remaining // BOX_ROWS))):
        low, high = boxes.low[b], boxes.high[b]
        low[:], high[:] = np.inf, -np.inf
        for position in range(b * BOX_ROWS, min((b + 1) * BOX_ROWS, n_remaining)):
            _add(rows_of, remaining[position], dense)
            for k in range(dense.shape[0]):
                low[k], high[k] = min(low[k], dense[k]), max(high[k], dense[k])
            _clear(rows_of, remaining[position], dense)


@jit_step()
def _box_product(boxes, b, row, length):
    """Bound the product of a row of norm `length`, and times it, with the rows of a box.

    ``x.z = 1 - |x - z|^2 / 2`` for rows of norm 1. A row of zeros is in no box that is far from the origin.
    """
    square = 0.0
    for k in range(row.shape[0]):
        gap = max(length * boxes.low[b, k] - row[k], row[k] - length * boxes.high[b, k], 0.0)
        square += gap * gap
    return length * (1.0 + _SLACK) - 0.5 * square / length


@jit()
def candidate_lists(listed, candidates, apart, others, search):
    """Make the lists of the distinct rows `listed`, of a `triples.Search`, from their candidates.

    Products of rows in wrong order differ by less than `apart`. `others` are the distinct rows by column. The count
    becomes -1 where the bound for candidates left out rows that the list may need.
    """
    rows_of, copies = search.rows_of, search.copies
    sims, rows, counts = search.lists.sims, search.lists.rows, search.lists.counts
    # The row itself is among the candidates.
    wanted = rows.shape[1] + 1
    for r in range(listed.shape[0]):
        i, count, least = listed[r], candidates.counts[r], candidates.bounds[r]
        products, columns = candidates.products[r], candidates.columns[r]
        if count < 0 or rows_of.indptr[i + 1] == rows_of.indptr[i]:
            continue
        kept, bound = _compress(products, columns, count, wanted, apart)
        if bound < least:
            candidates.counts[r] = -1
            continue
        left_out, length = copies.members[copies.head[i]], 0
        for k in range(kept):
            j = others[columns[k]]
            length = _insert_copies(sims[i], rows[i], length, similarity(rows_of, i, j), copies, j, left_out)
        counts[i] = length


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
def _is_far(boxes, position, dense, length, least):
    """Tell whether the box that begins here, if any, has no row whose product with a row reaches `least`."""
    return boxes.low.shape[0] > 0 and _box_product(boxes, position // BOX_ROWS, dense, length) < least


@jit_step()
def scan_list(rows_of, copies, remaining, n_remaining, boxes, i, dense, sims, rows):
    """List the remaining rows most similar to the first copy of i; return their number."""
    left_out = copies.members[copies.head[i]]
    _add(rows_of, i, dense)
    count, least, position = 0, _least_product(rows_of, UNKNOWN), -1
    while position + 1 < n_remaining:
        position += 1
        if position % BOX_ROWS == 0 and _is_far(boxes, position, dense, 1.0, least):
            position += BOX_ROWS - 1
            continue
        j = remaining[position]
        if copies.head[j] < copies.tail[j] and _product(rows_of, j, dense) >= least:
            count = _insert_copies(sims, rows, count, similarity(rows_of, i, j), copies, j, left_out)
            if count == rows.shape[0]:
                least = _least_product(rows_of, sims[count - 1])
    _clear(rows_of, i, dense)
    return count


@jit()
def scan_lists(listed, remaining, boxes, search):
    """Make the lists of the distinct rows `listed`, of a `triples.Search`, by scans of the remaining ones."""
    rows_of, copies, lists = search.rows_of, search.copies, search.lists
    dense = np.zeros(rows_of.n_features)
    for i in listed:
        if rows_of.indptr[i + 1] > rows_of.indptr[i]:
            lists.counts[i] = scan_list(
                rows_of, copies, remaining, remaining.shape[0], boxes, i, dense, lists.sims[i], lists.rows[i]
            )


@jit_step()
def scan_third(rows_of, copies, state, n_remaining, a, b, best, third):
    """Find the remaining row of a `triples._State` that is most similar to both a and b, or return `third`."""
    remaining, dense, boxes = state.remaining, state.dense, state.boxes
    _add(rows_of, a, dense)
    _add(rows_of, b, dense)
    square = 0.0
    for k in range(dense.shape[0] if boxes.low.shape[0] > 0 else 0):
        square += dense[k] * dense[k]
    length, least, position = math.sqrt(square), _least_product(rows_of, best), -1
    while position + 1 < n_remaining:
        position += 1
        if position % BOX_ROWS == 0 and length > 0.0 and _is_far(boxes, position, dense, length, least):
            position += BOX_ROWS - 1
            continue
        j = remaining[position]
        if copies.head[j] < copies.tail[j] and _product(rows_of, j, dense) >= least:
            both, row = similarity(rows_of, a, j) + similarity(rows_of, b, j), copies.members[copies.head[j]]
            if third < 0 or both > best or (both == best and row < third):
                best, third = both, row
                least = _least_product(rows_of, best)
    _clear(rows_of, a, dense)
    _clear(rows_of, b, dense)
    return third
