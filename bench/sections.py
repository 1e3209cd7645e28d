"""Sections of pages that programs write, tables and CSV text; environments of peers load it without other packages."""

from __future__ import annotations

import csv
import io
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any


def with_section(page: str, start: str, end: str, text: str) -> str:
    """Replace the text between two marks of a page."""
    before, rest = page.split(start)
    return f"{before}{start}\n{text}\n{end}{rest.split(end)[1]}"


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[Any]], numbers: int = 0) -> str:
    """Lay out a Markdown table; its last `numbers` columns hold numbers."""
    rule = ["---"] * (len(header) - numbers) + ["---:"] * numbers
    lines = [[str(cell).replace("|", "\\|") for cell in row] for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in (header, rule, *lines))


def csv_text(fields: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> str:
    """Write rows as CSV with these columns."""
    text = io.StringIO()
    writer = csv.DictWriter(text, fields, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def sources_table(sources: Any, tables: Sequence[str], title: Callable[[str], str] = str) -> str:
    """Write when every entry of tables was measured and confirmed, and the median processor seconds of its cells."""
    rows = []
    for name in tables:
        for entry in sources.entries(name):
            seconds = sources.seconds(name, entry)
            time = f"{statistics.median(seconds):.2f}" if seconds else ""
            rows.append([title(entry), name, time, sources.sentence(name, entry)])
    header = ["entry", "table", "seconds", "source"]
    # Columns that tell nothing apart.
    keep = [place for place in range(4) if place in (0, 3) or len({row[place] for row in rows}) > 1]
    return markdown_table([header[place] for place in keep], [[row[place] for place in keep] for row in rows])
