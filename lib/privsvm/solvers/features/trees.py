"""Trees on columns in whole numbers: which cell a value lies in, and which leaf a row; by NumPy alone.

What becomes of a row depends on that row and on public or released numbers alone, bit for bit.
"""

from __future__ import annotations

import numpy as np

__all__ = ["BEYOND", "CELLS", "column_cells", "leaf_numbers", "staircase"]

# Cells that the public range of a number is divided into.
CELLS = 256
# Above every cell and code; a file of a model holds finite numbers.
BEYOND = 2.0**53


def column_cells(X: np.ndarray, lower: np.ndarray, upper: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """Turn values of columns into whole numbers.

    Parameters
    ----------
    X : ndarray (n, d)
        Rows.
    lower, upper : ndarray (d,)
        Public bounds of numbers.
    levels : ndarray of int (d,)
        How many categories a column has, whose codes count from 0; 0 for numbers.

    Returns
    -------
    ndarray of int64 (n, d)
        The cell of a number, from 0 to `CELLS` - 1, or the code of a category; 0 for a code that is none.
    """
    # In halves, so that no difference overflows.
    width = upper / 2.0 - lower / 2.0
    share = (np.clip(X, lower, upper) / 2.0 - lower / 2.0) / np.where(width > 0.0, width, 1.0)
    cells = np.minimum(np.clip(share, 0.0, 1.0) * CELLS, CELLS - 1)
    known = (X >= 0.0) & (levels > X)
    return np.where(levels > 0, np.where(known, X, 0.0), cells).astype(np.int64)


def leaf_numbers(cells: np.ndarray, feature: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Find the leaf of every row in every tree.

    Parameters
    ----------
    cells : ndarray of int64 (n, d)
        See `column_cells`.
    feature, low, high : ndarray (T, N)
        Inner nodes of T complete trees, level by level: a row goes right where ``low <= cells[feature] < high``.

    Returns
    -------
    ndarray of int64 (n, T)
        From 0 to N.
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

    Parameters
    ----------
    edges : ndarray (m,)
        Ascending; fewer than ``2^depth``.
    depth : int
        Of the tree.

    Returns
    -------
    ndarray (2^depth - 1,)
        See `leaf_numbers`.
    """
    padded = np.full(2**depth - 1, BEYOND)
    padded[: len(edges)] = edges
    return np.concatenate([padded[2 ** (depth - level - 1) - 1 :: 2 ** (depth - level)] for level in range(depth)])
