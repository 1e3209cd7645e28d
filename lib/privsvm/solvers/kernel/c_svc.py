"""The C-SVC dual problem, and what a solver of it returns.

``min 1/2 a'Qa - e'a`` subject to ``0 <= a_i <= upper_i`` and ``y'a = 0``, with ``Q_ij = y_i y_j K(x_i, x_j)``. A point
is optimal to within ``tol`` where ``m(a) - M(a) <= tol``: m is the largest ``-y_t G_t`` over the variables that may
move up in the direction of their label, M the smallest over those that may move down, and G the gradient
``Qa - e``.
"""

from __future__ import annotations

import dataclasses

import numpy as np

__all__ = ["CSVCSolution", "SolverOptions", "dual_objective", "optimality_gap", "rho_from_gradient"]


@dataclasses.dataclass(frozen=True)
class SolverOptions:
    """When a solver stops, and which resources it may use.

    Attributes
    ----------
    tol : float, default=1e-3
        The solver stops where the largest violation of optimality is at most this.
    max_iter : int, default=-1
        Most pairs of variables to move; -1 for no limit but the solver's own.
    shrinking : bool, default=True
        Whether LIBSVM's steps set variables aside that look settled at a bound.
    cache_size : float, default=200
        Megabytes for kernel values.
    n_threads : int, default=1
        Threads of the solvers that use several. The result does not depend on it.
    """

    tol: float = 1e-3
    max_iter: int = -1
    shrinking: bool = True
    cache_size: float = 200.0
    n_threads: int = 1


@dataclasses.dataclass(frozen=True)
class CSVCSolution:
    """A solution of the dual.

    Attributes
    ----------
    alpha : ndarray (n,)
        Dual variables.
    rho : float
        Offset: the decision value is ``sum_i y_i a_i K(x_i, x) - rho``.
    gradient : ndarray (n,)
        ``Qa - e`` at `alpha`.
    objective : float
        ``1/2 a'Qa - e'a``.
    n_iter : int
        Pairs of variables that were updated.
    converged : bool
        Whether the stopping rule was met. False where `max_iter`, or a selection with no pair left, ended it.
    n_selected : int or None
        Distinct pairs among them; None where the solver does not remember pairs.
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
