"""The C-SVC dual by sequential minimal optimisation: LIBSVM's method, step by step, with other rules to choose a pair.

One step moves two variables to their best values with the others held. What LIBSVM 3.24 does is kept in all that
changes the path: float32 kernel rows and a float64 gradient, ties that go to the last variable, clipping, the rule and
the times of shrinking, the order of the variables after it, and the stopping rule.

Sources: Fan, Chen and Lin (2005), Working set selection using second order information (WSS 1-3); Chang and Lin (2011),
LIBSVM, sections 4 and 5; dpwss-2021, sections 3.2 and 4 (WSS 4, DPWSS).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse

from privsvm.errors import nearest_name
from privsvm.solvers.kernel.c_svc import CSVCSolution, dual_objective, rho_from_gradient
from privsvm.solvers.kernel.kernels import KERNELS
from privsvm.solvers.kernel.smo_steps import (
    BLOCK,
    SELECTIONS,
    Buffers,
    Cache,
    Memory,
    Numbers,
    Progress,
    Rows,
    Rule,
    Runs,
    Start,
    State,
    run_all,
    squares_and_diagonal,
)

__all__ = ["SELECTIONS", "UniformStreams", "solve_smo", "solve_smo_runs"]

# Random numbers that are drawn together.
_DRAWN = 1024

# Rows with more stored values than this share are faster as a dense matrix.
_DENSE_SHARE = 0.3


def _prepare_rows(X, kernel: str, gamma: float, degree: int, coef0: float) -> tuple[Rows, np.ndarray]:
    """Lay the rows out for the compiled loops; return them with the diagonal of the kernel matrix."""
    n, d = X.shape
    sparse = bool(scipy.sparse.issparse(X)) and X.nnz < _DENSE_SHARE * n * d
    if sparse:
        stored = scipy.sparse.csr_array(X, dtype=np.float64, copy=True)
        stored.sum_duplicates()
        columns = np.empty((0, 0))
        data, indices, indptr = stored.data, stored.indices.astype(np.int32), stored.indptr.astype(np.int64)
    else:
        dense = X.toarray() if scipy.sparse.issparse(X) else X
        # A copy of its own: shrinking changes the order.
        columns = np.array(np.asarray(dense, dtype=np.float64).T, order="C", copy=True)
        data, indices, indptr = np.empty(0), np.empty(0, dtype=np.int32), np.zeros(1, dtype=np.int64)
    rows = Rows(
        sparse=sparse,
        columns=columns,
        data=data,
        indices=indices,
        indptr=indptr,
        squares=np.empty(n),
        order=np.arange(n),
        one_row=np.zeros(d),
        places=np.empty(d, dtype=np.int64),
        products=np.empty(n),
        kernel=KERNELS.index(kernel),
        gamma=float(gamma),
        degree=int(degree),
        coef0=float(coef0),
    )
    diagonal = np.empty(n)
    squares_and_diagonal(rows, diagonal)
    return rows, diagonal


class UniformStreams:
    """Uniform random numbers of several runs, drawn ahead.

    Parameters
    ----------
    rngs : sequence of numpy.random.Generator or None (R)
        What each run draws from; None for runs that draw nothing. Runs may share a generator: they draw from it one
        after the other.

    Attributes
    ----------
    complete : bool
        Whether every run has a generator.
    of_run : ndarray of int (R,)
        Which generator a run has.
    """

    def __init__(self, rngs: Sequence[np.random.Generator | None]) -> None:
        self.complete = all(rng is not None for rng in rngs)
        places = {id(rng): place for place, rng in enumerate({id(rng): rng for rng in rngs}.values())}
        self.of_run = np.array([places[id(rng)] for rng in rngs], dtype=np.int64)
        self._generators = {places[id(rng)]: rng for rng in rngs if rng is not None}
        # All of them have been used.
        self.numbers = Numbers(np.empty((len(places), _DRAWN)), np.full(len(places), _DRAWN, dtype=np.int64))
        self._states: dict[int, Mapping[str, Any]] = {}

    def refill(self, place: int) -> None:
        """Draw numbers in place of those of one generator, which have all been used."""
        generator = self._generators[place]
        self._states[place] = generator.bit_generator.state
        generator.random(out=self.numbers.values[place])
        self.numbers.used[place] = 0

    def give_back(self) -> None:
        """Leave the generators as if only the numbers that have been used had been drawn."""
        for place, state in self._states.items():
            self._generators[place].bit_generator.state = state
            self._generators[place].random(int(self.numbers.used[place]))
        self._states.clear()
        self.numbers.used[:] = _DRAWN


def solve_smo(
    X,
    y: np.ndarray,
    upper: np.ndarray,
    *,
    kernel: str = "rbf",
    gamma: float = 1.0,
    degree: int = 3,
    coef0: float = 0.0,
    tol: float = 1e-3,
    selection: str = "wss2",
    shrinking: bool = True,
    cache_size: float = 200.0,
    max_iter: int = -1,
    sigma: float = 0.5,
    sharpness: float = 1.0,
    rng: np.random.Generator | None = None,
) -> CSVCSolution:
    """Solve the C-SVC dual.

    Parameters
    ----------
    X : ndarray or CSR matrix (n, d)
        Rows; dense and sparse give the same bits.
    y : ndarray (n,)
        +1 or -1; both must occur.
    upper : ndarray (n,)
        Upper bounds of the dual variables, C for each row.
    kernel, gamma, degree, coef0
        See `privsvm.solvers.kernel.kernels.kernel_matrix`; `gamma` is a number.
    tol : float, default=1e-3
        Stop where the largest violation of optimality is below it.
    selection : {"wss1", "wss2", "wss3", "wss4", "dpwss"}, default="wss2"
        How a pair (i, j) is chosen, with m and M as in `privsvm.solvers.kernel.c_svc`:

        - ``wss1``: the maximal violating pair.
        - ``wss2``: i of the maximal violating pair, j with the largest decrease to second order; LIBSVM's rule.
        - ``wss3``: a constant-factor violating pair, of violation at least ``sigma (m - M)``. Of those, the one with
          j of the maximal violating pair and i with the largest decrease to second order.
        - ``wss4``: the same with the roles changed: i of the maximal violating pair.
        - ``dpwss``: i of the maximal violating pair, j drawn with probability proportional to
          ``exp(sharpness q_j)``, where ``q_j >= sigma`` is the pair's share of the violation ``m - M``, among pairs of
          violation above `tol` that were not chosen before. Ends where no such pair is left. Shrinking changes the
          places of variables, and pairs are remembered by place: a change to LIBSVM made in the plainest way does so,
          and it takes 0.98 of the steps that the paper prints for ``shrinking=1`` and sigma 0.1 (geometric mean of ten
          sets), a memory by row 0.91. Without shrinking the two are the same.
    shrinking : bool, default=True
        Whether to set variables aside that look settled at a bound.
    cache_size : float, default=200
        Memory for kernel rows in MB; at least two rows are kept.
    max_iter : int, default=-1
        Most steps; -1 means LIBSVM's limit, ``max(10^7, 100 n)``.
    sigma : float, default=0.5
        The constant factor of ``wss3``, ``wss4`` and ``dpwss``.
    sharpness : float, default=1.0
        Of ``dpwss``: 0 draws evenly.
    rng : numpy.random.Generator or None
        What ``dpwss`` draws from.

    Returns
    -------
    CSVCSolution

    Raises
    ------
    ValueError
        For an unknown kernel or selection, labels of one sign, or ``dpwss`` without `rng`.

    Notes
    -----
    LIBSVM sorts rows by class before it trains, those of label +1 first. Ties are decided by position, so the same
    number of steps takes the same order of rows.
    """
    streams = UniformStreams([rng])
    solution = solve_smo_runs(
        X,
        y,
        upper,
        kernel=kernel,
        gamma=gamma,
        degree=degree,
        coef0=coef0,
        tol=tol,
        selection=selection,
        shrinking=shrinking,
        cache_size=cache_size,
        max_iter=max_iter,
        sigma=sigma,
        sharpness=[sharpness],
        streams=streams,
    )[0]
    streams.give_back()
    return solution


def solve_smo_runs(
    X,
    y: np.ndarray,
    upper: np.ndarray,
    *,
    kernel: str = "rbf",
    gamma: float = 1.0,
    degree: int = 3,
    coef0: float = 0.0,
    tol: float = 1e-3,
    selection: str = "wss2",
    shrinking: bool = True,
    cache_size: float = 200.0,
    max_iter: int = -1,
    sigma: float = 0.5,
    sharpness: Sequence[float],
    streams: UniformStreams,
) -> list[CSVCSolution]:
    """Solve one problem several times, which shares kernel rows and the cost of a call.

    Parameters
    ----------
    X, y, upper, kernel, gamma, degree, coef0, tol, selection, shrinking, cache_size, max_iter, sigma
        As in `solve_smo`.
    sharpness : sequence of float (R)
        Of each run.
    streams : UniformStreams
        What each run draws from.

    Returns
    -------
    list of CSVCSolution (R)
        The bits of R calls of `solve_smo`.

    Raises
    ------
    ValueError
        As `solve_smo`.
    """
    if kernel not in KERNELS:
        raise ValueError(f"kernel={kernel!r}: {nearest_name(kernel, KERNELS)}")
    if selection not in SELECTIONS:
        raise ValueError(f"selection={selection!r}: {nearest_name(selection, SELECTIONS)}")
    draws = selection == "dpwss"
    if draws and not streams.complete:
        raise ValueError("rng=None: selection='dpwss' draws; give a generator")
    n, n_runs = X.shape[0], len(sharpness)
    y = np.array(y, dtype=np.float64)
    upper = np.array(upper, dtype=np.float64)
    if not (np.any(y > 0) and np.any(y < 0)):
        raise ValueError("y has labels of one sign only; both +1 and -1 must occur")
    rows, diagonal = _prepare_rows(X, kernel, gamma, degree, coef0)
    if not (np.isfinite(diagonal.astype(np.float32)).all() and np.isfinite(upper).all()):
        # Kernel rows are kept in float32, as LIBSVM keeps them.
        raise ValueError("kernel values overflow: scale the features, or choose a smaller C, gamma, degree or coef0")
    n_slots = int(min(max(cache_size * 2**20 // (4 * n), 2), n))
    cache = Cache(
        rows=np.empty((n_slots, n), dtype=np.float32),
        owner=np.full(n_slots, -1, dtype=np.int64),
        length=np.zeros(n_slots, dtype=np.int64),
        last_use=np.zeros(n_slots, dtype=np.int64),
        slot=np.full(n, -1, dtype=np.int64),
        clock=np.zeros(1, dtype=np.int64),
    )
    n_blocks = -(-n // BLOCK)
    state = State(
        y=np.empty(n),
        alpha=np.empty(n),
        upper=np.empty(n),
        F=np.empty(n),
        F_bounded=np.empty(n),
        diagonal=np.empty(n),
        up=np.empty(n),
        low=np.empty(n),
        block_max=np.empty(n_blocks),
        block_min=np.empty(n_blocks),
        above=np.empty(BLOCK),
        below=np.empty(BLOCK),
    )
    limit = max(10_000_000, 100 * n) if max_iter < 0 else max_iter
    rule = Rule(SELECTIONS.index(selection), float(tol), float(sigma), 0.0, bool(shrinking))
    n_remembered = n if draws else 0
    memory = Memory(
        head=np.full(n_remembered, -1, dtype=np.int64),
        used=np.zeros(n_remembered, dtype=np.int64),
        stamp=np.zeros(1, dtype=np.int64),
        candidates=np.empty(n_remembered, dtype=np.int64),
        weights=np.empty(n_remembered),
    )
    buffers = Buffers(np.empty(n, dtype=np.int64), np.empty(n, dtype=np.float32), np.empty(n))
    pairs = np.empty((1024 if draws else 0, 4), dtype=np.int64)
    runs = Runs(
        sharpness=np.array(sharpness, dtype=np.float64),
        stream=streams.of_run,
        alpha=np.empty((n_runs, n)),
        F=np.empty((n_runs, n)),
        n_iter=np.empty(n_runs, dtype=np.int64),
        ended=np.empty(n_runs, dtype=np.int64),
        n_selected=np.empty(n_runs, dtype=np.int64),
    )
    start = Start(y, upper, rows.squares.copy(), diagonal)
    run, progress = 0, Progress(-1, 0, 0, False, False, 0.0, 0.0)
    while True:
        run, progress, pairs = run_all(
            run, progress, start, runs, state, rows, cache, rule, memory, buffers, pairs, int(limit), streams.numbers
        )
        if run == n_runs:
            break
        streams.refill(int(streams.of_run[run]))
    gradients = -y * runs.F
    return [
        CSVCSolution(
            alpha=alpha,
            rho=rho_from_gradient(alpha, gradient, y, upper),
            gradient=gradient,
            objective=dual_objective(alpha, gradient),
            n_iter=int(n_iter),
            converged=bool(ended == 0),
            n_selected=int(n_selected) if draws else None,
        )
        for alpha, gradient, n_iter, ended, n_selected in zip(
            runs.alpha, gradients, runs.n_iter, runs.ended, runs.n_selected, strict=True
        )
    ]


def warm_up() -> None:
    """Compile the solver."""
    X = np.array([[0.0], [1.0], [2.0], [3.0]])
    y = np.array([-1.0, 1.0, -1.0, 1.0])
    solve_smo(X, y, np.ones(4), kernel="linear")
