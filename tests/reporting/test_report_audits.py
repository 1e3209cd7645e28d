"""The chart of claimed against audited epsilons, second after utility, and its words on proofs and claims."""

import dataclasses
import math
import re
from xml.etree import ElementTree

import pytest
from synthetic_results import make_audit, make_audit_cell, make_result, results_of

from privsvm.privacy.statement import Witness
from privsvm_bench.charts import BLUE, AuditBar, audit_bars
from privsvm_bench.palette import CLAIMED, Look
from privsvm_bench.records import with_audits
from privsvm_bench.reporting.audit_tables import audit_bars_of
from privsvm_bench.reporting.page import ReportRecords, page_context, render_page

RESULTS = results_of(
    make_result("wine", "good", "seeded", (1.0, 4.0)),
    make_result("wine", "bad", "claimed", (1.0, 4.0)),
    make_result("wine", "svm", "none", (1.0,)),
)
AUDITS = [
    make_audit("bad", make_audit_cell("claimed", 1.0, 5.0, refuted=True), make_audit_cell("claimed", 4.0, 0.0)),
    make_audit("good", make_audit_cell("seeded", 1.0, 0.9), make_audit_cell("seeded", 4.0, 3.5)),
    make_audit("not in this report", make_audit_cell("seeded", 1.0, 0.9)),
]


def test_the_chart_comes_after_the_first_screen_and_a_table_holds_every_cell() -> None:
    page = render_page(RESULTS, records=ReportRecords(audits=AUDITS))
    offsets = [
        page.index(f'<section id="{name}"') for name in ("summary", "claims", "findings", "datasets", "guarantees")
    ]
    assert offsets == sorted(offsets)
    title = "Largest epsilon that an audit shows of each method, where epsilon 1 is stated"
    assert page.count(title) == 2
    assert "a row <b> and none" not in page
    assert title not in render_page(RESULTS)
    good, bad = page_context(RESULTS, records=ReportRecords(audits=AUDITS))["audits"]
    assert (good["method"], bad["method"]) == ("good", "bad")
    cell = bad["cells"][1.0]
    assert (cell.best.epsilon, cell.best.ceiling, cell.refuted) == (5.0, 0.9, True)
    assert bad["cells"][4.0].best.epsilon == 0.0


def test_bars_are_bounds_against_the_epsilon_nearest_to_the_reference() -> None:
    looks = {name: Look("#123456", "#abcdef", "circle") for name in ("good", "bad", "svm")}
    stated, bars = audit_bars_of(RESULTS, AUDITS, looks, 1.0)
    assert stated == 1.0
    assert bars == [AuditBar("good", "#123456", False, 0.9, False), AuditBar("bad", CLAIMED, True, 5.0, True)]
    assert [bar.words for bar in bars] == ["at least 0.90", "at least 5.00: refuted"]
    assert [bar.bound for bar in audit_bars_of(RESULTS, AUDITS, looks, 3.0)[1]] == [3.5, 0.0]
    # One without an audit has a row too.
    assert next(bar.words for bar in audit_bars_of(RESULTS, AUDITS[:1], looks, 1.0)[1]) == "not audited"


def test_only_refuted_epsilons_are_struck_out() -> None:
    more = results_of(make_result("wine", "unbroken", "claimed", (1.0, 4.0)))
    audits = [*AUDITS, make_audit("unbroken", make_audit_cell("claimed", 1.0, 0.5))]
    page = render_page(with_audits([*RESULTS, *more], audits), records=ReportRecords(audits=audits))
    bad, unbroken = re.findall(r"<tr class=\"claimed\">\n.*\n<td>(.*)</td>", page)
    assert (bad, unbroken) == ("<s>1</s>, 4", "1, 4")
    # The table of claims and of findings, and the card of the method.
    assert page.count("<s>1</s>") == 3
    assert "<s>4</s>" not in page
    assert re.findall(r"(bad|unbroken)<br><span class=\"badge (\w+)\">", page)[:2] == [
        ("bad", "refuted"),
        ("unbroken", "claimed"),
    ]


@pytest.mark.parametrize("data_set", [None, "wine"])
def test_a_claim_without_a_bound_says_why(data_set: str | None) -> None:
    failed = make_audit("bad", problem="at epsilon 1: 3 <rows>")
    other = make_audit("bad", make_audit_cell("claimed", 2.0, 5.0, refuted=True))
    for audits, words in (
        ([failed], "The audit failed at epsilon 1: 3 &lt;rows&gt;"),
        ([other], "not audited at these epsilons"),
        ((), "not audited<"),
    ):
        assert words in render_page(RESULTS, records=ReportRecords(audits=audits), data_set=data_set)


@pytest.mark.parametrize("narrow", [False, True])
def test_only_a_refuted_bar_passes_the_line(narrow: bool) -> None:
    bars = [
        AuditBar("good", BLUE, False, 0.9, False),
        AuditBar("bad", CLAIMED, True, math.inf, True),
        AuditBar("none", CLAIMED, True, None, False),
    ]
    root = ElementTree.fromstring(audit_bars(bars, 2.0, "Title", narrow=narrow))
    space = "{http://www.w3.org/2000/svg}"
    right = {}
    for group in root.iter(f"{space}g"):
        if len(group) and group[0].tag == f"{space}title":
            (path,) = group.iter(f"{space}path")
            right[group[0].text] = max(float(x) for x, _ in re.findall(r"[ML] ([\d.]+) ([\d.]+)", path.get("d") or ""))
    good, bad, none = (right[bar.name] for bar in bars)
    # From 0 to three times the stated epsilon.
    line = none + (bad - none) / 3
    assert none < good < line < bad
    assert (good - none) / (line - none) == pytest.approx(0.45, abs=0.01)


def test_a_claim_takes_its_witness_from_the_audit_of_its_method() -> None:
    results = results_of(make_result("wine", "bad", "claimed", (1.0, 2.0)))
    assert all(guarantee.witness is None for guarantee in results[0].guarantees)
    (claim,) = page_context(with_audits(results, AUDITS))["claims"]
    assert [audit["found"] for audit in claim["audits"]] == [5.0, None]
    assert claim["headline"]["verdict"].kind == "broken"
    assert "a row <b> and none; 2000 releases, and as many fresh ones" in claim["headline"]["description"]
    # Under another relation an audit says nothing of the claim.
    other = [make_audit("bad", make_audit_cell("claimed", 1.0, 5.0, relation="add_remove"))]
    assert page_context(with_audits(results, other))["claims"][0]["headline"] is None


@pytest.mark.parametrize("own", [0.8, 7.0])
def test_a_weaker_witness_of_the_rows_hides_no_audit(own: float) -> None:
    (result,) = results_of(make_result("wine", "bad", "claimed", (1.0, 2.0)))
    witness = Witness(epsilon=own, neighbours="replace_one", description="these rows")
    guarantees = tuple(dataclasses.replace(guarantee, witness=witness) for guarantee in result.guarantees)
    (claim,) = page_context(with_audits([dataclasses.replace(result, guarantees=guarantees)], AUDITS))["claims"]
    assert [audit["found"] for audit in claim["audits"]] == [max(own, 5.0), own]
    assert claim["headline"]["rows"] == ("wine" if own > 5.0 else "made-up rows")
