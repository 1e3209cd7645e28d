"""Crossover from an optimal point to a vertex, where few variables are free.

Rows are those of the matrix A of `privsvm.solvers.kernel.interior_point`, whose memory this uses. The free variables
farthest from their bounds form a basis; each other one moves to a bound, and the basis moves against it, so that the
sums ``A' alpha`` do not change. At an optimum the objective does not change either.
"""

from __future__ import annotations

import numpy as np

from privsvm.numerics.compiled.jit import jit_step
from privsvm.numerics.compiled.vector_math import FAST_MATH

__all__ = ["subtract", "to_vertex"]

# Largest residual of a row that depends on the basis, and factors below which it does not depend on a basis row.
_DEPENDENT, _NO_FACTOR = 1e-10, 1e-9


@jit_step(fastmath=FAST_MATH)
def subtract(out, factor, row):
    """Subtract a multiple of a row from `out`."""
    for t in range(out.shape[0]):
        out[t] -= factor * row[t]


@jit_step()
def _set_row(A, t, out):
    """Write row t of A to `out`."""
    if A.sparse:
        out[:] = 0.0
        for e in range(A.indptr[t], A.indptr[t + 1]):
            out[A.indices[e]] = A.data[e]
    else:
        for k in range(out.shape[0]):
            out[k] = A.columns[k, t]


@jit_step()
def _express(A, t, n_basis, size, small):
    """Set the factors of the basis rows that sum up to row t.

    Return the feature of the largest residual, and it.
    """
    row, factors = small.row, small.factors
    _set_row(A, t, row)
    for i in range(n_basis):
        total = 0.0
        for k in range(n_basis):
            total += small.inverse[i, k] * row[small.pivots[k]]
        factors[i] = total
    if n_basis == size:
        return 0, 0.0
    residual = small.side
    residual[:] = row
    for i in range(n_basis):
        if factors[i] != 0.0:
            _set_row(A, small.basis[i], row)
            subtract(residual, factors[i], row)
    for k in range(n_basis):
        residual[small.pivots[k]] = 0.0
    feature = 0
    for k in range(size):
        if abs(residual[k]) > abs(residual[feature]):
            feature = k
    return feature, residual[feature]


@jit_step()
def _extend(A, t, feature, residual, n_basis, small):
    """Add row t to the basis, with this feature as its pivot."""
    inverse, factors = small.inverse, small.factors
    # Bordered inverse: the new feature's row of the basis, times the inverse.
    for k in range(n_basis):
        small.step[k] = 0.0
    for i in range(n_basis):
        _set_row(A, small.basis[i], small.row)
        value = small.row[feature]
        for k in range(n_basis):
            small.step[k] += value * inverse[i, k]
    for i in range(n_basis):
        share = factors[i] / residual
        for k in range(n_basis):
            inverse[i, k] += share * small.step[k]
        inverse[i, n_basis] = -share
    for k in range(n_basis):
        inverse[n_basis, k] = -small.step[k] / residual
    inverse[n_basis, n_basis] = 1.0 / residual
    small.basis[n_basis], small.pivots[n_basis] = t, feature


@jit_step()
def _push(alpha, upper, t, n_basis, small):
    """Move variable t, and the basis against it, to the first bound.

    Variable t replaces a basis row that reaches its bound.
    """
    inverse, factors, basis = small.inverse, small.factors, small.basis
    down = alpha[t] <= 0.5 * upper[t]
    length, sign = (alpha[t], -1.0) if down else (upper[t] - alpha[t], 1.0)
    blocking = -1
    for i in range(n_basis):
        pull = -sign * factors[i]
        if abs(pull) > _NO_FACTOR:
            room = (upper[basis[i]] - alpha[basis[i]]) if pull > 0.0 else alpha[basis[i]]
            if room < length * abs(pull):
                length, blocking = room / abs(pull), i
    for i in range(n_basis):
        moved = alpha[basis[i]] - sign * length * factors[i]
        alpha[basis[i]] = min(max(moved, 0.0), upper[basis[i]])
    if blocking < 0:
        alpha[t] = 0.0 if down else upper[t]
        return
    alpha[t] += sign * length
    leaving = basis[blocking]
    alpha[leaving] = upper[leaving] if -sign * factors[blocking] > 0.0 else 0.0
    basis[blocking] = t
    pivot = factors[blocking]
    for k in range(n_basis):
        inverse[blocking, k] /= pivot
    for i in range(n_basis):
        if i != blocking:
            subtract(inverse[i, :n_basis], factors[i], inverse[blocking, :n_basis])


@jit_step()
def to_vertex(A, alpha, upper, size, small):
    """Move free variables whose rows depend on other free ones to their bounds.

    ``A' alpha`` does not change.
    """
    n = alpha.shape[0]
    depth = np.empty(n)
    for t in range(n):
        # The variables farthest from their bounds come first.
        depth[t] = -min(alpha[t], upper[t] - alpha[t]) / upper[t]
    n_basis = 0
    for t in np.argsort(depth, kind="mergesort"):
        if depth[t] == 0.0:
            break
        feature, residual = _express(A, t, n_basis, size, small)
        if abs(residual) > _DEPENDENT:
            _extend(A, t, feature, residual, n_basis, small)
            n_basis += 1
        else:
            _push(alpha, upper, t, n_basis, small)
