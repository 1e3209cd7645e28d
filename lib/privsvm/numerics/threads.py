"""Threads of a solver: its own for blocks of rows, one for BLAS."""

from __future__ import annotations

import contextlib
import functools
import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import scipy.linalg.cython_blas  # noqa: F401  (Numba's np.dot loads it, and the controller must find it)
from threadpoolctl import ThreadpoolController

__all__ = ["count_threads", "one_blas_thread", "thread_pool"]


@functools.cache
def _controller() -> ThreadpoolController:
    """Find the BLAS libraries once: searching takes longer than a small fit."""
    return ThreadpoolController()


class _OneThread:
    """The limit that all users share: set by the first one in, lifted by the last one out."""

    lock = threading.Lock()
    users = 0
    limiter: Any = None


@contextlib.contextmanager
def one_blas_thread() -> Iterator[None]:
    """Keep BLAS to one thread: on small blocks, two were measured many times slower.

    Where several threads of a program overlap here, OpenBLAS may stay at one thread after the last: it was measured to
    take a larger number back from the program's main thread only.
    """
    with _OneThread.lock:
        if _OneThread.users == 0:
            _OneThread.limiter = _controller().limit(limits=1, user_api="blas")
        _OneThread.users += 1
    try:
        yield
    finally:
        with _OneThread.lock:
            _OneThread.users -= 1
            if _OneThread.users == 0:
                _OneThread.limiter.restore_original_limits()


@contextlib.contextmanager
def thread_pool(n_threads: int) -> Iterator[ThreadPoolExecutor | None]:
    """Open a pool of `n_threads` threads; None for a single one."""
    if n_threads == 1:
        yield None
        return
    with ThreadPoolExecutor(n_threads) as pool:
        yield pool


def count_threads(n_jobs: int | None) -> int:
    """Return the number of threads meant by scikit-learn's ``n_jobs``.

    Parameters
    ----------
    n_jobs : int or None
        None means 1; a negative number -k means all cores but k - 1.

    Returns
    -------
    int
        At least 1.

    Raises
    ------
    ValueError
        For 0, or what is not a whole number.
    """
    if n_jobs is None:
        return 1
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, (int, np.integer)) or n_jobs == 0:
        raise ValueError(f"n_jobs={n_jobs!r}: must be a whole number other than 0, or None")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return int(n_jobs) if n_jobs > 0 else max(1, cores + 1 + int(n_jobs))
