"""LLVM vector instructions for loops that LLVM does not vectorise: the one module that writes them.

Each intrinsic is a function for compiled code. Eight float64, or sixteen uint32, are worked on together.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

# Lanes of a vector register, and blocks of ChaCha side by side.
WIDTH, LANES = 8, 16

_VECTOR = ir.VectorType(ir.DoubleType(), WIDTH)
_ZEROS = ir.Constant(_VECTOR, [0.0] * WIDTH)
_INDEX, _WORD = ir.IntType(64), ir.IntType(32)
_FINITE = ("nnan", "ninf", "nsz")


class _Code:
    """Builder of the instructions of a Numba intrinsic, whose arrays are numbered by their position."""

    def __init__(self, context: Any, builder: Any, signature: Any, arguments: Any) -> None:
        self.context, self.builder, self.arguments = context, builder, arguments
        self.pointers = {
            position: context.make_array(kind)(context, builder, arguments[position]).data
            for position, kind in enumerate(signature.args)
            if isinstance(kind, types.Array)
        }

    def address(self, array: int, position: Any) -> Any:
        """Address of a number of an array."""
        return self.builder.gep(self.pointers[array], [position])

    def load(self, pointer: Any) -> Any:
        """Read a vector that is aligned as its numbers are."""
        return self.builder.load(self.builder.bitcast(pointer, _VECTOR.as_pointer()), align=8)

    def store(self, vector: Any, pointer: Any) -> None:
        """Write a vector where it need not be aligned."""
        self.builder.store(vector, self.builder.bitcast(pointer, vector.type.as_pointer()), align=8)

    def spread(self, scalar: Any, kind: ir.VectorType = _VECTOR) -> Any:
        """Vector of the same number in all lanes."""
        unset = ir.Constant(kind, ir.Undefined)
        first = self.builder.insert_element(unset, scalar, _WORD(0))
        return self.builder.shuffle_vector(
            first, unset, ir.Constant(ir.VectorType(_WORD, kind.count), [0] * kind.count)
        )

    def multiply_add(self, first: Any, second: Any, total: Any) -> Any:
        """Add a product, rounded once where the machine can."""
        return self.builder.fadd(total, self.builder.fmul(first, second, flags=("contract",)), flags=("contract",))

    def loop(self, start: Any, stop: Any, step: int) -> Any:
        """Count from `start` on in steps; a context manager that yields the count first."""
        return cgutils.for_range_slice(self.builder, start, stop, _INDEX(step), intp=_INDEX)

    def nothing(self) -> Any:
        """Return the value of a function without a result."""
        return self.context.get_dummy_value()


def _generator(generate: Callable[..., Any]) -> Callable[..., Any]:
    """Hand the code of an intrinsic to Numba."""
    return lambda context, builder, signature, arguments: generate(_Code(context, builder, signature, arguments))


# --- numbers --------------------------------------------------------------------------------------------------------


def _maximum(code: _Code) -> Any:
    kind = code.arguments[0].type
    function = code.builder.module.declare_intrinsic("llvm.maxnum", [kind], ir.FunctionType(kind, [kind, kind]))
    return code.builder.call(function, code.arguments, fastmath=_FINITE)


def _type_maximum(typingctx, first, second):
    if first != second or not isinstance(first, types.Float):
        return None
    return first(first, second), _generator(_maximum)


# ``function(first, second)``: larger of two floating-point numbers of one type; not for NaN.
maximum: Any = intrinsic(_type_maximum)


# --- random bits ----------------------------------------------------------------------------------------------------

# "expand 32-byte k", in four words.
_CONSTANTS = (0x61707865, 0x3320646E, 0x79622D32, 0x6B206574)
_ROUNDS = 20
_WORDS, _WIDE_WORDS = ir.VectorType(_WORD, LANES), ir.VectorType(_INDEX, LANES)


def _chacha(code: _Code) -> Any:
    """Keep each word of ChaCha's state in a vector, with one number for each block."""
    builder, (_, counter, nonce, _, start) = code.builder, code.arguments
    key, out = 0, 3

    def constant(value: int) -> Any:
        return ir.Constant(_WORDS, [value] * LANES)

    def rotate(value: Any, count: int) -> Any:
        return builder.or_(builder.shl(value, constant(count)), builder.lshr(value, constant(32 - count)))

    counters = builder.add(code.spread(counter, _WIDE_WORDS), ir.Constant(_WIDE_WORDS, list(range(LANES))))
    upper = builder.lshr(counters, ir.Constant(_WIDE_WORDS, [32] * LANES))
    initial = [constant(value) for value in _CONSTANTS]
    initial += [code.spread(builder.load(code.address(key, _INDEX(i))), _WORDS) for i in range(8)]
    initial += [builder.trunc(counters, _WORDS), builder.trunc(upper, _WORDS)]
    halves = nonce, builder.lshr(nonce, nonce.type(32))
    initial += [code.spread(builder.trunc(half, _WORD), _WORDS) for half in halves]
    kept = [cgutils.alloca_once_value(builder, value) for value in initial]

    def quarter(state: list[Any], a: int, b: int, c: int, d: int) -> None:
        for first, second, third, count in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
            state[first] = builder.add(state[first], state[second])
            state[third] = rotate(builder.xor(state[third], state[first]), count)

    # A loop, since the unrolled rounds would dominate the compile time.
    with cgutils.for_range(builder, _INDEX(_ROUNDS // 2)):
        state = [builder.load(value) for value in kept]
        for i in range(4):
            quarter(state, i, 4 + i, 8 + i, 12 + i)
        for i in range(4):
            quarter(state, i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4)
        for value, position in zip(state, kept, strict=True):
            builder.store(value, position)
    for i in range(16):
        position = builder.add(start, start.type(i * LANES // 2))
        code.store(builder.add(builder.load(kept[i]), initial[i]), code.address(out, position))
    return code.nothing()


def _type_chacha_blocks(typingctx, key, counter, nonce, out, start):
    return types.void(key, counter, nonce, out, start), _generator(_chacha)


# ``function(key, counter, nonce, out, start)``: write 16 blocks of ChaCha20 from a counter on, word by word of all
# blocks, to `out` (uint64).
chacha_blocks: Any = intrinsic(_type_chacha_blocks)


# --- CSR rows times one weight vector a class: the weights of one feature lie together -------------------------------

# Plain loops take 2 to 7 times as long for scores, and 1.2 to 3 times for sums (3 to 26 classes).

# Latency hiding: independent sums.
_SUMS = 2


def _entry(code: _Code, e: Any) -> tuple[Any, Any]:
    """Value of an entry in all lanes, and where the weights of its feature are."""
    builder, (stride, start) = code.builder, code.arguments[5:7]
    j = builder.sext(builder.load(code.address(1, e)), _INDEX)
    return code.spread(builder.load(code.address(0, e))), code.address(4, builder.add(start, builder.mul(stride, j)))


def _score(code: _Code) -> Any:
    builder, (first, end), start = code.builder, code.arguments[2:4], code.arguments[6]
    sums = [cgutils.alloca_once_value(builder, _ZEROS) for _ in range(_SUMS)]

    def add(e: Any, total: Any) -> None:
        value, weights = _entry(code, e)
        builder.store(code.multiply_add(value, code.load(weights), builder.load(total)), total)

    unrolled_end = builder.add(first, builder.and_(builder.sub(end, first), _INDEX(-_SUMS)))
    with code.loop(first, unrolled_end, _SUMS) as (e, _):
        for k, total in enumerate(sums):
            add(builder.add(e, _INDEX(k)), total)
    with code.loop(unrolled_end, end, 1) as (e, _):
        add(e, sums[0])
    result = builder.load(sums[0])
    for total in sums[1:]:
        result = builder.fadd(result, builder.load(total))
    code.store(result, code.address(7, start))
    return code.nothing()


def _add(code: _Code) -> Any:
    (first, end), start = code.arguments[2:4], code.arguments[6]
    steps = code.load(code.address(7, start))
    with code.loop(first, end, 1) as (e, _):
        value, weights = _entry(code, e)
        code.store(code.multiply_add(value, steps, code.load(weights)), weights)
    return code.nothing()


def _type_score_row(typingctx, data, indices, first, end, weights, stride, start, lanes):
    return types.void(data, indices, first, end, weights, stride, start, lanes), _generator(_score)


# ``function(data, indices, first, end, weights, stride, start, lanes)``: set lanes from `start` on to eight scores of
# the entries `first` to `end` of CSR rows. The weights of feature j begin at ``j * stride``; eight of them from
# `start` on are read.
score_row: Any = intrinsic(_type_score_row)


def _type_add_row(typingctx, data, indices, first, end, weights, stride, start, lanes):
    return types.void(data, indices, first, end, weights, stride, start, lanes), _generator(_add)


# ``function(data, indices, first, end, weights, stride, start, lanes)``: add eight lanes times the entries `first` to
# `end` of CSR rows to the weights; see `score_row`.
add_row: Any = intrinsic(_type_add_row)
