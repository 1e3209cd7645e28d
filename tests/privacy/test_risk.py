"""Trade-off curves of events: against closed forms, best tests of known distributions, and the accountants."""

import itertools
import math

import mpmath
import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr, ndtri

from privsvm.privacy.accountants import account
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
    relation_factor,
)
from privsvm.privacy.gate import LARGEST_EPSILON
from privsvm.privacy.losses import loss_distribution, loss_grid, transform_slack
from privsvm.privacy.mechanisms import LaplaceMechanism
from privsvm.privacy.risk import COUNT_GRID, LAPLACE_GRID, SMALLEST_RATE, trade_off
from privsvm.release.training.measuring import _noise

RATES = [0.0, 1e-9, 1e-6, 1e-4, 0.003, 0.01, 0.1, 0.3, 0.5, 0.8, 0.99, 1.0]
PRIORS = [0.0, 1e-4, 0.01, 0.2, 0.5, 0.7, 0.999, 1.0]
# How far above the best bound a number may be.
ABOVE = 1e-6


def gaussian_power(rate, mu):
    with mpmath.workdps(40):
        rate = mpmath.mpf(rate)
        if rate in (0, 1):
            return rate
        quantile = mpmath.sqrt(2) * mpmath.erfinv(2 * rate - 1)
        return mpmath.ncdf(quantile + mpmath.mpf(mu))


@given(st.floats(-4, 1), st.integers(1, 50), st.sampled_from(NEIGHBOURS))
@settings(max_examples=60, deadline=None)
def test_gaussian_noise_has_its_closed_form(log_signal, count, neighbours):
    multiplier = 10**-log_signal
    curve = trade_off(SelfComposed(Gaussian(multiplier), count), neighbours)
    with mpmath.workdps(40):
        mu = relation_factor(neighbours) * mpmath.sqrt(count) / mpmath.mpf(multiplier)
        assert mu <= curve.mu <= mu * (1 + 1e-12)
        for rate in RATES:
            exact = gaussian_power(rate, mu)
            assert exact <= curve.true_positive_rate(rate) <= exact + 1e-9
        advantage = 2 * mpmath.ncdf(mu / 2) - 1
        assert advantage <= curve.advantage <= advantage + 1e-9
        for prior in PRIORS[1:-1]:
            share = mpmath.mpf(prior)
            cut = mpmath.log((1 - share) / share) / mu
            exact = share * mpmath.ncdf(mu / 2 - cut) + (1 - share) * mpmath.ncdf(mu / 2 + cut)
            assert exact <= curve.guess(prior) <= exact + 1e-9


def best_powers(first, second):
    """False-positive and true-positive rates of the best tests of two distributions with the same outcomes, sorted."""
    order = np.argsort(-first / second, kind="stable")
    return np.append(0.0, np.cumsum(second[order])), np.append(0.0, np.cumsum(first[order]))


def assert_nowhere_below(curve, first, second, share=1e-12):
    """Compare a curve with the best tests, either way round."""
    for one, other in ((first, second), (second, first)):
        rates, powers = best_powers(one, other)
        for rate in RATES:
            power = float(np.interp(rate, rates, powers))
            assert curve.true_positive_rate(rate) >= power * (1 - share) - share
        assert curve.advantage >= 0.5 * np.abs(one - other).sum() - share
        for prior in PRIORS:
            assert curve.guess(prior) >= np.maximum(prior * one, (1 - prior) * other).sum() - share


def laplace_cells(scale, move):
    """Both distributions of a number of whole cells, with those beyond both centres as one each."""
    q = math.exp(-1.0 / scale)
    inner, tail = np.arange(1, move), 1.0 / (1.0 + q)
    first = np.concatenate([[tail], (1.0 - q) / (1.0 + q) * q**inner, [tail * q**move]])
    return first, first[::-1]


@pytest.mark.parametrize("moves", [(64,), (7,), (40, 24), (1, 63), (20, 20, 24)])
@pytest.mark.parametrize("scale", [64, 150, 400])
def test_laplace_noise_on_the_widest_grid_is_nowhere_below(moves, scale):
    """On one number or several: what moves one number as far shows as much or more."""
    curve = trade_off(OneOf((Laplace(scale / sum(moves)), Laplace(1e9))), "add_remove")
    first, second = np.ones(1), np.ones(1)
    for move in moves:
        one, other = laplace_cells(scale, move)
        first, second = np.outer(first, one).ravel(), np.outer(second, other).ravel()
        losses, inverse = np.unique(np.round(np.log(first / second), 9), return_inverse=True)
        first, second = (
            np.bincount(inverse, weights=probabilities, minlength=losses.size) for probabilities in (first, second)
        )
    assert_nowhere_below(curve, first, second, 1e-9)
    # Continuous noise on one number is on its side, too, and its curve is met.
    far = sum(moves) / scale
    assert curve.advantage == pytest.approx(-math.expm1(-far / 2), abs=1e-4)


@pytest.mark.parametrize("size", [1, 40])
@pytest.mark.parametrize("epsilon", [1e-3, 1.0, LARGEST_EPSILON])
def test_laplace_mechanisms_have_a_finer_grid_than_risks_assume(epsilon, size):
    mechanism = LaplaceMechanism(epsilon, 3.7, size)
    assert mechanism.grid / mechanism.noise_scale <= LAPLACE_GRID
    for neighbours in NEIGHBOURS:
        cells, scale = _noise(epsilon, neighbours)
        assert scale >= 1.0 / COUNT_GRID
        assert cells >= 1


@pytest.mark.parametrize("epsilon", [1e-3, 0.3, 1.0, 5.0, 40.0])
def test_laplace_noise_has_its_closed_form(epsilon):
    curve = trade_off(Laplace(1.0 / epsilon), "add_remove")
    for rate in RATES:
        likelier, middle = math.exp(epsilon) * rate, 0.5 * math.exp(-epsilon)
        if rate <= middle:
            exact = likelier
        elif rate <= 0.5:
            exact = 1 - 0.25 * math.exp(-epsilon) / rate
        else:
            exact = 1 - math.exp(-epsilon) * (1 - rate)
        assert exact * (1 - 1e-14) <= curve.true_positive_rate(rate) <= exact + 1e-9
    assert curve.guess(0.5) == pytest.approx(1 - 0.5 * math.exp(-epsilon / 2), abs=1e-9)
    mu = curve.mu
    for rate in np.geomspace(SMALLEST_RATE, 0.5, 200):
        assert gaussian_power(rate, mu) >= curve.true_positive_rate(rate) * (1 - 1e-9)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.7, 0.0), (2.0, 1e-5), (0.1, 0.2)])
def test_what_is_known_by_its_budget_alone_is_randomised_response_that_fails(epsilon, delta):
    curve = trade_off(EpsilonDelta(epsilon, delta), "replace_one", delta=delta)
    truth = (1 - delta) / (1 + math.exp(-epsilon))
    first = np.array([delta, truth, 1 - delta - truth, 0.0]) + 1e-300
    second = first[::-1]
    assert_nowhere_below(curve, first, second)
    rates, powers = best_powers(first, second)
    for rate in RATES[1:]:
        assert curve.true_positive_rate(rate) <= float(np.interp(rate, rates, powers)) + 1e-9
    assert curve.true_positive_rate(0.0) == pytest.approx(delta, abs=1e-9)
    assert curve.guess(0.5) == pytest.approx(delta + truth, abs=1e-9)


@pytest.mark.parametrize("neighbours", NEIGHBOURS)
@pytest.mark.parametrize(("sigma", "q"), [(0.5, 0.01), (1.0, 0.3), (4.0, 0.7)])
def test_one_step_on_drawn_rows_is_nowhere_below_the_mixture(neighbours, sigma, q):
    """Likelihood ratios are monotone, so the best tests are thresholds, on a grid that ends nowhere near its tails."""
    curve = trade_off(PoissonSampled(q, Gaussian(sigma)), neighbours)
    edges = np.linspace(-9 * sigma - 1, 9 * sigma + 1, 40_001)

    def cells(mean):
        return np.diff(ndtr((np.concatenate([[-np.inf], edges, [np.inf]]) - mean) / sigma))

    drawn, others = (1 - q) * cells(0) + q * cells(1), (1 - q) * cells(0) + q * cells(-1)
    plain = others if neighbours == "replace_one" else cells(0)
    inside = (drawn > 1e-15) & (plain > 1e-15)
    first, second = drawn[inside], plain[inside]
    assert_nowhere_below(curve, first, second, 1e-9)
    rates, powers = best_powers(first, second)
    back_rates, back_powers = best_powers(second, first)
    for rate in (1e-4, 0.01, 0.2, 0.7):
        exact = max(np.interp(rate, rates, powers), np.interp(rate, back_rates, back_powers))
        assert curve.true_positive_rate(rate) <= exact * 1.002 + 1e-6


@pytest.mark.parametrize("neighbours", NEIGHBOURS)
@pytest.mark.parametrize(
    "event",
    [
        SelfComposed(PoissonSampled(0.01, Gaussian(0.9)), 800),
        Composed((SelfComposed(PoissonSampled(0.1, Gaussian(5.0)), 60), Gaussian(30.0), EpsilonDelta(0.1, 1e-7))),
        SelfComposed(Laplace(9.0), 5),
        Composed((Laplace(6.0), Gaussian(8.0))),
        SelfComposed(EpsilonDelta(0.2, 0.0), 9),
    ],
    ids=str,
)
def test_losses_give_what_the_pessimistic_account_gives(event, neighbours):
    curve = trade_off(event, neighbours)
    event_counts = [
        (component.event, component.count) if isinstance(component, SelfComposed) else (component, 1)
        for component in (event.events if isinstance(event, Composed) else (event,))
    ]
    losses = loss_distribution(event_counts, neighbours, loss_grid(event_counts))
    epsilons = np.linspace(0, float(losses.get_epsilon_for_delta(1e-6)), 100_001)
    deltas = np.asarray(losses.get_delta_for_epsilon(epsilons))
    for rate in RATES:
        up, down = np.exp(epsilons) * rate + deltas, 1 - np.exp(-epsilons) * (1 - rate - deltas)
        power = curve.true_positive_rate(rate)
        assert power <= min(up.min(), down.min()) + transform_slack(event_counts) + ABOVE
        if not isinstance(event_counts[0][0], EpsilonDelta):
            assert power >= min(up.min(), down.min(), 1.0) * (1 - 1e-9) - 1e-6
    assert curve.advantage <= deltas[0] + transform_slack(event_counts) + ABOVE


@pytest.mark.parametrize("rho", [1e-5, 0.003, 0.1, 2.0])
def test_what_covers_gaussian_noise_lies_above_its_curve(rho):
    noise = trade_off(Gaussian((2 * rho) ** -0.5), "add_remove")
    cover = trade_off(ZeroConcentrated(rho), "add_remove")
    for rate in RATES:
        assert cover.true_positive_rate(rate) >= noise.true_positive_rate(rate) - 1e-9
    assert noise.advantage <= cover.advantage <= 1.4 * noise.advantage
    assert noise.mu <= cover.mu


@pytest.mark.parametrize(("step", "count"), [(0.02, 300), (0.5, 20), (3.0, 2)])
def test_selections_are_nowhere_below_choices_between_two(step, count):
    """Losses of one lie within a range of the step's epsilon."""
    curve = trade_off(SelfComposed(ExponentialMechanism(step), count), "replace_one")
    times = np.arange(count + 1)
    for share in (0.5, 0.9):
        gain = math.exp(step * share), math.exp(-step * (1 - share))
        # The probability with which both losses are possible.
        other = (1 - gain[1]) / (gain[0] - gain[1])
        chances = [scipy.stats.binom.pmf(times, count, chance) for chance in (other * gain[0], other)]
        inside = np.minimum(*chances) > 1e-300
        assert_nowhere_below(curve, chances[0][inside], chances[1][inside], 1e-9)


def random_event(rng, depth=0):
    """Make an event of any kind, in proportion."""

    def between(low, high):
        return float(np.exp(rng.uniform(math.log(low), math.log(high))))

    simple = [
        lambda: Gaussian(between(0.5, 300.0)),
        lambda: Laplace(between(0.3, 100.0)),
        lambda: ExponentialMechanism(between(0.01, 2.0)),
        lambda: ZeroConcentrated(between(1e-4, 1.0)),
        lambda: EpsilonDelta(between(0.01, 4.0), between(1e-12, 1e-6)),
        lambda: PerturbedObjectives(
            between(0.003, 1.0), between(1e-4, 0.3), int(rng.integers(1, 5)), between(5.0, 200.0)
        ),
        lambda: PoissonSampled(between(1e-3, 0.5), Gaussian(between(0.7, 10.0))),
    ]
    within = [
        lambda: SelfComposed(random_event(rng, depth + 1), int(rng.integers(1, 30))),
        lambda: Composed(tuple(random_event(rng, depth + 1) for _ in range(2))),
        lambda: OneOf((random_event(rng, 2), Laplace(between(0.5, 20.0)))),
        lambda: BestOfNegativeBinomial(1.0, between(0.02, 0.9), Gaussian(between(3.0, 50.0))),
        lambda: BestOfPoisson(between(0.5, 30.0), Gaussian(between(3.0, 50.0))),
    ]
    return rng.choice(simple if depth > 1 else [*simple, *within])()


@pytest.mark.parametrize("seed", range(20))
def test_random_guarantees_are_bounded_by_the_account_and_by_each_other(seed):
    """Twenty curves: at most a millionth above the account's (epsilon, delta), and within the general bounds."""
    rng = np.random.default_rng([seed, 44])
    judged = 0
    while judged < 20:
        event, neighbours = random_event(rng), str(rng.choice(NEIGHBOURS))
        delta = 10.0 ** rng.uniform(-8, -3)
        stated = account(event, delta, neighbours)
        if not math.isfinite(stated.epsilon):
            continue
        judged += 1
        curve = trade_off(event, neighbours, delta=delta)
        powers = [curve.true_positive_rate(rate) for rate in RATES]
        assert powers == sorted(powers)
        assert all(rate <= power <= 1 for rate, power in zip(RATES, powers, strict=True))
        for rate, power in zip(RATES, powers, strict=True):
            likelier = math.exp(min(stated.epsilon, 700.0)) * rate + delta
            rarer = 1 - math.exp(-stated.epsilon) * (1 - rate - delta)
            assert power <= min(likelier, rarer, 1.0) + ABOVE
        assert curve.guess(0.5) == pytest.approx(0.5 + 0.5 * curve.advantage, abs=1e-9)
        assert 0.5 + 0.5 * curve.advantage <= (1 + delta) / (1 + math.exp(-stated.epsilon)) + ABOVE
        guesses = [curve.guess(prior) for prior in PRIORS]
        assert all(guess >= max(prior, 1 - prior) - 1e-12 for guess, prior in zip(guesses, PRIORS, strict=True))
        # A test that is as good as the curve says guesses no better.
        for prior, (rate, power) in itertools.product(PRIORS, zip(RATES, powers, strict=True)):
            assert prior * power + (1 - prior) * (1 - rate) <= curve.guess(prior) + 2e-5
        if math.isfinite(curve.mu):
            for rate in 10.0 ** rng.uniform(math.log10(SMALLEST_RATE), -0.4, size=5):
                power = curve.true_positive_rate(float(rate))
                assert power <= ndtr(ndtri(rate) + curve.mu) + 1e-9 or 1 - power < SMALLEST_RATE


@pytest.mark.parametrize("neighbours", NEIGHBOURS)
@pytest.mark.parametrize(
    "event",
    [
        Gaussian(9.0),
        Laplace(4.0),
        ZeroConcentrated(0.02),
        PerturbedObjectives(0.1, 0.02, 2, 30.0),
        EpsilonDelta(0.3, 1e-7),
        SelfComposed(PoissonSampled(0.02, Gaussian(1.5)), 100),
        OneOf((Gaussian(9.0), Laplace(4.0))),
        BestOfPoisson(3.0, Gaussian(9.0)),
    ],
    ids=lambda event: event.kind,
)
def test_a_group_risks_more_the_larger_it_is_and_no_more_than_plain_group_privacy(event, neighbours):
    curves = [trade_off(event, neighbours, rows, 1e-5) for rows in (1, 2, 5)]
    for rate in (1e-4, 0.01, 0.3):
        powers = [curve.true_positive_rate(rate) for curve in curves]
        assert powers == sorted(powers)
        for rows, power in zip((1, 2, 5), powers, strict=True):
            # One row after the other is exchanged: each time the curve may be used once more.
            repeated = rate
            for _ in range(rows):
                repeated = curves[0].true_positive_rate(min(repeated, 1.0))
            if isinstance(event, (Gaussian, Laplace)):
                assert power <= repeated + ABOVE
    assert curves[0].advantage < curves[1].advantage < curves[2].advantage
    assert curves[0].guess(0.1) <= curves[2].guess(0.1)


def test_nothing_is_bounded_where_nothing_protects():
    curve = trade_off(NonPrivate(), "replace_one", delta=1e-5)
    assert curve.true_positive_rate(0.0) == curve.advantage == curve.guess(0.3) == 1.0
    assert curve.mu == math.inf
    for asked in (
        lambda: curve.guess(1.1),
        lambda: curve.true_positive_rate(-0.1),
        lambda: trade_off(Gaussian(1.0), "replace_one", 0),
    ):
        with pytest.raises(ValueError, match="must"):
            asked()
