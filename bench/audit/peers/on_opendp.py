"""OpenDP: sums, counts, choices and randomised answers, with noise for epsilon 1."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import opendp.prelude as dp
from case import ADDED, DELTA, Case, release

PACKAGE = "opendp"
dp.enable_features("contrib", "idealized-numerics")
_ROWS = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.symmetric_distance()


def _sum(scale: float, noise: Any) -> Any:
    return _ROWS >> dp.t.then_clamp((-1.0, 1.0)) >> dp.t.then_sum() >> noise(scale)


def _approximate(scale: float) -> Any:
    return dp.c.make_fix_delta(dp.c.make_zCDP_to_approxDP(_sum(scale, dp.m.then_gaussian)), delta=DELTA)


# A replaced row is one removed and one added.
_LAPLACE = _sum(dp.binary_search_param(lambda s: _sum(s, dp.m.then_laplace), d_in=2, d_out=1.0), dp.m.then_laplace)
_GAUSSIAN = _approximate(dp.binary_search_param(_approximate, d_in=2, d_out=(1.0, DELTA)))
_COUNT = _ROWS >> dp.t.then_count() >> dp.m.then_laplace(1.0)
_COIN = dp.m.make_randomized_response_bool(math.e / (1.0 + math.e))
_CHOICE = dp.m.make_noisy_max(
    dp.vector_domain(dp.atom_domain(T=int)), dp.linf_distance(T=int), dp.max_divergence(), scale=2.0
)


def _label_counts(y: np.ndarray) -> list[int]:
    return [int((y == 0).sum()), int((y != 0).sum())]


CASES = [
    Case("Laplace sum", release(lambda X, y: _LAPLACE(X[:, 0].tolist())), 4000),
    Case(
        "Gaussian sum",
        release(lambda X, y: _GAUSSIAN(X[:, 0].tolist())),
        4000,
        options={"delta": DELTA, "gaussian": True},
    ),
    Case("geometric count", release(lambda X, y: _COUNT(X[:, 0].tolist())), 4000, options=ADDED),
    Case("randomised response", release(lambda X, y: _COIN(bool(y[-1]))), 4000),
    Case("report noisy max", release(lambda X, y: _CHOICE(_label_counts(y))), 4000),
]
