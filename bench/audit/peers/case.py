"""What the files beside this one list: estimators to audit, and what is expected of each."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np


@dataclasses.dataclass(frozen=True, kw_only=True)
class Case:
    """One audit.

    Attributes
    ----------
    name : str
        What is audited.
    make : callable
        Returns a fresh estimator.
    source : str
        Where a violation is published, reported or planted; empty for what should be sound.
    options : dict
        Further arguments of `privsvm.audit`; epsilon is 1 and neighbours differ in one replaced row unless it says so.
    """

    name: str
    make: Callable[[], Any]
    source: str = ""
    options: dict[str, Any] = dataclasses.field(default_factory=dict)


class Release:
    """An estimator that publishes what a function of the rows returns."""

    def __init__(self, release: Callable[[np.ndarray, np.ndarray], Any]) -> None:
        self._release = release

    def fit(self, X: np.ndarray, y: np.ndarray) -> Release:
        self.published_ = np.atleast_1d(np.asarray(self._release(X, y), dtype=float))
        return self

    def decision_function(self, X: np.ndarray) -> np.ndarray:
        return np.zeros(1)


def release(function: Callable[[np.ndarray, np.ndarray], Any]) -> Callable[[], Release]:
    """Return what makes an estimator of a function."""
    return lambda: Release(function)


def options(draws: int, **others: Any) -> dict[str, Any]:
    """Name arguments of an audit."""
    return {"draws": draws, **others}


def clipped(X: np.ndarray, low: float = -1.0, high: float = 1.0) -> np.ndarray:
    """Return the first feature, cut at public bounds."""
    return np.clip(X[:, 0], low, high)


def pair(words: str, first: Sequence[Any], second: Sequence[Any]) -> list[Any]:
    """Make one pair of tables with the same labels, alternating between two classes."""
    from privsvm.auditing.neighbours import Pair

    tables = [np.asarray(rows, dtype=float) for rows in (first, second)]
    return [Pair(words, *((rows, np.arange(len(rows)) % 2) for rows in tables))]
