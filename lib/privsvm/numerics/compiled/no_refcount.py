"""Arrays without reference counting, for loops that make many views of them.

For each view of an array that owns its memory, Numba increments a reference count and decrements it at the end: two
atomic operations, which take longer than the work on a short view.
"""

from __future__ import annotations

from typing import Any

from numba.core import cgutils
from numba.extending import intrinsic

__all__ = ["borrowed"]


def _without_owner(typingctx, array):
    def generate(context, builder, signature, arguments):
        view = context.make_array(signature.args[0])(context, builder, arguments[0])
        for name in ("meminfo", "parent"):
            setattr(view, name, cgutils.get_null_value(getattr(view, name).type))
        return view._getvalue()

    return array(array), generate


# ``function(array)``: the same array, which must not outlive the one that it was made from. An argument of a function
# that Python calls lives as long as the call; what a compiled function has allocated may end after its last use.
borrowed: Any = intrinsic(_without_owner)
