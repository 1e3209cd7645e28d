"""Weston-Watkins multi-class SVM, a non-private reference: every violated rival class is charged."""

from __future__ import annotations

from typing import Any

from privsvm.families.exact.smoothed_reference import SmoothedReference


class WestonWatkinsClassifier(SmoothedReference):
    """Multi-class SVM ``min 1/2 sum_k ||w_k||^2 + C sum_i loss_i``, smoothed, for linear scores. Not private.

    Examples
    --------
    >>> from privsvm import WestonWatkinsClassifier
    >>> WestonWatkinsClassifier().fit([[-1.0], [1.0]], ["no", "yes"]).predict([[3.0]])
    array(['yes'], dtype='<U3')
    """

    def _train(self, X, y, rng: Any) -> None:
        self._minimise(X, y, "Weston and Watkins (1998); pmsvm-2025, equation 7")


ESTIMATOR = WestonWatkinsClassifier
