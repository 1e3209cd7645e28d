"""Kernel support vector machine, one-vs-one for more than two classes: the method `svm`, and what others train."""

from __future__ import annotations

import abc
import math
import warnings
from typing import Any, Self

import numpy as np
import scipy.sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.validation import check_is_fitted

from privsvm.base.estimators import SingleModelClassifier
from privsvm.base.one_vs_one import ClassPair, KernelSVMParameters, class_pairs, solve_pairs
from privsvm.base.parameters import CLASS_WEIGHT, parameter
from privsvm.base.released import KernelPath, one_vs_one_scores
from privsvm.base.validation import check_training_data
from privsvm.constraints import FLAG, POSITIVE, Constraint, one_of
from privsvm.privacy.guarantee import Guarantee
from privsvm.solvers.c_svc import CSVCSolution
from privsvm.solvers.kernels import KERNELS, resolve_gamma

__all__ = ["KernelSVM", "to_svc_layout"]

# An infinite C: the first bound that is tried, and by how much it grows while a variable reaches it. The last bound
# leaves the variables some digits.
_FIRST_BOUND, _BOUND_GROWTH, _LAST_BOUND = 1e4, 1e3, 1e10

INFINITE_C = Constraint(
    POSITIVE.schema,
    "must be a positive number; infinity is allowed",
    "float",
    also=lambda value: isinstance(value, (float, np.floating)) and value == math.inf,
)


class KernelSVM(KernelSVMParameters, SingleModelClassifier):
    """Training and prediction of a kernel support vector machine, whatever the solver; a base.

    Attributes
    ----------
    classes_ : ndarray (c,)
        Labels.
    class_weight_ : ndarray (c,)
        Factor of C of each class.
    support_ : ndarray of int (m,)
        Training rows with a nonzero dual variable, by class.
    support_vectors_ : ndarray or CSR matrix (m, d)
        These rows, in the form in which they were given; empty for a kernel matrix.
    dual_coef_ : ndarray or CSR matrix (c - 1, m)
        Coefficients of the support vectors, in the layout of `sklearn.svm.SVC`: a support vector of class k has one for
        each other class, in the order of the classes.
    coef_ : ndarray or CSR matrix (p, d)
        Weights of the features for the ``p = c (c - 1) / 2`` class pairs (one pair for two classes); of the linear
        kernel only.
    intercept_ : ndarray (p,)
        Offsets.
    objective_ : float
        Dual objective ``1/2 a'Qa - e'a``, summed over the pairs.
    n_iter_ : ndarray of int (p,)
        Iterations (pairs of variables moved) of the solver for each pair of classes.
    n_support_ : ndarray of int (c,)
        Support vectors of each class.
    fit_status_ : int
        0 if the solver reached `tol`, else 1.
    shape_fit_ : tuple of int
        Shape of the training rows.
    n_features_in_ : int
        Number of features d.
    guarantee_ : Guarantee
        Status ``none``.
    """

    C: float = parameter(
        1.0, INFINITE_C, "Upper bound of a dual variable: weight of one row's hinge loss. Infinity separates the classes."
    )
    class_weight: dict[Any, Any] | str | None = parameter(
        None,
        CLASS_WEIGHT,
        'Factor of C for each label; "balanced" is inversely proportional to the number of rows.',
    )
    decision_function_shape: str = parameter(
        "ovr",
        one_of("ovr", "ovo"),
        'Decision values for more than two classes: "ovr" has one for each class, votes plus a bounded share of the '
        'summed values; "ovo" has those of the pairs of classes.',
        common=True,
    )
    break_ties: bool = parameter(
        False,
        FLAG,
        "Whether the class of most votes is chosen among equals by the decision values; else it is the first.",
        common=True,
    )
    verbose: bool = parameter(
        False, FLAG, "Whether to print one line for each pair of classes that was solved.", effect="time", common=True
    )

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train on rows and labels.

        Parameters
        ----------
        X : array-like or sparse matrix (n, d)
            Rows; finite.
        y : array-like (n,)
            Labels.
        sample_weight : array-like (n,) or None
            Factor of C for each row. A row with a weight that is not positive is left out.

        Returns
        -------
        estimator
            Itself.

        Raises
        ------
        ValueError
            For rows that are not finite, one class only, or a parameter out of range.
        """
        self._train(X, y, getattr(self, "random_state", None), sample_weight)
        return self

    def _train(self, X: Any, y: Any, rng: Any, sample_weight: Any = None) -> None:
        self.check_declared()
        self._trained_with_sparse = scipy.sparse.issparse(X) and not self._given_kernel()
        X, codes, self.classes_ = self._rows_and_codes(X, y)
        n_rows = len(codes)
        settings: dict[str, Any] = {**self._c_svc_settings(), **self._solver()}
        # What the rows do not have, a kernel matrix has no use for.
        settings["gamma"] = self._gamma = 1.0 if self._given_kernel() else resolve_gamma(self.gamma, X)
        weights = self._row_weights(sample_weight, n_rows, X.shape)
        kept = np.flatnonzero(weights > 0)
        self.class_weight_ = self._weights(codes)
        upper = self.class_weight_[codes] * weights
        if kept.size < n_rows:
            self._check_kept(codes, kept)
            X = X[np.ix_(kept, kept)] if self._given_kernel() else X[kept]
            codes, upper = codes[kept], upper[kept]
        pairs = class_pairs(codes, len(self.classes_))
        coef = np.zeros((len(codes), len(pairs)))
        self.intercept_ = np.zeros(len(pairs))
        self.n_iter_ = np.zeros(len(pairs), dtype=np.int64)
        self.objective_ = 0.0
        converged = True
        for column, pair in enumerate(pairs):
            if pair.offset is not None:
                self.intercept_[column] = pair.offset
        for column, pair, solution in self._solutions(X, pairs, upper, settings):
            coef[pair.rows, column] = pair.orientation * pair.signs * solution.alpha
            self.intercept_[column] = -pair.orientation * solution.rho
            self.objective_ += solution.objective
            self.n_iter_[column] = solution.n_iter
            converged &= solution.converged
            if self.verbose:
                print(_line(self.classes_, codes, pair, solution))
        self.fit_status_ = int(not converged)
        if not converged:
            self._warn()
        used = np.flatnonzero(coef.any(axis=1))
        self._keep_model(X, codes, used, coef[used])
        # By class, and by row inside a class.
        order = np.argsort(codes[used], kind="stable")
        self.support_ = kept[used[order]]
        vectors = X[used[order]]
        if self._given_kernel():
            vectors = np.empty((0, 0))
        elif self._trained_with_sparse:
            vectors = scipy.sparse.csr_matrix(vectors)
        else:
            vectors = vectors.toarray() if scipy.sparse.issparse(vectors) else vectors
        self.support_vectors_ = vectors
        layout = to_svc_layout(coef[used[order]], codes[used[order]], len(self.classes_))
        self.dual_coef_ = scipy.sparse.csr_matrix(layout) if self._trained_with_sparse else layout

    def _given_kernel(self) -> bool:
        """Whether kernel values come from the caller."""
        return False

    def _rows_and_codes(self, X: Any, y: Any) -> tuple[Any, np.ndarray, np.ndarray]:
        """Return the rows as the solver takes them, class codes and labels."""
        rows, codes, labels = check_training_data(self, X, y, self.classes)
        self.shape_fit_ = tuple(rows.shape)
        return rows, codes, labels

    def _solutions(self, X: Any, pairs: list[ClassPair], upper: np.ndarray, settings: dict[str, Any]) -> Any:
        """Solve all pairs for this C; an infinite one by growing bounds, until no variable reaches them."""
        if math.isfinite(self.C):
            yield from solve_pairs(X, pairs, float(self.C) * upper, **settings)
            return
        bound, left = _FIRST_BOUND, list(range(len(pairs)))
        while left:
            solved = list(solve_pairs(X, [pairs[column] for column in left], bound * upper, **settings))
            again = []
            for place, pair, solution in solved:
                inside = bool((solution.alpha < bound * upper[pair.rows]).all())
                if (inside and solution.converged) or bound >= _LAST_BOUND or self.max_iter >= 0:
                    yield left[place], pair, solution
                else:
                    again.append(left[place])
            left, bound = again, bound * _BOUND_GROWTH

    def _warn(self) -> None:
        """Say that the solver stopped early."""
        if self.max_iter >= 0:
            text = (
                f"Solver terminated early (max_iter={self.max_iter}).  Consider pre-processing your data with "
                "StandardScaler or MinMaxScaler."
            )
        else:
            text = f"stopped before tol={self.tol:g} was reached; scale the features, or raise tol"
        warnings.warn(text, ConvergenceWarning, stacklevel=4)

    def _keep_model(self, X: Any, codes: np.ndarray, used: np.ndarray, coef: np.ndarray) -> None:
        """Set the released model: the rows of these numbers, and their coefficients."""
        self.n_support_ = np.bincount(codes[used], minlength=len(self.classes_))
        self.guarantee_ = Guarantee(
            status="none",
            mechanism="none: exact training",
            reason="a non-private reference",
            reference="Cortes and Vapnik (1995); LIBSVM's formulation",
        )
        if self._given_kernel():
            self._coef_of_rows = coef
            return
        vectors = X[used]
        self._path = KernelPath(
            epsilons=(math.inf,),
            guarantees=(self.guarantee_,),
            n_classes=len(self.classes_),
            objective=self.objective_,
            n_support=int(used.size),
            n_iter=int(self.n_iter_.sum()),
            support_vectors=np.ascontiguousarray(vectors.toarray() if scipy.sparse.issparse(vectors) else vectors),
            pair_coef=coef[None, None],
            intercept=self.intercept_[None, None],
            kernel_parameters=np.array([KERNELS.index(self.kernel), self._gamma, self.degree, self.coef0]),
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

    def _row_weights(self, sample_weight: Any, n_rows: int, shape: tuple[int, ...]) -> np.ndarray:
        """Return the weights of the rows, (n,)."""
        if sample_weight is None:
            return np.ones(n_rows)
        weights = np.asarray(sample_weight, dtype=np.float64)
        if weights.ndim == 0:
            weights = np.full(n_rows, weights)
        if weights.shape != (n_rows,):
            raise ValueError(
                f"sample_weight and X have incompatible shapes: {weights.shape} vs {tuple(shape)}; give one weight for "
                "each row"
            )
        if not np.isfinite(weights).all():
            raise ValueError("sample_weight holds NaN or infinity; give finite numbers")
        return weights

    def _check_kept(self, codes: np.ndarray, kept: np.ndarray) -> None:
        """Raise ValueError where the rows of positive weight cannot be told apart."""
        if kept.size == 0:
            raise ValueError("Invalid input - all samples have zero or negative weights.")
        if np.unique(codes[kept]).size == 1:
            raise ValueError("Invalid input - all samples with positive weights belong to the same class.")

    @property
    def coef_(self) -> Any:
        """Weights of the features, (p, d); of the linear kernel only."""
        if self.kernel != "linear":
            raise AttributeError("coef_ is only available when using a linear kernel")
        check_is_fitted(self)
        # Read only: changing it would change no prediction.
        coef = self._path.pair_coef[0, 0].T @ self._path.support_vectors
        if self._trained_with_sparse:
            coef = scipy.sparse.csr_matrix(coef)
            coef.data.flags.writeable = False
        else:
            coef.flags.writeable = False
        return coef

    def _pair_values(self, X: Any) -> np.ndarray:
        """Decision values (n, p) of the pairs of classes."""
        values: np.ndarray = self._path.pair_values(self._checked_rows(X), 0)[0]
        return values

    def decision_function(self, X: Any) -> np.ndarray:
        """Decision values.

        Parameters
        ----------
        X : array-like or sparse matrix (n, d)
            Rows.

        Returns
        -------
        ndarray (n,), (n, c) or (n, p)
            Two classes: positive for ``classes_[1]``. More: see `decision_function_shape`; the value of a pair is
            positive for its first class.
        """
        values = self._pair_values(X)
        if len(self.classes_) == 2:
            return values[:, 0]
        return values if self.decision_function_shape == "ovo" else one_vs_one_scores(values, len(self.classes_))[1]

    def predict(self, X: Any) -> np.ndarray:
        """Predict the labels (n,) of rows X (n, d)."""
        check_is_fitted(self)
        if self.break_ties and self.decision_function_shape == "ovo":
            raise ValueError("break_ties must be False when decision_function_shape is 'ovo'")
        values = self._pair_values(X)
        if len(self.classes_) == 2:
            codes = (values[:, 0] > 0).astype(np.int64)
        else:
            votes, confidences = one_vs_one_scores(values, len(self.classes_))
            codes = np.argmax(confidences if self.break_ties else votes, axis=1)
        labels: np.ndarray = self.classes_[codes]
        return labels


def to_svc_layout(coef: np.ndarray, codes: np.ndarray, n_classes: int) -> np.ndarray:
    """Turn coefficients for each pair of classes (m, p) into scikit-learn's layout (c - 1, m)."""
    if n_classes == 2:
        return np.ascontiguousarray(coef.T)
    layout = np.zeros((n_classes - 1, len(codes)))
    column = 0
    for first in range(n_classes):
        for second in range(first + 1, n_classes):
            own, other = codes == first, codes == second
            layout[second - 1, own] = coef[own, column]
            layout[first, other] = coef[other, column]
            column += 1
    return layout


def _line(labels: np.ndarray, codes: np.ndarray, pair: ClassPair, solution: CSVCSolution) -> str:
    """Tell of one solved pair."""
    names = " and ".join(str(labels[code]) for code in np.unique(codes[pair.rows]))
    return (
        f"[PrivSVM] {names}: {len(pair.rows)} rows, {solution.n_iter} iterations, objective {solution.objective:.6g}, "
        f"{np.count_nonzero(solution.alpha)} support vectors"
    )
