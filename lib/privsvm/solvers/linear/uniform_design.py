"""Uniform designs in two factors, and nested search for two parameters.

A uniform design spreads its runs over a square so that every level of either factor occurs once and the centred
discrepancy is small: with 30 runs it stands for a grid of 900 points.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import numpy as np
from scipy.stats import qmc

Range = tuple[float, float]

_RUNS, _NESTINGS = 30, 2


@functools.lru_cache(maxsize=8)
def uniform_design(n_runs: int) -> np.ndarray:
    """Design n runs, at least 2, of two factors with as many levels (Fang, Lin, Winker and Zhang 2000).

    Returns points (n, 2) of the unit square; in each column every ``(2 i - 1) / (2 n)`` occurs once. Of the good
    lattice points ``(i, h i mod (n + 1))``, i = 1..n, it is the one with the least centred L2 discrepancy. For n = 30
    all h from 1 to 30 qualify, since 31 is prime.
    """
    runs = np.arange(1, n_runs + 1)
    lattices = [
        np.column_stack([runs, runs * generator % (n_runs + 1)])
        for generator in range(1, n_runs + 1)
        if math.gcd(generator, n_runs + 1) == 1
    ]
    designs = [(2.0 * lattice - 1.0) / (2.0 * n_runs) for lattice in lattices]
    best = min(designs, key=lambda design: float(qmc.discrepancy(design, method="CD")))
    best.flags.writeable = False
    return best


def nested_search(
    evaluate: Callable[[np.ndarray], np.ndarray],
    first: Range,
    second: Range,
) -> tuple[float, float]:
    """Search two parameters by two nested uniform designs of 30 points (Huang, Lee, Lin and Huang 2007).

    The second design lies around the best point of the first, on half the range, moved inside where it would reach
    beyond. `evaluate` maps points (n, 2) to n losses. Returns the point with the smallest loss; among equals the one
    with the smaller first, then second parameter.
    """
    low, high = np.array([first[0], second[0]]), np.array([first[1], second[1]])
    design = uniform_design(_RUNS)
    width, corner = high - low, low
    points, losses = np.empty((0, 2)), np.empty(0)
    for _ in range(_NESTINGS):
        tried = corner + design * width
        points = np.vstack([points, tried])
        losses = np.append(losses, evaluate(tried))
        order = np.lexsort((points[:, 1], points[:, 0], losses))
        best = points[order[0]]
        width = width / 2.0
        corner = np.clip(best - width / 2.0, low, high - width)
    return float(best[0]), float(best[1])
