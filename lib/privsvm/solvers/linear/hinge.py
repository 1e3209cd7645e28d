"""Two-class SVM without bias, to a certified distance from its optimum.

``min_w 1/2 ||w||^2 + C sum_i max(0, 1 - y_i w . x_i)``, with dual variables ``0 <= alpha_i <= C`` and
``w = sum_i alpha_i y_i x_i``. It is the Crammer-Singer problem of two classes with half of C: the difference w of the
two vectors there is the solution here, and objectives are halved.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from privsvm.solvers.linear.certificate import UNIT
from privsvm.solvers.linear.crammer_singer import CrammerSingerSolution, solve_crammer_singer


def smoothed_hinge_slopes(margins: np.ndarray, smoothing: float, out: np.ndarray | None = None) -> np.ndarray:
    """Compute slopes of the hinge with a quadratic part of width h, by margin ``y w . x``.

    The loss is 0 from 1 on, ``(1 - m)^2 / (2 h)`` down to ``1 - h``, and ``1 - m - h / 2`` below. Slopes lie between -1
    and 0 and change by at most ``1 / h``. They may be written over the margins.
    """
    slopes = np.subtract(1.0, margins, out=out)
    # In place, since for hundreds of models the array exceeds the processor's cache.
    slopes /= smoothing
    np.clip(slopes, 0.0, 1.0, out=slopes)
    return np.negative(slopes, out=slopes)


def solve_hinge(
    X, y: np.ndarray, C: float, gap: float, max_epochs: int | None = None, reserve: float = 0.0
) -> CrammerSingerSolution:
    """Solve the two-class problem to a certified distance from its optimum, the root of `gap`.

    Rows are finite; signs are -1 or 1, and one of them may be missing. `max_epochs` and `reserve` are as in
    `solve_crammer_singer`. Weights are (d,) and dual variables (n,); the solution is deterministic and, without
    `max_epochs`, certified for every data set.
    """
    codes = (np.asarray(y) > 0).astype(np.int64)
    # The squared distance of the difference is at most twice the squared distance of the two vectors. Its round-off is
    # kept in reserve.
    solution = solve_crammer_singer(X, codes, 2, 0.5 * C, 0.5 * gap, max_epochs, reserve + 2.0 * UNIT)
    return dataclasses.replace(
        solution,
        coef=solution.coef[1] - solution.coef[0],
        primal=2.0 * solution.primal,
        dual=2.0 * solution.dual,
        gap=2.0 * solution.gap,
        alpha=2.0 * solution.alpha[np.arange(codes.size), codes],
    )
