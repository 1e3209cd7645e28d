"""What the non-private multi-class references share: one exact linear model, with one weight vector a class."""

from __future__ import annotations

import abc
import math
import warnings
from collections.abc import Sequence

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning

from privsvm.base.estimators import SingleModelClassifier
from privsvm.base.released import LinearPath
from privsvm.base.validation import check_count, check_flag, check_positive, check_training_data
from privsvm.privacy.guarantee import Guarantee
from privsvm.solvers.all_in_one import AllInOneProblem, solve_all_in_one

__all__ = ["LinearReference", "SmoothedReference"]


class LinearReference(SingleModelClassifier, ClassifierMixin, BaseEstimator):
    """A classifier that keeps its one exact linear model; a base. Two classes keep two weight vectors."""

    def _keep(self, coef: np.ndarray, intercept: np.ndarray, objective: float, n_iter: int, reference: str) -> None:
        """Keep a model of coefficients (c, d) and offsets (c,), and the record that says what it is."""
        self.coef_, self.intercept_ = coef, intercept
        self.objective_, self.n_iter_ = objective, n_iter
        self.guarantee_ = Guarantee(
            status="none",
            mechanism="none: exact training",
            reason="a non-private reference",
            reference=reference,
        )
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
    """A reference whose problem `privsvm.solvers.all_in_one` solves; a base.

    Its parameters include `C`, `smoothing`, `tol`, `max_iter` and `fit_intercept`.
    """

    C: float
    smoothing: float
    tol: float
    fit_intercept: bool
    max_iter: int | None
    classes: Sequence | None

    @abc.abstractmethod
    def _problem(self, X, codes: np.ndarray, n_classes: int) -> AllInOneProblem:
        """Return the problem of checked rows."""

    def _solve(self, X, y, reference: str) -> None:
        """Check, solve and keep."""
        for name in ("C", "smoothing", "tol"):
            check_positive(name, getattr(self, name))
        check_flag("fit_intercept", self.fit_intercept)
        if self.max_iter is not None:
            check_count("max_iter", self.max_iter)
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
