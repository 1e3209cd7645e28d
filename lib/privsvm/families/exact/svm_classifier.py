"""The fast kernel SVM, a drop-in replacement for `sklearn.svm.SVC`."""

from __future__ import annotations

import dataclasses
import os
import warnings
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
import scipy.sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from privsvm.base.parameters import N_JOBS, RANDOM_STATE, parameter
from privsvm.base.rows import as_training_rows
from privsvm.constraints import Constraint, one_of
from privsvm.families.exact.kernel_svm import KernelSVM
from privsvm.numerics.compiled.threads import count_threads, one_blas_thread
from privsvm.solvers.kernel.kernels import KERNELS, Kernel

_FOLDS = 5

_KERNEL = Constraint(
    one_of(*KERNELS).schema,
    f'must be one of {", ".join(KERNELS)}, "precomputed" or a function of two sets of rows',
    f"{', '.join(KERNELS)}, precomputed or callable",
    also=lambda value: (
        value == "precomputed" if isinstance(value, str) else callable(value) and not isinstance(value, type)
    ),
)
_PROBABILITY = Constraint(
    {"type": "boolean"},
    "must be true or false",
    "bool",
    also=lambda value: isinstance(value, str) and value == "deprecated",
)


_RANDOM_STATE = dataclasses.replace(
    RANDOM_STATE.constraint,
    wish="must be a whole number of at least 0, a numpy.random.Generator or RandomState, or None",
    words="int, numpy.random.Generator, numpy.random.RandomState or None",
    types=(np.random.Generator, np.random.RandomState),
)


def _has_probabilities(model: Any) -> bool:
    if model.probability == "deprecated" or not model.probability:
        raise AttributeError("predict_proba is not available when probability=False")
    return True


class SVMClassifier(KernelSVM):
    """Support vector machine with LIBSVM's problem, stopping rule and vote. Not private.

    Solves ``min 1/2 a'Qa - e'a, 0 <= a <= C, y'a = 0`` for each pair of classes, until the largest violation of
    optimality is at most `tol`. Takes the place of `sklearn.svm.SVC`, whose parameters, methods and attributes it has;
    ``tests/methods/test_svc.py`` lists the differences. The solver moves working sets of many variables. Where many
    rows are equal, equal rows of one class share a variable while it works.

    With the linear kernel, and features that are few for the number of rows, an interior-point method comes first: each
    of its 10 to 40 steps sums up ``x x'`` with weights, whatever C and however alike the features are. A pair of
    classes that two variables at a time solve sooner is left to them.

    Examples
    --------
    >>> from privsvm import SVMClassifier
    >>> SVMClassifier(kernel="linear").fit([[-1.0], [1.0]], ["no", "yes"]).predict([[3.0]])
    array(['yes'], dtype='<U3')
    """

    kernel: Any = parameter(
        "rbf",
        _KERNEL,
        'Kernel function. For "precomputed", X is the kernel matrix; a function of two sets of rows returns it.',
    )
    probability: bool | Literal["deprecated"] = parameter(
        "deprecated",
        _PROBABILITY,
        "Whether there are probabilities, calibrated in five-fold cross-validation. scikit-learn deprecates it: use "
        "``CalibratedClassifierCV(SVMClassifier(), ensemble=False)``.",
        effect="answers",
        common=True,
    )
    random_state: int | np.random.Generator | np.random.RandomState | None = parameter(
        None, _RANDOM_STATE, "Order of the rows in the folds of `probability`.", effect="draw", common=True
    )
    n_jobs: int | None = N_JOBS

    def _n_threads(self) -> int:
        return count_threads(self.n_jobs)

    def _train(self, X: Any, y: Any, rng: Any, sample_weight: Any = None) -> None:
        super()._train(X, y, rng, sample_weight)
        self._calibrated = None
        if self.probability == "deprecated":
            return
        name = type(self).__name__
        warnings.warn(
            "The `probability` parameter was deprecated by scikit-learn 1.9; use "
            f"`CalibratedClassifierCV({name}(), ensemble=False)` instead of `{name}(probability=True)`",
            FutureWarning,
            stacklevel=3,
        )
        if self.probability:
            self._calibrated = self._calibrate(X, y, sample_weight)

    def _calibrate(self, X: Any, y: Any, sample_weight: Any) -> Any:
        """Fit probabilities to decision values of rows outside the training folds."""
        # Imported late: an optional feature, and a slow import.
        from sklearn.calibration import CalibratedClassifierCV
        from sklearn.model_selection import StratifiedKFold

        y = np.asarray(y)
        n_folds = min(_FOLDS, int(np.unique(y, return_counts=True)[1].min()))
        all_rows = np.arange(len(y))
        seed = self.random_state
        if isinstance(seed, np.random.Generator):
            seed = int(seed.integers(2**31))
        # A class of one row leaves no fold without it.
        folds = StratifiedKFold(n_folds, shuffle=True, random_state=seed) if n_folds > 1 else [(all_rows, all_rows)]
        model = clone(self).set_params(probability="deprecated", decision_function_shape="ovr")
        return CalibratedClassifierCV(model, cv=folds, ensemble=False).fit(X, y, sample_weight=sample_weight)

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities (n, c) of the classes for rows X (n, d)."""
        check_is_fitted(self)
        if self._calibrated is None:
            raise NotFittedError("predict_proba is not available when fitted with probability=False")
        probabilities: np.ndarray = self._calibrated.predict_proba(X)
        return probabilities

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Logarithms of `predict_proba`."""
        logarithms: np.ndarray = np.log(self.predict_proba(X))
        return logarithms

    def _takes_kernel_values(self) -> bool:
        return callable(self.kernel) or self.kernel == "precomputed"

    def _kernel(self, gamma: float) -> Kernel:
        kernel = super()._kernel(gamma)
        return dataclasses.replace(kernel, name="precomputed") if self._takes_kernel_values() else kernel

    def _rows_and_codes(self, X: Any, y: Any) -> tuple[Any, np.ndarray]:
        if not self._takes_kernel_values():
            return super()._rows_and_codes(X, y)
        matrix = X
        if callable(self.kernel):
            check_consistent_length(X, y)
            # Predictions call the kernel with the training rows.
            self._rows_of_kernel = X
            matrix = self._matrix(X)
            if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
                raise ValueError(f"kernel: returned shape {matrix.shape}; X.shape[0] should be equal to X.shape[1]")
        elif scipy.sparse.issparse(X):
            raise TypeError("Sparse precomputed kernels are not supported.")
        rows, codes = as_training_rows(self, matrix, y, self.classes)
        if rows.shape[0] != rows.shape[1]:
            raise ValueError(
                f"Precomputed matrix must be a square matrix. Input is a {rows.shape[0]}x{rows.shape[1]} matrix."
            )
        if callable(self.kernel):
            # The matrix has n columns, the rows that the function gets may have any number of features.
            del self.n_features_in_
        self.shape_fit_ = tuple(getattr(X, "shape", rows.shape[:1]))
        return rows, codes

    def _matrix(self, X: Any) -> np.ndarray:
        """Compute the kernel values of rows with the training rows by a callable kernel."""
        values = self.kernel(X, self._rows_of_kernel)
        matrix: np.ndarray = np.asarray(values.toarray() if scipy.sparse.issparse(values) else values, dtype=np.float64)
        return matrix

    @one_blas_thread()
    def _pair_values(self, X: Any) -> np.ndarray:
        if not self._takes_kernel_values():
            return super()._pair_values(X)
        check_is_fitted(self)
        n_rows = self.shape_fit_[0]
        matrix = self._matrix(X) if callable(self.kernel) else np.asarray(X, dtype=np.float64)
        if matrix.ndim != 2 or matrix.shape[1] != n_rows:
            raise ValueError(
                f"X.shape[1] = {matrix.shape[-1]} should be equal to {n_rows}, the number of samples at training time"
            )
        if not callable(self.kernel):
            matrix = self._rows_to_predict(X)
        values: np.ndarray = matrix[:, self.support_] @ self._coef_of_rows + self.intercept_
        return values

    def release_path(self, X: Any, y: Any, *arguments: Any, **options: Any) -> Any:
        """Release one model of a named kernel; see `SingleModelClassifier.release_path`."""
        self._refuse_own_kernel()
        return super().release_path(X, y, *arguments, **options)

    def save(self, path: str | os.PathLike[str], *, table: Mapping[str, Any] | None = None) -> None:
        self._refuse_own_kernel()
        super().save(path, table=table)

    def _refuse_own_kernel(self) -> None:
        if self._takes_kernel_values():
            raise ValueError(f"kernel={self.kernel!r}: a stored model needs a kernel with a name: {', '.join(KERNELS)}")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = isinstance(self.kernel, str) and self.kernel == "precomputed"
        tags.input_tags.sparse = not tags.input_tags.pairwise
        return tags
