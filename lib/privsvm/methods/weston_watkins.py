"""Weston-Watkins multi-class SVM, a non-private reference: every violated rival class is charged."""

from __future__ import annotations

from typing import Any

import numpy as np

from privsvm.families.exact.linear_reference import SmoothedReference
from privsvm.solvers.linear.all_in_one import AllInOneProblem, weston_watkins_problem

__all__ = ["ESTIMATOR", "WestonWatkinsClassifier"]


class WestonWatkinsClassifier(SmoothedReference):
    """Linear multi-class SVM of Weston and Watkins with a smoothed hinge. Not private.

    Solves ``min 1/2 sum_k ||w_k||^2 + C sum_i sum_{k != y_i} hinge(1 - (z_{y_i} - z_k))`` with scores
    ``z_k = w_k . x_i + b_k`` and ``hinge(g) = (g + sqrt(g^2 + s^2)) / 2``.

    Attributes
    ----------
    gradient_norm_ : float
        Norm of its gradient; without offsets it bounds the distance to the optimum.

    Examples
    --------
    >>> from privsvm import WestonWatkinsClassifier
    >>> WestonWatkinsClassifier().fit([[-1.0], [1.0]], ["no", "yes"]).predict([[3.0]])
    array(['yes'], dtype='<U3')
    """

    def _train(self, X, y, rng: Any) -> None:
        self._solve(X, y, "Weston and Watkins (1998); pmsvm-2025, equation 7")

    def _problem(self, X, codes: np.ndarray, n_classes: int) -> AllInOneProblem:
        return weston_watkins_problem(
            X, codes, n_classes, float(self.C), float(self.smoothing), bool(self.fit_intercept)
        )


ESTIMATOR = WestonWatkinsClassifier
