"""Noise calibrated by autodp for epsilon 1."""

from __future__ import annotations

import numpy as np
from autodp.calibrator_zoo import ana_gaussian_calibrator
from autodp.mechanism_zoo import ExactGaussianMechanism
from case import DELTA, GAUSSIAN, Case, clip_feature, release

PACKAGE = "autodp"
_RNG = np.random.default_rng()
_SIGMA = ana_gaussian_calibrator()(ExactGaussianMechanism, 1.0, DELTA).params["sigma"]

CASES = [
    Case(
        "Gaussian sum",
        release(lambda X, y: clip_feature(X).sum() + _RNG.normal(0.0, _SIGMA)),
        4000,
        options=GAUSSIAN,
    ),
]
