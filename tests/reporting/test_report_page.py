"""The page: nobody may misread a claim, nothing is loaded, nothing hostile gets through."""

from __future__ import annotations

import html.parser
import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from synthetic_results import GRID, METHODS, make_attack, make_guarantee, make_result

from privsvm.errors import PrivSVMError
from privsvm.reporting import page_context, render_page
from privsvm.reporting.page import counted, short_number
from privsvm.reporting.provenance import provenance, without_absolute_paths
from privsvm.reporting.records import (
    Result,
    Timing,
    read_attacks,
    read_prepared,
    read_results,
    read_timings,
    result_from_record,
)

HOSTILE = "<script>alert(1)</script>\"'&</style><img src=x onerror=alert(2)>"


def results_of(*records: dict[str, Any]) -> list[Result]:
    return [result_from_record(record, "r.json") for record in records]


def whole(dataset: str = "wine") -> list[Result]:
    return results_of(*(make_result(dataset, method, status) for method, status in METHODS.items()))


class Elements(html.parser.HTMLParser):
    """Collect start tags, and text outside scripts and styles."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self._silent = 0
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._silent += tag in ("script", "style")

    def handle_endtag(self, tag: str) -> None:
        self._silent -= tag in ("script", "style")

    def handle_data(self, data: str) -> None:
        if not self._silent:
            self.text.append(data)


def test_every_status_is_said_in_words() -> None:
    page = render_page(whole())
    words = " ".join(" ".join(Elements(page).text).split())
    assert "claimed, does not hold" in words
    assert "the statement does not hold" in words
    assert "rows are not clipped to the norm" in words
    assert "refuted at every finite ε" in words
    assert "refuted below ε = 4.3" in words
    assert "not audited" in words
    assert "nothing proved" in words
    assert "proved ε 1" in words
    assert "ε ∞" not in words


def test_a_claim_never_looks_proved() -> None:
    """No row, badge or card of a claimed method carries the word that a proved one has."""
    page = render_page(results_of(make_result("wine", "dpwss", "claimed")))
    body = page[page.index("<main") : page.index('<section id="glossary"')]
    legend = body[body.index('<div class="legend"') : body.index("</section>")]
    assert 'class="badge proved"' not in body.replace(legend, "")
    assert "No method here carries a proved privacy guarantee" in body
    assert not re.search(r"proved ε \d", body)


def test_an_audit_that_contradicts_a_proof_is_an_alarm() -> None:
    record = make_result("wine", "pmsvm_wp", "proved")
    witness = {"epsilon": 9.0, "neighbours": "replace_one", "description": "canary"}
    record["guarantees"][2] = make_guarantee("pmsvm_wp", "proved", 1.0, witness=witness)
    context = page_context(results_of(record))
    assert [item["stated"] for item in context["contradictions"]] == [1.0]
    assert 'role="alert"' in render_page(results_of(record))
    # A lower bound below the proof, or for another relation, is no contradiction.
    for quiet in ({**witness, "epsilon": 0.9}, {**witness, "neighbours": "add_remove"}):
        record["guarantees"][2]["witness"] = quiet
        assert not page_context(results_of(record))["contradictions"]


def test_audits_of_a_proof_are_drawn_as_lower_bounds_for_the_same_neighbours_only() -> None:
    def audits(*records: dict[str, Any]) -> Any:
        (trace,) = page_context(results_of(*records))["figures"]["claims"]
        return trace["audits"]

    records = [make_result(dataset, "pmsvm_wp", "proved") for dataset in ("wine", "digits")]
    assert audits(*records) == []
    assert "Hollow triangles" not in render_page(results_of(*records))
    for factor, record in zip((0.5, 0.8), records, strict=True):
        for guarantee in record["guarantees"]:
            bound = factor * guarantee["epsilon_proved"]
            guarantee["witness"] = {"epsilon": bound, "neighbours": "replace_one", "description": "canary"}
    # The highest over the datasets: what comes nearest to refuting the proof.
    assert [audit["y"] / audit["x"] for audit in audits(*records)] == pytest.approx([0.8] * len(GRID))
    assert "on digits" in audits(*records)[0]["text"][0]
    assert "Hollow triangles" in render_page(results_of(*records))
    for record in records:
        for guarantee in record["guarantees"]:
            guarantee["witness"]["neighbours"] = "add_remove"
    assert audits(*records) == []
    claim = make_result("wine", "pmsvm_wp_as_published", "claimed")
    assert audits(claim) == []


@pytest.mark.parametrize(("n_datasets", "expected"), [(2, {"all datasets"}), (6, {""})])
def test_lines_of_claims_are_labelled_while_they_are_few(n_datasets: int, expected: set[str]) -> None:
    results = results_of(*(make_result(f"dataset_{i}", "dpwss", "claimed") for i in range(n_datasets)))
    (trace,) = page_context(results)["figures"]["claims"]
    assert {segment["label"] for segment in trace["segments"]} == expected


def test_counts_are_written_as_words() -> None:
    words = " ".join(" ".join(Elements(render_page(whole())).text).split())
    assert "This report compares eight methods on one dataset." in words
    assert "Three methods carry a proved" in words
    assert "For three methods, a paper states" in words
    assert "Two methods state no formal guarantee" in words
    alone = results_of(make_result("wine", "pmsvm_wp", "proved"), make_result("wine", "svm", "none"))
    words = " ".join(" ".join(Elements(render_page(alone)).text).split())
    assert "One method carries a proved" in words
    assert "One method states no formal guarantee" in words
    assert counted(25, "dataset") == "25 datasets"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("system", "fresh system entropy"),
        ("seeded stream", "seeded, for the benchmark only: whoever knows the seed can take it off"),
        (None, None),
    ],
)
def test_a_card_says_where_its_noise_comes_from(source: str | None, expected: str | None) -> None:
    record = make_result("wine", "pmsvm_wp", "proved")
    for guarantee in record["guarantees"]:
        guarantee["noise_source"] = source
    page = render_page(results_of(record))
    assert ("<dt>Noise</dt>" in page) == (expected is not None)
    if expected:
        assert f"<dt>Noise</dt><dd>{expected}</dd>" in page


def test_sizes_of_solutions_stand_beside_the_timings_unless_they_are_private() -> None:
    results = results_of(
        make_result("wine", "svm", "none", n_support=[10, 13], objective=[-2.5, -3.5]),
        make_result("wine", "pmsvm_wp", "proved", n_support=[None, None], objective=[None, None]),
    )
    timings = [Timing(method, "wine", (0.1,), (0.0,), (0.1,), (20.0,)) for method in ("svm", "pmsvm_wp")]
    rows = {row["method"]: row for row in page_context(results, timings=timings)["timings"]}
    assert (rows["svm"]["support"], rows["svm"]["objective"]) == (11.5, -3.0)
    assert (rows["pmsvm_wp"]["support"], rows["pmsvm_wp"]["objective"]) == (None, None)


def test_a_witness_for_other_neighbours_says_so() -> None:
    record = make_result("wine", "pmsvm_wp_as_published", "claimed")
    for guarantee in record["guarantees"]:
        guarantee["witness"]["neighbours"] = "add_remove"
    assert "for add_remove neighbours (the claim is for replace_one ones)" in render_page(results_of(record))


def test_a_weak_audit_does_not_rescue_a_claim() -> None:
    record = make_result("wine", "pmsvm_wp_as_published", "claimed")
    for guarantee in record["guarantees"]:
        guarantee["witness"]["epsilon"] = 0.01
    page = render_page(results_of(record))
    assert "the claim fails for the reason given" in page
    assert page_context(results_of(record))["worst_claim"] is None


def test_an_attack_is_summed_up_in_words_and_in_the_summary() -> None:
    page = render_page(whole(), attacks=[make_attack("wine", "ppsvm_linear"), make_attack("wine", "b", (None, 1e-12))])
    words = " ".join(" ".join(Elements(page).text).split())
    assert "from the public blocks of ppsvm_linear on wine, whoever knows 6 to 7 of an entity's 455 rows" in words
    assert "All 2 entities are open to someone who knows 6 to 7 of 455 rows." in words
    assert "1 of 2 entities are open" in words
    assert "not possible: too few random rows" in words
    assert "b , ppsvm_linear state no epsilon" in words.replace("b,", "b ,")
    assert "Attacks on methods without a guarantee" not in render_page(whole())


@pytest.mark.parametrize("error", [1.1e-8, 0.5])
def test_what_is_not_recovered_is_not_called_open(error: float) -> None:
    context = page_context(whole(), attacks=[make_attack("wine", "ppsvm_linear", (error, error))])
    assert context["attacks"][0]["broken"] == 0
    words = " ".join(Elements(render_page(whole(), attacks=[make_attack("wine", "p", (error,))])).text)
    assert "0 of 1 entities are open" in " ".join(words.split())
    assert "computes all its others" not in words


def test_a_record_that_is_no_attack_is_refused(tmp_path: Any) -> None:
    path = tmp_path / "wine.attacks.json"
    path.write_text(json.dumps(dict.fromkeys(("method", "dataset", "attack"), 1)), encoding="utf-8")
    with pytest.raises(PrivSVMError, match=r"wine.attacks.json: key 'kernel' is missing"):
        read_attacks([path])
    path.write_text("[]", encoding="utf-8")
    with pytest.raises(PrivSVMError, match="key 'method' is missing"):
        read_attacks([path])


def test_hostile_names_stay_text() -> None:
    record = make_result(HOSTILE, HOSTILE, "claimed", protocol=HOSTILE, parameters={HOSTILE: HOSTILE})
    for guarantee in record["guarantees"]:
        guarantee.update(reason=HOSTILE, mechanism=HOSTILE, reference=f"javascript:alert(3) {HOSTILE}")
    prepared = [{"dataset": HOSTILE, "sources": {HOSTILE: HOSTILE}, "scaling": {"kind": HOSTILE, "origin": HOSTILE}}]
    page = render_page(results_of(record), prepared=prepared, experiment=HOSTILE)
    plain = render_page(results_of(make_result("wine", "dpwss", "claimed")), prepared=prepared[:0])
    elements = Elements(page)
    assert sum(tag == "script" for tag, _ in elements.tags) == sum(tag == "script" for tag, _ in Elements(plain).tags)
    assert not any(tag == "img" for tag, _ in elements.tags)
    assert not any(name.startswith("on") for _, attributes in elements.tags for name in attributes)
    assert not any((attributes.get("href") or "").startswith("javascript") for _, attributes in elements.tags)
    stored = re.search(r'<script type="application/json" id="report-data">(.*?)</script>', page, re.DOTALL)
    assert stored is not None
    assert json.loads(stored.group(1))["methods"] == [HOSTILE]


def test_nothing_is_loaded_from_anywhere() -> None:
    page = render_page(whole(), origin=provenance())
    elements = Elements(page)
    for tag, attributes in elements.tags:
        assert "src" not in attributes
        assert "srcset" not in attributes
        assert "background" not in attributes
        href = attributes.get("href") or ""
        if tag == "a":
            assert href.startswith(("#", "https://"))
        else:
            assert href in ("", "data:,")
    style = page[page.index("<style>") : page.index("</style>")]
    assert "url(" not in style
    assert "@import" not in style
    policy = [attributes["content"] or "" for tag, attributes in elements.tags if attributes.get("http-equiv")]
    assert policy
    assert policy[0].startswith("default-src 'none'")
    own = page[page.rindex("<script>") :]
    assert "http" not in own
    assert "fetch(" not in own
    assert "eval(" not in own


def test_provenance_names_no_one(tmp_path: Any) -> None:
    (tmp_path / "dvc.lock").write_text("stages: {}\n")
    record = provenance(tmp_path)
    assert record["commit"] is None
    assert len(record["dvc_lock"]) == 64
    assert str(tmp_path) not in json.dumps(record)
    page = render_page(results_of(make_result("wine", "svm", "none", parameters={"path": "/home/alice/a.csv"})))
    # Plotly's own source is left out: it is not ours and holds many words.
    own = page[: page.index("/**\n* plotly.js")]
    assert "/home/" not in own
    assert "alice" not in own


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/home/alice/data/a.csv", "a.csv"),
        ("read /tmp/x/a.csv, then stop", "read a.csv, then stop"),
        ("file:///srv/a/b.csv", "b.csv"),
        ("C:\\Users\\alice\\a.csv", "a.csv"),
        ("https://doi.org/10.1/a/b", "https://doi.org/10.1/a/b"),
        ("data/raw/a.csv", "data/raw/a.csv"),
        ("C/n and (a)/b/c and [0,1]/2/3", "C/n and (a)/b/c and [0,1]/2/3"),
    ],
)
def test_absolute_paths_are_cut(text: str, expected: str) -> None:
    assert without_absolute_paths(text) == expected
    assert without_absolute_paths({"k": [text]}) == {"k": [expected]}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, "–"),
        ("inf", "∞"),
        (1.0, "1"),
        (0.05, "0.05"),
        (1e-5, "1e-5"),
        (1234.0, "1234"),
        (4.315, "4.32"),
        (0, "0"),
    ],
)
def test_short_numbers(value: Any, expected: str) -> None:
    assert short_number(value) == expected


def test_undefined_parts_do_not_break_the_page(write_experiment: Callable[..., dict[str, list[str]]]) -> None:
    def bare(record: dict[str, Any]) -> dict[str, Any]:
        keep = ("experiment", "method", "dataset", "status", "epsilons", "guarantees", "summary")
        return {key: record[key] for key in keep}

    files = write_experiment(change=bare)
    page = render_page(read_results(files["results"]), prepared=[{"dataset": "wine"}])
    assert "pmsvm_wp" in page
    page = render_page(
        read_results(files["results"]),
        timings=read_timings(files["timings"]),
        prepared=read_prepared(files["prepared"]),
        origin=provenance(),
    )
    for identity in ("summary", "claims", "datasets", "guarantees", "timings", "prepared", "provenance", "glossary"):
        assert f'<section id="{identity}">' in page


def test_a_large_report_stays_small_enough() -> None:
    methods = {f"method_{index:02d}": ("proved", "claimed", "none", "proved")[index % 4] for index in range(20)}
    results = [
        result_from_record(make_result(f"dataset_{position:02d}", method, status), "r.json")
        for position in range(40)
        for method, status in methods.items()
    ]
    page = render_page(results)
    assert len(page.encode()) < 9_000_000
    assert page.count('<details class="dataset"') == 40
    assert len(re.findall(r'<details class="dataset"[^>]* open', page)) == 1
