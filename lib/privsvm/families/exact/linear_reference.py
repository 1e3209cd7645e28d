"""Base of the non-private multi-class references: one exact linear model."""

from __future__ import annotations

import numpy as np

from privsvm.base.estimators import SingleModelClassifier
from privsvm.base.released import LinearPath
from privsvm.privacy.gate import exact_training


class LinearReference(SingleModelClassifier):
    """A classifier that keeps its one exact linear model; a base.

    Two classes keep two weight vectors.
    """

    linear_scores = True

    def _keep(self, coef: np.ndarray, intercept: np.ndarray, objective: float, n_iter: int, reference: str) -> None:
        """Keep a model of coefficients (c, d) and offsets (c,), and its record."""
        self.coef_, self.intercept_ = coef, intercept
        self.objective_, self.n_iter_ = objective, n_iter
        arrays = {"coef": coef[None, None], "intercept": intercept[None, None]}
        self._keep_model(LinearPath, exact_training(reference), objective=objective, n_iter=n_iter, **arrays)
