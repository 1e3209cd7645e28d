"""Kernel support vector machine, one-vs-one for more than two classes: the method `svm`, and what others train."""

from __future__ import annotations

import abc
import math
import warnings
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.class_weight import compute_class_weight

from privsvm.base.estimators import SingleModelClassifier
from privsvm.base.one_vs_one import KernelSVMParameters, class_pairs, solve_pairs
from privsvm.base.parameters import CLASS_WEIGHT, N_JOBS, parameter
from privsvm.base.released import KernelPath
from privsvm.base.validation import check_training_data
from privsvm.numerics.threads import count_threads
from privsvm.privacy.guarantee import Guarantee
from privsvm.solvers.kernels import KERNELS, resolve_gamma

__all__ = ["KernelSVM", "SVMClassifier"]


class KernelSVM(KernelSVMParameters, SingleModelClassifier):
    """Training and prediction of a kernel support vector machine, whatever the solver; a base.

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
        Iterations (pairs of variables moved) of the solver, summed over the pairs of classes.
    n_support_ : ndarray of int (c,)
        Support vectors of each class.
    n_features_in_ : int
        Number of features d.
    guarantee_ : Guarantee
        Status ``none``.
    """

    class_weight: dict[Any, Any] | str | None = parameter(
        None,
        CLASS_WEIGHT,
        'Factor of C for each label; "balanced" is inversely proportional to the number of rows.',
    )

    def _train(self, X: Any, y: Any, rng: Any) -> None:
        self.check_declared()
        settings = {**self._c_svc_settings(), **self._solver()}
        X, codes, self.classes_ = check_training_data(self, X, y, self.classes)
        n_classes = len(self.classes_)
        settings["gamma"] = gamma = resolve_gamma(self.gamma, X)
        upper = float(self.C) * self._weights(codes)[codes]
        pairs = class_pairs(codes, n_classes)
        coef = np.zeros((len(codes), len(pairs)))
        self.intercept_ = np.zeros(len(pairs))
        self.objective_, self.n_iter_ = 0.0, 0
        converged = True
        for column, pair in enumerate(pairs):
            if pair.offset is not None:
                self.intercept_[column] = pair.offset
        for column, pair, solution in solve_pairs(X, pairs, upper, **settings):
            coef[pair.rows, column] = pair.orientation * pair.signs * solution.alpha
            self.intercept_[column] = -pair.orientation * solution.rho
            self.objective_ += solution.objective
            self.n_iter_ += solution.n_iter
            converged &= solution.converged
        if not converged:
            warnings.warn(
                f"stopped before tol={self.tol:g} was reached (max_iter={self.max_iter}); scale the features, or raise "
                "max_iter or tol",
                ConvergenceWarning,
                stacklevel=3,
            )
        self.support_ = np.flatnonzero(coef.any(axis=1))
        self.n_support_ = np.bincount(codes[self.support_], minlength=n_classes)
        self.dual_coef_ = coef[self.support_]
        vectors = X[self.support_]
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
            n_classes=n_classes,
            objective=self.objective_,
            n_support=int(self.support_.size),
            n_iter=self.n_iter_,
            support_vectors=np.ascontiguousarray(dense),
            pair_coef=self.dual_coef_[None, None],
            intercept=self.intercept_[None, None],
            kernel_parameters=np.array([KERNELS.index(self.kernel), gamma, self.degree, self.coef0]),
        )

    @abc.abstractmethod
    def _solver(self) -> dict[str, Any]:
        """Keywords of `solve_pairs` that choose the solver."""

    def _weights(self, codes: np.ndarray) -> np.ndarray:
        """Return the factor of C for each class code, (c,)."""
        weights = np.ones(len(self.classes_))
        if self.class_weight is not None:
            present = np.unique(codes)
            labels = self.classes_[present]
            try:
                weights[present] = compute_class_weight(self.class_weight, classes=labels, y=self.classes_[codes])
            except (TypeError, ValueError) as error:
                raise ValueError(f"class_weight={self.class_weight!r}: {error}") from None
            for label, weight in zip(labels, weights[present], strict=True):
                if not (weight > 0 and math.isfinite(weight)):
                    raise ValueError(
                        f"class_weight={self.class_weight!r}: the weight of {label!r} must be positive and finite"
                    )
        return weights


class SVMClassifier(KernelSVM):
    """Support vector machine with LIBSVM's problem, stopping rule and vote. Not private.

    Solves ``min 1/2 a'Qa - e'a, 0 <= a <= C, y'a = 0`` for each pair of classes, until the largest violation of
    optimality is at most `tol`. The solver moves working sets of many variables; `SMOSVMClassifier` has LIBSVM's.

    Examples
    --------
    >>> from privsvm import SVMClassifier
    >>> SVMClassifier(kernel="linear").fit([[-1.0], [1.0]], ["no", "yes"]).predict([[3.0]])
    array(['yes'], dtype='<U3')
    """

    n_jobs: int | None = N_JOBS

    def _solver(self) -> dict[str, Any]:
        return {"selection": "block", "n_threads": count_threads(self.n_jobs)}
