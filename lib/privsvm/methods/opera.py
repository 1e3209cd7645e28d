"""OPERA, output perturbation of one-vs-rest SVMs: a baseline of pmsvm-2025 (after Ding et al. 2022).

``sound``: bias-free hinge SVMs on clipped rows, solved to a certified duality gap, with analytic Gaussian noise. A
replaced row moves one of them by at most ``2 C R``, an added one by ``C R``. The PMSVM paper gives each of c classes
``epsilon / c`` (``naive``); one release of all of them (``joint``) costs ``sqrt(c)`` in place of c, and
`privsvm.methods.ovr_joint_gaussian` less than that.

``as_published``: what the PMSVM paper's released code runs (repository ``JinseongP/private_multiclass_svm``, commit
7a9bb28). One-vs-rest SVMs with the squared hinge, which is the solver's default, without bias, and noise for the
sensitivity ``4 C``. The slope of a squared hinge grows with the violation, and the dual variables have no upper limit:
no multiple of C is a sensitivity, for rows of norm at most 1 neither. The code's PrivateSVM is the same but for the
classic calibration of the noise, ``sqrt(2 ln(1.25 / delta))`` times sensitivity over epsilon, which holds below epsilon
1 only. Both give each class ``epsilon / c`` and the whole delta, also where two classes make one problem.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Sequence

import numpy as np
import scipy.sparse
from sklearn.base import BaseEstimator, ClassifierMixin

from privsvm.base.estimators import NoiseStreams, PrivateClassifier, disclose_noise, noise_streams
from privsvm.base.perturbation import (
    COMPOSITIONS,
    TOO_FEW_ROWS,
    clip_rows,
    extreme_rows,
    largest_move,
    one_vs_rest_signs,
    release_one_vs_rest,
)
from privsvm.base.released import LinearPath
from privsvm.base.validation import (
    INFERRED_CLASSES,
    check_bound,
    check_budgets,
    check_choice,
    check_positive,
    check_public_classes,
    check_training_data,
)
from privsvm.privacy.accounting import GAUSSIAN_ACCOUNTANT, gaussian_noise_multiplier
from privsvm.privacy.audit import gaussian_witness
from privsvm.privacy.guarantee import NEIGHBOURS, Guarantee, Neighbours

__all__ = ["CALIBRATIONS", "ESTIMATOR", "OPERAClassifier", "classic_noise_multiplier"]

CALIBRATIONS = ("analytic", "classic")

_CLASSIC_ACCOUNTANT = "classic Gaussian bound, sqrt(2 ln(1.25 / delta)) / epsilon"


def classic_noise_multiplier(epsilon: float, delta: float) -> float:
    """Noise over sensitivity by the classic bound of the Gaussian mechanism; it is one below epsilon 1 only.

    Parameters
    ----------
    epsilon, delta : float
        The budget.

    Returns
    -------
    float
        ``sqrt(2 ln(1.25 / delta)) / epsilon``.
    """
    return math.sqrt(2.0 * math.log(1.25 / delta)) / epsilon


class OPERAClassifier(PrivateClassifier, ClassifierMixin, BaseEstimator):
    """Private one-vs-rest linear SVM by analytic Gaussian noise on its weights.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget of one release.
    delta : float, default=1e-5
        Probability that goes with it.
    C : float, default=0.01
        Weight of one row's loss (the PMSVM paper's C/n). Public: choose it without looking at the data.
    composition : {"naive", "joint"}, default="naive"
        How more than two classes share the budget: ``epsilon / c`` for each, as the PMSVM paper does (and
        ``delta / c``, which its code does not), or one release of all weight vectors.
    data_norm : float, default=1.0
        Rows longer than this are scaled down to it. ``as_published`` assumes it and does not enforce it.
    classes : sequence or None, default=None
        The public label set. Taking it from the training labels (None) reveals which labels occur: that
        needs ``allow_unsound=True``, and the status falls to ``claimed``.
    neighbours : {"replace_one", "add_remove"}, default="replace_one"
        The relation between data sets.
    variant : {"sound", "as_published"}, default="sound"
        ``sound`` clips rows and solves the hinge to a certified duality gap. ``as_published`` does what the PMSVM
        paper's released code does, and needs ``allow_unsound=True``.
    calibration : {"analytic", "classic"}, default="analytic"
        How ``as_published`` gets from epsilon to noise. ``classic`` is the released code's PrivateSVM.
    constant : float, default=4
        Sensitivity of ``as_published`` as a multiple of `C` (and `data_norm`): 4 in the released code, 2 in the paper's
        text on two classes. ``sound`` has its own.
    gap : float or None, default=None
        Public target of the duality gap of ``sound``; None means ``2e-4 C^2 R^2``, or more where float64 cannot certify
        that.
    allow_unsound : bool, default=False
        Consent to a model whose epsilon is not proved.
    random_state : int, numpy.random.Generator or None, default=None
        Noise source. None takes fresh entropy of the operating system: the only choice for a release, since whoever
        knows a seed can draw the same noise and take it off. The guarantee says which it was.

    Attributes
    ----------
    coef_ : ndarray (k, d)
        Noisy weight vectors; k is 1 for two classes. The exact ones are not kept.
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
    >>> from privsvm import OPERAClassifier
    >>> model = OPERAClassifier(epsilon=4.0, C=0.1, classes=[0, 1])
    >>> model.fit([[-1.0], [1.0]] * 50, [0, 1] * 50).guarantee_.status
    'proved'
    """

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-5,
        C: float = 0.01,
        composition: str = "naive",
        data_norm: float = 1.0,
        classes: Sequence | None = None,
        neighbours: Neighbours = "replace_one",
        variant: str = "sound",
        calibration: str = "analytic",
        constant: float = 4.0,
        gap: float | None = None,
        allow_unsound: bool = False,
        random_state: int | np.random.Generator | None = None,
    ):
        self.epsilon = epsilon
        self.delta = delta
        self.C = C
        self.composition = composition
        self.data_norm = data_norm
        self.classes = classes
        self.neighbours = neighbours
        self.variant = variant
        self.calibration = calibration
        self.constant = constant
        self.gap = gap
        self.allow_unsound = allow_unsound
        self.random_state = random_state

    def release_path(
        self,
        X,
        y,
        epsilons: Sequence[float],
        repeats: int,
        rng: NoiseStreams | np.random.Generator | int | None = None,
        audit: bool = False,
    ) -> LinearPath:
        streams = noise_streams(rng, self)
        epsilons, delta = self._check_parameters(epsilons)
        X, codes, self.classes_ = check_training_data(self, X, y, self.classes)
        release = self._release_as_published if self.variant == "as_published" else self._release_sound
        return release(X, codes, epsilons, delta, repeats, streams, rng, audit)

    def _release_sound(
        self, X, codes: np.ndarray, epsilons: list[float], delta: float, repeats: int, streams: NoiseStreams, rng, audit
    ) -> LinearPath:
        norm = float(self.data_norm)
        release = release_one_vs_rest(
            clip_rows(X, norm),
            codes,
            len(self.classes_),
            C=float(self.C),
            data_norm=norm,
            gap=self.gap,
            epsilons=epsilons,
            delta=delta,
            neighbours=self.neighbours,
            noise="gaussian",
            composition=self.composition,
            repeats=repeats,
            streams=streams,
            audit_pairs=[(clip_rows(row, norm), clip_rows(-row, norm)) for row in extreme_rows(X)] if audit else (),
        )
        guarantees = release.guarantees(
            "the weights of bias-free one-vs-rest hinge SVMs (OPERA)",
            [f"rows have norm at most {norm:g}: enforced by clipping"],
            "C",
            rng,
            "pmsvm-2025, baseline OPERA (after Ding et al. 2022), with the hinge loss and clipped rows",
            inferred_classes=self.classes is None,
        )
        return release.path(guarantees, len(self.classes_))

    def _release_as_published(
        self, X, codes: np.ndarray, epsilons: list[float], delta: float, repeats: int, streams: NoiseStreams, rng, audit
    ) -> LinearPath:
        n_classes = len(self.classes_)
        started = time.perf_counter()
        weights = self._solve_as_published(X, codes, n_classes)
        fit_seconds = time.perf_counter() - started
        sensitivity = float(self.constant) * float(self.C) * float(self.data_norm)
        if self.composition == "joint":
            sensitivity *= math.sqrt(weights.shape[0])
        multiplier = gaussian_noise_multiplier if self.calibration == "analytic" else classic_noise_multiplier
        scales = [sensitivity * multiplier(self._share(epsilon), delta) for epsilon in epsilons]
        distance, pair = self._largest_move(X, codes, n_classes) if audit else (0.0, "")
        guarantees = []
        for epsilon, scale in zip(epsilons, scales, strict=True):
            guarantee = Guarantee(
                status="claimed",
                mechanism="Gaussian noise on the weights of one-vs-rest SVMs with squared hinge "
                + ("(OPERA)" if self.calibration == "analytic" else "(PrivateSVM of the PMSVM paper)"),
                neighbours=self.neighbours,
                epsilon_requested=epsilon,
                delta=delta,
                sensitivity=sensitivity,
                noise_scale=scale,
                accountant=GAUSSIAN_ACCOUNTANT if self.calibration == "analytic" else _CLASSIC_ACCOUNTANT,
                reason=self._reason(epsilon, weights.shape[0]),
                reference="pmsvm-2025, Table 2, and released code",
                witness=gaussian_witness(distance, scale, delta, self.neighbours, pair) if audit else None,
            )
            guarantees.append(disclose_noise(guarantee, rng))
        started = time.perf_counter()
        coef = np.stack(
            [
                np.stack([weights + streams(epsilon, r).normal(0.0, scale, size=weights.shape) for r in range(repeats)])
                for epsilon, scale in zip(epsilons, scales, strict=True)
            ]
        )
        return LinearPath(
            epsilons=tuple(epsilons),
            guarantees=tuple(guarantees),
            n_classes=n_classes,
            fit_seconds=fit_seconds,
            release_seconds=time.perf_counter() - started,
            coef=coef,
            intercept=np.zeros(coef.shape[:3]),
        )

    def _check_parameters(self, epsilons: Sequence[float]) -> tuple[list[float], float]:
        """Refuse what means nothing; return the budget as plain floats."""
        check_positive("C", self.C)
        check_bound("data_norm", self.data_norm)
        check_positive("constant", self.constant)
        if self.gap is not None:
            check_positive("gap", self.gap)
        check_choice("composition", self.composition, COMPOSITIONS)
        check_choice("neighbours", self.neighbours, NEIGHBOURS)
        check_choice("variant", self.variant, ("sound", "as_published"))
        check_choice("calibration", self.calibration, CALIBRATIONS)
        check_public_classes(self.classes, self.allow_unsound)
        if self.variant == "as_published" and not self.allow_unsound:
            raise ValueError("variant='as_published': its epsilon does not hold; consent with allow_unsound=True")
        if self.variant == "sound" and self.calibration == "classic":
            raise ValueError(
                "calibration='classic': holds below epsilon 1 only, and is for variant='as_published'; use 'analytic'"
            )
        if self.variant == "as_published" and self.gap is not None:
            raise ValueError(f"gap={self.gap!r}: has no effect on variant='as_published'; remove one of them")
        return check_budgets(epsilons, self.delta)

    def _share(self, epsilon: float) -> float:
        """Epsilon of one release as published."""
        return epsilon / len(self.classes_) if self.composition == "naive" else epsilon

    def _reason(self, epsilon: float, n_vectors: int) -> str:
        """Why the published epsilon does not hold."""
        reasons = [
            "the squared hinge has no bounded sensitivity: its slope grows with the violation, and its dual variables "
            "have no upper limit",
            f"the noise assumes rows of norm at most {self.data_norm:g}, but scaling bounds each feature, not the row",
            "the solver stops short of the optimum by an unknown distance",
        ]
        if self.composition == "naive" and n_vectors > 1:
            reasons.append(
                f"delta is not divided: {n_vectors} releases with delta {self.delta:g} each have delta "
                f"{n_vectors * self.delta:g} together"
            )
        if self.calibration == "classic" and self._share(epsilon) >= 1.0:
            reasons.append(
                f"the classic Gaussian bound holds below epsilon 1 only, and one release takes {self._share(epsilon):g}"
            )
        if self.classes is None:
            reasons.append(INFERRED_CLASSES)
        return "; ".join(reasons)

    def _solve_as_published(self, X, codes: np.ndarray, n_classes: int) -> np.ndarray:
        """Weights (k, d) of the one-vs-rest problems with squared hinge: what must not leave this object."""
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.svm import LinearSVC

        weights = []
        for signs in one_vs_rest_signs(codes, n_classes):
            rows = X
            if np.unique(signs).size == 1:
                # A row of zeros pulls at no weight, and gives the solver the other sign it insists on.
                rows = (
                    scipy.sparse.vstack([X, scipy.sparse.csr_array((1, X.shape[1]))]).tocsr()
                    if scipy.sparse.issparse(X)
                    else np.vstack([X, np.zeros((1, X.shape[1]))])
                )
                signs = np.append(signs, -signs[0])
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                solver = LinearSVC(C=float(self.C), fit_intercept=False, max_iter=10_000, random_state=0)
                weights.append(solver.fit(rows, signs).coef_[0])
        return np.stack(weights)

    def _largest_move(self, X, codes: np.ndarray, n_classes: int) -> tuple[float, str]:
        """How far one extreme row moves the published weights, and the pair in words."""
        limits = X.min(axis=0) + X.max(axis=0)
        limits = limits.toarray() if scipy.sparse.issparse(limits) else limits
        pairs = []
        for row in extreme_rows(X):
            pairs.append(((row, 0), (row, 1)))
            # For many classes, two rows far apart move all problems and not just two; both within the features' ranges.
            if n_classes > 2 and self.neighbours == "replace_one":
                pairs.append(((row, 0), (limits.reshape(1, -1) - row, 0)))
        move = largest_move(
            X, codes, pairs, lambda rows, codes: self._solve_as_published(rows, codes, n_classes), self.neighbours
        )
        if move is None:
            return 0.0, TOO_FEW_ROWS
        distance, length = move
        how = (
            "mirrored in the features' ranges or put under another label"
            if self.neighbours == "replace_one"
            else "taken away"
        )
        return distance, (
            f"the training rows of one split, one of them replaced by an extreme row (norm {length:.3g}), and that row "
            f"{how}; the two outputs give the bound without sampling"
        )


ESTIMATOR = OPERAClassifier
