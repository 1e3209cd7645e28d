"""Grid search of C and gamma for the Gaussian C-SVM by cross-validation accuracy, as ci-svm-2018 searches them.

All solves of one fold, class pair and gamma follow each other in ascending C. A solution times ``C'/C`` is feasible for
``C'`` and keeps its bounded variables at their bound: the next solve starts there. Where no variable is at its bound,
the solution is the one of every larger C, and nothing is left to solve. The distances between the rows of a pair serve
every gamma, and the kernel matrix of one gamma every C.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Sequence

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from privsvm.families.exact.one_vs_one import ClassPair, class_pairs
from privsvm.numerics.compiled.threads import one_blas_thread
from privsvm.numerics.rows.rows import squared_distances
from privsvm.solvers.kernel.block_smo import solve_prepared
from privsvm.solvers.kernel.c_svc import SolverOptions
from privsvm.solvers.kernel.gram_rows import PrecomputedRows
from privsvm.solvers.kernel.kernel_rows import KernelRows, kernel_expansion
from privsvm.solvers.kernel.kernels import Kernel

# The grid of ci-svm-2018: 2^-5, 2^-3, ..., 2^13 and 2^-15, 2^-13, ..., 2^3.
PAPER_CS = tuple(2.0**exponent for exponent in range(-5, 14, 2))
PAPER_GAMMAS = tuple(2.0**exponent for exponent in range(-15, 4, 2))

# Bytes for each pair of rows that a search in memory keeps: distances, and the kernel matrix in both precisions.
_BYTES = 20.0


@dataclasses.dataclass(frozen=True)
class GridSearch:
    """Result of a grid search: the point with the largest accuracy.

    Among equals it has the smallest C, then the smallest gamma. `accuracy` (len(Cs), len(gammas)) is the share of all
    rows that the models trained without their fold classify right. `n_solves` counts the dual problems that were
    solved, one for each fold, pair of classes, C and gamma that needed it; `n_skipped` the ones whose solution a
    smaller C had given already.
    """

    C: float
    gamma: float
    accuracy: np.ndarray
    n_solves: int
    n_skipped: int


@dataclasses.dataclass(frozen=True)
class SearchGrid:
    """The points of a search, in ascending order, and the options of each solve.

    The default grid is the one of ci-svm-2018, section 4. `tol` is the solver's stopping tolerance. `cache_size` is in
    megabytes of kernel values, for each thread. Pairs of classes with more training rows than have their distances and
    kernel matrix in it (3162 for 200) compute kernel values as they need them.
    """

    Cs: Sequence[float] | np.ndarray = PAPER_CS
    gammas: Sequence[float] | np.ndarray = PAPER_GAMMAS
    tol: float = 1e-3
    cache_size: float = 200


class _Fold:
    """Rows to train on, rows to classify, and the votes of the pairs for the latter."""

    def __init__(self, X_train, train_codes: np.ndarray, X_test, test_codes: np.ndarray, n_classes: int, n_points: int):
        self.X_train, self.X_test = X_train, X_test
        self.test_codes = test_codes
        self.pairs = class_pairs(train_codes, n_classes)
        self.n_classes = n_classes
        self._votes = np.zeros((n_points, self.test_codes.size, n_classes), dtype=np.int16)

    def add_votes(self, index: int, wins: np.ndarray) -> None:
        """Count where (n_points, n_test) the first class of a pair wins."""
        first, second = np.triu_indices(self.n_classes, 1)
        self._votes[..., first[index]] += wins
        self._votes[..., second[index]] += ~wins

    def n_right(self) -> np.ndarray:
        """Rows classified right at each point, (n_points,)."""
        return (self._votes.argmax(axis=2) == self.test_codes).sum(axis=1)


def search_c_and_gamma(
    X: np.ndarray, codes: np.ndarray, n_classes: int, grid: SearchGrid = SearchGrid(), *, folds: np.ndarray
) -> GridSearch:
    """Find C and gamma of the Gaussian C-SVM with the largest cross-validation accuracy.

    More than two classes are trained by pairs and decided by LIBSVM's vote, as `privsvm.SVMClassifier` does it; a class
    may have no row. `folds` (n,) has the number of the fold that each row is classified in. Raises ValueError for a
    fold without which only one class is left.
    """
    counted = [
        _count(X[folds != number], codes[folds != number], X[folds == number], codes[folds == number], n_classes, grid)
        for number in np.unique(folds)
    ]
    rights, counts = zip(*counted, strict=True)
    n_solves, n_skipped, n_stopped = np.sum(counts, axis=0).tolist()
    if n_stopped:
        warnings.warn(
            f"{n_stopped} of {n_solves} solves stopped before tol={grid.tol:g} was reached; scale the features or "
            "raise tol",
            ConvergenceWarning,
            stacklevel=2,
        )
    right = np.sum(rights, axis=0)
    best_c, best_gamma = map(int, np.unravel_index(np.argmax(right), right.shape))
    return GridSearch(
        C=float(grid.Cs[best_c]), gamma=float(grid.gammas[best_gamma]), accuracy=right / codes.size,
        n_solves=n_solves, n_skipped=n_skipped,
    )  # fmt: skip


def count_right(
    X_train: np.ndarray, train_codes: np.ndarray, X_test: np.ndarray, test_codes: np.ndarray, n_classes: int,
    grid: SearchGrid = SearchGrid(),
) -> np.ndarray:  # fmt: skip
    """Count the test rows that Gaussian C-SVMs classify right, for every C and gamma.

    For searches whose training rows are not the other folds' rows themselves, but for example their means. Raises
    ValueError for training rows of one class.
    """
    return _count(X_train, train_codes, X_test, test_codes, n_classes, grid)[0]


def _count(
    X_train: np.ndarray, train_codes: np.ndarray, X_test: np.ndarray, test_codes: np.ndarray, n_classes: int,
    grid: SearchGrid,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """Count rows that are right at each C and gamma; and the solves, those that were skipped or stopped too early."""
    shape = (len(grid.gammas), len(grid.Cs))
    fold = _Fold(X_train, train_codes, X_test, test_codes, n_classes, shape[0] * shape[1])
    with one_blas_thread():
        counts = [_search_pair(fold, index, grid) for index in range(len(fold.pairs))]
    return fold.n_right().reshape(shape).T, np.sum(counts, axis=0)


def row_distances(X: np.ndarray) -> np.ndarray:
    """Compute squared distances of rows (n, d) in float64 (n, n)."""
    # A shift leaves distances as they are, and shorter rows lose less to cancellation.
    X = X - X.mean(axis=0)
    distances = squared_distances(X, X)
    np.fill_diagonal(distances, 0.0)
    return distances


def _search_pair(fold: _Fold, index: int, grid: SearchGrid) -> tuple[int, int, int]:
    """Train one pair of classes of one fold at all points, and count its votes.

    Returns how many problems were solved, how many needed no solving, and how many solves stopped too early.
    """
    pair = fold.pairs[index]
    n_test, n_points = fold.test_codes.size, len(grid.Cs) * len(grid.gammas)
    if pair.offset is not None:
        fold.add_votes(index, np.full((n_points, n_test), pair.offset > 0))
        return 0, 0, 0
    X = fold.X_train[pair.rows]
    in_memory = _BYTES * pair.rows.size**2 <= 1e6 * grid.cache_size
    distances = row_distances(X) if in_memory else None
    wins = np.empty((len(grid.gammas), len(grid.Cs), n_test), dtype=bool)
    n_solves, n_stopped = 0, 0
    for position, gamma in enumerate(grid.gammas):
        rows: KernelRows = (
            KernelRows(X, Kernel("rbf", gamma)) if distances is None else PrecomputedRows(np.exp(-gamma * distances))
        )
        coef, rho, stopped = _path(rows, pair, grid)
        n_solves += rho.size
        n_stopped += stopped
        support = np.flatnonzero(coef.any(axis=1))
        values = kernel_expansion(fold.X_test, X[support], coef[support], Kernel("rbf", gamma)) - rho
        # A zero goes to the second class of a pair, but of two classes to the first, as in `SVMClassifier`.
        first = values >= 0 if fold.n_classes == 2 else values > 0
        # Larger values of C have the last solution.
        wins[position] = first.T[np.minimum(np.arange(len(grid.Cs)), rho.size - 1)]
    fold.add_votes(index, wins.reshape(n_points, n_test))
    return n_solves, n_points - n_solves, n_stopped


def _path(rows: KernelRows, pair: ClassPair, grid: SearchGrid) -> tuple[np.ndarray, np.ndarray, int]:
    """Solve for ascending C until the solution does not depend on it any more.

    Returns the coefficients (n_pair, k) and offsets (k,) of the first k values of C, and how many solves stopped too
    early.
    """
    coef, offsets, n_stopped, start = [], [], 0, None
    options = SolverOptions(tol=grid.tol, cache_size=grid.cache_size)
    for C, following in zip(grid.Cs, np.append(grid.Cs[1:], np.inf), strict=True):
        solution = solve_prepared(rows, pair.signs, np.full(pair.rows.size, C), options, start=start)
        coef.append(pair.signs * solution.alpha)
        offsets.append(solution.rho)
        n_stopped += not solution.converged
        if following == np.inf or (solution.converged and solution.alpha.max() < C):
            break
        start = np.where(solution.alpha < C, np.minimum(following / C * solution.alpha, following), following)
    return np.stack(coef, axis=1), np.array(offsets), n_stopped
