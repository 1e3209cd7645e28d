"""Compiled functions that only other compiled functions call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba.extending import register_jitable

__all__ = ["jit_step"]


def jit_step(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Decorate one step of a compiled function.

    Numba compiles a step together with its callers. It gets no entry point for Python and no file in the cache, which
    halves what it costs to compile. Called from Python, it runs as plain Python.

    Parameters
    ----------
    **options
        As for `numba.njit`, for example ``fastmath``.

    Returns
    -------
    callable
        The decorator.
    """
    return register_jitable(no_cfunc_wrapper=True, **{"error_model": "numpy", **options})
