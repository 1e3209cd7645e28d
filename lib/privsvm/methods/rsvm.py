"""RSVM: a 1-norm SVM on the kernel with a random tenth of the training rows. Not private: those rows are the model."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from privsvm.base.parameters import parameter
from privsvm.base.released import LinearPath, OneVsRestKernelPath, ReleasedPath
from privsvm.families.one_norm.one_norm_training import (
    MBAR,
    OneNormClassifier,
    OneNormModel,
    count_kernel_rows,
    draw_rows,
    expansion_arrays,
    train_one_norm,
)
from privsvm.numerics.rows.rows import squared_distances
from privsvm.privacy.gate import Guarantee, exact_training


class ReducedSVMClassifier(OneNormClassifier):
    """Reduced support vector machine: a few random training rows represent all of them in the kernel. Not private.

    Solves ``min C e'y + ||u||_1, s_i (K(x_i, A_R) u + b) + y_i >= 1, y >= 0`` exactly, where A_R are `mbar` rows drawn
    from the training rows. More than two classes: one program for each class against the rest, on the same rows.

    Attributes
    ----------
    support_ : ndarray of int (mbar,)
        The training rows of the kernel.
    dual_coef_ : ndarray (p, mbar)
        Their weights u; p is c, or 1 for two classes.
    coef_ : ndarray (p, d)
        "linear": weights of the features.

    References
    ----------
    Lee and Mangasarian (2001), RSVM; with the 1-norm as in Mangasarian, Wild and Fung (2007), section 4.2.

    Examples
    --------
    >>> from privsvm import ReducedSVMClassifier
    >>> model = ReducedSVMClassifier(mbar=1, random_state=0).fit([[-1.0], [1.0]], ["no", "yes"])
    >>> model.predict([[3.0]])
    array(['yes'], dtype='<U3')
    """

    mbar: float | int = parameter(
        0.1,
        MBAR,
        "Rows of the kernel: a share of the training rows, or a number.",
    )

    def _model(
        self, X, codes: np.ndarray, rng: np.random.Generator
    ) -> tuple[OneNormModel, type[ReleasedPath], dict[str, Any]]:
        n_classes = len(self.classes_)
        self.support_ = draw_rows(X.shape[0], count_kernel_rows(self.mbar, X.shape[0]), rng)
        drawn = X[self.support_]
        if self.kernel == "linear":
            products = X @ drawn.T
            columns = products.toarray() if hasattr(products, "toarray") else products
            model = train_one_norm(columns, codes, n_classes, "linear", self.C, math.nan, rng)
            self.coef_ = np.asarray(model.coef @ drawn)
            arrays = {"coef": self.coef_[None, None], "intercept": model.intercept[None, None]}
        else:
            distances = squared_distances(X, drawn)
            model = train_one_norm(distances, codes, n_classes, "gaussian", self.C, self._start_gamma(), rng)
            arrays = expansion_arrays(drawn, model, model.coef)
        self.dual_coef_, self.intercept_ = model.coef, model.intercept
        return model, LinearPath if self.kernel == "linear" else OneVsRestKernelPath, arrays

    def _guarantee(self, rng: Any) -> Guarantee:
        return exact_training(
            "Lee and Mangasarian (2001); Mangasarian, Wild and Fung (2007), section 4.2",
            "none: exact training on a kernel with training rows",
            "a non-private reference; its model holds training rows in the clear",
        )


ESTIMATOR = ReducedSVMClassifier
