"""Multi-class linear models by noisy steps along sums of clipped gradients.

Every loss here depends on a row x through the scores ``z = W x + s b`` only (s is the constant feature's value), so
the gradient of one row is the product ``h (x, s)'`` of its slopes h (c,) and the row. Its norm is the product of two
norms, and clipping scales h: no gradient of a single row is ever stored (for the general idea see Goodfellow 2015,
Efficient per-example gradient computations).

One step (Abadi et al. 2016, Deep learning with differential privacy, Algorithm 1) takes every row independently with
the same probability, adds up the clipped gradients, adds Gaussian noise to every number of the sum, divides by the
expected number of rows, and hands the result to the optimizer. Nothing else depends on the rows.

Up to the noise all is exact: rows and clipped slopes are whole numbers (`privsvm.solvers.gradients.clipped_gradients`),
their sums are too, and so is the noise (`privsvm.numerics.noise.rounded_normals`). `docs/proofs/noisy_gradients.md` has
the proof.
"""

from __future__ import annotations

import dataclasses
import math
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
import scipy.sparse

from privsvm.errors import nearest_name
from privsvm.numerics.compiled.spin_barrier import run_team
from privsvm.numerics.compiled.vector_random import BUFFER
from privsvm.numerics.noise.exact_draws import sampling_threshold
from privsvm.numerics.noise.noise_source import NO_TAPE, ROUND_UP, NoiseSource, Stated, as_source
from privsvm.numerics.noise.rounded_normals import check_sigma, open_rounded_stream
from privsvm.numerics.rows.row_tiles import ROWS
from privsvm.numerics.rows.sparse_rows import PADDING, canonical_rows
from privsvm.numerics.rows.unit_grid import unit_cells
from privsvm.solvers.gradients.clipped_gradients import (
    LOSSES,
    PRODUCT_BITS,
    SLOPE_BITS,
    Blocks,
    Layout,
    Objective,
    StoredRows,
    add_batch,
    finish_sum,
    is_reduced,
    round_weights,
    scratch_memory,
    set_inside_regulariser,
    view_weights,
    weight_scale,
)
from privsvm.solvers.gradients.noisy_steps import (
    OPTIMIZERS,
    DrawnRows,
    Memory,
    Optimizer,
    Sampling,
    Schedule,
    run_steps,
)

__all__ = [
    "AVERAGES",
    "DENSE",
    "LOSSES",
    "OPTIMIZERS",
    "REGULARISERS",
    "SCHEDULES",
    "GradientSteps",
    "GradientStepsResult",
    "PreparedRows",
    "blocks_of_one",
    "clipped_gradient_sum",
    "dense_unit_cells",
    "learning_rates",
    "noisy_gradient_steps",
    "objective_of",
    "optimizer_of",
    "parts_of",
    "prepare_rows",
    "repeated_noisy_gradient_steps",
    "sampling_of",
    "schedule_of",
    "stored_rows",
    "threshold_of",
    "warm_up",
]

SCHEDULES = ("constant", "linear", "cosine", "inverse_sqrt")
AVERAGES = ("none", "all", "last_half")
REGULARISERS = ("outside", "inside")

# Precision of dense rows: float32 holds whole numbers up to a million, and halves the memory traffic of a step.
DENSE = np.float32
# Cache: numbers of a block of rows that is prepared at a time.
_PREPARED_TOGETHER = 2**18

# Rounding of a sum costs at most this share of the bound on a row's gradient.
_GRID_BITS = 20
# Cells per standard deviation: more take long to draw.
_MANY_CELLS = 2.0**40
# Round-off: clipping stays below the bound by more than this.
_ROUND_OFF = 2.0**-40

# Overflow: above this, products of settings and rows might overflow.
_LARGEST_SETTING = 1e100

# Size of the cache of converted settings: short runs often repeat the same ones.
_KEPT_SETTINGS = 16

# Blocks of eight rows between two barriers of a team.
_STORED_BLOCKS = 64
# Multiplications of a step that pay for another thread, and those that a random number costs.
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
        Bound R on the norm of one row's gradient, over all classes, weights and intercepts. It holds exactly, and
        covers what a row changes by the rounding of sums. Gradients are resolved to about ``R 2^-18``. With the
        regulariser inside, a row's own part is at most 2 R long.
    noise_scale : float, default=0.0
        Standard deviation of the noise on every number of the sum of clipped gradients, rounded up a little.
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
        for name, choices in names.items():
            if getattr(self, name) not in choices:
                raise ValueError(f"{name}={getattr(self, name)!r}: {nearest_name(getattr(self, name), choices)}")
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


def _rounding_shift(steps: GradientSteps, size: int) -> int:
    """Choose the noise's grid for `size` numbers: 2^shift units of the sums."""
    if steps.noise_scale == 0.0:
        return 0
    shift = max(0, PRODUCT_BITS - _GRID_BITS - math.ceil(math.log2(size) / 2.0))
    cells = steps.noise_scale / steps.max_grad_norm * 2.0 ** (PRODUCT_BITS - shift)
    if cells > _MANY_CELLS:
        shift += math.ceil(math.log2(cells / _MANY_CELLS))
    return shift


def _clipping_share(steps: GradientSteps, n_vectors: int, n_features: int) -> Fraction:
    """Return the share of the bound for clipped slopes, within a row's sensitivity."""
    size = n_vectors * (n_features + int(steps.fit_intercept))
    # The root, rounded up.
    root = math.isqrt(max(size - 1, 0)) + 1
    cost = Fraction(0)
    if steps.noise_scale > 0.0:
        cost += root * Fraction(2) ** (_rounding_shift(steps, size) - PRODUCT_BITS)
    if _is_inside(steps):
        cost += n_vectors * Fraction(1, 2**18) + Fraction(1, 2**19) + root * Fraction(1, 2**34)
    if cost > Fraction(1, 2):
        raise ValueError(
            f"noise_scale={steps.noise_scale!r}, max_grad_norm={steps.max_grad_norm!r}: so much noise, or so many "
            "numbers, cannot be put on a grid"
        )
    return 1 - cost


def _is_inside(steps: GradientSteps) -> bool:
    return steps.regulariser == "inside" and (steps.margin_weight > 0 or steps.ridge > 0)


@lru_cache(maxsize=_KEPT_SETTINGS)
def objective_of(steps: GradientSteps, n_vectors: int, n_features: int) -> Objective:
    """Convert the objective's settings to the types of the compiled loops."""
    inside = _is_inside(steps)
    longest = 2**SLOPE_BITS * _clipping_share(steps, n_vectors, n_features)
    return Objective(
        loss=LOSSES.index(steps.loss),
        smoothing=float(steps.smoothing),
        loss_weight=float(steps.loss_weight),
        margin_weight=float(steps.margin_weight),
        ridge=float(steps.ridge),
        inside=inside,
        has_intercept=bool(steps.fit_intercept),
        max_grad_norm=float(steps.max_grad_norm),
        longest=float(longest) * (1.0 - _ROUND_OFF),
        # With the regulariser inside, clipping keeps sums exact, and the bound applies to the sum of both terms.
        largest_square=float(math.floor((2 * longest if inside else longest) ** 2)),
    )


@lru_cache(maxsize=_KEPT_SETTINGS)
def schedule_of(steps: GradientSteps, size: int) -> Schedule:
    """Convert the settings that say what happens in which step."""
    # The mean of the last iterate alone is that iterate.
    average_from = {"none": steps.n_steps - 1, "all": 0, "last_half": steps.n_steps // 2}[steps.average]
    shift = _rounding_shift(steps, size)
    cell = math.ldexp(float(steps.max_grad_norm), shift - PRODUCT_BITS)
    sigma = float(steps.noise_scale) / cell * ROUND_UP
    if sigma > 0.0:
        check_sigma(sigma)
    return Schedule(
        rates=learning_rates(steps),
        average_from=average_from,
        shift=shift,
        sigma=sigma,
        cell=cell,
        portion=1.0 / float(steps.expected_batch),
        outside=steps.regulariser == "outside" and (steps.margin_weight > 0 or steps.ridge > 0),
    )


@lru_cache(maxsize=_KEPT_SETTINGS)
def threshold_of(steps: GradientSteps) -> int:
    """Return the sampling rate in units of 2^-64, rounded down."""
    return 0 if steps.sample_rate < 2.0**-64 else sampling_threshold(float(steps.sample_rate))[0]


def sampling_of(threshold: int, key: bytes, n_rows: int) -> Sampling:
    """Convert the sampling rate."""
    return Sampling(
        key=np.frombuffer(key, dtype="<u4").astype(np.uint32),
        any_drawn=threshold > 0,
        all_drawn=threshold == 2**64,
        last=np.uint64(max(threshold, 1) - 1),
        # Memory: no more words than rows are drawn at a time.
        bits=np.empty(min(BUFFER, -(-max(n_rows, 1) // 128) * 128), dtype=np.uint64),
    )


def optimizer_of(steps: GradientSteps) -> Optimizer:
    """Convert the optimizer's settings."""
    return Optimizer(
        kind=OPTIMIZERS.index(steps.optimizer),
        momentum=float(steps.momentum),
        beta1=float(steps.beta1),
        beta2=float(steps.beta2),
        epsilon=float(steps.adam_epsilon),
    )


@dataclasses.dataclass(frozen=True)
class PreparedRows:
    """Rows in the form that training works with; see `prepare_rows`.

    Attributes
    ----------
    cells : ndarray of float32 or CSR matrix of float64 (n, d)
        Unit rows, as whole numbers.
    constants, norms : ndarray (n,)
        Whole numbers of the constant feature, and norms; see `privsvm.numerics.rows.unit_grid`.
    scale : float
        Value of the constant feature; 0 for none.
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

    @property
    def sparse(self) -> bool:
        """Whether the rows are CSR."""
        return scipy.sparse.issparse(self.cells)


def prepare_rows(X: Any, steps: GradientSteps) -> PreparedRows:
    """Bring rows into the form that training works with, once for many models.

    Parameters
    ----------
    X : ndarray, CSR matrix or PreparedRows (n, d)
        Rows; finite.
    steps : GradientSteps
        Its constant feature counts.

    Returns
    -------
    PreparedRows
    """
    scale = float(steps.intercept_scale) if steps.fit_intercept else 0.0
    if isinstance(X, PreparedRows):
        if X.scale != scale:
            raise ValueError(f"X was prepared for a constant feature of {X.scale!r}, not {scale!r}")
        return X
    if scipy.sparse.issparse(X):
        # Duplicate entries: a number stored in two entries has a larger norm than they.
        return PreparedRows(*unit_cells(canonical_rows(X), scale), scale)
    return PreparedRows(*dense_unit_cells(X, scale), scale)


def dense_unit_cells(X: np.ndarray, scale: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Compute `unit_cells` of dense rows, in the precision of the compiled loops."""
    n_rows, n_features = X.shape
    cells, constants, norms = np.empty(X.shape, dtype=DENSE), np.empty(n_rows), np.empty(n_rows)
    n_block_rows = max(1, _PREPARED_TOGETHER // max(n_features, 1))
    for start in range(0, n_rows, n_block_rows):
        block = slice(start, start + n_block_rows)
        cells[block], constants[block], norms[block] = unit_cells(X[block], scale)
    return cells, constants, norms


def stored_rows(cells: Any, constants: np.ndarray, norms: np.ndarray, codes: np.ndarray) -> StoredRows:
    """Lay prepared rows out for the compiled loops."""
    # Specialisation: Numba compiles once more for read-only arrays, so copy them.
    codes = np.require(codes, dtype=np.int64, requirements=["C", "W"])
    no_cells, no_data, no_indices = np.empty(0, dtype=DENSE), np.empty(0), np.empty(0, dtype=np.int64)
    if scipy.sparse.issparse(cells):
        indices, indptr = cells.indices.astype(np.int64), cells.indptr.astype(np.int64)
        return StoredRows(no_cells, cells.data, indices, indptr, True, constants, norms, codes)
    return StoredRows(cells.reshape(-1), no_data, no_indices, no_indices, False, constants, norms, codes)


def _layout(X: PreparedRows, n_vectors: int) -> Layout:
    """Choose the layout of flat weights that suits the rows."""
    n_features = X.shape[1]
    if X.sparse:
        return Layout(n_vectors, n_features, vector_stride=1, feature_stride=n_vectors)
    return Layout(n_vectors, n_features, vector_stride=n_features, feature_stride=1)


def parts_of(flat: np.ndarray, layout: Layout, scale: float) -> tuple[np.ndarray, np.ndarray]:
    """Weights (..., c, d), and intercepts (..., c) times `scale`, of flat models."""
    n_vectors, n_features, vector_stride, _ = layout
    coef, intercept = flat[..., : n_vectors * n_features], flat[..., n_vectors * n_features :]
    if vector_stride == 1:
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
    """Sum the clipped gradients of all rows, before rounding and noise.

    Parameters
    ----------
    X : ndarray, CSR matrix or PreparedRows (n, d)
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
        By b; zeros without intercepts. Both are whole multiples of ``max_grad_norm 2^-38``, rounded to float64.
    """
    totals, layout = _clipped_cells(X, codes, coef, intercept, steps)
    return parts_of(totals * math.ldexp(float(steps.max_grad_norm), -PRODUCT_BITS), layout, 1.0)


def _clipped_cells(
    X, codes: np.ndarray, coef: np.ndarray, intercept: np.ndarray, steps: GradientSteps
) -> tuple[np.ndarray, Layout]:
    """Whole numbers of `clipped_gradient_sum`, flat."""
    coef = np.asarray(coef, dtype=np.float64)
    X = prepare_rows(X, steps)
    _check(X, codes, coef.shape[0], steps)
    layout, objective = _layout(X, coef.shape[0]), objective_of(steps, *coef.shape)
    rows = stored_rows(X.cells, X.constants, X.norms, codes)
    size, features = coef.shape[0] * (coef.shape[1] + 1), (0, X.shape[1])
    weights, worked, out = np.zeros(size), np.zeros(size + PADDING)[:size], np.zeros(size + PADDING)[:size]
    weights[: coef.size] = (coef.T if layout.vector_stride == 1 else coef).ravel()
    if steps.fit_intercept:
        weights[coef.size :] = intercept
    scale, reduced, regulariser = weight_scale(weights), is_reduced(rows, objective), np.zeros(size)
    if objective.inside:
        set_inside_regulariser(weights, scale, layout, objective, *features, regulariser)
    view = view_weights(weights, scale, layout, objective, regulariser)
    end = X.shape[1] if X.sparse else coef.shape[0] - int(reduced)
    round_weights(weights, layout, scale, X.sparse, reduced, 0, end, worked)
    # A team of one thread needs no barrier.
    team = (1, np.empty(0, dtype=np.int64))
    batch, total_share, totals = np.arange(X.shape[0]), np.zeros(2, dtype=np.int64), np.zeros(size, dtype=np.int64)
    scratch, blocks = scratch_memory(coef.shape[0]), blocks_of(1, X.shape[0], coef.shape[0])
    add_batch(
        0, team, rows, batch, batch[:0], worked, layout, objective, view, scratch, blocks, features, out, total_share,
        totals,
    )  # fmt: skip
    finish_sum(rows, layout, objective, features, total_share, view, regulariser, totals)
    return totals, layout


def blocks_of_one(n_rows: int, n_vectors: int) -> Blocks:
    """Allocate memory for blocks of a thread that works alone."""
    return blocks_of(1, n_rows, n_vectors)


def blocks_of(n_members: int, n_rows: int, n_vectors: int) -> Blocks:
    """Allocate memory for the blocks between two meetings, twice.

    A thread that works alone adds each block's gradients at once, while its rows are in the fastest cache.
    """
    n_stored = 1 if n_members == 1 else min(_STORED_BLOCKS, n_rows // ROWS + 1)
    return Blocks(
        slopes=np.empty((2, n_stored, n_vectors * ROWS)),
        shares=np.empty((2, n_stored, ROWS)),
        constants=np.empty((2, n_stored, ROWS)),
        starts=np.empty((2, n_stored, 2 * ROWS), dtype=np.int64),
    )


def _feature_bounds(X: PreparedRows, n_vectors: int, steps: GradientSteps, n_threads: int) -> np.ndarray:
    """Return the boundaries of the features of each thread of a team.

    A single range where more threads do not pay.
    """
    n_rows, n_features = X.shape
    per_row = X.cells.nnz / max(n_rows, 1) if X.sparse else n_features
    work = n_vectors * (2.0 * steps.sample_rate * n_rows * per_row + _NORMAL_WORK * n_features)
    n_members = max(1, min(n_threads, int(work / _MEMBER_WORK), n_features // ROWS))
    # Tiles take eight features at least.
    bounds = np.arange(n_members + 1) * (n_features // ROWS) // n_members * ROWS
    bounds[-1] = n_features
    return bounds


@dataclasses.dataclass(frozen=True)
class _Runs:
    """How often to train, how often to record a model, and by how many threads."""

    n_runs: int = 1
    record_every: int = 0
    n_threads: int = 1


def _run(X, codes, n_classes: int, steps: GradientSteps, rng: NoiseSource | np.random.Generator, runs: _Runs):
    X = prepare_rows(X, steps)
    _check(X, codes, n_classes, steps)
    n_features = X.shape[1]
    layout, objective = _layout(X, n_classes), objective_of(steps, n_classes, n_features)
    rows = stored_rows(X.cells, X.constants, X.norms, codes)
    schedule = schedule_of(steps, n_classes * (n_features + int(steps.fit_intercept)))
    optimizer, size = optimizer_of(steps), n_classes * (n_features + 1)
    models = np.empty((runs.n_runs, size))
    history = np.empty((steps.n_steps // runs.record_every if runs.record_every else 0, size))
    feature_bounds = _feature_bounds(X, n_classes, steps, runs.n_threads)
    n_members = feature_bounds.size - 1
    gradient, worked = (np.empty(size + PADDING)[:size] for _ in range(2))
    memory = Memory(
        weights=np.empty(size),
        gradient=gradient,
        first=np.empty(size),
        second=np.empty(size),
        worked=worked,
        regulariser=np.empty(size),
        totals=np.empty(size, dtype=np.int64),
    )
    blocks = blocks_of(n_members, X.shape[0], n_classes)
    drawn = DrawnRows(np.empty((2, X.shape[0]), dtype=np.int64), np.empty((2, n_members), dtype=np.int64))
    given, threshold, tape = as_source(rng), threshold_of(steps), NO_TAPE
    if schedule.sigma > 0.0:
        tape = given.step_tape(
            n_steps=runs.n_runs * steps.n_steps,
            size=n_classes * (n_features + int(steps.fit_intercept)),
            n_rows=X.shape[0],
            threshold=threshold,
            sigma=schedule.sigma,
            stated=Stated(2.0 ** (PRODUCT_BITS - schedule.shift), per_row=True, grid=schedule.cell),
        )
    # A later call with the same source gets other keys.
    source = NoiseSource(given.next_key())
    sampling_key, noise_key = (source.part(name).next_key() for name in ("sampling", "noise"))

    def work(member: int, meetings: np.ndarray) -> None:
        # Determinism: all threads have the same streams.
        sampling, noise = sampling_of(threshold, sampling_key, X.shape[0]), open_rounded_stream(noise_key)
        own_gradient = np.zeros(size + PADDING)[:size]
        run_steps(
            member, meetings, feature_bounds, rows, layout, objective, schedule, optimizer, runs.record_every, sampling,
            drawn, noise, models, memory, blocks, scratch_memory(n_classes), own_gradient, history, tape,
        )  # fmt: skip

    run_team(work, n_members)
    return parts_of(models, layout, steps.intercept_scale), parts_of(history, layout, steps.intercept_scale)


def noisy_gradient_steps(
    X,
    codes: np.ndarray,
    n_classes: int,
    steps: GradientSteps,
    rng: NoiseSource | np.random.Generator,
    record_every: int = 0,
    n_threads: int = 1,
) -> GradientStepsResult:
    """Train from weights of zero.

    Parameters
    ----------
    X : ndarray, CSR matrix or PreparedRows (n, d)
        Rows; finite.
    codes : ndarray of int (n,)
        Class codes ``0..n_classes-1``; classes may be missing. With one vector (`n_classes` 1): 0 and 1.
    n_classes : int
        Number of weight vectors c.
    steps : GradientSteps
        Settings.
    rng : NoiseSource or numpy.random.Generator
        Keys the two streams of the run, one for sampling and one for noise. A generator is asked for 32 bytes. Noise
        goes to other places for dense than for CSR rows.
    record_every : int, default=0
        Record the model after every so many steps; 0: never.
    n_threads : int, default=1
        Most threads; small problems use fewer. The result does not depend on them. Each keeps a core busy.

    Returns
    -------
    GradientStepsResult

    Raises
    ------
    ValueError
        If class codes are out of range, or there are too few vectors for the loss.
    """
    (coef, intercept), (history_coef, history_intercept) = _run(
        X, codes, n_classes, steps, rng, _Runs(1, int(record_every), int(n_threads))
    )
    return GradientStepsResult(
        coef=coef[0], intercept=intercept[0], history_coef=history_coef, history_intercept=history_intercept
    )


def repeated_noisy_gradient_steps(
    X, codes: np.ndarray, n_classes: int, steps: GradientSteps, rng: NoiseSource | np.random.Generator, n_runs: int
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
    return _run(X, codes, n_classes, steps, rng, _Runs(int(n_runs)))[0]


def warm_up() -> None:
    """Compile what this module runs."""
    steps = GradientSteps(learning_rate=0.1, noise_scale=0.1, sample_rate=0.5, n_steps=1)
    rng = np.random.default_rng(0)
    noisy_gradient_steps(np.eye(2), np.arange(2), 2, steps, rng)
    clipped_gradient_sum(np.eye(2), np.arange(2), np.zeros((2, 2)), np.zeros(2), steps)
