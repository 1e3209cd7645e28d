"""Noise sources: ChaCha20 streams under 256-bit keys, and exact draws from them.

A release has a key of 32 bytes of the operating system. An experiment has the SHA-256 of its purpose. Keys for parts of
a job, such as sampling and noise, follow by HMAC-SHA-256 with the part's name.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from privsvm.digests import canonical_json

# Round-off, with margin, of a bound or a standard deviation that takes a few operations.
ROUND_UP = 1.0 + 2.0**-50


class Sensitivity(NamedTuple):
    """A mechanism's statement about its numbers, for recording and checking draws; no draw depends on it.

    `sensitivity` is the largest distance between the numbers of neighbours, in the noise's norm (for scores: the
    largest change of any). With `per_row` it is the norm that one row adds to a sum, and a replaced row moves the sum
    by twice that. `grid` is the value of 1 in the method's own unit. With `more`, the numbers of the next draw belong
    to the same vector, and both share one noise multiplier.
    """

    sensitivity: float
    per_row: bool = False
    grid: float = 1.0
    more: bool = False


class StepTape(NamedTuple):
    """Tape that compiled steps write, or read instead of drawing; for tests.

    Mode 0: no tape. 1: steps write. 2: steps read `noisy` and `drawn`, and write `sums`. `sums` and `noisy`, int64
    (n_steps, size), are each step's sum on the grid of its noise, before and after the noise; `drawn`, uint8
    (n_steps, n_rows), says whether a step drew a row.
    """

    mode: int
    sums: np.ndarray
    noisy: np.ndarray
    drawn: np.ndarray


NO_TAPE = StepTape(0, *(np.empty((0, 0), dtype=kind) for kind in (np.int64, np.int64, np.uint8)))


# Typed keys: 1, 1.0 and True are equal, and their texts differ.
@lru_cache(maxsize=256, typed=True)
def _text_of(*purpose: str | int) -> bytes:
    """Write a key's purpose as JSON; the same few are asked for in every release."""
    return canonical_json(list(purpose)).encode()


class NoiseSource:
    """A key of 32 uniform bytes, and the draws that it gives.

    Every draw has a key of its own, so that no two share bits. Copies draw the same numbers again: give each release a
    source of its own.
    """

    __slots__ = ("_draws", "_key")

    def __init__(self, key: bytes) -> None:
        if len(key) != 32:
            raise ValueError(f"key: has {len(key)} bytes; must have 32")
        self._key, self._draws = bytes(key), 0

    def _key_of(self, *purpose: str | int) -> bytes:
        return hmac.digest(self._key, _text_of(*purpose), "sha256")

    def part(self, name: str) -> NoiseSource:
        """Return the source of a part of the job, for example ``"sampling"``.

        The same one every time.
        """
        return NoiseSource(self._key_of("part", name))

    def next_key(self) -> bytes:
        """Return 32 bytes that no other draw uses."""
        self._draws += 1
        # Fast path of `_key_of` for the draw's number, with its JSON written directly: some methods draw tens of
        # thousands of times.
        return hmac.digest(self._key, b'["draw",%d]' % self._draws, "sha256")

    def rounded_normals(self, sigma: float, size: int) -> np.ndarray:
        """See `privsvm.numerics.noise.rounded_normals.rounded_normals`."""
        from privsvm.numerics.noise.rounded_normals import rounded_normals

        return rounded_normals(self.next_key(), sigma, size)

    def discrete_laplace(self, scale: int, size: int) -> np.ndarray:
        """See `privsvm.numerics.noise.exact_draws.discrete_laplace`."""
        from privsvm.numerics.noise.exact_draws import discrete_laplace

        return discrete_laplace(self.next_key(), scale, size)

    def exponential_choices(self, scores: np.ndarray, scale: int) -> np.ndarray:
        """See `privsvm.numerics.noise.exact_draws.exponential_choices`."""
        from privsvm.numerics.noise.exact_draws import exponential_choices

        return exponential_choices(self.next_key(), scores, scale)

    def add_rounded_normals(self, numbers: np.ndarray, sigma: float, stated: Sensitivity) -> np.ndarray:
        """Add rounded normal numbers to whole numbers, int64 of any shape.

        Sums that do not fit wrap around.
        """
        return numbers + self.rounded_normals(sigma, numbers.size).reshape(numbers.shape)

    def add_discrete_laplace(self, numbers: np.ndarray, scale: int, stated: Sensitivity) -> np.ndarray:
        """Add discrete Laplace noise to whole numbers, int64 of any shape.

        Sums that do not fit wrap around.
        """
        return numbers + self.discrete_laplace(scale, numbers.size).reshape(numbers.shape)

    def choose(self, scores: np.ndarray, scale: int, stated: Sensitivity) -> np.ndarray:
        """Choose one candidate per row of scores; see `exponential_choices`."""
        return self.exponential_choices(scores, scale)

    def step_tape(
        self, *, n_steps: int, size: int, n_rows: int, threshold: int, sigma: float, stated: Sensitivity
    ) -> StepTape:
        """Say who listens to compiled steps: nobody.

        Steps release sums of `size` numbers over `n_rows` rows, which are drawn if their words are below `threshold`,
        with noise of standard deviation `sigma` in cells of its grid. `stated` is of a step's sum.
        """
        return NO_TAPE

    def generator(self) -> np.random.Generator:
        """Return a generator of NumPy's, for draws that no guarantee rests on."""
        words = np.frombuffer(self.next_key()[:16], dtype="<u8").astype(np.uint64)
        return np.random.Generator(np.random.Philox(key=words))


def as_source(rng: NoiseSource | np.random.Generator) -> NoiseSource:
    """Key a source by 32 bytes of a generator; a source stays as it is."""
    return rng if isinstance(rng, NoiseSource) else NoiseSource(rng.bytes(32))


def seeded_source(seed: int, *purpose: str | int | float) -> NoiseSource:
    """Open the source that belongs to one purpose of one experiment.

    For experiments only.

    It is keyed by SHA-256 of the arguments; see `privsvm.numerics.noise.streams.seeded_stream`.
    """
    return NoiseSource(hashlib.sha256(canonical_json(["noise", int(seed), *purpose]).encode()).digest())


def system_source() -> NoiseSource:
    """Open a source with a key of 256 bits from the operating system.

    For releases; the key is stored nowhere else.
    """
    return NoiseSource(os.urandom(32))
