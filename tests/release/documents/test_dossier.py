"""The dossier of a release: complete, from its files, and safe to show."""

import json
import re
from pathlib import Path

import pytest
from tests.blocks import blocks_run_by
from tests.release.conftest import in_shell, refusal, run
from tests.release.made_up import release_of_wards

from privsvm.privacy.events import (
    BestOfNegativeBinomial,
    BestOfPoisson,
    Composed,
    EpsilonDelta,
    ExponentialMechanism,
    Gaussian,
    Laplace,
    OneOf,
    PerturbedObjectives,
    PoissonSampled,
    SelfComposed,
    ZeroConcentrated,
    leaves,
)
from privsvm.release.documents.card import per_cent, read_card
from privsvm.release.documents.dossier import describe_event, dossier
from privsvm.release.documents.ledger import Ledger
from privsvm.release.predicting.model import load


def test_dossier_has_what_the_record_has(hospital):
    text = dossier(hospital / "model", Ledger(hospital / "ledger.jsonl"))
    model, card = load(hospital / "model"), read_card(hospital / "model" / "card.json")
    assert re.findall(r"^## (\d+)\.", text, re.MULTILINE) == [str(number) for number in range(1, 13)]
    assert f"epsilon | {model.protection_.epsilon:.6g} per person" in text
    assert f"at most {per_cent(model.record.risk().guess)} in 100 (without the model 50)" in text
    assert "of each person's rows in the file, the first 5 count" in text
    relations = "under add\\_remove (epsilon 2.155 under replace\\_one)"
    assert f"| neighbouring tables | {relations} |" in text
    assert f"Together they cost epsilon 1 per person, delta 1e-05, {relations}" in text
    for event, count in leaves(model.guarantee_.event):
        assert re.search(
            rf"standard deviation is {event.noise_multiplier:.6g} times one row's part \| {count} \|", text
        )
    for words in (*card["assumptions"], *card["not_covered"], *card["public"]):
        assert f"\n- {words}\n" in text.replace("\\", "")
    # The audits of the method under the relation of persons.
    assert "| on all rows | 1,000,000 | 1 | 0.9865 |" in text
    assert "card is signed" in text
    assert "it was release 1 of this data set, and all releases cost epsilon 1 and" in dossier(hospital / "model")


@pytest.mark.parametrize(
    ("event", "words"),
    [
        (Laplace(0.25), "sums over rows, with Laplace noise whose scale is 0.25 times one row's part"),
        (
            ExponentialMechanism(0.5),
            "a random choice among public candidates, the better ones likelier, with epsilon 0.5",
        ),
        (ZeroConcentrated(0.125), "a release with rho-zCDP, rho 0.125"),
        (EpsilonDelta(1.0, 1e-6), "a release with epsilon 1 and delta 1e-06"),
        (PoissonSampled(0.25, Gaussian(2.0)), "rows drawn with chance 0.25 each, secretly: sums over rows"),
        (
            OneOf((Composed((Laplace(3.0), SelfComposed(ZeroConcentrated(0.5), 4))), EpsilonDelta(2.0, 0.0))),
            "one of these, chosen without looking at a row: sums over rows, with Laplace noise whose scale is 3 times "
            "one row's part; then 4 times: a release with rho-zCDP, rho 0.5; or a release with epsilon 2 and delta 0",
        ),
        (
            PerturbedObjectives(0.25, 0.5, 3, 8.0),
            "(3) for the rows and a random slope, one row's part of which is 0.25 standard deviations and adds 0.5 of "
            "the curvature, with Gaussian noise of 8 times",
        ),
        (BestOfPoisson(2.0, Gaussian(4.0)), "the best of a random and secret number of runs (Poisson, 2), each: sums"),
        (BestOfNegativeBinomial(1.0, 0.5, Gaussian(4.0)), "(negative binomial, shape 1, gamma 0.5), each: sums over"),
    ],
)
def test_a_board_reads_steps_as_sentences(event, words):
    assert words in describe_event(event)


def test_dossier_says_who_answers_for_the_model(hospital, monkeypatch):
    card = read_card(hospital / "model" / "card.json") | {"about": {"intended_use": "triage | <b>", "owner": "Ward 7"}}
    monkeypatch.setattr("privsvm.release.documents.dossier.read_card", lambda path: card)
    text = dossier(hospital / "model")
    assert "| intended use | triage \\| &lt;b&gt; |\n| owner | Ward 7 |\n" in text


def test_releases_of_a_public_number_of_rows_have_a_dossier(tmp_path):
    release_of_wards(tmp_path)
    text = dossier(tmp_path / "model")
    assert "give `--ledger`" in text
    assert "The number of rows is public." in text
    assert "- the number of rows, 400" in text


def test_every_command_of_the_page_runs(hospital_copy, monkeypatch):
    monkeypatch.chdir(hospital_copy)
    (block,) = blocks_run_by(__file__)
    for command in block.commands:
        _, out = in_shell(command)
        if ">" in command:
            assert json.loads(out)[0]["status"] == "Draft"
    assert Path("dossier.md").read_text(encoding="utf-8") == run("dossier", "model", "--ledger", "ledger.jsonl")[1]


@pytest.mark.parametrize("out", ["model/dossier.md", "dossier.md"])
def test_no_dossier_of_a_changed_release_or_inside_it(hospital_copy, monkeypatch, out):
    monkeypatch.chdir(hospital_copy)
    if out == "dossier.md":
        path = Path("model/card.json")
        path.write_text(path.read_text().replace('"epsilon": ', '"epsilon": 0'))
    refusal("dossier", "model", "--out", out)
    assert not Path(out).exists()
