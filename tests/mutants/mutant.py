"""A planted bug: file, change, and the privacy tests that must find it, with words of their failure."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Mutant", "bug"]


class Mutant(NamedTuple):
    """A planted bug."""

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]
    says: str

    def planted(self, text: str) -> str:
        """Return the file's text with the bug in it."""
        if text.count(self.old) != 1:
            raise ValueError(f"{self.name}: {self.file} holds the old text {text.count(self.old)} times")
        return text.replace(self.old, self.new)


def bug(name: str, file: str, old: str, new: str, *tests: str, says: str = "") -> Mutant:
    """Make a bug; files are below ``lib/privsvm`` by default."""
    at_root = file.startswith(("tests/", "stages/", "reproduce/"))
    home = "" if at_root else "lib/" if file.startswith("privsvm_bench/") else "lib/privsvm/"
    return Mutant(name, home + file, old, new, tests, says)
