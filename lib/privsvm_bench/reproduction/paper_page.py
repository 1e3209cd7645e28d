"""HTML page of a paper: every printed number and statement with its verdict, and what the rules are worth."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import scipy.stats

from privsvm_bench.reporting.text import short_number
from privsvm_bench.reproduction.distributions import ONE_VALUE
from privsvm_bench.reproduction.judging import FALSE_DISCOVERIES, MOST_PASSES, VERDICTS, Judgement, TableCheck
from privsvm_bench.reproduction.panels import legend, panel_svg
from privsvm_bench.reproduction.printed import NOT_JUDGED, Passage, PrintedPaper, count, interval, reading_of
from privsvm_bench.reproduction.rendering import environment

__all__ = ["anchor", "calibration", "maps", "one_sided", "paper_page", "summary", "tails"]

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


def _passage_rows(judged: PrintedPaper, passage: Passage) -> list[tuple[str, str, str]]:
    """Anchor, name and verdict of the rows that judge a sentence; numbers of one table are counted together."""
    found = []
    claims = {claim.id: claim for claim in judged.claims}
    for row in passage.rows:
        if row in NOT_JUDGED:
            found.append(("", NOT_JUDGED[row], ""))
        elif row in claims:
            found.append((anchor(f"claim/{row}"), claims[row].text, claims[row].verdict))
        else:
            own = [item for item in judged.judgements if row in (item.printed.source, item.printed.family)]
            own = own or [item for item in judged.judgements if item.printed.id.startswith(row)]
            words = ", ".join(
                f"{number} {word}" for word, number in count([item.verdict for item in own]).items() if number
            )
            verdict = own[0].verdict if len(own) == 1 else ""
            found.append(
                (anchor(own[0].printed.id) if own else "", row if len(own) == 1 else f"{row}: {words}", verdict)
            )
    return found


def calibration(judged: PrintedPaper) -> tuple[float, float]:
    """Exact 95 % interval of the share of fresh draws outside the central 95 %."""
    fresh, outside = (sum(getattr(rule, key) for rule in judged.rules) for key in ("fresh", "fresh_outside"))
    if not fresh:
        return 0.0, 1.0
    found = scipy.stats.binomtest(outside, fresh).proportion_ci(0.95)
    return float(found.low), float(found.high)


def tails(judged: PrintedPaper) -> tuple[int, float, float, float] | None:
    """Check the form of the tails: sides, and what a tail says of one in a thousand: 5 %, median and 95 % of them."""
    fits = [
        value
        for own in judged.judgements
        # The outermost quantiles of fewer runs are those of the form itself, or of a handful of values.
        if own.distribution and own.distribution.runs >= 100 and own.distribution.statistic not in ("exact", ONE_VALUE)
        for value in own.distribution.tail_fits()
    ]
    if len(fits) < 20:
        return None
    low, middle, high = np.quantile(fits, [0.05, 0.5, 0.95])
    return len(fits), float(low), float(middle), float(high)


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
    drawn = [panel for panel in judged.panels if not panel.empty]
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
            panels=[(panel.title, panel_svg(panel)) for panel in drawn],
            missing_panels=[panel.title for panel in judged.panels if panel.empty],
            legend=legend(drawn[0]) if drawn else [],
            passages=[(passage, _passage_rows(judged, passage)) for passage in judged.passages],
            interval=calibration(judged),
            tails=tails(judged),
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
