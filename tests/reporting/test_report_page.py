"""The page: nobody may misread a claim, nothing is loaded, nothing hostile gets through."""

import dataclasses
import json
import posixpath
import re
from pathlib import Path
from typing import Any

import pytest
from markupsafe import Markup
from synthetic_results import (
    GRID,
    METHODS,
    attack_of,
    change_guarantees,
    make_attack,
    make_condensed_attack,
    make_condensed_result,
    make_guarantee,
    make_prepared,
    make_result,
    prepared_of,
    results_of,
    whole,
)
from tests.elements import Elements
from tests.guarantees import proved, proved_fields
from tests.steps import steps

from privsvm.errors import PrivSVMError, without_absolute_paths
from privsvm.files import write_json
from privsvm.privacy.accounting import gaussian_noise_multiplier
from privsvm.privacy.events import Gaussian
from privsvm.privacy.statement import Witness
from privsvm_bench.palette import Look
from privsvm_bench.records import (
    CondenseTimings,
    Prepared,
    Result,
    Timing,
    attacks_of,
    read_by_dataset,
    read_timings,
    seal,
)
from privsvm_bench.reporting.audit_tables import audit_bars_of
from privsvm_bench.reporting.claim_tables import right_guess
from privsvm_bench.reporting.curve_tables import curve_rows, metrics_record
from privsvm_bench.reporting.dataset_sections import best_proved, key_methods
from privsvm_bench.reporting.first_screen import rank_methods
from privsvm_bench.reporting.glossary import glossary
from privsvm_bench.reporting.page import ReportRecords, page_context, render_page, report_files
from privsvm_bench.reporting.provenance import provenance
from privsvm_bench.reporting.results import read_results
from privsvm_bench.reporting.text import count_in_words, percent, short_number
from privsvm_bench.tracking.runs import collect_runs

HOSTILE = "<script>alert(1)</script>\"'&</style><img src=x onerror=alert(2)>"


def page_with(*attacks: dict[str, Any], results: list[Result] | None = None, **records: Any) -> str:
    """The page of results, of all methods by default, and of attacks."""
    held = ReportRecords(attacks=[attack_of(attack) for attack in attacks], **records)
    return render_page(whole() if results is None else results, records=held)


def test_statuses_and_counts_are_said_in_words():
    words = words_of(render_page(whole()))
    for said in (
        "claimed", "the statement does not hold", "rows are not clipped to the norm",
        "refuted at every finite ε", "refuted below ε = 4.3", "not audited", "nothing proved", "proved ε 1",
        "This report compares eight methods on one dataset.", "Three methods are proved",
        "For pmsvm_gp the noise of this benchmark was drawn from a seed", "For three methods, a paper states",
        "Two methods state no formal guarantee",
    ):  # fmt: skip
        assert said in words
    assert "ε ∞" not in words
    words = words_of(
        render_page(results_of(make_result("wine", "pmsvm_wp", "proved"), make_result("wine", "svm", "none")))
    )
    assert "One method is proved" in words
    assert "One method states no formal guarantee" in words
    outside = words[words.index("Outside every epsilon:") :][:700]
    for what in ("test accuracies", "witnesses", "hashes", "seconds", "passes", "counts"):
        assert what in outside
    assert count_in_words(25, "dataset") == "25 datasets"


def test_the_glossary_defines_the_words_of_the_page() -> None:
    page = render_page(whole())
    section = page[page.index('<section id="glossary"') :]
    terms = glossary()
    assert len(re.findall("<dt>", section)) == len(terms) > 15
    # Elements part the words.
    words = re.sub(r"\s", "", words_of(section))
    for term in terms:
        assert re.sub(r"[\s`^]", "", term.name + term.definition) in words
    assert "e<sup>ε</sup>" in section
    assert "<code>replace_one</code>" in section


def test_a_claim_never_looks_proved() -> None:
    page = render_page(results_of(make_result("wine", "dpwss", "claimed")))
    body = page[page.index("<main") : page.index('<section id="glossary"')]
    start = body.index('<div class="legend"')
    legend = body[start : body.index("</section>", start)]
    assert 'class="badge proved"' not in body.replace(legend, "")
    assert "No method here is proved" in body
    assert not re.search(r"proved ε \d", body)


def test_an_audit_that_contradicts_a_proof_is_an_alarm() -> None:
    record = make_result("wine", "pmsvm_wp", "proved")
    witness = {"epsilon": 9.0, "neighbours": "replace_one", "description": "canary", "confidence": 0.999}
    record["guarantees"][2]["witness"] = witness
    context = page_context(results_of(record))
    assert [item["stated"] for item in context["contradictions"]] == [1.0]
    assert 'role="alert"' in render_page(results_of(record))
    # A lower bound below the proof, or for another relation, is no contradiction.
    for quiet in ({**witness, "epsilon": 0.9}, {**witness, "neighbours": "add_remove"}):
        record["guarantees"][2]["witness"] = quiet
        assert not page_context(results_of(record))["contradictions"]


def test_a_bound_of_a_proof_is_for_the_same_neighbours_only() -> None:
    def bounds(*records: dict[str, Any]) -> list[float | None]:
        results = results_of(*records)
        looks = {result.method: Look("#123456", "#123456", "circle") for result in results}
        stated, bars = audit_bars_of(results, [], looks, 1.0)
        assert stated == 1.0
        return [bar.bound for bar in bars]

    records = [make_result(dataset, "pmsvm_wp", "proved") for dataset in ("wine", "digits")]
    assert bounds(*records) == []
    for factor, record in zip((0.5, 0.8), records, strict=True):
        for guarantee in record["guarantees"]:
            bound = factor * guarantee["epsilon_proved"]
            guarantee["witness"] = {"epsilon": bound, "neighbours": "replace_one", "description": "canary"}
    # The highest over the datasets: what comes nearest to refuting the proof.
    assert bounds(*records) == [pytest.approx(0.8)]
    for record in records:
        for guarantee in record["guarantees"]:
            guarantee["witness"]["neighbours"] = "add_remove"
    assert bounds(*records) == []


def test_seeded_noise_has_a_lighter_mark_and_other_words_everywhere() -> None:
    fresh = render_page(results_of(make_result("wine", "pmsvm_wp", "proved")))
    assert "<dt>Noise</dt><dd>fresh system entropy</dd>" in fresh
    assert "<dt>Noise</dt>" not in render_page(results_of(make_result("wine", "svm", "none")))
    seeded = results_of(make_result("wine", "pmsvm_wp", "seeded"))
    context, page = page_context(seeded), render_page(seeded)
    assert "<dd>seeded, for the benchmark only: whoever knows the seed can subtract it</dd>" in page
    # At each epsilon under the sentence and in the table; then legend, the dataset's count, its tables, the card.
    assert page.count('class="badge seeded"') == 2 * len(GRID) + 3 + len(context["metrics"])
    assert 'class="badge seeded"' not in fresh
    # Only the legend explains proofs.
    assert page.count('class="badge proved"') == 1
    assert not re.search(r"proved ε|proved at ε|[Pp]roved guarantee", page)
    assert '<tr class="seeded">' in page
    (row,) = context["datasets"][0]["tables"]["accuracy"]
    assert all("with system noise" in cell["note"] for cell in row["cells"])
    # Each point of the chart says so too.
    chart = context["metric_chart"]("accuracy", "Accuracy")
    points = re.findall("<title>(pmsvm_wp — [^<]* ε = [^<]*)</title></use>", chart)
    assert len(points) == len(GRID)
    for epsilon, point in zip(GRID, points, strict=True):
        words = rf"pmsvm_wp — seeded: ε = {epsilon:g} \(.* with system noise\): [\d.]+ ± .*"
        assert re.fullmatch(words, point)


def test_sizes_of_solutions_stand_beside_the_timings_unless_they_are_private() -> None:
    results = results_of(
        make_result("wine", "svm", "none", n_splits=2, n_support=[10, 13], objective=[-2.5, -3.5]),
        make_result("wine", "pmsvm_wp", "proved", n_splits=2, n_support=[None, None], objective=[None, None]),
    )
    timings = [Timing(method, "wine", (0.1,), (0.0,), (0.1,), (20,)) for method in ("svm", "pmsvm_wp")]
    rows = {row["method"]: row for row in page_context(results, records=ReportRecords(timings=timings))["timings"]}
    assert (rows["svm"]["support"], rows["svm"]["objective"]) == (11.5, -3.0)
    assert (rows["pmsvm_wp"]["support"], rows["pmsvm_wp"]["objective"]) == (None, None)


def test_a_witness_for_other_neighbours_says_so_and_a_weak_one_rescues_no_claim() -> None:
    record = make_result("wine", "pmsvm_wp_as_published", "claimed")
    witness = make_guarantee("pmsvm_wp_as_published", "claimed", 1.0)["witness"]
    other = results_of(change_guarantees(record, witness=witness | {"neighbours": "add_remove"}))
    assert "for add_remove neighbours (the claim is for replace_one ones)" in render_page(other)
    weak = results_of(change_guarantees(record, witness=witness | {"epsilon": 0.01}))
    assert "not proved, for the reason given" in render_page(weak)
    assert page_context(weak)["worst_claim"] is None


def test_an_attack_is_summed_up_in_words_and_in_the_summary() -> None:
    words = words_of(page_with(make_attack("wine", "ppsvm_linear"), make_attack("wine", "b", (None, 1e-12))))
    assert (
        "From the public blocks of ppsvm_linear on wine, an attacker who knows 6 to 7 of an entity's 455 rows" in words
    )
    assert "All 2 entities are open to someone who knows 6 to 7 of 455 rows." in words
    assert "1 of 2 entities are open" in words
    assert "not possible: too few random rows" in words
    assert "For ppsvm_linear, b, every entity publishes a block" in words
    assert '<section id="attacks">' not in render_page(whole())
    # An attack that does not recover a row opens no entity.
    for error in (1.1e-8, 0.5):
        words = words_of(page_with(make_attack("wine", "p", (error,))))
        assert "0 of 1 entities are open" in words
        assert "computes all other rows" not in words
        closed = ReportRecords(attacks=[attack_of(make_attack("wine", "ppsvm_linear", (error, error)))])
        assert page_context(whole(), records=closed)["known_sample"][0]["broken"] == []


def cells_of(page: str, table: str = '<table class="condensed">') -> list[list[str]]:
    """Texts of a table's body."""
    body = page[page.index(table) :].replace("<wbr>", "")
    body = body[body.index("<tbody>") : body.index("</tbody>")]
    rows = re.findall(r"<tr.*?</tr>", body, re.DOTALL)
    return [
        [" ".join(" ".join(Elements(cell).text).split()) for cell in re.split("(?=<t[dh])", row)[1:]] for row in rows
    ]


def words_of(page: str) -> str:
    return " ".join(" ".join(Elements(page).text).split())


def test_what_condensed_rows_give_away_is_a_row_of_the_table_and_in_the_summary() -> None:
    page = page_with(make_condensed_attack("wine", "ci_svm"), make_condensed_attack("wine", "fcm_svm", "fcm"))
    means, centres = cells_of(page)
    assert means == [
        "wine ci_svm (ci); 3 splits", "0.62 0.61 to 0.63", "known exactly largest error 3e-15 99.3 % of the rows",
        "91 % 90 % to 92 % guessing: 2.08 %", "6 % 4 % to 8 % chance: 2.7 %", "0.780 0.760 to 0.800",
        "33.8 %", "96 % 95 % to 97 %",
    ]  # fmt: skip
    assert centres == [
        "wine fcm_svm (fcm); 3 splits", "nearly a training row 0.03 (0.02 to 0.04)", "does not apply", "does not apply",
        "36 % 34 % to 38 % chance: 2.7 %", "0.660 0.640 to 0.680", "33.8 %", "96 % 95 % to 97 %",
    ]  # fmt: skip
    words = words_of(page)
    summary = words[: words.index("Outside every epsilon")]
    assert (
        "From the condensed rows of ci_svm on wine, an attacker who knows two rows of a group of three computes the "
        "third . Of the rows, 91 % lie nearest to the condensed row of their own group (2.08 % by guessing)."
    ) in summary
    # By the area alone, centres would look safer than means.
    assert (
        "Half of the condensed rows of fcm_svm on wine are nearly training rows : within 0.03 standard deviations of "
        "one in every feature."
    ) in summary
    assert "36 % lie nearer to a condensed row than every test row (fcm_svm on wine, the most here; 2.7 % by" in summary
    assert "this distance separates training rows from others with an AUC of 0.78" in summary
    assert "random matrix" not in words
    assert "it is published unchanged; if two are, each gives the other" in words
    assert "Condensed rows" not in words_of(page_with(make_attack("wine", "ppsvm_linear")))


@pytest.mark.parametrize(
    ("nearest", "cell", "sentence"),
    [
        (1e-9, "verbatim 1e-9", "half of the centres of fcm_svm on wine are training rows , published as they are."),
        (0.1, "nearly a training row 0.1", "0.1 standard deviations of a training row in every feature, and nearly"),
        (0.101, "0.1", "lie within 0.1 standard deviations of a training row in every feature. Of the"),
    ],
)
def test_how_near_centres_are_to_training_rows_decides_the_words(nearest: float, cell: str, sentence: str) -> None:
    attacks = [make_condensed_attack("wine", "fcm_svm", "fcm"), make_condensed_attack("wine", "ci_svm")]
    for split in (split for attack in attacks for split in attack["splits"]):
        split["nearest_row"] = nearest
    page = page_with(*attacks)
    # Centres and means alike.
    assert [row[1] for row in cells_of(page)] == [cell] * 2
    assert sentence in words_of(page)
    summary = page[page.index('<section id="findings">') : page.index('<section id="datasets">')]
    assert ("Half of the condensed rows" in summary) == (nearest <= 0.1)
    assert ("are training rows" in summary) == (nearest == 1e-9)


@pytest.mark.parametrize(
    ("changes", "column", "ending"),
    [
        ({"lost_classes": 1}, -1, "97 % 1 class lost in 1 of 3 splits"),
        # All splits must be round-off.
        ({"third_member_error": 1e-8}, 2, "known exactly largest error 1e-8 99.3 % of the rows"),
        ({"third_member_error": 1.1e-8}, 2, "largest error 1.1e-8 99.3 % of the rows"),
        # Chance is of the splits with other rows.
        ({"membership_auc": None, "certain_members": None, "other_rows": 0}, 4, "5 % 4 % to 6 % chance: 2.7 %"),
    ],
)
def test_one_split_shows_in_the_row(changes: dict[str, Any], column: int, ending: str) -> None:
    page = page_with(make_condensed_attack("wine", "ci_svm", **changes))
    (row,) = cells_of(page)
    assert row[column].endswith(ending)
    is_exact = changes.get("third_member_error", 0.0) <= 1e-8
    assert row[2].startswith("known exactly") == ("computes the third</strong>." in page) == is_exact
    attack = make_condensed_attack("wine", "ci_svm", lost_classes=1)
    attack["splits"][0]["lost_classes"] = 2
    assert cells_of(page_with(attack))[0][-1].endswith("1 to 2 classes lost in 2 of 3 splits")


def test_what_was_not_attacked_is_not_said_to_be_safe() -> None:
    attack = make_condensed_attack("wine", "ci_svm")
    for split in attack["splits"]:
        split |= {"groups_of_three": 0, "third_member_error": None, "linked_rows": 100}
        split |= {"membership_auc": None, "certain_members": None, "other_rows": 0}
    page = page_with(attack)
    (row,) = cells_of(page)
    assert row[0] == "wine ci_svm (ci); 3 splits; 100 rows compared, drawn at random"
    assert row[2] == "no group of three"
    assert row[4:6] == ["no other rows", "no other rows"]
    assert "an AUC of" not in page


def all_condensed() -> list[Result]:
    return results_of(*(make_condensed_result("wine", method, status) for method, status in METHODS.items()))


def test_condensing_for_all_methods_is_said_wherever_results_are() -> None:
    condensing = [CondenseTimings(dataset="wine", condense="ci", condense_seconds=(0.25, 0.75))]
    page = page_with(make_condensed_attack("wine", None), results=all_condensed(), condensing=condensing)
    for section in ("summary", "datasets", "guarantees"):
        start = page.index(f'<section id="{section}"')
        words = words_of(page[start : page.index("</section>", start)])
        assert "All methods here were trained on condensed rows ( condense: ci ), not on the training rows." in words
        assert "no method here is proved , whatever noise was added" in words
    assert "does not hold" not in words_of(page)
    assert cells_of(page)[0][0] == "wine stage condense (ci), for all methods; 3 splits"
    assert "a paper states an epsilon" not in page
    assert "From the condensed rows of the stage condense on wine, an attacker who knows two" in words_of(page)
    assert cells_of(page, "<caption>Condensing the rows")[0] == ["wine", "ci", "2", "0.5"]
    assert '<section id="timings">' in page
    sentence = "The attack is on the condensed rows, not on a model that was trained on them, with noise or without."
    assert sentence in words_of(page)
    page = page_with(make_condensed_attack("wine", "ci_svm"))
    assert "<h2>Attacks</h2>" in page
    assert sentence not in words_of(page)
    assert "trained on condensed rows" not in page


def test_nothing_is_said_of_people_where_rows_were_condensed_before() -> None:
    """The condensed rows are then means or centres, whose exact values reveal nobody."""
    results = results_of(make_condensed_result("wine", "ci_svm", "none", "fcm"))
    attacks = [make_condensed_attack("wine", None, "fcm"), make_condensed_attack("wine", "ci_svm", twice=True)]
    for split in attacks[1]["splits"]:
        split["nearest_row"] = 0.0
    page = page_with(*attacks, results=results)
    words = words_of(page)
    assert "computes the third" not in words
    assert "known exactly" not in words
    assert "Half of the condensed rows of the stage condense on wine are nearly training rows" in words
    assert "an AUC of 0.66 (the stage condense on wine" in words
    stage, method = cells_of(page)
    assert stage[0] == "wine stage condense (fcm), for all methods; 3 splits"
    assert method == [
        "wine ci_svm (ci); 3 splits",
        "does not apply It condensed rows that the stage had condensed: what these give away is in the row of the "
        "stage.",
        "33.8 %",
        "96 % 95 % to 97 %",
    ]


def test_without_any_audit_nothing_is_drawn_as_broken() -> None:
    results = all_condensed()
    page = render_page(results)
    claims = page[page.index('<section id="claims">') : page.index('<section id="findings">')]
    assert "<svg" not in claims
    assert "broken" not in words_of(claims)
    assert "No epsilon stated here is proved, and none was audited" in words_of(claims)
    assert "Every audited claim" not in claims
    rows = cells_of(page, '<table class="claims stack">')
    assert len(rows) == sum(status != "none" for status in METHODS.values())
    assert {row[2] for row in rows} == {"not audited"}
    assert "refuted" not in words_of(page[page.index("<main") : page.index('<section id="glossary">')])
    # One audit, and there is something to draw.
    witness = Witness(epsilon=9.0, neighbours="replace_one", description="canary")
    audited = dataclasses.replace(results[-1].guarantees[0], witness=witness)
    results[-1] = dataclasses.replace(results[-1], guarantees=(audited, *results[-1].guarantees[1:]))
    page = render_page(results)
    assert "<svg" in page[page.index('<section id="claims">') : page.index('<section id="findings">')]
    assert "Every audited claim" in page


def test_condensed_rows_beside_others_are_refused(write_experiment: Any) -> None:
    def change(record: dict[str, Any]) -> dict[str, Any]:
        return record | {"condense": "fcm" if record["dataset"] == "wine" else "none"}

    files = write_experiment(("digits", "wine"), {"svm": "none"}, change)["results"]
    with pytest.raises(PrivSVMError, match=r"wine.json: condense is fcm, but none in .*digits.json; run all methods"):
        read_results(files)


def test_attacks_in_the_results_are_taken_once() -> None:
    stage, of_method = make_condensed_attack("wine", None), make_condensed_attack("wine", "ci_svm")
    blocks = make_attack("wine", "ppsvm_linear")
    carried = {"ppsvm_linear": [blocks], "svm": [stage], "ci_svm": [stage, of_method], "majority": []}
    results = results_of(*(make_result("wine", method, "none", attacks=held) for method, held in carried.items()))
    assert attacks_of(results) == [attack_of(stage), attack_of(of_method), attack_of(blocks)]
    assert attacks_of(whole()) == []
    for attacks, message in (
        ([stage | {"splits": None}], r"^r.json: attacks.0.condensed_rows.splits: None is not valid; must be a list"),
        (
            [stage, make_condensed_attack("wine", None, linkage_rate=0.1)],
            r"svm on wine: attacks\[1\]: differs from results of svm on wine: attacks\[0\]",
        ),
    ):
        with pytest.raises(PrivSVMError, match=message):
            attacks_of(results_of(make_result("wine", "svm", "none", attacks=attacks)))


def test_hostile_names_stay_text() -> None:
    record = make_result("wine", "svm", "claimed", protocol={"kind": HOSTILE}, parameters={HOSTILE: HOSTILE})
    texts = {"reason": HOSTILE, "mechanism": HOSTILE, "reference": f"javascript:alert(3) {HOSTILE}"}
    record = change_guarantees(record, **texts)
    scaling, sources = {"kind": HOSTILE, "origin": HOSTILE}, {HOSTILE: HOSTILE}
    prepared = [prepared_of(make_prepared("wine", sources=sources, scaling=scaling, classes=[HOSTILE]))]
    attacks = [attack_of(make_attack("a", "wine")), attack_of(make_condensed_attack("a", "wine"))]
    # Files hold no such names; a caller in Python may.
    names = {"method": HOSTILE, "dataset": HOSTILE}
    condensing = [CondenseTimings(dataset=HOSTILE, condense="ci", condense_seconds=(1.0,))]
    page = render_page(
        [dataclasses.replace(result, **names) for result in results_of(record)],
        experiment=HOSTILE,
        records=ReportRecords(
            prepared=[dataclasses.replace(one, dataset=HOSTILE) for one in prepared],
            attacks=[dataclasses.replace(attack, **names) for attack in attacks],
            condensing=condensing,
        ),
    )
    plain = render_page(
        results_of(make_result("wine", "dpwss", "claimed")), records=ReportRecords(prepared=prepared[:0])
    )
    elements = Elements(page)
    assert sum(tag == "script" for tag, _ in elements.tags) == sum(tag == "script" for tag, _ in Elements(plain).tags)
    assert not any(tag == "img" for tag, _ in elements.tags)
    assert not any(name.startswith("on") for _, attributes in elements.tags for name in attributes)
    assert not any((attributes.get("href") or "").startswith("javascript") for _, attributes in elements.tags)


def test_nothing_is_loaded_from_anywhere() -> None:
    page = render_page(whole(), origin=provenance())
    elements = Elements(page)
    for tag, attributes in elements.tags:
        assert attributes.get("src") is None
        assert "srcset" not in attributes
        assert "background" not in attributes
        href = attributes.get("href") or ""
        if tag == "a":
            # Elsewhere, or files of the report.
            known = ("pages/accuracy.svg", "pages/accuracy.csv", "reproduce/index.html")
            assert href.startswith(("#", "https://")) or href in known
        else:
            # Marks of a picture are shapes of the same.
            assert href in ("", "data:,") or (tag == "use" and href.startswith("#"))
    style = page[page.index("<style>") : page.index("</style>")]
    assert "url(" not in style
    assert "@import" not in style
    policy = [attributes["content"] or "" for tag, attributes in elements.tags if attributes.get("http-equiv")]
    assert policy
    assert policy[0].startswith("default-src 'none'")
    page_script = page[page.rindex("<script>") :]
    assert "http" not in page_script
    assert "fetch(" not in page_script
    assert "eval(" not in page_script


def test_provenance_names_no_one(tmp_path: Any, monkeypatch: Any) -> None:
    (tmp_path / "dvc.lock").write_text("stages: {}\n")
    monkeypatch.chdir(tmp_path)
    record = provenance()
    assert record["commit"] is None
    assert len(record["dvc_lock"]) == 64
    assert str(tmp_path) not in json.dumps(record)
    page = render_page(results_of(make_result("wine", "svm", "none", parameters={"path": "/home/alice/a.csv"})))
    assert "/home/" not in page
    assert "alice" not in page


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


def test_short_numbers_and_shares() -> None:
    for value, expected in (
        (None, "–"), ("inf", "∞"), (1.0, "1"), (0.05, "0.05"), (1e-5, "1e-5"), (1234.0, "1234"), (4.315, "4.32"),
        (0, "0"),
    ):  # fmt: skip
        assert short_number(value) == expected
    # Less than all is never 100 %.
    for share, expected in ((0, "0 %"), (0.0208, "2.08 %"), (0.99999, "99.9 %"), (1.0, "100 %")):
        assert percent(share).replace("\N{NO-BREAK SPACE}", " ") == expected


def test_undefined_parts_do_not_break_the_page(write_experiment: Any) -> None:
    undefined = {"parameters": {}, "protocol": {}, "metrics": {}, "summary": {}, "delta": None, "neighbours": None}
    # Without its assumptions a proof would be refused where the file is read.
    bare = {"sensitivity": None, "noise_scale": None, "witness": None, "reference": ""}
    files = write_experiment(change=lambda record: change_guarantees(record | undefined, **bare))
    bare_prepared = make_prepared("wine", classes=[], scaling={}, missing={}, protocol={}, sources={})
    page = render_page(read_results(files["results"]), records=ReportRecords(prepared=[prepared_of(bare_prepared)]))
    assert "pmsvm_wp" in page
    page = render_page(
        read_results(files["results"]),
        records=ReportRecords(
            timings=read_timings(files["timings"]), prepared=read_by_dataset(Prepared, files["prepared"])
        ),
        origin=provenance(),
    )
    for identity in ("summary", "claims", "datasets", "guarantees", "timings", "prepared", "provenance", "glossary"):
        assert f'<section id="{identity}"' in page


@pytest.mark.long
def test_a_large_report_stays_small_enough() -> None:
    files = report_files(synthetic(12, 20, GRID))
    assert len(files) == 1 + 2 + 3 * 12
    assert sum(len(text.encode()) for text in files.values()) < 9_000_000
    # The overview leads to all others.
    assert len(files["index.html"].encode()) < 2_000_000
    assert all(f'href="pages/dataset_{number}.html"' in files["index.html"] for number in range(12))


def answers_on_page(results: list[Result], **options: Any) -> list[str]:
    """Read the answer at every epsilon off the first page."""
    heading = re.search(r'<h1 class="answer".*?</h1>', render_page(results, **options), re.DOTALL)
    assert heading is not None
    spans = re.findall(r"<span[^>]*>(.*?)</span>", heading[0], re.DOTALL)
    return [Markup(span).striptags().replace("\N{NO-BREAK SPACE}", " ") for span in spans]


def test_the_first_screen_answers_at_every_epsilon() -> None:
    results = results_of(
        make_result("wine", "good", "proved", summary=level(0.9)),
        make_result("wine", "bad", "claimed", summary=level(0.99)),
        make_result("wine", "svm", "none", summary=level(0.95, 1)),
    )
    answers = page_context(results)["answers"]
    assert answers_on_page(results) == [
        f"At ε = {short_number(epsilon)}, good reaches 90.0 % accuracy on wine: 5.0 points less than without privacy."
        for epsilon in GRID
    ]
    # Claims stand apart from proofs, however accurate.
    assert {status: [row["method"] for row in rows] for status, rows in answers[0]["rows"].items()} == {
        "proved": ["good"], "seeded": [], "claimed": ["bad"], "none": ["svm"]
    }  # fmt: skip
    worthless = results_of(
        make_result("wine", "good", "proved", summary=level(0.4)),
        make_result("wine", "majority", "none", summary=level(0.4, 1)),
    )
    assert "no proved method beats guessing on wine" in answers_on_page(worthless)[0]
    # The majority of even classes in training is the minority in the test rows.
    even = results_of(
        make_result("wine", "good", "proved", summary=level(0.335), n_classes=3),
        make_result("wine", "majority", "none", summary=level(0.25, 1), n_classes=3),
    )
    assert "no proved method beats guessing on wine" in answers_on_page(even)[0]
    assert "Rely on no epsilon on this page" in answers_on_page(results[1:])[0]


def test_headline_and_ranks_are_of_the_readers_tables() -> None:
    levels = {"wine": (0.9, 0.8), "sensors": (0.8, 0.85), "species": (0.7, 0.9)}
    results = results_of(
        *(make_result(name, "kind", "proved", summary=level(one)) for name, (one, _) in levels.items()),
        *(make_result(name, "sure", "seeded", summary=level(other)) for name, (_, other) in levels.items()),
        make_result("wine", "rare", "proved", summary=level(0.99)),
        *(make_result(name, "bad", "claimed", summary=level(0.99)) for name in levels),
        *(make_result(name, "svm", "none", summary=level(0.95, 1)) for name in levels),
    )
    context = page_context(results, own_datasets=("species", "sensors"))
    assert context["lead"] == "sensors"
    assert set(answers_on_page(results, own_datasets=("species", "sensors"))) == {
        f"At ε = {short_number(epsilon)}, sure has the best mean rank of the proved methods, and is first on "
        "2 of 2 datasets: 5.0 (species) to 10.0 points (sensors) less than without privacy."
        for epsilon in GRID
    }
    # Claims are not ranked, nor methods with answers on fewer than half of the datasets.
    first, second = context["overview"][0]
    assert (first["method"], first["rank"], first["first"], first["most"]) == ("sure", 4 / 3, 2, pytest.approx(10.0))
    assert (second["method"], second["rank"], second["behind"]) == ("kind", 5 / 3, pytest.approx(25 / 3))
    everywhere = answers_on_page(results)[0]
    assert "on 2 of 3 datasets: 5.0 (species) to 15.0 points (wine) less" in everywhere


def test_one_name_and_one_word_everywhere() -> None:
    record = {"implementation": "recommended"}
    results = results_of(
        make_result("wine", "recommended", "seeded") | record,
        make_result("wine", "pmsvm_wp_as_published", "claimed"),
        make_result("wine", "mine", "claimed"),
    )
    words = {"recommended": "seeded", "pmsvm_wp_as_published": "refuted", "mine": "claimed"}
    assert {row["method"]: row["status"] for row in curve_rows(results)} == words
    assert {method: entry["status"] for method, entry in metrics_record(results)["wine"].items()} == words
    page = render_page(results)
    for method, word in words.items():
        assert re.search(rf"{method.replace('_', '_<wbr>')}</th>.*<span class=\"badge {word}\">{word}</span>", page)
        assert f"{method} — {word}" in page
    assert '<span class="badge refuted">refuted</span> <s>ε = 1</s>' in page
    assert "PrivateLinearClassifier" not in page


def test_references_without_privacy_have_different_marks() -> None:
    references = results_of(
        *(make_result("wine", name, "none") | {"implementation": name} for name in ("svm", "majority"))
    )
    chips = re.findall(r'<li><i aria-hidden="true">([–·┄]+)</i> (\w+)', render_page(references))
    assert {name: mark for mark, name in chips} == {"svm": "┄", "majority": "–·"}


def level(mean: float, count: int = len(GRID)) -> dict[str, Any]:
    """A summary with one accuracy everywhere."""
    spread = {"mean": mean, "sd": 0.01, "low": mean - 0.02, "high": mean + 0.02}
    return {"accuracy": {name: [value] * count for name, value in spread.items()}}


def test_a_report_on_own_data_says_that_it_is_not_private() -> None:
    words = words_of(render_page(whole(), own_datasets=["wine"]))
    assert words.index("Which classifier may you release for wine") < words.index("At ε")
    assert "This report is not private." in words
    assert "This report is not private." not in words_of(render_page(whole(), own_datasets=["other"]))


def test_what_only_lacks_a_declaration_is_no_papers_claim() -> None:
    facts, reason = proved_fields(1.0)["facts"], "the class set was taken from the private labels"
    changes = {"facts": facts | {"classes": "private labels"}, "reason": reason}
    words = words_of(render_page(results_of(change_guarantees(make_result("wine", "pmsvm_wp", "claimed"), **changes))))
    assert "a paper states an epsilon" not in words
    assert "does not hold" not in words
    assert "For one method, nothing is proved with the settings of this run , because a declaration" in words


def test_what_another_package_states_is_no_papers_claim() -> None:
    record = make_result("wine", "mine", "claimed") | {"implementation": "package.module:Mine"}
    words = words_of(render_page(results_of(record)))
    assert "a paper states an epsilon" not in words
    assert "does not hold" not in words.lower()
    assert "For one method of another package, an epsilon is stated that nobody has proved here : mine." in words
    assert "mine claimed Not proved. no noise is added" in words
    refuted = change_guarantees(record, witness=make_guarantee("dpwss", "claimed", 1.0)["witness"])
    words = words_of(render_page(results_of(refuted)))
    assert "nobody has proved here : mine (refuted)." in words
    assert "mine refuted Refuted. no noise is added" in words


def test_of_equal_ranks_the_method_with_fewer_points_behind_is_first() -> None:
    means = {"wine": {"a": 0.80, "b": 0.79}, "iris": {"a": 0.70, "b": 0.75}}
    records = [
        make_result(dataset, method, "proved") | {"summary": level(mean)}
        for dataset, scores in means.items()
        for method, mean in scores.items()
    ]
    assert [row["method"] for row in rank_methods(results_of(*records), 1.0)] == ["b", "a"]


def test_a_chart_opens_with_a_claim_of_the_users_own() -> None:
    assert key_methods(whole(), 1.0)[-1] in {name for name, status in METHODS.items() if status == "claimed"}
    mine = make_result("wine", "mine", "claimed") | {"implementation": "package.module:Mine"}
    assert key_methods([*whole(), *results_of(mine)], 1.0) == [*key_methods(whole(), 1.0)[:-1], "mine"]


def test_the_first_files_are_beside_the_pages(tmp_path: Any) -> None:
    results = [*whole("wine"), *whole("x+1.0")]
    files = report_files(results)
    assert {name for name in files if name.endswith(".html")} == {
        "index.html", "pages/wine.html", "pages/x+1.0.html"
    }  # fmt: skip
    assert "This chart" not in files["pages/wine.svg"]
    assert files["pages/wine.svg"].startswith("<svg xmlns")
    assert files["pages/wine.csv"].count("\n") > len(METHODS)
    for name, text in files.items():
        for link in re.findall(r'(?:href|src)="([^"#:,]+)["#]', text):
            # Another command writes the pages of reproductions.
            assert {posixpath.normpath(posixpath.join(posixpath.dirname(name), link))} <= {
                *files,
                "reproduce/index.html",
            }


def test_a_guess_is_bounded_by_what_the_release_did() -> None:
    """Gaussian noise reveals less than its epsilon alone."""
    noise = Gaussian(2.0 * gaussian_noise_multiplier(1.0, 1e-5))
    seeded = proved(
        event=noise, status="seeded", randomness="seeded", epsilon_proved=float("inf"), epsilon_with_system_noise=1.0
    )
    for guarantee, expected in (
        (proved(), 0.731), (proved(event=noise), 0.553), (seeded, 0.553),
        (proved(event=noise).with_broken_assumption("rows are not clipped"), 1.0),
    ):  # fmt: skip
        assert right_guess(guarantee) == pytest.approx(expected, abs=1e-3)
    (best,) = best_proved(results_of(make_result("wine", "recommended", "proved", (1.0,))), 1.0)
    assert best["best"]["guess"] == 74


STATUSES = ("proved", "claimed", "none", "proved")


def synthetic(n_datasets: int, n_methods: int, epsilons: tuple[float, ...] = (1.0,)) -> list[Result]:
    return results_of(
        *(
            make_result(f"dataset_{dataset}", f"method_{method}", STATUSES[method % 4], epsilons)
            for dataset in range(n_datasets)
            for method in range(n_methods)
        )
    )


def tables_and_page(results: list[Result]) -> None:
    page_context(results)
    metrics_record(results)
    curve_rows(results)


@pytest.mark.parametrize(
    ("small_shape", "large_shape"), [((40, 4), (80, 4)), ((1, 160), (1, 320))], ids=["datasets", "methods"]
)
def test_the_report_takes_steps_in_proportion_to_the_results(
    small_shape: tuple[int, int], large_shape: tuple[int, int]
) -> None:
    small, large = synthetic(*small_shape), synthetic(*large_shape)
    assert len(large) == 2 * len(small)
    assert steps(lambda: tables_and_page(large)) < 2.2 * steps(lambda: tables_and_page(small))


def test_tracking_takes_steps_in_proportion_to_the_results(tmp_path: Path) -> None:
    files = []
    for method in range(120):
        path = tmp_path / f"method_{method}.json"
        write_json(path, seal(make_result("wine", f"method_{method}", STATUSES[method % 4], (1.0,))))
        files.append((path, []))
    collect_runs(files[:1])
    assert steps(lambda: collect_runs(files)) < 2.2 * steps(lambda: collect_runs(files[:60]))
