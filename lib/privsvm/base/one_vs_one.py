"""Training by pairs of classes, as LIBSVM does it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from privsvm.base.parameters import DeclaredEstimator, parameter
from privsvm.constraints import ANY_NUMBER, COUNT, FLAG, POSITIVE, either, one_of, whole
from privsvm.numerics.threads import one_blas_thread, thread_pool
from privsvm.solvers.block_smo import solve_prepared
from privsvm.solvers.c_svc import CSVCSolution
from privsvm.solvers.gram_rows import PrecomputedRows
from privsvm.solvers.kernel_rows import KernelRows
from privsvm.solvers.kernels import KERNELS
from privsvm.solvers.smo import solve_smo

__all__ = ["GAMMA", "ClassPair", "KernelSVMParameters", "class_pairs", "solve_pairs"]

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
        raise ValueError(f"y has one class only (code {present[0]}); an SVM needs at least two classes")
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
    pairs: Sequence[ClassPair],
    upper: np.ndarray,
    *,
    selection: str = "block",
    n_threads: int = 1,
    kernel: str = "rbf",
    gamma: float = 1.0,
    degree: int = 3,
    coef0: float = 0.0,
    **settings: Any,
) -> Iterator[tuple[int, ClassPair, CSVCSolution]]:
    """Solve the C-SVC dual of every pair of classes that both have rows.

    Parameters
    ----------
    X : ndarray or CSR matrix (n, d) of float64
        All training rows; their kernel matrix (n, n) for the kernel "precomputed".
    pairs : sequence of ClassPair
        See `class_pairs`.
    upper : ndarray (n,)
        Upper bound C of each row's variable.
    selection : {"block", "wss1", "wss2", "wss3", "wss4"}
        Working sets of many variables, or one of LIBSVM's rules for two.
    n_threads : int
        Threads of "block".
    kernel, gamma, degree, coef0
        The kernel.
    **settings
        ``tol, shrinking, cache_size, max_iter`` of the solver.

    Yields
    ------
    (int, ClassPair, CSVCSolution)
        Index of the pair, the pair, its solution.
    """
    parameters: dict[str, Any] = {"kernel": kernel, "gamma": gamma, "degree": degree, "coef0": coef0}
    present = [(index, pair) for index, pair in enumerate(pairs) if pair.offset is None]
    if selection != "block":
        for index, pair in present:
            own = X if len(pair.rows) == len(upper) else X[pair.rows]
            yield (
                index,
                pair,
                solve_smo(own, pair.signs, upper[pair.rows], selection=selection, **parameters, **settings),
            )
        return
    with one_blas_thread(), thread_pool(n_threads) as pool:
        # Scaled, centred and converted once for all pairs.
        if kernel == "precomputed":
            rows: KernelRows = PrecomputedRows(X)
        else:
            rows = KernelRows(X, **parameters, pool=pool, n_threads=n_threads)
        for index, pair in present:
            own = rows if len(pair.rows) == rows.n_rows else rows.take(pair.rows)
            yield index, pair, solve_prepared(own, pair.signs, upper[pair.rows], **settings)
