"""Where noise comes from: streams of ChaCha20 under keys of 256 bits, and what is drawn from them exactly.

A release has a key of 32 bytes of the operating system. An experiment has the SHA-256 of its purpose. Keys for parts of
a job, such as sampling and noise, follow by HMAC-SHA-256 with the part's name.
"""

from __future__ import annotations

import hashlib
import hmac
import os

import numpy as np

from privsvm.digests import canonical_json

__all__ = ["NoiseSource", "as_source", "seeded_source", "system_source"]


class NoiseSource:
    """A key, and the draws that it gives.

    Every draw has a key of its own, so that no two share bits. Copies draw the same numbers again: give each release a
    source of its own.

    Parameters
    ----------
    key : bytes
        32 of them, uniform.
    """

    __slots__ = ("_draws", "_key")

    def __init__(self, key: bytes) -> None:
        if len(key) != 32:
            raise ValueError(f"key: has {len(key)} bytes; must have 32")
        self._key, self._draws = bytes(key), 0

    def _key_of(self, *purpose: str | int) -> bytes:
        return hmac.digest(self._key, canonical_json(list(purpose)).encode(), "sha256")

    def part(self, name: str) -> NoiseSource:
        """Return the source of a part of the job, for example ``"sampling"``; the same one every time."""
        return NoiseSource(self._key_of("part", name))

    def next_key(self) -> bytes:
        """Return 32 bytes that no other draw uses."""
        self._draws += 1
        return self._key_of("draw", self._draws)

    def rounded_normals(self, sigma: float, size: int) -> np.ndarray:
        """See `privsvm.numerics.rounded_normals.rounded_normals`."""
        from privsvm.numerics.rounded_normals import rounded_normals

        return rounded_normals(self.next_key(), sigma, size)

    def discrete_laplace(self, scale: int, size: int) -> np.ndarray:
        """See `privsvm.numerics.exact_draws.discrete_laplace`."""
        from privsvm.numerics.exact_draws import discrete_laplace

        return discrete_laplace(self.next_key(), scale, size)

    def exponential_choices(self, scores: np.ndarray, scale: int) -> np.ndarray:
        """See `privsvm.numerics.exact_draws.exponential_choices`."""
        from privsvm.numerics.exact_draws import exponential_choices

        return exponential_choices(self.next_key(), scores, scale)

    def generator(self) -> np.random.Generator:
        """Return a generator of NumPy's, for draws that no guarantee rests on."""
        words = np.frombuffer(self.next_key()[:16], dtype="<u8").astype(np.uint64)
        return np.random.Generator(np.random.Philox(key=words))


def as_source(rng: NoiseSource | np.random.Generator) -> NoiseSource:
    """Key a source by 32 bytes of a generator; a source stays as it is."""
    return rng if isinstance(rng, NoiseSource) else NoiseSource(rng.bytes(32))


def seeded_source(seed: int, *purpose: str | int | float) -> NoiseSource:
    """Open the source that belongs to one purpose of one experiment. For experiments only.

    Parameters
    ----------
    seed : int
        The experiment's seed.
    *purpose : str, int or float
        As in `privsvm.numerics.streams.seeded_stream`.

    Returns
    -------
    NoiseSource
        Keyed by SHA-256 of the arguments.
    """
    return NoiseSource(hashlib.sha256(canonical_json(["noise", int(seed), *purpose]).encode()).digest())


def system_source() -> NoiseSource:
    """Open a source with a key of 256 bits from the operating system. For releases; the key is stored nowhere else."""
    return NoiseSource(os.urandom(32))
