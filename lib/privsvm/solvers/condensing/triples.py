"""The greedy loop of condensed information: the best pair, then the best third.

Every row has a list of the rows most similar to it, and a heap holds the best pair of each row. Rows are only ever
removed. So the first remaining row of a list is the most similar one, until the list is exhausted and made again. The
third row is in the lists of a pair, unless the bounds allow a better one: then all remaining rows are searched.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from privsvm.numerics.compiled.jit import jit, jit_step
from privsvm.solvers.condensing.similar_rows import (
    UNKNOWN,
    Boxes,
    Copies,
    SparseRows,
    scan_list,
    scan_third,
    set_boxes,
    similarity_from,
)


class Lists(NamedTuple):
    """Rows most similar to each distinct row: similarities, numbers, lengths."""

    sims: np.ndarray
    rows: np.ndarray
    counts: np.ndarray


class Search(NamedTuple):
    """Data of the searches, which the loop overwrites.

    `copies` and `boxes` are of the distinct rows, `boxes` of the remaining ones; `lists` leaves out rows of zeros.
    `distinct_of` has the distinct row of each of the n rows.
    """

    rows_of: SparseRows
    copies: Copies
    distinct_of: np.ndarray
    lists: Lists
    boxes: Boxes


class _State(NamedTuple):
    """State of the loop."""

    # By row number: whether the row has left.
    visited: np.ndarray
    # By distinct row: position in its list; bound on the similarity of rows outside the list; bound on the pairs of its
    # first copy, and that copy's number, when last examined.
    pointers: np.ndarray
    bounds: np.ndarray
    keys: np.ndarray
    fronts: np.ndarray
    # Heap of distinct rows, the most similar pair first.
    heap: np.ndarray
    # Distinct rows that the scans read, and their boxes.
    remaining: np.ndarray
    boxes: Boxes
    # Indexed by the constants below.
    counters: np.ndarray
    # Work space of the searches.
    dense: np.ndarray


# Positions in `_State.counters`: rows of the heap, rows of `remaining`, distinct rows that remain, a row number below
# which all have left, groups made, rows that remain, and rows that scans have read since all lists were made.
_SIZE, _N_REMAINING, _N_DISTINCT, _SMALLEST, _MADE, _N_LEFT, _N_SCANNED = range(7)


@jit_step()
def _sift_down(state, position):
    """Restore the heap below a position: by similarity, then by row number."""
    keys, fronts, heap, size = state.keys, state.fronts, state.heap, state.counters[_SIZE]
    i = heap[position]
    while True:
        child = 2 * position + 1
        if child >= size:
            break
        if child + 1 < size:
            first_child, second_child = heap[child], heap[child + 1]
            if keys[second_child] > keys[first_child] or (
                keys[second_child] == keys[first_child] and fronts[second_child] < fronts[first_child]
            ):
                child += 1
        below = heap[child]
        if keys[below] > keys[i] or (keys[below] == keys[i] and fronts[below] < fronts[i]):
            heap[position] = below
            position = child
        else:
            break
    heap[position] = i


@jit_step()
def _is_empty(rows_of, i):
    """Whether a row is all zeros."""
    return rows_of.indptr[i + 1] == rows_of.indptr[i]


@jit_step()
def _bound(lists, i):
    """Bound the similarity of rows outside a list; one that is not full has all rows."""
    length = lists.rows.shape[1]
    return lists.sims[i, length - 1] if lists.counts[i] == length else UNKNOWN


@jit()
def _fill_heap(copies, lists, state):
    """Set the best pair of each row, and order the heap."""
    m = lists.counts.shape[0]
    for i in range(m):
        state.fronts[i] = copies.members[copies.head[i]]
        if lists.counts[i]:
            state.keys[i] = lists.sims[i, 0]
            state.bounds[i] = _bound(lists, i)
        else:
            # A row of zeros has similarity 0 with every row.
            state.keys[i], state.bounds[i] = 0, 0
    for position in range(m // 2 - 1, -1, -1):
        _sift_down(state, position)


@jit_step()
def _smallest_row(state):
    """Return the smallest remaining row number."""
    row = state.counters[_SMALLEST]
    while state.visited[row]:
        row += 1
    state.counters[_SMALLEST] = row
    return row


@jit_step()
def _renew_list(rows_of, copies, lists, state, i):
    """Make the list of a row again from the remaining rows."""
    n_remaining = state.counters[_N_REMAINING]
    state.counters[_N_SCANNED] += n_remaining
    lists.counts[i] = scan_list(
        rows_of, copies, state.remaining, n_remaining, state.boxes, i, state.dense, lists.sims[i], lists.rows[i]
    )
    state.pointers[i] = 0
    state.bounds[i] = _bound(lists, i)


@jit_step()
def _best_partner(rows_of, copies, lists, state, i):
    """Return the row most similar to the first copy of i, and the similarity.

    Where a list is exhausted but another pair may be better, the row is -1, and the similarity is the list's bound.
    """
    front = state.fronts[i]
    if _is_empty(rows_of, i):
        partner = _smallest_row(state)
        if partner == front:
            partner += 1
            while state.visited[partner]:
                partner += 1
        return partner, np.int64(0)
    position = state.pointers[i]
    while position < lists.counts[i] and (state.visited[lists.rows[i, position]] or lists.rows[i, position] == front):
        position += 1
    state.pointers[i] = position
    if position == lists.counts[i]:
        if state.keys[i] > state.bounds[i]:
            return np.int64(-1), state.bounds[i]
        _renew_list(rows_of, copies, lists, state, i)
        position = state.pointers[i]
    return np.int64(lists.rows[i, position]), lists.sims[i, position]


@jit_step()
def _find_listed_third(rows_of, distinct_of, lists, state, a, b):
    """Return the row of two lists that is most similar to both a and b, and that sum."""
    third, best = np.int64(-1), np.int64(UNKNOWN)
    for turn in range(2):
        one, mate = (a, b) if turn == 0 else (b, a)
        for position in range(state.pointers[one], lists.counts[one]):
            similarity, row = lists.sims[one, position], lists.rows[one, position]
            if not state.visited[row]:
                both = similarity + similarity_from(rows_of, mate, distinct_of[row], best - similarity)
                if both > best or (both == best and row < third):
                    best, third = both, np.int64(row)
    return third, best


@jit_step()
def _find_third(rows_of, copies, distinct_of, lists, state, a, b):
    """Return the row most similar to a pair that was just removed."""
    third, best = np.int64(-1), np.int64(UNKNOWN)
    empty_a, empty_b = _is_empty(rows_of, a), _is_empty(rows_of, b)
    if empty_a and empty_b:
        return _smallest_row(state)
    if not empty_a and not empty_b:
        third, best = _find_listed_third(rows_of, distinct_of, lists, state, a, b)
        bound_a, bound_b = state.bounds[a], state.bounds[b]
        if bound_a == UNKNOWN or bound_b == UNKNOWN or best > bound_a + bound_b:
            return third
    n_remaining = state.counters[_N_REMAINING]
    state.counters[_N_SCANNED] += n_remaining
    return scan_third(rows_of, copies, state, n_remaining, a, b, best, third)


@jit_step()
def _drop_exhausted(rows_of, copies, state):
    """Close the gaps among the rows that the scans read."""
    kept = 0
    for position in range(state.counters[_N_REMAINING]):
        if copies.head[state.remaining[position]] < copies.tail[state.remaining[position]]:
            state.remaining[kept] = state.remaining[position]
            kept += 1
    state.counters[_N_REMAINING] = kept
    set_boxes(rows_of, state.remaining, kept, state.boxes)


@jit_step()
def _leave(copies, state, distinct):
    """Remove the first copy of a distinct row."""
    state.visited[copies.members[copies.head[distinct]]] = True
    copies.head[distinct] += 1


@jit()
def _run(search, state, groups, most):
    """Form groups until scans have read `most` rows; return whether all are formed."""
    rows_of, copies, distinct_of, lists, _ = search
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
        partner, similarity = _best_partner(rows_of, copies, lists, state, i)
        if similarity < state.keys[i]:
            state.keys[i] = similarity
            _sift_down(state, 0)
            continue
        groups[made, 0], groups[made, 1] = min(state.fronts[i], partner), max(state.fronts[i], partner)
        a, b = distinct_of[groups[made, 0]], distinct_of[groups[made, 1]]
        _leave(copies, state, a)
        _leave(copies, state, b)
        groups[made, 2] = _find_third(rows_of, copies, distinct_of, lists, state, a, b)
        c = distinct_of[groups[made, 2]]
        _leave(copies, state, c)
        made += 1
        n_alive -= 3
        # Each distinct row is removed once.
        state.counters[_N_DISTINCT] -= (
            int(head[a] == tail[a]) + int(b != a and head[b] == tail[b]) + int(c != a and c != b and head[c] == tail[c])
        )
        if 2 * state.counters[_N_DISTINCT] < state.counters[_N_REMAINING]:
            _drop_exhausted(rows_of, copies, state)
    state.counters[_MADE], state.counters[_N_LEFT] = made, n_alive
    return n_alive < 3


def _renew_all(copies: Copies, lists: Lists, state: _State, renew: Any) -> None:
    """Make the lists of all remaining rows again."""
    remaining = np.flatnonzero(copies.head < copies.tail)
    state.remaining[: remaining.size] = remaining
    state.counters[_N_REMAINING] = remaining.size
    state.counters[_N_SCANNED] = 0
    renew(remaining)
    # Rows of zeros have no list.
    listed = remaining[lists.counts[remaining] > 0]
    state.pointers[listed] = 0
    length = lists.rows.shape[1]
    state.bounds[listed] = np.where(lists.counts[listed] == length, lists.sims[listed, length - 1], UNKNOWN)


def form_triples(
    search: Search,
    renew: Callable[[np.ndarray], None],
    scan_budget: Callable[[int], float],
) -> np.ndarray:
    """Form groups of three rows, as row numbers (M, 3); -1 for missing members of the last one.

    `search` is overwritten. `renew` makes the lists of the remaining distinct rows again; `scan_budget` says, by the
    number of remaining distinct rows, how many rows scans may read before that.
    """
    rows_of, copies, distinct_of, lists, boxes = search
    n, m = distinct_of.size, lists.counts.size
    state = _State(
        visited=np.zeros(n, dtype=np.bool_),
        pointers=np.zeros(m, dtype=np.int64),
        bounds=np.empty(m, dtype=np.int64),
        keys=np.empty(m, dtype=np.int64),
        fronts=np.empty(m, dtype=np.int64),
        heap=np.arange(m),
        remaining=np.arange(m),
        boxes=boxes,
        counters=np.array([m, m, m, 0, 0, n, 0]),
        dense=np.zeros(rows_of.n_features),
    )
    groups = np.full(((n + 2) // 3, 3), -1)
    _fill_heap(copies, lists, state)
    budget = scan_budget(m)
    while not _run(search, state, groups, budget):
        _renew_all(copies, lists, state, renew)
        budget = scan_budget(int(state.counters[_N_DISTINCT]))
    made = int(state.counters[_MADE])
    rest = np.flatnonzero(~state.visited)
    if rest.size:
        groups[made, : rest.size] = rest
    return groups
