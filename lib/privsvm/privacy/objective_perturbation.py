"""Objective perturbation: the privacy of a random linear term in a strongly convex objective.

The mechanism draws ``b ~ N(0, s^2 I)`` and minimises ``F_D(w) + b . w`` with
``F_D(w) = 1/2 ||w||^2 + C sum_i loss(y_i w . x_i)``, for a convex loss whose slope lies between -1 and 0 and grows by
at most ``1 / h`` times the margin, and rows of norm at most R (Chaudhuri, Monteleoni, Sarwate 2011; Kifer, Smith,
Thakurta 2012). Put ``L = C R`` and ``beta = C R^2 / h``.

*Density.* At the minimum, ``b = -grad F_D(w)``: w and b determine each other, and the map from w to b is Lipschitz.
So w has the density ``normal(grad F_D(w)) det H_D(w)``, with the Hessian ``H_D >= I``, which exists almost
everywhere: the loss needs no second derivative at the ends of its quadratic part.

*A row added.* Let ``D' = D + (x, y)`` and ``t = -loss'(y w . x)``, a function of w with values in [0, 1]. The
gradients differ by ``-t C y x``. Draw b for either dataset, and with it w; let u be the standard normal number
``b . x / (s ||x||)``, with the sign that fits, and ``m = C ||x|| / s``. The privacy loss is the logarithm of the
determinants' ratio plus ``t^2 m^2 / 2 + t m u``. The latter is convex in t, so at most its larger value for t = 0 and
t = 1, whatever t has to do with b: ``max(0, m^2 / 2 + m u)``, the positive part of a Gaussian release's privacy loss.
That grows with m, which is at most ``L / s``. By the matrix determinant lemma, the former lies between
``-log(1 + beta)`` and 0 from D to D', and between 0 and ``log(1 + beta)`` back.

*A row replaced.* The gradients differ by ``t' C y' x' - t C y x``, whose squared norm is at most twice the sum of the
two parts'. So the privacy loss, but for the determinants, is at most the mean of two losses as above, one for each
row, with 2 m in place of m. The exponential is convex: the mean's moments are at most the larger of those of the two.
Both determinants are that of the other rows, times a factor between 1 and ``1 + beta``.

*Moments.* ``E exp(a max(0, m^2 / 2 + m u)) = Phi(-m / 2) + exp(a (a + 1) m^2 / 2) Phi(m / 2 + a m)``. The Renyi
divergence of order ``a + 1`` is at most ``log(1 + beta)`` plus the logarithm of this over a, for ``m = L / s``, or
twice that where a row is replaced. Redberg, Koskela and Wang (2023, arXiv 2401.00583) have ``m^2 / 2 + m |u|`` in
place of the positive part: their losses' slopes may have either sign.

*Corners.* Renyi divergences cost some of epsilon when they are converted; Gaussian losses have an exact delta. Write
the gradients' difference over s as ``v = t_1 c_1 + ... + t_G c_G``, a vector for each row that comes or goes: one, or
two where a row is replaced, each of norm g, ``C R / s``, or shorter. (For shorter ones t ranges over less.) With z,
the linear term over s on the first dataset, the privacy loss, but for the determinants, is ``|v|^2 / 2 + v . z``.
That is convex in t, whatever t has to do with z, so no larger than its largest value over the ``2^G`` corners, where
all t are 0 or 1. Delta at epsilon is the mean of ``f(loss) = max(0, 1 - exp(epsilon - loss))``, which never falls,
and f of a maximum is at most a sum. Each corner is a Gaussian release: j vectors lead no further than ``j g``, and
delta grows with the distance. So delta at ``log(1 + beta) + epsilon`` is at most the sum over all corners of the
delta of Gaussian noise at epsilon. Of all corners, only the farthest counts in effect, and a Gaussian release of its
size attains that.

Several classes have a t for each vector and class, and independent z: their corners are the products, and squared
distances add up. Where the largest corner of a class is the one that no vector leads to, the loss of its first vector
alone is at most 0, which has the probability ``Phi(-g / 2)``; that is independent of the other classes' z, so the
factor goes with the corner. The noise on approximate minima, below, adds its own squared distance to each: given the
exact minima its loss is that of a Gaussian release, or of a nearer one, and the mean of ``f(a + loss)`` grows with
the distance for every a. There are few products of different size for few classes, and for many the sum is larger
than what Renyi divergences give. The better of both is taken.

*Groups of rows.* Of k rows added, the gradients differ by the mean of the vectors ``-k t C y x``, so the same steps
bound the loss by the mean of k losses with k m in place of m, and the determinants' ratio by ``(1 + beta)^k``. Of k
rows replaced there are 2 k such vectors, with 2 k m, and the determinants are that of the other rows times a factor
between 1 and ``(1 + beta)^k``. Corners have a vector for each of these k or 2 k. The noise on approximate minima
hides their distance to the exact ones, whatever the rows are.

*Several classes.* One-vs-rest problems share the rows, but each has its own b: given the data their minima are
independent, so their Renyi divergences add up.

*Approximate minima.* What is released is a point within a public distance of the minimum, plus Gaussian noise. Given
the minima, it is a Gaussian release whose sensitivity is twice that distance; its Renyi divergence is added.

*Bits.* The linear term that the solver gets is b rounded to a grid of spacing g, exactly
(`privsvm.numerics.noise.rounded_normals`), which moves the minimum by at most ``sqrt(d) g / 2``, since the objective is
1-strongly convex. The minimum meant above is that of b itself. Together with the dataset it determines b, so the
rounded term, so the point that the solver finds, whose distance to it is at most the solver's plus
``sqrt(d) g / 2``. The point is rounded to a grid and gets exact noise, so the statement holds of the released bits.
"""

from __future__ import annotations

import dataclasses
import functools
import math

import numpy as np

from privsvm.errors import nearest_name
from privsvm.numerics.noise.noise_source import NoiseSource
from privsvm.privacy.accounting import (
    check_budget,
    delta_of_minima,
    gaussian_noise_multiplier,
    objective_perturbation_divergence,
    renyi_epsilon,
)
from privsvm.privacy.events import NEIGHBOURS, Neighbours, PerturbedObjectives, relation_factor
from privsvm.privacy.mechanisms import gaussian_cells, gaussian_on_grid, noise_grid
from privsvm.privacy.objective_perturbation_delta import corner_epsilon

__all__ = [
    "OBJECTIVE_PERTURBATION_ACCOUNTANT",
    "ObjectivePerturbation",
    "objective_perturbation_divergence",
    "objective_perturbation_epsilon",
    "objective_perturbation_signal",
]

OBJECTIVE_PERTURBATION_ACCOUNTANT = "objective perturbation, Gaussian losses at corners or Renyi divergences"

# Share of the (squared) signal that the noise on approximate minima takes: it costs about 0.5 % more noise.
_OUTPUT_SHARE = 0.01

# The grids are so fine that rounding costs less than these shares of the sensitivity and of the distance.
_GRID_SHARE, _TERM_SHARE = 1e-6, 1e-3

_ROUND_OFF_SLACK = 1e-12


def objective_perturbation_epsilon(
    signal: float,
    delta: float,
    n_vectors: int = 1,
    curvature: float = 0.0,
    output_signal: float = 0.0,
    neighbours: Neighbours = "replace_one",
) -> float:
    """Compute epsilon at `delta` of randomly perturbed objectives and of the noise on their minima.

    Parameters
    ----------
    signal : float
        See `objective_perturbation_divergence`.
    delta : float
        Strictly between 0 and 1.
    n_vectors : int, default=1
        Number of objectives that share the rows.
    curvature : float, default=0.0
        beta, the largest curvature that one row adds to an objective, over that of its regulariser.
    output_signal : float, default=0.0
        Sensitivity of the approximate minima together, over the standard deviation of the noise on them.
    neighbours : {"replace_one", "add_remove"}, default="replace_one"
        Whether the signal is of two rows or of one; what holds of two holds of one, too.

    Returns
    -------
    float
        An upper bound: the better of the sum over all corners and of the best Renyi order.
    """
    check_budget(1.0, delta)

    def divergence(orders: np.ndarray) -> np.ndarray:
        return n_vectors * objective_perturbation_divergence(orders, signal) + orders * output_signal**2 / 2.0

    # The determinants' share is the same for each order.
    noise_delta = delta_of_minima(delta)
    renyi = renyi_epsilon(divergence, noise_delta, n_vectors * signal**2 + output_signal**2)
    corners = corner_epsilon(noise_delta, signal, n_vectors, round(relation_factor(neighbours)), output_signal)
    return min(renyi, corners) + n_vectors * math.log1p(curvature)


@functools.lru_cache(maxsize=4096)
def objective_perturbation_signal(
    epsilon: float,
    delta: float,
    n_vectors: int = 1,
    curvature: float = 0.0,
    neighbours: Neighbours = "replace_one",
) -> float:
    """Compute the largest signal, to six digits, for which perturbed objectives give (epsilon, delta)-DP.

    Parameters
    ----------
    epsilon, delta : float
        The budget of all objectives, and of the noise on approximate minima, for which 1 % of the squared signal is set
        aside.
    n_vectors, curvature, neighbours
        As in `objective_perturbation_epsilon`.

    Returns
    -------
    float
        `objective_perturbation_epsilon` of it, with an output signal of ``0.1 sqrt(n_vectors)`` times it, never exceeds
        `epsilon`.

    Raises
    ------
    ValueError
        If the budget is out of range, or the curvature alone costs more.
    """
    check_budget(epsilon, delta)
    noise_epsilon = epsilon - n_vectors * math.log1p(curvature)
    if noise_epsilon <= 1e-6:
        raise ValueError(
            f"epsilon={epsilon!r}: the curvature of the loss alone costs {n_vectors * math.log1p(curvature):.4g} for "
            f"{n_vectors} objectives; use a smaller C or a larger smoothing"
        )

    def enough(signal: float) -> bool:
        output_signal = math.sqrt(_OUTPUT_SHARE * n_vectors) * signal
        return objective_perturbation_epsilon(signal, delta, n_vectors, curvature, output_signal, neighbours) <= epsilon

    # The signals of plain Gaussian releases, which cost less.
    high = 1.0 / (gaussian_noise_multiplier(noise_epsilon, delta) * math.sqrt(n_vectors))
    low = high / 2.0
    while not enough(low):
        low, high = low / 2.0, low
    while high > low * (1.0 + 1e-6):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if enough(middle) else (low, middle)
    return low


@dataclasses.dataclass(frozen=True, kw_only=True)
class ObjectivePerturbation:
    """Draw the linear terms of k strongly convex objectives, and release their approximate minima with noise.

    Parameters
    ----------
    epsilon, delta : float
        The budget.
    neighbours : {"replace_one", "add_remove"}
        The relation between datasets.
    row_bound : float
        ``L = C R``, the largest norm of the gradient of one row's loss.
    curvature : float
        ``beta = C R^2 / h``, the largest curvature of one row's loss.
    distance : float
        Public bound on the distance of a released point, before noise, to the minimum with the linear term that
        `linear_terms` gave.
    n_vectors, size : int
        Number of objectives, and the length of their minima; public.

    Attributes
    ----------
    noise_scale : float
        Standard deviation s of the linear terms.
    output_noise_scale : float
        Standard deviation of the noise on the approximate minima.
    output_sensitivity : float
        L2 sensitivity of all approximate minima, given the exact ones; with the cost of rounding to the grid.
    grid, term_grid : float
        Spacing of the released numbers and of the linear terms, powers of two.
    total_distance : float
        `distance`, and what rounding a linear term moves the minimum by.
    sensitivity : float
        L2 sensitivity of the objectives' gradients.
    epsilon_proved : float
        The epsilon that the accountant gives; never above `epsilon`.
    accountant : str
        What turned the noise into epsilon.
    event : PerturbedObjectives
        What is done with the rows.

    Raises
    ------
    ValueError
        If an argument is out of range; from the attributes, if the curvature alone costs more than the budget.
    """

    epsilon: float
    delta: float
    neighbours: Neighbours
    row_bound: float
    curvature: float
    distance: float
    n_vectors: int
    size: int

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

    @property
    def _signal(self) -> float:
        return objective_perturbation_signal(self.epsilon, self.delta, self.n_vectors, self.curvature, self.neighbours)

    @property
    def _row_change(self) -> float:
        """The largest change of one objective's gradient."""
        return (2.0 if self.neighbours == "replace_one" else 1.0) * self.row_bound

    @property
    def sensitivity(self) -> float:
        return math.sqrt(self.n_vectors) * self._row_change

    @property
    def noise_scale(self) -> float:
        return gaussian_cells(self._term_scale, self.term_grid) * self.term_grid

    @property
    def _term_scale(self) -> float:
        """Standard deviation of the linear terms, before it is rounded up to a number of cells."""
        return self._row_change / self._signal * (1.0 + _ROUND_OFF_SLACK)

    @property
    def grid(self) -> float:
        spacing = _GRID_SHARE * self.distance / math.sqrt(self.size)
        return noise_grid(spacing, 2.0 * self.total_distance / (math.sqrt(_OUTPUT_SHARE) * self._signal))

    @property
    def term_grid(self) -> float:
        return noise_grid(_TERM_SHARE * self.distance / math.sqrt(self.size), self._term_scale)

    @property
    def total_distance(self) -> float:
        return (self.distance + 0.5 * self.term_grid * math.sqrt(self.size)) * (1.0 + _ROUND_OFF_SLACK)

    @property
    def output_sensitivity(self) -> float:
        return math.sqrt(self.n_vectors) * (2.0 * self.total_distance + self.grid * math.sqrt(self.size))

    @property
    def output_noise_scale(self) -> float:
        scale = self.output_sensitivity / (math.sqrt(_OUTPUT_SHARE * self.n_vectors) * self._signal)
        return gaussian_cells(scale * (1.0 + _ROUND_OFF_SLACK), self.grid) * self.grid

    @property
    def epsilon_proved(self) -> float:
        return objective_perturbation_epsilon(
            self._row_change / self.noise_scale,
            self.delta,
            self.n_vectors,
            self.curvature,
            self.output_sensitivity / self.output_noise_scale,
            self.neighbours,
        )

    @property
    def accountant(self) -> str:
        return OBJECTIVE_PERTURBATION_ACCOUNTANT

    @property
    def event(self) -> PerturbedObjectives:
        """What is done with the rows."""
        factor = relation_factor(self.neighbours)
        return PerturbedObjectives(
            signal=self.row_bound / self.noise_scale,
            curvature=self.curvature,
            n_objectives=self.n_vectors,
            output_multiplier=self.output_noise_scale / (self.output_sensitivity / factor),
        )

    def linear_terms(self, source: NoiseSource | np.random.Generator) -> np.ndarray:
        """Draw the linear terms (k, size) of the objectives; multiples of `term_grid`."""
        size = self.n_vectors * self.size
        terms = gaussian_on_grid(np.zeros(size), size, self.term_grid, self.noise_scale, self.sensitivity, source)
        return terms.reshape(self.n_vectors, self.size)

    def release(self, minima: np.ndarray, source: NoiseSource | np.random.Generator) -> np.ndarray:
        """Release noisy copies of approximate minima.

        Parameters
        ----------
        minima : ndarray (k, size)
            Points within `distance` of the minima.
        source : NoiseSource or numpy.random.Generator
            Of the noise.

        Returns
        -------
        ndarray (k, size)
            Multiples of `grid`.

        Raises
        ------
        ValueError
            If `minima` has another size.
        """
        size = self.n_vectors * self.size
        return gaussian_on_grid(minima, size, self.grid, self.output_noise_scale, self.output_sensitivity, source)
