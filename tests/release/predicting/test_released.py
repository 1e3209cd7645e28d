"""From a table to a released model: its accuracy, its files, and the detection of changes."""

import csv
import io
import json
import math
import re
import shutil
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.metrics import roc_auc_score
from tests.processes import run_python
from tests.refusals import refusal as refusal_of
from tests.release.conftest import refusal, run
from tests.release.hospital import write_table
from tests.release.made_up import change_record, read_folder, write_content, write_folder

import privsvm
from privsvm.base.model_file import MODEL_VERSION, content_digest
from privsvm.digests import canonical_json, sha256_of_file
from privsvm.errors import PrivSVMError
from privsvm.privacy.accountants import group_account
from privsvm.privacy.risk import trade_off
from privsvm.release.documents.card import CARD_FILES, CARD_VERSION
from privsvm.release.documents.verifying import verify
from privsvm.release.training.recipes import Terms, train
from privsvm.tables.schema import read_schema
from privsvm.tables.tables import Encoder, read_chunks, units_table


def table(path):
    with open(path, newline="") as handle:
        return list(csv.DictReader(handle))


def test_a_released_model_predicts_rows_that_it_has_not_seen(hospital):
    code, out, _ = run("predict", hospital / "model", hospital / "new.csv", "--keep", "patient")
    assert code == 0
    predicted, truth = list(csv.DictReader(out.splitlines())), table(hospital / "new.csv")
    assert [row["patient"] for row in predicted] == [row["patient"] for row in truth]
    died = np.array([row["died"] == "yes" for row in truth])
    assert 0.02 < died.mean() < 0.04
    shares = np.array([[float(row["probability_no"]), float(row["probability_yes"])] for row in predicted])
    np.testing.assert_allclose(shares.sum(axis=1), 1.0, atol=2e-6)


def test_a_training_with_seeded_noise_predicts_well(hospital):
    schema = read_schema(hospital / "schema.yaml")
    X, codes, units = units_table(hospital / "patients.csv", schema)
    trained = train(X, codes, schema, Terms(1.0), units=units, random_state=0)
    (columns,) = read_chunks(hospital / "new.csv", schema, rows=10**6)
    scores = trained.estimator.decision_function(Encoder(schema).features(columns))
    # Without privacy it is .98.
    assert roc_auc_score([row["died"] == "yes" for row in table(hospital / "new.csv")], scores) > 0.8


def test_python_reads_the_same_model(hospital):
    model = privsvm.load(hospital / "model")
    schema = read_schema(hospital / "schema.yaml")
    (columns,) = read_chunks(hospital / "new.csv", schema, rows=10**6)
    labels = model.predict(columns)
    assert set(labels) <= {"no", "yes"}
    np.testing.assert_array_equal(model.decision_function(columns) > 0, labels == "yes")
    assert model.guarantee_.status == "proved"
    assert model.guarantee_.randomness == "system"


def test_the_guarantee_speaks_of_persons(hospital):
    record = verify(hospital / "model")
    protection, guarantee = record.protection, record.restored
    assert (protection.unit, protection.rows, guarantee.neighbours) == ("person", 5, "add_remove")
    assert 0.9 < protection.epsilon <= 1.0 + 1e-9
    assert group_account(guarantee.event, 5, protection.delta, "add_remove").epsilon == protection.epsilon
    assert guarantee.epsilon_proved < 0.3
    code, out, _ = run("card", hospital / "model")
    assert code == 0
    assert "Each person in the table, with all their rows, of which the first 5 count." in out
    assert f"Epsilon {protection.epsilon:.4g} per person" in (hospital / "model" / "card.html").read_text()


def test_card_and_command_say_the_risk(hospital):
    record = verify(hospital / "model")
    guarantee = record.restored
    persons = [trade_off(guarantee.event, "add_remove", 5 * count, guarantee.delta) for count in (1, 2, 5)]
    words = (hospital / "model" / "card.json").read_text()
    assert f"it is right at most {math.ceil(100 * persons[0].guess(0.5))} times in 100." in words
    (named,) = re.findall(r"rightly names at most ([\d.]+) of 100 people whose data were used", words)
    assert float(named) / 1.01 < 100 * persons[0].true_positive_rate(0.01) <= float(named)
    code, out, _ = run(
        "risk", hospital / "model", "--prior", "0.5,0.3", "--false-positive-rate", ".02", "--group", "2,5"
    )
    assert code == 0
    expected = [
        persons[0].guess(0.5), persons[0].guess(0.3), persons[0].true_positive_rate(0.02), persons[1].guess(0.5),
        persons[2].guess(0.5),
    ]  # fmt: skip
    shown = [float(number) for number in re.findall(r"at most ([\d.]+) (?:times|% of)", out)]
    assert shown == pytest.approx([100 * number for number in expected], rel=0.01)
    # Rounded up.
    assert all(number >= 100 * exact for number, exact in zip(shown, expected, strict=True))
    assert record.risk(2).guess == pytest.approx(expected[3], rel=1e-12)
    assert run("risk", hospital / "model", "--prior", "1.5")[0] == 2
    assert run("risk", hospital)[0] == 1


def test_the_folder_holds_no_row_and_no_seed(hospital):
    schema = read_schema(hospital / "schema.yaml")
    data = b"".join(path.read_bytes() for path in sorted((hospital / "model").iterdir()))
    with np.load(hospital / "model" / "model.npz") as stored:
        # The height of hat functions is public, and some private numbers are equal to it.
        numbers = np.concatenate([stored[name].ravel() for name in stored.files if not name.endswith("hat_weight")])
    X, _ = units_table(hospital / "patients.csv", schema)[:2]
    rows = table(hospital / "patients.csv")
    for row in rows:
        assert row["patient"].encode() not in data
    columns = X[:, [name in ("visit", "age", "pressure") for name in Encoder(schema).feature_names]]
    usable = (columns != 0) & (np.abs(columns) < 1)
    private = np.unique(columns[usable])
    assert not np.isin(numbers, private).any()
    # Among the model's 1,700 numbers and 5,300 private ones 0.1 are equal by chance when rounded to 24 bits: five are
    # with a probability near 1e-7, and all three of one row with one below that.
    rounded = numbers.astype(np.float32)
    assert np.isin(private.astype(np.float32), rounded).sum() < 5
    assert not np.isin(columns[usable.all(axis=1)].astype(np.float32), rounded).all(axis=1).any()
    for value in private[:: max(1, len(private) // 300)]:
        assert np.float64(value).tobytes() not in data
    words = json.loads((hospital / "model" / "model.json").read_text())
    assert not {"random_state", "seed"} & {*words, *words["recipe"]["parameters"]}
    assert words["recipe"]["parameters"]["bounds"] == [-1.0, 1.0]
    positives = sum(row["died"] == "yes" for row in rows)
    assert not re.search(rf"\b{positives}\b", (hospital / "model" / "card.html").read_text())
    assert "objective" not in words


def test_a_loaded_model_needs_numpy_alone(hospital):
    program = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("sklearn", "scipy", "numba", "pandas", "pyarrow", "dp_accounting", "fcntl"):
            raise ImportError(name)
sys.meta_path.insert(0, Absent())
import privsvm
model = privsvm.load(sys.argv[1])
row = {"visit": ["01.02.2020"], "sex": ["f"], "ward": ["x"], "age": [50], "pressure": [None], "smoker": [True]}
print(model.predict(row)[0], model.guarantee_.status)
"""
    assert run_python("-c", program, hospital / "model").split()[1] == "proved"


def test_every_damage_is_found(hospital_copy, hospital):
    rng = np.random.default_rng(0)
    names = sorted(path.name for path in (hospital_copy / "model").iterdir())
    assert names == ["card.html", "card.json", "model.json", "model.npz"]
    for number in range(100):
        path = hospital_copy / "model" / names[number % 4]
        data = bytearray(path.read_bytes())
        byte_index = int(rng.integers(len(data)))
        if number % 8 < 4:
            data[byte_index] ^= 1 << int(rng.integers(8))
        else:
            del data[byte_index:]
        path.write_bytes(data)
        refusal_of(verify, hospital_copy / "model")
        if path.name == "model.npz":
            refusal_of(privsvm.load, hospital_copy / "model")
        shutil.copy(hospital / "model" / path.name, path)
    verify(hospital_copy / "model")


def forge(folder, **changes):
    """Edit a record and its card, with all digests computed again."""
    record, card = read_folder(folder)
    for content in (record, record["protection"], card):
        content.update({name: value for name, value in changes.items() if name in content})
    write_folder(folder, record, card)


def test_a_forger_who_computes_digests_again_is_refused(hospital_copy, hospital):
    good = ("verify", hospital_copy / "model", "--key", hospital / "signer.pub")
    assert run(*good)[0] == 0
    assert "another key signed it" in refusal("verify", hospital_copy / "model", "--key", hospital / "other.pub")
    # Without a key this is another release's folder, whole in itself.
    forge(hospital_copy / "model", accuracy="as good as any", date="2020-01-01")
    assert run("verify", hospital_copy / "model")[0] == 0
    assert "the card was edited" in refusal(*good)
    forge(hospital_copy / "model", epsilon=0.1)
    assert "its event gives" in refusal("verify", hospital_copy / "model")


def edits_of(value):
    """Every value that differs from a JSON value in one place: changed, taken out, added."""
    if isinstance(value, dict):
        yield {**value, "added": 1}
        for name, item in value.items():
            yield {other: kept_value for other, kept_value in value.items() if other != name}
            yield {f"{other}_" if other == name else other: kept_value for other, kept_value in value.items()}
            for edited in edits_of(item):
                yield {**value, name: edited}
    elif isinstance(value, list):
        yield [*value, "added"]
        if value[::-1] != value:
            yield value[::-1]
        for index, item in enumerate(value):
            yield value[:index] + value[index + 1 :]
            for edited in edits_of(item):
                yield [*value[:index], edited, *value[index + 1 :]]
    elif isinstance(value, bool) or value is None:
        yield not value
    else:
        yield f"{value} " if isinstance(value, str) else value + 1
        yield None


def arrays_edited(arrays):
    """Every array of a model changed in one number, in its type or shape, taken out or renamed; and one more."""
    yield {**arrays, "added": np.zeros(2)}
    for name, array in arrays.items():
        others = {other: kept_array for other, kept_array in arrays.items() if other != name}
        yield others
        yield {**others, f"{name}_": array}
        yield {**arrays, name: array.astype(np.complex128)}
        yield {**arrays, name: array[None]}
        for index in {0, array.size - 1} if array.size else ():
            changed = array.copy()
            # The last bit of a number.
            changed.reshape(-1).view(np.uint8)[index * array.itemsize] ^= 1
            yield {**arrays, name: changed}


def test_every_edit_with_its_digests_computed_again_is_refused_by_the_key(hospital_copy, hospital):
    folder, key = hospital_copy / "model", hospital / "signer.pub"
    good = {path.name: path.read_bytes() for path in folder.iterdir()}
    record, card = read_folder(folder)
    edits = refused = 0

    def refuses():
        nonlocal edits, refused
        edits += 1
        try:
            verify(folder, key)
        except PrivSVMError as error:
            refused += "\n" not in str(error)
        for path in folder.iterdir():
            path.unlink()
        for name, data in good.items():
            (folder / name).write_bytes(data)

    for edited in edits_of(card):
        if "digest" in edited:
            edited["digest"] = content_digest(edited, "digest", "signature")
        (folder / "card.json").write_text(canonical_json(edited, indent=1) + "\n")
        # An edit of the digest itself is undone by computing it again.
        if edited != card:
            refuses()
    of_card = edits
    for edited in edits_of(record):
        write_folder(folder, dict(edited), dict(card))
        if (folder / "model.json").read_bytes() != good["model.json"]:
            refuses()
    of_record = edits - of_card
    with np.load(folder / "model.npz") as stored:
        arrays = {name: stored[name] for name in stored.files}
    for edited in arrays_edited(arrays):
        np.savez(folder / "model.npz", **edited)
        write_folder(folder, dict(record), dict(card))
        refuses()
    of_arrays = edits - of_card - of_record
    for name in good:
        (folder / name).unlink()
        refuses()
        (folder / name).rename(folder / f"{name}.old")
        refuses()
        for other in good:
            if other > name:
                (folder / name).write_bytes(good[other])
                (folder / other).write_bytes(good[name])
                refuses()
        (folder / f"{name}.copy").write_bytes(good[name])
        refuses()
    (folder / "card.html").write_bytes(good["card.html"].replace(b"Epsilon 1", b"Epsilon 0"))
    write_content(folder, "card.json", card | {"files": {name: sha256_of_file(folder / name) for name in CARD_FILES}})
    refuses()
    print(f"{edits} edits: {of_card} of the card, {of_record} of the record, {of_arrays} of arrays")
    assert refused == edits
    assert min(of_card, of_record) > 100
    assert of_arrays > 4 * len(arrays)
    verify(folder, key)


def lacking(content):
    """Give every content that lacks one key, or has a value of another type there."""
    for key, value in content.items():
        # `write_folder` computes these again.
        if key not in ("digest", "arrays"):
            yield {name: item for name, item in content.items() if name != key}
            yield content | {key: [1] if isinstance(value, (str, float, int)) else 1}


def test_cards_and_records_that_lack_something_are_one_line_each(hospital_copy, hospital, capsys):
    folder = hospital_copy / "model"
    record, card = read_folder(folder)
    for edited in lacking(card):
        write_content(folder, "card.json", edited)
        for command in ("verify", "card"):
            refusal(command, folder)
    events = record["guarantee"]["event"]
    for edited in [*lacking(record), record | {"guarantee": record["guarantee"] | {"event": events | {"kind": []}}}]:
        write_folder(folder, edited, dict(card))
        refusal("verify", folder)


def in_place(folder, arrays, **changes):
    """Write other arrays into a model, and change its record; return its folder."""
    np.savez(folder / "model.npz", **arrays)
    change_record(folder, **changes)
    return folder


@pytest.mark.parametrize(
    "name", ["coef", "intercept", "0.lower", "0.n_hats", "2.centre", "3.frequencies", "3.count", "3.beside"]
)
def test_arrays_of_other_sizes_and_types_are_no_model(hospital_copy, name):
    folder = hospital_copy / "model"
    with np.load(folder / "model.npz") as stored:
        arrays = {other: stored[other] for other in stored.files}
    array = arrays[name]
    odd = [array[None], array.astype(complex), array.astype(str), np.ones(())]
    # A model without random features has none of their frequencies.
    odd += [np.ones((*array.shape[:-1], 77))] * (name != "3.frequencies")
    odd += [array[..., :-1]] * (array.size > 0 and name not in ("3.frequencies", "0.lower"))
    odd += [-1 - array, array + 1000] * (name in ("3.count", "0.n_hats"))
    for changed in odd:
        assert "model file: array" in refusal_of(privsvm.load, in_place(folder, arrays | {name: changed}))


FOURIER = {"coef": (1, 1, 1, 5), "intercept": (1, 1, 1), "0.frequencies": (3, 1), "0.count": (1, 1), "0.beside": (1,)}
COLUMNS = {
    "coef": (1, 1, 1, 4), "intercept": (1, 1, 1), "0.lower": (3,), "0.upper": (3,), "0.indicators": (3,),
    "0.constant": (1, 1), "0.n_hats": (1, 1), "0.hat_weight": (1, 1),
}  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "n_classes", "shapes"),
    [
        # Compiled code reads a coefficient for every row, and a value for every pair of classes.
        ("kernel", 2, {"support_vectors": (50_000, 3), "pair_coef": (1, 1, 1, 1), "intercept": (1, 1, 1)}),
        ("kernel", 7, {"support_vectors": (2, 3), "pair_coef": (1, 1, 2, 1), "intercept": (1, 1, 1)}),
        ("kernel", 2, {"support_vectors": (2, 1), "pair_coef": (1, 1, 2, 1), "intercept": (1, 1, 1)}),
        ("one_vs_rest_kernel", 3, {"support_vectors": (2, 3), "pair_coef": (1, 1, 2, 1), "intercept": (1, 1, 1)}),
        ("one_vs_one_linear", 4, {"coef": (1, 1, 4, 3), "intercept": (1, 1, 4)}),
        ("fourier linear", 2, FOURIER | {"0.frequencies": (1, 1)}),
        ("fourier linear", 2, FOURIER | {"0.frequencies": (3, 0)}),
        ("fourier linear", 2, FOURIER | {"coef": (1, 1, 1, 3)}),
        # One hat function has no width.
        ("columns linear", 2, COLUMNS),
        ("linear", 3, {"coef": (1, 1, 2, 3), "intercept": (1, 1, 2)}),
        ("constant", 3, {"class_scores": (1, 1, 2)}),
    ],
)
def test_no_arrays_of_a_model_are_read_beside_their_ends(hospital_copy, kind, n_classes, shapes):
    arrays = {
        name: np.ones(shape, np.int64 if name[2:] in ("count", "n_hats") else float) for name, shape in shapes.items()
    }
    if "kernel" in kind:
        arrays["kernel_parameters"] = np.array([1.0, 1.0, 3.0, 0.0])
    classes = [str(number) for number in range(n_classes)]
    with pytest.raises(PrivSVMError, match=r"array|for the 3 features"):
        privsvm.load(in_place(hospital_copy / "model", arrays, kind=kind, classes=classes, n_features=3, table=None))


@pytest.mark.parametrize("parameters", [[7, 1, 3, 0], [-1, 1, 3, 0], [np.nan, 1, 3, 0], [2, 1, 1e300, 0], [1, 1, 3]])
def test_a_kernel_that_nobody_knows_is_no_model(hospital_copy, parameters):
    arrays = {"support_vectors": np.ones((2, 3)), "pair_coef": np.ones((1, 1, 2, 1)), "intercept": np.ones((1, 1, 1))}
    arrays["kernel_parameters"] = np.array(parameters, dtype=np.float64)
    with pytest.raises(PrivSVMError, match="kernel_parameters"):
        privsvm.load(
            in_place(hospital_copy / "model", arrays, kind="kernel", n_features=3, classes=["a", "b"], table=None)
        )


def test_predictions_run_nothing_in_a_spreadsheet(hospital, tmp_path):
    """A key is the same without the apostrophe, and `--raw` writes none."""
    header, row = (hospital / "new.csv").read_text().splitlines()[:2]
    keys = ["=1+1", "@x", "-5", "+4.5e3", "-a", "'=1", "P1", " +x"]
    table = tmp_path / "keys.csv"
    table.write_text("\n".join([header, *(f"{key},{row.split(',', 1)[1]}" for key in keys)]))
    code, out, err = run("predict", hospital / "model", table, "--keep", "patient")
    assert [line["patient"] for line in csv.DictReader(io.StringIO(out))] == [
        "'=1+1", "'@x", "-5", "+4.5e3", "'-a", "''=1", "P1", "' +x",
    ]  # fmt: skip
    assert (code, err.splitlines()[0][:14]) == (0, "note: 5 texts ")
    code, out, err = run("predict", hospital / "model", table, "--keep", "patient", "--raw")
    assert [line["patient"] for line in csv.DictReader(io.StringIO(out))] == keys
    assert "--raw" not in err


@pytest.mark.parametrize(
    ("command", "keep"),
    [
        *((command, keep) for command in ("predict", "export") for keep in (["age", "age"], ["predicted"])),
        ("predict", ["probability_yes"]), ("export", ["score_yes"]),
    ],
)  # fmt: skip
def test_no_two_columns_of_predictions_have_one_name(hospital, tmp_path, command, keep):
    more = [hospital / "new.csv"] if command == "predict" else ["--to", "sql"]
    kept = [word for name in keep for word in ("--keep", name)]
    assert f"two columns would have the name {keep[0]!r}" in refusal(
        command, hospital / "model", *more, *kept, "--out", tmp_path / "out"
    )
    assert not (tmp_path / "out").exists()


def test_terminals_obey_no_card_ledger_or_name(hospital_copy, tmp_path):
    folder = hospital_copy / "model"
    forge(folder, accuracy="\x1b[2J all is\x9b1m well")
    (tmp_path / "x.csv").write_text("\x1b[31mage,b\n1,2\n")
    answers = [run("card", folder), run("verify", tmp_path / "a\nb\x1b[0m"), run("inspect", tmp_path / "x.csv")]
    for _, out, err in answers:
        assert not {"\x1b", "\x07", "\x9b"} & set(out + err)
    assert [(code, err.count("\n")) for code, _, err in answers[:2]] == [(1, 1)] * 2


@pytest.mark.parametrize("name", ["model.json", "card.json"])
def test_files_of_another_version_are_refused_in_one_line(hospital_copy, name):
    path = hospital_copy / "model" / name
    known = {"model.json": MODEL_VERSION, "card.json": CARD_VERSION}[name]
    content = json.loads(path.read_text()) | {"version": known + 1}
    write_content(path.parent, name, content)
    code, _, err = run(
        "card" if name == "card.json" else "predict", hospital_copy / "model", *(["x.csv"] * (name[0] == "m"))
    )
    assert code == 1
    assert err.count("\n") == 1
    assert f"{name}: has version {known + 1}, and {known} alone is read here; update PrivSVM, or release again" in err


def test_help_and_one_row_load_little(hospital, tmp_path):
    lines = (hospital / "new.csv").read_text().splitlines()[:2]
    (tmp_path / "one.csv").write_text("\n".join(lines))
    heavy = {"scipy", "sklearn", "numba", "pandas", "pyarrow", "dp_accounting"}
    for arguments, absent in (
        (["--help"], {"numpy"} | heavy),
        (["predict", hospital / "model", tmp_path / "one.csv"], heavy),
    ):
        command = [sys.executable, "-X", "importtime", "-m", "privsvm", *arguments]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        loaded = {line.rpartition("|")[2].split(".")[0].strip() for line in done.stderr.splitlines()}
        assert "privsvm" in loaded
        assert not loaded & absent


def test_a_python_model_is_saved_with_its_schema(hospital, tmp_path):
    from sklearn.pipeline import make_pipeline

    declared = read_schema(hospital / "schema.yaml").to_json()
    schema = privsvm.PublicSchema({key: value for key, value in declared.items() if "person" not in key})
    (columns,) = read_chunks(hospital / "new.csv", schema.declaration, ["died"], rows=10**6)
    y = columns.pop("died")
    model = make_pipeline(schema, privsvm.PrivateSVMClassifier(classes=["no", "yes"], C=0.02))
    model.fit(columns, y)
    privsvm.save(model, tmp_path / "saved")
    loaded = privsvm.load(tmp_path / "saved")
    np.testing.assert_array_equal(loaded.predict(columns), model.predict(columns))
    assert loaded.protection_.unit == "row"
    model[-1].save(tmp_path / "bare")
    bare, X = privsvm.load(tmp_path / "bare"), schema.transform(columns)
    largest = X.max() == X
    np.testing.assert_array_equal(bare.predict(X), model.predict(columns))
    # Tables that the fitted model would refuse too, and columns of unknown order.
    for rows, message in (
        (pd.DataFrame(X), "no schema to read it by"),
        (np.where(largest, np.nan, X), "not finite"),
        (scipy.sparse.csr_array(np.where(largest, np.inf, X)), "not finite"),
        ([["a"] * X.shape[1]], "numbers each"),
    ):
        with pytest.raises(PrivSVMError, match=message):
            bare.predict(rows)


def test_a_released_folder_is_not_overwritten(hospital_copy):
    folder = hospital_copy / "model"
    before = (folder / "model.npz").read_bytes()
    with pytest.raises(PrivSVMError, match="holds a released model"):
        privsvm.load(folder).save(folder)
    assert (folder / "model.npz").read_bytes() == before


@pytest.mark.parametrize("said", [{"prescaled": True}, {"person": "patient", "rows_per_person": 5}])
def test_a_schema_that_takes_the_proof_is_not_saved_beside_one(said, tmp_path):
    from sklearn.pipeline import make_pipeline

    columns = {"age": {"bounds": [0, 100], "fill": 50}}
    schema = privsvm.PublicSchema(
        {"name": "wards", "label": "died", "classes": ["no", "yes"], "columns": columns, **said}
    )
    model = privsvm.PrivateSVMClassifier(classes=["no", "yes"], C=0.02)
    plain = make_pipeline(schema, model).fit({"age": [20, 80] * 50, "patient": ["a", "b"] * 50}, ["no", "yes"] * 50)
    with pytest.raises(PrivSVMError, match="make_private_pipeline"):
        privsvm.save(plain, tmp_path / "saved")


def test_nothing_that_releases_needs_posix_or_the_workflow(hospital, tmp_path):
    program = """
import sys
posix = ("fcntl", "pwd", "grp", "resource", "termios")
workflow = ("dvc", "highspy", "jsonschema", "mlflow", "pandas", "pooch", "pyarrow", "snakemake")
for name in (*posix, *workflow):
    sys.modules[name] = None
import privsvm.command, privsvm.methods.recommended, privsvm.solvers, privsvm.base.budget
from privsvm.release.documents import card, ledger, signing
from privsvm.release.predicting import model
from privsvm.tables import drafts, inspection
from privsvm.release.training import inspections, planning, private_pipeline, recipes, releasing
raise SystemExit(privsvm.command.main(sys.argv[1:]))
"""
    write_table(tmp_path / "few.csv", 40, 3)
    release = ["--data", tmp_path / "few.csv", "--schema", hospital / "schema.yaml", "--out", tmp_path / "m"]
    more = ["--epsilon", "1", "--ledger", tmp_path / "ledger.jsonl", "--without-inspection"]
    run_python("-c", program, "release", *release, *more)
