"""The C-SVC dual by LIBSVM's steps of two variables, with its selection rule or DPWSS's.

One step moves two variables to their best values with the others held. The path is LIBSVM 3.24's: float32 kernel rows
and a float64 gradient, ties that go to the last variable, clipping, the rule and the times of shrinking, the order of
the variables after it, and the stopping rule.

Sources: Fan, Chen and Lin (2005), Working set selection using second order information (WSS 2); Chang and Lin (2011),
LIBSVM, sections 4 and 5; dpwss-2021, sections 3.2 and 4 (DPWSS).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse

from privsvm.solvers.kernel.c_svc import CSVCSolution, SolverOptions, dual_objective, rho_from_gradient
from privsvm.solvers.kernel.kernels import Kernel
from privsvm.solvers.kernel.smo_steps import (
    BLOCK,
    SELECTIONS,
    Buffers,
    Cache,
    End,
    Memory,
    Numbers,
    Progress,
    Rows,
    Rule,
    State,
    Work,
    count_distinct,
    reset,
    run,
    squares_and_diagonal,
)

# Random numbers drawn in one call.
_DRAWN = 1024

# Share of nonzeros above which a dense matrix is faster.
_DENSE_SHARE = 0.3


@dataclasses.dataclass(frozen=True)
class PairSelection:
    """A rule that chooses a pair of variables (i, j); m and M are as in `c_svc`.

    Both take i of the maximal violating pair. ``wss2``, LIBSVM's rule, takes j with the largest decrease to second
    order. ``dpwss`` draws j with probability proportional to ``exp(sharpness q_j)``, where ``q_j >= sigma`` is the
    pair's share of the violation ``m - M``, among pairs of violation above the tolerance that were not chosen before.
    The solver ends where no such pair is left. A `sharpness` of 0 draws evenly; several runs may have one value each.

    Shrinking changes the positions of variables, and pairs are remembered by position: a change to LIBSVM made in the
    plainest way does so, and it takes 0.98 of the steps that the paper prints for ``shrinking=1`` and sigma 0.1
    (geometric mean of ten sets), a memory by row 0.91. Without shrinking the two are the same.
    """

    name: str = "wss2"
    sigma: float = 0.5
    sharpness: float | Sequence[float] = 1.0


def _prepare_rows(X, kernel: Kernel) -> tuple[Rows, np.ndarray]:
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
        # Specialisation: one layout, and never read-only.
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
        moved=np.zeros(1, dtype=np.bool_),
        one_row=np.zeros(d),
        features=np.empty(d, dtype=np.int64),
        products=np.empty(n),
        kernel=kernel.kind,
        gamma=float(kernel.gamma),
        degree=int(kernel.degree),
        coef0=float(kernel.coef0),
    )
    diagonal = np.empty(n)
    squares_and_diagonal(rows, diagonal)
    return rows, diagonal


class UniformStreams:
    """Uniform random numbers of R runs, drawn ahead.

    A run that draws nothing has None for a generator. Runs may share one: they draw from it one after the other.
    `of_run` numbers the generator of each.
    """

    def __init__(self, rngs: Sequence[np.random.Generator | None]) -> None:
        numbers = {id(rng): number for number, rng in enumerate({id(rng): rng for rng in rngs}.values())}
        self.of_run = np.array([numbers[id(rng)] for rng in rngs], dtype=np.int64)
        self._generators = {numbers[id(rng)]: rng for rng in rngs if rng is not None}
        # Every number counts as used: `refill` draws the first ones.
        self.numbers = Numbers(np.empty((len(numbers), _DRAWN)), np.full(len(numbers), _DRAWN, dtype=np.int64))
        self._states: dict[int, Mapping[str, Any]] = {}

    def refill(self, number: int) -> None:
        """Draw new numbers from one generator, whose last ones have all been used."""
        generator = self._generators[number]
        self._states[number] = generator.bit_generator.state
        generator.random(out=self.numbers.values[number])
        self.numbers.used[number] = 0

    def give_back(self) -> None:
        """Rewind the generators, as if only used numbers had been drawn."""
        for number, state in self._states.items():
            self._generators[number].bit_generator.state = state
            self._generators[number].random(int(self.numbers.used[number]))
        self._states.clear()
        self.numbers.used[:] = _DRAWN


def solve_smo(
    X,
    y: np.ndarray,
    upper: np.ndarray,
    kernel: Kernel = Kernel(),
    options: SolverOptions = SolverOptions(),
    selection: PairSelection = PairSelection(),
    rng: np.random.Generator | None = None,
) -> CSVCSolution:
    """Solve the C-SVC dual of rows X (n, d) with labels +1 and -1, and bounds C of the variables (n,).

    Dense and sparse rows give the same bits. Without a limit on pairs, LIBSVM's applies, ``max(10^7, 100 n)``; the
    cache has room for two kernel rows at least. LIBSVM sorts rows by class before it trains, label +1 first: ties are
    decided by position, so the same number of steps takes the same order of rows. ``dpwss`` draws from `rng`.
    """
    streams = UniformStreams([rng])
    solution = solve_smo_runs(X, y, upper, kernel, options, selection, streams)[0]
    streams.give_back()
    return solution


def solve_smo_runs(
    X,
    y: np.ndarray,
    upper: np.ndarray,
    kernel: Kernel,
    options: SolverOptions,
    selection: PairSelection,
    streams: UniformStreams,
) -> list[CSVCSolution]:
    """Solve one problem once for each stream, with the bits of as many calls of `solve_smo`; runs share kernel rows."""
    draws = selection.name == "dpwss"
    n, n_runs = X.shape[0], streams.of_run.size
    y = np.array(y, dtype=np.float64)
    upper = np.array(upper, dtype=np.float64)
    rows, diagonal = _prepare_rows(X, kernel)
    # Overflow: kernel rows are float32, as in LIBSVM.
    if not (np.isfinite(diagonal.astype(np.float32)).all() and np.isfinite(upper).all()):
        raise ValueError("kernel values overflow: scale the features, or choose a smaller C, gamma, degree or coef0")
    n_slots = int(min(max(options.cache_size * 2**20 // (4 * n), 2), n))
    cache = Cache(
        rows=np.empty((n_slots, n), dtype=np.float32),
        owner=np.full(n_slots, -1, dtype=np.int64),
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
    limit = max(10_000_000, 100 * n) if options.max_iter < 0 else options.max_iter
    number = SELECTIONS.index(selection.name)
    rule = Rule(number, float(options.tol), float(selection.sigma), 0.0, bool(options.shrinking), int(limit))
    n_remembered = n if draws else 0
    memory = Memory(
        head=np.full(n_remembered, -1, dtype=np.int64),
        used=np.zeros(n_remembered, dtype=np.int64),
        stamp=np.zeros(1, dtype=np.int64),
        candidates=np.empty(n_remembered, dtype=np.int64),
        weights=np.empty(n_remembered),
    )
    buffers = Buffers(np.empty(n, dtype=np.float32), np.empty(n, dtype=np.float32))
    pairs = np.empty((1024 if draws else 0, 4), dtype=np.int64)
    work = Work(state, rows, cache, memory, buffers)
    solutions = []
    for stream, sharpness in zip(streams.of_run.tolist(), np.broadcast_to(selection.sharpness, n_runs), strict=True):
        reset(y, upper, diagonal, work)
        progress, own_rule = (
            Progress(n, 0, min(n, 1000) + 1, False, False, 0.0, 0.0),
            rule._replace(sharpness=float(sharpness)),
        )
        while True:
            progress, ended, pairs = run(progress, work, own_rule, pairs, streams.numbers, stream)
            if ended != End.NO_NUMBERS:
                break
            streams.refill(stream)
        alpha, F = np.empty(n), np.empty(n)
        alpha[rows.order], F[rows.order] = state.alpha, state.F
        gradient = -y * F
        solutions.append(
            CSVCSolution(
                alpha=alpha,
                rho=rho_from_gradient(alpha, gradient, y, upper),
                gradient=gradient,
                objective=dual_objective(alpha, gradient),
                n_iter=int(progress.iteration),
                converged=bool(ended == End.OPTIMAL),
                n_selected=int(count_distinct(progress.iteration, memory, pairs)) if draws else None,
            )
        )
    return solutions


def warm_up() -> None:
    """Compile the solver."""
    X = np.array([[0.0], [1.0], [2.0], [3.0]])
    y = np.array([-1.0, 1.0, -1.0, 1.0])
    solve_smo(X, y, np.ones(4), Kernel("linear"))
