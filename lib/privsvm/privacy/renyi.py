"""Renyi divergences of events, added over compositions, and the epsilon that they have at a delta."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import numpy as np

from privsvm.privacy.events import (
    BestOfNegativeBinomial,
    BestOfPoisson,
    Event,
    ExponentialMechanism,
    Gaussian,
    Neighbours,
    OneOf,
    PerturbedObjectives,
    PoissonSampled,
    ZeroConcentrated,
    leaves,
    pure_epsilon,
    relation_factor,
)
from privsvm.privacy.gaussian_delta import gaussian_delta, log_tail
from privsvm.privacy.random_stopping import best_of_negative_binomial, best_of_poisson, renyi_delta

# Logarithms (base 2) of Renyi orders less 1: quarters of an octave first, then eight times closer around the best,
# several times. The conversion loses its accuracy closer to 1.
_LOG_ORDERS = np.arange(-6.5, 45.0, 0.25)
_CLOSER, _ZOOM = np.arange(-8, 9) / 32.0, 5
_SMALLEST_ORDER = 1.01
_LARGEST_SAMPLED_ORDER = 1024


def renyi_epsilon(divergence: Callable[[np.ndarray], np.ndarray], delta: float) -> float:
    """Convert Renyi divergences to epsilon at `delta`.

    `divergence` bounds the divergence at orders above 1. The result is the least over all orders from 1.01, to about
    eleven digits (Canonne, Kamath and Steinke 2020, Proposition 12); every order gives an upper bound.
    """
    best, epsilon = 0.0, math.inf
    for steps in (_LOG_ORDERS, *(_CLOSER * 8.0**-zoom for zoom in range(_ZOOM))):
        logarithms = best + steps
        orders = 1.0 + 2.0**logarithms
        epsilons = divergence(orders) + np.log1p(-1.0 / orders) - np.log(delta * orders) / (orders - 1.0)
        epsilons[(orders <= _SMALLEST_ORDER) | np.isnan(epsilons)] = math.inf
        best, epsilon = float(logarithms[epsilons.argmin()]), min(epsilon, float(epsilons.min()))
    return max(0.0, epsilon)


def renyi_divergence(event: Event, orders: np.ndarray, neighbours: Neighbours) -> np.ndarray | None:
    """Bound the Renyi divergence of an event.

    There is one bound for each order, all above 1. None where a part of the event has none.
    """
    total = np.zeros(orders.size)
    for leaf, count in leaves(event):
        divergence = _leaf_divergence(leaf, orders, neighbours)
        if divergence is None:
            return None
        total += count * divergence
    return total


def _leaf_divergence(event: Event, orders: np.ndarray, neighbours: Neighbours) -> np.ndarray | None:
    factor = relation_factor(neighbours)
    match event:
        case Gaussian():
            return orders * 0.5 * (factor / event.noise_multiplier) ** 2
        case ZeroConcentrated():
            return orders * event.rho
        case ExponentialMechanism():
            # Bounded range (Cesar and Rogers 2021, Lemma 3.4).
            return orders * event.epsilon**2 / 8.0
        case PerturbedObjectives():
            minima = perturbed_divergence(orders, factor * event.signal) + math.log1p(event.curvature)
            return event.n_objectives * minima + orders * 0.5 * (factor / event.output_multiplier) ** 2
        case PoissonSampled() if neighbours == "add_remove":
            return sampled_divergence(orders, event.sampling_probability, event.event.noise_multiplier)
        case OneOf():
            # Joint quasi-convexity: for mixtures with equal weights, e^((a - 1) D) is at most the largest component's.
            divergences = [renyi_divergence(alternative, orders, neighbours) for alternative in event.events]
            bounded = [divergence for divergence in divergences if divergence is not None]
            return np.max(bounded, axis=0) if len(bounded) == len(divergences) else None
        case BestOfNegativeBinomial() | BestOfPoisson():
            return _best_of_divergence(event, orders, neighbours)
    pure = pure_epsilon(event, neighbours)
    # Bun and Steinke (2016), Proposition 3.3, and the divergence of infinite order.
    return None if pure is None else np.minimum(orders * pure**2 / 2.0, pure)


def _best_of_divergence(
    event: BestOfNegativeBinomial | BestOfPoisson, orders: np.ndarray, neighbours: Neighbours
) -> np.ndarray | None:
    if renyi_divergence(event.event, np.array([2.0]), neighbours) is None:
        return None

    def single(at: np.ndarray) -> np.ndarray:
        divergence = renyi_divergence(event.event, at, neighbours)
        assert divergence is not None
        return divergence

    if isinstance(event, BestOfNegativeBinomial):
        return best_of_negative_binomial(single, orders, event.shape, event.gamma)
    event_counts = leaves(event.event)
    power = sum(count / leaf.noise_multiplier**2 for leaf, count in event_counts if isinstance(leaf, Gaussian))
    signal = relation_factor(neighbours) * math.sqrt(power)

    def delta(epsilons: np.ndarray) -> np.ndarray:
        if all(isinstance(leaf, Gaussian) for leaf, _ in event_counts):
            return np.array([gaussian_delta(float(epsilon), signal) for epsilon in epsilons])
        return renyi_delta(single, epsilons)

    return best_of_poisson(single, orders, event.parameter, delta)


def perturbed_divergence(orders: np.ndarray, signal: float) -> np.ndarray:
    """Bound the Renyi divergence of one minimum of a perturbed objective, without the share of curvature.

    There is one bound for each order, all above 1; see docs/proofs/objective_perturbation.md. `signal` is m, the
    largest change of the gradient over the standard deviation of the noise: ``C R / s`` if a row is added or removed,
    and twice that if one is replaced.
    """
    bounds = []
    for t in np.asarray(orders, dtype=np.float64) - 1.0:
        low, high = log_tail(0.5 * signal), t * (t + 1.0) * signal**2 / 2.0 + log_tail(-(0.5 + t) * signal)
        bounds.append(np.logaddexp(low, high) / t)
    return np.array(bounds)


def sampled_divergence(orders: np.ndarray, sample_rate: float, noise_multiplier: float) -> np.ndarray:
    """Bound the Renyi divergence of a Gaussian step on Poisson-sampled rows, if a row is added or removed.

    There is one bound for each order, all above 1; infinity above 1,024. For whole orders Mironov, Talwar and Zhang
    (2019), section 3.3. Between them ``(order - 1)`` times the divergence, which is convex, is at most the line through
    its neighbours.
    """
    bounds = np.full(len(orders), math.inf)
    for position, order in enumerate(orders.tolist()):
        if order <= _LARGEST_SAMPLED_ORDER:
            low = math.floor(order)
            above = order - low
            moments = (1.0 - above) * _sampled_moment(low, sample_rate, noise_multiplier)
            moments += above * _sampled_moment(low + 1, sample_rate, noise_multiplier) if above else 0.0
            bounds[position] = max(moments, 0.0) / (order - 1.0)
    return bounds


@functools.lru_cache(maxsize=4096)
def _sampled_moment(order: int, sample_rate: float, noise_multiplier: float) -> float:
    from scipy.special import gammaln, logsumexp

    j = np.arange(order + 1)
    choices = gammaln(order + 1) - gammaln(j + 1) - gammaln(order - j + 1)
    drawn = j * math.log(sample_rate) + (order - j) * math.log1p(-sample_rate)
    return float(logsumexp(choices + drawn + j * (j - 1) / (2.0 * noise_multiplier**2))) * (1.0 + 1e-12)
