"""Blocks of commands in the pages, read by the tests and scripts that run them."""

from __future__ import annotations

import dataclasses
import os
import re
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
PAGES = [*sorted(REPOSITORY.glob("*.md")), *sorted((REPOSITORY / "docs").rglob("*.md"))]
_BLOCK = re.compile(
    r"(?:^<!-- (runs|not-run): (.*?) -->\n)?^```(sh|bash|console|python)\n(.*?)^```", re.MULTILINE | re.DOTALL
)


@dataclasses.dataclass(frozen=True)
class Block:
    """One block of a page.

    Attributes
    ----------
    page : str
        Path of the page below the root of the repository.
    number : int
        Number of the block on its page, from 0.
    kind : {"runs", "not-run"} or None
        Kind of the line above it; None without one.
    note : str or None
        File that runs it, or the reason why none does.
    language : str
        ``sh``, ``bash``, ``console`` or ``python``.
    text : str
        Content.
    """

    page: str
    number: int
    kind: str | None
    note: str | None
    language: str
    text: str

    @property
    def commands(self) -> list[str]:
        """Split the text into commands without comments; continued lines are one command."""
        lines = [re.sub(r"(^|\s+)#\s.*$", "", line) for line in self.text.replace("\\\n", " ").splitlines()]
        return [" ".join(command.split()) for line in lines for command in line.split(" && ") if command.strip()]


def blocks() -> list[Block]:
    """List all blocks of all pages."""
    return [
        Block(page.relative_to(REPOSITORY).as_posix(), number, *match.groups())
        for page in PAGES
        for number, match in enumerate(_BLOCK.finditer(page.read_text(encoding="utf-8")))
    ]


def blocks_run_by(file: str | os.PathLike[str]) -> list[Block]:
    """List the blocks that name a file as their runner.

    Parameters
    ----------
    file : path-like
        ``__file__`` of the test or script.

    Raises
    ------
    LookupError
        If there are none.
    """
    name = Path(file).resolve().relative_to(REPOSITORY).as_posix()
    named = [block for block in blocks() if (block.kind, block.note) == ("runs", name)]
    if not named:
        raise LookupError(f"no page says that {name} runs a block of it")
    return named
