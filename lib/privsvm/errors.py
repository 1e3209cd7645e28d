"""The exception for users' errors, a hint for misspelt names, and messages without absolute paths and passwords."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from typing import Any

__all__ = ["PrivSVMError", "nearest_name", "printable", "without_absolute_paths", "without_passwords"]

# A slash at the start of a word followed by at least two parts; "a/b", URLs and "1/2" are left alone.
_ABSOLUTE = re.compile(r"(?<![\w.:/~)\]}-])(?:file://|~)?/(?:[^\s/\"',;:()\[\]{}]+/)+([^\s/\"',;:()\[\]{}]*)")
_WINDOWS = re.compile(r"\b[A-Za-z]:\\(?:[^\s\\\"',;]+\\)*([^\s\\\"',;]*)")

# To the last "@" of the word: a password may hold one, and slashes.
_CREDENTIALS = re.compile(r"(?<=://)\S*@(?=[^\s/@])")


class PrivSVMError(ValueError):
    """A problem that the user can solve: one line that names the file or key, the value and the remedy."""


def nearest_name(name: str, candidates: Iterable[str]) -> str:
    """Suggest the known name closest to a misspelt one.

    Parameters
    ----------
    name : str
        The name as the user wrote it.
    candidates : iterable of str
        The names that would have been right.

    Returns
    -------
    str
        ``"did you mean 'wine'?"``, or the list of known names if none is close.
    """
    names = sorted(str(item) for item in candidates)
    close = difflib.get_close_matches(str(name), names, n=1, cutoff=0.6)
    if close:
        return f"did you mean {close[0]!r}?"
    return f"known: {', '.join(names)}" if names else "none is known"


def printable(text: str) -> str:
    """Write a message as one line in which every character can be seen.

    Line breaks, terminal escapes and marks that turn the direction of writing, which names of files and columns may
    hold, are shown as Python writes them in a text.
    """
    return "".join(
        character if character.isprintable() or character == " " else repr(character)[1:-1] for character in text
    )


def without_passwords(text: str) -> str:
    """Take user names and passwords out of all addresses in a text."""
    return _CREDENTIALS.sub("", text)


def without_absolute_paths(value: Any) -> Any:
    """Shorten absolute paths, which name users and machines, to their last part.

    Parameters
    ----------
    value : object
        Text, or mappings and lists that hold text.

    Returns
    -------
    object
        The same with ``<some folder>/a.csv`` turned into ``a.csv``.
    """
    if isinstance(value, Mapping):
        return {without_absolute_paths(str(key)): without_absolute_paths(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [without_absolute_paths(item) for item in value]
    if isinstance(value, str):
        return _WINDOWS.sub(r"\1", _ABSOLUTE.sub(r"\1", value))
    return value
