"""Common parts of classifiers that release bias-free one-vs-rest hinge SVMs with noise."""

from __future__ import annotations

import abc
import dataclasses
import math
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from privsvm.auditing.witnesses import extreme_rows
from privsvm.base.estimators import DescribedRelease, PrivateClassifier, Release
from privsvm.base.parameters import C_PUBLIC, DATA_NORM, DELTA, GAP, parameter
from privsvm.base.released import LinearPath, NoisyLinearPath
from privsvm.constraints import one_of
from privsvm.families.output_perturbation.perturbation import (
    HingeProblem,
    Noise,
    Record,
    clip_rows,
    clipping_text,
    release_one_vs_rest,
)
from privsvm.numerics.compiled.threads import memory_of_machine
from privsvm.numerics.rows.row_grid import LARGEST_BITS, grid_rows
from privsvm.privacy.mechanisms import COMPOSITIONS

# Variances that overflow make a kernel coefficient of zero.
_SMALLEST_GAMMA = 1e-300
# Numbers of a block of features.
_BLOCK_NUMBERS = 2**20


@dataclasses.dataclass(frozen=True)
class Features:
    """Features that the solver sees, and their origin.

    `compute` maps rows to features on a public grid: a row's features depend on that row and on public numbers alone,
    bit for bit, and their norm is at most `norm`. For the record, `bounded` says why, and `public` which numbers of
    features and objective are public. For `origin` see `privsvm.privacy.statement.Facts`. `model` is needed in
    prediction, besides the weights.
    """

    compute: Callable[[Any], Any]
    norm: float
    bounded: tuple[str, ...]
    public: str = "C"
    origin: str = "none"
    model: Any = None


def rows_before_features(gamma: float) -> tuple[Callable[[Any], Any], str]:
    """Clip rows to the reach of a kernel, each by itself and on the finest grid; with the words for the record."""
    reach = kernel_reach(gamma)
    return lambda rows: grid_rows(rows, reach, LARGEST_BITS), clipping_text(reach)


def features_by_block(rows: Any, compute: Callable[[Any], Any], n_features: int) -> np.ndarray:
    """Compute features (n, m) of some rows at a time: in the memory of the result, and little more.

    Raises ValueError where that is more than the machine has.
    """
    needed, most = 8 * rows.shape[0] * n_features, memory_of_machine()
    if needed > most:
        raise ValueError(
            f"X: {n_features} kernel features of {rows.shape[0]} rows would take {needed / 1e9:.0f} GB, of "
            f"{most / 1e9:.0f} GB of this machine; use fewer (n_components, n_landmarks), or a linear method"
        )
    features = np.empty((rows.shape[0], n_features))
    step = max(1, _BLOCK_NUMBERS // n_features)
    for start in range(0, rows.shape[0], step):
        features[start : start + step] = compute(rows[start : start + step])
    return features


def kernel_reach(gamma: float) -> float:
    """Public bound on the norm of rows before a feature map: so many lengths ``1 / sqrt(gamma)`` of the kernel.

    On a grid of `privsvm.numerics.rows.row_grid.LARGEST_BITS`, rows lose about a millionth of such a length.
    """
    return min(max(2.0**20 / math.sqrt(max(gamma, _SMALLEST_GAMMA)), 1e-140), 1e140)


class HingeReleaseClassifier(DescribedRelease, PrivateClassifier):
    """Noise on the weights of bias-free one-vs-rest hinge SVMs; a base.

    Notes
    -----
    Training time is not covered: it depends on the rows.
    """

    C: float = C_PUBLIC
    gap: float | None = GAP

    @abc.abstractmethod
    def _features(self, X: Any) -> Features:
        """Return the features that the solver sees of the training rows."""

    @abc.abstractmethod
    def _noise(self) -> Noise:
        """Noise of the release."""

    def _problem(self, norm: float) -> HingeProblem:
        """Return the problem to solve on features of a bounded norm."""
        return HingeProblem(C=float(self.C), data_norm=norm, gap=self.gap)

    def _build_path(self, release: Release, coef: np.ndarray, features: Features, seconds: dict[str, float]) -> Any:
        """Path of the released weights (E, R, k, d)."""
        if coef.shape[:2] == (1, 1) and self._noise().noise == "gaussian":
            noise = np.full((1, coef.shape[-1]), release.guarantees[0].noise_scale)
            arrays = {"coef": coef, "intercept": np.zeros(coef.shape[:3]), "noise": noise, "kept": np.ones(noise.size)}
            return release.path(NoisyLinearPath, **arrays, **seconds)
        return release.path(LinearPath, coef=coef, intercept=np.zeros(coef.shape[:3]), **seconds)

    def _release(self, release: Release) -> Any:
        X = release.rows
        features = self._features(X)
        extremes = extreme_rows(X) if release.audit else []
        coef, seconds = release_one_vs_rest(
            dataclasses.replace(release, rows=features.compute(X)),
            self._problem(features.norm),
            self._noise(),
            Record(self._description, self._reference, features.bounded, features.public, features.origin),
            [(features.compute(row), features.compute(-row)) for row in extremes],
        )
        return self._build_path(release, coef, features, seconds)


class GaussianNoise(HingeReleaseClassifier):
    """Analytic Gaussian noise for the L2 sensitivity; a base."""

    delta: float = DELTA
    composition: str = parameter(
        "joint",
        one_of(*COMPOSITIONS),
        "How more than two classes share the budget: one release of all weight vectors, or ``epsilon / c`` and "
        "``delta / c`` for each.",
    )

    def _noise(self) -> Noise:
        return Noise("gaussian", self.composition)


class LaplaceNoise(HingeReleaseClassifier):
    """Laplace noise for the L1 sensitivity: pure differential privacy; a base."""

    # Number of the algorithm in the paper.
    algorithm: ClassVar[int]
    _description = "the weights of a bias-free hinge SVM (PrivateSVM)"

    constant: str = parameter(
        "proved",
        one_of("proved", "published"),
        "Which sensitivity to use: the one proved here, or the paper's, which is twice as large.",
    )

    @property
    def _reference(self) -> str:
        noise = ", with half the noise" if self.constant == "proved" else ""
        return f"Rubinstein, Bartlett, Huang, Taft (2012), Algorithm {self.algorithm}{noise}"

    def _noise(self) -> Noise:
        # One release of all vectors, or one of each with its share: for Laplace noise both are the same.
        return Noise("laplace", "joint", published_constant=self.constant == "published")


class LinearRows(HingeReleaseClassifier):
    """The rows themselves, clipped; a base.

    Attributes
    ----------
    coef_ : ndarray (k, d)
        Noisy weight vectors; k is 1 for two classes. The exact ones are not kept.
    """

    data_norm: float = DATA_NORM

    def _features(self, X: Any) -> Features:
        norm = float(self.data_norm)
        return Features(lambda rows: clip_rows(rows, norm), norm, (clipping_text(norm),))
