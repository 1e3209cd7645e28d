"""Fuzzy c-means: every row belongs to every centre to some degree."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import scipy.sparse

from privsvm.numerics.rows.rows import squared_norms

# Numbers in a block of distances.
_BLOCK_NUMBERS = 4_000_000


@dataclasses.dataclass(frozen=True)
class FuzzyMeans:
    """Centres (M, d) found by fuzzy c-means, and the centre that each of the n rows belongs to most.

    The objective is the sum of squared distances weighted by ``u^q``; `converged` says whether it stopped falling
    before the limit of iterations.
    """

    centres: np.ndarray
    nearest: np.ndarray
    objective: float
    n_iter: int
    converged: bool


def fuzzy_means(
    X, n_centres: int, rng: np.random.Generator, *, q: float = 2.0, tol: float = 1e-5, max_iter: int = 100
) -> FuzzyMeans:
    """Find centres by fuzzy c-means (Bezdek 1981; CI-SVM, 2018, equations 5 and 6).

    `rng` draws the first centres, which are different rows; there are at most as many as rows. The fuzziness `q` is
    above 1. The search stops when the objective falls by a share smaller than `tol`.
    """
    n, d = X.shape
    # Dense rows around their mean: where it is large, distances would be lost in the round-off of norms and products.
    shift = np.zeros(d) if scipy.sparse.issparse(X) else X.mean(axis=0)
    if not scipy.sparse.issparse(X):
        X = X - shift
    drawn = X[np.sort(rng.choice(n, n_centres, replace=False))]
    centres = np.ascontiguousarray(drawn.toarray() if scipy.sparse.issparse(drawn) else drawn, dtype=np.float64)
    norms = squared_norms(X)
    # Below this, a squared distance is the round-off of its sum.
    least = 1e-14 * max(float(norms.max(initial=0.0)), 1e-300)
    step = max(1, _BLOCK_NUMBERS // n_centres)
    last, objective, n_iter = np.inf, np.inf, 0
    nearest = np.zeros(n, dtype=np.int64)
    while n_iter < max_iter and not last - objective <= tol * objective:
        n_iter += 1
        last, objective = objective, 0.0
        sums, weights = np.zeros((n_centres, d)), np.zeros(n_centres)
        centre_norms = squared_norms(centres)
        for start in range(0, n, step):
            rows: Any = X[start : start + step]
            distances = np.asarray(rows @ centres.T)
            distances *= -2.0
            distances += norms[start : start + step, None]
            distances += centre_norms
            np.maximum(distances, least, out=distances)
            nearest[start : start + step] = np.argmin(distances, axis=1)
            # Divided by the smallest, so that no power overflows.
            smallest = distances.min(axis=1, keepdims=True)
            ratios = (smallest / distances) ** (1.0 / (q - 1.0))
            # A row at a centre belongs to no other one.
            at_centre = smallest[:, 0] <= least
            ratios[at_centre] = distances[at_centre] <= least
            ratios /= ratios.sum(axis=1, keepdims=True)
            ratios **= q
            objective += float(np.sum(ratios * distances))
            weights += ratios.sum(axis=0)
            sums += np.asarray((rows.T @ ratios).T)
        # A centre to which no row belongs at all, to the last digit, stays where it is.
        np.divide(sums, weights[:, None], out=centres, where=weights[:, None] > 0.0)
    return FuzzyMeans(centres + shift, nearest, objective, n_iter, last - objective <= tol * objective)
