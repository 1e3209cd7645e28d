"""Lower bounds on epsilon, shown on concrete pairs of neighbouring datasets."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse
import scipy.stats

from privsvm.privacy.accounting import gaussian_epsilon
from privsvm.privacy.guarantee import Neighbours, Witness

__all__ = [
    "clopper_pearson_epsilon",
    "discrete_witness",
    "gaussian_witness",
    "laplace_witness",
    "sampled_witness",
    "verbatim_row_witness",
]

_ROWS_AT_ONCE = 4096

# Privacy losses of a discrete release are rounded down to so many steps.
_LOSS_STEPS = 2000


def gaussian_witness(
    distance: float, noise_scale: float, delta: float, neighbours: Neighbours, description: str
) -> Witness:
    """Make the witness for Gaussian noise on two neighbours whose exact outputs are known.

    Parameters
    ----------
    distance : float
        L2 distance between the exact outputs on the two datasets.
    noise_scale : float
        Standard deviation of the noise on each released number.
    delta : float
        The delta that goes with epsilon.
    neighbours : {"replace_one", "add_remove"}
        How the two datasets differ.
    description : str
        The pair, in words.

    Returns
    -------
    Witness
        Exact for the pair, without sampling: only their distance tells two Gaussians of equal spread apart.
    """
    multiplier = noise_scale / distance if distance > 0 else math.inf
    return Witness(epsilon=gaussian_epsilon(multiplier, delta), neighbours=neighbours, description=description)


def laplace_witness(distance: float, noise_scale: float, neighbours: Neighbours, description: str) -> Witness:
    """Make the witness for Laplace noise on two neighbours whose exact outputs are known, at delta 0.

    Parameters
    ----------
    distance : float
        L1 distance between the exact outputs on the two datasets.
    noise_scale : float
        Scale b of the noise on each released number.
    neighbours : {"replace_one", "add_remove"}
        How the two datasets differ.
    description : str
        The pair, in words.

    Returns
    -------
    Witness
        ``distance / b``, exact for the pair: the privacy loss takes this value wherever the released vector lies
        beyond both outputs in every coordinate.
    """
    return Witness(epsilon=distance / noise_scale, neighbours=neighbours, description=description)


def discrete_witness(
    pairs: Sequence[tuple[np.ndarray, np.ndarray]], delta: float, neighbours: Neighbours, description: str
) -> Witness:
    """Make the witness for independent discrete observations with known probabilities on two neighbours.

    Parameters
    ----------
    pairs : sequence of (p, q)
        Probabilities of every outcome of one observation, on the dataset and on its neighbour.
    delta : float
        The delta that goes with epsilon.
    neighbours : {"replace_one", "add_remove"}
        How the two datasets differ.
    description : str
        The pair, in words.

    Returns
    -------
    Witness
        The epsilon at which ``sum max(0, p - e^epsilon q)`` over all outcomes together is `delta`. Privacy losses are
        rounded down, and outcomes too rare for float64 are left out, so it never exceeds the exact one.
    """
    losses = []
    for p, q in pairs:
        seen = (p > 0) & (q > 0)
        losses.append((np.log(p[seen]) - np.log(q[seen]), p[seen]))
    step = max(float(np.ptp(loss)) for loss, _ in losses) / _LOSS_STEPS
    if step == 0.0:
        return Witness(epsilon=0.0, neighbours=neighbours, description=description)
    masses, lowest = np.ones(1), 0
    for loss, p in losses:
        index = np.floor(loss / step).astype(np.int64)
        lowest += int(index.min())
        masses = np.convolve(masses, np.bincount(index - index.min(), weights=p))
    total = (lowest + np.arange(masses.size)) * step

    def excess(epsilon: float) -> float:
        return float(np.sum(masses * -np.expm1(np.minimum(epsilon - total, 0.0))))

    low, high = 0.0, max(float(total[-1]), 0.0)
    if excess(low) <= delta:
        high = 0.0
    while high - low > 1e-9 * high:
        middle = (low + high) / 2.0
        low, high = (middle, high) if excess(middle) > delta else (low, middle)
    return Witness(epsilon=low, neighbours=neighbours, description=description)


def verbatim_row_witness(released: np.ndarray, X: Any, neighbours: Neighbours) -> Witness:
    """Make the witness for a release that holds training rows verbatim.

    Parameters
    ----------
    released : ndarray (m, d)
        The rows in the release. Which ones they are must not depend on noise.
    X : ndarray or CSR matrix (n, d)
        Training rows.
    neighbours : {"replace_one", "add_remove"}
        How the two datasets differ: the row is replaced by another training row, or removed.

    Returns
    -------
    Witness
        Infinite if a released row occurs exactly once among the training rows: the event that the release holds it
        has probability 1 on the dataset and 0 on its neighbour, at every delta below 1. 0 if there is no such row.
    """
    counts: dict[bytes, int] = {}
    for start in range(0, X.shape[0], _ROWS_AT_ONCE):
        block = X[start : start + _ROWS_AT_ONCE]
        # Adding 0 makes -0.0 and 0.0 the same bytes.
        block = (block.toarray() if scipy.sparse.issparse(block) else block) + 0.0
        for row in block:
            key = row.tobytes()
            counts[key] = counts.get(key, 0) + 1
    single = [index for index, row in enumerate(released + 0.0) if counts.get(row.tobytes()) == 1]
    if not single or len(counts) < 2:
        return Witness(
            epsilon=0.0, neighbours=neighbours, description="every released row occurs more than once: none tested"
        )
    how = "replaced by another training row" if neighbours == "replace_one" else "taken away"
    return Witness(
        epsilon=math.inf,
        neighbours=neighbours,
        description=(
            f"the training rows of one split, and the same with one support vector {how}: every release from the "
            f"former holds that row, none from the latter does; {len(single)} of {len(released)} released rows are such"
        ),
    )


def clopper_pearson_epsilon(
    hits: int, runs: int, other_hits: int, other_runs: int, delta: float = 0.0, confidence: float = 0.95
) -> float:
    """Compute a lower bound on epsilon from how often an event occurred on two neighbouring datasets.

    Parameters
    ----------
    hits, runs : int
        Counts on the first dataset. The event must be fixed before these runs are seen.
    other_hits, other_runs : int
        Counts on the second dataset.
    delta : float, default=0.0
        The delta that goes with epsilon.
    confidence : float, default=0.95
        Probability, over the runs, that the bound holds.

    Returns
    -------
    float
        ``log((p - delta) / q)``, at least 0, where p is the Clopper-Pearson lower limit of the event's probability on
        the first dataset and q the upper limit on the second. Each limit fails with probability at most
        ``(1 - confidence) / 2``.
    """
    if not (0 <= hits <= runs and 0 <= other_hits <= other_runs and runs > 0 and other_runs > 0):
        raise ValueError(f"hits={hits}, runs={runs}, other_hits={other_hits}, other_runs={other_runs}: no such counts")
    bounds = _clopper_pearson_epsilons(np.array([hits]), runs, np.array([other_hits]), other_runs, delta, confidence)
    return float(bounds[0])


def _clopper_pearson_epsilons(
    hits: np.ndarray, runs: int, other_hits: np.ndarray, other_runs: int, delta: float, confidence: float
) -> np.ndarray:
    """Compute `clopper_pearson_epsilon` for several events."""
    miss = (1.0 - confidence) / 2.0
    # The beta distributions of the two extreme counts do not exist; their limits are 0 and 1.
    lower = np.where(hits > 0, scipy.stats.beta.ppf(miss, np.maximum(hits, 1), runs - hits + 1), 0.0)
    misses = other_runs - other_hits
    upper = np.where(misses > 0, scipy.stats.beta.isf(miss, other_hits + 1, np.maximum(misses, 1)), 1.0)
    return np.log(np.maximum(lower - delta, upper) / upper)


def sampled_witness(
    first: np.ndarray,
    second: np.ndarray,
    delta: float,
    neighbours: Neighbours,
    description: str,
    confidence: float = 0.95,
) -> Witness:
    """Make a witness from repeated releases on two neighbouring datasets, whatever their distribution.

    Parameters
    ----------
    first, second : ndarray (N, k)
        Independent releases on the two datasets, as vectors.
    delta : float
        The delta that goes with epsilon.
    neighbours : {"replace_one", "add_remove"}
        How the two datasets differ.
    description : str
        The pair, in words.
    confidence : float, default=0.95
        Probability, over the runs, that the bound holds.

    Returns
    -------
    Witness
        The first half of the runs chooses an event, "the projection on the difference of the means is beyond a
        threshold"; the second half counts it (`clopper_pearson_epsilon`).
    """
    half, other_half = len(first) // 2, len(second) // 2
    chosen, other_chosen = first[:half], second[:other_half]
    move = chosen.mean(axis=0) - other_chosen.mean(axis=0)
    spread = np.sqrt(chosen.var(axis=0) + other_chosen.var(axis=0))
    unit = float(np.abs(move).max(initial=0.0)) or 1.0
    # A coordinate without spread tells the two apart for certain where it differs, and not at all where it does not.
    direction = move / unit / np.maximum(spread / unit, 1e-9) ** 2
    values, other_values = chosen @ direction, other_chosen @ direction
    thresholds = np.unique(np.quantile(np.concatenate([values, other_values]), np.linspace(0.0, 1.0, 201)))
    above = (values > thresholds[:, None]).sum(axis=1)
    other_above = (other_values > thresholds[:, None]).sum(axis=1)
    # The event is to lie above the threshold on the first dataset, or below it on the second.
    bounds = np.stack(
        [
            _clopper_pearson_epsilons(above, half, other_above, other_half, delta, confidence),
            _clopper_pearson_epsilons(other_half - other_above, other_half, half - above, half, delta, confidence),
        ]
    )
    below, index = np.unravel_index(np.argmax(bounds), bounds.shape)
    runs, other_runs = len(first) - half, len(second) - other_half
    hits = int((first[half:] @ direction > thresholds[index]).sum())
    other_hits = int((second[other_half:] @ direction > thresholds[index]).sum())
    if below:
        hits, runs, other_hits, other_runs = other_runs - other_hits, other_runs, runs - hits, runs
    return Witness(
        epsilon=clopper_pearson_epsilon(hits, runs, other_hits, other_runs, delta, confidence),
        neighbours=neighbours,
        confidence=confidence,
        description=(
            f"{description}; an event chosen on half of the runs happened in {hits} of {runs} others on one data set "
            f"and {other_hits} of {other_runs} on its neighbour (Clopper-Pearson, {confidence:.0%} confidence, for "
            "this witness alone)"
        ),
    )
