"""Renyi divergences of the best of a random number of runs (Papernot and Steinke 2022).

A mechanism runs K times, with a K that is drawn by itself and kept secret, and the best outcome is released, in an
order of outcomes that is fixed. The number of runs has a truncated negative binomial distribution with shape ``eta``
above -1 and ``gamma`` below 1: probabilities proportional to
``(1 - gamma)^k prod_{l=1}^{k-1} (l + eta) / (l + 1)`` for k = 1, 2, ... (eta 1 is geometric, 0 logarithmic); or a
Poisson distribution without 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from privsvm.privacy.bisection import bisect

Curve = Callable[[np.ndarray], np.ndarray]

# Orders of the single run that are tried for the part that all orders of the whole share: any of them gives a bound.
_ORDERS = 1.0 + np.geomspace(1e-3, 1e7, 241)
_CLOSER = np.geomspace(1 / 1.12, 1.12, 41)

# Means of the number of runs are computed with a relative error below a tenth of this. It counts where they are near 1.
_ROUND_UP = 1.0 + 1e-12


def negative_binomial_mean(shape: float, gamma: float) -> float:
    """Mean of the number of runs.

    It is ``eta (1 - gamma) / (gamma (1 - gamma^eta))``, and its limit for a shape of 0.
    """
    log = -math.log(gamma)
    share = log if shape == 0.0 else -math.expm1(-shape * log) / shape
    return (1.0 - gamma) / (gamma * share)


def negative_binomial_gamma(shape: float, mean: float) -> float:
    """Find the gamma for which the mean number of runs is `mean`, above 1."""
    return bisect(
        lambda gamma: negative_binomial_mean(shape, gamma) > mean, 1e-300, 1.0 - 1e-12, 1e-13, geometric=True
    )[1]


def poisson_parameter(mean: float) -> float:
    """Find the mu of a Poisson distribution whose mean without 0, ``mu / (1 - e^-mu)``, is `mean`, above 1."""
    return bisect(lambda mu: mu / -math.expm1(-mu) < mean, 0.0, mean, 1e-13)[1]


def _least(values: np.ndarray) -> float:
    """Least of some bounds; infinite where there is none."""
    bounds = values[~np.isnan(values)]
    return float(bounds.min()) if bounds.size else math.inf


def best_of_negative_binomial(single: Curve, orders: np.ndarray, shape: float, gamma: float) -> np.ndarray:
    """Bound the Renyi divergence of the best of a truncated negative binomial number of runs.

    Papernot and Steinke (2022), Theorem 2: ``e(lambda) + (1 + eta) ((1 - 1/l) e(l) + log(1/gamma) / l) + log(E K) /
    (lambda - 1)`` at each order lambda above 1, for the best order l. `single` bounds the divergence e of a single run.
    """

    def share(others: np.ndarray) -> np.ndarray:
        bounds: np.ndarray = (1.0 - 1.0 / others) * single(others) - math.log(gamma) / others
        return bounds

    rough = share(_ORDERS)
    best = float(_ORDERS[np.nanargmin(rough)]) if np.isfinite(rough).any() else 2.0
    cost = min(_least(rough), _least(share(1.0 + (best - 1.0) * _CLOSER)))
    mean = negative_binomial_mean(shape, gamma)
    total: np.ndarray = single(orders) + (1.0 + shape) * cost + math.log(mean * _ROUND_UP) / (orders - 1.0)
    return total


def renyi_delta(single: Curve, epsilons: np.ndarray) -> np.ndarray:
    """Bound delta at several epsilons by Renyi divergences (Canonne, Kamath and Steinke 2020, Proposition 12)."""
    log_rest = (_ORDERS - 1.0) * np.log1p(-1.0 / _ORDERS) - np.log(_ORDERS)
    logs = (_ORDERS - 1.0) * (single(_ORDERS) - np.asarray(epsilons)[:, None]) + log_rest
    deltas: np.ndarray = np.exp(np.minimum(np.nan_to_num(logs, nan=0.0).min(axis=1), 0.0))
    return deltas


def best_of_poisson(
    single: Curve, orders: np.ndarray, parameter: float, delta: Callable[[np.ndarray], np.ndarray]
) -> np.ndarray:
    """Bound the Renyi divergence of the best of a Poisson number of runs, of which there is one at least.

    ``e(lambda) + mu delta(log(1 + 1 / (lambda - 1))) + log(E K) / (lambda - 1)`` with ``E K = mu / (1 - e^-mu)`` at
    each order lambda above 1: as Papernot and Steinke (2022), Theorem 6, where "no run" is an outcome too;
    `docs/proofs/private_search.md` has the proof for this one. `single` bounds the divergence e of a single run,
    `delta` gives its delta at epsilons, and mu is `parameter`.
    """
    log_mean = math.log(parameter / -math.expm1(-parameter) * _ROUND_UP)
    cost = parameter * delta(np.log1p(1.0 / (orders - 1.0)))
    total: np.ndarray = single(orders) + cost + log_mean / (orders - 1.0)
    return total
