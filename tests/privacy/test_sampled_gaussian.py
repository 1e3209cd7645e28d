"""Poisson-sampled Gaussian steps: accounting against exact formulas, and calibration."""

import math

import dp_accounting
import mpmath
import numpy as np
import pytest
from dp_accounting import pld
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr
from tests.privacy.oracles import epsilon_of, sampled_gaussian_epsilon

from privsvm.privacy.accountants import LossDistributions
from privsvm.privacy.accounting import calibrate_sampled_gaussian, gaussian_epsilon
from privsvm.privacy.events import Gaussian
from privsvm.privacy.mechanisms import SampledGaussianSteps

RELATIONS = ["add_remove", "replace_one"]
DELTA = 1e-5


def pairs(relation, q):
    """Weights of the means -1, 0 and 1 of one step's output on two neighbours, both ways round."""
    if relation == "replace_one":
        return [((q, 1 - q, 0.0), (0.0, 1 - q, q)), ((0.0, 1 - q, q), (q, 1 - q, 0.0))]
    return [((0.0, 1 - q, q), (0.0, 1.0, 0.0)), ((0.0, 1.0, 0.0), (0.0, 1 - q, q))]


def one_step_delta(epsilon, p, q, sigma):
    """Hockey-stick divergence of two mixtures of normals around -1, 0 and 1, with 40 digits."""
    with mpmath.workdps(40):
        sigma, factor = mpmath.mpf(sigma), mpmath.exp(epsilon)

        def difference(x):
            kernel = [mpmath.exp(-(((x - mean) / sigma) ** 2) / 2) for mean in (-1, 0, 1)]
            return mpmath.fdot(p, kernel) - factor * mpmath.fdot(q, kernel)

        def above(weights, x):
            return mpmath.fdot(weights, [mpmath.ncdf((mean - x) / sigma) for mean in (-1, 0, 1)])

        # The likelihood ratio is monotone: the event is all that lies on one side of the point where it crosses.
        low, high = -40 * sigma - 2, 40 * sigma + 2
        ends = difference(low) > 0, difference(high) > 0
        if ends[0] == ends[1]:
            return 1 - factor if ends[0] else mpmath.mpf(0)
        while high - low > mpmath.mpf(10) ** -25:
            middle = (low + high) / 2
            low, high = (middle, high) if (difference(middle) > 0) == ends[0] else (low, middle)
        value = above(p, low) - factor * above(q, low)
        return value if ends[1] else (1 - factor) - value


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize(("sigma", "q"), [(0.4, 0.01), (0.8, 0.002), (1.0, 0.3), (3.0, 0.9), (15.0, 0.1), (0.3, 0.5)])
def test_one_step_is_the_exact_mixture_s_both_ways(relation, sigma, q):
    epsilon = sampled_gaussian_epsilon(sigma, DELTA, q, 1, relation)
    assert epsilon > 0

    def worst(epsilon):
        return max(one_step_delta(epsilon, *pair, sigma) for pair in pairs(relation, q))

    assert worst(epsilon) <= DELTA
    assert worst(0.998 * epsilon) > DELTA


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize(("sigma", "n_steps", "releases"), [(0.7, 1, ()), (3.0, 40, ()), (50.0, 20000, (9.0, 4.0))])
def test_without_sampling_it_is_one_gaussian_release(relation, sigma, n_steps, releases):
    """With twice the sensitivity for a replaced row, whose vector may turn into its opposite."""
    mu = math.sqrt(n_steps / sigma**2 + sum(r**-2 for r in releases)) * (2 if relation == "replace_one" else 1)
    epsilon = sampled_gaussian_epsilon(sigma, DELTA, 1.0, n_steps, relation, releases)
    delta = ndtr(mu / 2 - epsilon / mu) - math.exp(epsilon) * ndtr(-mu / 2 - epsilon / mu)
    assert delta == pytest.approx(DELTA, rel=1e-5)
    # dp_accounting means the same by the relations.
    kind = dp_accounting.NeighboringRelation["REPLACE_ONE" if relation == "replace_one" else "ADD_OR_REMOVE_ONE"]
    theirs = pld.PLDAccountant(kind, 1e-3)
    theirs.compose(dp_accounting.GaussianDpEvent(sigma), n_steps)
    for r in releases:
        theirs.compose(dp_accounting.GaussianDpEvent(r))
    assert theirs.get_epsilon(DELTA) == pytest.approx(epsilon, rel=2e-3)
    # And sampling nearly all rows is nearly the same.
    nearly = sampled_gaussian_epsilon(sigma, DELTA, 1 - 1e-7, n_steps, relation, releases)
    assert nearly == pytest.approx(epsilon, rel=2e-3)


def losses(relation, q, sigma):
    """Grid of one step's outputs: probabilities under the first neighbour, and privacy losses, both ways round."""
    x = np.linspace(-12 * sigma - 1, 12 * sigma + 1, 8001)
    kernel = np.exp(-(((x[:, None] - [-1, 0, 1]) / sigma) ** 2) / 2)
    for first, second in pairs(relation, q):
        p, other = kernel @ first, kernel @ second
        yield p / p.sum(), np.log(p / other)


def gaussian_delta(epsilon, mu):
    return ndtr(mu / 2 - epsilon / mu) - np.exp(epsilon) * ndtr(-mu / 2 - epsilon / mu)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize(
    ("sigma", "q", "releases"), [(1.1, 0.2, (5.0,)), (0.6, 0.01, (20.0, 7.0)), (6.0, 0.5, (30.0,))]
)
def test_releases_before_a_step_compose_exactly(relation, sigma, q, releases):
    """delta(epsilon) is the expectation, over the step's privacy loss L, of the releases' delta(epsilon - L)."""
    mu = math.sqrt(sum(r**-2 for r in releases)) * (2 if relation == "replace_one" else 1)
    epsilon = sampled_gaussian_epsilon(sigma, DELTA, q, 1, relation, releases)

    def worst(epsilon):
        return max(float(p @ gaussian_delta(epsilon - loss, mu)) for p, loss in losses(relation, q, sigma))

    assert worst(epsilon) <= DELTA
    assert worst(0.997 * epsilon) > DELTA


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize(("sigma", "q", "n_steps"), [(1.0, 0.1, 3), (0.7, 0.02, 5)])
def test_a_few_steps_lie_between_losses_rounded_up_and_down(relation, sigma, q, n_steps):
    """The same composition by plain convolution of privacy losses on a grid, without dp_accounting."""
    width = 2e-3
    epsilon = sampled_gaussian_epsilon(sigma, DELTA, q, n_steps, relation)

    def delta(epsilon, rounding):
        worst = 0.0
        for p, loss in losses(relation, q, sigma):
            index = rounding(loss / width).astype(int)
            one = np.bincount(index - index.min(), weights=p)
            masses = one
            for _ in range(n_steps - 1):
                masses = np.convolve(masses, one)
            total = (n_steps * index.min() + np.arange(masses.size)) * width
            worst = max(worst, float(np.sum(masses * -np.expm1(np.minimum(epsilon - total, 0)))))
        return worst

    assert delta(epsilon, np.floor) <= DELTA
    assert delta(epsilon * 0.997, np.ceil) > DELTA


def test_many_steps_lie_within_one_percent_of_an_optimistic_estimate():
    sigma, q, n_steps = 1.0, 0.02, 300
    for relation, kind in (("add_remove", "ADD_OR_REMOVE_ONE"), ("replace_one", "REPLACE_ONE")):
        epsilon = sampled_gaussian_epsilon(sigma, DELTA, q, n_steps, relation)
        low = pld.privacy_loss_distribution.from_gaussian_mechanism(
            sigma, pessimistic_estimate=False, value_discretization_interval=1e-4, sampling_prob=q,
            use_connect_dots=False, neighboring_relation=dp_accounting.NeighboringRelation[kind],
        ).self_compose(n_steps)  # fmt: skip
        assert 0 <= epsilon / low.get_epsilon_for_delta(DELTA) - 1 < 0.01


@given(st.floats(-0.5, 1.5), st.floats(-2.5, -0.05), st.integers(1, 400), st.sampled_from(RELATIONS),
       st.sampled_from([(), (8.0,)]))  # fmt: skip
@settings(max_examples=10, deadline=None)
def test_more_noise_fewer_rows_and_fewer_steps_cost_less(log_sigma, log_q, n_steps, relation, releases):
    sigma, q = 10**log_sigma, 10**log_q
    epsilon = sampled_gaussian_epsilon(sigma, DELTA, q, n_steps, relation, releases)
    # The grid of losses may cost 1 in 1000.
    for other in (
        sampled_gaussian_epsilon(1.05 * sigma, DELTA, q, n_steps, relation, releases),
        sampled_gaussian_epsilon(sigma, DELTA, 0.95 * q, n_steps, relation, releases),
        sampled_gaussian_epsilon(sigma, DELTA, q, max(1, n_steps - 1 - n_steps // 20), relation, releases),
        sampled_gaussian_epsilon(sigma, 2 * DELTA, q, n_steps, relation, releases),
        sampled_gaussian_epsilon(sigma, DELTA, q, n_steps, relation, tuple(2 * r for r in releases)),
    ):
        assert other <= epsilon * 1.001 + 1e-9


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize(
    ("epsilon", "q", "n_steps", "releases"),
    [
        (0.05, 0.002, 1, ()),
        (0.05, 0.002, 20000, ()),
        (1.0, 0.02, 1500, ()),
        (1.0, 0.02, 1500, (12.0, 20.0)),
        (16.0, 0.002, 20000, ()),
        (16.0, 0.3, 1, ()),
        (4.0, 1.0, 50, (3.0,)),
        (1e-3, 0.5, 1000, ()),
    ],
)
def test_calibrated_noise_is_enough_and_not_much_more(relation, epsilon, q, n_steps, releases):
    multiplier = calibrate_sampled_gaussian(epsilon, DELTA, q, n_steps, relation, releases)
    assert sampled_gaussian_epsilon(multiplier, DELTA, q, n_steps, relation, releases) <= epsilon
    assert sampled_gaussian_epsilon(multiplier * 0.999, DELTA, q, n_steps, relation, releases) > epsilon
    if q < 1:
        assert float(f"{multiplier:.4e}") == multiplier


def test_where_nothing_is_needed_the_least_noise_is_used():
    """A row that is drawn with a probability below delta may show."""
    assert calibrate_sampled_gaussian(1.0, 1e-3, 1e-4, 5, "add_remove") == 0.05
    assert sampled_gaussian_epsilon(0.05, 1e-3, 1e-4, 5, "add_remove") == 0.0
    assert sampled_gaussian_epsilon(0.01, 1e-5, 0.5, 1, "add_remove") > 1000


def test_an_infinite_release_costs_nothing():
    plan = (1.0, DELTA, 0.1, 10, "add_remove")
    assert calibrate_sampled_gaussian(*plan, (math.inf,)) == calibrate_sampled_gaussian(*plan)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"epsilon": 0.0}, "epsilon=0.0"), ({"epsilon": math.inf}, "epsilon=inf"), ({"delta": 0.0}, "delta=0.0"),
        ({"delta": 1e-12}, "delta=1e-12: must be at least 1e-09"), ({"sample_rate": 0.0}, "sample_rate=0.0"),
        ({"sample_rate": 1.1}, "sample_rate=1.1"), ({"sample_rate": math.nan}, "sample_rate=nan"),
        ({"n_steps": 0}, "n_steps=0"), ({"n_steps": 1.5}, "n_steps=1.5"), ({"n_steps": 10**8}, "n_steps=100000000"),
        ({"neighbours": "add_remov"}, "neighbours='add_remov'.*add_remove"), ({"releases": (0.0,)}, "releases="),
        ({"releases": (math.nan,)}, "releases="),
        ({"releases": (2.0,)}, r"releases=\(2.0,\): alone they cost epsilon"),
    ],
)  # fmt: skip
def test_bad_arguments_are_named(changes, named):
    plan = {"epsilon": 1.0, "delta": DELTA, "sample_rate": 0.1, "n_steps": 10, "neighbours": "add_remove"} | changes
    with pytest.raises(ValueError, match=named):
        calibrate_sampled_gaussian(**plan)
    with pytest.raises(ValueError, match=named):
        SampledGaussianSteps(**plan, max_grad_norm=1.0)


@pytest.mark.parametrize("value", [0.0, -1.0, math.nan])
def test_bad_noise_and_norms_are_named(value):
    with pytest.raises(ValueError, match="noise_multiplier is"):
        sampled_gaussian_epsilon(value, DELTA, 0.1, 10, "add_remove")
    with pytest.raises(ValueError, match="max_grad_norm="):
        SampledGaussianSteps(
            epsilon=1.0, delta=DELTA, neighbours="add_remove", sample_rate=0.1, n_steps=10, max_grad_norm=value
        )


def test_the_mechanism_says_what_the_accountant_found():
    plan = {"delta": DELTA, "sample_rate": 0.1, "n_steps": 10, "neighbours": "replace_one", "releases": (20.0,)}
    steps = SampledGaussianSteps(epsilon=1.0, max_grad_norm=0.5, **plan)
    assert steps.noise_multiplier == calibrate_sampled_gaussian(1.0, **plan)
    assert steps.noise_scale == 0.5 * steps.noise_multiplier
    assert 0.999 < epsilon_of(steps) <= 1.0


def test_the_round_off_of_transforms_is_taken_off_delta():
    """Epsilon at twice the transforms' error is no less than the exact epsilon there."""
    for neighbours, factor in (("replace_one", 2), ("add_remove", 1)):
        epsilon = LossDistributions(neighbours).epsilon(Gaussian(5.0), 2e-10)
        assert epsilon >= gaussian_epsilon(5.0 / factor, 1e-10)
        assert gaussian_epsilon(5.0 / factor, 1e-10) > 1.005 * gaussian_epsilon(5.0 / factor, 2e-10)
