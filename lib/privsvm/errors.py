"""The one exception that users see, and the nearest-name hint that goes with it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

__all__ = ["PrivSVMError", "nearest_name"]


class PrivSVMError(ValueError):
    """A problem the user can mend: one line that names the file or key, the value and the remedy."""


def nearest_name(name: str, known: Iterable[str]) -> str:
    """Suggest the known name closest to a misspelt one.

    Parameters
    ----------
    name : str
        The name as the user wrote it.
    known : iterable of str
        The names that would have been right.

    Returns
    -------
    str
        ``"did you mean 'wine'?"``, or the list of known names where none is close.
    """
    names = sorted(str(item) for item in known)
    close = difflib.get_close_matches(str(name), names, n=1, cutoff=0.6)
    if close:
        return f"did you mean {close[0]!r}?"
    return f"known: {', '.join(names)}" if names else "none is known"
