"""Numbers, counts and lists as people read them."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

_COUNTS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")

_Value = TypeVar("_Value", bound=Hashable)


def short_number(value: Any, digits: int = 3) -> str:
    """Write a number for people; ``"inf"`` becomes ``"∞"``, None an en dash, and any other text stays.

    `digits` are significant.
    """
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {short_number(item, digits)}" for key, item in sorted(value.items()))
    if isinstance(value, (list, tuple)):
        return ", ".join(short_number(item, digits) for item in value)
    try:
        number = float(value)
    except (TypeError, ValueError):
        return str(value)
    if math.isnan(number):
        return str(value)
    if math.isinf(number):
        return "∞" if number > 0 else "−∞"
    return _significant(number, digits)


def _significant(number: float, digits: int) -> str:
    if number and (abs(number) < 1e-3 or abs(number) >= 1e6):
        mantissa, _, exponent = f"{number:.{digits - 1}e}".partition("e")
        mantissa = mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa
        return f"{mantissa}e{int(exponent)}"
    if abs(number) >= 10 ** (digits - 1):
        return f"{number:.0f}"
    return f"{number:.{digits}g}"


def percent(share: float) -> str:
    """Write a share for people, such as ``"33.8 %"`` with a no-break space; never 100 % if it is less."""
    return f"{short_number(100 * share if share in (0, 1) else min(100 * share, 99.9))}\N{NO-BREAK SPACE}%"


def count_in_words(count: int, word: str) -> str:
    """Write a count of things as in a sentence: ``"one method"`` or ``"25 datasets"``."""
    return f"{_COUNTS[count] if count < len(_COUNTS) else count} {word}{'' if count == 1 else 's'}"


def score_text(mean: float | None, spread: float | None = None) -> str:
    """Write a mean with its standard deviation; an en dash where it is undefined."""
    if mean is None:
        return "–"
    return f"{mean:.3f}" if spread is None else f"{mean:.3f} ± {spread:.3f}"


def percent_score(mean: float | None, spread: float | None = None) -> str:
    """Write a mean share and its standard deviation in percent; an en dash where it is undefined."""
    if mean is None:
        return "–"
    return f"{100 * mean:.1f}\N{NO-BREAK SPACE}%" + ("" if spread is None else f" ± {100 * spread:.1f}")


def names_text(names: Sequence[str]) -> str:
    """List up to four names, or three and how many more there are."""
    if len(names) <= 4:
        return ", ".join(names)
    return f"{', '.join(names[:3])} and {len(names) - 3} more"


def unique(values: Iterable[_Value | None]) -> list[_Value]:
    """Drop repeats, None and empty text, keeping the order."""
    return [value for value in dict.fromkeys(values) if value is not None and value != ""]
