"""Delta of perturbed objectives: a sum over the corners of what gradients may differ by.

Gradients of two neighbours differ by some point of a body that is spanned by a few vectors, and which point it is may
depend on the noise. The privacy loss is convex in that point, so it is largest at a corner of the body, and each corner
is a Gaussian release. `privsvm.privacy.objective_perturbation` has the proof. Nothing here needs SciPy.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from privsvm.privacy.gaussian_delta import gaussian_delta, log_tail, smallest_epsilon

# With more vectors than these, corners are so many that Renyi divergences say less. Their sizes and the sum of their
# deltas are right to this share.
_MOST_VECTORS, _ROUND_OFF = 64, 1e-12


def _corners(
    signal: float, n_objectives: int, n_vectors: int, output_signal: float
) -> list[tuple[float, float]] | None:
    """Distances of the corners from the middle of the noise, and how many of each there are; None for too many.

    Corners of one objective that j vectors lead to are no further than j of their lengths. At the corner that none
    leads to, a Gaussian release is not above the privacy loss of at least one vector: so much less often.
    """
    if n_objectives * n_vectors > _MOST_VECTORS:
        return None
    length = signal / n_vectors
    one_objective = {j * j: float(math.comb(n_vectors, j)) for j in range(1, n_vectors + 1)}
    one_objective[0] = math.exp(log_tail(0.5 * length))
    total = {0: 1.0}
    for _ in range(n_objectives):
        longer: dict[int, float] = {}
        for squares, multiplicity in total.items():
            for more, times in one_objective.items():
                longer[squares + more] = longer.get(squares + more, 0.0) + multiplicity * times
        total = longer
    return [
        (math.hypot(length * math.sqrt(squares), output_signal), multiplicity)
        for squares, multiplicity in sorted(total.items())
    ]


def _sum_of(
    corners: list[tuple[float, float]], epsilon: float, delta_of: Callable[[float, float], float] = gaussian_delta
) -> float:
    total = math.fsum(many * delta_of(epsilon, size) for size, many in corners if size > 0.0)
    return total * (1.0 + _ROUND_OFF)


def delta_of_minima(delta: float) -> float:
    """Take off delta what perturbed objectives lose where their linear terms are absurdly long.

    `privsvm.methods.objective_perturbation` counts on linear terms no longer than ``2^10 s (sqrt(d) + 9)``. Others have
    a probability p below ``k exp(-(9 * 2^10)^2 / 2)`` for k terms of standard deviation s and length d, and the exact
    sampler wraps around with less. Such an event of the noise costs ``(1 + e^epsilon) p`` of delta. For epsilon up to
    1e7 and k up to 1e9 that is less than the amount taken off here, at every delta.
    """
    return math.nextafter(delta * (1.0 - 2.0**-50), 0.0)


def corner_delta(epsilon: float, signal: float, n_objectives: int, n_vectors: int, output_signal: float) -> float:
    """Bound delta at epsilon of perturbed objectives and the noise on their minima, without the determinants' share.

    `signal` is the largest change of one objective's gradient, over the standard deviation of its linear term: by
    `n_vectors` vectors of equal length, one for each row that comes or goes. `output_signal` is the sensitivity of the
    approximate minima together, over the standard deviation of the noise on them. Infinite for too many vectors to look
    at all corners.
    """
    corners = _corners(signal, n_objectives, n_vectors, output_signal)
    return math.inf if corners is None else _sum_of(corners, epsilon)


def corner_epsilon(
    delta: float,
    signal: float,
    n_objectives: int,
    n_vectors: int,
    output_signal: float,
    delta_of: Callable[[float, float], float] = gaussian_delta,
) -> float:
    """Compute the smallest epsilon at which `corner_delta` is at most `delta`, to the last digits; from above.

    `delta_of` is delta of Gaussian noise, from epsilon and signal. Infinite for too many vectors, and for a `delta` of
    0.
    """
    corners = _corners(signal, n_objectives, n_vectors, output_signal)
    if corners is None or delta <= 0.0:
        return math.inf
    # log E e^((a - 1) L) = a (a - 1) size^2 / 2 gives this bound for each of them.
    size, many = max(corners)[0], math.fsum(many for _, many in corners) * (1.0 + _ROUND_OFF)
    high = 0.5 * size**2 + size * math.sqrt(2.0 * max(math.log(many / delta), 0.0))
    return smallest_epsilon(lambda epsilon: _sum_of(corners, epsilon, delta_of), delta, high)
