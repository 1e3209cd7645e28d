"""Certificates in float64: a bound on the distance to the optimum, with round-off.

The problems are ``min_W 1/2 ||W||^2 + C sum_i loss_i(W)``, and their duals ``max_A  linear(A) - 1/2 ||W_A||^2`` with
``W_A = sum_i alpha_i x_i'``. For any W, and any feasible A, let S be the sum over rows of the loss of W less the
product of the dual variables and the margins of W; no term is negative. If ``E = W - W_A``,

    primal(W) - dual(A) = S + ||E||^2 / 2.

Both problems are 1-strongly convex in W, so that ``||W - W*||^2 + ||W_A - W*||^2 <= 2 S + ||E||^2``, and by the law
of the parallelogram ``||W - W*|| <= sqrt(S + ||E||^2 / 4) + ||E|| / 2``. Computed weights are no sum of their dual
variables, but by the standard model of float64 (Higham 2002, section 3.1) a sum of k terms, in whatever order, with
or without fused operations, is off by at most ``growth(k)`` times the sum of the terms' sizes.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np

# Round-off of one operation.
UNIT = 2.0**-53

# Blocked summation of weights: round-off grows with the number of blocks of so many rows, not with the number of rows.
BLOCK = 65_536

# Stagnation: no gap smaller by this factor in so many passes, or in as many as there were so far.
_IMPROVEMENT = 0.99
_PATIENCE = 2_000

# Round-off of the certificate's own arithmetic.
_SLACK = 1e-9
# Underflow of products and squares: far below anything that matters.
_UNDERFLOW = 1e-280
_SHORTEST = 1e-150


def growth(n_operations: float) -> float:
    """Bound the relative round-off of so many operations: Higham's gamma."""
    return n_operations * UNIT / (1.0 - n_operations * UNIT)


def row_lengths(squared_norms: np.ndarray) -> np.ndarray:
    """Return upper bounds of row lengths from their squares, up to `_SLACK`."""
    lengths: np.ndarray = np.sqrt(squared_norms) + _SHORTEST
    return lengths


def dot_error(n_features: int, vector_norm: float) -> float:
    """Error of a product with a row, for each unit of the row's norm."""
    return growth(n_features + 4) * vector_norm * (1.0 + _SLACK) + _UNDERFLOW


def sum_error(n_rows: int, pull: float, more: float = 0.0) -> float:
    """Bound the norm of the error of weights from `sums_of_rows`.

    `pull` is the sum over rows of the norm of their dual variables times the norm of the row, `more` the relative error
    of the dual variables.
    """
    share = growth(min(n_rows, BLOCK) + n_rows / BLOCK + 4) + more
    return share * pull * (1.0 + growth(n_rows + 20)) * (1.0 + _SLACK) + _UNDERFLOW


def sums_of_rows(X, alpha: np.ndarray) -> np.ndarray:
    """Return ``X' alpha``, (d,) or (d, c), summed in blocks of `BLOCK` rows."""
    total = np.asarray(X[:BLOCK].T @ alpha[:BLOCK])
    for start in range(BLOCK, alpha.shape[0], BLOCK):
        total = total + np.asarray(X[start : start + BLOCK].T @ alpha[start : start + BLOCK])
    return total


def certified(shares: float, n_shares: int, error: float, rounding: float, gap: float) -> bool:
    """Tell whether weights are certainly within ``sqrt(gap)`` of the optimum.

    `shares` is the computed sum of `n_shares` upper bounds on the rows' shares S, `error` a bound on ``||E||``, and
    `rounding` the distance that the caller's arithmetic may still move the weights by.
    """
    sure = shares * (1.0 + growth(2.0 * n_shares + 20.0)) + _UNDERFLOW
    distance = math.sqrt(sure + 0.25 * error * error) + 0.5 * error + rounding
    return distance * (1.0 + _SLACK) <= math.sqrt(gap)


@dataclasses.dataclass
class Progress:
    """Notices when a solver in float64 gets no nearer to its optimum."""

    patience: int = _PATIENCE
    best: float = math.inf
    since: int = 0

    def stuck(self, gap: float, n_epochs: int) -> bool:
        """Take note of a gap; a gap that is not a number is no progress."""
        if gap < _IMPROVEMENT * self.best:
            self.best, self.since = gap, n_epochs
        return n_epochs - self.since > max(self.patience, self.since)
