"""Base of the non-private multi-class references: one exact linear model."""

from __future__ import annotations

import abc
import math
import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from privsvm.base.estimators import SingleModelClassifier
from privsvm.base.parameters import parameter
from privsvm.base.released import LinearPath
from privsvm.base.validation import check_training_data
from privsvm.constraints import COUNT, FLAG, POSITIVE, optional
from privsvm.privacy.guarantee import exact_training
from privsvm.solvers.linear.all_in_one import AllInOneProblem, solve_all_in_one

__all__ = ["LinearReference", "SmoothedReference"]


class LinearReference(SingleModelClassifier):
    """A classifier that keeps its one exact linear model; a base.

    Two classes keep two weight vectors.
    """

    linear_scores = True

    def _keep(self, coef: np.ndarray, intercept: np.ndarray, objective: float, n_iter: int, reference: str) -> None:
        """Keep a model of coefficients (c, d) and offsets (c,), and its record."""
        self.coef_, self.intercept_ = coef, intercept
        self.objective_, self.n_iter_ = objective, n_iter
        self.guarantee_ = exact_training(reference)
        self._path = LinearPath(
            epsilons=(math.inf,),
            guarantees=(self.guarantee_,),
            n_classes=len(self.classes_),
            objective=objective,
            n_iter=n_iter,
            coef=coef[None, None],
            intercept=intercept[None, None],
        )


class SmoothedReference(LinearReference):
    """A reference whose problem `privsvm.solvers.linear.all_in_one` solves; a base.

    Attributes
    ----------
    coef_ : ndarray (c, d)
        Weight vectors, two for two classes; they add up to zero.
    intercept_ : ndarray (c,)
        Offsets; zeros where none are trained.
    objective_ : float
        Smoothed objective.
    n_iter_ : int
        Newton steps.
    """

    C: float = parameter(1.0, POSITIVE, "Weight of one row's loss (the PMSVM paper's C/n).")
    smoothing: float = parameter(
        0.01, POSITIVE, "s of the hinge, in units of the margin: it exceeds the plain hinge by at most s / 2."
    )
    tol: float = parameter(
        1e-5,
        POSITIVE,
        "Stop once the norm of the objective's gradient is at most this share of its norm at zero weights.",
    )
    max_iter: int | None = parameter(None, optional(COUNT), "Most Newton steps; None for no limit.")
    fit_intercept: bool = parameter(False, FLAG, "Whether to train offsets, which are not regularised.")

    @abc.abstractmethod
    def _problem(self, X: Any, codes: np.ndarray, n_classes: int) -> AllInOneProblem:
        """Return the problem of checked rows."""

    def _solve(self, X: Any, y: Any, reference: str) -> None:
        """Check, solve and keep."""
        self.check_declared()
        X, codes, self.classes_ = check_training_data(self, X, y, self.classes)
        problem = self._problem(X, codes, len(self.classes_))
        at_zero = float(np.linalg.norm(problem.gradient(np.zeros((len(self.classes_), problem.X.shape[1])))))
        solution = solve_all_in_one(problem, float(self.tol) * at_zero, self.max_iter)
        if not solution.converged:
            warnings.warn(
                f"stopped at {solution.gradient_norm / at_zero:.1e} of the gradient at zero weights, before "
                f"tol={self.tol:g} was reached (max_iter={self.max_iter}); scale the features, or raise max_iter or "
                "tol",
                ConvergenceWarning,
                stacklevel=4,
            )
        self.gradient_norm_ = solution.gradient_norm
        self._keep(solution.coef, solution.intercept, solution.objective, solution.n_steps, reference)
