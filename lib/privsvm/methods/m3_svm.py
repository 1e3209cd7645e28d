"""M3-SVM (maximum minimum margin), a non-private reference: the problem behind PMSVM's gradient steps."""

from __future__ import annotations

from typing import Any

import numpy as np

from privsvm.base.parameters import parameter
from privsvm.constraints import FLAG, POSITIVE
from privsvm.families.exact.linear_reference import SmoothedReference
from privsvm.solvers.linear.all_in_one import AllInOneProblem, m3_problem

__all__ = ["ESTIMATOR", "M3SVMClassifier"]


class M3SVMClassifier(SmoothedReference):
    """Linear multi-class SVM that maximises the margins between all pairs of classes, smoothed. Not private.

    Solves ``min 1/2 sum_{k<l} ||w_k - w_l||^2 + C sum_i sum_{k != y_i} hinge(1 - (z_{y_i} - z_k))
    + ridge (||W||^2 + ||b||^2)`` with scores ``z_k = w_k . x_i + b_k`` and ``hinge(g) = (g + sqrt(g^2 + s^2)) / 2``.

    Attributes
    ----------
    gradient_norm_ : float
        Norm of its gradient.

    Notes
    -----
    Without offsets this is the Weston-Watkins SVM with ``C / (c + 2 ridge)`` for c classes.

    Examples
    --------
    >>> from privsvm import M3SVMClassifier
    >>> M3SVMClassifier().fit([[-1.0], [1.0]], ["no", "yes"]).predict([[3.0]])
    array(['yes'], dtype='<U3')
    """

    C: float = parameter(
        1.0,
        POSITIVE,
        "Weight of one row's loss (the C/n of pmsvm-2025, equation 9). A weight lambda of the margins beside the mean "
        "of the rows' losses, as in PMSVM's gradient steps (`margin_weight`), is ``C = 1 / (2 lambda n)``.",
    )
    ridge: float = parameter(
        1e-3,
        POSITIVE,
        "mu, which makes the solution unique. A weight mu' beside the mean loss and lambda is ``mu' / (2 lambda)``.",
    )
    fit_intercept: bool = parameter(True, FLAG, "Whether to train offsets.")

    def _train(self, X, y, rng: Any) -> None:
        self._solve(X, y, "pmsvm-2025, equations 9 and 12 (after Nie et al.)")

    def _problem(self, X, codes: np.ndarray, n_classes: int) -> AllInOneProblem:
        return m3_problem(
            X, codes, n_classes, float(self.C), float(self.smoothing), float(self.ridge), bool(self.fit_intercept)
        )


ESTIMATOR = M3SVMClassifier
