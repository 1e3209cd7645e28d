"""How to draw the releases of one cell of a method of ours, and what is known of them before.

Nothing here knows a method by name: it follows from the event in the record, and from a few real releases.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from privsvm.auditing.cells import Draw, Plan
from privsvm.auditing.curves import LaplaceCurve, SampledCurve, table_of
from privsvm.auditing.distinguish import Statistic
from privsvm.auditing.transcripts import (
    Call,
    FixedRelease,
    ListeningSource,
    fixed_release,
    given_numbers,
    noisy_numbers,
    sampled_loss,
)
from privsvm.numerics.noise_source import NoiseSource, seeded_source
from privsvm.privacy.accounting import gaussian_epsilon
from privsvm.privacy.events import Event, Gaussian, Neighbours, PoissonSampled, leaves

__all__ = ["CellPlan", "plan_cell"]

Key = Sequence[str | int | float]
# From a dataset (0 or 1) and a source for each release to the released numbers (n, k).
Release = Callable[[int, Sequence[NoiseSource]], np.ndarray]

# Real releases that show what noise is added to.
_PROBES = 200

# Real releases of one call.
_FEW = 1000

# Numbers that are drawn at a time.
_BLOCK = 2_000_000

# Releases are affine functions of their noise to such a share.
_SAME = 1e-6


@dataclasses.dataclass(frozen=True, kw_only=True)
class CellPlan:
    """How one cell is audited.

    Attributes
    ----------
    draw : callable
        See `privsvm.auditing.cells.Draw`; its part is a key of the draws.
    plan : Plan
        What is known of them.
    looks_at : str
        What of the releases is looked at.
    n_numbers : int
        Numbers behind a release that is drawn with many others at a time; 0 where each is drawn by itself.
    reachable : float
        Largest epsilon that any number of draws of this pair can show; infinite where that is not known.
    """

    draw: Draw
    plan: Plan
    looks_at: str
    n_numbers: int
    reachable: float


@dataclasses.dataclass(frozen=True)
class _TableLoss:
    """The privacy loss of independent choices among a few candidates."""

    losses: np.ndarray

    @property
    def n_numbers(self) -> int:
        return len(self.losses)

    def __call__(self, releases: np.ndarray) -> np.ndarray:
        found: np.ndarray = self.losses[np.arange(len(self.losses)), releases.astype(np.int64)].sum(axis=1)
        return found


def _selection_plan(pair: tuple[FixedRelease, FixedRelease], delta: float, key: Key) -> CellPlan:
    both = [one.probabilities() for one in pair]
    losses = np.array([np.log(one / other) for one, other in zip(*both, strict=True)])
    curve = table_of(*both)

    def draw(dataset: int, n: int, part: str) -> np.ndarray:
        return pair[dataset].noise(n, *key, dataset, part)

    return CellPlan(
        draw=draw,
        plan=Plan(statistic=_TableLoss(losses), curve=curve, cheap=True),
        looks_at="every selection",
        n_numbers=len(losses),
        reachable=curve.epsilon(delta),
    )


def _blocks(draw: Draw, width: int) -> Draw:
    """Draw a few at a time, lest the noise behind them fill the memory."""
    block = max(1, _BLOCK // width)

    def drawn(dataset: int, n: int, part: str) -> np.ndarray:
        starts = range(0, n, block)
        return np.vstack([draw(dataset, min(block, n - start), f"{part} {start}") for start in starts])

    return drawn


def _noise_plan(pair: tuple[FixedRelease, FixedRelease], delta: float, key: Key) -> CellPlan | None:
    """Look at the released model, or at all noisy numbers where those say more; None if neither is plain enough."""
    first, second = pair
    move = first.given - second.given
    laplace = first.kinds == {"laplace"}

    def steps(dataset: int, n: int, part: str) -> np.ndarray:
        return pair[dataset].given + pair[dataset].noise(n, *key, dataset, part)

    def size(shift: np.ndarray) -> float:
        return float(np.abs(shift).sum() if laplace else np.linalg.norm(shift))

    draw: Draw = steps
    looks_at, centre, shift = "all noisy numbers", (first.given + second.given) / 2.0, move
    to_noise = np.eye(move.size)
    if first.noise_to_release is not None and second.noise_to_release is not None:
        scale = np.abs(first.noise_to_release).max(initial=0.0)
        if np.abs(first.noise_to_release - second.noise_to_release).max(initial=0.0) > _SAME * scale:
            return None
        assert first.base is not None
        assert second.base is not None
        inverse = np.linalg.pinv(first.noise_to_release, rcond=1e-9)
        released = (first.base - second.base) @ inverse
        # What moves without noise, noise does not hide.
        if not np.allclose(released @ first.noise_to_release, first.base - second.base, rtol=1e-6, atol=1e-9 * scale):
            return None
        if size(released) >= (1.0 - _SAME) * size(move):

            def releases(dataset: int, n: int, part: str) -> np.ndarray:
                one = pair[dataset]
                return one.base + one.noise(n, *key, dataset, part) @ one.noise_to_release

            looks_at, draw, shift, to_noise = "the released model", releases, released, inverse
            centre = (first.base + second.base) / 2.0
    if not shift.any():
        return None
    draw = _blocks(draw, max(1, move.size))
    if not laplace:
        statistic = Statistic(centre, to_noise @ shift)
        reachable = gaussian_epsilon(1.0 / size(shift), delta)
        return CellPlan(draw=draw, plan=Plan(statistic=statistic, cheap=True), looks_at=looks_at, n_numbers=move.size,
                        reachable=reachable)  # fmt: skip

    def in_noise(dataset: int, n: int, part: str) -> np.ndarray:
        return (draw(dataset, n, part) - centre) @ to_noise

    statistic = Statistic(np.zeros(shift.size), np.sign(shift), limits=np.abs(shift) / 2.0)
    curve = LaplaceCurve(size(shift)) if np.count_nonzero(shift) == 1 else None
    return CellPlan(draw=in_noise, plan=Plan(statistic=statistic, curve=curve, cheap=True), looks_at=looks_at,
                    n_numbers=move.size, reachable=size(shift))  # fmt: skip


def _calls(release: Release, dataset: int, n: int, source: NoiseSource) -> list[list[Call]]:
    sources = [ListeningSource(source.next_key()) for _ in range(n)]
    release(dataset, sources)
    return [one.calls for one in sources]


def _listening(release: Release, key: Key) -> Draw:
    """Draw real releases, and keep the noisy numbers that stand behind them."""

    def draw(dataset: int, n: int, part: str) -> np.ndarray:
        source = seeded_source(0, *key, dataset, part)
        starts = range(0, n, _FEW)
        return np.array(
            [
                noisy_numbers(calls)
                for start in starts
                for calls in _calls(release, dataset, min(_FEW, n - start), source)
            ]
        )

    return draw


def plan_cell(
    release: Release, event: Event | None, relation: Neighbours, delta: float, many: Draw, key: Key
) -> CellPlan:
    """Find out how to draw releases of a pair, and what tells them apart.

    Parameters
    ----------
    release : callable
        From the dataset, 0 or 1, and a source for each release to the released numbers.
    event : Event or None
        As recorded.
    relation : {"replace_one", "add_remove"}
        Between the two datasets.
    delta : float
        Goes with epsilon.
    many : callable
        Draws real releases; see `privsvm.auditing.cells.Draw`.
    key : sequence
        Of the noise.

    Returns
    -------
    CellPlan
    """
    plain = CellPlan(draw=many, plan=Plan(), looks_at="the released model", n_numbers=0, reachable=math.inf)
    if event is None:
        return plain
    parts = leaves(event)
    first, second = (fixed_release(functools.partial(release, dataset), (*key, dataset)) for dataset in (0, 1))
    if first is not None and second is not None:
        scales = [[(call.kind, call.scale, call.noisy.size) for call in one.calls] for one in (first, second)]
        if scales[0] == scales[1]:
            if first.kinds == {"selection"}:
                return _selection_plan((first, second), delta, key)
            return _noise_plan((first, second), delta, key) or plain
        return plain
    sampled = len(parts) == 1 and isinstance(parts[0][0], PoissonSampled)
    if not sampled and not all(isinstance(leaf, Gaussian) for leaf, _ in parts):
        return plain
    probes = [_calls(release, dataset, _PROBES, seeded_source(0, "probes", *key, dataset)) for dataset in (0, 1)]
    curve = None
    step, count = parts[0]
    if sampled and isinstance(step, PoissonSampled):
        curve = SampledCurve(step.sampling_probability, step.event.noise_multiplier, count, relation, delta)
        statistic: Any = sampled_loss(*probes)
    else:
        means = [np.mean([given_numbers(calls) for calls in part], axis=0) for part in probes]
        statistic = Statistic((means[0] + means[1]) / 2.0, means[0] - means[1])
    return CellPlan(
        draw=_listening(release, key),
        plan=Plan(statistic=statistic, curve=curve),
        looks_at="all noisy numbers",
        n_numbers=0,
        reachable=math.inf,
    )
