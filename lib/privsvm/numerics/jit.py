"""How this package compiles functions: with few kinds of options, since Numba compiles what two kinds share twice."""

from __future__ import annotations

import contextlib
import errno
import functools
import hashlib
import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from numba import njit
from numba.core.caching import IndexDataCacheFile
from numba.extending import register_jitable

__all__ = ["CheckedCacheFile", "jit", "jit_step"]

_DIGEST_BYTES = 32


class CheckedCacheFile(IndexDataCacheFile):
    """Numba's files of compiled functions, each with a digest at its end.

    A file that a full disk or a crash has damaged counts as none: its function is compiled again and the file replaced.
    Numba itself would fail with it in every later run, or run damaged machine code.
    """

    @contextlib.contextmanager
    def _open_for_write(self, filepath: str) -> Iterator[io.BytesIO]:
        content = io.BytesIO()
        yield content
        with super()._open_for_write(filepath) as file:
            # Numba reads what stands before it and ignores the rest.
            file.write(content.getvalue() + hashlib.sha256(content.getvalue()).digest())

    def _load_index(self) -> Any:
        try:
            return super()._load_index() if _is_whole(Path(self._index_path)) else {}
        except OSError as error:
            # A link that leads back to itself is replaced as a damaged file is.
            if error.errno in (errno.ENOENT, errno.ELOOP):
                return {}
            raise

    def _load_data(self, name: str) -> Any:
        if not _is_whole(Path(self._data_path(name))):
            # As for a file that was removed.
            raise OSError
        return super()._load_data(name)


def _is_whole(path: Path) -> bool:
    content = path.read_bytes()
    return hashlib.sha256(content[:-_DIGEST_BYTES]).digest() == content[-_DIGEST_BYTES:]


def _compile(compile_signature: Callable[..., Any], *arguments: Any) -> Any:
    # Imported late: whoever finds everything in the cache compiles nothing.
    from privsvm.numerics.quick_compiler import steps_without_machine_code

    with steps_without_machine_code():
        return compile_signature(*arguments)


_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}


def jit(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Decorate a compiled function that Python calls.

    Parameters
    ----------
    **options
        Further options of `numba.njit`, for example ``fastmath``.

    Returns
    -------
    callable
        The decorator. The function is kept in Numba's cache, does not hold the interpreter lock, and divides by zero
        as NumPy does.
    """
    compiler = njit(cache=True, **_OPTIONS, **options)

    def decorate(function: Callable[..., Any]) -> Any:
        compiled: Any = compiler(function)
        # With NUMBA_DISABLE_JIT it is the function.
        if hasattr(compiled, "_cache"):
            compiled._cache._cache_file.__class__ = CheckedCacheFile
            compiled._compiler.compile = functools.partial(_compile, compiled._compiler.compile)
        return compiled

    return decorate


def jit_step(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Decorate one step of a compiled function.

    Numba compiles a step together with its callers. It gets no entry point for Python and no file in the cache, so it
    costs less to compile. Called from Python, it runs as plain Python. A step without ``fastmath`` inherits that of
    each caller; give it where all callers must get the same bits.

    Parameters
    ----------
    **options
        As in `jit`.

    Returns
    -------
    callable
        The decorator.
    """
    return register_jitable(**_OPTIONS, **options)
