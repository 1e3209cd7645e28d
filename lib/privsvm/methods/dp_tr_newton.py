"""Private boosting of totally random trees, DP-TR Newton (Maddock, Cormode, Wang, Maple and Jha 2022).

From Federated boosted decision trees with differential privacy, with all rows in one place.
The columns and the bins at which trees split are drawn from a public seed; bins of numbers are noisy quantiles
(`privsvm.families.histograms.quantiles`). So only leaves cost anything: round after round, every row adds its gradient
and its Hessian under the scores so far to the leaf that it is in, and their noisy sums give the leaf's Newton step.

With two classes a row adds ``(p - y, 3 p (1 - p))``, whose norm is at most 1: the Hessian comes at no cost beside the
gradient. With more it adds ``(p - y, 2 p (1 - p)) / sqrt(2)`` for the softmax p and the unit vector y. That is cut to
norm 1 and truncated to whole numbers of 2^-20, row by row. Exponentials are powers of ``1 + z / 1024``: products of
single numbers, so that the other rows change no bit.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from privsvm.base.parameters import parameter
from privsvm.constraints import COUNT, POSITIVE, Constraint
from privsvm.families.histograms.training import FEW_BINS, Bins, HistogramClassifier, Trees
from privsvm.numerics.noise.noise_source import ROUND_UP, NoiseSource, Sensitivity
from privsvm.numerics.noise.streams import seeded_stream
from privsvm.numerics.rows.row_grid import grid_rows, grid_spacing
from privsvm.privacy.events import Event, Gaussian, SelfComposed
from privsvm.solvers.features.trees import BEYOND, leaf_numbers

_TREES_SEED = 2022
_DEPTH = Constraint({"type": "integer", "minimum": 1, "maximum": 12}, "must be a whole number from 1 to 12", "int")
# Weight of the Hessian beside the gradient, and the norm of both: of two classes, and of more.
_HESSIAN, _NORM = (3.0, 2.0), (1.0, math.sqrt(2.0))
# Ridge of a leaf, in units of the noise on its Hessian, and the longest step of a leaf.
_RIDGE, _LONGEST = 6.0, 2.0
_BITS = 20
# Powers of 1 + z / 2^10, for z no lower than this.
_SQUARINGS, _LOWEST = 10, -16.0


class _Structure(NamedTuple):
    feature: np.ndarray
    low: np.ndarray
    high: np.ndarray


class DPTRNewtonClassifier(HistogramClassifier):
    """Private boosting of totally random trees on noisy quantiles.

    Examples
    --------
    >>> from privsvm import DPTRNewtonClassifier
    >>> model = DPTRNewtonClassifier(epsilon=4.0, n_trees=10, classes=[0, 1])
    >>> model.fit([[-1.0], [1.0]] * 500, [0, 1] * 500).guarantee_.status
    'proved'
    """

    n_trees: int = parameter(100, COUNT, "Number of trees, one a round. Public.")
    max_depth: int = parameter(5, _DEPTH, "Depth of a tree. Public.")
    learning_rate: float = parameter(0.5, POSITIVE, "What Newton steps are multiplied by. Public.")
    n_bins: int = parameter(16, FEW_BINS, "The most bins of a column of numbers. Public.")
    reference = (
        "Maddock, Cormode, Wang, Maple and Jha (2022), Federated boosted decision trees with differential privacy; "
        "docs/proofs/histograms.md"
    )

    def _events(self, multiplier: float, n_features: int) -> tuple[Event, str]:
        n_trees = int(self.n_trees)
        step = Gaussian(multiplier * math.sqrt(n_trees))
        return SelfComposed(step, n_trees), f"sums of gradients and Hessians in the leaves of {n_trees} random trees"

    def _structure(self, bins: Bins) -> _Structure:
        """Draw trees (T, N) from a public seed and released quantiles."""
        shape, stream = (int(self.n_trees), 2 ** int(self.max_depth) - 1), seeded_stream(_TREES_SEED, "random trees")
        feature, place = stream.integers(len(bins.levels), size=shape), stream.random(shape)
        low, high = np.full(shape, BEYOND), np.full(shape, BEYOND)
        for column, levels in enumerate(bins.levels):
            nodes = feature == column
            if levels:
                low[nodes] = np.floor(place[nodes] * levels)
                high[nodes] = low[nodes] + 1.0
            elif (edges := bins.edges(column, int(self.n_bins))).size:
                low[nodes] = edges[(place[nodes] * edges.size).astype(np.int64)]
        return _Structure(feature, low, high)

    def _train(self, bins: Bins, codes: np.ndarray, multiplier: float, source: NoiseSource) -> Trees:
        structure, n_classes = self._structure(bins), len(self.classes_)
        n_leaves, n_scores = structure.feature.shape[1] + 1, n_classes if n_classes > 2 else 1
        part, spacing = source.part("leaves"), grid_spacing(1.0, _BITS)
        noise = multiplier * math.sqrt(int(self.n_trees)) * ROUND_UP
        many = int(n_classes > 2)
        norm, hessian = _NORM[many], _HESSIAN[many]
        scores = np.zeros((len(codes), n_scores))
        value = np.zeros((len(structure.feature), n_leaves, n_scores))
        for tree in range(len(value)):
            nodes = (array[tree : tree + 1] for array in structure)
            leaves = leaf_numbers(bins.cells, *nodes)[:, 0]
            cells = grid_rows(_contributions(scores, codes, hessian, norm), 1.0, _BITS) / spacing
            exact = np.stack([np.bincount(leaves, column, minlength=n_leaves) for column in cells.T]).astype(np.int64)
            stated = Sensitivity(1.0 / spacing, per_row=True, grid=spacing)
            sums = part.add_rounded_normals(exact, noise / spacing, stated) * (spacing * norm)
            gradients, curvatures = sums[:n_scores], np.maximum(sums[n_scores:] / hessian, 0.0)
            steps = -gradients / (curvatures + _RIDGE * noise * norm / hessian)
            value[tree] = np.clip(float(self.learning_rate) * steps, -_LONGEST, _LONGEST).T
            scores += value[tree][leaves]
        return Trees(*structure, value, np.zeros(n_scores))


def _exponential(z: np.ndarray) -> np.ndarray:
    """Approximate exp of numbers that are 0 or less, number by number."""
    power = 1.0 + np.maximum(z, _LOWEST) / 2.0**_SQUARINGS
    for _ in range(_SQUARINGS):
        power *= power
    return power


def _contributions(scores: np.ndarray, codes: np.ndarray, hessian: float, norm: float) -> np.ndarray:
    """Gradient and weighted Hessian (n, 2 k) of every row's loss, over `norm`."""
    n_rows, n_scores = scores.shape
    if n_scores == 1:
        small = _exponential(-np.abs(scores))
        chances = np.where(scores >= 0.0, 1.0, small) / (1.0 + small)
        labels = codes[:, np.newaxis] == 1
    else:
        powers = _exponential(scores - scores.max(axis=1, keepdims=True))
        total = np.zeros((n_rows, 1))
        for column in range(n_scores):
            # One after the other: NumPy's sums have an order of their own.
            total += powers[:, column : column + 1]
        chances = powers / total
        labels = codes[:, np.newaxis] == np.arange(n_scores)
    return np.hstack([chances - labels, hessian * (chances * (1.0 - chances))]) / norm


ESTIMATOR = DPTRNewtonClassifier
