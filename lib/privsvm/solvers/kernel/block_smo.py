"""The C-SVC dual by sequential minimal optimisation in two levels.

The outer level picks a working set of some hundred to some thousand variables, whose kernel matrix fits the cache; the
inner level solves it by LIBSVM's second order pairs, and one pass over the rows updates their values. The warm start is
the solution for a sample of the rows (with C raised in proportion), which predicts for nearly every other row whether
its variable ends at 0 or at C. Rows that are settled are set aside, and checked again before the solver stops.

Variables here are ``b_t = y_t a_t`` and values ``v_t = -y_t G_t = y_t - sum_s b_s K(x_s, x_t)``; labels then occur in
the bounds only. Sources: Fan, Chen and Lin (2005) for the pairs; Joachims (1999) for working sets and shrinking.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from privsvm.numerics.compiled.jit import jit, jit_step
from privsvm.numerics.compiled.threads import one_blas_thread, thread_pool
from privsvm.numerics.compiled.vector_math import FAST_MATH, maximum
from privsvm.numerics.noise.streams import seeded_stream
from privsvm.solvers.kernel.c_svc import CSVCSolution, SolverOptions, rho_from_gradient
from privsvm.solvers.kernel.kernel_cache import RowStore, worth_storing
from privsvm.solvers.kernel.kernel_rows import KernelRows
from privsvm.solvers.kernel.kernels import Kernel
from privsvm.solvers.kernel.momentum import RecentSteps
from privsvm.solvers.kernel.pair_step import TAU, extremes, move_pair, set_sides

__all__ = ["single_is_enough", "solve_block_smo", "solve_prepared"]

# Constant           unit       value and reason; those of speed were measured on data sets of 1,000 to 100,000 rows.
# Working sets
# _WORKING_SET       variables  least, for rows of one feature: more features make a kernel matrix more expensive.
# _STORED_SET        variables  least where kernel rows are cached: a larger set then costs little, and saves others.
# _SMALL_SHARE       share      of the least set up to which a problem is solved as one set.
# _LEAST_SET         variables  whatever the memory limit (half a megabyte): small sets converge slowly.
# _FREE_SHARE        share      of a set for variables between their bounds.
# _ROOM              ratio      of the set's size to the number of free variables, where they fit.
# _CROWDED_SET       variables  most where the free ones do not fit: many free variables mean a kernel matrix of high
#                               rank, for which several small sets serve as well as a large one.
# _INNER_SHARE       share      of the gap of all variables to which a set is solved.
# _STEP              ratio      of a step to the optimal one: over-relaxation saves iterations on hard problems.
# Warm start
# _COSTLY            cost       of a kernel value (`KernelRows.product_cost`) from which samples cost more than the
#                               steps that they save: the solver then starts from zero.
# _SAMPLE_RATIO      ratio      of the sizes of nested samples; _SAMPLE_TOLERANCE is their tolerance.
# _MARGIN_WIDTH      margin     of the sample's solution within which rows start between the bounds.
# _IMBALANCE         share      of the sum of the bounds that y'a may start from zero: round-off.
# Shrinking
# _SHRINK_SHARE      share      of the active rows at most that stay active; else shrinking is not worth a copy.
# Precision
# _SINGLE_TOLERANCE  tolerance  below which working sets are solved in float64, too.
# _SINGLE_SHARE, _ROW_SHARE  share  of the tolerance that float32 products may cost; see `single_is_enough`.
# _MAX_STALLED_SETS  sets       without a smaller gap, before float64 takes over.
# _MAX_RETURNS       times      that all rows came back without a smaller gap, before the solver gives up.
# _NEAR, _NEAR_PAIRS, _NEAR_SETS  Near the optimum, at a gap of _NEAR tolerances, float32 may spend _NEAR_PAIRS pairs
#                               per variable in _NEAR_SETS sets: beyond its precision it would use the limit each time.
# _CHUNK             entries    of the inner level that are searched together for a maximum.
_WORKING_SET = 640
_STORED_SET = 2048
_SMALL_SHARE = 0.75
_LEAST_SET = 256
_FREE_SHARE = 0.8
_ROOM = 1.3
_CROWDED_SET = 1024
_INNER_SHARE = 0.05
_STEP = 1.1
_COSTLY = 6.0
_SAMPLE_RATIO = 4
_SAMPLE_TOLERANCE = 0.03
_MARGIN_WIDTH = 0.02
_IMBALANCE = 1e-9
_SHRINK_SHARE = 0.7
_SINGLE_TOLERANCE = 1e-4
_SINGLE_SHARE = 3.0
_ROW_SHARE = 0.1
_MAX_STALLED_SETS = 200
_MAX_RETURNS = 20
_NEAR = 20.0
_NEAR_PAIRS = 100
_NEAR_SETS = 3
_CHUNK = 64


@jit_step(fastmath=FAST_MATH, forceinline=True)
def _move_values(values, row_i, row_j, step, up, low):
    """Move the values along a pair's step.

    Return the largest that may go up and minus the smallest to go down.
    """
    highest = values.dtype.type(-1e30)
    lowest = values.dtype.type(-1e30)
    for t in range(values.shape[0]):
        value = values[t] - step * (row_i[t] - row_j[t])
        values[t] = value
        highest = maximum(highest, value + up[t])
        lowest = maximum(lowest, low[t] - value)
    return highest, lowest


@jit_step(fastmath=FAST_MATH, forceinline=True)
def _largest_gain(values, row_i, low, diagonal, value_i, diagonal_i, tau):
    """Return the largest gain ``(v_i - v_t)^2 / (K_ii + K_tt - 2 K_it)``."""
    zero = values.dtype.type(0)
    two = values.dtype.type(2)
    largest = values.dtype.type(-1)
    for t in range(values.shape[0]):
        violation = maximum(value_i - values[t] + low[t], zero)
        curvature = maximum(diagonal_i + diagonal[t] - two * row_i[t], tau)
        largest = maximum(largest, violation * violation / curvature)
    return largest


@jit()
def _solve_working_set(gram, diagonal, beta, lower, upper, values, tolerance, max_iter):
    """Solve one working set by pairs; `beta` and `values` are changed in place.

    Returns the number of pairs.
    """
    kind = values.dtype.type
    zero = kind(0)
    # Mask: added to a value, this takes it out of a maximum.
    out = kind(-1e30)
    tau = kind(TAU)
    size = values.shape[0]
    up = np.empty(size, values.dtype)
    low = np.empty(size, values.dtype)
    for t in range(size):
        set_sides(up, low, beta, lower, upper, t, out)
    step = zero
    i, j, n_iter = 0, 0, 0
    while True:
        row_i, row_j = gram[i], gram[j]
        highest, lowest, where = kind(-3e38), kind(-3e38), 0
        for start in range(0, size, _CHUNK):
            stop = min(start + _CHUNK, size)
            chunk_highest, chunk_lowest = _move_values(
                values[start:stop], row_i[start:stop], row_j[start:stop], step, up[start:stop], low[start:stop]
            )
            if chunk_highest > highest:
                highest, where = chunk_highest, start
            lowest = max(lowest, chunk_lowest)
        if highest + lowest <= tolerance or n_iter >= max_iter:
            return n_iter
        for t in range(where, min(where + _CHUNK, size)):
            if up[t] == zero and values[t] == highest:
                i = t
                break
        row_i = gram[i]
        largest = kind(-1)
        for start in range(0, size, _CHUNK):
            stop = min(start + _CHUNK, size)
            gain = _largest_gain(
                values[start:stop],
                row_i[start:stop],
                low[start:stop],
                diagonal[start:stop],
                values[i],
                diagonal[i],
                tau,
            )
            if gain > largest:
                largest, where = gain, start
        # Round-off: the partner is searched again in its chunk, not by equality, since the loop above may use FMA.
        largest = kind(-1)
        for t in range(where, min(where + _CHUNK, size)):
            violation = max(values[i] - values[t] + low[t], zero)
            gain = violation * violation / max(diagonal[i] + diagonal[t] - kind(2) * row_i[t], tau)
            if gain > largest:
                largest, j = gain, t
        curvature = np.float64(max(diagonal[i] + diagonal[j] - kind(2) * row_i[j], tau))
        step = kind(move_pair(beta, lower, upper, i, j, _STEP * np.float64(values[i] - values[j]) / curvature))
        set_sides(up, low, beta, lower, upper, i, out)
        set_sides(up, low, beta, lower, upper, j, out)
        n_iter += 1


@jit()
def _candidates(values, beta, lower, upper, m, M):
    """Return indices of free variables, and of violating ones by direction."""
    n = values.shape[0]
    free, upwards, downwards = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    n_free, n_up, n_down = 0, 0, 0
    for t in range(n):
        may_rise, may_fall = beta[t] < upper[t], beta[t] > lower[t]
        if may_rise and may_fall:
            free[n_free] = t
            n_free += 1
        elif may_rise and values[t] > M:
            upwards[n_up] = t
            n_up += 1
        elif may_fall and values[t] < m:
            downwards[n_down] = t
            n_down += 1
    return free[:n_free], upwards[:n_up], downwards[:n_down]


@jit()
def _in_play(values, beta, lower, upper, m, M):
    """Return the variables that may still form a violating pair, by LIBSVM's rule."""
    n = values.shape[0]
    kept = np.empty(n, np.int64)
    count = 0
    for t in range(n):
        may_rise, may_fall = beta[t] < upper[t], beta[t] > lower[t]
        if (may_rise and may_fall) or (may_rise and values[t] >= M) or (may_fall and values[t] <= m):
            kept[count] = t
            count += 1
    return kept[:count]


@dataclasses.dataclass
class _Problem:
    """A set of rows with their bounds, variables and values."""

    rows: KernelRows
    lower: np.ndarray
    upper: np.ndarray
    beta: np.ndarray
    values: np.ndarray
    store: RowStore

    def take(self, index: np.ndarray) -> _Problem:
        """Return the problem of a subset of the rows, without a cache of kernel rows."""
        rows = self.rows.take(index)
        lower, upper, beta, values = (array[index] for array in (self.lower, self.upper, self.beta, self.values))
        return _Problem(rows, lower, upper, beta, values, RowStore(rows, 0))

    def extremes(self) -> tuple[float, float]:
        """Return m, the largest value that may go up, and M, the smallest to go down."""
        return extremes(self.values, self.beta, self.lower, self.upper)


class _Optimiser:
    """Memory, limits and counts that the levels of one solve share."""

    def __init__(self, options: SolverOptions, most_pairs: float, rows: KernelRows):
        self.tol, self.shrinking, self.most_pairs = options.tol, options.shrinking, most_pairs
        # Half of the memory is for the working set, half for cached rows.
        self.cache_bytes = 0.5e6 * options.cache_size
        self.dtype = np.dtype(np.float32 if self.tol >= _SINGLE_TOLERANCE else np.float64)
        self.n_iter = 0
        # Crowded: more free variables than a working set has room for; their steps are stored as long as that holds.
        self.crowded, self.recent = False, RecentSteps()
        stored = worth_storing(rows)
        self.smallest_set = _STORED_SET if stored else max(64, int(_WORKING_SET / np.sqrt(rows.product_cost)))
        self.small = int(_SMALL_SHARE * self.smallest_set)
        self._buffer = np.empty(0, dtype=self.dtype)

    def use_double(self) -> None:
        self.dtype = np.dtype(np.float64)
        self._buffer = np.empty(0, dtype=self.dtype)

    def gram(self, store: RowStore, chosen: np.ndarray, rows: KernelRows) -> np.ndarray:
        if self._buffer.size < chosen.size**2:
            self._buffer = np.empty(chosen.size**2, dtype=self.dtype)
        return store.gram(chosen, rows, self._buffer)

    def working_set(self, problem: _Problem) -> tuple[np.ndarray, float]:
        """Choose free variables, then those that violate optimality most on either side.

        Return them, and the gap.
        """
        m, M = problem.extremes()
        values, self.crowded = problem.values, False
        if values.size <= self.small:
            return np.arange(values.size), m - M
        free, upwards, downwards = _candidates(values, problem.beta, problem.lower, problem.upper, m, M)
        largest = max(_LEAST_SET, int(np.sqrt(self.cache_bytes / self.dtype.itemsize)))
        target = int(np.clip(_ROOM * free.size + self.smallest_set // 4, min(self.smallest_set, largest), largest))
        self.crowded = free.size > _FREE_SHARE * target
        if self.crowded:
            return _furthest(values, free, upwards, downwards, min(target, _CROWDED_SET)), m - M
        self.recent.forget()
        free = _top(free, np.abs(values[free] - 0.5 * (m + M)), max(1, int(_FREE_SHARE * target)))
        half = max(1, (target - free.size) // 2)
        first, second = _top(upwards, values[upwards], half), _top(downwards, -values[downwards], half)
        return np.concatenate([free, first, second]), m - M

    def optimise(self, problem: _Problem, tol: float) -> bool:
        """Solve in place; return whether the gap came down to `tol`."""
        active: np.ndarray | None = None
        reduced = problem
        self.recent.forget()
        # Shrinking: rows that were set aside in one step, with all variables at that time.
        aside: list[tuple[np.ndarray, np.ndarray]] = []
        smallest, n_stalled, n_pairs = np.inf, 0, 0
        # Gap of all variables when the last rows came back, and how often it has not shrunk since.
        full_gap, n_returns = np.inf, 0
        while True:
            chosen, gap = self.working_set(reduced)
            smallest, n_stalled, n_pairs = (gap, 0, 0) if gap < 0.95 * smallest else (smallest, n_stalled + 1, n_pairs)
            exhausted = self.n_iter >= self.most_pairs
            n_sets = max(1.0, reduced.values.size / max(1, chosen.size))
            stuck = n_stalled > _MAX_STALLED_SETS * n_sets or n_returns > _MAX_RETURNS
            if self.dtype == np.float32 and gap <= _NEAR * tol:
                stuck |= n_stalled >= _NEAR_SETS and n_pairs > _NEAR_PAIRS * chosen.size
            n_iter = 0
            if gap > tol and not exhausted and not stuck:
                n_iter = self._improve(reduced, chosen, max(0.5 * tol, _INNER_SHARE * gap))
                stuck = n_iter == 0
                n_pairs += n_iter
            if gap <= tol or exhausted or stuck:
                if active is None:
                    return bool(gap <= tol)
                problem.beta[active], problem.values[active] = reduced.beta, reduced.values
                _bring_back(problem, aside)
                if reduced is not problem:
                    problem.store = reduced.store.emptied(problem.rows)
                active, reduced, smallest = None, problem, np.inf
                self.recent.forget()
                m, M = problem.extremes()
                full_gap, n_returns = (m - M, 0) if m - M < 0.9 * full_gap else (full_gap, n_returns + 1)
                if exhausted or stuck:
                    return m - M <= tol
                continue
            if self.shrinking and reduced.values.size > self.small and not reduced.store.holds_all:
                kept = _in_play(reduced.values, reduced.beta, reduced.lower, reduced.upper, *reduced.extremes())
                if kept.size <= _SHRINK_SHARE * reduced.values.size:
                    if active is None:
                        active = np.arange(reduced.values.size)
                    problem.beta[active], problem.values[active] = reduced.beta, reduced.values
                    aside.append((np.delete(active, kept), problem.beta.copy()))
                    store = reduced.store
                    active, reduced = active[kept], reduced.take(kept)
                    self.recent.forget()
                    reduced.store = store.narrowed(reduced.rows, kept)

    def _improve(self, problem: _Problem, chosen: np.ndarray, tol: float) -> int:
        """Solve one working set and update the values of all active rows.

        Return the number of pairs.
        """
        work = problem.take(chosen)
        values = work.values.astype(self.dtype)
        before = work.beta.copy()
        diagonal = work.rows.diagonal().astype(self.dtype)
        limit = int(min(100 * chosen.size + 100_000, self.most_pairs - self.n_iter))
        gram = self.gram(problem.store, chosen, work.rows)
        n_iter = _solve_working_set(gram, diagonal, work.beta, work.lower, work.upper, values, tol, limit)
        self.n_iter += n_iter
        change = work.beta - before
        moved = np.flatnonzero(change)
        problem.beta[chosen] = work.beta
        moved, change = chosen[moved], change[moved]
        if not self.crowded:
            problem.store.subtract_expansion(problem.values, moved, change)
            return n_iter
        step, values = np.zeros(problem.values.size), problem.values.copy()
        step[moved] = change
        if problem.store.holds_most:
            problem.store.subtract_expansion(problem.values, moved, change)
        else:
            problem.rows.subtract_expansion(problem.values, problem.rows.take(moved), change)
        self.recent.add(step, values - problem.values)
        self.recent.improve(problem.rows, problem.beta, problem.values, problem.lower, problem.upper)
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


def _bring_back(problem: _Problem, aside: list[tuple[np.ndarray, np.ndarray]]) -> None:
    """Apply missed changes to the rows that were set aside, and empty the list."""
    for rows, beta in aside:
        moved = np.flatnonzero(problem.beta != beta)
        values = problem.values[rows]
        change = problem.beta[moved] - beta[moved]
        problem.rows.take(rows).subtract_expansion(values, problem.rows.take(moved), change)
        problem.values[rows] = values
    aside.clear()


def _samples(y: np.ndarray, small: int) -> list[np.ndarray]:
    """Draw nested stratified samples of the rows, smallest first; the last is all."""
    order = seeded_stream(0, "block_smo", "samples")
    by_class = [order.permutation(np.flatnonzero(y == label)) for label in (-1.0, 1.0)]
    samples = [np.arange(y.size)]
    while samples[-1].size > small:
        share = 1.0 / _SAMPLE_RATIO ** len(samples)
        counts = [max(8, int(np.ceil(share * rows.size))) for rows in by_class]
        sample = np.sort(np.concatenate([rows[:count] for rows, count in zip(by_class, counts, strict=True)]))
        if sample.size >= samples[-1].size:
            break
        samples.append(sample)
    return samples[::-1]


def _class_scale(y: np.ndarray, sample: np.ndarray) -> np.ndarray:
    """Return the factors that raise the bounds of a sample's rows, (n_sample,)."""
    scale = np.empty(sample.size)
    for label in (-1.0, 1.0):
        mask = y[sample] == label
        scale[mask] = int((y == label).sum()) / max(1, int(mask.sum()))
    return scale


def _start(problem: _Problem, y: np.ndarray, sample: np.ndarray, shares: np.ndarray, scores: np.ndarray) -> None:
    """Fill in variables from a sample's solution, so that they sum to zero.

    A row of the sample keeps its share of the bound; every other starts at 0 or at its bound, depending on the side of
    the margin it lies on. The offset is chosen to balance the classes.
    """
    bound = np.where(y > 0, problem.upper, problem.lower)
    beta = np.zeros(y.size)
    beta[sample] = shares * bound[sample]
    other = np.ones(y.size, dtype=bool)
    other[sample] = False
    other_scores, label, size = scores[other], y[other], bound[other]
    fixed = beta.sum()

    def assigned(offset: float) -> np.ndarray:
        return size * np.clip(label * (other_scores - offset) / _MARGIN_WIDTH + 0.5, 0.0, 1.0)

    if other_scores.size:
        low, high = other_scores.min() - 1.0, other_scores.max() + 1.0
        for _ in range(20):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if fixed + assigned(middle).sum() > 0 else (low, middle)
        beta[other] = assigned(0.5 * (low + high))
        excess = beta.sum()
        for t in np.argsort(np.abs(scores - 0.5 * (low + high)), kind="stable"):
            if excess == 0.0:
                break
            moved = min(max(beta[t] - excess, problem.lower[t]), problem.upper[t])
            excess += moved - beta[t]
            beta[t] = moved
    problem.beta[:] = beta


def solve_block_smo(
    X,
    y: np.ndarray,
    upper: np.ndarray,
    kernel: Kernel = Kernel(),
    options: SolverOptions = SolverOptions(),
) -> CSVCSolution:
    """Solve the C-SVC dual.

    Parameters
    ----------
    X : ndarray or CSR matrix (n, d) of float64
        Rows; finite.
    y : ndarray (n,) of float64
        Labels +1 and -1, both present.
    upper : ndarray (n,)
        Upper bound C of each variable; positive.
    kernel : Kernel
        The kernel function.
    options : SolverOptions
        With a limit on pairs the solver starts from zero, not from samples.

    Returns
    -------
    CSVCSolution
    """
    with one_blas_thread(), thread_pool(options.n_threads) as pool:
        rows = KernelRows(X, kernel, pool=pool, n_threads=options.n_threads)
        return solve_prepared(rows, y, upper, options)


def solve_prepared(
    rows: KernelRows,
    y: np.ndarray,
    upper: np.ndarray,
    options: SolverOptions,
    *,
    start: np.ndarray | None = None,
    pair_budget: float = np.inf,
) -> CSVCSolution:
    """Solve the C-SVC dual for prepared float32 rows; see `solve_block_smo`.

    Variables `start` (n,), within their bounds and with ``y'start = 0``, are the warm start instead of samples. The
    solver ends after `pair_budget` pairs as it does after ``options.max_iter``, but still starts from samples.
    """
    n, tol, max_iter = y.size, options.tol, options.max_iter
    largest = float(np.max(upper))
    if start is not None:
        _check_start(start, y, upper)
    if not rows.finite or not single_is_enough(rows, n, largest, tol):
        rows = rows.in_double()
    if not rows.finite or not np.isfinite(largest):
        raise ValueError(
            "The dual coefficients or intercepts are not finite: kernel values overflow; scale the features, or choose "
            "a smaller C, gamma, degree or coef0"
        )
    # LIBSVM's own limit: more pairs only help where the features want scaling.
    most_pairs = np.ceil(min(pair_budget, max_iter if max_iter >= 0 else max(10_000_000, 100 * n)))
    optimiser = _Optimiser(options, most_pairs, rows)
    lower, above = np.where(y > 0, 0.0, -upper), np.where(y > 0, upper, 0.0)
    problem = _Problem(rows, lower, above, np.zeros(n), y.astype(np.float64), RowStore(rows, optimiser.cache_bytes))
    if start is not None:
        problem.beta[:] = y * start
        _refresh(problem, y)
    elif max_iter < 0 and rows.product_cost < _COSTLY:
        _start_from_samples(problem, y, optimiser)
    converged = optimiser.optimise(problem, tol)
    if not converged and optimiser.dtype == np.float32 and optimiser.n_iter < most_pairs:
        # Round-off of float32 keeps the gap from closing: continue from here in float64.
        optimiser.use_double()
        problem.rows = rows.in_double()
        problem.store = RowStore(problem.rows, optimiser.cache_bytes)
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


def _check_start(start: np.ndarray, y: np.ndarray, upper: np.ndarray) -> None:
    """Raise ValueError for an infeasible warm start."""
    if start.shape != y.shape:
        raise ValueError(f"start has shape {start.shape}: must be {y.shape}, one variable for each row")
    if not ((start >= 0).all() and (start <= upper).all()):
        worst = float(np.max(np.maximum(-start, start - upper)))
        raise ValueError(f"start leaves its bounds by {worst:g}: must lie between 0 and upper")
    imbalance = abs(float(y @ start))
    if not imbalance <= _IMBALANCE * float(np.sum(upper)):
        raise ValueError(f"start has y'start = {imbalance:g}: must be 0; scale the larger class down")


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
    problem.store.subtract_expansion(problem.values, support, problem.beta[support])


def _start_from_samples(problem: _Problem, y: np.ndarray, optimiser: _Optimiser) -> None:
    """Fill in all variables from solutions of growing samples."""
    samples = _samples(y, optimiser.small)
    if len(samples) == 1:
        return
    solved: _Problem | None = None
    previous = np.empty(0, dtype=np.int64)
    for sample in samples:
        if sample.size == y.size:
            level = problem
        else:
            level = problem.take(sample)
            level.store = RowStore(level.rows, optimiser.cache_bytes)
            scale = _class_scale(y, sample)
            level.lower, level.upper = level.lower * scale, level.upper * scale
        labels = y[sample]
        if solved is not None:
            support = np.flatnonzero(solved.beta)
            scores = labels.copy()
            solved_rows = np.searchsorted(sample, previous)
            level.store.subtract_expansion(scores, solved_rows[support], solved.beta[support])
            shares = np.abs(solved.beta) / np.maximum(solved.upper, -solved.lower)
            _start(level, labels, solved_rows, shares, scores)
            _refresh(level, labels)
        if sample.size == y.size:
            return
        optimiser.optimise(level, max(optimiser.tol, _SAMPLE_TOLERANCE))
        level.store = RowStore(level.rows, 0)
        solved, previous = level, sample


def warm_up() -> None:
    """Compile both precisions of the inner level, and the choice of sets."""
    for tol in (1e-3, 0.1 * _SINGLE_TOLERANCE):
        X, y = np.array([[-1.0], [1.0]]), np.array([-1.0, 1.0])
        solve_block_smo(X, y, np.ones(2), Kernel("linear"), SolverOptions(tol=tol))
    zeros, ones = np.zeros(2), np.ones(2)
    _candidates(zeros, zeros, zeros, ones, 0.0, 0.0)
    _in_play(zeros, zeros, zeros, ones, 0.0, 0.0)
