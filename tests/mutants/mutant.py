"""Planted bugs: file, change, and the privacy tests that must find it, with words of their failure.

The bugs of a room of the library are in `<room>.toml` beside this file, one table a bug, under its name. `old`
occurs in `file` exactly once. `tests` are pytest's names; the first one that fails counts, and its report must hold
`says`, "assert" by default: a bug found for another reason is not found. A bug marked `sample` is planted in every run
of the tests.
"""

import tomllib
from pathlib import Path
from typing import NamedTuple


class Mutant(NamedTuple):
    """A planted bug."""

    name: str
    file: str
    old: str
    new: str
    tests: list[str]
    says: str = "assert"
    sample: bool = False

    def plant(self, text: str) -> str:
        """Return the file's text with the bug in it."""
        if text.count(self.old) != 1:
            raise ValueError(f"{self.name}: {self.file} holds the old text {text.count(self.old)} times")
        return text.replace(self.old, self.new)


MUTANTS = [
    Mutant(name, **bug)
    for path in sorted(Path(__file__).parent.glob("*.toml"))
    for name, bug in tomllib.loads(path.read_text(encoding="utf-8")).items()
]
