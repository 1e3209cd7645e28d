"""Blocks of commands in the pages, read by the tests and scripts that run them."""

import dataclasses
import os
import re
from pathlib import Path

from tests.scripts import REPOSITORY

PAGES = [*sorted(REPOSITORY.glob("*.md")), *sorted((REPOSITORY / "docs").rglob("*.md"))]
_BLOCK = re.compile(
    r"(?:^<!-- (runs|not-run): (.*?) -->\n)?^```(sh|bash|console|python)\n(.*?)^```", re.MULTILINE | re.DOTALL
)


@dataclasses.dataclass(frozen=True)
class Block:
    """One block of a page."""

    page: str  # Path below the root of the repository.
    number: int  # Place on its page, from 0.
    kind: str | None  # "runs" or "not-run" in the line above; None without one.
    note: str | None  # File that runs it, or the reason why none does.
    language: str  # ``sh``, ``bash``, ``console`` or ``python``.
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
    """List the blocks that name a test or script as their runner, by its ``__file__``.

    Raises LookupError if there are none.
    """
    name = Path(file).resolve().relative_to(REPOSITORY).as_posix()
    named = [block for block in blocks() if (block.kind, block.note) == ("runs", name)]
    if not named:
        raise LookupError(f"no page says that {name} runs a block of it")
    return named
