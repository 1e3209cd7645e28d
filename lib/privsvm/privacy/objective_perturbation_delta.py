"""Delta of Gaussian noise, and of perturbed objectives: a sum over the corners of what gradients may differ by.

Gradients of two neighbours differ by some point of a body that is spanned by a few vectors, and which point it is may
depend on the noise. The privacy loss is convex in that point, so it is largest at a corner of the body, and each corner
is a Gaussian release. `privsvm.privacy.objective_perturbation` has the proof. Nothing here needs SciPy.
"""

from __future__ import annotations

import math
from collections.abc import Callable

__all__ = ["corner_delta", "corner_epsilon", "exact_gaussian_epsilon", "gaussian_delta", "log_tail"]

# With more vectors than these, corners are so many that Renyi divergences say less. Sums of so many probabilities are
# right to a share of 1e-13.
_MOST_VECTORS, _ROUND_OFF = 64, 1e-12

# Logarithm of what float64 rounds to 0.
_NOTHING = -750.0


def log_tail(x: float) -> float:
    """Compute the logarithm of the probability that a standard normal number exceeds x."""
    if x < 25.0:
        return math.log(0.5 * math.erfc(x / math.sqrt(2.0)))
    inverse = 1.0 / (x * x)
    series = -inverse * (1.0 - 3.0 * inverse * (1.0 - 5.0 * inverse))
    return -0.5 * x * x - math.log(x * math.sqrt(2.0 * math.pi)) + math.log1p(series)


def gaussian_delta(epsilon: float, signal: float) -> float:
    """Compute delta of Gaussian noise at epsilon (Balle and Wang 2018).

    Parameters
    ----------
    epsilon : float
        At least 0.
    signal : float
        How many standard deviations neighbours are apart, positive.

    Returns
    -------
    float
    """
    first = log_tail(epsilon / signal - 0.5 * signal)
    if first < _NOTHING:
        return 0.0
    second = epsilon + log_tail(epsilon / signal + 0.5 * signal)
    return -math.exp(first) * math.expm1(min(second - first, 0.0))


def _smallest(delta_of: Callable[[float], float], delta: float, high: float) -> float:
    """Find the smallest epsilon at delta, below one that is large enough; from above."""
    if delta_of(0.0) <= delta:
        return 0.0
    low = 0.0
    while high > low * (1.0 + 4e-16):
        middle = 0.5 * (low + high)
        if not low < middle < high:
            break
        low, high = (low, middle) if delta_of(middle) <= delta else (middle, high)
    return high


def exact_gaussian_epsilon(signal: float, delta: float) -> float:
    """Compute the smallest epsilon of Gaussian noise at delta, to the last digits; from above.

    Parameters
    ----------
    signal : float
        As in `gaussian_delta`.
    delta : float
        Below 1; 0 gives infinity.

    Returns
    -------
    float
    """
    if delta <= 0.0:
        return math.inf
    # log E e^((a - 1) L) = a (a - 1) signal^2 / 2 gives this bound.
    high = 0.5 * signal**2 + signal * math.sqrt(2.0 * math.log(1.0 / delta))
    return _smallest(lambda epsilon: gaussian_delta(epsilon, signal), delta, high)


def _corners(
    signal: float, n_objectives: int, n_vectors: int, output_signal: float
) -> list[tuple[float, float]] | None:
    """Distances of the corners from the middle of the noise, and how many of each there are; None for too many.

    Corners of one objective that j vectors lead to are no further than j of their lengths. At the corner that none
    leads to, a Gaussian release is not above the privacy loss of at least one vector: so much less often.
    """
    if n_objectives * n_vectors > _MOST_VECTORS:
        return None
    length = signal / n_vectors
    own = {j * j: float(math.comb(n_vectors, j)) for j in range(1, n_vectors + 1)}
    own[0] = math.exp(log_tail(0.5 * length))
    total = {0: 1.0}
    for _ in range(n_objectives):
        longer: dict[int, float] = {}
        for squares, many in total.items():
            for more, times in own.items():
                longer[squares + more] = longer.get(squares + more, 0.0) + many * times
        total = longer
    return [(math.hypot(length * math.sqrt(squares), output_signal), many) for squares, many in sorted(total.items())]


def _sum_of(corners: list[tuple[float, float]], epsilon: float) -> float:
    total = math.fsum(many * gaussian_delta(epsilon, size) for size, many in corners if size > 0.0)
    return total * (1.0 + _ROUND_OFF)


def corner_delta(epsilon: float, signal: float, n_objectives: int, n_vectors: int, output_signal: float) -> float:
    """Bound delta at epsilon of perturbed objectives and the noise on their minima, without the determinants' share.

    Parameters
    ----------
    epsilon : float
        At least 0.
    signal : float
        The largest change of one objective's gradient, over the standard deviation of its linear term.
    n_objectives : int
        Number of objectives.
    n_vectors : int
        How many vectors of equal length make up that change: one for each row that comes or goes.
    output_signal : float
        Sensitivity of the approximate minima together, over the standard deviation of the noise on them.

    Returns
    -------
    float
        Infinite for too many vectors to look at all corners.
    """
    corners = _corners(signal, n_objectives, n_vectors, output_signal)
    return math.inf if corners is None else _sum_of(corners, epsilon)


def corner_epsilon(delta: float, signal: float, n_objectives: int, n_vectors: int, output_signal: float) -> float:
    """Compute the smallest epsilon at which `corner_delta` is at most `delta`, to the last digits; from above.

    Parameters
    ----------
    delta : float
        Below 1.
    signal, n_objectives, n_vectors, output_signal
        As in `corner_delta`.

    Returns
    -------
    float
        Infinite for too many vectors, and for a `delta` of 0.
    """
    corners = _corners(signal, n_objectives, n_vectors, output_signal)
    if corners is None or delta <= 0.0:
        return math.inf
    # log E e^((a - 1) L) = a (a - 1) size^2 / 2 gives this bound for each of them.
    size, many = max(corners)[0], math.fsum(many for _, many in corners) * (1.0 + _ROUND_OFF)
    high = 0.5 * size**2 + size * math.sqrt(2.0 * max(math.log(many / delta), 0.0))
    return _smallest(lambda epsilon: _sum_of(corners, epsilon), delta, high)
