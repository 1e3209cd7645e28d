"""Gaussian noise calibrated by dp-accounting for epsilon 1, used as assumed and otherwise."""

from __future__ import annotations

import dp_accounting
import numpy as np
from case import ADDED, DELTA, GAUSSIAN, Case, clip_feature, release
from dp_accounting.pld import PLDAccountant

PACKAGE = "dp-accounting"
_STEPS = 16
_RNG = np.random.default_rng()


def _multiplier(event: object) -> float:
    return float(
        dp_accounting.calibrate_dp_mechanism(
            PLDAccountant, event, 1.0, DELTA, dp_accounting.ExplicitBracketInterval(0.1, 20.0)
        )
    )


def _compose_batches(multiplier: float) -> object:
    step = dp_accounting.PoissonSampledDpEvent(1.0 / _STEPS, dp_accounting.GaussianDpEvent(multiplier))
    return dp_accounting.SelfComposedDpEvent(step, _STEPS)


_ONCE, _SAMPLED = _multiplier(dp_accounting.GaussianDpEvent), _multiplier(_compose_batches)


def _sum(X: np.ndarray, y: np.ndarray) -> float:
    return float(clip_feature(X).sum() + _RNG.normal(0.0, _ONCE))


def _random_batches(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    taken = _RNG.random((_STEPS, len(y))) < 1.0 / _STEPS
    return taken @ clip_feature(X) + _RNG.normal(0.0, _SAMPLED, _STEPS)


def _batches_in_turn(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    sums = np.bincount(np.arange(len(y)) % _STEPS, clip_feature(X), _STEPS)
    return sums + _RNG.normal(0.0, _SAMPLED, _STEPS)


CASES = [
    Case("Gaussian sum", release(_sum), 4000, options=GAUSSIAN),
    Case("sums of random batches", release(_random_batches), 4000, options={**ADDED, "delta": DELTA}),
    Case(
        "noise for random batches, batches in turn",
        release(_batches_in_turn),
        4000,
        source="Chua et al., How private are DP-SGD implementations? (2024)",
        options=GAUSSIAN,
    ),
]
