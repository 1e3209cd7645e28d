"""1-norm SVM, the non-private reference of PPSVM: a linear program whose model uses few features, or few rows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from privsvm.base.released import LinearPath, OneVsRestKernelPath, ReleasedPath
from privsvm.families.one_norm.one_norm_training import (
    TUNE,
    OneNormClassifier,
    OneNormModel,
    expansion_arrays,
    train_one_norm,
)
from privsvm.numerics.rows.rows import squared_distances
from privsvm.privacy.gate import Guarantee, exact_training


class OneNormSVMClassifier(OneNormClassifier):
    """Support vector machine with the 1-norm of its coefficients as penalty. Not private.

    Solves ``min C e'y + ||u||_1, s_i (K_i u + b) + y_i >= 1, y >= 0`` exactly, where K are the features ("linear") or
    the kernel values with all training rows ("gaussian"). More than two classes: one program for each class against
    the rest.

    Attributes
    ----------
    coef_ : ndarray (p, d) or (p, m)
        Weights of the features, or of the rows `support_`; p is c, or 1 for two classes.
    support_ : ndarray of int (m,)
        "gaussian": training rows with a weight other than 0.

    References
    ----------
    Mangasarian, Wild and Fung (2007), equations 2.6 and 3.9, with the whole kernel.

    Examples
    --------
    >>> from privsvm import OneNormSVMClassifier
    >>> OneNormSVMClassifier().fit([[-1.0, 0.0], [1.0, 0.0]], ["no", "yes"]).coef_
    array([[1., 0.]])
    """

    def _model(
        self, X, codes: np.ndarray, rng: np.random.Generator
    ) -> tuple[OneNormModel, type[ReleasedPath], dict[str, Any]]:
        n_classes = len(self.classes_)
        if self.kernel == "linear":
            model = train_one_norm(X, codes, n_classes, "linear", self.C, math.nan, rng)
            self.coef_, self.intercept_ = model.coef, model.intercept
            return model, LinearPath, {"coef": model.coef[None, None], "intercept": model.intercept[None, None]}
        distances = squared_distances(X, X)
        model = train_one_norm(distances, codes, n_classes, "gaussian", self.C, self._start_gamma(), rng)
        self.support_ = np.flatnonzero(model.coef.any(axis=0))
        self.coef_, self.intercept_ = model.coef[:, self.support_], model.intercept
        return model, OneVsRestKernelPath, expansion_arrays(X[self.support_], model, self.coef_)

    def _guarantee(self, rng: Any) -> Guarantee:
        return exact_training("Mangasarian, Wild and Fung (2007), equations 2.6 and 3.9, with the whole kernel")

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.non_deterministic &= self.C == TUNE
        return tags


ESTIMATOR = OneNormSVMClassifier
