"""Find the proof of each method: a section of its mechanism's page, or a page of its own."""

import re
from pathlib import Path

from privsvm.registry import implementations

PROOFS = Path(__file__).with_name("proofs")


def proofs():
    """Return links to the proofs, as seen from the folder of the pages: ``second_moments.md#adassp`` of ``adassp``."""
    methods = set(implementations())
    links = {}
    for page in sorted(PROOFS.glob("*.md")):
        sections = re.findall(r"^## (\w+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
        links |= {name: f"{page.name}#{name}" for name in sections if name in methods}
        links |= {page.stem: page.name} if page.stem in methods else {}
    return links


def methods_of(mechanism):
    """List the methods that a mechanism's page proves."""
    return [name for name, link in proofs().items() if link.startswith(f"{mechanism}.md")]
