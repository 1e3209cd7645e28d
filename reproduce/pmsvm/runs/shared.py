"""Splits, scaling, accuracy and LIBLINEAR, shared by the experiments of pmsvm-2025."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np


def scaled(X, scaling: str) -> np.ndarray:
    """Scale rows (n, d) by statistics of all rows, test rows included, as the released scripts do: not private.

    `scaling` is "none", "min_max" (to [0, 1]) or "z_score" (to mean 0 and variance 1).
    """
    from sklearn.preprocessing import MinMaxScaler, StandardScaler

    X = X.toarray() if hasattr(X, "toarray") else np.asarray(X, dtype=np.float64)
    if scaling == "none":
        return X
    return {"min_max": MinMaxScaler, "z_score": StandardScaler}[scaling]().fit_transform(X)


def split_rows(X: np.ndarray, codes: np.ndarray, test_size: float, seed: int) -> tuple[np.ndarray, ...]:
    """Split rows as the released scripts do: not stratified, seeded by the number of the run.

    Returns training rows, test rows, training codes and test codes.
    """
    from sklearn.model_selection import train_test_split

    return tuple(train_test_split(X, codes, test_size=test_size, random_state=seed))


def accuracy_of(scores: np.ndarray, codes: np.ndarray, labels: np.ndarray | None = None) -> float:
    """Share of rows whose largest score (n, k) belongs to their class; `labels` (k,) are the classes of the columns."""
    answers = np.argmax(scores, axis=1)
    return float(np.mean((answers if labels is None else labels[answers]) == codes))


def fit_liblinear(X, codes: np.ndarray, C: float, multi_class: str, seed: int):
    """Solve as the released code does; one-vs-rest takes scikit-learn's default loss, the squared hinge."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.svm import LinearSVC

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        solver = LinearSVC(C=C, multi_class=multi_class, fit_intercept=False, max_iter=10_000, random_state=seed)
        return solver.fit(X, codes)


def without(parameters: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """Leave some parameters out."""
    return {key: value for key, value in parameters.items() if key not in names}
