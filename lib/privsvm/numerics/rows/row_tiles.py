"""Products of eight rows with few vectors, in registers: linear models' hot loop.

A tile of 8 rows and up to 3 vectors keeps its 24 running sums in registers and reads every number of a row once for
all vectors. Rows are in double or in single precision; sums and vectors are in double precision.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from privsvm.numerics.compiled.jit import jit_step
from privsvm.numerics.compiled.vector_code import INDEX, VECTOR, WIDTH, ZEROS, VectorCode, lane_numbers

__all__ = ["ROWS", "add_tiles", "score_tiles"]

# Rows of a tile.
ROWS = 8

# Pairs of shuffles whose sum halves the length of the sums of two vectors.
_FOLDS = (
    (lane_numbers(0, 8, 2, 10, 4, 12, 6, 14), lane_numbers(1, 9, 3, 11, 5, 13, 7, 15)),
    (lane_numbers(0, 1, 8, 9, 4, 5, 12, 13), lane_numbers(2, 3, 10, 11, 6, 7, 14, 15)),
    (lane_numbers(0, 1, 2, 3, 8, 9, 10, 11), lane_numbers(4, 5, 6, 7, 12, 13, 14, 15)),
)


class _Tile(VectorCode):
    """Instructions for tiles of eight rows."""

    def numbers(self, row, j):
        """Eight numbers of a row from position `j` on, in double precision."""
        pointer = self.builder.gep(row, [j])
        if row.type.pointee == VECTOR.element:
            return self.load(pointer)
        single = ir.VectorType(row.type.pointee, WIDTH)
        return self.builder.fpext(self.load(pointer, single, align=4), VECTOR)

    def fetch(self, pointer) -> None:
        byte, word = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, word, word, word])
        function = cgutils.get_or_insert_function(self.builder.module, kind, "llvm.prefetch.p0")
        # Arguments of the prefetch: read, L2 cache, data.
        self.builder.call(function, [self.builder.bitcast(pointer, byte), word(0), word(2), word(1)])

    def row_sums(self, vectors):
        """Add up each of eight vectors; one vector of sums."""
        for even, odd in _FOLDS:
            vectors = [
                self.builder.fadd(
                    self.builder.shuffle_vector(first, second, even),
                    self.builder.shuffle_vector(first, second, odd),
                )
                for first, second in zip(vectors[::2], vectors[1::2], strict=True)
            ]
        return vectors[0]

    def blocks(self, low, high, body) -> None:
        """Call `body` on every vector of [low, high), then on an overlapping last one.

        There must be eight numbers before `high`: the last vector overlaps the one before, and its mask says which of
        its numbers are new.
        """
        builder = self.builder
        full = builder.and_(builder.sub(high, low), INDEX(-WIDTH))
        with cgutils.for_range_slice(builder, low, builder.add(low, full), INDEX(WIDTH), intp=INDEX) as (j, _):
            body(j, None)
        remaining = builder.sub(builder.sub(high, low), full)
        with builder.if_then(builder.icmp_signed("!=", remaining, INDEX(0))):
            lanes = ir.VectorType(INDEX, WIDTH)
            n_old = self.spread(builder.sub(INDEX(WIDTH), remaining), lanes)
            fresh = builder.icmp_signed(">=", ir.Constant(lanes, list(range(WIDTH))), n_old)
            body(builder.sub(high, INDEX(WIDTH)), fresh)


def _score_tile(n_vectors: int):
    """Build ``function(X, starts, W, start, stride, low, high, z, position)``: z += X W' for eight rows."""

    def generate(context, builder, signature, arguments):
        tile = _Tile(context, builder, signature, arguments)
        X, starts, W, z = 0, 1, 2, 7
        start, stride, low, high, position = (arguments[i] for i in (3, 4, 5, 6, 8))
        rows = [tile.address(X, builder.load(tile.address(starts, INDEX(r)))) for r in range(ROWS)]
        vectors = [tile.address(W, builder.add(start, builder.mul(stride, INDEX(k)))) for k in range(n_vectors)]
        sums = [[cgutils.alloca_once(builder, VECTOR) for _ in range(ROWS)] for _ in vectors]
        for column in sums:
            for total in column:
                builder.store(ZEROS, total)

        def body(j, fresh):
            weights = [tile.load(builder.gep(vector, [j])) for vector in vectors]
            for r, row in enumerate(rows):
                values = tile.numbers(row, j)
                if fresh is not None:
                    values = builder.select(fresh, values, ZEROS)
                for weight, column in zip(weights, sums, strict=True):
                    builder.store(tile.multiply_add(values, weight, builder.load(column[r])), column[r])

        tile.blocks(low, high, body)
        for k, column in enumerate(sums):
            target = tile.address(z, builder.add(position, INDEX(k * ROWS)))
            sums_of_rows = tile.row_sums([builder.load(total) for total in column])
            tile.store(builder.fadd(tile.load(target), sums_of_rows), target)
        return context.get_dummy_value()

    return generate


def _add_tile(n_vectors: int, fetches: bool = False):
    """Build ``function(X, starts, G, start, stride, low, high, h, position)``: G += h' X for eight rows.

    If it fetches, the same features of the rows that start at ``starts[8:]`` are brought near meanwhile.
    """

    def generate(context, builder, signature, arguments):
        tile = _Tile(context, builder, signature, arguments)
        X, starts, G, h = 0, 1, 2, 7
        start, stride, low, high, position = (arguments[i] for i in (3, 4, 5, 6, 8))
        rows = [tile.address(X, builder.load(tile.address(starts, INDEX(r)))) for r in range(ROWS)]
        vectors = [tile.address(G, builder.add(start, builder.mul(stride, INDEX(k)))) for k in range(n_vectors)]
        slopes = [
            [
                tile.spread(builder.load(tile.address(h, builder.add(position, INDEX(k * ROWS + r)))))
                for r in range(ROWS)
            ]
            for k in range(n_vectors)
        ]

        ahead = [tile.address(X, builder.load(tile.address(starts, INDEX(ROWS + r)))) for r in range(ROWS) if fetches]

        def body(j, fresh):
            for row in ahead:
                tile.fetch(builder.gep(row, [j]))
            totals = [tile.load(builder.gep(vector, [j])) for vector in vectors]
            for r, row in enumerate(rows):
                values = tile.numbers(row, j)
                if fresh is not None:
                    values = builder.select(fresh, values, ZEROS)
                totals = [
                    tile.multiply_add(values, column[r], total) for total, column in zip(totals, slopes, strict=True)
                ]
            for vector, total in zip(vectors, totals, strict=True):
                tile.store(total, builder.gep(vector, [j]))

        tile.blocks(low, high, body)
        return context.get_dummy_value()

    return generate


def _tile(generate) -> Any:
    def typed(typingctx, rows, starts, vectors, start, stride, low, high, numbers, position):
        return types.void(rows, starts, vectors, start, stride, low, high, numbers, position), generate

    return intrinsic(typed)


_score_1, _score_2, _score_3 = (_tile(_score_tile(count)) for count in (1, 2, 3))
_add_1, _add_2, _add_3 = (_tile(_add_tile(count)) for count in (1, 2, 3))
_fetch_1, _fetch_2, _fetch_3 = (_tile(_add_tile(count, fetches=True)) for count in (1, 2, 3))

# Columns at a time: eight rows of them, and the vectors, stay in the L1 cache.
_COLUMNS = 256


@jit_step()
def score_tiles(X, starts, W, n_vectors, n_features, z):
    """Add the products of eight rows with vectors to `z`.

    Parameters
    ----------
    X : ndarray of float64 or float32
        Numbers of all rows, one after the other.
    starts : ndarray of int (8,)
        Where the rows begin in `X`.
    W : ndarray (n_vectors * n_features,)
        Vectors, one after the other.
    n_vectors, n_features : int
        Their number and length.
    z : ndarray (n_vectors * 8,)
        For every vector, the eight products.
    """
    if n_features < WIDTH:
        for k in range(n_vectors):
            for r in range(ROWS):
                for j in range(n_features):
                    z[k * ROWS + r] += W[k * n_features + j] * X[starts[r] + j]
        return
    low = 0
    while low < n_features:
        high = min(low + _COLUMNS, n_features)
        k = 0
        while k < n_vectors:
            remaining = n_vectors - k
            if remaining == 3 or remaining > 4:
                _score_3(X, starts, W, k * n_features, n_features, low, high, z, k * ROWS)
                k += 3
            elif remaining == 1:
                _score_1(X, starts, W, k * n_features, n_features, low, high, z, k * ROWS)
                k += 1
            else:
                _score_2(X, starts, W, k * n_features, n_features, low, high, z, k * ROWS)
                k += 2
        low = high


@jit_step()
def add_tiles(X, starts, h, n_vectors, n_features, low, high, G):
    """Add products of eight rows with numbers to vectors; see `score_tiles`.

    Parameters
    ----------
    X, n_vectors, n_features
        See `score_tiles`.
    starts : ndarray of int (16,)
        Where the rows begin in `X`, and then the ones to bring near meanwhile: memory is slower than this.
    h : ndarray (n_vectors * 8,)
        For every vector, the eight numbers.
    low, high : int
        The features that are worked on: all, or at least eight of them.
    G : ndarray (n_vectors * n_features,)
        Every vector grows by the sum of its numbers times the rows.
    """
    if n_features < WIDTH:
        for k in range(n_vectors):
            for r in range(ROWS):
                for j in range(n_features):
                    G[k * n_features + j] += h[k * ROWS + r] * X[starts[r] + j]
        return
    while low < high:
        end = min(low + _COLUMNS, high)
        k = 0
        while k < n_vectors:
            remaining = n_vectors - k
            if remaining == 3 or remaining > 4:
                if k == 0:
                    _fetch_3(X, starts, G, 0, n_features, low, end, h, 0)
                else:
                    _add_3(X, starts, G, k * n_features, n_features, low, end, h, k * ROWS)
                k += 3
            elif remaining == 1:
                if k == 0:
                    _fetch_1(X, starts, G, 0, n_features, low, end, h, 0)
                else:
                    _add_1(X, starts, G, k * n_features, n_features, low, end, h, k * ROWS)
                k += 1
            else:
                if k == 0:
                    _fetch_2(X, starts, G, 0, n_features, low, end, h, 0)
                else:
                    _add_2(X, starts, G, k * n_features, n_features, low, end, h, k * ROWS)
                k += 2
        low = end
