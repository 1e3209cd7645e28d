"""Training by pairs of classes, as LIBSVM does it."""

from __future__ import annotations

import dataclasses
import functools
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import scipy.sparse

from privsvm.base.parameters import DeclaredEstimator, parameter
from privsvm.constraints import ANY_NUMBER, COUNT, FLAG, NOT_NEGATIVE, POSITIVE, either, one_of, whole, with_numpy
from privsvm.numerics.compiled.threads import one_blas_thread, thread_pool
from privsvm.solvers.kernel.block_smo import single_is_enough, solve_prepared
from privsvm.solvers.kernel.c_svc import CSVCSolution, SolverOptions
from privsvm.solvers.kernel.duplicate_rows import EqualRows
from privsvm.solvers.kernel.gram_rows import PrecomputedRows
from privsvm.solvers.kernel.interior_point import solve_linear_pairs, usual_operations
from privsvm.solvers.kernel.kernel_rows import KernelRows
from privsvm.solvers.kernel.kernels import KERNELS, Kernel, far_centre, kernel_matrix
from privsvm.solvers.kernel.pair_smo import ClassSolutions, classes_of_pairs, scatter_pairs, solve_class_pairs
from privsvm.solvers.kernel.smo import PairSelection, solve_smo

__all__ = ["GAMMA", "GAMMA_OR_ZERO", "ClassPair", "KernelSVMParameters", "class_pairs", "solve_pairs"]

# Constant        unit        value and reason; all were measured.
# _SMALL_ROWS     rows        of two classes up to which they are solved by one compiled call, as many classes are.
# _EXACT_ROWS     rows        up to which kernel values are computed in double precision and rounded once: dense, sparse
#                             and precomputed kernels lead to the same bits. _WIDTH features count as one row.
# Costs of the interior-point method are compared in steps of two variables that take as long.
# _FIRST_STEPS    steps/row   up to which that method goes first.
# _REACH_STEPS    steps/row   up to which it solves the pairs that exceed _BUDGET_SHARE of the steps of equal cost.
# _STEP_OPERATIONS  operations  of that method in the time of one step inside a working set.
# _SET_STEPS      steps/row   up to which it solves what working sets have not solved at equal cost.
# _EASY_STEPS     steps/row   of the smaller class within which working sets usually end; below the cost of that method
#                             they go first: of many rows of the other class, few are support vectors.
_SMALL_ROWS = 1000
_EXACT_ROWS, _WIDTH = 256, 16
_FIRST_STEPS, _REACH_STEPS, _BUDGET_SHARE = 3.0, 25.0, 0.4
_STEP_OPERATIONS, _SET_STEPS, _EASY_STEPS = 1500.0, 250.0, 100.0

_WORDS_OF_GAMMA = one_of("scale", "auto")
GAMMA = with_numpy(either('must be a positive finite number, "scale" or "auto"', POSITIVE, _WORDS_OF_GAMMA))
GAMMA_OR_ZERO = with_numpy(
    either('must be a finite number of at least 0, "scale" or "auto"', NOT_NEGATIVE, _WORDS_OF_GAMMA)
)


@dataclasses.dataclass(frozen=True)
class ClassPair:
    """The rows of two classes.

    Attributes
    ----------
    rows : ndarray of int (n_pair,)
        Indices of the training rows of both classes.
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

    C: float = parameter(1.0, with_numpy(POSITIVE), "Upper bound of a dual variable: weight of one row's hinge loss.")
    kernel: str = parameter("rbf", one_of(*KERNELS), "Kernel function.")
    gamma: float | str = parameter(
        "scale", GAMMA, 'Kernel coefficient of rbf, poly and sigmoid. "scale" takes the variance of the training rows.'
    )
    degree: int = parameter(3, COUNT, "Degree of poly.")
    coef0: float = parameter(0.0, with_numpy(ANY_NUMBER), "Constant of poly and sigmoid.")
    tol: float = parameter(1e-3, with_numpy(POSITIVE), "Stopping tolerance of the solver.")
    max_iter: int = parameter(-1, whole(-1), "Most iterations of the solver for each pair of classes; -1 for no limit.")
    cache_size: float = parameter(200, with_numpy(POSITIVE), "Megabytes for kernel values.", effect="time")
    shrinking: bool = parameter(True, FLAG, "Whether to set bounded variables aside while solving.", effect="time")

    def _kernel(self, gamma: float) -> Kernel:
        """Return the kernel, with the number that `gamma` stands for."""
        return Kernel(self.kernel, gamma, int(self.degree), float(self.coef0))

    def _solver_options(self, n_threads: int = 1) -> SolverOptions:
        """Return the options of the solvers."""
        return SolverOptions(
            float(self.tol), int(self.max_iter), bool(self.shrinking), float(self.cache_size), n_threads
        )


def solve_pairs(
    X: Any,
    codes: np.ndarray,
    n_classes: int,
    upper: np.ndarray,
    kernel: Kernel,
    options: SolverOptions = SolverOptions(),
    selection: str = "block",
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
    kernel : Kernel
        The kernel function.
    options : SolverOptions
        Threads are for "block".
    selection : {"block", "wss1", "wss2", "wss3", "wss4"}
        The fast solvers, or one of LIBSVM's rules for two variables.

    Returns
    -------
    ClassSolutions
        For the rows sorted by class, in their order inside a class.

    Raises
    ------
    ValueError
        If fewer than two classes have rows, or kernel values overflow.
    """
    centre = far_centre(X) if kernel.name == "linear" else None
    if centre is not None:
        # The linear problem is the same wherever the rows lie, since y'a = 0; only the offset moves.
        solutions = solve_pairs(X - centre, codes, n_classes, upper, kernel, options, selection)
        coef = np.zeros((len(codes), solutions.rho.size))
        scatter_pairs(solutions.layout, solutions.starts, coef)
        weights = (X - centre)[np.argsort(codes, kind="stable")].T @ coef
        return dataclasses.replace(solutions, rho=solutions.rho + centre @ weights)
    pairs = _Pairs(X, codes, n_classes, upper)
    if selection != "block":
        return _solve_by_smo(pairs, kernel, options, PairSelection(selection))
    # The linear kernel's own method passes over all rows only a few times, so that merging gains nothing.
    if kernel.name not in ("precomputed", "linear") and options.max_iter < 0:
        equal = EqualRows.find(X, codes)
        if equal is not None:
            return _solve_merged(pairs, equal, kernel, options)
    return _solve_by_blocks(pairs, kernel, options)


class _Pairs:
    """The problems of all pairs of classes, and their solutions so far.

    Parameters
    ----------
    X, codes, n_classes, upper
        See `solve_pairs`.

    Attributes
    ----------
    order : ndarray of int (n,)
        The rows sorted by class.
    first, second : ndarray of int (p,)
        Classes of each pair.
    first_sizes, second_sizes : ndarray of int (p,)
        Their numbers of rows.
    numbers : ndarray of int
        The pairs whose classes both have rows.
    solutions : ClassSolutions
        Solutions, zero before a pair is solved.
    """

    def __init__(self, X: Any, codes: np.ndarray, n_classes: int, upper: np.ndarray) -> None:
        self.X, self.codes, self.n_classes, self.upper = X, codes, n_classes, upper
        self.order = np.argsort(codes, kind="stable")
        starts = np.searchsorted(codes[self.order], np.arange(n_classes + 1))
        sizes = np.diff(starts)
        if np.count_nonzero(sizes) < 2:
            raise ValueError(_one_class(codes[0]))
        self.first, self.second = classes_of_pairs(n_classes)
        self.first_sizes, self.second_sizes = sizes[self.first], sizes[self.second]
        self.numbers = np.flatnonzero((self.first_sizes > 0) & (self.second_sizes > 0))
        n_pairs = self.first.size
        self.solutions = ClassSolutions(
            layout=np.zeros((n_classes - 1, len(codes))),
            starts=starts,
            rho=np.zeros(n_pairs),
            objective=np.zeros(n_pairs),
            n_iter=np.zeros(n_pairs, dtype=np.int64),
            converged=np.ones(n_pairs, dtype=bool),
        )

    @functools.cached_property
    def sorted_rows(self) -> Any:
        """The rows sorted by class."""
        return self.X[self.order]

    @functools.cached_property
    def sorted_upper(self) -> np.ndarray:
        """The bounds sorted by class."""
        return np.ascontiguousarray(self.upper[self.order], dtype=np.float64)

    @functools.cached_property
    def _position(self) -> np.ndarray:
        """Position of each row among the sorted ones."""
        position = np.empty(len(self.codes), dtype=np.int64)
        position[self.order] = np.arange(len(self.codes))
        return position

    def rows_of(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows of a pair, ascending, and their labels: +1 for its first class."""
        rows_by_class = [self._class_rows(k) for k in (self.first[number], self.second[number])]
        index = np.sort(np.concatenate(rows_by_class))
        return index, np.where(self.codes[index] == self.first[number], 1.0, -1.0)

    def _class_rows(self, code: int) -> np.ndarray:
        starts = self.solutions.starts
        return self.order[starts[code] : starts[code + 1]]

    def store(self, number: int, index: np.ndarray, solution: CSVCSolution) -> None:
        """Store the solution of a pair for its rows `index`.

        Its steps are added to those so far.
        """
        a, b = self.first[number], self.second[number]
        variables = np.empty(len(self.codes))
        variables[index] = np.where(self.codes[index] == a, solution.alpha, -solution.alpha)
        solutions, starts = self.solutions, self.solutions.starts
        solutions.layout[b - 1, starts[a] : starts[a + 1]] = variables[self._class_rows(a)]
        solutions.layout[a, starts[b] : starts[b + 1]] = variables[self._class_rows(b)]
        solutions.rho[number], solutions.objective[number] = solution.rho, solution.objective
        solutions.n_iter[number] += solution.n_iter
        solutions.converged[number] = solution.converged

    def warm_start(self, number: int, index: np.ndarray, signs: np.ndarray) -> np.ndarray | None:
        """Return feasible variables of a pair's rows from the steps so far.

        None without any.
        """
        if not self.solutions.n_iter[number]:
            return None
        layout, position = self.solutions.layout, self._position[index]
        a, b = self.first[number], self.second[number]
        return _balanced(np.where(self.codes[index] == a, layout[b - 1, position], -layout[a, position]), signs)


def _solve_by_smo(pairs: _Pairs, kernel: Kernel, options: SolverOptions, selection: PairSelection) -> ClassSolutions:
    """Solve every pair by LIBSVM's steps."""
    for number in pairs.numbers.tolist():
        index, signs = pairs.rows_of(number)
        rows = pairs.X if len(index) == len(pairs.codes) else pairs.X[index]
        pairs.store(number, index, solve_smo(rows, signs, pairs.upper[index], kernel, options, selection))
    return pairs.solutions


def _solve_merged(pairs: _Pairs, equal: EqualRows, kernel: Kernel, options: SolverOptions) -> ClassSolutions:
    """Solve all pairs with one variable for each group of equal rows."""
    codes = pairs.codes[equal.first]
    merged = _Pairs(pairs.X[equal.first], codes, pairs.n_classes, equal.bounds(pairs.upper))
    solutions = _solve_by_blocks(merged, kernel, options)
    layout = np.empty_like(solutions.layout)
    layout[:, np.argsort(codes, kind="stable")] = solutions.layout
    layout = equal.spread(layout, pairs.upper)[:, pairs.order]
    return dataclasses.replace(solutions, layout=layout, starts=pairs.solutions.starts)


@dataclasses.dataclass(frozen=True)
class _Plan:
    """Order and budgets of the fast solvers, for each pair.

    The interior-point method is for the linear kernel only. Arrays have an entry for each pair.

    Attributes
    ----------
    one_call : bool
        Whether one compiled call solves all pairs by steps of two variables; else working sets do.
    interior_first : ndarray of bool (p,)
        Pairs that the interior-point method gets first.
    interior_later : ndarray of bool (p,)
        Pairs that it gets when the compiled call has exceeded the budget.
    step_budgets : ndarray (p,)
        Steps of the compiled call.
    set_budgets : ndarray (p,)
        Steps of working sets, after which the interior-point method gets the pair.
    """

    one_call: bool
    interior_first: np.ndarray
    interior_later: np.ndarray
    step_budgets: np.ndarray
    set_budgets: np.ndarray

    @classmethod
    def of(cls, first_sizes: np.ndarray, second_sizes: np.ndarray, operations: np.ndarray | None) -> _Plan:
        """Plan for pairs of so many rows.

        `operations` are those of the interior-point method, None to rule it out.
        """
        n_pairs, n_rows = first_sizes.size, first_sizes + second_sizes
        # A class without rows leaves no problem to solve.
        largest = np.max(n_rows[(first_sizes > 0) & (second_sizes > 0)], initial=0)
        one_call = n_pairs > 1 or bool(largest <= _SMALL_ROWS)
        never, unlimited = np.zeros(n_pairs, dtype=bool), np.full(n_pairs, np.inf)
        if operations is None:
            return cls(one_call, never, never, unlimited, unlimited)
        # A step of two variables passes over all rows twice.
        equal_steps = operations / (1.5 * n_rows + 100.0)
        later = equal_steps <= _REACH_STEPS * n_rows
        first = equal_steps <= _FIRST_STEPS * n_rows
        set_budgets = unlimited
        if not one_call:
            set_budgets = np.where(equal_steps <= _SET_STEPS * n_rows, operations / _STEP_OPERATIONS, np.inf)
            first &= _EASY_STEPS * np.minimum(first_sizes, second_sizes) > set_budgets
        # The method is not tried twice.
        return cls(
            one_call,
            first,
            later,
            step_budgets=np.where(later, _BUDGET_SHARE * equal_steps, np.inf),
            set_budgets=np.where(first, np.inf, set_budgets),
        )


def _solve_by_blocks(pairs: _Pairs, kernel: Kernel, options: SolverOptions) -> ClassSolutions:
    """Solve all pairs by the fast solvers."""
    operations = None
    if kernel.name == "linear" and options.max_iter < 0 and np.isfinite(pairs.upper).all():
        operations = usual_operations(pairs.X, pairs.first_sizes + pairs.second_sizes)
    plan = _Plan.of(pairs.first_sizes, pairs.second_sizes, operations)
    with one_blas_thread(), thread_pool(options.n_threads) as pool:
        solver = _BlockSolver(pairs, kernel, options, plan, pool)
        first = plan.interior_first[pairs.numbers]
        remaining = solver.by_interior_point(pairs.numbers, first)
        if plan.one_call and remaining.size:
            remaining = solver.by_one_call(remaining)
        solver.by_working_sets(remaining)
    return pairs.solutions


@dataclasses.dataclass(frozen=True)
class _BlockSolver:
    """The fast solvers of pairs of classes.

    Each returns the numbers of the pairs that remain.
    """

    pairs: _Pairs
    kernel: Kernel
    options: SolverOptions
    plan: _Plan
    pool: ThreadPoolExecutor | None

    def _rows(self, X: Any) -> KernelRows:
        """Prepare rows, which are scaled, centred and converted once for all pairs."""
        if self.kernel.name == "precomputed":
            return PrecomputedRows(X)
        return KernelRows(X, self.kernel, pool=self.pool, n_threads=self.options.n_threads)

    def by_interior_point(self, numbers: np.ndarray, chosen: np.ndarray) -> np.ndarray:
        """Solve the chosen ones of these pairs by the interior-point method."""
        if not chosen.any():
            return numbers
        pairs = self.pairs
        unsolved = solve_linear_pairs(
            pairs.sorted_rows, pairs.sorted_upper, pairs.solutions, numbers[chosen], tol=self.options.tol,
            pool=self.pool, n_threads=self.options.n_threads,
        )  # fmt: skip
        return np.sort(np.concatenate([numbers[~chosen], unsolved]))

    def by_one_call(self, numbers: np.ndarray) -> np.ndarray:
        """Solve pairs in one compiled call, hard ones by the interior-point method."""
        pairs, plan = self.pairs, self.plan
        rows = self._sorted_rows()
        # Overflow is reported by the solver by working sets.
        if not rows.finite:
            return numbers
        remaining = solve_class_pairs(
            rows, pairs.sorted_upper, pairs.solutions, numbers, self.options, plan.step_budgets
        )
        hard = plan.interior_later[remaining] & (pairs.solutions.n_iter[remaining] > 0)
        return self.by_interior_point(remaining, hard)

    def _sorted_rows(self) -> KernelRows:
        """Prepare the rows sorted by class, in the precision that the pairs need."""
        pairs = self.pairs
        precomputed = self.kernel.name == "precomputed"
        X = pairs.X[np.ix_(pairs.order, pairs.order)] if precomputed else pairs.sorted_rows
        if precomputed or max(X.shape[0], X.shape[1] / _WIDTH) > _EXACT_ROWS:
            rows = self._rows(X)
        else:
            # Small problem: kernel values in double precision, rounded once.
            X = X.toarray() if scipy.sparse.issparse(X) else X
            rows = PrecomputedRows(kernel_matrix(X, X, self.kernel))
            with np.errstate(over="ignore"):
                rows.finite &= bool(np.isfinite(np.vdot(X, X)))
        largest = int(np.max((pairs.first_sizes + pairs.second_sizes)[pairs.numbers], initial=0))
        if rows.finite and not single_is_enough(rows, largest, float(np.max(pairs.upper)), self.options.tol):
            rows = rows.in_double()
        return rows

    def by_working_sets(self, numbers: np.ndarray) -> None:
        """Solve pairs by working sets.

        The interior-point method takes one that exceeds its budget.
        """
        if numbers.size == 0:
            return
        pairs = self.pairs
        all_rows = self._rows(pairs.X)
        for number in numbers.tolist():
            index, signs = pairs.rows_of(number)
            rows = all_rows if len(index) == len(pairs.codes) else all_rows.take(index)
            start, budget = pairs.warm_start(number, index, signs), float(self.plan.set_budgets[number])
            upper = pairs.upper[index]
            solution = solve_prepared(rows, signs, upper, self.options, start=start, pair_budget=budget)
            pairs.store(number, index, solution)
            if solution.converged or solution.n_iter < budget:
                continue
            if self.by_interior_point(np.array([number]), np.array([True])).size:
                start = _balanced(solution.alpha, signs)
                pairs.store(number, index, solve_prepared(rows, signs, upper, self.options, start=start))


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
