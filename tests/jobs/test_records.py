"""Records survive their files, and a broken file is one line that names file, key, value and remedy."""

import dataclasses
import hashlib
import json
import math
import os
import re
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import refusals
from tests.guarantees import proved_fields
from tests.reporting.synthetic_results import (
    METHODS,
    make_attack,
    make_audit_cell,
    make_condensed_attack,
    make_guarantee,
    make_prepared,
    make_result,
)
from tests.scripts import REPOSITORY

from privsvm.base.released import ConstantPath
from privsvm.digests import canonical_json
from privsvm.errors import PrivSVMError
from privsvm.files import read_json, write_npz
from privsvm.privacy.gate import Guarantee, Stored
from privsvm.privacy.statement import Facts, Witness, weakest_status
from privsvm_bench.jobs.model_files import check_arrays, collect_fields, load_paths, save_paths
from privsvm_bench.records import (
    AuditBound,
    AuditCell,
    AuditRecord,
    CondensedRowsAttack,
    CondenseTimings,
    EvaluateTimings,
    KnownSampleAttack,
    Membership,
    ModelRecord,
    Prepared,
    RecoveryErrors,
    Result,
    SavedModels,
    Summary,
    TrainTimings,
    parse,
    read,
    read_timings,
    write,
)

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=5,
)


def a_result(**changes: Any) -> dict[str, Any]:
    """Return a results record as parsed from JSON."""
    guarantees = [make_guarantee("m", "proved", epsilon) | proved_fields(0.5) for epsilon in (1.0, 2)]
    summary = {"accuracy": {name: [0.5, None] for name in ("mean", "sd", "low", "high")}}
    metrics = {"accuracy": [[[0.5], [None]]]}
    common = {"repeats": 1, "guarantees": guarantees, "metrics": metrics, "summary": summary, "n_support": [3]}
    return make_result("wine", "m", "proved", (1.0, 2), 1, **common) | changes


AUDIT_CELL = json.loads(canonical_json(make_audit_cell("seeded", 1.0, 0.5)))
WITNESS = {"epsilon": 0.25, "neighbours": "replace_one", "description": 'a\u2028row of "é"', "confidence": 0.95}
MODELS = {"kind": "linear", "classes": ["a", "é"]}
OF_RESULTS = {"status", "n_test", "predictions_sha256", "metrics", "summary"}
OF_JOBS = {field.name for field in dataclasses.fields(ModelRecord)} - {
    field.name for field in dataclasses.fields(SavedModels)
}
RECORDS = {
    Result: a_result(attacks=[make_attack("wine", "m"), make_condensed_attack("wine", None)]),
    ModelRecord: {name: value for name, value in a_result().items() if name not in OF_RESULTS} | MODELS,
    SavedModels: {name: value for name, value in a_result().items() if name not in OF_RESULTS | OF_JOBS} | MODELS,
    Guarantee: a_result()["guarantees"][0] | {"witness": WITNESS},
    KnownSampleAttack: make_attack("wine", "ppsvm", (None, 1e-14)),
    CondensedRowsAttack: make_condensed_attack("wine", "fcm_svm", "fcm", twice=True),
    AuditRecord: {"method": "m", "implementation": "m", "parameters": {"C": 1e-300}, "cells": [AUDIT_CELL] * 2},
    TrainTimings: {"fit_seconds": [0.1, 0], "release_seconds": []},
    EvaluateTimings: {"predict_seconds": [1e-9], "rows_predicted": [2**40]},
    CondenseTimings: {"dataset": "wine", "condense": "ci", "condense_seconds": [0.5]},
    Prepared: make_prepared("wine", declared_training_rows=[3, 4], prescaled=None, indicators=[0, 7]),
}


def form_of(form: type[Any]) -> Any:
    return Annotated[Guarantee, Stored()] if form is Guarantee else form


@pytest.mark.parametrize(
    ("form", "content"),
    [
        *RECORDS.items(),
        (Guarantee, make_guarantee("dpwss", "claimed", 1.0)),
        *((Result, make_result("wine", method, status)) for method, status in METHODS.items()),
    ],
)
def test_a_record_survives_its_file(form: type[Any], content: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    record = parse(form_of(form), json.dumps(content), "r.json")
    write(path, record)
    again, written = read(form_of(form), path), path.read_bytes()
    assert again == record
    assert type(again) is form
    write(path, again)
    assert path.read_bytes() == written


@given(st.dictionaries(st.text(max_size=8), VALUES, max_size=3))
def test_any_parameters_survive(parameters: dict[str, Any]) -> None:
    result = parse(Result, json.dumps(a_result(parameters=parameters)), "r.json")
    assert result.parameters == parameters
    assert parse(Result, canonical_json(result), "r.json") == result


def changed(path: str, value: Any) -> dict[str, Any]:
    """Return the record with another value at a path; ... removes the key."""
    record = a_result()
    *parents, last = [int(key) if key.isdigit() else key for key in path.split(".")]
    parent: Any = record
    for key in parents:
        parent = parent[key]
    if value is ...:
        del parent[last]
    else:
        parent[last] = value
    return record


def refusal(form: type[Any], record: Any) -> str:
    message = refusals.refusal(parse, form, json.dumps(record), "r.json")
    assert len(message) < 400
    assert message.startswith("r.json: ")
    assert message.endswith("; delete the file and run again")
    return message.removeprefix("r.json: ").removesuffix("; delete the file and run again")


def test_the_result_of_the_cases_below_is_valid() -> None:
    result = parse(Result, json.dumps(a_result()), "r.json")
    assert result.epsilons == (1.0, 2.0)
    assert result.guarantees[1].epsilon_requested == 2.0
    assert result.value("accuracy", "mean", 0) == 0.5
    assert result.value("accuracy", "mean", 1) is result.value("unknown", "mean", 0) is None
    # Undefined values are null in files, and None when read.
    summary = Summary(mean=(math.nan, 0.5), sd=(None, 0.0), low=(0.1, 0.2), high=(0.3, 0.4))
    assert parse(Summary, canonical_json(summary), "s").mean == (None, 0.5)


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        # One rule of pydantic, as each record has them.
        ("guarantees.1.mechanism", ..., "guarantees.1: the key 'mechanism' is missing"),
        ("format", 2, "format is not a known key; another version of PrivSVM may have written it"),
        ("guarantees.0", [], "guarantees.0: [] is not valid; must be a mapping"),
        # Rules of this package.
        ("dataset", "../../x",
         "dataset: '../../x' is not valid; must be a name of at most 64 letters, digits, _ . + and -"),
        ("epsilons.0", "large", "epsilons.0: 'large' is not valid; must be a number or 'inf'"),
        ("epsilons.0", 0, "epsilons is [0.0, 2.0]: must be positive numbers or ['inf']"),
        ("guarantees.1", ..., "guarantees: there are 1 guarantees for 2 epsilons"),
        ("n_support", [], "n_support has 0 numbers for 1 splits"),
        ("summary.accuracy.sd", [], "summary.accuracy.sd has 0 numbers for 2 epsilons"),
        ("metrics.accuracy", [],
         "metrics.accuracy: must hold one list for each of 1 splits, with one list for each of 2 epsilons"),
        ("condense", "ci", "status is 'proved' but condense is 'ci': condensing has no bounded sensitivity"),
        ("guarantees.0.status", "seeded",
         "@.epsilon_proved is 0.5 but status is 'seeded': must be inf where nothing is proved"),
        ("guarantees.0.epsilon_proved", 1.5, "@.epsilon_proved is 1.5: must not exceed epsilon_requested, 1.0"),
        ("guarantees.0.epsilon_proved", "inf", "@.epsilon_proved is inf but status is 'proved': must be finite"),
        ("guarantees.0.neighbours", None, "@.neighbours is None but status is 'proved': a proof must name it"),
        ("guarantees.0.delta", 1.0, "@.delta is 1.0: must be 0 or lie strictly between 0 and 1"),
        ("guarantees.0.noise_scale", 0, "@.noise_scale is 0.0: must be positive and finite"),
        ("guarantees.0.witness", {**WITNESS, "epsilon": "inf", "confidence": None, "description": "d"},
         "@.epsilon_proved is 0.5: a witness refutes it (d)"),
        ("guarantees.0.witness", {**WITNESS, "epsilon": -1}, "@.witness.epsilon is -1.0: must not be negative"),
    ],
)  # fmt: skip
def test_a_broken_result_is_one_line(path: str, value: Any, message: str) -> None:
    assert refusal(Result, changed(path, value)) == message.replace("@", "guarantees.0")


def test_other_broken_records_are_one_line(tmp_path: Path) -> None:
    for form, name, message in (
        (CondenseTimings, "condense_seconds", "must be one number for each split"),
        (CondensedRowsAttack, "splits", "must hold one record for each split"),
    ):
        assert refusal(form, RECORDS[form] | {name: []}) == f"{name} is []: {message}"
    for attack, message in (
        ({"attack": "known"}, r"attacks.0: {.* is not valid; must have a known 'attack'"),
        ({}, r"attacks.0: {} is not valid; must have a key 'attack'"),
    ):
        assert re.match(message, refusal(Result, a_result(attacks=[attack])))
    for changes, message in (
        ({"linkage_rate": None}, "linkage_rate is None: must be a number"),
        ({"groups_of_three": 0}, r"third_member_error is 3\.\d*e-15: must be null where groups_of_three is 0"),
        ({"other_rows": 0}, "membership_auc is 0.8: must be null where other_rows is 0"),
    ):
        record = make_condensed_attack("wine", "ci_svm", **changes)
        assert re.fullmatch(rf"splits\.2\.{message}", refusal(CondensedRowsAttack, record))
    fcm = make_condensed_attack("wine", "ci_svm") | {"condense": "fcm"}
    message = "splits.0.groups_of_three is 47: must be null where condense is 'fcm'"
    assert refusal(CondensedRowsAttack, fcm) == message
    assert refusal(Result, []) == "the content: [] is not valid; must be a mapping"
    assert "... is not valid; must be a valid string" in refusal(Result, a_result(method=["x" * 1000]))
    assert refusal(Result, a_result(summary={"a\nb": 3})) == "summary.a\\nb: 3 is not valid; must be a mapping"
    for text in ("", "{", '{"fit_seconds": [1e]}'):
        (tmp_path / "r.json").write_text(text)
        with pytest.raises(PrivSVMError, match=r"r\.json: not valid JSON \(.*\); delete the file and run again$"):
            read(TrainTimings, tmp_path / "r.json")
    (tmp_path / "r.json").write_bytes(b'{"fit_seconds": "\xff"}')
    with pytest.raises(PrivSVMError, match=r"r\.json: not valid JSON"):
        read(TrainTimings, tmp_path / "r.json")
    with pytest.raises(PrivSVMError, match=r"missing\.json: file not found; run"):
        read(TrainTimings, tmp_path / "missing.json")


def test_the_weakest_status_decides_for_the_curve() -> None:
    record = changed("guarantees.0.status", "claimed")
    record["guarantees"][0] |= {"epsilon_proved": "inf", "epsilon_with_system_noise": "inf", "reason": "no noise"}
    assert parse(Result, json.dumps(record), "r").status == "claimed"
    record["guarantees"][0] |= {"status": "none"}
    assert refusal(Result, record) == "status is 'proved' but the guarantees say none, proved: must agree"
    assert weakest_status(["proved", "claimed", "none"]) == "claimed"
    assert weakest_status(["proved", "seeded", "claimed"]) == "claimed"
    assert weakest_status(["proved", "seeded"]) == "seeded"
    for word in ("proved", "seeded"):
        assert weakest_status([word, "none"]) is None
        assert weakest_status([word, word]) == word
    assert weakest_status(["none", "none"]) == "none"


def test_audits_seed_their_noise_and_prove_nothing() -> None:
    cell = AUDIT_CELL
    assert parse(AuditCell, json.dumps(cell), "a").theorem_holds
    assert "since audits seed their noise" in refusal(AuditCell, {**cell, "status": "proved", "epsilon_proved": 1.0})
    claimed = parse(AuditCell, json.dumps({**cell, "status": "claimed"}), "a")
    assert (claimed.status, claimed.theorem_holds) == ("claimed", False)


def test_results_take_over_what_their_models_say() -> None:
    result = parse(Result, json.dumps(a_result()), "r")
    shared = {field.name for field in dataclasses.fields(Result)} & {
        field.name for field in dataclasses.fields(ModelRecord)
    }
    models = ModelRecord(**{name: getattr(result, name) for name in shared}, kind="linear", classes=("a", "b"))
    outcome = {name: getattr(result, name) for name in ("status", "n_test", "predictions_sha256", "metrics", "summary")}
    assert Result.of_models(models, **outcome) == result
    assert Result.of_models(models, **outcome, delta=None).delta is None


def test_timings_are_joined_by_their_names(tmp_path: Path) -> None:
    folder = tmp_path / "svm"
    write(folder / "a.b.train.json", TrainTimings(fit_seconds=(1.0,), release_seconds=(0.5,)))
    write(folder / "a.b.evaluate.json", EvaluateTimings(predict_seconds=(2.0,), rows_predicted=(7,)))
    (timing,) = read_timings(sorted(folder.iterdir()))
    assert dataclasses.astuple(timing) == ("svm", "a.b", (1.0,), (0.5,), (2.0,), (7,))
    with pytest.raises(PrivSVMError, match=r"other\.json: not named as timings; use <method>/<dataset>"):
        read_timings([tmp_path / "other.json"])


def test_keys_of_tracked_results_are_read(tmp_path: Path) -> None:
    (tmp_path / "tracking.json").write_text('{"wine": {"svm": "key"}}')
    assert read(dict[str, dict[str, str]], tmp_path / "tracking.json") == {"wine": {"svm": "key"}}


@pytest.mark.parametrize("form", RECORDS, ids=lambda form: form.__name__)
def test_every_key_is_documented(form: type[Any]) -> None:
    page = (REPOSITORY / "docs/files.md").read_text()
    words = {word for code in re.findall(r"`([^`]+)`", page) for word in re.findall(r"\w+", code)}
    nested = {"facts": Facts, "curve": RecoveryErrors, "membership": Membership, "witness": Witness, "summary": Summary,
              "cells": AuditCell, "bounds": AuditBound}  # fmt: skip
    for field in dataclasses.fields(form):
        assert field.name in words
        if field.name in nested:
            assert {inner.name for inner in dataclasses.fields(nested[field.name])} <= words


NONE = Guarantee(status="none", mechanism="none", reason="no noise", reference="test")
PATH = ConstantPath(
    epsilons=(float("inf"),), guarantees=(NONE,), n_classes=2, class_scores=np.array([[[0.25, 0.75]]])
)  # fmt: skip


@pytest.fixture
def models(tmp_path):
    """Arrays and record of one model."""
    arrays, record = tmp_path / "m.npz", tmp_path / "m.json"
    save_paths(
        [PATH], arrays, record, SavedModels(implementation="majority", classes=("a", "b"), **collect_fields([PATH]))
    )
    return arrays, record


def keep_time(path, content):
    """Change the content of a file and keep its times."""
    before = path.stat()
    path.write_bytes(content)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def test_what_is_written_is_read(models):
    paths, record = load_paths(*models, SavedModels)
    np.testing.assert_array_equal(paths[0].class_scores, PATH.class_scores)
    assert record.arrays_sha256 == hashlib.sha256(models[0].read_bytes()).hexdigest()
    again = models[1].with_name("again.json")
    write(again, record)
    assert again.read_bytes() == models[1].read_bytes()
    assert read(SavedModels, again) == record
    # Order of keys and white space do not count; the digest does.
    content = read_json(models[1])
    again.write_text(json.dumps(dict(reversed(content.items()))))
    assert read(SavedModels, again) == record
    del content["record_sha256"]
    again.write_text(json.dumps(content))
    assert "'record_sha256' is missing" in refusals.refusal(read, SavedModels, again)


def test_models_cut_short_or_edited(models):
    arrays, record = models
    content = arrays.read_bytes()
    middle = len(content) // 2
    flipped = content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]
    for edited in (content[:-1], content[:middle], flipped, b""):
        keep_time(arrays, edited)
        assert re.search(
            r"m\.npz: not the arrays that .*m\.json is of", refusals.refusal(load_paths, *models, SavedModels)
        )
    # A complete file of another run.
    write_npz(arrays, {"0.class_scores": np.array([[[0.5, 0.5]]])})
    assert "not the arrays" in refusals.refusal(load_paths, *models, SavedModels)
    arrays.unlink()
    assert "file not found" in refusals.refusal(check_arrays, arrays, read(SavedModels, record), record)


@pytest.mark.parametrize(
    "edit",
    [
        lambda text: text.replace('"majority"', '"majoritx"'),
        lambda text: text.replace('"repeats": 1', '"repeats": 2'),
        lambda text: text.replace("no noise", "No noise"),
        lambda text: text.replace('"n_classes": 2', '"n_classes": 2.5'),
    ],
)
def test_a_record_edited_by_hand(models, edit):
    _, record = models
    text = record.read_text()
    assert edit(text) != text
    keep_time(record, edit(text).encode())
    assert "m.json: was changed after it was written" in refusals.refusal(read, SavedModels, record)
