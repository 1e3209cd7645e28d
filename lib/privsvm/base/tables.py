"""Rows as users hand them over, validated here and nowhere else.

They are refused, in one line, where NumPy would take them for other numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from privsvm.constraints import plain, trusted
from privsvm.numerics.rows.well_formed import check_sparse, plain_sparse, refuse_masked, sorted_rows

__all__ = ["rows_of_users", "rows_to_predict", "training_rows"]


def training_rows(estimator: Any, X: Any, y: Any, fewest: int) -> tuple[Any, Any]:
    """Validate the rows and labels that are handed to `fit`.

    The estimator gets ``n_features_in_`` (and ``feature_names_in_``). Rows come from `rows_of_users`, at least
    `fewest`. Returned are finite rows of float64, C-contiguous or CSR with sorted columns that occur once in a row, and
    labels (n,). Raises ValueError in one line.
    """
    # Imported late: tables alone need neither SciPy nor scikit-learn.
    import scipy.sparse
    from sklearn import config_context
    from sklearn.utils.validation import validate_data

    refuse_masked("y", y)
    y = plain(y)
    try:
        X = rows_of_users(X)
        if _is_plain(X) and _are_plain_labels(y, X.shape[0]):
            estimator.n_features_in_ = X.shape[1]
            if hasattr(estimator, "feature_names_in_"):
                # Left from an earlier fit.
                del estimator.feature_names_in_
        else:
            # It converts numbers, and adds them up to look for infinity: of huge and tiny ones it would warn, or raise,
            # as the rows have it. And it would not look if the caller's settings said that rows are finite.
            with np.errstate(all="ignore"), config_context(assume_finite=False):
                X, y = validate_data(estimator, X, y, accept_sparse="csr", dtype=np.float64, ensure_min_samples=fewest)
    except (TypeError, ValueError) as error:
        raise _in_plain_words(error) from None
    if not scipy.sparse.issparse(X):
        # Sums must not depend on the memory layout of the caller's rows.
        return np.ascontiguousarray(X), y
    # Entries stored twice add up, which bounds on the stored numbers would miss.
    X = sorted_rows(X)
    X.sum_duplicates()
    if not np.isfinite(X.data).all():
        raise ValueError("X holds entries stored twice whose sum is infinity")
    return X, y


def rows_to_predict(estimator: Any, X: Any) -> Any:
    """Validate rows (n, d) that a fitted estimator predicts; an array or a CSR matrix of float64."""
    X = rows_of_users(X)
    known = X.shape[1] == getattr(estimator, "n_features_in_", None) if _is_plain(X) else False
    if known and not hasattr(estimator, "feature_names_in_"):
        return X
    # Imported late, as above.
    from sklearn.utils.validation import validate_data

    with np.errstate(all="ignore"):
        return validate_data(estimator, X, reset=False, accept_sparse="csr", dtype=np.float64)


def rows_of_users(X: Any) -> Any:
    """Turn rows of any kind into what scikit-learn reads as it is meant.

    Tables of packages other than pandas, such as Polars, are read through Arrow's interface for streams; columns of a
    table are numbers or truth values. Raises ValueError for a masked array, a sparse matrix whose indices do not fit
    its shape, a column or an array that holds text, times or missing values, and a table that has no Arrow interface.
    """
    refuse_masked("X", X)
    # Imported late: users without such rows do not wait for it.
    import scipy.sparse

    X = plain_sparse(X) if scipy.sparse.issparse(X) else plain(X)
    if scipy.sparse.issparse(X):
        check_sparse(X)
        if X.format in ("lil", "dok"):
            X = X.tocsr()
            check_sparse(X)
        return X if X.format == "csr" else sorted_rows(X)
    if isinstance(X, np.ndarray) and X.dtype.kind in "SUMmV":
        raise ValueError(f"X holds values of type {X.dtype}: must hold numbers; encode them as numbers")
    if isinstance(X, np.ndarray) or not (hasattr(X, "__arrow_c_stream__") or hasattr(X, "__dataframe__")):
        return X
    return _checked_frame(_as_pandas(X))


def _as_pandas(table: Any) -> Any:
    import pandas as pd

    if isinstance(table, pd.DataFrame):
        return table
    import pyarrow

    try:
        return pyarrow.table(table).to_pandas()
    except (TypeError, ValueError):
        kind = f"{type(table).__module__.partition('.')[0]}.{type(table).__name__}"
        raise ValueError(
            f"X is a {kind}, which cannot be read: must be an array or a table of pandas, Arrow, Polars or DuckDB"
        ) from None


def _checked_frame(frame: Any) -> Any:
    """Refuse columns of which NumPy would make other numbers, and missing values, by the column's name."""
    import pandas as pd

    for position, name in enumerate(frame.columns):
        column = frame.iloc[:, position]
        types = pd.api.types
        if not (types.is_numeric_dtype(column.dtype) or types.is_bool_dtype(column.dtype)) or types.is_complex_dtype(
            column.dtype
        ):
            if column.dtype == object and all(map(_is_number, column)):
                continue
            raise ValueError(f"X: column {name!r} holds values of type {column.dtype}: must hold numbers; encode them")
        if isinstance(column.dtype, pd.api.extensions.ExtensionDtype) and bool(column.isna().any()):
            raise ValueError(
                f"X: column {name!r} has {int(column.isna().sum())} missing values; replace them or leave those rows "
                "out. Input X contains NaN"
            )
    return frame


def _is_number(value: Any) -> bool:
    return trusted(value) and isinstance(value, (int, float, np.number))


def _is_plain(X: Any) -> bool:
    """Whether `validate_data` would pass rows as they are: its looks at them take as long as a small fit.

    Rows are what `rows_of_users` returns. True for an array or a CSR matrix of float64, unless the sum of its numbers
    is not finite, though they may be.
    """
    if type(X) is np.ndarray:
        numbers = X
    elif getattr(X, "format", None) == "csr" and type(X).__module__.startswith("scipy.sparse"):
        numbers = X.data
    else:
        return False
    if numbers.dtype != np.float64 or X.ndim != 2 or 0 in X.shape:
        return False
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(numbers.sum()))


def _are_plain_labels(y: Any, n_rows: int) -> bool:
    """Whether `validate_data` would pass labels as they are."""
    if type(y) is not np.ndarray or y.shape != (n_rows,):
        return False
    return y.dtype.kind in "biuU" or (y.dtype.kind == "f" and bool(np.isfinite(y).all()))


def _in_plain_words(error: TypeError | ValueError) -> TypeError | ValueError:
    """Say it in one line, with the remedy that keeps a proof where scikit-learn would name one that does not."""
    message = str(error).split("\n")[0].rstrip(".")
    if "of NA is ambiguous" in message or "NAType" in message:
        message = "Input contains pandas.NA"
    if "NaN" in message or "pandas.NA" in message:
        return ValueError(
            f"{message}: fill missing values with public ones (PublicSchema does); what is filled in from the rows, as "
            "imputers do, is not covered by any epsilon"
        )
    if "could not convert string" in message:
        return ValueError(f"{message}: declare the columns with PublicSchema, which turns texts into numbers")
    return TypeError(message) if isinstance(error, TypeError) else ValueError(message)
