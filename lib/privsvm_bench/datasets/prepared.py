"""Prepared data in memory: the rows of every split, scaled, as methods and their evaluation see them."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from privsvm.digests import sha256_of_file
from privsvm.errors import PrivSVMError
from privsvm.files import read_json, read_npz
from privsvm.numerics.rows.rows import is_sparse
from privsvm.numerics.rows.well_formed import check_sparse

if TYPE_CHECKING:
    from scipy.sparse import csr_array

# Dense, or sparse by rows.
Features: TypeAlias = "np.ndarray | csr_array"


def arrays_of_rows(name: str, X: Any) -> dict[str, np.ndarray]:
    """Name the arrays that hold rows in a file: ``<name>``, or four arrays for sparse rows.

    Sparse rows become ``<name>_data``, ``<name>_indices``, ``<name>_indptr`` and ``<name>_shape``, with indices sorted
    in place. `X` has shape (n, d).
    """
    if not is_sparse(X):
        return {name: np.ascontiguousarray(X, dtype=np.float64)}
    X.sort_indices()
    return {
        f"{name}_data": X.data,
        # SciPy chooses the width of indices by itself; one width gives the same bytes everywhere.
        f"{name}_indices": X.indices.astype(np.int64),
        f"{name}_indptr": X.indptr.astype(np.int64),
        f"{name}_shape": np.array(X.shape, dtype=np.int64),
    }


def rows_of_arrays(name: str, arrays: Mapping[str, np.ndarray]) -> Features:
    """Rebuild rows of shape (n, d) from the arrays of `arrays_of_rows`.

    Raises ValueError if the arrays of sparse rows do not fit each other.
    """
    if name in arrays:
        return arrays[name]
    from scipy.sparse import csr_array

    data, shape = arrays[f"{name}_data"], arrays[f"{name}_shape"]
    # 32-bit indices where they fit: several solvers take no others.
    width = np.int32 if max(len(data), *shape) < 2**31 else np.int64
    indices, indptr = arrays[f"{name}_indices"].astype(width), arrays[f"{name}_indptr"].astype(width)
    rows = csr_array((data, indices, indptr), shape=tuple(shape.tolist()))
    check_sparse(rows)
    return rows


@dataclass(frozen=True)
class Split:
    """One split, as label codes and row numbers in the prepared set.

    Rows are scaled on first use: training needs no test rows, and evaluation no training rows. ``X_train`` and
    ``X_test``, of shape (rows, d), are the features that a method sees.
    """

    y_train: np.ndarray
    y_test: np.ndarray
    train_index: np.ndarray
    test_index: np.ndarray
    _scaled: Callable[[np.ndarray], Features]

    @functools.cached_property
    def X_train(self) -> Features:  # noqa: N802 - a matrix
        return self._scaled(self.train_index)

    @functools.cached_property
    def X_test(self) -> Features:  # noqa: N802 - a matrix
        return self._scaled(self.test_index)


@dataclass(frozen=True)
class PreparedData:
    """A prepared dataset in memory."""

    X: Features  # Shape (n, d), in the units of the file, not scaled.
    y: np.ndarray  # Label codes, in the order of ``description["classes"]``.
    description: dict[str, Any]  # The ``.json`` beside the ``.npz``.
    _arrays: Mapping[str, np.ndarray]

    @property
    def n_splits(self) -> int:
        """Number of splits."""
        return int(self.description["n_splits"])

    @property
    def classes(self) -> list[str]:
        """Class names in code order."""
        return list(self.description["classes"])

    def scaled(self, rows: np.ndarray, s: int) -> Features:
        """Scale rows as a method sees them in split `s`: ``(X - shift) * factor``, of shape (len(rows), d)."""
        shift, factor = self._arrays["scale_shift"], self._arrays["scale_factor"]
        row = s if len(shift) > 1 else 0
        if is_sparse(self.X):
            from scipy.sparse import csr_array

            return csr_array(self.X[rows].multiply(factor[row]))
        return (self.X[rows] - shift[row]) * factor[row]

    def split(self, s: int) -> Split:
        """Return training and test rows of one split, scaled; they are copies.

        Raises PrivSVMError if there is no such split.
        """
        if not 0 <= s < self.n_splits:
            raise PrivSVMError(
                f"dataset {self.description['dataset']}: no split {s}; there are {self.n_splits}, counted from 0"
            )
        train, test = self._arrays[f"train_{s}"], self._arrays[f"test_{s}"]
        scaled = functools.partial(self.scaled, s=s)
        return Split(self.y[train], self.y[test], train.copy(), test.copy(), scaled)


def load_prepared(npz_path: str | os.PathLike[str]) -> PreparedData:
    """Load a prepared dataset and check that its two files belong together.

    The ``.json`` is read from beside the ``.npz``. Raises PrivSVMError if a file is missing or unreadable, or the
    digest differs.
    """
    npz_path = Path(npz_path)
    json_path = npz_path.with_name(f"{npz_path.name.removesuffix('.npz')}.json")
    description = read_json(json_path)
    if not npz_path.is_file():
        raise PrivSVMError(f"{npz_path}: file not found; run `snakemake --cores 8` to make it")
    if sha256_of_file(npz_path) != description.get("digest"):
        raise PrivSVMError(
            f"{npz_path}: does not belong to {json_path.name} (digest differs); delete both and run again"
        )
    arrays = read_npz(npz_path)
    return PreparedData(rows_of_arrays("X", arrays), arrays["y"], description, arrays)
