"""The exception for users' errors, a hint for misspelt names, and messages without absolute paths and passwords."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

# A slash at the start of a word followed by at least two parts; "a/b", URLs and "1/2" are left alone.
_ABSOLUTE = re.compile(r"(?<![\w.:/~)\]}-])(?:file://|~)?/(?:[^\s/\"',;:()\[\]{}]+/)+([^\s/\"',;:()\[\]{}]*)")
_WINDOWS = re.compile(r"\b[A-Za-z]:\\(?:[^\s\\\"',;]+\\)*([^\s\\\"',;]*)")

# To the last "@" of the word: a password may hold one, and slashes.
_CREDENTIALS = re.compile(r"(?<=://)\S*@(?=[^\s/@])")


# Characters of a message, of a name in it, names in a list, and names that one is compared with: files may hold a
# million columns, or one long one.
_MESSAGE, _NAME, _LISTED, _COMPARED = 2000, 100, 20, 5000


class PrivSVMError(ValueError):
    """A problem that the user can solve: one line that names the file or key, the value and the remedy."""

    def __str__(self) -> str:
        return _shorten(super().__str__(), _MESSAGE)


def _shorten(text: str, most: int) -> str:
    """Leave out the middle of a long text: a message begins with the file and ends with the remedy."""
    half = most // 2
    return text if len(text) <= most else f"{text[:half]} ... {text[-half:]}"


def list_names(names: Sequence[str]) -> str:
    """Quote names for a message, and count those that it leaves out."""
    quoted = ", ".join(_shorten(repr(name), _NAME) for name in names[:_LISTED])
    return quoted if len(names) <= _LISTED else f"{quoted} and {len(names) - _LISTED} more"


def nearest_name(name: str, candidates: Iterable[str]) -> str:
    """Suggest the known name closest to a misspelt one.

    It is ``"did you mean 'wine'?"``, or the list of known names if none is close.
    """
    names = sorted(str(item) for item in candidates)
    close = difflib.get_close_matches(str(name), names[:_COMPARED], n=1, cutoff=0.6)
    if close:
        return f"did you mean {close[0]!r}?"
    return f"known: {_shorten(', '.join(names), _MESSAGE // 2)}" if names else "none is known"


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

    In texts, and in mappings and lists that hold such: ``<some folder>/a.csv`` turns into ``a.csv``.
    """
    if isinstance(value, Mapping):
        return {without_absolute_paths(str(key)): without_absolute_paths(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [without_absolute_paths(item) for item in value]
    if isinstance(value, str):
        return _WINDOWS.sub(r"\1", _ABSOLUTE.sub(r"\1", value))
    return value
