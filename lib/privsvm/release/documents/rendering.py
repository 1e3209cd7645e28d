"""Templates of documents: each target has one function that escapes every value."""

from __future__ import annotations

import functools
import html
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import jinja2
from markupsafe import Markup

from privsvm.errors import printable
from privsvm.escaping import markdown_text


def plain(value: Any) -> str:
    """Write a value for people."""
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "not given"}[value]
    return f"{value:.6g}" if isinstance(value, float) else str(value)


_ESCAPES: Mapping[str, Callable[[str], str]] = {"html": html.escape, "md": markdown_text, "txt": printable}


@functools.cache
def _environment(target: str) -> Any:
    def escape(value: Any) -> Any:
        return value if isinstance(value, Markup) else Markup(_ESCAPES[target](plain(value)))  # nosec B704

    return jinja2.Environment(
        loader=jinja2.PackageLoader(__package__), autoescape=True, finalize=escape, undefined=jinja2.StrictUndefined,
        trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True,
    )  # fmt: skip


def render(template: str, **facts: Any) -> str:
    """Render a template, such as `card.html`, with values that are escaped for its target."""
    text: str = _environment(template.rpartition(".")[2]).get_template(f"{template}.jinja").render(**facts)
    return text


def mark_lines(lines: Iterable[str]) -> Any:
    """Escape lines for a terminal, and mark them as escaped."""
    return Markup("\n".join(map(printable, lines)))  # nosec B704
