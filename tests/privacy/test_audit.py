import math

import numpy as np
import pytest
import scipy.stats

from privsvm.privacy.audit import clopper_pearson_epsilon, sampled_witness


@pytest.mark.parametrize(("hits", "runs"), [(0, 10), (3, 10), (10, 10), (500, 1000)])
@pytest.mark.parametrize(("other_hits", "other_runs"), [(0, 20), (7, 20), (20, 20)])
@pytest.mark.parametrize("delta", [0.0, 1e-3])
def test_clopper_pearson_equals_scipys_intervals(hits, runs, other_hits, other_runs, delta):
    p = scipy.stats.binomtest(hits, runs).proportion_ci(0.95, "exact").low
    q = scipy.stats.binomtest(other_hits, other_runs).proportion_ci(0.95, "exact").high
    expected = max(0.0, math.log((p - delta) / q)) if p > delta else 0.0
    bound = clopper_pearson_epsilon(hits, runs, other_hits, other_runs, delta)
    assert bound == pytest.approx(expected, rel=1e-9)


def test_counts_that_cannot_be():
    for counts in ((-1, 5, 0, 5), (6, 5, 0, 5), (0, 0, 0, 5), (0, 5, 7, 5)):
        with pytest.raises(ValueError, match=f"hits={counts[0]}, runs={counts[1]}"):
            clopper_pearson_epsilon(*counts)


@pytest.mark.parametrize("epsilon", [0.0, 1.0, 3.0])
def test_laplace_mechanism_is_not_refuted(epsilon):
    """True epsilon is known, so the bound may exceed it in at most 5 % of the audits."""
    rng = np.random.default_rng(0)
    exceeded, bounds = 0, []
    for _ in range(200):
        first, second = rng.laplace(size=(2, 1000, 2))
        first[:, 0] += epsilon
        bound = sampled_witness(first, second, 0.0, "replace_one", "").epsilon
        exceeded += bound > epsilon
        bounds.append(bound)
    assert exceeded <= scipy.stats.binom.isf(1e-6, 200, 0.05)
    # And it is of some use.
    assert np.median(bounds) >= 0.4 * epsilon - 0.1


@pytest.mark.parametrize("order", [1, -1])
def test_outputs_that_never_meet(order):
    rng = np.random.default_rng(1)
    first, second = rng.normal(size=(2, 400, 3))
    second[:, 1] += 50.0
    sets = [first, second][::order]
    witness = sampled_witness(*sets, 0.0, "add_remove", "two sets")
    assert witness.epsilon == pytest.approx(clopper_pearson_epsilon(200, 200, 0, 200))
    assert witness.neighbours == "add_remove"
    assert witness.description.startswith("two sets; ")
    assert "200 of 200" in witness.description
    assert "95% confidence, for this witness alone" in witness.description


def test_outputs_without_any_spread():
    constant = np.ones((100, 2))
    assert sampled_witness(constant, constant, 0.0, "replace_one", "").epsilon == 0.0
    apart = sampled_witness(constant, constant + 1e-12, 0.0, "replace_one", "")
    assert apart.epsilon == pytest.approx(clopper_pearson_epsilon(50, 50, 0, 50))
