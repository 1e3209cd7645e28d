"""Arrays whose memory somebody else keeps, for loops that cut many parts out of them.

For each part of an array that owns its memory, Numba counts one owner more and, at its end, one less: two locked
operations, which take longer than the work on a part of some numbers.
"""

from __future__ import annotations

from typing import Any

from numba.core import cgutils
from numba.extending import intrinsic

__all__ = ["borrowed"]


def _without_owner(typingctx, array):
    def generate(context, builder, signature, arguments):
        found = context.make_array(signature.args[0])(context, builder, arguments[0])
        for name in ("meminfo", "parent"):
            setattr(found, name, cgutils.get_null_value(getattr(found, name).type))
        return found._getvalue()

    return array(array), generate


# ``function(array)``: the same array, which must not outlive the one that it was made from. An argument of a function
# that Python calls lives as long as the call; what a compiled function has allocated may end after its last use.
borrowed: Any = intrinsic(_without_owner)
