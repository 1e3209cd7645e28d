"""One variable for all equal rows of one label, such as rows of zeros.

Copies have one column of the kernel matrix, so that the C-SVC dual depends on the sum of their variables alone, which
lies between 0 and the sum of their bounds: the merged problem has the same optimum, values and violation of optimality.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Self

import numpy as np
import scipy.sparse

# Least number of rows for which merging pays, and the largest share of them that may stay distinct.
_LEAST_ROWS, _DISTINCT_SHARE = 600, 0.7

# Share of a sum of bounds that its rounding may be off by.
_ROUNDING = 1e-12


@dataclasses.dataclass(frozen=True)
class EqualRows:
    """Groups of equal rows of one class.

    `first` has the first row of each group, in ascending order, and `group` the group of each of the n rows.
    """

    first: np.ndarray
    group: np.ndarray

    @classmethod
    def find(cls, X: Any, codes: np.ndarray) -> Self | None:
        """Return the groups of rows (n, d) with class codes (n,).

        None where few rows are equal.
        """
        n_rows = X.shape[0]
        if n_rows < _LEAST_ROWS:
            return None
        # Hashing: a weighted sum of each row. Collisions are unlikely, and are checked below.
        weights = np.sin(1.0 + np.arange(X.shape[1]))
        sums = X @ weights
        order = np.lexsort((sums, codes))
        begins = np.ones(n_rows, dtype=bool)
        begins[1:] = (np.diff(sums[order]) != 0) | (np.diff(codes[order]) != 0)
        if np.count_nonzero(begins) > _DISTINCT_SHARE * n_rows:
            return None
        # The sort is stable, so that each group begins with its first row.
        first, group = order[begins], np.empty(n_rows, dtype=np.int64)
        group[order] = np.cumsum(begins) - 1
        # Groups in the order of their first rows.
        rank = np.argsort(first)
        first, group = first[rank], np.argsort(rank)[group]
        difference = X - X[first[group]]
        equal = difference.count_nonzero() == 0 if scipy.sparse.issparse(difference) else not difference.any()
        return cls(first, group) if equal else None

    def bounds(self, upper: np.ndarray) -> np.ndarray:
        """Sum the bounds (n,) of the rows to bounds (g,) of the groups' variables."""
        return np.bincount(self.group, weights=upper, minlength=self.first.size)

    def spread(self, layout: np.ndarray, upper: np.ndarray) -> np.ndarray:
        """Distribute variables (k, g) of the groups to their rows, (k, n): row after row is filled to its bound."""
        order = np.argsort(self.group, kind="stable")
        before = np.cumsum(upper[order]) - upper[order]
        starts = np.searchsorted(self.group[order], np.arange(self.first.size))
        taken = np.empty(upper.size)
        taken[order] = before - before[starts][self.group[order]]
        values = layout[:, self.group]
        filled = np.clip(np.abs(values) - taken, 0.0, upper)
        # Round-off of the sums: snap to 0 or to the bound.
        rounding = _ROUNDING * (taken + upper)
        filled[filled <= rounding] = 0.0
        filled = np.where(filled >= upper - rounding, upper, filled)
        return np.sign(values) * filled
