"""SACRO-ML's DPSVC at epsilon 1: each published quantity alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from case import Case, Release, load_file, release, two_classes

PACKAGE = "sacroml"
_DPSVC = load_file(PACKAGE, "dp_svc").DPSVC


def _publish(quantity: Callable[[Any], Any], gamma: Any = 0.5) -> Callable[[], Release]:
    """Publish a quantity of the trained model."""

    def publish(X: np.ndarray, y: np.ndarray) -> Any:
        model = _DPSVC(C=1.0, gamma=gamma, dhat=4, eps=1.0)
        model.fit(X, y)
        return quantity(model)

    return release(publish)


def _platt(model: Any) -> np.ndarray:
    """Take the scaling of probabilities, fitted on the true labels."""
    return np.append(model.platt_transform.coef_.ravel(), model.platt_transform.intercept_)


_NO_NOISE = "its code: computed from the rows, without noise"

CASES = [
    # The directions are random and public; their weights have noise.
    Case("DPSVC, its noisy weights alone", _publish(lambda model: model.noisy_weights), 1000),
    Case("DPSVC, its offset", _publish(lambda model: model.intercept), 600, source=_NO_NOISE),
    Case(
        'DPSVC, its width with gamma="scale"',
        _publish(lambda model: model.gamma, gamma="scale"),
        600,
        source=_NO_NOISE,
        # Several rows keep variances apart.
        options=two_classes([0] * 5 + [1] * 5, 0.5),
    ),
    Case("DPSVC, its Platt scaling", _publish(_platt), 1500, source=_NO_NOISE),
]
