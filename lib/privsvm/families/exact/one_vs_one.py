"""Training by pairs of classes, as LIBSVM does it."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import scipy.sparse

from privsvm.base.parameters import DeclaredEstimator, parameter
from privsvm.constraints import ANY_NUMBER, COUNT, FLAG, POSITIVE, either, one_of, whole
from privsvm.numerics.compiled.threads import one_blas_thread, thread_pool
from privsvm.solvers.kernel.block_smo import single_is_enough, solve_prepared
from privsvm.solvers.kernel.c_svc import CSVCSolution
from privsvm.solvers.kernel.duplicate_rows import EqualRows
from privsvm.solvers.kernel.gram_rows import PrecomputedRows
from privsvm.solvers.kernel.interior_point import solve_linear_pairs, usual_operations
from privsvm.solvers.kernel.kernel_rows import KernelRows
from privsvm.solvers.kernel.kernels import KERNELS, kernel_matrix
from privsvm.solvers.kernel.pair_smo import ClassSolutions, classes_of_pairs, solve_class_pairs
from privsvm.solvers.kernel.smo import solve_smo

__all__ = ["GAMMA", "ClassPair", "KernelSVMParameters", "class_pairs", "solve_pairs"]

# Two classes of no more rows than this are solved as a pair of many classes is (measured).
_SMALL_ROWS = 1000

# Kernel values of no more rows than this are computed in double precision, unless the rows are this much wider.
_EXACT_ROWS, _WIDTH = 256, 16

# The interior-point method goes first where it costs no more than so many steps of two variables for each row; up to
# more of them, pairs are left to it after this share of the steps that cost the same (measured).
_FEW_STEPS, _MANY_STEPS, _PATIENCE = 3.0, 25.0, 0.4

# A step of two variables inside a working set costs as much as so many operations of the interior-point method, which
# gets what working sets have not solved once they cost as much, unless it costs more than so many steps for each row.
# Working sets go first where so many steps for each row of the smaller class cost less than that method: of many rows
# of the other class, few are support vectors (measured).
_STEP_OPERATIONS, _MOST_STEPS, _EASY_STEPS = 1500.0, 250.0, 100.0

GAMMA = either('must be a positive finite number, "scale" or "auto"', POSITIVE, one_of("scale", "auto"))


@dataclasses.dataclass(frozen=True)
class ClassPair:
    """The rows of two classes.

    Attributes
    ----------
    rows : ndarray of int (n_pair,)
        Indices of the training rows of either class.
    signs : ndarray (n_pair,)
        Labels of the solver: +1 for the first class of the pair, as LIBSVM has it, and -1 for the second.
    orientation : float
        Factor that turns the solver's decision values into the model's: -1 for two classes, whose values are positive
        for class 1; +1 for more, whose values are positive for the first class of a pair.
    offset : float or None
        The pair's constant decision value where a class of the public list has no row; None where both have.
    """

    rows: np.ndarray
    signs: np.ndarray
    orientation: float
    offset: float | None


def class_pairs(codes: np.ndarray, n_classes: int) -> list[ClassPair]:
    """List the pairs (0, 1), (0, 2), ..., (1, 2), ... of a multi-class problem.

    Parameters
    ----------
    codes : ndarray of int (n,)
        Class codes 0..c-1.
    n_classes : int
        c.

    Returns
    -------
    list of ClassPair (c (c - 1) / 2)

    Raises
    ------
    ValueError
        If fewer than two classes have rows.
    """
    present = np.unique(codes)
    if present.size < 2:
        raise ValueError(_one_class(present[0]))
    rows_of = [np.flatnonzero(codes == code) for code in range(n_classes)]
    pairs = []
    for first in range(n_classes):
        for second in range(first + 1, n_classes):
            rows = np.sort(np.concatenate([rows_of[first], rows_of[second]]))
            signs = np.where(codes[rows] == first, 1.0, -1.0)
            offset = None
            if rows_of[first].size == 0 or rows_of[second].size == 0:
                # An absent class wins no pair against a present one; two absent ones never matter.
                offset = 1.0 if rows_of[first].size else -1.0
            pairs.append(ClassPair(rows, signs, -1.0 if n_classes == 2 else 1.0, offset))
    return pairs


class KernelSVMParameters(DeclaredEstimator):
    """The parameters of LIBSVM's C-SVC problem and its solver; a base."""

    C: float = parameter(1.0, POSITIVE, "Upper bound of a dual variable: weight of one row's hinge loss.")
    kernel: str = parameter("rbf", one_of(*KERNELS), "Kernel function.")
    gamma: float | str = parameter(
        "scale", GAMMA, 'Kernel coefficient of rbf, poly and sigmoid. "scale" takes the variance of the training rows.'
    )
    degree: int = parameter(3, COUNT, "Degree of poly.")
    coef0: float = parameter(0.0, ANY_NUMBER, "Constant of poly and sigmoid.")
    tol: float = parameter(1e-3, POSITIVE, "Stopping tolerance of the solver.")
    max_iter: int = parameter(-1, whole(-1), "Most iterations of the solver for each pair of classes; -1 for no limit.")
    cache_size: float = parameter(200, POSITIVE, "Megabytes for kernel values.", effect="time")
    shrinking: bool = parameter(True, FLAG, "Whether to set bounded variables aside while solving.", effect="time")

    def _c_svc_settings(self) -> dict[str, Any]:
        """Keywords of the solvers: all but C, which is a bound for each row, and gamma, which may need the rows."""
        return {
            "kernel": self.kernel,
            "degree": int(self.degree),
            "coef0": float(self.coef0),
            "tol": float(self.tol),
            "shrinking": bool(self.shrinking),
            "cache_size": float(self.cache_size),
            "max_iter": int(self.max_iter),
        }


def solve_pairs(
    X: Any,
    codes: np.ndarray,
    n_classes: int,
    upper: np.ndarray,
    *,
    columns: np.ndarray | None = None,
    selection: str = "block",
    n_threads: int = 1,
    kernel: str = "rbf",
    gamma: float = 1.0,
    degree: int = 3,
    coef0: float = 0.0,
    tol: float = 1e-3,
    max_iter: int = -1,
    shrinking: bool = True,
    cache_size: float = 200.0,
) -> ClassSolutions:
    """Solve the C-SVC dual of every pair of classes that both have rows.

    Parameters
    ----------
    X : ndarray or CSR matrix (n, d) of float64
        All training rows; their kernel matrix (n, n) for the kernel "precomputed".
    codes : ndarray of int (n,)
        Class codes 0..c-1.
    n_classes : int
        c.
    upper : ndarray (n,)
        Upper bound C of each row's variable.
    columns : ndarray of int or None
        Numbers of the pairs to solve; None for all.
    selection : {"block", "wss1", "wss2", "wss3", "wss4"}
        The fast solvers, or one of LIBSVM's rules for two variables.
    n_threads : int
        Threads of "block".
    kernel, gamma, degree, coef0
        The kernel.
    tol, max_iter, shrinking, cache_size
        Of the solver; see `privsvm.solvers.kernel.block_smo.solve_block_smo`.

    Returns
    -------
    ClassSolutions
        Of the rows sorted by class, in their order inside a class.

    Raises
    ------
    ValueError
        If fewer than two classes have rows, or kernel values overflow.
    """
    order = np.argsort(codes, kind="stable")
    starts = np.searchsorted(codes[order], np.arange(n_classes + 1))
    if np.count_nonzero(np.diff(starts)) < 2:
        raise ValueError(_one_class(codes[0]))
    n_pairs = n_classes * (n_classes - 1) // 2
    solutions = ClassSolutions(
        layout=np.zeros((n_classes - 1, len(codes))),
        starts=starts,
        rho=np.zeros(n_pairs),
        objective=np.zeros(n_pairs),
        n_iter=np.zeros(n_pairs, dtype=np.int64),
        converged=np.ones(n_pairs, dtype=bool),
    )
    first, second = classes_of_pairs(n_classes)
    sizes = np.diff(starts)
    columns = np.arange(n_pairs) if columns is None else columns
    columns = columns[(sizes[first[columns]] > 0) & (sizes[second[columns]] > 0)]
    parameters: dict[str, Any] = {"kernel": kernel, "gamma": gamma, "degree": degree, "coef0": coef0}
    limits: dict[str, Any] = {"tol": tol, "max_iter": max_iter}
    settings: dict[str, Any] = {**limits, "shrinking": shrinking, "cache_size": cache_size}

    def keep(column: int, rows: np.ndarray, solution: CSVCSolution) -> None:
        a, b = first[column], second[column]
        variables = np.empty(len(codes))
        variables[rows] = np.where(codes[rows] == a, solution.alpha, -solution.alpha)
        solutions.layout[b - 1, starts[a] : starts[a + 1]] = variables[order[starts[a] : starts[a + 1]]]
        solutions.layout[a, starts[b] : starts[b + 1]] = variables[order[starts[b] : starts[b + 1]]]
        solutions.rho[column], solutions.objective[column] = solution.rho, solution.objective
        solutions.n_iter[column] += solution.n_iter
        solutions.converged[column] = solution.converged

    def rows_of(column: int) -> tuple[np.ndarray, np.ndarray]:
        a, b = first[column], second[column]
        rows = np.sort(np.concatenate([order[starts[a] : starts[a + 1]], order[starts[b] : starts[b + 1]]]))
        return rows, np.where(codes[rows] == a, 1.0, -1.0)

    # The linear kernel's own method takes all rows in few passes.
    if selection == "block" and kernel not in ("precomputed", "linear") and max_iter < 0:
        equal = EqualRows.find(X, codes)
        if equal is not None:
            few, few_codes = X[equal.first], codes[equal.first]
            found = solve_pairs(
                few, few_codes, n_classes, equal.bounds(upper), columns=columns, n_threads=n_threads, **parameters,
                **settings,
            )  # fmt: skip
            layout = np.empty_like(found.layout)
            layout[:, np.argsort(few_codes, kind="stable")] = found.layout
            return dataclasses.replace(found, layout=equal.spread(layout, upper)[:, order], starts=starts)
    if selection != "block":
        for column in columns:
            index, signs = rows_of(column)
            own = X if len(index) == len(codes) else X[index]
            keep(column, index, solve_smo(own, signs, upper[index], selection=selection, **parameters, **settings))
        return solutions
    with one_blas_thread(), thread_pool(n_threads) as pool:

        def prepared(X: Any) -> KernelRows:
            # Scaled, centred and converted once for all pairs.
            if kernel == "precomputed":
                return PrecomputedRows(X)
            return KernelRows(X, **parameters, pool=pool, n_threads=n_threads)

        patience, patience_of_sets = None, np.full(n_pairs, np.inf)
        largest = np.max(sizes[first[columns]] + sizes[second[columns]], initial=0)
        by_pairs = n_pairs > 1 or largest <= _SMALL_ROWS
        if kernel == "linear" and max_iter < 0 and np.isfinite(upper).all():
            n_rows = sizes[first] + sizes[second]
            operations = usual_operations(X, n_rows)
            # A step of two variables passes over all rows twice.
            worth = operations / (1.5 * n_rows + 100.0)
            in_reach = worth <= _MANY_STEPS * n_rows
            patience = np.where(in_reach, _PATIENCE * worth, np.inf)
            goes_first = worth <= _FEW_STEPS * n_rows
            if not by_pairs:
                patience_of_sets = np.where(worth <= _MOST_STEPS * n_rows, operations / _STEP_OPERATIONS, np.inf)
                goes_first &= _EASY_STEPS * np.minimum(sizes[first], sizes[second]) > patience_of_sets

            def by_interior_point(columns: np.ndarray, mine: np.ndarray) -> np.ndarray:
                """Solve these columns; return which of all columns are left."""
                if not mine.any():
                    return columns
                threads: dict[str, Any] = {"pool": pool, "n_threads": n_threads}
                left = solve_linear_pairs(X[order], upper[order], solutions, columns[mine], tol=tol, **threads)
                return np.sort(np.concatenate([columns[~mine], left]))

            tried = columns[goes_first[columns]]
            columns = by_interior_point(columns, goes_first[columns])
            patience_of_sets[tried] = np.inf
            if columns.size == 0:
                return solutions
        if by_pairs:
            rows = X[np.ix_(order, order)] if kernel == "precomputed" else X[order]
            if kernel != "precomputed" and max(rows.shape[0], rows.shape[1] / _WIDTH) <= _EXACT_ROWS:
                # Of a small problem, rounded once: dense, sparse and given kernels lead to the same bits.
                rows = rows.toarray() if scipy.sparse.issparse(rows) else rows
                sorted_rows: KernelRows = PrecomputedRows(kernel_matrix(rows, rows, **parameters))
                with np.errstate(over="ignore"):
                    sorted_rows.finite &= bool(np.isfinite(np.vdot(rows, rows)))
            else:
                sorted_rows = prepared(rows)
            if sorted_rows.finite and not single_is_enough(sorted_rows, int(largest), float(np.max(upper)), tol):
                sorted_rows = sorted_rows.in_double()
            # What overflows is refused below.
            if sorted_rows.finite:
                bounds = np.ascontiguousarray(upper[order], dtype=np.float64)
                memory = 0.5e6 * cache_size
                columns = solve_class_pairs(
                    sorted_rows, bounds, solutions, columns, memory=memory, patience=patience, **limits
                )
                if patience is not None:
                    columns = by_interior_point(columns, in_reach[columns] & (solutions.n_iter[columns] > 0))
        if columns.size == 0:
            return solutions
        everything = prepared(X)
        place = np.empty(len(codes), dtype=np.int64)
        place[order] = np.arange(len(codes))
        for column in columns:
            index, signs = rows_of(column)
            part = everything if len(index) == len(codes) else everything.take(index)
            start = None
            if solutions.n_iter[column]:
                a, b = first[column], second[column]
                begun = np.where(
                    codes[index] == a, solutions.layout[b - 1, place[index]], -solutions.layout[a, place[index]]
                )
                start = _balanced(begun, signs)
            patient = float(patience_of_sets[column])
            solution = solve_prepared(part, signs, upper[index], start=start, patience=patient, **settings)
            keep(column, index, solution)
            if solution.converged or solution.n_iter < patient:
                continue
            if by_interior_point(columns, columns == column).size:
                start = _balanced(solution.alpha, signs)
                keep(column, index, solve_prepared(part, signs, upper[index], start=start, **settings))
    return solutions


def _balanced(alpha: np.ndarray, signs: np.ndarray) -> np.ndarray:
    """Scale the larger class down, so that the classes' sums are equal to rounding."""
    alpha = np.maximum(alpha, 0.0)
    sums = [float(alpha[signs == label].sum()) for label in (1.0, -1.0)]
    least = min(sums)
    for label, total in zip((1.0, -1.0), sums, strict=True):
        if total > 0:
            alpha[signs == label] *= least / total
    return alpha


def _one_class(code: Any) -> str:
    return f"y has one class only (code {code}); an SVM needs at least two classes"
