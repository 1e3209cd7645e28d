"""The sum of clipped row gradients of linear models: losses, clipping and regularisers, compiled.

The loops work on blocks of eight rows. Scores z and slopes h of a block are stored by vector: eight numbers for the
first vector, eight for the second, and so on. Weights, gradients and the optimizer's memory are flat: number (k, j) is
at ``k * vector_stride + j * feature_stride``, and the intercepts come last. For dense rows the numbers of one vector
lie together, for CSR rows those of one feature.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from privsvm.numerics.jit import jit, jit_step
from privsvm.numerics.row_tiles import ROWS, add_tiles, score_tiles
from privsvm.numerics.sparse_rows import add_entries, padded_width, score_entries
from privsvm.numerics.team import meet
from privsvm.numerics.vector_math import LOG2_E, exp2, maximum

__all__ = [
    "LOSSES",
    "Blocks",
    "Layout",
    "Objective",
    "Scratch",
    "StoredRows",
    "add_batch",
    "finish_sum",
    "is_reduced",
    "regulariser_norms",
    "row_norms",
    "scratch_memory",
    "set_regulariser",
    "subtract_last",
]

LOSSES = ("hinge", "softmax", "one_vs_rest_hinge")
_HINGE, _SOFTMAX, _ONE_VS_REST_HINGE = range(3)

_EPS = float(np.finfo(float).eps)
_TINY = float(np.finfo(float).tiny)
# Larger scores are cut to this, so that their squares stay finite.
_LARGEST_SCORE = 1e150
# Longer rows do not count.
_LARGEST_SIZE = 1e150
# The square of a slope below this may underflow to 0.
_LOST_SLOPE = 2e-154


class StoredRows(NamedTuple):
    """Training rows: the numbers of dense rows one after the other, or CSR arrays."""

    dense: np.ndarray
    data: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray
    sparse: bool
    # Norms, the constant feature included.
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
    # Whether the regulariser is a part of each row's gradient.
    inside: bool
    # 0 without intercepts.
    intercept_scale: float
    max_grad_norm: float


class Blocks(NamedTuple):
    """Slopes, clipping factors and row positions of the blocks between two meetings of a team, twice."""

    slopes: np.ndarray
    shares: np.ndarray
    starts: np.ndarray


class Scratch(NamedTuple):
    """Work space of one thread for one block: by vector (z, scores), by row, and by vector for one row (lanes)."""

    z: np.ndarray
    scores: np.ndarray
    labels: np.ndarray
    sizes: np.ndarray
    first: np.ndarray
    second: np.ndarray
    lanes: np.ndarray


@jit_step()
def scratch_memory(n_vectors):
    """Allocate the work space of one thread."""
    return Scratch(
        np.empty(n_vectors * ROWS), np.empty(n_vectors * ROWS), np.empty(ROWS, np.int64), np.empty(ROWS),
        np.empty(ROWS), np.empty(ROWS), np.empty(padded_width(n_vectors)),
    )  # fmt: skip


@jit(fastmath={"reassoc", "contract"})
def row_norms(data, bounds, out):
    """Norms of rows, without overflow on the way; row i is ``data[bounds[i]:bounds[i + 1]]``."""
    for i in range(out.shape[0]):
        row = data[bounds[i] : bounds[i + 1]]
        total, largest = 0.0, 0.0
        for j in range(row.shape[0]):
            total += row[j] * row[j]
        if not 1e-200 < total < 1e200:
            for j in range(row.shape[0]):
                largest = max(largest, abs(row[j]))
            total = 0.0
            for j in range(row.shape[0]):
                total += (row[j] / max(largest, _TINY)) ** 2
            out[i] = largest * np.sqrt(total)
        else:
            out[i] = np.sqrt(total)


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
    """Slopes of the cross-entropy by the rivals' scores; `top` and `total` are overwritten."""
    n_vectors = h.shape[0] // ROWS
    for r in range(ROWS):
        top[r], total[r] = scores[r], 0.0
    for k in range(1, n_vectors):
        for r in range(ROWS):
            top[r] = maximum(top[r], scores[k * ROWS + r])
    for k in range(n_vectors):
        for r in range(ROWS):
            h[k * ROWS + r] = exp2((scores[k * ROWS + r] - top[r]) * LOG2_E)
            total[r] += h[k * ROWS + r]
    for r in range(ROWS):
        total[r] = objective.loss_weight / total[r]
    for k in range(n_vectors):
        for r in range(ROWS):
            h[k * ROWS + r] *= total[r]


@jit_step(forceinline=True)
def _balance_slopes(labels, total, h):
    """Set the slope of each row's own class to minus the sum of the others; `total` is overwritten."""
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
    """Slopes h of the losses of eight rows by their scores; `top` and `total` are overwritten."""
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
def _gradient_norm(r, scratch, intercept, objective, regulariser_norm, weight_size, slack, h):
    """Norm of the gradient of row r with the regulariser inside; overestimated by more than round-off."""
    z, scores, steepness, size = scratch.z, scratch.scores, scratch.second[r], scratch.sizes[r]
    n_vectors = h.shape[0] // ROWS
    upper = steepness * size + regulariser_norm
    norm = upper
    largest = 0.0
    for k in range(n_vectors):
        largest = max(largest, abs(scores[k * ROWS + r]))
    # Scores that were cut say nothing about the angle of the two parts.
    if upper < _LARGEST_SCORE and largest < _LARGEST_SCORE:
        sum_h, sum_z, product, ridge_product = 0.0, 0.0, 0.0, 0.0
        for k in range(n_vectors):
            slope, score = h[k * ROWS + r], z[k * ROWS + r]
            sum_h += slope
            sum_z += score
            product += slope * score
            ridge_product += slope * (score + objective.intercept_scale * intercept[k])
        product = objective.margin_weight * (n_vectors * product - sum_h * sum_z) + objective.ridge * ridge_product
        square = (steepness * size) ** 2 + 4.0 * product + regulariser_norm**2
        error = 4.0 * slack * (steepness * size + weight_size) ** 2
        norm = min(upper, np.sqrt(max(square, 0.0) + error))
    return norm * (1.0 + slack)


@jit_step(forceinline=True)
def _clip_slopes(scratch, n_features, intercept, objective, regulariser_norm, weight_size, shares, h):
    """Scale the slopes h of eight rows so that no row's gradient is longer than the bound.

    Sets `shares` to the factors, which also scale the regulariser.
    """
    sizes, steepness, bound = scratch.sizes, scratch.second, objective.max_grad_norm
    n_vectors = h.shape[0] // ROWS
    slack = (n_features + n_vectors + 16) * _EPS
    for r in range(ROWS):
        steepness[r] = 0.0
    for k in range(n_vectors):
        for r in range(ROWS):
            steepness[r] += h[k * ROWS + r] * h[k * ROWS + r]
    for r in range(ROWS):
        steepness[r] = np.sqrt(steepness[r]) + n_vectors * _LOST_SLOPE
    if objective.inside:
        for r in range(ROWS):
            norm = _gradient_norm(r, scratch, intercept, objective, regulariser_norm, weight_size, slack, h)
            shares[r] = 1.0 if norm <= bound else bound * (1.0 - slack) / norm
    else:
        for r in range(ROWS):
            short = steepness[r] * sizes[r] * (1.0 + slack) <= bound
            # One division after the other: the product may overflow.
            shares[r] = 1.0 if short else bound * (1.0 - slack) / sizes[r] / steepness[r]
    for r in range(ROWS):
        # Rows too long for the arithmetic do not count. No other row has a say in this, so the bound holds.
        if not sizes[r] <= _LARGEST_SIZE or not shares[r] <= 1.0:
            shares[r] = 0.0
    for k in range(n_vectors):
        for r in range(ROWS):
            h[k * ROWS + r] *= shares[r]


# --- the regulariser ------------------------------------------------------------------------------------------------


@jit()
def set_regulariser(weights, layout, objective, low, high, out):
    """Set `out` to the regulariser's gradient by the weights of features [low, high), and by the intercepts."""
    n_vectors, n_features, vector_stride, feature_stride = layout
    margin_weight, ridge = objective.margin_weight, objective.ridge
    if margin_weight == 0.0 and feature_stride == 1:
        for k in range(n_vectors):
            source, target = weights[k * vector_stride + low : k * vector_stride + high], out[k * vector_stride + low :]
            for j in range(source.shape[0]):
                target[j] = 2.0 * ridge * source[j]
    else:
        for j in range(low, high):
            total = 0.0
            for k in range(n_vectors):
                total += weights[k * vector_stride + j * feature_stride]
            for k in range(n_vectors):
                place = k * vector_stride + j * feature_stride
                out[place] = 2.0 * margin_weight * (n_vectors * weights[place] - total)
                out[place] += 2.0 * ridge * weights[place]
    for i in range(n_features * n_vectors, weights.shape[0]):
        out[i] = 2.0 * ridge * weights[i]


@jit()
def regulariser_norms(weights, layout, objective, regulariser):
    """Norm of the regulariser's gradient, and a bound on it that ignores cancellation."""
    square, weight_square = 0.0, 0.0
    for i in range(weights.shape[0]):
        square += regulariser[i] * regulariser[i]
        weight_square += weights[i] * weights[i]
    factor = objective.margin_weight * layout.n_vectors + objective.ridge
    return np.sqrt(square), 2.0 * factor * np.sqrt(weight_square)


# --- sums over rows -------------------------------------------------------------------------------------------------


@jit_step()
def is_reduced(rows, objective):
    """Whether the loops work on one vector less.

    A loss over all vectors depends on differences of scores alone, and its slopes add up to 0. So the last vector can
    be subtracted from the others, and its gradient follows from theirs. This pays for dense rows.
    """
    return not rows.sparse and objective.loss != _ONE_VS_REST_HINGE


@jit()
def subtract_last(weights, layout, first, end, worked):
    """Set the vectors [first, end) of `worked`, for dense rows, to their difference to the last one."""
    n_vectors, n_features, _, _ = layout
    last = weights[(n_vectors - 1) * n_features :]
    for k in range(first, end):
        source, target = weights[k * n_features :], worked[k * n_features :]
        for j in range(n_features):
            target[j] = source[j] - last[j]


@jit_step(forceinline=True)
def _gather_block(rows, batch, upcoming, n_features, scratch, starts):
    """Look up labels, norms and positions of the first eight rows of `batch`, and positions of `upcoming` rows."""
    stride = 1 if rows.sparse else n_features
    n_rows = min(ROWS, batch.shape[0])
    for r in range(ROWS):
        # A short block is filled up with its last row, whose slopes are set to 0 later.
        i = batch[min(r, n_rows - 1)]
        starts[r] = i * stride
        starts[ROWS + r] = starts[r] if upcoming.shape[0] == 0 else upcoming[min(r, upcoming.shape[0] - 1)] * stride
        scratch.labels[r] = rows.codes[i]
        scratch.sizes[r] = rows.norms[i]
    return n_rows


@njit(inline="always")
def _block_slopes(rows, batch, upcoming, weights, worked, layout, objective, norms, scratch, starts, h, shares):
    """Set `h` to the clipped slopes of the first eight rows of `batch`, and `shares` to the clipping factors.

    Sets `starts` to the positions of those rows and of the first eight of `upcoming`: for dense rows where their
    numbers begin, for CSR rows their row numbers.
    """
    n_vectors, n_features, _, _ = layout
    z, scores = scratch.z, scratch.scores
    intercept = weights[n_vectors * n_features :]
    n_rows = _gather_block(rows, batch, upcoming, n_features, scratch, starts)
    for i in range(z.shape[0]):
        z[i] = 0.0
    if rows.sparse:
        for r in range(n_rows):
            start, end = rows.indptr[starts[r]], rows.indptr[starts[r] + 1]
            score_entries(rows.data, rows.indices, start, end, weights, n_vectors, scratch.lanes, z, r)
    else:
        n_worked = n_vectors - 1 if is_reduced(rows, objective) else n_vectors
        score_tiles(rows.dense, starts, worked, n_worked, n_features, z)
    for k in range(n_vectors):
        offset = objective.intercept_scale * intercept[k]
        for r in range(ROWS):
            value = z[k * ROWS + r] + offset
            # Scores of huge rows may be NaN.
            value = value if value < _LARGEST_SCORE else _LARGEST_SCORE
            scores[k * ROWS + r] = value if value > -_LARGEST_SCORE else -_LARGEST_SCORE
    _slopes(scores, scratch.labels, objective, scratch.first, scratch.second, h)
    _clip_slopes(scratch, n_features, intercept, objective, norms[0], norms[1], shares, h)
    for r in range(n_rows, ROWS):
        shares[r] = 0.0
        for k in range(n_vectors):
            h[k * ROWS + r] = 0.0


@jit_step()
def _first_not_below(values, start, end, bound):
    """First place of ascending ``values[start:end]`` whose value is at least `bound`; `end` if there is none."""
    while start < end:
        middle = (start + end) // 2
        if values[middle] < bound:
            start = middle + 1
        else:
            end = middle
    return start


@njit(inline="always")
def _add_block(rows, n_rows, layout, objective, lanes, starts, h, low, high, out):
    """Add the gradients of up to eight rows, by the weights of features [low, high), to `out`."""
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


@jit()
def add_batch(
    member, team, rows, batch, upcoming, weights, worked, layout, objective, norms, scratch, blocks, part, out
):
    """Add the clipped gradients of the rows `batch`, by the weights of a part of the features, to `out`.

    All members of a team compute the slopes together. Member 0 adds what belongs to the intercepts. The rows
    `upcoming` are fetched into the cache meanwhile.

    Parameters
    ----------
    member : int
        Who calls.
    team : tuple of int and ndarray
        Number of members, and their counter for `privsvm.numerics.team.meet`.
    rows : StoredRows
    batch, upcoming : ndarray of int
        Row numbers.
    weights, worked : ndarray
        Flat weights, and what the loops use in their place; see `subtract_last`.
    layout : Layout
    objective : Objective
    norms : tuple of float
        See `regulariser_norms`; zeros unless the regulariser is inside.
    scratch : Scratch
    blocks : Blocks
    part : tuple of int
        First feature, and the one behind the last.
    out : ndarray
        Laid out like `weights`.

    Returns
    -------
    float
        Sum of the clipping factors; -1 if a member has given up.
    """
    n_members, meetings = team
    slopes, shares, starts = blocks
    n_vectors, n_features, _, _ = layout
    scale, by_intercept = objective.intercept_scale, out[n_vectors * n_features :]
    n_blocks, n_stored = (batch.shape[0] + ROWS - 1) // ROWS, slopes.shape[1]
    total_share, half = 0.0, 0
    for begin in range(0, max(n_blocks, 1), n_stored):
        end = min(begin + n_stored, n_blocks)
        for b in range(begin + member, end, n_members):
            _block_slopes(
                rows, batch[b * ROWS :], upcoming[b * ROWS :], weights, worked, layout, objective, norms, scratch,
                starts[half, b - begin], slopes[half, b - begin], shares[half, b - begin],
            )  # fmt: skip
        # The first ones go on with the other half of the memory, and no further.
        if not meet(meetings, n_members):
            return -1.0
        for b in range(begin, end):
            h = slopes[half, b - begin]
            n_rows = min(ROWS, batch.shape[0] - b * ROWS)
            places = starts[half, b - begin]
            _add_block(rows, n_rows, layout, objective, scratch.lanes, places, h, part[0], part[1], out)
            for r in range(ROWS):
                total_share += shares[half, b - begin, r]
            if member == 0 and scale > 0.0:
                for k in range(n_vectors):
                    total = 0.0
                    for r in range(ROWS):
                        total += h[k * ROWS + r]
                    by_intercept[k] += scale * total
        half = 1 - half
    return total_share


@jit()
def finish_sum(rows, layout, objective, part, total_share, regulariser, out):
    """Add the last vector's gradient, and the regulariser that is inside, to a part of `out`."""
    n_vectors, n_features, vector_stride, feature_stride = layout
    if is_reduced(rows, objective):
        last = out[(n_vectors - 1) * n_features + part[0] : (n_vectors - 1) * n_features + part[1]]
        for k in range(n_vectors - 1):
            source = out[k * n_features + part[0] :]
            for j in range(last.shape[0]):
                last[j] -= source[j]
    if objective.inside and (objective.margin_weight > 0.0 or objective.ridge > 0.0) and total_share > 0.0:
        for j in range(part[0], part[1]):
            for k in range(n_vectors):
                place = k * vector_stride + j * feature_stride
                out[place] += total_share * regulariser[place]
        if part[0] == 0:
            for i in range(n_vectors * n_features, out.shape[0]):
                out[i] += total_share * regulariser[i]
