"""Processor time of calls and the memory that they add; environments of peers load it without other packages."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

MOST_CALLS = 100


def time_call(call: Callable[[], Any], least_seconds: float) -> tuple[Any, float]:
    """Call until so much processor time is spent; return the last result and the mean processor time of a call."""
    times: list[float] = []
    while sum(times) <= least_seconds and len(times) < MOST_CALLS:
        started = time.process_time()
        result = call()
        times.append(time.process_time() - started)
    return result, statistics.mean(times)


def read_status(field: str) -> float:
    """Read the megabytes of a field of this process's status."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return int(next(line for line in lines if line.startswith(field)).split()[1]) / 1024


class AddedMemory:
    """Megabytes that a block adds to this process at its peak."""

    megabytes = 0.0

    def __enter__(self) -> AddedMemory:
        Path("/proc/self/clear_refs").write_text("5")
        self._before = read_status("VmRSS")
        return self

    def __exit__(self, *_: object) -> None:
        self.megabytes = read_status("VmHWM") - self._before
