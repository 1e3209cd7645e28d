"""From events to epsilon: one accountant for all parts where there is one, and a second opinion on what it says.

`account` is what records are made and read with. It uses closed forms and sums over a grid of Renyi orders, written
here, which need no large package; only rows drawn at random need privacy loss distributions. `verified_account`
computes the same with other means.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from privsvm.privacy.accounting import (
    GAUSSIAN_ACCOUNTANT,
    LAPLACE_ACCOUNTANT,
    SAMPLED_GAUSSIAN_ACCOUNTANT,
    ZCDP_ACCOUNTANT,
    delta_of_minima,
    loss_distribution_epsilon,
    objective_perturbation_divergence,
    renyi_epsilon,
    sampled_divergence,
    sampled_gaussian_epsilon,
)
from privsvm.privacy.events import (
    BestOfNegativeBinomial,
    BestOfPoisson,
    Composed,
    EpsilonDelta,
    Event,
    ExponentialMechanism,
    Gaussian,
    Laplace,
    Neighbours,
    NonPrivate,
    OneOf,
    PerturbedObjectives,
    PoissonSampled,
    SelfComposed,
    ZeroConcentrated,
    dp_event,
    leaves,
    relation_factor,
)
from privsvm.privacy.gaussian_delta import exact_gaussian_epsilon, gaussian_delta, log_tail
from privsvm.privacy.objective_perturbation_delta import corner_epsilon
from privsvm.privacy.random_stopping import best_of_negative_binomial, best_of_poisson, renyi_delta

__all__ = [
    "LARGEST_GROUP",
    "Account",
    "account",
    "corner_arguments",
    "group_account",
    "pure_epsilon",
    "scaled_event",
    "total_divergence",
    "verified_account",
]

_ADDED = "the budgets are added"
_PURE = "sum over the selections (pure differential privacy)"
_CURVES = "Renyi divergences of random linear terms and noisy minima"
_CORNERS = "Gaussian losses at the corners of perturbed objectives"
_RENYI = "Renyi divergences, added"
_LOSSES = "privacy loss distributions (dp_accounting)"
_NOTHING = "nothing bounds it"

# Deltas of one row that are tried for a group of rows, and the largest group whose draws are told apart.
_GROUP_STEPS, LARGEST_GROUP = 40, 64

# Above, nothing is accounted for: see `delta_of_minima`.
_LARGEST_EPSILON, _LARGEST_EPSILON_OF_CURVATURE = 1e7, 700.0

_BEST = (BestOfNegativeBinomial, BestOfPoisson)

_EventCounts = Sequence[tuple[Event, int]]


@dataclasses.dataclass(frozen=True)
class _PerturbedByGroup(PerturbedObjectives):
    """Perturbed objectives for neighbours that differ in `rows` rows, which add `signal` together."""

    rows: int


class Account(NamedTuple):
    """What an accountant says: (epsilon, delta)-DP."""

    epsilon: float
    delta: float
    accountant: str


def pure_epsilon(event: Event, neighbours: Neighbours) -> float | None:
    """Epsilon of an event with pure differential privacy; None for others."""
    match event:
        case Laplace():
            return relation_factor(neighbours) / event.noise_multiplier
        case ExponentialMechanism():
            return event.epsilon
        case EpsilonDelta(delta=0):
            return event.epsilon
    return None


def perturbed_divergence(orders: np.ndarray, signal: float) -> np.ndarray:
    """Bound the Renyi divergence of one minimum of a perturbed objective, without the determinants' share.

    Parameters
    ----------
    orders : ndarray
        Orders, above 1.
    signal : float
        The largest change of the gradient between neighbours over the standard deviation of the noise.

    Returns
    -------
    ndarray
        One bound for each order: as `objective_perturbation_divergence`, without SciPy.
    """
    bounds = []
    for t in np.asarray(orders, dtype=np.float64) - 1.0:
        low, high = log_tail(0.5 * signal), t * (t + 1.0) * signal**2 / 2.0 + log_tail(-(0.5 + t) * signal)
        bounds.append(np.logaddexp(low, high) / t)
    return np.array(bounds)


def _renyi_divergence(event: Event, orders: np.ndarray, neighbours: Neighbours) -> np.ndarray | None:
    """Renyi divergence of one event at every order; None where there is no formula here."""
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
            divergences = [total_divergence(leaves(alternative), orders, neighbours) for alternative in event.events]
            bounded = [divergence for divergence in divergences if divergence is not None]
            return np.max(bounded, axis=0) if len(bounded) == len(divergences) else None
        case BestOfNegativeBinomial() | BestOfPoisson():
            return _best_of_divergence(event, orders, neighbours)
    pure = pure_epsilon(event, neighbours)
    # Bun and Steinke (2016), Proposition 3.3, and the divergence of infinite order.
    return None if pure is None else np.minimum(orders * pure**2 / 2.0, pure)


def total_divergence(event_counts: _EventCounts, orders: np.ndarray, neighbours: Neighbours) -> np.ndarray | None:
    """Renyi divergences of several events, added; None where one has none."""
    total = np.zeros(orders.size)
    for event, count in event_counts:
        divergence = _renyi_divergence(event, orders, neighbours)
        if divergence is None:
            return None
        total += count * divergence
    return total


def _best_of_divergence(
    event: BestOfNegativeBinomial | BestOfPoisson, orders: np.ndarray, neighbours: Neighbours
) -> np.ndarray | None:
    """Renyi divergence of the best of several runs."""
    event_counts = leaves(event.event)
    if total_divergence(event_counts, np.array([2.0]), neighbours) is None:
        return None

    def single(at: np.ndarray) -> np.ndarray:
        divergence = total_divergence(event_counts, at, neighbours)
        assert divergence is not None
        return divergence

    if isinstance(event, BestOfNegativeBinomial):
        return best_of_negative_binomial(single, orders, event.shape, event.gamma)
    if all(isinstance(leaf, Gaussian) for leaf, _ in event_counts):
        power = sum(count / leaf.noise_multiplier**2 for leaf, count in event_counts if isinstance(leaf, Gaussian))
        signal = relation_factor(neighbours) * math.sqrt(power)

        def delta(epsilons: np.ndarray) -> np.ndarray:
            return np.array([gaussian_delta(float(epsilon), signal) for epsilon in epsilons])

        return best_of_poisson(single, orders, event.parameter, delta)
    return best_of_poisson(single, orders, event.parameter, lambda epsilons: renyi_delta(single, epsilons))


def _constant_divergence(event: Event) -> float:
    """About the part of a divergence that does not grow with the order."""
    if isinstance(event, PerturbedObjectives):
        return event.n_objectives * math.log1p(event.curvature)
    if isinstance(event, OneOf):
        return min(
            sum(count * _constant_divergence(leaf) for leaf, count in leaves(alternative))
            for alternative in event.events
        )
    return 0.0


def _typical_divergence(event: Event, neighbours: Neighbours) -> float | None:
    """About the divergence of order 2, less what all orders share: says which orders count."""
    if isinstance(event, _BEST):
        typical = [(_typical_divergence(leaf, neighbours), count) for leaf, count in leaves(event.event)]
        return (
            None
            if any(divergence is None for divergence, _ in typical)
            else sum(count * divergence for divergence, count in typical if divergence is not None)
        )
    at_two = _renyi_divergence(event, np.array([2.0]), neighbours)
    return None if at_two is None else float(at_two[0]) - _constant_divergence(event)


def _renyi_epsilon(event_counts: _EventCounts, delta: float, neighbours: Neighbours) -> float | None:
    """Epsilon by Renyi divergences; None where some part has none, or where loss distributions do better."""
    if delta <= 0.0 or (
        any(isinstance(event, PoissonSampled) for event, _ in event_counts) and _loss_events(event_counts, neighbours)
    ):
        return None
    delta = _delta_for_minima(event_counts, delta)
    if delta <= 0.0:
        return math.inf
    # About a Gaussian release with the same divergence at order 2, but for what does not grow with the order.
    at_two = 0.0
    for event, count in event_counts:
        typical = _typical_divergence(event, neighbours)
        if typical is None:
            return None
        at_two += count * typical

    def divergence(orders: np.ndarray) -> np.ndarray:
        total = total_divergence(event_counts, orders, neighbours)
        assert total is not None
        return total

    epsilon = renyi_epsilon(divergence, delta, at_two)
    return epsilon if epsilon <= _LARGEST_EPSILON else math.inf


def _delta_for_minima(event_counts: _EventCounts, delta: float) -> float:
    """Take off delta what is lost where noise is absurdly large: see `delta_of_minima`."""
    return delta_of_minima(delta) if any(map(_has_minima, (event for event, _ in event_counts))) else delta


def corner_arguments(event: PerturbedObjectives, neighbours: Neighbours) -> tuple[float, int, int, float]:
    """Return the arguments after epsilon that `corner_delta` takes for perturbed objectives."""
    factor = relation_factor(neighbours)
    n_vectors = round(factor) * (event.rows if isinstance(event, _PerturbedByGroup) else 1)
    return factor * event.signal, event.n_objectives, n_vectors, factor / event.output_multiplier


def _corner_epsilon(event_counts: _EventCounts, delta: float, neighbours: Neighbours) -> float | None:
    """Epsilon of perturbed objectives by themselves, by the corners of what their gradients differ by."""
    (event, count), *others = event_counts
    if others or count > 1 or not isinstance(event, PerturbedObjectives):
        return None
    epsilon = corner_epsilon(_delta_for_minima(event_counts, delta), *corner_arguments(event, neighbours))
    epsilon += _constant_divergence(event)
    return epsilon if epsilon <= _LARGEST_EPSILON else math.inf


def _has_minima(event: Event) -> bool:
    """Whether perturbed objectives are part of an event; of runs, too, however many there are."""
    if isinstance(event, OneOf):
        return any(_has_minima(leaf) for alternative in event.events for leaf, _ in leaves(alternative))
    if isinstance(event, _BEST):
        return any(_has_minima(leaf) for leaf, _ in leaves(event.event))
    return isinstance(event, PerturbedObjectives)


def _loss_events(event_counts: _EventCounts, neighbours: Neighbours) -> _EventCounts | None:
    """Write all parts as kinds that have a privacy loss distribution; None where one has none."""
    loss_events: list[tuple[Event, int]] = []
    for event, count in event_counts:
        pure = pure_epsilon(event, neighbours)
        if pure is not None:
            event = EpsilonDelta(pure, 0.0)
        if not isinstance(event, (Gaussian, PoissonSampled, EpsilonDelta)):
            return None
        if not isinstance(event, EpsilonDelta) or event.epsilon > 0.0 or event.delta > 0.0:
            loss_events.append((event, count))
    return loss_events


def _loss_epsilon(event_counts: _EventCounts, delta: float, neighbours: Neighbours) -> float | None:
    """Epsilon by privacy loss distributions; None where some part has none."""
    loss_events = _loss_events(event_counts, neighbours)
    if not loss_events or delta <= 0.0:
        return None
    sampled = [(event, count) for event, count in loss_events if isinstance(event, PoissonSampled)]
    plain = [
        event.noise_multiplier for event, count in loss_events if isinstance(event, Gaussian) for _ in range(count)
    ]
    if len(sampled) == 1 and len(plain) + 1 == len(loss_events):
        # The usual training by sampled steps has an account already, made when its noise was chosen.
        (step, count), *_ = sampled
        assert isinstance(step, PoissonSampled)
        rate, multiplier = step.sampling_probability, step.event.noise_multiplier
        return sampled_gaussian_epsilon(multiplier, delta, rate, count, neighbours, tuple(plain))
    return loss_distribution_epsilon(loss_events, delta, neighbours)


def _renyi_name(event_counts: _EventCounts) -> str:
    kinds = {type(event) for event, _ in event_counts}
    if kinds <= {ZeroConcentrated, ExponentialMechanism}:
        return ZCDP_ACCOUNTANT
    return _CURVES if all(issubclass(kind, PerturbedObjectives) for kind in kinds) else _RENYI


def _closed_account(event_counts: _EventCounts, delta: float, neighbours: Neighbours) -> list[Account]:
    """Accounts of Gaussian releases, exactly, and of budgets that are added."""
    if all(isinstance(event, Gaussian) for event, _ in event_counts):
        signals = [
            math.sqrt(count) / event.noise_multiplier for event, count in event_counts if isinstance(event, Gaussian)
        ]
        signal = relation_factor(neighbours) * math.hypot(*signals)
        name = (
            GAUSSIAN_ACCOUNTANT
            if sum(count for _, count in event_counts) == 1
            else f"{GAUSSIAN_ACCOUNTANT}, composed exactly"
        )
        return [Account(exact_gaussian_epsilon(signal, delta), delta, name)]
    pure = [(pure_epsilon(event, neighbours), count) for event, count in event_counts]
    if all(epsilon is not None for epsilon, _ in pure):
        epsilon = sum(count * event_epsilon for event_epsilon, count in pure if event_epsilon is not None)
        kinds = {type(event) for event, _ in event_counts}
        name = {frozenset({Laplace}): LAPLACE_ACCOUNTANT, frozenset({ExponentialMechanism}): _PURE}.get(
            frozenset(kinds), _ADDED
        )
        return [Account(epsilon, delta, name)]
    return []


def _by_adding(event_counts: _EventCounts, delta: float, neighbours: Neighbours) -> Account:
    """Account of parts that no accountant knows together: each with a share of delta, and the budgets added."""
    plain = [(event, count) for event, count in event_counts if isinstance(event, EpsilonDelta)]
    spare_delta = delta - sum(count * event.delta for event, count in plain if isinstance(event, EpsilonDelta))
    epsilon = sum(count * event.epsilon for event, count in plain if isinstance(event, EpsilonDelta))
    others = [pair for pair in event_counts if pair not in plain]
    drawn = [pair for pair in others if isinstance(pair[0], PoissonSampled)]
    groups = [group for group in (drawn, [pair for pair in others if pair not in drawn]) if group]
    if any(len(group) == len(event_counts) for group in groups):
        # No accountant knows any of it.
        return Account(math.inf, delta, _NOTHING)
    if spare_delta < -1e-12 * delta or (groups and spare_delta <= 0.0):
        return Account(math.inf, delta, _ADDED)
    for group in groups:
        epsilon += _account(tuple(group), spare_delta / len(groups), neighbours).epsilon
    return Account(epsilon, delta, _ADDED)


@functools.lru_cache(maxsize=4096)
def _account(event_counts: tuple[tuple[Event, int], ...], delta: float, neighbours: Neighbours) -> Account:
    if any(isinstance(event, NonPrivate) for event, _ in event_counts):
        return Account(math.inf, delta, _NOTHING)
    if (alternatives := _alternatives(event_counts)) is not None:
        return _worst([_account(tuple(leaves(alternative)), delta, neighbours) for alternative in alternatives])
    accounts = _closed_account(event_counts, delta, neighbours)
    exact = all(isinstance(event, (Gaussian, Laplace)) for event, _ in event_counts) and bool(accounts)
    plain = all(isinstance(event, EpsilonDelta) for event, _ in event_counts)
    renyi_known = False
    if not exact:
        renyi = _renyi_epsilon(event_counts, delta, neighbours)
        renyi_known = renyi is not None
        if renyi is not None:
            accounts.append(Account(renyi, delta, _renyi_name(event_counts)))
        corners = _corner_epsilon(event_counts, delta, neighbours)
        if corners is not None:
            accounts.append(Account(corners, delta, _CORNERS))
        several = sum(count for _, count in event_counts) > 1
        selections = all(isinstance(event, ExponentialMechanism) for event, _ in event_counts)
        losses = None if (plain and not several) or selections else _loss_epsilon(event_counts, delta, neighbours)
        if losses is not None:
            steps = any(isinstance(event, PoissonSampled) for event, _ in event_counts)
            accounts.append(Account(losses, delta, SAMPLED_GAUSSIAN_ACCOUNTANT if steps else _LOSSES))
    # Selections have a better account by themselves than as plain budgets among losses.
    selected = any(isinstance(event, ExponentialMechanism) for event, _ in event_counts) and not renyi_known
    mixed = renyi_known and any(isinstance(event, PoissonSampled) for event, _ in event_counts)
    if not accounts or plain or selected or mixed:
        accounts.append(_by_adding(event_counts, delta, neighbours))
    pure = [(pure_epsilon(event, neighbours), count) for event, count in event_counts]
    rest = tuple(pair for pair, (epsilon, _) in zip(event_counts, pure, strict=True) if epsilon is None)
    if 0 < len(rest) < len(event_counts) and any(isinstance(event, _BEST) or _has_minima(event) for event, _ in rest):
        # The costs of the best of several runs grow slowly with the order, and those of pure budgets fast; minima by
        # themselves have corners.
        added = sum(count * epsilon for epsilon, count in pure if epsilon is not None)
        accounts.append(Account(added + _account(rest, delta, neighbours).epsilon, delta, _ADDED))
    return min(accounts, key=lambda account: account.epsilon)


def _alternatives(event_counts: _EventCounts) -> tuple[Event, ...] | None:
    """Return what may happen, where one of several events is all that does; else None."""
    (event, count), *others = event_counts
    return event.events if isinstance(event, OneOf) and count == 1 and not others else None


def _worst(accounts: Sequence[Account]) -> Account:
    """Account of one of several events: (epsilon, delta) that hold for each hold for their mixture, being linear."""
    return max(accounts, key=lambda candidate: candidate.epsilon)


def account(event: Event, delta: float, neighbours: Neighbours) -> Account:
    """Account for an event.

    Parameters
    ----------
    event : Event
        What was done with the rows.
    delta : float
        From 0 to below 1; 0 asks for pure differential privacy.
    neighbours : {"replace_one", "add_remove"}
        The relation.

    Returns
    -------
    Account
        The smallest epsilon of the accountants that know all parts: closed forms, Renyi divergences, privacy loss
        distributions. Where none knows all, budgets of parts are added. Infinite where nothing bounds it.
    """
    try:
        return _account(tuple(leaves(event)), float(delta), neighbours)
    except (OverflowError, ZeroDivisionError):
        # Beyond what float64 can account for, for instance a multiplier of 1e-200.
        return Account(math.inf, float(delta), _NOTHING)


def verified_account(event: Event, delta: float, neighbours: Neighbours) -> Account:
    """Account for an event by other means than `account`, to check it.

    Parameters
    ----------
    event, delta, neighbours
        As in `account`.

    Returns
    -------
    Account
        Gaussian noise by privacy loss distributions, on a finer grid than that of calibrations; zCDP, selections and
        perturbed objectives by Renyi divergences; both with `dp_accounting`. Laplace noise by its closed form. These
        bounds lie at or a little above the best ones.
    """
    event_counts = leaves(event)
    if any(isinstance(leaf, NonPrivate) for leaf, _ in event_counts):
        return Account(math.inf, delta, _NOTHING)
    if (alternatives := _alternatives(event_counts)) is not None:
        return _worst([verified_account(alternative, delta, neighbours) for alternative in alternatives])
    pure = [pure_epsilon(leaf, neighbours) for leaf, _ in event_counts]
    added = math.inf
    if all(epsilon is not None for epsilon in pure):
        added = sum(
            count * event_epsilon
            for event_epsilon, (_, count) in zip(pure, event_counts, strict=True)
            if event_epsilon is not None
        )
    if math.isfinite(added) and (delta <= 0.0 or all(isinstance(leaf, Laplace) for leaf, _ in event_counts)):
        return Account(added, delta, "closed form: sensitivity over scale, added")
    losses = _loss_events(event_counts, neighbours)
    if losses and not all(isinstance(leaf, ExponentialMechanism) for leaf, _ in event_counts):
        return Account(loss_distribution_epsilon(losses, delta, neighbours, points=40.0), delta, _LOSSES)
    selected = _library_selection_epsilon(event_counts, delta, neighbours)
    if selected is not None:
        return Account(selected, delta, "best of random runs (dp_accounting)")
    renyi = _library_renyi_epsilon(event_counts, delta, neighbours)
    corners = _library_corner_epsilon(event_counts, delta, neighbours)
    if corners is not None and (renyi is None or corners <= renyi):
        return Account(corners, delta, f"{_CORNERS} (dp_accounting)")
    if renyi is not None:
        name = "Renyi divergences (dp_accounting)"
        return Account(min(renyi, added), delta, name if renyi <= added else _PURE)
    return _by_adding(event_counts, delta, neighbours)


def _library_selection_epsilon(event_counts: _EventCounts, delta: float, neighbours: Neighbours) -> float | None:
    """Epsilon of the best of several runs of Gaussian releases, all by dp_accounting; None for other events."""
    import dp_accounting
    from dp_accounting import rdp

    (event, count), *others = event_counts
    if others or count > 1 or not isinstance(event, BestOfNegativeBinomial) or event.shape < 0:
        return None
    runs = leaves(event.event)
    if not all(isinstance(leaf, Gaussian) for leaf, _ in runs):
        return None
    factor = relation_factor(neighbours)
    # It knows no Gaussian noise for replaced rows: the same with noise over what they change.
    nearer = dataclasses.replace(
        event,
        event=Composed(
            tuple(
                SelfComposed(Gaussian(leaf.noise_multiplier / factor), times)
                for leaf, times in runs
                if isinstance(leaf, Gaussian)
            )
        ),
    )
    relation = dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE
    accountant = rdp.RdpAccountant(1.0 + np.geomspace(1e-2, 1e4, 801), relation)
    return float(accountant.compose(dp_event(nearer)).get_epsilon(delta))


def _library_renyi_epsilon(event_counts: _EventCounts, delta: float, neighbours: Neighbours) -> float | None:
    """Epsilon by Renyi divergences, with the conversion of dp_accounting and SciPy's normal distribution."""
    from dp_accounting import rdp

    delta = _delta_for_minima(event_counts, delta)
    if delta <= 0.0:
        return math.inf
    factor = relation_factor(neighbours)
    sampled = any(isinstance(event, PoissonSampled) for event, _ in event_counts)
    orders = np.arange(2.0, 257.0) if sampled else 1.0 + np.geomspace(1e-2, 1e5, 4001)
    total = np.zeros(orders.size)
    constant = 0.0
    for event, count in event_counts:
        if isinstance(event, PerturbedObjectives):
            divergence = event.n_objectives * objective_perturbation_divergence(orders, factor * event.signal)
            divergence = divergence + orders * 0.5 * (factor / event.output_multiplier) ** 2
            constant += count * event.n_objectives * math.log1p(event.curvature)
        elif isinstance(event, PoissonSampled) and neighbours == "add_remove":
            divergence = _library_sampled_divergence(orders, event)
        else:
            known_divergence = _renyi_divergence(event, orders, neighbours)
            if known_divergence is None:
                return None
            divergence = known_divergence
        total += count * divergence
    return float(rdp.compute_epsilon(orders, total, delta)[0]) + constant


def _library_corner_epsilon(event_counts: _EventCounts, delta: float, neighbours: Neighbours) -> float | None:
    """Epsilon of perturbed objectives by themselves, of each way to choose corners, by dp_accounting; or None."""
    from dp_accounting.pld import privacy_loss_mechanism
    from scipy.special import ndtr

    (event, count), *others = event_counts
    if others or count > 1 or not isinstance(event, PerturbedObjectives):
        return None
    one_row = relation_factor(neighbours)
    added, n_vectors, output = event.signal, int(one_row), one_row / event.output_multiplier
    terms: list[tuple[float, privacy_loss_mechanism.GaussianPrivacyLoss]] = []
    for chosen in itertools.combinations_with_replacement(range(n_vectors + 1), event.n_objectives):
        numbers = [chosen.count(corner) for corner in range(n_vectors + 1)]
        arrangements = math.factorial(event.n_objectives) / math.prod(math.factorial(number) for number in numbers)
        # One corner of no vector, one of all, and as many of one as there are.
        subsets = math.prod(math.comb(n_vectors, corner) ** number for corner, number in enumerate(numbers))
        size = math.sqrt(sum((corner * added) ** 2 for corner in chosen) + output**2)
        rare = float(ndtr(-added / 2.0)) ** numbers[0]
        terms.append((arrangements * subsets * rare, privacy_loss_mechanism.GaussianPrivacyLoss(1.0 / size)))
    target, low, high = _delta_for_minima(event_counts, delta), 0.0, 1.0

    def total(epsilon: float) -> float:
        return math.fsum(weight * float(loss.get_delta_for_epsilon(epsilon)) for weight, loss in terms)

    while total(high) > target and high <= _LARGEST_EPSILON:
        high *= 2.0
    while high - low > 1e-9 * high:
        middle = 0.5 * (low + high)
        low, high = (low, middle) if total(middle) <= target else (middle, high)
    return high + event.n_objectives * math.log1p(event.curvature)


def _library_sampled_divergence(orders: np.ndarray, event: PoissonSampled) -> np.ndarray:
    """Renyi divergences of one step as `dp_accounting` has them: it tells them as epsilons of one order each."""
    from dp_accounting import rdp

    # So small that no epsilon is cut off at 0.
    log_delta = -600.0
    divergences = []
    for order in orders.tolist():
        accountant = rdp.RdpAccountant([order]).compose(dp_event(event))
        epsilon = accountant.get_epsilon(math.exp(log_delta))
        divergences.append(epsilon - math.log1p(-1.0 / order) + (log_delta + math.log(order)) / (order - 1.0))
    return np.maximum(divergences, 0.0)


def scaled_event(event: Event, k: int) -> Event | None:
    """Turn an event for one row into one for k rows; None where that is no event of the same kind."""
    match event:
        case Gaussian():
            return Gaussian(event.noise_multiplier / k)
        case Laplace():
            return Laplace(event.noise_multiplier / k)
        case ExponentialMechanism():
            return ExponentialMechanism(event.epsilon * k)
        case ZeroConcentrated():
            # Bun and Steinke (2016), Proposition 1.9.
            return ZeroConcentrated(event.rho * k**2)
        case EpsilonDelta():
            delta = event.delta * float(np.exp(event.epsilon * np.arange(k)).sum())
            return EpsilonDelta(k * event.epsilon, delta) if delta <= 1 else NonPrivate()
        case NonPrivate():
            return event
        case PerturbedObjectives():
            # Proved in `privsvm.privacy.objective_perturbation`; the noise on the minima hides a distance alone.
            share = k * math.log1p(event.curvature)
            if share > _LARGEST_EPSILON_OF_CURVATURE:
                return NonPrivate()
            return _PerturbedByGroup(
                k * event.signal, math.expm1(share), event.n_objectives, event.output_multiplier, rows=k
            )
        case SelfComposed():
            inner = scaled_event(event.event, k)
            return None if inner is None else SelfComposed(inner, event.count)
        case Composed() | OneOf():
            scaled_events = [scaled_event(one_event, k) for one_event in event.events]
            kept_events = tuple(one_event for one_event in scaled_events if one_event is not None)
            return type(event)(kept_events) if len(kept_events) == len(scaled_events) else None
        case BestOfNegativeBinomial() | BestOfPoisson():
            inner = scaled_event(event.event, k)
            return None if inner is None else dataclasses.replace(event, event=inner)
        case PoissonSampled():
            # Whether a row is drawn depends on no row: one that is drawn for certain is seen no less (joint convexity).
            return scaled_event(event.event, k)
    return None


def group_account(event: Event, k: int, delta: float, neighbours: Neighbours) -> Account:
    """Account for neighbours that differ in k rows and not in one.

    Parameters
    ----------
    event : Event
        What was done with the rows.
    k : int
        Number of rows that are replaced, or added or removed.
    delta : float
        Of the whole group.
    neighbours : {"replace_one", "add_remove"}
        The relation for one row.

    Returns
    -------
    Account
        Noise is compared with what k rows add, where that is all that counts; for rows that are drawn under
        ``add_remove``, with what a binomial number of them adds. Otherwise epsilon is k times that of one row, at the
        largest ``delta_1`` with ``delta_1 (1 + e^epsilon_1 + ... + e^((k - 1) epsilon_1)) <= delta``; for rows that
        are drawn under ``replace_one``, the better of this and of rows that are all drawn.
    """
    if not isinstance(k, int) or isinstance(k, bool) or k < 1:
        raise ValueError(f"k={k!r}: must be a whole number of at least 1")
    scaled = scaled_event(event, k) if k > 1 else event
    sampled = any(isinstance(leaf, PoissonSampled) for leaf, _ in leaves(event))
    if scaled is not None:
        scaled_account = account(scaled, delta, neighbours)
        if k == 1 or not sampled:
            return scaled_account
        losses = _group_losses(event, k, delta, neighbours)
        if losses is not None:
            return min(scaled_account, losses, key=lambda candidate: candidate.epsilon)
        return min(
            scaled_account, _repeated(event, k, delta, neighbours, 1e-9), key=lambda candidate: candidate.epsilon
        )
    return _repeated(event, k, delta, neighbours, 1e-9 if sampled else 1e-300)


def _group_losses(event: Event, k: int, delta: float, neighbours: Neighbours) -> Account | None:
    """Account for k rows that steps draw independently; None where some part is no Gaussian noise."""
    event_counts = leaves(event)
    all_gaussian = all(isinstance(leaf, (Gaussian, PoissonSampled)) for leaf, _ in event_counts)
    if not all_gaussian or neighbours != "add_remove" or k > LARGEST_GROUP or delta <= 0.0:
        return None
    return Account(
        loss_distribution_epsilon(event_counts, delta, neighbours, group=k), delta, f"{_LOSSES}, of {k} rows"
    )


def _repeated(event: Event, k: int, delta: float, neighbours: Neighbours, smallest: float) -> Account:
    """Account for k rows from that for one, with its delta from `smallest` on."""
    if delta == 0:
        one = account(event, 0.0, neighbours)
        return Account(k * one.epsilon, 0.0, f"{one.accountant}, {k} times for {k} rows")

    def total(log_delta: float) -> float:
        """Logarithm of the group's delta, for one row's."""
        epsilon = account(event, math.exp(log_delta), neighbours).epsilon
        if not math.isfinite(epsilon):
            return math.inf
        terms = epsilon * np.arange(k)
        return log_delta + float(np.logaddexp.reduce(terms))

    high = math.log(delta / k)
    best = Account(math.inf, delta, f"no accountant bounds it for {k} rows at this delta")
    for below in (0.0, *np.geomspace(0.05, max(high - math.log(smallest), 0.05), _GROUP_STEPS)):
        if total(high - below) <= math.log(delta):
            one = account(event, math.exp(high - below), neighbours)
            if k * one.epsilon < best.epsilon:
                best = Account(k * one.epsilon, delta, f"{one.accountant}, {k} times for {k} rows")
    return best
