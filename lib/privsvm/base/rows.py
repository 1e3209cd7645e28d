"""The door for rows: tables and labels of users become checked arrays here, once, and nowhere else.

Rows are refused, in one line, where NumPy would take them for other numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from privsvm.constraints import is_trusted, plain
from privsvm.numerics.compiled.threads import memory_of_machine
from privsvm.numerics.rows.row_blocks import RowBlocks
from privsvm.numerics.rows.well_formed import as_csr, refuse_masked, sort_entries

# Arrays as large as a model that training holds.
_MODELS = 8
# Larger whole numbers are not told apart in float64, which labels become if one of them is a float.
_LARGEST_LABEL = 2.0**53


def as_training_rows(estimator: Any, X: Any, y: Any, classes: Sequence[Any] | None) -> tuple[Any, np.ndarray]:
    """Check the rows and labels that are handed to `fit`, and turn labels into class codes.

    The estimator gets ``classes_``, sorted as scikit-learn's tools expect, ``n_features_in_`` and
    ``feature_names_in_``. `classes` is the public label set; None takes it from `y`. Labels of None are those that a
    source of rows has.

    Returns finite rows (n, d) of float64, C-contiguous or CSR with sorted columns that occur once in a row, or the
    `RowBlocks`; and codes (n,) of int64, or for a source of rows of the smallest type that holds them. Raises
    ValueError in one line if rows or labels are not such, a label is outside `classes`, or there are fewer than two
    classes.
    """
    if isinstance(X, RowBlocks):
        return X, _codes_by_block(estimator, X, y, classes)
    known = None if classes is None else _read_classes(classes)
    try:
        X, y = read_rows(X), _read_labels(y)
        kind = y.dtype.kind if type(y) is np.ndarray else "O"
        is_plain = kind in "biuU" or (kind == "f" and bool(np.isfinite(y).all()))
        if is_plain and _is_plain(X) and y.shape == X.shape[:1]:
            estimator.n_features_in_ = X.shape[1]
            # Left from an earlier fit.
            vars(estimator).pop("feature_names_in_", None)
        else:
            X, y = _validate(estimator, X, y, known is not None)
    except (TypeError, ValueError) as error:
        raise _in_plain_words(error) from None
    # Sums must not depend on the memory layout of the caller's rows.
    X = np.ascontiguousarray(X) if isinstance(X, np.ndarray) else _add_duplicates(X)
    # The labels may all be of a declared set, of which scikit-learn would refuse some, such as 0.5, by other rows.
    labels = y if known is None else known
    if not (labels.dtype.kind in "iubU" or (labels.dtype.kind == "f" and (labels == np.floor(labels)).all())):
        # Imported late; and whole numbers and texts are classes: scikit-learn's own look at them takes longer than a
        # small fit.
        from sklearn.utils.multiclass import check_classification_targets

        check_classification_targets(labels)
    known, codes = (known, _codes_of(y, known)) if known is not None else _distinct(y)
    if known.size < 2:
        raise ValueError(f"y has one class only ({known[0]!r}); a classifier needs at least two classes")
    check_class_memory(type(estimator), X.shape[0], X.shape[1], known.size)
    estimator.classes_ = known
    return X, codes.astype(np.int64, copy=False)


def _add_duplicates(X: Any) -> Any:
    """Sort the entries of a sparse matrix and add up repeated ones, which bounds on the stored numbers would miss."""
    X = sort_entries(X)
    X.sum_duplicates()
    if not np.isfinite(X.data).all():
        raise ValueError("X holds entries stored twice whose sum is infinity")
    return X


def _validate(estimator: Any, X: Any, y: Any, declared: bool) -> tuple[Any, Any]:
    """Let scikit-learn convert and check rows and labels."""
    from sklearn import config_context
    from sklearn.utils.validation import validate_data

    # A table of one row has an empty neighbour, which a method accepts that accepts the table.
    method = getattr(estimator, "estimator", estimator)
    accepts = getattr(method, "published", "") is None and method.neighbours == "add_remove"
    fewest = 0 if accepts and declared else 1
    # It converts numbers, and adds them up to look for infinity: of huge and tiny ones it would warn, or raise, as the
    # rows have it. And it would not look if the caller's settings said that rows are finite.
    with np.errstate(all="ignore"), config_context(assume_finite=False):
        return validate_data(  # type: ignore[no-any-return]
            estimator, X, y, accept_sparse="csr", dtype=np.float64, ensure_min_samples=fewest
        )


def _read_labels(y: Any) -> Any:
    # NumPy's own arrays hold plain values, but for objects.
    if type(y) is np.ndarray and y.dtype != object:
        return y
    refuse_masked("y", y)
    return plain(y)


def rows_to_predict(estimator: Any, X: Any) -> Any:
    """Validate rows (n, d) that a fitted estimator predicts; an array or a CSR matrix of float64."""
    X = read_rows(X)
    known = X.shape[1] == getattr(estimator, "n_features_in_", None) if _is_plain(X) else False
    if known and not hasattr(estimator, "feature_names_in_"):
        return X
    # Imported late, as above.
    from sklearn.utils.validation import validate_data

    with np.errstate(all="ignore"):
        return validate_data(estimator, X, reset=False, accept_sparse="csr", dtype=np.float64)


def read_rows(X: Any) -> Any:
    """Turn rows of any kind into what scikit-learn reads as it is meant.

    Tables of packages other than pandas, such as Polars, are read through Arrow's interface for streams; columns of a
    table are numbers or truth values. Raises ValueError for a masked array, a sparse matrix whose indices do not fit
    its shape, a column or an array that holds text, times or missing values, and a table that has no Arrow interface.
    """
    if type(X) is np.ndarray and X.dtype.kind in "biuf":
        return X
    refuse_masked("X", X)
    # Imported late: users without such rows do not wait for it.
    import scipy.sparse

    if scipy.sparse.issparse(X):
        return as_csr(X)
    X = plain(X)
    if isinstance(X, np.ndarray) and X.dtype.kind in "SUMmV":
        raise ValueError(f"X holds values of type {X.dtype}: must hold numbers; encode them as numbers")
    if isinstance(X, np.ndarray) or not (hasattr(X, "__arrow_c_stream__") or hasattr(X, "__dataframe__")):
        return X
    return _check_frame(_as_pandas(X))


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


def _check_frame(frame: Any) -> Any:
    """Refuse columns of which NumPy would make other numbers, and missing values, by the column's name."""
    import pandas as pd

    for position, name in enumerate(frame.columns):
        column = frame.iloc[:, position]
        types = pd.api.types
        if not (types.is_numeric_dtype(column.dtype) or types.is_bool_dtype(column.dtype)) or types.is_complex_dtype(
            column.dtype
        ):
            if column.dtype == object and all(
                is_trusted(value) and isinstance(value, (int, float, np.number)) for value in column
            ):
                continue
            raise ValueError(f"X: column {name!r} holds values of type {column.dtype}: must hold numbers; encode them")
        if isinstance(column.dtype, pd.api.extensions.ExtensionDtype) and bool(column.isna().any()):
            raise ValueError(
                f"X: column {name!r} has {int(column.isna().sum())} missing values; replace them or leave those rows "
                "out. Input X contains NaN"
            )
    return frame


def _is_plain(X: Any) -> bool:
    """Whether `validate_data` would surely pass rows of `read_rows` as they are: its looks take as long as a fit."""
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


def _distinct(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the different labels, sorted, and the code of each: what `numpy.unique` does, which sorts all texts."""
    if y.dtype.kind != "U":
        return np.unique(y, return_inverse=True)
    texts = y.tolist()
    labels = sorted(set(texts))
    code_of = {text: code for code, text in enumerate(labels)}
    return np.array(labels, dtype=y.dtype), np.fromiter((code_of[text] for text in texts), np.int64, len(texts))


def _read_classes(classes: Sequence[Any]) -> np.ndarray:
    """Sort the labels of a public class set; raise ValueError if they are no list of two or more labels."""
    labels = np.array(classes)
    if (
        labels.ndim == 1
        and labels.dtype.kind in ("f", "O")
        and any(label is None or label != label for label in labels.tolist())
    ):
        raise ValueError(f"classes={classes!r}: holds a missing label; give numbers or texts")
    if labels.dtype.kind in "iuf" and np.any(np.abs(labels.astype(np.float64)) >= _LARGEST_LABEL):
        raise ValueError(f"classes={classes!r}: whole numbers from 2^53 on are not told apart; write them as texts")
    if labels.ndim != 1 or np.unique(labels).size != labels.size:
        raise ValueError(f"classes={classes!r}: must be a list of different labels")
    if labels.size < 2:
        raise ValueError(f"classes={classes!r}: has one class or none; a classifier needs at least two classes")
    # A copy: it may be a part of something larger, such as of all labels.
    return np.sort(labels)


def _codes_of(y: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Turn labels (n,) into codes of sorted known ones; raise ValueError with a label that is none of them."""
    try:
        codes: np.ndarray = np.clip(np.searchsorted(labels, y), 0, labels.size - 1)
        outside = labels[codes] != y
    except TypeError:
        # None and pandas.NA are neither above nor below a label.
        raise ValueError(
            "y holds a label that cannot be compared with the classes; leave rows without a label out, and give all "
            "labels as numbers or all as texts"
        ) from None
    if outside.any():
        raise ValueError(f"y holds the label {y[outside].tolist()[0]!r}, which is not in classes={labels.tolist()}")
    return codes


def _codes_by_block(estimator: Any, X: RowBlocks, y: Any, classes: Sequence[Any] | None) -> np.ndarray:
    """Turn the labels of a source of rows into codes, block by block."""
    if not getattr(estimator, "reads_blocks", False):
        raise ValueError(
            f"X is a {type(X).__name__}: {type(estimator).__name__} needs all rows in memory; read them into an array, "
            "or use a method of sums, such as PrivateLinearClassifier"
        )
    if X.client is not None and not is_trusted(X.client, "distributed"):
        raise ValueError(f"client={X.client!r}: must be a distributed.Client; another may sum other rows")
    y = _read_labels(X.labels if y is None else y)
    if y is None:
        raise ValueError("y=None: the source of rows has no labels; give them here, or name them in open_rows")
    if classes is None:
        raise ValueError("classes=None: give the label set; rows on disk are not searched for it")
    y = np.asarray(y)
    if y.shape != X.shape[:1]:
        raise ValueError(f"y has shape {y.shape} for {X.shape[0]} rows")
    labels = _read_classes(classes)
    check_class_memory(type(estimator), 0, X.shape[1], labels.size)
    codes = np.empty(y.shape[0], dtype=np.min_scalar_type(labels.size - 1))
    for start, stop in X.blocks():
        codes[start:stop] = _codes_of(np.asarray(y[start:stop]), labels)
    estimator.classes_, estimator.n_features_in_ = labels, X.shape[1]
    return codes


def check_class_memory(kind: type, n_rows: int, n_features: int, n_classes: int) -> None:
    """Raise ValueError if a method's arrays for so many classes do not fit in memory.

    Its `class_memory` names the numbers that it holds, of 8 bytes each: "rows" for a number of each row and class,
    "classes" for each two classes; both beside a number of each class and feature.
    """
    per_class = {"rows": n_rows, "classes": 3 * n_classes, "model": 0}[getattr(kind, "class_memory", "rows")]
    needed = 8 * n_classes * (per_class + _MODELS * n_features)
    most = memory_of_machine()
    if needed > most:
        raise ValueError(
            f"classes: {n_classes} classes, {n_rows} rows and {n_features} features would take {needed / 1e9:.0f} GB "
            f"in {kind.__name__}, of {most / 1e9:.0f} GB of this machine; use fewer classes, or "
            "SoftmaxDPSGDClassifier, which holds a few models only"
        )
