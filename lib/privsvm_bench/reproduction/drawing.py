"""Pieces of plotly figures, as plain JSON, that the papers' reports draw with."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

__all__ = ["axis", "diagonal", "scatter"]


def scatter(mode: str, name: str, x: Iterable[Any], y: Iterable[Any], **more: Any) -> dict[str, Any]:
    """Draw a series as "markers", "lines" or "lines+markers"."""
    return {"type": "scatter", "mode": mode, "name": name, "x": list(x), "y": list(y), **more}


def axis(title: str, **more: Any) -> dict[str, Any]:
    """Describe an axis that has a title."""
    return {"title": {"text": title}, **more}


def diagonal(ends: Sequence[float], **line: Any) -> dict[str, Any]:
    """Draw the line on which both coordinates are equal."""
    return {"type": "scatter", "mode": "lines", "x": list(ends), "y": list(ends), "hoverinfo": "skip",
            "showlegend": False, "line": {"width": 1, **line}}  # fmt: skip
