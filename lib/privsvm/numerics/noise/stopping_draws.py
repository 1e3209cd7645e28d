"""Random numbers of runs with exact probabilities, from uniform words."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from privsvm.numerics.noise.rounded_normals import BUFFER, uniform_words


def _words(key: bytes) -> Callable[[int], int]:
    """Open a stream of uniform whole numbers below a bound that may differ each time."""
    waiting: list[int] = []
    blocks = 0

    def word() -> int:
        nonlocal blocks
        if not waiting:
            waiting.extend(uniform_words(key, blocks, 0, BUFFER).tolist())
            blocks += BUFFER // 8
        return waiting.pop()

    def below(bound: int) -> int:
        length = max(1, -(-(bound - 1).bit_length() // 64))
        surplus = 64 * length - (bound - 1).bit_length()
        while True:
            number = 0
            for _ in range(length):
                number = number << 64 | word()
            if (number := number >> surplus) < bound:
                return number

    return below


def _happens(below: Callable[[int], int], probability: Fraction) -> bool:
    return below(probability.denominator) < probability.numerator


def negative_binomial_runs(key: bytes, shape: float, gamma: float) -> int:
    """Draw a number of runs from the truncated negative binomial distribution.

    k = 1, 2, ... with probability proportional to ``(1 - gamma)^k prod_{l=1}^{k-1} (l + eta) / (l + 1)``, exactly for
    these float64 numbers: a geometric number, kept with the probability that the product is. The shape eta is above -1
    and at most 1. The key of 32 bytes is for this draw alone.
    """
    if not -1.0 < shape <= 1.0 or not 0.0 < gamma < 1.0:
        raise ValueError(f"shape={shape!r}, gamma={gamma!r}: must be above -1 and at most 1, and between 0 and 1")
    below, eta, onward = _words(key), Fraction(shape), 1 - Fraction(gamma)
    while True:
        runs = 1
        while _happens(below, onward):
            runs += 1
        if all(_happens(below, (step + eta) / (step + 1)) for step in range(1, runs)):
            return runs


def poisson_runs(key: bytes, parameter: float) -> int:
    """Draw a number of runs from the Poisson distribution without 0.

    k = 1, 2, ... with probability proportional to ``mu^k / k!``, exactly: a sum of Poisson numbers of parameter 1/2 at
    most, each a geometric number n that is kept with probability ``1 / n!``. The parameter mu goes to a million. The
    key of 32 bytes is for this draw alone.
    """
    if not 0.0 < parameter <= 1e6:
        raise ValueError(f"parameter={parameter!r}: must lie above 0 and be at most a million")
    below = _words(key)
    n_terms = math.ceil(2.0 * parameter)
    share = Fraction(parameter) / n_terms

    def term() -> int:
        while True:
            number = 0
            while _happens(below, share):
                number += 1
            if all(below(step) == 0 for step in range(2, number + 1)):
                return number

    while True:
        if runs := sum(term() for _ in range(n_terms)):
            return runs


def draw_choices(key: bytes, n_choices: int, size: int) -> list[int]:
    """Draw `size` independent uniform whole numbers below `n_choices`."""
    below = _words(key)
    return [below(n_choices) for _ in range(size)]
