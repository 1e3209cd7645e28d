"""From an optimal point to an optimal vertex: variables whose rows others can make up for go to their bounds.

Rows are those of the matrix A of `privsvm.solvers.kernel.interior_point`, whose memory this uses. Of the free
variables, those farthest from their bounds form a basis; each other one moves to a bound, and the basis against it, so
that all sums ``A' alpha`` stay what they are. At an optimum the objective stays what it is too.
"""

from __future__ import annotations

import numpy as np

from privsvm.numerics.compiled.jit import jit_step
from privsvm.numerics.compiled.vector_math import FAST_MATH

__all__ = ["subtract", "to_vertex"]

# A row is a sum of others to within this error; smaller factors are taken for zeros.
_DEPENDENT, _NO_FACTOR = 1e-10, 1e-9


@jit_step(fastmath=FAST_MATH)
def subtract(out, factor, row):
    """Subtract a multiple of a row from `out`."""
    for t in range(out.shape[0]):
        out[t] -= factor * row[t]


@jit_step()
def _set_row(A, t, out):
    """Row t of A into `out`."""
    if A.sparse:
        out[:] = 0.0
        for e in range(A.indptr[t], A.indptr[t + 1]):
            out[A.indices[e]] = A.data[e]
    else:
        for k in range(out.shape[0]):
            out[k] = A.columns[k, t]


@jit_step()
def _express(A, t, n_basis, size, small):
    """Factors that make row t of the basis; return the feature, and its error, where that fails most."""
    row, factors = small.row, small.factors
    _set_row(A, t, row)
    for i in range(n_basis):
        total = 0.0
        for k in range(n_basis):
            total += small.inverse[i, k] * row[small.pivots[k]]
        factors[i] = total
    if n_basis == size:
        return 0, 0.0
    rest = small.side
    rest[:] = row
    for i in range(n_basis):
        if factors[i] != 0.0:
            _set_row(A, small.basis[i], row)
            subtract(rest, factors[i], row)
    for k in range(n_basis):
        rest[small.pivots[k]] = 0.0
    where = 0
    for k in range(size):
        if abs(rest[k]) > abs(rest[where]):
            where = k
    return where, rest[where]


@jit_step()
def _extend(A, t, where, rest, n_basis, small):
    """Add row t to the basis, with this feature as its pivot."""
    inverse, factors = small.inverse, small.factors
    # The new feature's row of the basis, times the inverse.
    for k in range(n_basis):
        small.step[k] = 0.0
    for i in range(n_basis):
        _set_row(A, small.basis[i], small.row)
        value = small.row[where]
        for k in range(n_basis):
            small.step[k] += value * inverse[i, k]
    for i in range(n_basis):
        share = factors[i] / rest
        for k in range(n_basis):
            inverse[i, k] += share * small.step[k]
        inverse[i, n_basis] = -share
    for k in range(n_basis):
        inverse[n_basis, k] = -small.step[k] / rest
    inverse[n_basis, n_basis] = 1.0 / rest
    small.basis[n_basis], small.pivots[n_basis] = t, where


@jit_step()
def _push(alpha, upper, t, n_basis, small):
    """Move variable t, and the basis against it, to the first bound; a row of the basis at its bound makes way."""
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
    """Move free variables whose rows are sums of other free ones to their bounds; ``A' alpha`` stays what it is."""
    n = alpha.shape[0]
    depth = np.empty(n)
    for t in range(n):
        # The freest form the basis.
        depth[t] = -min(alpha[t], upper[t] - alpha[t]) / upper[t]
    n_basis = 0
    for t in np.argsort(depth, kind="mergesort"):
        if depth[t] == 0.0:
            break
        where, rest = _express(A, t, n_basis, size, small)
        if abs(rest) > _DEPENDENT:
            _extend(A, t, where, rest, n_basis, small)
            n_basis += 1
        else:
            _push(alpha, upper, t, n_basis, small)
