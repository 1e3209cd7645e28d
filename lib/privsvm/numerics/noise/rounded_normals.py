"""Exactly rounded normal numbers ``rint(sigma Z)`` from ChaCha20's bits.

Z is made by the method of Box and Muller from two real numbers, whose binary digits are bits of the key stream: 64 of
them for a start, and as many more as it takes. Almost always float64 and a bound on its error tell which integer is the
nearest (Ziv 1991, Fast evaluation of elementary mathematical functions with correctly rounded last bit). The rest is
computed with more and more digits until it is certain. So each integer has exactly the probability that the ideal
normal number rounds to it, and the tails have no end. `docs/proofs/exact-noise.md` derives the bounds.

Number `index` of a key depends on nothing but key, index and sigma.
"""

from __future__ import annotations

import numpy as np

from privsvm.numerics.compiled.jit import jit, jit_step
from privsvm.numerics.compiled.vector_random import BUFFER, normal_pair, uniform_words
from privsvm.numerics.noise.long_numbers import certain_integer

# Largest sigma: below it, sums with the shifter are exact; larger noise would need a slow draw each time.
SMALLEST_SIGMA, LARGEST_SIGMA = 2.0**-20, 2.0**46

# Error of float64, relative to sigma: shares of the radius, and of its divisor.
_UNIT_ROUND_OFF = 2.0**-53
_BY_RADIUS, _BY_INVERSE, _UNREAD = 24.0 * _UNIT_ROUND_OFF, 3.0 * _UNIT_ROUND_OFF, 2.0**-64
_SMALLEST_UNIFORM, _SMALLEST_RADIUS = 2.0**-40, 2.0**-20
# Shifter: adding it rounds to an integer.
_SHIFTER = 1.5 * 2.0**52
# Stands for an integer that is not certain; none is so large.
_DOUBTFUL = np.int64(-(2**63))
# Buffers that are filled at a time: they stay in the L2 cache.
_BUFFERS = 16


def check_sigma(sigma: float) -> None:
    """Raise ValueError if the sampler has no such standard deviation."""
    if not SMALLEST_SIGMA <= sigma <= LARGEST_SIGMA:
        raise ValueError(f"sigma={sigma!r}: must lie between 2^-20 and 2^46 cells of the grid")


@jit_step(forceinline=True)
def error_bound(radius, uniform):
    """Bound the error of a pair's numbers in float64, from `normal_pair`'s radius and its uniform number."""
    error = _BY_RADIUS * radius + (_BY_INVERSE * uniform + _UNREAD) / (uniform * radius)
    return error if (uniform >= _SMALLEST_UNIFORM) & (radius >= _SMALLEST_RADIUS) else np.inf


@jit_step(forceinline=True)
def _nearest(value, error):
    """Round to the nearest integer. No contraction here, as in its caller."""
    nearest = (value + _SHIFTER) - _SHIFTER
    return np.int64(nearest) if abs(value - nearest) + error < 0.5 else _DOUBTFUL


@jit()
def _round(words, sigma, cells):
    """Set integers from as many words (k, 2 m), those of the radius first in each row, where float64 is certain."""
    half = words.shape[1] // 2
    for buffer in range(words.shape[0]):
        radius_words, angle_words = words[buffer, :half], words[buffer, half:]
        first_cells, second_cells = cells[buffer, :half], cells[buffer, half:]
        for i in range(half):
            first, second, radius, uniform = normal_pair(radius_words[i], angle_words[i])
            error = sigma * error_bound(radius, uniform)
            first_cells[i] = _nearest(sigma * first, error)
            second_cells[i] = _nearest(sigma * second, error)


def round_words(key: bytes, first_pair: int, words: np.ndarray, sigma: float, cells: np.ndarray) -> int:
    """Turn words (k, 2 m) of uniform bits into as many integers ``rint(sigma Z)``, cosines first in each row.

    The key of 32 bytes gives more digits where they are needed, and `first_pair` is the first pair's number in its
    stream. Returns how many took more digits than float64 has.
    """
    _round(words, sigma, cells)
    doubtful, half = np.argwhere(cells == _DOUBTFUL).tolist(), words.shape[1] // 2
    for buffer, i in doubtful:
        place = i % half
        pair_words = int(words[buffer, place]), int(words[buffer, half + place])
        cells[buffer, i] = certain_integer(key, first_pair + half * buffer + place, pair_words, i >= half, sigma)
    return len(doubtful)


def rounded_normals(key: bytes, sigma: float, size: int, first: int = 0) -> np.ndarray:
    """Draw ``rint(sigma Z)`` for `size` standard normal numbers Z of a key, from number `first` on.

    Each key of 32 bytes serves one sigma, from 2^-20 to 2^46.
    """
    check_sigma(sigma)
    begin, end = first // BUFFER, -(-(first + size) // BUFFER)
    cells = np.empty((end - begin, BUFFER), dtype=np.int64)
    for start in range(begin, end, _BUFFERS):
        part = cells[start - begin : start - begin + _BUFFERS]
        # Eight words a block.
        words = uniform_words(key, start * BUFFER // 8, 0, part.size).reshape(part.shape)
        round_words(key, start * BUFFER // 2, words, float(sigma), part)
    skipped = first - begin * BUFFER
    return cells.reshape(-1)[skipped : skipped + size]


def warm_up() -> None:
    """Compile what this module runs."""
    rounded_normals(bytes(32), 1.0, 1)
