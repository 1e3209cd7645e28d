"""Calibrations kept on disk, so that no two runs compute the same one.

One small JSON file for each request, named by a hash of the request, in the folder ``accounting`` of `cache_folder`.
A file counts only if it repeats the whole request and its own checksum is right; any other file is as good as none.
That catches damage. A file cannot make a model less private than it says either: the accountant looks at every answer
again before it is used.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from privsvm.files import canonical_json, write_json

__all__ = ["cache_folder", "stored_calibration"]

# After so many seconds nobody waits any longer for another process that computes the same.
_LONGEST_WAIT = 120.0


def cache_folder() -> Path | None:
    """Folder for what may be computed anew at any time.

    Returns
    -------
    pathlib.Path or None
        ``PRIVSVM_CACHE``; without it ``privsvm`` in the user's cache folder (``XDG_CACHE_HOME``, or ``~/.cache``).
        None where the user has no home.
    """
    named = os.environ.get("PRIVSVM_CACHE")
    if named:
        return Path(named)
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "privsvm"
    except RuntimeError:
        return None


def stored_calibration(
    request: Mapping[str, object],
    compute: Callable[[], dict[str, float]],
    valid: Callable[[Mapping[str, float]], bool],
) -> dict[str, float]:
    """Read a calibration, or compute and store it.

    Parameters
    ----------
    request : mapping
        All that the answer depends on, versions of the code included; JSON can hold it.
    compute : callable () -> dict of str to float
        Gives the answer.
    valid : callable (answer) -> bool
        Whether a stored answer may be used.

    Returns
    -------
    dict of str to float

    Notes
    -----
    Nothing about the folder can make this fail: what cannot be read is computed, what cannot be written is not kept.
    Of several processes with the same request one computes, and the others wait for it; where the file system knows no
    locks, or after two minutes, they compute too. The files are renamed into place, so that is no harm.
    """
    folder = cache_folder()
    if folder is None:
        return compute()
    request = json.loads(canonical_json(request))
    name = hashlib.sha256(canonical_json(request).encode()).hexdigest()[:40]
    path = folder / "accounting" / f"{name}.json"
    answer = _read(path, request, valid)
    if answer is not None:
        return answer
    with _lock(path.with_suffix(".lock")):
        answer = _read(path, request, valid)
        if answer is None:
            answer = compute()
            body = {"request": request, "answer": answer}
            with contextlib.suppress(OSError):
                write_json(path, {**body, "sha256": _checksum(body)})
    return answer


def _checksum(body: Mapping[str, object]) -> str:
    return hashlib.sha256(canonical_json(body).encode()).hexdigest()


def _read(
    path: Path, request: Mapping[str, object], valid: Callable[[Mapping[str, float]], bool]
) -> dict[str, float] | None:
    """Read the answer to a request; None for any file that is not exactly that."""
    # Deep nesting in a foreign file ends in a RecursionError.
    with contextlib.suppress(OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        stored = json.loads(path.read_text(encoding="utf-8"))
        body = {"request": stored["request"], "answer": stored["answer"]}
        intact = stored["request"] == request and stored["sha256"] == _checksum(body)
        if intact and all(type(number) is float for number in stored["answer"].values()) and valid(stored["answer"]):
            return stored["answer"]
    return None


@contextlib.contextmanager
def _lock(path: Path) -> Iterator[None]:
    """Hold a lock that the kernel releases when the process ends; go on without one where there can be none."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = open(path, "a", encoding="utf-8")  # noqa: SIM115 - closed below
    except OSError:
        yield
        return
    with handle:
        end = time.monotonic() + _LONGEST_WAIT
        while time.monotonic() < end:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                time.sleep(0.02)
            except OSError:
                break
            else:
                break
        try:
            yield
        finally:
            # Whoever waits for the removed file still gets its lock, and finds the answer.
            with contextlib.suppress(OSError):
                path.unlink()
