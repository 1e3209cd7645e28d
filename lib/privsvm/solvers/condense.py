"""Condensed information: the greedy triples of CI-SVM, exactly and without the matrix of similarities.

The paper's procedure takes, again and again, the most similar pair of the rows that are left, then the row that is most
similar to both. Followed literally, that is a search through a matrix of n^2 numbers for each of n / 3 triples. Here
every row keeps a short list of the rows most similar to it. Rows only ever leave, so the first one of a list that is
still there is the most similar row there is; only when a list has run out is it made anew. A heap holds the best pair
that each row can offer.

Two engines make the lists: a k-d tree that rows can be taken out of, for few features, and blocks of matrix products,
for many features or sparse rows. Both compare similarities that are computed in one order of summation and rounded to
multiples of 2^-46: what differs by round-off only counts as equal. Of equals the row with the smaller number is taken.
So both give the same triples, those of the printed steps.

Equal rows are searched for, and kept in the heap, as one. Of these the smallest number always leaves first.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse
from numba import njit

from privsvm.errors import nearest_name
from privsvm.numerics.rows import squared_norms
from privsvm.numerics.threads import one_blas_thread, thread_pool

__all__ = [
    "ENGINES",
    "condensed_rows",
    "feature_weights",
    "greedy_triples",
    "warm_up",
    "weighted_unit_rows",
]

ENGINES = ("tree", "blocks")

_SCALE = 2.0**46
# Less than any similarity, in units of it.
_UNKNOWN = -(2**62)

# Rows in a leaf of the tree, and in a list.
_LEAF = 12
_LIST = 12
# "auto" takes the tree up to so many features, if the searches for a sample of rows meet no more than a share of all
# rows and boxes. Measured on one thread: a row or box that is met takes 35 to 50 ns up to 16 features (100 at 64), a
# pair of rows in the blocks 1.6 to 3 ns (11 at 64), so that a share of 0.05 is where both take the same time.
_TREE_FEATURES = 64
_SAMPLE = 32
_MET_SHARE = 0.05
# Products are made from dense rows above this share of numbers that are not 0, or where all rows have no more numbers;
# a block of products has about so many. In single precision, unless more than a share of all similarities must then
# be computed exactly.
_DENSE_SHARE = 0.02
_DENSE_NUMBERS = 50_000_000
_BLOCK_NUMBERS = 16_000_000
_COMPUTED_SHARE = 0.1


@njit(cache=True, nogil=True)
def _similarity(n_features, indptr, indices, data, a, b):
    """Cosine of two rows as a whole number of units; the terms in the order of the features, so equal for both ways."""
    total = 0.0
    i, j, stop_i, stop_j = indptr[a], indptr[b], indptr[a + 1], indptr[b + 1]
    if stop_i - i == n_features and stop_j - j == n_features:
        for k in range(n_features):
            total += data[i + k] * data[j + k]
        return np.int64(np.rint(total * _SCALE))
    while i < stop_i and j < stop_j:
        if indices[i] == indices[j]:
            total += data[i] * data[j]
            i += 1
            j += 1
        elif indices[i] < indices[j]:
            i += 1
        else:
            j += 1
    return np.int64(np.rint(total * _SCALE))


@njit(cache=True, nogil=True)
def _insert(sims, rows, count, similarity, copies, distinct, left_out):
    """Put a row's copies into a list ordered by similarity, then number, except one; returns the list's new length."""
    members, head, tail = copies
    length = rows.shape[0]
    for position in range(head[distinct], tail[distinct]):
        row = members[position]
        if row == left_out:
            continue
        place = count
        if count == length:
            place -= 1
            if similarity < sims[place] or (similarity == sims[place] and row > rows[place]):
                break
        else:
            count += 1
        while place > 0 and (similarity > sims[place - 1] or (similarity == sims[place - 1] and row < rows[place - 1])):
            sims[place], rows[place] = sims[place - 1], rows[place - 1]
            place -= 1
        sims[place], rows[place] = similarity, row
    return count


# --- equal rows -----------------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def _hash_rows(indptr, indices, bits, hashes):
    """Hash the entries of every row."""
    for i in range(hashes.shape[0]):
        value = np.uint64(14695981039346656037)
        for position in range(indptr[i], indptr[i + 1]):
            for part in (np.uint64(indices[position]), bits[position]):
                value = (value ^ part) * np.uint64(1099511628211)
                value ^= value >> np.uint64(29)
        hashes[i] = value


@njit(cache=True, nogil=True)
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


def _find_copies(unit_rows) -> tuple[np.ndarray, np.ndarray, tuple[np.ndarray, ...]]:
    """Find equal rows.

    Returns
    -------
    first : ndarray of int (m,)
        Smallest row number of each distinct row, ascending.
    distinct_of : ndarray of int (n,)
        Distinct row of every row.
    copies : tuple of ndarray of int (n,), (m,), (m,)
        Row numbers by distinct row, each one's ascending; where those of a distinct row start, and end.
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
    return first, distinct_of, (members, np.concatenate([[0], ends[:-1]])[: first.size], ends)


# --- the tree -------------------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def _build_tree(U, order, low, high, first, last, parent, child, leaf_of):
    """Split rows at the median of the widest feature until few are left; returns the number of nodes."""
    n, d = U.shape
    first[0], last[0], parent[0] = 0, n, -1
    nodes = 1
    at = 0
    while at < nodes:
        start, stop = first[at], last[at]
        for k in range(d):
            low[at, k], high[at, k] = np.inf, -np.inf
        for position in range(start, stop):
            row = order[position]
            for k in range(d):
                low[at, k] = min(low[at, k], U[row, k])
                high[at, k] = max(high[at, k], U[row, k])
        widest, width = 0, -1.0
        for k in range(d):
            if high[at, k] - low[at, k] > width:
                widest, width = k, high[at, k] - low[at, k]
        if stop - start <= _LEAF or width <= 0.0:
            child[at] = -1
            for position in range(start, stop):
                leaf_of[order[position]] = at
        else:
            part = order[start:stop].copy()
            values = np.empty(part.shape[0])
            for position in range(part.shape[0]):
                values[position] = U[part[position], widest]
            sorting = np.argsort(values)
            for position in range(part.shape[0]):
                order[start + position] = part[sorting[position]]
            middle = (start + stop) // 2
            child[at] = nodes
            for number in range(2):
                node = nodes + number
                parent[node] = at
                first[node] = start if number == 0 else middle
                last[node] = middle if number == 0 else stop
            nodes += 2
        at += 1
    return nodes


@njit(cache=True, nogil=True)
def _reach(low, high, node, q, square, norm):
    """Units of similarity that a unit row in the node's box may have with ``norm * q`` at most; q of norm 1."""
    distance = 0.0
    for k in range(q.shape[0]):
        if q[k] < low[node, k]:
            distance += (low[node, k] - q[k]) ** 2
        elif q[k] > high[node, k]:
            distance += (q[k] - high[node, k]) ** 2
    # Round-off of the rows' norms and of the sums is below a few units for each feature.
    return np.int64(math.ceil(0.5 * norm * (square + 1.0 - distance) * _SCALE)) + 64 + 8 * q.shape[0]


@njit(cache=True, nogil=True)
def _tree_list(tree, copies, i, q, stack, reaches, sims, rows):
    """Find the rows most similar to q, the first copy of i, best first; returns their number, and how much was met."""
    P, order, low, high, first, last, child, alive, zeros = tree
    members, head, tail = copies
    left_out = members[head[i]]
    square = 0.0
    for k in range(q.shape[0]):
        square += q[k] * q[k]
    length = rows.shape[0]
    count, met, depth = 0, 0, 1
    stack[0], reaches[0] = 0, -_UNKNOWN
    while depth > 0:
        depth -= 1
        node = stack[depth]
        if count == length and reaches[depth] < sims[count - 1]:
            continue
        if child[node] < 0:
            for position in range(first[node], last[node]):
                j = order[position]
                if head[j] < tail[j]:
                    total = 0.0
                    for k in range(q.shape[0]):
                        total += q[k] * P[position, k]
                    similarity = np.int64(np.rint(total * _SCALE))
                    if count < length or similarity >= sims[count - 1]:
                        count = _insert(sims, rows, count, similarity, copies, j, left_out)
            met += last[node] - first[node]
        else:
            depth = _push(low, high, child[node], alive, zeros, q, square, 1.0, stack, reaches, depth)
            met += 2
    return count, met


@njit(cache=True, nogil=True)
def _push(low, high, near, alive, zeros, q, square, norm, stack, reaches, depth):
    """Put the two halves of a box on the stack, the one of the nearer rows on top; returns the stack's new depth."""
    far = near + 1
    reach, far_reach = _UNKNOWN, _UNKNOWN
    if alive[near] > 0:
        reach = _reach(low, high, near, q, square, norm)
        if zeros[near]:
            reach = max(reach, 0)
    if alive[far] > 0:
        far_reach = _reach(low, high, far, q, square, norm)
        if zeros[far]:
            far_reach = max(far_reach, 0)
    if reach < far_reach:
        near, far = far, near
        reach, far_reach = far_reach, reach
    if alive[far] > 0:
        stack[depth], reaches[depth] = far, far_reach
        depth += 1
    if alive[near] > 0:
        stack[depth], reaches[depth] = near, reach
        depth += 1
    return depth


@njit(cache=True, nogil=True)
def _tree_third(tree, copies, one, other, q, stack, reaches, best, third):
    """Find the row most similar to two rows, where one is known already or is -1; `q` is overwritten."""
    P, order, low, high, first, last, child, alive, zeros = tree
    members, head, tail = copies
    norm = 0.0
    for k in range(q.shape[0]):
        q[k] = one[k] + other[k]
        norm += q[k] * q[k]
    norm = math.sqrt(norm)
    square = 0.0
    for k in range(q.shape[0]):
        # Opposite rows: all that is bounded is a product with zero.
        q[k] = q[k] / norm if norm > 0.0 else 0.0
        square += q[k] * q[k]
    depth = 1
    stack[0], reaches[0] = 0, -_UNKNOWN
    while depth > 0:
        depth -= 1
        node = stack[depth]
        if third >= 0 and reaches[depth] < best:
            continue
        if child[node] < 0:
            for position in range(first[node], last[node]):
                j = order[position]
                if head[j] < tail[j]:
                    total_one, total_other = 0.0, 0.0
                    for k in range(q.shape[0]):
                        total_one += one[k] * P[position, k]
                        total_other += other[k] * P[position, k]
                    both = np.int64(np.rint(total_one * _SCALE)) + np.int64(np.rint(total_other * _SCALE))
                    row = members[head[j]]
                    if third < 0 or both > best or (both == best and row < third):
                        best, third = both, row
        else:
            depth = _push(low, high, child[node], alive, zeros, q, square, norm, stack, reaches, depth)
    return third


@njit(cache=True, nogil=True)
def _tree_lists(tree, copies, empty, start, stop, all_sims, all_rows, counts):
    """Make the lists of the rows between two places of the tree's order."""
    stack, reaches = np.empty(128, np.int64), np.empty(128, np.int64)
    P, order = tree[0], tree[1]
    for position in range(start, stop):
        # Neighbours one after the other: what the search reads is still at hand.
        i = order[position]
        if not empty[i]:
            counts[i], _met = _tree_list(tree, copies, i, P[position], stack, reaches, all_sims[i], all_rows[i])


@njit(cache=True, nogil=True)
def _rows_met(tree, copies, sample, length):
    """Boxes and rows that the searches for the rows at some places of the tree's order look at, on average."""
    stack, reaches = np.empty(128, np.int64), np.empty(128, np.int64)
    sims, rows = np.empty(length, np.int64), np.empty(length, np.int32)
    total = 0
    for position in sample:
        total += _tree_list(tree, copies, tree[1][position], tree[0][position], stack, reaches, sims, rows)[1]
    return total / sample.shape[0]


# --- the blocks -----------------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def _block_lists(products, first_row, error, rows_of, copies, all_sims, all_rows, counts):
    """Make lists from approximate products of some rows with all; what may belong there is computed exactly.

    Returns how many similarities that were.
    """
    n_features, indptr, indices, data = rows_of
    length, computed = all_rows.shape[1], 0
    for r in range(products.shape[0]):
        i = first_row + r
        if indptr[i + 1] == indptr[i]:
            continue
        sims, rows, count = all_sims[i], all_rows[i], 0
        left_out = copies[0][copies[1][i]]
        least = -np.inf
        for j in range(products.shape[1]):
            if products[r, j] >= least:
                computed += 1
                similarity = _similarity(n_features, indptr, indices, data, i, j)
                count = _insert(sims, rows, count, similarity, copies, j, left_out)
                if count == length:
                    least = sims[count - 1] / _SCALE - error
        counts[i] = count
    return computed


@njit(cache=True, nogil=True)
def _scan_list(rows_of, copies, remaining, n_remaining, i, work, sims, rows):
    """Find the rows most similar to the first copy of i, best first, among all that are left; returns their number."""
    _n_features, indptr, indices, data = rows_of
    members, head, tail = copies
    left_out = members[head[i]]
    for position in range(indptr[i], indptr[i + 1]):
        work[indices[position]] = data[position]
    count = 0
    for place in range(n_remaining):
        j = remaining[place]
        if head[j] < tail[j]:
            total = 0.0
            # Products with zeros change no sum: this is the value of `_similarity`.
            for position in range(indptr[j], indptr[j + 1]):
                total += data[position] * work[indices[position]]
            similarity = np.int64(np.rint(total * _SCALE))
            if count < rows.shape[0] or similarity >= sims[count - 1]:
                count = _insert(sims, rows, count, similarity, copies, j, left_out)
    for position in range(indptr[i], indptr[i + 1]):
        work[indices[position]] = 0.0
    return count


@njit(cache=True, nogil=True)
def _scan_third(rows_of, copies, remaining, n_remaining, a, b, work, other):
    """Find the row most similar to both a and b among all that are left."""
    _n_features, indptr, indices, data = rows_of
    members, head, tail = copies
    for position in range(indptr[a], indptr[a + 1]):
        work[indices[position]] = data[position]
    for position in range(indptr[b], indptr[b + 1]):
        other[indices[position]] = data[position]
    best, third = np.int64(0), -1
    for place in range(n_remaining):
        j = remaining[place]
        if head[j] < tail[j]:
            total_a, total_b = 0.0, 0.0
            for position in range(indptr[j], indptr[j + 1]):
                total_a += data[position] * work[indices[position]]
                total_b += data[position] * other[indices[position]]
            both = np.int64(np.rint(total_a * _SCALE)) + np.int64(np.rint(total_b * _SCALE))
            row = members[head[j]]
            if third < 0 or both > best or (both == best and row < third):
                best, third = both, row
    for position in range(indptr[a], indptr[a + 1]):
        work[indices[position]] = 0.0
    for position in range(indptr[b], indptr[b + 1]):
        other[indices[position]] = 0.0
    return third


# --- the greedy procedure -------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def _sift_down(keys, fronts, heap, size, place):
    """Restore the heap below a place: the most similar first, of equals the one with the smallest row number."""
    i = heap[place]
    while True:
        child = 2 * place + 1
        if child >= size:
            break
        if child + 1 < size:
            left, right = heap[child], heap[child + 1]
            if keys[right] > keys[left] or (keys[right] == keys[left] and fronts[right] < fronts[left]):
                child += 1
        below = heap[child]
        if keys[below] > keys[i] or (keys[below] == keys[i] and fronts[below] < fronts[i]):
            heap[place] = below
            place = child
        else:
            break
    heap[place] = i


@njit(cache=True, nogil=True)
def _greedy(by_tree, tree, places, rows_of, copies, distinct_of, all_sims, all_rows, counts):
    """Form the triples; returns groups (M, 3), with -1 where the last one has fewer members."""
    n_features, indptr, indices, data = rows_of
    members, head, tail = copies
    P, alive = tree[0], tree[7]
    place_of, leaf_of, parent = places
    n, (m, length) = distinct_of.shape[0], all_rows.shape
    groups = np.full(((n + 2) // 3, 3), -1, np.int64)
    visited = np.zeros(n, np.bool_)
    pointers = np.zeros(m, np.int64)
    # What no row outside of a list exceeds: a list that was not filled to its end holds all rows there were.
    bounds = np.empty(m, np.int64)
    # What no pair of a row's first copy exceeds, and that copy's number, when they were last looked at.
    keys, fronts = np.empty(m, np.int64), np.empty(m, np.int64)
    for i in range(m):
        fronts[i] = members[head[i]]
        if counts[i]:
            keys[i] = all_sims[i, 0]
            bounds[i] = all_sims[i, length - 1] if counts[i] == length else _UNKNOWN
        else:
            # A row of zeros is as similar to any as to any other.
            keys[i], bounds[i] = 0, 0
    heap = np.arange(m)
    for place in range(m // 2 - 1, -1, -1):
        _sift_down(keys, fronts, heap, m, place)
    size = m
    remaining, n_remaining, n_distinct, n_alive, smallest = np.arange(m), m, m, n, 0
    stack, reaches, q = np.empty(128, np.int64), np.empty(128, np.int64), np.empty(P.shape[1])
    work, other = np.zeros(0 if by_tree else n_features), np.zeros(0 if by_tree else n_features)
    made = 0
    while n_alive >= 3:
        i = heap[0]
        if head[i] == tail[i]:
            size -= 1
            heap[0] = heap[size]
            _sift_down(keys, fronts, heap, size, 0)
            continue
        if fronts[i] != members[head[i]]:
            fronts[i] = members[head[i]]
            _sift_down(keys, fronts, heap, size, 0)
            continue
        empty = indptr[i + 1] == indptr[i]
        if empty:
            while visited[smallest]:
                smallest += 1
            partner = smallest
            if partner == fronts[i]:
                partner += 1
                while visited[partner]:
                    partner += 1
            similarity = np.int64(0)
        else:
            while pointers[i] < counts[i] and (
                visited[all_rows[i, pointers[i]]] or all_rows[i, pointers[i]] == fronts[i]
            ):
                pointers[i] += 1
            if pointers[i] == counts[i]:
                if keys[i] > bounds[i]:
                    # Try again when no other pair can be better than what this row may still have.
                    keys[i] = bounds[i]
                    _sift_down(keys, fronts, heap, size, 0)
                    continue
                if by_tree:
                    counts[i], _met = _tree_list(
                        tree, copies, i, P[place_of[i]], stack, reaches, all_sims[i], all_rows[i]
                    )
                else:
                    counts[i] = _scan_list(rows_of, copies, remaining, n_remaining, i, work, all_sims[i], all_rows[i])
                pointers[i] = 0
                bounds[i] = all_sims[i, length - 1] if counts[i] == length else _UNKNOWN
            similarity, partner = all_sims[i, pointers[i]], all_rows[i, pointers[i]]
        if similarity < keys[i]:
            keys[i] = similarity
            _sift_down(keys, fronts, heap, size, 0)
            continue
        groups[made, 0], groups[made, 1] = min(fronts[i], partner), max(fronts[i], partner)
        a, b = distinct_of[groups[made, 0]], distinct_of[groups[made, 1]]
        for distinct in (a, b):
            visited[members[head[distinct]]] = True
            head[distinct] += 1
        third, best = -1, _UNKNOWN
        if indptr[a + 1] > indptr[a] and indptr[b + 1] > indptr[b]:
            for one, mate in ((a, b), (b, a)):
                for place in range(pointers[one], counts[one]):
                    row = all_rows[one, place]
                    if not visited[row]:
                        both = all_sims[one, place] + _similarity(
                            n_features, indptr, indices, data, mate, distinct_of[row]
                        )
                        if both > best or (both == best and row < third):
                            best, third = both, row
            certain = bounds[a] == _UNKNOWN or bounds[b] == _UNKNOWN or best > bounds[a] + bounds[b]
        else:
            certain = False
        if third < 0 and indptr[a + 1] == indptr[a] and indptr[b + 1] == indptr[b]:
            third = smallest
            while visited[third]:
                third += 1
        elif by_tree and not certain:
            third = _tree_third(tree, copies, P[place_of[a]], P[place_of[b]], q, stack, reaches, best, third)
        elif not certain:
            third = _scan_third(rows_of, copies, remaining, n_remaining, a, b, work, other)
        c = distinct_of[third]
        visited[third] = True
        head[c] += 1
        groups[made, 2] = third
        made += 1
        n_alive -= 3
        for place, distinct in enumerate((a, b, c)):
            if head[distinct] < tail[distinct] or (place > 0 and distinct == a) or (place > 1 and distinct == b):
                continue
            n_distinct -= 1
            if by_tree:
                node = leaf_of[distinct]
                while node >= 0:
                    alive[node] -= 1
                    node = parent[node]
        if not by_tree and 2 * n_distinct < n_remaining:
            kept = 0
            for place in range(n_remaining):
                if head[remaining[place]] < tail[remaining[place]]:
                    remaining[kept] = remaining[place]
                    kept += 1
            n_remaining = kept
    place = 0
    for row in range(n):
        if not visited[row]:
            groups[made, place] = row
            place += 1
    return groups


# --- around it ------------------------------------------------------------------------------------------------------


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
    rows = _sorted_rows(X)
    n, d = rows.shape
    if n == 0:
        return np.full(d, 1.0 / max(d, 1))
    # Divided by the largest entry of each feature, so that no square over- or underflows.
    largest = abs(rows).max(axis=0).toarray().ravel()
    values = rows.data / np.where(largest > 0, largest, 1.0)[rows.indices]
    missing = n - np.bincount(rows.indices, minlength=d)
    mean = np.bincount(rows.indices, values, minlength=d) / n
    squares = np.bincount(rows.indices, (values - mean[rows.indices]) ** 2, minlength=d) + missing * mean**2
    varies = (rows.max(axis=0) != rows.min(axis=0)).toarray().ravel()
    deviation = np.sqrt(squares / max(n - 1, 1))
    size, most = np.abs(mean), math.sqrt(n)
    variation = np.full(d, most)
    np.divide(deviation, size, out=variation, where=deviation < most * size)
    variation[~varies] = 0.0
    total = variation.sum()
    return variation / total if total > 0 else np.full(d, 1.0 / max(d, 1))


def weighted_unit_rows(X, weights: np.ndarray) -> Any:
    """Rows (n, d) times the weights (d,), divided by their norm, as CSR; rows of zeros stay what they are."""
    weighted = _sorted_rows(X)
    weighted.data *= weights[weighted.indices]
    _scale_rows(weighted.indptr, weighted.data)
    weighted.eliminate_zeros()
    return weighted


@njit(cache=True, nogil=True)
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
        depends on the number of rows and on how many dimensions they fill: the tree from about 1,000 rows in 3, 10,000
        in 6 or 60,000 in 8, and where rows lie in clusters or near a surface. "tree" makes the rows dense.
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
    rows_of = (
        d,
        distinct.indptr.astype(np.int64),
        distinct.indices.astype(np.int32),
        np.ascontiguousarray(distinct.data, dtype=np.float64),
    )
    m, length = first.size, min(_LIST, max(n - 1, 1))
    empty = np.diff(rows_of[1]) == 0
    by_tree = engine == "tree" or (engine == "auto" and d <= _TREE_FEATURES and m > 0)
    tree, places = _plant(distinct.toarray() if by_tree else np.zeros((0, d)), empty)
    if by_tree and engine == "auto":
        by_tree = _rows_met(tree, copies, np.linspace(0, m - 1, _SAMPLE).astype(np.int64), length) <= _MET_SHARE * m
    lists = np.zeros((m, length), np.int64), np.zeros((m, length), np.int32), np.zeros(m, np.int64)
    with one_blas_thread(), thread_pool(n_threads) as pool:
        if by_tree:
            parts = np.linspace(0, m, 8 * n_threads + 1).astype(np.int64)
            work: Any = ((_tree_lists, tree, copies, empty, *part, *lists) for part in itertools.pairwise(parts))
        else:
            work = _block_jobs(distinct, rows_of, copies, lists)
        for _ in (pool.map if pool else map)(lambda job: job[0](*job[1:]), work):
            pass
    return _greedy(by_tree, tree, places, rows_of, copies, distinct_of, *lists)


def _plant(U: np.ndarray, empty: np.ndarray) -> tuple[tuple[np.ndarray, ...], tuple[np.ndarray, ...]]:
    """Build the tree over rows U (m, d), some of which are zeros.

    Returns
    -------
    tree : tuple of ndarray
        Rows in the tree's order; their numbers; and for each node the corners of its box, the places of its rows
        (first, and behind the last), its first child (the second comes next) or -1, the number of its rows that have
        copies left, and whether a row of zeros is among them.
    places : tuple of ndarray
        Each row's place in the tree's order, and its leaf; each node's parent.
    """
    m, d = U.shape
    # No leaf has fewer than half of the rows it might have.
    size = 4 * (m // _LEAF) + 8
    order, place_of, leaf_of = np.arange(m), np.empty(m, np.int64), np.zeros(m, np.int64)
    low, high = np.empty((size, d)), np.empty((size, d))
    first, last, alive = np.zeros(size, np.int64), np.zeros(size, np.int64), np.zeros(size, np.int64)
    parent, child = np.full(size, -1, np.int64), np.full(size, -1, np.int64)
    zeros = np.zeros(size, np.bool_)
    if m:
        nodes = _build_tree(U, order, low, high, first, last, parent, child, leaf_of)
        alive[:nodes] = (last - first)[:nodes]
        before = np.concatenate([[0], np.cumsum(empty[order])])
        zeros[:nodes] = before[last[:nodes]] > before[first[:nodes]]
        place_of[order] = np.arange(m)
    return (U[order], order, low, high, first, last, child, alive, zeros), (place_of, leaf_of, parent)


def _block_jobs(distinct, rows_of, copies, lists) -> Iterator[tuple[Any, ...]]:
    """Jobs that make the lists of some rows each, from products with all rows."""
    m, d = distinct.shape
    dense = distinct.nnz > _DENSE_SHARE * m * d or m * d < _DENSE_NUMBERS
    step = max(1, min(512, _BLOCK_NUMBERS // max(m, 1)))

    def job_in(precision: type) -> Callable[[int, int], int]:
        rows = distinct.astype(precision)
        others = np.ascontiguousarray(rows.toarray().T) if dense else rows.T.tocsr()
        # Of products of rows of norm 1, and of rounding them to whole units.
        error = np.finfo(precision).eps * (np.diff(distinct.indptr).max(initial=0) + 4) + 1.0 / _SCALE

        def fill(start: int, stop: int) -> int:
            block = rows[start:stop]
            products = (block.toarray() @ others) if dense else (block @ others).toarray()
            return _block_lists(products, start, error, rows_of, copies, *lists)

        return fill

    # Half the digits are enough unless they leave most rows to choose from, as rows of nearly one direction do.
    fill, sample = job_in(np.float32), min(_SAMPLE, m)
    if fill(0, sample) > _COMPUTED_SHARE * sample * m:
        fill = job_in(np.float64)
    return ((fill, start, min(start + step, m)) for start in range(0, m, step))


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
    """Compile the kernels."""
    rows = weighted_unit_rows(np.eye(4) + 0.5, np.full(4, 0.25))
    for engine in ENGINES:
        greedy_triples(rows, engine)
