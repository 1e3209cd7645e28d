"""Usual mistakes: each gives one line that names the remedy, or, where only the rows decide, an answer."""

import json
import shutil

import numpy as np
import pandas as pd
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed448, rsa, x25519
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.lines import RECORDS
from tests.methods.test_contract import SOUND
from tests.release.conftest import refusal, run

import privsvm
from privsvm.errors import PrivSVMError
from privsvm.registry import estimator_class, implementations

SCHEMA = """\
name: toy
label: y
classes: ["0", "1"]
prescaled: false
columns:
  a: {bounds: [0, 10], fill: middle}
  b: {categories: [u, v]}
"""
ROWS = ["a,b,y", *(f"{index % 11},{'uv'[index % 2]},{index % 2}" for index in range(40))]
X, Y = np.array([[-1.0, 0.5], [1.0, 0.2]] * 20), np.array([0, 1] * 20)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "s.yaml").write_text(SCHEMA)
    (tmp_path / "t.csv").write_text("\n".join(ROWS))
    return tmp_path


def release_by_command(folder, *more, data="t.csv", schema="s.yaml", out="m"):
    paths = {"--data": folder / data, "--schema": folder / schema, "--out": folder / out}
    settings = [argument for pair in paths.items() for argument in pair]
    return run("release", *settings, "--ledger", folder / "ledger.jsonl", "--epsilon", 1, "--without-inspection", *more)


def model(**settings):
    return privsvm.PrivateSVMClassifier(**{"classes": [0, 1]} | settings)


PYTHON = {
    "classes of another type": (lambda: model(classes=["0", "1"]).fit(X, Y), "which is not in classes="),
    "classes not given": (lambda: model(classes=None).fit(X, Y), "give the public label set"),
    "delta 0 where no pure mechanism exists": (lambda: model(delta=0.0).fit(X, Y), "delta=0.0: must"),
    "text columns": (lambda: model().fit([["a", "b"]] * 40, Y), "declare the columns with PublicSchema"),
    "missing values": (lambda: model().fit(np.where(X > 0.9, np.nan, X), Y), "fill missing values with public ones"),
    "a label of None": (lambda: model().fit(X, [None, *Y[1:].tolist()]), "cannot be compared with the classes"),
    "a label of pandas.NA": (lambda: model().fit(X, [pd.NA, *Y[1:].tolist()]), "fill missing values with public ones"),
}


@pytest.mark.parametrize("mistake", PYTHON)
def test_in_python(mistake):
    do, message = PYTHON[mistake]
    with pytest.raises(ValueError, match=message):
        do()


@pytest.mark.parametrize(
    ("rows", "finding"),
    [
        (ROWS[:2], "1 rows: too few"),
        ([*ROWS[:1], *(row for row in ROWS[1:] if row.endswith("0"))], "only class '0' occurs"),
        ([*ROWS, "99,u,0"], "a: 1 values lie outside the bounds, such as '99'; each"),
        ([*ROWS, "-999,u,0"], "a: 1 values lie outside the bounds, such as '-999'; each"),
        ([*ROWS, "5,w,0"], "b: 1 values are none of the categories"),
        ([*ROWS, "5,u,2"], "row of the first class: remove these rows from the file, or declare"),
        ([*ROWS, ",u,0"], "a: 1 values are missing"),
        (
            [*ROWS[:5], '1,"u,0', *ROWS[5:]],
            "1 of 41 rows are malformed, the first: line 6 has a quotation mark without its pair",
        ),
        (
            [*ROWS, "1,u,0,9", "\r", "1,u\x00,0"],
            "3 of 43 rows are malformed, the first: line 42 has 4 fields and the first line 3",
        ),
        ([*ROWS, "5,u,0"], "a: 41 of 41 values could be read\nb: 41 of 41 values could be read"),
    ],
)
def test_where_only_the_rows_decide_release_answers_and_inspect_speaks(folder, rows, finding):
    (folder / "odd.csv").write_text("\n".join(rows))
    code, out, err = release_by_command(folder, data="odd.csv")
    usual = release_by_command(folder, "--yes", data="t.csv", out="m2")
    assert code == usual[0] == 0
    summaries = [text.splitlines()[0].partition(": ")[2] for text in (out, usual[1])]
    assert summaries[0] == summaries[1]
    assert finding not in out + err
    code, out, _ = run("inspect", folder / "odd.csv", "--schema", folder / "s.yaml")
    assert code == 0
    assert out.startswith("PRIVATE")
    assert finding in out


@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(RECORDS, st.integers(1, len(ROWS) - 1), st.sampled_from([(), ("--hold-back", 0.25)]))
@example(b'1,"u,0', 3, ("--hold-back", 0.25))
def test_no_record_decides_how_a_release_ends(folder, record, index, more):
    lines = [row.encode() for row in ROWS]
    lines[index] = record
    (folder / "odd.csv").write_bytes(b"".join(line + b"\n" for line in lines))
    shutil.rmtree(folder / "m", ignore_errors=True)
    (folder / "ledger.jsonl").unlink(missing_ok=True)
    code, out, err = release_by_command(folder, *more, data="odd.csv")
    assert code == 0, err
    assert f"{folder / 'm'}: released, epsilon 1 per row, delta 1e-05, under add_remove (epsilon 2." in out
    assert [line.partition(" ")[0] for line in err.splitlines()][:1] == ["training;"]


def test_rows_scaled_by_themselves_are_found_by_inspect(folder):
    scaled = np.linspace(-1, 1, 40)
    standard = (np.arange(40) - 19.5) / np.arange(40).std()
    (folder / "scaled.csv").write_text("\n".join(["a,b", *(f"{a},{b}" for a, b in zip(scaled, standard, strict=True))]))
    code, out, _ = run("inspect", folder / "scaled.csv")
    assert code == 0
    assert "a: from -1 to 1 exactly: perhaps scaled by these rows" in out
    assert "b: mean 0 and deviation 1 exactly: standardised by these rows" in out
    (folder / "undeclared.yaml").write_text(SCHEMA.replace("prescaled: false\n", ""))
    code, _, err = release_by_command(folder, schema="undeclared.yaml")
    assert code == 1
    assert "`prescaled: false` says that it was not" in err


def test_on_the_command_line(folder, hospital):
    mistakes = {
        "an existing folder": (("--out", folder), 1, "exists already"),
        "no such table": (("--data", folder / "none.csv"), 1, "file not found"),
        "an epsilon that is none": (("--epsilon", "0"), 2, "must be a positive finite number"),
        "an epsilon below all measure": (("--epsilon", "1e-9"), 1, "epsilon=1e-09: must be at least 1e-06"),
        "an epsilon that proves nothing": (
            ("--epsilon", "1000"),
            1,
            "above 50 nothing is called proved; use a smaller",
        ),
        "an epsilon that is text": (("--epsilon", "abc"), 2, "abc: must be a positive finite number"),
        "a delta that allows a row to be published": (("--delta", "0.3"), 1, "a release accepts at most 0.0001"),
        "a budget that is too small": (("--budget", "0.5"), 3, "nothing was spent"),
        "a key that is none": (("--sign", folder / "t.csv"), 1, "no private key without password"),
    }
    for mistake, (more, wanted, message) in mistakes.items():
        code, _, err = release_by_command(folder, *more)
        assert code == wanted, mistake
        assert message in err, mistake
        assert "Traceback" not in err
    assert not (folder / "ledger.jsonl").exists()
    assert release_by_command(folder)[0] == 0
    code, _, err = release_by_command(folder, out="again")
    assert (code, "Run with --yes to spend more" in err) == (3, True)


def test_tables_of_other_columns(folder, hospital):
    loaded = privsvm.load(hospital / "model")
    with pytest.raises(PrivSVMError, match="2 columns, and the schema declares 6"):
        loaded.predict(np.zeros((3, 2)))
    (folder / "narrow.csv").write_text("age,sex\n5,f\n")
    assert "no column 'visit', 'ward', 'pressure', 'smoker'" in refusal(
        "predict", hospital / "model", folder / "narrow.csv"
    )
    asked = "--keep", "nope"
    assert "correct --keep or the file" in run("predict", hospital / "model", hospital / "new.csv", *asked)[2]


def test_predictions_do_not_overwrite_their_table_and_leave_no_half_of_a_file(hospital, tmp_path, monkeypatch):
    table = tmp_path / "t.csv"
    table.write_text("".join((hospital / "new.csv").read_text().splitlines(keepends=True)[:9]))
    before = table.read_bytes()
    assert "is the table itself; give --out another name" in refusal(
        "predict", hospital / "model", table, "--out", table
    )
    assert table.read_bytes() == before
    shutil.copytree(hospital / "model", tmp_path / "m")
    for name in ("model.npz", "../m/predicted.csv"):
        assert "lies in the folder of the model; give --out another" in refusal(
            "predict", tmp_path / "m", table, "--out", tmp_path / "m" / name
        )
    assert run("verify", tmp_path / "m")[0] == 0
    shutil.rmtree(tmp_path / "m")
    # A table without rows has predictions without rows.
    (tmp_path / "none.csv").write_text(table.read_text().splitlines()[0] + "\n")
    assert run("predict", hospital / "model", tmp_path / "none.csv")[1] == "predicted,probability_no,probability_yes\n"
    # Ctrl-C after the first block: the old file stays unchanged.
    from privsvm.release.predicting.model import ReleasedModel

    blocks = ReleasedModel.predict_table

    def interrupt(self, *arguments):
        yield from blocks(self, *arguments)
        raise KeyboardInterrupt

    monkeypatch.setattr(ReleasedModel, "predict_table", interrupt)
    (tmp_path / "out.csv").write_text("of yesterday")
    code, _, err = run("predict", hospital / "model", table, "--out", tmp_path / "out.csv")
    assert (code, err.count("\n"), "privsvm ledger" in err) == (130, 1, True)
    assert (tmp_path / "out.csv").read_text() == "of yesterday"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["none.csv", "out.csv", "t.csv"]


def test_a_table_is_inspected_before_it_is_released(folder, monkeypatch):
    table = (folder / "t.csv", "--schema", folder / "s.yaml")
    release = ("release", "--data", *table, "--epsilon", 1, "--ledger", folder / "l" / "ledger.jsonl")
    monkeypatch.setenv("PRIVSVM_LEDGER", str(folder / "home" / "ledger.jsonl"))
    monkeypatch.setattr("privsvm.release.training.releasing.units_table", lambda *_: pytest.fail("a row was read"))
    code, _, err = run(*release, "--out", folder / "m")
    assert (code, err.count("\n")) == (3, 2)
    assert "was not inspected with this schema" in err
    assert "--without-inspection" in err
    monkeypatch.undo()
    monkeypatch.setenv("PRIVSVM_LEDGER", str(folder / "home" / "ledger.jsonl"))
    # Without a schema, and with another one, the look is another one.
    (folder / "other.yaml").write_text(SCHEMA.replace("fill: middle", "fill: 3"))
    for other in ((folder / "t.csv",), (folder / "t.csv", "--schema", folder / "other.yaml")):
        assert run("inspect", *other)[0] == 0
        assert run(*release, "--out", folder / "m")[0] == 3
    assert run("inspect", *table)[0] == 0
    # Rows that change ask for no second look: one of them would decide.
    (folder / "t.csv").write_text("\n".join([ROWS[0], '1,"', *ROWS[2:]]))
    assert run(*release, "--out", folder / "m")[0] == 0
    (folder / "t.csv").write_text("\n".join(["a,b,y,more", *ROWS[1:]]))
    (folder / "s.yaml").write_text(SCHEMA + "  more: ignore\n")
    assert run(*release, "--out", folder / "n")[0] == 3
    assert run(*release, "--out", folder / "n", "--without-inspection", "--yes")[0] == 0


def test_the_record_of_an_inspection_is_private_and_knows_no_row(folder):
    command = ("inspect", folder / "t.csv", "--schema", folder / "s.yaml", "--ledger", folder / "l" / "ledger.jsonl")
    assert run(*command)[0] == 0
    (record,) = (folder / "l" / "inspections").glob("*.json")
    before = record.read_bytes()
    (folder / "t.csv").write_text("\n".join([ROWS[0], "9,v,1"]))
    assert run(*command)[0] == 0
    assert [path.read_bytes() for path in (folder / "l" / "inspections").glob("*.json")] == [before]
    assert set(json.loads(before)) == {"version", "table", "columns", "schema"}
    assert record.stat().st_mode & 0o777 == 0o600
    assert record.parent.stat().st_mode & 0o777 == 0o700
    assert (record.parent / ".gitignore").read_text() == "*\n"
    # A damaged record is none.
    record.write_text("{")
    release = ("release", "--data", *command[1:], "--epsilon", 1, "--out", folder / "m")
    assert run(*release)[0] == 3


def test_predict_says_how_many_rows_are_malformed(hospital, tmp_path):
    lines = (hospital / "new.csv").read_text().splitlines()[:10]
    (tmp_path / "t.csv").write_text("\n".join(lines))
    code, output, err = run("predict", hospital / "model", tmp_path / "t.csv", "--keep", "patient")
    assert (code, err.count("\n"), "not calibrated" in err) == (0, 1, True)
    lines[3], lines[6] = lines[3].replace(",", ',"', 1), "\t"
    (tmp_path / "t.csv").write_text("\n".join(lines))
    code, out, err = run("predict", hospital / "model", tmp_path / "t.csv", "--keep", "patient")
    assert code == 0
    assert err.startswith(
        f"warning: {tmp_path / 't.csv'}: 2 of 9 rows are malformed, the first: line 4 has a quotation mark without"
    )
    kept, changed = output.splitlines(), out.splitlines()
    assert [line for index, line in enumerate(kept) if index not in (3, 6)] == [
        line for index, line in enumerate(changed) if index not in (3, 6)
    ]
    assert changed[3] == changed[6]
    assert changed[3].startswith(",")


@pytest.mark.parametrize("kind", ["x25519", "ed448", "ec", "rsa"])
def test_keys_of_another_kind(folder, hospital, kind):
    make = {"x25519": x25519.X25519PrivateKey.generate, "ed448": ed448.Ed448PrivateKey.generate,
            "ec": lambda: ec.generate_private_key(ec.SECP256R1()),
            "rsa": lambda: rsa.generate_private_key(65537, 2048)}[kind]  # fmt: skip
    pem, plain = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    key = make()
    (folder / "key.pem").write_bytes(key.private_bytes(pem, plain, serialization.NoEncryption()))
    (folder / "key.pub").write_bytes(
        key.public_key().public_bytes(pem, serialization.PublicFormat.SubjectPublicKeyInfo)
    )
    code, _, err = release_by_command(folder, "--sign", folder / "key.pem")
    assert (code, "a key of another kind" in err, "Traceback" in err) == (1, True, False), err
    code, _, err = run("verify", hospital / "model", "--key", folder / "key.pub")
    assert (code, "a key of another kind" in err, "Traceback" in err) == (1, True, False), err


def test_methods_are_listed_with_what_their_epsilon_is_worth():
    code, out, _ = run("methods")
    lines = {line.split()[0]: line.split()[1] for line in out.splitlines()[1:]}
    assert code == 0
    assert list(lines) == implementations()
    sound = {estimator_class(name) for name, status in lines.items() if status == "proved"}
    assert sound == set(SOUND)
    assert {name for name, status in lines.items() if status == "claimed"} == {
        "dpsvmdvp", "dpwss", "opera_as_published", "pmsvm_wp_as_published",
    }  # fmt: skip
    assert all(len(line) < 160 for line in out.splitlines())
