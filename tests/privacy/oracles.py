"""Accounts by other code: dp_accounting's own accountants, and SciPy's normal distribution."""

import dataclasses
import functools
import itertools
import math

import dp_accounting
import mpmath
import numpy as np
from dp_accounting import rdp
from dp_accounting.dp_event import RepeatAndSelectDpEvent
from dp_accounting.pld import privacy_loss_mechanism
from scipy.special import log_ndtr, ndtr

from privsvm.privacy.accountants import account
from privsvm.privacy.accounting import sampled_gaussian_event
from privsvm.privacy.events import (
    BestOfNegativeBinomial,
    Composed,
    ExponentialMechanism,
    Gaussian,
    Laplace,
    NonPrivate,
    PoissonSampled,
    SelfComposed,
    ZeroConcentrated,
    relation_factor,
)
from privsvm.privacy.mechanisms import (
    ExponentialSelections,
    GaussianMechanism,
    LaplaceMechanism,
    SampledGaussianSteps,
    VectorsMechanism,
)
from privsvm.privacy.random_stopping import negative_binomial_mean


def dp_event(event):
    """Translate an event for `dp_accounting`; ValueError if it has no such event."""
    match event:
        case Gaussian():
            return dp_accounting.GaussianDpEvent(event.noise_multiplier)
        case Laplace():
            return dp_accounting.LaplaceDpEvent(event.noise_multiplier)
        case ZeroConcentrated():
            return dp_accounting.ZCDpEvent(event.rho)
        case NonPrivate():
            return dp_accounting.NonPrivateDpEvent()
        case PoissonSampled():
            return dp_accounting.PoissonSampledDpEvent(event.sampling_probability, dp_event(event.event))
        case SelfComposed():
            return dp_accounting.SelfComposedDpEvent(dp_event(event.event), event.count)
        case Composed():
            return dp_accounting.ComposedDpEvent([dp_event(component) for component in event.events])
        case BestOfNegativeBinomial():
            mean = negative_binomial_mean(event.shape, event.gamma)
            return RepeatAndSelectDpEvent(dp_event(event.event), mean, event.shape)
    raise ValueError(f"event of kind {event.kind!r}: dp_accounting has none")


def gaussian_delta_of_eighty_digits(epsilon, signal):
    """Balle and Wang (2018), Theorem 8."""
    with mpmath.workdps(80):
        mu, eps = mpmath.mpf(signal), mpmath.mpf(epsilon)
        return mpmath.ncdf(mu / 2 - eps / mu) - mpmath.exp(eps) * mpmath.ncdf(-mu / 2 - eps / mu)


def rdp_epsilon(event, delta, neighbours="add_remove"):
    """Epsilon by dp_accounting's Renyi accountant; of replaced rows, with Gaussian noise in units of their change."""
    factor = relation_factor(neighbours)

    def nearer(part):
        if isinstance(part, Gaussian):
            return Gaussian(part.noise_multiplier / factor)
        if isinstance(part, Composed):
            return Composed(tuple(map(nearer, part.events)))
        return dataclasses.replace(part, event=nearer(part.event)) if hasattr(part, "event") else part

    relation = dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE
    accountant = rdp.RdpAccountant(1.0 + np.geomspace(1e-2, 1e4, 801), relation)
    return float(accountant.compose(dp_event(nearer(event))).get_epsilon(delta))


def perturbed_divergence(orders, signal):
    """Divergence of one minimum of a perturbed objective, by SciPy, without the share of curvature."""
    t = np.asarray(orders, dtype=np.float64) - 1.0
    moments = np.logaddexp(
        log_ndtr(-signal / 2.0), t * (t + 1.0) * signal**2 / 2.0 + log_ndtr(signal / 2.0 + t * signal)
    )
    return moments / t


def convert_epsilon(event, delta, neighbours):
    """Epsilon of perturbed objectives by SciPy's divergences, converted by dp_accounting."""
    factor = relation_factor(neighbours)
    orders = 1.0 + np.geomspace(1e-2, 1e4, 2001)
    total = event.n_objectives * perturbed_divergence(orders, factor * event.signal)
    total += orders * 0.5 * (factor / event.output_multiplier) ** 2
    return float(rdp.compute_epsilon(orders, total, delta)[0]) + event.n_objectives * math.log1p(event.curvature)


def corner_epsilon(event, delta, neighbours):
    """Epsilon of perturbed objectives, of each way to choose corners, with the losses of dp_accounting."""
    one_row = relation_factor(neighbours)
    added, n_vectors, output = event.signal, int(one_row), one_row / event.output_multiplier
    terms = []
    for chosen in itertools.combinations_with_replacement(range(n_vectors + 1), event.n_objectives):
        numbers = [chosen.count(corner) for corner in range(n_vectors + 1)]
        arrangements = math.factorial(event.n_objectives) / math.prod(math.factorial(number) for number in numbers)
        # One corner of no vector, one of all, and as many of one as there are.
        subsets = math.prod(math.comb(n_vectors, corner) ** number for corner, number in enumerate(numbers))
        size = math.sqrt(sum((corner * added) ** 2 for corner in chosen) + output**2)
        rare = float(ndtr(-added / 2.0)) ** numbers[0]
        terms.append((arrangements * subsets * rare, privacy_loss_mechanism.GaussianPrivacyLoss(1.0 / size)))
    low, high = 0.0, 1.0

    def total(epsilon):
        return math.fsum(weight * float(loss.get_delta_for_epsilon(epsilon)) for weight, loss in terms)

    while total(high) > delta:
        high *= 2.0
    while high - low > 1e-9 * high:
        middle = 0.5 * (low + high)
        low, high = (low, middle) if total(middle) <= delta else (middle, high)
    return high + event.n_objectives * math.log1p(event.curvature)


def sampled_gaussian_epsilon(noise_multiplier, delta, sample_rate, n_steps, neighbours, releases=()):
    """Epsilon of sampled steps and the Gaussian releases before them."""
    return account(sampled_gaussian_event(noise_multiplier, sample_rate, n_steps, releases), delta, neighbours).epsilon


def zcdp_epsilon(rho, delta):
    """Epsilon of rho-zCDP."""
    return account(ZeroConcentrated(rho), delta, "replace_one").epsilon


@functools.singledispatch
def epsilon_of(mechanism):
    """Account for a mechanism from its noise alone."""
    return account(mechanism.event, mechanism.delta, mechanism.neighbours).epsilon


@epsilon_of.register
def _(mechanism: GaussianMechanism):
    return account(Gaussian(mechanism.noise_scale / mechanism.total_sensitivity), mechanism.delta, "add_remove").epsilon


@epsilon_of.register
def _(mechanism: LaplaceMechanism):
    return account(Laplace(mechanism.noise_scale / mechanism.total_sensitivity), 0.0, "add_remove").epsilon


@epsilon_of.register
def _(mechanism: VectorsMechanism):
    return mechanism.n_releases * epsilon_of(mechanism.one)


@epsilon_of.register
def _(mechanism: ExponentialSelections):
    event = SelfComposed(ExponentialMechanism(mechanism.step_epsilon), mechanism.n_selections)
    return account(event, mechanism.delta, "replace_one").epsilon


@epsilon_of.register
def _(mechanism: SampledGaussianSteps):
    return sampled_gaussian_epsilon(
        mechanism.noise_multiplier, mechanism.delta, mechanism.sample_rate, mechanism.n_steps, mechanism.neighbours,
        mechanism.releases,
    )  # fmt: skip
