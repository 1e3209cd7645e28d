"""Rows as users hand them over: refused, in one line, where NumPy would take them for other numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from privsvm.numerics.rows.well_formed import check_sparse

__all__ = ["refuse_masked", "rows_of_users", "sorted_rows"]


def refuse_masked(name: str, values: Any) -> None:
    """Raise ValueError for a masked array: what is hidden in it would count."""
    if isinstance(values, np.ma.MaskedArray):
        raise ValueError(
            f"{name} is a masked array: its hidden values would be used; fill them with .filled(value) or leave those "
            "rows out"
        )


def rows_of_users(X: Any) -> Any:
    """Turn rows of any kind into what scikit-learn reads as it is meant.

    Parameters
    ----------
    X : array-like, sparse matrix, pandas or Arrow table
        Tables of other packages, such as Polars, are read through Arrow's interface for streams.

    Returns
    -------
    array-like, CSR matrix or pandas.DataFrame
        The columns of a table are numbers or truth values.

    Raises
    ------
    ValueError
        For a masked array, a sparse matrix whose indices do not fit its shape, a column or an array that holds text,
        times or missing values, and a table that has no Arrow interface.
    """
    refuse_masked("X", X)
    # Imported late: whoever has no such rows does not wait for it.
    import scipy.sparse

    if scipy.sparse.issparse(X):
        check_sparse(X)
        if X.format in ("lil", "dok"):
            X = X.tocsr()
            check_sparse(X)
        return X if X.format == "csr" else sorted_rows(X)
    if isinstance(X, np.ndarray) and X.dtype.kind in "SUMmV":
        raise ValueError(f"X holds values of type {X.dtype}: must hold numbers; encode them as numbers")
    if isinstance(X, np.ndarray) or not hasattr(X, "__dataframe__"):
        return X
    return _checked_frame(_as_pandas(X))


def sorted_rows(X: Any) -> Any:
    """Turn a sparse matrix (n, d) into a new CSR array with the entries of every row in the order of their columns.

    Entries that are stored twice stay apart, in the order in which they are stored. SciPy does not keep the order among
    equals, and sorts all rows where any is out of order: what a row adds up to would depend on the others.
    """
    import scipy.sparse

    if X.format == "csr":
        # A new one, since its flags may be older than its entries.
        rows = scipy.sparse.csr_array((X.data.copy(), X.indices.copy(), X.indptr.copy()), shape=X.shape)
        if rows.has_sorted_indices:
            return rows
    entries = X.tocoo()
    order = np.lexsort((entries.col, entries.row))
    ends = np.cumsum(np.bincount(entries.row, minlength=X.shape[0]))
    return scipy.sparse.csr_array((entries.data[order], entries.col[order], np.append(0, ends)), shape=X.shape)


def _as_pandas(table: Any) -> Any:
    import pandas as pd

    if isinstance(table, pd.DataFrame):
        return table
    kind = f"{type(table).__module__.partition('.')[0]}.{type(table).__name__}"
    if not hasattr(table, "__arrow_c_stream__"):
        raise ValueError(f"X is a {kind}, which cannot be read: must be an array or a table of pandas, Arrow or Polars")
    import pyarrow

    return pyarrow.table(table).to_pandas()


def _checked_frame(frame: Any) -> Any:
    """Refuse columns of which NumPy would make other numbers, and missing values, by the column's name."""
    import pandas as pd

    for position, name in enumerate(frame.columns):
        column = frame.iloc[:, position]
        types = pd.api.types
        if not (types.is_numeric_dtype(column.dtype) or types.is_bool_dtype(column.dtype)) or types.is_complex_dtype(
            column.dtype
        ):
            if column.dtype == object and all(isinstance(value, (int, float, np.number)) for value in column):
                continue
            raise ValueError(f"X: column {name!r} holds values of type {column.dtype}: must hold numbers; encode them")
        if isinstance(column.dtype, pd.api.extensions.ExtensionDtype) and bool(column.isna().any()):
            raise ValueError(
                f"X: column {name!r} has {int(column.isna().sum())} missing values; replace them or leave those rows "
                "out. Input X contains NaN"
            )
    return frame
