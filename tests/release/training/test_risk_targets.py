"""A risk in place of an epsilon: the budget allows no more, and hardly less; a release that reveals more is refused."""

import json
import math
import re
from statistics import NormalDist

import numpy as np
import pytest
from tests.release.conftest import run
from tests.release.hospital import write_table

from privsvm.errors import PrivSVMError
from privsvm.privacy.gaussian_delta import gaussian_delta
from privsvm.release.documents.card import per_cent
from privsvm.release.documents.ledger import Ledger
from privsvm.release.documents.verifying import verify
from privsvm.release.training.recipes import Recipe, Terms, terms_of_risk, train
from privsvm.release.training.releasing import Permission, release
from privsvm.release.training.risk_targets import RiskTarget, curve_of_release
from privsvm.tables.schema import parse_schema

DELTA = 1e-5
SCHEMA = {
    "name": "rows", "label": "y", "classes": [0, 1], "prescaled": False, "rows": 60,
    "columns": {"a": {"bounds": [-1, 1], "fill": "middle"}},
}  # fmt: skip


@pytest.mark.parametrize("guess", [0.501, 0.52, 0.6, 0.75, 0.95])
def test_an_epsilon_for_a_guess_is_that_of_the_closed_form(guess):
    target = RiskTarget(guess)
    epsilon = target.epsilon(DELTA)
    assert guess * (1 - 2e-4) < curve_of_release(epsilon, DELTA).guess(0.5) <= guess
    # The best guess on two Gaussians.
    assert gaussian_delta(epsilon * (1 + 2e-3), 2 * NormalDist().inv_cdf(guess)) < DELTA
    # Laplace noise.
    assert 1 - 0.5 * math.exp(-0.5 * target.epsilon_of_counts) <= guess
    assert target.epsilon_of_counts > -2 * math.log(2 - 2 * guess) - 2e-3


@pytest.mark.parametrize(("powers", "rate"), [((0.03, 0.01), 0.01), ((0.02, 0.9), 0.001), ((0.5, 0.6), 0.4)])
def test_an_epsilon_for_true_positives_is_that_of_the_closed_form(powers, rate):
    normal = NormalDist()
    for power in powers:
        if power <= rate:
            with pytest.raises(PrivSVMError, match="must lie above the rate of false positives"):
                RiskTarget(None, power, rate)
            continue
        epsilon = RiskTarget(None, power, rate).epsilon(DELTA)
        assert power * (1 - 3e-3) < curve_of_release(epsilon, DELTA).true_positive_rate(rate) <= power
        signal = normal.inv_cdf(power) - normal.inv_cdf(rate)
        assert gaussian_delta(epsilon * (1 + 2e-3), signal) < DELTA


def test_both_limits_hold_together():
    both, one, other = RiskTarget(0.7, 0.03), RiskTarget(0.7), RiskTarget(None, 0.03)
    assert both.epsilon(DELTA) == min(one.epsilon(DELTA), other.epsilon(DELTA))
    for wrong in ({"guess": 0.5}, {"guess": 1.0}, {}, {"guess": 0.6, "false_positive_rate": 0.0}):
        with pytest.raises(PrivSVMError):
            RiskTarget(**wrong)
    with pytest.raises(PrivSVMError, match="allow a little more"):
        RiskTarget(0.5 + 1e-9).epsilon(DELTA)


@pytest.mark.parametrize("persons", [1, 3])
def test_a_measurement_reveals_no_more_than_the_risk(persons):
    declared = SCHEMA | ({"person": "who", "rows_per_person": persons} if persons > 1 else {})
    schema = parse_schema(declared)
    rng = np.random.default_rng(0)
    X, units = rng.uniform(-1, 1, size=(60, 1)), np.arange(60) // persons
    target = RiskTarget(0.6)
    terms = terms_of_risk(target, schema, Terms(math.nan, hold_back=0.2))
    trained = train(X, (X[:, 0] > 0).astype(int), schema, terms, units=units)
    guarantee = trained.estimator.guarantee_
    risk = guarantee.risk(rows=persons)
    assert 0.599 < risk.guess <= 0.6
    # Laplace noise on the counts is wider than epsilon requires: the same risk by another noise.
    assert trained.held_back.scale > 2 * (1 if persons > 1 else 2) * persons / terms.epsilon


def test_a_recipe_that_reveals_more_is_refused_and_spends_nothing(tmp_path):
    (tmp_path / "t.csv").write_text("a,y\n" + "\n".join(f"{k / 30 - 1},{k % 2}" for k in range(60)))
    schema = parse_schema(SCHEMA)
    terms = Terms(math.nan, recipe=Recipe("private_svm_laplace", {"C": 0.1}))
    ledger = Ledger(tmp_path / "ledger.jsonl")
    with pytest.raises(PrivSVMError, match="reveals more than the terms allow"):
        release(
            tmp_path / "t.csv", schema, tmp_path / "out", terms_of_risk(RiskTarget(0.6), schema, terms), ledger,
            Permission(without_inspection=True),
        )  # fmt: skip
    assert ledger.entries() == []
    assert not (tmp_path / "out").exists()


def test_the_command_releases_by_a_risk(hospital, tmp_path):
    write_table(tmp_path / "few.csv", 60, 3)
    command = (
        "release", "--data", tmp_path / "few.csv", "--schema", hospital / "schema.yaml", "--out", tmp_path / "m",
        "--ledger", tmp_path / "ledger.jsonl", "--without-inspection", "--hold-back", ".2",
    )  # fmt: skip
    assert run(*command)[2].startswith("error: --epsilon: give it, or the risk")
    assert "give one of them" in run(*command, "--epsilon", 1, "--guess", ".6")[2]
    code, _, err = run(*command, "--guess", ".6", "--true-positives", ".05", "--at-false-positives", ".01")
    assert code == 0, err
    record = verify(tmp_path / "m")
    risk = record.risk(false_positive_rate=0.01)
    assert risk.guess <= 0.6
    assert risk.true_positive_rate <= 0.05
    assert "right at most 60 times" in json.loads((tmp_path / "m/card.json").read_text())["in_words"][1]


def test_the_plan_says_what_is_revealed(monkeypatch):
    monkeypatch.setattr("privsvm.release.training.planning.simulate_accuracy", lambda *arguments, **options: [])
    code, out, _ = run("plan", "--rows", 9, "--features", 2, "--guess", ".6", "--at-false-positives", ".001")
    assert code == 0
    epsilon, right, found = re.search(r"^(2\.0\d+) +([\d.]+) +([\d.]+)$", out, re.MULTILINE).groups()
    curve = curve_of_release(float(epsilon), DELTA)
    assert (right, found) == ("60", per_cent(curve.true_positive_rate(0.001)))
    assert "it also names 0.1 of 100 others" in out
    assert run("plan", "--rows", 9, "--features", 2, "--guess", "60")[0] == 2
    assert run("plan", "--rows", 9, "--features", 2, "--guess", ".4")[2].count("\n") == 1
