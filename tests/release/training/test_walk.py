"""The walk of a new user, with a table as a hospital's spreadsheet writes it: nothing unstated may be guessed."""

import csv
import importlib.util
import os
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import balanced_accuracy_score, roc_auc_score
from tests.release.conftest import refusal, release_into, run

from privsvm.errors import PrivSVMError
from privsvm.tables.labels import normalise_label
from privsvm.tables.schema import parse_schema, read_schema
from privsvm.tables.tables import bound_contribution, delimiter_of, units_table

HEADER = ["Fall-Nr", "Patient", "Aufnahme", "Größe (cm)", "CRP mg/l", "Station", "Raucher", "Befund", "Verlauf"]
STATIONS = ["Innere Medizin", "Chirurgie – Süd", "Önkologie; Tag"]
SCHEMA = Path(__file__).with_name("koeln.yaml").read_text(encoding="utf-8")


def spreadsheet(path, persons=40):
    """A table with a byte order mark, semicolons, decimal commas, quoted cells; persons have 1 to 50 rows."""
    rng = np.random.default_rng(3)
    rows = [HEADER]
    for person in range(persons):
        for _ in range(50 if person == 7 else int(rng.integers(1, 6))):
            size, crp = rng.normal(172, 9), abs(rng.normal(30, 20))
            gap = rng.choice(["NA", "", "?"]) if rng.random() < 0.2 else f"{crp:.2f}".replace(".", ",")
            note = ["ok", "Zeile eins; Zeile zwei", 'sagt "gut"; sonst nichts'][rng.integers(3)]
            label = "geheilt" if crp < 30 else "gebessert" if crp < 60 else "verstorben"
            day = f"{rng.integers(1, 29):02d}.{rng.integers(1, 13):02d}.{rng.integers(2010, 2025)}"
            measured = f"{size:.1f}".replace(".", ",")
            rows.append(
                [len(rows), 1000 + person, day, measured, gap, rng.choice(STATIONS), "JYN"[person % 3], note, label]
            )
    with open(path, "w", newline="", encoding="utf-8-sig") as handle:
        csv.writer(handle, delimiter=";", lineterminator="\r\n").writerows(rows)
    return rows


@pytest.fixture
def koeln(tmp_path):
    folder = tmp_path / "Köln mit Leerzeichen"
    folder.mkdir()
    spreadsheet(folder / "Patienten Köln.csv")
    (folder / "s.yaml").write_text(SCHEMA)
    return folder


def test_a_draft_finds_the_delimiter_and_names_an_account_that_a_release_takes(koeln):
    table = koeln / "Patienten Köln.csv"
    code, out, _ = run("schema", table, "--label", "Verlauf", "--person", "Patient")
    assert code == 0
    assert "name: Patienten-Koln " in out
    assert 'delimiter: ";"\n# decimal: ","' in out
    assert [line for line in out.splitlines() if "decide" in line and line.startswith("  ")] == [
        f'  "{name}": decide' for name in HEADER if name not in ("Verlauf", "Patient")
    ]
    for option in ("--label", "--person"):
        code, out, err = run("schema", table, option, "Pazient")
        assert (code, out) == (1, "")
        assert f"no column 'Pazient' for {option}; did you mean 'Patient'?" in err
    # A look reads commas, booleans and marks of missing cells.
    code, out, _ = run("schema", table, "--label", "Verlauf", "--look")
    assert code == 0
    assert '\ndecimal: ","' in out
    assert '"CRP mg/l": {bounds: [' in out
    assert '"Größe (cm)": {bounds: [' in out
    assert '"Aufnahme": {date: "%d.%m.%Y"' in out


def test_rows_are_read_as_they_are_meant(koeln):
    schema = read_schema(koeln / "s.yaml")
    X, y = units_table(koeln / "Patienten Köln.csv", schema)[:2]
    rows = spreadsheet(koeln / "again.csv")[1:]
    counted = [row for person in range(40) for row in [row for row in rows if row[1] == 1000 + person][:3]]
    for row, (*_, size, crp, station, _, _, _) in zip(X, counted, strict=True):
        assert row[1] == pytest.approx((float(size.replace(",", ".")) - 160) / 60)
        assert row[2] == pytest.approx(((5 if crp in ("NA", "", "?") else float(crp.replace(",", "."))) - 150) / 150)
        assert row[3:7].tolist() == [float(station == name) for name in (*STATIONS, "andere")]
    assert [schema.class_order[code] for code in y] == [row[8] for row in counted]


def test_what_cannot_be_read_is_shown_by_inspect_with_its_remedy(koeln):
    (koeln / "s.yaml").write_text(SCHEMA.replace('decimal: ","\n', ""))
    code, out, _ = run("inspect", koeln / "Patienten Köln.csv", "--schema", koeln / "s.yaml")
    assert code == 0
    findings = {line.split(":")[0]: line for line in out.splitlines()[1:]}
    assert 'set `decimal: ","`' in findings["Größe (cm)"]
    assert "values cannot be read, such as 'J'" in findings["Raucher"]
    assert "rows beyond the first 3" in findings["Patient"]
    assert run("inspect", koeln / "Patienten Köln.csv")[0] == 0


def test_three_commands_and_what_they_say(koeln):
    table = koeln / "Patienten Köln.csv"
    release_into(koeln, table, koeln / "s.yaml", out="m")
    code, out, _ = run("card", koeln / "m")
    assert code == 0
    assert "Each person in the table, with all their rows, of which the first 3 count." in " ".join(out.split())
    # Readable text, without Python's brackets.
    assert not [line for line in out.splitlines() if "{" in line or "['" in line]
    assert "class_weight: balanced" in out
    # Columns in another order, more of them, other delimiters than the schema's are a message.
    code, out, _ = run("predict", koeln / "m", table, "--keep", "Befund", "--keep", "Patient")
    assert code == 0
    rows = list(csv.DictReader(out.splitlines(keepends=True)))
    assert [row["Befund"] for row in rows] == [row[7] for row in spreadsheet(koeln / "again.csv")[1:]]
    header = "Aufnahme,Größe (cm),CRP mg/l,Station,Raucher\n"
    for content, message in (
        (header.encode(), "one column by the delimiter ';', and several by a comma"),
        (header.replace(",", ";").encode("latin-1"), "line 1 is not UTF-8 text; fix it, or save the table as CSV in"),
    ):
        (koeln / "other.csv").write_bytes(content)
        assert message in refusal("predict", koeln / "m", koeln / "other.csv")


def test_the_delimiter_is_read_off_the_header_alone(tmp_path):
    for name, text, wanted in [
        ("comma", 'a,"b;c;d;e",f\n1;2;3;4;5;6;7\n', ","),
        ("tab", "a\tb\n1,2,3,4\n", "\t"),
        ("bar", "a|b|c\n", "|"),
        ("one", "a\n1;2;3\n", ","),
    ]:
        (tmp_path / name).write_text(text)
        assert delimiter_of(tmp_path / name) == wanted
    with pytest.raises(PrivSVMError, match="file not found"):
        delimiter_of(tmp_path / "none")


def test_two_persons_whose_identifiers_are_one_number_stay_two(tmp_path):
    apart = ["7", "007", "+7", "7e0", "1e3", "1000", "12e1", "120", "٧", "-7", "0x7", "7.50"]
    assert len(set(map(normalise_label, apart))) == len(apart)
    schema = parse_schema(
        {"name": "n", "label": "y", "classes": [0, 1], "prescaled": False, "person": "who", "rows_per_person": 2}
        | {"columns": {"a": {"bounds": [0, 100], "fill": 0}}}
    )
    lines = [f"{who},{row_index},{row_index % 2}" for row_index, who in enumerate(apart * 3)]
    (tmp_path / "all.csv").write_text("\n".join(["who,a,y", *lines]))
    assert np.bincount(units_table(tmp_path / "all.csv", schema)[2]).tolist() == [2] * len(apart)


@pytest.mark.parametrize("seed", range(20))
def test_which_rows_count_depends_on_their_own_person_alone(seed):
    rng = np.random.default_rng(seed)
    most = int(rng.integers(1, 6))
    persons = [str(who) for who in range(12) for _ in range(int(rng.integers(1, 51)))]
    rng.shuffle(persons)
    kept = bound_contribution(persons, most, Counter())
    for who in set(persons):
        mine = np.flatnonzero(np.array(persons) == who)
        # The first of their own, wherever they stand among others.
        assert kept[mine].tolist() == [order < most for order in range(len(mine))]
    blocks = Counter()
    cuts = sorted(rng.integers(0, len(persons), size=3))
    block_choices = [bound_contribution(block.tolist(), most, blocks) for block in np.split(np.array(persons), cuts)]
    assert np.concatenate(block_choices).tolist() == kept.tolist()


@pytest.mark.parametrize(
    ("rows", "features", "positive"),
    [(60, 300, 0.3), (2000, 5, 0.005), (60, 3, 0.0)],
    ids=["few rows of many columns", "a rare class", "a class that does not occur"],
)
def test_tables_of_odd_shapes_are_released(tmp_path, rows, features, positive):
    rng = np.random.default_rng(1)
    names = [f"x {column}" for column in range(features)]
    X = rng.uniform(0, 1, size=(rows, features)).round(3)
    y = rng.random(rows) < positive
    with open(tmp_path / "t.csv", "w", newline="") as handle:
        csv.writer(handle).writerows([[*names, "y"], *([*x, "NY"[int(c)]] for x, c in zip(X.tolist(), y, strict=True))])
    columns = "".join(f"  {name}: {{bounds: [0, 1], fill: 0}}\n" for name in names)
    (tmp_path / "s.yaml").write_text(
        f'version: 1\nname: odd\nlabel: y\nclasses: ["N", "Y"]\nprescaled: false\ncolumns:\n{columns}'
    )
    release_into(tmp_path, tmp_path / "t.csv", tmp_path / "s.yaml", out="m")
    code, out, _ = run("predict", tmp_path / "m", tmp_path / "t.csv")
    assert (code, out.count("\n")) == (0, rows + 1)
    assert run("verify", tmp_path / "m", "--ledger", tmp_path / "ledger.jsonl")[0] == 0


ACTG175 = Path(__file__).with_name("actg175.yaml").read_text(encoding="utf-8")
CLEVELAND = Path(__file__).with_name("cleveland.yaml").read_text(encoding="utf-8")


def of_lifelines(name: str) -> Path:
    spec = importlib.util.find_spec("lifelines")
    if spec is None or spec.origin is None:
        pytest.skip("the package lifelines, which ships the table, is not installed")
    return Path(spec.origin).parent / "datasets" / f"{name}.csv"


def cleveland() -> Path:
    path = Path(os.environ.get("PRIVSVM_MIRROR", "")) / "raw/cleveland_uci/processed.cleveland.data"
    if not path.is_file():
        pytest.skip("no mirror with cleveland_uci: set PRIVSVM_MIRROR")
    return path


@pytest.mark.parametrize(
    ("schema", "path_of"),
    [(ACTG175, lambda: of_lifelines("ACTG175")), (CLEVELAND, cleveland)],
    ids=["ACTG175", "five classes"],
)
def test_three_commands(schema, path_of, tmp_path, record_property, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table = pd.read_csv(path_of(), dtype=str, keep_default_na=False)
    # Numbers of rows, in a column without a name.
    table = table.loc[:, ~table.columns.str.startswith("Unnamed")]
    held_out = np.random.default_rng(0).permutation(len(table)) < len(table) // 5
    table[~held_out].to_csv("train.csv", index=False)
    table[held_out].to_csv("test.csv", index=False)
    Path("schema.yaml").write_text(schema)

    outputs = [
        run("inspect", "train.csv", "--schema", "schema.yaml", "--ledger", "l"),
        run("release", "--data", "train.csv", "--schema", "schema.yaml", "--epsilon", 1, "--out", "m", "--ledger", "l"),
        run("predict", "m", "test.csv", "--out", "predicted.csv"),
    ]
    assert [code for code, *_ in outputs] == [0, 0, 0], outputs
    # Cleveland writes ? for missing values.
    assert [
        line for line in outputs[0][1].splitlines() if "none of the categories" in line and "thal" not in line
    ] == []
    assert "released, epsilon 1 per row, delta 1e-05, under add_remove (epsilon 2." in outputs[1][1]

    predicted = pd.read_csv("predicted.csv", dtype={"predicted": str})
    truth = table.loc[held_out, schema.split("label: ")[1].split()[0]].to_numpy()
    assert len(predicted) == len(truth)
    names = sorted(set(truth))
    assert set(predicted["predicted"]) <= set(names)
    balanced = balanced_accuracy_score(truth, predicted["predicted"])
    shares = predicted[[f"probability_{name}" for name in names]].to_numpy()
    np.testing.assert_allclose(shares.sum(axis=1), 1.0, atol=1e-5)
    ones = range(1 if len(names) == 2 else 0, len(names))
    auc = float(np.mean([roc_auc_score(truth == names[one], shares[:, one]) for one in ones]))
    record_property("auc", auc)
    record_property("balanced_accuracy", balanced)
    print(f"{len(table)} rows, epsilon 1 per row: AUC {auc:.2f}, balanced accuracy {balanced:.2f} on held-out rows")
    assert 0.0 <= auc <= 1.0
    if "actg175" in schema:
        # In 200 seeded releases, the logits of AUC are 1.06 on average with a deviation of .13; AUC is .84 without
        # privacy. The limit is 8 deviations away.
        assert auc > 0.5
