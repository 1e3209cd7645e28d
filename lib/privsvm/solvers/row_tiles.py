"""Products of eight rows with a few vectors, in registers: what linear models spend their time on.

A tile of 8 rows and up to 3 vectors keeps its 24 running sums in registers and reads every number of a row once for
all vectors. LLVM finds no such loops by itself, so they are written as its vector instructions here.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

__all__ = ["PADDING", "ROWS", "add_entries", "add_tiles", "score_entries", "score_tiles"]

# Rows of a tile, and numbers of a machine vector.
ROWS = 8
WIDTH = 8
# Numbers of memory that must follow the vectors of CSR rows, of which whole machine vectors are read.
PADDING = WIDTH

_VECTOR = ir.VectorType(ir.DoubleType(), WIDTH)
_MASKS = ir.VectorType(ir.IntType(1), WIDTH)
_INDEX = ir.IntType(64)
_FAST = ("contract", "reassoc")


def _lanes(*positions: int) -> ir.Constant:
    return ir.Constant(ir.VectorType(ir.IntType(32), WIDTH), list(positions))


# Pairs of shuffles whose sum halves the length of the sums of two vectors.
_FOLDS = (
    (_lanes(0, 8, 2, 10, 4, 12, 6, 14), _lanes(1, 9, 3, 11, 5, 13, 7, 15)),
    (_lanes(0, 1, 8, 9, 4, 5, 12, 13), _lanes(2, 3, 10, 11, 6, 7, 14, 15)),
    (_lanes(0, 1, 2, 3, 8, 9, 10, 11), _lanes(4, 5, 6, 7, 12, 13, 14, 15)),
)


class _Builder:
    """LLVM instructions on vectors of doubles."""

    def __init__(self, context, builder, signature, arguments) -> None:
        self.builder = builder
        self.pointers = {}
        for place, kind in enumerate(signature.args):
            if isinstance(kind, types.Array):
                self.pointers[place] = context.make_array(kind)(context, builder, arguments[place]).data

    def address(self, array: int, place):
        return self.builder.gep(self.pointers[array], [place])

    def load(self, pointer):
        return self.builder.load(self.builder.bitcast(pointer, _VECTOR.as_pointer()), align=8)

    def store(self, vector, pointer) -> None:
        self.builder.store(vector, self.builder.bitcast(pointer, _VECTOR.as_pointer()), align=8)

    def spread(self, scalar):
        first = self.builder.insert_element(ir.Constant(_VECTOR, ir.Undefined), scalar, ir.IntType(32)(0))
        return self.builder.shuffle_vector(first, ir.Constant(_VECTOR, ir.Undefined), _lanes(*[0] * WIDTH))

    def fetch(self, pointer) -> None:
        byte, word = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, word, word, word])
        function = cgutils.get_or_insert_function(self.builder.module, kind, "llvm.prefetch.p0")
        # To read data, into the second fastest cache.
        self.builder.call(function, [self.builder.bitcast(pointer, byte), word(0), word(2), word(1)])

    def multiply_add(self, first, second, total):
        return self.builder.fadd(total, self.builder.fmul(first, second, flags=_FAST), flags=_FAST)

    def row_sums(self, vectors):
        """Add up each of eight vectors; one vector of sums."""
        for even, odd in _FOLDS:
            vectors = [
                self.builder.fadd(
                    self.builder.shuffle_vector(first, second, even),
                    self.builder.shuffle_vector(first, second, odd),
                    flags=_FAST,
                )
                for first, second in zip(vectors[::2], vectors[1::2], strict=True)
            ]
        return vectors[0]

    def blocks(self, low, high, body) -> None:
        """Call `body` on the start of every vector of [low, high), then on the last one with what is left over.

        There must be eight numbers before `high`: the last vector overlaps the one before, and its mask says which of
        its numbers are new.
        """
        builder = self.builder
        full = builder.and_(builder.sub(high, low), _INDEX(-WIDTH))
        with cgutils.for_range_slice(builder, low, builder.add(low, full), _INDEX(WIDTH), intp=_INDEX) as (j, _):
            body(j, None)
        left = builder.sub(builder.sub(high, low), full)
        with builder.if_then(builder.icmp_signed("!=", left, _INDEX(0))):
            lanes = ir.VectorType(_INDEX, WIDTH)
            first = builder.insert_element(
                ir.Constant(lanes, ir.Undefined), builder.sub(_INDEX(WIDTH), left), ir.IntType(32)(0)
            )
            known = builder.shuffle_vector(first, ir.Constant(lanes, ir.Undefined), _lanes(*[0] * WIDTH))
            fresh = builder.icmp_signed(">=", ir.Constant(lanes, list(range(WIDTH))), known)
            body(builder.sub(high, _INDEX(WIDTH)), fresh)


def _score_tile(n_vectors: int):
    """Build ``function(X, starts, W, start, stride, low, high, z, place)``: z += X W' for eight rows."""

    def generate(context, builder, signature, arguments):
        tile = _Builder(context, builder, signature, arguments)
        X, starts, W, z = 0, 1, 2, 7
        start, stride, low, high, place = (arguments[i] for i in (3, 4, 5, 6, 8))
        rows = [tile.address(X, builder.load(tile.address(starts, _INDEX(r)))) for r in range(ROWS)]
        vectors = [tile.address(W, builder.add(start, builder.mul(stride, _INDEX(k)))) for k in range(n_vectors)]
        sums = [[cgutils.alloca_once(builder, _VECTOR) for _ in range(ROWS)] for _ in vectors]
        for column in sums:
            for total in column:
                builder.store(ir.Constant(_VECTOR, [0.0] * WIDTH), total)

        def body(j, fresh):
            weights = [tile.load(builder.gep(vector, [j])) for vector in vectors]
            for r, row in enumerate(rows):
                values = tile.load(builder.gep(row, [j]))
                if fresh is not None:
                    values = builder.select(fresh, values, ir.Constant(_VECTOR, [0.0] * WIDTH))
                for weight, column in zip(weights, sums, strict=True):
                    builder.store(tile.multiply_add(values, weight, builder.load(column[r])), column[r])

        tile.blocks(low, high, body)
        for k, column in enumerate(sums):
            target = tile.address(z, builder.add(place, _INDEX(k * ROWS)))
            found = tile.row_sums([builder.load(total) for total in column])
            tile.store(builder.fadd(tile.load(target), found), target)
        return context.get_dummy_value()

    return generate


def _add_tile(n_vectors: int, fetches: bool = False):
    """Build ``function(X, starts, G, start, stride, low, high, h, place)``: G += h' X for eight rows.

    If it fetches, the same features of the rows that start at ``starts[8:]`` are brought near meanwhile.
    """

    def generate(context, builder, signature, arguments):
        tile = _Builder(context, builder, signature, arguments)
        X, starts, G, h = 0, 1, 2, 7
        start, stride, low, high, place = (arguments[i] for i in (3, 4, 5, 6, 8))
        rows = [tile.address(X, builder.load(tile.address(starts, _INDEX(r)))) for r in range(ROWS)]
        vectors = [tile.address(G, builder.add(start, builder.mul(stride, _INDEX(k)))) for k in range(n_vectors)]
        slopes = [
            [tile.spread(builder.load(tile.address(h, builder.add(place, _INDEX(k * ROWS + r))))) for r in range(ROWS)]
            for k in range(n_vectors)
        ]

        ahead = [tile.address(X, builder.load(tile.address(starts, _INDEX(ROWS + r)))) for r in range(ROWS) if fetches]

        def body(j, fresh):
            for row in ahead:
                tile.fetch(builder.gep(row, [j]))
            totals = [tile.load(builder.gep(vector, [j])) for vector in vectors]
            for r, row in enumerate(rows):
                values = tile.load(builder.gep(row, [j]))
                if fresh is not None:
                    values = builder.select(fresh, values, ir.Constant(_VECTOR, [0.0] * WIDTH))
                totals = [
                    tile.multiply_add(values, column[r], total) for total, column in zip(totals, slopes, strict=True)
                ]
            for vector, total in zip(vectors, totals, strict=True):
                tile.store(total, builder.gep(vector, [j]))

        tile.blocks(low, high, body)
        return context.get_dummy_value()

    return generate


def _score_entries(context, builder, signature, arguments):
    """Generate ``function(data, indices, first, end, W, stride, start, lanes)``: the entries of one row times W."""
    tile = _Builder(context, builder, signature, arguments)
    data, indices, W, out = 0, 1, 4, 7
    first, end, stride, start = (arguments[i] for i in (2, 3, 5, 6))
    total = cgutils.alloca_once(builder, _VECTOR)
    builder.store(ir.Constant(_VECTOR, [0.0] * WIDTH), total)
    with cgutils.for_range_slice(builder, first, end, _INDEX(1), intp=_INDEX) as (e, _):
        place = builder.add(start, builder.mul(stride, builder.load(tile.address(indices, e))))
        value = tile.spread(builder.load(tile.address(data, e)))
        builder.store(tile.multiply_add(value, tile.load(tile.address(W, place)), builder.load(total)), total)
    tile.store(builder.load(total), tile.address(out, _INDEX(0)))
    return context.get_dummy_value()


def _add_entries(context, builder, signature, arguments):
    """Generate ``function(data, indices, first, end, G, stride, start, lanes)``: G grows by the entries times lanes."""
    tile = _Builder(context, builder, signature, arguments)
    data, indices, G, lanes = 0, 1, 4, 7
    first, end, stride, start = (arguments[i] for i in (2, 3, 5, 6))
    slopes = tile.load(tile.address(lanes, _INDEX(0)))
    with cgutils.for_range_slice(builder, first, end, _INDEX(1), intp=_INDEX) as (e, _):
        place = builder.add(start, builder.mul(stride, builder.load(tile.address(indices, e))))
        value = tile.spread(builder.load(tile.address(data, e)))
        target = tile.address(G, place)
        tile.store(tile.multiply_add(value, slopes, tile.load(target)), target)
    return context.get_dummy_value()


def _entries(generate) -> Any:
    def typed(typingctx, data, indices, first, end, vectors, stride, start, lanes):
        return types.void(data, indices, first, end, vectors, stride, start, lanes), generate

    return intrinsic(typed)


_score_row, _add_row = _entries(_score_entries), _entries(_add_entries)


def _tile(generate) -> Any:
    def typed(typingctx, rows, starts, vectors, start, stride, low, high, numbers, place):
        return types.void(rows, starts, vectors, start, stride, low, high, numbers, place), generate

    return intrinsic(typed)


_score_1, _score_2, _score_3 = (_tile(_score_tile(count)) for count in (1, 2, 3))
_add_1, _add_2, _add_3 = (_tile(_add_tile(count)) for count in (1, 2, 3))
_fetch_1, _fetch_2, _fetch_3 = (_tile(_add_tile(count, fetches=True)) for count in (1, 2, 3))

# Columns at a time: eight rows of them, and the vectors, stay in the fastest cache.
_COLUMNS = 256


@njit(cache=True, nogil=True)
def score_tiles(X, starts, W, n_vectors, n_features, z):
    """Add the products of eight rows with vectors to `z`.

    Parameters
    ----------
    X : ndarray
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
            left = n_vectors - k
            if left == 3 or left > 4:
                _score_3(X, starts, W, k * n_features, n_features, low, high, z, k * ROWS)
                k += 3
            elif left == 1:
                _score_1(X, starts, W, k * n_features, n_features, low, high, z, k * ROWS)
                k += 1
            else:
                _score_2(X, starts, W, k * n_features, n_features, low, high, z, k * ROWS)
                k += 2
        low = high


@njit(cache=True, nogil=True)
def add_tiles(X, starts, h, n_vectors, n_features, low, high, G):
    """Add products of eight rows with numbers to vectors: the reverse of `score_tiles`.

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
            left = n_vectors - k
            if left == 3 or left > 4:
                if k == 0:
                    _fetch_3(X, starts, G, 0, n_features, low, end, h, 0)
                else:
                    _add_3(X, starts, G, k * n_features, n_features, low, end, h, k * ROWS)
                k += 3
            elif left == 1:
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


@njit(cache=True, nogil=True)
def score_entries(data, indices, first, end, W, n_vectors, lanes, z, row):
    """Set the scores of one CSR row.

    Parameters
    ----------
    data, indices : ndarray
        Numbers of all rows, and their features.
    first, end : int
        Which of them are the row's.
    W : ndarray
        Numbers of the vectors for the first feature, then for the second, and so on; at least `PADDING` numbers of
        memory follow the last one.
    n_vectors : int
        Number of vectors.
    lanes : ndarray (8,)
        Is overwritten.
    z : ndarray (n_vectors * 8,)
        For every vector, the products of eight rows.
    row : int
        Which of the eight.
    """
    for start in range(0, n_vectors, WIDTH):
        _score_row(data, indices, first, end, W, n_vectors, start, lanes)
        for k in range(min(WIDTH, n_vectors - start)):
            z[(start + k) * ROWS + row] = lanes[k]


@njit(cache=True, nogil=True)
def add_entries(data, indices, first, end, h, n_vectors, high, lanes, numbers, G, row):
    """Add products of one CSR row with numbers to vectors: the reverse of `score_entries`.

    Parameters
    ----------
    data, indices, first, end, n_vectors, row
        See `score_entries`. The indices of a row ascend.
    h : ndarray (n_vectors * 8,)
        For every vector, the numbers of eight rows.
    high : int
        Another thread may be at work on the numbers of this feature and of those behind it.
    lanes, numbers : ndarray (8,)
        Are overwritten.
    G : ndarray
        Numbers of the vectors for the first feature, then for the second, and so on.
    """
    # A whole machine vector of these would reach into the numbers of feature `high`.
    width, inside = (n_vectors + WIDTH - 1) // WIDTH * WIDTH, end
    while inside > first and (high - indices[inside - 1]) * n_vectors < width:
        inside -= 1
    for start in range(0, n_vectors, WIDTH):
        count = min(WIDTH, n_vectors - start)
        for k in range(WIDTH):
            # Nothing is added to the numbers of the next feature.
            lanes[k] = h[(start + k) * ROWS + row] if k < count else 0.0
        _add_row(data, indices, first, inside, G, n_vectors, start, lanes)
        for e in range(inside, end):
            target = G[indices[e] * n_vectors + start :]
            for k in range(WIDTH):
                numbers[k] = target[k] if k < count else 0.0
            _add_row(data, indices, e, e + 1, numbers, 0, 0, lanes)
            for k in range(count):
                target[k] = numbers[k]
