"""The C-SVC duals of pairs of classes by a linear interior-point method.

A step costs as much as a weighted sum of all ``x x'``, independently of C and of collinear features, and some ten to
thirty steps reach the optimum, where pairs of variables may need millions. The final point is exact: variables move to
the bounds that they approach, a crossover to a vertex bounds those whose rows depend on others, and the violation of
optimality is computed anew. A pair that does not converge is handed over to the other solvers.

With the rows ``y_i (x_i, 1)`` of a matrix A, the problem is ``min 1/2 ||w||^2 + u's`` subject to
``A (w, b) - z + s = 1`` and ``z, s >= 0``; the dual variables a are those of `privsvm.solvers.kernel.c_svc`. Sources:
Mehrotra (1992) for the predictor and corrector; Ferris and Munson (2002) for the small matrix in place of the kernel's;
Megiddo (1991) for the way to a vertex (`privsvm.solvers.kernel.vertex_crossover`).
"""

from __future__ import annotations

import dataclasses
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from privsvm.numerics.compiled.jit import jit, jit_step
from privsvm.numerics.compiled.threads import share_out, threads_worth
from privsvm.numerics.compiled.vector_math import FAST_MATH, maximum
from privsvm.numerics.noise.streams import seeded_stream
from privsvm.solvers.kernel.pair_smo import ClassSolutions, classes_of_pairs
from privsvm.solvers.kernel.vertex_crossover import subtract, to_vertex

__all__ = ["solve_linear_pairs", "usual_operations"]

# Constant           unit        value and reason
# _MOST_STEPS        steps       until a pair is handed over to the other solvers; _LEAST_STEP is the shortest one.
# _STEP              share       of the way to the nearest bound that a step goes.
# _END               share       of the mean bound times the squared tolerance: complementarity at which the final point
#                                is tried, once margins are within _MARGIN_SHARE of the tolerance.
# _SMALL_PIVOT       share       of a diagonal entry below which a pivot is round-off: its variable then stays, since
#                                _NO_STEP replaces the pivot.
# _BLOCK, _TILE      columns     whose products are summed together, by fours.
# _TYPICAL_STEPS     steps       of a solution; _ROW_COST operations per row in each, besides those of its features;
#                                _OPERATION_SECONDS per operation; measured.
# _DISTINCT_SHARE    share       of distinct rows above which equal ones are not merged.
# _ROUNDING          share       of a sum of bounds: its round-off.
# _FEW_FEATURES      features    up to which sparse rows are made dense; of more, above _DENSE_SHARE of nonzeros.
_MOST_STEPS, _LEAST_STEP = 80, 1e-7
_STEP = 0.995
_END, _MARGIN_SHARE = 0.1, 0.1
_SMALL_PIVOT, _NO_STEP = 1e-14, 1e64
_BLOCK, _TILE = 256, 4
_TYPICAL_STEPS, _ROW_COST, _OPERATION_SECONDS = 15.0, 60.0, 4e-10
_DISTINCT_SHARE, _ROUNDING = 0.8, 1e-12
_FEW_FEATURES, _DENSE_SHARE = 16, 0.3


class _Rows(NamedTuple):
    """Rows sorted by class: dense ones by columns (d, n), or CSR arrays."""

    sparse: bool
    n_features: int
    columns: np.ndarray
    data: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray


class _Pairs(NamedTuple):
    """Rows of the classes, bounds, and results by pair."""

    # Row where each class starts, and the two classes of each pair.
    starts: np.ndarray
    first: np.ndarray
    second: np.ndarray
    upper: np.ndarray
    # Variables in scikit-learn's layout (c - 1, n).
    layout: np.ndarray
    rho: np.ndarray
    objective: np.ndarray
    n_iter: np.ndarray
    solved: np.ndarray


class _Signed(NamedTuple):
    """The matrix A of one pair: columns padded to a multiple of four, or CSR arrays."""

    sparse: bool
    columns: np.ndarray
    data: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray


class _Point(NamedTuple):
    """Variables of one pair, and their changes in a step; all are arrays (n,)."""

    alpha: np.ndarray
    # Distance to the upper bound.
    room: np.ndarray
    surplus: np.ndarray
    slack: np.ndarray
    # A (w, b), and its change in a step.
    margins: np.ndarray
    change: np.ndarray
    theta: np.ndarray
    target: np.ndarray
    # Changes of the predictor, and those of the corrected step.
    predicted: np.ndarray
    d_alpha: np.ndarray
    d_surplus: np.ndarray
    d_slack: np.ndarray
    sums: np.ndarray
    upper: np.ndarray
    signs: np.ndarray


class _Small(NamedTuple):
    """Memory of one thread whose size depends on the number of features only."""

    weighted: np.ndarray
    gram: np.ndarray
    weights: np.ndarray
    step: np.ndarray
    side: np.ndarray
    mean: np.ndarray
    # The inverse of the basis, its rows and features, and the factors of a row.
    inverse: np.ndarray
    basis: np.ndarray
    pivots: np.ndarray
    factors: np.ndarray
    row: np.ndarray


@jit_step(fastmath=FAST_MATH)
def _add_four(out, one, two, three, four, a, b, c, d):
    for t in range(out.shape[0]):
        out[t] += (a * one[t] + b * two[t]) + (c * three[t] + d * four[t])


@jit_step(fastmath=FAST_MATH)
def _dot_four(one, two, three, four, values):
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    for t in range(values.shape[0]):
        value = values[t]
        a += one[t] * value
        b += two[t] * value
        c += three[t] * value
        d += four[t] * value
    return a, b, c, d


@jit_step(fastmath=FAST_MATH)
def _dot(one, two):
    total = 0.0
    for t in range(one.shape[0]):
        total += one[t] * two[t]
    return total


@jit_step()
def _times(A, weights, out):
    """Write ``A weights`` into `out`."""
    out[:] = 0.0
    n = out.shape[0]
    if A.sparse:
        for t in range(n):
            total = 0.0
            for e in range(A.indptr[t], A.indptr[t + 1]):
                total += A.data[e] * weights[A.indices[e]]
            out[t] = total
        return
    columns = A.columns
    for start in range(0, n, _BLOCK):
        stop = min(start + _BLOCK, n)
        block = out[start:stop]
        for k in range(0, columns.shape[0], 4):
            _add_four(
                block, columns[k, start:stop], columns[k + 1, start:stop], columns[k + 2, start:stop],
                columns[k + 3, start:stop], weights[k], weights[k + 1], weights[k + 2], weights[k + 3],
            )  # fmt: skip


@jit_step()
def _add_sums(A, values, out):
    """Add ``A' values`` to `out`."""
    n = values.shape[0]
    if A.sparse:
        for t in range(n):
            value = values[t]
            if value != 0.0:
                for e in range(A.indptr[t], A.indptr[t + 1]):
                    out[A.indices[e]] += A.data[e] * value
        return
    columns = A.columns
    for start in range(0, n, _BLOCK):
        stop = min(start + _BLOCK, n)
        block = values[start:stop]
        for k in range(0, columns.shape[0], 4):
            a, b, c, d = _dot_four(
                columns[k, start:stop], columns[k + 1, start:stop], columns[k + 2, start:stop],
                columns[k + 3, start:stop], block,
            )  # fmt: skip
            out[k] += a
            out[k + 1] += b
            out[k + 2] += c
            out[k + 3] += d


@jit_step(fastmath=FAST_MATH)
def _add_tile(gram, j, k, a0, a1, a2, a3, b0, b1, b2, b3):
    """Add the products of four columns with four."""
    s00, s01, s02, s03, s10, s11, s12, s13 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    s20, s21, s22, s23, s30, s31, s32, s33 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for t in range(a0.shape[0]):
        x0, x1, x2, x3 = a0[t], a1[t], a2[t], a3[t]
        y0, y1, y2, y3 = b0[t], b1[t], b2[t], b3[t]
        s00 += x0 * y0
        s01 += x0 * y1
        s02 += x0 * y2
        s03 += x0 * y3
        s10 += x1 * y0
        s11 += x1 * y1
        s12 += x1 * y2
        s13 += x1 * y3
        s20 += x2 * y0
        s21 += x2 * y1
        s22 += x2 * y2
        s23 += x2 * y3
        s30 += x3 * y0
        s31 += x3 * y1
        s32 += x3 * y2
        s33 += x3 * y3
    gram[j, k] += s00
    gram[j, k + 1] += s01
    gram[j, k + 2] += s02
    gram[j, k + 3] += s03
    gram[j + 1, k] += s10
    gram[j + 1, k + 1] += s11
    gram[j + 1, k + 2] += s12
    gram[j + 1, k + 3] += s13
    gram[j + 2, k] += s20
    gram[j + 2, k + 1] += s21
    gram[j + 2, k + 2] += s22
    gram[j + 2, k + 3] += s23
    gram[j + 3, k] += s30
    gram[j + 3, k + 1] += s31
    gram[j + 3, k + 2] += s32
    gram[j + 3, k + 3] += s33


@jit_step(fastmath=FAST_MATH)
def _multiply(out, one, two):
    for t in range(one.shape[0]):
        out[t] = one[t] * two[t]


@jit_step()
def _set_gram(A, theta, weighted, gram):
    """Write ``A' diag(theta) A`` to the lower triangle of `gram`."""
    gram[:, :] = 0.0
    n = theta.shape[0]
    if A.sparse:
        for t in range(n):
            for e in range(A.indptr[t], A.indptr[t + 1]):
                value, row = theta[t] * A.data[e], gram[A.indices[e]]
                for f in range(A.indptr[t], e + 1):
                    row[A.indices[f]] += value * A.data[f]
        return
    columns = A.columns
    for start in range(0, n, _BLOCK):
        stop = min(start + _BLOCK, n)
        size = stop - start
        for k in range(columns.shape[0]):
            _multiply(weighted[k, :size], columns[k, start:stop], theta[start:stop])
        for j in range(0, columns.shape[0], _TILE):
            for k in range(0, j + 1, _TILE):
                _add_tile(
                    gram, j, k, weighted[j, :size], weighted[j + 1, :size], weighted[j + 2, :size],
                    weighted[j + 3, :size], columns[k, start:stop], columns[k + 1, start:stop],
                    columns[k + 2, start:stop], columns[k + 3, start:stop],
                )  # fmt: skip


@jit_step()
def _factorise(gram, size):
    """Replace the lower triangle of the leading submatrix by its Cholesky factor."""
    for i in range(size):
        row = gram[i]
        for j in range(i):
            row[j] = (row[j] - _dot(row[:j], gram[j, :j])) / gram[j, j]
        pivot = row[i] - _dot(row[:i], row[:i])
        row[i] = np.sqrt(pivot) if pivot > _SMALL_PIVOT * row[i] else _NO_STEP


@jit_step()
def _solve(factor, size, side, out):
    """Solve for the right side with a Cholesky factor; `side` is overwritten."""
    for i in range(size):
        side[i] = (side[i] - _dot(factor[i, :i], side[:i])) / factor[i, i]
    for i in range(size - 1, -1, -1):
        out[i] = side[i] / factor[i, i]
        subtract(side[:i], out[i], factor[i, :i])


@jit_step(fastmath=FAST_MATH)
def _weigh(alpha, room, surplus, slack, margins, theta, out):
    """Set the weights of the rows, and those of the right side."""
    for t in range(alpha.shape[0]):
        theta[t] = alpha[t] * room[t] / (surplus[t] * room[t] + slack[t] * alpha[t])
        out[t] = theta[t] * (1.0 - margins[t]) + alpha[t]


@jit_step(fastmath=FAST_MATH)
def _predict(alpha, room, surplus, slack, margins, theta, change, predicted):
    """Set changes that would end complementarity.

    Return the bound on their length, and their second order term.
    """
    longest, second = 1.0, 0.0
    for t in range(alpha.shape[0]):
        step = theta[t] * (1.0 - margins[t] - change[t])
        predicted[t] = step
        share, other = step / alpha[t], step / room[t]
        longest = maximum(longest, maximum(maximum(-share, 1.0 + share), maximum(other, 1.0 - other)))
        second += step * (slack[t] * (1.0 - other) - surplus[t] * (1.0 + share))
    return longest, second


@jit_step(fastmath=FAST_MATH)
def _correct(alpha, room, surplus, slack, margins, theta, predicted, centre, d_surplus, d_slack, target, out):
    """Set the second order residuals, and the weights of the right side."""
    for t in range(alpha.shape[0]):
        step = predicted[t]
        one, other = 1.0 / alpha[t], 1.0 / room[t]
        d_surplus[t] = (centre + step * surplus[t] * (1.0 + step * one)) * one
        d_slack[t] = (centre - step * slack[t] * (1.0 - step * other)) * other
        target[t] = 1.0 - margins[t] + d_surplus[t] - d_slack[t]
        out[t] = theta[t] * target[t] + alpha[t]


@jit_step(fastmath=FAST_MATH)
def _find_step(alpha, room, surplus, slack, theta, target, change, d_alpha, d_surplus, d_slack):
    """Set the changes of all variables; return the bound on their length."""
    longest = 0.0
    for t in range(alpha.shape[0]):
        step = theta[t] * (target[t] - change[t])
        d_alpha[t] = step
        share, other = step / alpha[t], step / room[t]
        d_surplus[t] -= surplus[t] * (1.0 + share)
        d_slack[t] -= slack[t] * (1.0 - other)
        longest = maximum(
            longest, maximum(maximum(-share, other), maximum(-d_surplus[t] / surplus[t], -d_slack[t] / slack[t]))
        )
    return longest


@jit_step(fastmath=FAST_MATH)
def _move(alpha, room, surplus, slack, margins, d_alpha, d_surplus, d_slack, change, length):
    """Take a step; return the complementarity and the margins' largest residual."""
    total, residual = 0.0, 0.0
    for t in range(alpha.shape[0]):
        alpha[t] += length * d_alpha[t]
        room[t] -= length * d_alpha[t]
        surplus[t] += length * d_surplus[t]
        slack[t] += length * d_slack[t]
        margins[t] += length * change[t]
        total += alpha[t] * surplus[t] + room[t] * slack[t]
        residual = maximum(residual, abs(margins[t] - 1.0 - surplus[t] + slack[t]))
    return total, residual


@jit_step()
def _balance(alpha, upper, signs):
    """Balance the classes' sums by the free variables.

    Return whether that was possible.
    """
    excess, total = 0.0, 0.0
    for t in range(alpha.shape[0]):
        excess += signs[t] * alpha[t]
        total += min(alpha[t], upper[t] - alpha[t])
    if abs(excess) > total:
        return excess == 0.0
    if total > 0.0:
        for t in range(alpha.shape[0]):
            alpha[t] -= signs[t] * excess / total * min(alpha[t], upper[t] - alpha[t])
    return True


@jit_step()
def _end(A, point, size, small):
    """Set `sums` to the variables, moved to the bounds that they approach.

    Return m and M, computed anew.
    """
    alpha, upper, signs = point.sums, point.upper, point.signs
    n, n_free = alpha.shape[0], 0
    for t in range(n):
        alpha[t] = point.alpha[t]
        if point.alpha[t] < point.surplus[t] * upper[t]:
            alpha[t] = 0.0
        elif point.room[t] < point.slack[t] * upper[t]:
            alpha[t] = upper[t]
        elif alpha[t] < upper[t]:
            n_free += 1
    if n_free > size:
        to_vertex(A, alpha, upper, size, small)
    if not _balance(alpha, upper, signs):
        return np.inf, -np.inf
    small.step[:] = 0.0
    _add_sums(A, alpha, small.step)
    small.step[size - 1] = 0.0
    _times(A, small.step, point.change)
    m, M = -np.inf, np.inf
    for t in range(n):
        value = signs[t] * (1.0 - point.change[t])
        below, above = alpha[t] < upper[t], alpha[t] > 0.0
        if value > m and (below if signs[t] > 0 else above):
            m = value
        if value < M and (above if signs[t] > 0 else below):
            M = value
    return m, M


@jit_step()
def _find_direction(A, point, size, small):
    """Solve for the change of the weights, and set that of the margins."""
    small.side[:] = 0.0
    _add_sums(A, point.sums, small.side)
    for k in range(size - 1):
        small.side[k] -= small.weights[k]
    _solve(small.gram, size, small.side, small.step)
    _times(A, small.step, point.change)


@jit()
def _optimise(A, point, size, small, tol):
    """Solve one pair, with the variables in `sums` at the end.

    Return the number of steps, and m and M.
    """
    n = point.alpha.shape[0]
    mean_upper = 0.0
    for t in range(n):
        point.alpha[t] = point.room[t] = 0.5 * point.upper[t]
        point.surplus[t], point.slack[t], point.margins[t] = 0.5, 1.5, 0.0
        mean_upper += point.upper[t] / n
    small.weights[:] = 0.0
    small.step[:] = 0.0
    mu = 0.5 * mean_upper
    alpha, room, surplus, slack, theta = point.alpha, point.room, point.surplus, point.slack, point.theta
    for n_iter in range(1, _MOST_STEPS + 1):
        _weigh(alpha, room, surplus, slack, point.margins, theta, point.sums)
        _set_gram(A, theta, small.weighted, small.gram)
        for k in range(size - 1):
            small.gram[k, k] += 1.0
        _factorise(small.gram, size)
        _find_direction(A, point, size, small)
        longest, second = _predict(alpha, room, surplus, slack, point.margins, theta, point.change, point.predicted)
        length = 1.0 / longest
        reduction = 1.0 - length + length * length * second / (2.0 * n * mu)
        centre = mu * max(reduction, 0.0) ** 3
        _correct(
            alpha, room, surplus, slack, point.margins, theta, point.predicted, centre, point.d_surplus, point.d_slack,
            point.target, point.sums,
        )  # fmt: skip
        _find_direction(A, point, size, small)
        longest = _find_step(
            alpha, room, surplus, slack, theta, point.target, point.change, point.d_alpha, point.d_surplus,
            point.d_slack,
        )  # fmt: skip
        length = min(1.0, _STEP / longest)
        if not length > _LEAST_STEP:
            break
        for k in range(size):
            small.weights[k] += length * small.step[k]
        total, residual = _move(
            alpha, room, surplus, slack, point.margins, point.d_alpha, point.d_surplus, point.d_slack, point.change,
            length,
        )  # fmt: skip
        mu = total / (2.0 * n)
        if not mu > 0.0:
            break
        if residual <= _MARGIN_SHARE * tol and mu <= _END * tol * tol * mean_upper:
            m, M = _end(A, point, size, small)
            if m - M <= tol:
                return n_iter, m, M
    return n_iter, np.inf, -np.inf


@jit_step()
def _copy_dense(rows, signed, mean, signs, bounds_a, bounds_b):
    """Copy rows of both classes by columns, centred, with their signs.

    Return the mean square of their norm.
    """
    n_a = bounds_a[1] - bounds_a[0]
    n = signs.shape[0]
    total = 0.0
    for k in range(rows.n_features):
        column, out = rows.columns[k], signed[k]
        centre = 0.0
        for t in range(n_a):
            centre += column[bounds_a[0] + t]
        for t in range(n_a, n):
            centre += column[bounds_b[0] + t - n_a]
        centre /= n
        mean[k] = centre
        for t in range(n_a):
            value = column[bounds_a[0] + t] - centre
            out[t] = value
            total += value * value
        for t in range(n_a, n):
            value = centre - column[bounds_b[0] + t - n_a]
            out[t] = value
            total += value * value
    return total / n


@jit_step()
def _copy_sparse(rows, data, indices, indptr, mean, signs, bounds_a, bounds_b):
    """Copy rows of both classes with their signs as a last feature.

    Return the mean square of their norm.
    """
    n_a = bounds_a[1] - bounds_a[0]
    n, entry, total = signs.shape[0], 0, 0.0
    mean[:] = 0.0
    indptr[0] = 0
    for t in range(n):
        row = bounds_a[0] + t if t < n_a else bounds_b[0] + t - n_a
        for e in range(rows.indptr[row], rows.indptr[row + 1]):
            data[entry], indices[entry] = signs[t] * rows.data[e], rows.indices[e]
            total += rows.data[e] * rows.data[e]
            entry += 1
        indices[entry] = rows.n_features
        entry += 1
        indptr[t + 1] = entry
    return total / n


@jit_step()
def _prepare(rows, memory, mean, signs, bounds_a, bounds_b):
    """Build A of two classes.

    Return it and the mean squared norm by which its rows were scaled.
    """
    n, size = signs.shape[0], rows.n_features + 1
    # Dense columns: none for sparse rows, whose memory has size zero.
    n_columns = min(mean.shape[0], memory[0].shape[0] // n)
    columns = memory[0][: n_columns * n].reshape(n_columns, n)
    data, indices, indptr = memory[1], memory[2], memory[3][: n + 1]
    if rows.sparse:
        square = _copy_sparse(rows, data, indices, indptr, mean, signs, bounds_a, bounds_b)
        scale = 1.0 / np.sqrt(square)
        for t in range(n):
            for e in range(indptr[t], indptr[t + 1] - 1):
                data[e] *= scale
            data[indptr[t + 1] - 1] = signs[t]
    else:
        square = _copy_dense(rows, columns, mean, signs, bounds_a, bounds_b)
        scale = 1.0 / np.sqrt(square)
        for k in range(rows.n_features):
            for t in range(n):
                columns[k, t] *= scale
        columns[size - 1] = signs
        columns[size:] = 0.0
    return _Signed(rows.sparse, columns, data, indices, indptr), square


@jit_step()
def _keep(pairs, p, alpha, upper, signs, bounds_a, bounds_b, square):
    """Write the variables of a pair, in the rows' units, to their layout.

    Return their sum.
    """
    a, b = pairs.first[p], pairs.second[p]
    n_a, total = bounds_a[1] - bounds_a[0], 0.0
    for t in range(alpha.shape[0]):
        row = bounds_a[0] + t if t < n_a else bounds_b[0] + t - n_a
        value = pairs.upper[row] if alpha[t] == upper[t] else min(alpha[t] / square, pairs.upper[row])
        total += value
        pairs.layout[b - 1 if t < n_a else a, row] = signs[t] * value
    return total


@jit_step()
def _solve_pair(pairs, p, rows, memory, vectors, small, tol):
    """Solve one pair and store the solution, if it is optimal."""
    starts = pairs.starts
    a, b = pairs.first[p], pairs.second[p]
    bounds_a, bounds_b = (starts[a], starts[a + 1]), (starts[b], starts[b + 1])
    n_a = bounds_a[1] - bounds_a[0]
    n, size = n_a + bounds_b[1] - bounds_b[0], rows.n_features + 1
    point = _Point(
        vectors[0, :n], vectors[1, :n], vectors[2, :n], vectors[3, :n], vectors[4, :n], vectors[5, :n],
        vectors[6, :n], vectors[7, :n], vectors[8, :n], vectors[9, :n], vectors[10, :n], vectors[11, :n],
        vectors[12, :n], vectors[13, :n], vectors[14, :n],
    )  # fmt: skip
    for t in range(n):
        point.signs[t] = 1.0 if t < n_a else -1.0
    A, square = _prepare(rows, memory, small.mean, point.signs, bounds_a, bounds_b)
    if not 0.0 < square < np.inf:
        return
    for t in range(n):
        point.upper[t] = square * pairs.upper[bounds_a[0] + t if t < n_a else bounds_b[0] + t - n_a]
    n_iter, m, M = _optimise(A, point, size, small, tol)
    if not m - M <= tol:
        return
    alpha, upper, total, n_free = point.sums, point.upper, 0.0, 0
    for t in range(n):
        if 0.0 < alpha[t] < upper[t]:
            total += point.signs[t] * (point.change[t] - 1.0)
            n_free += 1
    # Offset: minus the mean value of the free variables, else the middle of its interval.
    offset = total / n_free if n_free > 0 else -0.5 * (m + M)
    squared_norm = 0.0
    for k in range(size - 1):
        squared_norm += small.step[k] * small.step[k]
        offset += small.mean[k] * small.step[k] / np.sqrt(square)
    pairs.rho[p] = offset
    sum_alpha = _keep(pairs, p, alpha, upper, point.signs, bounds_a, bounds_b, square)
    pairs.objective[p] = 0.5 * squared_norm / square - sum_alpha
    pairs.n_iter[p] += n_iter
    pairs.solved[p] = True


@jit()
def _solve_some(numbers, pairs, rows, tol):
    """Solve the pairs of these numbers."""
    starts = pairs.starts
    longest, most_stored = 0, 0
    for p in numbers:
        a, b = pairs.first[p], pairs.second[p]
        longest = max(longest, starts[a + 1] - starts[a] + starts[b + 1] - starts[b])
        if rows.sparse:
            stored = rows.indptr[starts[a + 1]] - rows.indptr[starts[a]]
            stored += rows.indptr[starts[b + 1]] - rows.indptr[starts[b]]
            most_stored = max(most_stored, stored)
    size = rows.n_features + 1
    padded = (size + _TILE - 1) // _TILE * _TILE
    n_entries = (longest + most_stored) if rows.sparse else 0
    memory = (
        np.empty(0 if rows.sparse else padded * longest),
        np.empty(n_entries),
        np.empty(n_entries, np.int32),
        np.empty(longest + 1, np.int64),
    )
    vectors = np.empty((15, longest))
    small = _Small(
        weighted=np.empty((padded, _BLOCK)),
        gram=np.empty((padded, padded)),
        weights=np.empty(padded),
        step=np.zeros(padded),
        side=np.empty(padded),
        mean=np.zeros(padded),
        inverse=np.empty((padded, padded)),
        basis=np.empty(padded, np.int64),
        pivots=np.empty(padded, np.int64),
        factors=np.empty(padded),
        row=np.empty(padded),
    )
    for p in numbers:
        _solve_pair(pairs, p, rows, memory, vectors, small, tol)


def _stays_sparse(X: Any) -> bool:
    """Tell whether these rows are kept sparse."""
    narrow = X.shape[1] <= _FEW_FEATURES
    return scipy.sparse.issparse(X) and not narrow and bool(X.nnz <= _DENSE_SHARE * X.shape[0] * X.shape[1])


def _as_rows(X: Any) -> _Rows:
    """Convert rows to the single type that the compiled code takes."""
    no_entries = np.empty(0), np.empty(0, np.int32), np.zeros(1, np.int64)
    if _stays_sparse(X):
        X = scipy.sparse.csr_array(X, copy=True)
        X.sum_duplicates()
        entries = X.data.astype(np.float64), X.indices.astype(np.int32), X.indptr.astype(np.int64)
        return _Rows(True, X.shape[1], np.empty((0, 0)), *entries)
    X = X.toarray() if scipy.sparse.issparse(X) else X
    return _Rows(False, X.shape[1], np.ascontiguousarray(np.asarray(X, dtype=np.float64).T), *no_entries)


def _distinct_rows(X: Any, starts: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Group equal rows of each class; return a row per group, and groups of rows.

    None where few rows are equal. Rows are sorted by class, and so are groups.
    """
    factors = seeded_stream(0, "interior_point", "distinct").uniform(1.0, 2.0, X.shape[1])
    products = X @ factors if scipy.sparse.issparse(X) else np.einsum("ij,j->i", X, factors)
    if np.unique(products).size > _DISTINCT_SHARE * products.size:
        return None
    codes = np.repeat(np.arange(starts.size - 1), np.diff(starts))
    order = np.lexsort((products, codes))
    begins = np.ones(order.size, dtype=bool)
    begins[1:] = (np.diff(products[order]) != 0) | (np.diff(codes[order]) != 0)
    groups = np.empty(order.size, dtype=np.int64)
    groups[order] = np.cumsum(begins) - 1
    first = order[begins]
    difference = X - X[first][groups]
    # Hash collision: products of different rows may be equal, though that is unlikely.
    return None if np.any(difference.data if scipy.sparse.issparse(difference) else difference) else (first, groups)


def _spread(merged: np.ndarray, upper: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """Distribute variables of groups (k,) to rows (n,), filled to bounds in turn."""
    order = np.argsort(groups, kind="stable")
    sizes, sorted_groups = upper[order], groups[order]
    before = np.cumsum(sizes) - sizes
    before -= before[np.searchsorted(sorted_groups, np.arange(merged.size))][sorted_groups]
    filled = np.clip(np.abs(merged)[sorted_groups] - before, 0.0, sizes)
    # Round-off of the sums of bounds must not leave free variables.
    filled[filled <= _ROUNDING * sizes] = 0.0
    filled = np.where(filled >= (1.0 - _ROUNDING) * sizes, sizes, filled)
    values = np.empty(groups.size)
    values[order] = np.sign(merged)[sorted_groups] * filled
    return values


def usual_operations(X: Any, n_rows: np.ndarray) -> np.ndarray:
    """Estimate the operations that this method takes for pairs of so many rows."""
    size = X.shape[1] + 1.0
    if _stays_sparse(X):
        stored = 1.0 + X.nnz / max(X.shape[0], 1)
        per_row = _ROW_COST + 6.0 * stored + stored * stored
    else:
        per_row = _ROW_COST + 2.0 * size + size * size / 16.0
    small = size**3 / 6.0 + size * size * 0.5
    operations: np.ndarray = _TYPICAL_STEPS * (n_rows * per_row + small)
    return operations


def solve_linear_pairs(
    X: Any,
    upper: np.ndarray,
    solutions: ClassSolutions,
    numbers: np.ndarray,
    *,
    tol: float,
    pool: ThreadPoolExecutor | None = None,
    n_threads: int = 1,
) -> np.ndarray:
    """Solve pairs of classes; write the solutions to `solutions`.

    Parameters
    ----------
    X : ndarray or CSR matrix (n, d) of float64
        All rows, sorted by class; finite.
    upper : ndarray (n,)
        Upper bound of each row's variable; positive and finite.
    solutions : ClassSolutions
        Results; changed in place.
    numbers : ndarray of int
        Numbers of the pairs to solve; both classes have rows.
    tol : float
        Largest violation of optimality.
    pool : ThreadPoolExecutor or None
        Threads.
    n_threads : int, default=1
        Their number. The result does not depend on it.

    Returns
    -------
    ndarray of int
        The pairs that remain for another solver, unchanged.
    """
    if numbers.size == 0:
        return numbers
    distinct = _distinct_rows(X, solutions.starts)
    if distinct is None:
        return _solve_all(X, upper, solutions, numbers, tol, pool, n_threads)
    first, groups = distinct
    starts = np.searchsorted(first, solutions.starts)
    merged = dataclasses.replace(solutions, layout=np.zeros((solutions.layout.shape[0], first.size)), starts=starts)
    remaining = _solve_all(X[first], np.bincount(groups, weights=upper), merged, numbers, tol, pool, n_threads)
    solved = np.setdiff1d(numbers, remaining)
    for a, b in zip(*(side[solved] for side in classes_of_pairs(starts.size - 1)), strict=True):
        for k, line in ((a, b - 1), (b, a)):
            rows, class_groups = slice(*solutions.starts[k : k + 2]), slice(*starts[k : k + 2])
            variables = merged.layout[line, class_groups]
            solutions.layout[line, rows] = _spread(variables, upper[rows], groups[rows] - starts[k])
    return remaining


def _solve_all(
    X: Any,
    upper: np.ndarray,
    solutions: ClassSolutions,
    numbers: np.ndarray,
    tol: float,
    pool: ThreadPoolExecutor | None,
    n_threads: int,
) -> np.ndarray:
    """Solve pairs of classes without merging equal rows; see `solve_linear_pairs`."""
    first, second = classes_of_pairs(solutions.starts.size - 1)
    pairs = _Pairs(
        starts=solutions.starts,
        first=first,
        second=second,
        upper=np.ascontiguousarray(upper, dtype=np.float64),
        layout=solutions.layout,
        rho=solutions.rho,
        objective=solutions.objective,
        n_iter=solutions.n_iter,
        solved=np.zeros(first.size, dtype=bool),
    )
    rows = _as_rows(X)
    sizes = np.diff(solutions.starts)
    operations = usual_operations(X, sizes[first[numbers]] + sizes[second[numbers]])
    n_threads = threads_worth(min(n_threads, numbers.size), _OPERATION_SECONDS * float(operations.sum()))
    if pool is None or n_threads == 1:
        _solve_some(numbers, pairs, rows, tol)
    else:
        # Load balance: neighbouring pairs share a class, so each thread takes every n-th pair.
        share_out(pool, _solve_some, [(numbers[k::n_threads].copy(), pairs, rows, tol) for k in range(n_threads)])
    solutions.converged[numbers] |= pairs.solved[numbers]
    return numbers[~pairs.solved[numbers]]


def warm_up() -> None:
    """Compile what this module runs."""
    zeros = np.zeros(1)
    solutions = ClassSolutions(
        np.zeros((1, 4)), np.array([0, 2, 4]), zeros.copy(), zeros.copy(), np.zeros(1, np.int64), np.zeros(1, bool)
    )
    solve_linear_pairs(np.array([[0.0], [1.0], [2.0], [3.0]]), np.ones(4), solutions, np.array([0]), tol=1e-3)
