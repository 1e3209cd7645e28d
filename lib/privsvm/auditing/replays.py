"""Releases of one dataset played on another: how far apart the sums are that noise was added to.

Where a method's sums depend on noise before them, no two releases add noise to the same numbers. But every release can
be played on the neighbour: the same draws in the same order, each answered by the numbers released before. The privacy
loss of a release is then known: with m the difference of a draw's sums over its noise, and u that noise along it, the
sum of ``m^2 / 2 + m u``. Noise looks the same in all directions, so if all differences together are never shorter than
M, a test that stops where they reach it tells the datasets apart as well as the noise along one difference of length M.

A replay must release the same numbers, bit for bit: a number that it does not explain has bypassed the noise.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import numpy as np

from privsvm.auditing.transcripts import ALL_ROWS, Call, ListeningSource, listen, numbers_before_noise
from privsvm.numerics.noise.noise_source import NoiseSource, Sensitivity, StepTape

# From a dataset (0 or 1) and a source for each release to the released numbers (n, k).
Release = Callable[[int, Sequence[NoiseSource]], np.ndarray]


class ReplayError(Exception):
    """A release differs from the one that its draws explain."""


class ReplayingSource(ListeningSource):
    """A source that repeats another one's releases, in the same order, and keeps the numbers given to it.

    Parts share the list in which draws are kept.
    """

    __slots__ = ("record",)

    def __init__(self, record: Sequence[Call], calls: list[Call] | None = None) -> None:
        super().__init__(bytes(32), calls)
        self.record = record

    def part(self, name: str) -> ReplayingSource:
        return ReplayingSource(self.record, self.calls)

    def next_key(self) -> bytes:
        raise ReplayError("a draw of its own")

    def add_rounded_normals(self, numbers: np.ndarray, sigma: float, stated: Sensitivity) -> np.ndarray:
        other = self.record[len(self.calls)] if len(self.calls) < len(self.record) else None
        if other is None or (other.kind, other.scale, other.noisy.shape) != ("gaussian", sigma, numbers.shape):
            raise ReplayError("another draw than on the other dataset")
        return self._keep("gaussian", sigma, numbers, other.noisy.copy())

    def add_discrete_laplace(self, numbers: np.ndarray, scale: int, stated: Sensitivity) -> np.ndarray:
        raise ReplayError("noise that is not Gaussian")

    def choose(self, scores: np.ndarray, scale: int, stated: Sensitivity) -> np.ndarray:
        raise ReplayError("a selection")

    def step_tape(
        self, *, n_steps: int, size: int, n_rows: int, threshold: int, sigma: float, stated: Sensitivity
    ) -> StepTape:
        raise ReplayError("compiled steps")


def nearest_difference(release: Release, n: int, source: NoiseSource) -> tuple[tuple[Call, ...], np.ndarray]:
    """Play releases of either dataset on the other one.

    Draws `n` releases of either dataset. Returns the draws of the release whose sums differ least, and the difference
    (m,) between all its sums on the first dataset and those on the second, in units of their noise. Raises ReplayError
    where a replay draws something else, or releases other numbers.
    """
    nearest: tuple[float, tuple[Call, ...], np.ndarray] | None = None
    for dataset, sign in ((0, 1.0), (1, -1.0)):
        released, runs = listen(functools.partial(release, dataset), n, source)
        replays = [ReplayingSource(calls) for calls in runs]
        if not np.array_equal(release(1 - dataset, replays), released):
            raise ReplayError("a replay releases something else")
        for calls, replay in zip(runs, replays, strict=True):
            if len(replay.calls) != len(calls) or any(call.threshold != ALL_ROWS for call in calls):
                raise ReplayError("fewer draws than on the other dataset")
            difference = sign * (numbers_before_noise(calls) - numbers_before_noise(replay.calls))
            size = float(np.linalg.norm(difference))
            if nearest is None or size < nearest[0]:
                nearest = size, tuple(calls), difference
    assert nearest is not None
    return nearest[1:]
