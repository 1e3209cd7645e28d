"""Objective perturbation: the privacy of a random linear term in a strongly convex objective.

The mechanism draws ``b ~ N(0, s^2 I)`` and minimises ``F_D(w) + b . w`` with
``F_D(w) = 1/2 ||w||^2 + C sum_i loss(y_i w . x_i)``, for a convex loss whose slope lies between -1 and 0 and grows by
at most ``1 / h`` times the margin, and rows of norm at most R (Chaudhuri, Monteleoni, Sarwate 2011; Kifer, Smith,
Thakurta 2012). docs/proofs/objective_perturbation.md has the proof.
"""

from __future__ import annotations

import dataclasses
import functools
import math

import numpy as np

from privsvm.errors import nearest_name
from privsvm.numerics.noise.noise_source import NoiseSource
from privsvm.privacy.accountants import account
from privsvm.privacy.accounting import check_budget, gaussian_noise_multiplier
from privsvm.privacy.bisection import bisect
from privsvm.privacy.events import NEIGHBOURS, Neighbours, PerturbedObjectives, relation_factor
from privsvm.privacy.mechanisms import gaussian_cells, gaussian_on_grid, noise_grid

# Share of the (squared) signal that the noise on approximate minima takes: it costs about 0.5 % more noise.
_OUTPUT_SHARE = 0.01

# The grids are so fine that rounding costs less than these shares of the sensitivity and of the distance.
_GRID_SHARE, _TERM_SHARE = 1e-6, 1e-3

_ROUND_OFF_SLACK = 1e-12


@functools.lru_cache(maxsize=4096)
def objective_perturbation_signal(
    epsilon: float,
    delta: float,
    n_vectors: int = 1,
    curvature: float = 0.0,
    neighbours: Neighbours = "replace_one",
) -> float:
    """Compute the largest signal, to six digits, for which perturbed objectives give (epsilon, delta)-DP.

    A signal is the largest change of an objective's gradient over the noise, by one row under ``add_remove`` and by two
    under ``replace_one``. The budget is for all `n_vectors` objectives and the noise on approximate minima, for which 1
    % of the squared signal is set aside: `account` of the event, with an output signal of ``0.1 sqrt(n_vectors)`` times
    it, never exceeds `epsilon`. `curvature` is beta, the largest curvature that one row adds to an objective, over the
    curvature of its regulariser. Raises ValueError if the budget is out of range, or the curvature alone costs more.
    """
    check_budget(epsilon, delta)
    noise_epsilon = epsilon - n_vectors * math.log1p(curvature)
    if noise_epsilon <= 1e-6:
        raise ValueError(
            f"epsilon={epsilon!r}: the curvature of the loss alone costs {n_vectors * math.log1p(curvature):.4g} for "
            f"{n_vectors} objectives; use a smaller C or a larger smoothing"
        )

    factor = relation_factor(neighbours)

    def enough(signal: float) -> bool:
        output_multiplier = factor / (math.sqrt(_OUTPUT_SHARE * n_vectors) * signal)
        event = PerturbedObjectives(signal / factor, curvature, n_vectors, output_multiplier)
        return account(event, delta, neighbours).epsilon <= epsilon

    # The signals of plain Gaussian releases, which cost less.
    high = 1.0 / (gaussian_noise_multiplier(noise_epsilon, delta) * math.sqrt(n_vectors))
    low = high / 2.0
    while not enough(low):
        low, high = low / 2.0, low
    return bisect(enough, low, high, 1e-6, geometric=True)[0]


@dataclasses.dataclass(frozen=True, kw_only=True)
class ObjectivePerturbation:
    """Draw the linear terms of k strongly convex objectives, and release their approximate minima with noise.

    ``row_bound = L = C R`` is the largest norm of the gradient of one row's loss, ``curvature = beta = C R^2 / h`` its
    largest curvature. `distance` is a public bound on the distance of a released point, before noise, to the minimum
    with the linear term that `linear_terms` gave; `total_distance` adds the distance by which rounding a linear term
    moves the minimum. The number and the length of the minima are public.

    `noise_scale` is the standard deviation s of the linear terms, `output_noise_scale` is for the noise on the
    approximate minima. `output_sensitivity` is the L2 sensitivity of all approximate minima, given the exact ones, with
    the cost of rounding to the grid; `sensitivity` belongs to the objectives' gradients. `grid` and `term_grid`, powers
    of two, are the spacing of the released numbers and of the linear terms. Raises ValueError if an argument is out of
    range, or the curvature alone costs more than the budget.
    """

    epsilon: float
    delta: float
    neighbours: Neighbours
    row_bound: float
    curvature: float
    distance: float
    n_vectors: int
    size: int
    sensitivity: float = dataclasses.field(init=False)
    noise_scale: float = dataclasses.field(init=False)
    grid: float = dataclasses.field(init=False)
    term_grid: float = dataclasses.field(init=False)
    total_distance: float = dataclasses.field(init=False)
    output_sensitivity: float = dataclasses.field(init=False)
    output_noise_scale: float = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        check_budget(self.epsilon, self.delta)
        if self.neighbours not in NEIGHBOURS:
            raise ValueError(f"neighbours={self.neighbours!r}: {nearest_name(self.neighbours, NEIGHBOURS)}")
        for name in ("row_bound", "curvature", "distance"):
            value = getattr(self, name)
            if not (value > 0 and math.isfinite(value)):
                raise ValueError(f"{name}={value!r}: must be a positive finite number")
        for name in ("n_vectors", "size"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name}={getattr(self, name)!r}: must be at least 1")
        signal = objective_perturbation_signal(
            self.epsilon, self.delta, self.n_vectors, self.curvature, self.neighbours
        )
        # The largest change of one objective's gradient, and the linear terms' scale before it is rounded up to cells.
        row_change, root = relation_factor(self.neighbours) * self.row_bound, math.sqrt(self.size)
        term_scale = row_change / signal * (1.0 + _ROUND_OFF_SLACK)
        term_grid = noise_grid(_TERM_SHARE * self.distance / root, term_scale)
        total = (self.distance + 0.5 * term_grid * root) * (1.0 + _ROUND_OFF_SLACK)
        grid = noise_grid(_GRID_SHARE * self.distance / root, 2.0 * total / (math.sqrt(_OUTPUT_SHARE) * signal))
        output_sensitivity = math.sqrt(self.n_vectors) * (2.0 * total + grid * root)
        output_scale = output_sensitivity / (math.sqrt(_OUTPUT_SHARE * self.n_vectors) * signal)
        vars(self).update(
            sensitivity=math.sqrt(self.n_vectors) * row_change,
            noise_scale=gaussian_cells(term_scale, term_grid) * term_grid,
            grid=grid,
            term_grid=term_grid,
            total_distance=total,
            output_sensitivity=output_sensitivity,
            output_noise_scale=gaussian_cells(output_scale * (1.0 + _ROUND_OFF_SLACK), grid) * grid,
        )

    @property
    def event(self) -> PerturbedObjectives:
        """The effect on the rows."""
        factor = relation_factor(self.neighbours)
        return PerturbedObjectives(
            signal=self.row_bound / self.noise_scale,
            curvature=self.curvature,
            n_objectives=self.n_vectors,
            output_multiplier=self.output_noise_scale / (self.output_sensitivity / factor),
        )

    def linear_terms(self, source: NoiseSource) -> np.ndarray:
        """Draw the linear terms (k, size) of the objectives; multiples of `term_grid`."""
        size = self.n_vectors * self.size
        terms = gaussian_on_grid(np.zeros(size), size, self.term_grid, self.noise_scale, self.sensitivity, source)
        return terms.reshape(self.n_vectors, self.size)

    def release(self, minima: np.ndarray, source: NoiseSource) -> np.ndarray:
        """Release noisy copies of approximate minima.

        Raises ValueError if `minima` (k, size), points within `distance` of the minima, has another size.
        """
        size = self.n_vectors * self.size
        return gaussian_on_grid(minima, size, self.grid, self.output_noise_scale, self.output_sensitivity, source)
