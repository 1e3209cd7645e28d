"""Private least squares from noisy second moments (after AdaSSP: Wang 2018, Revisiting private linear regression).

Rows are divided by their norm, a noisy mean is subtracted, they are divided by their norm again, and a constant
feature is appended. One Gaussian release then has their Gram matrix A and their products B with codes of the classes
(`privsvm.families.moments.second_moments`): the codes' sensitivity covers the Gram matrix too. The weights are ``f(A)
B`` with ``f(w) = 1 / sqrt(w^2 + lambda^2)`` on the eigenvalues w of A: the inverse where they stand out of the noise,
and a constant where they do not. Lambda is the size of the largest eigenvalues of the noise, which is public. (AdaSSP
adds a ridge in its place, and releases A and B apart.)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from privsvm.families.moments.centred_training import CentredRowsClassifier, CentredTraining
from privsvm.families.moments.second_moments import MomentsMechanism, code_cells, filtered_weights, simplex_codes
from privsvm.numerics.noise.noise_source import NoiseSource
from privsvm.numerics.rows.row_blocks import Table, is_by_block
from privsvm.privacy.events import Gaussian

__all__ = ["ESTIMATOR", "DPLeastSquaresClassifier"]


class DPLeastSquaresClassifier(CentredRowsClassifier):
    """Private linear classifier: least squares on class codes, from noisy second moments.

    Examples
    --------
    >>> from privsvm import DPLeastSquaresClassifier
    >>> model = DPLeastSquaresClassifier(epsilon=4.0, classes=[0, 1])
    >>> model.fit([[-1.0, 0.0], [1.0, 0.0]] * 50, [0, 1] * 50).guarantee_.status
    'proved'
    """

    def _training(self, multiplier: Callable[[float], float], n_features: int) -> CentredTraining:
        moments = MomentsMechanism(
            n_features=n_features,
            n_codes=len(self.classes_) - 1,
            neighbours=self.neighbours,
            multiplier=multiplier(1.0),
        )
        return CentredTraining(moments, (Gaussian(moments.multiplier),), moments.sensitivity, moments.noise_scale)

    def _weights(
        self, cells: Any, codes: np.ndarray, n_rows: int, plan: CentredTraining, source: NoiseSource
    ) -> np.ndarray:
        n_classes = len(self.classes_)
        table = code_cells(n_classes)
        row_codes = Table(table, codes) if is_by_block(cells) else table[codes]
        moments = plan.moments.release(cells, row_codes, source.part("moments"))
        weights = filtered_weights(moments, plan.moments.spread)
        # A class's score is the product of the predicted code and its own; of two classes, the code of the second.
        scores: np.ndarray = weights.T if n_classes == 2 else simplex_codes(n_classes) @ weights.T
        return scores

    def _words(self) -> tuple[str, str]:
        return (
            "the Gram matrix of centred unit rows and their products with the codes of their classes, all at once: "
            "least squares",
            "after Wang (2018), Revisiting differentially private linear regression, AdaSSP; sensitivity proved in "
            "privsvm.families.moments.second_moments",
        )


ESTIMATOR = DPLeastSquaresClassifier
