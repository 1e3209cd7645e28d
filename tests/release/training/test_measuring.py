"""Accuracy measured on held-back rows: its cost, a row's influence, and the coverage of its intervals."""

import csv
import dataclasses
import json
import math
import re
import shutil

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, binomtest
from tests.adversarial import KINDS, neighbours
from tests.release.conftest import release_into, run
from tests.release.made_up import counts_of, write_content
from tests.replay import Recorder, Replayer, check_given, check_record, list_leaves, released_bits

from privsvm.base.budget import Budget
from privsvm.base.model_file import Description, read_model, scale_of, write_model
from privsvm.errors import PrivSVMError
from privsvm.numerics.noise.noise_source import NoiseSource, seeded_source
from privsvm.privacy.accountants import account
from privsvm.release.documents.calibration import HeldBackCounts
from privsvm.release.documents.class_rates import accuracy_text, class_rates, group_rates
from privsvm.release.documents.intervals import NoisyCounts, share_interval, tail_probability
from privsvm.release.documents.verifying import verify
from privsvm.release.training.measuring import count_groups, draw_held_back
from privsvm.release.training.recipes import Recipe, Terms, train
from privsvm.tables.schema import Group, parse_schema

NUMBER, BOOLEAN = {"bounds": [0, 1], "fill": "middle"}, {"boolean": True, "fill": "no"}
COLUMNS = {"a": NUMBER, "b": NUMBER}
# Of two features as well.
GROUPED = [
    {"a": BOOLEAN | {"group": True}, "b": NUMBER},
    {"a": BOOLEAN | {"group": True}, "b": BOOLEAN | {"group": True}},
    {"a": {"categories": ["p", "q"], "group": True}},
]


def declare(n_classes=3, columns=COLUMNS, **more):
    labels = [str(label) for label in range(n_classes)]
    return parse_schema(
        {"name": "t", "label": "y", "classes": labels, "prescaled": False, "columns": columns, **more}, "test"
    )


@given(
    st.integers(0, 10**6), st.sampled_from(KINDS), st.integers(5, 12), st.booleans(), st.integers(1, 4),
    st.integers(2, 3), st.sampled_from([COLUMNS, *GROUPED]),
)  # fmt: skip
@settings(max_examples=15, deadline=None)
def test_on_neighbours_a_row_moves_the_training_or_the_counts_and_nothing_passes_them_by(
    seed, kind, n, measures, n_bins, n_ranks, columns
):
    rng = np.random.default_rng(seed)
    X, y = rng.uniform(-1, 1, size=(n, 2)), rng.integers(0, 3, size=n)
    row = int(np.random.default_rng(seed + 1).integers(n))
    first, second, relation = neighbours(X, y, 3, kind, np.random.default_rng(seed + 1))
    held = rng.random(n) < 0.5
    held[row] = measures
    if relation == "replace_one":
        # Of a public number of rows, some train.
        held[(row + 1) % n] = False
    recipe = Recipe("softmax_dpsgd", {"epochs": 2})
    records = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("privsvm.release.training.measuring.ranks_and_bins", lambda *_: (n_ranks, n_bins))
        for rows, labels in (first, second):
            removed = kind == "removed" and bool(records)
            away = np.delete(held, row) if removed else held
            patch.setattr("privsvm.release.training.recipes.draw_held_back", lambda *_, rows=away: rows)
            # Rows keep their draws: those that train, and under add_remove the public one after them.
            trains = np.append(np.flatnonzero(~held), [-1] if relation == "add_remove" else []).astype(int)
            kept = np.flatnonzero(trains != row) if removed else None
            source = Replayer(records[0][1], kept) if records else Recorder(bytes(32))
            for user in ("base.estimators", "release.training.recipes"):
                patch.setattr(f"privsvm.{user}.system_source", lambda source=source: source)
            terms = Terms(2.0, 1e-5, relation, recipe, 0.4)
            rows = np.clip(rows, -1, 1)
            schema = declare(rows=9, columns=columns)
            records.append((train(rows, labels, schema, terms), source.calls))
    (one, calls), (other, again) = records
    assert [call.kind for call in calls] == ["steps", "laplace"]
    position = int(np.flatnonzero(np.flatnonzero(~held) == row)[0]) if not measures else 0
    if measures:
        assert np.array_equal(calls[0].given, again[0].given)
        assert check_given(calls[1:], again[1:], row, relation) <= 1.0
    else:
        assert np.array_equal(calls[1].given, again[1].given)
        assert check_given(calls[:1], again[:1], position, relation) <= 1.0
    assert released_bits(one.estimator._path) == released_bits(other.estimator._path)
    assert one.held_back.to_json() | {"number": None} == other.held_back.to_json() | {"number": None}
    assert one.held_back.counts.shape == (n_ranks, n_bins, 3)
    assert one.protection == other.protection
    # The record has the drawn value, one of the two.
    guarantee = one.estimator.guarantee_
    assert guarantee == other.estimator.guarantee_
    training, counts = guarantee.event.events
    check_record(calls[:1], dataclasses.replace(guarantee.with_broken_assumption("of one part"), event=training))
    ((drawn, count),) = list_leaves(calls[1:], relation, counts)
    assert (count, drawn.noise_multiplier) == (1, pytest.approx(counts.noise_multiplier, rel=1e-12))


@pytest.mark.parametrize("relation", ["replace_one", "add_remove"])
def test_who_measures_is_drawn_by_units_alone(relation):
    units = np.repeat(np.arange(400), 3)
    held = draw_held_back(units, 0.25, relation, seeded_source(0, "held"))
    # All rows of a person, or none.
    by_person = held.reshape(400, 3)
    assert (by_person.all(axis=1) | ~by_person.any(axis=1)).all()
    number = by_person[:, 0].sum()
    if relation == "replace_one":
        assert number == 100
    else:
        # Each by its own word: the last one's going moves nobody else.
        fewer = draw_held_back(units[:-3], 0.25, relation, seeded_source(0, "held"))
        assert np.array_equal(fewer, held[:-3])
        assert binomtest(int(number), 400, 0.25).pvalue > 1e-7
    assert not np.array_equal(held, draw_held_back(units, 0.25, relation, seeded_source(1, "held")))
    rates = np.mean([draw_held_back(np.arange(40), 0.25, relation, seeded_source(s, "r")) for s in range(400)], axis=0)
    # Error bound for 40 positions, with 400 draws each: the smallest p-value is below 1e-8 with a probability of 4e-7.
    assert min(binomtest(round(rate * 400), 400, 0.25).pvalue for rate in rates) > 1e-8
    # A public number of rows that leaves no part is refused, and a private one is not.
    with pytest.raises(PrivSVMError, match="would hold back 0 of 3 rows"):
        draw_held_back(np.arange(3), 0.1, "replace_one", seeded_source(0))
    assert draw_held_back(np.arange(0), 0.1, "add_remove", seeded_source(0)).shape == (0,)


@pytest.mark.parametrize("relation", ["replace_one", "add_remove"])
def test_a_row_pays_once_for_training_or_for_measuring(relation):
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-1, 1, size=(60, 2)), rng.integers(0, 3, size=60)
    terms = Terms(1.5, 1e-5, relation)
    trained = train(X, y, declare(rows=60), dataclasses.replace(terms, hold_back=0.2))
    guarantee = trained.estimator.guarantee_
    assert guarantee.status == "proved"
    assert 1.5 * 0.999 < guarantee.epsilon_proved <= 1.5
    training, counts = guarantee.event.events
    each = [account(event, 1e-5, relation).epsilon for event in (training, counts)]
    assert guarantee.epsilon_proved == max(each)
    assert min(each) > 1.5 * 0.95
    assert guarantee.verify().epsilon == pytest.approx(1.5, rel=0.02)
    assert trained.held_back.scale == counts.noise_multiplier == scale_of(guarantee)
    assert trained.held_back.number == (12 if relation == "replace_one" else None)
    assert scale_of(train(X, y, declare(rows=60), terms).estimator.guarantee_) is None


@pytest.mark.parametrize("relation", ["replace_one", "add_remove"])
def test_noise_of_counts_is_as_secret_as_that_of_the_training(relation, monkeypatch):
    """Who knows the source of the counts' noise subtracts it."""
    # The same model each time.
    monkeypatch.setattr("privsvm.base.estimators.system_source", lambda: NoiseSource(bytes(32)))
    X, y = np.random.default_rng(0).uniform(-1, 1, size=(60, 2)), np.arange(60) % 3
    terms = Terms(1.5, 1e-5, relation, hold_back=0.2)
    proved = [train(X, y, declare(rows=60), terms) for _ in range(2)]
    seeded = [train(X, y, declare(rows=60), terms, random_state=0) for _ in range(2)]
    assert [one.estimator.guarantee_.status for one in (*proved, *seeded)] == ["proved"] * 2 + ["seeded"] * 2
    for made, are_equal in ((proved, False), (seeded, True)):
        first, second = (one.held_back.counts for one in made)
        assert np.allclose(first, second) == are_equal


def test_a_budget_that_no_training_keeps_is_not_called_seeded():
    X, y, units = np.zeros((60, 2)), np.arange(60) % 3, np.arange(60) // 3
    persons = declare(rows=60, person="who", rows_per_person=3)
    terms = Terms(1.5, 1e-5, recipe=Recipe("softmax_dpsgd", {"batch_size": 10}), hold_back=0.2)
    with pytest.raises(PrivSVMError, match="softmax_dpsgd cannot guarantee it for 3 rows per person"):
        train(X, y, persons, terms, units=units)


@pytest.mark.parametrize("hold_back", [None, 0.5])
def test_a_delta_is_judged_by_all_rows_whichever_train(hold_back):
    X, y = np.random.default_rng(0).uniform(-1, 1, size=(15_000, 2)), np.arange(15_000) % 3
    with pytest.raises(PrivSVMError, match="at 1 / 15000 or more"):
        train(X, y, declare(), Terms(1.0, 1e-4, "replace_one", hold_back=hold_back))


def test_tails_are_those_of_a_convolution():
    rng = np.random.default_rng(0)
    cases = (30, 0.8, 1, 2.0, 1), (12, 0.3, 2, 0.7, 1), (20, 0.6, 1, 3.0, 5)
    for number, share, cells, scale, answers_per_unit in cases:
        right, wrong = 0.7 * number, 0.4 * number
        of_noise = {"cells": cells, "wrong_cells": cells, "scale": scale}
        counts = NoisyCounts(right=right, wrong=wrong, **of_noise, answers_per_unit=answers_per_unit)
        drawn = number // answers_per_unit
        noise = rng.laplace(scale=scale, size=(2, 200_000, cells)).sum(axis=2)
        hits = answers_per_unit * rng.binomial(drawn, share, size=200_000)
        statistic = (1 - share) * (hits + noise[0]) - share * (drawn * answers_per_unit - hits + noise[1])
        simulated = np.mean(statistic >= (1 - share) * right - share * wrong)
        # Five and a half standard deviations of the simulation, and the grid.
        limit = 5.5 * math.sqrt(simulated / 200_000) + 2e-3
        assert tail_probability(counts, share, number) == pytest.approx(simulated, abs=limit)
    # With hardly any noise, which breaks ties, it is the binomial tail, and the interval is Clopper and Pearson's.
    below, above = (
        NoisyCounts(right=45 + move, wrong=5 - move, cells=1, wrong_cells=1, scale=1e-4, number=50)
        for move in (-0.01, 0.01)
    )
    assert tail_probability(below, 0.8, 50) == pytest.approx(binom.sf(44, 50, 0.8), rel=1e-6)
    clopper_pearson = binomtest(45, 50).proportion_ci()
    assert (share_interval(below)[0], share_interval(above)[1]) == pytest.approx(
        (clopper_pearson.low, clopper_pearson.high), abs=1e-6
    )


@pytest.mark.parametrize(
    ("number", "share", "cells", "scale", "answers_per_unit", "public"),
    [(200, 0.9, 2, 2.0, 1, True), (60, 0.7, 1, 3.0, 1, False), (300, 0.95, 2, 5.0, 5, False), (9, 0.5, 1, 1.0, 1, 0)],
)  # fmt: skip
def test_intervals_hold_the_truth(number, share, cells, scale, answers_per_unit, public):
    """Whether the truth is inside is asked of its own tails, which costs no search for the ends."""
    rng = np.random.default_rng(number)
    missed, draws = 0, 100
    for _ in range(draws):
        hits = answers_per_unit * rng.binomial(number // answers_per_unit, share)
        right, wrong = (n + rng.laplace(scale=scale, size=cells).sum() for n in (hits, number - hits))
        common = {"cells": cells, "wrong_cells": cells, "scale": scale, "answers_per_unit": answers_per_unit}
        common["number"] = number if public else None
        for counts, interval_of in (
            (NoisyCounts(right=right, wrong=wrong, **common), share),
            (NoisyCounts(right=wrong, wrong=right, **common), 1 - share),
        ):
            error = 0.05 if public else 0.05 * 0.95
            missed += max(tail_probability(counts, interval_of, n) for n in counts.numbers(0.05)) < error / 2
    # At 5 % of error, more would be missed with a probability below 1e-7.
    assert missed <= binom.isf(1e-7, draws, 0.05)


def test_an_interval_is_wide_where_little_is_known():
    nothing = NoisyCounts(right=-3.0, wrong=1.0, cells=1, wrong_cells=1, scale=5.0)
    assert share_interval(nothing) == pytest.approx((0.0, 1.0), abs=0.01)
    measured = counts_of((90.0, -2.0), (10.0, 1.0), scale=1.0)
    _, low, high = measured.balanced_accuracy
    assert low < 0.45
    assert high > 0.9
    # Counts that no share explains have none.
    measured = counts_of((90.0, 19.0), (10.0, -9.0), scale=1.0)
    sensitivity, specificity, *_ = class_rates(measured, "y", ["no", "yes"])
    assert sensitivity.endswith("finds 100 (no interval: the noise on the counts outweighs them).")
    assert "(95 % interval" in specificity


def test_a_budget_refuses_a_measurement_in_one_line(hospital, tmp_path):
    table, schema = hospital / "patients.csv", ("--schema", hospital / "schema.yaml")
    ledger = ("--ledger", tmp_path / "ledger.jsonl")
    assert run("inspect", table, *schema, *ledger)[0] == 0
    with Budget(epsilon=9, delta=1e-3, verbose=False) as budget:
        asked = ("--epsilon", 1, "--hold-back", 0.1, "--out", tmp_path / "model")
        code, _, err = run("release", "--data", table, *schema, *ledger, *asked)
    assert (code, budget.spent) == (1, None)
    assert err.splitlines()[-1].startswith("error: a budget takes proved models alone")
    assert not (tmp_path / "model").exists()


@pytest.fixture(scope="module")
def measured_release(hospital, tmp_path_factory):
    folder = tmp_path_factory.mktemp("measured")
    return folder, release_into(folder, hospital / "patients.csv", hospital / "schema.yaml", "--hold-back", 0.2)


def accuracy_on(model, table):
    """Share of the right answers of a released model on a table with the labels."""
    with open(table, newline="") as handle:
        truth = [row["died"] for row in csv.DictReader(handle)]
    _, out, _ = run("predict", model, table)
    return np.mean(
        [row["predicted"] == label for row, label in zip(csv.DictReader(out.splitlines()), truth, strict=True)]
    )


def test_a_release_says_what_it_is_worth_and_verify_computes_it_again(measured_release, hospital):
    folder, output = measured_release
    record = verify(folder / "model")
    card = json.loads((folder / "model" / "card.json").read_text())
    measured = HeldBackCounts.from_json(record.held_back, 2)
    assert card["measured"] == json.loads(json.dumps(measured.to_card()))
    assert accuracy_text(measured, is_balanced=True) == card["accuracy"]
    assert card["accuracy"] in output
    assert "20 % of the persons" in output
    assert (measured.rows_per_unit, measured.number) == (5, None)
    estimate, low, high = measured.accuracy
    assert 0.0 <= low <= estimate <= high <= 1.0
    # Counts this far from the model's true accuracy would occur less than once in ten million runs.
    share = accuracy_on(folder / "model", hospital / "new.csv")
    right, wrong = math.fsum(measured.right), math.fsum(measured.wrong)
    of_noise = {"cells": 4, "wrong_cells": 4, "scale": measured.scale}
    counts = NoisyCounts(right=right, wrong=wrong, **of_noise, answers_per_unit=5)
    for interval, truth in ((counts, share - 0.03), (counts.reversed, 1.0 - share - 0.03)):
        assert max(tail_probability(interval, max(truth, 0.0), number) for number in counts.numbers(1e-6)) > 1e-7
    assert 0.9 < record.protection.epsilon <= 1.0 + 1e-9
    assert record.protection.unit == "person"
    assert "95 % interval" in (folder / "model" / "card.html").read_text()
    line = json.loads((folder / "ledger.jsonl").read_text().splitlines()[0])
    assert [event["kind"] for event in line["guarantee"]["event"]["events"]] == ["composed", "laplace"]
    shown = run("card", folder / "model")[1]
    assert len(re.findall("95 % interval|no interval: the noise", shown.replace("\n   ", ""))) == 8


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda card: card["measured"].update(right=[1990.0, 60.0]), "does not follow from the counts"),
        (lambda card: card["measured"].update(accuracy=[0.99, 0.98, 1.0]), "does not follow from the counts"),
        (lambda card: card["measured"].update(calibration_error=[0.0, 0.0, 0.01]), "does not follow from the counts"),
        (lambda card: card["measured"].pop("coverage"), "does not follow from the counts"),
        (lambda card: card.update(accuracy="0.99"), "accuracy is not what model.json gives"),
        (lambda card: card.pop("measured"), "it was paid for, and is missing"),
        (lambda card: card["measured"].pop("scale"), "does not follow from the counts"),
    ],
)
def test_a_measurement_that_was_edited_is_refused_without_a_key(measured_release, tmp_path, change, reason):
    shutil.copytree(measured_release[0] / "model", tmp_path / "model")
    card = json.loads((tmp_path / "model" / "card.json").read_text())
    change(card)
    write_content(tmp_path / "model", "card.json", card)
    with pytest.raises(PrivSVMError, match=reason):
        verify(tmp_path / "model")


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--hold-back", 0.6], "hold_back=0.6: must lie from 0.001 to 0.5"),
        (["--hold-back", 1e-30], "hold_back=1e-30: must lie from 0.001 to 0.5"),
        (["--hold-back", 0.1, "--accuracy", "0.9 elsewhere"], "not both"),
    ],
)
def test_what_cannot_be_measured_is_refused_before_anything_is_spent(hospital, tmp_path, options, reason):
    command = ["release", "--data", hospital / "patients.csv", "--schema", hospital / "schema.yaml", "--epsilon", 1]
    code, _, err = run(*command, "--without-inspection", "--out", tmp_path / "m", "--ledger", tmp_path / "l", *options)
    assert (code, reason in err) == (1, True)
    assert not (tmp_path / "m").exists()
    assert not (tmp_path / "l").exists()


@pytest.mark.parametrize("columns", GROUPED)
@pytest.mark.parametrize("relation", ["replace_one", "add_remove"])
def test_groups_share_the_epsilon_of_all_counts(columns, relation, tmp_path):
    """By more noise; and a record whose counts have less is refused."""
    rng = np.random.default_rng(0)
    X, y = np.sign(rng.uniform(-1, 1, size=(60, 2))), rng.integers(0, 3, size=60)
    schema = declare(rows=60, columns=columns)
    if "b" not in columns:
        X = np.eye(3)[rng.integers(0, 3, size=60)][:, :2]
    trained = train(X, y, schema, Terms(1.5, 1e-5, relation, hold_back=0.5))
    counts, guarantee = trained.held_back, trained.estimator.guarantee_
    assert guarantee.epsilon_proved <= 1.5
    assert counts.scale_of_one == scale_of(guarantee) == counts.scale / (1 + len(schema.groups))
    assert {name: len(table) for name, table in counts.groups.items()} == {
        group.name: len(group.words) for group in schema.groups
    }
    read = HeldBackCounts.from_json(counts.to_json(), 3)
    assert read.to_json() == counts.to_json()
    for held_back in (counts.to_json(), counts.to_json() | {"scale": scale_of(guarantee)}):
        described = Description(classes=["0", "1", "2"], n_features=2, recipe={}, held_back=held_back)
        write_model(tmp_path, trained.estimator._path, described, guarantee)
        record = read_model(tmp_path)[1]
        if held_back["scale"] == counts.scale:
            assert record.judged[0] == guarantee
        else:
            with pytest.raises(PrivSVMError, match="does not cover its counts"):
                record.judged  # noqa: B018


def test_groups_count_each_row_once():
    """As right or wrong in the group of its value; a category that is none is the last one."""
    right = np.array([True, False, True, True])
    group = declare(columns=GROUPED[2]).groups[0]
    assert group.words == ("p", "q", "none of these")
    assert count_groups(np.array([[1, 0], [0, 1], [0, 1], [0, 0]]), right, group).tolist() == [[1, 0], [1, 1], [1, 0]]
    group = declare(columns=GROUPED[1]).groups[1]
    X = np.array([[1.0, -1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, 0.5]])
    assert count_groups(X, right, group).tolist() == [[1, 1], [2, 0]]
    with pytest.raises(PrivSVMError, match="group goes with categories or a boolean"):
        declare(columns={"a": NUMBER | {"group": True}})


def test_the_worst_group_is_named_and_intervals_hold():
    """All of a column together: in 30 draws with 5 % of errors, 12 misses have a probability of 1e-8."""
    rng, group = np.random.default_rng(1), Group("ward", 0, ("a", "b", "c", "none of these"), is_boolean=False)
    truth, sizes, misses, named = np.array([0.9, 0.6, 0.8, 0.5]), np.array([600, 300, 500, 0]), 0, 0
    for _ in range(30):
        right = rng.binomial(sizes, truth)
        table = np.column_stack([right, sizes - right]) + rng.laplace(scale=4.0, size=(4, 2))
        measured = dataclasses.replace(counts_of([9, 9], [1, 1], scale=4.0), groups={"ward": table})
        (line,) = group_rates(measured, [group])
        named += "worst for b:" in line
        assert "none of these not known" in line or "none of these 0" in line
        found = re.findall(r"([abc]) [\d.]+ \(95 % interval ([\d.]+) to ([\d.]+)\)", line)
        assert len(found) == 3
        misses += any(
            not float(low) - 0.1 <= 100 * truth["abc".index(name)] <= float(high) + 0.1 for name, low, high in found
        )
    assert misses <= 11
    assert named >= 24
    with pytest.raises(ValueError, match="other groups"):
        group_rates(measured, [])
