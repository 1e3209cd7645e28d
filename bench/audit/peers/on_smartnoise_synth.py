"""smartnoise-synth's noisy covariances at epsilon 1."""

from __future__ import annotations

import importlib.metadata
import importlib.util
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from case import Case, pair, release

PACKAGE = "smartnoise-synth"
ROWS = 20


def _module() -> Any:
    """Load the file alone: the package needs more than is installed."""
    files = importlib.metadata.files("smartnoise-synth") or ()
    (path,) = [file for file in files if file.name == "dp_covariance.py"]
    spec = importlib.util.spec_from_file_location("dp_covariance", str(path.locate()))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


_COVARIANCE = _module().DPcovariance


def covariances(sizes: list[float]) -> Callable[[np.ndarray, np.ndarray], Any]:
    """Publish the covariances of columns whose values are at most so large."""

    def publish(X: np.ndarray, y: np.ndarray) -> Any:
        names = list(range(len(sizes)))
        bounds = pd.DataFrame({name: [-size, size] for name, size in zip(names, sizes, strict=True)})
        return _COVARIANCE(len(X), names, bounds, 1.0).release(pd.DataFrame(X[:, : len(sizes)], columns=names))

    return publish


def rows(value: list[float]) -> np.ndarray:
    """Make rows of zeros, and one that is not."""
    return np.vstack([np.zeros((ROWS - 1, len(value))), value])


CASES = [
    Case(
        "covariances of two columns",
        release(covariances([1.0, 1.0])),
        1500,
        options={"pairs": pair("rows of zeros, and a long one", rows([9.0, 9.0]), rows([0.0, 0.0]))},
    ),
    Case(
        "covariances of columns of different ranges",
        release(covariances([0.01, 10.0, 0.01])),
        1500,
        source="its code: noise is listed by rows of the upper triangle, covariances by rows of the lower",
        options={"pairs": pair("rows of zeros, and one at a limit", rows([0.0, 10.0, 0.0]), rows([0.0, 0.0, 0.0]))},
    ),
]
