"""Records survive their files, and a broken file is one line that names file, key, value and remedy."""

from __future__ import annotations

import ast
import dataclasses
import json
import math
import re
from pathlib import Path
from typing import Annotated, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.guarantees import SOUND, proved_fields
from tests.guarantees import proved as a_proved_guarantee

import privsvm_bench
from privsvm.digests import canonical_json
from privsvm.errors import PrivSVMError
from privsvm.privacy.assumptions import Facts
from privsvm.privacy.events import Gaussian, SelfComposed
from privsvm.privacy.gate import Stored
from privsvm.privacy.guarantee import STATUSES, Guarantee, Witness, theorem_holds, weakest_status
from privsvm_bench.records import (
    AuditBound,
    AuditCell,
    AuditRecord,
    CondensedRowsAttack,
    CondensedSplit,
    CondenseTimings,
    Entity,
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
    read_results,
    read_timings,
    read_tracked,
    sealed,
    write,
)

NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
SECONDS = st.floats(0, 1e9)
SHARES = st.floats(0, 1)
COUNTS = st.integers(0, 10**6)
POSITIVES = st.integers(1, 10**6)
TEXTS = st.text(max_size=8)
NAMES = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,7}", fullmatch=True)
NEIGHBOURS = st.sampled_from(["replace_one", "add_remove"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=5,
)


def tuples(values: st.SearchStrategy[Any], length: int | None = None) -> st.SearchStrategy[tuple[Any, ...]]:
    bounds = {"max_size": 4} if length is None else {"min_size": length, "max_size": length}
    return st.lists(values, **bounds).map(tuple)


@st.composite
def guarantees(draw: Any, status: str | None = None) -> Guarantee:
    status = status or draw(st.sampled_from(STATUSES))
    requested = draw(st.floats(1e-6, 1e6) | st.just(math.inf))
    neighbours = draw(NEIGHBOURS)
    proved = draw(st.floats(0, min(requested, 50.0))) if theorem_holds(status) else math.inf
    bounds = st.floats(0, proved) if theorem_holds(status) else st.floats(0, 1e6) | st.just(math.inf)
    exact = st.builds(Witness, epsilon=bounds, neighbours=NEIGHBOURS, description=TEXTS)
    sampled = st.builds(
        Witness, epsilon=st.floats(0, 1e6), neighbours=NEIGHBOURS, description=TEXTS, confidence=st.floats(0.01, 1)
    )
    sensitivity = draw(st.none() | st.floats(1e-9, 1e9))
    common = {
        "mechanism": draw(TEXTS),
        "reference": draw(TEXTS),
        "epsilon_requested": requested,
        "sensitivity": sensitivity,
        "noise_scale": None if sensitivity is None else draw(st.none() | st.floats(1e-9, 1e9)),
        "witness": draw(st.none() | exact | sampled),
    }
    if theorem_holds(status):
        return a_proved_guarantee(
            neighbours=neighbours,
            epsilon_proved=proved,
            delta=draw(st.floats(0, 0.01)),
            accountant=draw(TEXTS),
            randomness="system" if status == "proved" else "seeded",
            reason=draw(st.none() | TEXTS),
            **common,
        )
    return Guarantee(
        status=status,
        neighbours=draw(st.none() | NEIGHBOURS),
        delta=draw(st.none() | st.floats(0, 0.99)),
        randomness=draw(st.none() | st.sampled_from(["system", "seeded"])),
        facts=draw(st.none() | st.just(SOUND) | st.just(Facts())),
        event=draw(st.none() | st.just(SelfComposed(Gaussian(2.0), 3))),
        assumptions=draw(tuples(TEXTS)),
        reason=draw(NAMES) if status == "claimed" else draw(st.none() | TEXTS),
        **common,
    )


@st.composite
def condensed_splits(draw: Any, condense: str) -> CondensedSplit:
    means, others = condense == "ci", draw(COUNTS)
    groups = draw(COUNTS) if means else None
    return CondensedSplit(
        n_rows=draw(POSITIVES),
        n_condensed=draw(POSITIVES),
        size_ratio=draw(SHARES),
        label_purity=draw(SHARES),
        lost_classes=draw(COUNTS),
        groups_of_three=groups,
        third_member_error=draw(SECONDS) if groups else None,
        linkage_rate=draw(SHARES) if means else None,
        guessing_rate=draw(SHARES) if means else None,
        membership_auc=draw(SHARES) if others else None,
        certain_members=draw(SHARES) if others else None,
        nearest_row=draw(SECONDS),
        linked_rows=draw(POSITIVES),
        other_rows=others,
    )


@st.composite
def condensed_attacks(draw: Any) -> CondensedRowsAttack:
    condense = draw(st.sampled_from(["none", "ci", "fcm"]))
    splits = () if condense == "none" else draw(st.lists(condensed_splits(condense), min_size=1, max_size=2))
    return CondensedRowsAttack(
        method=draw(st.none() | NAMES), dataset=draw(NAMES), condense=condense, splits=tuple(splits)
    )


def known_sample_attacks() -> st.SearchStrategy[KnownSampleAttack]:
    return st.builds(
        KnownSampleAttack,
        method=NAMES,
        dataset=NAMES,
        kernel=TEXTS,
        gamma=st.none() | NUMBERS,
        mbar=POSITIVES,
        n_rows=POSITIVES,
        entities=tuples(ENTITIES),
    )


def fields_of_models(draw: Any, status: str | None = None) -> dict[str, Any]:
    n_epsilons, n_splits = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    status = status or draw(st.sampled_from(STATUSES))
    return {
        "implementation": draw(NAMES),
        "epsilons": draw(st.just((math.inf,) * n_epsilons) | tuples(st.floats(1e-6, 1e6), n_epsilons)),
        "repeats": draw(POSITIVES),
        "n_splits": n_splits,
        "n_classes": draw(POSITIVES),
        "guarantees": draw(tuples(guarantees(status), n_epsilons)),
        "objective": draw(tuples(st.none() | NUMBERS, n_splits)),
        "n_support": draw(tuples(st.none() | COUNTS, n_splits)),
        "n_iter": draw(tuples(st.none() | COUNTS, n_splits)),
    }


def fields_of_job(draw: Any) -> dict[str, Any]:
    return {
        "experiment": draw(NAMES),
        "method": draw(NAMES),
        "dataset": draw(NAMES),
        "dataset_digest": draw(TEXTS),
        "parameters": draw(st.dictionaries(TEXTS, VALUES, max_size=3)),
        "protocol": draw(st.dictionaries(TEXTS, VALUES, max_size=3)),
        "condense": "none",
        "delta": draw(st.none() | SHARES),
        "neighbours": draw(st.none() | NEIGHBOURS),
        "n_train": draw(st.none() | POSITIVES),
        "n_features": draw(POSITIVES),
        "attacks": draw(tuples(condensed_attacks() | known_sample_attacks(), 1)),
    }


@st.composite
def saved_models(draw: Any) -> SavedModels:
    return SavedModels(**fields_of_models(draw), kind=draw(NAMES), classes=draw(tuples(TEXTS)))


@st.composite
def model_records(draw: Any) -> ModelRecord:
    return ModelRecord(**fields_of_models(draw), **fields_of_job(draw), kind=draw(NAMES), classes=draw(tuples(TEXTS)))


@st.composite
def results(draw: Any) -> Result:
    status = draw(st.sampled_from(STATUSES))
    models = fields_of_models(draw, status)
    n_epsilons = len(models["epsilons"])
    column = tuples(st.none() | NUMBERS, n_epsilons)
    metric = tuples(tuples(tuples(st.none() | NUMBERS, 2), n_epsilons), models["n_splits"])
    return Result(
        **models,
        **fields_of_job(draw),
        status=status,
        n_test=draw(POSITIVES),
        predictions_sha256=draw(TEXTS),
        metrics=draw(st.dictionaries(TEXTS, metric, max_size=2)),
        summary=draw(st.dictionaries(TEXTS, st.builds(Summary, mean=column, sd=column, low=column, high=column))),
    )


ENTITIES = st.builds(
    Entity,
    entity=NAMES,
    features=POSITIVES,
    rows_needed=COUNTS,
    possible=st.booleans(),
    error_at_rows_needed=st.none() | SECONDS,
    recovered_at=st.none() | COUNTS,
    unreadable_rows=COUNTS,
    curve=st.builds(
        RecoveryErrors,
        known=tuples(COUNTS),
        max_error=tuples(st.none() | NUMBERS),
        rms_error=tuples(st.none() | NUMBERS),
        recovered_share=tuples(st.none() | NUMBERS),
    ),
    membership=st.builds(Membership, true_column_residual=st.none() | NUMBERS, random_residual=st.none() | NUMBERS),
)
ORIGINS = st.sampled_from(["declared", "data"])
OBJECTS = st.dictionaries(TEXTS, VALUES, max_size=2)


@st.composite
def audit_cells(draw: st.DrawFn) -> AuditCell:
    numbers = sorted(draw(st.lists(st.floats(0.0, 50.0), min_size=3, max_size=3)))
    bound = AuditBound(
        kind=draw(st.sampled_from(["counts", "f_dp", "gaussian", "one_run"])),
        sure=numbers[0],
        epsilon=numbers[1],
        estimate=draw(st.sampled_from([numbers[2], math.inf])),
        ceiling=draw(st.floats(0.0, 50.0)),
    )
    return AuditCell(
        relation=draw(NEIGHBOURS),
        epsilon=draw(st.floats(0.1, 50.0)),
        delta=draw(st.floats(0.0, 0.1)),
        status=draw(st.sampled_from(["seeded", "claimed"])),
        epsilon_proved=math.inf,
        epsilon_with_system_noise=draw(st.sampled_from([1.0, math.inf])),
        event=draw(st.none() | NAMES),
        pair=draw(NAMES),
        draws=draw(POSITIVES),
        bounds=(bound,),
        refuted=draw(st.booleans()),
    )


RECORDS = {
    Guarantee: guarantees(),
    SavedModels: saved_models(),
    ModelRecord: model_records(),
    Result: results(),
    CondensedRowsAttack: condensed_attacks(),
    AuditRecord: st.builds(
        AuditRecord,
        method=NAMES,
        implementation=NAMES,
        parameters=st.dictionaries(NAMES, NUMBERS, max_size=2),
        cells=st.lists(audit_cells(), max_size=2).map(tuple),
    ),
    KnownSampleAttack: known_sample_attacks(),
    TrainTimings: st.builds(TrainTimings, fit_seconds=tuples(SECONDS), release_seconds=tuples(SECONDS)),
    EvaluateTimings: st.builds(EvaluateTimings, predict_seconds=tuples(SECONDS), rows_predicted=tuples(COUNTS)),
    CondenseTimings: st.builds(
        CondenseTimings,
        dataset=NAMES,
        condense=st.sampled_from(["none", "ci", "fcm"]),
        condense_seconds=tuples(SECONDS, 2),
    ),
    Prepared: st.builds(
        Prepared,
        dataset=NAMES,
        digest=TEXTS,
        n_rows=POSITIVES,
        n_features=POSITIVES,
        n_features_origin=ORIGINS,
        indicators=tuples(st.integers(0, 20)),
        n_splits=POSITIVES,
        classes=tuples(TEXTS),
        classes_origin=ORIGINS,
        prescaled=st.none() | st.booleans(),
        prescaled_origin=st.sampled_from(["declared", "catalogue"]),
        sparse=st.booleans(),
        parts=tuples(TEXTS),
        protocol=OBJECTS,
        scaling=OBJECTS,
        missing=OBJECTS,
        sources=st.dictionaries(TEXTS, TEXTS, max_size=2),
    ),
}


@pytest.mark.parametrize("form", RECORDS, ids=lambda form: form.__name__)
def test_a_record_survives_its_file(form: type[Any], tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("records") / "record.json"

    @settings(max_examples=40, deadline=None)
    @given(RECORDS[form])
    def survives(record: Any) -> None:
        write(path, record)
        again = read(Annotated[Guarantee, Stored()] if form is Guarantee else form, path)
        assert again == record
        assert type(again) is form
        written = path.read_bytes()
        write(path, again)
        assert path.read_bytes() == written

    survives()


def a_result(**changes: Any) -> dict[str, Any]:
    """Return a results record as parsed from JSON."""
    guarantee = {
        "status": "proved", "mechanism": "m", "reference": "r", "neighbours": "replace_one", "epsilon_requested": 1.0,
        "sensitivity": 2.0, "noise_scale": 3.0, "accountant": "a", "reason": None, "witness": None,
        **proved_fields(0.5),
    }  # fmt: skip
    record = {
        "experiment": "demo", "method": "m", "implementation": "m", "dataset": "wine", "parameters": {"C": 1},
        "protocol": {"kind": "holdout"}, "condense": "none", "status": "proved", "delta": 1e-5,
        "neighbours": "replace_one", "epsilons": [1.0, 2], "repeats": 1, "n_splits": 1,
        "guarantees": [guarantee, {**guarantee, "epsilon_requested": 2}],
        "metrics": {"accuracy": [[[0.5], [None]]]},
        "summary": {"accuracy": {name: [0.5, None] for name in ("mean", "sd", "low", "high")}},
        "objective": [None], "n_support": [3], "n_iter": [None], "predictions_sha256": "0", "dataset_digest": "1",
        "n_train": 10, "n_test": 5, "n_features": 2, "n_classes": 2, "attacks": [],
    }  # fmt: skip
    return record | changes


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
    with pytest.raises(PrivSVMError) as caught:
        parse(form, json.dumps(record), "r.json")
    message = str(caught.value)
    assert "\n" not in message
    assert len(message) < 300
    assert message.startswith("r.json: ")
    assert message.endswith("; delete the file and run again")
    return message.removeprefix("r.json: ").removesuffix("; delete the file and run again")


def test_the_result_of_the_cases_below_is_valid() -> None:
    result = parse(Result, json.dumps(a_result()), "r.json")
    assert result.epsilons == (1.0, 2.0)
    assert result.guarantees[1].epsilon_requested == 2.0
    assert result.value("accuracy", "mean", 0) == 0.5
    assert result.value("accuracy", "mean", 1) is result.value("unknown", "mean", 0) is None


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("method", ..., "key 'method' is missing"),
        ("attacks", ..., "key 'attacks' is missing"),
        ("guarantees.1.mechanism", ..., "guarantees[1]: key 'mechanism' is missing"),
        ("summary.accuracy.high", ..., "summary.accuracy: key 'high' is missing"),
        ("format", 2, "key 'format' is unknown; another version of PrivSVM may have written it"),
        (
            "guarantees.0.sigma",
            1.0,
            "guarantees[0]: key 'sigma' is unknown; another version of PrivSVM may have written it",
        ),
        ("method", "", "method is '': must be a name of at most 64 letters, digits, _ . + and -"),
        ("dataset", "../../x", "dataset is '../../x': must be a name of at most 64 letters, digits, _ . + and -"),
        ("implementation", "", "implementation is '': must not be empty"),
        ("method", None, "method is None: must be a valid string"),
        ("method", 3, "method is 3: must be a valid string"),
        ("n_train", 0, "n_train is 0: must be greater than or equal to 1"),
        ("n_train", 2.5, "n_train is 2.5: must be a valid integer"),
        ("n_train", "3", "n_train is '3': must be a valid integer"),
        ("repeats", True, "repeats is True: must be a valid integer"),
        ("delta", "1e-5", "delta is '1e-5': must be a valid number"),
        ("delta", math.nan, "delta is nan: must be a finite number"),
        ("delta", 2, "delta is 2: must be less than or equal to 1"),
        ("objective.0", math.nan, "objective[0] is nan: must be a finite number"),
        ("objective.0", math.inf, "objective[0] is inf: must be a finite number"),
        ("objective.0", "inf", "objective[0] is 'inf': must be a valid number"),
        ("summary.accuracy.mean.1", math.nan, "summary.accuracy.mean[1] is nan: must be a finite number"),
        ("metrics.accuracy.0.1.0", "x", "metrics.accuracy[0][1][0] is 'x': must be a valid number"),
        ("parameters", [], "parameters is []: must be an object"),
        ("summary", [], "summary is []: must be an object"),
        ("guarantees", {}, "guarantees is {}: must be a list"),
        ("guarantees.0", [], "guarantees[0] is []: must be an object"),
        ("condense", "pca", "condense is 'pca': must be 'none', 'ci' or 'fcm'"),
        ("status", "private", "status is 'private': must be 'proved', 'seeded', 'claimed' or 'none'"),
        ("neighbours", "swap", "neighbours is 'swap': must be 'replace_one' or 'add_remove'"),
        ("epsilons", [], "epsilons is []: must not be empty"),
        ("epsilons.0", "large", "epsilons[0] is 'large': must be a number or 'inf'"),
        ("epsilons.0", math.nan, "epsilons[0] is nan: must be a number or 'inf'"),
        ("epsilons.0", False, "epsilons[0] is False: must be a number or 'inf'"),
        ("epsilons.0", 0, "epsilons is [0.0, 2.0]: must be positive numbers or ['inf']"),
        ("guarantees.1", ..., "guarantees: there are 1 guarantees for 2 epsilons"),
        ("n_support", [], "n_support has 0 numbers for 1 splits"),
        ("summary.accuracy.sd", [], "summary.accuracy.sd has 0 numbers for 2 epsilons"),
        (
            "metrics.accuracy",
            [],
            "metrics.accuracy: must hold one list for each of 1 splits, with one list for each of 2 epsilons",
        ),
        ("condense", "ci", "status is 'proved' but condense is 'ci': condensing has no bounded sensitivity"),
        (
            "guarantees.0.status",
            "sound",
            "guarantees[0].status is 'sound': must be 'proved', 'seeded', 'claimed' or 'none'",
        ),
        (
            "guarantees.0.status",
            "seeded",
            "guarantees[0].epsilon_proved is 0.5 but status is 'seeded': must be inf where nothing is proved",
        ),
        (
            "guarantees.0.epsilon_proved",
            1.5,
            "guarantees[0].epsilon_proved is 1.5: must not exceed epsilon_requested, 1.0",
        ),
        (
            "guarantees.0.epsilon_proved",
            "inf",
            "guarantees[0].epsilon_proved is inf but status is 'proved': must be finite",
        ),
        (
            "guarantees.0.epsilon_proved",
            None,
            "guarantees[0].epsilon_proved is None: must be a number or 'inf'",
        ),
        (
            "guarantees.0.status",
            "none",
            "guarantees[0].epsilon_proved is 0.5 but status is 'none': must be inf where nothing is proved",
        ),
        (
            "guarantees.0.neighbours",
            None,
            "guarantees[0].neighbours is None but status is 'proved': a proof must name it",
        ),
        ("guarantees.0.delta", 1.0, "guarantees[0].delta is 1.0: must be 0 or lie strictly between 0 and 1"),
        ("guarantees.0.noise_scale", 0, "guarantees[0].noise_scale is 0.0: must be positive and finite"),
        (
            "guarantees.0.witness",
            {"epsilon": "inf", "neighbours": "replace_one", "description": "d"},
            "guarantees[0].epsilon_proved is 0.5: a witness refutes it (d)",
        ),
        (
            "guarantees.0.witness",
            {"epsilon": 0.1, "neighbours": "replace_one"},
            "guarantees[0].witness: key 'description' is missing",
        ),
        (
            "guarantees.0.witness",
            {"epsilon": -1, "neighbours": "replace_one", "description": "d"},
            "guarantees[0].witness.epsilon is -1.0: must not be negative",
        ),
    ],
)
def test_a_broken_result_is_one_line(path: str, value: Any, message: str) -> None:
    assert refusal(Result, changed(path, value)) == message


def test_text_that_is_no_record_is_one_line(tmp_path: Path) -> None:
    assert refusal(Result, []) == "the content is []: must be an object"
    assert refusal(TrainTimings, None) == "the content is None: must be an object"
    long = refusal(Result, a_result(method=["x" * 1000]))
    assert "...: must be a valid string" in long
    assert refusal(Result, a_result(summary={"a\nb": 3})) == "summary.'a\\nb' is 3: must be an object"
    for text in ("", "{", '{"a": 1', "\x00", '{"fit_seconds": [1e]}'):
        (tmp_path / "r.json").write_text(text)
        with pytest.raises(PrivSVMError, match=r"r\.json: not valid JSON \(.*\); delete the file and run again$"):
            read(TrainTimings, tmp_path / "r.json")
    (tmp_path / "r.json").write_bytes(b'{"fit_seconds": "\xff"}')
    with pytest.raises(PrivSVMError, match=r"r\.json: not valid JSON"):
        read(TrainTimings, tmp_path / "r.json")
    with pytest.raises(PrivSVMError, match=r"missing\.json: file not found; run"):
        read(TrainTimings, tmp_path / "missing.json")


@pytest.mark.parametrize(
    ("form", "record", "message"),
    [
        (TrainTimings, {"fit_seconds": [-1], "release_seconds": []},
         "fit_seconds[0] is -1: must be greater than or equal to 0"),
        (TrainTimings, {"fit_seconds": 1.0, "release_seconds": []}, "fit_seconds is 1.0: must be a list"),
        (EvaluateTimings, {"predict_seconds": [], "rows_predicted": [1.5]},
         "rows_predicted[0] is 1.5: must be a valid integer"),
        (CondenseTimings, {"dataset": "wine", "condense": "ci", "condense_seconds": []},
         "condense_seconds is []: must be one number for each split"),
        (CondensedRowsAttack,
         {"method": None, "dataset": "wine", "attack": "condensed_rows", "condense": "ci", "splits": []},
         "splits is []: must hold one record for each split"),
        (CondensedRowsAttack,
         {"method": None, "dataset": "wine", "attack": "known_sample", "condense": "ci", "splits": []},
         "attack is 'known_sample': must be 'condensed_rows'"),
        (Prepared, {"dataset": "wine"}, "key 'digest' is missing"),
        (dict[str, dict[str, str]], {"wine": {"svm": 1}}, "wine.svm is 1: must be a valid string"),
    ],
)  # fmt: skip
def test_other_broken_records_are_one_line(form: type[Any], record: Any, message: str) -> None:
    assert refusal(form, record) == message


def test_undefined_is_null_in_files_and_none_when_read() -> None:
    summary = Summary(mean=(math.nan, 0.5), sd=(None, 0.0), low=(0.1, 0.2), high=(0.3, 0.4))
    assert parse(Summary, canonical_json(summary), "s").mean == (None, 0.5)


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
    bound = {"kind": "counts", "epsilon": 0.5, "sure": 0.1, "estimate": 0.6, "ceiling": 0.9}
    cell = {
        "relation": "replace_one", "epsilon": 1.0, "delta": 1e-5, "status": "seeded", "epsilon_proved": "inf",
        "epsilon_with_system_noise": 1.0, "event": "gaussian", "pair": "p", "draws": 9, "bounds": [bound],
        "refuted": False,
    }  # fmt: skip
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


def test_two_results_of_one_curve_are_refused(tmp_path: Path) -> None:
    for name in ("a.json", "b.json"):
        (tmp_path / name).write_text(json.dumps(sealed(a_result())))
    with pytest.raises(PrivSVMError, match=r"b\.json: second result of 'm' on 'wine', which is already in .*a\.json"):
        read_results([tmp_path / "a.json", tmp_path / "b.json"])


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
    assert read_tracked(tmp_path / "tracking.json") == {"wine": {"svm": "key"}}


def test_records_are_the_only_reader_of_their_files() -> None:
    """Reporting and tracking never parse JSON or YAML themselves."""
    package = Path(privsvm_bench.__file__).parent
    for folder in ("reporting", "tracking"):
        for path in (package / folder).rglob("*.py"):
            imported = {
                alias.name
                for node in ast.walk(ast.parse(path.read_text()))
                if isinstance(node, (ast.Import, ast.ImportFrom))
                for alias in node.names
            }
            assert not imported & {"json", "read_json", "yaml"}, path


@pytest.mark.parametrize("form", RECORDS, ids=lambda form: form.__name__)
def test_every_key_is_documented(form: type[Any]) -> None:
    page = (Path(__file__).parents[2] / "docs/files.md").read_text()
    words = {word for code in re.findall(r"`([^`]+)`", page) for word in re.findall(r"\w+", code)}
    nested = {"facts": Facts, "curve": RecoveryErrors, "membership": Membership, "witness": Witness, "summary": Summary,
              "cells": AuditCell, "bounds": AuditBound}  # fmt: skip
    for field in dataclasses.fields(form):
        assert field.name in words
        if field.name in nested:
            assert {inner.name for inner in dataclasses.fields(nested[field.name])} <= words
