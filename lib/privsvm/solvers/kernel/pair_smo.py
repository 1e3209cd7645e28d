"""The C-SVC duals of many pairs of classes in one compiled call.

The rows are sorted by class, and their kernel values are in one matrix where it fits in memory, else in one for each
class and each pair. Kernel values have single precision, as in LIBSVM, where that is enough, else double; the values of
the variables always have double precision. A pair that takes too many steps is left to
`privsvm.solvers.kernel.block_smo`, with its variables as the warm start.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import itertools
from typing import NamedTuple

import numpy as np

from privsvm.numerics.compiled.jit import jit
from privsvm.numerics.compiled.threads import share_out, threads_worth
from privsvm.solvers.kernel.c_svc import CSVCSolution, SolverOptions
from privsvm.solvers.kernel.kernel_rows import KernelRows
from privsvm.solvers.kernel.kernels import Kernel
from privsvm.solvers.kernel.pair_step import Blocks, Masks, Source, take_pair_steps

# Constant               unit     value and reason
# _STEPS, _LEAST_STEPS   steps    for each variable of a pair, and in addition for every pair, before a hard one is left
#                                 to the solver by working sets.
# _TOGETHER              bytes    that the matrix of all rows may take, else each class and each pair has its own.
# _PAIR_SECONDS          s        for a pair besides its kernel values; measured.
# _PADDED                entries  of which the length of a pair is a multiple: whole vectors and unrolled loops.
# _APART                 entries  added to each kernel row: cache lines a power of two apart would evict each other.
_STEPS, _LEAST_STEPS = 10, 2000
_TOGETHER, _PAIR_SECONDS = 50e6, 5e-6
_PADDED, _APART = 64, 16


class End(enum.IntEnum):
    """How a pair ended."""

    SOLVED = 0
    MAX_ITER = 1
    # Too many steps: another solver continues.
    HANDED_OVER = 2


class _Pairs(NamedTuple):
    """Rows of the classes, bounds, and results by pair."""

    # Row where each class starts, and the two classes of each pair.
    starts: np.ndarray
    first: np.ndarray
    second: np.ndarray
    upper: np.ndarray
    diagonal: np.ndarray
    limits: np.ndarray
    # Variables in scikit-learn's layout (c - 1, n).
    layout: np.ndarray
    rho: np.ndarray
    objective: np.ndarray
    n_iter: np.ndarray
    # Violation of optimality.
    gaps: np.ndarray


class _Work(NamedTuple):
    """Work space for the longest of some pairs, made by NumPy: its functions take long to compile."""

    # Kernel rows, and which are filled; values, variables, their bounds and masks; the kernel's diagonal.
    kernel: np.ndarray
    filled: np.ndarray
    vectors: np.ndarray
    diagonal: np.ndarray


def _pad_size(size: int) -> int:
    return -(-size // _PADDED) * _PADDED


@jit()
def _solve_some(numbers, pairs, work, blocks, tol):
    """Solve the pairs of these numbers; `blocks` are the kernel values of all rows, None if `work` has them."""
    starts, vectors = pairs.starts, work.vectors
    for p in numbers:
        a, b = pairs.first[p], pairs.second[p]
        n_a = starts[a + 1] - starts[a]
        size = n_a + starts[b + 1] - starts[b]
        whole = -(-size // _PADDED) * _PADDED
        values, beta, lower, upper = vectors[0, :whole], vectors[1, :size], vectors[2, :size], vectors[3, :size]
        for t in range(size):
            row = starts[a] + t if t < n_a else starts[b] + t - n_a
            values[t], beta[t] = (1.0 if t < n_a else -1.0), 0.0
            lower[t] = 0.0 if t < n_a else -pairs.upper[row]
            upper[t] = pairs.upper[row] if t < n_a else 0.0
            work.diagonal[t], work.filled[t] = pairs.diagonal[row], False
        for t in range(size, whole):
            work.diagonal[t] = 0
        source = None
        if blocks is not None:
            at_a, at_b = (starts[a], starts[b]) if blocks.is_whole else (0, 0)
            source = Source(work.filled, blocks, n_a, at_a, at_b)
        # Masks of this length: `take_pair_steps` passes over all of it.
        masks = Masks(vectors[4, :whole], vectors[5, :whole])
        n_iter, highest, lowest = take_pair_steps(
            values, beta, lower, upper, work.kernel, work.diagonal[:whole], masks, tol, pairs.limits[p], source
        )
        # Offset: minus the mean value of the free variables, else the middle of its interval.
        total, n_free, quadratic, linear = 0.0, 0, 0.0, 0.0
        for t in range(size):
            if lower[t] < beta[t] < upper[t]:
                total -= values[t]
                n_free += 1
            quadratic += beta[t] * ((1.0 if t < n_a else -1.0) - values[t])
            linear += abs(beta[t])
            if t < n_a:
                pairs.layout[b - 1, starts[a] + t] = beta[t]
            else:
                pairs.layout[a, starts[b] + t - n_a] = beta[t]
        pairs.rho[p] = total / n_free if n_free > 0 else -0.5 * (highest - lowest)
        pairs.objective[p] = 0.5 * quadratic - linear
        pairs.n_iter[p], pairs.gaps[p] = n_iter, highest + lowest


def _work_for(longest: int, blocks: Blocks, alone: bool) -> _Work:
    """Make work space; two classes alone work on the matrix itself."""
    padded, dtype = _pad_size(longest), blocks.first.dtype
    kernel = blocks.first if alone else np.empty((longest, padded + _APART), dtype)
    return _Work(kernel, np.empty(longest, dtype=bool), np.empty((6, padded)), np.empty(padded, dtype))


def scatter_pairs(layout: np.ndarray, starts: np.ndarray, coef: np.ndarray) -> None:
    """Write coefficients (c - 1, m) in scikit-learn's layout as (m, p)."""
    rows = [slice(*ends) for ends in itertools.pairwise(starts.tolist())]
    for column, (a, b) in enumerate(itertools.combinations(range(len(rows)), 2)):
        coef[rows[a], column] = layout[b - 1, rows[a]]
        coef[rows[b], column] = layout[a, rows[b]]


@dataclasses.dataclass
class ClassSolutions:
    """Solutions of the p pairs (0, 1), (0, 2), ..., (1, 2), ... of c classes.

    `layout` (c - 1, n) has the variables ``y_i a_i`` of the rows, sorted by class, in scikit-learn's layout; `starts`
    (c + 1,) the first row of each class, and n. The other arrays have a number a pair: offset, objective, steps, and
    whether the stopping rule was met.
    """

    layout: np.ndarray
    starts: np.ndarray
    rho: np.ndarray
    objective: np.ndarray
    n_iter: np.ndarray
    converged: np.ndarray

    @classmethod
    def empty(cls, starts: np.ndarray) -> ClassSolutions:
        """Return zeros for classes with these first rows."""
        n_classes = starts.size - 1
        n_pairs = n_classes * (n_classes - 1) // 2
        return cls(
            layout=np.zeros((n_classes - 1, int(starts[-1]))),
            starts=starts,
            rho=np.zeros(n_pairs),
            objective=np.zeros(n_pairs),
            n_iter=np.zeros(n_pairs, dtype=np.int64),
            converged=np.ones(n_pairs, dtype=bool),
        )

    def store_pair(self, number: int, variables: np.ndarray, solution: CSVCSolution) -> None:
        """Store a pair's variables ``y_i a_i``, of its first class's rows and then of the second's, and its figures.

        Steps are added to those so far.
        """
        first, second = (int(side[number]) for side in _triangle(self.starts.size - 1))
        n_first = self.starts[first + 1] - self.starts[first]
        self.layout[second - 1, self.starts[first] : self.starts[first + 1]] = variables[:n_first]
        self.layout[first, self.starts[second] : self.starts[second + 1]] = variables[n_first:]
        self.rho[number], self.objective[number] = solution.rho, solution.objective
        self.n_iter[number] += solution.n_iter
        self.converged[number] = solution.converged

    def variables(self, first: int, second: int) -> np.ndarray:
        """Return the variables of a pair: of the first class's rows, then of the second's."""
        first_rows, second_rows = (slice(self.starts[k], self.starts[k + 1]) for k in (first, second))
        return np.concatenate([self.layout[second - 1, first_rows], self.layout[first, second_rows]])


def classes_of_pairs(n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the classes of the pairs (0, 1), (0, 2), ..., (1, 2), ..., (p,) each."""
    first, second = _triangle(n_classes)
    return first.copy(), second.copy()


@functools.lru_cache(maxsize=8)
def _triangle(n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Cache `classes_of_pairs`, which takes as long as several small pairs."""
    first, second = np.triu_indices(n_classes, 1)
    return first, second


def solve_class_pairs(
    rows: KernelRows, upper: np.ndarray, solutions: ClassSolutions, numbers: np.ndarray, options: SolverOptions
) -> np.ndarray:
    """Solve the pairs of classes with the given numbers; return the pairs that remain for another solver.

    The rows are sorted by class, and kernel values have their precision; a pair's values may take half of the memory
    for kernel values. `solutions` is changed in place; remaining pairs with steps have feasible variables.
    """
    memory, itemsize = 1e6 * options.cache_size, rows.dtype.itemsize
    starts = solutions.starts
    first, second = classes_of_pairs(starts.size - 1)
    n_rows = np.diff(starts)
    sizes = n_rows[first] + n_rows[second]
    if itemsize * float(rows.n_rows) ** 2 <= min(_TOGETHER, memory):
        ended = _solve_some_pairs(rows, _whole_matrix(rows, first.size), upper, solutions, numbers, options)
    else:
        # The choice of pairs must not depend on the number of threads.
        bytes_of_pair = 2.0 * itemsize * (sizes + _PADDED + _APART) ** 2.0
        chosen = numbers[bytes_of_pair[numbers] <= memory]
        ended = np.full(first.size, int(End.HANDED_OVER))
        by_class = [rows.take(np.arange(*ends)) for ends in itertools.pairwise(starts)]
        fits = first.size > 1 and itemsize * float((n_rows**2.0).sum()) <= memory / 2.0
        own = [some.gram(np.empty(some.n_rows**2, rows.dtype)) for some in by_class] if fits else []

        def solve(number: int) -> None:
            a, b = first[number], second[number]
            index = np.concatenate([np.arange(starts[k], starts[k + 1]) for k in (a, b)])
            alone, pair = ClassSolutions.empty(np.array([0, n_rows[a], index.size])), rows.take(index)
            if own:
                cross = np.empty((n_rows[b], n_rows[a]), rows.dtype)
                by_class[b].write_values(by_class[a], cross)
            blocks = Blocks(own[a], own[b], cross, False) if own else _whole_matrix(pair, 1)
            ended[number] = _solve_some_pairs(pair, blocks, upper[index], alone, np.zeros(1, np.int64), options)[0]
            figures = float(alone.rho[0]), np.empty(0), float(alone.objective[0]), int(alone.n_iter[0])
            solved = ended[number] == End.SOLVED
            solutions.store_pair(number, alone.layout[0], CSVCSolution(np.empty(0), *figures, bool(solved)))

        pool = rows.pool
        for _ in pool.map(solve, chosen.tolist()) if pool and chosen.size > 1 else map(solve, chosen.tolist()):
            pass
    solutions.converged[numbers] = ended[numbers] == End.SOLVED
    return numbers[ended[numbers] == End.HANDED_OVER]


def _whole_matrix(rows: KernelRows, n_pairs: int) -> Blocks:
    """Compute the kernel matrix of all rows; a single pair, which reads whole vectors of it, is padded with zeros."""
    width = None if n_pairs > 1 else _pad_size(rows.n_rows) + _APART
    matrix = rows.gram(np.empty(rows.n_rows * (width or rows.n_rows), rows.dtype), width)
    matrix[:, rows.n_rows :] = 0
    return Blocks(matrix, matrix, matrix, True)


def _solve_some_pairs(
    rows: KernelRows,
    blocks: Blocks,
    upper: np.ndarray,
    solutions: ClassSolutions,
    numbers: np.ndarray,
    options: SolverOptions,
) -> np.ndarray:
    """Solve pairs whose kernel values are in memory; return how every pair ended."""
    first, second = classes_of_pairs(solutions.starts.size - 1)
    sizes = np.diff(solutions.starts)[first] + np.diff(solutions.starts)[second]
    limits, most = _STEPS * sizes + _LEAST_STEPS, options.max_iter
    pairs = _Pairs(
        starts=solutions.starts,
        first=first,
        second=second,
        upper=upper,
        diagonal=rows.diagonal().astype(rows.dtype),
        limits=np.minimum(limits, most) if most >= 0 else limits,
        layout=solutions.layout,
        rho=solutions.rho,
        objective=solutions.objective,
        n_iter=solutions.n_iter,
        gaps=np.full(first.size, np.inf),
    )
    seconds = rows.seconds(float((sizes[numbers] ** 2).sum())) + _PAIR_SECONDS * numbers.size
    n_threads = threads_worth(max(1, min(rows.n_threads, numbers.size)), seconds)
    # Load balance: neighbouring pairs share a class, so each thread takes every n-th pair. Contiguous arrays, since
    # code specialised for another layout may round differently.
    batches = [np.ascontiguousarray(numbers[k::n_threads]) for k in range(n_threads)]
    alone = first.size == 1 and blocks.is_whole
    works = [_work_for(int(sizes[batch].max(initial=0)), blocks, alone) for batch in batches]
    source = None if alone else blocks
    tasks = [(batch, pairs, work, source, options.tol) for batch, work in zip(batches, works, strict=True)]
    share_out(rows.pool, _solve_some, tasks)
    stopped = np.where(solutions.n_iter == most, int(End.MAX_ITER), int(End.HANDED_OVER))
    return np.where(pairs.gaps <= options.tol, int(End.SOLVED), stopped)


def warm_up() -> None:
    """Compile what this module runs for two and for more classes, in single and in double precision."""
    single = KernelRows(np.arange(6.0)[:, None], Kernel("rbf"))
    for rows in (single, single.in_double()):
        for starts in ([0, 3, 6], [0, 2, 4, 6]):
            solutions = ClassSolutions.empty(np.array(starts))
            solve_class_pairs(rows, np.ones(6), solutions, np.array([0]), SolverOptions(cache_size=2.0))
