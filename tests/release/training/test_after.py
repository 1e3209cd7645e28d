"""`privsvm release --after`: a model is averaged with earlier releases of the same table, and says who pays for it."""

import json
import shutil
import sqlite3

import numpy as np
import pytest
from tests.release.conftest import refusal, release_into, run
from tests.release.made_up import read_folder, write_folder

from privsvm import load
from privsvm.errors import PrivSVMError
from privsvm.release.documents.ledger import Ledger
from privsvm.release.documents.verifying import verify
from privsvm.release.training.recipes import Recipe, Terms
from privsvm.release.training.releasing import Permission, release
from privsvm.tables.schema import read_schema

SCHEMA = """
name: ward
label: ill
classes: ["no", "yes"]
positive: "yes"
prescaled: false
columns:
  a: {bounds: [-4, 4], fill: 0}
  b: {bounds: [-4, 4], fill: 0}
"""


@pytest.fixture(scope="module")
def ward(tmp_path_factory):
    """A table that grew, and two releases, the second one averaged with the first; not to be written to."""
    folder = tmp_path_factory.mktemp("ward")
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, size=900)
    lines = [f"{a:.3f},{b:.3f},{'yes' if label else 'no'}" for (a, b), label in zip(
        rng.normal(size=(900, 2)) + y[:, None], y, strict=True)]  # fmt: skip
    for name, rows in (("first.csv", 600), ("second.csv", 900)):
        (folder / name).write_text("\n".join(["a,b,ill", *lines[:rows]]) + "\n")
    (folder / "schema.yaml").write_text(SCHEMA)
    release_into(folder, folder / "first.csv", folder / "schema.yaml", out="one")
    more = ("--after", folder / "one", "--yes")
    said = release_into(folder, folder / "second.csv", folder / "schema.yaml", *more, out="two")
    assert "averaged with earlier releases" in said
    return folder


def after(ward, folder, *more, schema=None, ledger=None):
    """Try a third release, which is refused; return the last line of what is said."""
    code, out, err = run(
        *("release", "--data", ward / "second.csv", "--schema", schema or ward / "schema.yaml", "--epsilon", 1),
        *("--without-inspection", "--yes", "--ledger", ledger or ward / "ledger.jsonl", "--out", folder / "three"),
        *more,
    )
    assert (code, out) == (1, "")
    assert not (folder / "three").exists()
    return err.splitlines()[-1]


def test_a_card_names_what_it_was_built_on_and_who_pays(ward):
    first, second = (json.loads((ward / name / "card.json").read_text()) for name in ("one", "two"))
    assert (first["built_on"], len(second["built_on"])) == ([], 2)
    assert second["built_on"][1].startswith(f"Model {first['model_digest']}: epsilon 1 per row")
    # Its own epsilon, for its own rows; the total is of both.
    assert second["epsilon"] == pytest.approx(1.0, rel=1e-6)
    assert second["ledger"]["total"]["epsilon"] > 1.3
    assert "The model also shows what the earlier models show of their tables." in second["in_words"][-1]
    text = run("card", ward / "two")[1]
    assert "What it was built on" in text
    assert "several of their tables pays for each" in " ".join(text.split())
    assert "What it was built on" not in run("card", ward / "one")[1]
    dossier, risk = run("dossier", ward / "two")[1], run("risk", ward / "two")[1]
    assert first["model_digest"] in dossier
    assert "and has the model and the earlier ones, guesses whether one row was used in this release." in dossier
    assert "everything else, and the earlier models, and guesses whether a row was used in this release" in risk
    assert "used in this release" not in run("dossier", ward / "one")[1] + run("risk", ward / "one")[1]
    assert verify(ward / "two", ledger=Ledger(ward / "ledger.jsonl")).releases[0].model == first["model_digest"]


def test_an_average_is_a_model_like_any_other(ward, tmp_path):
    first, second = load(ward / "one"), load(ward / "two")
    # The noise of an average is not known, as the noise of the first one is.
    assert first.record.kind.replace("noisy_", "") == second.record.kind
    table = [line.split(",") for line in (ward / "second.csv").read_text().splitlines()[1:]]
    columns = {name: [row[place] for row in table] for place, name in enumerate("ab")}
    answers = second.predict(columns)
    assert np.mean(answers == [row[2] for row in table]) > 0.7
    assert run("export", ward / "two", "--to", "sql", "--out", tmp_path / "q.sql")[0] == 0
    base = sqlite3.connect(":memory:")
    base.execute("create table rows (a text, b text)")
    base.executemany("insert into rows values (?, ?)", [row[:2] for row in table])
    assert [row[0] for row in base.execute((tmp_path / "q.sql").read_text())] == answers.tolist()


def test_a_plan_shows_the_accuracy_after_earlier_releases(ward, monkeypatch):
    monkeypatch.setattr("privsvm.release.training.planning.DIFFICULTIES", {"hard": 0.75})
    code, out, err = run("plan", "--rows", 900, "--features", 2, "--epsilon", 0.25, "--after", ward / "two")
    assert code == 0, err
    assert "Averaged with 2 earlier release(s), for which their rows pay up to epsilon 2:" in out
    alone, averaged = (
        [line for line in part.splitlines() if line.startswith("hard")] for part in out.split("Averaged")
    )
    # The first part has the simulation, and so has the second.
    assert len(alone) == len(averaged) == 1
    assert alone != averaged
    assert "another number of features" in refusal("plan", "--rows", 900, "--features", 3, "--after", ward / "two")


@pytest.mark.parametrize(
    ("old", "new", "key"),
    [
        ("[-4, 4], fill: 0}\n  b", "[-4, 5], fill: 0}\n  b", "columns"),
        ('["no", "yes"]', '["no", "yes", "dead"]\n', "classes"),
        ("name: ward", "name: other", "name"),
        ('positive: "yes"\n', "", "positive"),
    ],
)
def test_a_model_of_another_schema_is_refused(ward, tmp_path, old, new, key):
    text = SCHEMA.replace(old, new, 1)
    assert text != SCHEMA
    if key == "classes":
        text = text.replace('positive: "yes"\n', "")
    (tmp_path / "schema.yaml").write_text(text)
    said = after(ward, tmp_path, "--after", ward / "two", schema=tmp_path / "schema.yaml")
    assert f"`{key}` of its schema is another" in said


def test_rows_and_words_of_a_schema_may_change(ward, tmp_path):
    for name in ("first.csv", "second.csv", "ledger.jsonl"):
        shutil.copy(ward / name, tmp_path)
    (tmp_path / "schema.yaml").write_text(SCHEMA + "rows: 900\ncard: {owner: us}\n")
    more = ("--after", ward / "two", "--yes")
    release_into(tmp_path, tmp_path / "second.csv", tmp_path / "schema.yaml", *more, out="three")
    assert len(json.loads((tmp_path / "three/card.json").read_text())["built_on"]) == 3


def test_what_may_not_be_averaged_costs_nothing(ward, tmp_path):
    before = (ward / "ledger.jsonl").read_bytes()
    assert "its relation is add_remove" in after(ward, tmp_path, "--after", ward / "two", "--neighbours", "replace_one")
    assert "may have trained the earlier" in after(ward, tmp_path, "--after", ward / "two", "--hold-back", 0.1)
    # A ledger that lacks the earlier release would show too small a total.
    said = after(ward, tmp_path, "--after", ward / "two", ledger=tmp_path / "empty.jsonl")
    assert "does not contain this release" in said
    # As `verify` refuses it.
    shutil.copytree(ward / "two", tmp_path / "changed")
    page = tmp_path / "changed/card.html"
    page.write_text(page.read_text().replace("Nothing", "Something") + " ")
    assert "is not the page of card.json" in after(ward, tmp_path, "--after", tmp_path / "changed")
    (tmp_path / "changed/model.npz").write_bytes(b"none")
    assert "model.npz" in after(ward, tmp_path, "--after", tmp_path / "changed")
    assert "file not found" in after(ward, tmp_path, "--after", tmp_path / "nowhere")
    terms = Terms(1.0, recipe=Recipe("adassp"), after=str(ward / "two"))
    with pytest.raises(PrivSVMError, match="the recommended recipe averages models"):
        release(
            ward / "second.csv", read_schema(ward / "schema.yaml"), tmp_path / "three", terms,
            Ledger(ward / "ledger.jsonl"), Permission(confirm=lambda before, after: True, without_inspection=True),
        )  # fmt: skip
    assert (ward / "ledger.jsonl").read_bytes() == before


def test_a_card_counts_every_release_in_the_average(ward, tmp_path):
    shutil.copytree(ward / "two", tmp_path / "two")
    record, card = read_folder(tmp_path / "two")
    card["ledger"]["total"] |= {"releases": 1, "epsilon": card["epsilon"], "delta": card["delta"]}
    card["ledger"]["total"] |= {"by_relation": card["by_relation"], "guess": card["risk"]["guess"]}
    write_folder(tmp_path / "two", record, card)
    with pytest.raises(PrivSVMError, match="its total is less than what this release costs"):
        verify(tmp_path / "two")
    write_folder(tmp_path / "two", record, card | {"built_on": []})
    with pytest.raises(PrivSVMError, match="built_on is not what"):
        verify(tmp_path / "two")
