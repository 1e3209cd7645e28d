"""SACRO-ML's DPSVC at epsilon 1: each published quantity alone."""

from __future__ import annotations

import importlib.metadata
import importlib.util
from typing import Any

import numpy as np
from case import Case

PACKAGE = "sacroml"


def _dp_svc() -> Any:
    """Load the file of DPSVC alone: the package needs more than we install."""
    (path,) = [file for file in importlib.metadata.files("sacroml") or () if file.name == "dp_svc.py"]
    spec = importlib.util.spec_from_file_location("dp_svc", path.locate())
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.DPSVC


class Published:
    """The noisy weights; subclasses take another published quantity."""

    epsilon = 1.0
    gamma: Any = 0.5

    def fit(self, X: np.ndarray, y: np.ndarray) -> Published:
        self._model = _DPSVC(C=1.0, gamma=self.gamma, dhat=4, eps=self.epsilon)
        self._model.fit(X, y)
        self.published_ = self.number()
        return self

    def number(self) -> np.ndarray:
        # The directions are random and public; their weights have noise.
        return np.asarray(self._model.noisy_weights)

    def decision_function(self, X: np.ndarray) -> np.ndarray:
        return np.zeros(1)


class Intercept(Published):
    """The intercept, which has no noise."""

    def number(self) -> np.ndarray:
        return np.asarray(self._model.intercept)


class Platt(Published):
    """The scaling of probabilities, fitted on the true labels."""

    def number(self) -> np.ndarray:
        return np.append(self._model.platt_transform.coef_.ravel(), self._model.platt_transform.intercept_)


class Gamma(Published):
    """The kernel's width, read from the variance of the rows."""

    gamma = "scale"

    def number(self) -> np.ndarray:
        return np.array([self._model.gamma])


def _rows() -> tuple[np.ndarray, np.ndarray]:
    """Return two classes on a line; further rows keep variances apart."""
    labels = np.repeat([0, 1], 5)
    return np.where(labels == 1, 0.5, -0.5)[:, None], labels


_DPSVC = _dp_svc()

_NO_NOISE = "its code: computed from the rows, without noise"

CASES = [
    Case("DPSVC, its noisy weights alone", Published, 1000),
    Case("DPSVC, its offset", Intercept, 600, source=_NO_NOISE),
    Case(
        'DPSVC, its width with gamma="scale"',
        Gamma,
        600,
        source=_NO_NOISE,
        options=dict(zip(("X", "y"), _rows(), strict=True)),
    ),
    Case("DPSVC, its Platt scaling", Platt, 1500, source=_NO_NOISE),
]
