"""Lower bounds on epsilon: against exact values, and their confidence."""

import math

import numpy as np
import pytest
import scipy.stats

from privsvm.privacy.gaussian_delta import gaussian_signal
from privsvm.privacy.lower_bounds import (
    counts_bound,
    counts_ceiling,
    f_dp_bound,
    f_dp_ceiling,
    gaussian_bound,
    gaussian_ceiling,
    limits,
    one_run_bound,
    pure_ceiling,
)


@pytest.mark.parametrize(("hits", "runs"), [(0, 10), (10, 10), (3, 10), (17, 1000), (999, 1000)])
def test_limits_are_those_of_the_binomial_distribution(hits, runs):
    low, high = limits(hits, runs, 0.025)
    if hits:
        assert scipy.stats.binom.sf(hits - 1, runs, low) == pytest.approx(0.025)
    else:
        assert low == 0.0
    if hits < runs:
        assert scipy.stats.binom.cdf(hits, runs, high) == pytest.approx(0.025)
    else:
        assert high == 1.0


@pytest.mark.parametrize("shares", [(0.0, 0.2), (0.02, 0.5), (0.9, 1.0), (0.3, 0.3)])
@pytest.mark.parametrize("runs", [6, 20])
def test_limits_hold_for_runs_of_unequal_probabilities(shares, runs):
    """By the exact distribution of the sum of two binomials."""
    one, other = (scipy.stats.binom.pmf(np.arange(runs + 1), runs, share) for share in shares)
    chances, mean = np.convolve(one, other), sum(shares) / 2.0
    for miss in (0.2, 0.025, 1e-4):
        low, high = limits(np.arange(2 * runs + 1), 2 * runs, miss, mixed=True)
        assert chances[low > mean].sum() <= miss * (1 + 1e-9)
        assert chances[high < mean].sum() <= miss * (1 + 1e-9)
    # They are the usual ones but for the first and the last count.
    plain, usual = (limits(np.arange(2, 2 * runs - 1), 2 * runs, 0.025, mixed) for mixed in (True, False))
    np.testing.assert_array_equal(plain, usual)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0, 8.0])
def test_gaussian_bounds_are_near_the_truth_and_rarely_above(epsilon):
    """100 audits of exact normal numbers: each bound is too high in 5 % of them at most, in 20 % with 1e-7."""
    delta, runs, audits = 1e-5, 10_000, 100
    mu = gaussian_signal(epsilon, delta)
    rng = np.random.default_rng(5)
    too_high = {"counts": 0, "f_dp": 0, "gaussian": 0}
    bounds_by_name = {name: [] for name in too_high}
    for _ in range(audits):
        first, second = rng.normal(mu, 1.0, runs), rng.normal(0.0, 1.0, runs)
        tail, middle = mu / 2.0 + 1.0, mu / 2.0
        counts = [int((first > at).sum()) for at in (tail, middle)]
        others = [int((second > at).sum()) for at in (tail, middle)]
        bounds = {
            "counts": float(counts_bound(counts[0], runs, others[0], runs, delta)),
            "f_dp": f_dp_bound(counts[1], runs, others[1], runs, delta).epsilon,
            "gaussian": gaussian_bound(first, second, delta).epsilon,
        }
        for name, bound in bounds.items():
            bounds_by_name[name].append(bound)
            too_high[name] += bound > epsilon
    assert max(too_high.values()) <= 0.2 * audits
    # Their ceilings say what to expect.
    assert np.median(bounds_by_name["gaussian"]) == pytest.approx(gaussian_ceiling(epsilon, delta, runs), rel=0.08)
    assert np.median(bounds_by_name["f_dp"]) == pytest.approx(f_dp_ceiling(epsilon, delta, runs), rel=0.25)
    assert np.median(bounds_by_name["counts"]) <= counts_ceiling(epsilon, delta, runs) * 1.05 + 0.02


def test_what_is_not_normal_gets_no_gaussian_bound():
    rng = np.random.default_rng(0)
    assert gaussian_bound(rng.laplace(1.0, 1.0, 20_000), rng.laplace(0.0, 1.0, 20_000), 1e-5) is None
    # Without any noise, nothing holds.
    assert gaussian_bound(np.ones(50), np.zeros(50), 1e-5).epsilon == math.inf
    assert gaussian_bound(np.ones(50), np.ones(50), 1e-5) is None


@pytest.mark.parametrize("epsilon", [0.5, 4.0])
def test_the_pure_ceiling_is_what_randomised_response_shows(epsilon):
    runs = 100_000
    share = math.exp(epsilon) / (1.0 + math.exp(epsilon))
    shown = counts_bound(runs * share, runs, runs * (1.0 - share), runs, 0.0)
    assert shown <= 1.001 * pure_ceiling(epsilon, 0.0, runs) <= 1.001 * epsilon
    assert pure_ceiling(epsilon, 0.0, runs) == pytest.approx(shown, rel=0.1)


def test_one_run_holds_for_randomised_response_and_comes_near():
    """Guesses as often right as epsilon allows, 300 times: too high in 5 %, in 14 % with a probability of 1e-8."""
    epsilon, guesses = 1.0, 1000
    rng = np.random.default_rng(3)
    right = rng.binomial(guesses, 1.0 / (1.0 + math.exp(-epsilon)), size=300)
    bounds = [one_run_bound(guesses, guesses, int(count), 0.0).epsilon for count in right]
    assert np.mean(np.array(bounds) > epsilon) < 0.14
    assert 0.8 < np.median(bounds) < epsilon
    # A delta that allows as much as all guesses gives everything away.
    assert one_run_bound(100, 100, 100, 0.0).epsilon > one_run_bound(100, 100, 100, 1e-3).epsilon > 0.0
    assert one_run_bound(100, 100, 50, 0.0).epsilon == 0.0
    with pytest.raises(ValueError, match="no such counts"):
        one_run_bound(10, 20, 5, 0.0)


def test_one_run_agrees_with_the_program_of_its_paper():
    """Values of the p-value's program in Steinke, Nasr and Jagielski (2023), appendix D, written out once more."""

    def p_value(m, r, v, epsilon, delta):
        q = 1.0 / (1.0 + math.exp(-epsilon))
        beta = scipy.stats.binom.sf(v - 1, r, q)
        alpha = total = 0.0
        for i in range(1, v + 1):
            total += scipy.stats.binom.pmf(v - i, r, q)
            alpha = max(alpha, total / i)
        return min(beta + alpha * delta * 2 * m, 1.0)

    for m, r, v, delta in [(1000, 500, 350, 1e-5), (200, 200, 150, 1e-4), (100, 20, 20, 0.0)]:
        bound = one_run_bound(m, r, v, delta).epsilon
        assert p_value(m, r, v, bound - 1e-4, delta) <= 0.05 <= p_value(m, r, v, bound + 1e-4, delta)
