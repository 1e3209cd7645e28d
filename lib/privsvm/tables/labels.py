"""How labels and categories are written."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

__all__ = ["normalise_label", "parse_words"]

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def normalise_label(value: Any) -> str:
    """Write a label the one way it is written everywhere here.

    Parameters
    ----------
    value : object
        Text, number or boolean.

    Returns
    -------
    str
        Whole numbers without sign ``+`` and without ``.0`` (``"+1"``, ``1.0`` and ``"1"`` are all ``"1"``);
        other text as it is, without surrounding blanks.
    """
    text = value.decode("utf-8", "replace").strip() if isinstance(value, bytes) else str(value).strip()
    if _NUMBER.fullmatch(text):
        number = float(text)
        if math.isfinite(number) and number == int(number) and abs(number) < 2**53:
            return str(int(number))
    return text


def parse_words(value: Any) -> tuple[str, ...]:
    """Read a list of words that YAML may have read as something else; ValueError for what is none."""
    if not isinstance(value, Sequence) or isinstance(value, str) or not value:
        raise ValueError(f"{value!r}; list every one that may occur")
    if any(isinstance(item, bool) for item in value):
        raise ValueError(
            f"{list(value)!r}: YAML reads unquoted yes, no, on and off as true and false; write them in quotes"
        )
    words = tuple(normalise_label(item) for item in value)
    if len(set(words)) != len(words):
        twice = [str(item) for item, word in zip(value, words, strict=True) if words.count(word) > 1]
        raise ValueError(
            f"{list(words)!r} names one twice: {' and '.join(twice)} are read as the same; list each once, and where "
            "they mean different things rename one in the file"
        )
    return words
