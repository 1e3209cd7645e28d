"""Linear models for several classes by noisy steps along the sum of clipped row gradients.

Every loss here depends on a row x through the scores ``z = W x + s b`` only (s is the constant feature's value), so
the gradient of one row is the product ``h (x, s)'`` of its slopes h (c,) and the row. Its norm is the product of two
norms, and clipping scales h: no gradient of a single row is ever stored (for the general idea see Goodfellow 2015,
Efficient per-example gradient computations).

One step (Abadi et al. 2016, Deep learning with differential privacy, Algorithm 1) takes every row independently with
the same probability, adds up the clipped gradients, adds Gaussian noise to every number of the sum, divides by the
expected number of rows, and hands the result to the optimizer. Nothing else depends on the rows.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import scipy.sparse
from numba import njit

from privsvm.errors import nearest_name
from privsvm.numerics.row_tiles import ROWS, add_tiles, score_tiles
from privsvm.numerics.sparse_rows import PADDING, add_entries, canonical_rows, padded_width, score_entries
from privsvm.numerics.team import meet, run_team
from privsvm.numerics.vector_math import LOG2_E, exp2, maximum
from privsvm.numerics.vector_random import BUFFER, load_normals, next_exponentials, open_stream

__all__ = [
    "AVERAGES",
    "LOSSES",
    "OPTIMIZERS",
    "REGULARISERS",
    "SCHEDULES",
    "GradientSteps",
    "GradientStepsResult",
    "clipped_gradient_sum",
    "learning_rates",
    "noisy_gradient_steps",
    "repeated_noisy_gradient_steps",
    "warm_up",
]

LOSSES = ("hinge", "softmax", "one_vs_rest_hinge")
SCHEDULES = ("constant", "linear", "cosine", "inverse_sqrt")
OPTIMIZERS = ("sgd", "adam")
AVERAGES = ("none", "all", "last_half")
REGULARISERS = ("outside", "inside")
HINGE, SOFTMAX, ONE_VS_REST_HINGE = range(3)
SGD, ADAM = range(2)

_EPS = float(np.finfo(float).eps)
_TINY = float(np.finfo(float).tiny)
# Above this, products of settings and rows might overflow.
_LARGEST_SETTING = 1e100
# Scores beyond this are cut to it: their squares are still numbers.
_LARGEST_SCORE = 1e150
# Longer rows count for nothing.
_LARGEST_SIZE = 1e150
_LOST_SLOPE = 2e-154

# Blocks of eight rows between two meetings of a team.
_STORED_BLOCKS = 64
# Multiplications of a step that are worth another thread, and what a random number costs in them.
_MEMBER_WORK = 200_000
_NORMAL_WORK = 20.0


@dataclasses.dataclass(frozen=True, kw_only=True)
class GradientSteps:
    """What to minimise, and by which steps.

    The objective is the mean of ``loss_weight * loss`` over the rows, plus
    ``margin_weight * sum_{k<l} ||w_k - w_l||^2 + ridge * (||W||^2 + ||b||^2)``.

    Parameters
    ----------
    loss : {"hinge", "softmax", "one_vs_rest_hinge"}, default="hinge"
        Of a row with label y and scores z. ``hinge``: ``sum_{k != y} smooth(1 - (z_y - z_k))`` with
        ``smooth(g) = (g + sqrt(g^2 + smoothing^2)) / 2`` (PMSVM, eq. 12). ``softmax``: cross-entropy.
        ``one_vs_rest_hinge``: ``sum_k smooth(1 - z_k)`` for k = y, ``smooth(1 + z_k)`` for the others; with a single
        vector, label 1 is the positive one.
    smoothing : float, default=0.1
        Width of the smoothed corner of the hinge; 0 gives the hinge itself.
    loss_weight : float, default=1.0
        Multiplies a row's loss before clipping.
    margin_weight : float, default=0.0
        Weight lambda of the squared distances between weight vectors; intercepts are left out.
    ridge : float, default=0.0
        Weight mu of the squared norm of weights and intercepts.
    regulariser : {"outside", "inside"}, default="outside"
        ``outside``: the exact gradient of the two terms is added after the noise. ``inside``: it is a part of every
        row's gradient before that is clipped (PMSVM, eq. 15).
    fit_intercept : bool, default=True
        Whether there are intercepts.
    intercept_scale : float, default=1.0
        Value s of the constant feature that goes with an intercept: scores are ``W x + s b``.
    max_grad_norm : float, default=1.0
        Bound R on the norm of one row's gradient, over all classes, weights and intercepts.
    noise_scale : float, default=0.0
        Standard deviation of the noise on every number of the sum of clipped gradients.
    sample_rate : float, default=1.0
        Probability of each row to be in a step.
    n_steps : int, default=1
        Number of steps T.
    expected_batch : float, default=1.0
        The noisy sum is divided by this.
    optimizer : {"sgd", "adam"}, default="sgd"
        ``adam`` is that of Kingma and Ba (2015), with corrected moments.
    momentum : float, default=0.0
        For sgd: ``v = momentum * v + gradient``, and the step is along v.
    beta1, beta2, adam_epsilon : float
        Numbers of adam.
    learning_rate : float
        Length factor of the first step.
    schedule : {"constant", "linear", "cosine", "inverse_sqrt"}, default="constant"
        How it goes on; see `learning_rates`.
    average : {"none", "all", "last_half"}, default="none"
        What is returned: the last iterate, the mean of all T, or of the last half of them (rounded up).

    Raises
    ------
    ValueError
        For a name that is not known, or a number out of range.
    """

    loss: str = "hinge"
    smoothing: float = 0.1
    loss_weight: float = 1.0
    margin_weight: float = 0.0
    ridge: float = 0.0
    regulariser: str = "outside"
    fit_intercept: bool = True
    intercept_scale: float = 1.0
    max_grad_norm: float = 1.0
    noise_scale: float = 0.0
    sample_rate: float = 1.0
    n_steps: int = 1
    expected_batch: float = 1.0
    optimizer: str = "sgd"
    momentum: float = 0.0
    beta1: float = 0.9
    beta2: float = 0.999
    adam_epsilon: float = 1e-8
    learning_rate: float
    schedule: str = "constant"
    average: str = "none"

    def __post_init__(self) -> None:
        names = {
            "loss": LOSSES,
            "regulariser": REGULARISERS,
            "optimizer": OPTIMIZERS,
            "schedule": SCHEDULES,
            "average": AVERAGES,
        }
        for name, known in names.items():
            if getattr(self, name) not in known:
                raise ValueError(f"{name}={getattr(self, name)!r}: {nearest_name(getattr(self, name), known)}")
        if isinstance(self.n_steps, bool) or not isinstance(self.n_steps, (int, np.integer)) or self.n_steps < 0:
            raise ValueError(f"n_steps={self.n_steps!r}: must be a whole number, at least 0")
        tests = {
            "smoothing": self.smoothing >= 0,
            "loss_weight": self.loss_weight >= 0,
            "margin_weight": self.margin_weight >= 0,
            "ridge": self.ridge >= 0,
            "intercept_scale": self.intercept_scale > 0,
            "max_grad_norm": self.max_grad_norm > 0,
            "noise_scale": self.noise_scale >= 0,
            "sample_rate": 0 <= self.sample_rate <= 1,
            "expected_batch": self.expected_batch > 0,
            "momentum": 0 <= self.momentum < 1,
            "beta1": 0 <= self.beta1 < 1,
            "beta2": 0 <= self.beta2 < 1,
            "adam_epsilon": self.adam_epsilon > 0,
            "learning_rate": self.learning_rate > 0,
        }
        for name, holds in tests.items():
            value = getattr(self, name)
            if not (holds and value <= _LARGEST_SETTING):
                raise ValueError(f"{name}={value!r}: out of range")


@dataclasses.dataclass(frozen=True, kw_only=True)
class GradientStepsResult:
    """A linear model.

    Attributes
    ----------
    coef : ndarray (c, d)
        One weight vector a class.
    intercept : ndarray (c,)
        What is added to the scores, the constant feature's value included.
    history_coef : ndarray (H, c, d)
        Models after every so many steps: their averages so far, once averaging has begun, else the iterates.
    history_intercept : ndarray (H, c)
        Its intercepts.
    """

    coef: np.ndarray
    intercept: np.ndarray
    history_coef: np.ndarray
    history_intercept: np.ndarray


def learning_rates(steps: GradientSteps) -> np.ndarray:
    """Learning rate of every step.

    Parameters
    ----------
    steps : GradientSteps
        Settings.

    Returns
    -------
    ndarray (T,)
        For t = 0, 1, ...: ``linear`` multiplies by ``1 - t / T``, ``cosine`` by ``(1 + cos(pi t / T)) / 2``,
        ``inverse_sqrt`` by ``1 / sqrt(t + 1)``.
    """
    t = np.arange(steps.n_steps, dtype=float)
    share = t / max(steps.n_steps, 1)
    factors = {
        "constant": np.ones_like(t),
        "linear": 1.0 - share,
        "cosine": 0.5 * (1.0 + np.cos(np.pi * share)),
        "inverse_sqrt": 1.0 / np.sqrt(t + 1.0),
    }
    return steps.learning_rate * factors[steps.schedule]


# The numbers of one problem, in the order the kernels unpack them.
def _numbers(steps: GradientSteps) -> tuple:
    return (
        LOSSES.index(steps.loss),
        float(steps.smoothing),
        float(steps.loss_weight),
        float(steps.margin_weight),
        float(steps.ridge),
        steps.regulariser == "inside",
        float(steps.intercept_scale) if steps.fit_intercept else 0.0,
        float(steps.max_grad_norm),
    )


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract"})
def _norms(data, bounds, out):
    """Norms of rows, each the numbers of `data` from one bound to the next, without overflow on the way."""
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


# Rows are worked on in blocks of eight. A block's scores z and slopes h are stored by vector: eight numbers for the
# first one, eight for the second, and so on. Weights, gradients and the optimizer's memory are flat: number (k, j) is
# at ``k * step_k + j * step_j``, the intercepts come last. Dense rows want vectors one after the other, CSR rows the
# numbers of one feature.


@njit(cache=True, nogil=True, error_model="numpy")
def _smooth_slopes(smoothing, weight, h):
    """Slopes of the smoothed hinge, in place."""
    square = smoothing * smoothing
    if square > 0.0:
        for i in range(h.shape[0]):
            h[i] = weight * (0.5 + 0.5 * (h[i] / np.sqrt(h[i] * h[i] + square)))
    else:
        for i in range(h.shape[0]):
            h[i] = weight if h[i] > 0.0 else 0.0


@njit(cache=True, nogil=True, error_model="numpy")
def _slopes(scores, labels, loss, smoothing, weight, top, total, h):
    """Slopes h of the losses of eight rows by their scores; `top` and `total` are overwritten."""
    n_vectors = h.shape[0] // ROWS
    if loss == ONE_VS_REST_HINGE:
        shift = 1 if n_vectors == 1 else 0
        for k in range(n_vectors):
            for r in range(ROWS):
                sign = 1.0 if labels[r] == k + shift else -1.0
                h[k * ROWS + r] = 1.0 - sign * scores[k * ROWS + r]
        _smooth_slopes(smoothing, weight, h)
        for k in range(n_vectors):
            for r in range(ROWS):
                h[k * ROWS + r] *= -1.0 if labels[r] == k + shift else 1.0
        return
    if loss == HINGE:
        for r in range(ROWS):
            top[r] = 1.0 - scores[labels[r] * ROWS + r]
        for k in range(n_vectors):
            for r in range(ROWS):
                h[k * ROWS + r] = scores[k * ROWS + r] + top[r]
        _smooth_slopes(smoothing, weight, h)
    else:
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
            total[r] = weight / total[r]
        for k in range(n_vectors):
            for r in range(ROWS):
                h[k * ROWS + r] *= total[r]
    # The slopes of a row add up to 0, exactly as far as others are concerned.
    for r in range(ROWS):
        h[labels[r] * ROWS + r] = 0.0
        total[r] = 0.0
    for k in range(n_vectors):
        for r in range(ROWS):
            total[r] += h[k * ROWS + r]
    for r in range(ROWS):
        h[labels[r] * ROWS + r] = -total[r]


@njit(cache=True, nogil=True, error_model="numpy")
def _clip_slopes(z, scores, sizes, n_features, intercept, numbers, regulariser_norm, weight_size, steepness, shares, h):
    """Scale the slopes h of eight rows so that no row's gradient is too long.

    Sets `shares` to what the regulariser is scaled by. The norm of a row's gradient is overestimated by more than
    round-off.
    """
    _loss, _smoothing, _weight, margin, ridge, inside, s, bound = numbers
    n_vectors = h.shape[0] // ROWS
    slack = (n_features + n_vectors + 16) * _EPS
    for r in range(ROWS):
        steepness[r] = 0.0
    for k in range(n_vectors):
        for r in range(ROWS):
            steepness[r] += h[k * ROWS + r] * h[k * ROWS + r]
    for r in range(ROWS):
        # Squares of slopes below 1e-154 are 0; the slopes are not.
        steepness[r] = np.sqrt(steepness[r]) + n_vectors * _LOST_SLOPE
    if inside:
        for r in range(ROWS):
            upper = steepness[r] * sizes[r] + regulariser_norm
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
                    ridge_product += slope * (score + s * intercept[k])
                product = margin * (n_vectors * product - sum_h * sum_z) + ridge * ridge_product
                square = (steepness[r] * sizes[r]) ** 2 + 4.0 * product + regulariser_norm**2
                error = 4.0 * slack * (steepness[r] * sizes[r] + weight_size) ** 2
                norm = min(upper, np.sqrt(max(square, 0.0) + error))
            norm *= 1.0 + slack
            shares[r] = 1.0 if norm <= bound else bound * (1.0 - slack) / norm
    else:
        for r in range(ROWS):
            short = steepness[r] * sizes[r] * (1.0 + slack) <= bound
            # One after the other: the product may overflow.
            shares[r] = 1.0 if short else bound * (1.0 - slack) / sizes[r] / steepness[r]
    for r in range(ROWS):
        # Rows too long for the arithmetic do not count; that no other row has a say in this, keeps the bound.
        if not sizes[r] <= _LARGEST_SIZE or not shares[r] <= 1.0:
            shares[r] = 0.0
    for k in range(n_vectors):
        for r in range(ROWS):
            h[k * ROWS + r] *= shares[r]


@njit(cache=True, nogil=True, error_model="numpy")
def _regulariser(weights, shape, numbers, low, high, out):
    """Gradient of the regulariser by the weights of features [low, high), and by the intercepts."""
    _loss, _smoothing, _weight, margin, ridge, _inside, _s, _bound = numbers
    n_vectors, n_features, step_k, step_j = shape
    if margin == 0.0 and step_j == 1:
        for k in range(n_vectors):
            source, target = weights[k * step_k + low : k * step_k + high], out[k * step_k + low :]
            for j in range(source.shape[0]):
                target[j] = 2.0 * ridge * source[j]
    else:
        for j in range(low, high):
            total = 0.0
            for k in range(n_vectors):
                total += weights[k * step_k + j * step_j]
            for k in range(n_vectors):
                place = k * step_k + j * step_j
                out[place] = 2.0 * margin * (n_vectors * weights[place] - total)
                out[place] += 2.0 * ridge * weights[place]
    for i in range(n_features * n_vectors, weights.shape[0]):
        out[i] = 2.0 * ridge * weights[i]


@njit(cache=True, nogil=True, error_model="numpy")
def _regulariser_norms(weights, shape, numbers, regulariser):
    """Norm of the regulariser's gradient, and a bound on it that knows of no cancellation."""
    _loss, _smoothing, _weight, margin, ridge, _inside, _s, _bound = numbers
    square, weight_square = 0.0, 0.0
    for i in range(weights.shape[0]):
        square += regulariser[i] * regulariser[i]
        weight_square += weights[i] * weights[i]
    return np.sqrt(square), 2.0 * (margin * shape[0] + ridge) * np.sqrt(weight_square)


@njit(cache=True, nogil=True, error_model="numpy")
def _is_reduced(rows, numbers):
    """Whether one vector less is worked on.

    The losses of all vectors together see differences of scores, and their slopes add up to 0. Worth it for dense rows.
    """
    return not rows[4] and numbers[0] != ONE_VS_REST_HINGE


@njit(cache=True, nogil=True, error_model="numpy")
def _subtract_last(weights, shape, first, end, worked):
    """Set the vectors [first, end) of `worked` to how far those of dense rows are from the last one."""
    n_vectors, n_features, _, _ = shape
    last = weights[(n_vectors - 1) * n_features :]
    for k in range(first, end):
        source, target = weights[k * n_features :], worked[k * n_features :]
        for j in range(n_features):
            target[j] = source[j] - last[j]


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def _block_slopes(rows, batch, upcoming, weights, worked, shape, numbers, norms, work, starts, h, shares):
    """Set `h` to the clipped slopes of the first eight rows of `batch`, `shares` to the clip's factors.

    Sets `starts` to where those rows, and the first eight of `upcoming`, begin; for CSR rows, to their numbers.
    """
    X, data, indices, indptr, sparse, norms_of_rows, codes = rows
    loss, smoothing, weight, _margin, _ridge, _inside, s, _bound = numbers
    n_vectors, n_features, _, _ = shape
    (z, scores), labels, (sizes, row_1, row_2), lanes = work
    intercept = weights[n_vectors * n_features :]
    n_rows, stride = min(ROWS, batch.shape[0]), 1 if sparse else n_features
    for r in range(ROWS):
        # The last block is filled up with its last row, and the slopes of those are 0.
        i = batch[min(r, n_rows - 1)]
        starts[r] = i * stride
        starts[ROWS + r] = starts[r] if upcoming.shape[0] == 0 else upcoming[min(r, upcoming.shape[0] - 1)] * stride
        labels[r] = codes[i]
        sizes[r] = norms_of_rows[i]
    for i in range(z.shape[0]):
        z[i] = 0.0
    if sparse:
        for r in range(n_rows):
            start, end = indptr[starts[r]], indptr[starts[r] + 1]
            score_entries(data, indices, start, end, weights, n_vectors, lanes, z, r)
    else:
        n_worked = n_vectors - 1 if _is_reduced(rows, numbers) else n_vectors
        score_tiles(X, starts, worked, n_worked, n_features, z)
    for k in range(n_vectors):
        offset = s * intercept[k]
        for r in range(ROWS):
            value = z[k * ROWS + r] + offset
            # Those of huge rows may be no numbers at all.
            value = value if value < _LARGEST_SCORE else _LARGEST_SCORE
            scores[k * ROWS + r] = value if value > -_LARGEST_SCORE else -_LARGEST_SCORE
    _slopes(scores, labels, loss, smoothing, weight, row_1, row_2, h)
    _clip_slopes(z, scores, sizes, n_features, intercept, numbers, norms[0], norms[1], row_2, shares, h)
    for r in range(n_rows, ROWS):
        shares[r] = 0.0
        for k in range(n_vectors):
            h[k * ROWS + r] = 0.0


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def _add_block(rows, n_rows, shape, numbers, work, starts, h, low, high, out):
    """Add the gradients of up to eight rows, by the weights of features [low, high), to `out`."""
    X, data, indices, indptr, sparse, _norms, _codes = rows
    n_vectors, n_features, _, _ = shape
    lanes = work[3]
    if not sparse:
        n_worked = n_vectors - 1 if _is_reduced(rows, numbers) else n_vectors
        add_tiles(X, starts, h, n_worked, n_features, low, high, out)
        return
    for r in range(n_rows):
        start, end = indptr[starts[r]], indptr[starts[r] + 1]
        if low > 0 or high < n_features:
            entries = indices[start:end]
            end = start + np.searchsorted(entries, high)
            start += np.searchsorted(entries, low)
        add_entries(data, indices, start, end, h, n_vectors, high, lanes, out, r)


@njit(cache=True, nogil=True, error_model="numpy")
def _add_batch(member, team, rows, batch, upcoming, weights, worked, shape, numbers, norms, work, blocks, part, out):
    """Add the clipped gradients of the rows `batch`, by the weights of a part of the features, to `out`.

    The rows' slopes are computed by all members together. Member 0 adds what belongs to the intercepts. The rows
    `upcoming` are brought near. Returns the sum of what the regulariser is scaled by; -1 if a member has given up.
    """
    n_members, meetings = team
    slopes, shares, starts = blocks
    n_vectors, n_features, _, _ = shape
    s, by_intercept = numbers[6], out[n_vectors * n_features :]
    n_blocks, n_stored = (batch.shape[0] + ROWS - 1) // ROWS, slopes.shape[1]
    total_share, half = 0.0, 0
    for begin in range(0, max(n_blocks, 1), n_stored):
        end = min(begin + n_stored, n_blocks)
        for b in range(begin + member, end, n_members):
            _block_slopes(
                rows, batch[b * ROWS :], upcoming[b * ROWS :], weights, worked, shape, numbers, norms, work,
                starts[half, b - begin], slopes[half, b - begin], shares[half, b - begin],
            )  # fmt: skip
        # Those who are first go on with the other half of the memory, and no further.
        if not meet(meetings, n_members):
            return -1.0
        for b in range(begin, end):
            h = slopes[half, b - begin]
            n_rows = min(ROWS, batch.shape[0] - b * ROWS)
            _add_block(rows, n_rows, shape, numbers, work, starts[half, b - begin], h, part[0], part[1], out)
            for r in range(ROWS):
                total_share += shares[half, b - begin, r]
            if member == 0 and s > 0.0:
                for k in range(n_vectors):
                    total = 0.0
                    for r in range(ROWS):
                        total += h[k * ROWS + r]
                    by_intercept[k] += s * total
        half = 1 - half
    return total_share


@njit(cache=True, nogil=True, error_model="numpy")
def _finish_sum(rows, shape, numbers, part, total_share, regulariser, out):
    """Add what follows from the other vectors' gradients, and from the regulariser, to a part of `out`."""
    _loss, _smoothing, _weight, margin, ridge, inside, _s, _bound = numbers
    n_vectors, n_features, step_k, step_j = shape
    if _is_reduced(rows, numbers):
        last = out[(n_vectors - 1) * n_features + part[0] : (n_vectors - 1) * n_features + part[1]]
        for k in range(n_vectors - 1):
            source = out[k * n_features + part[0] :]
            for j in range(last.shape[0]):
                last[j] -= source[j]
    if inside and (margin > 0.0 or ridge > 0.0) and total_share > 0.0:
        for j in range(part[0], part[1]):
            for k in range(n_vectors):
                out[k * step_k + j * step_j] += total_share * regulariser[k * step_k + j * step_j]
        if part[0] == 0:
            for i in range(n_vectors * n_features, out.shape[0]):
                out[i] += total_share * regulariser[i]


@njit(cache=True, nogil=True, error_model="numpy")
def _clipped_sum(member, meetings, parts, rows, weights, shape, numbers, blocks, out):
    """Set `out` to the sum of the clipped gradients of all rows, laid out like `weights`; for a team of one."""
    inside, n_members, part, norms = numbers[5], parts.shape[0] - 1, (parts[member], parts[member + 1]), (0.0, 0.0)
    regulariser, worked, work = np.zeros(weights.shape[0]), weights, _work(shape[0])
    if inside:
        _regulariser(weights, shape, numbers, part[0], part[1], regulariser)
        norms = _regulariser_norms(weights, shape, numbers, regulariser)
    if _is_reduced(rows, numbers):
        worked = np.empty(weights.shape[0])
        _subtract_last(weights, shape, part[0], shape[0] - 1, worked)
    batch, team = np.arange(rows[5].shape[0]), (n_members, meetings)
    total_share = _add_batch(
        member, team, rows, batch, batch[:0], weights, worked, shape, numbers, norms, work, blocks, part, out
    )
    _finish_sum(rows, shape, numbers, part, total_share, regulariser, out)


@njit(cache=True, nogil=True, error_model="numpy")
def _sample(stream, rate, mean_gap, n_rows, batch):
    """List the rows that are drawn, each with probability `rate`; returns how many.

    The gap before the next row is geometric: the whole part of `mean_gap`, which is ``-1 / log(1 - rate)``, times an
    exponential number.
    """
    if rate >= 1.0:
        for i in range(n_rows):
            batch[i] = i
        return n_rows
    if rate <= 0.0:
        return 0
    position, numbers = stream[1], stream[3]
    used: Any = np.int64(position[1])
    count, place = 0, -1.0
    while True:
        if used == numbers.shape[0]:
            next_exponentials(stream)
            used = 0
        place += 1.0 + np.floor(numbers[used] * mean_gap)
        used += 1
        if not place < n_rows:
            position[1] = np.uint64(used)
            return count
        batch[count] = np.int64(place)
        count += 1


@njit(cache=True, nogil=True, error_model="numpy")
def _work(n_vectors):
    """Memory for a block, of each member's own: by vector, labels, numbers of the rows, and of one row by vector."""
    by_vector = (np.empty(n_vectors * ROWS), np.empty(n_vectors * ROWS))
    by_row = (np.empty(ROWS), np.empty(ROWS), np.empty(ROWS))
    return by_vector, np.empty(ROWS, np.int64), by_row, np.empty(padded_width(n_vectors))


@njit(cache=True, nogil=True, error_model="numpy")
def _update(t, rate, gradient, weights, memory, settings):
    """Take one step of the optimizer along `gradient`."""
    optimizer, momentum, beta1, beta2, epsilon = settings
    first, second = memory
    if optimizer == ADAM:
        correct_1, correct_2 = 1.0 / (1.0 - beta1 ** (t + 1)), 1.0 / (1.0 - beta2 ** (t + 1))
        for i in range(weights.shape[0]):
            g = gradient[i]
            first[i] = beta1 * first[i] + (1.0 - beta1) * g
            second[i] = beta2 * second[i] + (1.0 - beta2) * g * g
            weights[i] -= rate * (first[i] * correct_1) / (np.sqrt(second[i] * correct_2) + epsilon)
    elif momentum > 0.0:
        for i in range(weights.shape[0]):
            first[i] = momentum * first[i] + gradient[i]
            weights[i] -= rate * first[i]
    else:
        for i in range(weights.shape[0]):
            weights[i] -= rate * gradient[i]


@njit(cache=True, nogil=True, error_model="numpy")
def _share_gradient(shape, part, own, gradient):
    """Move a part of the features' gradients, and the intercepts', to where all members find them."""
    n_vectors, n_features, _, _ = shape
    for k in range(n_vectors):
        source = own[k * n_features + part[0] : k * n_features + part[1]]
        target = gradient[k * n_features + part[0] :]
        for j in range(source.shape[0]):
            target[j] = source[j]
            source[j] = 0.0
    if part[0] == 0:
        source, target = own[n_vectors * n_features :], gradient[n_vectors * n_features :]
        for k in range(n_vectors):
            target[k] = source[k]
            source[k] = 0.0


@njit(cache=True, nogil=True, error_model="numpy")
def _finish_step(t, schedule, settings, low, high, noise, place, model):
    """Turn the sum of gradients into the step's direction and take it, for the numbers [low, high) of the model.

    Random number `place` belongs to the model's first number. The sum is cleared for the next step.
    """
    rates, average_from, noise_scale, portion, outside = schedule
    share = 1.0 / (t - average_from + 1.0)
    while low < high:
        # As many at a time as stay in the fastest cache.
        end = min(low + BUFFER, high)
        begin = 0
        if noise_scale > 0.0:
            begin = load_normals(noise, place + low)
            end = min(low + BUFFER - begin, high)
        weights, gradient, mean, first, second, regulariser = model
        weights, gradient, mean = weights[low:end], gradient[low:end], mean[low:end]
        if noise_scale > 0.0:
            numbers = noise[3][begin : begin + end - low]
            for i in range(gradient.shape[0]):
                gradient[i] += noise_scale * numbers[i]
        if outside:
            regulariser = regulariser[low:end]
            for i in range(gradient.shape[0]):
                gradient[i] = gradient[i] * portion + regulariser[i]
        else:
            for i in range(gradient.shape[0]):
                gradient[i] *= portion
        _update(t, rates[t], gradient, weights, (first[low:end], second[low:end]), settings)
        if t >= average_from:
            for i in range(mean.shape[0]):
                mean[i] += share * (weights[i] - mean[i])
        for i in range(gradient.shape[0]):
            gradient[i] = 0.0
        low = end


@njit(cache=True, nogil=True, error_model="numpy")
def _cut(place, size, member, n_members):
    """First of the `size` numbers of a model that a member changes, where random number `place` is the first's.

    Who has more than one has whole buffers of random numbers, but for the ends.
    """
    if member == 0 or member == n_members:
        return size if member > 0 else 0
    buffer = (place + size * member // n_members + BUFFER // 2) // BUFFER
    return min(max(0, buffer * BUFFER - place), size)


@njit(cache=True, nogil=True, error_model="numpy")
def _steps(
    member, meetings, parts, rows, shape, numbers, schedule, settings, sample_rate, record_every, sampling, noise,
    models, memory, blocks, own, history,
):  # fmt: skip
    """Run all steps for every model of `models` (n_runs, size), one run after the other.

    All members of a team draw the same rows. Each computes slopes for some of them, adds up gradients for a part of
    the features, in memory of its `own` where the parts of dense rows lie too close together, and changes a part of
    the model.
    """
    _loss, _smoothing, _weight, margin, ridge, inside, s, _bound = numbers
    rates, average_from, _noise_scale, _portion, outside = schedule
    n_vectors = shape[0]
    n_members, n_rows, size = parts.shape[0] - 1, rows[5].shape[0], models.shape[1]
    part = (parts[member], parts[member + 1])
    weights, gradient, first, second, worked, regulariser = memory
    batch, upcoming, work = np.empty(n_rows, np.int64), np.empty(n_rows, np.int64), _work(n_vectors)
    norms, team = (0.0, 0.0), (n_members, meetings)
    inside = inside and (margin > 0.0 or ridge > 0.0)
    reduced, separate = _is_reduced(rows, numbers), n_members > 1 and not rows[4]
    own = own if separate else gradient
    # Without intercepts, their part stays 0.
    used = size if s > 0.0 else size - n_vectors
    mean_gap = -1.0 / np.log1p(-sample_rate) if 0.0 < sample_rate < 1.0 else 0.0
    for run in range(models.shape[0]):
        model = (weights, gradient, models[run], first, second, regulariser)
        if member == 0:
            for i in range(size):
                weights[i], gradient[i], models[run, i], first[i], second[i] = 0.0, 0.0, 0.0, 0.0, 0.0
            for i in range(worked.shape[0]):
                worked[i] = 0.0
        if not meet(meetings, n_members):
            return
        n_upcoming = 0
        for t in range(-1, rates.shape[0]):
            # A step ahead, so that the rows are there in time.
            count, batch, upcoming = n_upcoming, upcoming, batch
            if t + 1 < rates.shape[0]:
                n_upcoming = _sample(sampling, sample_rate, mean_gap, n_rows, upcoming)
            if t < 0:
                continue
            if inside or outside:
                _regulariser(weights, shape, numbers, part[0], part[1], regulariser)
            if inside:
                if not meet(meetings, n_members):
                    return
                norms = _regulariser_norms(weights, shape, numbers, regulariser)
            total_share = _add_batch(
                member, team, rows, batch[:count], upcoming[:n_upcoming], weights, worked, shape, numbers, norms, work,
                blocks, part, own,
            )  # fmt: skip
            if total_share < 0.0:
                return
            _finish_sum(rows, shape, numbers, part, total_share, regulariser, own)
            if separate:
                _share_gradient(shape, part, own, gradient)
            if not meet(meetings, n_members):
                return
            place = (run * rates.shape[0] + t) * used
            low, high = _cut(place, used, member, n_members), _cut(place, used, member + 1, n_members)
            _finish_step(t, schedule, settings, low, high, noise, place, model)
            if not meet(meetings, n_members):
                return
            if reduced:
                low, high = (n_vectors - 1) * member // n_members, (n_vectors - 1) * (member + 1) // n_members
                _subtract_last(weights, shape, low, high, worked)
                if not meet(meetings, n_members):
                    return
            if member == 0 and record_every > 0 and (t + 1) % record_every == 0:
                source = models[run] if t >= average_from else weights
                target = history[(t + 1) // record_every - 1]
                for i in range(size):
                    target[i] = source[i]


def _writable(array: np.ndarray, dtype: type) -> np.ndarray:
    """Copy what is read-only: Numba would compile everything once more for it."""
    return np.require(array, dtype=dtype, requirements=["C", "W"])


def _storage(X, codes, steps: GradientSteps) -> tuple[Any, ...]:
    """Lay rows out for the kernels: dense numbers, CSR arrays, which of the two, norms with intercept, codes."""
    codes = _writable(codes, np.int64)
    norms = np.empty(X.shape[0])
    s = float(steps.intercept_scale) if steps.fit_intercept else 0.0
    if scipy.sparse.issparse(X):
        # A number stored in two parts has a larger norm than they.
        X = canonical_rows(X)
        data = _writable(X.data, np.float64)
        indices, indptr = _writable(X.indices, np.int64), _writable(X.indptr, np.int64)
        _norms(data, indptr, norms)
        return np.empty(0), data, indices, indptr, True, np.hypot(norms, s), codes
    X = _writable(X, np.float64)
    numbers, empty = X.reshape(-1), np.empty(0, dtype=np.int64)
    _norms(numbers, np.arange(X.shape[0] + 1) * X.shape[1], norms)
    return numbers, np.empty(0), empty, empty, False, np.hypot(norms, s), codes


def _shape(X, n_vectors: int) -> tuple[int, int, int, int]:
    """Count vectors and features, and the numbers from one vector, and from one feature, to the next."""
    n_features = X.shape[1]
    if scipy.sparse.issparse(X):
        return n_vectors, n_features, 1, n_vectors
    return n_vectors, n_features, n_features, 1


def _parts(flat: np.ndarray, shape: tuple[int, int, int, int], scale: float) -> tuple[np.ndarray, np.ndarray]:
    """Weights (..., c, d), and intercepts (..., c) times `scale`, of flat models."""
    n_vectors, n_features, step_k, _ = shape
    coef, intercept = flat[..., : n_vectors * n_features], flat[..., n_vectors * n_features :]
    if step_k == 1:
        coef = coef.reshape(*flat.shape[:-1], n_features, n_vectors).swapaxes(-1, -2)
    else:
        coef = coef.reshape(*flat.shape[:-1], n_vectors, n_features)
    return np.ascontiguousarray(coef), scale * intercept


def _check(X, codes, n_classes: int, steps: GradientSteps) -> None:
    least = 1 if steps.loss == "one_vs_rest_hinge" else 2
    if n_classes < least:
        raise ValueError(f"n_classes={n_classes!r}: loss {steps.loss!r} needs at least {least}")
    codes = np.asarray(codes)
    if codes.shape != (X.shape[0],):
        raise ValueError(f"codes of shape {codes.shape} for {X.shape[0]} rows")
    if codes.size and not 0 <= codes.min() <= codes.max() < max(n_classes, 2):
        raise ValueError(f"codes must lie between 0 and {max(n_classes, 2) - 1}")


def clipped_gradient_sum(
    X, codes: np.ndarray, coef: np.ndarray, intercept: np.ndarray, steps: GradientSteps
) -> tuple[np.ndarray, np.ndarray]:
    """Sum of the clipped gradients of all rows: what noise is added to, by the kernel of the training loop.

    Parameters
    ----------
    X : ndarray or CSR matrix (n, d)
        Rows; finite.
    codes : ndarray of int (n,)
        Class codes.
    coef : ndarray (c, d)
        Weight vectors.
    intercept : ndarray (c,)
        Intercepts b: scores are ``coef x + intercept_scale b``.
    steps : GradientSteps
        Settings.

    Returns
    -------
    coef_part : ndarray (c, d)
    intercept_part : ndarray (c,)
        By b; zeros without intercepts.
    """
    coef = np.asarray(coef, dtype=np.float64)
    _check(X, codes, coef.shape[0], steps)
    shape = _shape(X, coef.shape[0])
    size = coef.shape[0] * (coef.shape[1] + 1)
    weights, out = np.zeros(size + PADDING)[:size], np.zeros(size + PADDING)[:size]
    weights[: coef.size] = (coef.T if shape[2] == 1 else coef).ravel()
    if steps.fit_intercept:
        weights[coef.size :] = intercept
    # A team of one, that meets nobody.
    parts, meetings = np.array([0, X.shape[1]]), np.empty(0, dtype=np.int64)
    rows, numbers, blocks = _storage(X, codes, steps), _numbers(steps), _blocks(1, X.shape[0], shape)
    _clipped_sum(0, meetings, parts, rows, weights, shape, numbers, blocks, out)
    return _parts(out, shape, 1.0)


def _blocks(n_members: int, n_rows: int, shape: tuple[int, int, int, int]) -> tuple[np.ndarray, ...]:
    """Memory for slopes, clip's factors and places of the blocks between two meetings, twice.

    Who works alone adds a block's gradients at once, while its rows are in the fastest cache.
    """
    n_stored = 1 if n_members == 1 else min(_STORED_BLOCKS, n_rows // ROWS + 1)
    places = np.empty((2, n_stored, 2 * ROWS), dtype=np.int64)
    return np.empty((2, n_stored, shape[0] * ROWS)), np.empty((2, n_stored, ROWS)), places


def _feature_parts(X, n_vectors: int, steps: GradientSteps, n_threads: int) -> np.ndarray:
    """Boundaries of the features that each member of a team has; a single part where more do not pay."""
    n_rows, n_features = X.shape
    per_row = X.nnz / max(n_rows, 1) if scipy.sparse.issparse(X) else n_features
    work = n_vectors * (2.0 * steps.sample_rate * n_rows * per_row + _NORMAL_WORK * n_features)
    n_members = max(1, min(n_threads, int(work / _MEMBER_WORK), n_features // ROWS))
    # Tiles work on eight features at least.
    parts = np.arange(n_members + 1) * (n_features // ROWS) // n_members * ROWS
    parts[-1] = n_features
    return parts


def _run(
    X, codes, n_classes: int, steps: GradientSteps, rng: np.random.Generator, n_runs: int, record_every: int,
    n_threads: int = 1,
):  # fmt: skip
    _check(X, codes, n_classes, steps)
    shape, numbers, rows = _shape(X, n_classes), _numbers(steps), _storage(X, codes, steps)
    size = n_classes * (X.shape[1] + 1)
    # The mean of the last iterate alone is that iterate.
    average_from = {"none": steps.n_steps - 1, "all": 0, "last_half": steps.n_steps // 2}[steps.average]
    outside = steps.regulariser == "outside" and (steps.margin_weight > 0 or steps.ridge > 0)
    schedule = (
        learning_rates(steps), average_from, float(steps.noise_scale), 1.0 / float(steps.expected_batch), outside
    )  # fmt: skip
    settings = (
        OPTIMIZERS.index(steps.optimizer), float(steps.momentum), float(steps.beta1), float(steps.beta2),
        float(steps.adam_epsilon),
    )  # fmt: skip
    models = np.empty((n_runs, size))
    history = np.empty((steps.n_steps // record_every if record_every else 0, size))
    parts = _feature_parts(X, n_classes, steps, n_threads)
    n_members = parts.size - 1
    weights, gradient = (np.empty(size + PADDING)[:size] for _ in range(2))
    worked = np.empty(size) if _is_reduced.py_func(rows, numbers) else weights
    memory = (weights, gradient, np.empty(size), np.empty(size), worked, np.empty(size))
    blocks = _blocks(n_members, X.shape[0], shape)
    streams = open_stream(rng), open_stream(rng)

    def work(member: int, meetings: np.ndarray) -> None:
        # All draw the same numbers.
        sampling, noise = (tuple(part.copy() for part in stream) for stream in streams)
        own = np.zeros(size + PADDING)[:size]
        _steps(
            member, meetings, parts, rows, shape, numbers, schedule, settings, float(steps.sample_rate), record_every,
            sampling, noise, models, memory, blocks, own, history,
        )  # fmt: skip

    run_team(work, n_members)
    return _parts(models, shape, steps.intercept_scale), _parts(history, shape, steps.intercept_scale)


def noisy_gradient_steps(
    X,
    codes: np.ndarray,
    n_classes: int,
    steps: GradientSteps,
    rng: np.random.Generator,
    record_every: int = 0,
    n_threads: int = 1,
) -> GradientStepsResult:
    """Train from weights of zero.

    Parameters
    ----------
    X : ndarray or CSR matrix (n, d)
        Rows; finite.
    codes : ndarray of int (n,)
        Class codes ``0..n_classes-1``; classes may be missing. With one vector (`n_classes` 1): 0 and 1.
    n_classes : int
        Number of weight vectors c.
    steps : GradientSteps
        Settings.
    rng : numpy.random.Generator
        Keys the two streams of the run, one for sampling and one for noise, by 256 bits each. Nothing else is drawn
        from it. Noise goes to other places for dense than for CSR rows.
    record_every : int, default=0
        Keep the model after every so many steps; 0: never.
    n_threads : int, default=1
        Threads at most, at least 1; few work on small problems. The result does not depend on them. Each keeps a core
        busy all the time.

    Returns
    -------
    GradientStepsResult

    Raises
    ------
    ValueError
        If class codes are out of range, or there are too few vectors for the loss.
    """
    (coef, intercept), (history_coef, history_intercept) = _run(
        X, codes, n_classes, steps, rng, 1, int(record_every), int(n_threads)
    )
    return GradientStepsResult(
        coef=coef[0], intercept=intercept[0], history_coef=history_coef, history_intercept=history_intercept
    )


def repeated_noisy_gradient_steps(
    X, codes: np.ndarray, n_classes: int, steps: GradientSteps, rng: np.random.Generator, n_runs: int
) -> tuple[np.ndarray, np.ndarray]:
    """Train many models independently, for audits.

    Parameters
    ----------
    X, codes, n_classes, steps, rng
        See `noisy_gradient_steps`. The runs share two streams, keyed once. There may be no rows.
    n_runs : int
        Number of runs.

    Returns
    -------
    coef : ndarray (n_runs, c, d)
    intercept : ndarray (n_runs, c)
        What is added to the scores, the constant feature's value included.
    """
    return _run(X, codes, n_classes, steps, rng, int(n_runs), 0)[0]


def warm_up() -> None:
    """Compile the kernels."""
    steps = GradientSteps(learning_rate=0.1, noise_scale=0.1, sample_rate=0.5, n_steps=1)
    rng = np.random.default_rng(0)
    noisy_gradient_steps(np.eye(2), np.arange(2), 2, steps, rng)
    clipped_gradient_sum(np.eye(2), np.arange(2), np.zeros((2, 2)), np.zeros(2), steps)
