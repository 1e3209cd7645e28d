"""Exact lists of similar rows by a k-d tree that rows can be removed from.

Similarities have the bits of `privsvm.solvers.condensing.similar_rows`. Eight rows of a leaf are compared together.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from privsvm.numerics.compiled.jit import jit, jit_step
from privsvm.numerics.compiled.vector_code import INDEX, VECTOR, WIDTH, ZEROS, VectorCode
from privsvm.solvers.condensing.similar_rows import SCALE, UNKNOWN, insert_copies

__all__ = ["RowPositions", "Tree", "plant", "rows_met", "tree_list", "tree_lists", "tree_third"]

# Rows in a leaf.
_LEAF = 48
# Depth of the stack of a search.
_DEPTH = 128


class Tree(NamedTuple):
    """A k-d tree that rows can be removed from."""

    # Rows in the tree's order, padded with zeros to a multiple of eight numbers, and their numbers.
    rows: np.ndarray
    order: np.ndarray
    # Rows of the leaves in tiles of eight: for each feature, the numbers of eight rows.
    tiles: np.ndarray
    # Nodes: corners of the box, padded like rows; range of rows; a leaf's first tile; first child (the second follows)
    # or -1; number of rows with copies left; whether a row of zeros is among them.
    low: np.ndarray
    high: np.ndarray
    first: np.ndarray
    last: np.ndarray
    tile: np.ndarray
    child: np.ndarray
    alive: np.ndarray
    zeros: np.ndarray


class RowPositions(NamedTuple):
    """Position of each row in the tree's order, and its leaf; parent of each node."""

    place_of: np.ndarray
    leaf_of: np.ndarray
    parent: np.ndarray


# --- eight numbers at a time ----------------------------------------------------------------------------------------


def _products(context, builder, signature, arguments):
    code = VectorCode(context, builder, signature, arguments)
    tiles, q, out = 0, 2, 5
    tile, n_features, bound = (arguments[i] for i in (1, 3, 4))
    start = code.address(tiles, builder.mul(tile, builder.mul(n_features, INDEX(WIDTH))))
    total = cgutils.alloca_once(builder, VECTOR)
    builder.store(ZEROS, total)
    with cgutils.for_range(builder, n_features, intp=INDEX) as loop:
        value = code.spread(builder.load(code.address(q, loop.index)))
        column = code.load(builder.gep(start, [builder.mul(loop.index, INDEX(WIDTH))]))
        # Round-off: rounded after each step, as elsewhere, so that similarities have equal bits.
        builder.store(builder.fadd(builder.load(total), builder.fmul(value, column)), total)
    products = builder.load(total)
    code.store(products, code.address(out, INDEX(0)))
    reached = builder.fcmp_ordered(">=", products, code.spread(bound))
    return builder.zext(builder.bitcast(reached, ir.IntType(WIDTH)), INDEX)


def _typed_products(typingctx, tiles, tile, q, n_features, bound, out):
    return types.int64(tiles, tile, q, n_features, bound, out), _products


# ``function(tiles, tile, q, n_features, bound, out)``: sets `out` to the products of q with the rows of a tile; returns
# as bits which are at least `bound`.
_products_of_eight: Any = intrinsic(_typed_products)


def _distance(context, builder, signature, arguments):
    code = VectorCode(context, builder, signature, arguments)
    low, high, q = 0, 1, 3
    node, width = arguments[2], arguments[4]
    start = builder.mul(node, width)
    corners = [code.address(array, start) for array in (low, high)]
    kind = ir.FunctionType(VECTOR, [VECTOR, VECTOR])
    maximum = cgutils.get_or_insert_function(builder.module, kind, f"llvm.maxnum.v{WIDTH}f64")
    total = cgutils.alloca_once(builder, VECTOR)
    builder.store(ZEROS, total)
    with cgutils.for_range_slice(builder, INDEX(0), width, INDEX(WIDTH), intp=INDEX) as (k, _):
        value = code.load(code.address(q, k))
        below, above = (code.load(builder.gep(corner, [k])) for corner in corners)
        sides = builder.fsub(below, value), builder.fsub(value, above)
        finite = ("nnan", "ninf", "nsz")
        outside = builder.call(maximum, [builder.call(maximum, sides, fastmath=finite), ZEROS], fastmath=finite)
        builder.store(code.multiply_add(outside, outside, builder.load(total)), total)
    kind = ir.FunctionType(ir.DoubleType(), [ir.DoubleType(), VECTOR])
    add_up = cgutils.get_or_insert_function(builder.module, kind, f"llvm.vector.reduce.fadd.v{WIDTH}f64")
    return builder.call(add_up, [ir.DoubleType()(0.0), builder.load(total)], fastmath=("reassoc",))


def _typed_distance(typingctx, low, high, node, q, width):
    return types.float64(low, high, node, q, width), _distance


# Squared distance of q from the box of a node.
_square_distance: Any = intrinsic(_typed_distance)


# --- building -------------------------------------------------------------------------------------------------------


@jit_step()
def _set_box(U, order, start, stop, low, high):
    """Set the corners of a node's box.

    Return its widest feature, and how wide it is there.
    """
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
    """Reorder ``order[start:stop]`` so that the first half has the smaller values."""
    middle = (start + stop) // 2
    low, high = start, stop - 1
    while low < high:
        pivot = U[order[(low + high) // 2], feature]
        i, j = low, high
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
            high = j
        elif middle >= i:
            low = i
        else:
            break
    return middle


@jit()
def build_tree(U, order, low, high, first, last, parent, child, leaf_of):
    """Split rows at the median of the widest feature until few are left.

    Return the number of nodes.
    """
    first[0], last[0], parent[0] = 0, U.shape[0], -1
    nodes = 1
    at = 0
    while at < nodes:
        start, stop = first[at], last[at]
        widest, width = _set_box(U, order, start, stop, low[at], high[at])
        if stop - start <= _LEAF or width <= 0.0:
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


def plant(U: np.ndarray, empty: np.ndarray) -> tuple[Tree, RowPositions]:
    """Build the tree over rows U (m, d), some of which are zeros."""
    m, d = U.shape
    width = WIDTH * math.ceil(d / WIDTH)
    # A leaf has at least half of its largest number of rows.
    size = 4 * (m // _LEAF) + 8
    order, place_of, leaf_of = np.arange(m), np.empty(m, np.int64), np.zeros(m, np.int64)
    low, high = np.zeros((size, width)), np.zeros((size, width))
    first, last, alive = np.zeros(size, np.int64), np.zeros(size, np.int64), np.zeros(size, np.int64)
    parent, child = np.full(size, -1, np.int64), np.full(size, -1, np.int64)
    zeros = np.zeros(size, np.bool_)
    if m:
        nodes = build_tree(U, order, low, high, first, last, parent, child, leaf_of)
        alive[:nodes] = (last - first)[:nodes]
        before = np.concatenate([[0], np.cumsum(empty[order])])
        zeros[:nodes] = before[last[:nodes]] > before[first[:nodes]]
        place_of[order] = np.arange(m)
    rows = np.zeros((m, width))
    rows[:, :d] = U[order]
    needed = np.where(child < 0, -(-(last - first) // WIDTH), 0)
    tile = np.cumsum(needed) - needed
    tiles = np.zeros((int(needed.sum()), d, WIDTH))
    inside = np.arange(m) - first[leaf_of[order]]
    tiles[tile[leaf_of[order]] + inside // WIDTH, :, inside % WIDTH] = rows[:, :d]
    tree = Tree(rows, order, tiles, low, high, first, last, tile, child, alive, zeros)
    return tree, RowPositions(place_of, leaf_of, parent)


# --- searching ------------------------------------------------------------------------------------------------------


@jit_step()
def _reach(tree, node, q, square, norm):
    """Bound the similarity of ``norm * q`` with unit rows in a node's box; q has norm 1."""
    distance = _square_distance(tree.low, tree.high, node, q, q.shape[0])
    # Round-off of the rows' norms and of the sums is below a few units for each feature.
    reach = np.int64(math.ceil(0.5 * norm * (square + 1.0 - distance) * SCALE)) + 64 + 8 * q.shape[0]
    return max(reach, 0) if tree.zeros[node] else reach


@jit_step()
def _push(tree, near, q, square, norm, stack, reaches, depth):
    """Push the two halves of a box to the stack, the nearer one on top.

    Return the stack's new depth.
    """
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
def _least(similarity):
    """Return a product below which no similarity reaches `similarity` units."""
    return (similarity - 0.5) / SCALE


@jit_step()
def tree_list(tree, copies, i, q, stack, reaches, sims, rows):
    """Find the rows most similar to q, the first copy of i, best first.

    Return their number, and the visits.
    """
    left_out = copies.members[copies.head[i]]
    square = _dot(q, q)
    length, n_features = rows.shape[0], tree.tiles.shape[1]
    count, met, depth = 0, 0, 1
    # Least similarity of a listed row.
    worst = np.int64(UNKNOWN)
    stack[0], reaches[0] = 0, -UNKNOWN
    products = np.empty(WIDTH)
    while depth > 0:
        depth -= 1
        node = stack[depth]
        if reaches[depth] < worst:
            continue
        if tree.child[node] >= 0:
            depth = _push(tree, tree.child[node], q, square, 1.0, stack, reaches, depth)
            met += 2
            continue
        tile, last = tree.tile[node], tree.last[node]
        for start in range(tree.first[node], last, WIDTH):
            reached = _products_of_eight(tree.tiles, tile, q, n_features, _least(worst), products)
            tile += 1
            for lane in range(min(WIDTH, last - start) if reached else 0):
                similarity = np.int64(np.rint(products[lane] * SCALE))
                # Most rows are too far: only for others it is looked up whether any copy is left.
                if (reached >> lane) & 1 and similarity >= worst:
                    j = tree.order[start + lane]
                    if copies.head[j] < copies.tail[j]:
                        count = insert_copies(sims, rows, count, similarity, copies, j, left_out)
                        if count == length:
                            worst = sims[count - 1]
        met += last - tree.first[node]
    return count, met


@jit_step()
def _set_direction(one, other, q):
    """Set q to the direction of the sum of two rows.

    Return the sum's norm, and the squared norm of q.
    """
    norm = 0.0
    for k in range(q.shape[0]):
        q[k] = one[k] + other[k]
        norm += q[k] * q[k]
    norm = math.sqrt(norm)
    square = 0.0
    for k in range(q.shape[0]):
        # Opposite rows: only the product with zero is bounded.
        q[k] = q[k] / norm if norm > 0.0 else 0.0
        square += q[k] * q[k]
    return norm, square


@jit_step()
def tree_third(tree, copies, one, other, q, stack, reaches, best, third):
    """Find the row most similar to two rows, starting from `third`, which may be -1.

    `q` is overwritten.
    """
    norm, square = _set_direction(one, other, q)
    n_features, depth = tree.tiles.shape[1], 1
    stack[0], reaches[0] = 0, -UNKNOWN
    by_one, by_other = np.empty(WIDTH), np.empty(WIDTH)
    while depth > 0:
        depth -= 1
        node = stack[depth]
        if third >= 0 and reaches[depth] < best:
            continue
        if tree.child[node] >= 0:
            depth = _push(tree, tree.child[node], q, square, norm, stack, reaches, depth)
            continue
        tile, last = tree.tile[node], tree.last[node]
        for start in range(tree.first[node], last, WIDTH):
            _products_of_eight(tree.tiles, tile, one, n_features, 0.0, by_one)
            _products_of_eight(tree.tiles, tile, other, n_features, 0.0, by_other)
            tile += 1
            for lane in range(min(WIDTH, last - start)):
                both = np.int64(np.rint(by_one[lane] * SCALE)) + np.int64(np.rint(by_other[lane] * SCALE))
                if third < 0 or both >= best:
                    j = tree.order[start + lane]
                    if copies.head[j] < copies.tail[j]:
                        row = copies.members[copies.head[j]]
                        if third < 0 or both > best or row < third:
                            best, third = both, row
    return third


@jit()
def tree_lists(tree, copies, empty, start, stop, all_sims, all_rows, counts):
    """Make the lists of the rows ``start..stop`` of the tree's order."""
    stack, reaches = np.empty(_DEPTH, np.int64), np.empty(_DEPTH, np.int64)
    for position in range(start, stop):
        # Cache locality: neighbours are searched one after the other.
        i = tree.order[position]
        if not empty[i]:
            counts[i], _met = tree_list(tree, copies, i, tree.rows[position], stack, reaches, all_sims[i], all_rows[i])


@jit()
def rows_met(tree, copies, sample, sims, rows):
    """Return the mean number of boxes and rows that searches for a sample visit."""
    stack, reaches = np.empty(_DEPTH, np.int64), np.empty(_DEPTH, np.int64)
    total = 0
    for position in sample:
        total += tree_list(tree, copies, tree.order[position], tree.rows[position], stack, reaches, sims, rows)[1]
    return total / sample.shape[0]
