"""Lower bounds on epsilon from how often, or how, releases of two neighbouring datasets differ; and their ceilings.

A *test* says of a release which of two neighbours it came from. Its errors bound epsilon from below: by counts alone
(Clopper-Pearson limits, no assumption), by the Gaussian trade-off curve that Gaussian releases have (Nasr et al. 2023,
Tight auditing of differentially private machine learning), by the distance of two normal samples, or by the guesses of
one run with many canaries (Steinke, Nasr and Jagielski 2023, Privacy auditing with one training run).
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import scipy.stats
from scipy.special import ndtr, ndtri

from privsvm.privacy.accounting import gaussian_epsilon
from privsvm.privacy.bisection import bisect
from privsvm.privacy.gaussian_delta import gaussian_signal

# Confidence of a bound that is shown.
CONFIDENCE = 0.95

# Above this many standard errors, skewness and kurtosis say that a sample is not normal.
_NOT_NORMAL = 6.0

# A longer distance than this, in standard deviations of the noise, is as good as none at all being added.
_LARGEST_SIGNAL = 100.0


@dataclasses.dataclass(frozen=True)
class Bound:
    """A lower bound on epsilon from a sample, which holds with the requested confidence.

    `estimate` is the best guess, without any confidence; it may be infinite.
    """

    epsilon: float
    estimate: float


def limits(hits: np.ndarray | float, runs: float, miss: float, mixed: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Compute the Clopper-Pearson limits of a probability.

    `hits` of `runs` may be fractional, for expected counts, and each of the two limits fails with probability `miss`.
    If `mixed`, the runs are independent but of unequal probabilities, whose mean is then bounded. Hoeffding (1956, On
    the distribution of the number of successes in independent trials, Theorem 4): as far as a hit from its mean and
    beyond, such a sum is less spread than a binomial one.
    """
    hits = np.asarray(hits, dtype=np.float64)
    misses = runs - hits
    # The beta distributions of the two extreme counts do not exist; their limits are 0 and 1.
    low = np.where(hits > 0, scipy.stats.beta.ppf(miss, np.maximum(hits, 1e-9), misses + 1), 0.0)
    high = np.where(misses > 0, scipy.stats.beta.isf(miss, hits + 1, np.maximum(misses, 1e-9)), 1.0)
    if mixed:
        low = np.minimum(low, np.maximum(hits - 1.0, 0.0) / runs)
        high = np.maximum(high, np.minimum(hits + 1.0, runs) / runs)
    return low, high


def counts_bound(
    hits: np.ndarray | float,
    runs: float,
    other_hits: np.ndarray | float,
    other_runs: float,
    delta: float,
    confidence: float = CONFIDENCE,
    mixed: bool = False,
) -> np.ndarray:
    """Bound epsilon by how often an event occurred on two neighbours; no assumption.

    It is ``log((p - delta) / q)`` with the Clopper-Pearson limits p from below and q from above. The event must be
    fixed before these runs are seen. `mixed` counts are sums over two events, each likely on one of the datasets and
    rare on the other: their mean probabilities obey ``p <= exp(epsilon) q + delta`` too. See `limits`.
    """
    miss = (1.0 - confidence) / 2.0
    low, high = limits(hits, runs, miss, mixed)[0], limits(other_hits, other_runs, miss, mixed)[1]
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(low - delta > high, (low - delta) / high, 1.0)
    return np.log(ratio)


def _epsilon_of(mu: float, delta: float) -> float:
    """Epsilon of mu-GDP; 0 for no signal."""
    if not mu > 0:
        return 0.0
    return math.inf if mu > _LARGEST_SIGNAL else gaussian_epsilon(1.0 / mu, delta)


def f_dp_bound(
    hits: float, runs: float, other_hits: float, other_runs: float, delta: float, confidence: float = CONFIDENCE
) -> Bound:
    """Bound epsilon by the two errors of a test, for a release with the trade-off curve of Gaussian noise.

    The curve is mu-GDP's with ``mu = z(p) - z(q)``, z the normal quantiles: the tested numbers need not be normal.
    """
    miss = (1.0 - confidence) / 2.0
    # Infinity less infinity counts as no signal.
    with np.errstate(invalid="ignore"):
        low = ndtri(limits(hits, runs, miss)[0]) - ndtri(limits(other_hits, other_runs, miss)[1])
        best = ndtri(hits / runs) - ndtri(other_hits / other_runs)
    return Bound(_epsilon_of(float(np.nan_to_num(low, nan=0.0)), delta), _epsilon_of(float(np.nan_to_num(best)), delta))


def _signal_error(mu: float, runs: float, other_runs: float) -> float:
    """Compute the standard error of the distance of two normal samples over their common spread."""
    return math.sqrt(1.0 / runs + 1.0 / other_runs + mu * mu / (2.0 * (runs + other_runs)))


def _looks_normal(values: np.ndarray) -> bool:
    n = values.size
    skew, kurtosis = scipy.stats.skew(values), scipy.stats.kurtosis(values)
    return bool(abs(skew) < _NOT_NORMAL * math.sqrt(6.0 / n) and abs(kurtosis) < _NOT_NORMAL * math.sqrt(24.0 / n))


def gaussian_bound(first: np.ndarray, second: np.ndarray, delta: float, confidence: float = CONFIDENCE) -> Bound | None:
    """Bound epsilon by the distance of two normal samples of equal spread.

    The samples are values of a linear statistic, fixed before, on the releases of two neighbours; the first is the
    larger one. None where they do not look normal, by their skewness and kurtosis.
    """
    if min(first.size, second.size) < 8:
        return None
    move = float(first.mean() - second.mean())
    spread = math.sqrt((float(first.var(ddof=1)) + float(second.var(ddof=1))) / 2.0)
    if spread <= 1e-12 * abs(move):
        return Bound(math.inf, math.inf) if move else None
    if spread == 0.0 or not (_looks_normal(first) and _looks_normal(second)):
        return None
    mu = move / spread
    low = mu - float(ndtri(confidence)) * _signal_error(mu, first.size, second.size)
    return Bound(_epsilon_of(low, delta), _epsilon_of(mu, delta))


def counts_ceiling(epsilon: float, delta: float, runs: float) -> float:
    """Bound by counts that so many runs on each neighbour can be expected to show of exact Gaussian noise."""
    mu = gaussian_signal(epsilon, delta)
    thresholds = np.linspace(-6.0, mu + 6.0, 400)
    counts = counts_bound(runs * ndtr(mu - thresholds), runs, runs * ndtr(-thresholds), runs, delta)
    return min(float(np.max(counts)), epsilon)


def f_dp_ceiling(epsilon: float, delta: float, runs: float) -> float:
    """Compute the same for `f_dp_bound`."""
    mu = gaussian_signal(epsilon, delta)
    miss = (1.0 - CONFIDENCE) / 2.0
    thresholds = np.linspace(-1.0, mu + 1.0, 200)
    low = limits(runs * ndtr(mu - thresholds), runs, miss)[0]
    high = limits(runs * ndtr(-thresholds), runs, miss)[1]
    return _epsilon_of(float(np.max(ndtri(low) - ndtri(high))), delta)


def gaussian_ceiling(epsilon: float, delta: float, runs: float) -> float:
    """Compute the same for `gaussian_bound`."""
    mu = gaussian_signal(epsilon, delta)
    return _epsilon_of(mu - float(ndtri(CONFIDENCE)) * _signal_error(mu, runs, runs), delta)


def pure_ceiling(epsilon: float, delta: float, runs: float) -> float:
    """Compute the same for the (epsilon, delta)-DP release that counts tell most of: randomised response or rarer."""
    shares = np.concatenate([np.logspace(-6, -0.3, 200), np.linspace(0.5, 1.0 - 1e-6, 400)])
    # An event of probability p on one dataset bounds both its own and its complement's probability on the other.
    others = np.maximum((shares - delta) * math.exp(-epsilon), 1.0 - delta - (1.0 - shares) * math.exp(epsilon))
    others = np.clip(others, 0.0, 1.0)
    return min(float(np.max(counts_bound(runs * shares, runs, runs * others, runs, delta))), epsilon)


def _one_run_p_value(n_canaries: int, guesses: int, right: int, epsilon: float, delta: float) -> float:
    """Probability of at least so many right guesses under (epsilon, delta)-DP, at most."""
    q = 1.0 / (1.0 + math.exp(-epsilon))
    beta = float(scipy.stats.binom.sf(right - 1, guesses, q))
    if delta == 0.0:
        return min(1.0, beta)
    mass = scipy.stats.binom.pmf(right - np.arange(1, right + 1), guesses, q)
    alpha = float(np.max(np.cumsum(mass) / np.arange(1, right + 1), initial=0.0))
    return min(1.0, beta + 2.0 * n_canaries * delta * alpha)


def one_run_bound(n_canaries: int, guesses: int, right: int, delta: float, confidence: float = CONFIDENCE) -> Bound:
    """Bound epsilon by the guesses of one run with many canaries.

    Each canary is in the training rows or not by the toss of a coin; `guesses` of them were guessed, and `right` of the
    guesses were right. Steinke, Nasr and Jagielski (2023), Theorem 5.2; add_remove.
    """
    if not 0 <= right <= guesses <= n_canaries:
        raise ValueError(f"n_canaries={n_canaries}, guesses={guesses}, right={right}: no such counts")
    if right == 0:
        return Bound(0.0, 0.0)

    def refutes(epsilon: float) -> bool:
        return _one_run_p_value(n_canaries, guesses, right, epsilon, delta) <= 1.0 - confidence

    low = bisect(refutes, 0.0, 50.0, 2e-8)[0] if refutes(0.0) else 0.0
    share = right / guesses
    return Bound(low, math.inf if share == 1.0 else max(0.0, math.log(share / (1.0 - share))))
