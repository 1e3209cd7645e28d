"""The base of CI-SVM and FCM-SVM, which train on condensed rows."""

from __future__ import annotations

import abc
import dataclasses
import math
import warnings
from typing import Any, ClassVar

import numpy as np

from privsvm.base.estimators import RandomState, SingleModelClassifier
from privsvm.base.parameters import CLASS_WEIGHT, N_JOBS, parameter
from privsvm.base.released import KernelPath
from privsvm.base.rows import as_training_rows
from privsvm.families.condensed.condensation import Condensed
from privsvm.families.exact.one_vs_one import KernelSVMParameters
from privsvm.families.exact.svm_classifier import SVMClassifier
from privsvm.numerics.compiled.threads import count_threads
from privsvm.privacy.gate import Guarantee
from privsvm.solvers.kernel.kernels import KERNELS, resolve_gamma


class CondensedClassifier(KernelSVMParameters, SingleModelClassifier):
    """A support vector machine that is trained on condensed rows; a base.

    Attributes
    ----------
    condensed_codes_ : ndarray of int (M,)
        Labels of the condensed rows, as places in `classes_`.
    dual_coef_ : ndarray (m, p)
        Coefficients of the support vectors for the ``p = c (c - 1) / 2`` class pairs.
    intercept_ : ndarray (p,)
        Offsets.
    objective_ : float
        Dual objective, summed over the pairs.
    n_iter_ : int
        Iterations of the solver, summed over the pairs.
    n_support_ : ndarray of int (c,)
        Support vectors of each class.
    """

    class_weight: dict[Any, Any] | str | None = parameter(
        None,
        CLASS_WEIGHT,
        'Factor of C for each label; "balanced" is inversely proportional to the number of condensed rows.',
    )
    n_jobs: int | None = N_JOBS

    condense: ClassVar[str]

    @abc.abstractmethod
    def _condense(self, X: Any, codes: np.ndarray, n_threads: int, rng: RandomState) -> Condensed:
        """Condense the rows."""

    @abc.abstractmethod
    def _guarantee(self) -> Guarantee:
        """Return the record of a model."""

    def _train(self, X: Any, y: Any, rng: RandomState) -> None:
        self.check_declared()
        svm = SVMClassifier(**{name: getattr(self, name) for name in SVMClassifier.declared if name in self.declared})
        X, codes = as_training_rows(self, X, y, self.classes)
        resolve_gamma(self.gamma, X)
        condensed = self._condense(X, codes, count_threads(self.n_jobs), rng)
        self.size_ratio_, self.label_purity_ = condensed.size_ratio, condensed.label_purity
        self.condensed_rows_, self.condensed_codes_ = condensed.rows, condensed.codes
        self.group_of_ = condensed.group_of
        self.guarantee_ = self._guarantee()
        present = np.unique(condensed.codes)
        if present.size == 1:
            only = str(self.classes_[present[0]])
            warnings.warn(
                f"all condensed rows are of class {only!r}, so the model predicts no other; give it more rows of the "
                "other classes",
                UserWarning,
                stacklevel=3,
            )
            path = self._constant(int(present[0]))
            self.support_ = np.zeros(0, dtype=np.int64)
        else:
            if isinstance(self.class_weight, dict):
                # Classes without a condensed row are left out: SVMClassifier refuses weights of absent classes.
                labels = set(self.classes_[present].tolist())
                weights = {
                    label: weight
                    for label, weight in self.class_weight.items()
                    if label in labels or label not in self.classes_
                }
                svm.set_params(class_weight=weights)
            svm.set_params(classes=self.classes_).fit(condensed.rows, self.classes_[condensed.codes])
            path = svm._path
            self.support_ = svm.support_
        self._path = dataclasses.replace(path, guarantees=(self.guarantee_,))
        self.dual_coef_ = self._path.pair_coef[0, 0][: self.support_.size]
        self.intercept_ = self._path.intercept[0, 0]
        self.objective_, self.n_iter_ = self._path.objective, self._path.n_iter
        self.n_support_ = np.bincount(condensed.codes[self.support_], minlength=len(self.classes_))

    def _constant(self, code: int) -> KernelPath:
        """Return a model without support vectors, for condensed rows of one class."""
        n_classes = len(self.classes_)
        pairs = [(first, second) for first in range(n_classes) for second in range(first + 1, n_classes)]
        wins = np.array([1.0 if first == code else -1.0 for first, _ in pairs])
        return KernelPath(
            epsilons=(math.inf,),
            guarantees=(self.guarantee_,),
            n_classes=n_classes,
            objective=0.0,
            n_support=0,
            n_iter=0,
            support_vectors=np.zeros((1, self.n_features_in_)),
            pair_coef=np.zeros((1, 1, 1, len(pairs))),
            intercept=(-wins if n_classes == 2 else wins)[None, None],
            kernel_parameters=np.array([KERNELS.index("linear"), 1.0, 1, 0.0]),
        )
