"""A guarantee shown as proved was recomputed from the event, at the shown delta and for the shown unit."""

import io
import json
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest
from tests.fuzz.test_crafted import OTHER_FILES
from tests.refusals import refusal
from tests.release.conftest import run
from tests.release.made_up import change_record, read_folder, release_of_wards, write_folder
from tests.release.predicting.test_released import forge

import privsvm
from privsvm.base.model_file import protection_of
from privsvm.errors import PrivSVMError
from privsvm.privacy.gate import Guarantee
from privsvm.registry import estimator_class, implementations
from privsvm.release.documents.ledger import Ledger
from privsvm.release.documents.verifying import verify
from privsvm.release.training.recipes import FIXED, PARAMETERS, Recipe, Terms
from privsvm.release.training.releasing import Permission, release
from privsvm.tables.schema import parse_schema

TERMS = {
    "epsilon": 3.0, "delta": 1e-2, "neighbours": "add_remove", "random_state": 11, "n_rows": 10**6, "classes": [1, 0],
    "bounds": (-9.0, 9.0), "data_norm": 0.01, "data_bound": 0.1, "allow_unsound": True, "allow_composition": True,
    "landmarks_public": True, "constant": 1.0,
}  # fmt: skip
SCHEMA = {
    "version": 1, "name": "visits", "label": "sick", "classes": ["no", "yes"], "prescaled": False, "person": "who",
    "rows_per_person": 3, "rows": 120,
    "columns": {"age": {"bounds": [0, 100], "fill": "middle"}, "dose": {"bounds": [-4, 4], "fill": "middle"}},
}  # fmt: skip


def released(folder, **options):
    """Release a model of 60 persons with two rows each."""
    rng = np.random.default_rng(5)
    lines = [f"p{k // 2},{rng.integers(100)},{rng.normal():.2f},{'yes' if k % 3 else 'no'}" for k in range(120)]
    (folder / "visits.csv").write_text("who,age,dose,sick\n" + "\n".join(lines) + "\n")
    ledger = Ledger(folder / "ledger.jsonl")
    paths, permission = (
        (folder / "visits.csv", parse_schema(SCHEMA), folder / "out"),
        Permission(without_inspection=True),
    )
    return release(*paths, Terms(2.0, **options), ledger, permission)


@pytest.fixture
def first(tmp_path):
    """A made-up release, in which few numbers take long to compute."""
    release_of_wards(tmp_path)
    return tmp_path / "model"


@pytest.mark.parametrize("name", TERMS)
def test_a_recipe_sets_no_term_of_the_guarantee(name, tmp_path):
    for method in ("dp_least_squares", "softmax_dpsgd", "recommended"):
        with pytest.raises(PrivSVMError, match=f"'{name}' is not a parameter of a recipe; leave it out"):
            released(tmp_path, recipe=Recipe(method, {name: TERMS[name]}))
    assert not (tmp_path / "ledger.jsonl").exists()


def test_recipes_know_their_parameters_by_name():
    declared = {name for method in implementations() for name in getattr(estimator_class(method), "declared", {})}
    assert declared >= PARAMETERS
    assert not PARAMETERS & ({*TERMS, *FIXED})


@pytest.mark.parametrize(
    ("recipe", "message"),
    [
        (Recipe("privsvm.methods.private_svm:PrivateSVMClassifier"), "nothing is known about other code"),
        (Recipe("private_svm", {"C": np.array([0.1, 0.2])}), "C is a ndarray; give a number or a word"),
        (Recipe("private_svm", {"epochs": 3}), "'epochs' is not a parameter of a recipe"),
    ],
)
def test_recipes_hold_known_methods_and_plain_values(recipe, message, tmp_path):
    with pytest.raises(PrivSVMError, match=message):
        released(tmp_path, recipe=recipe)


def test_persons_by_sampled_steps_are_verified(tmp_path):
    """The row has another delta than the person there."""
    done = released(tmp_path, recipe=Recipe("softmax_dpsgd", {"epochs": 2, "batch_size": 12}), delta=2e-6)
    record = verify(tmp_path / "out", ledger=Ledger(tmp_path / "ledger.jsonl"))
    assert (record.protection.unit, record.protection.delta) == ("person", 2e-6)
    assert record.protection.epsilon == done.entry.epsilon <= 2.0


@pytest.mark.parametrize("delta", [1e-30, 3e-7, 0.0])
def test_a_smaller_delta_is_not_proved(delta, first):
    assert run("card", first)[0] == 0
    forge(first, delta=delta)
    code, out, err = run("card", first)
    assert (code, out, err.count("\n")) == (1, "", 1)
    with pytest.raises(PrivSVMError, match="and its event gives"):
        verify(first)
    model = privsvm.load(first)
    for shown in ("guarantee_", "protection_"):
        with pytest.raises(PrivSVMError, match="and its event gives"):
            getattr(model, shown)


def test_a_delta_that_publishes_rows_is_not_proved(first):
    guarantee = privsvm.load(first).guarantee_
    assert protection_of(guarantee, "row", 1, 0.002).epsilon < 2.0
    # 400 rows are declared.
    assert protection_of(guarantee, "row", 1, 0.003).epsilon is None


@pytest.mark.parametrize(
    "protection",
    [
        {"unit": "person"}, {"rows": 2}, {"unit": "person", "rows": 2}, {"by_relation": {"replace_one": 0.5}},
        {"by_relation": {"add_remove": 2.0}},
    ],
    ids=str,
)  # fmt: skip
def test_another_unit_or_relation_is_not_proved(protection, first):
    record = read_folder(first)[0]
    change_record(first, protection=record["protection"] | protection)
    with pytest.raises(PrivSVMError):
        verify(first)
    if protection != {"unit": "person"}:
        with pytest.raises(PrivSVMError):
            _ = privsvm.load(first).protection_


@pytest.mark.parametrize("terms", [{"epsilon": 0.2}, {"delta": 1e-9}, {"neighbours": "add_remove"}])
def test_a_recipe_promises_no_more_than_is_proved(terms, first):
    recipe = read_folder(first)[0]["recipe"]
    forge(first, recipe={**recipe, "parameters": recipe["parameters"] | terms})
    with pytest.raises(PrivSVMError, match="the recipe states"):
        verify(first)


def test_a_page_is_rendered_again(first):
    text = (first / "card.html").read_text()
    for changed in (text.replace("Epsilon 2 per row", "Epsilon 1 per row"), text.replace("td{", "td{opacity:0;")):
        assert changed != text
        (first / "card.html").write_text(changed)
        with pytest.raises(PrivSVMError, match=r"is not the page of card\.json"):
            verify(first)


@pytest.mark.parametrize("classes", [["a", "a"], [1, True], ["1", 1], [2**70, 1], []], ids=repr)
def test_classes_are_different_labels(classes, first):
    change_record(first, classes=classes, table=None)
    with pytest.raises(PrivSVMError, match="two or more different labels"):
        privsvm.load(first)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"privsvm": "0.1\nDROP TABLE precious;\n-- "}, "must be a version"),
        ({"privsvm": '0.1; python_version < "3"\n./evil'}, "must be a version"),
        ({"privsvm": "1" * 65}, "must be a version"),
        ({"classes": ["a", "b\nc"]}, "must be a number or one line of text"),
        ({"classes": ["a", "b" * 1001]}, "must be a number or one line of text"),
        ({"recipe": {"method": "\x1b[2J"}}, "damaged"),
        ({"recipe": {"\u202emethod": ""}}, "damaged"),
        ({"recipe": {"method": "x" * 10_001}}, "damaged"),
    ],
)
def test_texts_of_a_model_have_a_closed_form(changes, message, first):
    change_record(first, table=None, **changes)
    with pytest.raises(PrivSVMError, match=message):
        privsvm.load(first)


@pytest.mark.parametrize("name", ["card.json", "card.html", "model.json", "model.npz"])
@pytest.mark.parametrize("kind", OTHER_FILES)
def test_what_is_no_file_is_refused_at_once(name, kind, first):
    (first / name).unlink()
    OTHER_FILES[kind](first / name)
    assert name in refusal(verify, first)


def fitted(**options):
    rows, labels = np.array([[0.1, -0.4], [0.5, 0.2]] * 30), [0, 1] * 30
    return privsvm.DPLeastSquaresClassifier(epsilon=0.7, n_rows=60, **options).fit(rows, labels)


def test_a_pickle_says_proved_only_by_its_event():
    model = fitted(classes=[0, 1])
    pickled = pickle.dumps(model)
    assert pickle.loads(pickled).guarantee_ == model.guarantee_
    shown = model.guarantee_
    for name, value in {"epsilon_proved": 0.01, "delta": 1e-20, "randomness": "seeded", "facts": None}.items():
        other = object.__new__(Guarantee)
        vars(other).update(vars(shown) | {name: value})
        with pytest.raises(ValueError, match=r"epsilon_proved|randomness|facts|nobody states"):
            pickle.loads(pickle.dumps(other))


def test_a_file_of_a_seeded_model_promises_nothing(tmp_path):
    model = fitted(classes=[0, 1], random_state=3)
    model.save(tmp_path)
    read = privsvm.load(tmp_path)
    assert read.guarantee_ == model.guarantee_
    assert (read.guarantee_.status, read.protection_.epsilon) == ("seeded", None)
    simulated = protection_of(read.guarantee_, "row", 1, with_system_noise=True)
    assert simulated.epsilon == pytest.approx(model.guarantee_.epsilon_with_system_noise)


def test_no_file_calls_seeded_noise_proved(first):
    record, card = read_folder(first)
    guarantees = Path(__file__).parents[2] / "privacy" / "version_1" / "guarantees.json"
    *_, seeded, _ = json.loads(guarantees.read_text())["seeded"]["assumptions"]
    guarantee = record["guarantee"]
    guarantee |= {"randomness": "seeded", "assumptions": [*guarantee["assumptions"], seeded]}
    write_folder(first, record, card)
    for shown in (lambda: privsvm.load(first).guarantee_, lambda: verify(first)):
        with pytest.raises(PrivSVMError, match="and its event gives None"):
            shown()


def rewritten(data, *changes):
    """Change words of the schema of a skops file."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(buffer, "w") as new:
        for name in old.namelist():
            content = old.read(name).decode() if name == "schema.json" else old.read(name)
            for before, after in changes if name == "schema.json" else ():
                assert before in content
                content = content.replace(before, after)
            new.writestr(name, content)
    return buffer.getvalue()


def test_a_skops_file_with_one_word_edited_is_not_proved():
    skops = pytest.importorskip("skops.io")
    data = skops.dumps(fitted(allow_unsound=True))

    def read(content):
        return skops.loads(content, trusted=skops.get_untrusted_types(data=content))

    assert read(data).guarantee_.status == "claimed"
    claimed, record = json.dumps('"claimed"'), '"__class__": "Guarantee"'
    for changes in [(claimed, json.dumps('"proved"'))], [(record, '"__class__": "Statement"')]:
        with pytest.raises(ValueError, match=r"proved|guarantee_ is not the record"):
            read(rewritten(data, *changes))
    good = skops.dumps(fitted(classes=[0, 1]))
    assert read(good).guarantee_.status == "proved"
