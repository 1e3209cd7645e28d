"""Perturbed dual variables on public landmarks: the sound counterpart of DPSVMDVP.

With public landmarks z and the Gaussian kernel, ``phi(x) = K_zz^{-1/2} k_z(x)`` has norm at most 1:
``k_z' K_zz^{-1} k_z <= k(x, x) = 1``, the Schur complement of the kernel matrix of the landmarks and x. A bias-free
hinge SVM on phi, or on phi of norm 1, gets Gaussian noise, ``w~ = w + N(0, s^2 I)``, and ``beta~ = K_zz^{-1/2} w~``
are noisy dual variables of the landmarks: the model is ``sum_j beta~_j k(z_j, x)``. No training row is part of it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from privsvm.base.estimators import Release
from privsvm.base.parameters import check_bounds, parameter
from privsvm.base.released import OneVsRestKernelPath
from privsvm.constraints import COUNT, FLAG, POSITIVE, Constraint, either, one_of, whole
from privsvm.families.output_perturbation.hinge_release import (
    Features,
    GaussianNoise,
    features_by_block,
    rows_before_features,
)
from privsvm.numerics.noise.streams import seeded_stream
from privsvm.numerics.rows.row_grid import grid_rows
from privsvm.solvers.features.row_features import landmark_row_features
from privsvm.solvers.kernel.kernels import KERNELS, Kernel, kernel_matrix, resolve_gamma

_RANGES = Constraint(
    {"type": "array", "minItems": 2, "maxItems": 2},
    "must be (low, high), finite, low not above high",
    "tuple (low, high)",
)
_POINTS = Constraint(
    {"anyOf": [{"type": "array", "minItems": 1, "items": {"type": "array"}}, {"type": "null"}]},
    "must be a list of public rows, or None to draw them",
    "array-like (m, d) or None",
)

# Feature vectors shorter than this are lengthened by no more than its inverse, so that round-off in them stays small.
_SHORTEST = 1e-3
# Ridge on the eigenvalues of a kernel matrix before they are inverted: far above their round-off, far below the kernel.
_RIDGE = 1e-8


def landmark_map(landmarks: np.ndarray, gamma: float) -> np.ndarray:
    """Compute the inverse root ``(K_zz + ridge I)^{-1/2}`` (m, m) of landmarks z (m, d)."""
    values, vectors = np.linalg.eigh(kernel_matrix(landmarks, landmarks, Kernel("rbf", gamma)))
    return (vectors / np.sqrt(np.maximum(values, 0.0) + _RIDGE)) @ vectors.T


class LandmarkDualClassifier(GaussianNoise):
    """Private kernel SVM with noisy dual variables on public landmarks, drawn or given; one-vs-rest.

    Attributes
    ----------
    landmarks_ : ndarray (m, d)
        The landmarks.
    dual_coef_ : ndarray (m, k)
        Noisy dual variables; k is 1 for two classes. The exact ones are not kept.

    Examples
    --------
    >>> from privsvm import LandmarkDualClassifier
    >>> model = LandmarkDualClassifier(epsilon=4.0, C=0.1, n_landmarks=5, classes=[0, 1])
    >>> model.fit([[-1.0], [1.0]] * 50, [0, 1] * 50).guarantee_.status
    'proved'
    """

    _description = "the dual variables of public landmarks (bias-free hinge SVM on Nystrom features)"
    _reference = (
        "sound counterpart of dpsvmdvp-2019; output perturbation of Rubinstein et al. (2012) on Nystrom features"
    )

    n_landmarks: int = parameter(100, COUNT, "Number of landmarks to draw.")
    bounds: tuple = parameter(
        (-1.0, 1.0), _RANGES, "Public ranges of the features to draw from, uniformly; numbers or arrays (d,)."
    )
    landmarks_seed: int = parameter(0, whole(0), "Seed of the draw. Public.")
    landmarks: Any = parameter(
        None,
        _POINTS,
        "Landmarks of your own, for example rows of a public dataset; they are published as they are. They must be "
        "chosen without looking at the training rows, which `landmarks_public` confirms. None: draw them.",
    )
    landmarks_public: bool = parameter(
        False,
        FLAG,
        "Your declaration that the given `landmarks` are public. Without it they need ``allow_unsound=True``, and the "
        "status becomes ``claimed``.",
        effect="consent",
    )
    gamma: float | str = parameter(
        "auto",
        either('must be a positive finite number, or "auto"', POSITIVE, one_of("auto")),
        'Coefficient of the Gaussian kernel; "auto" is 1 / d. Public.',
    )
    normalize: bool = parameter(
        True,
        FLAG,
        "Whether to scale feature vectors to norm 1 for training. Rows far from all landmarks have short ones, which "
        "drown in the noise. This multiplies the scores of a row by a positive number, which changes no label.",
    )

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self._origin() == "undeclared" and not self.allow_unsound:
            raise ValueError(
                f"landmarks_public={self.landmarks_public!r}: the landmarks you give are published as they are; say "
                "landmarks_public=True if they were chosen without looking at the training rows, or consent with "
                "allow_unsound=True"
            )

    def _origin(self) -> str:
        """Return the origin of the landmarks, see `privsvm.privacy.statement.Facts`."""
        if self.landmarks is None:
            return "public"
        return "declared" if self.landmarks_public else "undeclared"

    def _landmarks(self, n_features: int) -> tuple[np.ndarray, str]:
        """Return the landmarks (m, d) and a description of their origin."""
        if self.landmarks is None:
            low, high = check_bounds(self.bounds, n_features)
            public, size = seeded_stream(int(self.landmarks_seed), "landmarks"), (int(self.n_landmarks), n_features)
            origin = f"drawn uniformly from public ranges with seed {int(self.landmarks_seed)}"
            return public.uniform(low, high, size=size), origin
        landmarks = np.array(self.landmarks, dtype=np.float64)
        if landmarks.ndim != 2 or landmarks.shape[1] != n_features:
            raise ValueError(f"landmarks={landmarks.shape}: must be an array of shape (m, {n_features})")
        if not np.isfinite(landmarks).all():
            raise ValueError("landmarks=...: holds a number that is not finite")
        return landmarks, "given by the user, chosen without looking at the training rows"

    def _features(self, X: Any) -> Features:
        landmarks, origin = self._landmarks(X.shape[1])
        gamma = resolve_gamma(self.gamma, X)
        inverse_root, (near, bounded) = landmark_map(landmarks, gamma), rows_before_features(gamma)
        shortest = _SHORTEST if self.normalize else 0.0

        def compute(rows: Any) -> Any:
            return grid_rows(landmark_row_features(near(rows), landmarks, gamma, inverse_root, shortest), 1.0)

        n_features = landmarks.shape[0]

        return Features(
            lambda rows: features_by_block(rows, compute, n_features),
            1.0,
            (
                "features have norm at most 1: Gaussian kernel on landmarks, computed from each row by itself, clipped "
                "and truncated to a public grid",
                bounded,
                f"the landmarks are public: {origin}",
            ),
            public="C, gamma",
            origin=self._origin(),
            model=(landmarks, inverse_root, gamma),
        )

    def _build_path(self, release: Release, coef: np.ndarray, features: Features) -> OneVsRestKernelPath:
        landmarks, inverse_root, gamma = features.model
        return release.path(
            OneVsRestKernelPath,
            support_vectors=landmarks,
            pair_coef=np.ascontiguousarray(np.swapaxes(coef @ inverse_root, -1, -2)),
            intercept=np.zeros(coef.shape[:3]),
            kernel_parameters=np.array([KERNELS.index("rbf"), gamma, 0.0, 0.0]),
        )

    def _keep(self, path: OneVsRestKernelPath) -> None:
        self._path = path
        self.landmarks_ = path.support_vectors
        self.dual_coef_ = path.pair_coef[0, 0]
        self.guarantee_ = path.guarantees[0]


ESTIMATOR = LandmarkDualClassifier
