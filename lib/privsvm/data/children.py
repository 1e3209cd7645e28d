"""Work that may end its process, done in another one."""

from __future__ import annotations

import contextlib
import faulthandler
import io
import os
from collections.abc import Callable

import numpy as np

from privsvm.errors import PrivSVMError

__all__ = ["arrays_of_child"]

_FINE, _REFUSED = b"0", b"1"


def arrays_of_child(work: Callable[[], dict[str, np.ndarray]]) -> dict[str, np.ndarray] | None:
    """Do some work in a copy of this process, which may crash.

    Parameters
    ----------
    work : callable
        Returns arrays without Python objects, by name. It leaves nothing else behind.

    Returns
    -------
    dict of str to ndarray, or None
        None where the copy ended without an answer.

    Raises
    ------
    PrivSVMError
        Where the work raises it.
    """
    if not hasattr(os, "fork"):
        # Not everywhere can a process be copied.
        return work()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reader)
            _answer(work, writer)
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as stream:
        answer = stream.read()
    _, status = os.waitpid(child, 0)
    if status or not answer:
        return None
    if answer.startswith(_REFUSED):
        raise PrivSVMError(answer[1:].decode())
    with np.load(io.BytesIO(answer[1:]), allow_pickle=False) as stored:
        return {name: stored[name] for name in stored.files}


def _answer(work: Callable[[], dict[str, np.ndarray]], writer: int) -> None:
    """Write the arrays, or why there are none, for the other process."""
    import resource

    # Nobody wants to see how it crashes.
    faulthandler.disable()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), 2)
    content = io.BytesIO()
    try:
        np.savez(content, **work())  # type: ignore[arg-type]
        answer = _FINE + content.getvalue()
    except PrivSVMError as error:
        answer = _REFUSED + str(error).encode("utf-8", "replace")
    with contextlib.suppress(OSError), os.fdopen(writer, "wb") as stream:
        stream.write(answer)
