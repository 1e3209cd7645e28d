"""What docs/cluster.md says of measured times."""

from __future__ import annotations

import json
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/cluster.md"
MEASURED = Path(__file__).with_name("measured.json")
_PLACE = re.compile(r"(<!-- measured: [^\n]* -->\n).*?(<!-- end of measured -->\n)", re.DOTALL)


def table(measured: dict) -> str:
    """Say what was measured.

    Parameters
    ----------
    measured : dict
        Of ``small``, and of ``all`` where the whole was run: ``jobs``, ``slurm_jobs``, and the seconds ``here`` and
        ``there`` of each round; ``processors`` and ``load``, the mean number of processes that ran or waited while
        the small jobs were timed.

    Returns
    -------
    str
        Markdown.
    """
    lines = [
        "| wall time, s | jobs | Slurm jobs | here | through Slurm | times |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    titles = {"all": "the default benchmark", "small": "small jobs of the default benchmark (`evaluate`)"}
    for key, title in ((key, title) for key, title in titles.items() if key in measured):
        row = measured[key]
        here, there = sum(row["here"]), sum(row["there"])
        seconds = (", ".join(f"{second:.0f}" for second in row[side]) for side in ("here", "there"))
        lines.append(f"| {title} | {row['jobs']} | {row['slurm_jobs']} | {' | '.join(seconds)} | {there / here:.1f} |")
    rounds = len(measured["small"]["here"])
    said = (
        f"Two nodes with two processors each, both on one machine with {measured['processors']} that ran other "
        f"programs too (load {measured['load']:.0f}); here four jobs at a time. The small jobs took turns, {rounds} "
        "times here and through Slurm."
    )
    return "\n".join([*lines, "", said, ""])


def with_figures(page: str, measured: dict) -> str:
    """A page with the table in its place."""
    text, places = _PLACE.subn(lambda match: match[1] + table(measured) + match[2], page)
    if places != 1:
        raise ValueError(f"{PAGE.name}: has {places} places for measured times, not one")
    return text


def write(measured: dict) -> None:
    """Keep what was measured, and write it into the page."""
    MEASURED.write_text(json.dumps(measured, indent=2) + "\n", encoding="utf-8")
    PAGE.write_text(with_figures(PAGE.read_text(encoding="utf-8"), measured), encoding="utf-8")
