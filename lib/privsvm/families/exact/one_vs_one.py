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
from privsvm.numerics.compiled.threads import thread_pool
from privsvm.solvers.kernel.block_smo import single_is_enough, solve_prepared
from privsvm.solvers.kernel.c_svc import CSVCSolution, SolverOptions
from privsvm.solvers.kernel.duplicate_rows import EqualRows
from privsvm.solvers.kernel.gram_rows import PrecomputedRows
from privsvm.solvers.kernel.interior_point import solve_linear, usual_seconds
from privsvm.solvers.kernel.kernel_rows import KernelRows
from privsvm.solvers.kernel.kernels import KERNELS, Kernel, far_centre, kernel_matrix
from privsvm.solvers.kernel.pair_smo import ClassSolutions, classes_of_pairs, scatter_pairs, solve_class_pairs

# Constant        unit        value and reason; all were measured.
# _SMALL_ROWS     rows        of two classes up to which they are solved by steps of two variables, as many classes are.
# _EXACT_ROWS     rows        up to which kernel values are computed in double precision and rounded once: dense, sparse
#                             and precomputed kernels lead to the same bits. _WIDTH features count as one row.
# _FIRST_STEPS    steps/row   of two variables that the interior-point method may cost to go before them, _REACH_STEPS
#                             before working sets, and _LATER_STEPS after steps that did not solve a pair.
# _STEP_SECONDS, _STEP_ROW_SECONDS  s  of a step, and in addition for each row.
_SMALL_ROWS = 1000
_EXACT_ROWS, _WIDTH = 256, 16
_FIRST_STEPS, _REACH_STEPS, _LATER_STEPS = 3.0, 25.0, 250.0
_STEP_SECONDS, _STEP_ROW_SECONDS = 4e-8, 6e-10

_WORDS_OF_GAMMA = one_of("scale", "auto")
GAMMA = with_numpy(either('must be a positive finite number, "scale" or "auto"', POSITIVE, _WORDS_OF_GAMMA))
GAMMA_OR_ZERO = with_numpy(
    either('must be a finite number of at least 0, "scale" or "auto"', NOT_NEGATIVE, _WORDS_OF_GAMMA)
)


@dataclasses.dataclass(frozen=True)
class ClassPair:
    """The rows of two classes.

    `rows` are the training rows of both classes, and `signs` the solver's labels: +1 for the first class of the pair,
    as LIBSVM has it, and -1 for the second. `orientation` turns the solver's decision values into the model's: -1 for
    two classes, whose values are positive for class 1; +1 for more, whose values are positive for the first class of a
    pair. Where a class of the public list has no row, `offset` is the pair's constant decision value.
    """

    rows: np.ndarray
    signs: np.ndarray
    orientation: float
    offset: float | None


def class_pairs(codes: np.ndarray, n_classes: int) -> list[ClassPair]:
    """List the pairs (0, 1), (0, 2), ..., (1, 2), ... of a multi-class problem.

    Raises ValueError if fewer than two classes have rows.
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
    shrinking: bool = parameter(
        True, FLAG, "Whether LIBSVM's steps set bounded variables aside; the fast solvers never do.", effect="time"
    )

    def _kernel(self, gamma: float) -> Kernel:
        """Return the kernel, with the number that `gamma` stands for."""
        return Kernel(self.kernel, gamma, int(self.degree), float(self.coef0))

    def _solver_options(self, n_threads: int = 1) -> SolverOptions:
        """Return the options of the solvers."""
        return SolverOptions(
            float(self.tol), int(self.max_iter), bool(self.shrinking), float(self.cache_size), n_threads
        )


@dataclasses.dataclass(frozen=True)
class SolverPlan:
    """Which solvers get each pair of classes, one after the other until it is solved. Arrays have an entry a pair.

    The interior-point method gets the pairs `interior_first`, then come `steps` of two variables, in one compiled call
    for all pairs, and it gets the pairs of `interior_later` that these do not solve; working sets are last.
    """

    interior_first: np.ndarray
    steps: bool
    interior_later: np.ndarray


def plan_solvers(n_rows: np.ndarray, interior_seconds: np.ndarray | None) -> SolverPlan:
    """Choose the solvers of pairs of classes.

    `interior_seconds` is the expected time of the interior-point method for each pair, None where it does not apply.
    """
    steps = n_rows.size > 1 or bool(np.max(n_rows, initial=0) <= _SMALL_ROWS)
    if interior_seconds is None:
        never = np.zeros(n_rows.size, dtype=bool)
        return SolverPlan(never, steps, never)
    # A step of two variables passes over all rows twice.
    steps_per_row = interior_seconds / (n_rows * (_STEP_SECONDS + _STEP_ROW_SECONDS * n_rows))
    first = steps_per_row <= (_FIRST_STEPS if steps else _REACH_STEPS)
    return SolverPlan(first, steps, (steps_per_row <= _LATER_STEPS) & ~first & steps)


def solve_pairs(
    X: Any,
    codes: np.ndarray,
    n_classes: int,
    upper: np.ndarray,
    kernel: Kernel,
    options: SolverOptions = SolverOptions(),
) -> ClassSolutions:
    """Solve the C-SVC dual of every pair of classes that both have rows.

    Rows are their kernel matrix (n, n) for the kernel "precomputed", `upper` is the upper bound C of each row's
    variable. Solutions are for the rows sorted by class, in their order inside a class. Raises ValueError if fewer than
    two classes have rows, or kernel values overflow.
    """
    centre = far_centre(X) if kernel.name == "linear" else None
    if centre is not None:
        # The linear problem is the same wherever the rows lie, since y'a = 0; only the offset moves.
        solutions = solve_pairs(X - centre, codes, n_classes, upper, kernel, options)
        coef = np.zeros((len(codes), solutions.rho.size))
        scatter_pairs(solutions.layout, solutions.starts, coef)
        weights = (X - centre)[np.argsort(codes, kind="stable")].T @ coef
        return dataclasses.replace(solutions, rho=solutions.rho + centre @ weights)
    equal = EqualRows.find(X, codes) if kernel.name != "precomputed" and options.max_iter < 0 else None
    if equal is None:
        return _Run(_Pairs(X, codes, n_classes, upper), kernel, options).solve()
    few_codes = codes[equal.first]
    merged = _Pairs(X[equal.first], few_codes, n_classes, equal.bounds(upper))
    solutions = _Run(merged, kernel, options).solve()
    layout = np.empty_like(solutions.layout)
    layout[:, np.argsort(few_codes, kind="stable")] = solutions.layout
    pairs = _Pairs(X, codes, n_classes, upper)
    layout = equal.spread(layout, upper)[:, pairs.order]
    return dataclasses.replace(solutions, layout=layout, starts=pairs.solutions.starts)


class _Pairs:
    """The problems of all pairs of classes, and their solutions so far.

    `order` has the rows sorted by class, `numbers` the pairs whose classes both have rows, and `n_rows` their rows.
    `solutions` are zero before a pair is solved.
    """

    def __init__(self, X: Any, codes: np.ndarray, n_classes: int, upper: np.ndarray) -> None:
        self.X, self.codes, self.upper = X, codes, upper
        self.order = np.argsort(codes, kind="stable")
        starts = np.searchsorted(codes[self.order], np.arange(n_classes + 1))
        sizes = np.diff(starts)
        if np.count_nonzero(sizes) < 2:
            raise ValueError(_one_class(codes[0]))
        self._first, self._second = classes_of_pairs(n_classes)
        self.numbers = np.flatnonzero((sizes[self._first] > 0) & (sizes[self._second] > 0))
        self.n_rows = (sizes[self._first] + sizes[self._second])[self.numbers]
        self.solutions = ClassSolutions.empty(starts)

    @functools.cached_property
    def _position(self) -> np.ndarray:
        """Position of each row among the sorted ones."""
        position = np.empty(len(self.codes), dtype=np.int64)
        position[self.order] = np.arange(len(self.codes))
        return position

    def rows_of(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows of a pair, ascending, and their labels: +1 for its first class."""
        starts = self.solutions.starts
        by_class = [self.order[starts[k] : starts[k + 1]] for k in (self._first[number], self._second[number])]
        index = np.sort(np.concatenate(by_class))
        return index, np.where(self.codes[index] == self._first[number], 1.0, -1.0)

    def store(self, number: int, index: np.ndarray, signs: np.ndarray, solution: CSVCSolution) -> None:
        """Store the solution of a pair for its rows `index`; its steps are added to those so far."""
        by_class = np.argsort(-signs, kind="stable")
        self.solutions.store_pair(number, (signs * solution.alpha)[by_class], solution)

    def warm_start(self, number: int, index: np.ndarray, signs: np.ndarray) -> np.ndarray | None:
        """Return feasible variables of a pair's rows from the steps so far.

        None without any.
        """
        if not self.solutions.n_iter[number]:
            return None
        layout, position = self.solutions.layout, self._position[index]
        a, b = self._first[number], self._second[number]
        return _balance_classes(np.where(signs > 0, layout[b - 1, position], -layout[a, position]), signs)


@dataclasses.dataclass(frozen=True)
class _Run:
    """A run of the fast solvers over all pairs; each solver returns the pairs that remain."""

    pairs: _Pairs
    kernel: Kernel
    options: SolverOptions

    def solve(self) -> ClassSolutions:
        """Follow the plan."""
        pairs, options, seconds = self.pairs, self.options, None
        if self.kernel.name == "linear" and options.max_iter < 0 and np.isfinite(pairs.upper).all():
            seconds = usual_seconds(pairs.X, pairs.n_rows)
        plan = plan_solvers(pairs.n_rows, seconds)
        with thread_pool(options.n_threads) as pool:
            later = pairs.numbers[plan.interior_later]
            remaining = self._by_interior_point(pairs.numbers, plan.interior_first, pool)
            if plan.steps and remaining.size:
                remaining = self._by_steps(remaining, pool)
            remaining = self._by_interior_point(remaining, np.isin(remaining, later), pool)
            self._by_working_sets(remaining, pool)
        return pairs.solutions

    def _rows(self, X: Any, pool: ThreadPoolExecutor | None) -> KernelRows:
        """Prepare rows, which are scaled, centred and converted once for all pairs."""
        if self.kernel.name == "precomputed":
            return PrecomputedRows(X)
        return KernelRows(X, self.kernel, pool=pool, n_threads=self.options.n_threads)

    def _by_interior_point(
        self, numbers: np.ndarray, chosen: np.ndarray, pool: ThreadPoolExecutor | None
    ) -> np.ndarray:
        """Solve the chosen ones of these pairs by the interior-point method."""
        pairs = self.pairs

        def solve(number: int) -> bool:
            index, signs = pairs.rows_of(number)
            rows = pairs.X if len(index) == len(pairs.codes) else pairs.X[index]
            solution = solve_linear(rows, signs, pairs.upper[index], self.options.tol)
            if solution is not None:
                pairs.store(number, index, signs, solution)
            return solution is None

        some = numbers[chosen].tolist()
        left = list(pool.map(solve, some) if pool and len(some) > 1 else map(solve, some))
        return np.sort(np.concatenate([numbers[~chosen], numbers[chosen][np.array(left, dtype=bool)]]))

    def _by_steps(self, numbers: np.ndarray, pool: ThreadPoolExecutor | None) -> np.ndarray:
        """Solve pairs by steps of two variables."""
        pairs = self.pairs
        rows = self._sort_rows(pool)
        # Overflow is reported by the solver by working sets.
        if not rows.finite:
            return numbers
        upper = np.ascontiguousarray(pairs.upper[pairs.order], dtype=np.float64)
        return solve_class_pairs(rows, upper, pairs.solutions, numbers, self.options)

    def _sort_rows(self, pool: ThreadPoolExecutor | None) -> KernelRows:
        """Prepare the rows sorted by class, in the precision that the pairs need."""
        pairs, X = self.pairs, self.pairs.X
        if self.kernel.name == "precomputed":
            rows = self._rows(X[np.ix_(pairs.order, pairs.order)], pool)
        elif max(X.shape[0], X.shape[1] / _WIDTH) > _EXACT_ROWS:
            rows = self._rows(X[pairs.order], pool)
        else:
            # Small problem: kernel values in double precision, rounded once.
            X = X[pairs.order]
            X = X.toarray() if scipy.sparse.issparse(X) else X
            rows = PrecomputedRows(kernel_matrix(X, X, self.kernel))
            with np.errstate(over="ignore"):
                rows.finite &= bool(np.isfinite(np.vdot(X, X)))
        largest = int(np.max(pairs.n_rows, initial=0))
        if rows.finite and not single_is_enough(rows, largest, float(np.max(pairs.upper)), self.options.tol):
            rows = rows.in_double()
        return rows

    def _by_working_sets(self, numbers: np.ndarray, pool: ThreadPoolExecutor | None) -> None:
        """Solve pairs by working sets."""
        if numbers.size == 0:
            return
        pairs = self.pairs
        all_rows = self._rows(pairs.X, pool)
        for number in numbers.tolist():
            index, signs = pairs.rows_of(number)
            rows = all_rows if len(index) == len(pairs.codes) else all_rows.take(index)
            start = pairs.warm_start(number, index, signs)
            solution = solve_prepared(rows, signs, pairs.upper[index], self.options, start=start)
            pairs.store(number, index, signs, solution)


def _balance_classes(alpha: np.ndarray, signs: np.ndarray) -> np.ndarray:
    """Scale the larger class down, so that the classes' sums are equal up to round-off."""
    alpha = np.maximum(alpha, 0.0)
    sums = [float(alpha[signs == label].sum()) for label in (1.0, -1.0)]
    least = min(sums)
    for label, total in zip((1.0, -1.0), sums, strict=True):
        if total > 0:
            alpha[signs == label] *= least / total
    return alpha


def _one_class(code: Any) -> str:
    return f"y has one class only (code {code}); an SVM needs at least two classes"
