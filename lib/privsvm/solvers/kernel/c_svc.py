"""The C-SVC dual problem, and the results of its solvers.

``min 1/2 a'Qa - e'a`` subject to ``0 <= a_i <= upper_i`` and ``y'a = 0``, with ``Q_ij = y_i y_j K(x_i, x_j)``. A point
is optimal to within ``tol`` where ``m(a) - M(a) <= tol``: m is the largest ``-y_t G_t`` over the variables that may
move up in the direction of their label, M the smallest over those that may move down, and G the gradient
``Qa - e``.
"""

from __future__ import annotations

import dataclasses

import numpy as np


@dataclasses.dataclass(frozen=True)
class SolverOptions:
    """Stopping rule and resources of a solver.

    It stops where the largest violation of optimality is at most `tol`, or after moving `max_iter` pairs; -1: no limit
    but its own. `shrinking` lets LIBSVM's steps set variables aside that look settled at a bound. `cache_size` is in
    megabytes of kernel values. Results do not depend on `n_threads`.
    """

    tol: float = 1e-3
    max_iter: int = -1
    shrinking: bool = True
    cache_size: float = 200.0
    n_threads: int = 1


@dataclasses.dataclass(frozen=True)
class CSVCSolution:
    """A solution of the dual: the n variables `alpha`, and ``Qa - e``, its gradient.

    The decision value is ``sum_i y_i a_i K(x_i, x) - rho``, the objective ``1/2 a'Qa - e'a``. `n_iter` counts updated
    pairs, `n_selected` the distinct ones among them; None where the solver does not remember pairs. `converged` is
    false where `max_iter`, or a selection with no pair left, ended the solver.
    """

    alpha: np.ndarray
    rho: float
    gradient: np.ndarray
    objective: float
    n_iter: int
    converged: bool
    n_selected: int | None = None


def _sides(alpha: np.ndarray, y: np.ndarray, upper: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return masks of the variables that may move up, and down, by their label."""
    below, above = alpha < upper, alpha > 0
    positive = y > 0
    return np.where(positive, below, above), np.where(positive, above, below)


def optimality_gap(alpha: np.ndarray, gradient: np.ndarray, y: np.ndarray, upper: np.ndarray) -> float:
    """Return the largest violation of optimality ``m - M``, minus infinity where no pair can move."""
    up, low = _sides(alpha, y, upper)
    values = -y * gradient
    return float(np.max(values[up], initial=-np.inf) - np.min(values[low], initial=np.inf))


def rho_from_gradient(alpha: np.ndarray, gradient: np.ndarray, y: np.ndarray, upper: np.ndarray) -> float:
    """Compute rho, the mean of ``y_t G_t`` over free variables or a midpoint.

    Source: LIBSVM's implementation notes (Chang and Lin 2011), section 4.1.5.
    """
    values = y * gradient
    free = (alpha > 0) & (alpha < upper)
    if free.any():
        return float(values[free].mean())
    up, low = _sides(alpha, y, upper)
    return float(np.min(values[up], initial=np.inf) + np.max(values[low], initial=-np.inf)) / 2.0


def dual_objective(alpha: np.ndarray, gradient: np.ndarray) -> float:
    """Compute ``1/2 a'Qa - e'a`` from the gradient ``Qa - e``."""
    return float(alpha @ (gradient - 1.0)) / 2.0
