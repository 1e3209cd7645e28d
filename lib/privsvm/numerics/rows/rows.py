"""Norms of rows and distances between them, dense or sparse, by NumPy alone."""

from __future__ import annotations

from typing import Any

import numpy as np


def is_sparse(X: Any) -> bool:
    """Tell whether rows are held as a sparse matrix.

    As `scipy.sparse.issparse`, without importing SciPy.
    """
    return not isinstance(X, np.ndarray)


def squared_norms(X: Any) -> np.ndarray:
    """Squared L2 norms of the rows of a dense or CSR matrix (n, d); returns (n,)."""
    if is_sparse(X):
        return np.asarray(X.multiply(X).sum(axis=1), dtype=np.float64).ravel()
    return np.einsum("ij,ij->i", X, X)


def row_norms(X: Any) -> np.ndarray:
    """L2 norms of the rows of a dense or CSR matrix (n, d); returns (n,)."""
    return np.sqrt(squared_norms(X))


def squared_distances(X, Z) -> np.ndarray:
    """Return squared distances (n, m) of rows X (n, d) and Z (m, d)."""
    products = X @ Z.T
    products = products.toarray() if hasattr(products, "toarray") else np.asarray(products)
    return np.maximum(squared_norms(X)[:, None] + squared_norms(Z)[None] - 2.0 * products, 0.0)


def unit_rows(X: Any) -> Any:
    """Divide rows of a dense or CSR matrix (n, d) by their norms; rows of zeros stay.

    No norm exceeds 1, in floating point neither.
    """
    # Overflow: in two steps, so that no square overflows.
    if is_sparse(X):
        largest = abs(X).max(axis=1).toarray().ravel() if X.shape[0] else np.zeros(0)
    else:
        largest = np.abs(X).max(axis=1, initial=0.0)
    rows = _divide_rows(X, largest)
    return _divide_rows(rows, row_norms(rows) * (1.0 + (X.shape[1] + 8) * np.finfo(float).eps))


def _divide_rows(X, numbers: np.ndarray):
    """Divide each row by a number of its own, unless that is 0."""
    numbers = np.where(numbers > 0, numbers, 1.0)
    if is_sparse(X):
        from scipy.sparse import csr_array

        X = csr_array(X)
        return csr_array((X.data / np.repeat(numbers, np.diff(X.indptr)), X.indices, X.indptr), X.shape)
    return X / numbers[:, None]
