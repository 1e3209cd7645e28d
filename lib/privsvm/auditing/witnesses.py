"""Lower bounds on epsilon, shown on concrete pairs of neighbouring datasets."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.sparse
from scipy.special import ndtr

from privsvm.numerics.noise.streams import seeded_stream
from privsvm.numerics.rows.rows import row_norms
from privsvm.privacy.accounting import gaussian_epsilon
from privsvm.privacy.bisection import bisect
from privsvm.privacy.events import Neighbours
from privsvm.privacy.objective_perturbation import ObjectivePerturbation
from privsvm.privacy.statement import Witness
from privsvm.solvers.linear.hinge import smoothed_hinge_slopes

_ROWS_AT_ONCE = 4096

# A witness is a lower bound: noise counts as a little more than it is.
_ROUND_OFF = 1e-9

# Privacy losses of a discrete release are rounded down to so many steps.
_LOSS_STEPS = 2000

# How many long rows, and how many random corners of the features' ranges, are tried.
_LONG_ROWS, _CORNERS = 2, 2

# Released numbers are sorted into so many bins of one width, cut where their density jumps.
_BINS = 400


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
    counts: Counter[bytes] = Counter()
    for start in range(0, X.shape[0], _ROWS_AT_ONCE):
        block = X[start : start + _ROWS_AT_ONCE]
        # Adding 0 makes -0.0 and 0.0 the same bytes.
        block = (block.toarray() if scipy.sparse.issparse(block) else block) + 0.0
        counts.update(row.tobytes() for row in block)
    single = [index for index, row in enumerate(released + 0.0) if counts[row.tobytes()] == 1]
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


def extreme_rows(X: Any) -> list[np.ndarray]:
    """List rows (1, d) at the limits of the features' ranges, which a neighbouring dataset may hold."""
    if X.shape[0] == 0:
        return []
    low, high = X.min(axis=0), X.max(axis=0)
    if scipy.sparse.issparse(X):
        low, high = low.toarray().ravel(), high.toarray().ravel()
    corners = [np.where(np.abs(high) >= np.abs(low), high, low)]
    rng = seeded_stream(0, "audit")
    corners += [np.where(rng.random(low.size) < 0.5, low, high) for _ in range(_CORNERS)]
    longest = np.argsort(-row_norms(X), kind="stable")[:_LONG_ROWS]
    rows = X[longest].toarray() if scipy.sparse.issparse(X) else X[longest]
    return [row[None, :] for row in [*corners, *rows]]


def largest_move(
    rows: Any,
    codes: np.ndarray,
    pairs: Sequence[tuple[tuple[np.ndarray, int], tuple[np.ndarray, int]]],
    solve: Callable[[Any, np.ndarray], np.ndarray],
    neighbours: Neighbours,
    change: str,
    order: int = 2,
) -> tuple[float, str]:
    """Measure how far replacing (or adding) one row moves the solution, and describe the pair of datasets.

    The first of the rows, as the solver sees them, is replaced. `pairs` ((row, code), (row, code)) take its place in
    the two datasets, with rows (1, d); for ``add_remove`` the second dataset has no such row. `solve` turns rows and
    class codes into weights, `change` says in words how the row differs between them, and `order` is the norm of the
    distance, which is a lower bound on the sensitivity; 0 where too few rows are left to solve.
    """
    kept, kept_codes = rows[1:], codes[1:]
    if np.unique(kept_codes).size < 2:
        return 0.0, "too few rows to audit"

    def solution(row: np.ndarray, code: int) -> np.ndarray:
        if scipy.sparse.issparse(rows):
            changed = scipy.sparse.vstack([scipy.sparse.csr_array(row), kept]).tocsr()
        else:
            changed = np.vstack([row, kept])
        return solve(changed, np.concatenate([[code], kept_codes]))

    without = solve(kept, kept_codes) if neighbours == "add_remove" else None
    largest, norm = 0.0, 0.0
    for first, second in pairs:
        other = solution(*second) if without is None else without
        distance = float(np.linalg.norm((solution(*first) - other).ravel(), order))
        if distance > largest:
            largest, norm = distance, float(row_norms(first[0])[0])
    return largest, (
        f"the training rows of one split, one of them replaced by an extreme row (norm {norm:.3g}), and that row "
        f"{change}; the two outputs before noise give the bound without sampling"
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class SelectionChain:
    """Frank-Wolfe on rows of zeros and one of ones, which treats all features alike: a Markov chain of two counts.

    They count the selected vertices with a positive sign, and those of the constant feature, where there is one, beside
    the `n_free` others. `slope(products, step)` returns slopes of the loss, and a slope of 1 adds `unit`, in units of
    the noise, to a score.
    """

    n_rows: int
    n_steps: int
    n_free: int
    constant: bool
    slope: Callable[[np.ndarray, int], np.ndarray]
    unit: float

    def last_state(self, sign: float, positives: int) -> np.ndarray:
        """Compute the probabilities of (positive vertices, net selections of the constant feature) after all steps.

        `positives` of the rows of zeros have the label 1, and the row of ones has the label `sign`.
        """
        n_steps, negatives, unit = self.n_steps, self.n_rows - 1 - positives, self.unit
        # A column and a row; without the constant feature, the latter is a single zero.
        positive, net = np.arange(n_steps + 2)[:, None], np.arange(-n_steps - 1, n_steps + 2)[None]
        if not self.constant:
            net = np.zeros((1, 1), dtype=np.int64)
        chances = np.where((positive == 0) & (net == 0), 1.0, 0.0)
        for step in range(n_steps):
            # How much the loss falls towards a vertex: the row's share, and that of the others (by the constant only).
            own = -sign * self.slope(sign * (2.0 * positive - step), step)
            others = negatives * self.slope(-1.0 * net, step) - positives * self.slope(1.0 * net, step)
            logs = [np.log(self.n_free) + unit * own, np.log(self.n_free) - unit * own]
            if self.constant:
                logs += [unit * (own + others), -unit * (own + others)]
            norm = functools.reduce(np.logaddexp, logs)
            moves = [chances * np.exp(log - norm) for log in logs]
            chances = np.roll(moves[0], 1, axis=0) + moves[1]
            if self.constant:
                chances += np.roll(moves[2], (1, 1), axis=(0, 1)) + np.roll(moves[3], -1, axis=1)
        return chances.ravel()


def selection_witness(chain: SelectionChain, n_classes: int, delta: float) -> Witness:
    """Make the witness for selections of vertices, from one row of ones under two labels; all others are zeros.

    The last state of the chain can be read off the released weights.
    """
    # The other rows belong to the two classes that the row changes between, half of them to each. With more classes
    # these are two problems, which see the change from either side.
    half = (chain.n_rows - 1) // 2
    changes = [(1.0, half)] if n_classes == 2 else [(1.0, half), (-1.0, chain.n_rows - 1 - half)]
    # With an odd number of rows, the two problems differ in the sign alone.
    last_state = functools.cache(chain.last_state)
    return discrete_witness(
        [(last_state(sign, positives), last_state(-sign, positives)) for sign, positives in changes],
        delta,
        "replace_one",
        "made-up rows, as many as in training: zeros but for one row with all features at their bound, under two "
        "different labels; the exact probabilities of two counts that the weights give away make the bound",
    )


def perturbed_minimum_witness(mechanism: ObjectivePerturbation, C: float, norm: float, smoothing: float) -> Witness:
    """Make the witness for objective perturbation, from one row of the largest norm; all others are zeros.

    Along that row, each problem is one-dimensional: the minimum lies below w exactly if the random term lies above
    minus the gradient at w, and the released number is within `distance` of the minimum, plus noise. That gives the
    probability of every bin from below for one dataset, and from above for the other.
    """
    # Not what the mechanism was told of rows, which the witness tests.
    row_bound, scale = C * norm, mechanism.noise_scale
    replaced = mechanism.neighbours == "replace_one"
    reach = 8.0 * scale + row_bound
    # The density jumps at the ends of the loss's quadratic part.
    ends = np.array([1.0, 1.0 - smoothing]) / norm
    edges = np.unique(np.concatenate([np.linspace(-reach, reach, _BINS + 1), ends, -ends]))
    nodes, weights = np.polynomial.hermite_e.hermegauss(41)
    weights = weights / weights.sum()

    def below(side: float, slack: float) -> np.ndarray:
        """Probability that a released number lies below each edge, plus or minus the distance to the minimum."""
        w = edges[:, None] + slack - mechanism.output_noise_scale * nodes
        gradient = w + side * row_bound * smoothed_hinge_slopes(side * norm * w, smoothing)
        return np.asarray(ndtr(gradient / scale) @ weights)

    slack = mechanism.total_distance + mechanism.grid

    def bins(side: float, sign: float) -> np.ndarray:
        """Bounds on the bins' probabilities, from below for `sign` -1 and from above for 1."""
        low, high = below(side, -sign * slack), below(side, sign * slack)
        return np.concatenate([[high[0]], np.maximum(high[1:] - low[:-1], 0.0), [1.0 - low[-1]]])

    # Under its opposite, all problems see the row change sides. Of either label the losses are the same.
    first, second = (1.0, -1.0) if replaced else (1.0, 0.0)
    how = "turned into its opposite" if replaced else "taken away"
    description = (
        f"made-up rows: one as long as it may be, {how}, and zeros; the released weights along it, sorted into "
        f"{edges.size + 1} bins whose probabilities are known, make the bound without sampling"
    )
    witnesses = [
        discrete_witness(
            [(bins(a, -1.0), bins(b, 1.0))] * mechanism.n_vectors, mechanism.delta, mechanism.neighbours, description
        )
        for a, b in ((first, second), (second, first))
    ]
    return max(witnesses, key=lambda witness: witness.epsilon)
