"""Base of the kernel support vector machines, one-vs-one for many classes."""

from __future__ import annotations

import dataclasses
import math
import warnings
from typing import Any, Self

import numpy as np
import scipy.sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.validation import check_is_fitted

from privsvm.base.estimators import SingleModelClassifier
from privsvm.base.parameters import CLASS_WEIGHT, parameter
from privsvm.base.released import KernelPath, one_vs_one_scores
from privsvm.base.rows import as_training_rows
from privsvm.constraints import FLAG, POSITIVE, Constraint, one_of, whole, with_numpy
from privsvm.families.exact.one_vs_one import GAMMA_OR_ZERO, KernelSVMParameters, solve_pairs
from privsvm.numerics.compiled.threads import one_blas_thread
from privsvm.numerics.rows.row_blocks import RowBlocks
from privsvm.privacy.gate import exact_training
from privsvm.solvers.kernel.kernel_rows import Expansion
from privsvm.solvers.kernel.kernels import KERNELS, Kernel, resolve_gamma
from privsvm.solvers.kernel.pair_smo import ClassSolutions, classes_of_pairs, scatter_pairs

# Infinite C: the first bound, and its growth while a variable reaches it. Round-off: above the last bound, variables
# would have too few digits.
_FIRST_BOUND, _BOUND_GROWTH, _LAST_BOUND = 1e4, 1e3, 1e10

INFINITE_C = with_numpy(
    Constraint(
        POSITIVE.schema,
        "must be a positive number; infinity is allowed",
        "float",
        also=lambda value: isinstance(value, (float, np.floating)) and value == math.inf,
    )
)
# scikit-learn also has levels of talkativeness.
_VERBOSE = dataclasses.replace(FLAG, also=whole(0).accepts)


class KernelSVM(KernelSVMParameters, SingleModelClassifier):
    """Training and prediction of a kernel support vector machine by any solver; a base.

    Attributes
    ----------
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
        Iterations of the solver for each pair of classes: pairs of variables moved, and steps of the interior-point
        method.
    n_support_ : ndarray of int (c,)
        Support vectors of each class.
    fit_status_ : int
        0 if the solver reached `tol`, else 1.
    shape_fit_ : tuple of int
        Shape of the training rows.
    """

    C: float = parameter(
        1.0,
        INFINITE_C,
        "Upper bound of a dual variable: weight of one row's hinge loss. Infinity separates the classes.",
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
        effect="answers",
        common=True,
    )
    break_ties: bool = parameter(
        False,
        FLAG,
        "Whether the class of most votes is chosen among equals by the decision values; else it is the first.",
        effect="answers",
        common=True,
    )
    gamma: float | str = parameter(
        "scale",
        GAMMA_OR_ZERO,
        'Kernel coefficient of rbf, poly and sigmoid. "scale" takes the variance of the training rows.',
    )
    degree: int = parameter(3, whole(0), "Degree of poly.")
    verbose: bool | int = parameter(
        False,
        _VERBOSE,
        "Whether to print one line for each pair of classes that was solved.",
        effect="time",
        common=True,
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
        with one_blas_thread():
            self._train(X, y, getattr(self, "random_state", None), sample_weight)
        return self

    def _train(self, X: Any, y: Any, rng: Any, sample_weight: Any = None) -> None:
        self.check_declared()
        self._trained_with_sparse = scipy.sparse.issparse(X) and not self._takes_kernel_values()
        X, codes = self._rows_and_codes(X, y)
        n_rows = len(codes)
        # A precomputed kernel has no features to derive gamma from, and needs none.
        self._gamma = 1.0 if self._takes_kernel_values() else resolve_gamma(self.gamma, X)
        weights = self._row_weights(sample_weight, n_rows, X.shape)
        kept = np.flatnonzero(weights > 0)
        self.class_weight_ = self._weights(codes)
        upper = self.class_weight_[codes] * weights
        if kept.size < n_rows:
            if kept.size == 0:
                raise ValueError("Invalid input - all samples have zero or negative weights.")
            if np.unique(codes[kept]).size == 1:
                raise ValueError("Invalid input - all samples with positive weights belong to the same class.")
            X = X[np.ix_(kept, kept)] if self._takes_kernel_values() else X[kept]
            codes, upper = codes[kept], upper[kept]
        solutions = self._solutions(X, codes, upper)
        n_classes = len(self.classes_)
        # For two classes, values are positive for the second.
        orientation = -1.0 if n_classes == 2 else 1.0
        self.intercept_ = -orientation * solutions.rho
        self._set_absent(solutions.starts)
        self.n_iter_ = solutions.n_iter
        self.objective_ = float(solutions.objective.sum())
        self.fit_status_ = int(not solutions.converged.all())
        if self.verbose:
            _report(self.classes_, solutions)
        if self.fit_status_:
            self._warn()
        used = np.flatnonzero(solutions.layout.any(axis=0))
        order = np.argsort(codes, kind="stable")[used]
        self.support_ = kept[order]
        layout = np.ascontiguousarray(orientation * solutions.layout[:, used])
        self._keep_rows(X, codes, order, layout)
        self.dual_coef_ = scipy.sparse.csr_matrix(layout) if self._trained_with_sparse else layout

    def _takes_kernel_values(self) -> bool:
        """Tell whether kernel values come from the caller."""
        return False

    def _rows_and_codes(self, X: Any, y: Any) -> tuple[Any, np.ndarray]:
        """Return the rows as the solver takes them, and class codes."""
        rows, codes = as_training_rows(self, X, y, self.classes)
        self.shape_fit_ = tuple(rows.shape)
        return rows, codes

    def _solutions(self, X: Any, codes: np.ndarray, upper: np.ndarray) -> ClassSolutions:
        """Solve all pairs for this C; growing bounds stand for an infinite one until no variable reaches them."""
        n_classes, kernel = len(self.classes_), self._kernel(self._gamma)
        options = self._solver_options(self._n_threads())
        if math.isfinite(self.C):
            return solve_pairs(X, codes, n_classes, float(self.C) * upper, kernel, options)
        bound = _FIRST_BOUND
        while True:
            solutions = solve_pairs(X, codes, n_classes, bound * upper, kernel, options)
            sorted_upper = bound * upper[np.argsort(codes, kind="stable")]
            inside = bool((np.abs(solutions.layout) < sorted_upper).all())
            if (inside and solutions.converged.all()) or bound >= _LAST_BOUND or self.max_iter >= 0:
                return solutions
            bound *= _BOUND_GROWTH

    def _set_absent(self, starts: np.ndarray) -> None:
        """Set the offsets of pairs with an absent class, which beats no present one."""
        sizes = np.diff(starts)
        if sizes.all():
            return
        first, second = classes_of_pairs(len(sizes))
        absent = (sizes[first] == 0) | (sizes[second] == 0)
        self.intercept_[absent] = np.where(sizes[first[absent]] > 0, 1.0, -1.0)

    def _warn(self) -> None:
        """Warn that the solver stopped early."""
        if self.max_iter >= 0:
            text = (
                f"Solver terminated early (max_iter={self.max_iter}).  Consider pre-processing your data with "
                "StandardScaler or MinMaxScaler."
            )
        else:
            text = (
                f"stopped before tol={self.tol:g} was reached; scale the features (make_pipeline(StandardScaler(), "
                f"{type(self).__name__}(...))), or raise tol"
            )
        warnings.warn(text, ConvergenceWarning, stacklevel=4)

    def _keep_rows(self, X: Any, codes: np.ndarray, used: np.ndarray, layout: np.ndarray) -> None:
        """Set the released model from the numbers and coefficients of used rows."""
        n_classes = len(self.classes_)
        self.n_support_ = np.bincount(codes[used], minlength=n_classes)
        coef = np.zeros((used.size, len(self.intercept_)))
        scatter_pairs(layout, np.concatenate([[0], np.cumsum(self.n_support_)]), coef)
        self.guarantee_ = exact_training("Cortes and Vapnik (1995); LIBSVM's formulation")
        if self._takes_kernel_values():
            self._coef_of_rows, self.support_vectors_ = coef, np.empty((0, 0))
            return
        vectors = X[used]
        dense = np.ascontiguousarray(vectors.toarray() if scipy.sparse.issparse(vectors) else vectors)
        self.support_vectors_ = scipy.sparse.csr_matrix(vectors) if self._trained_with_sparse else dense
        self._keep_model(
            KernelPath,
            self.guarantee_,
            objective=self.objective_,
            n_support=int(used.size),
            n_iter=int(self.n_iter_.sum()),
            support_vectors=dense,
            pair_coef=coef[None, None],
            intercept=self.intercept_[None, None],
            kernel_parameters=np.array([KERNELS.index(self.kernel), self._gamma, self.degree, self.coef0]),
        )

    def _n_threads(self) -> int:
        """Return the number of threads for training and prediction."""
        return 1

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

    @property
    @one_blas_thread()
    def coef_(self) -> Any:
        """Weights of the features, (p, d); of the linear kernel only."""
        if self.kernel != "linear":
            raise AttributeError("coef_ is only available when using a linear kernel")
        check_is_fitted(self)
        # Read-only, since the model predicts from its support vectors.
        coef = Expansion(self._path.support_vectors, self._path.pair_coef[0, 0], Kernel("linear")).weights.T
        if self._trained_with_sparse:
            coef = scipy.sparse.csr_matrix(coef)
            coef.data.flags.writeable = False
        else:
            coef.flags.writeable = False
        return coef

    @one_blas_thread()
    def _pair_values(self, X: Any) -> np.ndarray:
        """Decision values (n, p) of the pairs of classes."""
        rows = self._rows_to_predict(X)
        values: np.ndarray = self._path.pair_values(rows, 0, self._n_threads())[0]
        return values

    def decision_function(self, X: Any) -> np.ndarray:
        """Decision values of rows X (n, d): (n,) for two classes, positive for ``classes_[1]``, else (n, c) or (n, p).

        See `decision_function_shape`; the value of a pair is positive for its first class.
        """
        values = self._pair_values(X)
        if len(self.classes_) == 2:
            return values[:, 0]
        return values if self.decision_function_shape == "ovo" else self._confidences(values)

    def _confidences(self, values: np.ndarray) -> np.ndarray:
        """Votes plus a bounded share of the summed values, (n, c)."""
        # A tie's vote goes to the first class, as in SVC; in its predictions, to the second.
        untied = np.where(values == 0.0, np.finfo(np.float64).tiny, values)
        return one_vs_one_scores(untied, len(self.classes_))[1]

    def predict(self, X: Any) -> np.ndarray:
        """Predict the labels (n,) of rows X (n, d)."""
        self._check_fitted()
        if self.break_ties and self.decision_function_shape == "ovo":
            raise ValueError("break_ties must be False when decision_function_shape is 'ovo'")
        if isinstance(X, RowBlocks) and not self.break_ties and not self._takes_kernel_values():
            blocks: np.ndarray = super().predict(X)
            return blocks
        values = self._pair_values(X)
        if len(self.classes_) == 2:
            codes = (values[:, 0] > 0).astype(np.int64)
        else:
            votes = self._confidences(values) if self.break_ties else one_vs_one_scores(values, len(self.classes_))[0]
            codes = np.argmax(votes, axis=1)
        labels: np.ndarray = self.classes_[codes]
        return labels


def _report(labels: np.ndarray, solutions: ClassSolutions) -> None:
    """Print one line for each pair of classes."""
    for column, (first, second) in enumerate(zip(*classes_of_pairs(len(labels)), strict=True)):
        variables = solutions.variables(int(first), int(second))
        print(
            f"[PrivSVM] {labels[first]} and {labels[second]}: {len(variables)} rows, {solutions.n_iter[column]} "
            f"iterations, objective {solutions.objective[column]:.6g}, {np.count_nonzero(variables)} support vectors"
        )
