"""Checks of parameters that all methods share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from privsvm.constraints import POSITIVE
from privsvm.privacy.accounting import gaussian_noise_multiplier

# Why nothing is proved for a model whose public label set was not given.
INFERRED_CLASSES = "the class set was taken from the private labels"

# Standard deviation of the noise with a whole budget, in rows.
_MOST_NOISE = 1e6


def check_budgets(epsilons: Sequence[float], delta: Any) -> tuple[list[float], float]:
    """Return a grid of epsilons and the delta as plain floats; raise ValueError if one is out of range."""
    delta = float(POSITIVE.check("delta", delta))
    for epsilon in epsilons:
        # Parts of a budget have more noise, which the sampler must be able to draw once it is paid for.
        if gaussian_noise_multiplier(float(POSITIVE.check("epsilon", epsilon)), delta) > _MOST_NOISE:
            raise ValueError(
                f"epsilon={epsilon!r}, delta={delta!r}: noise as large as {_MOST_NOISE:.0e} rows drowns all tables; "
                "use larger ones"
            )
    return [float(epsilon) for epsilon in epsilons], delta


def check_bounds(bounds: Any, n_features: int) -> tuple[np.ndarray, np.ndarray]:
    """Return public bounds as two arrays (d,)."""
    try:
        low, high = (np.array(np.broadcast_to(np.asarray(bound, dtype=np.float64), n_features)) for bound in bounds)
    except (TypeError, ValueError):
        low, high = np.ones(1), np.zeros(1)
    if not (np.isfinite(low).all() and np.isfinite(high).all() and (low <= high).all()):
        raise ValueError(f"bounds={bounds!r}: must be (low, high), finite, low not above high")
    return low, high


def check_public_classes(classes: Sequence[Any] | None, allow_unsound: bool) -> None:
    """Raise ValueError if the set of classes would silently be taken from private labels."""
    if classes is None and not allow_unsound:
        raise ValueError(
            "classes=None: give the public label set; taking it from private labels needs allow_unsound=True"
        )


def check_consent(allow_unsound: bool, problem: str) -> None:
    """Raise ValueError if the user has not consented to a method whose epsilon does not hold."""
    if not allow_unsound:
        raise ValueError(f"allow_unsound={allow_unsound!r}: {problem}; consent with allow_unsound=True")


def common_tags(tags: Any) -> Any:
    """Set the scikit-learn tags that all methods share: sparse rows are fine."""
    tags.input_tags.sparse = True
    return tags
