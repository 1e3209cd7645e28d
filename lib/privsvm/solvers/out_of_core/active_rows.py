"""Hinge problems out of core: rows near their margin are solved in memory.

The problems are those of `privsvm.solvers.linear.hinge`, one for each class or a single one for two. At the optimum, a
row whose margin is below 1 has the dual variable C, and one whose margin is above 1 has none. So, near the optimum, all
rows are known but those whose margin is close to 1, which are few enough for memory: dual coordinate ascent solves for
their variables, the sum of the others being fixed. A pass over all rows then tells which of them the new weights have
on the other side, and the next problem in memory is that of the rows close to 1 now. It begins at the solution of a
smoothed hinge (`privsvm.solvers.out_of_core.block_hinge`), which is so narrow that about as many rows as fit are in its
quadratic part.

The certificate is that of `privsvm.solvers.linear.certificate`. The dual variables are those of the problem in memory,
and C or 0 for all others. The weights are their sum but for round-off, and the shares are those of the rows in memory
and of the rows that changed sides: by how much their margin is beyond 1. What is computed of all rows is sums of whole
numbers, from products without round-off: the same bits for any blocks and any workers.

Where this gets no nearer, or too many rows have one margin, all rows are read into memory.
"""

from __future__ import annotations

import dataclasses
import math
from typing import NamedTuple

import numpy as np

from privsvm.numerics.compiled.threads import one_blas_thread
from privsvm.numerics.rows.row_blocks import RowsByBlock
from privsvm.numerics.rows.row_grid import grid_spacing
from privsvm.solvers.linear.certificate import UNIT, certified, dot_error, row_lengths, sum_error, sums_of_rows
from privsvm.solvers.linear.hinge import ascend_hinge, solve_hinge
from privsvm.solvers.out_of_core.block_hinge import (
    CHUNK,
    all_rows,
    rounded_points,
    solve_smoothed_hinge_by_block,
    taken_apart,
)

__all__ = ["solve_hinge_by_block"]

# Memory: numbers of the rows held for all problems, and the least number of rows.
_HELD_NUMBERS, _HELD_ROWS = 2**23, 1024
# Tolerances of the initial smoothed solution, as a share of the width, of a row's largest contribution, and of that of
# all rows.
_WIDTH_SHARE, _ROW_SHARE, _ROWS_SHARE = 0.05, 1e-3, 1e-5
# Share of the gap to which problems in memory are solved.
_GAP_SHARE = 0.1
# Passes before all rows are read into memory.
_PASSES = 40
# Most halvings of a step after which more rows changed sides than were held.
_HALVINGS = 10
# Histogram of distances to the margin: 2^_WIDEST, and half of it for each further bin.
_WIDEST, _WIDTHS = 10, 50
# Fixed point: shares count in 2^-44; a share above 2^-8 counts as that, and prevents a certificate.
_SHARE_BITS, _LARGEST_SHARE = 44, 2.0**-8
# Round-off of a margin, for each unit of 1 and of the product of the weights' length and the norm.
_MARGIN_ERROR = 2.0**-50


class _Looks(NamedTuple):
    """Two points for each problem, the last and the current one, as whole numbers."""

    limbs: np.ndarray
    units: np.ndarray
    problems: np.ndarray
    spacing: float
    # Distance to the margin within which rows are held, at both points (2, k).
    close: np.ndarray
    # Round-off of margins at the second point (k,).
    errors: np.ndarray
    most: int


@dataclasses.dataclass(frozen=True)
class _Held:
    """Rows close to their margin, in order: as whole numbers, with their signs.

    None if there are too many of them.
    """

    most: int
    count: int
    blocks: tuple[tuple[np.ndarray, np.ndarray], ...] = ()

    def __add__(self, other: _Held) -> _Held:
        count = self.count + other.count
        return _Held(self.most, count, (*self.blocks, *other.blocks) if count <= self.most else ())

    def rows(self, d: int, spacing: float) -> tuple[np.ndarray, np.ndarray]:
        """Rows (m, d) and signs (m,)."""
        cells = np.concatenate([np.empty((0, d), dtype=np.int32), *(block for block, _ in self.blocks)])
        signs = np.concatenate([np.empty(0, dtype=np.int8), *(block for _, block in self.blocks)])
        return cells * spacing, signs.astype(np.float64)


def _look_at_block(
    rows: np.ndarray, codes: np.ndarray, looks: _Looks, first: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, tuple[_Held, ...]]:
    """Sum rows below their margin (k, d), shares (k, 3) and a histogram; hold rows.

    Shares are those of rows that were not close at the first point; how many have one, or may have; how many have a
    large one.
    """
    k, d = looks.problems.size, rows.shape[1]
    sums, shares = np.zeros((k, d), dtype=object), np.zeros((k, 3), dtype=np.int64)
    counts = np.zeros((k, _WIDTHS), dtype=np.int64)
    held = [_Held(looks.most, 0) for _ in range(k)]
    all_limbs = looks.limbs.reshape(-1, d).T
    for start in range(0, rows.shape[0], CHUNK):
        cells = rows[start : start + CHUNK] / looks.spacing
        signs = np.where(codes[start : start + CHUNK, None] == looks.problems, 1.0, -1.0)
        products = (cells @ all_limbs).reshape(-1, 3, 2 * k) * looks.units
        both = np.concatenate([signs, signs], axis=1)
        missing = (1.0 - both * products[:, 0]) - both * (products[:, 1] + products[:, 2])
        before, now = missing[:, :k], missing[:, k:]
        was_far = np.abs(before) > looks.close[0]
        beyond = np.where(before > 0.0, -now, now)
        shares_now = np.where(was_far, np.maximum(beyond, 0.0), 0.0)
        shares[:, 0] += np.ceil(np.minimum(shares_now, _LARGEST_SHARE) * 2.0**_SHARE_BITS).astype(np.int64).sum(axis=0)
        shares[:, 1] += (was_far & (beyond >= -looks.errors)).sum(axis=0)
        shares[:, 2] += (shares_now > _LARGEST_SHARE).sum(axis=0)
        # Rows held before stay held, so that no two sets of rows alternate.
        near = (np.abs(now) <= looks.close[1]) | (~was_far & np.isfinite(looks.close[0]))
        below = np.where((now > 0.0) & ~near, signs, 0.0)
        # Exact: numbers of a row are below 2^27, and a chunk has 2^10 rows.
        sums += (below.T @ cells).astype(np.int64).astype(object)
        share, exponents = np.frexp(np.abs(now))
        # Bin of the histogram.
        bins = np.clip(1 + _WIDEST - exponents + (share == 0.5), 0, _WIDTHS)
        bins[now == 0.0] = _WIDTHS
        for j in range(k):
            histogram = np.bincount(bins[:, j], minlength=_WIDTHS + 1)
            counts[j] += np.cumsum(histogram[::-1])[::-1][1:]
            mine = np.flatnonzero(near[:, j])
            if mine.size:
                block_rows = cells[mine].astype(np.int32), signs[mine, j].astype(np.int8)
                held[j] = held[j] + _Held(looks.most, mine.size, (block_rows,))
    return sums, shares, counts, tuple(held)


@dataclasses.dataclass
class _Problem:
    """State of one problem: weights, former weights, and the width for held rows."""

    coef: np.ndarray
    last: np.ndarray
    close: float
    # Certified shares of the rows held at these weights, their number, and the error of their sum.
    shares: float = 0.0
    n_shares: int = 0
    error: float = math.inf
    close_before: float = math.inf
    n_halved: int = 0

    def solve(self, rows: np.ndarray, signs: np.ndarray, fixed: np.ndarray, C: float, gap: float) -> None:
        """Go on to the weights of the problem in memory."""
        alpha = ascend_hinge(rows, signs, C, _GAP_SHARE * gap, fixed)
        made = fixed + sums_of_rows(rows, alpha * signs)
        self.coef = rounded_points(made[None, :])[0]
        norms = row_lengths(np.einsum("ij,ij->i", rows, rows))
        length = float(np.linalg.norm(self.coef))
        missing = 1.0 - signs * (rows @ self.coef)
        errors = dot_error(self.coef.size, length) * norms + 4.0 * UNIT * (1.0 + np.abs(missing))
        shares = (C - alpha) * np.maximum(missing + errors, 0.0) + alpha * np.maximum(errors - missing, 0.0)
        self.shares, self.n_shares = float(shares.sum()), alpha.size
        self.error = sum_error(alpha.size, float(alpha @ norms)) + 16.0 * UNIT * (
            float(np.linalg.norm(fixed)) + float(np.linalg.norm(made))
        )
        # Rounding to points is exact, except for weights far smaller than the others.
        self.error += 2.0 * float(np.linalg.norm(self.coef - made))
        self.close_before = self.close

    def halve(self) -> None:
        """Go back by half of the last step, which changed the sides of too many rows."""
        self.coef = rounded_points(0.5 * (self.last + self.coef)[None, :])[0]
        self.error, self.n_halved = math.inf, self.n_halved + 1


def _start(rows: RowsByBlock, codes: np.ndarray, k: int, C: float, most: int, norm: float) -> tuple[np.ndarray, float]:
    """Weights near the optimum (k, d), and how close to 1 rows are held at first."""
    n_rows, d = rows.shape
    if n_rows <= most:
        return np.zeros((k, d)), math.inf
    # Estimate for margins spread evenly between 0 and 1: that many rows are in the quadratic part.
    width = min(1.0, most / n_rows)
    tol = max(_WIDTH_SHARE * width / norm, _ROW_SHARE * C * norm, _ROWS_SHARE * n_rows * C * norm)
    return solve_smoothed_hinge_by_block(rows, codes, C, width, tol, np.zeros((k, d)), norm), 2.0 * width


def solve_hinge_by_block(
    rows: RowsByBlock,
    codes: np.ndarray,
    n_vectors: int,
    C: float,
    gap: float,
    norm: float,
    reserve: float = 0.0,
) -> np.ndarray:
    """Solve the hinge problems of all classes to certified distances.

    Parameters
    ----------
    rows : RowsByBlock (n, d)
        From `privsvm.numerics.rows.row_grid.grid_rows`: whole multiples of ``grid_spacing(norm)``.
    codes : ndarray of int (n,)
        Class codes.
    n_vectors : int
        Number of problems k: one, in which rows of class 1 have the sign 1, or one for each class.
    C, gap, reserve : float
        See `privsvm.solvers.linear.hinge.solve_hinge`.
    norm : float
        Public bound on the rows' norm.

    Returns
    -------
    ndarray (k, d)
        The same bits for any blocks and any workers.
    """
    d = rows.shape[1]
    numbers = np.array([1]) if n_vectors == 1 else np.arange(n_vectors)
    most = max(_HELD_ROWS, _HELD_NUMBERS // (d * n_vectors))
    with one_blas_thread():
        start, close = _start(rows, codes, n_vectors, C, most, norm)
        problems = [_Problem(point, point, close) for point in rounded_points(start)]
        search = _Search(rows, codes, numbers, C, gap, norm, grid_spacing(norm), reserve, most, problems)
        solutions, waiting = np.zeros((n_vectors, d)), list(range(n_vectors))
        for _ in range(_PASSES):
            solved = search.look(waiting)
            for k, solution in solved.items():
                solutions[k] = solution
            waiting = [k for k in waiting if k not in solved]
            if not waiting:
                return solutions
        for k in waiting:
            solutions[k] = search.in_memory(k)
    return solutions


@dataclasses.dataclass(frozen=True)
class _Search:
    """The problems of all classes; see `solve_hinge_by_block`."""

    rows: RowsByBlock
    codes: np.ndarray
    numbers: np.ndarray
    C: float
    gap: float
    norm: float
    spacing: float
    reserve: float
    # Most rows that a problem may hold.
    most: int
    problems: list[_Problem]

    def in_memory(self, k: int) -> np.ndarray:
        """Solve a problem with all rows in memory."""
        signs = np.where(self.codes == self.numbers[k], 1.0, -1.0)
        coef: np.ndarray = solve_hinge(all_rows(self.rows), signs, self.C, self.gap, reserve=self.reserve).coef
        return coef

    def look(self, waiting: list[int]) -> dict[int, np.ndarray]:
        """Look at all rows once.

        Return the solutions that are certified, and let the other problems go on.
        """
        chosen = [self.problems[k] for k in waiting]
        points = np.stack([*(one.last for one in chosen), *(one.coef for one in chosen)])
        limbs, units = taken_apart(points, self.spacing)
        sizes = [float(np.linalg.norm(one.coef)) for one in chosen]
        close = np.array([[one.close_before for one in chosen], [one.close for one in chosen]])
        errors = _MARGIN_ERROR * (1.0 + np.array(sizes) * self.norm)
        looks = _Looks(limbs, units, self.numbers[waiting], self.spacing, close, errors, self.most)
        sums, shares, counts, held = self.rows.total(_look_at_block, self.codes, arguments=(looks,))
        solved = {}
        for position, (k, one) in enumerate(zip(waiting, chosen, strict=True)):
            share = math.ldexp(float(shares[position, 0]), -_SHARE_BITS) + 2.0 * errors[position] * float(
                shares[position, 1]
            )
            total, reserve = one.shares + self.C * share, self.reserve * sizes[position]
            if not shares[position, 2] and certified(total, one.n_shares + 4, one.error, reserve, self.gap):
                solved[k] = one.coef
            elif one.n_shares < shares[position, 1] and one.n_halved < _HALVINGS:
                one.halve()
            elif not self._go_on(one, sums[position], counts[position], held[position]):
                solved[k] = self.in_memory(k)
        return solved

    def _go_on(self, one: _Problem, sums: np.ndarray, counts: np.ndarray, held: _Held) -> bool:
        """Solve the problem of the rows that are held.

        Return whether the next look may tell more.
        """
        first, one.n_halved = math.isinf(one.close_before), 0
        fitting = np.flatnonzero(2 * counts <= self.most)
        closest = math.ldexp(1.0, _WIDEST - int(fitting[0])) if fitting.size else 0.0
        one.last = one.coef
        if held.count > self.most or (first and 2.0 * one.close <= closest):
            # Look at the same point again, with fewer rows in memory, or with as many as fit.
            one.error, one.close_before, was_held = math.inf, math.inf, False
        else:
            near, signs = held.rows(self.rows.shape[1], self.spacing)
            one.solve(near, signs, sums.astype(np.float64) * (self.C * self.spacing), self.C, self.gap)
            was_held = True
        if (was_held and not first and np.array_equal(one.coef, one.last)) or not fitting.size:
            return False
        one.close = math.inf if math.isinf(one.close) and was_held else closest
        return True
