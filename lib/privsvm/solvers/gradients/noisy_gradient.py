"""Multi-class linear models by noisy steps along sums of clipped gradients.

Every loss here depends on a row x through the scores ``z = W x + s b`` only (s is the constant feature's value), so
the gradient of one row is the product ``h (x, s)'`` of its slopes h (c,) and the row. Its norm is the product of two
norms, and clipping scales h: no gradient of a single row is ever stored (for the general idea see Goodfellow 2015,
Efficient per-example gradient computations).

One step (Abadi et al. 2016, Deep learning with differential privacy, Algorithm 1) takes every row independently with
the same probability, adds up the clipped gradients, adds Gaussian noise to every number of the sum, divides by the
expected number of rows, and hands the result to the optimizer. Nothing else depends on the rows.

Up to the noise all is exact: rows and clipped slopes are whole numbers (`privsvm.solvers.gradients.clipped_gradients`),
their sums are too, and so is the noise (`privsvm.numerics.noise.rounded_normals`). So rows that are read block by block
give the bits of rows in memory. `docs/proofs/noisy_gradients.md` has the proof.
"""

from __future__ import annotations

import collections
import dataclasses
import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from privsvm.numerics.noise.exact_draws import sample_rows, sampling_threshold
from privsvm.numerics.noise.noise_source import NO_TAPE, ROUND_UP, NoiseSource, Sensitivity, StepTape
from privsvm.numerics.noise.rounded_normals import check_sigma, rounded_normals
from privsvm.numerics.rows.row_blocks import RowsByBlock, map_rows
from privsvm.numerics.rows.well_formed import canonical_rows
from privsvm.solvers.gradients.clipped_gradients import (
    LOSSES,
    PRODUCT_BITS,
    SLOPE_BITS,
    Objective,
    Point,
    PreparedRows,
    clipped_sum,
    parts,
    prepare_cells,
    regulariser_gradient,
    round_point,
    with_regulariser,
)

OPTIMIZERS = ("sgd", "adam")
SCHEDULES = ("constant", "linear", "cosine", "inverse_sqrt")
AVERAGES = ("none", "all", "last_half")
REGULARISERS = ("outside", "inside")

# Rounding of a sum costs at most this share of the bound on a row's gradient.
_GRID_BITS = 20
# Cells per standard deviation: more take long to draw.
_MANY_CELLS = 2.0**40
# Round-off: clipping stays below the bound by more than this.
_ROUND_OFF = 2.0**-40

# Overflow: above this, products of settings and rows might overflow.
_LARGEST_SETTING = 1e100


@dataclasses.dataclass(frozen=True, kw_only=True)
class GradientSteps:
    """The objective of a training and the steps that minimise it.

    The objective is the mean of ``loss_weight * loss`` over the rows, plus
    ``margin_weight * sum_{k<l} ||w_k - w_l||^2 + ridge * (||W||^2 + ||b||^2)``. Of a row with label y and scores z, the
    loss ``hinge`` is ``sum_{k != y} smooth(1 - (z_y - z_k))`` with ``smooth(g) = (g + sqrt(g^2 + smoothing^2)) / 2``
    (PMSVM, eq. 12), ``softmax`` is cross-entropy, and ``one_vs_rest_hinge`` is ``smooth(1 - z_y)`` plus
    ``smooth(1 + z_k)`` for every other k; with a single vector, label 1 is the positive one. The constant feature of an
    intercept has the value `intercept_scale`.

    `max_grad_norm` bounds the norm of one row's gradient, over all classes, weights and intercepts: exactly, the
    rounding of sums included. Gradients are resolved to about ``max_grad_norm 2^-18``. With the `regulariser`
    ``outside``, the exact gradient of its terms is added after the noise; ``inside``, it is a part of every row's
    gradient before clipping (PMSVM, eq. 15), and a row's own part is at most twice as long.

    `noise_scale` is the standard deviation of the noise on every number of the sum, rounded up a little. Each row is in
    a step with probability `sample_rate`, and the noisy sum is divided by `expected_batch`. For ``sgd``,
    ``v = momentum * v + gradient``, and the step is along v; ``adam`` (Kingma and Ba 2015) corrects its moments. See
    `learning_rates` for `schedule`. `average` returns the last iterate, the mean of ``all``, or the mean of the
    ``last_half`` (rounded up).

    Raises ValueError for a number that might overflow.
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
        for name in ("smoothing", "loss_weight", "margin_weight", "ridge", "noise_scale", "learning_rate"):
            if not 0 <= getattr(self, name) <= _LARGEST_SETTING:
                raise ValueError(f"{name}={getattr(self, name)!r}: out of range")


@dataclasses.dataclass(frozen=True, kw_only=True)
class GradientStepsResult:
    """A linear model: weights (c, d), and intercepts (c,) that include the constant feature's value."""

    coef: np.ndarray
    intercept: np.ndarray


def learning_rates(steps: GradientSteps) -> np.ndarray:
    """Compute the learning rates of all T steps.

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


def objective_of(steps: GradientSteps, n_vectors: int, n_features: int) -> Objective:
    """Convert the objective's settings to the types of compiled loops."""
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


class Schedule(NamedTuple):
    """What happens in which step."""

    rates: np.ndarray
    # First step whose iterate is averaged.
    average_from: int
    # Sums are rounded to multiples of 2^shift, the cells of the noise.
    shift: int
    # Standard deviation of the noise in cells; 0 for none.
    sigma: float
    # Value of a cell, or without noise of a unit of the sum.
    cell: float
    # Reciprocal of the expected number of rows.
    portion: float
    # Whether the regulariser's gradient is added after the noise.
    outside: bool


def schedule_of(steps: GradientSteps, size: int) -> Schedule:
    """Convert the settings that say what happens in which step, for sums of `size` numbers."""
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


def prepare_rows(X: Any, steps: GradientSteps) -> PreparedRows:
    """Bring finite rows (n, d) into the form that training works with, once for many models of one constant feature."""
    if isinstance(X, PreparedRows):
        return X
    scale = _constant(steps)
    # Duplicate entries: a number stored in two entries has a larger norm than they.
    return PreparedRows(*prepare_cells(canonical_rows(X) if scipy.sparse.issparse(X) else X, scale), scale)


def _constant(steps: GradientSteps) -> float:
    """Return the value of the constant feature; 0 for none."""
    return float(steps.intercept_scale) if steps.fit_intercept else 0.0


# --- sampling and noise ---------------------------------------------------------------------------------------------


class _Sampling(NamedTuple):
    """Poisson sampling: a row is drawn if its random word is below a threshold, in units of 2^-64."""

    key: bytes
    threshold: int

    def rows(self, step: int, first: int, n_rows: int) -> np.ndarray | None:
        """List the rows that a step draws among `n_rows` from number `first` on; None for all."""
        if self.threshold == 2**64:
            return None
        return sample_rows(self.key, step, self.threshold, first, n_rows)


def _record_rows(tape: StepTape, step: int, batch: np.ndarray | None) -> np.ndarray | None:
    """Record the rows of a step, or replay others instead."""
    drawn = tape.drawn[step]
    if tape.mode == 1:
        drawn[slice(None) if batch is None else batch] = 1
        return batch
    return np.flatnonzero(drawn)


class StepNoise:
    """Noise of the steps: whole numbers of the key's stream, one step after the other.

    The tape has one entry for each step, or none.
    """

    def __init__(self, schedule: Schedule, key: bytes, tape: StepTape = NO_TAPE) -> None:
        self.schedule, self.key, self.tape = schedule, key, tape

    def release(self, totals: np.ndarray, step: int) -> np.ndarray:
        """Release the flat sum of a step over the expected number of rows.

        Its number i gets number ``step * size + i`` of the stream.
        """
        schedule, noisy = self.schedule, totals
        if schedule.sigma > 0.0:
            rounded = (totals + ((1 << schedule.shift) >> 1)) >> schedule.shift
            noisy = rounded + rounded_normals(self.key, schedule.sigma, totals.size, step * totals.size)
            if self.tape.mode > 0:
                self.tape.sums[step] = rounded
            if self.tape.mode == 1:
                self.tape.noisy[step] = noisy
            elif self.tape.mode == 2:
                noisy = self.tape.noisy[step]
        # Modular arithmetic: sums wrap around at 2^64, that is at 2^(64 - shift) cells, and so does the release.
        released: np.ndarray = ((noisy << schedule.shift) >> schedule.shift) * schedule.cell * schedule.portion
        return released


# --- steps ----------------------------------------------------------------------------------------------------------


class _Optimizer:
    """Turns gradients into directions, and keeps their moments."""

    def __init__(self, steps: GradientSteps) -> None:
        self.steps = steps
        self.first: Any = 0.0
        self.second: Any = 0.0

    def direction(self, t: int, gradient: np.ndarray) -> np.ndarray:
        """Direction of step t, whose length the learning rate says."""
        steps = self.steps
        if steps.optimizer == "adam":
            self.first = steps.beta1 * self.first + (1.0 - steps.beta1) * gradient
            self.second = steps.beta2 * self.second + (1.0 - steps.beta2) * gradient * gradient
            size = np.sqrt(self.second / (1.0 - steps.beta2 ** (t + 1))) + steps.adam_epsilon
            direction: np.ndarray = self.first / (1.0 - steps.beta1 ** (t + 1)) / size
            return direction
        if steps.momentum == 0.0:
            return gradient
        self.first = steps.momentum * self.first + gradient
        return np.asarray(self.first)


# From the number of a step and its weights to the sum of the step's gradients, and the regulariser's share.
_SumOfStep = Callable[[int, Point], tuple[np.ndarray, np.ndarray]]


@dataclasses.dataclass(frozen=True)
class _Training:
    """State that the steps of all runs share."""

    steps: GradientSteps
    objective: Objective
    schedule: Schedule
    n_vectors: int
    # Length of flat weights.
    size: int
    noise: StepNoise
    sum_of_step: _SumOfStep

    def models(self, number: int = 0) -> Iterator[np.ndarray]:
        """Train from zero, and yield the flat model before the first step and after each one.

        It is the average so far once averaging has begun, and the iterate before; both are changed in place.
        """
        weights, average, optimizer = np.zeros(self.size), np.zeros(self.size), _Optimizer(self.steps)
        yield average
        for t, rate in enumerate(self.schedule.rates):
            step = number * self.steps.n_steps + t
            point = round_point(weights, self.n_vectors, self.objective)
            gradient = self.noise.release(with_regulariser(*self.sum_of_step(step, point), point), step)
            if self.schedule.outside:
                gradient += regulariser_gradient(weights, self.n_vectors, self.objective)
            weights -= rate * optimizer.direction(t, gradient)
            if t >= self.schedule.average_from:
                average += (weights - average) / (t - self.schedule.average_from + 1.0)
            yield average if t >= self.schedule.average_from else weights


class _Setup(NamedTuple):
    """Settings of all steps, which workers get."""

    sampling: _Sampling
    objective: Objective
    scale: float


def _sum_of_block(
    cells: tuple[Any, np.ndarray, np.ndarray], codes: np.ndarray, setup: _Setup, step: int, point: Point, first: int
) -> tuple[np.ndarray, np.ndarray]:
    """Sum clipped gradients of a block of rows from number `first` on."""
    batch = setup.sampling.rows(step, first, codes.shape[0])
    # Specialisation: arrays that a worker receives are read-only, and Numba would compile once more for it.
    point = point._replace(coef=np.require(point.coef, requirements=["C", "W"]))
    return clipped_sum(PreparedRows(*cells, setup.scale), codes, batch, point, setup.objective)


def _training(X: Any, codes: np.ndarray, n_classes: int, steps: GradientSteps, source: NoiseSource) -> _Training:
    """Prepare runs on rows in memory or by block."""
    X = X if isinstance(X, RowsByBlock) else prepare_rows(X, steps)
    n_rows, n_features = X.shape
    size = n_classes * (n_features + int(steps.fit_intercept))
    objective, schedule = objective_of(steps, n_classes, n_features), schedule_of(steps, size)
    # The sampling rate in units of 2^-64, rounded down.
    threshold = 0 if steps.sample_rate < 2.0**-64 else sampling_threshold(float(steps.sample_rate))[0]
    tape = NO_TAPE
    if schedule.sigma > 0.0 and not isinstance(X, RowsByBlock):
        tape = source.step_tape(
            n_steps=steps.n_steps,
            size=size,
            n_rows=n_rows,
            threshold=threshold,
            sigma=schedule.sigma,
            stated=Sensitivity(2.0 ** (PRODUCT_BITS - schedule.shift), per_row=True, grid=schedule.cell),
        )
    # A later call with the same source gets other keys.
    run = NoiseSource(source.next_key())
    sampling_key, noise_key = (run.part(name).next_key() for name in ("sampling", "noise"))
    setup = _Setup(_Sampling(sampling_key, threshold), objective, _constant(steps))
    if isinstance(X, RowsByBlock):
        cells = map_rows(X, prepare_cells, setup.scale).keep()

        def sum_of_step(step: int, point: Point) -> tuple[np.ndarray, np.ndarray]:
            sums: tuple[np.ndarray, np.ndarray] = cells.total(_sum_of_block, codes, arguments=(setup, step, point))
            return sums

    else:
        # Specialisation: Numba compiles once more for read-only arrays, so copy them.
        own_codes = np.require(codes, dtype=np.int64, requirements=["C", "W"])

        def sum_of_step(step: int, point: Point) -> tuple[np.ndarray, np.ndarray]:
            batch = setup.sampling.rows(step, 0, n_rows)
            batch = _record_rows(tape, step, batch) if tape.mode > 0 else batch
            return clipped_sum(X, own_codes, batch, point, objective)

    return _Training(steps, objective, schedule, n_classes, size, StepNoise(schedule, noise_key, tape), sum_of_step)


def noisy_gradient_steps(
    X: Any, codes: np.ndarray, n_classes: int, steps: GradientSteps, source: NoiseSource
) -> GradientStepsResult:
    """Train c weight vectors from zero.

    X (n, d) is finite; the model has the same bits in every form of the rows. Class codes count from 0, and classes may
    be missing; with one vector, they are 0 and 1. `source` keys the run's two streams, one for sampling and one for
    noise.
    """
    training = _training(X, codes, n_classes, steps, source)
    # Overflow: too large a learning rate makes weights that are no numbers, which count as zero.
    with np.errstate(over="ignore", invalid="ignore"):
        model = collections.deque(training.models(), maxlen=1).pop()
    coef, intercept = parts(model, n_classes, steps.fit_intercept)
    intercept = intercept * float(steps.intercept_scale) if steps.fit_intercept else np.zeros(n_classes)
    return GradientStepsResult(coef=coef, intercept=intercept)


def warm_up() -> None:
    """Compile what this module runs."""
    steps = GradientSteps(learning_rate=0.1, noise_scale=0.1, sample_rate=0.5, n_steps=1)
    noisy_gradient_steps(np.eye(2), np.arange(2), 2, steps, NoiseSource(bytes(32)))
