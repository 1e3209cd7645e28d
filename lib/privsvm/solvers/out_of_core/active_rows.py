"""Hinge problems on rows that are read block by block: rows near their margin are solved in memory, the others add up.

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

# Numbers of the rows of all problems that are held in memory, and as many rows at least.
_HELD_NUMBERS, _HELD_ROWS = 2**23, 1024
# Its gradient is this small: a share of the width, of what a row may add, or of what all rows may.
_WIDTH_SHARE, _ROW_SHARE, _ROWS_SHARE = 0.05, 1e-3, 1e-5
# Problems in memory are solved to this share of the gap.
_GAP_SHARE = 0.1
# So many passes, and then all rows are read into memory.
_PASSES = 40
# A step is halved so often at most, if more rows changed sides than were in memory.
_HALVINGS = 10
# Rows are counted whose margin is within 2^10, half of that and so on of 1.
_WIDEST, _WIDTHS = 10, 50
# Shares are summed in whole numbers of 2^-44; a larger one than 2^-8 counts as this, and there is no certificate.
_SHARE_BITS, _LARGEST_SHARE = 44, 2.0**-8
# A margin is off by less, for each unit of 1 and of the product of the weights' length and the norm.
_MARGIN_ERROR = 2.0**-50


class _Looks(NamedTuple):
    """Two points for each problem, the last one and the one that is looked at now, as whole numbers."""

    limbs: np.ndarray
    units: np.ndarray
    problems: np.ndarray
    spacing: float
    # How close to 1 margins of rows in memory are, at both points (2, k).
    close: np.ndarray
    # What margins are off by at the second point (k,).
    errors: np.ndarray
    most: int


@dataclasses.dataclass(frozen=True)
class _Held:
    """Rows close to their margin, in order: as whole numbers, with their signs. None if there are too many of them."""

    most: int
    count: int
    parts: tuple[tuple[np.ndarray, np.ndarray], ...] = ()

    def __add__(self, other: _Held) -> _Held:
        count = self.count + other.count
        return _Held(self.most, count, (*self.parts, *other.parts) if count <= self.most else ())

    def rows(self, d: int, spacing: float) -> tuple[np.ndarray, np.ndarray]:
        """Rows (m, d) and signs (m,)."""
        cells = np.concatenate([np.empty((0, d), dtype=np.int32), *(part for part, _ in self.parts)])
        signs = np.concatenate([np.empty(0, dtype=np.int8), *(part for _, part in self.parts)])
        return cells * spacing, signs.astype(np.float64)


def _look_at_block(
    rows: np.ndarray, codes: np.ndarray, looks: _Looks, first: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, tuple[_Held, ...]]:
    """Add up rows clearly below their margin (k, d), shares (k, 3) and how many are how close; and hold those.

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
        parts = (cells @ all_limbs).reshape(-1, 3, 2 * k) * looks.units
        both = np.concatenate([signs, signs], axis=1)
        missing = (1.0 - both * parts[:, 0]) - both * (parts[:, 1] + parts[:, 2])
        before, now = missing[:, :k], missing[:, k:]
        was_known = np.abs(before) > looks.close[0]
        beyond = np.where(before > 0.0, -now, now)
        own = np.where(was_known, np.maximum(beyond, 0.0), 0.0)
        shares[:, 0] += np.ceil(np.minimum(own, _LARGEST_SHARE) * 2.0**_SHARE_BITS).astype(np.int64).sum(axis=0)
        shares[:, 1] += (was_known & (beyond >= -looks.errors)).sum(axis=0)
        shares[:, 2] += (own > _LARGEST_SHARE).sum(axis=0)
        # Those held before stay so, that no two problems take turns.
        near = (np.abs(now) <= looks.close[1]) | (~was_known & np.isfinite(looks.close[0]))
        below = np.where((now > 0.0) & ~near, signs, 0.0)
        # Rows have numbers below 2^27, and a chunk has 2^10 of them.
        sums += (below.T @ cells).astype(np.int64).astype(object)
        share, exponents = np.frexp(np.abs(now))
        # How many widths hold the row.
        places = np.clip(1 + _WIDEST - exponents + (share == 0.5), 0, _WIDTHS)
        places[now == 0.0] = _WIDTHS
        for j in range(k):
            found = np.bincount(places[:, j], minlength=_WIDTHS + 1)
            counts[j] += np.cumsum(found[::-1])[::-1][1:]
            mine = np.flatnonzero(near[:, j])
            if mine.size:
                part = cells[mine].astype(np.int32), signs[mine, j].astype(np.int8)
                held[j] = held[j] + _Held(looks.most, mine.size, (part,))
    return sums, shares, counts, tuple(held)


@dataclasses.dataclass
class _Problem:
    """Where one problem is: its weights, those that were looked at before, and how close rows are that are held."""

    coef: np.ndarray
    last: np.ndarray
    close: float
    # Of rows held when these weights were found: shares that are certain, how many, and the error of their sum.
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
        # Rounding to points is exact, but for weights far smaller than the others.
        self.error += 2.0 * float(np.linalg.norm(self.coef - made))
        self.close_before = self.close

    def halve(self) -> None:
        """Go back by half of the last step, which was too far for what is known of the others: a step forward, too."""
        self.coef = rounded_points(0.5 * (self.last + self.coef)[None, :])[0]
        self.error, self.n_halved = math.inf, self.n_halved + 1


def _start(
    rows: RowsByBlock, codes: np.ndarray, k: int, C: float, most: int, norm: float, spacing: float
) -> tuple[np.ndarray, float]:
    """Weights near the optimum (k, d), and how close to 1 rows are held at first."""
    n_rows, d = rows.shape
    if n_rows <= most:
        return np.zeros((k, d)), math.inf
    # That many rows are in the quadratic part, were margins spread evenly between 0 and 1.
    width = min(1.0, most / n_rows)
    tol = max(_WIDTH_SHARE * width / norm, _ROW_SHARE * C * norm, _ROWS_SHARE * n_rows * C * norm)
    return solve_smoothed_hinge_by_block(rows, codes, C, width, tol, np.zeros((k, d)), norm, spacing), 2.0 * width


def solve_hinge_by_block(
    rows: RowsByBlock,
    codes: np.ndarray,
    n_vectors: int,
    C: float,
    gap: float,
    norm: float,
    spacing: float,
    reserve: float = 0.0,
) -> np.ndarray:
    """Solve the hinge problems of all classes until each solution is certainly near enough to its optimum.

    Parameters
    ----------
    rows : RowsByBlock (n, d)
        Whole multiples of `spacing`, a power of two, of norm at most `norm`, which is below ``2^27 spacing``.
    codes : ndarray of int (n,)
        Class codes.
    n_vectors : int
        Number of problems k: one, in which rows of class 1 have the sign 1, or one for each class.
    C, gap, reserve : float
        See `privsvm.solvers.linear.hinge.solve_hinge`.

    Returns
    -------
    ndarray (k, d)
        The same bits for any blocks and any workers.
    """
    d = rows.shape[1]
    numbers = np.array([1]) if n_vectors == 1 else np.arange(n_vectors)
    most = max(_HELD_ROWS, _HELD_NUMBERS // (d * n_vectors))
    with one_blas_thread():
        start, close = _start(rows, codes, n_vectors, C, most, norm, spacing)
        problems = [_Problem(own, own, close) for own in rounded_points(start)]
        search = _Search(rows, codes, numbers, C, gap, norm, spacing, reserve, most, problems)
        found, waiting = np.zeros((n_vectors, d)), list(range(n_vectors))
        for _ in range(_PASSES):
            solved = search.look(waiting)
            for k, solution in solved.items():
                found[k] = solution
            waiting = [k for k in waiting if k not in solved]
            if not waiting:
                return found
        for k in waiting:
            found[k] = search.in_memory(k)
    return found


@dataclasses.dataclass(frozen=True)
class _Search:
    """The problems of all classes, whose parameters are those of `solve_hinge_by_block`."""

    rows: RowsByBlock
    codes: np.ndarray
    numbers: np.ndarray
    C: float
    gap: float
    norm: float
    spacing: float
    reserve: float
    # Rows that a problem may hold.
    most: int
    problems: list[_Problem]

    def in_memory(self, k: int) -> np.ndarray:
        """Solve a problem with all rows in memory."""
        signs = np.where(self.codes == self.numbers[k], 1.0, -1.0)
        coef: np.ndarray = solve_hinge(all_rows(self.rows), signs, self.C, self.gap, reserve=self.reserve).coef
        return coef

    def look(self, waiting: list[int]) -> dict[int, np.ndarray]:
        """Look at all rows once; return the solutions that are certified, and let the other problems go on."""
        own = [self.problems[k] for k in waiting]
        points = np.stack([*(one.last for one in own), *(one.coef for one in own)])
        limbs, units = taken_apart(points, self.spacing)
        sizes = [float(np.linalg.norm(one.coef)) for one in own]
        close = np.array([[one.close_before for one in own], [one.close for one in own]])
        errors = _MARGIN_ERROR * (1.0 + np.array(sizes) * self.norm)
        looks = _Looks(limbs, units, self.numbers[waiting], self.spacing, close, errors, self.most)
        sums, shares, counts, held = self.rows.total(_look_at_block, self.codes, arguments=(looks,))
        solved = {}
        for place, (k, one) in enumerate(zip(waiting, own, strict=True)):
            share = math.ldexp(float(shares[place, 0]), -_SHARE_BITS) + 2.0 * errors[place] * float(shares[place, 1])
            total, reserve = one.shares + self.C * share, self.reserve * sizes[place]
            if not shares[place, 2] and certified(total, one.n_shares + 4, one.error, reserve, self.gap):
                solved[k] = one.coef
            elif one.n_shares < shares[place, 1] and one.n_halved < _HALVINGS:
                one.halve()
            elif not self._go_on(one, sums[place], counts[place], held[place]):
                solved[k] = self.in_memory(k)
        return solved

    def _go_on(self, one: _Problem, sums: np.ndarray, counts: np.ndarray, held: _Held) -> bool:
        """Solve the problem of the rows that are held; return whether the next look may tell more."""
        first, one.n_halved = math.isinf(one.close_before), 0
        fitting = np.flatnonzero(2 * counts <= self.most)
        closest = math.ldexp(1.0, _WIDEST - int(fitting[0])) if fitting.size else 0.0
        one.last = one.coef
        if held.count > self.most or (first and 2.0 * one.close <= closest):
            # The same point once more, with fewer rows in memory, or with as many as there is room for.
            one.error, one.close_before, was_held = math.inf, math.inf, False
        else:
            near, signs = held.rows(self.rows.shape[1], self.spacing)
            one.solve(near, signs, sums.astype(np.float64) * (self.C * self.spacing), self.C, self.gap)
            was_held = True
        if (was_held and not first and np.array_equal(one.coef, one.last)) or not fitting.size:
            return False
        one.close = math.inf if math.isinf(one.close) and was_held else closest
        return True
