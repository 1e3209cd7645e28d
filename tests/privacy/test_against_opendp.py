"""OpenDP's samplers, which are exact too and share no code with ours: two samples each, of one distribution.

OpenDP is a tool of the tests: nothing else imports it.
"""

import numpy as np
import opendp.prelude as opendp
import pytest
import scipy.stats

from privsvm.numerics.noise.exact_draws import discrete_laplace, exponential_choices
from privsvm.numerics.noise.rounded_normals import rounded_normals

# Chance of a false alarm of one check, whatever the seeds: OpenDP draws from the operating system.
ALARM = 1e-8
SIZE = 20_000
KEY = bytes(range(5, 37))


@pytest.fixture(scope="module", autouse=True)
def _contributions():
    opendp.enable_features("contrib")


def space():
    return opendp.vector_domain(opendp.atom_domain(T=int)), opendp.l1_distance(T=int)


def same_distribution(first, second):
    """Chi-square on cells of about equal probability, for whole numbers of two samples."""
    edges = np.unique(np.quantile(np.concatenate([first, second]), np.linspace(0, 1, 25)[1:-1]))
    table = np.stack([np.bincount(np.searchsorted(edges, x), minlength=edges.size + 1) for x in (first, second)])
    return scipy.stats.chi2_contingency(table[:, table.sum(axis=0) > 0]).pvalue


@pytest.mark.parametrize("scale", [1, 3, 1000])
def test_discrete_laplace_noise(scale):
    theirs = np.array(opendp.m.make_laplace(*space(), scale=float(scale))([0] * SIZE))
    assert same_distribution(theirs, discrete_laplace(KEY, scale, SIZE)) > ALARM


@pytest.mark.parametrize("sigma", [40.0, 1000.0])
def test_rounded_normals_are_near_the_discrete_gaussian(sigma):
    """OpenDP's is the discrete Gaussian: its distance from ours, .0202 / sigma^2, is too small to be seen here."""
    domain, _ = space()
    theirs = np.array(opendp.m.make_gaussian(domain, opendp.l2_distance(T=int), scale=sigma)([0] * SIZE))
    assert same_distribution(theirs, rounded_normals(KEY, sigma, SIZE)) > ALARM


def test_choices_are_those_of_report_noisy_max_with_gumbel_noise():
    scores = [3, 3, 0, -5, 5]
    domain = opendp.vector_domain(opendp.atom_domain(T=int), len(scores))
    choose = opendp.m.make_noisy_max(
        domain, opendp.linf_distance(T=int), opendp.zero_concentrated_divergence(), scale=4.0
    )
    theirs = np.array([choose(scores) for _ in range(SIZE // 4)])
    ours = exponential_choices(KEY, np.tile(np.array(scores), (SIZE, 1)), 4)
    table = np.stack([np.bincount(x, minlength=5) for x in (theirs, ours)])
    assert scipy.stats.chi2_contingency(table).pvalue > ALARM
