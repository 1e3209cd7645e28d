"""Sections of pages that programs write; it imports nothing, as environments of peers load it."""

from __future__ import annotations


def with_section(page: str, start: str, end: str, text: str) -> str:
    """Replace what stands between two marks of a page."""
    before, rest = page.split(start)
    return f"{before}{start}\n{text}\n{end}{rest.split(end)[1]}"
