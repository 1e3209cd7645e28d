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
import scipy.sparse
from sklearn.exceptions import ConvergenceWarning

from privsvm.constraints import POSITIVE
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
    """The points of a search, in any order, and the options of each solve.

    The default grid is the one of ci-svm-2018, section 4. `tol` is the solver's stopping tolerance. `cache_size` is in
    megabytes of kernel values, for each thread. Pairs of classes with more training rows than have their distances and
    kernel matrix in it (3162 for 200) compute kernel values as they need them.
    """

    Cs: Sequence[float] | np.ndarray = PAPER_CS
    gammas: Sequence[float] | np.ndarray = PAPER_GAMMAS
    tol: float = 1e-3
    cache_size: float = 200

    def check(self) -> SearchGrid:
        """Return the grid as arrays, C in ascending order; raise ValueError where a number is out of range."""
        if len(self.Cs) == 0 or len(self.gammas) == 0:
            raise ValueError(
                f"grid of {len(self.Cs)} values of C and {len(self.gammas)} of gamma: give at least one of each"
            )
        return SearchGrid(
            np.sort([float(POSITIVE.check("Cs", C)) for C in self.Cs]),
            np.array([float(POSITIVE.check("gammas", gamma)) for gamma in self.gammas]),
            float(POSITIVE.check("tol", self.tol)),
            float(POSITIVE.check("cache_size", self.cache_size)),
        )


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
    X,
    codes: np.ndarray,
    n_classes: int,
    grid: SearchGrid = SearchGrid(),
    *,
    folds: np.ndarray,
) -> GridSearch:
    """Find C and gamma of the Gaussian C-SVM with the largest cross-validation accuracy.

    More than two classes are trained by pairs and decided by LIBSVM's vote, as `privsvm.SVMClassifier` does it; a class
    may have no row. `folds` (n,) has the number of the fold that each row is classified in, at least two distinct ones.
    Raises ValueError for a parameter out of range, arrays that do not fit each other, or a fold without which only one
    class is left.
    """
    settings = grid.check()
    shape = (len(settings.gammas), len(settings.Cs))
    X, codes, folds = _check_arrays(X, codes, n_classes, folds)
    searches = []
    for number in np.unique(folds):
        test = folds == number
        try:
            searches.append(_Fold(X[~test], codes[~test], X[test], codes[test], n_classes, shape[0] * shape[1]))
        except ValueError as error:
            raise ValueError(f"folds: without fold {number}, {error}") from None
    with one_blas_thread():
        counts = [_search_pair(fold, index, settings) for fold in searches for index in range(len(fold.pairs))]
    n_solves, n_skipped, n_stopped = map(sum, zip(*counts, strict=True))
    if n_stopped:
        warnings.warn(
            f"{n_stopped} of {n_solves} solves stopped before tol={grid.tol:g} was reached; scale the features or "
            "raise tol",
            ConvergenceWarning,
            stacklevel=2,
        )
    right = np.sum([fold.n_right() for fold in searches], axis=0).reshape(shape).T
    Cs, gammas = np.asarray(settings.Cs), np.asarray(settings.gammas)
    ascending = np.argsort(gammas, kind="stable")
    best_c, best_gamma = np.unravel_index(np.argmax(right[:, ascending]), right.shape)
    return GridSearch(
        C=float(Cs[best_c]),
        gamma=float(gammas[ascending[best_gamma]]),
        accuracy=right[np.argsort(np.argsort(grid.Cs, kind="stable"))] / codes.size,
        n_solves=n_solves,
        n_skipped=n_skipped,
    )


def count_right(
    X_train,
    train_codes: np.ndarray,
    X_test,
    test_codes: np.ndarray,
    n_classes: int,
    grid: SearchGrid = SearchGrid(),
) -> np.ndarray:
    """Count the test rows that Gaussian C-SVMs classify right, for every C and gamma.

    For searches whose training rows are not the other folds' rows themselves, but for example their means. Returns
    counts for each of `Cs` and `gammas`. Raises ValueError for a parameter out of range, or training rows of one class.
    """
    settings = grid.check()
    shape = (len(settings.gammas), len(settings.Cs))
    fold = _Fold(X_train, train_codes, X_test, test_codes, n_classes, shape[0] * shape[1])
    for index in range(len(fold.pairs)):
        _search_pair(fold, index, settings)
    return fold.n_right().reshape(shape).T[np.argsort(np.argsort(grid.Cs, kind="stable"))]


def row_distances(X) -> np.ndarray:
    """Compute squared distances of rows, an array or CSR matrix (n, d), in float64 (n, n)."""
    if not hasattr(X, "toarray"):
        # A shift leaves distances as they are, and shorter rows lose less to cancellation.
        X = X - X.mean(axis=0)
    distances = squared_distances(X, X)
    np.fill_diagonal(distances, 0.0)
    return distances


def _check_arrays(X, codes, n_classes: int, folds) -> tuple:
    """Return rows, codes and folds as arrays that fit each other; raise ValueError where they do not."""
    X = scipy.sparse.csr_array(X, dtype=np.float64) if scipy.sparse.issparse(X) else np.asarray(X, dtype=np.float64)
    codes, folds = np.asarray(codes), np.asarray(folds)
    for name, array in (("codes", codes), ("folds", folds)):
        if array.shape != (X.shape[0],) or array.dtype.kind not in "iu":
            raise ValueError(f"{name} of type {array.dtype} and shape {array.shape}: must be integers ({X.shape[0]},)")
    if codes.size and not (codes.min() >= 0 and codes.max() < n_classes):
        raise ValueError(f"codes {codes.min()}..{codes.max()}: must lie between 0 and n_classes - 1 = {n_classes - 1}")
    if not np.isfinite(X.data if scipy.sparse.issparse(X) else X).all():
        raise ValueError("X has values that are not finite: remove or replace them")
    if np.unique(folds).size < 2:
        raise ValueError("folds has fewer than two distinct numbers: cross-validation needs at least two")
    return X, codes, folds


def _search_pair(fold: _Fold, index: int, settings: SearchGrid) -> tuple[int, int, int]:
    """Train one pair of classes of one fold at all points, and count its votes.

    Returns how many problems were solved, how many needed no solving, and how many solves stopped too early.
    """
    pair = fold.pairs[index]
    n_test, n_points = fold.test_codes.size, len(settings.Cs) * len(settings.gammas)
    if pair.offset is not None:
        fold.add_votes(index, np.full((n_points, n_test), pair.offset > 0))
        return 0, 0, 0
    X = fold.X_train[pair.rows]
    in_memory = _BYTES * pair.rows.size**2 <= 1e6 * settings.cache_size
    distances = row_distances(X) if in_memory else None
    wins = np.empty((len(settings.gammas), len(settings.Cs), n_test), dtype=bool)
    n_solves, n_stopped = 0, 0
    for position, gamma in enumerate(settings.gammas):
        rows: KernelRows = (
            KernelRows(X, Kernel("rbf", gamma)) if distances is None else PrecomputedRows(np.exp(-gamma * distances))
        )
        coef, rho, stopped = _path(rows, pair, settings)
        n_solves += rho.size
        n_stopped += stopped
        support = np.flatnonzero(coef.any(axis=1))
        vectors = X[support].toarray() if scipy.sparse.issparse(X) else X[support]
        values = kernel_expansion(fold.X_test, vectors, coef[support], Kernel("rbf", gamma)) - rho
        # A zero goes to the second class of a pair, but of two classes to the first, as in `SVMClassifier`.
        first = values >= 0 if fold.n_classes == 2 else values > 0
        # Larger values of C have the last solution.
        wins[position] = first.T[np.minimum(np.arange(len(settings.Cs)), rho.size - 1)]
    fold.add_votes(index, wins.reshape(n_points, n_test))
    return n_solves, n_points - n_solves, n_stopped


def _path(rows: KernelRows, pair: ClassPair, settings: SearchGrid) -> tuple[np.ndarray, np.ndarray, int]:
    """Solve for ascending C until the solution does not depend on it any more.

    Returns the coefficients (n_pair, k) and offsets (k,) of the first k values of C, and how many solves stopped too
    early.
    """
    coef, offsets, n_stopped, start = [], [], 0, None
    options = SolverOptions(tol=settings.tol, cache_size=settings.cache_size)
    for C, following in zip(settings.Cs, np.append(settings.Cs[1:], np.inf), strict=True):
        solution = solve_prepared(rows, pair.signs, np.full(pair.rows.size, C), options, start=start)
        coef.append(pair.signs * solution.alpha)
        offsets.append(solution.rho)
        n_stopped += not solution.converged
        if following == np.inf or (solution.converged and solution.alpha.max() < C):
            break
        start = np.where(solution.alpha < C, np.minimum(following / C * solution.alpha, following), following)
    return np.stack(coef, axis=1), np.array(offsets), n_stopped
