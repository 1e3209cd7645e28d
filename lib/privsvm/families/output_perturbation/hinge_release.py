"""Common parts of classifiers that release bias-free one-vs-rest hinge SVMs with noise."""

from __future__ import annotations

import abc
import dataclasses
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from privsvm.auditing.witnesses import extreme_rows, gaussian_witness, laplace_witness, largest_move
from privsvm.base.estimators import DescribedRelease, PrivateClassifier, Release
from privsvm.base.parameters import C_PUBLIC, DATA_NORM, DELTA, GAP, parameter
from privsvm.base.released import LinearPath, NoisyLinearPath
from privsvm.constraints import one_of
from privsvm.families.output_perturbation.perturbation import (
    EVERY_RELEASE,
    REFUSED_DATA,
    certificate_text,
    check_rows,
    clip_rows,
    clipping_text,
    count_rounded_rows,
    public_gap,
    solution_sensitivity,
    solve_one_vs_rest,
)
from privsvm.numerics.compiled.threads import memory_of_machine
from privsvm.numerics.rows.row_grid import LARGEST_BITS, grid_rows
from privsvm.privacy.events import noise_event
from privsvm.privacy.gate import Claim, Guarantee
from privsvm.privacy.mechanisms import COMPOSITIONS, VectorsMechanism
from privsvm.privacy.statement import Witness

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
    """Clip rows to the reach of a kernel, each by itself and on the finest grid; with the words for the record.

    It is so many lengths ``1 / sqrt(gamma)`` of the kernel, of which rows on the grid lose about a millionth.
    """
    reach = min(max(2.0**20 / math.sqrt(max(gamma, _SMALLEST_GAMMA)), 1e-140), 1e140)
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


class HingeReleaseClassifier(DescribedRelease, PrivateClassifier):
    """Noise on the weights of bias-free one-vs-rest hinge SVMs; a base.

    Notes
    -----
    Training time is not covered: it depends on the rows.
    """

    noise: ClassVar[str] = "gaussian"
    # Whether all weights are one vector, with one sensitivity.
    as_one_vector: ClassVar[bool] = False

    C: float = C_PUBLIC
    gap: float | None = GAP

    @abc.abstractmethod
    def _features(self, X: Any) -> Features:
        """Return the features that the solver sees of the training rows."""

    def _solve(self, rows: Any, codes: np.ndarray, gap: float) -> np.ndarray:
        """Solve for the exact weights (k, d), each vector to a distance of ``sqrt(gap)``."""
        return solve_one_vs_rest(rows, codes, len(self.classes_), float(self.C), gap)

    def _sensitivity(self, norm: float, gap: float) -> float:
        """Bound how far a weight vector moves, or all of them as one, for features of a bounded norm; L2."""
        return solution_sensitivity(float(self.C) * norm, self.neighbours, gap)

    def _build_path(self, release: Release, coef: np.ndarray, features: Features) -> Any:
        """Path of the released weights (E, R, k, d)."""
        if coef.shape[:2] == (1, 1) and self.noise == "gaussian":
            noise = np.full((1, coef.shape[-1]), release.guarantees[0].noise_scale)
            arrays = {"coef": coef, "intercept": np.zeros(coef.shape[:3]), "noise": noise, "kept": np.ones(noise.size)}
            return release.path(NoisyLinearPath, **arrays)
        return release.path(LinearPath, coef=coef, intercept=np.zeros(coef.shape[:3]))

    def _release(self, release: Release) -> Any:
        features, C = self._features(release.rows), float(self.C)
        rows, codes = features.compute(release.rows), release.codes
        gap = public_gap(self.gap, C, features.norm)
        most_rows = count_rounded_rows(gap, release.n_classes, C, features.norm)
        check_rows(rows.shape[0], most_rows)
        weights = release.solve(self._solve, rows, codes, gap)
        vectors = weights.reshape(1, -1) if self.as_one_vector else weights
        mechanisms = [
            VectorsMechanism(
                noise=self.noise,
                # A parameter of some methods alone; Laplace noise is the same for both.
                composition=getattr(self, "composition", "joint"),
                epsilon=epsilon,
                delta=release.delta,
                sensitivity=self._sensitivity(features.norm, gap),
                n_vectors=vectors.shape[0],
                size=vectors.shape[1],
            )
            for epsilon in release.epsilons
        ]
        witnesses: list[Witness | None] = [None] * len(mechanisms)
        if extremes := extreme_rows(release.rows) if release.audit else []:
            pairs = [(features.compute(row), features.compute(-row)) for row in extremes]
            witnesses = self._witnesses(release, rows, mechanisms, pairs, gap)
        certificate = (
            f"every solution is within sqrt({gap:.3g}) of its optimum: certified by the duality gap and a bound on "
            f"round-off, {certificate_text(most_rows)}"
        )
        release.pay(
            self._guarantee(release, mechanism, features, certificate, witness)
            for mechanism, witness in zip(mechanisms, witnesses, strict=True)
        )
        coef = release.stack(mechanisms, lambda mechanism, source: mechanism.release(vectors, source))
        return self._build_path(release, coef.reshape(*coef.shape[:2], *weights.shape), features)

    def _guarantee(
        self,
        release: Release,
        mechanism: VectorsMechanism,
        features: Features,
        certificate: str,
        witness: Witness | None,
    ) -> Guarantee:
        """Make the record of one mechanism, whose problems are solved as certified."""
        count = mechanism.n_vectors if mechanism.composition == "naive" else 1
        scale, sensitivity = mechanism.noise_scale, mechanism.total_sensitivity
        claim = Claim(
            event=noise_event(self.noise, scale, sensitivity, self.neighbours, count),
            mechanism=f"{self.noise.capitalize()} noise on {self._description}",
            neighbours=self.neighbours,
            epsilon_requested=mechanism.epsilon,
            delta=release.delta,
            sensitivity=sensitivity,
            noise_scale=scale,
            assumptions=(
                *features.bounded,
                certificate,
                REFUSED_DATA,
                f"{features.public}, the class set, the number of features and the scaling bounds are public",
                *EVERY_RELEASE,
            ),
            reference=self._reference,
        )
        return release.grant(claim, witness, features=features.origin, solution="certified")

    def _witnesses(
        self,
        release: Release,
        rows: Any,
        mechanisms: Sequence[VectorsMechanism],
        audit_pairs: Sequence[tuple[np.ndarray, np.ndarray]],
        gap: float,
    ) -> list[Witness | None]:
        """Bound the epsilons of the mechanisms from below by how far one extreme row moves the weights.

        `audit_pairs` are features (1, d) that take the place of a training row, each with some far from them.
        """
        replaced, gaussian = self.neighbours == "replace_one", self.noise == "gaussian"
        # A row under two labels; or, for many classes, two rows far apart, which moves all problems and not just two.
        pairs = [((row, 0), (row, 1)) for row, _ in audit_pairs]
        if release.n_classes > 2 and replaced:
            pairs += [((row, 0), (opposite, 0)) for row, opposite in audit_pairs]
        change = "replaced by its opposite or put under another label" if replaced else "taken away"
        solve, order = functools.partial(self._solve, gap=gap), 2 if gaussian else 1
        distance, pair = largest_move(rows, release.codes, pairs, solve, self.neighbours, change, order)
        if gaussian:
            return [gaussian_witness(distance, m.noise_scale, release.delta, self.neighbours, pair) for m in mechanisms]
        return [laplace_witness(distance, m.noise_scale, self.neighbours, pair) for m in mechanisms]


class GaussianNoise(HingeReleaseClassifier):
    """Analytic Gaussian noise for the L2 sensitivity; a base."""

    delta: float = DELTA
    composition: str = parameter(
        "joint",
        one_of(*COMPOSITIONS),
        "How more than two classes share the budget: one release of all weight vectors, or ``epsilon / c`` and "
        "``delta / c`` for each.",
    )


class LaplaceNoise(HingeReleaseClassifier):
    """Laplace noise for the L1 sensitivity: pure differential privacy; a base."""

    noise = "laplace"
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

    def _sensitivity(self, norm: float, gap: float) -> float:
        sensitivity = super()._sensitivity(norm, gap)
        return sensitivity if self.constant == "proved" else max(sensitivity, 2.0 * super()._sensitivity(norm, 0.0))


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
