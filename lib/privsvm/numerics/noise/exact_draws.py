"""Exact discrete Laplace noise, selections and sampled rows from uniform words.

Everything here compares whole numbers; no logarithm or exponential is computed. The methods follow Canonne, Kamath and
Steinke (2020, The discrete Gaussian for differential privacy, Algorithms 1 and 2). How long a draw takes tells
something of its size: time is outside every guarantee.
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

import numpy as np

from privsvm.numerics.compiled.jit import jit, jit_step
from privsvm.numerics.noise.rounded_normals import BUFFER, random_bits, uniform_words

# Noise of the largest scale fits into int64 many times over.
LARGEST_SCALE, LARGEST_CHOICE_SCALE = 2**51, 2**62

_ZERO, _ONE = np.uint64(0), np.uint64(1)


class WordStream(NamedTuple):
    """The key stream of a key, word by word."""

    # ChaCha20 key, 8 uint32.
    key: np.ndarray
    # Next block, and next word of the buffer.
    position: np.ndarray
    bits: np.ndarray


def open_word_stream(key: bytes) -> WordStream:
    """Open the stream of a key of 32 bytes."""
    return WordStream(
        key=np.frombuffer(key, dtype="<u4").astype(np.uint32),
        position=np.array([0, BUFFER], dtype=np.uint64),
        bits=np.empty(BUFFER, dtype=np.uint64),
    )


@jit_step()
def _next_word(stream):
    """Return the next uniform uint64."""
    position, bits = stream.position, stream.bits
    if position[1] == bits.shape[0]:
        random_bits(stream.key, position[0], _ZERO, bits)
        position[0] += np.uint64(bits.shape[0] // 8)
        position[1] = _ZERO
    word = bits[np.int64(position[1])]
    position[1] += _ONE
    return word


@jit_step()
def _below(stream, bound):
    """Draw a uniform whole number below a positive uint64, by rejection."""
    mask = bound - _ONE
    for shift in (1, 2, 4, 8, 16, 32):
        mask |= mask >> np.uint64(shift)
    word = _next_word(stream) & mask
    while word >= bound:
        word = _next_word(stream) & mask
    return word


@jit_step()
def _happens(stream, numerator, denominator):
    """Return True with probability ``exp(-numerator / denominator)``.

    For a fraction of at most 1: Algorithm 1.

    The first trial to fail of trials with probabilities ``fraction / k``, k = 1, 2, ..., is an odd one.
    """
    k = _ONE
    # A certain event consumes no random words.
    while (numerator >= denominator or _below(stream, denominator) < numerator) and (
        k == _ONE or _below(stream, k) == _ZERO
    ):
        k += _ONE
    return k & _ONE == _ONE


@jit()
def _fill_discrete_laplace(stream, scale, out):
    """Algorithm 2 for a whole scale. Sizes that do not fit into int64 wrap around."""
    for i in range(out.shape[0]):
        while True:
            low = _below(stream, scale)
            if not _happens(stream, low, scale):
                continue
            size = low
            while _happens(stream, _ONE, _ONE):
                size += scale
            negative = _next_word(stream) & _ONE
            # Zero is drawn with one sign only: with two it would be twice as likely.
            if negative == _ZERO or size != _ZERO:
                break
        out[i] = np.int64(_ZERO - size if negative else size)


@jit()
def _fill_choices(stream, scores, scale, out):
    """Choose by rejection: accept with ``exp((score - best) / scale)``."""
    for i in range(out.shape[0]):
        row_scores = scores[i]
        best = row_scores.max()
        while True:
            candidate = np.int64(_below(stream, np.uint64(row_scores.shape[0])))
            missing = np.uint64(best) - np.uint64(row_scores[candidate])
            quotient = missing // scale
            accepted = _happens(stream, missing - quotient * scale, scale)
            while accepted and quotient > _ZERO:
                accepted = _happens(stream, _ONE, _ONE)
                quotient -= _ONE
            if accepted:
                break
        out[i] = candidate


def _check_scale(scale: int, largest: int) -> None:
    if not 1 <= scale <= largest:
        raise ValueError(f"scale={scale!r}: must lie between 1 and {largest}")


def discrete_laplace(key: bytes, scale: int, size: int) -> np.ndarray:
    """Draw whole numbers x, exactly proportional to ``exp(-|x| / scale)``.

    The key has 32 bytes, and the scale goes from 1 to 2^51.
    """
    _check_scale(scale, LARGEST_SCALE)
    out = np.empty(size, dtype=np.int64)
    _fill_discrete_laplace(open_word_stream(key), np.uint64(scale), out)
    return out


def exponential_choices(key: bytes, scores: np.ndarray, scale: int) -> np.ndarray:
    """Choose a candidate per row, exactly as ``exp(score / scale)``.

    Scores (k, m) are int64, of m candidates in k choices; the scale goes from 1 to 2^62. All trials are independent, so
    nothing but the chosen index depends on the scores, time apart.
    """
    _check_scale(scale, LARGEST_CHOICE_SCALE)
    out = np.empty(scores.shape[0], dtype=np.int64)
    _fill_choices(open_word_stream(key), np.ascontiguousarray(scores, dtype=np.int64), np.uint64(scale), out)
    return out


def sampling_threshold(rate: float) -> tuple[int, float]:
    """Turn a sampling rate into the words that draw a row.

    The threshold k is the rate in units of 2^-64, rounded down: a row is drawn if its word is below it; 2^64 for all
    rows. The probability is ``k / 2^64``, rounded up for the accounting. For rates of 2^-11 and more it is the rate
    itself.
    """
    if not 2.0**-64 <= rate <= 1.0:
        raise ValueError(f"rate={rate!r}: must lie between 2^-64 and 1")
    threshold = int(Fraction(rate) * 2**64)
    exact = Fraction(threshold, 2**64)
    probability = float(exact)
    return threshold, probability if Fraction(probability) >= exact else float(np.nextafter(probability, 1.0))


def sample_rows(key: bytes, step: int, threshold: int, first: int, n_rows: int) -> np.ndarray:
    """List the rows that a step draws, each by a word of its own that is below the `sampling_threshold`.

    The word of row i in step t is number i of the key's stream with the nonce t, however many rows there are; noise has
    another key. `first`, the first of the `n_rows` rows to look at, is a multiple of 1024; rows are numbered from it
    on.
    """
    return np.flatnonzero(uniform_words(key, first // 8, step, n_rows) < threshold)


def warm_up() -> None:
    """Compile what this module runs for every method."""
    discrete_laplace(bytes(32), 2, 2)
    exponential_choices(bytes(32), np.array([[0, 1]]), 2)
