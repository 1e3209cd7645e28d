"""The chart of claimed against audited epsilons, second after utility, and what it says of proofs and claims."""

from __future__ import annotations

import math
from typing import Any

from synthetic_results import make_result, results_of

from privsvm_bench.records import AuditBound, AuditCell, AuditRecord
from privsvm_bench.reporting import ReportRecords, page_context, render_page


def cell(status: str, epsilon: float, low: float, **changes: Any) -> AuditCell:
    bounds = (
        AuditBound(kind="counts", sure=0.0, epsilon=low / 2, estimate=low, ceiling=0.6 * epsilon),
        AuditBound(kind="gaussian", sure=low * 0.8, epsilon=low, estimate=math.inf, ceiling=0.9 * epsilon),
    )
    fields: dict[str, Any] = {
        "relation": "replace_one", "epsilon": epsilon, "delta": 1e-5, "status": status, "event": "gaussian",
        "epsilon_proved": math.inf, "epsilon_with_system_noise": epsilon if status == "seeded" else math.inf,
        "pair": "a row <b> and none", "draws": 2000, "bounds": bounds, "refuted": False,
    }  # fmt: skip
    return AuditCell(**{**fields, **changes})


def record(method: str, *cells: AuditCell) -> AuditRecord:
    return AuditRecord(method=method, implementation=method, parameters={}, cells=cells)


RESULTS = results_of(
    make_result("wine", "good", "seeded", (1.0, 4.0)),
    make_result("wine", "bad", "claimed", (1.0, 4.0)),
    make_result("wine", "svm", "none", (1.0,)),
)
AUDITS = [
    record("bad", cell("claimed", 1.0, 5.0, refuted=True), cell("claimed", 4.0, 0.0)),
    record("good", cell("seeded", 1.0, 0.9), cell("seeded", 4.0, 3.5)),
    record("not in this report", cell("seeded", 1.0, 0.9)),
]


def test_the_chart_comes_after_the_first_screen() -> None:
    page = render_page(RESULTS, records=ReportRecords(audits=AUDITS))
    offsets = [
        page.index(f'<section id="{name}"') for name in ("summary", "audits", "claims", "datasets", "guarantees")
    ]
    assert offsets == sorted(offsets)
    assert 'id="audit-chart"' in page
    assert page.index('href="#audits"') < page.index('href="#claims"') < page.index('href="#datasets"')
    assert "a row <b> and none" not in page
    assert 'id="audit-chart"' not in render_page(RESULTS)
    assert 'href="#audits"' not in render_page(RESULTS)


def test_points_are_bounds_with_their_estimates_and_ceilings() -> None:
    traces = page_context(RESULTS, records=ReportRecords(audits=AUDITS))["figures"]["audits"]
    methods = page_context(RESULTS, records=ReportRecords(audits=AUDITS))["methods"]
    assert [methods[trace["method"]] for trace in traces] == ["good", "bad"]
    good, bad = traces
    assert [point["low"] for point in good["points"]] == [0.9, 3.5]
    assert [point["ceiling"] for point in good["points"]] == [0.9, 3.6]
    # Infinite: the bar is drawn to the top.
    assert good["points"][0]["estimate"] is None
    assert bad["status"] == "claimed"
    assert "refuted below ε = 5, by fresh draws too" in bad["points"][0]["text"][0]
    assert any("so many draws are expected to show 3.6 at most" in line for line in good["points"][1]["text"])


def test_a_claim_takes_its_witness_from_the_audit_of_its_method() -> None:
    results = results_of(make_result("wine", "bad", "claimed", (1.0, 2.0)))
    assert all(guarantee.witness is None for guarantee in results[0].guarantees)
    (claim,) = page_context(results, records=ReportRecords(audits=AUDITS))["claims"]
    assert [audit["found"] for audit in claim["audits"]] == [5.0, None]
    assert claim["headline"]["verdict"].kind == "broken"
    assert "a row <b> and none; 2000 releases, and as many fresh ones" in claim["headline"]["description"]
    # Under another relation an audit says nothing of the claim.
    other = [record("bad", cell("claimed", 1.0, 5.0, relation="add_remove"))]
    assert page_context(results, records=ReportRecords(audits=other))["claims"][0]["headline"] is None


def test_the_table_holds_every_cell() -> None:
    rows = page_context(RESULTS, records=ReportRecords(audits=AUDITS))["audits"]
    assert [row["method"] for row in rows] == ["good", "bad"]
    assert rows[1]["cells"][1.0] == {"low": "5", "ceiling": "0.9", "refuted": True}
    assert rows[1]["cells"][4.0]["low"] == "0"
