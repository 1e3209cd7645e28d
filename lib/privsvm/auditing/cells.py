"""One audited cell: releases of two neighbours, drawn in parts, told apart, and what follows for epsilon."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from privsvm.auditing.curves import Curve, SampledCurve
from privsvm.auditing.distinguish import choose_statistic, choose_threshold, most_shown, separation
from privsvm.privacy.lower_bounds import (
    CONFIDENCE,
    Bound,
    counts_bound,
    counts_ceiling,
    f_dp_bound,
    f_dp_ceiling,
    gaussian_bound,
    gaussian_ceiling,
    pure_ceiling,
)

# Releases (n, k) of the first (0) or second (1) dataset of a pair; the word names a part of the noise.
Draw = Callable[[int, int, str], np.ndarray]

# A whole run may end with a false alarm with probability 1e-3, over so many cells, two or three bounds each, at most;
# a second look at fresh draws then makes it the square of that for the cell.
CELLS_AT_MOST = 1000
SURE = 1.0 - 1e-3 / (3 * CELLS_AT_MOST)

# With fewer releases of a pair, what counts would show of them is mostly chance.
_ENOUGH = 300

# Shares of the draws that choose the statistic and the threshold, and are not counted. Of two normal samples, means and
# spread say enough.
_STATISTIC_SHARE, _THRESHOLD_SHARE, _NORMAL_SHARE = 0.1, 0.2, 0.05
_MOST_FOR_STATISTIC = 20_000

# Runs that choose a threshold, where they are cheap and come on top of those that are counted.
_MOST_FOR_THRESHOLD = 200_000

# Numbers that are drawn at a time.
_BLOCK = 2_000_000


class _Statistic(Protocol):
    @property
    def n_numbers(self) -> int: ...

    def __call__(self, releases: np.ndarray) -> np.ndarray: ...


@dataclasses.dataclass(frozen=True, kw_only=True)
class Plan:
    """Knowledge of a cell before its releases are drawn. None of it is taken on trust: bounds come from draws.

    `statistic` tells the two datasets apart; None: a tenth of the releases choose it. `curve` is a trade-off curve that
    no release exceeds if the statement is true; None: the curve of the stated epsilon and delta. `reachable` is the
    largest epsilon that any number of draws of this pair can show; infinite where it is unknown. With `cheap`, the
    releases that choose a threshold come on top of the counted ones.
    """

    statistic: _Statistic | None = None
    curve: Curve | None = None
    reachable: float = math.inf
    cheap: bool = False


@dataclasses.dataclass(frozen=True)
class CellBound:
    """One lower bound on epsilon, found as `privsvm.privacy.lower_bounds` describes its kind.

    `epsilon` holds with 95 % confidence, `sure` with a confidence that a whole run of the benchmark can build on, and
    `estimate` without any; it may be infinite. `ceiling` is the most that `epsilon` can be expected to be, by the
    number of draws, for a release that is as private as stated, or as this pair can show where that is known.
    """

    kind: str
    epsilon: float
    sure: float
    estimate: float
    ceiling: float


def best_pair(draws: Sequence[Draw], n_releases: int, linear: bool = False) -> int:
    """Find the pair whose releases differ most.

    Looks at `n_releases` of either dataset; of equals, at the first. See `choose_statistic` for `linear`.
    """
    candidates = list(range(len(draws)))
    # Successive halving: some pairs look good by chance, so the best quarter is measured again on three times the
    # releases.
    while len(candidates) > 1:
        scores = [_separation_of(draws[pair], n_releases, f"search {len(candidates)}", linear) for pair in candidates]
        order = np.argsort(-np.array(scores), kind="stable")[: max(1, len(candidates) // 4)]
        candidates = [candidates[pair] for pair in order]
        n_releases *= 3
    return candidates[0]


def _separation_of(draw: Draw, n_releases: int, stream: str, linear: bool) -> float:
    """Say how far releases are apart, by a statistic chosen on half of them; of many, what counts would show."""
    first, second = draw(0, n_releases, stream), draw(1, n_releases, stream)
    half = n_releases // 2
    keeps_projections = linear or half < _ENOUGH
    statistic = choose_statistic(
        first[:half], second[:half], linear, 0 if keeps_projections else 10 * n_releases, 0.0, SURE
    )
    values, others = statistic(first[half:]), statistic(second[half:])
    return separation(values, others) if keeps_projections else most_shown(values, others, 10 * n_releases, 0.0, SURE)


def in_blocks(draw: Draw, n_numbers: int) -> Draw:
    """Draw a few releases at a time, lest the numbers behind them fill the memory."""
    block = max(1, _BLOCK // max(1, n_numbers))

    def draw_releases(dataset: int, n: int, stream: str) -> np.ndarray:
        starts = range(0, n, block)
        return np.concatenate([draw(dataset, min(block, n - start), f"{stream} {start}") for start in starts])

    return draw_releases


def audit_cell(
    draw: Draw, n_draws: int, epsilon: float, delta: float, gaussian: bool, plan: Plan | None = None
) -> tuple[CellBound, ...]:
    """Bound epsilon from below by releases of two neighbours.

    Of the releases `n_draws`, half are of either dataset, and three tenths are left out of the count. Epsilon and delta
    are stated; delta goes with the bounds too. A `gaussian` release is composed of Gaussian noise alone, whose
    trade-off curve may be assumed: its bounds are by counts, by that curve and by the distance of normal samples.
    """
    plan = plan or Plan()
    runs = n_draws // 2
    learn = min(max(20, int(runs * _STATISTIC_SHARE)), _MOST_FOR_STATISTIC) if plan.statistic is None else 0
    share = _NORMAL_SHARE if gaussian else _THRESHOLD_SHARE
    held = min(runs, _MOST_FOR_THRESHOLD) if plan.cheap else max(20, int(runs * share))
    counted = runs if plan.cheap else max(20, runs - learn - held)
    statistic: _Statistic = plan.statistic or choose_statistic(
        draw(0, learn, "statistic"), draw(1, learn, "statistic"), gaussian, counted, delta, SURE
    )
    values = in_blocks(lambda *which: statistic(draw(*which)), statistic.n_numbers)
    first, second = (values(dataset, held + counted, "count") for dataset in (0, 1))
    chosen, others = (first[:held], first[held:]), (second[:held], second[held:])

    def hits(confidence: float, symmetric: bool = False) -> tuple[tuple[int, int, int, int], bool]:
        threshold = choose_threshold(chosen[0], others[0], counted, delta, symmetric, confidence, gaussian)
        return threshold.count(chosen[1], others[1]), threshold.mixed

    seen, mixed = hits(SURE)
    sure = float(counts_bound(*seen, delta, SURE, mixed))
    seen, mixed = hits(CONFIDENCE)
    # A bound at 99 % confidence is also valid at 95 %.
    low = max(float(counts_bound(*seen, delta, CONFIDENCE, mixed)), sure)
    with np.errstate(divide="ignore"):
        ratio = float(np.log(max(seen[0] / seen[1] - delta, 0.0)) - np.log(seen[2] / seen[3])) if seen[0] else 0.0
    # Two events may be counted together, one likely on each dataset: so every draw is a run.
    attainable = min(epsilon, plan.reachable)
    if plan.curve is not None:
        most = min(plan.curve.counts_ceiling(delta, 2 * runs), attainable)
    else:
        most = (counts_ceiling if gaussian else pure_ceiling)(attainable, delta, 2 * runs)
    bounds = [CellBound("counts", low, sure, max(ratio, low), most)]
    if gaussian or isinstance(plan.curve, SampledCurve):
        errors, _ = hits(CONFIDENCE, symmetric=True)
    if isinstance(plan.curve, SampledCurve):
        two = [plan.curve.f_dp_bound(*errors, confidence) for confidence in (CONFIDENCE, SURE)]
        bounds.append(_of("f_dp", two, plan.curve.f_dp_ceiling(runs)))
    if gaussian:
        two = [f_dp_bound(*errors, delta, confidence) for confidence in (CONFIDENCE, SURE)]
        bounds.append(_of("f_dp", two, f_dp_ceiling(attainable, delta, runs)))
        both = [gaussian_bound(chosen[1], others[1], delta, confidence) for confidence in (CONFIDENCE, SURE)]
        if both[0] is not None and both[1] is not None:
            bounds.append(_of("gaussian", [both[0], both[1]], gaussian_ceiling(attainable, delta, runs)))
    return tuple(bounds)


def _of(kind: str, bounds: Sequence[Bound], ceiling: float) -> CellBound:
    low, sure = bounds
    estimate = low.estimate if not math.isnan(low.estimate) else 0.0
    return CellBound(kind, low.epsilon, sure.epsilon, max(estimate, low.epsilon), ceiling)
