"""Features of single columns with public bounds: numbers in [-1, 1], a constant beside them, and hat functions.

A number of a feature depends on one number of its row and on public numbers, bit for bit: there are no sums.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np


class Columns(NamedTuple):
    """Features made of columns with bounds.

    A `constant` above 0 stands behind the columns, so that a row scaled to norm 1 still tells its length. Each number
    has `n_hats` hat functions from one bound to the other: piecewise linear, `hat_weight` high, with sum `hat_weight`.
    """

    constant: float = 0.0
    n_hats: int = 0
    hat_weight: float = 0.5


def n_column_features(indicators: np.ndarray, columns: Columns) -> int:
    """Return the number of features of columns, of which some are indicators (d,)."""
    return indicators.size + (columns.constant > 0.0) + columns.n_hats * int((~indicators).sum())


def keeps_zeros(lower: np.ndarray, upper: np.ndarray, indicators: np.ndarray, columns: Columns) -> bool:
    """Tell whether 0 becomes 0 in every column, and there are no hats, so that sparse rows stay sparse."""
    zeros = (indicators & (lower <= 0.0) & (upper >= 0.0)) | (lower == -upper) | (lower == upper)
    return columns.n_hats == 0 and bool(np.all(zeros))


def bound_numbers(numbers: np.ndarray, lower: np.ndarray, upper: np.ndarray, stays: np.ndarray) -> np.ndarray:
    """Cut numbers to bounds and map them to [-1, 1] (equal bounds: to 0), but for those that stay as they are."""
    kept = np.clip(numbers, lower, upper)
    if np.all(stays):
        return kept
    # So that halves of tiny bounds are exact.
    tiny = np.where(np.maximum(np.abs(lower), np.abs(upper)) < 2.0**-500, 2.0**500, 1.0)
    cut, lower, upper = kept * tiny, lower * tiny, upper * tiny
    half = np.where(upper > lower, upper / 2.0 - lower / 2.0, 1.0)
    # In halves, so that no difference overflows.
    mapped = 2.0 * ((cut / 2.0 - lower / 2.0) / half)
    mapped -= np.where(upper > lower, 1.0, 0.0)
    bounded: np.ndarray = np.where(stays, kept, mapped)
    return bounded


def column_features(rows: Any, lower: np.ndarray, upper: np.ndarray, indicators: np.ndarray, columns: Columns) -> Any:
    """Compute features (n, D) of rows: the columns, the constant, and the hats of one number after the other.

    CSR rows only where `keeps_zeros` holds. Bounds are public; their difference may overflow for `indicators`, the
    columns that are cut to their bounds and otherwise stay unchanged.
    """
    n_rows = rows.shape[0]
    if not isinstance(rows, np.ndarray):
        places = rows.indices
        values = bound_numbers(rows.data, lower[places], upper[places], indicators[places])
        rows = type(rows)((values, places, rows.indptr), shape=rows.shape)
        if columns.constant == 0.0:
            return rows
        # Predictions of dense rows need NumPy alone.
        import scipy.sparse

        constants = scipy.sparse.csr_array(np.full((n_rows, 1), columns.constant))
        return scipy.sparse.csr_array(scipy.sparse.hstack([rows, constants], format="csr"))
    d = rows.shape[1]
    features = np.empty((n_rows, n_column_features(indicators, columns)))
    features[:, :d] = bound_numbers(rows, lower, upper, indicators)
    if columns.constant > 0.0:
        features[:, d] = columns.constant
    if columns.n_hats > 0:
        numbers = features[:, :d][:, ~indicators]
        hats = features[:, features.shape[1] - numbers.shape[1] * columns.n_hats :]
        centres, width = np.linspace(-1.0, 1.0, columns.n_hats, retstep=True)
        for k, centre in enumerate(centres):
            heights = 1.0 - np.abs(numbers - centre) / width
            hats[:, k :: columns.n_hats] = columns.hat_weight * np.maximum(heights, 0.0)
    return features
