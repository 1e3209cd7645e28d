"""Perturbed dual variables on public landmarks: the sound counterpart of DPSVMDVP.

With public landmarks z and the Gaussian kernel, ``phi(x) = K_zz^{-1/2} k_z(x)`` has norm at most 1:
``k_z' K_zz^{-1} k_z <= k(x, x) = 1``, the Schur complement of the kernel matrix of the landmarks and x. A bias-free
hinge SVM on phi, or on phi of norm 1, gets Gaussian noise, ``w~ = w + N(0, s^2 I)``, and ``beta~ = K_zz^{-1/2} w~``
are noisy dual variables of the landmarks: the model is ``sum_j beta~_j k(z_j, x)``. No training row is part of it.
"""

from __future__ import annotations

import numpy as np

from privsvm.base.parameters import parameter
from privsvm.base.validation import check_bounds
from privsvm.constraints import COUNT, Constraint, whole
from privsvm.families.output_perturbation.landmark_release import LandmarkReleaseClassifier
from privsvm.numerics.noise.streams import seeded_stream

__all__ = ["ESTIMATOR", "LandmarkDualClassifier"]

_RANGES = Constraint(
    {"type": "array", "minItems": 2, "maxItems": 2},
    "must be (low, high), finite, low not above high",
    "tuple (low, high)",
)


class LandmarkDualClassifier(LandmarkReleaseClassifier):
    """Private kernel SVM with noisy dual variables on landmarks drawn from public ranges; one-vs-rest.

    Examples
    --------
    >>> from privsvm import LandmarkDualClassifier
    >>> model = LandmarkDualClassifier(epsilon=4.0, C=0.1, n_landmarks=5, classes=[0, 1])
    >>> model.fit([[-1.0], [1.0]] * 50, [0, 1] * 50).guarantee_.status
    'proved'
    """

    n_landmarks: int = parameter(100, COUNT, "Number of landmarks to draw.")
    bounds: tuple = parameter(
        (-1.0, 1.0), _RANGES, "Public ranges of the features to draw from, uniformly; numbers or arrays (d,)."
    )
    landmarks_seed: int = parameter(0, whole(0), "Seed of the draw. Public.")

    def _landmarks(self, n_features: int) -> tuple[np.ndarray, str]:
        low, high = check_bounds(self.bounds, n_features)
        public = seeded_stream(int(self.landmarks_seed), "landmarks")
        return (
            public.uniform(low, high, size=(int(self.n_landmarks), n_features)),
            f"drawn uniformly from public ranges with seed {int(self.landmarks_seed)}",
        )


ESTIMATOR = LandmarkDualClassifier
