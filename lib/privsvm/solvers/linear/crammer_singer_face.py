"""Newton steps on the free dual variables of the Crammer-Singer problem: a face.

Row f of a face moves weight between its reference class and each of its other free classes. Variable v belongs to row
``places[v]`` and class ``classes[v]``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse
from scipy.linalg import lapack

from privsvm.numerics.compiled.jit import jit, jit_step

# Most variables of a face step.
_MAX_VARIABLES = 3000
# Cost ratio: an inverse costs less per multiplication than a pass.
_INVERSE_WORK = 1.0 / 8.0
# Ridge on the diagonal of the system, relative to it, since it may be singular.
_RIDGE = 1e-9
# Underflow: rows with a smaller squared norm are left to the passes.
_SMALLEST_SQUARE = 1e-200

_FAST = {"contract"}


class _Path(NamedTuple):
    """Where a step stands on its way through a face."""

    # Rows: dual variables (n_face, c), own class, reference class.
    alpha: np.ndarray
    labels: np.ndarray
    references: np.ndarray
    # Variables: row, class, remaining step, and number in the full system.
    row_positions: np.ndarray
    classes: np.ndarray
    step: np.ndarray
    original: np.ndarray
    # Rows: step of the reference class, whether that is at its bound, and the row's variables.
    leading: np.ndarray
    at_bound: np.ndarray
    n_of_row: np.ndarray
    # Bounds: the correction of the inverse for each one met; see `_follow_step`.
    vectors: np.ndarray
    scales: np.ndarray
    products: np.ndarray


@jit()
def _list_face(alpha, y, squared_norms, C, rows, references, row_positions, classes):
    """List the rows of the face, and a variable for each free direction.

    Row ``rows[f]`` moves weight between its class ``references[f]`` and each of its other free classes. Variable v
    belongs to ``rows[row_positions[v]]`` and ``classes[v]``. Returns the numbers of rows and of variables; 0
    variables where there is no room for them.
    """
    n_rows, n_classes = alpha.shape
    n_face, n_variables = 0, 0
    for i in range(n_rows):
        label = y[i]
        own_value = alpha[i, label]
        if own_value <= 0.0 or squared_norms[i] < _SMALLEST_SQUARE:
            continue
        n_free, reference, lowest = 0, label, 0.0
        for rival in range(n_classes - 1):
            # Branch-free, here and below: the branch would be mispredicted.
            m = rival + (rival >= label)
            value = alpha[i, m]
            n_free += value < 0.0
            reference = m if value < lowest else reference
            lowest = min(lowest, value)
        if own_value < C * (1.0 - 1e-12):
            reference = label
        elif n_free < 2:
            continue
        if n_variables + n_classes > classes.shape[0]:
            return 0, 0
        for rival in range(n_classes - 1):
            m = rival + (rival >= label)
            row_positions[n_variables] = n_face
            classes[n_variables] = m
            n_variables += (alpha[i, m] < 0.0) & (m != reference)
        rows[n_face] = i
        references[n_face] = reference
        n_face += 1
    return n_face, n_variables


@jit()
def _face_system(gram, scores, labels, references, row_positions, classes):
    """Build the Newton system of a face: lower triangle, and slopes of the dual."""
    n_variables = classes.shape[0]
    matrix, slopes = np.empty((n_variables, n_variables)), np.empty(n_variables)
    for v in range(n_variables):
        f, m = row_positions[v], classes[v]
        r = references[f]
        slopes[v] = scores[f, r] - scores[f, m]
        if r != labels[f]:
            slopes[v] += 1.0
        if m != labels[f]:
            slopes[v] -= 1.0
        for u in range(v + 1):
            g, k = row_positions[u], classes[u]
            s = references[g]
            # Product of e_m - e_r and e_k - e_s.
            shared = int(m == k) - int(m == s) - int(r == k) + int(r == s)
            matrix[v, u] = shared * gram[f, g]
        matrix[v, v] *= 1.0 + _RIDGE
    return matrix, slopes


@jit_step(fastmath=_FAST)
def _set_direction(inverse, slopes, path):
    """Set the Newton step, count the variables of each row, and fill in the inverse's upper triangle."""
    n_all = slopes.shape[0]
    for v in range(n_all):
        for u in range(v):
            inverse[u, v] = inverse[v, u]
    for v in range(n_all):
        total = 0.0
        for u in range(n_all):
            total += inverse[v, u] * slopes[u]
        path.step[v] = total
        path.n_of_row[path.row_positions[v]] += 1


@jit_step()
def _upper_bound(path, C, f):
    """Upper bound of the dual variable of a row's reference class."""
    return C if path.references[f] == path.labels[f] else 0.0


@jit_step(fastmath=_FAST)
def _advance(path, C, n_live):
    """Go as far as the bounds allow; return the share of the step that was taken, and what met its bound.

    That is a variable, or the row of a reference class; -1 for none.
    """
    alpha, row_positions, classes, references = path.alpha, path.row_positions, path.classes, path.references
    step, leading = path.step, path.leading
    t, blocking, blocked_row = 1.0, -1, -1
    for f in range(leading.shape[0]):
        leading[f] = 0.0
    for v in range(n_live):
        leading[row_positions[v]] -= step[v]
        value = alpha[row_positions[v], classes[v]]
        if value + t * step[v] > 0.0:
            t = -value / step[v]
            blocking = v
    for f in range(leading.shape[0]):
        bound, value = _upper_bound(path, C, f), alpha[f, references[f]]
        if leading[f] > 0.0 and not path.at_bound[f] and value + t * leading[f] > bound:
            t = max(0.0, (bound - value) / leading[f])
            blocked_row = f
    for v in range(n_live):
        alpha[row_positions[v], classes[v]] = min(0.0, alpha[row_positions[v], classes[v]] + t * step[v])
    for f in range(leading.shape[0]):
        alpha[f, references[f]] = min(_upper_bound(path, C, f), alpha[f, references[f]] + t * leading[f])
    return t, blocking, blocked_row


@jit_step()
def _settle(path, C, blocking, blocked_row):
    """Put what met a bound exactly there."""
    if blocked_row >= 0:
        path.at_bound[blocked_row] = True
        path.alpha[blocked_row, path.references[blocked_row]] = _upper_bound(path, C, blocked_row)
    else:
        path.alpha[path.row_positions[blocking], path.classes[blocking]] = 0.0


@jit_step()
def _takes_part(path, u, blocking, blocked_row):
    """Whether variable u occurs in the condition of the bound just met."""
    return path.row_positions[u] == blocked_row if blocked_row >= 0 else u == blocking


@jit_step(fastmath=_FAST)
def _set_vector(inverse, path, blocking, blocked_row, n_live, n_bounds):
    """Set the vector ``Q a`` of the bound just met; return one variable that takes part, and the vector's size."""
    vector, vectors, original = path.vectors[n_bounds], path.vectors, path.original
    drop, size = blocking, 0.0
    for v in range(n_live):
        vector[v] = 0.0
    for u in range(n_live):
        if _takes_part(path, u, blocking, blocked_row):
            drop = u
            for v in range(n_live):
                vector[v] += inverse[original[u], original[v]]
            for b in range(n_bounds):
                path.products[b] += vectors[b, u]
    for u in range(n_live):
        if _takes_part(path, u, blocking, blocked_row):
            size += vector[u]
    # Corrections for the earlier bounds.
    for b in range(n_bounds):
        by = path.products[b] * path.scales[b]
        path.products[b] = 0.0
        if by != 0.0:
            for v in range(n_live):
                vector[v] -= by * vectors[b, v]
    return drop, size


@jit_step(fastmath=_FAST)
def _bend(path, t, size, blocking, blocked_row, n_live, n_bounds):
    """Turn the rest of the step so that it stays at the bound just met."""
    vector, step = path.vectors[n_bounds], path.step
    remaining, along = 0.0, 0.0
    for u in range(n_live):
        if _takes_part(path, u, blocking, blocked_row):
            remaining += vector[u]
            along += step[u]
    # Degenerate: the earlier conditions imply this one, up to round-off.
    path.scales[n_bounds] = 1.0 / remaining if remaining > 1e-12 * size else 0.0
    by = along * path.scales[n_bounds]
    for v in range(n_live):
        step[v] = (1.0 - t) * (step[v] - by * vector[v])


@jit_step()
def _drop_variable(path, drop, last, n_bounds):
    """Let the last variable take the place of one that follows from the others."""
    path.n_of_row[path.row_positions[drop]] -= 1
    path.step[drop] = path.step[last]
    path.row_positions[drop] = path.row_positions[last]
    path.classes[drop] = path.classes[last]
    path.original[drop] = path.original[last]
    for b in range(n_bounds):
        path.vectors[b, drop] = path.vectors[b, last]


@jit_step(fastmath=_FAST)
def _restore_sums(path, C):
    """Make dual variables feasible again, so that the dual value is a lower bound."""
    alpha, labels = path.alpha, path.labels
    for f in range(labels.shape[0]):
        total = 0.0
        for m in range(alpha.shape[1]):
            if m != labels[f]:
                total -= alpha[f, m]
        if total > 0.0 and (path.references[f] != labels[f] or path.at_bound[f] or total > C):
            for m in range(alpha.shape[1]):
                if m != labels[f]:
                    alpha[f, m] *= C / total
            total = C
        alpha[f, labels[f]] = total


@jit(fastmath=_FAST)
def _follow_step(inverse, slopes, path, C):
    """Go along the Newton step of a face.

    What meets a bound stays there, and the step bends along the rest.

    `inverse` holds the inverse of the system's matrix in its lower triangle. Each bound is a linear condition
    ``a . step = 0``, which takes ``q q' / (a . q)`` off the inverse Q, with ``q = Q a``: those vectors are kept instead
    of a new inverse. Returns the number of bounds met.
    """
    n_live, n_bounds = slopes.shape[0], 0
    _set_direction(inverse, slopes, path)
    while n_live > 0:
        t, blocking, blocked_row = _advance(path, C, n_live)
        if (blocking < 0 and blocked_row < 0) or n_bounds == path.vectors.shape[0]:
            break
        _settle(path, C, blocking, blocked_row)
        drop, size = _set_vector(inverse, path, blocking, blocked_row, n_live, n_bounds)
        _bend(path, t, size, blocking, blocked_row, n_live, n_bounds)
        n_bounds += 1
        if blocked_row < 0 or path.n_of_row[blocked_row] == 1:
            n_live -= 1
            _drop_variable(path, drop, n_live, n_bounds)
    _restore_sums(path, C)
    return n_bounds


@jit()
def _slope(change, scores, labels, references):
    """Return the gain of a change of dual variables, to first order."""
    slope = 0.0
    for f in range(change.shape[0]):
        # Cancellation: margins are relative to the reference class, so that no digits are lost.
        origin = scores[f, references[f]] + (0.0 if references[f] == labels[f] else 1.0)
        for m in range(change.shape[1]):
            slope -= change[f, m] * (scores[f, m] + (0.0 if m == labels[f] else 1.0) - origin)
    return slope


class Face:
    """Newton steps on the dual variables inside their bounds.

    `rows` holds rows and weights as `privsvm.solvers.linear.crammer_singer` stores them.
    """

    def __init__(self, rows, y: np.ndarray, C: float, n_classes: int) -> None:
        self.stored, self.y, self.C = rows, y, C
        self.rows, self.references = np.empty((2, y.size), dtype=np.int64)
        self.row_positions, self.classes = np.empty((2, _MAX_VARIABLES + n_classes), dtype=np.int64)

    def step(self, alpha: np.ndarray, allowed: float) -> float:
        """Improve `alpha` and the weights if that is cheap enough; return the work done, 0 for no step."""
        lists = self.rows, self.references, self.row_positions, self.classes
        n_face, n = _list_face(alpha, self.y, self.stored.squared_norms, self.C, *lists)
        work = (n**3 + n_face**2 * self.stored.row_work) * _INVERSE_WORK
        if n == 0 or work > allowed:
            return 0.0
        rows, references = self.rows[:n_face], self.references[:n_face]
        row_positions, classes = self.row_positions[:n], self.classes[:n]
        X, labels = self.stored.matrix[rows], self.y[rows]
        gram, scores = X @ X.T, np.asarray(X @ self.stored.by_feature)
        gram = gram.toarray() if scipy.sparse.issparse(gram) else gram
        matrix, slopes = _face_system(gram, scores, labels, references, row_positions, classes)
        # LAPACK is column-major: the transposed matrix is the same memory.
        factor, failed = lapack.dpotrf(matrix.T, lower=0, clean=0, overwrite_a=1)
        if not failed:
            factor, failed = lapack.dpotri(factor, lower=0, overwrite_c=1)
        if failed:
            return work
        before = alpha[rows]
        after = before.copy()
        path = _Path(
            alpha=after,
            labels=labels,
            references=references,
            row_positions=row_positions,
            classes=classes,
            step=np.zeros(n),
            original=np.arange(n),
            leading=np.empty(n_face),
            at_bound=np.zeros(n_face, dtype=np.bool_),
            n_of_row=np.zeros(n_face, dtype=np.int64),
            vectors=np.empty((n, n)),
            scales=np.zeros(n),
            products=np.zeros(n),
        )
        work += 0.5 * _follow_step(factor.T, slopes, path, self.C) ** 2 * n
        change = after - before
        of_weights = X.T @ change
        if _slope(change, scores, labels, references) > 0.5 * np.vdot(of_weights, of_weights):
            alpha[rows] = after
            self.stored.by_feature += of_weights
        return work
