"""The best of a random number of runs, against enumeration and dp_accounting."""

import math

import mpmath
import numpy as np
import pytest
import scipy.special
import scipy.stats
from dp_accounting.rdp import rdp_privacy_accountant as library
from hypothesis import given, settings
from hypothesis import strategies as st

from privsvm.numerics.noise.stopping_draws import draw_choices, negative_binomial_runs, poisson_runs
from privsvm.privacy.accountants import account
from privsvm.privacy.events import (
    BestOfNegativeBinomial,
    BestOfPoisson,
    Composed,
    EpsilonDelta,
    Gaussian,
    OneOf,
    PoissonSampled,
)
from privsvm.privacy.gaussian_delta import gaussian_delta
from privsvm.privacy.random_stopping import (
    best_of_negative_binomial,
    best_of_poisson,
    negative_binomial_gamma,
    negative_binomial_mean,
    poisson_parameter,
    renyi_delta,
)

ORDERS = np.concatenate([1.0 + np.geomspace(0.05, 300, 60)])


def negative_binomial(shape, gamma, most):
    """Probabilities of k = 1..most runs, by their ratios and their sum: so many that the rest is below round-off."""
    ratios = (1 - gamma) * (np.arange(1, most) + shape) / (np.arange(1, most) + 1)
    masses = np.cumprod(np.concatenate([[1.0], ratios]))
    assert masses[-1] < 1e-16 * masses.sum()
    return masses / masses.sum()


def poisson(parameter, most):
    masses = scipy.stats.poisson.pmf(np.arange(1, most + 1), parameter)
    assert masses[-1] < 1e-16
    return masses / masses.sum()


def best_of(single, runs):
    """Probabilities that each outcome is the best one, the last being the best of all: by adding up over k."""
    below = np.concatenate([[0.0], np.cumsum(single)])
    below[-1] = 1.0
    powers = below[None, :] ** np.arange(1, runs.size + 1)[:, None]
    return runs @ (powers[:, 1:] - powers[:, :-1])


def divergence(p, q, orders):
    """Of both directions the larger one; the logarithm of a sum, so that nothing overflows."""
    logs = [
        np.logaddexp.reduce(orders[:, None] * np.log(a) + (1 - orders[:, None]) * np.log(b), axis=1) / (orders - 1)
        for a, b in ((p, q), (q, p))
    ]
    return np.maximum(*logs)


def delta_of(p, q):
    def delta(epsilons):
        grown = np.exp(epsilons)[:, None]
        return np.maximum(np.maximum(p - grown * q, 0).sum(axis=1), np.maximum(q - grown * p, 0).sum(axis=1))

    return delta


weights = st.lists(st.floats(0.02, 1.0), min_size=2, max_size=5)


def candidates(draws, ratio):
    """Outcomes of a single run on two neighbours: the second one's probabilities are within a factor of the first's."""
    p = np.array(draws)
    q = p * np.exp(ratio * np.cos(7.0 * np.arange(p.size) + p.sum()))
    return p / p.sum(), q / q.sum()


@given(weights, st.floats(0.0, 2.0), st.floats(-0.95, 3.0), st.floats(0.02, 0.95))
@settings(max_examples=100, deadline=None)
def test_the_bound_holds_of_few_candidates_by_enumeration(draws, ratio, shape, gamma):
    p, q = candidates(draws, ratio)
    runs = negative_binomial(shape, gamma, 4000)
    exact = divergence(best_of(p, runs), best_of(q, runs), ORDERS)
    bound = best_of_negative_binomial(lambda orders: divergence(p, q, orders), ORDERS, shape, gamma)
    assert (exact <= bound + 1e-9).all()
    assert negative_binomial_mean(shape, gamma) == pytest.approx(runs @ np.arange(1, 4001), rel=1e-9)


@given(weights, st.floats(0.0, 2.0), st.floats(0.05, 40.0))
@settings(max_examples=100, deadline=None)
def test_the_bound_of_poisson_runs_holds_by_enumeration(draws, ratio, parameter):
    p, q = candidates(draws, ratio)
    runs = poisson(parameter, 300)
    exact = divergence(best_of(p, runs), best_of(q, runs), ORDERS)
    single = lambda orders: divergence(p, q, orders)  # noqa: E731
    sharp = best_of_poisson(single, ORDERS, parameter, delta_of(p, q))
    assert (exact <= sharp + 1e-9).all()
    # With delta by Renyi divergences it is a bound too, and no sharper one.
    assert (renyi_delta(single, np.array([0.01, 0.3, 2.0])) >= delta_of(p, q)(np.array([0.01, 0.3, 2.0])) - 1e-12).all()
    assert (sharp <= best_of_poisson(single, ORDERS, parameter, lambda e: renyi_delta(single, e)) + 1e-9).all()


@pytest.mark.parametrize("shape", [0.0, 0.5, 1.0, 3.0])
@pytest.mark.parametrize("mean", [1.5, 10.0, 300.0])
@pytest.mark.parametrize("signal", [0.05, 0.5])
def test_negative_binomial_runs_cost_what_dp_accounting_says(shape, mean, signal):
    gamma = negative_binomial_gamma(shape, mean)
    assert negative_binomial_mean(shape, gamma) == pytest.approx(mean, rel=1e-9)
    orders = 1.0 + np.geomspace(1e-2, 1e4, 400)
    theirs = library._compute_rdp_repeat_and_select(orders, orders * signal**2 / 2, mean, shape)
    ours = best_of_negative_binomial(lambda at: at * signal**2 / 2, orders, shape, gamma)
    # They use what larger orders give for small ones.
    ours = np.minimum.accumulate(ours[::-1])[::-1]
    assert (ours <= theirs * (1 + 1e-6)).all()
    assert np.allclose(ours, theirs, rtol=2e-3)


@pytest.mark.parametrize("mean", [1.0, 10.0, 100.0])
def test_poisson_runs_cost_what_dp_accounting_says_but_for_no_run(mean):
    orders = 1.0 + np.geomspace(1e-2, 1e4, 400)
    curve = lambda at: at * 0.1**2 / 2  # noqa: E731
    theirs = library._compute_rdp_repeat_and_select(orders, curve(orders), mean, math.inf)
    ours = best_of_poisson(curve, orders, mean, lambda epsilons: renyi_delta(curve, epsilons))
    none = math.exp(-mean)
    # Theirs has the mean with 0, and delta from the orders that are given.
    theirs = theirs - math.log1p(-none) / (orders - 1)
    assert np.allclose(ours, theirs, rtol=5e-3, atol=1e-9)
    assert poisson_parameter(mean / (1 - none)) == pytest.approx(mean, rel=1e-9)


@pytest.mark.parametrize("seed", range(12))
def test_no_bound_lies_below_its_formula_in_many_digits(seed):
    """Where the mean is 1 but for the last digits, its logarithm used to be too small; gamma is tiny and near 1."""
    rng = np.random.default_rng(seed)
    shape = [0.0, rng.uniform(-0.99, 5.0), 10.0 ** rng.uniform(-18, 0), -(10.0 ** rng.uniform(-18, -0.01))][seed % 4]
    gamma = [10.0 ** rng.uniform(-290, -1), 1.0 - 10.0 ** rng.uniform(-15, -1)][seed % 2]
    signal, parameter = 10.0 ** rng.uniform(-6, 2), 10.0 ** rng.uniform(-15, 4)
    orders = 1.0 + np.array([1e-2, rng.uniform(0.1, 5.0), 10.0 ** rng.uniform(1, 9)])
    curve = lambda at: at * (signal**2 / 2)  # noqa: E731
    bounds = best_of_negative_binomial(curve, orders, shape, gamma)
    poisson_found = best_of_poisson(
        curve,
        orders,
        parameter,
        lambda epsilons: np.array([gaussian_delta(float(grid_epsilon), signal) for grid_epsilon in epsilons]),
    )
    with mpmath.workdps(60):
        eta, rest, half = mpmath.mpf(shape), mpmath.mpf(gamma), mpmath.mpf(signal**2 / 2)
        share = mpmath.log(1 / rest) if shape == 0.0 else (1 - rest**eta) / eta
        order = max(mpmath.sqrt(mpmath.log(1 / rest) / half), mpmath.mpf(1))
        cost = (1 + eta) * ((order - 1) * half + mpmath.log(1 / rest) / order)
        mu, wide = mpmath.mpf(parameter), mpmath.mpf(signal)
        for value, other, at in zip(bounds, poisson_found, map(mpmath.mpf, orders.tolist()), strict=True):
            exact = at * half + cost + mpmath.log((1 - rest) / (rest * share)) / (at - 1)
            assert -1e-9 <= (value - exact) / exact <= 1e-2 or 0 <= value - exact < 1e-9
            epsilon = mpmath.log(at / (at - 1))
            delta = mpmath.ncdf(wide / 2 - epsilon / wide) - mpmath.exp(epsilon) * mpmath.ncdf(
                -wide / 2 - epsilon / wide
            )
            exact = at * half + mu * delta + mpmath.log(mu / (1 - mpmath.exp(-mu))) / (at - 1)
            assert -1e-9 <= (other - exact) / exact <= 1e-5 or 0 <= other - exact < 1e-9


def test_numbers_beyond_floating_point_are_bounded_by_nothing():
    """They used to end in errors of arithmetic."""
    for event in (Gaussian(1e-200), BestOfNegativeBinomial(-0.99, 5e-324, Gaussian(1.0)),
                  BestOfNegativeBinomial(1e6, 5e-324, Gaussian(1.0))):  # fmt: skip
        assert account(event, 1e-5, "add_remove").epsilon == math.inf
    assert account(Gaussian(1e200), 1e-5, "add_remove").epsilon == 0.0


@pytest.mark.parametrize("seed", range(6))
def test_the_best_of_noisy_numbers_keeps_to_the_account(seed):
    """The number itself is the score: both densities are known, and so is delta at the epsilon of the account."""
    rng = np.random.default_rng(seed)
    signal, delta = 10.0 ** rng.uniform(-3, 0.8), 10.0 ** rng.uniform(-14, -0.5)
    shape, parameter = rng.choice([0.0, rng.uniform(-0.95, 5.0)]), 10.0 ** rng.uniform(-6, 4)
    gamma = [10.0 ** rng.uniform(-8, -0.01), 1.0 - 10.0 ** rng.uniform(-12, -1)][seed % 2]
    outcomes = np.linspace(-60, 60, 60001)

    def log_density(at, poisson_runs):
        above = scipy.special.log_ndtr(at - outcomes)
        log_single = scipy.stats.norm.logpdf(outcomes, at)
        if poisson_runs:
            return log_single + math.log(parameter) - parameter * np.exp(above) - math.log(-math.expm1(-parameter))
        share = -math.log(gamma) if shape == 0.0 else math.expm1(-shape * math.log(gamma)) / shape
        log_beaten = np.logaddexp(math.log(gamma), math.log1p(-gamma) + above)
        return log_single - math.log(share) + math.log1p(-gamma) - (1.0 + shape) * log_beaten

    for event in (
        BestOfNegativeBinomial(shape, gamma, Gaussian(1 / signal)),
        BestOfPoisson(parameter, Gaussian(1 / signal)),
    ):
        epsilon = account(event, delta, "add_remove").epsilon
        for first, second in ((0.0, signal), (signal, 0.0)):
            one, other = (log_density(at, isinstance(event, BestOfPoisson)) for at in (first, second))
            assert np.exp(one).sum() * (outcomes[1] - outcomes[0]) == pytest.approx(1.0, abs=1e-6)
            excess = np.exp(one) - np.exp(np.minimum(other + epsilon, one))
            assert excess.sum() * (outcomes[1] - outcomes[0]) <= delta * (1 + 1e-6)


def test_one_of_several_costs_what_the_worst_costs_and_runs_cost_more():
    near, far = Gaussian(3.0), Gaussian(9.0)
    worst = account(OneOf((near, far)), 1e-5, "replace_one").epsilon
    # (epsilon, delta) that hold for each hold for their mixture; alone, that is exact.
    assert worst == account(near, 1e-5, "replace_one").epsilon
    # With others, the same by Renyi divergences, which cost a little more than the closed form.
    others = account(Composed((OneOf((near, far)), Gaussian(9.0))), 1e-5, "replace_one").epsilon
    closed = account(Composed((near, Gaussian(9.0))), 1e-5, "replace_one").epsilon
    assert closed < others < 1.1 * closed
    for several in (BestOfNegativeBinomial(0.0, 0.3, far), BestOfPoisson(2.0, far)):
        assert account(several, 1e-5, "replace_one").epsilon > account(far, 1e-5, "replace_one").epsilon
    for unknown in (PoissonSampled(0.1, near), EpsilonDelta(1.0, 1e-6)):
        either = OneOf((near, unknown))
        for event in (either, BestOfNegativeBinomial(0.0, 0.3, unknown), BestOfPoisson(2.0, unknown)):
            # Alone, either part has an accountant of its own.
            largest = max(account(alternative, 1e-5, "replace_one").epsilon for alternative in (near, unknown))
            assert account(event, 1e-5, "replace_one").epsilon == (largest if event is either else math.inf)
            assert account(Composed((event, near)), 1e-5, "replace_one").epsilon == math.inf


def counts(draw, runs, n_draws=4000):
    """Statistic of Pearson's test beside its quantile at 1e-9, with rare numbers put together."""
    draws = np.array([draw(bytes([*number.to_bytes(4, "big"), *bytes(28)])) for number in range(n_draws)])
    kept = np.flatnonzero(runs * n_draws >= 10)
    observed = np.array([(draws == index + 1).sum() for index in kept])
    expected = runs[kept] * n_draws
    observed, expected = (np.append(cells, n_draws - cells.sum()) for cells in (observed, expected))
    statistic = ((observed - expected) ** 2 / np.maximum(expected, 1e-3)).sum()
    return statistic, scipy.stats.chi2.isf(1e-9, len(kept))


@pytest.mark.parametrize(("shape", "gamma"), [(-0.5, 0.1), (0.0, 0.1), (1.0, 0.1), (0.3, 0.5)])
def test_numbers_of_runs_have_their_probabilities(shape, gamma):
    statistic, limit = counts(
        lambda key: negative_binomial_runs(key, shape, gamma), negative_binomial(shape, gamma, 4000)
    )
    assert statistic < limit


@pytest.mark.parametrize("parameter", [0.2, 3.0, 20.0])
def test_poisson_numbers_of_runs_have_their_probabilities(parameter):
    statistic, limit = counts(lambda key: poisson_runs(key, parameter), poisson(parameter, 300))
    assert statistic < limit


def test_draws_out_of_range_are_refused_and_choices_are_uniform():
    for wrong in ((-1.0, 0.5), (1.5, 0.5), (0.0, 0.0), (0.0, 1.0)):
        with pytest.raises(ValueError, match=f"gamma={wrong[1]}"):
            negative_binomial_runs(bytes(32), *wrong)
    for parameter in (0.0, 2e6, math.inf):
        with pytest.raises(ValueError, match="parameter="):
            poisson_runs(bytes(32), parameter)
    assert negative_binomial_runs(bytes(32), 0.0, 0.5) == negative_binomial_runs(bytes(32), 0.0, 0.5)
    frequencies = np.bincount(draw_choices(bytes(32), 5, 20_000), minlength=5)
    assert ((frequencies - 4000) ** 2 / 4000).sum() < scipy.stats.chi2.isf(1e-9, 4)
