"""Accountants: each says which events it knows and what epsilon they have; the account is the least of those that know.

`account` is what records are made and read with. Closed forms, corners and Renyi divergences need no large package;
loss distributions, for rows drawn at random and for compositions of several kinds, need dp_accounting.
`recompute_account` computes the same with other means.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import ClassVar, NamedTuple

import numpy as np

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
    innermost,
    leaves,
    pure_epsilon,
    relation_factor,
)
from privsvm.privacy.gaussian_delta import exact_gaussian_epsilon
from privsvm.privacy.losses import (
    FINE_POINTS,
    LARGEST_DEVIATION,
    loss_deviation,
    loss_distribution,
    loss_grid,
    transform_slack,
)
from privsvm.privacy.objective_perturbation_delta import corner_epsilon, delta_of_minima
from privsvm.privacy.renyi import renyi_divergence, renyi_epsilon

GAUSSIAN_ACCOUNTANT = "analytic Gaussian, closed form"

# Deltas of one row that are tried for a group of rows, and the largest group whose draws are told apart.
_GROUP_STEPS, LARGEST_GROUP = 40, 64

# Above, nothing is accounted for: see `delta_of_minima`.
_LARGEST_EPSILON, _LARGEST_EPSILON_OF_CURVATURE = 1e7, 700.0

_Parts = Sequence[tuple[Event, int]]


@dataclasses.dataclass(frozen=True)
class _PerturbedByGroup(PerturbedObjectives):
    """Perturbed objectives for neighbours that differ in `rows` rows, which add `signal` together."""

    rows: int


class Account(NamedTuple):
    """The result of an accountant: (epsilon, delta)-DP."""

    epsilon: float
    delta: float
    accountant: str


def _kinds(event: Event) -> set[type[Event]]:
    return {type(leaf) for leaf, _ in leaves(event)}


def _count(event: Event) -> int:
    return sum(count for _, count in leaves(event))


def _has_minima(event: Event) -> bool:
    return any(isinstance(leaf, PerturbedObjectives) for leaf, _ in innermost(event))


def _noise_delta(event: Event, delta: float) -> float:
    """Lower delta by the loss where noise is absurdly large: see `delta_of_minima`."""
    return delta_of_minima(delta) if _has_minima(event) else delta


@dataclasses.dataclass(frozen=True)
class Accountant:
    """One way to account for events under a relation: a base."""

    neighbours: Neighbours
    name: ClassVar[str] = ""

    def knows(self, event: Event) -> bool:
        """Return whether it bounds the event's cost."""
        raise NotImplementedError

    def epsilon(self, event: Event, delta: float) -> float:
        """Bound epsilon at delta of an event that it knows; infinity where nothing is known at this delta."""
        raise NotImplementedError

    def label(self, event: Event) -> str:
        """Name how it accounts for an event, in records."""
        return self.name

    def account(self, event: Event, delta: float) -> Account:
        """Account for an event that it knows."""
        return Account(self.epsilon(event, delta), delta, self.label(event))


class ExactGaussian(Accountant):
    """Gaussian releases, however many: no other account is less."""

    name = GAUSSIAN_ACCOUNTANT

    def knows(self, event: Event) -> bool:
        return _kinds(event) == {Gaussian}

    def signal(self, event: Event) -> float:
        """Compute how many standard deviations neighbours are apart."""
        signals = [
            math.sqrt(count) / event.noise_multiplier for event, count in leaves(event) if isinstance(event, Gaussian)
        ]
        return relation_factor(self.neighbours) * math.hypot(*signals)

    def epsilon(self, event: Event, delta: float) -> float:
        return exact_gaussian_epsilon(self.signal(event), delta)

    def label(self, event: Event) -> str:
        return self.name if _count(event) == 1 else f"{self.name}, composed exactly"


class PureBudgets(Accountant):
    """Parts with pure differential privacy, whose epsilons are added; at every delta."""

    def knows(self, event: Event) -> bool:
        return all(pure_epsilon(leaf, self.neighbours) is not None for leaf, _ in leaves(event))

    def epsilon(self, event: Event, delta: float) -> float:
        return sum(count * (pure_epsilon(leaf, self.neighbours) or 0.0) for leaf, count in leaves(event))

    def label(self, event: Event) -> str:
        if _kinds(event) == {Laplace}:
            return "discrete Laplace mechanism, closed form: L1 sensitivity over the scale"
        if _kinds(event) == {ExponentialMechanism}:
            return "sum over the selections (pure differential privacy)"
        return AddedBudgets.name


class ObjectivePerturbationAccountant(Accountant):
    """Perturbed objectives by themselves, by the corners of what their gradients differ by."""

    name = "Gaussian losses at the corners of perturbed objectives"

    def knows(self, event: Event) -> bool:
        return _count(event) == 1 and isinstance(leaves(event)[0][0], PerturbedObjectives)

    def arguments(self, event: Event) -> tuple[float, int, int, float]:
        """Return the arguments after epsilon that `corner_delta` takes."""
        ((minima, _),) = leaves(event)
        assert isinstance(minima, PerturbedObjectives)
        factor = relation_factor(self.neighbours)
        n_vectors = round(factor) * (minima.rows if isinstance(minima, _PerturbedByGroup) else 1)
        return factor * minima.signal, minima.n_objectives, n_vectors, factor / minima.output_multiplier

    def curvature(self, event: Event) -> float:
        """Return the cost of the determinants, at every delta."""
        ((minima, _),) = leaves(event)
        assert isinstance(minima, PerturbedObjectives)
        return minima.n_objectives * math.log1p(minima.curvature)

    def epsilon(self, event: Event, delta: float) -> float:
        epsilon = self._of_corners(event, _noise_delta(event, delta))
        epsilon += self.curvature(event)
        return epsilon if epsilon <= _LARGEST_EPSILON else math.inf

    def _of_corners(self, event: Event, delta: float) -> float:
        return corner_epsilon(delta, *self.arguments(event))


class RenyiDivergences(Accountant):
    """Parts that all have Renyi divergences, which are added; sampled steps only where loss distributions fail."""

    def knows(self, event: Event) -> bool:
        # Laplace noise alone is pure: delta buys next to nothing.
        if _kinds(event) == {Laplace}:
            return False
        if PoissonSampled in _kinds(event) and LossDistributions(self.neighbours).knows(event):
            return False
        return renyi_divergence(event, np.array([2.0]), self.neighbours) is not None

    def epsilon(self, event: Event, delta: float) -> float:
        delta = _noise_delta(event, delta)
        epsilon = self._convert(event, delta) if delta > 0.0 else math.inf
        return epsilon if epsilon <= _LARGEST_EPSILON else math.inf

    def _divergence(self, event: Event, orders: np.ndarray) -> np.ndarray:
        divergence = renyi_divergence(event, orders, self.neighbours)
        assert divergence is not None
        return divergence

    def _convert(self, event: Event, delta: float) -> float:
        return renyi_epsilon(functools.partial(self._divergence, event), delta)

    def label(self, event: Event) -> str:
        kinds = _kinds(event)
        if kinds <= {ZeroConcentrated, ExponentialMechanism}:
            return "zCDP of bounded-range selections, converted by Renyi divergences"
        if all(issubclass(kind, PerturbedObjectives) for kind in kinds):
            return "Renyi divergences of random linear terms and noisy minima"
        return "Renyi divergences, added"


@dataclasses.dataclass(frozen=True)
class LossDistributions(Accountant):
    """Gaussian releases, sampled steps and plain budgets together, by privacy loss distributions.

    The grid of losses has `points` points in a standard deviation of one event's. Neighbours differ in `rows` rows; in
    several only where drawn rows are added or removed.
    """

    points: float = FINE_POINTS
    rows: int = 1
    name = "privacy loss distributions (dp_accounting)"

    def knows(self, event: Event) -> bool:
        kinds = _kinds(event)
        if self.rows > 1:
            by_rows = self.neighbours == "add_remove" and self.rows <= LARGEST_GROUP
            return by_rows and kinds <= {Gaussian, PoissonSampled}
        # One budget is its own account, and selections have a better one than as plain budgets.
        if kinds in ({ExponentialMechanism}, {Laplace}) or (
            _count(event) == 1 and not kinds & {Gaussian, PoissonSampled}
        ):
            return False
        mixed = {Gaussian, PoissonSampled, EpsilonDelta}
        return all(type(leaf) in mixed or pure_epsilon(leaf, self.neighbours) is not None for leaf, _ in leaves(event))

    def epsilon(self, event: Event, delta: float) -> float:
        parts: list[tuple[Event, int]] = []
        # The probability that the epsilon of every plain budget holds.
        bounded = 1.0
        for leaf, count in leaves(event):
            pure = pure_epsilon(leaf, self.neighbours)
            if pure != 0.0:
                parts.append((leaf if pure is None else EpsilonDelta(pure, 0.0), count))
            if isinstance(leaf, EpsilonDelta):
                bounded *= (1.0 - leaf.delta) ** count
        if not parts or 1.0 - bounded >= delta or loss_deviation(parts, self.rows) > LARGEST_DEVIATION:
            return math.inf
        width = loss_grid(parts, self.points, self.rows)
        losses = loss_distribution(parts, self.neighbours, width, self.rows)
        return float(losses.get_epsilon_for_delta(delta - transform_slack(parts)))

    def label(self, event: Event) -> str:
        if self.rows > 1:
            return f"{self.name}, of {self.rows} rows"
        return f"Poisson-sampled Gaussian steps, {self.name}" if PoissonSampled in _kinds(event) else self.name


class Alternatives(Accountant):
    """One of several events: (epsilon, delta) that hold for each hold for their mixture, being linear."""

    def knows(self, event: Event) -> bool:
        return _kinds(event) == {OneOf} and _count(event) == 1

    def account(self, event: Event, delta: float) -> Account:
        return _worst(event, lambda alternative: account(alternative, delta, self.neighbours))

    def epsilon(self, event: Event, delta: float) -> float:
        return self.account(event, delta).epsilon


def _worst(event: Event, account_of: Callable[[Event], Account]) -> Account:
    ((one_of, _),) = leaves(event)
    assert isinstance(one_of, OneOf)
    return max(map(account_of, one_of.events), key=lambda candidate: candidate.epsilon)


class AddedBudgets(Accountant):
    """Parts that nobody knows together: fixed budgets, and groups that share the rest of delta, are added."""

    name = "the budgets are added"

    def knows(self, event: Event) -> bool:
        return bool(self._splits(event))

    def epsilon(self, event: Event, delta: float) -> float:
        return min(self._add_budgets(fixed, groups, delta) for fixed, groups in self._splits(event))

    def _splits(self, event: Event) -> list[tuple[_Parts, list[_Parts]]]:
        """List ways to divide the parts, each into fixed budgets and groups."""
        parts, splits = leaves(event), []
        plain, others = _divide(parts, lambda leaf: isinstance(leaf, EpsilonDelta))
        groups = [group for group in _divide(others, lambda leaf: isinstance(leaf, PoissonSampled)) if group]
        if (plain or len(groups) > 1) and not _kinds(event) <= {Gaussian, Laplace, PoissonSampled}:
            splits.append((plain, groups))
        # The costs of the best of several runs grow slowly with the order, and the costs of pure budgets fast; minima
        # by themselves have corners.
        pure, rest = _divide(parts, lambda leaf: pure_epsilon(leaf, self.neighbours) is not None)
        special = (BestOfNegativeBinomial, BestOfPoisson)
        if pure and any(isinstance(leaf, special) or _has_minima(leaf) for leaf, _ in rest):
            splits.append((pure, [rest]))
        return splits

    def _add_budgets(self, fixed: _Parts, groups: list[_Parts], delta: float) -> float:
        spare_delta = delta - sum(count * event.delta for event, count in fixed if isinstance(event, EpsilonDelta))
        if spare_delta < -1e-12 * delta or (groups and spare_delta <= 0.0):
            return math.inf
        epsilon = 0.0
        for event, count in fixed:
            pure = pure_epsilon(event, self.neighbours)
            epsilon += count * (event.epsilon if isinstance(event, EpsilonDelta) else pure or 0.0)
        for group in groups:
            together = Composed(tuple(event if count == 1 else SelfComposed(event, count) for event, count in group))
            epsilon += account(together, spare_delta / len(groups), self.neighbours).epsilon
        return epsilon


def _divide(parts: _Parts, condition: Callable[[Event], bool]) -> tuple[_Parts, _Parts]:
    """Divide parts into those with a condition and all others."""
    return [part for part in parts if condition(part[0])], [part for part in parts if not condition(part[0])]


ACCOUNTANTS: tuple[type[Accountant], ...] = (
    ExactGaussian, PureBudgets, Alternatives, ObjectivePerturbationAccountant, RenyiDivergences, LossDistributions,
    AddedBudgets,
)  # fmt: skip
"""All of them; `account` asks the first before the others, since it is exact."""


def _least(accountants: Iterable[Accountant], event: Event, delta: float) -> Account:
    """Return the least of all that know an event."""
    least = Account(math.inf, delta, "nothing bounds it")
    for accountant in accountants:
        # Beyond what float64 can account for: a multiplier of 1e-200, say.
        with contextlib.suppress(OverflowError, ZeroDivisionError):
            if accountant.knows(event):
                least = min(least, accountant.account(event, delta), key=lambda candidate: candidate.epsilon)
    return least


def account(event: Event, delta: float, neighbours: Neighbours) -> Account:
    """Account for an event.

    The smallest epsilon of the accountants that know the event; infinite where none does. A delta of 0 asks for pure
    differential privacy.
    """
    return _account(event, float(delta), neighbours)


@functools.lru_cache(maxsize=4096)
def _account(event: Event, delta: float, neighbours: Neighbours) -> Account:
    exact, *others = (kind(neighbours) for kind in ACCOUNTANTS)
    return _least([exact] if exact.knows(event) else others, event, delta)


class _LibraryObjectivePerturbation(ObjectivePerturbationAccountant):
    """Corners with the Gaussian losses of dp_accounting."""

    name = f"{ObjectivePerturbationAccountant.name} (dp_accounting)"

    def _of_corners(self, event: Event, delta: float) -> float:
        from dp_accounting.pld.privacy_loss_mechanism import GaussianPrivacyLoss

        loss = functools.cache(lambda signal: GaussianPrivacyLoss(1.0 / signal))
        return corner_epsilon(
            delta,
            *self.arguments(event),
            lambda epsilon, signal: float(loss(signal).get_delta_for_epsilon(epsilon)),
        )


class _LibraryRenyi(RenyiDivergences):
    """Renyi divergences of fixed orders, converted by dp_accounting."""

    def _convert(self, event: Event, delta: float) -> float:
        from dp_accounting import rdp

        sampled = PoissonSampled in _kinds(event)
        orders = np.arange(2.0, 257.0) if sampled else 1.0 + np.geomspace(1e-2, 1e5, 2001)
        return float(rdp.compute_epsilon(orders, self._divergence(event, orders), delta)[0])

    def label(self, event: Event) -> str:
        return "Renyi divergences (dp_accounting)"


def recompute_account(event: Event, delta: float, neighbours: Neighbours) -> Account:
    """Account for an event by other means than `account`, to check it.

    Gaussian noise by privacy loss distributions, on a finer grid than calibrations use; zCDP, selections and perturbed
    objectives by Renyi divergences and corners; all with `dp_accounting`. Pure budgets by their sum. These bounds lie
    at or a little above the best ones.
    """
    if Alternatives(neighbours).knows(event):
        return _worst(event, lambda alternative: recompute_account(alternative, delta, neighbours))
    losses = LossDistributions(neighbours, points=2.0 * FINE_POINTS)
    others = (kind(neighbours) for kind in (PureBudgets, _LibraryObjectivePerturbation, _LibraryRenyi, AddedBudgets))
    return _least((losses, *others), event, delta)


def scale_event(event: Event, k: int) -> Event:
    """Turn an event for one row into one for k rows."""
    match event:
        case Gaussian() | Laplace():
            return dataclasses.replace(event, noise_multiplier=event.noise_multiplier / k)
        case ExponentialMechanism():
            return ExponentialMechanism(event.epsilon * k)
        case ZeroConcentrated():
            # Bun and Steinke (2016), Proposition 1.9.
            return ZeroConcentrated(event.rho * k**2)
        case EpsilonDelta():
            delta = event.delta * float(np.exp(event.epsilon * np.arange(k)).sum())
            return EpsilonDelta(k * event.epsilon, delta) if delta <= 1 else NonPrivate()
        case PerturbedObjectives():
            # Proved in docs/proofs/objective_perturbation.md; the noise on the minima hides a distance alone.
            share = k * math.log1p(event.curvature)
            if share > _LARGEST_EPSILON_OF_CURVATURE:
                return NonPrivate()
            return _PerturbedByGroup(
                k * event.signal, math.expm1(share), event.n_objectives, event.output_multiplier, rows=k
            )
        case Composed() | OneOf():
            return type(event)(tuple(scale_event(one_event, k) for one_event in event.events))
        case SelfComposed() | BestOfNegativeBinomial() | BestOfPoisson():
            return dataclasses.replace(event, event=scale_event(event.event, k))
        case PoissonSampled():
            # Whether a row is drawn depends on no row: one that is drawn for certain is seen no less (joint convexity).
            return scale_event(event.event, k)
    return NonPrivate()


def double_sensitivity(event: Event) -> Event:
    """Turn an event for a row that is added or removed into one for a replaced row, which is one of each.

    The result is for ``replace_one``. A noise multiplier is over one row's contribution there too, and the accountants
    double it; a loss without one is scaled as for two rows.
    """
    match event:
        case Gaussian() | Laplace() | PoissonSampled() | PerturbedObjectives():
            return event
        case Composed() | OneOf():
            return type(event)(tuple(map(double_sensitivity, event.events)))
        case SelfComposed() | BestOfNegativeBinomial() | BestOfPoisson():
            return dataclasses.replace(event, event=double_sensitivity(event.event))
        case ExponentialMechanism() | ZeroConcentrated() | EpsilonDelta():
            return scale_event(event, 2)
    return NonPrivate()


def relation_accounts(event: Event, k: int, delta: float, neighbours: Neighbours) -> dict[Neighbours, Account]:
    """Account for an event under every relation of which it says something, its own first; see `group_account`.

    An event for added and removed rows bounds a replaced row too. The converse does not hold: a row that is added may
    move a release by more than half of what a replaced row does, and change its number of rows. Nor is anything said of
    several rows that are drawn and replaced: known bounds lie far above the truth.
    """
    accounts: dict[Neighbours, Account] = {neighbours: group_account(event, k, delta, neighbours)}
    is_drawn = any(isinstance(leaf, PoissonSampled) for leaf, _ in innermost(event))
    if neighbours == "add_remove" and not (is_drawn and k > 1):
        accounts["replace_one"] = group_account(double_sensitivity(event), k, delta, "replace_one")
    return {relation: found for relation, found in accounts.items() if math.isfinite(found.epsilon)}


def group_account(event: Event, k: int, delta: float, neighbours: Neighbours) -> Account:
    """Account for neighbours that differ in k rows and not in one.

    `delta` is for the whole group, `neighbours` the relation for one row. Noise is compared with the sum of k rows; for
    rows that are drawn under ``add_remove``, with the sum of a binomial number of them. Of rows that are drawn under
    ``replace_one``, the better of rows that are all drawn, and of k times the epsilon of one row, at the largest
    ``delta_1`` with ``delta_1 (1 + e^epsilon_1 + ... + e^((k - 1) epsilon_1)) <= delta``.
    """
    if not isinstance(k, int) or isinstance(k, bool) or k < 1:
        raise ValueError(f"k={k!r}: must be a whole number of at least 1")
    if k == 1:
        return account(event, delta, neighbours)
    accounts = [account(scale_event(event, k), delta, neighbours)]
    if PoissonSampled in _kinds(event):
        drawn = LossDistributions(neighbours, rows=k)
        by_rows = drawn.knows(event) and delta > 0.0
        accounts.append(drawn.account(event, delta) if by_rows else _repeat_event(event, k, delta, neighbours))
    return min(accounts, key=lambda candidate: candidate.epsilon)


def _repeat_event(event: Event, k: int, delta: float, neighbours: Neighbours) -> Account:
    """Account for k rows from that for one, with its delta from 1e-9 on."""
    if delta == 0:
        one = account(event, 0.0, neighbours)
        return Account(k * one.epsilon, 0.0, f"{one.accountant}, {k} times for {k} rows")
    high = math.log(delta / k)
    best = Account(math.inf, delta, f"no accountant bounds it for {k} rows at this delta")
    for below in (0.0, *np.geomspace(0.05, max(high - math.log(1e-9), 0.05), _GROUP_STEPS)):
        one = account(event, math.exp(high - below), neighbours)
        if not math.isfinite(one.epsilon):
            continue
        group_delta = high - below + float(np.logaddexp.reduce(one.epsilon * np.arange(k)))
        if group_delta <= math.log(delta) and k * one.epsilon < best.epsilon:
            best = Account(k * one.epsilon, delta, f"{one.accountant}, {k} times for {k} rows")
    return best
