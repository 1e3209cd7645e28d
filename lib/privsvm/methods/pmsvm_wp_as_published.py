"""PMSVM-WP as the paper's released code runs it (pmsvm-2025): its epsilon does not hold.

Rows are not clipped, and the solver stops short of the optimum by an unknown distance; the noise is as in
`privsvm.methods.pmsvm_wp` for rows of norm `data_norm` and exact optima.
"""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np

from privsvm.base.estimators import Release
from privsvm.base.parameters import parameter
from privsvm.constraints import BOUND
from privsvm.families.output_perturbation.weight_perturbation import WeightPerturbationClassifier
from privsvm.privacy.accountants import GAUSSIAN_ACCOUNTANT
from privsvm.privacy.gate import Guarantee
from privsvm.privacy.statement import Witness


class PMSVMWPAsPublishedClassifier(WeightPerturbationClassifier):
    """Multi-class SVM with weight perturbation as released with the PMSVM paper. Its epsilon does not hold.

    Attributes
    ----------
    guarantee_ : Guarantee
        The claim, and the reason why it does not hold.

    Examples
    --------
    >>> from privsvm import PMSVMWPAsPublishedClassifier
    >>> model = PMSVMWPAsPublishedClassifier(epsilon=4.0, allow_unsound=True)
    >>> model.fit([[-1.0], [1.0]] * 50, [0, 1] * 50).guarantee_.status
    'claimed'
    """

    published = "PMSVM-WP as published"

    data_norm: float = parameter(1.0, BOUND, "The norm of rows that the noise assumes. It is not enforced.")

    def _certificate(self) -> tuple[float, int]:
        return 0.0, sys.maxsize

    def _bound_rows(self, X) -> Any:
        return X

    def _solve(self, X, codes: np.ndarray, n_classes: int, gap: float) -> np.ndarray:
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.svm import LinearSVC

        present = np.unique(codes)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            solver = LinearSVC(
                C=self.C, multi_class="crammer_singer", fit_intercept=False, max_iter=10_000, random_state=0
            ).fit(X, codes)
        weights = np.zeros((n_classes, X.shape[1]))
        # scikit-learn stores one vector for two classes: the difference of the two.
        weights[present] = np.vstack([-solver.coef_ / 2, solver.coef_ / 2]) if present.size == 2 else solver.coef_
        return weights

    def _guarantee(
        self, fields: dict[str, Any], certificate: tuple[float, int], witness: Witness | None, release: Release
    ) -> Guarantee:
        return Guarantee(
            status="claimed",
            accountant=GAUSSIAN_ACCOUNTANT,
            reason=(
                f"the noise assumes rows of norm at most {self.data_norm:g}, but scaling bounds each feature, not "
                "the row; the solver stops short of the optimum by an unknown distance"
            ),
            reference="pmsvm-2025, Theorem 1 and released code",
            randomness=release.randomness,
            witness=witness,
            **fields,
        )


ESTIMATOR = PMSVMWPAsPublishedClassifier
