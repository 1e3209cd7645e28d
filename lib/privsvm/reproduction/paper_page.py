"""HTML page of a paper: every printed number and statement with its verdict, and what the rules are worth."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from privsvm.reporting.page import short_number
from privsvm.reproduction.judging import FALSE_DISCOVERIES, MOST_PASSES, VERDICTS, Judgement, TableCheck
from privsvm.reproduction.printed import PrintedPaper, count, interval, reading_of
from privsvm.reproduction.rendering import environment

__all__ = ["anchor", "maps", "one_sided", "paper_page", "summary"]

# Tables of at most so many numbers are open from the start.
_SMALL = 60


def anchor(name: str) -> str:
    """Name of a row on the page."""
    return "n-" + re.sub(r"[^A-Za-z0-9.=]+", "-", name)


def one_sided(sides: Sequence[TableCheck]) -> list[TableCheck]:
    """Choose the rules whose numbers lie to one side, by Benjamini and Hochberg's step-up."""
    ordered = sorted(sides, key=lambda item: item.p)
    last = max(
        (rank for rank, item in enumerate(ordered, 1) if item.p <= FALSE_DISCOVERIES * rank / len(ordered)), default=0
    )
    chosen = {item.rule for item in ordered[:last]}
    return [item for item in sides if item.rule in chosen]


def _row(judged: PrintedPaper, judgement: Judgement) -> dict[str, Any]:
    own, item = judgement.printed, judgement.distribution
    numbers = [short_number(value, digits=5) for value in interval(item)] if item else ["–", "", ""]
    exact = item is not None and item.statistic == "exact"
    return {
        "anchor": anchor(own.id),
        "own": own,
        "ours": numbers[0],
        "interval": "exact" if exact else f"{numbers[1]} to {numbers[2]}" if item else "–",
        "percentile": "–" if judgement.percentile is None else f"{100 * judgement.percentile:.1f} %",
        "runs": item.runs if item else "–",
        "verdict": judgement.verdict,
        "reading": reading_of(judged.paper, judgement),
    }


def maps(judged: PrintedPaper) -> list[dict[str, Any]]:
    """Lay out the verdicts of a paper: a map for each table, a line for each dataset, a cell for each number."""
    found: dict[str, dict[str, list[dict[str, str]]]] = {}
    counts: dict[str, list[str]] = {}
    for judgement in judged.judgements:
        own, item = judgement.printed, judgement.distribution
        ours = "none" if item is None else short_number(item.median, digits=5)
        place = "" if judgement.percentile is None else f", percentile {100 * judgement.percentile:.1f} %"
        what = ", ".join(part for part in (own.dataset, own.method, own.setting, own.metric) if part)
        cell = {
            "kind": judgement.verdict.replace(" ", "-"),
            "place": f"{judged.paper.name}.html#{anchor(own.id)}",
            "tip": f"{what}: printed {own.text or 'lost'}, ours {ours}{place}: {judgement.verdict}",
        }
        found.setdefault(own.family, {}).setdefault(own.dataset or "all", []).append(cell)
        counts.setdefault(own.family, []).append(judgement.verdict)
    for claim in judged.claims:
        cell = {
            "kind": claim.verdict.replace(" ", "-"),
            "place": f"{judged.paper.name}.html#{anchor('claim/' + claim.id)}",
            "tip": f"{claim.text}: {claim.ours or 'nothing'}: {claim.verdict}",
        }
        found.setdefault("statements", {}).setdefault("text", []).append(cell)
        counts.setdefault("statements", []).append(claim.verdict)
    return [{"name": name, "lines": lines, "counts": count(counts[name])} for name, lines in found.items()]


def summary(judged: PrintedPaper) -> dict[str, Any]:
    """Sum up a paper in one line."""
    counts = count(judged.verdicts)
    return {
        "paper": judged.paper,
        "printed": len(judged.verdicts),
        "compared": sum(counts[word] for word in ("agrees", "unlikely", "refuted")),
        "counts": counts,
        "maps": maps(judged),
        "one_sided": one_sided(judged.sides),
    }


def paper_page(judged: PrintedPaper, origins: Mapping[str, Mapping[str, str]]) -> str:
    """Render the page of a paper.

    Parameters
    ----------
    judged : PrintedPaper
        Its numbers, judged.
    origins : mapping
        Key to machine and libraries.

    Returns
    -------
    str
        HTML that makes no network request.
    """
    families: dict[str, dict[str, Any]] = {}
    for judgement in judged.judgements:
        family = families.setdefault(judgement.printed.family, {"groups": {}, "verdicts": []})
        family["groups"].setdefault(judgement.printed.dataset or "all", []).append(_row(judged, judgement))
        family["verdicts"].append(judgement.verdict)
    used = {own.distribution.origin for own in judged.judgements if own.distribution}
    return (
        environment()
        .get_template("paper.html.jinja")
        .render(
            paper=judged.paper,
            counts=count(judged.verdicts),
            claims=[{"anchor": anchor(f"claim/{claim.id}"), "claim": claim} for claim in judged.claims],
            rules=judged.rules,
            sides=judged.sides,
            comparisons=judged.comparisons,
            used=sum(rule.used for rule in judged.rules),
            fresh=sum(rule.fresh for rule in judged.rules),
            fresh_outside=sum(rule.fresh_outside for rule in judged.rules),
            most=f"{100 * MOST_PASSES:g}",
            one_sided=one_sided(judged.sides),
            families=[
                {
                    "name": name,
                    "groups": family["groups"],
                    "counts": count(family["verdicts"]),
                    "small": len(family["verdicts"]) <= _SMALL,
                }
                for name, family in families.items()
            ],
            origins={name: origin for name, origin in origins.items() if name in used},
            verdicts=VERDICTS,
        )
    )
