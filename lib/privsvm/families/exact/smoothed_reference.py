"""Base of Weston-Watkins and M3: one smoothed objective that charges a row for every rival class."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.optimize
from sklearn.exceptions import ConvergenceWarning

from privsvm.base.parameters import parameter
from privsvm.base.rows import as_training_rows
from privsvm.constraints import COUNT, FLAG, POSITIVE, optional
from privsvm.families.exact.linear_reference import LinearReference


class SmoothedReference(LinearReference):
    """A linear reference with ``hinge(g) = (g + sqrt(g^2 + s^2)) / 2``, at most s / 2 above the plain one; a base."""

    C: float = parameter(1.0, POSITIVE, "Weight of one row's loss (the PMSVM paper's C/n).")
    smoothing: float = parameter(0.01, POSITIVE, "s of the hinge, in units of the margin.")
    tol: float = parameter(1e-5, POSITIVE, "Largest entry of the gradient, as a share of its norm at zero weights.")
    max_iter: int | None = parameter(None, optional(COUNT), "Most L-BFGS steps; None for no limit.")
    fit_intercept: bool = parameter(False, FLAG, "Whether to train offsets, which Weston-Watkins does not regularise.")

    def _minimise(self, X: Any, y: Any, reference: str, ridge: float = 0.0, margins: bool = False) -> None:
        """Minimise ``1/2 R + ridge (||W||^2 + ||b||^2) + C sum_i sum_{k != y_i} hinge(1 - (z_{y_i} - z_k))``.

        R is ``||W||^2``, or ``sum_{k<l} ||w_k - w_l||^2`` if `margins`: c times as much, since weights add up to zero.
        """
        self.check_declared()
        X, y = as_training_rows(self, X, y, self.classes)
        own, d = (np.arange(y.size), y), X.shape[1]
        regulariser = np.full((len(self.classes_), d + 1), 2.0 * ridge)
        regulariser[:, :d] += len(self.classes_) if margins else 1.0

        def evaluate(weights: np.ndarray) -> tuple[float, np.ndarray]:
            V = weights.reshape(regulariser.shape)
            scores = X @ V[:, :d].T + V[:, d]
            violations = 1.0 + scores - scores[own][:, None]
            roots = np.hypot(violations, self.smoothing)
            losses, slopes = 0.5 * (violations + roots), 0.5 * (1.0 + violations / roots)
            losses[own] = slopes[own] = 0.0
            slopes[own] = -slopes.sum(axis=1)
            value = 0.5 * np.vdot(V, regulariser * V) + self.C * losses.sum()
            loss_gradient = np.column_stack([(X.T @ slopes).T, slopes.sum(axis=0) * self.fit_intercept])
            return float(value), (regulariser * V + self.C * loss_gradient).ravel()

        start = np.zeros(regulariser.size)
        target = self.tol * float(np.linalg.norm(evaluate(start)[1]))
        options = {"gtol": target, "ftol": 0.0, "maxiter": self.max_iter or 10**9, "maxfun": 10**9}
        solution = scipy.optimize.minimize(evaluate, start, jac=True, method="L-BFGS-B", options=options)
        if np.abs(solution.jac).max() > target:
            message = f"max_iter={self.max_iter}: stopped before tol={self.tol:g}; scale the features, or raise either"
            warnings.warn(message, ConvergenceWarning, stacklevel=4)
        V = solution.x.reshape(regulariser.shape)
        self._keep(V[:, :d].copy(), V[:, d].copy(), float(solution.fun), int(solution.nit), reference)
