"""M3-SVM (maximum minimum margin), a non-private reference: the problem behind PMSVM's gradient steps."""

from __future__ import annotations

from typing import Any

from privsvm.base.parameters import parameter
from privsvm.constraints import FLAG, POSITIVE
from privsvm.families.exact.smoothed_reference import SmoothedReference


class M3SVMClassifier(SmoothedReference):
    """Multi-class SVM ``min 1/2 sum_{k<l} ||w_k - w_l||^2 + C sum_i loss_i + ridge (||W||^2 + ||b||^2)``. Not private.

    Without offsets this is the Weston-Watkins SVM with ``C / (c + 2 ridge)`` for c classes. The `margin_weight` lambda
    of PMSVM's gradient steps, beside the mean of the losses of n rows, is ``C = 1 / (2 lambda n)``.

    Examples
    --------
    >>> from privsvm import M3SVMClassifier
    >>> M3SVMClassifier().fit([[-1.0], [1.0]], ["no", "yes"]).predict([[3.0]])
    array(['yes'], dtype='<U3')
    """

    ridge: float = parameter(1e-3, POSITIVE, "mu, which makes the solution unique.")
    fit_intercept: bool = parameter(True, FLAG, "Whether to train offsets.")

    def _train(self, X, y, rng: Any) -> None:
        self._minimise(X, y, "pmsvm-2025, equations 9 and 12 (after Nie et al.)", self.ridge, margins=True)


ESTIMATOR = M3SVMClassifier
