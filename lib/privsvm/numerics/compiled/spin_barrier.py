"""A spin barrier for threads that share one compiled loop.

Handing work to a pool takes longer than a step of a small model. So each thread of a team runs the entire loop on its
share of the data, and all threads meet at a barrier before one reads what others have written. A waiting thread spins.
"""

from __future__ import annotations

import platform
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from privsvm.numerics.compiled.jit import jit_step

__all__ = ["meet", "run_team"]

# Positions in the memory of a team, on separate cache lines: the number of arrivals, and whether a member gave up.
_ARRIVALS, _GIVEN_UP, _MEMORY_SIZE = 0, 16, 32
# Spins on the counter, some tens of nanoseconds each, before the thread yields the processor.
_PATIENCE = 500

_COUNTER = ir.IntType(64)
_NOTHING = ir.FunctionType(ir.VoidType(), [])


def _address(context, builder, signature, arguments):
    array = context.make_array(signature.args[0])(context, builder, arguments[0])
    return builder.gep(array.data, [arguments[1]])


def _add_one(typingctx, meetings, position):
    def generate(context, builder, signature, arguments):
        return builder.atomic_rmw("add", _address(context, builder, signature, arguments), _COUNTER(1), "acq_rel")

    return types.int64(meetings, types.int64), generate


def _load_counter(typingctx, meetings, position):
    def generate(context, builder, signature, arguments):
        return builder.load_atomic(_address(context, builder, signature, arguments), "acquire", 8)

    return types.int64(meetings, types.int64), generate


def _pause(typingctx):
    def generate(context, builder, signature, arguments):
        if platform.machine() == "x86_64":
            builder.call(cgutils.get_or_insert_function(builder.module, _NOTHING, "llvm.x86.sse2.pause"), [])
        return context.get_dummy_value()

    return types.void(), generate


def _give_way(typingctx):
    def generate(context, builder, signature, arguments):
        kind = ir.FunctionType(ir.IntType(32), [])
        builder.call(cgutils.get_or_insert_function(builder.module, kind, "sched_yield"), [])
        return context.get_dummy_value()

    return types.void(), generate


_arrive: Any = intrinsic(_add_one)
_load: Any = intrinsic(_load_counter)
_rest: Any = intrinsic(_pause)
_yield: Any = intrinsic(_give_way)


@jit_step()
def meet(meetings, n_members):
    """Wait at the barrier until all members have reached it as often as this one.

    Parameters
    ----------
    meetings : ndarray of int64
        The team's, as `run_team` hands it out.
    n_members : int
        Their number.

    Returns
    -------
    bool
        False if a member has given up: nobody else will come, and the caller must return.
    """
    if n_members == 1:
        return True
    target = (_arrive(meetings, _ARRIVALS) // n_members + 1) * n_members
    n_spins = 0
    while _load(meetings, _ARRIVALS) < target:
        n_spins += 1
        if n_spins % _PATIENCE == 0:
            if _load(meetings, _GIVEN_UP) != 0:
                return False
            _yield()
        _rest()
    return True


def run_team(work: Callable[[int, np.ndarray], None], n_members: int) -> None:
    """Call ``work(member, meetings)`` in as many threads, all at the same time.

    Parameters
    ----------
    work : callable
        Gets the member's number, from 0, and what `meet` needs. It must release the interpreter lock wherever it
        meets others.
    n_members : int
        Number of threads, the calling one among them.

    Raises
    ------
    Exception
        What `work` raised; the other members give up at their next meeting.
    """
    meetings = np.zeros(_MEMORY_SIZE, dtype=np.int64)

    def member(number: int) -> None:
        try:
            work(number, meetings)
        except BaseException:
            meetings[_GIVEN_UP] = 1
            raise

    if n_members == 1:
        member(0)
        return
    with ThreadPoolExecutor(n_members - 1) as pool:
        try:
            others = [pool.submit(member, number) for number in range(1, n_members)]
        except BaseException:
            meetings[_GIVEN_UP] = 1
            raise
        member(0)
        for other in others:
            other.result()
