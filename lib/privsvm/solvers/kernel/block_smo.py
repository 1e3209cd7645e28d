"""The C-SVC dual by sequential minimal optimisation in two levels.

The outer level picks a working set of some hundred to some thousand variables, whose kernel matrix fits the cache; the
inner level solves it by LIBSVM's second order pairs, and one pass over the rows updates their values.

Variables here are ``b_t = y_t a_t`` and values ``v_t = -y_t G_t = y_t - sum_s b_s K(x_s, x_t)``; labels then occur in
the bounds only. Sources: Fan, Chen and Lin (2005) for the pairs; Joachims (1999) for working sets.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from privsvm.solvers.kernel.c_svc import CSVCSolution, SolverOptions, rho_from_gradient
from privsvm.solvers.kernel.kernel_rows import KernelRows
from privsvm.solvers.kernel.kernels import Kernel
from privsvm.solvers.kernel.pair_step import Masks, solve_by_pairs

# Constant           unit       value and reason; those of speed were measured on data sets of 1,000 to 100,000 rows.
# Working sets
# _WORKING_SET       variables  least, for rows of one feature: more features make a kernel matrix more expensive.
# _SMALL_SHARE       share      of the least set up to which a problem is solved as one set.
# _LEAST_SET         variables  whatever the memory limit (half a megabyte): small sets converge slowly.
# _FREE_SHARE        share      of a set for variables between their bounds.
# _ROOM              ratio      of the set's size to the number of free variables, where they fit.
# _CROWDED_SET       variables  most where the free ones do not fit: many free variables mean a kernel matrix of high
#                               rank, for which several small sets serve as well as a large one.
# _INNER_SHARE       share      of the gap of all variables to which a set is solved.
# Precision
# _SINGLE_TOLERANCE  tolerance  below which working sets are solved in float64, too.
# _SINGLE_SHARE, _ROW_SHARE  share  of the tolerance that float32 products may cost; see `single_is_enough`.
# _MAX_STALLED_SETS  sets       without a smaller gap, before float64 takes over.
# _NEAR, _NEAR_PAIRS, _NEAR_SETS  Near the optimum, at a gap of _NEAR tolerances, float32 may spend _NEAR_PAIRS pairs
#                               per variable in _NEAR_SETS sets: beyond its precision it would use the limit each time.
_WORKING_SET = 640
_SMALL_SHARE = 0.75
_LEAST_SET = 256
_FREE_SHARE = 0.8
_ROOM = 1.3
_CROWDED_SET = 1024
_INNER_SHARE = 0.05
_SINGLE_TOLERANCE = 1e-4
_SINGLE_SHARE = 3.0
_ROW_SHARE = 0.1
_MAX_STALLED_SETS = 200
_NEAR = 20.0
_NEAR_PAIRS = 100
_NEAR_SETS = 3


@dataclasses.dataclass
class _Problem:
    """A set of rows with their bounds, variables and values."""

    rows: KernelRows
    lower: np.ndarray
    upper: np.ndarray
    beta: np.ndarray
    values: np.ndarray

    def take(self, index: np.ndarray) -> _Problem:
        """Return the problem of a subset of the rows."""
        rows = self.rows.take(index)
        lower, upper, beta, values = (array[index] for array in (self.lower, self.upper, self.beta, self.values))
        return _Problem(rows, lower, upper, beta, values)


class _Optimiser:
    """Memory, limits and counts that the levels of one solve share."""

    def __init__(self, options: SolverOptions, most_pairs: float, rows: KernelRows):
        self.tol, self.most_pairs = options.tol, most_pairs
        self.cache_bytes = 0.5e6 * options.cache_size
        self.dtype = np.dtype(np.float32 if self.tol >= _SINGLE_TOLERANCE else np.float64)
        self.n_iter = 0
        self.smallest_set = max(64, int(_WORKING_SET / np.sqrt(rows.product_cost)))
        self.small = int(_SMALL_SHARE * self.smallest_set)
        self._buffer = np.empty(0, dtype=self.dtype)

    def use_double(self) -> None:
        self.dtype = np.dtype(np.float64)
        self._buffer = np.empty(0, dtype=self.dtype)

    def gram(self, rows: KernelRows) -> np.ndarray:
        if self._buffer.size < rows.n_rows**2:
            self._buffer = np.empty(rows.n_rows**2, dtype=self.dtype)
        return rows.gram(self._buffer)

    def working_set(self, problem: _Problem) -> tuple[np.ndarray, float]:
        """Choose free variables, then those that violate optimality most; return them, and the gap."""
        values = problem.values
        may_rise, may_fall = problem.beta < problem.upper, problem.beta > problem.lower
        # The largest value that may go up, and the smallest that may go down; NaN is neither.
        m = np.fmax.reduce(values, where=may_rise, initial=-np.inf)
        M = np.fmin.reduce(values, where=may_fall, initial=np.inf)
        if values.size <= self.small:
            return np.arange(values.size), m - M
        free = np.flatnonzero(may_rise & may_fall)
        upwards = np.flatnonzero(may_rise & ~may_fall & (values > M))
        downwards = np.flatnonzero(may_fall & ~may_rise & (values < m))
        largest = max(_LEAST_SET, int(np.sqrt(self.cache_bytes / self.dtype.itemsize)))
        target = int(np.clip(_ROOM * free.size + self.smallest_set // 4, min(self.smallest_set, largest), largest))
        if free.size > _FREE_SHARE * target:
            return _furthest(values, free, upwards, downwards, min(target, _CROWDED_SET)), m - M
        free = _top(free, np.abs(values[free] - 0.5 * (m + M)), max(1, int(_FREE_SHARE * target)))
        half = max(1, (target - free.size) // 2)
        first, second = _top(upwards, values[upwards], half), _top(downwards, -values[downwards], half)
        return np.concatenate([free, first, second]), m - M

    def optimise(self, problem: _Problem, tol: float) -> bool:
        """Solve in place; return whether the gap came down to `tol`."""
        smallest, n_stalled, n_pairs = np.inf, 0, 0
        while True:
            chosen, gap = self.working_set(problem)
            smallest, n_stalled, n_pairs = (gap, 0, 0) if gap < 0.95 * smallest else (smallest, n_stalled + 1, n_pairs)
            if gap <= tol:
                return True
            n_sets = max(1.0, problem.values.size / max(1, chosen.size))
            stuck = n_stalled > _MAX_STALLED_SETS * n_sets
            if self.dtype == np.float32 and gap <= _NEAR * tol:
                stuck |= n_stalled >= _NEAR_SETS and n_pairs > _NEAR_PAIRS * chosen.size
            if stuck or self.n_iter >= self.most_pairs:
                return False
            n_iter = self._improve(problem, chosen, max(0.5 * tol, _INNER_SHARE * gap))
            if n_iter == 0:
                return False
            n_pairs += n_iter

    def _improve(self, problem: _Problem, chosen: np.ndarray, tol: float) -> int:
        """Solve one working set and update the values of all rows; return the number of pairs."""
        work = problem.take(chosen)
        values = work.values.astype(self.dtype)
        before = work.beta.copy()
        diagonal = work.rows.diagonal().astype(self.dtype)
        limit = int(min(100 * chosen.size + 100_000, self.most_pairs - self.n_iter))
        gram, masks, tol = self.gram(work.rows), Masks(*np.empty((2, chosen.size), self.dtype)), self.dtype.type(tol)
        n_iter = solve_by_pairs(values, work.beta, work.lower, work.upper, gram, diagonal, masks, tol, limit, None)[0]
        self.n_iter += n_iter
        change = work.beta - before
        moved = np.flatnonzero(change)
        problem.beta[chosen] = work.beta
        moved, change = chosen[moved], change[moved]
        problem.rows.subtract_expansion(problem.values, problem.rows.take(moved), change)
        return n_iter


def _top(index: np.ndarray, scores: np.ndarray, count: int) -> np.ndarray:
    """Return those `count` indices whose scores are largest."""
    return index if index.size <= count else index[np.argpartition(-scores, count)[:count]]


def _furthest(
    values: np.ndarray, free: np.ndarray, upwards: np.ndarray, downwards: np.ndarray, size: int
) -> np.ndarray:
    """Return the `size` variables of highest and lowest values that may move.

    The middle is the free variables' median: most of them have nearly one value, from which few are far.
    """
    above = values[free] > np.median(values[free])
    upwards, downwards = np.concatenate([free[above], upwards]), np.concatenate([free[~above], downwards])
    half = size // 2
    n_up = max(half, size - downwards.size) if downwards.size < upwards.size else min(half, upwards.size)
    return np.concatenate([_top(upwards, values[upwards], n_up), _top(downwards, -values[downwards], size - n_up)])


def solve_prepared(
    rows: KernelRows,
    y: np.ndarray,
    upper: np.ndarray,
    options: SolverOptions,
    start: np.ndarray | None = None,
) -> CSVCSolution:
    """Solve the C-SVC dual for prepared float32 rows, with the threads of their pool.

    Labels are +1 and -1, both present, and the upper bounds of the variables positive. The warm start lies within the
    bounds and has ``y'start = 0``; None: zeros.
    """
    n, tol, max_iter = y.size, options.tol, options.max_iter
    largest = float(np.max(upper))
    if not rows.finite or not single_is_enough(rows, n, largest, tol):
        rows = rows.in_double()
    if not rows.finite or not np.isfinite(largest):
        raise ValueError(
            "The dual coefficients or intercepts are not finite: kernel values overflow; scale the features, or choose "
            "a smaller C, gamma, degree or coef0"
        )
    # LIBSVM's own limit: more pairs only help where the features want scaling.
    most_pairs = max_iter if max_iter >= 0 else max(10_000_000, 100 * n)
    optimiser = _Optimiser(options, most_pairs, rows)
    lower, above = np.where(y > 0, 0.0, -upper), np.where(y > 0, upper, 0.0)
    problem = _Problem(rows, lower, above, np.zeros(n), y.astype(np.float64))
    if start is not None:
        problem.beta[:] = y * start
        _refresh(problem, y)
    converged = optimiser.optimise(problem, tol)
    if not converged and optimiser.dtype == np.float32 and optimiser.n_iter < most_pairs:
        # Round-off of float32 keeps the gap from closing: continue from here in float64.
        optimiser.use_double()
        problem.rows = rows.in_double()
        _refresh(problem, y)
        converged = optimiser.optimise(problem, tol)
    alpha, gradient = np.abs(problem.beta), -y * problem.values
    return CSVCSolution(
        alpha=alpha,
        rho=rho_from_gradient(alpha, gradient, y, upper),
        gradient=gradient,
        objective=float(0.5 * problem.beta @ (y - problem.values) - alpha.sum()),
        n_iter=optimiser.n_iter,
        converged=bool(converged and np.isfinite(problem.values).all()),
    )


def single_is_enough(rows: KernelRows, n_rows: int, largest_upper: float, tol: float) -> bool:
    """Tell whether float32 products change values by little of the tolerance.

    Errors of kernel values add up like a random walk over the rows, in steps of C (measured: 2 % of this bound); all
    errors of one long row have the same sign.
    """
    unit = np.finfo(np.float32).eps * largest_upper
    walk = unit * rows.typical_error * np.sqrt(n_rows)
    return bool(
        tol >= _SINGLE_TOLERANCE and walk <= _SINGLE_SHARE * tol and unit * rows.largest_error <= _ROW_SHARE * tol
    )


def _refresh(problem: _Problem, y: np.ndarray) -> None:
    """Compute the values from the variables."""
    problem.values[:] = y
    support = np.flatnonzero(problem.beta)
    problem.rows.subtract_expansion(problem.values, problem.rows.take(support), problem.beta[support])


def warm_up() -> None:
    """Compile both precisions of the inner level."""
    for tol in (1e-3, 0.1 * _SINGLE_TOLERANCE):
        X, y = np.array([[-1.0], [1.0]]), np.array([-1.0, 1.0])
        solve_prepared(KernelRows(X, Kernel("linear")), y, np.ones(2), SolverOptions(tol=tol))
