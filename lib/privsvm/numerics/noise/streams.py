"""Counter-based random streams: one per job, whatever the order or number of jobs.

A stream's key is a hash of the experiment's seed and of the stream's purpose, so adding a dataset, a method or a core
never changes the numbers that another job draws.
"""

from __future__ import annotations

import hashlib

import numpy as np

from privsvm.digests import canonical_json


def seeded_stream(seed: int, *purpose: str | int | float) -> np.random.Generator:
    """Open the stream that belongs to one purpose of one experiment.

    For experiments only.

    `purpose` identifies the stream, for example ``"noise", "benchmark", "wine", "pmsvm_wp", 3`` (split), ``0.5``
    (epsilon), ``7`` (repeat). Different purposes give independent streams: Philox generators keyed by SHA-256 of the
    arguments.
    """
    digest = hashlib.sha256(canonical_json([int(seed), *purpose]).encode()).digest()
    key = np.frombuffer(digest[:16], dtype="<u8").astype(np.uint64)
    return np.random.Generator(np.random.Philox(key=key))


def system_stream() -> np.random.Generator:
    """Open a stream of system entropy, for draws that no guarantee rests on.

    Its key is stored nowhere. Draws that a guarantee rests on have a
    `privsvm.numerics.noise.noise_source.system_source`.
    """
    return np.random.Generator(np.random.Philox())
