"""Lower bounds on epsilon, shown on concrete pairs of neighbouring datasets."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse

from privsvm.privacy.accounting import gaussian_epsilon
from privsvm.privacy.bisection import bisect
from privsvm.privacy.guarantee import Neighbours, Witness

__all__ = [
    "discrete_witness",
    "gaussian_witness",
    "laplace_witness",
    "verbatim_row_witness",
]

_ROWS_AT_ONCE = 4096

# A witness is a lower bound: noise counts as a little more than it is.
_ROUND_OFF = 1e-9

# Privacy losses of a discrete release are rounded down to so many steps.
_LOSS_STEPS = 2000


def gaussian_witness(
    distance: float, noise_scale: float, delta: float, neighbours: Neighbours, description: str
) -> Witness:
    """Make the witness for Gaussian noise on two neighbours whose exact outputs are known.

    `distance` is the L2 distance of the exact outputs on the pair that `description` names. It is exact for the pair,
    without sampling: only their distance tells two Gaussians of equal spread apart.
    """
    # Round-off must not refute a proof of the same noise.
    multiplier = noise_scale / distance * (1.0 + _ROUND_OFF) if distance > 0 else math.inf
    return Witness(epsilon=gaussian_epsilon(multiplier, delta), neighbours=neighbours, description=description)


def laplace_witness(distance: float, noise_scale: float, neighbours: Neighbours, description: str) -> Witness:
    """Make the witness for Laplace noise on two neighbours whose exact outputs are known, at delta 0.

    It is ``distance / b``, for the L1 distance of the exact outputs and the noise's scale b, exact for the pair: the
    privacy loss takes this value wherever the released vector lies beyond both outputs in every coordinate.
    """
    return Witness(epsilon=distance / noise_scale, neighbours=neighbours, description=description)


def discrete_witness(
    pairs: Sequence[tuple[np.ndarray, np.ndarray]], delta: float, neighbours: Neighbours, description: str
) -> Witness:
    """Make the witness for independent discrete observations with known probabilities on two neighbours.

    `pairs` hold the probabilities of every outcome of one observation, on the dataset and on its neighbour. Epsilon is
    where ``sum max(0, p - e^epsilon q)`` over all outcomes together is `delta`. Privacy losses are rounded down, and
    outcomes too rare for float64 are left out, so it never exceeds the exact one.
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

    low = (
        bisect(lambda epsilon: excess(epsilon) > delta, 0.0, float(total[-1]), 1e-9)[0] if excess(0.0) > delta else 0.0
    )
    return Witness(epsilon=low, neighbours=neighbours, description=description)


def verbatim_row_witness(released: np.ndarray, X: Any, neighbours: Neighbours) -> Witness:
    """Make the witness for a release that holds training rows verbatim.

    Which rows are `released` must not depend on noise. The row in question is replaced by another training row, or
    removed. Epsilon is infinite if a released row occurs exactly once among the training rows: the event that the
    release holds it has probability 1 on the dataset and 0 on its neighbour, at every delta below 1. It is 0 if there
    is no such row.
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
