"""Events, and what accountants make of them."""

import itertools
import json
import math

import dp_accounting
import numpy as np
import pytest
from dp_accounting import pld
from hypothesis import example, given
from hypothesis import strategies as st
from tests.privacy import oracles
from tests.privacy.oracles import dp_event
from tests.steps import memory_below

from privsvm.digests import canonical_json
from privsvm.privacy.accountants import (
    ACCOUNTANTS,
    AddedBudgets,
    Alternatives,
    ExactGaussian,
    LossDistributions,
    ObjectivePerturbationAccountant,
    PureBudgets,
    RenyiDivergences,
    account,
    double_sensitivity,
    group_account,
    recompute_account,
    relation_accounts,
)
from privsvm.privacy.accounting import gaussian_noise_multiplier
from privsvm.privacy.events import (
    NEIGHBOURS,
    BestOfNegativeBinomial,
    BestOfPoisson,
    Composed,
    EpsilonDelta,
    ExponentialMechanism,
    Gaussian,
    Laplace,
    NonPrivate,
    OneOf,
    PerturbedObjectives,
    PoissonSampled,
    SelfComposed,
    ZeroConcentrated,
    event_from_json,
    leaves,
)
from privsvm.privacy.renyi import sampled_divergence

DELTA = 1e-5
positive = st.floats(1e-6, 1e6)
simple = st.one_of(
    st.builds(Gaussian, positive),
    st.builds(Laplace, positive),
    st.builds(ExponentialMechanism, positive),
    st.builds(ZeroConcentrated, positive),
    st.builds(PerturbedObjectives, positive, st.floats(0, 10), st.integers(1, 9), positive),
    st.builds(EpsilonDelta, st.floats(0, 10), st.floats(0, 1)),
    st.just(NonPrivate()),
    st.builds(PoissonSampled, st.floats(1e-6, 1), st.builds(Gaussian, positive)),
)
events = st.recursive(
    simple,
    lambda inner: st.one_of(
        st.builds(SelfComposed, inner, st.integers(1, 1000)),
        st.builds(Composed, st.lists(inner, min_size=1, max_size=3).map(tuple)),
        st.builds(OneOf, st.lists(inner, min_size=1, max_size=3).map(tuple)),
        st.builds(BestOfNegativeBinomial, st.floats(-0.99, 5), st.floats(1e-6, 0.999), inner),
        st.builds(BestOfPoisson, st.floats(1e-6, 1e3), inner),
    ),
    max_leaves=5,
)
ONE_OF_EACH = [
    Gaussian(3.0),
    Laplace(2.0),
    ExponentialMechanism(0.3),
    ZeroConcentrated(0.02),
    PerturbedObjectives(0.2, 0.01, 2, 40.0),
    EpsilonDelta(0.4, 1e-6),
    OneOf((Gaussian(4.0), PerturbedObjectives(0.2, 0.01, 2, 40.0))),
    BestOfNegativeBinomial(0.0, 0.1, Gaussian(9.0)),
    BestOfPoisson(8.0, Composed((Gaussian(9.0), ZeroConcentrated(0.002)))),
    PoissonSampled(0.1, Gaussian(1.0)),
    SelfComposed(PoissonSampled(0.1, Gaussian(2.0)), 30),
    SelfComposed(ExponentialMechanism(0.1), 100),
    Composed((Gaussian(3.0), Laplace(5.0))),
    Composed((Laplace(4.0), ZeroConcentrated(0.02))),
    Composed((PoissonSampled(0.1, Gaussian(1.0)), ZeroConcentrated(0.02), EpsilonDelta(0.1, 1e-6))),
]


@given(events)
def test_events_survive_json(event):
    assert event_from_json(json.loads(canonical_json(event))) == event
    assert hash(event) == hash(event_from_json(json.loads(canonical_json(event))))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([], "must be an object"),
        ({"kind": "gauss"}, "kind is 'gauss'"),
        ({"noise_multiplier": 1.0}, "kind is None"),
        ({"kind": "gaussian"}, "gaussian.noise_multiplier: key is missing"),
        ({"kind": "gaussian", "noise_multiplier": 1.0, "x": 1}, "gaussian.x: key is unknown"),
        ({"kind": "gaussian", "noise_multiplier": 0.0}, "noise_multiplier is 0.0"),
        ({"kind": "gaussian", "noise_multiplier": True}, "noise_multiplier is True"),
        ({"kind": "gaussian", "noise_multiplier": "1"}, "noise_multiplier is '1'"),
        ({"kind": "laplace", "noise_multiplier": math.inf}, "noise_multiplier is inf"),
        ({"kind": "epsilon_delta", "epsilon": 1.0, "delta": -1e-9}, "delta is -1e-09"),
        ({"kind": "self_composed", "event": {"kind": "non_private"}, "count": 0}, "count is 0"),
        ({"kind": "self_composed", "event": {"kind": "non_private"}, "count": 1.0}, "count is 1.0"),
        ({"kind": "composed", "events": []}, r"events is \(\)"),
        ({"kind": "composed", "events": {"kind": "non_private"}}, "must be a list"),
        ({"kind": "poisson_sampled", "sampling_probability": 1.1, "event": {"kind": "non_private"}}, "sampling_prob"),
        ({"kind": "poisson_sampled", "sampling_probability": 0.1, "event": {"kind": "non_private"}}, "drawn rows"),
    ],
)
def test_what_is_no_event_is_refused(value, message):
    with pytest.raises(ValueError, match=message):
        event_from_json(value)


def test_leaves_of_nested_events():
    step = PoissonSampled(0.5, Gaussian(2.0))
    nested = SelfComposed(Composed((SelfComposed(step, 3), Laplace(1.0))), 4)
    assert leaves(nested) == [(step, 12), (Laplace(1.0), 4)]
    # Rows that are all drawn are plain rows.
    assert leaves(SelfComposed(PoissonSampled(1.0, Gaussian(2.0)), 7)) == [(Gaussian(2.0), 7)]


@pytest.mark.parametrize(
    "event",
    [
        Composed((Gaussian(1.0), EpsilonDelta(1e-6, 0.0))),
        pytest.param(Composed((Gaussian(1.0), Laplace(1e7))), marks=pytest.mark.long),
        Composed((Gaussian(0.01), EpsilonDelta(0.1, 0.0))),
        SelfComposed(EpsilonDelta(3.0, 0.0), 10_000),
    ],
    ids=["a tiny epsilon", "long Laplace noise", "little noise", "many budgets"],
)
def test_no_event_takes_all_memory(event):
    """A tiny epsilon beside large losses set a grid of 65 GB; losses that vary much take a long one."""
    with memory_below(150 << 20):
        epsilon = account(event, 1e-5, "replace_one").epsilon
    leaf, count = leaves(event)[0]
    assert epsilon >= account(leaf, 1e-5, "replace_one").epsilon
    assert epsilon <= 1.01 * account(SelfComposed(leaf, count), 1e-5, "replace_one").epsilon + 50


def pld_epsilon(event, neighbours):
    """By dp_accounting's own accountant."""
    relation = dp_accounting.NeighboringRelation
    kind = relation.REPLACE_ONE if neighbours == "replace_one" else relation.ADD_OR_REMOVE_ONE
    return pld.PLDAccountant(kind, 1e-4).compose(dp_event(event)).get_epsilon(DELTA)


STEPS = SelfComposed(PoissonSampled(0.1, Gaussian(2.0)), 30)
MINIMA = PerturbedObjectives(0.2, 0.01, 2, 40.0)
SELECTIONS = SelfComposed(ExponentialMechanism(0.1), 100)
# Each accountant's epsilon of an event, an independent computation, and the allowed difference below and above.
ORACLES = [
    (ExactGaussian, Gaussian(3.0), pld_epsilon, 1e-6, 1e-3),
    (ExactGaussian, Composed((Gaussian(3.0), SelfComposed(Gaussian(8.0), 4))), pld_epsilon, 1e-6, 1e-3),
    (PureBudgets, SelfComposed(Laplace(5.0), 3), lambda event, neighbours: RELATIVE[neighbours] * 0.6, 1e-12, 1e-12),
    (PureBudgets, SELECTIONS, lambda event, neighbours: 10.0, 1e-12, 1e-12),
    (ObjectivePerturbationAccountant, MINIMA,
     lambda event, neighbours: oracles.corner_epsilon(event, DELTA, neighbours), 1e-6, 1e-6),
    (ObjectivePerturbationAccountant, PerturbedObjectives(0.5, 0.1, 1, 20.0),
     lambda event, neighbours: oracles.corner_epsilon(event, DELTA, neighbours), 1e-6, 1e-6),
    (RenyiDivergences, ZeroConcentrated(0.02), lambda event, _: oracles.rdp_epsilon(event, DELTA), 1e-4, 1e-3),
    (RenyiDivergences, Composed((Gaussian(9.0), ZeroConcentrated(0.02))),
     lambda event, neighbours: oracles.rdp_epsilon(event, DELTA, neighbours), 1e-4, 1e-3),
    (RenyiDivergences, BestOfNegativeBinomial(0.0, 0.1, Gaussian(9.0)),
     lambda event, neighbours: oracles.rdp_epsilon(event, DELTA, neighbours), 1e-4, 1e-3),
    (RenyiDivergences, SELECTIONS,
     lambda event, _: oracles.rdp_epsilon(ZeroConcentrated(100 * 0.1**2 / 8.0), DELTA), 1e-4, 1e-3),
    (RenyiDivergences, MINIMA,
     lambda event, neighbours: oracles.convert_epsilon(event, DELTA, neighbours), 1e-4, 1e-3),
    (LossDistributions, STEPS, pld_epsilon, 2e-3, 2e-3),
    (LossDistributions, Composed((Gaussian(9.0), STEPS)), pld_epsilon, 2e-3, 2e-3),
    (LossDistributions, Composed((Gaussian(3.0), Gaussian(9.0))), pld_epsilon, 1e-3, 1e-3),
    (Alternatives, OneOf((Gaussian(4.0), STEPS)),
     lambda event, neighbours: max(pld_epsilon(one, neighbours) for one in event.events), 2e-3, 2e-3),
    (AddedBudgets, Composed((MINIMA, Laplace(5.0))),
     lambda event, neighbours: oracles.corner_epsilon(MINIMA, DELTA, neighbours) + RELATIVE[neighbours] / 5.0,
     1e-6, 1e-6),
]  # fmt: skip
RELATIVE = {"replace_one": 2.0, "add_remove": 1.0}


@pytest.mark.parametrize("neighbours", NEIGHBOURS)
@pytest.mark.parametrize("case", ORACLES, ids=lambda case: f"{case[0].__name__}-{case[1].kind}")
def test_each_accountant_against_other_code(case, neighbours):
    kind, event, oracle, below, above = case
    accountant = kind(neighbours)
    assert accountant.knows(event)
    epsilon, other = accountant.epsilon(event, DELTA), oracle(event, neighbours)
    assert other * (1 - below) <= epsilon * (1 + 1e-9)
    assert epsilon <= other * (1 + above)
    # At less delta no less, and nothing is known at none but of pure budgets.
    assert accountant.epsilon(event, DELTA / 10) >= epsilon
    assert kind is PureBudgets or accountant.epsilon(event, 0.0) == math.inf
    assert accountant.account(event, DELTA)[:2] == (epsilon, DELTA)


def test_every_accountant_has_an_oracle():
    assert {case[0] for case in ORACLES} == set(ACCOUNTANTS)


@pytest.mark.parametrize("neighbours", NEIGHBOURS)
@pytest.mark.parametrize("event", ONE_OF_EACH, ids=lambda event: event.kind)
def test_the_account_is_the_least_of_those_that_know(event, neighbours):
    accounts = [
        accountant.account(event, DELTA)
        for accountant in (kind(neighbours) for kind in ACCOUNTANTS)
        if accountant.knows(event)
    ]
    assert account(event, DELTA, neighbours).epsilon == min(one.epsilon for one in accounts)
    # None is below what another code finds.
    for one in accounts:
        assert one.epsilon >= recompute_account(event, DELTA, neighbours).epsilon * 0.6


def pure_composition_delta(epsilon, share, count):
    """Delta of the worst mechanism with pure differential privacy, repeated: over how often it tells the truth."""
    truth = math.exp(share) / (1 + math.exp(share))
    total = 0.0
    for heads in range(count + 1):
        arrangements = math.comb(count, heads)
        p = arrangements * truth**heads * (1 - truth) ** (count - heads)
        q = arrangements * truth ** (count - heads) * (1 - truth) ** heads
        total += max(0.0, p - math.exp(epsilon) * q)
    return total


@pytest.mark.parametrize(("share", "count"), [(0.1, 100), (0.5, 20), (2.0, 3)])
def test_plain_budgets_compose_as_well_as_the_worst_mechanism(share, count):
    epsilon = account(SelfComposed(EpsilonDelta(share, 0.0), count), DELTA, "replace_one").epsilon
    assert epsilon <= count * share
    assert pure_composition_delta(epsilon, share, count) <= DELTA
    assert pure_composition_delta(epsilon * (1 - 1e-2), share, count) > DELTA


def selection_losses(scores, others, step_epsilon):
    """Probabilities of every outcome of one selection, for two neighbours."""
    both = [np.exp(step_epsilon * np.array(side) / 2) for side in (scores, others)]
    return both[0] / both[0].sum(), both[1] / both[1].sum()


@pytest.mark.parametrize("count", [1, 4])
def test_selections_cost_no_less_than_they_do(count):
    step = 0.7
    accounted = account(SelfComposed(ExponentialMechanism(step), count), DELTA, "replace_one")
    pure = account(SelfComposed(ExponentialMechanism(step), count), 0.0, "replace_one")
    assert pure.epsilon == pytest.approx(count * step)
    assert accounted.epsilon <= pure.epsilon
    for scores, others in (((0, 0, 0), (1, -1, -1)), ((1, 0, 0), (0, 1, 1)), ((0, 0), (1, -1))):
        p, q = selection_losses(scores, others, step)
        all_p, all_q = (
            np.array([math.prod(outcome) for outcome in itertools.product(side, repeat=count)]) for side in (p, q)
        )
        for one, two in ((all_p, all_q), (all_q, all_p)):
            assert np.maximum(one - math.exp(accounted.epsilon) * two, 0).sum() <= DELTA
            assert np.log(one / two).max() <= pure.epsilon + 1e-9


@pytest.mark.parametrize("neighbours", NEIGHBOURS)
@pytest.mark.parametrize("event", ONE_OF_EACH, ids=lambda event: event.kind)
def test_the_second_opinion_agrees(event, neighbours):
    first, second = account(event, DELTA, neighbours), recompute_account(event, DELTA, neighbours)
    assert 0 < first.epsilon < math.inf
    # It may be looser where the first took the better of several ways.
    assert first.epsilon * (1 - 1e-3) <= second.epsilon <= first.epsilon * (1.6 if "om" in event.kind else 1.001)


def test_the_second_opinion_on_calibrated_noise():
    for epsilon in (0.01, 1.0, 8.0, 40.0):
        event = Gaussian(gaussian_noise_multiplier(epsilon, DELTA))
        assert account(event, DELTA, "add_remove").epsilon == pytest.approx(epsilon, rel=1e-8)
        second = recompute_account(event, DELTA, "add_remove")
        assert second.accountant.startswith("privacy loss distributions")
        assert epsilon * (1 - 1e-8) <= second.epsilon <= epsilon * (1 + 1e-3)
    assert recompute_account(Laplace(2.0), 0.0, "replace_one")[:2] == (1.0, 0.0)
    assert recompute_account(ZeroConcentrated(0.1), DELTA, "replace_one").accountant.startswith("Renyi")


def test_nothing_protects_what_is_not_private():
    event = Composed((Gaussian(1.0), NonPrivate()))
    assert (
        account(event, DELTA, "replace_one").epsilon
        == math.inf
        == recompute_account(event, DELTA, "add_remove").epsilon
    )
    assert account(Gaussian(1.0), 0.0, "replace_one").epsilon == math.inf


@pytest.mark.parametrize("neighbours", NEIGHBOURS)
@pytest.mark.parametrize("first", range(len(ONE_OF_EACH) - 1), ids=lambda index: f"{index}-{ONE_OF_EACH[index].kind}")
def test_composition_costs_more_than_each_part_and_no_more_than_both(first, neighbours):
    for second in ONE_OF_EACH[first + 1 :]:
        both = account(Composed((ONE_OF_EACH[first], second)), 2 * DELTA, neighbours).epsilon
        each = [account(event, 2 * DELTA, neighbours).epsilon for event in (ONE_OF_EACH[first], second)]
        added = sum(account(event, DELTA, neighbours).epsilon for event in (ONE_OF_EACH[first], second))
        assert max(each) * (1 - 1e-3) <= both <= added * (1 + 2e-3), second


@pytest.mark.parametrize("event", ONE_OF_EACH, ids=lambda event: event.kind)
def test_groups_cost_more_and_no_more_than_plain_group_privacy(event):
    one = account(event, DELTA, "add_remove")
    assert group_account(event, 1, DELTA, "add_remove") == one
    two, three = (group_account(event, k, DELTA, "add_remove") for k in (2, 3))
    assert one.epsilon < two.epsilon < three.epsilon < math.inf
    # Plain group privacy from a delta that is small enough for it.
    inner = DELTA / (1 + math.exp(min(account(event, DELTA / 200, "add_remove").epsilon, 5.0)))
    if inner > 2e-6:
        assert two.epsilon <= 2 * account(event, inner, "add_remove").epsilon * 1.001


def test_groups_of_known_events():
    assert (
        group_account(Gaussian(6.0), 3, DELTA, "replace_one").epsilon
        == account(Gaussian(2.0), DELTA, "replace_one").epsilon
    )
    assert group_account(Laplace(6.0), 3, 0.0, "replace_one").epsilon == 1.0
    assert group_account(EpsilonDelta(0.5, 0.0), 4, 0.0, "add_remove").epsilon == 2.0
    zcdp = group_account(ZeroConcentrated(0.01), 3, DELTA, "add_remove").epsilon
    assert zcdp == account(ZeroConcentrated(0.09), DELTA, "add_remove").epsilon
    either = OneOf((Gaussian(4.0), Laplace(3.0)))
    dearest = max(group_account(event, 3, DELTA, "add_remove").epsilon for event in either.events)
    assert group_account(either, 3, DELTA, "add_remove").epsilon == dearest
    for k in (0, 1.0, True):
        with pytest.raises(ValueError, match="whole number"):
            group_account(Gaussian(1.0), k, DELTA, "add_remove")


@pytest.mark.parametrize("neighbours", NEIGHBOURS)
@pytest.mark.parametrize("k", [2, 3])
def test_a_group_s_delta_grows_with_epsilon(k, neighbours):
    """Of k steps from row to row each costs its delta, times e^epsilon for every step that follows."""
    event, delta = EpsilonDelta(0.5, 1e-6), 1e-6 * sum(math.exp(0.5 * j) for j in range(k))
    assert group_account(event, k, delta * (1 + 1e-9), neighbours).epsilon == pytest.approx(0.5 * k, rel=1e-12)
    assert group_account(event, k, delta * (1 - 1e-9), neighbours).epsilon == math.inf


def test_budgets_that_are_added_share_delta():
    steps, curve = SelfComposed(PoissonSampled(0.1, Gaussian(2.0)), 30), ZeroConcentrated(0.05)
    accounted = account(Composed((steps, curve, EpsilonDelta(0.1, 1e-6))), DELTA, "replace_one")
    assert accounted.accountant == "the budgets are added"
    each = [account(event, (DELTA - 1e-6) / 2, "replace_one").epsilon for event in (steps, curve)]
    assert accounted.epsilon == pytest.approx(0.1 + sum(each), rel=1e-12)


def test_a_group_of_drawn_rows_by_integration():
    """One step, of k rows that are drawn independently and all alike: the mixture's hockey stick, on a fine grid."""
    rate, multiplier, k, delta = 0.2, 1.1, 3, 1e-3
    x, width = np.linspace(-15.0, 20.0, 400_001, retstep=True)

    def density(mean):
        return np.exp(-((x - mean) ** 2) / (2 * multiplier**2)) / (multiplier * math.sqrt(2 * math.pi)) * width

    none = density(0.0)
    drawn = sum(math.comb(k, j) * rate**j * (1 - rate) ** (k - j) * density(j) for j in range(k + 1))

    def lost(epsilon):
        return max(np.maximum(a - math.exp(epsilon) * b, 0).sum() for a, b in ((none, drawn), (drawn, none)))

    group_epsilon = group_account(PoissonSampled(rate, Gaussian(multiplier)), k, delta, "add_remove").epsilon
    assert lost(group_epsilon) <= delta * (1 + 1e-6) < lost(0.98 * group_epsilon)


def test_groups_of_drawn_rows_cost_no_more_than_plain_group_privacy():
    steps = SelfComposed(PoissonSampled(0.05, Gaussian(1.5)), 300)
    alone = account(steps, DELTA, "add_remove").epsilon
    # As plain group privacy has it: 13.11.
    assert 3 * alone < group_account(steps, 3, DELTA, "add_remove").epsilon < 10.6
    both = group_account(Composed((steps, Gaussian(8.0))), 2, DELTA, "add_remove").epsilon
    assert group_account(steps, 2, DELTA, "add_remove").epsilon < both < 7.0
    # Larger groups, and replaced rows, as before.
    assert group_account(steps, 100, DELTA, "add_remove").epsilon > 1e5
    assert "times" in group_account(steps, 2, DELTA, "replace_one").accountant


@pytest.mark.parametrize(
    "other", [PerturbedObjectives(0.1, 0.05, 3, 10.0), ZeroConcentrated(0.05)], ids=["curve", "zcdp"]
)
def test_sampled_steps_compose_with_curves(other):
    """By Renyi divergences under add_remove, in less than the sum of the budgets; the second opinion agrees."""
    steps = SelfComposed(PoissonSampled(0.05, Gaussian(1.5)), 300)
    both = Composed((steps, other))
    accounted, second = account(both, DELTA, "add_remove"), recompute_account(both, DELTA, "add_remove")
    added = sum(account(event, DELTA / 2, "add_remove").epsilon for event in (steps, other))
    assert account(steps, DELTA, "add_remove").epsilon < accounted.epsilon < 0.95 * added
    assert accounted.accountant.startswith("Renyi")
    assert second.epsilon == pytest.approx(accounted.epsilon, rel=1e-4)
    assert account(both, DELTA, "replace_one").accountant == "the budgets are added"


def test_divergences_of_sampled_steps_are_those_of_the_library():
    from dp_accounting import rdp

    orders = [2.0, 2.5, 7.0, 33.25, 256.0]
    for rate, multiplier in ((0.01, 0.7), (0.3, 2.0)):
        event = dp_event(PoissonSampled(rate, Gaussian(multiplier)))
        ours = sampled_divergence(np.array(orders), rate, multiplier)
        for order, divergence in zip(orders, ours, strict=True):
            epsilon = rdp.RdpAccountant([order]).compose(event).get_epsilon(1e-200)
            theirs = epsilon - math.log1p(-1 / order) + (math.log(1e-200) + math.log(order)) / (order - 1)
            assert (
                theirs * (1 - 1e-6) - 1e-9
                <= divergence
                <= (theirs * (1 + 1e-6) + 1e-9 if order.is_integer() else 5 * theirs)
            )
    assert sampled_divergence(np.array([2000.0]), 0.1, 1.0)[0] == math.inf


@pytest.mark.parametrize(("epsilon", "replaced"), [(1.0, 2.15), (4.0, 9.08)])
def test_a_replaced_row_is_accounted_at_twice_the_sensitivity(epsilon, replaced):
    """By dp_accounting, and by the privacy curve of the mechanism, integrated."""
    multiplier = gaussian_noise_multiplier(epsilon, DELTA)
    accounts = relation_accounts(Gaussian(multiplier), 1, DELTA, "add_remove")
    assert list(accounts) == ["add_remove", "replace_one"]
    found = accounts["replace_one"].epsilon
    assert accounts["add_remove"].epsilon == pytest.approx(epsilon, rel=1e-9)
    assert round(found, 2) == replaced
    losses = pld.privacy_loss_distribution.from_gaussian_mechanism(multiplier, sensitivity=2.0)
    assert losses.get_epsilon_for_delta(DELTA) == pytest.approx(found, rel=1e-3)
    outputs = np.linspace(-40.0, 40.0, 400_001)
    near, far = (np.exp(-0.5 * ((outputs - at) / multiplier) ** 2) for at in (0.0, 2.0))
    delta = np.maximum(far - math.exp(found) * near, 0.0).sum() / near.sum()
    assert delta == pytest.approx(DELTA, rel=1e-3)
    # Twice epsilon holds at a larger delta alone.
    assert found > 2.0 * epsilon


@pytest.mark.parametrize(
    "event", [Laplace(3.0), Composed((Gaussian(9.0), Laplace(7.0))), OneOf((Laplace(4.0), Gaussian(8.0)))], ids=str
)
def test_a_replaced_row_by_the_losses_of_the_library(event):
    made = {Gaussian: "from_gaussian_mechanism", Laplace: "from_laplace_mechanism"}
    losses = [
        getattr(pld.privacy_loss_distribution, made[type(part)])(part.noise_multiplier, sensitivity=2.0)
        for part in getattr(event, "events", (event,))
    ]
    losses = [losses[0].compose(losses[1])] if isinstance(event, Composed) else losses
    known = max(one.get_epsilon_for_delta(DELTA) for one in losses)
    found = relation_accounts(event, 1, DELTA, "add_remove")["replace_one"].epsilon
    assert known * (1.0 - 1e-4) <= found <= known * 1.01


@pytest.mark.parametrize("event", [event for event in ONE_OF_EACH if "PoissonSampled" not in str(event)], ids=str)
def test_a_replaced_row_costs_no_more_than_a_group_of_two(event):
    """Plain group privacy for the row that goes and the one that comes; equal where noise is all there is."""
    replaced = account(double_sensitivity(event), DELTA, "replace_one").epsilon
    two = group_account(event, 2, DELTA, "add_remove").epsilon
    assert replaced <= two * (1.0 + 1e-9)
    if "PerturbedObjectives" not in str(event):
        assert replaced == pytest.approx(two, rel=1e-9)


@given(events)
@example(SelfComposed(PoissonSampled(1e-6, Gaussian(934_411.0)), 3080))
@example(SelfComposed(PoissonSampled(1e-6, Gaussian(410_109.0)), 618))
@example(SelfComposed(EpsilonDelta(1.9, 0.996), 267))
def test_a_replaced_row_costs_no_less_than_an_added_one(event):
    with np.errstate(all="ignore"):
        added = account(event, DELTA, "add_remove").epsilon
        accounts = relation_accounts(event, 1, DELTA, "add_remove")
        assert accounts.get("replace_one", (math.inf,))[0] >= added * (1.0 - 1e-6) - 1e-7
        # Nothing is said of rows that are added, by a proof for replaced ones.
        assert set(relation_accounts(event, 1, DELTA, "replace_one")) <= {"replace_one"}


def test_a_plain_budget_says_nothing_of_a_replaced_row():
    """Its delta would be larger: (1 + e^epsilon) delta."""
    assert set(relation_accounts(EpsilonDelta(1.0, DELTA), 1, DELTA, "add_remove")) == {"add_remove"}
    larger = (1.0 + math.e) * DELTA
    assert relation_accounts(EpsilonDelta(1.0, DELTA), 1, larger, "add_remove")["replace_one"].epsilon == 2.0


def test_several_drawn_rows_are_not_stated_as_replaced():
    """The bound for them, epsilon 1572 here, would be true and say nothing."""
    steps = SelfComposed(PoissonSampled(0.05, Gaussian(1.5)), 500)
    for event in (steps, OneOf((steps, Laplace(3.0)))):
        assert list(relation_accounts(event, 1, DELTA, "add_remove")) == ["add_remove", "replace_one"]
        assert list(relation_accounts(event, 5, DELTA, "add_remove")) == ["add_remove"]
