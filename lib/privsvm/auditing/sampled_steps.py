"""Steps that read every row with some probability: what stands behind them, and the best statistic.

Where every row adds the same to a step whenever it is drawn, and rows are drawn as recorded, each by itself, many
releases are drawn at a time. Both are checked on real releases.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np

from privsvm.auditing.transcripts import ALL_ROWS, Call
from privsvm.numerics.noise.noise_source import seeded_source
from privsvm.numerics.noise.rounded_normals import rounded_normals

# Rows are drawn as recorded if their shares are within so many standard deviations, and no two draws of a release have
# a larger correlation. A false alarm costs draws, and no bound.
_FAR, _CORRELATED = 6.0, 0.75


@dataclasses.dataclass(frozen=True)
class SampledLoss:
    """The privacy loss of steps that read a row with some probability: the best of all statistics.

    `rate` is the sampling rate. `rest` is the sum of a step in units of its noise without the row in question, `one`
    and `other` are the row's addition to it in the first and in the second dataset.
    """

    n_steps: int
    rate: float
    rest: np.ndarray
    one: np.ndarray
    other: np.ndarray

    @property
    def n_numbers(self) -> int:
        return self.n_steps * self.rest.size

    def __call__(self, releases: np.ndarray) -> np.ndarray:
        """Compute the loss (n,) of noisy sums (n, steps * size)."""
        moved = releases.reshape(len(releases), -1, self.rest.size) - self.rest
        losses = []
        for move in (self.one, self.other):
            exponent = moved @ move - move @ move / 2.0
            losses.append(np.logaddexp(np.log1p(-self.rate), np.log(self.rate) + exponent).sum(axis=1))
        loss: np.ndarray = losses[0] - losses[1]
        return loss


@dataclasses.dataclass(frozen=True)
class SampledSteps:
    """Steps of a dataset whose rows always add the same when they are drawn.

    A row is drawn if its word of 64 bits is below `threshold`. `scale` is the scale of the noise, and `added` (n, size)
    every row's addition, both in cells.
    """

    n_steps: int
    threshold: int
    scale: float
    added: np.ndarray

    def noisy(self, n: int, *purpose: str | int | float) -> np.ndarray:
        """Draw the noisy sums (n, steps * size) of so many releases, in units of their noise, by the exact sampler."""
        source = seeded_source(0, *purpose)
        n_rows, size = self.added.shape
        words = source.generator().integers(0, 2**64, (n * self.n_steps, n_rows), dtype=np.uint64)
        sums = (words < np.uint64(self.threshold)).astype(np.float64) @ self.added
        noise = rounded_normals(source.next_key(), self.scale, sums.size).reshape(sums.shape)
        return ((sums + noise) / self.scale).reshape(n, self.n_steps * size)


def _is_sampled(calls: Sequence[Call]) -> bool:
    return len(calls) == 1 and calls[0].threshold != ALL_ROWS


def _draws_and_sums(runs: Sequence[Sequence[Call]]) -> tuple[np.ndarray, np.ndarray]:
    """Which rows all steps of all releases drew (steps, n), and their sums (steps, size), in cells."""
    drawn = np.vstack([calls[0].drawn for calls in runs]).astype(np.float64)
    return drawn, np.vstack([calls[0].given for calls in runs]).astype(np.float64)


def find_sampled_loss(runs: Sequence[Sequence[Call]], others: Sequence[Sequence[Call]]) -> SampledLoss | None:
    """Find the privacy loss of sampled steps from releases of either dataset, whose last row differs or is missing.

    Of a few releases each; None for other releases.
    """
    if not _is_sampled(runs[0]):
        return None
    first, second = runs[0][0], others[0][0]
    added, other_added = (
        np.linalg.lstsq(*_draws_and_sums(sample), rcond=None)[0] / first.scale for sample in (runs, others)
    )
    rate = first.threshold / 2.0**64
    rest = rate * added[:-1].sum(axis=0)
    other = other_added[-1] if second.drawn.shape[1] == first.drawn.shape[1] else np.zeros_like(rest)
    return SampledLoss(len(first.drawn), rate, rest, added[-1], other)


def find_sampled_steps(runs: Sequence[Sequence[Call]]) -> SampledSteps | None:
    """Look whether rows add the same to every step that draws them, and are drawn as recorded, each by itself.

    From some releases of one dataset; None where it is not so.
    """
    if not all(map(_is_sampled, runs)):
        return None
    first = runs[0][0]
    drawn, sums = _draws_and_sums(runs)
    added = np.rint(np.linalg.lstsq(drawn, sums, rcond=None)[0])
    rate = first.threshold / 2.0**64
    signals = ((drawn - rate) / math.sqrt(rate * (1.0 - rate))).reshape(len(runs), -1)
    if not np.array_equal(drawn @ added, sums) or any(calls[0][:2] != first[:2] for calls in runs):
        return None
    n_rows = drawn.shape[1]
    far = np.abs(signals.reshape(-1, n_rows).mean(axis=0)).max() * math.sqrt(len(drawn))
    overlaps = np.abs(signals.T @ signals / len(runs))
    np.fill_diagonal(overlaps, 0.0)
    if far > _FAR or overlaps.max() > _CORRELATED:
        return None
    return SampledSteps(len(first.drawn), first.threshold, first.scale, added)
