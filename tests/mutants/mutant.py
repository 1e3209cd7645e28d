"""What a planted bug is: what to change in which file, which privacy tests must find it, and in which words."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Mutant", "bug"]


class Mutant(NamedTuple):
    """One bug."""

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
    """Make a bug; files are below ``lib/privsvm``, unless they are tests or of the benchmark."""
    home = "" if file.startswith("tests/") else "lib/" if file.startswith("privsvm_bench/") else "lib/privsvm/"
    return Mutant(name, home + file, old, new, tests, says)
