"""The steps of a released linear model, written in another format: see `write_scores`."""

from __future__ import annotations

from typing import Protocol, TypeVar

import numpy as np

from privsvm.base.model_file import RECORD
from privsvm.base.released import LinearPath, ReleasedPath
from privsvm.errors import PrivSVMError

# Divides rows of zeros, which stay.
TINY = 1e-300

Value = TypeVar("Value")


class Backend(Protocol[Value]):
    """A format; a value stands for a table of numbers (n, D).

    It has a method for each of `privsvm.base.feature_steps.STEPS` that it can write, which takes a value and the
    arrays.
    """

    def scores(self, rows: Value, coef: np.ndarray, intercept: np.ndarray) -> Value:
        """Compute ``rows @ coef.T + intercept``."""


def write_scores(backend: Backend[Value], path: ReleasedPath, rows: Value, n_features: int) -> Value:
    """Write the scores (n, k) of one model of rows, as `privsvm.tables.tables.Encoder.features` makes them.

    Raises PrivSVMError for a model of a kind that cannot be exported.
    """
    if isinstance(path, LinearPath) and not path.by_votes and all(hasattr(backend, step.name) for step in path.steps):
        for step in path.model_steps(0, 0, n_features):
            rows, n_features = getattr(backend, step.name)(rows, **step.arrays), step.n_features(n_features)
        return backend.scores(rows, path.coef[0, 0][:, :n_features], path.intercept[0, 0])
    raise PrivSVMError(
        f"{RECORD}: models of kind {path.kind!r} cannot be exported; release the recommended method, or use "
        "`privsvm predict`"
    )
