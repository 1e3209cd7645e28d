"""Crammer-Singer multi-class SVM, a non-private reference: the problem behind PMSVM's weight perturbation."""

from __future__ import annotations

import dataclasses
import sys
import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from privsvm.base.parameters import parameter
from privsvm.base.rows import as_training_rows
from privsvm.constraints import COUNT, POSITIVE, optional
from privsvm.families.exact.linear_reference import LinearReference
from privsvm.numerics.rows.rows import row_norms
from privsvm.solvers.linear.crammer_singer import CrammerSingerSolution, round_off_allowance, solve_crammer_singer

# The first solve, which finds the size of the optimum, ends at this share of the objective at zero weights.
_FIRST_SHARE = 1e-2

# A gap below this many times its own round-off is not asked for.
_ALLOWANCES = 4.0


class CrammerSingerClassifier(LinearReference):
    """Linear multi-class SVM of Crammer and Singer, without bias. Not private.

    Solves ``min 1/2 sum_k ||w_k||^2 + C sum_i max_k (1 - [k = y_i] + (w_k - w_{y_i}) . x_i)`` to a certified duality
    gap.

    Attributes
    ----------
    coef_ : ndarray (c, d)
        Weight vectors, two for two classes.
    intercept_ : ndarray (c,)
        Zeros.
    objective_, dual_objective_ : float
        The optimum lies between them.
    gap_ : float
        Their difference; bounds the squared distance of `coef_` to the optimum.
    n_iter_ : int
        Passes over the rows.

    Examples
    --------
    >>> from privsvm import CrammerSingerClassifier
    >>> CrammerSingerClassifier().fit([[-1.0], [1.0]], ["no", "yes"]).predict([[3.0]])
    array(['yes'], dtype='<U3')
    """

    C: float = parameter(1.0, POSITIVE, "Weight of one row's loss (the PMSVM paper's C/n).")
    gap: float = parameter(
        1e-4,
        POSITIVE,
        "Target of the duality gap, as a share of the objective, or the smallest that float64 can certify.",
    )
    max_epochs: int | None = parameter(
        None,
        optional(COUNT),
        "Limit on the passes over the rows; None for none. Features of very different scales take many.",
    )

    def _train(self, X, y, rng: Any) -> None:
        self.check_declared()
        X, codes = as_training_rows(self, X, y, self.classes)
        solution, n_epochs = self._solve(X, codes)
        if not solution.converged:
            warnings.warn(
                f"stopped at a gap of {solution.gap:.1e}, before gap={self.gap:g} of the objective was reached "
                f"(max_epochs={self.max_epochs}); scale the features, or raise max_epochs or gap",
                ConvergenceWarning,
                stacklevel=3,
            )
        self.dual_objective_, self.gap_ = solution.dual, solution.gap
        intercept = np.zeros(len(self.classes_))
        self._keep(
            solution.coef, intercept, solution.primal, n_epochs, "Crammer and Singer (2001); pmsvm-2025, equation 8"
        )

    def _solve(self, X, codes: np.ndarray) -> tuple[CrammerSingerSolution, int]:
        """Solve with falling targets until the gap is small beside the objective; returns all passes too."""
        C, share, n_classes = float(self.C), float(self.gap), len(self.classes_)
        smallest = _ALLOWANCES * round_off_allowance(X.shape[0], X.shape[1], n_classes, C, float(row_norms(X).max()))
        if share * C * X.shape[0] < sys.float_info.min:
            raise ValueError(
                f"C={C:g}, gap={share:g}: solutions that good cannot be told from others in float64; use a larger C"
            )
        target = max(share, _FIRST_SHARE) * C * X.shape[0]
        n_epochs, remaining_epochs = 0, self.max_epochs
        while True:
            solution = solve_crammer_singer(X, codes, n_classes, C, max(target, smallest), remaining_epochs)
            n_epochs += solution.n_epochs
            remaining_epochs = None if self.max_epochs is None else self.max_epochs - n_epochs
            good = solution.gap <= max(share * solution.primal, smallest)
            if good or remaining_epochs == 0 or not solution.converged:
                return dataclasses.replace(solution, converged=good), n_epochs
            # The dual objective is a lower bound on the optimum, so the next target is small enough where it is known.
            target = share * solution.dual if solution.dual > 0 else _FIRST_SHARE * target


ESTIMATOR = CrammerSingerClassifier
