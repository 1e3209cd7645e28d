"""Measure work in steps of the interpreter and in memory, independent of a clock."""

import contextlib
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import privsvm

PACKAGE = str(Path(privsvm.__file__).parent)


def steps(work: Callable[[], Any]) -> int:
    """Count the executed opcodes of the package."""
    count = 0

    def trace(frame: FrameType, event: str, _argument: Any) -> Any:
        nonlocal count
        if not frame.f_code.co_filename.startswith(PACKAGE):
            return None
        frame.f_trace_opcodes = True
        count += event == "opcode"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


@contextlib.contextmanager
def count_calls() -> Iterator[list[int]]:
    """Count the calls of functions, of Python and of C, in the one number of a list."""
    count = [0]

    def profile(_frame: FrameType, event: str, _argument: Any) -> None:
        count[0] += event in ("call", "c_call")

    sys.setprofile(profile)
    try:
        yield count
    finally:
        sys.setprofile(None)


@contextlib.contextmanager
def memory_below(limit: int) -> Iterator[None]:
    """Require that a block never holds so many bytes."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < limit
    finally:
        tracemalloc.stop()
