"""Perturbed dual variables on public landmarks: the sound counterpart of DPSVMDVP.

With public landmarks z and the Gaussian kernel, ``phi(x) = K_zz^{-1/2} k_z(x)`` has norm at most 1:
``k_z' K_zz^{-1} k_z <= k(x, x) = 1``, the Schur complement of the kernel matrix of the landmarks and x. A bias-free
hinge SVM on phi, or on phi of norm 1, gets Gaussian noise, ``w~ = w + N(0, s^2 I)``, and ``beta~ = K_zz^{-1/2} w~``
are noisy dual variables of the landmarks: the model is ``sum_j beta~_j k(z_j, x)``. No training row is part of it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

from privsvm.base.estimators import NoiseStreams, PrivateClassifier, noise_streams
from privsvm.base.perturbation import COMPOSITIONS, clip_rows, extreme_rows, release_one_vs_rest
from privsvm.base.released import OneVsRestKernelPath
from privsvm.base.validation import (
    check_budgets,
    check_choice,
    check_count,
    check_flag,
    check_positive,
    check_public_classes,
    check_seed,
    check_training_data,
)
from privsvm.numerics.rows import row_norms
from privsvm.numerics.streams import seeded_stream
from privsvm.privacy.guarantee import NEIGHBOURS, Neighbours
from privsvm.solvers.kernels import KERNELS, resolve_gamma
from privsvm.solvers.landmarks import landmark_features, landmark_map

__all__ = ["ESTIMATOR", "LandmarkDualClassifier"]

# Feature vectors shorter than this are lengthened by no more than its inverse, so that round-off in them stays small.
_SHORTEST = 1e-3


class LandmarkDualClassifier(PrivateClassifier, ClassifierMixin, BaseEstimator):
    """Private kernel SVM with noisy dual variables on public landmarks; one-vs-rest for more than two classes.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget of one release.
    delta : float, default=1e-5
        Probability that goes with it.
    C : float, default=0.01
        Weight of one row's loss. Public: choose it without looking at the data.
    gamma : float or "auto", default="auto"
        Coefficient of the Gaussian kernel; ``"auto"`` is 1 / d. Public.
    landmarks : array-like (m, d) or None, default=None
        Points, for example rows of a public data set; they are published as they are. They must be chosen without
        looking at the training rows, which `landmarks_public` confirms. None: drawn uniformly from `bounds`.
    landmarks_public : bool, default=False
        Your word that the `landmarks` you give are public. Without it they need ``allow_unsound=True``, and the status
        falls to ``claimed``.
    n_landmarks : int, default=100
        How many to draw.
    bounds : tuple (low, high), default=(-1, 1)
        Public ranges of the features to draw from; numbers or arrays (d,).
    landmarks_seed : int, default=0
        Seed of the draw. Public.
    normalize : bool, default=True
        Train on feature vectors of norm 1, which puts the signal as far above the noise as it gets: rows far from all
        landmarks have short ones. It multiplies a row's scores by a positive number, on which no label depends.
    composition : {"joint", "naive"}, default="joint"
        How more than two classes share the budget: one release of all weight vectors, or ``epsilon / c`` and
        ``delta / c`` for each.
    classes : sequence or None, default=None
        The public label set. Taking it from the training labels (None) reveals which labels occur: that
        needs ``allow_unsound=True``, and the status falls to ``claimed``.
    neighbours : {"replace_one", "add_remove"}, default="replace_one"
        The relation between data sets.
    gap : float or None, default=None
        Public target of the duality gap; None means ``2e-4 C^2``, or more where float64 cannot certify that.
    allow_unsound : bool, default=False
        Consent to a model whose epsilon is not proved.
    random_state : int, numpy.random.Generator or None, default=None
        Noise source. None takes fresh entropy of the operating system: the only choice for a release, since whoever
        knows a seed can draw the same noise and take it off. The guarantee says which it was.

    Attributes
    ----------
    landmarks_ : ndarray (m, d)
        The landmarks.
    dual_coef_ : ndarray (m, k)
        Noisy dual variables; k is 1 for two classes. The exact ones are not kept.
    classes_ : ndarray (c,)
        Labels.
    n_features_in_ : int
        Number of features d.
    guarantee_ : Guarantee
        What is proved.

    Notes
    -----
    Status ``proved`` assumes idealised float64 noise, and that the number of rows, rounded up to a power of two, is
    public: for ``add_remove``, neighbours have numbers of rows with the same next power of two. Training time is not
    covered: it depends on the rows.

    Examples
    --------
    >>> from privsvm import LandmarkDualClassifier
    >>> model = LandmarkDualClassifier(epsilon=4.0, C=0.1, n_landmarks=5, classes=[0, 1])
    >>> model.fit([[-1.0], [1.0]] * 50, [0, 1] * 50).guarantee_.status
    'proved'
    """

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-5,
        C: float = 0.01,
        gamma: float | str = "auto",
        landmarks=None,
        landmarks_public: bool = False,
        n_landmarks: int = 100,
        bounds: tuple = (-1.0, 1.0),
        landmarks_seed: int = 0,
        normalize: bool = True,
        composition: str = "joint",
        classes: Sequence | None = None,
        neighbours: Neighbours = "replace_one",
        gap: float | None = None,
        allow_unsound: bool = False,
        random_state: int | np.random.Generator | None = None,
    ):
        self.epsilon = epsilon
        self.delta = delta
        self.C = C
        self.gamma = gamma
        self.landmarks = landmarks
        self.landmarks_public = landmarks_public
        self.n_landmarks = n_landmarks
        self.bounds = bounds
        self.landmarks_seed = landmarks_seed
        self.normalize = normalize
        self.composition = composition
        self.classes = classes
        self.neighbours = neighbours
        self.gap = gap
        self.allow_unsound = allow_unsound
        self.random_state = random_state

    def _keep(self, path: OneVsRestKernelPath) -> None:
        self._path = path
        self.landmarks_ = path.support_vectors
        self.dual_coef_ = path.pair_coef[0, 0]
        self.guarantee_ = path.guarantees[0]

    def release_path(
        self,
        X,
        y,
        epsilons: Sequence[float],
        repeats: int,
        rng: NoiseStreams | np.random.Generator | int | None = None,
        audit: bool = False,
    ) -> OneVsRestKernelPath:
        streams = noise_streams(rng, self)
        epsilons, delta = self._check_parameters(epsilons)
        X, codes, self.classes_ = check_training_data(self, X, y, self.classes)
        landmarks = self._public_landmarks(X.shape[1])
        gamma = resolve_gamma(self.gamma, X)
        inverse_root = landmark_map(landmarks, gamma)

        def features(rows):
            """Rows as the solver sees them: of norm at most 1, in floating point too."""
            found = landmark_features(rows, landmarks, gamma, inverse_root)
            if self.normalize:
                found /= np.maximum(row_norms(found), _SHORTEST)[:, None]
            return clip_rows(found, 1.0)

        release = release_one_vs_rest(
            features(X),
            codes,
            len(self.classes_),
            C=float(self.C),
            data_norm=1.0,
            gap=self.gap,
            epsilons=epsilons,
            delta=delta,
            neighbours=self.neighbours,
            noise="gaussian",
            composition=self.composition,
            repeats=repeats,
            streams=streams,
            audit_pairs=[(features(row), features(-row)) for row in extreme_rows(X)] if audit else (),
        )
        origin = (
            f"drawn uniformly from public ranges with seed {int(self.landmarks_seed)}"
            if self.landmarks is None
            else "given by the user, chosen without looking at the training rows"
        )
        guarantees = release.guarantees(
            "the dual variables of public landmarks (bias-free hinge SVM on Nystrom features)",
            (
                "features have norm at most 1: Gaussian kernel on landmarks, clipped for round-off; computed in "
                "float64: idealised numerics",
                f"the landmarks are public: {origin}",
            ),
            "C, gamma",
            rng,
            "sound counterpart of dpsvmdvp-2019; output perturbation of Rubinstein et al. (2012) on Nystrom features",
            inferred_classes=self.classes is None,
        )
        if self.landmarks is not None and not self.landmarks_public:
            reason = "the given landmarks are published as they are, and nobody said that they are public"
            guarantees = tuple(guarantee.with_broken_assumption(reason) for guarantee in guarantees)
        pair_coef = np.ascontiguousarray(np.swapaxes(release.coef @ inverse_root, -1, -2))
        return OneVsRestKernelPath(
            epsilons=tuple(epsilons),
            guarantees=guarantees,
            n_classes=len(self.classes_),
            fit_seconds=release.fit_seconds,
            release_seconds=release.release_seconds,
            support_vectors=landmarks,
            pair_coef=pair_coef,
            intercept=np.zeros((*release.coef.shape[:2], release.coef.shape[2])),
            kernel_parameters=np.array([KERNELS.index("rbf"), gamma, 0.0, 0.0]),
        )

    def _check_parameters(self, epsilons: Sequence[float]) -> tuple[list[float], float]:
        """Refuse what means nothing; return the budget as plain floats."""
        check_positive("C", self.C)
        if self.gamma != "auto" or not isinstance(self.gamma, str):
            check_positive("gamma", self.gamma)
        if self.gap is not None:
            check_positive("gap", self.gap)
        check_count("n_landmarks", self.n_landmarks)
        check_flag("normalize", self.normalize)
        check_seed("landmarks_seed", self.landmarks_seed)
        check_choice("composition", self.composition, COMPOSITIONS)
        check_choice("neighbours", self.neighbours, NEIGHBOURS)
        check_public_classes(self.classes, self.allow_unsound)
        check_flag("landmarks_public", self.landmarks_public)
        if self.landmarks is not None and not (self.landmarks_public or self.allow_unsound):
            raise ValueError(
                f"landmarks_public={self.landmarks_public!r}: the landmarks you give are published as they are; say "
                "landmarks_public=True if they were chosen without looking at the training rows, or consent with "
                "allow_unsound=True"
            )
        return check_budgets(epsilons, self.delta)

    def _public_landmarks(self, n_features: int) -> np.ndarray:
        """Landmarks (m, d), as given or drawn."""
        if self.landmarks is not None:
            landmarks = np.array(self.landmarks, dtype=np.float64)
            if landmarks.ndim != 2 or landmarks.shape[0] < 1 or landmarks.shape[1] != n_features:
                raise ValueError(f"landmarks={landmarks.shape}: must be an array of shape (m, {n_features})")
            if not np.isfinite(landmarks).all():
                raise ValueError("landmarks=...: holds a number that is not finite")
            return landmarks
        try:
            low, high = (np.broadcast_to(np.asarray(bound, dtype=np.float64), n_features) for bound in self.bounds)
        except (TypeError, ValueError):
            low, high = np.ones(1), np.zeros(1)
        if not (np.isfinite(low).all() and np.isfinite(high).all() and (low <= high).all()):
            raise ValueError(f"bounds={self.bounds!r}: must be (low, high), finite, low not above high")
        public = seeded_stream(int(self.landmarks_seed), "landmarks")
        return public.uniform(low, high, size=(int(self.n_landmarks), n_features))


ESTIMATOR = LandmarkDualClassifier
