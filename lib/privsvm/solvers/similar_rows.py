"""Lists of the rows most similar to a row, exactly: by a k-d tree, or by blocks of products.

Similarities are cosines of unit rows, summed in one order and rounded to multiples of 2^-46, so that both ways agree
and differences by round-off count as equal. Of equals the row with the smaller number comes first.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from privsvm.numerics.jit import jit, jit_step
from privsvm.numerics.vector_math import maximum

__all__ = [
    "LEAF",
    "SCALE",
    "UNKNOWN",
    "Candidates",
    "Copies",
    "SparseRows",
    "Tree",
    "block_lists",
    "build_tree",
    "candidate_lists",
    "meet",
    "rows_met",
    "scan_list",
    "scan_third",
    "similarity",
    "tree_list",
    "tree_lists",
    "tree_third",
]

SCALE = 2.0**46
# Less than any similarity, in units of ``1 / SCALE``.
UNKNOWN = -(2**62)

# Rows in a leaf of the tree.
LEAF = 24
# Products that are looked at together.
_STRIDE = 32
# Boxes that wait on the stack of a search, at most.
_DEPTH = 128


class Copies(NamedTuple):
    """Row numbers by distinct row, each one's ascending; where those that are left start, and where they end."""

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
    """Of each row, by its place: the largest products so far, with which places, how many; what others must reach."""

    found: np.ndarray
    columns: np.ndarray
    # -1 where more come near than there is room for, or too few.
    counts: np.ndarray
    bounds: np.ndarray


class Tree(NamedTuple):
    """A k-d tree that rows can be taken out of."""

    # Rows in the tree's order, by row and by feature, and their numbers.
    rows: np.ndarray
    columns: np.ndarray
    order: np.ndarray
    # Of each node: corners of its box, places of its rows, first child (the second comes next) or -1, number of rows
    # with copies left, and whether a row of zeros is among them.
    low: np.ndarray
    high: np.ndarray
    first: np.ndarray
    last: np.ndarray
    child: np.ndarray
    alive: np.ndarray
    zeros: np.ndarray


@jit_step(forceinline=True)
def similarity(rows_of, a, b):
    """Cosine of two rows as a whole number of units; the terms in the order of the features, so equal for both ways."""
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
def _insert(sims, rows, count, found, copies, distinct, left_out):
    """Put a row's copies into a list ordered by similarity, then number, except one; return the list's new length."""
    length = rows.shape[0]
    for position in range(copies.head[distinct], copies.tail[distinct]):
        row = copies.members[position]
        if row == left_out:
            continue
        place = count
        if count == length:
            place -= 1
            if found < sims[place] or (found == sims[place] and row > rows[place]):
                break
        else:
            count += 1
        while place > 0 and (found > sims[place - 1] or (found == sims[place - 1] and row < rows[place - 1])):
            sims[place], rows[place] = sims[place - 1], rows[place - 1]
            place -= 1
        sims[place], rows[place] = found, row
    return count


# --- the tree -------------------------------------------------------------------------------------------------------


@jit_step()
def _set_box(U, order, start, stop, low, high):
    """Set the corners of a node's box; return its widest feature, and how wide it is there."""
    for k in range(U.shape[1]):
        low[k], high[k] = np.inf, -np.inf
    for position in range(start, stop):
        row = order[position]
        for k in range(U.shape[1]):
            low[k] = min(low[k], U[row, k])
            high[k] = max(high[k], U[row, k])
    widest, width = 0, -1.0
    for k in range(U.shape[1]):
        if high[k] - low[k] > width:
            widest, width = k, high[k] - low[k]
    return widest, width


@jit_step()
def _split_at_median(U, order, start, stop, feature):
    """Reorder ``order[start:stop]`` so that no row of the first half has a larger value than one of the second."""
    middle = (start + stop) // 2
    left, right = start, stop - 1
    while left < right:
        pivot = U[order[(left + right) // 2], feature]
        i, j = left, right
        while i <= j:
            while U[order[i], feature] < pivot:
                i += 1
            while U[order[j], feature] > pivot:
                j -= 1
            if i <= j:
                order[i], order[j] = order[j], order[i]
                i += 1
                j -= 1
        if middle <= j:
            right = j
        elif middle >= i:
            left = i
        else:
            break
    return middle


@jit()
def build_tree(U, order, low, high, first, last, parent, child, leaf_of):
    """Split rows at the median of the widest feature until few are left; return the number of nodes."""
    first[0], last[0], parent[0] = 0, U.shape[0], -1
    nodes = 1
    at = 0
    while at < nodes:
        start, stop = first[at], last[at]
        widest, width = _set_box(U, order, start, stop, low[at], high[at])
        if stop - start <= LEAF or width <= 0.0:
            child[at] = -1
            for position in range(start, stop):
                leaf_of[order[position]] = at
        else:
            middle = _split_at_median(U, order, start, stop, widest)
            child[at] = nodes
            for number in range(2):
                node = nodes + number
                parent[node] = at
                first[node] = start if number == 0 else middle
                last[node] = middle if number == 0 else stop
            nodes += 2
        at += 1
    return nodes


@jit_step()
def _reach(tree, node, q, square, norm):
    """Units of similarity that a unit row in the node's box may have with ``norm * q`` at most; q of norm 1."""
    low, high = tree.low[node], tree.high[node]
    distance = 0.0
    for k in range(q.shape[0]):
        # Without branches, which no processor would foresee.
        outside = maximum(maximum(low[k] - q[k], q[k] - high[k]), 0.0)
        distance += outside * outside
    # Round-off of the rows' norms and of the sums is below a few units for each feature.
    reach = np.int64(math.ceil(0.5 * norm * (square + 1.0 - distance) * SCALE)) + 64 + 8 * q.shape[0]
    return max(reach, 0) if tree.zeros[node] else reach


@jit_step()
def _push(tree, near, q, square, norm, stack, reaches, depth):
    """Put the two halves of a box on the stack, the one of the nearer rows on top; return the stack's new depth."""
    far = near + 1
    reach = _reach(tree, near, q, square, norm) if tree.alive[near] > 0 else UNKNOWN
    far_reach = _reach(tree, far, q, square, norm) if tree.alive[far] > 0 else UNKNOWN
    if reach < far_reach:
        near, far = far, near
        reach, far_reach = far_reach, reach
    if tree.alive[far] > 0:
        stack[depth], reaches[depth] = far, far_reach
        depth += 1
    if tree.alive[near] > 0:
        stack[depth], reaches[depth] = near, reach
        depth += 1
    return depth


@jit_step()
def _dot(first, second):
    """Product of two dense rows, in the order of the features."""
    total = 0.0
    for k in range(first.shape[0]):
        total += first[k] * second[k]
    return total


@jit_step()
def _leaf_products(columns, q, start, stop, out):
    """Products of q with the rows of a leaf: each as `_dot`, several rows at a time."""
    size = stop - start
    for p in range(size):
        out[p] = 0.0
    for k in range(q.shape[0]):
        column, value = columns[k, start:stop], q[k]
        for p in range(size):
            out[p] += value * column[p]


@jit_step()
def tree_list(tree, copies, i, q, stack, reaches, sims, rows):
    """Find the rows most similar to q, the first copy of i, best first; return their number, and how much was met."""
    left_out = copies.members[copies.head[i]]
    square = _dot(q, q)
    length = rows.shape[0]
    count, met, depth = 0, 0, 1
    stack[0], reaches[0] = 0, -UNKNOWN
    products = np.empty(LEAF)
    while depth > 0:
        depth -= 1
        node = stack[depth]
        if count == length and reaches[depth] < sims[count - 1]:
            continue
        if tree.child[node] < 0:
            for start in range(tree.first[node], tree.last[node], LEAF):
                stop = min(start + LEAF, tree.last[node])
                _leaf_products(tree.columns, q, start, stop, products)
                for position in range(start, stop):
                    found = np.int64(np.rint(products[position - start] * SCALE))
                    # Most rows are not near enough: only of others it is looked up whether any copy is left.
                    if count < length or found >= sims[count - 1]:
                        j = tree.order[position]
                        if copies.head[j] < copies.tail[j]:
                            count = _insert(sims, rows, count, found, copies, j, left_out)
            met += tree.last[node] - tree.first[node]
        else:
            depth = _push(tree, tree.child[node], q, square, 1.0, stack, reaches, depth)
            met += 2
    return count, met


@jit_step()
def _set_direction(one, other, q):
    """Set q to the direction of the sum of two rows; return the sum's norm, and the squared norm of q."""
    norm = 0.0
    for k in range(q.shape[0]):
        q[k] = one[k] + other[k]
        norm += q[k] * q[k]
    norm = math.sqrt(norm)
    square = 0.0
    for k in range(q.shape[0]):
        # Of opposite rows, a product with zero is all that is bounded.
        q[k] = q[k] / norm if norm > 0.0 else 0.0
        square += q[k] * q[k]
    return norm, square


@jit_step()
def tree_third(tree, copies, one, other, q, stack, reaches, best, third):
    """Find the row most similar to two rows, where one is known already or is -1; `q` is overwritten."""
    norm, square = _set_direction(one, other, q)
    depth = 1
    stack[0], reaches[0] = 0, -UNKNOWN
    by_one, by_other = np.empty(LEAF), np.empty(LEAF)
    while depth > 0:
        depth -= 1
        node = stack[depth]
        if third >= 0 and reaches[depth] < best:
            continue
        if tree.child[node] < 0:
            for start in range(tree.first[node], tree.last[node], LEAF):
                stop = min(start + LEAF, tree.last[node])
                _leaf_products(tree.columns, one, start, stop, by_one)
                _leaf_products(tree.columns, other, start, stop, by_other)
                for position in range(start, stop):
                    place = position - start
                    both = np.int64(np.rint(by_one[place] * SCALE)) + np.int64(np.rint(by_other[place] * SCALE))
                    if third < 0 or both >= best:
                        j = tree.order[position]
                        if copies.head[j] < copies.tail[j]:
                            row = copies.members[copies.head[j]]
                            if third < 0 or both > best or row < third:
                                best, third = both, row
        else:
            depth = _push(tree, tree.child[node], q, square, norm, stack, reaches, depth)
    return third


@jit()
def tree_lists(tree, copies, empty, start, stop, all_sims, all_rows, counts):
    """Make the lists of the rows between two places of the tree's order."""
    stack, reaches = np.empty(_DEPTH, np.int64), np.empty(_DEPTH, np.int64)
    for position in range(start, stop):
        # Neighbours one after the other: what the search reads is still in the cache.
        i = tree.order[position]
        if not empty[i]:
            counts[i], _met = tree_list(tree, copies, i, tree.rows[position], stack, reaches, all_sims[i], all_rows[i])


@jit()
def rows_met(tree, copies, sample, sims, rows):
    """Boxes and rows that the searches for the rows at some places of the tree's order look at, on average."""
    stack, reaches = np.empty(_DEPTH, np.int64), np.empty(_DEPTH, np.int64)
    total = 0
    for position in sample:
        total += tree_list(tree, copies, tree.order[position], tree.rows[position], stack, reaches, sims, rows)[1]
    return total / sample.shape[0]


# --- the blocks -----------------------------------------------------------------------------------------------------


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
def _four_similarities(rows_of, i, columns, others, out):
    """Similarities of a row with four rows, none of which has a zero: as `similarity`, four sums at a time."""
    n_features, indptr, _, data = rows_of
    one = data[indptr[i] : indptr[i] + n_features]
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
def _list_candidates(rows_of, copies, full, i, columns, others, left_out, sims, rows):
    """Make a list of candidates; return its length."""
    count, four = 0, np.empty(4, np.int64)
    for first in range(0, columns.shape[0], 4):
        n_some = min(4, columns.shape[0] - first)
        if full and n_some == 4:
            _four_similarities(rows_of, i, columns[first:], others, four)
        else:
            for k in range(n_some):
                four[k] = similarity(rows_of, i, others[columns[first + k]])
        for k in range(n_some):
            count = _insert(sims, rows, count, four[k], copies, others[columns[first + k]], left_out)
    return count


@jit_step()
def _number_at(numbers, place):
    """Return the number at a place of the sorted numbers, whose order changes.

    As ``numpy.partition``, which takes longer to compile than all else here.
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
        if place <= j:
            high = j
        elif place >= i:
            low = i
        else:
            break
    return numbers[place]


@jit_step()
def _compress(found, columns, count, wanted, error):
    """Keep the candidates that may be among the `wanted` best; return how many, and what others must reach."""
    if count <= wanted:
        return count, np.float32(-np.inf)
    bound = np.float32(_number_at(found[:count].copy(), count - wanted) - error)
    kept = 0
    for k in range(count):
        if found[k] >= bound:
            found[kept], columns[kept] = found[k], columns[k]
            kept += 1
    return kept, bound


@jit_step()
def _keep(candidates, i, value, j, wanted, apart):
    """Keep a row's product with the row at place j, where it is large enough."""
    count = candidates.counts[i]
    found, columns = candidates.found[i], candidates.columns[i]
    if count == found.shape[0]:
        count, bound = _compress(found, columns, count, wanted, apart)
        candidates.bounds[i] = max(bound, candidates.bounds[i])
        if count == found.shape[0]:
            # All of them are as good as equal. No product is so large.
            candidates.counts[i], candidates.bounds[i] = -1, np.inf
            return
    if value >= candidates.bounds[i]:
        found[count], columns[count] = value, j
        count += 1
    candidates.counts[i] = count


@jit()
def meet(products, first, second, wanted, apart, candidates):
    """Keep the largest products of the rows from place `first` on with those from `second` on, for both of them.

    From one place on they are the products of some rows with themselves. For `wanted` and `apart` see `block_lists`.
    """
    n_others = products.shape[1]
    bounds = candidates.bounds[second : second + n_others]
    hits = np.empty(n_others + 1, np.int64)
    for r in range(products.shape[0]):
        i, row = first + r, products[r]
        # So many are hits that branches, which no processor would foresee, take longer.
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
def candidate_lists(
    start, stop, wanted, apart, guesses, candidates, others, rows_of, copies, all_sims, all_rows, counts
):
    """Make lists of the rows at some places from candidates; `others` are the distinct rows of all places.

    `guesses` are what candidates had to reach from the start. Where fewer rows than wanted did, the count becomes -1.
    """
    full = _is_full(rows_of)
    for place in range(start, stop):
        i = others[place]
        if candidates.counts[place] < 0 or rows_of.indptr[i + 1] == rows_of.indptr[i]:
            continue
        columns = candidates.columns[place]
        kept, bound = _compress(candidates.found[place], columns, candidates.counts[place], wanted, apart)
        if bound < guesses[place]:
            candidates.counts[place] = -1
            continue
        left_out = copies.members[copies.head[i]]
        counts[i] = _list_candidates(
            rows_of, copies, full, i, columns[:kept], others, left_out, all_sims[i], all_rows[i]
        )  # fmt: skip


@jit()
def block_lists(products, mine, others, error, rows_of, copies, all_sims, all_rows, counts):
    """Make lists from approximate products of the distinct rows `mine` with `others`; similarities are exact.

    A product is off by `error` at most. Only rows whose product comes near to those of the list's last are candidates,
    for which the similarity is computed. Returns how many there were beyond those that any list needs.
    """
    length, n_others, beyond = all_rows.shape[1], products.shape[1], 0
    # One of the best may be the row itself. Two products whose order is wrong differ by twice the error, and round-off.
    wanted, apart = length + 1, 2.0 * error + 1e-6
    # Where so many come near, the others are looked at one by one.
    room = 4 * wanted
    found, columns = np.empty(room, products.dtype), np.empty(room, np.int64)
    full = _is_full(rows_of)
    for r in range(products.shape[0]):
        i = mine[r]
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
                        kept, bound = _compress(found, columns, kept, wanted, apart)
                        if kept == room:
                            near = False
                            break
                    if row[j] >= bound:
                        found[kept], columns[kept] = row[j], j
                        kept += 1
            if not near:
                break
        sims, rows, count = all_sims[i], all_rows[i], 0
        left_out = copies.members[copies.head[i]]
        if near:
            kept, bound = _compress(found, columns, kept, wanted, apart)
            count = _list_candidates(rows_of, copies, full, i, columns[:kept], others, left_out, sims, rows)
            beyond += max(0, kept - 2 * wanted)
        else:
            least = -np.inf
            for k in range(n_others):
                if row[k] >= least:
                    beyond += 1
                    j = others[k]
                    count = _insert(sims, rows, count, similarity(rows_of, i, j), copies, j, left_out)
                    if count == length:
                        least = sims[count - 1] / SCALE - error
        counts[i] = count
    return beyond


@jit_step()
def _spread(rows_of, i, dense):
    """Write the numbers of a row into a dense row of zeros."""
    for position in range(rows_of.indptr[i], rows_of.indptr[i + 1]):
        dense[rows_of.indices[position]] = rows_of.data[position]


@jit_step()
def _clear(rows_of, i, dense):
    """Undo `_spread`."""
    for position in range(rows_of.indptr[i], rows_of.indptr[i + 1]):
        dense[rows_of.indices[position]] = 0.0


@jit_step()
def scan_list(rows_of, copies, remaining, n_remaining, i, dense, sims, rows):
    """Find the rows most similar to the first copy of i, best first, among all that are left; return their number."""
    left_out = copies.members[copies.head[i]]
    _spread(rows_of, i, dense)
    count = 0
    for place in range(n_remaining):
        j = remaining[place]
        if copies.head[j] < copies.tail[j]:
            total = 0.0
            # Products with zeros change no sum: this is the value of `similarity`.
            for position in range(rows_of.indptr[j], rows_of.indptr[j + 1]):
                total += rows_of.data[position] * dense[rows_of.indices[position]]
            found = np.int64(np.rint(total * SCALE))
            if count < rows.shape[0] or found >= sims[count - 1]:
                count = _insert(sims, rows, count, found, copies, j, left_out)
    _clear(rows_of, i, dense)
    return count


@jit_step()
def _four_thirds(rows_of, a, b, four, out):
    """Similarities of two rows with four rows each, none of which has a zero: as `similarity`, eight sums at a time."""
    n_features, indptr, _, data = rows_of
    one, other = data[indptr[a] : indptr[a] + n_features], data[indptr[b] : indptr[b] + n_features]
    first, second = indptr[four[0]], indptr[four[1]]
    third, fourth = indptr[four[2]], indptr[four[3]]
    a_0, a_1, a_2, a_3 = 0.0, 0.0, 0.0, 0.0
    b_0, b_1, b_2, b_3 = 0.0, 0.0, 0.0, 0.0
    for k in range(n_features):
        x_0, x_1, x_2, x_3 = data[first + k], data[second + k], data[third + k], data[fourth + k]
        a_0 += one[k] * x_0
        a_1 += one[k] * x_1
        a_2 += one[k] * x_2
        a_3 += one[k] * x_3
        b_0 += other[k] * x_0
        b_1 += other[k] * x_1
        b_2 += other[k] * x_2
        b_3 += other[k] * x_3
    out[0] = np.int64(np.rint(a_0 * SCALE)) + np.int64(np.rint(b_0 * SCALE))
    out[1] = np.int64(np.rint(a_1 * SCALE)) + np.int64(np.rint(b_1 * SCALE))
    out[2] = np.int64(np.rint(a_2 * SCALE)) + np.int64(np.rint(b_2 * SCALE))
    out[3] = np.int64(np.rint(a_3 * SCALE)) + np.int64(np.rint(b_3 * SCALE))


@jit_step()
def _scan_full(rows_of, copies, remaining, n_remaining, a, b):
    """Do what `scan_third` does for rows none of which has a zero."""
    best, third = np.int64(0), np.int64(-1)
    four, sums, waiting = np.empty(4, np.int64), np.empty(4, np.int64), 0
    for place in range(n_remaining):
        j = remaining[place]
        if copies.head[j] < copies.tail[j]:
            four[waiting] = j
            waiting += 1
        if waiting == 4 or (waiting > 0 and place == n_remaining - 1):
            # Places that are not filled: any row.
            four[waiting:] = four[0]
            _four_thirds(rows_of, a, b, four, sums)
            for k in range(waiting):
                row = copies.members[copies.head[four[k]]]
                if third < 0 or sums[k] > best or (sums[k] == best and row < third):
                    best, third = sums[k], row
            waiting = 0
    return third


@jit_step()
def scan_third(rows_of, copies, remaining, n_remaining, a, b, dense, other):
    """Find the row most similar to both a and b among all that are left."""
    if _is_full(rows_of):
        return _scan_full(rows_of, copies, remaining, n_remaining, a, b)
    _spread(rows_of, a, dense)
    _spread(rows_of, b, other)
    best, third = np.int64(0), np.int64(-1)
    for place in range(n_remaining):
        j = remaining[place]
        if copies.head[j] < copies.tail[j]:
            total_a, total_b = 0.0, 0.0
            for position in range(rows_of.indptr[j], rows_of.indptr[j + 1]):
                total_a += rows_of.data[position] * dense[rows_of.indices[position]]
                total_b += rows_of.data[position] * other[rows_of.indices[position]]
            both = np.int64(np.rint(total_a * SCALE)) + np.int64(np.rint(total_b * SCALE))
            row = copies.members[copies.head[j]]
            if third < 0 or both > best or (both == best and row < third):
                best, third = both, row
    _clear(rows_of, a, dense)
    _clear(rows_of, b, other)
    return third
