"""Threads of a solver, its own for blocks of rows and one for BLAS; and memory of this machine."""

from __future__ import annotations

import contextlib
import functools
import math
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from threadpoolctl import ThreadpoolController

from privsvm.files import fork_safe_lock

# Seconds of work below which one thread does it: handing over work takes tens of microseconds where cores are idle,
# hundreds where they are not (measured).
_LEAST_SECONDS = 4e-4


@functools.cache
def _libraries(with_scipy: bool) -> list[Any]:
    """Find the BLAS libraries once, and again with SciPy's own: searching takes longer than a small fit."""
    return list(ThreadpoolController().select(user_api="blas").lib_controllers)


def _set_threads(library: Any, number: int) -> None:
    """Set the threads of a BLAS library; threadpoolctl leaves this to the first thread that did until it is cleared."""
    clear = getattr(library, "clear_controlling_thread", lambda force: None)
    clear(force=True)
    library.set_num_threads(number)
    clear(force=True)


class _OneThread:
    """A limit that all users share, set by the first one and lifted by the last."""

    lock = fork_safe_lock()
    users = 0
    before: Sequence[tuple[Any, int]] = ()


@contextlib.contextmanager
def one_blas_thread() -> Iterator[None]:
    """Keep BLAS to one thread, in every fit and prediction.

    On small blocks, two were measured many times slower, and last digits depend on the number. OpenBLAS holds a lock
    while several threads compute a product, which a copy of this process would wait for (docs/upstream.md); a copy that
    is made while another thread is here keeps one thread.
    """
    with _OneThread.lock:
        if _OneThread.users == 0:
            numbers = [(library, library.num_threads) for library in _libraries("scipy.linalg" in sys.modules)]
            _OneThread.before = [(library, number) for library, number in numbers if number != 1]
            for library, _ in _OneThread.before:
                _set_threads(library, 1)
        _OneThread.users += 1
    try:
        yield
    finally:
        with _OneThread.lock:
            _OneThread.users -= 1
            if _OneThread.users == 0:
                for library, number in _OneThread.before:
                    _set_threads(library, number)


def threads_worth(n_threads: int, seconds: float) -> int:
    """Return the number of threads that so many seconds of work pay for: 1 or all."""
    return n_threads if seconds >= _LEAST_SECONDS else 1


# Idle pools, at most one for each number of threads: starting threads takes ten times as long as waking them.
_idle: dict[int, ThreadPoolExecutor] = {}


def _end_idle() -> None:
    """End the threads that wait for work: a copy of this process would not have them."""
    while _idle:
        _idle.popitem()[1].shutdown()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_end_idle)


@contextlib.contextmanager
def thread_pool(n_threads: int) -> Iterator[ThreadPoolExecutor | None]:
    """Lend a pool of `n_threads` threads, which nobody else has meanwhile.

    None for a single one.

    The borrower waits for its jobs. The threads stay for the next one, until this process is copied or ends.
    """
    if n_threads == 1:
        yield None
        return
    # A thread has settings of its own for overflow; a warning would tell what rows or noise do to numbers.
    pool = _idle.pop(n_threads, None) or ThreadPoolExecutor(n_threads, initializer=lambda: np.seterr(all="ignore"))
    try:
        yield pool
    except BaseException:
        # The pool may still be running jobs.
        pool.shutdown()
        raise
    if _idle.setdefault(n_threads, pool) is not pool:
        pool.shutdown()


def share_out(pool: ThreadPoolExecutor | None, task: Callable[..., None], tasks: Sequence[tuple[Any, ...]]) -> None:
    """Call a task once for each tuple of arguments: here, and by a pool.

    Two threads that are woken at the same time may get one core, while this one waits on the other (measured).
    """
    if pool is None:
        for arguments in tasks:
            task(*arguments)
        return
    jobs = [pool.submit(task, *arguments) for arguments in tasks[1:]]
    task(*tasks[0])
    for job in jobs:
        job.result()


def count_threads(n_jobs: int | None) -> int:
    """Return the number of threads meant by scikit-learn's ``n_jobs``.

    None means 1; a negative number -k means all cores but k - 1. Raises ValueError for 0, or a number that is not
    whole.
    """
    if n_jobs is None:
        return 1
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, (int, np.integer)) or n_jobs == 0:
        raise ValueError(f"n_jobs={n_jobs!r}: must be a whole number other than 0, or None")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return int(n_jobs) if n_jobs > 0 else max(1, cores + 1 + int(n_jobs))


def memory_of_machine() -> float:
    """Return the bytes of this machine's memory; infinity where the system does not say."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):
        return math.inf


def allocate_aligned(size: int, unit: int) -> np.ndarray:
    """Return uninitialised memory, aligned to a unit in bytes such as a cache line or a page."""
    memory = np.empty(size + unit, dtype=np.uint8)
    start = -memory.ctypes.data % unit
    return memory[start : start + size]
