"""Private-PGM (mbi): a table of four cells estimated from noisy counts at epsilon 1."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from case import ADDED, Case, clip_feature, release
from mbi import Domain, LinearMeasurement
from mbi.estimation import MirrorDescent

PACKAGE = "mbi"
_RNG = np.random.default_rng()


def _estimate_cells(total: Callable[[np.ndarray, np.ndarray], float]) -> Callable[[np.ndarray, np.ndarray], Any]:
    """Publish the cells that fit noisy counts best and add up to a total."""

    def estimate(X: np.ndarray, y: np.ndarray) -> Any:
        cells = 2 * (clip_feature(X) > 0).astype(int) + (y == 1).astype(int)
        counts = np.bincount(cells, minlength=4) + _RNG.laplace(0.0, 1.0, 4)
        measured = LinearMeasurement(counts, ("cell",), 2.0**0.5)
        model = MirrorDescent().estimate(
            Domain.fromdict({"cell": 4}), [measured], known_total=total(y, counts), iters=10
        )
        return np.asarray(model.project(("cell",)).datavector())

    return estimate


CASES = [
    Case(
        "cells that add up to a noisy total",
        release(_estimate_cells(lambda y, counts: max(1.0, float(counts.sum())))),
        400,
        options=ADDED,
    ),
    Case(
        "cells that add up to the number of rows",
        release(_estimate_cells(lambda y, counts: float(len(y)))),
        400,
        source="planted: the number of rows is private where rows are added",
        options=ADDED,
    ),
]
