"""Decorators of compiled functions, with few option sets to compile less."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import scipy.linalg.cython_blas  # noqa: F401  (Numba's np.dot calls it: `one_blas_thread` must find its library)
from numba import njit
from numba.extending import register_jitable

_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}


def jit(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Decorate a compiled function that Python calls.

    Options are as for `numba.njit`, for example ``fastmath``, which is off by default: Numba would take that of a
    compiled caller. The function is kept in Numba's cache, does not hold the interpreter lock, and divides by zero as
    NumPy does.
    """
    return njit(cache=True, **{"fastmath": False, **_OPTIONS, **options})


def jit_step(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Decorate one step of a compiled function.

    Numba compiles a step together with its callers. It gets no entry point for Python and no file in the cache, so it
    costs less to compile. Called from Python, it runs as plain Python. A step without ``fastmath`` inherits it from
    each caller; give it where all callers must get the same bits.
    """
    return register_jitable(**_OPTIONS, **options)
