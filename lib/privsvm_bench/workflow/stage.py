"""Code that all stage scripts share: parameters of jobs, one-line errors, no orphans."""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import errno
import json
import signal
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from privsvm.errors import PrivSVMError, printable

if TYPE_CHECKING:
    from privsvm.models import Model

Checked = TypeVar("Checked", bound="Model")

_PR_SET_PDEATHSIG = 1


def die_with_parent() -> None:
    """Ask the kernel to kill this process when its parent dies.

    A job that outlives a killed Snakemake would write into folders that the next run already owns. Outside Linux
    nothing happens; writes are atomic there too.
    """
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def read_job(kind: type[Checked], text: str) -> Checked:
    """Read the parameters of a job; raise PrivSVMError for text that is not such JSON."""
    # Lazy: evaluation has no parameters and starts faster without pydantic.
    from privsvm.models import check_model

    try:
        values = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise PrivSVMError(f"--parameters: not valid JSON: {error}") from None
    return check_model(kind, values, "--parameters")


def json_argument(text: str) -> Any:
    """Parse a JSON command-line argument (an ``argparse`` type)."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise argparse.ArgumentTypeError(f"not valid JSON: {error}") from None


def run(main: Callable[[list[str] | None], int | None], is_job: bool = False) -> None:
    """Run a stage's ``main`` and end the process with its exit code (None: 0); a job ends when its parent dies too.

    A `PrivSVMError`, a lack of memory or an operating-system error becomes one line on standard error and exit code 1.
    """
    if is_job:
        die_with_parent()
    code, message = 1, ""
    try:
        code = main(None) or 0
    except PrivSVMError as error:
        # Keys of params.yaml are named with their file, whichever job finds the problem.
        source = "params.yaml: " if str(error).startswith(("datasets.", "methods.")) else ""
        message = f"{source}{error}"
    except KeyboardInterrupt:
        # Silent: the user pressed Ctrl-C.
        code = 128 + signal.SIGINT
    except MemoryError as error:
        detail = f" ({' '.join(str(error).split())})" if str(error) else ""
        message = f"out of memory{detail}; use fewer rows, features or classes, or a larger machine"
    except OSError as error:
        remedy = {
            errno.ENOSPC: "free some disk space and run again; nothing was half-written",
            errno.EDQUOT: "free some of your quota and run again; nothing was half-written",
            errno.EACCES: "make the folder writable or run from a folder of your own",
            errno.EPERM: "make the folder writable or run from a folder of your own",
            errno.EROFS: "the file system is read-only; run from a folder that can be written",
        }.get(error.errno or 0, "check the path and run again")
        message = f"{error.filename or 'file system'}: {error.strerror or error}; {remedy}"
    if message:
        print(f"error: {printable(message)}", file=sys.stderr)
    sys.exit(code)
