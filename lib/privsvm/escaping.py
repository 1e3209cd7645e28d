"""Texts of others in Markdown and spreadsheets; HTML has `html.escape`, terminals `privsvm.errors.printable`."""

from __future__ import annotations

import html
import re
from typing import Any

from privsvm.errors import printable

_MARKS = re.compile(r"([\\`*_\[\]|#~])")
# Of a list, a rule or a heading, where they begin a line.
_FIRST_MARKS = re.compile(r"^(\d*)([-+=.)])(?=[-+=\s]|$)")

# Spreadsheets run a cell that begins so, in some languages also by the wide signs; one apostrophe makes it a text.
_FORMULA = re.compile(r"['\s]*[=+\-@\uff1d\uff0b\uff0d\uff20]")
_NUMBER = re.compile(r" *[-+]?[0-9.,]+([eE][-+]?[0-9]+)? *")


def markdown_text(value: Any) -> str:
    """Write a text as one line of Markdown, without HTML, links, lists and headings of its own."""
    escaped = _MARKS.sub(r"\\\1", html.escape(printable(str(value)).strip(), quote=False))
    return _FIRST_MARKS.sub(r"\1\\\2", escaped)


def spreadsheet_cell(value: Any) -> Any:
    """Put an apostrophe before a text that a spreadsheet would run; numbers and other texts stay as they are.

    The original is without the first apostrophe, since a text that begins with apostrophes and a sign gets one, too.
    """
    if not isinstance(value, str) or not _FORMULA.match(value) or _NUMBER.fullmatch(value):
        return value
    return f"'{value}"
