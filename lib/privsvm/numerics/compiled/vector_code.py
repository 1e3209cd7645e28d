"""LLVM vector instructions for loops that LLVM does not vectorise."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

__all__ = ["BLOCK", "INDEX", "VECTOR", "WIDTH", "ZEROS", "VectorCode", "lane_numbers", "lowest_bit"]

# Lanes of a vector register.
WIDTH = 8
# Numbers compared at a time: one for each bit of a word.
BLOCK = 64

VECTOR = ir.VectorType(ir.DoubleType(), WIDTH)
ZEROS = ir.Constant(VECTOR, [0.0] * WIDTH)
INDEX = ir.IntType(64)


def lane_numbers(*positions: int) -> ir.Constant:
    """Constant that says which lanes a shuffle takes."""
    return ir.Constant(ir.VectorType(ir.IntType(32), len(positions)), list(positions))


class VectorCode:
    """Builder of the instructions of an intrinsic.

    Parameters
    ----------
    context, builder, signature, arguments
        Arguments of the code generator of a Numba intrinsic. Arrays are numbered by their position in the arguments.
    """

    def __init__(self, context, builder, signature, arguments) -> None:
        self.builder = builder
        self.pointers = {}
        for position, kind in enumerate(signature.args):
            if isinstance(kind, types.Array):
                self.pointers[position] = context.make_array(kind)(context, builder, arguments[position]).data

    def address(self, array: int, position):
        """Address of a number of an array."""
        return self.builder.gep(self.pointers[array], [position])

    def load(self, pointer, kind: ir.Type = VECTOR, align: int = 8):
        """Read a vector that is aligned as its numbers are, of so many bytes."""
        return self.builder.load(self.builder.bitcast(pointer, kind.as_pointer()), align=align)

    def store(self, vector, pointer) -> None:
        """Write a vector where it need not be aligned."""
        self.builder.store(vector, self.builder.bitcast(pointer, VECTOR.as_pointer()), align=8)

    def spread(self, scalar, kind: ir.VectorType = VECTOR):
        """Vector of the same number in all lanes."""
        unset = ir.Constant(kind, ir.Undefined)
        first = self.builder.insert_element(unset, scalar, ir.IntType(32)(0))
        return self.builder.shuffle_vector(first, unset, lane_numbers(*[0] * kind.count))

    def multiply_add(self, first, second, total):
        """Add a product, rounded once where the machine can."""
        return self.builder.fadd(total, self.builder.fmul(first, second, flags=("contract",)), flags=("contract",))


def _count_zeros(typingctx, bits):
    def generate(context, builder, signature, arguments):
        return builder.cttz(arguments[0], ir.IntType(1)(1))

    return types.int64(types.uint64), generate


# ``function(bits)``: position of the lowest set bit.
lowest_bit: Any = intrinsic(_count_zeros)
