"""Rows and slopes of a Newton step for a smoothed hinge, row by row.

The loss of a row with label y and scores z is ``sum_{k != y} (g_k + sqrt(g_k^2 + 1)) / 2`` with
``g_k = 1 - (z_y - z_k)``. The slope of a rival is ``u_k = (1 + g_k / r_k) / 2`` with ``r_k = sqrt(g_k^2 + 1)``, and the
slope of the row's own class is minus their sum; a row's slopes are clipped to norm 1. A parabola that touches the loss
and lies nowhere below it has the curvature ``1 / (2 r_k)``: steps by these go down from anywhere, which Newton's own
need not. (The *quadratic upper bound* of Ganesh and others, 2023, for the logistic loss.) Twice their mean over the
rivals, and never less than the squared norm of the clipped slopes, is the row's curvature h, between 0 and 1.

Rows are given back times the root of h, and slopes over it. So products of rows give the Hessian, products of rows with
slopes give the gradient, and neither a row nor its slopes are longer than 1: one release with one joint sensitivity has
both (`privsvm.families.moments.second_moments`).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from privsvm.numerics.rows.unit_grid import CELLS
from privsvm.solvers.gradients.huber_descent import exact_product, slope_bits

# Least root of a curvature.
_LEAST_ROOT = 2.0**-20
# Round-off of a quotient, with margin.
_ROUND_OFF = 1.0 - 2.0**-40


def weighted_rows(cells: Any, codes: np.ndarray, n_classes: int, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Weight rows by the roots of their curvatures, and find their slopes over these.

    `cells` (n, d) are rows in whole numbers of 2^-20, of norm 2^20 at most; the weights (c, d) are public, or made of
    earlier releases. Returns rows (n, d) in whole numbers of 2^-20, truncated toward zero, so that no number grows; and
    slopes (n, c) in whole numbers of 2^-20: by how much a score should grow. Slopes add up to zero, and their squares
    to at most 2^40. A row's numbers depend on that row, its label, the weights and public numbers alone, bit for bit.
    """
    rows, ones = np.arange(codes.shape[0]), np.ones(n_classes)
    bound = math.ldexp(1.0, slope_bits(n_classes))
    scores = exact_product(cells, weights.T)
    gaps = scores - (scores[rows, codes] - 1.0)[:, None]
    lengths = np.sqrt(gaps * gaps + 1.0)
    slopes = np.trunc((1.0 + gaps / lengths) * (0.5 * bound))
    curvatures = np.trunc(bound / lengths)
    slopes[rows, codes] = curvatures[rows, codes] = 0.0
    # Integer arithmetic: sums over the classes are exact, in any order.
    total = slopes @ ones
    norms = np.sqrt(np.einsum("ij,ij->i", slopes, slopes) + total * total)
    longest = np.maximum(norms, bound)
    clipped = norms / longest
    roots = np.sqrt(np.maximum((curvatures @ ones) / (bound * (n_classes - 1)), clipped * clipped))
    roots = np.clip(roots, _LEAST_ROOT, 1.0)
    slopes *= (-CELLS * _ROUND_OFF / (longest * roots))[:, None]
    np.trunc(slopes, out=slopes)
    slopes[rows, codes] = -(slopes @ ones)
    # Safety net: a row beyond the bound, which cannot occur, would be dropped. In int64, where sums are exact.
    integers = slopes.astype(np.int64)
    slopes[np.einsum("ij,ij->i", integers, integers) > int(CELLS) ** 2] = 0.0
    return np.trunc(cells * roots[:, None]), slopes
