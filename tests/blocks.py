"""Blocks of commands in the pages, for the tests and scripts that run them: taken from the pages, not copied."""

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
        The page, from the root of the repository.
    number : int
        Of the block on its page, from 0.
    kind : {"runs", "not-run"} or None
        What the line above it says; None where there is none.
    said : str or None
        The file that runs it, or why none does.
    language : str
        ``sh``, ``bash``, ``console`` or ``python``.
    text : str
        What it holds.
    """

    page: str
    number: int
    kind: str | None
    said: str | None
    language: str
    text: str

    @property
    def commands(self) -> list[str]:
        """Its commands one by one, without comments; a line that goes on is one command."""
        lines = [re.sub(r"(^|\s+)#\s.*$", "", line) for line in self.text.replace("\\\n", " ").splitlines()]
        return [" ".join(command.split()) for line in lines for command in line.split(" && ") if command.strip()]


def blocks() -> list[Block]:
    """All blocks of all pages."""
    return [
        Block(page.relative_to(REPOSITORY).as_posix(), number, *match.groups())
        for page in PAGES
        for number, match in enumerate(_BLOCK.finditer(page.read_text(encoding="utf-8")))
    ]


def blocks_run_by(file: str | os.PathLike[str]) -> list[Block]:
    """The blocks that name a file as what runs them; whoever asks runs all of them.

    Parameters
    ----------
    file : path-like
        The test or script, as ``__file__``.

    Raises
    ------
    LookupError
        If there are none.
    """
    name = Path(file).resolve().relative_to(REPOSITORY).as_posix()
    found = [block for block in blocks() if (block.kind, block.said) == ("runs", name)]
    if not found:
        raise LookupError(f"no page says that {name} runs a block of it")
    return found
