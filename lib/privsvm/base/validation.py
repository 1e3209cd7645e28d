"""Checks of parameters that several methods share."""

from __future__ import annotations

from typing import Any

import numpy as np


def check_bounds(bounds: Any, n_features: int) -> tuple[np.ndarray, np.ndarray]:
    """Return public bounds as two arrays (d,)."""
    try:
        low, high = (np.array(np.broadcast_to(np.asarray(bound, dtype=np.float64), n_features)) for bound in bounds)
    except (TypeError, ValueError):
        low, high = np.ones(1), np.zeros(1)
    if not (np.isfinite(low).all() and np.isfinite(high).all() and (low <= high).all()):
        raise ValueError(f"bounds={bounds!r}: must be (low, high), finite, low not above high")
    return low, high


def check_consent(allow_unsound: bool, problem: str) -> None:
    """Raise ValueError if the user has not consented to a method whose epsilon does not hold."""
    if not allow_unsound:
        raise ValueError(f"allow_unsound={allow_unsound!r}: {problem}; consent with allow_unsound=True")


def common_tags(tags: Any) -> Any:
    """Set the scikit-learn tags that all methods share: sparse rows are fine."""
    tags.input_tags.sparse = True
    return tags
