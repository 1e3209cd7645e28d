"""Delta, epsilon and signal of Gaussian noise: never below the exact values, and above them by round-off alone.

Nothing here needs SciPy.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from privsvm.privacy.bisection import bisect

# Integrals end where their integrand is e^-40 of its first value. Gauss-Legendre nodes on [0, 1].
_REACH = 40.0
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(32)
_NODES, _WEIGHTS = 0.5 * (_NODES + 1.0), 0.5 * _WEIGHTS
# Two Mills ratios are subtracted only where the integrand of their difference is too steep for the nodes.
_STEEPEST = 9.0

# Covers a few operations.
ROUND_UP = 1.0 + 2.0**-50
# Relative slack of `gaussian_delta`: for exact arguments, and for the rounding of their difference.
_DELTA_SLACK, _ARGUMENT_SLACK = 1e-12, 2.0**-51
_LOG_ROOT_TWO_PI = 0.5 * math.log(2.0 * math.pi)
# A normal density so many standard deviations out is 0 in float64.
_FARTHEST = 40.0
_SMALLEST = math.nextafter(0.0, 1.0)


def _reach(x: float) -> float:
    """Where ``x t + t^2 / 2`` is 40."""
    return 2.0 * _REACH / (x + math.sqrt(x * x + 2.0 * _REACH))


def _mills(x: float, distance: float = math.inf) -> float:
    """Compute ``R(x) - R(x + distance)`` for the Mills ratio R, from -1/2 on; by default R(x) itself.

    That is the integral of ``exp(-x t - t^2 / 2) (1 - exp(-distance t))`` over t from 0 on, whose integrand is
    positive: nothing cancels.
    """
    end = _reach(max(x, 0.0))
    t = end * _NODES
    values = np.exp(-t * (x + 0.5 * t))
    if distance < math.inf:
        values *= -np.expm1(-distance * t)
    return max(end * float(_WEIGHTS @ values), _SMALLEST)


def log_tail(x: float) -> float:
    """Compute the logarithm of the probability that a standard normal number exceeds x."""
    if x < 25.0:
        return math.log(0.5 * math.erfc(x / math.sqrt(2.0)))
    return -0.5 * x * x - _LOG_ROOT_TWO_PI + math.log(_mills(x))


def gaussian_delta(epsilon: float, signal: float) -> float:
    """Bound delta of Gaussian noise at epsilon from above, to about twelve digits (Balle and Wang 2018).

    `signal` is how many standard deviations neighbours are apart. The result is above delta by a share of at most
    ``2e-12 + 2^-50 (1 + |a|) (epsilon / signal + signal / 2)`` with ``a = epsilon / signal - signal / 2``, or by three
    times the smallest positive float64.

    With the normal density f, its Mills ratio R and ``b = a + signal``, delta is ``f(a) (R(a) - R(b))``: the usual
    ``Q(a) - e^epsilon Q(b)``, since ``e^epsilon f(b) = f(a)``. That difference is one integral of a positive function,
    see `_mills`. Half of that share is added as slack: several times the error that the truncation of the integral, its
    quadrature and the rounding of all steps make together.
    """
    middle, half = epsilon / signal, 0.5 * signal
    a = middle - half
    if a > _FARTHEST:
        return _SMALLEST
    if a < -_FARTHEST:
        return 1.0
    log_density = -0.5 * a * a - _LOG_ROOT_TWO_PI
    if signal * _reach(max(a, 0.0)) <= _STEEPEST:
        delta = math.exp(log_density + math.log(_mills(a, signal)))
    elif a >= 0.0:
        delta = math.exp(log_density + math.log(_mills(a) - _mills(a + signal)))
    else:
        delta = 1.0 - math.exp(log_density) * (_mills(-a) + _mills(a + signal))
    slack = _DELTA_SLACK + _ARGUMENT_SLACK * (1.0 + abs(a)) * (middle + half)
    return min(math.nextafter(delta * (1.0 + slack), 1.0), 1.0)


def smallest_epsilon(delta_of: Callable[[float], float], delta: float, high: float) -> float:
    """Find the smallest epsilon at delta, below one that is large enough; from above."""
    if delta_of(0.0) <= delta:
        return 0.0
    return bisect(lambda epsilon: delta_of(epsilon) > delta, 0.0, high, 4e-16)[1]


def exact_gaussian_epsilon(signal: float, delta: float) -> float:
    """Compute the smallest epsilon at which `gaussian_delta` is at most delta; never below the true one.

    It is 0 for a signal of 0, where neighbours have equal outputs, and infinite for a delta of 0.
    """
    if signal == 0.0 or delta <= 0.0:
        return 0.0 if signal == 0.0 else math.inf
    signal *= ROUND_UP
    # log E e^((a - 1) L) = a (a - 1) signal^2 / 2 gives this bound.
    high = 0.5 * signal**2 + signal * math.sqrt(2.0 * math.log(1.0 / delta))
    return smallest_epsilon(lambda epsilon: gaussian_delta(epsilon, signal), delta, high)


def gaussian_signal(epsilon: float, delta: float) -> float:
    """Compute the largest signal whose `gaussian_delta` at epsilon is at most delta."""
    low = high = 1.0
    while gaussian_delta(epsilon, high) <= delta:
        low, high = high, 2.0 * high
    while gaussian_delta(epsilon, low) > delta:
        low, high = 0.5 * low, low
    return bisect(lambda signal: gaussian_delta(epsilon, signal) <= delta, low, high)[0]
