"""The greedy loop of condensed information: the most similar pair of rows, then the row most similar to both.

Every row has a list of the rows most similar to it, and a heap holds the best pair that each row can offer. Rows only
ever leave. So the first row of a list that is still there is the most similar one there is, until the list runs out
and is made anew. The third row is in the lists of a pair, or near to one of its rows, unless bounds leave room for a
better one: then all rows that are left are searched.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from privsvm.numerics.compiled.jit import jit, jit_step
from privsvm.solvers.condensing.kd_tree import Places, Tree, tree_list, tree_third
from privsvm.solvers.condensing.similar_rows import (
    UNKNOWN,
    Copies,
    Near,
    SparseRows,
    scan_list,
    scan_third,
    similarity_from,
)

__all__ = ["Lists", "form_triples"]


class Lists(NamedTuple):
    """Of each distinct row: similarities and numbers of the rows most similar to it, and how many there are."""

    sims: np.ndarray
    rows: np.ndarray
    counts: np.ndarray


class _State(NamedTuple):
    """What the loop keeps up."""

    # By row number: whether it has left.
    visited: np.ndarray
    # By distinct row: work space for its place among those near to another, -1 in between; place in its list; what no
    # row outside of the list exceeds; what no pair of its first copy exceeds, and that copy's number, when they were
    # last looked at.
    place_of: np.ndarray
    pointers: np.ndarray
    bounds: np.ndarray
    keys: np.ndarray
    fronts: np.ndarray
    # Distinct rows, the most similar pair first.
    heap: np.ndarray
    # Distinct rows that the scans look at.
    remaining: np.ndarray
    # See the constants below.
    counters: np.ndarray
    # Work space of the searches.
    stack: np.ndarray
    reaches: np.ndarray
    direction: np.ndarray
    dense: np.ndarray


# Places in `_State.counters`: rows of the heap, of `remaining`, distinct rows that are left, a row number below which
# all have been visited, groups that are made, rows that are left, and rows that scans have looked at since all lists
# were made.
_SIZE, _N_REMAINING, _N_DISTINCT, _SMALLEST, _MADE, _N_LEFT, _N_SCANNED = range(7)


@jit_step()
def _sift_down(state, place):
    """Restore the heap below a place: the most similar first, of equals the one with the smallest row number."""
    keys, fronts, heap, size = state.keys, state.fronts, state.heap, state.counters[_SIZE]
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


@jit_step()
def _is_empty(rows_of, i):
    """Whether a row is all zeros."""
    return rows_of.indptr[i + 1] == rows_of.indptr[i]


@jit_step()
def _bound(lists, i):
    """Return what no row outside of a list exceeds: a list that is not full holds all rows there were."""
    length = lists.rows.shape[1]
    return lists.sims[i, length - 1] if lists.counts[i] == length else UNKNOWN


@jit()
def _fill_heap(copies, lists, state):
    """Set what each row can offer, and order the heap."""
    m = lists.counts.shape[0]
    for i in range(m):
        state.fronts[i] = copies.members[copies.head[i]]
        if lists.counts[i]:
            state.keys[i] = lists.sims[i, 0]
            state.bounds[i] = _bound(lists, i)
        else:
            # A row of zeros is as similar to any row as to any other.
            state.keys[i], state.bounds[i] = 0, 0
    for place in range(m // 2 - 1, -1, -1):
        _sift_down(state, place)


@jit_step()
def _smallest_row(state):
    """Smallest row number that is left."""
    row = state.counters[_SMALLEST]
    while state.visited[row]:
        row += 1
    state.counters[_SMALLEST] = row
    return row


@jit_step()
def _renew_list(by_tree, tree, places, rows_of, copies, lists, near, state, i):
    """Make the list of a row anew from the rows that are left."""
    if by_tree:
        lists.counts[i], _met = tree_list(
            tree, copies, i, tree.rows[places.place_of[i]], state.stack, state.reaches, lists.sims[i], lists.rows[i]
        )
    else:
        n_remaining = state.counters[_N_REMAINING]
        state.counters[_N_SCANNED] += n_remaining
        lists.counts[i] = scan_list(
            rows_of, copies, state.remaining, n_remaining, i, state.dense, lists.sims[i], lists.rows[i]
        )
        near.counts[i] = -1
    state.pointers[i] = 0
    state.bounds[i] = _bound(lists, i)


@jit_step()
def _best_partner(by_tree, tree, places, rows_of, copies, lists, near, state, i):
    """Return the row most similar to the first copy of i, and the similarity.

    Where a list has run out but another pair may be better, the row is -1, and the similarity is the list's bound.
    """
    front = state.fronts[i]
    if _is_empty(rows_of, i):
        partner = _smallest_row(state)
        if partner == front:
            partner += 1
            while state.visited[partner]:
                partner += 1
        return partner, np.int64(0)
    place = state.pointers[i]
    while place < lists.counts[i] and (state.visited[lists.rows[i, place]] or lists.rows[i, place] == front):
        place += 1
    state.pointers[i] = place
    if place == lists.counts[i]:
        if state.keys[i] > state.bounds[i]:
            return np.int64(-1), state.bounds[i]
        _renew_list(by_tree, tree, places, rows_of, copies, lists, near, state, i)
        place = state.pointers[i]
    return np.int64(lists.rows[i, place]), lists.sims[i, place]


@jit_step()
def _listed_third(rows_of, distinct_of, lists, state, a, b):
    """Return the row of two lists that is most similar to both a and b, and that sum."""
    third, best = np.int64(-1), np.int64(UNKNOWN)
    for turn in range(2):
        one, mate = (a, b) if turn == 0 else (b, a)
        for place in range(state.pointers[one], lists.counts[one]):
            found, row = lists.sims[one, place], lists.rows[one, place]
            if not state.visited[row]:
                both = found + similarity_from(rows_of, mate, distinct_of[row], best - found)
                if both > best or (both == best and row < third):
                    best, third = both, np.int64(row)
    return third, best


@jit_step()
def _bound_beyond(near, state, i):
    """Return what no row exceeds that is neither in a row's list nor near."""
    return near.bounds[i] if near.counts[i] >= 0 else state.bounds[i]


@jit_step()
def _near_third(rows_of, copies, near, state, a, b, third, best):
    """Return the row most similar to both a and b of one that is known and those near to either, and that sum."""
    place_of = state.place_of
    for place in range(near.counts[b]):
        place_of[near.rows[b, place]] = place
    for turn in range(2):
        one, mate = (a, b) if turn == 0 else (b, a)
        beyond = _bound_beyond(near, state, mate)
        for place in range(near.counts[one]):
            j, most = near.rows[one, place], beyond
            if turn == 0 and place_of[j] >= 0:
                most = near.most[b, place_of[j]]
            if near.most[one, place] + most >= best and copies.head[j] < copies.tail[j]:
                found, row = similarity_from(rows_of, one, j, best - most), copies.members[copies.head[j]]
                both = found + similarity_from(rows_of, mate, j, best - found) if found != UNKNOWN else found
                if both > best or (both == best and row < third):
                    best, third = both, row
    for place in range(near.counts[b]):
        place_of[near.rows[b, place]] = -1
    return third, best


@jit_step()
def _find_third(by_tree, tree, places, rows_of, copies, distinct_of, lists, near, state, a, b):
    """Return the row most similar to a pair that has just left."""
    third, best = np.int64(-1), np.int64(UNKNOWN)
    empty_a, empty_b = _is_empty(rows_of, a), _is_empty(rows_of, b)
    if empty_a and empty_b:
        return _smallest_row(state)
    if not empty_a and not empty_b:
        third, best = _listed_third(rows_of, distinct_of, lists, state, a, b)
        if not by_tree:
            third, best = _near_third(rows_of, copies, near, state, a, b, third, best)
        bound_a, bound_b = _bound_beyond(near, state, a), _bound_beyond(near, state, b)
        if bound_a == UNKNOWN or bound_b == UNKNOWN or best > bound_a + bound_b:
            return third
    if by_tree:
        one, other = tree.rows[places.place_of[a]], tree.rows[places.place_of[b]]
        return tree_third(tree, copies, one, other, state.direction, state.stack, state.reaches, best, third)
    n_remaining = state.counters[_N_REMAINING]
    state.counters[_N_SCANNED] += n_remaining
    return scan_third(rows_of, copies, state.remaining, n_remaining, a, b, state.dense, best, third)


@jit_step()
def _take_out(by_tree, tree, places, copies, state, distinct):
    """Take a distinct row without copies out of the tree or of the scans' count."""
    state.counters[_N_DISTINCT] -= 1
    if by_tree:
        node = places.leaf_of[distinct]
        while node >= 0:
            tree.alive[node] -= 1
            node = places.parent[node]


@jit_step()
def _drop_exhausted(copies, state):
    """Close the gaps among the rows that the scans look at."""
    kept = 0
    for place in range(state.counters[_N_REMAINING]):
        if copies.head[state.remaining[place]] < copies.tail[state.remaining[place]]:
            state.remaining[kept] = state.remaining[place]
            kept += 1
    state.counters[_N_REMAINING] = kept


@jit_step()
def _leave(copies, state, distinct):
    """Let the first copy of a distinct row leave."""
    state.visited[copies.members[copies.head[distinct]]] = True
    copies.head[distinct] += 1


@jit()
def _run(by_tree, tree, places, rows_of, copies, distinct_of, lists, near, state, groups, most):
    """Fill in the groups, one after the other, until scans have looked at `most` rows; return whether all are made."""
    head, tail, heap = copies.head, copies.tail, state.heap
    made, n_alive = state.counters[_MADE], state.counters[_N_LEFT]
    while n_alive >= 3:
        if state.counters[_N_SCANNED] > most:
            break
        i = heap[0]
        if head[i] == tail[i]:
            state.counters[_SIZE] -= 1
            heap[0] = heap[state.counters[_SIZE]]
            _sift_down(state, 0)
            continue
        if state.fronts[i] != copies.members[head[i]]:
            state.fronts[i] = copies.members[head[i]]
            _sift_down(state, 0)
            continue
        partner, found = _best_partner(by_tree, tree, places, rows_of, copies, lists, near, state, i)
        if found < state.keys[i]:
            state.keys[i] = found
            _sift_down(state, 0)
            continue
        groups[made, 0], groups[made, 1] = min(state.fronts[i], partner), max(state.fronts[i], partner)
        a, b = distinct_of[groups[made, 0]], distinct_of[groups[made, 1]]
        _leave(copies, state, a)
        _leave(copies, state, b)
        groups[made, 2] = _find_third(by_tree, tree, places, rows_of, copies, distinct_of, lists, near, state, a, b)
        c = distinct_of[groups[made, 2]]
        _leave(copies, state, c)
        made += 1
        n_alive -= 3
        # Each of them once.
        if head[a] == tail[a]:
            _take_out(by_tree, tree, places, copies, state, a)
        if b != a and head[b] == tail[b]:
            _take_out(by_tree, tree, places, copies, state, b)
        if c != a and c != b and head[c] == tail[c]:
            _take_out(by_tree, tree, places, copies, state, c)
        if not by_tree and 2 * state.counters[_N_DISTINCT] < state.counters[_N_REMAINING]:
            _drop_exhausted(copies, state)
    state.counters[_MADE], state.counters[_N_LEFT] = made, n_alive
    return n_alive < 3


def _renew_all(copies: Copies, lists: Lists, state: _State, renew: Any) -> None:
    """Make the lists of all rows that are left anew."""
    left = np.flatnonzero(copies.head < copies.tail)
    state.remaining[: left.size] = left
    state.counters[_N_REMAINING] = left.size
    state.counters[_N_SCANNED] = 0
    renew(left)
    # Rows of zeros have no list.
    listed = left[lists.counts[left] > 0]
    state.pointers[listed] = 0
    length = lists.rows.shape[1]
    state.bounds[listed] = np.where(lists.counts[listed] == length, lists.sims[listed, length - 1], UNKNOWN)


def form_triples(
    by_tree: bool,
    tree: Tree,
    places: Places,
    rows_of: SparseRows,
    copies: Copies,
    distinct_of: np.ndarray,
    lists: Lists,
    near: Near,
    renew: Callable[[np.ndarray], None] | None = None,
    scanned: Callable[[int], float] = lambda _: math.inf,
) -> np.ndarray:
    """Form the triples.

    Parameters
    ----------
    by_tree : bool
        Whether searches go through the tree, or scan all rows that are left.
    tree : Tree
        Over the distinct rows; may be empty without `by_tree`. Its counts are overwritten.
    places : Places
        Of the distinct rows in the tree.
    rows_of : SparseRows
        The distinct rows.
    copies : Copies
        Of each distinct row. Where they start is overwritten.
    distinct_of : ndarray of int (n,)
        Distinct row of every row.
    lists : Lists
        Of every distinct row but those of zeros. Are overwritten.
    near : Near
        Of every distinct row; overwritten.
    renew : callable or None, default=None
        Makes the lists of some distinct rows anew, from these rows alone. None: lists are made anew one by one.
    scanned : callable, default=no limit
        Rows that scans may look at until all lists are made anew, from the number of distinct rows that are left.

    Returns
    -------
    ndarray of int (M, 3)
        Groups; -1 in place of the members that the last one lacks.
    """
    n, m = distinct_of.size, lists.counts.size
    state = _State(
        visited=np.zeros(n, dtype=np.bool_),
        place_of=np.full(m, -1, dtype=np.int32),
        pointers=np.zeros(m, dtype=np.int64),
        bounds=np.empty(m, dtype=np.int64),
        keys=np.empty(m, dtype=np.int64),
        fronts=np.empty(m, dtype=np.int64),
        heap=np.arange(m),
        remaining=np.arange(m),
        counters=np.array([m, m, m, 0, 0, n, 0]),
        stack=np.empty(128, dtype=np.int64),
        reaches=np.empty(128, dtype=np.int64),
        direction=np.empty(tree.rows.shape[1]),
        dense=np.zeros(0 if by_tree else rows_of.n_features),
    )
    groups = np.full(((n + 2) // 3, 3), -1)
    _fill_heap(copies, lists, state)
    most = scanned(m)
    while not _run(by_tree, tree, places, rows_of, copies, distinct_of, lists, near, state, groups, most):
        _renew_all(copies, lists, state, renew)
        most = scanned(int(state.counters[_N_DISTINCT]))
    made = int(state.counters[_MADE])
    rest = np.flatnonzero(~state.visited)
    if rest.size:
        groups[made, : rest.size] = rest
    return groups
