"""Calibrations kept on disk, so that no two runs compute the same one.

One small JSON file for each request, named by a hash of the request, in the folder ``accounting`` of `cache_folder`.
A file counts only if it repeats the whole request and its own checksum is right; any other file is ignored. This
catches damage. Nor can a file make a model less private than it says: the accountant checks every answer before it is
used.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from privsvm.digests import canonical_json, sha256_of_json
from privsvm.files import write_json

__all__ = ["cache_folder", "stored_calibration"]

# After so many seconds a process stops waiting for another one that computes the same.
_LONGEST_WAIT = 120.0


def cache_folder() -> Path | None:
    """Find the folder for results that can be computed again at any time.

    Returns
    -------
    pathlib.Path or None
        ``PRIVSVM_CACHE``, if set; otherwise ``privsvm`` in the user's cache folder (``XDG_CACHE_HOME``, or
        ``~/.cache``). None if the user has no home.
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
        Everything that the answer depends on, including versions of the code, as JSON values.
    compute : callable () -> dict of str to float
        Computes the answer.
    valid : callable (answer) -> bool
        Whether a stored answer may be used.

    Returns
    -------
    dict of str to float

    Notes
    -----
    No state of the folder makes this fail: an answer that cannot be read is computed, and one that cannot be written is
    not kept. Of several processes with the same request, one computes and the others wait. Where the file system has no
    locks, or after two minutes, they compute too; this is harmless, since files are renamed into place.
    """
    folder = cache_folder()
    if folder is None:
        return compute()
    request = json.loads(canonical_json(request))
    name = sha256_of_json(request)[:40]
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
    return sha256_of_json(body)


def _read(
    path: Path, request: Mapping[str, object], valid: Callable[[Mapping[str, float]], bool]
) -> dict[str, float] | None:
    """Read the answer to a request; None if the file holds anything else."""
    # Deep nesting in a foreign file ends in a RecursionError.
    with contextlib.suppress(OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        stored = json.loads(path.read_text(encoding="utf-8"))
        body = {"request": stored["request"], "answer": stored["answer"]}
        intact = stored["request"] == request and stored["sha256"] == _checksum(body)
        if intact and all(type(number) is float for number in stored["answer"].values()) and valid(stored["answer"]):
            answer: dict[str, float] = stored["answer"]
            return answer
    return None


@contextlib.contextmanager
def _lock(path: Path) -> Iterator[None]:
    """Hold a lock that ends with the process; go on without one where the file system has no locks."""
    # Imported late: most answers are there already.
    import filelock

    lock = filelock.FileLock(path, timeout=_LONGEST_WAIT)
    # Waiting for too long is an OSError too.
    with contextlib.suppress(OSError, NotImplementedError):
        path.parent.mkdir(parents=True, exist_ok=True)
        lock.acquire(poll_interval=0.02)
    try:
        yield
    finally:
        if lock.is_locked:
            # A process that waits for the removed file opens the next one, and finds the answer.
            with contextlib.suppress(OSError):
                path.unlink()
            lock.release()
