"""The card: what everybody reads first, the total of the data set, and how well each class is found."""

import html
import json
import re
import shutil

import jinja2
import pytest
from tests.refusals import refusal
from tests.release.conftest import release_into, run
from tests.release.hospital import SCHEMA, write_table
from tests.release.made_up import FIRST, counts_of, release_of_wards, write_content
from tests.release.predicting.test_released import edits_of

import privsvm
from privsvm.base.model_file import MODEL_VERSION
from privsvm.digests import sha256_of_file
from privsvm.errors import PrivSVMError
from privsvm.release.documents.card import CARD_VERSION
from privsvm.release.documents.card_page import page
from privsvm.release.documents.class_rates import accuracy_text, class_rates, majority_share
from privsvm.release.documents.ledger import Ledger
from privsvm.release.documents.verifying import verify
from privsvm.release.training.recipes import Terms
from privsvm.release.training.releasing import CardOptions, Permission, release
from privsvm.tables.schema import parse_schema, read_schema

ABOUT = """\
card:
  purpose: It warns of <patients> & others.
  intended_use: On the wards.
  owner: Statistics unit
  contact: unit@hospital.example
  expires: 9999-12-31
"""
COUNTS = counts_of((900.0, 30.0), (60.0, 10.0), scale=2.0)


@pytest.fixture(scope="module")
def twice(tmp_path_factory, hospital):
    """Two releases from one table, with their ledger."""
    folder = tmp_path_factory.mktemp("twice")
    write_table(folder / "few.csv", 60, 3)
    (folder / "schema.yaml").write_text(SCHEMA + ABOUT)
    for name, options in (("one", ["--budget", 3]), ("two", ["--yes", "--sign", hospital / "signer.pem"])):
        said = release_into(folder, folder / "few.csv", folder / "schema.yaml", *options, out=name)
    (folder / "said.txt").write_text(said)
    return folder


def card_of(folder):
    return json.loads((folder / "card.json").read_text())


def write_card(folder, card):
    """Write a card and its page, with its digests computed again, and nothing else of it changed."""
    card["files"] = {name: sha256_of_file(folder / name) for name in card["files"]}
    write_content(folder, "card.json", card)
    (folder / "card.html").write_text(page(card))


def test_a_second_card_says_what_both_cost_together(twice):
    ledger = Ledger(twice / "ledger.jsonl")
    first, second = (card_of(twice / name) for name in ("one", "two"))
    total = ledger.total("hospital")
    for name in ("one", "two"):
        verify(twice / name, ledger=ledger)
    assert first["ledger"]["total"] == {
        "releases": 1, "epsilon": first["epsilon"], "delta": first["delta"], "by_relation": first["by_relation"],
        "guess": 56, "budget": 3.0,
    }  # fmt: skip
    shown = second["ledger"]["total"]
    assert (shown["releases"], shown["epsilon"], shown["delta"]) == (2, total.epsilon, total.delta)
    # Two Gaussian releases are one with the root of two of the signal.
    assert 1.4 < total.epsilon < 1.5
    assert shown["guess"] == 58
    text = " ".join(run("card", twice / "two")[1].split())
    assert "per person replaced, in 2 releases, this one included. Someone who sees all of them and makes" in text
    assert "the same guess is right at most 58 times in 100. The limit for all releases is 3." in text
    said = (twice / "said.txt").read_text()
    assert f"with this one, 2 releases will cost about epsilon {total.epsilon:.4g} per person" in said
    assert "(so far 1 under add_remove); the budget is 3" in said
    assert said.startswith("account 'hospital': with this one")


@pytest.mark.parametrize(
    "changes",
    [
        {"epsilon": 0.5}, {"guess": 55}, {"delta": 1e-9}, {"releases": 9}, {"releases": 1}, {"guess": 101},
        {"by_relation": {}}, {"by_relation": {"replace_one": 3.5}}, {"replace_one": 2.0},
    ],
    ids=str,
)  # fmt: skip
def test_no_card_states_a_smaller_total(twice, tmp_path, changes):
    shutil.copytree(twice / "two", tmp_path / "m")
    card = card_of(tmp_path / "m")
    total = card["ledger"]["total"]
    (total["by_relation"] if "replace_one" in changes else total).update(changes)
    write_card(tmp_path / "m", card)
    with pytest.raises(PrivSVMError, match="its total is less than what this release costs"):
        verify(tmp_path / "m")


def test_the_ledger_knows_the_total(twice, tmp_path):
    shutil.copytree(twice / "two", tmp_path / "m")
    card = card_of(tmp_path / "m")
    by_relation = {"add_remove": 1.2, "replace_one": 2.5}
    card["ledger"]["total"] |= {"epsilon": 1.2, "by_relation": by_relation, "guess": 57}
    write_card(tmp_path / "m", card)
    verify(tmp_path / "m")
    with pytest.raises(PrivSVMError, match="gives another total than the card"):
        verify(tmp_path / "m", ledger=Ledger(twice / "ledger.jsonl"))


def test_the_first_screen_says_what_everybody_needs(twice):
    page = (twice / "two" / "card.html").read_text()
    card = card_of(twice / "two")
    assert card["by_relation"] == {"add_remove": card["epsilon"], "replace_one": pytest.approx(2.1547, rel=1e-4)}
    titles = re.findall(r"<h2>(.*?)</h2>", page)
    assert titles == [
        "What it is for", "Who is protected", "What it may reveal", "How accurate it is", "Which columns matter",
        "What is not covered", "Spent on this table so far", "Intended use", "Who answers for it",
    ]  # fmt: skip
    first, _, folded = page.partition("<details><summary>For the reviewer</summary>")
    assert "It warns of &lt;patients&gt; &amp; others. It predicts died: no or yes." in first
    assert "Statistics unit. unit@hospital.example. Not to be used after 9999-12-31." in first
    assert html.escape(card["in_words"][1]) in first
    assert card["mechanism"] not in first
    assert html.escape(card["mechanism"]) in folded
    assert card["digest"] in folded
    assert card["signature"] in folded
    assert not re.search(r"(?:src|href)=|url\(|<script", page)
    # The picture draws the risk.
    guess = card["risk"]["guess"]
    picture = re.findall(r"<svg viewBox.*?</svg>", page)[0]
    drawn = [picture.count(f'class="{kind}"') for kind in ("before", "more", "wrong")]
    assert drawn == [50, guess - 50, 100 - guess]
    assert f"at most {guess} with it" in picture


def test_rates_of_two_classes_follow_from_the_counts():
    assert majority_share(COUNTS) == 0.96
    shown = class_rates(COUNTS, "died", ["no", "yes"])
    shares = [
        re.search(r"(?:finds|yes,|no,) ([\d.]+) \(95 % interval ([\d.]+) to ([\d.]+)\)", words).groups()
        for words in shown
    ]
    values = [tuple(map(float, share)) for share in shares]
    exact = [30 / 40, 900 / 960, 30 / 90, 900 / 910]
    assert [estimate for estimate, _, _ in values] == pytest.approx([100 * share for share in exact], rel=1e-2)
    assert all(low < 100 * share < high for share, (_, low, high) in zip(exact, values, strict=True))
    # Few rows say little.
    assert values[0][2] - values[0][1] > 4 * (values[1][2] - values[1][1])
    assert [text.split(":")[0] for text in shown] == [
        "Sensitivity", "Specificity", "Positive predictive value", "Negative predictive value",
    ]  # fmt: skip
    assert "Right for 93" in accuracy_text(COUNTS, is_balanced=False)
    assert "commonest class would be right for about 96." in accuracy_text(COUNTS, is_balanced=False)
    assert "equal weight" not in accuracy_text(COUNTS, is_balanced=False)
    assert "equal weight" in accuracy_text(COUNTS, is_balanced=True)
    # Rates of more classes are those of each.
    shown = class_rates(counts_of((9.0,) * 3, (1.0,) * 3, scale=0.5), "ward", ["a", "b", "c"])
    assert [text[:33] for text in shown] == [f"Of 100 rows with ward = {name}, the mod"[:33] for name in "abc"]


def test_a_model_past_its_last_day_is_named_at_every_use(tmp_path):
    write_table(tmp_path / "few.csv", 60, 3)
    ledger, permission = Ledger(tmp_path / "ledger.jsonl"), Permission(None, lambda *_: True, without_inspection=True)

    def release_on(today, day):
        (tmp_path / "schema.yaml").write_text(SCHEMA + ABOUT.replace("9999-12-31", day))
        schema = read_schema(tmp_path / "schema.yaml")
        options = CardOptions(today=today)
        release(tmp_path / "few.csv", schema, tmp_path / day, Terms(1.0), ledger, permission, options)

    assert "card.expires: 2020-01-01 is past, on 2020-01-02" in refusal(release_on, "2020-01-02", "2020-01-01")
    assert ledger.total("hospital") is None
    for day, is_past in (("2020-01-01", True), ("9999-12-31", False)):
        release_on("2020-01-01", day)
        for command in (("verify", tmp_path / day), ("predict", tmp_path / day, tmp_path / "few.csv")):
            code, _, said = run(*command)
            assert code == 0
            assert (f"{day}: not to be used after {day}, says its card" in said) == is_past


def test_the_command_says_its_version():
    assert run("--version") == (0, f"privsvm {privsvm.__version__}\n", "")


def test_an_expiry_is_a_day():
    schema = read_schema(FIRST / "schema.yaml").to_json()
    for day in ("2027-13-01", "31.12.2027", "soon", 2027, "2027-W01-1"):
        with pytest.raises(PrivSVMError, match="write it as YYYY-MM-DD"):
            parse_schema(schema | {"card": {"expires": day}})
    declared = parse_schema(schema | {"card": {"expires": "2027-12-31", "owner": "me"}})
    assert declared.to_json()["card"] == {"expires": "2027-12-31", "owner": "me"}
    assert parse_schema(declared.to_json()) == declared


def test_an_interrupted_release_of_another_version_is_refused(tmp_path):
    """It is paid for: its files stay, for the version that began it."""
    release_of_wards(tmp_path)
    draft = card_of(tmp_path / "model") | {"version": CARD_VERSION + 1}
    part = (tmp_path / "model").rename(tmp_path / ".model.part")
    record = json.loads((part / "model.json").read_text())
    (part / "model.json").write_text(json.dumps(record | {"version": MODEL_VERSION + 1}))
    (part / "card.json").unlink()
    (part / "card.draft.json").write_text(json.dumps(draft))
    before = {path.name: path.read_bytes() for path in part.iterdir()}
    with pytest.raises(PrivSVMError, match="interrupted release of another version of PrivSVM; finish it with the"):
        release(
            tmp_path / "none.csv", read_schema(FIRST / "schema.yaml"), tmp_path / "model", Terms(2.0),
            Ledger(tmp_path / "ledger.jsonl"), Permission(without_inspection=True),
        )  # fmt: skip
    assert {path.name: path.read_bytes() for path in part.iterdir()} == before


def test_a_card_says_nothing_but_what_its_record_gives(twice, tmp_path):
    """Without a key and a ledger: words of the issuer, and a total that is larger, are all that may change."""
    shutil.copytree(twice / "one", tmp_path / "m")
    card, accepted = card_of(tmp_path / "m"), set()
    for edited in edits_of(card):
        if edited.keys() <= {*card, "added"} and edited.get("files") == card["files"]:
            try:
                write_card(tmp_path / "m", edited)
            except (KeyError, TypeError, ValueError, AttributeError, jinja2.UndefinedError):
                continue
            code, _, err = run("verify", tmp_path / "m")
            assert (code, err.count("\n")) in ((0, 0), (1, 1))
            accepted |= {name for name in card if code == 0 and edited.get(name) != card[name]}
    assert accepted <= {"accuracy", "ledger", "digest"}
