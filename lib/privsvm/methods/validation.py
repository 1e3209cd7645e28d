"""Checks on training data that every method shares."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

__all__ = ["check_training_data", "common_tags", "is_number", "row_norms"]


def is_number(value: Any) -> bool:
    """Whether a parameter is a real number of double precision, and not a truth value."""
    return isinstance(value, (int, float, np.integer)) and not isinstance(value, (bool, np.bool_))


def check_training_data(estimator, X, y, classes: Sequence | None) -> tuple[Any, np.ndarray, np.ndarray]:
    """Validate rows and labels, and turn labels into class codes.

    Parameters
    ----------
    estimator : estimator
        Gets ``n_features_in_`` (and ``feature_names_in_``).
    X : array-like or sparse matrix (n, d)
        Finite numbers.
    y : array-like (n,)
        Labels.
    classes : sequence or None
        The public label set in code order; None takes it from `y`, sorted.

    Returns
    -------
    X : ndarray or CSR matrix (n, d) of float64
    codes : ndarray of int64 (n,)
    classes : ndarray (c,)

    Raises
    ------
    ValueError
        If a label is outside `classes`, or there are fewer than two classes.
    """
    X, y = validate_data(estimator, X, y, accept_sparse="csr", dtype=np.float64)
    check_classification_targets(y)
    if classes is None:
        known, codes = np.unique(y, return_inverse=True)
    else:
        known = np.asarray(classes)
        if known.ndim != 1 or np.unique(known).size != known.size:
            raise ValueError(f"classes={classes!r}: must be a list of different labels")
        order = np.argsort(known)
        position = np.clip(np.searchsorted(known, y, sorter=order), 0, known.size - 1)
        codes = order[position]
        outside = known[codes] != y
        if outside.any():
            raise ValueError(f"y holds the label {y[outside][0]!r}, which is not in classes={list(known)!r}")
    if known.size < 2:
        raise ValueError(f"y has one class only ({known[0]!r}); a classifier needs at least two classes")
    return X, codes.astype(np.int64), known


def row_norms(X) -> np.ndarray:
    """L2 norms of the rows of a dense or CSR matrix (n, d); returns (n,)."""
    if scipy.sparse.issparse(X):
        return np.sqrt(np.asarray(X.multiply(X).sum(axis=1), dtype=np.float64).ravel())
    return np.sqrt(np.einsum("ij,ij->i", X, X))


def common_tags(tags):
    """Set the scikit-learn tags that all methods share: sparse rows are fine."""
    tags.input_tags.sparse = True
    return tags
