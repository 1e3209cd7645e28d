"""The exact sum of clipped row gradients of linear models, in whole numbers.

A row is a unit row in whole numbers of 2^-20 (`privsvm.numerics.rows.unit_grid`). Its clipped slopes are whole numbers
of ``max_grad_norm 2^-18``, and its gradient is their product: whole numbers below 2^39. Scores of rounded weights and
sums of 2^14 gradients are matrix products of whole numbers whose partial sums are at most 2^53: float64 is exact in any
order, as LLVM, SciPy or BLAS may choose. Further sums are int64.

What comes between the two products is done for each row by itself, operation by operation, without ``fastmath``. So a
row's part in a sum depends on that row, its label, the weights and public numbers alone, bit for bit.
`docs/proofs/noisy_gradients.md` has the bounds.

Weights, gradients and sums are flat: one vector after the other, then the intercepts.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from privsvm.numerics.compiled.jit import jit, jit_step
from privsvm.numerics.compiled.vector_math import LOG2_E, exact_exp2
from privsvm.numerics.rows.centred_grid import CentredCells
from privsvm.numerics.rows.row_blocks import dense_rows
from privsvm.numerics.rows.unit_grid import CELLS, unit_cells

LOSSES = ("hinge", "softmax", "one_vs_rest_hinge")
_HINGE, _SOFTMAX, _ONE_VS_REST_HINGE = range(3)

_EPS = float(np.finfo(float).eps)
# Overflow: larger scores are cut to this, so that their squares stay finite.
_LARGEST_SCORE = 1e150
# Underflow: the square of a slope below this may become 0.
_LOST_SLOPE = 2e-154

# Fixed point: the bound on a gradient is 2^18 units of a slope; rows count in units of 2^-20, so sums count in 2^-38.
SLOPE_BITS, PRODUCT_BITS = 18, 38
_BOUND = 2.0**SLOPE_BITS
# Exact sums: rows whose products, below 2^39, are summed in float64. Rows of so many numbers stay in the L2 cache.
_EXACT_ROWS, _CACHED = 2**14, 2**17
# Rounded weights have a norm between 2^30 and 2^31. Norms outside the range count as zero: training has diverged, or
# not begun.
_WEIGHT_BITS = 31
_LEAST_WEIGHTS, _LARGEST_WEIGHTS = 2.0**-400, 2.0**100
# The regulariser's share of a row's gradient, at most 6, counts in units of 2^-20.
_SHARE_BITS = 20

# Precision of dense rows: float32 holds whole numbers up to a million, and halves the memory traffic of a step.
_DENSE = np.float32
# Cache: numbers of a block of rows that is prepared at a time.
_PREPARED_TOGETHER = 2**18


@dataclasses.dataclass(frozen=True)
class PreparedRows:
    """Rows in the form that training works with; see `prepare_cells`.

    `cells` are unit rows (n, d) as whole numbers: a float32 array, a CSR matrix of float64 or CentredCells. `constants`
    are whole numbers of the constant feature and `norms` the rows' norms; see `privsvm.numerics.rows.unit_grid`.
    `scale` is the value of the constant feature; 0 for none.
    """

    cells: Any
    constants: np.ndarray
    norms: np.ndarray
    scale: float

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of features."""
        n_rows, n_features = self.cells.shape
        return n_rows, n_features


def prepare_cells(X: Any, scale: float) -> tuple[Any, np.ndarray, np.ndarray]:
    """Compute cells, constants and norms of `PreparedRows`.

    X (n, d) is finite: an array, a canonical CSR matrix or CentredCells. `scale` is the value of the constant feature;
    0 for none.
    """
    if isinstance(X, CentredCells):
        return X.unit(scale)
    if scipy.sparse.issparse(X):
        return unit_cells(X, scale)[:3]
    cells, constants, norms = np.empty(X.shape, dtype=_DENSE), np.empty(X.shape[0]), np.empty(X.shape[0])
    n_block_rows = max(1, _PREPARED_TOGETHER // max(X.shape[1], 1))
    for start in range(0, X.shape[0], n_block_rows):
        block = slice(start, start + n_block_rows)
        cells[block], constants[block], norms[block] = unit_cells(X[block], scale)[:3]
    return cells, constants, norms


class Objective(NamedTuple):
    """Loss, regulariser and clipping bound."""

    loss: int
    smoothing: float
    loss_weight: float
    margin_weight: float
    ridge: float
    # Whether each row's gradient includes the regulariser's.
    inside: bool
    has_intercept: bool
    max_grad_norm: float
    # Slopes are clipped to this norm, in whole numbers, and its square is a bound that holds exactly.
    longest: float
    largest_square: float


class View(NamedTuple):
    """Public numbers that follow from rounded weights."""

    # Unit of a score for a row of norm 1: a rounded weight times 2^20.
    score: float
    # Norm of the regulariser's gradient, and a bound on it that ignores cancellation, in units of slopes.
    norm: float = 0.0
    size: float = 0.0
    # Units of the regulariser's share for a factor of 1.
    share: float = 0.0


class Point(NamedTuple):
    """Rounded weights: whole numbers (c, d), and (c,), or (0,) without intercepts."""

    coef: np.ndarray
    intercept: np.ndarray
    view: View
    # The regulariser's gradient for a share of 1, flat int64 in units of sums; None: no row includes it.
    cells: np.ndarray | None = None


def parts(flat: np.ndarray, n_vectors: int, has_intercept: bool) -> tuple[np.ndarray, np.ndarray]:
    """Split flat numbers (..., size) into vectors (..., c, d) and intercepts, (..., c) or (..., 0)."""
    n_features = flat.shape[-1] // n_vectors - int(has_intercept)
    size = n_vectors * n_features
    return flat[..., :size].reshape(*flat.shape[:-1], n_vectors, n_features), flat[..., size:]


def regulariser_gradient(weights: np.ndarray, n_vectors: int, objective: Objective) -> np.ndarray:
    """Compute the regulariser's gradient at flat weights; margins leave the intercepts out."""
    gradient = 2.0 * objective.ridge * weights
    if objective.margin_weight > 0.0:
        coef, _ = parts(weights, n_vectors, objective.has_intercept)
        by_coef, _ = parts(gradient, n_vectors, objective.has_intercept)
        by_coef += 2.0 * objective.margin_weight * (n_vectors * coef - coef.sum(axis=0))
    return gradient


def round_point(weights: np.ndarray, n_vectors: int, objective: Objective) -> Point:
    """Round flat weights to whole numbers of norm below 2^32.

    Weights of zero, and those that have diverged, count as zero.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        norm = math.sqrt(weights.dot(weights))
    if not _LEAST_WEIGHTS <= norm <= _LARGEST_WEIGHTS:
        none = parts(np.zeros(weights.shape), n_vectors, objective.has_intercept)
        return Point(*none, View(0.0, share=math.ldexp(1.0, _SHARE_BITS)))
    scale = math.ldexp(1.0, _WEIGHT_BITS - math.frexp(norm)[1])
    rounded, score = weights * scale, 1.0 / (CELLS * scale)
    np.rint(rounded, out=rounded)
    coef, intercept = parts(rounded, n_vectors, objective.has_intercept)
    if not objective.inside:
        return Point(coef, intercept, View(score))
    gradient = regulariser_gradient(rounded, n_vectors, objective)
    # Round-off of both sums.
    slack = 1.0 + (weights.size + 16) * _EPS
    unit = _BOUND / (objective.max_grad_norm * scale)
    largest = 2.0 * (objective.margin_weight * n_vectors + objective.ridge)
    norm = math.sqrt(gradient.dot(gradient)) * unit * slack
    size = largest * math.sqrt(rounded.dot(rounded)) * unit * slack
    if not norm < _LARGEST_SCORE:
        return Point(coef, intercept, View(score, norm, size))
    # The regulariser is scaled down to the bound by a power of two, and its share of a row's gradient is scaled up by
    # it.
    shorter = math.ldexp(1.0, -max(0, math.frexp(norm / _BOUND)[1]))
    cells = gradient * (unit * shorter * math.ldexp(1.0, PRODUCT_BITS - SLOPE_BITS))
    view = View(score, norm, size, math.ldexp(1.0, _SHARE_BITS) / shorter)
    return Point(coef, intercept, view, cells.astype(np.int64))


# --- slopes of the losses: one row of `h` for each vector, one column for each row of data ---------------------------


@jit_step()
def _smooth(smoothing, weight, h):
    """Turn distances to the margin into slopes of the smoothed hinge."""
    square = smoothing * smoothing
    for k in range(h.shape[0]):
        row = h[k]
        for r in range(row.shape[0]):
            if square > 0.0:
                row[r] = weight * (0.5 + 0.5 * (row[r] / np.sqrt(row[r] * row[r] + square)))
            else:
                row[r] = weight if row[r] > 0.0 else 0.0


@jit_step()
def _balance(codes, total, h):
    """Set the slope of each row's own class to minus the sum of the others."""
    total[:] = 0.0
    for r in range(codes.shape[0]):
        h[codes[r], r] = 0.0
    for k in range(h.shape[0]):
        row = h[k]
        for r in range(row.shape[0]):
            total[r] += row[r]
    for r in range(codes.shape[0]):
        h[codes[r], r] = -total[r]


@jit_step()
def _set_one_vs_rest(codes, objective, h):
    """Turn scores into slopes of one hinge per vector."""
    shift = 1 if h.shape[0] == 1 else 0
    for k in range(h.shape[0]):
        row = h[k]
        for r in range(row.shape[0]):
            row[r] = 1.0 - (row[r] if codes[r] == k + shift else -row[r])
    _smooth(objective.smoothing, objective.loss_weight, h)
    for k in range(h.shape[0]):
        row = h[k]
        for r in range(row.shape[0]):
            row[r] = -row[r] if codes[r] == k + shift else row[r]


@jit_step()
def _set_hinge(codes, objective, top, h):
    """Turn scores into slopes of the sum of hinges by the rivals' scores."""
    for r in range(codes.shape[0]):
        top[r] = 1.0 - h[codes[r], r]
    for k in range(h.shape[0]):
        row = h[k]
        for r in range(row.shape[0]):
            row[r] += top[r]
    _smooth(objective.smoothing, objective.loss_weight, h)
    _balance(codes, top, h)


@jit_step()
def _set_softmax(codes, objective, top, h):
    """Turn scores into slopes of the cross-entropy by the rivals' scores."""
    total = np.zeros(top.shape[0])
    top[:] = h[0]
    for k in range(1, h.shape[0]):
        row = h[k]
        for r in range(row.shape[0]):
            top[r] = row[r] if row[r] > top[r] else top[r]
    for k in range(h.shape[0]):
        row = h[k]
        for r in range(row.shape[0]):
            row[r] = exact_exp2((row[r] - top[r]) * LOG2_E)
            total[r] += row[r]
    for r in range(total.shape[0]):
        total[r] = objective.loss_weight / total[r]
    for k in range(h.shape[0]):
        row = h[k]
        for r in range(row.shape[0]):
            row[r] *= total[r]
    _balance(codes, top, h)


# --- clipping -------------------------------------------------------------------------------------------------------


@jit_step()
def _inside_norm(r, z, bare, norm, view, objective, slope_norm, h):
    """Bound the norm of row r's gradient with the regulariser, round-off included; `slope_norm` is that without it."""
    n_vectors = h.shape[0]
    # Round-off of float64 in the sums below; z is exact.
    slack = (n_vectors + 16) * (1.0 + np.sqrt(n_vectors)) * _EPS
    length = slope_norm + view.norm
    if length < _LARGEST_SCORE:
        sum_h, sum_z, product, ridge_product = 0.0, 0.0, 0.0, 0.0
        for k in range(n_vectors):
            slope = h[k, r]
            sum_h += slope
            sum_z += bare[k, r]
            product += slope * bare[k, r]
            ridge_product += slope * z[k, r]
        product = objective.margin_weight * (n_vectors * product - sum_h * sum_z) + objective.ridge * ridge_product
        unit = _BOUND / objective.max_grad_norm
        square = slope_norm * slope_norm + 4.0 * product * (norm * unit * view.score * unit) + view.norm * view.norm
        error = 4.0 * slack * (slope_norm + view.size) ** 2
        # Overflow or NaN: such a product gives no bound.
        if abs(square) < _LARGEST_SCORE * _LARGEST_SCORE:
            length = min(length, np.sqrt(max(square, 0.0) + error))
    return length * (1.0 + slack)


@jit_step()
def _set_lengths(h, length):
    """Add up the squares of each row's slopes."""
    length[:] = 0.0
    for k in range(h.shape[0]):
        row = h[k]
        for r in range(row.shape[0]):
            length[r] += row[r] * row[r]


@jit()
def _clip(z, bare, norms, codes, view, objective):
    """Turn exact scores (c, n) into clipped slopes as whole numbers.

    Returns them, and the sum of the whole numbers that the regulariser inside is multiplied by. For that, `bare` are
    the scores without intercepts.
    """
    n_vectors, n_rows = z.shape
    balanced, bound = objective.loss != _ONE_VS_REST_HINGE, objective.longest
    h, length, sizes, total = np.empty(z.shape), np.empty(n_rows), np.empty(n_rows), np.int64(0)
    last = z[n_vectors - 1]
    for k in range(n_vectors):
        row, scores = h[k], z[k]
        for r in range(n_rows):
            # Exact: a whole number below 2^53.
            value = (scores[r] - (last[r] if balanced else 0.0)) * (norms[r] * view.score)
            value = value if value < _LARGEST_SCORE else _LARGEST_SCORE
            row[r] = value if value > -_LARGEST_SCORE else -_LARGEST_SCORE
    if objective.loss == _ONE_VS_REST_HINGE:
        _set_one_vs_rest(codes, objective, h)
    elif objective.loss == _HINGE:
        _set_hinge(codes, objective, length, h)
    else:
        _set_softmax(codes, objective, length, h)
    _set_lengths(h, length)
    for r in range(n_rows):
        length[r] = np.sqrt(length[r]) + n_vectors * _LOST_SLOPE
        sizes[r] = norms[r] * (_BOUND / objective.max_grad_norm)
    shares = np.zeros(n_rows if objective.inside else 0)
    for r in range(n_rows):
        if objective.inside:
            slope_norm = length[r] * sizes[r]
            inside = _inside_norm(r, z, bare, norms[r], view, objective, slope_norm, h)
            factor = 1.0 if inside <= bound else bound / inside
            # Cancellation: two long terms might cancel each other, and sums of such rows would not be exact.
            factor = factor if factor * slope_norm <= 2.0 * bound else 2.0 * bound / slope_norm
            shares[r] = np.floor(factor * view.share)
            sizes[r] *= factor
        else:
            sizes[r] = sizes[r] if length[r] * sizes[r] <= bound else bound / length[r]
    for k in range(n_vectors):
        row = h[k]
        for r in range(n_rows):
            row[r] = np.trunc(row[r] * sizes[r])
    if balanced:
        _balance(codes, length, h)
    _set_lengths(h, length)
    # Integer arithmetic, hence exact. A row beyond the bound, or with NaN slopes, is dropped. The test depends on no
    # other row, so the sensitivity bound holds.
    for k in range(n_vectors):
        row = h[k]
        for r in range(n_rows):
            row[r] = row[r] if length[r] <= objective.largest_square else 0.0
    for r in range(shares.shape[0]):
        total += np.int64(shares[r]) if length[r] <= objective.largest_square else 0
    return h, total


# --- products with dense rows ---------------------------------------------------------------------------------------

# Rows that share the loads of a vector, and numbers of each at a time: eight rows of them stay in the L1 cache.
_ROWS, _COLUMNS = 8, 256


@jit_step()
def _load_rows(cells, first, low, numbers):
    """Copy eight rows from column `low` on; the last row stands in where there are fewer."""
    for r in range(_ROWS):
        source, target = cells[min(first + r, cells.shape[0] - 1), low : low + _COLUMNS], numbers[r]
        for j in range(source.shape[0]):
            target[j] = source[j]


@jit(fastmath={"reassoc", "contract"})
def _score_rows(cells, weights, scores):
    """Add the products of vectors (c, d) and rows (n, d) to scores (c, n).

    Sums are exact in any order, so LLVM may choose one.
    """
    numbers = np.empty((_ROWS, _COLUMNS))
    x0, x1, x2, x3 = numbers[0], numbers[1], numbers[2], numbers[3]
    x4, x5, x6, x7 = numbers[4], numbers[5], numbers[6], numbers[7]
    for first in range(0, cells.shape[0], _ROWS):
        for low in range(0, cells.shape[1], _COLUMNS):
            _load_rows(cells, first, low, numbers)
            for k in range(weights.shape[0]):
                vector = weights[k, low : low + _COLUMNS]
                s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = 0.0
                for j in range(vector.shape[0]):
                    weight = vector[j]
                    s0 += weight * x0[j]
                    s1 += weight * x1[j]
                    s2 += weight * x2[j]
                    s3 += weight * x3[j]
                    s4 += weight * x4[j]
                    s5 += weight * x5[j]
                    s6 += weight * x6[j]
                    s7 += weight * x7[j]
                totals = (s0, s1, s2, s3, s4, s5, s6, s7)
                for r in range(min(_ROWS, cells.shape[0] - first)):
                    scores[k, first + r] += totals[r]


@jit_step()
def _slope(slopes, k, i):
    return slopes[k, i] if i < slopes.shape[1] else 0.0


@jit(fastmath={"contract"})
def _add_rows(cells, slopes, sums):
    """Add the products of slopes (c, n) and rows (n, d) to sums (c, d), exactly."""
    numbers = np.empty((_ROWS, _COLUMNS))
    x0, x1, x2, x3 = numbers[0], numbers[1], numbers[2], numbers[3]
    x4, x5, x6, x7 = numbers[4], numbers[5], numbers[6], numbers[7]
    for first in range(0, cells.shape[0], _ROWS):
        for low in range(0, cells.shape[1], _COLUMNS):
            _load_rows(cells, first, low, numbers)
            for k in range(sums.shape[0]):
                total = sums[k, low : low + _COLUMNS]
                h0, h1 = _slope(slopes, k, first), _slope(slopes, k, first + 1)
                h2, h3 = _slope(slopes, k, first + 2), _slope(slopes, k, first + 3)
                h4, h5 = _slope(slopes, k, first + 4), _slope(slopes, k, first + 5)
                h6, h7 = _slope(slopes, k, first + 6), _slope(slopes, k, first + 7)
                for j in range(total.shape[0]):
                    low_half = h0 * x0[j] + h1 * x1[j] + h2 * x2[j] + h3 * x3[j]
                    total[j] += low_half + h4 * x4[j] + h5 * x5[j] + h6 * x6[j] + h7 * x7[j]


# --- sums over rows -------------------------------------------------------------------------------------------------


def clipped_sum(
    rows: PreparedRows, codes: np.ndarray, batch: np.ndarray | None, point: Point, objective: Objective
) -> tuple[np.ndarray, np.ndarray]:
    """Sum the clipped gradients of a batch, without the regulariser's part in them.

    `batch` has row numbers; None for all rows. Returns the flat int64 sums, in whole numbers of
    ``max_grad_norm 2^-38``, and an int64 array (1,): how often the regulariser is a part of them (see
    `with_regulariser`). Sums that do not fit wrap around.
    """
    sums, share = np.zeros(point.coef.size + point.intercept.size), np.zeros(1, dtype=np.int64)
    moved: np.ndarray | None = None
    n_summed = 0
    by_coef, by_intercept = parts(sums, len(point.coef), objective.has_intercept)
    n_rows = codes.shape[0] if batch is None else batch.shape[0]
    sparse, size = scipy.sparse.issparse(rows.cells), _EXACT_ROWS
    if not sparse:
        size = max(64, min(size, _CACHED // max(rows.cells.shape[1], 1)))
    for start in range(0, n_rows, size):
        stop = min(start + size, n_rows)
        if n_summed + stop - start > _EXACT_ROWS:
            moved = sums.astype(np.int64) if moved is None else moved + sums.astype(np.int64)
            sums[:], n_summed = 0.0, 0
        n_summed += stop - start
        chosen: Any = slice(start, stop) if batch is None else batch[start:stop]
        # Cache: rows are copied once, and read twice.
        cells, constants = rows.cells[chosen], rows.constants[chosen]
        if not sparse:
            # Memory: of sparse rows that were centred, only drawn ones become dense.
            cells = dense_rows(cells).astype(_DENSE, copy=False)
        if sparse:
            bare = np.ascontiguousarray(point.coef @ cells.T)
        else:
            bare = np.zeros((len(point.coef), stop - start))
            _score_rows(cells, point.coef, bare)
        scores = bare + point.intercept[:, None] * constants if objective.has_intercept else bare
        slopes, one_share = _clip(scores, bare, rows.norms[chosen], codes[chosen], point.view, objective)
        if sparse:
            by_coef += slopes @ cells
        else:
            _add_rows(cells, slopes, by_coef)
        if objective.has_intercept:
            by_intercept += slopes @ constants
        share += one_share
    totals: np.ndarray = sums.astype(np.int64)
    return totals if moved is None else totals + moved, share


def with_regulariser(totals: np.ndarray, share: np.ndarray, point: Point) -> np.ndarray:
    """Add the regulariser's part in rows to their sum, where it is inside, rounded down once."""
    if point.cells is None:
        return totals
    high, low = share[0] >> _SHARE_BITS, share[0] & ((1 << _SHARE_BITS) - 1)
    total: np.ndarray = totals + high * point.cells + ((low * point.cells) >> _SHARE_BITS)
    return total
