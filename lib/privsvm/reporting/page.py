"""The report page: one self-contained HTML file that makes no network request."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup, escape

from privsvm.privacy.guarantee import STATUSES
from privsvm.records import (
    Attack,
    AuditRecord,
    CondensedRowsAttack,
    CondenseTimings,
    KnownSampleAttack,
    Prepared,
    Result,
    Timing,
)
from privsvm.reporting.attacks import (
    NEARLY,
    RECOVERED,
    condensed_rows_findings,
    condensed_rows_table,
    known_sample_figures,
    known_sample_table,
)
from privsvm.reporting.audits import audit_rows, audit_traces, with_audits
from privsvm.reporting.cards import condensing_rows, guarantee_cards, parameter_rows, timing_rows
from privsvm.reporting.claims import broken_claims, claim_traces, contradictions
from privsvm.reporting.glossary import glossary
from privsvm.reporting.provenance import without_absolute_paths
from privsvm.reporting.tables import epsilon_grids
from privsvm.reporting.text import counted, percent, score_text, short_number
from privsvm.reporting.utility import best_proved, curve_figures, dataset_sections, drawn_metrics

__all__ = ["page_context", "render_page"]

_TEMPLATES = Path(__file__).with_name("templates")

# Up to this many datasets every section starts open; above it only the first, and the page stays quick.
_OPEN_DATASETS = 4

RANDOMNESS_TEXT = {
    "system": "fresh system entropy",
    "seeded": "seeded, for the benchmark only: whoever knows the seed can subtract it",
}

STATUS_TEXT = {
    "proved": "proved",
    "claimed": "claimed, does not hold",
    "none": "none",
    "seeded": "proved for system noise",
}


def _methods_in_order(results: Sequence[Result]) -> list[str]:
    """Proved methods first; a method that is claimed anywhere is listed with the claims."""
    rank: dict[str, int] = {}
    for result in results:
        rank[result.method] = max(rank.get(result.method, 0), STATUSES.index(result.status))
    return sorted(rank, key=lambda method: (rank[method], method))


def _claims_context(
    results: Sequence[Result], traces: Sequence[Mapping[str, Any]], reference_epsilon: float
) -> dict[str, Any]:
    """Compute what the section on claims shows, and the claim that the summary names."""
    claims = broken_claims(results, reference_epsilon)
    headlines = [claim for claim in claims if claim["headline"] and claim["headline"]["verdict"].kind == "broken"]
    return {
        "claims": claims,
        "worst_claim": max(
            headlines, key=lambda claim: float(claim["headline"]["found"] / claim["headline"]["stated"]), default=None
        ),
        "audited_proofs": any(trace["audits"] for trace in traces),
        # Without one known epsilon, proved or refuted, there is nothing to draw.
        "any_known": any(
            point["place"] != "unaudited"
            for trace in traces
            for segment in trace["segments"]
            for point in segment["points"]
        ),
        "any_audited": any(claim["measured"] for claim in claims),
        "contradictions": contradictions(results),
    }


def _attacks_context(attacks: Sequence[Attack], condensed: str | None) -> dict[str, Any]:
    """Compute what the section on attacks shows; `condensed` is how the rows were condensed for all methods."""
    known_sample = [attack for attack in attacks if isinstance(attack, KnownSampleAttack)]
    condensed_rows = condensed_rows_table(
        [attack for attack in attacks if isinstance(attack, CondensedRowsAttack)], condensed is not None
    )
    return {
        "known_sample": known_sample_table(known_sample),
        "condensed_rows": condensed_rows,
        "condensed_findings": condensed_rows_findings(condensed_rows),
        "condensed": condensed,
    }


def page_context(
    results: Sequence[Result],
    *,
    timings: Sequence[Timing] = (),
    condensing: Sequence[CondenseTimings] = (),
    prepared: Sequence[Prepared] = (),
    attacks: Sequence[Attack] = (),
    audits: Sequence[AuditRecord] = (),
    origin: Mapping[str, Any] | None = None,
    experiment: str = "",
    reference_epsilon: float = 1.0,
) -> dict[str, Any]:
    """Everything the template shows, computed from the records.

    Parameters
    ----------
    results : sequence of Result
        From `privsvm.reporting.read_results`.
    timings : sequence of Timing
        From `privsvm.records.read_timings`.
    condensing : sequence of CondenseTimings
        From `privsvm.records.read_condensing`.
    prepared : sequence of Prepared
        From `privsvm.records.read_prepared`.
    attacks : sequence of Attack
        From `privsvm.records.read_attacks`.
    audits : sequence of AuditRecord
        From `privsvm.records.read_audits`.
    origin : mapping or None
        From `provenance`; left out of the page where None.
    experiment : str
        Its name.
    reference_epsilon : float
        The epsilon that headline numbers are given at.

    Returns
    -------
    dict
        The template's variables; ``figures`` is what the page's script draws.
    """
    results = with_audits(results, audits)
    grids = epsilon_grids(results, reference_epsilon)
    methods = _methods_in_order(results)
    method_index = {method: index for index, method in enumerate(methods)}
    pairs = {(result.method, result.status) for result in results}
    traces = claim_traces(results, method_index)
    audited = audit_traces(audits, method_index)
    metrics = drawn_metrics(results)
    # One value for the whole benchmark.
    condensed = next((result.condense for result in results if result.condense != "none"), None)
    return {
        "experiment": experiment,
        "reference_epsilon": reference_epsilon,
        "methods": methods,
        "by_status": {status: [method for method in methods if (method, status) in pairs] for status in STATUSES},
        **_claims_context(results, traces, reference_epsilon),
        **_attacks_context(attacks, condensed),
        "seeded": sorted({result.method for result in results if result.status == "proved" and result.seeded}),
        "audits": audit_rows([record for record in audits if record.method in method_index]) if audited else [],
        "audited_epsilons": sorted({point["x"] for trace in audited for point in trace["points"]}),
        "best": best_proved(results, reference_epsilon),
        "datasets": dataset_sections(results, grids),
        "open_datasets": len(grids) if len(grids) <= _OPEN_DATASETS else 1,
        "metrics": list(metrics.items()),
        "cards": guarantee_cards(results, methods),
        "timings": timing_rows(timings, results),
        "condensing": condensing_rows(condensing),
        "prepared": without_absolute_paths([dataclasses.asdict(record) for record in prepared]),
        "origin": origin,
        "parameters": parameter_rows(results),
        "figures": {
            "methods": methods,
            "metrics": metrics,
            "claims": traces,
            "audits": audited,
            "datasets": curve_figures(results, grids, method_index),
            "attacks": known_sample_figures([attack for attack in attacks if isinstance(attack, KnownSampleAttack)]),
        },
    }


def _breakable(name: str) -> Markup:
    """Let a long name wrap after its underscores."""
    return escape(name).replace("_", Markup("_<wbr>"))


def _definition(text: str) -> Markup:
    """Set what stands between backticks as code, and the exponent of e^ε as one."""
    parts = [
        Markup("<code>{}</code>").format(part) if code % 2 else escape(part)
        for code, part in enumerate(text.split("`"))
    ]
    return Markup("").join(parts).replace("e^ε", Markup("e<sup>ε</sup>"))


@functools.lru_cache(maxsize=1)
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["short"] = short_number
    environment.filters["counted"] = counted
    environment.filters["percent"] = percent
    environment.globals["percent"] = percent
    environment.globals["score"] = score_text
    environment.globals["two_digits"] = functools.partial(short_number, digits=2)
    environment.globals["recovered"] = RECOVERED
    environment.globals["nearly"] = NEARLY
    environment.globals["randomness_text"] = RANDOMNESS_TEXT
    environment.filters["breakable"] = _breakable
    environment.filters["definition"] = _definition
    # JSON inside <script>: jinja's own filter escapes <, >, & and quotes, so no text can end the element.
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "ensure_ascii": False, "allow_nan": False}
    environment.globals["status_text"] = STATUS_TEXT
    environment.globals["infinity"] = math.inf
    return environment


def _plotly_source() -> Markup:
    """Take Plotly's script as installed, to be inlined: the page must work without a network."""
    from plotly.offline import get_plotlyjs

    source = get_plotlyjs()
    if "</script" in source.lower():
        source = source.replace("</script", "<\\/script")
    return Markup(source)


def render_page(results: Sequence[Result], **options: Any) -> str:
    """Write the page.

    Parameters
    ----------
    results : sequence of Result
        From `privsvm.reporting.read_results`.
    **options
        See `page_context`.

    Returns
    -------
    str
        One HTML document: style, scripts and data are inside, and a content security policy forbids it to load
        anything else.
    """
    environment = _environment()
    return environment.get_template("report.html.jinja").render(
        page_context(results, **options),
        glossary=glossary(),
        style=Markup((_TEMPLATES / "style.css.jinja").read_text(encoding="utf-8")),
        script=Markup((_TEMPLATES / "figures.js.jinja").read_text(encoding="utf-8")),
        plotly=_plotly_source(),
    )
