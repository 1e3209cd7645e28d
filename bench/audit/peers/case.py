"""Types of the neighbouring files, which list estimators to audit and the expected outcomes."""

from __future__ import annotations

import dataclasses
import importlib.metadata
import importlib.util
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

DELTA = 1e-5
# Options of `Case`: a row is added; the release is a Gaussian mechanism besides.
ADDED = {"relation": "add_remove"}
GAUSSIAN = {**ADDED, "delta": DELTA, "gaussian": True}


@dataclasses.dataclass(frozen=True)
class Case:
    """One audit."""

    name: str  # The audited mechanism.
    make: Callable[[], Any]  # Returns a fresh estimator.
    draws: int
    source: str = ""  # Where a violation is published, reported or planted; empty for a sound mechanism.
    # Further arguments of `privsvm.audit`; defaults here: epsilon 1, and neighbours that replace one row.
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)


class Release:
    """An estimator that publishes the result of a function of the rows."""

    def __init__(self, release: Callable[[np.ndarray, np.ndarray], Any]) -> None:
        self._release = release

    def fit(self, X: np.ndarray, y: np.ndarray) -> Release:
        self.published_ = np.atleast_1d(np.asarray(self._release(X, y), dtype=float))
        return self

    def decision_function(self, X: np.ndarray) -> np.ndarray:
        return np.zeros(1)


def release(function: Callable[[np.ndarray, np.ndarray], Any]) -> Callable[[], Release]:
    """Return a maker of estimators that publish the result of a function."""
    return lambda: Release(function)


def clip_feature(X: np.ndarray, low: float = -1.0, high: float = 1.0) -> np.ndarray:
    """Return the first feature, cut at public bounds."""
    return np.clip(X[:, 0], low, high)


def two_classes(codes: Sequence[int], size: float) -> dict[str, np.ndarray]:
    """Return rows of two classes on a line, this far from 0, and their labels, as options of `Case`."""
    labels = np.asarray(codes)
    return {"X": np.where(labels == 1, size, -size)[:, None], "y": labels}


def load_file(package: str, name: str) -> Any:
    """Load one file of a package that needs more than is installed here."""
    (path,) = [file for file in importlib.metadata.files(package) or () if file.name == f"{name}.py"]
    spec = importlib.util.spec_from_file_location(name, str(path.locate()))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def pair(words: str, first: Sequence[Any], second: Sequence[Any], label: int = 0) -> list[Any]:
    """Make one pair of tables, whose labels alternate between two classes; `label` is the first one of the second."""
    from privsvm.auditing.neighbours import Pair

    tables = [(np.asarray(rows, dtype=float), start) for rows, start in ((first, 0), (second, label))]
    return [Pair(words, *((rows, (start + np.arange(len(rows))) % 2) for rows, start in tables))]
