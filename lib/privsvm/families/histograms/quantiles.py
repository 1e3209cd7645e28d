"""Noisy quantiles of columns, from counts of their cells on every scale.

The public range of a number has 256 cells. A row adds 1 to its cell, to the pair of cells that this lies in, and so on
up to one half of the range: 8 counts a column. Of d columns all counts together are one vector: one row adds
``sqrt(8 d)`` to it, and a replaced one moves it by ``sqrt(16 d)`` at most, as it takes 1 from as many counts as it adds
1 to (`counts_sensitivity`). That is one Gaussian release. Counts on different scales are then made to agree, by least
squares (Hay et al. 2010, Boosting the accuracy of differentially private histograms through consistency).
"""

from __future__ import annotations

import math

import numpy as np

from privsvm.numerics.noise.noise_source import ROUND_UP, NoiseSource, Sensitivity
from privsvm.privacy.events import Neighbours, relation_factor
from privsvm.solvers.features.trees import CELLS

# Scales on which a column's cells are counted.
SCALES = CELLS.bit_length() - 1
# Counts are whole numbers of this share of a row, so that rounding of their noise does not matter.
_GRID = 2.0**-10


def counts_sensitivity(n_counts: int, neighbours: Neighbours) -> float:
    """Bound how far neighbours' vectors of counts are apart, where every row adds 1 to so many of them."""
    return math.sqrt(n_counts * relation_factor(neighbours)) * ROUND_UP


def counts_noise(n_counts: int, multiplier: float, neighbours: Neighbours) -> float:
    """Return the standard deviation of the noise on each count; see `noisy_counts`."""
    return multiplier * counts_sensitivity(n_counts, neighbours) / relation_factor(neighbours) * ROUND_UP


def noisy_counts(
    exact: np.ndarray, n_counts: int, multiplier: float, neighbours: Neighbours, source: NoiseSource
) -> np.ndarray:
    """Release counts of rows.

    One row is counted in `n_counts` of them. `multiplier` is the standard deviation of the noise over one row's
    addition, half the change by a replaced row.
    """
    sensitivity = counts_sensitivity(n_counts, neighbours)
    noise = counts_noise(n_counts, multiplier, neighbours)
    cells = (exact / _GRID).astype(np.int64)
    released = source.add_rounded_normals(cells, noise / _GRID, Sensitivity(sensitivity / _GRID, grid=_GRID))
    noisy: np.ndarray = released * _GRID
    return noisy


def noisy_ranges(cells: np.ndarray, multiplier: float, neighbours: Neighbours, source: NoiseSource) -> np.ndarray:
    """Release how many rows lie in each cell of each column.

    Cells (n, d) are numbers from 0 to 255, see `privsvm.solvers.features.trees.column_cells`. Counts (d, 256) agree on
    all scales. See `noisy_counts`.
    """
    n_columns = cells.shape[1]
    exact = [np.stack([np.bincount(column, minlength=CELLS) for column in cells.T]).astype(np.int64)]
    for _ in range(SCALES - 1):
        exact.append(exact[-1].reshape(n_columns, -1, 2).sum(axis=2))
    counts = noisy_counts(np.hstack(exact), SCALES * n_columns, multiplier, neighbours, source)
    scales = np.split(counts, np.cumsum([scale.shape[1] for scale in exact])[:-1], axis=1)
    # Upwards, a count and the sum of its two halves are averaged by their spreads; downwards, halves share the rest.
    for scale in range(1, SCALES):
        weight = 2.0**scale / (2.0 ** (scale + 1) - 1.0)
        scales[scale] = weight * scales[scale] + (1.0 - weight) * _pairs(scales[scale - 1]).sum(axis=2)
    agreed = np.asarray(scales[-1])
    for finer in scales[-2::-1]:
        halves = _pairs(finer)
        agreed = (halves + 0.5 * (agreed - halves.sum(axis=2))[:, :, np.newaxis]).reshape(n_columns, -1)
    return agreed


def _pairs(counts: np.ndarray) -> np.ndarray:
    return counts.reshape(len(counts), -1, 2)


def quantile_edges(ranges: np.ndarray, n_bins: int) -> np.ndarray:
    """Divide a column into bins of about equal numbers of rows.

    From noisy counts (256,) of its cells: the first cell of every bin but the first, ascending, of at most `n_bins`
    bins.
    """
    total = np.cumsum(np.maximum(ranges, 0.0))
    if total[-1] <= 0.0:
        total = np.arange(1.0, CELLS + 1.0)
    cuts = np.searchsorted(total, total[-1] * np.arange(1, n_bins) / n_bins) + 1
    return np.unique(cuts[cuts < CELLS])
