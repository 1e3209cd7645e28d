"""The exact sum of clipped row gradients of linear models, in whole numbers.

A row is a unit row in whole numbers of 2^-20 (`privsvm.numerics.rows.unit_grid`), its clipped slopes are whole numbers
of ``max_grad_norm 2^-18``, and its gradient is their product: whole numbers below 2^39. In float64, sums of 2^14 of
those are exact, whatever the order, the tiles and the threads; then they are added up as int64. Scores are exact too,
since weights are rounded to so many bits that no sum reaches 2^53. So the slopes of a row depend on that row, its
label, the weights and public numbers alone, bit for bit: what comes after the scores is done row by row, without
``fastmath``. `docs/proofs/noisy_gradients.md` has the bounds.

The loops work on blocks of eight rows. Scores z and slopes h of a block are stored by vector: eight numbers for the
first vector, eight for the second, and so on. Weights, gradients and the optimizer's memory are flat: number (k, j) is
at ``k * vector_stride + j * feature_stride``, and the intercepts come last. For dense rows the numbers of one vector
lie together, for CSR rows those of one feature.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from privsvm.numerics.compiled.jit import jit, jit_step
from privsvm.numerics.compiled.no_refcount import borrowed
from privsvm.numerics.compiled.spin_barrier import meet
from privsvm.numerics.compiled.vector_math import LOG2_E, exact_exp2, maximum
from privsvm.numerics.rows.row_tiles import ROWS, add_tiles, score_tiles
from privsvm.numerics.rows.sparse_rows import add_entries, padded_width, score_entries
from privsvm.numerics.rows.unit_grid import CELLS

__all__ = [
    "LOSSES",
    "PRODUCT_BITS",
    "SHARE_BITS",
    "SLOPE_BITS",
    "Blocks",
    "Layout",
    "Objective",
    "Scratch",
    "StoredRows",
    "View",
    "add_batch",
    "finish_sum",
    "is_reduced",
    "round_weights",
    "scratch_memory",
    "set_inside_regulariser",
    "set_regulariser",
    "view_weights",
    "weight_scale",
]

LOSSES = ("hinge", "softmax", "one_vs_rest_hinge")
_HINGE, _SOFTMAX, _ONE_VS_REST_HINGE = range(3)

_EPS = float(np.finfo(float).eps)
# Overflow: larger scores are cut to this, so that their squares stay finite.
_LARGEST_SCORE = 1e150
# Underflow: the square of a slope below this may become 0.
_LOST_SLOPE = 2e-154
# Shifter: adding it rounds a number to a whole one.
_SHIFTER = 1.5 * 2.0**52

# Fixed point: the bound on a gradient is 2^18 units of a slope; rows count in units of 2^-20, so sums count in 2^-38.
SLOPE_BITS, PRODUCT_BITS = 18, 38
_BOUND = 2.0**SLOPE_BITS
# Exact sums: rows whose products, below 2^39, are summed in float64.
_EXACT_ROWS = 2**14
# Rounded weights have a norm between 2^30 and 2^31, so that differences of two vectors are below 2^33. Norms outside
# the range count as zero: training has diverged, or not begun.
_WEIGHT_BITS = 31
_LEAST_WEIGHTS, _LARGEST_WEIGHTS = 2.0**-400, 2.0**100
# The regulariser's share of a row's gradient, at most 6, counts in units of 2^-20.
SHARE_BITS = 20


class StoredRows(NamedTuple):
    """Training rows: the numbers of dense rows one after the other, or CSR arrays."""

    dense: np.ndarray
    data: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray
    sparse: bool
    # Constant feature in whole units, and norms of the rows with that feature before normalisation.
    constants: np.ndarray
    norms: np.ndarray
    codes: np.ndarray


class Layout(NamedTuple):
    """Number of vectors and features, and how flat weights are laid out."""

    n_vectors: int
    n_features: int
    vector_stride: int
    feature_stride: int


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
    """Public numbers of rounded weights: unit of a score, size of the regulariser."""

    # Unit of a score for a row of norm 1: a rounded weight times 2^20.
    score: float
    # Norm of the regulariser's gradient, and a bound on it that ignores cancellation, in units of slopes.
    norm: float
    size: float
    # Scales: units of the regulariser's share for a factor of 1, and units of sums for one unit of its gradient.
    share: float
    cells: float


class Blocks(NamedTuple):
    """Results of the blocks between two barriers of a team, double-buffered."""

    slopes: np.ndarray
    shares: np.ndarray
    constants: np.ndarray
    starts: np.ndarray


class Scratch(NamedTuple):
    """Work space of one thread for one block."""

    z: np.ndarray
    scores: np.ndarray
    labels: np.ndarray
    sizes: np.ndarray
    first: np.ndarray
    second: np.ndarray
    lanes: np.ndarray


def scratch_memory(n_vectors: int) -> Scratch:
    """Allocate the work space of one thread."""
    return Scratch(
        np.empty(n_vectors * ROWS), np.empty(n_vectors * ROWS), np.empty(ROWS, np.int64), np.empty(ROWS),
        np.empty(ROWS), np.empty(ROWS), np.empty(padded_width(n_vectors)),
    )  # fmt: skip


@jit_step()
def _borrowed(rows, scratch, blocks):
    """Borrow what loops over blocks cut parts from.

    The callers of compiled functions keep it.
    """
    return (
        StoredRows(
            borrowed(rows.dense), borrowed(rows.data), borrowed(rows.indices), borrowed(rows.indptr), rows.sparse,
            borrowed(rows.constants), borrowed(rows.norms), borrowed(rows.codes),
        ),
        Scratch(
            borrowed(scratch.z), borrowed(scratch.scores), borrowed(scratch.labels), borrowed(scratch.sizes),
            borrowed(scratch.first), borrowed(scratch.second), borrowed(scratch.lanes),
        ),
        Blocks(
            borrowed(blocks.slopes), borrowed(blocks.shares), borrowed(blocks.constants), borrowed(blocks.starts)
        ),
    )  # fmt: skip


# --- slopes of the losses -------------------------------------------------------------------------------------------


@jit_step(forceinline=True)
def _smooth_slopes(smoothing, weight, h):
    """Slopes of the smoothed hinge, in place."""
    square = smoothing * smoothing
    if square > 0.0:
        for i in range(h.shape[0]):
            h[i] = weight * (0.5 + 0.5 * (h[i] / np.sqrt(h[i] * h[i] + square)))
    else:
        for i in range(h.shape[0]):
            h[i] = weight if h[i] > 0.0 else 0.0


@jit_step()
def _one_vs_rest_slopes(scores, labels, objective, h):
    """Slopes of one hinge per vector."""
    n_vectors = h.shape[0] // ROWS
    shift = 1 if n_vectors == 1 else 0
    for k in range(n_vectors):
        for r in range(ROWS):
            sign = 1.0 if labels[r] == k + shift else -1.0
            h[k * ROWS + r] = 1.0 - sign * scores[k * ROWS + r]
    _smooth_slopes(objective.smoothing, objective.loss_weight, h)
    for k in range(n_vectors):
        for r in range(ROWS):
            h[k * ROWS + r] *= -1.0 if labels[r] == k + shift else 1.0


@jit_step(forceinline=True)
def _hinge_slopes(scores, labels, objective, top, h):
    """Slopes of the sum of hinges by the rivals' scores; `top` is overwritten."""
    for r in range(ROWS):
        top[r] = 1.0 - scores[labels[r] * ROWS + r]
    for k in range(h.shape[0] // ROWS):
        for r in range(ROWS):
            h[k * ROWS + r] = scores[k * ROWS + r] + top[r]
    _smooth_slopes(objective.smoothing, objective.loss_weight, h)


@jit_step()
def _softmax_slopes(scores, objective, top, total, h):
    """Slopes of the cross-entropy by the rivals' scores.

    `top` and `total` are overwritten.
    """
    n_vectors = h.shape[0] // ROWS
    for r in range(ROWS):
        top[r], total[r] = scores[r], 0.0
    for k in range(1, n_vectors):
        for r in range(ROWS):
            top[r] = maximum(top[r], scores[k * ROWS + r])
    for k in range(n_vectors):
        for r in range(ROWS):
            h[k * ROWS + r] = exact_exp2((scores[k * ROWS + r] - top[r]) * LOG2_E)
            total[r] += h[k * ROWS + r]
    for r in range(ROWS):
        total[r] = objective.loss_weight / total[r]
    for k in range(n_vectors):
        for r in range(ROWS):
            h[k * ROWS + r] *= total[r]


@jit_step(forceinline=True)
def _balance_slopes(labels, total, h):
    """Set the slope of each row's own class to minus the sum of the others.

    `total` is overwritten.
    """
    n_vectors = h.shape[0] // ROWS
    for r in range(ROWS):
        h[labels[r] * ROWS + r] = 0.0
        total[r] = 0.0
    for k in range(n_vectors):
        for r in range(ROWS):
            total[r] += h[k * ROWS + r]
    for r in range(ROWS):
        h[labels[r] * ROWS + r] = -total[r]


@jit_step(forceinline=True)
def _slopes(scores, labels, objective, top, total, h):
    """Slopes h of the losses of eight rows by their scores.

    `top` and `total` are overwritten.
    """
    if objective.loss == _ONE_VS_REST_HINGE:
        _one_vs_rest_slopes(scores, labels, objective, h)
        return
    if objective.loss == _HINGE:
        _hinge_slopes(scores, labels, objective, top, h)
    else:
        _softmax_slopes(scores, objective, top, total, h)
    _balance_slopes(labels, total, h)


# --- clipping -------------------------------------------------------------------------------------------------------


@jit_step()
def _inside_norm(r, scratch, constants, intercept, objective, view, slope_norm, h):
    """Bound the norm of row r's gradient with the regulariser.

    `slope_norm` is that without it. Covers round-off.
    """
    z, size = scratch.z, scratch.sizes[r]
    n_vectors = h.shape[0] // ROWS
    # Round-off of float64 in the sums below; z is exact.
    slack = (n_vectors + 16) * (1.0 + np.sqrt(n_vectors)) * _EPS
    norm = slope_norm + view.norm
    if norm < _LARGEST_SCORE:
        sum_h, sum_z, product, ridge_product = 0.0, 0.0, 0.0, 0.0
        for k in range(n_vectors):
            slope, score = h[k * ROWS + r], z[k * ROWS + r]
            sum_h += slope
            sum_z += score
            product += slope * score
            ridge_product += slope * (score + intercept[k] * constants[r])
        product = objective.margin_weight * (n_vectors * product - sum_h * sum_z) + objective.ridge * ridge_product
        unit = _BOUND / objective.max_grad_norm
        square = slope_norm * slope_norm + 4.0 * product * (size * view.score * unit) + view.norm * view.norm
        error = 4.0 * slack * (slope_norm + view.size) ** 2
        # Overflow or NaN: such a product gives no bound.
        if abs(square) < _LARGEST_SCORE * _LARGEST_SCORE:
            norm = min(norm, np.sqrt(max(square, 0.0) + error))
    return norm * (1.0 + slack)


@jit_step(forceinline=True)
def _clip_slopes(scratch, constants, intercept, objective, view, shares, h):
    """Turn slopes of eight rows into whole numbers whose gradients keep to the bound.

    Sets `shares` to the whole numbers that the regulariser inside is multiplied by. `scratch.sizes` are what a slope of
    1 is in whole numbers.
    """
    sizes, length, bound = scratch.sizes, scratch.second, objective.longest
    n_vectors = h.shape[0] // ROWS
    for r in range(ROWS):
        length[r] = 0.0
    for k in range(n_vectors):
        for r in range(ROWS):
            length[r] += h[k * ROWS + r] * h[k * ROWS + r]
    for r in range(ROWS):
        length[r] = np.sqrt(length[r]) + n_vectors * _LOST_SLOPE
    if objective.inside:
        for r in range(ROWS):
            slope_norm = length[r] * sizes[r]
            norm = _inside_norm(r, scratch, constants, intercept, objective, view, slope_norm, h)
            factor = 1.0 if norm <= bound else bound / norm
            # Cancellation: two long terms might cancel each other, and sums of such rows would not be exact.
            factor = factor if factor * slope_norm <= 2.0 * bound else 2.0 * bound / slope_norm
            shares[r] = np.floor(factor * view.share)
            sizes[r] *= factor
    else:
        for r in range(ROWS):
            shares[r] = 0.0
            sizes[r] = sizes[r] if length[r] * sizes[r] <= bound else bound / length[r]
    for k in range(n_vectors):
        for r in range(ROWS):
            h[k * ROWS + r] = np.trunc(h[k * ROWS + r] * sizes[r])
    if objective.loss != _ONE_VS_REST_HINGE:
        _balance_slopes(scratch.labels, scratch.first, h)
    for r in range(ROWS):
        length[r] = 0.0
    for k in range(n_vectors):
        for r in range(ROWS):
            length[r] += h[k * ROWS + r] * h[k * ROWS + r]
    # Integer arithmetic, hence exact. A row beyond the bound, or with NaN slopes, is dropped. The test depends on no
    # other row, so the sensitivity bound holds.
    for r in range(ROWS):
        shares[r] = shares[r] if length[r] <= objective.largest_square else 0.0
    for k in range(n_vectors):
        for r in range(ROWS):
            h[k * ROWS + r] = h[k * ROWS + r] if length[r] <= objective.largest_square else 0.0


# --- rounded weights ------------------------------------------------------------------------------------------------


@jit()
def weight_scale(weights):
    """Power of two that brings the norm of weights to between 2^30 and 2^31.

    0 for weights that count as zero.
    """
    sums = np.zeros(ROWS)
    by_rows = weights.shape[0] // ROWS * ROWS
    for i in range(0, by_rows, ROWS):
        for r in range(ROWS):
            sums[r] += weights[i + r] * weights[i + r]
    for i in range(by_rows, weights.shape[0]):
        sums[0] += weights[i] * weights[i]
    norm = np.sqrt(sums.sum())
    if not _LEAST_WEIGHTS <= norm <= _LARGEST_WEIGHTS:
        # Underflow: squares of the smallest weights vanish; all count as zero.
        return 0.0
    return math.ldexp(1.0, _WEIGHT_BITS - math.frexp(norm)[1])


@jit_step(forceinline=True)
def _rounded(weight, scale):
    return weight * scale + _SHIFTER - _SHIFTER if scale > 0.0 else 0.0


@jit_step()
def _round_all(source, scale, target):
    """Round weights. Parts of arrays are counted from 0 on: places that may be negative keep loops from vectors."""
    for i in range(source.shape[0]):
        target[i] = _rounded(source[i], scale)


@jit()
def round_weights(weights, layout, scale, sparse, reduced, first, end, out):
    """Set vectors (CSR rows: features) [first, end) of `out` to rounded weights.

    For a loss that depends on differences alone, dense rows get the vectors' differences to the last one.
    """
    n_vectors, n_features, _, _ = layout
    if sparse:
        _round_all(weights[first * n_vectors : end * n_vectors], scale, out[first * n_vectors :])
    else:
        last = weights[(n_vectors - 1) * n_features :]
        for k in range(first, end):
            source, target = weights[k * n_features :], out[k * n_features :]
            if reduced:
                for j in range(n_features):
                    target[j] = _rounded(source[j], scale) - _rounded(last[j], scale)
            else:
                _round_all(source[:n_features], scale, target)
    if first == 0:
        _round_all(weights[n_vectors * n_features :], scale, out[n_vectors * n_features :])


# --- the regulariser ------------------------------------------------------------------------------------------------


@jit_step(forceinline=True)
def _weight(weight, rounds, scale):
    return _rounded(weight, scale) if rounds else weight


@jit_step()
def _set_regulariser(weights, rounds, scale, layout, objective, low, high, out):
    """Set `out` to the regulariser's gradient for features [low, high)."""
    n_vectors, n_features, _, feature_stride = layout
    by_margin, by_size = 2.0 * objective.margin_weight, 2.0 * objective.ridge
    if feature_stride == 1:
        # The sums over the vectors are stored where the last vector's gradient belongs.
        totals = out[(n_vectors - 1) * n_features + low : (n_vectors - 1) * n_features + high]
        for j in range(totals.shape[0]):
            totals[j] = 0.0
        for k in range(n_vectors):
            source = weights[k * n_features + low : k * n_features + high]
            for j in range(totals.shape[0]):
                totals[j] += _weight(source[j], rounds, scale)
        for k in range(n_vectors):
            source, target = weights[k * n_features + low : k * n_features + high], out[k * n_features + low :]
            for j in range(totals.shape[0]):
                weight = _weight(source[j], rounds, scale)
                target[j] = by_margin * (n_vectors * weight - totals[j]) + by_size * weight
    else:
        for j in range(low, high):
            source, target = weights[j * n_vectors : (j + 1) * n_vectors], out[j * n_vectors :]
            total = 0.0
            for k in range(source.shape[0]):
                total += _weight(source[k], rounds, scale)
            for k in range(source.shape[0]):
                weight = _weight(source[k], rounds, scale)
                target[k] = by_margin * (n_vectors * weight - total) + by_size * weight
    for i in range(n_features * n_vectors, weights.shape[0]):
        out[i] = by_size * _weight(weights[i], rounds, scale)


@jit()
def set_regulariser(weights, layout, objective, low, high, out):
    """Set the regulariser's gradient for features [low, high) and intercepts."""
    if objective.margin_weight == 0.0 and layout.feature_stride == 1:
        # Overflow: for larger weights, the sums below may be NaN.
        for k in range(layout.n_vectors):
            first = k * layout.n_features
            source, target = weights[first + low : first + high], out[first + low :]
            for j in range(source.shape[0]):
                target[j] = 2.0 * objective.ridge * source[j]
        for i in range(layout.n_features * layout.n_vectors, weights.shape[0]):
            out[i] = 2.0 * objective.ridge * weights[i]
    else:
        _set_regulariser(weights, False, 0.0, layout, objective, low, high, out)


@jit()
def set_inside_regulariser(weights, scale, layout, objective, low, high, out):
    """Set `out` as `set_regulariser` does, for the rounded weights as whole numbers."""
    _set_regulariser(weights, True, scale, layout, objective, low, high, out)


@jit()
def view_weights(weights, scale, layout, objective, regulariser):
    """Public numbers for rounded weights.

    `regulariser` is that of `set_inside_regulariser`.
    """
    score = 0.0 if scale == 0.0 else 1.0 / (CELLS * scale)
    if not objective.inside or scale == 0.0:
        return View(score, 0.0, 0.0, math.ldexp(1.0, SHARE_BITS), 0.0)
    square, weight_square = 0.0, 0.0
    for i in range(weights.shape[0]):
        square += regulariser[i] * regulariser[i]
        weight = _rounded(weights[i], scale)
        weight_square += weight * weight
    # Round-off of both sums.
    slack = 1.0 + (weights.shape[0] + 16) * _EPS
    unit = _BOUND / (objective.max_grad_norm * scale)
    norm = np.sqrt(square) * unit * slack
    size = 2.0 * (objective.margin_weight * layout.n_vectors + objective.ridge) * np.sqrt(weight_square) * unit * slack
    if not norm < _LARGEST_SCORE:
        # The regulariser is zero: no row includes it.
        return View(score, norm, size, 0.0, 0.0)
    # The regulariser is scaled down to the bound by a power of two, and its share of a row's gradient is scaled up by
    # it.
    shorter = math.ldexp(1.0, -max(0, math.frexp(norm / _BOUND)[1]))
    share = math.ldexp(1.0, SHARE_BITS) / shorter
    return View(score, norm, size, share, unit * shorter * math.ldexp(1.0, PRODUCT_BITS - SLOPE_BITS))


# --- sums over rows -------------------------------------------------------------------------------------------------


@jit_step()
def is_reduced(rows, objective):
    """Whether the loops work on one vector less.

    A loss over all vectors depends on differences of scores alone, and its slopes add up to 0. So the last vector can
    be subtracted from the others, and its gradient follows from theirs. This pays for dense rows.
    """
    return not rows.sparse and objective.loss != _ONE_VS_REST_HINGE


@jit_step(forceinline=True)
def _gather_block(rows, batch, upcoming, n_features, scratch, constants, starts):
    """Look up labels, norms and positions of eight rows, and of `upcoming` ones."""
    stride = 1 if rows.sparse else n_features
    n_rows = min(ROWS, batch.shape[0])
    for r in range(ROWS):
        # Padding: a short block repeats its last row, whose slopes are set to 0 later.
        i = batch[min(r, n_rows - 1)]
        starts[r] = i * stride
        starts[ROWS + r] = starts[r] if upcoming.shape[0] == 0 else upcoming[min(r, upcoming.shape[0] - 1)] * stride
        scratch.labels[r] = rows.codes[i]
        scratch.sizes[r] = rows.norms[i]
        constants[r] = rows.constants[i]
    return n_rows


@njit(inline="always")
def _block_slopes(rows, batch, upcoming, worked, layout, objective, view, scratch, starts, h, shares, constants):
    """Set `h` to the clipped slopes of eight rows, and `shares` for the regulariser.

    Sets `constants` to the constant features, and `starts` to the positions of those rows and of the first eight of
    `upcoming`: for dense rows where their numbers begin, for CSR rows their row numbers.
    """
    n_vectors, n_features, _, _ = layout
    z, scores, sizes = scratch.z, scratch.scores, scratch.sizes
    intercept = worked[n_vectors * n_features :]
    n_rows = _gather_block(rows, batch, upcoming, n_features, scratch, constants, starts)
    for i in range(z.shape[0]):
        z[i] = 0.0
    if rows.sparse:
        for r in range(n_rows):
            start, end = rows.indptr[starts[r]], rows.indptr[starts[r] + 1]
            score_entries(rows.data, rows.indices, start, end, worked, n_vectors, scratch.lanes, z, r)
    else:
        n_worked = n_vectors - 1 if is_reduced(rows, objective) else n_vectors
        score_tiles(rows.dense, starts, worked, n_worked, n_features, z)
    last, by_score = scratch.first, scratch.second
    balanced = objective.loss != _ONE_VS_REST_HINGE
    for r in range(ROWS):
        last[r] = z[(n_vectors - 1) * ROWS + r] + intercept[n_vectors - 1] * constants[r] if balanced else 0.0
        by_score[r] = sizes[r] * view.score
    for k in range(n_vectors):
        offset = intercept[k]
        for r in range(ROWS):
            # Exact: a whole number below 2^53, whether or not the last vector has been subtracted before.
            value = (z[k * ROWS + r] + offset * constants[r] - last[r]) * by_score[r]
            value = value if value < _LARGEST_SCORE else _LARGEST_SCORE
            scores[k * ROWS + r] = value if value > -_LARGEST_SCORE else -_LARGEST_SCORE
    _slopes(scores, scratch.labels, objective, scratch.first, scratch.second, h)
    for r in range(ROWS):
        sizes[r] *= _BOUND / objective.max_grad_norm
    _clip_slopes(scratch, constants, intercept, objective, view, shares, h)
    for r in range(n_rows, ROWS):
        shares[r] = 0.0
        for k in range(n_vectors):
            h[k * ROWS + r] = 0.0


@jit_step()
def _first_not_below(values, start, end, bound):
    """First place of ascending ``values[start:end]`` whose value is at least `bound`.

    `end` if there is none.
    """
    while start < end:
        middle = (start + end) // 2
        if values[middle] < bound:
            start = middle + 1
        else:
            end = middle
    return start


@njit(inline="always")
def _add_block(rows, n_rows, layout, objective, lanes, starts, h, low, high, out):
    """Add gradients of up to eight rows, for features [low, high), to `out`."""
    n_vectors, n_features, _, _ = layout
    if not rows.sparse:
        n_worked = n_vectors - 1 if is_reduced(rows, objective) else n_vectors
        add_tiles(rows.dense, starts, h, n_worked, n_features, low, high, out)
        return
    for r in range(n_rows):
        start, end = rows.indptr[starts[r]], rows.indptr[starts[r] + 1]
        if low > 0 or high < n_features:
            start = _first_not_below(rows.indices, start, end, low)
            end = _first_not_below(rows.indices, start, end, high)
        add_entries(rows.data, rows.indices, start, end, h, n_vectors, high, lanes, out, r)


@jit_step()
def _move_range(out, totals, low, high):
    """Add whole numbers to int64 totals, and clear them.

    Sums that do not fit wrap around.
    """
    source, target = out[low:high], totals[low:high]
    for i in range(source.shape[0]):
        target[i] += np.int64(source[i])
        source[i] = 0.0


@jit_step()
def _move_sums(layout, features, out, totals):
    """Move the sums for a range of features, and for intercepts, to the totals."""
    n_vectors, n_features, _, feature_stride = layout
    if feature_stride == 1:
        for k in range(n_vectors):
            _move_range(out, totals, k * n_features + features[0], k * n_features + features[1])
    else:
        _move_range(out, totals, features[0] * n_vectors, features[1] * n_vectors)
    if features[0] == 0:
        _move_range(out, totals, n_vectors * n_features, out.shape[0])


@jit()
def add_batch(
    member, team, rows, batch, upcoming, worked, layout, objective, view, scratch, blocks, features, out, total_share,
    totals,
):  # fmt: skip
    """Add the clipped gradients of a batch, for a range of features, to the totals.

    All members of a team compute the slopes together. Member 0 adds what belongs to the intercepts. The rows
    `upcoming` are fetched into the cache meanwhile.

    Parameters
    ----------
    member : int
        Number of the calling thread.
    team : tuple of int and ndarray
        Number of members, and their counter for `privsvm.numerics.compiled.spin_barrier.meet`.
    rows : StoredRows
    batch, upcoming : ndarray of int
        Row numbers.
    worked : ndarray
        Flat rounded weights; see `round_weights`.
    layout : Layout
    objective : Objective
    view : View
    scratch : Scratch
    blocks : Blocks
    features : tuple of int
        First feature, and the one behind the last.
    out : ndarray
        Laid out like weights; zeros, before and after.
    total_share : ndarray of int64 (2,)
        Grows by the sum of the regulariser's parts, in two words of which the lower has `SHARE_BITS`.
    totals : ndarray of int64
        Laid out like weights. In whole numbers of ``max_grad_norm 2^-38``.

    Returns
    -------
    bool
        False if a thread has given up.
    """
    n_members, meetings = team
    rows, scratch, blocks = _borrowed(rows, scratch, blocks)
    batch, upcoming, worked, out = borrowed(batch), borrowed(upcoming), borrowed(worked), borrowed(out)
    slopes, shares, constants, starts = blocks
    n_vectors, n_features, _, _ = layout
    by_intercept = out[n_vectors * n_features :]
    n_blocks, n_stored = (batch.shape[0] + ROWS - 1) // ROWS, slopes.shape[1]
    half, share, n_summed = 0, np.int64(0), 0
    for begin in range(0, max(n_blocks, 1), n_stored):
        end = min(begin + n_stored, n_blocks)
        for b in range(begin + member, end, n_members):
            _block_slopes(
                rows, batch[b * ROWS :], upcoming[b * ROWS :], worked, layout, objective, view, scratch,
                starts[half, b - begin], slopes[half, b - begin], shares[half, b - begin], constants[half, b - begin],
            )  # fmt: skip
        # Double buffering: fast threads may fill the other half, then wait.
        if not meet(meetings, n_members):
            return False
        for b in range(begin, end):
            h = slopes[half, b - begin]
            n_rows = min(ROWS, batch.shape[0] - b * ROWS)
            row_starts = starts[half, b - begin]
            _add_block(rows, n_rows, layout, objective, scratch.lanes, row_starts, h, features[0], features[1], out)
            if objective.inside:
                for r in range(ROWS):
                    share += np.int64(shares[half, b - begin, r])
            if member == 0 and objective.has_intercept:
                for k in range(n_vectors):
                    total = 0.0
                    for r in range(ROWS):
                        total += h[k * ROWS + r] * constants[half, b - begin, r]
                    by_intercept[k] += total
            n_summed += ROWS
            if n_summed == _EXACT_ROWS or b + 1 == n_blocks:
                _move_sums(layout, features, out, totals)
                # Each share is at most 6 * 2^20.
                total_share[1] += share
                total_share[0] += total_share[1] >> SHARE_BITS
                total_share[1] &= (1 << SHARE_BITS) - 1
                n_summed, share = 0, np.int64(0)
        half = 1 - half
    return True


@jit()
def finish_sum(rows, layout, objective, features, total_share, view, regulariser, totals):
    """Add the last vector's gradient, and the regulariser inside, to the totals."""
    n_vectors, n_features, vector_stride, feature_stride = layout
    if is_reduced(rows, objective):
        last = totals[(n_vectors - 1) * n_features + features[0] : (n_vectors - 1) * n_features + features[1]]
        for k in range(n_vectors - 1):
            source = totals[k * n_features + features[0] :]
            for j in range(last.shape[0]):
                last[j] -= source[j]
    if view.cells > 0.0:
        high, low = total_share[0], total_share[1]
        for j in range(features[0], features[1]):
            for k in range(n_vectors):
                index = k * vector_stride + j * feature_stride
                cell = np.int64(regulariser[index] * view.cells)
                totals[index] += high * cell + ((low * cell) >> SHARE_BITS)
        if features[0] == 0:
            for i in range(n_vectors * n_features, totals.shape[0]):
                cell = np.int64(regulariser[i] * view.cells)
                totals[i] += high * cell + ((low * cell) >> SHARE_BITS)
