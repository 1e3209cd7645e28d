"""Audits of the library's own methods: one solve, many releases, on made-up rows with one feature.

The cells to audit follow from an estimator's declarations: its parameters, the relations that it offers, and the event
in its record. Nothing here knows a method by name.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from privsvm.auditing.cells import SURE, CellBound, Draw, audit_cell, best_pair
from privsvm.auditing.draw_plans import CellPlan, plan_cell, plan_replays
from privsvm.auditing.neighbours import Pair, canaries, make_crowded_pairs, make_pairs, pairs_around
from privsvm.auditing.replays import Release
from privsvm.numerics.noise.noise_source import NoiseSource, seeded_source
from privsvm.privacy.events import (
    NEIGHBOURS,
    Event,
    ExponentialMechanism,
    Gaussian,
    Neighbours,
    PerturbedObjectives,
    PoissonSampled,
    leaves,
)
from privsvm.privacy.gate import Guarantee
from privsvm.privacy.lower_bounds import CONFIDENCE, one_run_bound

# Public parameters at which one row pulls hardest, for those that an estimator has: weights stay near zero, where
# losses are linear and gradients as long as their clip. Feature maps and selections are small, so that draws are cheap.
_WORST: Mapping[str, Any] = {
    "C": 0.005,
    "learning_rate": 1e-9,
    "loss_weight": 4.0,
    "radius": 1e-3,
    "features": "linear",
    "n_components": 1,
    "n_landmarks": 1,
}
_MOST: Mapping[str, int] = {"n_steps": 8}
_COMMON_ROWS = 20_000

# A loss this weak leaves the gradient as long as the longest row, if nothing limits rows.
_WEAKEST: Mapping[str, Any] = {"C": 5e-7}

# Releases of each pair that the search for the worst one looks at, and of an audit at least.
_SEARCH, _LEAST = 200, 400

# Releases that one call makes.
_BLOCK = 20_000

# Draws that a release costs, in units of noise on a solution.
_STEP_COST, _OBJECTIVE_COST, _UNKNOWN_COST = 0.15, 8.0, 10.0

# One by one, releases are so many times as expensive as many at a time, and still more of several mechanisms.
_ONE_BY_ONE, _COMPOSED = 12.0, 1.5

# Many at a time, releases with more numbers behind them are fewer in proportion.
_FEW_NUMBERS = 1400

_N_CANARIES = 200

# Lengths of the made-up row, in units of the longest permitted.
_SIZES = (1.0, 10.0, 1e3)


@dataclasses.dataclass(frozen=True, kw_only=True)
class MethodCell:
    """Findings of an audit at one stated epsilon, for one relation.

    `guarantee` is the record of the audited releases, `pair` the two datasets in words, and `draws` the number of
    releases. `looks_at` describes the part of the releases that the audit reads. `reachable` is the largest epsilon
    that any number of draws of this pair can show; infinite where it is unknown. `bounds` are lower bounds on epsilon;
    `confirmed` says whether fresh draws refuted the stated epsilon once more.
    """

    relation: Neighbours
    epsilon: float
    delta: float
    guarantee: Guarantee
    pair: str
    draws: int
    bounds: tuple[CellBound, ...]
    looks_at: str = "the released model"
    reachable: float = math.inf
    confirmed: bool = False


def relations_of(estimator_class: Any) -> tuple[Neighbours, ...]:
    """List the relations that an estimator offers; empty for one that states no epsilon to audit."""
    declared = getattr(estimator_class, "declared", {})
    if "neighbours" not in declared or "epsilon" not in declared:
        return ()
    return tuple(relation for relation in NEIGHBOURS if declared["neighbours"].constraint.accepts(relation))


def worst_parameters(estimator_class: Any, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Change public parameters to where one row shows most; a guarantee holds for all of them.

    They are configured as `parameters`, and only values that the estimator accepts take their place.
    """
    declared = estimator_class.declared
    worst = {
        name: value for name, value in _WORST.items() if name in declared and declared[name].constraint.accepts(value)
    }
    changed = {**parameters, **worst}
    for name, most in _MOST.items():
        if name in declared:
            changed[name] = min(int(changed.get(name, declared[name].default)), most)
    if "n_rows" in declared:
        batch = changed.get("batch_size")
        # So many rows that released means move little; or a few batches.
        changed["n_rows"] = _COMMON_ROWS if batch is None else 8 * int(batch)
    return changed


def lay_out_numbers(path: Any, index: int, aligned: bool = True) -> np.ndarray:
    """Lay out the content of the releases of one epsilon as rows of numbers.

    All arrays that differ from release to release; of those that all share their size, sums and first numbers, so that
    releases of different size can be compared. Where arrays are not `aligned`, since their size depends on the dataset,
    as for support vectors, sums are taken.
    """
    n_epsilons, n_repeats = len(path.epsilons), path.n_repeats
    columns, shared = [], []
    arrays = dict(path.arrays())
    for array in arrays.values():
        if array.shape[:2] == (n_epsilons, n_repeats):
            columns.append(np.asarray(array[index], dtype=np.float64).reshape(n_repeats, -1))
        else:
            flat = np.asarray(array, dtype=np.float64).ravel()
            shared += [float(flat.size), float(flat.sum()), float(np.abs(flat).max(initial=0.0))]
    if "coef" in arrays and "intercept" in arrays and arrays["coef"].shape[-1] == 1:
        # Offsets over weights reveal the released centre if rows were centred.
        coef, intercept = (
            arrays["coef"][index].reshape(n_repeats, -1),
            arrays["intercept"][index].reshape(n_repeats, -1),
        )
        if coef.shape == intercept.shape and np.any(intercept):
            columns[-1] = np.divide(intercept, coef, out=np.zeros_like(coef), where=coef != 0)
    if not aligned and "support_vectors" in arrays:
        columns = [
            column if column.shape[1] <= 1 else np.column_stack([column.sum(axis=1), (column**2).sum(axis=1)])
            for column in columns
        ]
    return np.hstack([*columns, np.tile(np.array(shared), (n_repeats, 1))])


def _cost(event: Event | None) -> float:
    """How many draws of noise one release takes, about."""
    if event is None:
        return _UNKNOWN_COST
    total = 0.0
    for leaf, count in leaves(event):
        if isinstance(leaf, PerturbedObjectives):
            total += _OBJECTIVE_COST * leaf.n_objectives
        elif isinstance(leaf, (ExponentialMechanism, PoissonSampled)) or count > 1:
            total += max(1.0, _STEP_COST * count)
        else:
            total += 1.0
    return total


def _is_gaussian(event: Event | None) -> bool:
    return event is not None and all(isinstance(leaf, Gaussian) for leaf, _ in leaves(event))


def two_clouds() -> tuple[np.ndarray, np.ndarray]:
    """Make eight rows of each of two classes that overlap a little."""
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1], 8)
    return np.clip(rng.normal(0.0, 0.4, (16, 2)) + np.where(labels == 1, 0.4, -0.4)[:, None], -1.0, 1.0), labels


def _release_of(estimator: Any, pair: Pair, epsilon: float, aligned: bool = True) -> Release:
    def release(dataset: int, sources: Sequence[NoiseSource]) -> np.ndarray:
        X, y = (pair.first, pair.second)[dataset]
        path = estimator.release_path(X, y, [epsilon], len(sources), lambda _, repeat: sources[repeat])
        return lay_out_numbers(path, 0, aligned)

    return release


def _draw_of(estimator: Any, pair: Pair, epsilon: float, aligned: bool, key: Sequence[str | int | float]) -> Draw:
    release = _release_of(estimator, pair, epsilon, aligned)

    def draw(dataset: int, n: int, part: str) -> np.ndarray:
        releases = []
        for start in range(0, n, _BLOCK):
            source = seeded_source(0, "audit", *key, epsilon, dataset, part, start)
            repeats = range(min(_BLOCK, n - start))
            releases.append(release(dataset, [source.part(str(repeat)) for repeat in repeats]))
        return np.vstack(releases)

    return draw


def _plan_cell(
    estimator: Any,
    pair: Pair,
    crowded: Sequence[Pair],
    relation: Neighbours,
    guarantee: Guarantee,
    key: Sequence[str | int | float],
) -> tuple[Pair, CellPlan]:
    """Plan a cell on the pair that differs most; where sums depend on the noise before them, on one of a crowd too."""
    epsilon, delta = guarantee.epsilon_requested, float(guarantee.delta or 0.0)
    many = _draw_of(estimator, pair, epsilon, guarantee.event is not None, key)
    release = _release_of(estimator, pair, epsilon)
    planned = plan_cell(release, guarantee.event, relation, delta, many, key)
    if not planned.n_numbers and _is_gaussian(guarantee.event):
        tried = [pair, *crowded]
        replayed = plan_replays([release, *(_release_of(estimator, one, epsilon) for one in crowded)], delta, key)
        if replayed is not None:
            return tried[replayed[0]], replayed[1]
    return pair, planned


def _one_by_one(draws: int, cost: float, event: Event | None) -> int:
    """How many releases are looked at where each is a training."""
    if event is None:
        # These are cheap, and to refute a claim takes many.
        return max(_LEAST, int(draws / cost))
    return max(_LEAST, int(draws / (_ONE_BY_ONE * cost * (_COMPOSED if len(leaves(event)) > 1 else 1.0))))


def _one_run(make: Callable[[], Any], epsilon: float, delta: float, bound: float, seed: int) -> CellBound | None:
    """Bound epsilon by one release on rows with many canaries; None for releases that are no weights of features."""
    rows, labels, there = canaries(_N_CANARIES, bound, seed)
    base = np.zeros((2, _N_CANARIES))
    X, y = np.vstack([base, rows[there]]), np.concatenate([[0, 1], labels[there]])
    path = make().release_path(X, y, [epsilon], 1, lambda *_: seeded_source(seed, "canaries", epsilon))
    coef = getattr(path, "coef", None)
    if coef is None or coef.shape[-1] != _N_CANARIES:
        return None
    weights = coef[0, 0]
    score = (weights[-1] - (weights[0] if len(weights) > 1 else 0.0)) * np.where(labels == 1, 1.0, -1.0)
    order = np.argsort(score)
    guesses = _N_CANARIES // 4
    right = int(there[order[-guesses:]].sum() + (~there[order[:guesses]]).sum())
    bounds = [one_run_bound(_N_CANARIES, 2 * guesses, right, delta, confidence) for confidence in (CONFIDENCE, SURE)]
    # All guesses right is the most that one run can show.
    ceiling = min(epsilon, one_run_bound(_N_CANARIES, _N_CANARIES, _N_CANARIES, delta).epsilon)
    return CellBound("one_run", bounds[0].epsilon, bounds[1].epsilon, bounds[0].estimate, ceiling)


@dataclasses.dataclass(frozen=True)
class Claims:
    """The statement that a method is audited for.

    `epsilons` are stated, `delta` is asked for, and `relations` are those to audit; empty for all that the method
    offers.
    """

    epsilons: Sequence[float]
    delta: float
    relations: Sequence[Neighbours] = ()


def audit_method(
    estimator_class: Any, parameters: Mapping[str, Any], claims: Claims, *, draws: int, key: str, seed: int = 0
) -> list[MethodCell]:
    """Audit the releases of one method.

    Parameters are as configured; see `worst_parameters`. `draws` counts releases of either dataset together, where many
    are drawn at a time; fewer are where each is a training. `key` and `seed` make the seeds of the noise. Returns a
    cell for each relation and epsilon.
    """
    declared, epsilons = estimator_class.declared, claims.epsilons
    chosen = worst_parameters(estimator_class, parameters)
    cells = []
    for relation in claims.relations or relations_of(estimator_class):
        common = {"classes": [0, 1], "delta": claims.delta, "neighbours": relation}
        shared = {name: value for name, value in common.items() if name in declared}

        def make(shared: Mapping[str, Any] = shared, **changed: Any) -> Any:
            return estimator_class(**{**shared, **chosen, **changed})

        estimator = make()
        bound = float(getattr(estimator, "data_norm", None) or getattr(estimator, "data_bound", None) or 1.0)
        pairs, crowded = make_pairs(2, relation, bound, _SIZES), make_crowded_pairs(relation, bound)
        probe = estimator.release_path(*pairs[0].first, [epsilons[0]], 1, seed).guarantees[0]
        known_event = probe.event is not None
        gaussian, cost = _is_gaussian(probe.event), _cost(probe.event)
        weak = {name: value for name, value in _WEAKEST.items() if name in declared}
        if known_event and any(isinstance(leaf, PerturbedObjectives) for leaf, _ in leaves(probe.event)):
            # A linear region hides the price of curvature, and a weak loss costs next to nothing.
            estimator = make(**weak)
        tried = [(estimator, pair) for pair in pairs]
        if not known_event:
            # Nobody says what happens to a row: also look at one among others, and at weaker losses.
            tried += [(estimator, pair) for pair in pairs_around(*two_clouds(), relation, seed)]
            words = ", ".join(f"{name} {value:g}" for name, value in weak.items())
            tried += [(make(**weak), Pair(f"{pair.words}; {words}", pair.first, pair.second)) for pair in pairs if weak]
        searched = max(40, min(_SEARCH, int(draws / cost) // 8))
        noise_key = (key, seed, relation)
        candidates = [_draw_of(*candidate, max(epsilons), known_event, noise_key) for candidate in tried]
        estimator, pair = tried[best_pair(candidates, searched, gaussian)]
        for epsilon in epsilons:
            guarantee = estimator.release_path(*pair.first, [epsilon], 1, seed).guarantees[0]
            own_delta = float(guarantee.delta or 0.0)
            stated = guarantee.epsilon_requested
            limit = guarantee.epsilon_with_system_noise if guarantee.theorem_holds else stated
            bounds: tuple[CellBound, ...] = ()
            confirmed = True
            # A bound above the stated epsilon counts only if fresh draws confirm it.
            for look in ("first look", "second look"):
                purpose = (*noise_key, look, epsilon)
                audited, planned = _plan_cell(estimator, pair, crowded, relation, guarantee, purpose)
                n_draws = _one_by_one(draws, cost, guarantee.event)
                if planned.n_numbers:
                    n_draws = max(_LEAST, min(draws, draws * _FEW_NUMBERS // planned.n_numbers))
                again = audit_cell(planned.draw, n_draws, stated, own_delta, gaussian or planned.gaussian, planned.plan)
                if look == "first look":
                    bounds, seen, words = again, planned, audited.words
                confirmed = any(bound.sure > limit for bound in again)
                if not confirmed:
                    break
            if relation == "add_remove" and gaussian and cost == 1.0:
                one = _one_run(make, epsilon, own_delta, bound, seed)
                bounds = bounds if one is None else (*bounds, one)
            cells.append(
                MethodCell(
                    relation=relation,
                    epsilon=stated,
                    delta=own_delta,
                    guarantee=guarantee,
                    pair=words,
                    draws=n_draws,
                    bounds=bounds,
                    looks_at=seen.looks_at,
                    reachable=seen.plan.reachable,
                    confirmed=confirmed,
                )
            )
    return cells
