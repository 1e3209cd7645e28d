"""Random Fourier features of the Gaussian kernel, for noisy hinge SVMs."""

from __future__ import annotations

from typing import Any

import numpy as np

from privsvm.base.estimators import Release
from privsvm.base.feature_steps import Step
from privsvm.base.parameters import parameter
from privsvm.base.released import LinearPath
from privsvm.constraints import COUNT, POSITIVE, either, one_of, whole
from privsvm.families.output_perturbation.hinge_release import (
    Features,
    HingeReleaseClassifier,
    features_by_block,
    rows_before_features,
)
from privsvm.numerics.noise.streams import seeded_stream
from privsvm.numerics.rows.row_grid import grid_rows
from privsvm.solvers.features.fourier import fourier_frequencies
from privsvm.solvers.features.row_features import fourier_row_features
from privsvm.solvers.kernel.kernels import resolve_gamma


class FourierRows(HingeReleaseClassifier):
    """Random Fourier features of the Gaussian kernel; a base.

    Attributes
    ----------
    coef_ : ndarray (k, 2 D)
        Noisy weight vectors of the features; k is 1 for two classes. The exact ones are not kept.
    """

    gamma: float | str = parameter(
        "auto",
        either('must be a positive finite number, "auto" or "scale"', POSITIVE, one_of("auto", "scale")),
        'Coefficient of the Gaussian kernel; "auto" is 1 / d. "scale" takes the variance of the private rows: that '
        "needs ``allow_unsound=True``, and the status falls to ``claimed``.",
    )
    n_components: int = parameter(250, COUNT, "Number D of random frequencies; each gives a cosine and a sine.")
    features_seed: int = parameter(0, whole(0), "Seed of the frequencies. Public, and part of the model.")

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.gamma == "scale" and not self.allow_unsound:
            raise ValueError(
                "gamma='scale': taken from the private rows; give a public number, or consent with allow_unsound=True"
            )

    def _features(self, X: Any) -> Features:
        gamma = resolve_gamma(self.gamma, X)
        public = seeded_stream(int(self.features_seed), "fourier features")
        frequencies = fourier_frequencies(X.shape[1], int(self.n_components), gamma, public)
        near, bounded = rows_before_features(gamma)

        def compute(rows: Any) -> Any:
            return grid_rows(fourier_row_features(near(rows), frequencies), 1.0)

        return Features(
            lambda rows: features_by_block(rows, compute, 2 * int(self.n_components)),
            1.0,
            (
                "features have norm at most 1: cosine and sine of every frequency, computed from each row by itself, "
                "clipped and truncated to a public grid",
                bounded,
                f"the frequencies are public: drawn from seed {int(self.features_seed)}, not from the rows",
            ),
            public="C, gamma",
            origin="private rows" if self.gamma == "scale" else "public",
            model=frequencies,
        )

    def _build_path(self, release: Release, coef: np.ndarray, features: Features) -> LinearPath:
        count = np.full(coef.shape[:2], features.model.shape[1])
        steps = (Step("fourier", {"frequencies": features.model, "count": count, "beside": np.zeros(1)}),)
        return release.path(LinearPath, coef=coef, intercept=np.zeros(coef.shape[:3]), steps=steps)
