"""Whether the arrays of a sparse matrix fit each other, and one form of rows for all its formats.

SciPy checks arrays where a matrix is made, but takes whatever is written into it afterwards. Compiled code that trusts
them reads and writes beside its arrays.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from privsvm.constraints import plain


def refuse_masked(name: str, values: Any) -> None:
    """Raise ValueError for a masked array: its hidden values would count."""
    if isinstance(values, np.ma.MaskedArray):
        raise ValueError(
            f"{name} is a masked array: its hidden values would be used; fill them with .filled(value) or leave those "
            "rows out"
        )


def plain_csr(X: Any) -> Any:
    """Make a CSR array of a CSR matrix, in the same memory: its arrays, too, may be of a derived class."""
    import scipy.sparse

    return scipy.sparse.csr_array((np.asarray(X.data), np.asarray(X.indices), np.asarray(X.indptr)), shape=X.shape)


def plain_sparse(X: Any) -> Any:
    """Rebuild a sparse matrix from its stored arrays in SciPy's own class: its own methods may be overridden."""
    import scipy.sparse

    kind = next((base for base in type(X).__mro__ if getattr(scipy.sparse, base.__name__, None) is base), None)
    if kind is None:
        raise ValueError(f"X is a {type(X).__name__}: must be an array, or a sparse matrix of SciPy")
    values = {name: plain(value) for name, value in vars(X).items() if not hasattr(kind, name)}
    if type(X) is kind and len(values) == len(vars(X)) and all(vars(X)[name] is values[name] for name in values):
        return X
    stored = kind.__new__(kind)
    vars(stored).update(values)
    return stored


def as_csr(X: Any) -> Any:
    """Return a sparse matrix of any format as CSR of SciPy's own class, whose index arrays fit its shape."""
    X = plain_sparse(X)
    check_sparse(X)
    if X.format in ("lil", "dok"):
        X = X.tocsr()
        check_sparse(X)
    return X if X.format == "csr" else sort_entries(X)


def check_sparse(X: Any) -> None:
    """Refuse a sparse matrix whose index arrays point beside its data or its shape.

    Matrices made of Python objects (LIL, DOK) are to be checked again as CSR.
    """
    if len(X.shape) != 2:
        raise ValueError(f"X is a sparse array of {len(X.shape)} dimensions: must have rows and columns")
    match X.format:
        case "csr":
            _check_compressed(X, X.shape[0], X.shape[1])
        case "csc":
            _check_compressed(X, X.shape[1], X.shape[0])
        case "bsr":
            high, wide = X.blocksize
            _check_compressed(X, X.shape[0] // max(high, 1), X.shape[1] // max(wide, 1))
        case "coo":
            for name, indices, size in (("row", X.row, X.shape[0]), ("column", X.col, X.shape[1])):
                if len(indices) != len(X.data):
                    raise ValueError(
                        f"X: {len(indices)} {name} indices for {len(X.data)} values; build the matrix again"
                    )
                _check_indices(indices, size, name)


def _check_compressed(X: Any, outer: int, inner: int) -> None:
    """Check the three arrays of a CSR, CSC or BSR matrix."""
    ends, indices = np.asarray(X.indptr), np.asarray(X.indices)
    if ends.dtype.kind not in "iu" or indices.dtype.kind not in "iu":
        raise ValueError("X: the index arrays of the sparse matrix are not whole numbers; build the matrix again")
    if ends.shape != (outer + 1,):
        raise ValueError(f"X: the sparse matrix has {len(ends)} row ends for {outer} rows; build the matrix again")
    if indices.ndim != 1 or len(indices) != len(X.data):
        raise ValueError(f"X: {len(indices)} indices for {len(X.data)} values; build the sparse matrix again")
    if ends[0] != 0 or ends[-1] != len(indices) or bool(np.any(ends[1:] < ends[:-1])):
        raise ValueError(
            f"X: the row ends of the sparse matrix do not rise from 0 to {len(indices)}; build the matrix again"
        )
    _check_indices(indices, inner, "column" if X.format != "csc" else "row")


def _check_indices(indices: Any, size: int, name: str) -> None:
    if len(indices) == 0:
        return
    if np.asarray(indices).dtype.kind not in "iu":
        raise ValueError(f"X: the {name} indices of the sparse matrix are not whole numbers; build the matrix again")
    for index in (int(np.min(indices)), int(np.max(indices))):
        if not 0 <= index < size:
            raise ValueError(
                f"X: {name} index {index} of the sparse matrix is beside its {size} {name}s; build it again"
            )


def sort_entries(X: Any) -> Any:
    """Turn a sparse matrix (n, d) into a new CSR array with the entries of every row in the order of their columns.

    Entries that are stored twice stay apart, in the order in which they are stored. SciPy does not keep the order among
    equals, and sorts all rows where any is out of order: the sum of a row would depend on the others.
    """
    # Imported late: checks alone do not need it.
    import scipy.sparse

    if X.format == "csr":
        # A new one, since its flags may be older than its entries.
        rows = plain_csr(X).copy()
        if rows.has_sorted_indices:
            return rows
    entries = X.tocoo()
    data, columns, numbers = (np.asarray(values) for values in (entries.data, entries.col, entries.row))
    order = np.lexsort((columns, numbers))
    ends = np.cumsum(np.bincount(numbers, minlength=X.shape[0]))
    return scipy.sparse.csr_array((data[order], columns[order], np.append(0, ends)), shape=X.shape)


def canonical_rows(X: Any) -> Any:
    """Return a sparse matrix (n, d) as CSR of float64, with one entry for each column of a row; X does not change.

    Entries that are stored twice add up in the order in which they are stored.
    """
    import scipy.sparse

    if X.format == "csr" and X.has_canonical_format:
        return scipy.sparse.csr_array(X, dtype=np.float64)
    rows = sort_entries(X).astype(np.float64, copy=False)
    rows.sum_duplicates()
    return rows
