"""Trees on columns in whole numbers: which cell a value lies in, and which leaf a row; by NumPy alone.

What becomes of a row depends on that row and on public or released numbers alone, bit for bit.
"""

from __future__ import annotations

import numpy as np

# Cells that the public range of a number is divided into.
CELLS = 256
# Above every cell and code; a file of a model holds finite numbers.
BEYOND = 2.0**53


def column_cells(X: np.ndarray, lower: np.ndarray, upper: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """Turn values of columns into whole numbers: cells of numbers from 0 to `CELLS` - 1, and codes of categories.

    `lower` and `upper` are public bounds of numbers. `levels` says how many categories a column has, whose codes count
    from 0; it is 0 for numbers. An unknown code becomes 0.
    """
    # In halves, so that no difference overflows.
    width = upper / 2.0 - lower / 2.0
    share = (np.clip(X, lower, upper) / 2.0 - lower / 2.0) / np.where(width > 0.0, width, 1.0)
    cells = np.minimum(np.clip(share, 0.0, 1.0) * CELLS, CELLS - 1)
    known = (X >= 0.0) & (levels > X)
    return np.where(levels > 0, np.where(known, X, 0.0), cells).astype(np.int64)


def leaf_numbers(cells: np.ndarray, feature: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Find the leaf of every row in every tree, from 0 to N, as an array (n, T).

    The inner nodes (T, N) of complete trees stand level by level: a row of `column_cells` goes right where
    ``low <= cells[feature] < high``.
    """
    n_trees, n_nodes = feature.shape
    rows, trees = np.arange(cells.shape[0])[:, None], np.arange(n_trees)
    nodes = np.zeros((cells.shape[0], n_trees), dtype=np.int64)
    for _ in range((n_nodes + 1).bit_length() - 1):
        values = cells[rows, feature[trees, nodes]]
        nodes = 2 * nodes + 1 + ((values >= low[trees, nodes]) & (values < high[trees, nodes]))
    return nodes - n_nodes


def staircase(edges: np.ndarray, depth: int) -> np.ndarray:
    """Order edges as the lower ends of a tree whose leaf is the number of edges at or below a value.

    The edges ascend and are fewer than ``2^depth``. Returns ``2^depth - 1`` lower ends for `leaf_numbers`.
    """
    padded = np.full(2**depth - 1, BEYOND)
    padded[: len(edges)] = edges
    return np.concatenate([padded[2 ** (depth - level - 1) - 1 :: 2 ** (depth - level)] for level in range(depth)])
