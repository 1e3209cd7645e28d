import numpy as np
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from privsvm import PrivateSVMClassifier
from privsvm.auditing.witnesses import discrete_witness, laplace_witness
from privsvm.privacy.statement import Witness


def exact_epsilon(p, q, delta):
    """Largest epsilon that the outcomes refute, by bisection on the hockey-stick divergence."""
    low, high = 0.0, float(np.max(np.log(p) - np.log(q)))
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if np.maximum(p - np.exp(middle) * q, 0).sum() > delta else (low, middle)
    return low


@given(st.integers(1, 60), st.floats(0.1, 0.49), st.floats(-8, -1), st.integers(1, 3))
@settings(max_examples=60, deadline=None)
def test_discrete_witness_is_never_above_the_exact_epsilon_and_close(n, share, log_delta, n_observations):
    counts = np.arange(n + 1)
    p, q = (scipy.stats.binom.pmf(counts, n, chance) for chance in (1 - share, share))
    seen = (p > 0) & (q > 0)
    # Binomial counts of one chance add up to a binomial count of all.
    total = np.arange(n_observations * n + 1)
    all_p, all_q = (scipy.stats.binom.pmf(total, n_observations * n, chance) for chance in (1 - share, share))
    all_seen = (all_p > 0) & (all_q > 0)
    delta = 10.0**log_delta
    exact = exact_epsilon(all_p[all_seen], all_q[all_seen], delta)
    witness = discrete_witness([(p[seen], q[seen])] * n_observations, delta, "replace_one", "d").epsilon
    assert witness <= exact * (1 + 1e-9) + 1e-12
    assert witness >= exact - n_observations * 2 * np.ptp(np.log(p[seen]) - np.log(q[seen])) / 2000


def test_equal_distributions_refute_nothing():
    p = np.array([0.25, 0.75, 0.0])
    assert discrete_witness([(p, p)], 1e-5, "replace_one", "d").epsilon == 0.0


def test_laplace_witness_is_the_largest_privacy_loss():
    assert laplace_witness(0.6, 0.2, "add_remove", "d") == Witness(
        epsilon=0.6 / 0.2, neighbours="add_remove", description="d"
    )


def test_who_asks_for_a_witness_is_asked_once():
    """A value that said no, and then yes, got a witness of private rows into a record that said proved."""

    class Wavering:
        answers = iter([False, True, True])

        def __bool__(self):
            return next(self.answers)

    path = PrivateSVMClassifier(classes=[0, 1]).release_path([[-0.5], [0.5]], [0, 1], [1.0], 1, audit=Wavering())
    assert path.guarantees[0].witness is None
