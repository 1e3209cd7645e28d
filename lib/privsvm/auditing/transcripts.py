"""What stands behind a release: the whole numbers that noise was added to, and draws of all of them at once.

A proof covers every noisy number, not just the model that is made of them. A source that listens keeps both. Where
the numbers are the same in every release of a dataset, as noise on one solution or gradients as long as their clip,
and the released model is an affine function of the noise, a million releases are one call of the exact sampler. Both
are checked on real releases first; where one is not so, real releases are drawn.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from privsvm.numerics.noise.exact_draws import discrete_laplace, exponential_choices
from privsvm.numerics.noise.noise_source import NoiseSource, Sensitivity, StepTape, seeded_source
from privsvm.numerics.noise.rounded_normals import rounded_normals

# Real releases beyond as many as the noise has numbers, which must equal the affine function's values.
_CHECKED = 32

# Off by more, as a share of the spread, a release is not that function of the noise.
_ROUND_OFF = 1e-6

# Releases with more numbers behind them are drawn one by one.
_MOST_NUMBERS = 1024


class Call(NamedTuple):
    """One draw: its kind, the scale of its noise in cells, the numbers before and after, and which rows it read."""

    kind: str
    scale: float
    given: np.ndarray
    noisy: np.ndarray
    drawn: np.ndarray
    threshold: int


# Sampling threshold of a call that reads all rows, above every random word.
_NOBODY = np.empty((0, 0), dtype=np.uint8)
ALL_ROWS = 2**64


class ListeningSource(NoiseSource):
    """A source that draws like any other with its key, and keeps the numbers given to it.

    Parts share the list in which draws are kept.
    """

    __slots__ = ("calls",)

    def __init__(self, key: bytes, calls: list[Call] | None = None) -> None:
        super().__init__(key)
        self.calls: list[Call] = [] if calls is None else calls

    def part(self, name: str) -> ListeningSource:
        return ListeningSource(self._key_of("part", name), self.calls)

    def _keep(self, kind: str, scale: float, given: np.ndarray, noisy: np.ndarray) -> np.ndarray:
        self.calls.append(Call(kind, scale, given.copy(), noisy.copy(), _NOBODY, ALL_ROWS))
        return noisy

    def add_rounded_normals(self, numbers: np.ndarray, sigma: float, stated: Sensitivity) -> np.ndarray:
        return self._keep("gaussian", sigma, numbers, super().add_rounded_normals(numbers, sigma, stated))

    def add_discrete_laplace(self, numbers: np.ndarray, scale: int, stated: Sensitivity) -> np.ndarray:
        return self._keep("laplace", scale, numbers, super().add_discrete_laplace(numbers, scale, stated))

    def choose(self, scores: np.ndarray, scale: int, stated: Sensitivity) -> np.ndarray:
        return self._keep("selection", scale, scores, super().choose(scores, scale, stated))

    def step_tape(
        self, *, n_steps: int, size: int, n_rows: int, threshold: int, sigma: float, stated: Sensitivity
    ) -> StepTape:
        sums, noisy = (np.zeros((n_steps, size), dtype=np.int64) for _ in range(2))
        tape = StepTape(1, sums, noisy, np.zeros((n_steps, n_rows), dtype=np.uint8))
        # Filled in while the steps run.
        self.calls.append(Call("gaussian", sigma, sums, noisy, tape.drawn, threshold))
        return tape


def listen(
    release: Callable[[Sequence[NoiseSource]], np.ndarray], n: int, source: NoiseSource
) -> tuple[np.ndarray, list[list[Call]]]:
    """Release so often with fresh noise; return the releases (n, k), and the draws behind each."""
    sources = [ListeningSource(source.next_key()) for _ in range(n)]
    return release(sources), [one.calls for one in sources]


def noisy_numbers(calls: Sequence[Call]) -> np.ndarray:
    """Lay out all noisy numbers of a release, each in units of its noise; of selections, the choices."""
    return np.concatenate(
        [call.noisy.ravel() / (1.0 if call.kind == "selection" else call.scale) for call in calls] or [np.zeros(0)]
    )


def numbers_before_noise(calls: Sequence[Call]) -> np.ndarray:
    """Lay out the same numbers before noise; not of selections."""
    return np.concatenate([call.given.ravel() / call.scale for call in calls if call.kind != "selection"])


@dataclasses.dataclass(frozen=True)
class FixedRelease:
    """Releases of a dataset whose numbers before noise are always the same.

    `calls` belong to one release. If `hidden`, only the released numbers count: the noisy numbers of the first draw are
    kept secret, and all later ones depend on them. `base` (k,) are the released numbers without noise, and
    `noise_to_release` (m, k) maps the noise, in units of its scale, to its effect on them; None where they are no
    affine function of it.
    """

    calls: tuple[Call, ...]
    hidden: bool
    base: np.ndarray | None
    noise_to_release: np.ndarray | None

    @property
    def given(self) -> np.ndarray:
        return numbers_before_noise(self.calls)

    @property
    def kinds(self) -> set[str]:
        return {call.kind for call in self.calls}

    def probabilities(self) -> list[np.ndarray]:
        """Probabilities (m,) of the candidates of every selection."""
        probabilities = []
        for call in self.calls:
            for scores in call.given:
                weights = np.exp((scores - scores.max()) / call.scale)
                probabilities.append(weights / weights.sum())
        return probabilities

    def noise(self, n: int, *purpose: str | int | float) -> np.ndarray:
        """Draw the noise (n, m) of so many releases by the exact sampler; of selections, the choices."""
        source = seeded_source(0, *purpose)
        draws = []
        for call in self.calls:
            key, size = source.next_key(), call.noisy.size
            if call.kind == "gaussian":
                drawn = rounded_normals(key, call.scale, n * size) / call.scale
            elif call.kind == "laplace":
                drawn = discrete_laplace(key, int(call.scale), n * size) / call.scale
            else:
                drawn = exponential_choices(key, np.tile(call.given, (n, 1)), int(call.scale)).astype(np.float64)
            draws.append(drawn.reshape(n, size))
        return np.hstack(draws)


def _affine(noise: np.ndarray, released: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Find the affine function of the noise that the releases are; None where they are none."""
    n_learn = len(noise) - _CHECKED
    design = np.hstack([np.ones((len(noise), 1)), noise])
    # Cancellation: only differences of huge numbers keep their digits.
    middle, spread = released.mean(axis=0), released.std(axis=0)
    scaled = np.divide(released - middle, spread, out=np.zeros_like(released), where=spread > 0)
    coefficients = np.linalg.lstsq(design[:n_learn], scaled[:n_learn], rcond=None)[0]
    if np.abs(design[n_learn:] @ coefficients - scaled[n_learn:]).max(initial=0.0) > _ROUND_OFF:
        return None
    return coefficients[0] * spread + middle, coefficients[1:] * spread


def _same(calls: Sequence[Call], others: Sequence[Call], hidden: bool) -> bool:
    return len(calls) == len(others) and all(
        one[:2] == other[:2] and ((hidden and number > 0) or np.array_equal(one.given, other.given))
        for number, (one, other) in enumerate(zip(calls, others, strict=True))
    )


def fixed_release(
    release: Callable[[Sequence[NoiseSource]], np.ndarray], key: Sequence[str | int | float], hidden: bool = False
) -> FixedRelease | None:
    """Look whether all releases of a dataset add noise to the same numbers.

    `hidden` means that the first draw is kept secret, so that what later ones are given may depend on it. None where
    the numbers depend on the noise before them, on the rows that were drawn, or on a draw that states nothing.
    """
    source = seeded_source(0, "fixed", *key)
    _, probes = listen(release, 4, source)
    calls = tuple(probes[0])
    n_numbers, kinds = sum(call.noisy.size for call in calls), {call.kind for call in calls}
    plain = 0 < n_numbers <= _MOST_NUMBERS and len(kinds) == 1 and all(call.threshold == ALL_ROWS for call in calls)
    if not plain or not all(_same(calls, other, hidden) for other in probes):
        return None
    n_runs = _CHECKED if kinds == {"selection"} else n_numbers + 8 + _CHECKED
    released, runs = listen(release, n_runs, source)
    if not all(_same(calls, other, hidden) for other in runs):
        return None
    if kinds == {"selection"}:
        return FixedRelease(calls, hidden, None, None)
    noise = np.array([noisy_numbers(run) - numbers_before_noise(run) for run in runs])
    return FixedRelease(calls, hidden, *(_affine(noise, released) or (None, None)))
