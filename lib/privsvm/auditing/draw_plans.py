"""Draws of the releases of one cell of a method of ours, and the knowledge about them before.

Nothing here knows a method by name: it follows from the event in the record, and from a few real releases.

Where noise is drawn for many releases at a time, both datasets get the same: the counts on both then go up and down
together, and a bound on their difference is nearer to its expected value. Limits of Clopper and Pearson fail with their
probability whatever the other dataset's do, and the two probabilities are added. Two events, above a threshold on one
dataset and below another on its neighbour, are then no longer independent. But where noise raises both statistics alike
the two are negatively correlated (Harris 1960), and two such events of mean p together occur as often as two
independent ones of other probabilities, also of mean p: ``(p_1 + p_2)^2 >= 4 p_12``. So Hoeffding's theorem, by which
`privsvm.privacy.lower_bounds.limits` counts sums, holds of these too.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence

import numpy as np

from privsvm.auditing.cells import Draw, Plan, in_blocks
from privsvm.auditing.curves import LaplaceCurve, SampledCurve, table_of
from privsvm.auditing.distinguish import Statistic
from privsvm.auditing.replays import Release, ReplayError, nearest_difference
from privsvm.auditing.sampled_steps import find_sampled_loss, find_sampled_steps
from privsvm.auditing.transcripts import FixedRelease, fixed_release, listen, noisy_numbers
from privsvm.numerics.noise.noise_source import seeded_source
from privsvm.privacy.accounting import gaussian_epsilon
from privsvm.privacy.events import Event, Neighbours, PerturbedObjectives, PoissonSampled, leaves

Key = Sequence[str | int | float]

# Real releases that show what noise is added to.
_PROBES = 200

# Releases of either dataset that are played on the other: of every pair, and of the one that is chosen.
_FIRST_REPLAYS, _REPLAYS = 4, 50

# Real releases of one call.
_FEW = 1000

# Releases are affine functions of their noise to such a share.
_SAME = 1e-6


@dataclasses.dataclass(frozen=True, kw_only=True)
class CellPlan:
    """Draws of one cell's audit, and the knowledge about them.

    For `draw` see `privsvm.auditing.cells.Draw`; its part is a key of the draws. `looks_at` describes the part of the
    releases that the audit reads. `n_numbers` counts the numbers behind a release that is drawn with many others at a
    time; 0 where each is drawn by itself. `gaussian` says whether all of them are sums with Gaussian noise.
    """

    draw: Draw
    plan: Plan
    looks_at: str
    n_numbers: int
    gaussian: bool = False


@dataclasses.dataclass(frozen=True)
class _TableLoss:
    """The privacy loss of independent choices among a few candidates."""

    losses: np.ndarray

    @property
    def n_numbers(self) -> int:
        return len(self.losses)

    def __call__(self, releases: np.ndarray) -> np.ndarray:
        sums: np.ndarray = self.losses[np.arange(len(self.losses)), releases.astype(np.int64)].sum(axis=1)
        return sums


def _selection_plan(pair: tuple[FixedRelease, FixedRelease], delta: float, key: Key) -> CellPlan:
    both = [one.probabilities() for one in pair]
    losses = np.array([np.log(one / other) for one, other in zip(*both, strict=True)])
    curve = table_of(*both)

    def draw(dataset: int, n: int, stream: str) -> np.ndarray:
        return pair[dataset].noise(n, *key, dataset, stream)

    return CellPlan(
        draw=draw,
        plan=Plan(statistic=_TableLoss(losses), curve=curve, reachable=curve.epsilon(delta), cheap=True),
        looks_at="every selection",
        n_numbers=len(losses),
    )


def _noise_plan(pair: tuple[FixedRelease, FixedRelease], delta: float, key: Key) -> CellPlan | None:
    """Look at the released model, or at all noisy numbers where those say more; None if neither is plain enough."""
    first, second = pair
    move = np.zeros(1) if first.hidden else first.given - second.given
    laplace = first.kinds == {"laplace"}

    def steps(dataset: int, n: int, stream: str) -> np.ndarray:
        return pair[dataset].given + pair[dataset].noise(n, *key, stream)

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
        # The means differ outside the span of the noise: this plan does not apply.
        if not np.allclose(released @ first.noise_to_release, first.base - second.base, rtol=1e-6, atol=1e-9 * scale):
            return None
        if size(released) >= (1.0 - _SAME) * size(move):

            def releases(dataset: int, n: int, stream: str) -> np.ndarray:
                one = pair[dataset]
                return one.base + one.noise(n, *key, stream) @ one.noise_to_release

            looks_at, draw, shift, to_noise = "the released model", releases, released, inverse
            centre = (first.base + second.base) / 2.0
    if not shift.any():
        return None
    draw = in_blocks(draw, move.size)
    if not laplace:
        statistic = Statistic(centre, to_noise @ shift)
        plan = Plan(statistic=statistic, reachable=gaussian_epsilon(1.0 / size(shift), delta), cheap=True)
        return CellPlan(draw=draw, plan=plan, looks_at=looks_at, n_numbers=shift.size, gaussian=True)

    def in_noise(dataset: int, n: int, stream: str) -> np.ndarray:
        return (draw(dataset, n, stream) - centre) @ to_noise

    statistic = Statistic(np.zeros(shift.size), np.sign(shift), limits=np.abs(shift) / 2.0)
    curve = LaplaceCurve(size(shift)) if np.count_nonzero(shift) == 1 else None
    plan = Plan(statistic=statistic, curve=curve, reachable=size(shift), cheap=True)
    return CellPlan(draw=in_noise, plan=plan, looks_at=looks_at, n_numbers=shift.size)


def _listening(release: Release, key: Key) -> Draw:
    """Draw real releases, and keep the noisy numbers that stand behind them."""

    def draw(dataset: int, n: int, stream: str) -> np.ndarray:
        source = seeded_source(0, *key, dataset, stream)
        runs = [
            calls
            for start in range(0, n, _FEW)
            for calls in listen(functools.partial(release, dataset), min(_FEW, n - start), source)[1]
        ]
        return np.array([noisy_numbers(calls) for calls in runs])

    return draw


def _plan_sampled_steps(
    release: Release, event: PoissonSampled, count: int, relation: Neighbours, delta: float, key: Key
) -> CellPlan:
    """Look at all noisy sums by their privacy loss; many at a time where rows always add the same to them."""
    probes = [
        listen(functools.partial(release, dataset), _PROBES, seeded_source(0, "probes", *key, dataset))[1]
        for dataset in (0, 1)
    ]
    curve = SampledCurve(event.sampling_probability, event.event.noise_multiplier, count, relation, delta)
    loss, first, second = find_sampled_loss(*probes), *(find_sampled_steps(runs) for runs in probes)
    fixed = loss is not None and first is not None and second is not None

    def many(dataset: int, n: int, stream: str) -> np.ndarray:
        steps = second if dataset else first
        assert steps is not None
        return steps.noisy(n, *key, dataset, stream)

    return CellPlan(
        draw=many if fixed else _listening(release, key),
        plan=Plan(statistic=loss, curve=curve, cheap=fixed),
        looks_at="all noisy numbers",
        n_numbers=loss.n_numbers if loss is not None and fixed else 0,
    )


def plan_replays(releases: Sequence[Release], delta: float, key: Key) -> tuple[int, CellPlan] | None:
    """Plan to draw the noise of Gaussian releases whose sums depend on it, along what replays show.

    There is a release for each pair; see `plan_cell`. Returns the place of the pair whose nearest replays are farthest
    apart, and its plan; None where replays do not explain a release, or see no difference.
    """
    try:
        sizes = [
            float(np.linalg.norm(nearest_difference(release, _FIRST_REPLAYS, seeded_source(0, "pairs", *key))[1]))
            for release in releases
        ]
        widest = int(np.argmax(sizes))
        calls, difference = nearest_difference(releases[widest], _REPLAYS, seeded_source(0, "replays", *key))
    except ReplayError:
        return None
    if not difference.any():
        return None
    nearest = FixedRelease(calls, False, None, None)
    reachable = gaussian_epsilon(1.0 / float(np.linalg.norm(difference)), delta)

    def noisy(dataset: int, n: int, stream: str) -> np.ndarray:
        drawn = nearest.noise(n, *key, stream)
        return drawn if dataset else drawn + difference

    return widest, CellPlan(
        draw=in_blocks(noisy, difference.size),
        plan=Plan(statistic=Statistic(difference / 2.0, difference), reachable=reachable, cheap=True),
        looks_at="all noisy numbers, replayed",
        n_numbers=difference.size,
        gaussian=True,
    )


def plan_cell(
    release: Release, event: Event | None, relation: Neighbours, delta: float, many: Draw, key: Key
) -> CellPlan:
    """Find out how to draw releases of a pair, and what tells them apart.

    `release` turns the dataset, 0 or 1, and a source for each release into the released numbers, `event` is the
    recorded one, and `many` draws real releases; see `privsvm.auditing.cells.Draw`.
    """
    plain = CellPlan(draw=many, plan=Plan(), looks_at="the released model", n_numbers=0)
    if event is None:
        return plain
    steps = leaves(event)
    # The random linear terms of perturbed objectives are never released.
    hidden = isinstance(steps[0][0], PerturbedObjectives)
    first, second = (fixed_release(functools.partial(release, dataset), (*key, dataset), hidden) for dataset in (0, 1))
    if first is not None and second is not None:
        scales = [[(call.kind, call.scale, call.noisy.size) for call in one.calls] for one in (first, second)]
        if scales[0] == scales[1]:
            if first.kinds == {"selection"}:
                return _selection_plan((first, second), delta, key)
            return _noise_plan((first, second), delta, key) or plain
        return plain
    step, count = steps[0]
    if len(steps) == 1 and isinstance(step, PoissonSampled):
        return _plan_sampled_steps(release, step, count, relation, delta, key)
    return plain
