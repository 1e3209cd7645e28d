"""Perturbed dual variables on landmarks of the user's own, for example rows of a public dataset.

`privsvm.methods.landmark_dual` draws them, and tells why no training row is part of the model.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from privsvm.base.parameters import parameter
from privsvm.constraints import FLAG, Constraint
from privsvm.families.output_perturbation.landmark_release import LandmarkReleaseClassifier

__all__ = ["ESTIMATOR", "GivenLandmarkDualClassifier"]

_POINTS = Constraint(
    {
        "anyOf": [
            {"type": "array", "minItems": 1, "items": {"type": "array"}},
            {"type": "null"},
        ]
    },
    "must be a list of public rows, or None for the origin and the unit vectors",
    "array-like (m, d) or None",
)


class GivenLandmarkDualClassifier(LandmarkReleaseClassifier):
    """Private kernel SVM with noisy dual variables on given public landmarks; one-vs-rest for more than two classes.

    Examples
    --------
    >>> from privsvm import GivenLandmarkDualClassifier
    >>> model = GivenLandmarkDualClassifier(epsilon=4.0, C=0.1, classes=[0, 1])
    >>> model.fit([[-1.0], [1.0]] * 50, [0, 1] * 50).guarantee_.status
    'proved'
    """

    landmarks: Any = parameter(
        None,
        _POINTS,
        "Points, for example rows of a public dataset; they are published as they are. They must be chosen without "
        "looking at the training rows, which `landmarks_public` confirms. None: the origin and the unit vectors.",
    )
    landmarks_public: bool = parameter(
        False,
        FLAG,
        "Your declaration that the `landmarks` are public. Without it they need ``allow_unsound=True``, and the "
        "status becomes ``claimed``.",
        effect="consent",
    )

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self._origin() == "undeclared" and not self.allow_unsound:
            raise ValueError(
                f"landmarks_public={self.landmarks_public!r}: the landmarks you give are published as they are; say "
                "landmarks_public=True if they were chosen without looking at the training rows, or consent with "
                "allow_unsound=True"
            )

    def _landmarks(self, n_features: int) -> tuple[np.ndarray, str]:
        if self.landmarks is None:
            return np.vstack([np.zeros(n_features), np.eye(n_features)]), "the origin and the unit vectors"
        landmarks = np.array(self.landmarks, dtype=np.float64)
        if landmarks.ndim != 2 or landmarks.shape[1] != n_features:
            raise ValueError(f"landmarks={landmarks.shape}: must be an array of shape (m, {n_features})")
        if not np.isfinite(landmarks).all():
            raise ValueError("landmarks=...: holds a number that is not finite")
        return landmarks, "given by the user, chosen without looking at the training rows"

    def _origin(self) -> str:
        if self.landmarks is None:
            return "public"
        return "declared" if self.landmarks_public else "undeclared"


ESTIMATOR = GivenLandmarkDualClassifier
