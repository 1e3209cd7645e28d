"""Losses of Gaussian steps on Poisson-sampled rows, discretised as dp_accounting does it, for all losses at once.

Where the mechanism has the losses of a grid, dp_accounting computes loss by loss, which takes most of an accountant's
time. Here their places are one array: the same operations in the same order, and so the same bits. What is made of them
stays dp_accounting's.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from privsvm.privacy.events import Neighbours

if TYPE_CHECKING:
    from dp_accounting.pld.privacy_loss_mechanism import GaussianPrivacyLoss

__all__ = ["delta_of_losses", "gaussian_losses"]

# Losses so near the end of their range, relatively, count as the end.
_NEAR = 1e-9


def gaussian_losses(noise_multiplier: float, sample_rate: float, width: float, neighbours: Neighbours) -> Any:
    """Discretise the losses of one Gaussian release of Poisson-sampled rows, rounded up (connect the dots).

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation of the noise over the norm of what one row adds.
    sample_rate : float
        Probability with which a row is drawn.
    width : float
        Distance of two losses on the grid.
    neighbours : {"replace_one", "add_remove"}
        The relation. Of a replaced row, what it adds becomes its opposite.

    Returns
    -------
    dp_accounting.pld.privacy_loss_distribution.PrivacyLossDistribution
        What its ``from_gaussian_mechanism`` returns.
    """
    from dp_accounting.pld import pld_pmf, privacy_loss_distribution, privacy_loss_mechanism

    def probabilities(adjacency: privacy_loss_mechanism.AdjacencyType) -> pld_pmf.PLDPmf:
        loss = privacy_loss_mechanism.GaussianPrivacyLoss(
            noise_multiplier, sampling_prob=sample_rate, adjacency_type=adjacency
        )
        bounds = loss.connect_dots_bounds()
        lowest, highest = math.floor(bounds.epsilon_lower / width), math.ceil(bounds.epsilon_upper / width)
        deltas = delta_of_losses(loss, noise_multiplier, np.arange(lowest, highest + 1) * width)
        return pld_pmf.create_pmf_pessimistic_connect_dots_fixed_gap(width, lowest, highest, deltas)

    kinds = privacy_loss_mechanism.AdjacencyType
    if neighbours == "replace_one":
        return privacy_loss_distribution.PrivacyLossDistribution(probabilities(kinds.REPLACE))
    removed = probabilities(kinds.REMOVE)
    added = None if sample_rate == 1.0 else probabilities(kinds.ADD)
    return privacy_loss_distribution.PrivacyLossDistribution(removed, added)


def delta_of_losses(loss: GaussianPrivacyLoss, noise_multiplier: float, epsilons: np.ndarray) -> np.ndarray:
    """Compute ``loss.get_delta_for_epsilon(epsilons)``, with the same bits.

    Parameters
    ----------
    loss : dp_accounting.pld.privacy_loss_mechanism.GaussianPrivacyLoss
        Of sensitivity 1.
    noise_multiplier : float
        Its standard deviation.
    epsilons : ndarray (n,)

    Returns
    -------
    ndarray (n,)
    """
    rate, kind = loss.sampling_prob, loss.adjacency_type.name
    deltas = np.zeros(epsilons.shape)
    reached = np.ones(epsilons.shape, dtype=bool)
    if rate < 1.0 and kind == "ADD":
        # Larger losses never happen.
        reached = epsilons < -math.log1p(-rate)
    elif rate < 1.0 and kind == "REMOVE":
        # Smaller ones neither, and so at the others' expense.
        reached = epsilons > math.log1p(-rate)
        deltas[~reached] = -np.expm1(epsilons[~reached])
    epsilons = epsilons[reached]
    if kind == "REPLACE":
        noise_values = _where_replaced(epsilons, rate, noise_multiplier)
    else:
        noise_values = _where_added(epsilons, rate, noise_multiplier, 1.0 if kind == "REMOVE" else -1.0)
    deltas[reached] = loss.mu_upper_cdf(noise_values) - np.exp(epsilons + loss.mu_lower_log_cdf(noise_values))
    return np.clip(deltas, 0.0, 1.0)


def _where_added(epsilons: np.ndarray, rate: float, noise: float, sign: float) -> np.ndarray:
    """Where the loss of a row that is removed (`sign` 1) or added (-1) is `epsilons`."""
    losses = sign * epsilons
    if rate < 1.0:
        # Loss of a row that is certainly drawn: log(1 + (exp(loss) - 1) / rate).
        drawn_losses, others = losses + np.log(1.0 / rate), np.log(-(1.0 - 1.0 / rate))
        with np.errstate(all="ignore"):
            drawn = drawn_losses + np.log1p(-np.exp(others - drawn_losses))
        drawn[losses == 0.0] = np.log(1.0 / rate + (1.0 - 1.0 / rate))
        # An empty tail: dp_accounting refuses values that round-off puts beyond the end.
        end = math.log(1.0 - rate)
        drawn[
            (drawn_losses <= others) | (np.abs(losses - end) <= _NEAR * np.maximum(np.abs(losses), abs(end)))
        ] = -math.inf
        losses = drawn
    noise_values: np.ndarray = -0.5 - sign * losses * noise**2
    return noise_values if sign > 0.0 else 1.0 + noise_values


def _where_replaced(epsilons: np.ndarray, rate: float, noise: float) -> np.ndarray:
    """Where the loss of a row that becomes its opposite is `epsilons`."""
    if rate == 1.0:
        return np.where(epsilons == 0.0, 0.0, -epsilons * noise**2 / 2.0)
    noise_values = np.zeros(epsilons.shape)
    others = epsilons != 0.0
    epsilons = epsilons[others]
    halves = np.abs(epsilons) / 2.0
    # The logarithm of sinh(half), of that times what sampling makes of it, and the inverse of sinh.
    sinh = halves + _each(math.log1p, -_each(math.exp, -2.0 * halves)) - math.log(2.0)
    size = 0.5 * (1.0 / noise) ** 2 + math.log1p(-rate) - math.log(rate) + sinh
    inverse = np.logaddexp(0.5 * np.logaddexp(0.0, 2.0 * size), size)
    noise_values[others] = noise**2 * (np.where(epsilons > 0.0, -inverse, inverse) - epsilons / 2.0)
    return noise_values


def _each(function: Callable[[float], float], numbers: np.ndarray) -> np.ndarray:
    """Map the numbers one by one: the C library's functions and NumPy's differ in their last bits."""
    return np.fromiter(map(function, numbers.tolist()), np.float64, numbers.size)
