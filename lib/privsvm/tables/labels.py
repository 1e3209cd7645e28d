"""How labels, categories and identifiers are written: they keep their text."""

from __future__ import annotations

import functools
import math
import numbers
import re
import sys
from collections import Counter
from collections.abc import Sequence
from typing import Any

from privsvm.constraints import ANY_NUMBER, with_numpy

# A whole number that a program wrote as a fraction. Other spellings stay apart: 007 and 7, or 2E01 and 20, may be two.
_WHOLE = re.compile(r"-?(0)\.0*|(-?[1-9]\d*)\.0*", re.ASCII)
_NUMBER = with_numpy(ANY_NUMBER)


def normalise_label(value: Any) -> str:
    """Write a label, a category or an identifier the one way that cells with the same meaning share.

    The text without surrounding blanks, and 7 for 7.0: files of numbers have the one or the other. Whole numbers that
    became floats keep all their digits, where their text would have an exponent.
    """
    if not isinstance(value, (str, int)) and isinstance(value, numbers.Real) and math.isfinite(value):
        value = math.floor(value) if value == math.floor(value) else value
    text = value.decode("utf-8", "replace").strip() if isinstance(value, bytes) else str(value).strip()
    whole_number = _WHOLE.fullmatch(text)
    return text if whole_number is None else whole_number[1] or whole_number[2]


@functools.cache
def _folded_letters() -> list[tuple[str, str]]:
    """List the letters whose `str.casefold` is another text, with that text."""
    folded = ((letter, letter.casefold()) for letter in map(chr, range(sys.maxunicode + 1)))
    return [(letter, text) for letter, text in folded if text != letter]


def letters_to_fold(text: str) -> list[tuple[str, str]]:
    """List the letters whose `str.casefold` is another text, and part of a given one; with that text."""
    return [(letter, folded) for letter, folded in _folded_letters() if folded in text]


def spell_in_any_case(word: str, most: int) -> list[str]:
    """List all texts whose `str.casefold` is a word; raise ValueError where there are more than `most`."""
    letters, beginnings = letters_to_fold(word), [[""], *([] for _ in word)]
    for place, letter in enumerate(word):
        for spelled, folded in [(letter, letter), *letters]:
            if word.startswith(folded, place):
                beginnings[place + len(folded)] += [beginning + spelled for beginning in beginnings[place]]
        if len(beginnings[place + 1]) > most:
            raise ValueError(f"{word!r} has more than {most} spellings")
    return beginnings[-1]


def parse_words(value: Any) -> tuple[str, ...]:
    """Read a list of words that YAML may have read as something else; raise ValueError for other values."""
    if not isinstance(value, Sequence) or isinstance(value, str) or not value:
        raise ValueError(f"{value!r}; list every one that may occur")
    if any(isinstance(item, bool) for item in value):
        raise ValueError(
            f"{list(value)!r}: YAML reads unquoted yes, no, on and off as true and false; write them in quotes"
        )
    for item in value:
        if not (isinstance(item, str) or _NUMBER.accepts(item)):
            raise ValueError(f"{item!r} is neither a text nor a finite number; write it in quotes if it is a word")
    words = tuple(item.strip() if isinstance(item, str) else normalise_label(item) for item in value)
    same = [normalise_label(word) for word in words]
    times = Counter(same)
    twice = [str(item) for item, word in zip(value, same, strict=True) if times[word] > 1]
    if twice:
        raise ValueError(
            f"{list(words)!r} names one twice: {' and '.join(twice)} are read as the same; list each once, and where "
            "they mean different things rename one in the file"
        )
    return words
