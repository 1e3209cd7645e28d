"""One release by the rules for messy tables: what the card says, and every reader of new rows obeys."""

import json

import numpy as np
import pandas as pd
import pytest
from tests.release.conftest import release_into, run

import privsvm
from privsvm.release.documents.card_page import card_text
from privsvm.release.predicting.mlflow_loader import ServedModel

SCHEMA = """\
version: 1
name: messy
label: died
classes: ["no", "yes"]
prescaled: false
person: who
rows_per_person: 1
latest_by: seen
missing: [-999, "n.d."]
columns:
  seen: {date: ["%d.%m.%Y", iso], ignore: true}
  age: {bounds: [0, 100], fill: 50}
  sex: {categories: [f, m, none], unknown: other, ignore_case: true}
  born: {date: ["%d.%m.%Y", iso], bounds: ["1920-01-01", "2020-01-01"], fill: middle}
"""


@pytest.fixture(scope="module")
def messy(tmp_path_factory):
    """A folder with a model of a table of which the latest rows alone tell the classes apart."""
    folder, rng = tmp_path_factory.mktemp("messy"), np.random.default_rng(0)
    age = rng.integers(0, 100, 3000)
    rows = {
        "who": [f"p{number // 2}" for number in range(3000)],
        "seen": ["01.02.2020" if number % 2 else "2021-03-01" for number in range(3000)],
        "age": [-999 if number % 20 == 0 else value for number, value in enumerate(age)],
        "sex": rng.choice(["f", "F", "m", "n.d.", "None"], 3000),
        "born": rng.choice(["01.02.1960", "1990-01-01"], 3000),
        # An earlier row says the opposite.
        "died": np.where((age > 50) ^ (np.arange(3000) % 2 == 1), "yes", "no"),
    }
    # The earlier row of a person is the first in the file.
    pd.DataFrame(rows).iloc[::-1].to_csv(folder / "t.csv", index=False)
    (folder / "s.yaml").write_text(SCHEMA)
    release_into(folder, folder / "t.csv", folder / "s.yaml", epsilon=5)
    return folder


def test_the_card_states_the_rules(messy):
    card = json.loads((messy / "model/card.json").read_text())
    assert "Each person in the table, with all their rows, of which the latest 1 by seen count" in card["protected"]
    rules = ("-999, n.d. count as missing: age, sex, born", "dates are read as %d.%m.%Y, else iso: born",
             "capital letters count as small ones: sex")  # fmt: skip
    assert all(rule in card["public"] for rule in rules)
    assert all(rule in card_text(card) for rule in rules)
    assert run("verify", messy / "model")[0] == 0
    _, text, _ = run("dossier", messy / "model")
    assert "of each person's rows in the file, the latest 1 by seen count" in text


def test_a_person_is_not_replaced(messy, tmp_path):
    command = ("release", "--data", messy / "t.csv", "--schema", messy / "s.yaml", "--out", tmp_path / "m",
               "--epsilon", 1, "--neighbours", "replace_one", "--ledger", tmp_path / "ledger")  # fmt: skip
    code, _, err = run(*command)
    assert code == 1
    assert err.startswith("error: --neighbours replace_one: persons are added and removed")
    assert list(tmp_path.iterdir()) == []


def test_new_rows_are_read_by_the_rules(messy, tmp_path):
    model = privsvm.load(messy / "model")
    clean = pd.DataFrame({
        "age": ["", "20", "90", ""], "sex": ["", "f", "none", "m"], "born": ["1960-02-01", "", "1990-01-01", ""],
    })  # fmt: skip
    written = pd.DataFrame({
        "age": ["-999", "20", "90", "n.d."], "sex": ["n.d.", "F", "NONE", "M"],
        "born": ["01.02.1960", "n.d.", "01.01.1990", "-999"],
    })  # fmt: skip
    # The latest rows taught it.
    assert model.predict(clean)[1:3].tolist() == ["no", "yes"]
    assert model.scores(clean).tolist() == model.scores(written).tolist()
    assert ServedModel(model).predict(written).tolist() == model.predict(clean).tolist()
    written.to_csv(tmp_path / "new.csv", index=False)
    code, _, said = run("predict", messy / "model", tmp_path / "new.csv")
    assert (code, "cannot be read" in said) == (0, False)
    # `None` of a CSV would be a missing cell to pandas.
    with pytest.raises(Exception, match="which a reader of CSV makes of category 'None'; send JSON"):
        ServedModel(model).predict(written.assign(sex=["f", None, "m", "m"]))
