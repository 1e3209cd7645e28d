"""smartnoise-synth's noisy covariances at epsilon 1."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from case import Case, load_file, pair, release

PACKAGE = "smartnoise-synth"
ROWS = 20
_COVARIANCE = load_file(PACKAGE, "dp_covariance").DPcovariance


def _covariances(sizes: list[float]) -> Callable[[np.ndarray, np.ndarray], Any]:
    """Publish the covariances of columns whose values are at most so large."""

    def publish(X: np.ndarray, y: np.ndarray) -> Any:
        names = list(range(len(sizes)))
        bounds = pd.DataFrame({name: [-size, size] for name, size in zip(names, sizes, strict=True)})
        return _COVARIANCE(len(X), names, bounds, 1.0).release(pd.DataFrame(X[:, : len(sizes)], columns=names))

    return publish


def _rows(value: list[float]) -> np.ndarray:
    """Make rows of zeros, and one that is not."""
    return np.vstack([np.zeros((ROWS - 1, len(value))), value])


CASES = [
    Case(
        "covariances of two columns",
        release(_covariances([1.0, 1.0])),
        1500,
        options={"pairs": pair("rows of zeros, and a long one", _rows([9.0, 9.0]), _rows([0.0, 0.0]))},
    ),
    Case(
        "covariances of columns of different ranges",
        release(_covariances([0.01, 10.0, 0.01])),
        1500,
        source="its code: noise is listed by rows of the upper triangle, covariances by rows of the lower",
        options={"pairs": pair("rows of zeros, and one at a limit", _rows([0.0, 10.0, 0.0]), _rows([0.0, 0.0, 0.0]))},
    ),
]
