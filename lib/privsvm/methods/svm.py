"""C-SVM, the non-private reference: kernel support vector machine, one-vs-one for more than two classes."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Sequence

import numpy as np
import scipy.sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from privsvm.errors import nearest_name
from privsvm.methods.released import KernelPath
from privsvm.methods.validation import check_training_data, common_tags
from privsvm.privacy.guarantee import Guarantee
from privsvm.solvers.kernels import KERNELS, kernel_matrix, resolve_gamma

__all__ = ["ESTIMATOR", "SVMClassifier"]


class SVMClassifier(ClassifierMixin, BaseEstimator):
    """Support vector machine with LIBSVM's problem, stopping rule and vote. Not private.

    Solves ``min 1/2 a'Qa - e'a, 0 <= a <= C, y'a = 0`` for each pair of classes, until the largest
    violation of optimality is at most `tol`.

    Parameters
    ----------
    C : float, default=1.0
        Upper bound of a dual variable: weight of one row's hinge loss.
    kernel : {"linear", "rbf", "poly", "sigmoid"}, default="rbf"
        Kernel function.
    gamma : float, "scale" or "auto", default="scale"
        Kernel coefficient of rbf, poly and sigmoid.
    degree : int, default=3
        Degree of poly.
    coef0 : float, default=0.0
        Constant of poly and sigmoid.
    tol : float, default=1e-3
        Stopping tolerance.
    max_iter : int, default=-1
        Most iterations of the solver; -1 for no limit.
    cache_size : float, default=200
        Kernel cache in MB.
    shrinking : bool, default=True
        Whether to set bounded variables aside while solving.
    classes : sequence or None, default=None
        The label set, in the order of the class codes; None takes it from the training labels.

    Attributes
    ----------
    classes_ : ndarray (c,)
        Labels.
    support_ : ndarray of int (m,)
        Training rows with a nonzero dual variable.
    dual_coef_ : ndarray (m, p)
        Coefficients of the support vectors for the ``p = c (c - 1) / 2`` class pairs.
    intercept_ : ndarray (p,)
        Offsets.
    objective_ : float
        Dual objective ``1/2 a'Qa - e'a``, summed over the pairs.
    n_iter_ : int
        Iterations of the solver, summed over the pairs.
    n_features_in_ : int
        Number of features d.
    guarantee_ : Guarantee
        Status ``none``.

    Examples
    --------
    >>> from privsvm import SVMClassifier
    >>> SVMClassifier(kernel="linear").fit([[-1.0], [1.0]], ["no", "yes"]).predict([[3.0]])
    array(['yes'], dtype='<U3')
    """

    def __init__(
        self,
        *,
        C: float = 1.0,
        kernel: str = "rbf",
        gamma: float | str = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        tol: float = 1e-3,
        max_iter: int = -1,
        cache_size: float = 200,
        shrinking: bool = True,
        classes: Sequence | None = None,
    ):
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.tol = tol
        self.max_iter = max_iter
        self.cache_size = cache_size
        self.shrinking = shrinking
        self.classes = classes

    def fit(self, X, y) -> SVMClassifier:
        """Train on rows and labels.

        Parameters
        ----------
        X : array-like or sparse matrix (n, d)
            Rows; finite.
        y : array-like (n,)
            Labels.

        Returns
        -------
        SVMClassifier
            Itself.

        Raises
        ------
        ValueError
            For rows that are not finite, one class only, or a parameter out of range.
        """
        from sklearn.svm import SVC

        if self.kernel not in KERNELS:
            raise ValueError(f"kernel={self.kernel!r}: {nearest_name(self.kernel, KERNELS)}")
        for name in ("C", "tol", "cache_size"):
            value = getattr(self, name)
            if not (value > 0 and math.isfinite(value)):
                raise ValueError(f"{name}={value!r}: must be positive and finite")
        X, codes, self.classes_ = check_training_data(self, X, y, self.classes)
        present = np.unique(codes)
        if present.size < 2:
            raise ValueError(f"y has one class only ({self.classes_[present[0]]!r}); an SVM needs at least two classes")
        gamma = resolve_gamma(self.gamma, X)
        # A class of the public list may have no row here; the solver sees the present ones only.
        solver = SVC(
            C=self.C,
            kernel=self.kernel,
            gamma=gamma,
            degree=self.degree,
            coef0=self.coef0,
            tol=self.tol,
            max_iter=self.max_iter,
            cache_size=self.cache_size,
            shrinking=self.shrinking,
            decision_function_shape="ovo",
        ).fit(X, np.searchsorted(present, codes))
        self.support_ = solver.support_.astype(np.int64)
        vectors = X[self.support_]
        dual_coef = solver.dual_coef_.toarray() if scipy.sparse.issparse(solver.dual_coef_) else solver.dual_coef_
        pair_coef, intercept = _by_pair(dual_coef, solver.intercept_, solver.n_support_, present, len(self.classes_))
        self.dual_coef_, self.intercept_ = pair_coef, intercept
        self.n_iter_ = int(np.sum(solver.n_iter_))
        self.objective_ = _dual_objective(vectors, pair_coef, self.kernel, gamma, self.degree, self.coef0)
        self.guarantee_ = Guarantee(
            status="none",
            mechanism="none: exact training",
            reason="a non-private reference",
            reference="Cortes and Vapnik (1995); LIBSVM's formulation",
        )
        dense = vectors.toarray() if scipy.sparse.issparse(vectors) else vectors
        self._path = KernelPath(
            epsilons=(math.inf,),
            guarantees=(self.guarantee_,),
            n_classes=len(self.classes_),
            objective=self.objective_,
            n_support=int(self.support_.size),
            n_iter=self.n_iter_,
            support_vectors=np.ascontiguousarray(dense),
            pair_coef=pair_coef[None, None],
            intercept=intercept[None, None],
            kernel_parameters=np.array([KERNELS.index(self.kernel), gamma, self.degree, self.coef0]),
        )
        return self

    def decision_function(self, X) -> np.ndarray:
        """Decision values.

        Parameters
        ----------
        X : array-like or sparse matrix (n, d)
            Rows.

        Returns
        -------
        ndarray (n,) or (n, c)
            Two classes: positive for ``classes_[1]``. More: votes of the pairs plus a bounded share
            of their summed values.
        """
        scores = self._scores(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X) -> np.ndarray:
        """Predict labels (n,) of rows X (n, d) by LIBSVM's vote."""
        scores = self._scores(X)
        return self.classes_[self._path.codes(scores[None])[0]]

    def _scores(self, X) -> np.ndarray:
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, accept_sparse="csr", dtype=np.float64)
        return self._path.scores(X, 0)[0]

    def release_path(self, X, y, epsilons: Sequence[float], repeats: int, rng=None, audit: bool = False) -> KernelPath:
        """One exact model: a non-private method ignores all but the rows and labels."""
        started = time.perf_counter()
        path = self.fit(X, y)._path
        return dataclasses.replace(path, fit_seconds=time.perf_counter() - started)

    def __sklearn_tags__(self):
        return common_tags(super().__sklearn_tags__())


def _by_pair(
    dual_coef: np.ndarray, intercept: np.ndarray, n_support: np.ndarray, present: np.ndarray, n_classes: int
) -> tuple[np.ndarray, np.ndarray]:
    """Spread LIBSVM's packed coefficients (c-1, m) over the class pairs: (m, p) and (p,)."""
    ends = np.cumsum(n_support)
    starts = ends - n_support
    if n_classes == 2:
        # scikit-learn has already turned the sign: positive means class 1.
        return np.ascontiguousarray(dual_coef.T), intercept.copy()
    pair_coef = np.zeros((dual_coef.shape[1], n_classes * (n_classes - 1) // 2))
    pair_intercept = np.zeros(pair_coef.shape[1])
    if present.size == 2:
        dual_coef, intercept = -dual_coef, -intercept
    index_of = {int(code): k for k, code in enumerate(present)}
    packed = {pair: k for k, pair in enumerate((i, j) for i in range(present.size) for j in range(i + 1, present.size))}
    column = 0
    for first in range(n_classes):
        for second in range(first + 1, n_classes):
            if first in index_of and second in index_of:
                i, j = index_of[first], index_of[second]
                pair_coef[starts[i] : ends[i], column] = dual_coef[j - 1, starts[i] : ends[i]]
                pair_coef[starts[j] : ends[j], column] = dual_coef[i, starts[j] : ends[j]]
                pair_intercept[column] = intercept[packed[i, j]]
            elif first in index_of:
                pair_intercept[column] = 1.0
            else:
                # An absent class wins no pair against a present one; two absent ones never matter.
                pair_intercept[column] = -1.0
            column += 1
    return pair_coef, pair_intercept


def _dual_objective(vectors, pair_coef: np.ndarray, kernel: str, gamma: float, degree: int, coef0: float) -> float:
    """Sum over the pairs of ``1/2 a'Qa - e'a``, from the support vectors alone."""
    quadratic = 0.0
    block = max(1, 8_000_000 // max(vectors.shape[0], 1))
    for start in range(0, vectors.shape[0], block):
        rows = kernel_matrix(vectors[start : start + block], vectors, kernel, gamma, degree, coef0)
        quadratic += float(np.sum(pair_coef[start : start + block] * (rows @ pair_coef)))
    return 0.5 * quadratic - float(np.abs(pair_coef).sum())


ESTIMATOR = SVMClassifier
