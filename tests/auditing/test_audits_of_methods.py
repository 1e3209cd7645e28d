"""Audits of the library's methods, also with less noise than they state."""

import dataclasses

import numpy as np
import pytest
from tests.adversarial import count_differences

from privsvm.auditing import cells as audit_cells
from privsvm.auditing import methods as auditing
from privsvm.auditing.cells import Plan, audit_cell, best_pair
from privsvm.auditing.distinguish import Statistic, choose_statistic, choose_threshold
from privsvm.auditing.methods import Claims, audit_method, relations_of, worst_parameters
from privsvm.auditing.neighbours import canaries, make_crowded_pairs, make_pairs, pairs_around
from privsvm.digests import canonical_json
from privsvm.errors import PrivSVMError
from privsvm.families.moments import centred_training
from privsvm.methods import dp_feature_covariance
from privsvm.privacy.gaussian_delta import gaussian_signal
from privsvm.privacy.lower_bounds import counts_bound, counts_ceiling, limits
from privsvm.privacy.mechanisms import GaussianMechanism
from privsvm.privacy.risk import trade_off
from privsvm.registry import estimator_class, implementations
from privsvm.solvers.gradients.huber_descent import HuberDescent
from privsvm_bench.jobs.auditing import audit_entry, audit_record
from privsvm_bench.jobs.job import AuditJob
from privsvm_bench.jobs.params import states_epsilon
from privsvm_bench.records import AuditRecord, parse

JOB = {"seed": 0, "delta": 1e-5, "neighbours": "replace_one", "draws": 2000, "epsilons": [8.0], "parameters": {}}


def job(implementation, **changes):
    return AuditJob(**{**JOB, "implementation": implementation, "method": implementation, **changes})


def test_every_method_that_states_an_epsilon_is_audited():
    audited = [name for name in implementations() if relations_of(estimator_class(name))]
    assert audited == [name for name in implementations() if states_epsilon(name)]
    assert {"pmsvm_wp", "pmsvm_gp", "dp_frank_wolfe", "dpsvmdvp", "dpwss"} <= set(audited)
    assert not {"svm", "majority", "ci_svm", "ppsvm"} & set(audited)
    assert relations_of(estimator_class("dp_frank_wolfe")) == ("replace_one",)
    assert relations_of(estimator_class("pmsvm_wp")) == ("replace_one", "add_remove")


def test_worst_parameters_change_public_parameters_alone():
    gradient, noise = estimator_class("pmsvm_gp"), estimator_class("pmsvm_wp")
    changed = worst_parameters(gradient, {"batch_size": 32, "smoothing": 0.2})
    assert changed["learning_rate"] < 1e-6
    assert changed["n_rows"] == 256
    assert changed["smoothing"] == 0.2
    assert set(worst_parameters(noise, {"data_norm": 2.0})) == {"data_norm", "C"}


@pytest.mark.parametrize(
    ("implementation", "share"),
    [
        ("pmsvm_wp", 0.75),
        ("ovr_joint_gaussian", 0.75),
        ("softmax_dpsgd", 0.5),
        ("dp_frank_wolfe", 0.1),
        ("dp_least_squares", 0.75),
        ("dp_feature_covariance", 0.65),
        ("objective_perturbation", 0.65),
        ("recommended", 0.6),
    ],
)
def test_bounds_are_below_what_is_proved_and_above_a_share_of_it(implementation, share):
    record = audit_entry(job(implementation))
    (cell,) = record.cells
    assert cell.status == "seeded"
    assert not cell.refuted
    assert share * cell.epsilon < cell.best.epsilon
    assert all(bound.sure < cell.epsilon_with_system_noise for bound in cell.bounds)
    assert parse(AuditRecord, canonical_json(record), "stored") == record


CLAIMED = {"dpsvmdvp", "dpwss", "opera_as_published", "pmsvm_wp_as_published"}
# A hundred trees take long.
FEWER = {"dp_tr_newton": {"n_trees": 10}}
PROVED = [name for name in implementations() if name not in CLAIMED and relations_of(estimator_class(name))]


# Noisy steps, of which pmsvm_gp is one, and trees.
LONG = {"softmax_dpadam", "softmax_dpsgd", "pmsvm_agp", "grpua", "dp_tr_newton"}


@pytest.mark.parametrize(
    "implementation", [pytest.param(name, marks=pytest.mark.long if name in LONG else ()) for name in PROVED]
)
def test_what_an_audit_shows_lies_below_the_risk(implementation, monkeypatch):
    """Each test that an audit counts has rates that the trade-off curve of the recorded event allows."""
    counted = []

    def counts(hits, runs, other_hits, other_runs, delta, confidence, mixed):
        counted.append((limits(hits, runs, 1e-9, mixed)[0], limits(other_hits, other_runs, 1e-9, mixed)[1]))
        return counts_bound(hits, runs, other_hits, other_runs, delta, confidence, mixed)

    monkeypatch.setattr(audit_cells, "counts_bound", counts)
    method = estimator_class(implementation)
    for relation in relations_of(method):
        counted.clear()
        parameters, claims = FEWER.get(implementation, {}), Claims([2.0], 1e-5, [relation])
        (cell,) = audit_method(method, parameters, claims, draws=1000, key="k")
        assert counted
        curve = trade_off(cell.guarantee.event, relation, delta=cell.guarantee.delta)
        for power, alarms in counted:
            assert power <= curve.true_positive_rate(float(alarms))


@pytest.mark.parametrize("implementation", ["dpsvmdvp", "dpwss"])
def test_claims_of_papers_are_exceeded(implementation):
    record = audit_entry(job(implementation, epsilons=[1.0], parameters={"allow_unsound": True}))
    (cell,) = record.cells
    assert cell.status == "claimed"
    assert cell.refuted
    assert cell.best.epsilon > 2.0


def test_half_the_noise_ends_the_run(monkeypatch):
    release = GaussianMechanism.release

    def half(self, values, source):
        exact = np.asarray(values, dtype=np.float64)
        return exact + (release(self, exact, source) - exact) / 2.0

    monkeypatch.setattr(GaussianMechanism, "release", half)
    with pytest.raises(PrivSVMError, match=r"^methods\.mine: an audit refutes the proof: .* confirmed by fresh ones"):
        audit_entry(job("pmsvm_wp", method="mine", epsilons=[1.0], draws=8000))


def test_less_noise_on_every_step_ends_the_run(monkeypatch):
    """Sums of all steps depend on earlier noise: replays show their distance."""

    def quieter(**settings):
        return HuberDescent(**{**settings, "noise_multiplier": settings["noise_multiplier"] / 1.5})

    monkeypatch.setattr(dp_feature_covariance, "HuberDescent", quieter)
    with pytest.raises(PrivSVMError, match=r"^methods\.mine: an audit refutes the proof: .* confirmed by fresh ones"):
        audit_entry(job("dp_feature_covariance", method="mine", epsilons=[4.0], draws=4000))


def test_a_centre_that_passes_the_noise_by_ends_the_run(monkeypatch):
    """A release that a replay does not reproduce is audited by training."""
    monkeypatch.setattr(
        centred_training, "noisy_centre", lambda cells, n_rows, multiplier, source: cells.sum(axis=0) / n_rows
    )
    with pytest.raises(PrivSVMError, match=r"^methods\.mine: an audit refutes the proof: .* confirmed by fresh ones"):
        audit_entry(job("dp_least_squares", method="mine", epsilons=[1.0], draws=20_000))


def test_a_first_look_alone_refutes_nothing(monkeypatch):
    """A bound above the proof counts only if fresh draws confirm it."""
    looks = []

    def unlucky(draw, n_draws, epsilon, delta, gaussian, plan):
        bounds = audit_cell(draw, n_draws, epsilon, delta, gaussian, plan)
        looks.append(draw(0, 1, "seen"))
        if len(looks) % 2:
            bounds = tuple(
                dataclasses.replace(bound, **dict.fromkeys(("sure", "epsilon", "estimate"), 2.0 * epsilon))
                for bound in bounds
            )
        return bounds

    monkeypatch.setattr(auditing, "audit_cell", unlucky)
    cells = audit_method(estimator_class("pmsvm_wp"), {}, Claims([1.0], 1e-5, ["replace_one"]), draws=400, key="k")
    assert len(looks) == 2
    assert not np.array_equal(looks[0], looks[1])
    assert not cells[0].confirmed
    assert audit_record("m", "pmsvm_wp", cells, {}).cells[0].refuted is False


def test_equal_parameters_give_the_same_record():
    one, other = (audit_entry(job("pmsvm_wp", draws=400)) for _ in range(2))
    assert one == other
    third = audit_entry(job("pmsvm_wp", draws=400, seed=1))
    assert third.cells[0].bounds != one.cells[0].bounds


def test_a_parameter_that_is_refused_is_one_line():
    with pytest.raises(PrivSVMError, match=r"^methods\.m: audit: .*allow_unsound"):
        audit_entry(job("dpwss", method="m"))


def normal(move, spread=1.0, other_spread=1.0):
    def draw(dataset, n, noise_key):
        rng = np.random.default_rng([dataset, *noise_key.encode()])
        values = rng.normal(size=(n, 5))
        values[:, 2] *= (spread, other_spread)[dataset]
        values[:, 2] += move * (1 - dataset)
        return values

    return draw


def test_the_pair_that_differs_most_is_found_and_told_apart():
    draws = [normal(0.0), normal(1.0), normal(3.0), normal(0.5)]
    assert best_pair(draws, 200) == 2
    statistic = choose_statistic(draws[2](0, 100, "a"), draws[2](1, 100, "a"))
    assert np.argmax(np.abs(statistic.direction)) == 2
    # Squares distinguish sizes of noise.
    spread = normal(0.0, 5.0, 1.0)
    assert choose_statistic(spread(0, 400, "a"), spread(1, 400, "a")).squares is not None
    bounds = audit_cell(spread, 20_000, 1.0, 0.0, gaussian=False)
    assert bounds[0].epsilon > 2.0


def test_equal_releases_show_nothing():
    for draw in (normal(0.0), lambda dataset, n, noise_key: np.ones((n, 3))):
        (bound,) = audit_cell(draw, 2000, 1.0, 1e-5, gaussian=False)
        assert bound.epsilon < 0.2
        assert bound.sure == 0.0


def test_releases_without_noise_show_all_that_counts_can():
    (bound,) = audit_cell(lambda dataset, n, noise_key: np.full((n, 1), float(dataset)), 2000, 1.0, 0.0, gaussian=False)
    assert bound.epsilon > 5.0
    assert bound.estimate == np.inf


def test_thresholds_look_at_both_tails():
    rng = np.random.default_rng(0)
    # The second dataset has a tail that the first lacks.
    first, second = rng.uniform(0.0, 1.0, 5000), rng.uniform(-0.2, 0.8, 5000)
    above = choose_threshold(first, second, 5000, 0.0)
    hits, runs, others, other_runs = above.count(first, second)
    assert hits / runs > 0.1
    assert others / other_runs < 0.01


def test_two_rare_events_are_counted_together():
    rng = np.random.default_rng(0)
    first, second = rng.normal(1.0, 1.0, 20_000), rng.normal(0.0, 1.0, 20_000)
    for normal in (True, False):
        threshold = choose_threshold(first, second, 20_000, 0.0, normal=normal)
        assert threshold.mixed
        assert threshold.below < 0.5 < threshold.above
        hits, runs, others, other_runs = threshold.count(first, second)
        assert (runs, other_runs) == (40_000, 40_000)
        assert hits == (first > threshold.above).sum() + (second <= threshold.below).sum()
        assert others == (second > threshold.above).sum() + (first <= threshold.below).sum()
        both = counts_bound(hits, runs, others, other_runs, 0.0, mixed=True)
        alone = counts_bound((first > threshold.above).sum(), 20_000, (second > threshold.above).sum(), 20_000, 0.0)
        assert both > alone


@pytest.mark.parametrize(("epsilon", "share"), [(0.5, 0.8), (1.0, 0.86), (4.0, 0.9), (8.0, 0.9)])
def test_counts_of_many_normal_draws_approach_their_ceiling(epsilon, share):
    """Seeded; over 60 seeds at most 5 % of the shares were below .9."""
    move = gaussian_signal(epsilon, 1e-5)

    def draw(dataset, n, noise_key):
        rng = np.random.default_rng([7, dataset, *noise_key.encode()])
        return rng.normal(move * (1 - dataset), 1.0, (n, 1))

    plan = Plan(statistic=Statistic(np.zeros(1), np.ones(1)), cheap=True)
    counts, _, gaussian = audit_cell(draw, 1_000_000, epsilon, 1e-5, gaussian=True, plan=plan)
    assert share * counts.ceiling <= counts.epsilon <= epsilon
    assert counts.ceiling > counts_ceiling(epsilon, 1e-5, 500_000)
    assert gaussian.epsilon > (0.92 if epsilon < 1 else 0.95) * epsilon


@pytest.mark.parametrize("relation", ["replace_one", "add_remove"])
def test_pairs_are_neighbours(relation):
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(12, 3)), np.repeat([0, 1], 6)
    pairs = [*make_pairs(3, relation, 2.0), *make_crowded_pairs(relation, 2.0), *pairs_around(X, y, relation, 0)]
    assert len({pair.words for pair in pairs}) == len(pairs)
    for pair in pairs:
        assert count_differences(pair) == ((1, 1) if relation == "replace_one" else (1, 0))
    with pytest.raises(ValueError, match="relation="):
        make_pairs(2, "replace_two", 1.0)


def test_canaries_are_at_right_angles():
    rows, labels, is_included = canaries(50, 2.0, 7)
    assert np.array_equal(rows @ rows.T, 4.0 * np.eye(50))
    assert set(labels) == {0, 1}
    assert 10 < is_included.sum() < 40
