"""Crammer-Singer problems in whole numbers, for where float64 is not enough.

A dual block in the form ``beta_i >= 0``, ``sum_m beta_i^m = C`` (``alpha_i = C e_{y_i} - beta_i``) is held as whole
multiples of ``C / N``, and rows are whole multiples of a power of two, as all float64 numbers are. So the weights, the
margins ``G_i^m = [m != y_i] + (w_m - w_{y_i}) . x_i``, and the dual objective are whole numbers times public
constants, and Python computes them without any error.

A move shifts t units of beta from a class m to the class k with the largest margin of the row, where t is the whole
number that gains most. While ``G^k - G^m > ||x||^2 C / N`` for some ``beta^m > 0``, there is such a t, and the dual
objective grows by at least its unit. It is bounded, so that there are finitely many moves. When none is left, the gap,
``sum_i sum_m beta_i^m (max G_i - G_i^m)``, is at most ``C^2 sum_i ||x_i||^2 / N``: N is chosen so that this is a
quarter of the target. No data set is an exception: rows of zeros, duplicates and one class alone are as any other.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import scipy.sparse

# Share of C above which a row's dual variables count as all of it: the rest is round-off.
_FULL_SHARE = 1.0 - 2.0**-40


def _whole_rows(X: Any) -> tuple[list[tuple[list[int], list[int]]], int]:
    """Turn rows into features and whole numbers; return them and the binary exponent of their unit."""
    X = scipy.sparse.csr_array(X, dtype=np.float64)
    ratios = [value.as_integer_ratio() for value in X.data.tolist()]
    # Denominators are powers of two.
    largest = max((denominator for _, denominator in ratios), default=1)
    integers, features = [numerator * (largest // denominator) for numerator, denominator in ratios], X.indices.tolist()
    rows = []
    for first, end in itertools.pairwise(X.indptr.tolist()):
        entries = [e for e in range(first, end) if integers[e]]
        rows.append(([features[e] for e in entries], [integers[e] for e in entries]))
    return rows, 1 - largest.bit_length()


def _whole_block(alpha: np.ndarray, label: int, C: float, n_units: int) -> list[int]:
    """Round a dual block to whole numbers of units, beta: none below 0, and N in all."""
    block = [0] * alpha.size
    own_share = float(alpha[label]) / C
    remaining = n_units
    for m in np.argsort(alpha, kind="stable").tolist():
        share = min(max(-float(alpha[m]) / C, 0.0), 1.0) if m != label else 0.0
        block[m] = min(remaining, math.floor(Fraction(share) * n_units)) if share == share else 0
        remaining -= block[m]
    largest = max((m for m in range(alpha.size) if m != label), key=block.__getitem__)
    block[largest if own_share >= _FULL_SHARE else label] += remaining
    return block


class _Problem:
    """Whole numbers of a problem; see the module's text.

    Margins are counted in units of 1 / `margin`: ``slope (S_m - S_y) + margin [m != y]``, where ``S_m`` is the product
    of the row with vector m, both whole.
    """

    def __init__(self, X: Any, y: np.ndarray, n_classes: int, C: float, gap: float) -> None:
        self.rows, unit = _whole_rows(X)
        self.labels, self.n_classes, self.n_features = y.tolist(), n_classes, X.shape[1]
        self.squares = [sum(value * value for value in values) for _, values in self.rows]
        scale = Fraction(2) ** (2 * unit)
        least = 4 * Fraction(C) ** 2 * scale * sum(self.squares) / Fraction(gap)
        self.n_units = 1 << max(math.ceil(least), 1).bit_length()
        step = Fraction(C) * scale / self.n_units
        self.slope, self.margin = step.numerator, step.denominator
        # Units of the weights, and of the gap, for one unit of beta and of a row.
        self.weight = Fraction(C) * Fraction(2) ** unit / self.n_units
        self.share = Fraction(C) / (self.n_units * self.margin)

    def weights(self, blocks: list[list[int]]) -> list[list[int]]:
        """Sum up the vectors (c, d) of the dual variables."""
        vectors = [[0] * self.n_features for _ in range(self.n_classes)]
        for (features, values), label, block in zip(self.rows, self.labels, blocks, strict=True):
            for m, vector in enumerate(vectors):
                pull = (self.n_units if m == label else 0) - block[m]
                if pull:
                    for j, value in zip(features, values, strict=True):
                        vector[j] += pull * value
        return vectors

    def margins(self, i: int, vectors: list[list[int]]) -> list[int]:
        """Margins of a row, in units, but for a constant."""
        features, values = self.rows[i]
        return [
            self.slope * sum([vector[j] * value for j, value in zip(features, values, strict=True)])
            + (0 if m == self.labels[i] else self.margin)
            for m, vector in enumerate(vectors)
        ]

    def gap(self, vectors: list[list[int]], blocks: list[list[int]]) -> Fraction:
        """Duality gap."""
        total = 0
        for i, block in enumerate(blocks):
            margins = self.margins(i, vectors)
            largest = max(margins)
            total += sum([units * (largest - margin) for units, margin in zip(block, margins, strict=True)])
        return total * self.share

    def settle(self, i: int, vectors: list[list[int]], block: list[int]) -> None:
        """Move units of one row until no move gains anything."""
        features, values = self.rows[i]
        margins = self.margins(i, vectors)
        curvature = self.slope * self.squares[i]
        while True:
            k = max(range(self.n_classes), key=margins.__getitem__)
            m = min((m for m in range(self.n_classes) if block[m]), key=margins.__getitem__)
            ahead = margins[k] - margins[m]
            if ahead <= curvature:
                return
            units = block[m]
            if curvature:
                units = min(units, (ahead + curvature - 1) // (2 * curvature))
            block[m] -= units
            block[k] += units
            margins[m] += units * curvature
            margins[k] -= units * curvature
            down, up = vectors[k], vectors[m]
            for j, value in zip(features, values, strict=True):
                up[j] += units * value
                down[j] -= units * value


def ascend_exactly(X: Any, y: np.ndarray, n_classes: int, C: float, gap: float, alpha: np.ndarray) -> np.ndarray:
    """Solve a Crammer-Singer problem to a quarter of the gap, without round-off.

    Rows (n, d) are finite, and `gap` is the square of a distance. The ascent may start from any dual variables (n, c).
    Returns weights (c, d), each the float64 number next to an exact one; the exact ones are within ``sqrt(gap) / 2`` of
    the optimum.
    """
    problem = _Problem(X, y, n_classes, C, gap)
    blocks = [_whole_block(row, label, C, problem.n_units) for row, label in zip(alpha, problem.labels, strict=True)]
    vectors = problem.weights(blocks)
    while 4 * problem.gap(vectors, blocks) > Fraction(gap):
        for i, block in enumerate(blocks):
            problem.settle(i, vectors, block)
    return np.array([[float(value * problem.weight) for value in vector] for vector in vectors])


def _whole_numbers(values: np.ndarray) -> tuple[list[int], int]:
    """Turn numbers into whole ones; return them and the binary exponent of their unit."""
    ((features, row_integers),), unit = _whole_rows(values[None, :])
    integers = [0] * values.size
    for j, value in zip(features, row_integers, strict=True):
        integers[j] = value
    return integers, unit


def _split(number: float) -> tuple[int, int]:
    """Write a positive float64 number as a whole number times a power of two."""
    numerator, denominator = number.as_integer_ratio()
    return numerator, 1 - denominator.bit_length()


def ascend_smoothed_exactly(
    X: Any, y: np.ndarray, C: float, smoothing: float, linear: np.ndarray, distance: float, slopes: np.ndarray
) -> np.ndarray:
    """Solve a smoothed two-class problem without round-off.

    The dual is ``max sum_i (a_i - h a_i^2 / (2 C)) - 1/2 ||w||^2`` with ``0 <= a_i <= C`` and
    ``w = sum_i a_i y_i x_i - b``, where h is `smoothing` and b is `linear`. In multiples of ``C / N`` it is whole
    numbers again. With ``g_i = 1 - y_i w . x_i - h a_i / C``, a row's share of the gap is at most ``C |g_i|`` times the
    rest of ``a_i / C`` on that side, or times ``|g_i| / h``. A move by a whole number of units gains while
    ``|g_i| > (C ||x_i||^2 + h) / (2 N)``, and so the gap falls to ``C sum_i (C ||x_i||^2 + h) / (2 N)``: N is chosen so
    that this is a quarter of the squared `distance`.

    Rows are finite and signs -1 or 1. The ascent may start from any `slopes` ``a_i / C``. Returns weights (d,), each
    the float64 number next to an exact one; the exact ones are within half the distance of the optimum.
    """
    rows, row_unit = _whole_rows(X)
    offsets, offset_unit = _whole_numbers(linear)
    signs = [1 if sign > 0 else -1 for sign in y.tolist()]
    squares = [sum(value * value for value in values) for _, values in rows]
    total = Fraction(C) * Fraction(2) ** (2 * row_unit) * sum(squares) + len(rows) * Fraction(smoothing)
    bits = max(math.ceil(2 * Fraction(C) * total / Fraction(distance) ** 2), 1).bit_length()
    n_units = 1 << bits
    (C_whole, C_unit), (h_whole, h_unit) = _split(C), _split(smoothing)
    # Units of the weights, and of g.
    unit = min(offset_unit, C_unit - bits + row_unit)
    pull = C_whole << (C_unit - bits + row_unit - unit)
    g_unit = min(0, unit + row_unit, h_unit - bits)
    one, scale, width = 1 << -g_unit, 1 << (unit + row_unit - g_unit), h_whole << (h_unit - bits - g_unit)
    weights = [-(value << (offset_unit - unit)) for value in offsets]
    held = [min(max(round(Fraction(slope) * n_units), 0), n_units) if slope == slope else 0
            for slope in np.nan_to_num(slopes, posinf=1.0, neginf=0.0).tolist()]  # fmt: skip
    for (features, values), sign, count in zip(rows, signs, held, strict=True):
        for j, value in zip(features, values, strict=True):
            weights[j] += sign * count * pull * value

    def missing(i: int) -> int:
        features, values = rows[i]
        product = sum([weights[j] * value for j, value in zip(features, values, strict=True)])
        return one - signs[i] * product * scale - width * held[i]

    def gap() -> Fraction:
        shares = Fraction(0)
        for i, count in enumerate(held):
            g = missing(i)
            room = n_units - count if g > 0 else count
            # g / h in units is |g| / width.
            shares += abs(g) * min(Fraction(room), Fraction(abs(g), width))
        return shares * Fraction(C) * Fraction(2) ** g_unit / n_units

    while 4 * gap() > Fraction(distance) ** 2:
        for i, (features, values) in enumerate(rows):
            g, curvature = missing(i), pull * squares[i] * scale + width
            size = (2 * abs(g) + curvature - 1) // (2 * curvature)
            step = min(size, n_units - held[i]) if g > 0 else -min(size, held[i])
            if step:
                held[i] += step
                for j, value in zip(features, values, strict=True):
                    weights[j] += signs[i] * step * pull * value
    return np.array([float(value * Fraction(2) ** unit) for value in weights])
