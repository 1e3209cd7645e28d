"""Rows stored as CSR, times one weight vector a class.

The weights of one feature lie together, so one instruction serves eight classes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from privsvm.numerics.compiled.jit import jit
from privsvm.numerics.compiled.vector_code import WIDTH, add_row, score_row


class CsrArrays(NamedTuple):
    """Rows of a CSR matrix, for compiled functions."""

    data: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray


@jit(fastmath={"contract"})
def square_rows(data, indptr):
    """Squared norms of CSR rows."""
    squares = np.empty(indptr.shape[0] - 1)
    for i in range(squares.shape[0]):
        total = 0.0
        for e in range(indptr[i], indptr[i + 1]):
            total += data[e] * data[e]
        squares[i] = total
    return squares


def zero_weights(n_features: int, n_classes: int) -> np.ndarray:
    """Return zero weights (d, padded c), each vector in one cache line."""
    padded = -(-n_classes // WIDTH) * WIDTH
    memory = np.zeros(n_features * padded + WIDTH)
    start = -(memory.ctypes.data // memory.itemsize) % WIDTH
    return memory[start : start + n_features * padded].reshape(n_features, padded)


@jit()
def score_rows(data, indices, indptr, weights, scores):
    """Set scores (n, c) of all rows.

    Weights (d, padded) come from `zero_weights`.
    """
    padded = weights.shape[1]
    numbers, lanes = weights.reshape(-1), np.empty(padded)
    for i in range(scores.shape[0]):
        for start in range(0, padded, WIDTH):
            score_row(data, indices, indptr[i], indptr[i + 1], numbers, padded, start, lanes)
        for m in range(scores.shape[1]):
            scores[i, m] = lanes[m]


@jit()
def sum_rows(data, indices, indptr, alpha, weights):
    """Set weights (d, padded) to the sum of rows times `alpha` (n, c)."""
    padded = weights.shape[1]
    numbers, lanes = weights.reshape(-1), np.zeros(padded)
    numbers[:] = 0.0
    for i in range(alpha.shape[0]):
        for m in range(alpha.shape[1]):
            lanes[m] = alpha[i, m]
        for start in range(0, padded, WIDTH):
            add_row(data, indices, indptr[i], indptr[i + 1], numbers, padded, start, lanes)
