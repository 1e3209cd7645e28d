"""What the private SVMs on public landmarks share: noisy dual variables of the landmarks."""

from __future__ import annotations

import abc
from typing import Any

import numpy as np

from privsvm.base.parameters import parameter
from privsvm.base.released import OneVsRestKernelPath
from privsvm.constraints import FLAG, POSITIVE, either, one_of
from privsvm.families.output_perturbation.hinge_release import (
    Features,
    GaussianNoise,
    features_by_block,
    rows_before_features,
)
from privsvm.families.output_perturbation.perturbation import OneVsRestRelease
from privsvm.numerics.rows.row_grid import grid_rows
from privsvm.solvers.features.landmarks import landmark_map
from privsvm.solvers.features.row_features import landmark_row_features
from privsvm.solvers.kernel.kernels import KERNELS, resolve_gamma

__all__ = ["LandmarkReleaseClassifier"]

# Feature vectors shorter than this are lengthened by no more than its inverse, so that round-off in them stays small.
_SHORTEST = 1e-3


class LandmarkReleaseClassifier(GaussianNoise):
    """Hinge SVMs on Nystrom features of public landmarks; a base.

    Attributes
    ----------
    landmarks_ : ndarray (m, d)
        The landmarks.
    dual_coef_ : ndarray (m, k)
        Noisy dual variables; k is 1 for two classes. The exact ones are not kept.
    """

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

    @abc.abstractmethod
    def _landmarks(self, n_features: int) -> tuple[np.ndarray, str]:
        """Landmarks (m, d), and where they come from."""

    def _origin(self) -> str:
        """Say where the landmarks come from, see `privsvm.privacy.assumptions.Facts`."""
        return "public"

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

    def _words(self) -> tuple[str, str]:
        return (
            "the dual variables of public landmarks (bias-free hinge SVM on Nystrom features)",
            "sound counterpart of dpsvmdvp-2019; output perturbation of Rubinstein et al. (2012) on Nystrom features",
        )

    def _released(self, release: OneVsRestRelease, features: Features) -> OneVsRestKernelPath:
        landmarks, inverse_root, gamma = features.model
        return release.path(
            OneVsRestKernelPath,
            support_vectors=landmarks,
            pair_coef=np.ascontiguousarray(np.swapaxes(release.coef @ inverse_root, -1, -2)),
            intercept=np.zeros(release.coef.shape[:3]),
            kernel_parameters=np.array([KERNELS.index("rbf"), gamma, 0.0, 0.0]),
        )

    def _keep(self, path: OneVsRestKernelPath) -> None:
        self._path = path
        self.landmarks_ = path.support_vectors
        self.dual_coef_ = path.pair_coef[0, 0]
        self.guarantee_ = path.guarantees[0]
