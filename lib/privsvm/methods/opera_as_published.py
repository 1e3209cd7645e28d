"""OPERA as the PMSVM paper's released code runs it: its epsilon does not hold.

One-vs-rest SVMs with the squared hinge, which is the solver's default, without bias, and noise for the sensitivity
``4 C`` (repository ``JinseongP/private_multiclass_svm``, commit 7a9bb28). The slope of a squared hinge grows with the
violation, and the dual variables have no upper limit: no multiple of C is a sensitivity, for rows of norm at most 1
neither. The code's PrivateSVM is the same but for the classic calibration of the noise, ``sqrt(2 ln(1.25 / delta))``
times sensitivity over epsilon, which holds below epsilon 1 only. Both give each class ``epsilon / c`` and the whole
delta, also where two classes make one problem.
"""

from __future__ import annotations

import functools
import math
import warnings

import numpy as np
import scipy.sparse

from privsvm.auditing.witnesses import extreme_rows, gaussian_witness, largest_move
from privsvm.base.estimators import PrivateClassifier, Release, noise_generators
from privsvm.base.parameters import C_PUBLIC, DELTA, parameter
from privsvm.base.released import LinearPath
from privsvm.constraints import BOUND, POSITIVE, one_of
from privsvm.families.output_perturbation.perturbation import one_vs_rest_signs
from privsvm.privacy.accountants import GAUSSIAN_ACCOUNTANT
from privsvm.privacy.accounting import gaussian_noise_multiplier
from privsvm.privacy.mechanisms import COMPOSITIONS

CALIBRATIONS = ("analytic", "classic")

_CLASSIC_ACCOUNTANT = "classic Gaussian bound, sqrt(2 ln(1.25 / delta)) / epsilon"


def classic_noise_multiplier(epsilon: float, delta: float) -> float:
    """Noise over sensitivity by the classic bound of the Gaussian mechanism; it is one below epsilon 1 only."""
    return math.sqrt(2.0 * math.log(1.25 / delta)) / epsilon


class OPERAAsPublishedClassifier(PrivateClassifier):
    """One-vs-rest linear SVM with Gaussian noise, as released with the PMSVM paper. Its epsilon does not hold.

    Attributes
    ----------
    coef_ : ndarray (k, d)
        Noisy weight vectors; k is 1 for two classes. The exact ones are not kept.
    guarantee_ : Guarantee
        The claim, and the reason why it does not hold.

    Examples
    --------
    >>> from privsvm import OPERAAsPublishedClassifier
    >>> model = OPERAAsPublishedClassifier(epsilon=4.0, allow_unsound=True)
    >>> model.fit([[-1.0], [1.0]] * 50, [0, 1] * 50).guarantee_.status
    'claimed'
    """

    published = "OPERA as published"
    noise_source = staticmethod(noise_generators)

    delta: float = DELTA
    C: float = C_PUBLIC
    composition: str = parameter(
        "naive",
        one_of(*COMPOSITIONS),
        "How more than two classes share the budget: ``epsilon / c`` for each, as the released code has it, or one "
        "release of all weight vectors.",
    )
    data_norm: float = parameter(1.0, BOUND, "The norm of rows that the noise assumes. It is not enforced.")
    calibration: str = parameter(
        "analytic",
        one_of(*CALIBRATIONS),
        "How to get from epsilon to noise. ``classic`` is the released code's PrivateSVM.",
    )
    constant: float = parameter(
        4.0,
        POSITIVE,
        "Sensitivity as a multiple of `C` (and `data_norm`): 4 in the released code, 2 in the paper's text on two "
        "classes.",
    )

    def _release(self, release: Release) -> LinearPath:
        X, codes, n_classes, delta = release.rows, release.codes, release.n_classes, release.delta
        weights = release.solve(self._solve_as_published, X, codes, n_classes)
        sensitivity = float(self.constant) * float(self.C) * float(self.data_norm)
        if self.composition == "joint":
            sensitivity *= math.sqrt(weights.shape[0])
        multiplier = gaussian_noise_multiplier if self.calibration == "analytic" else classic_noise_multiplier
        scales = [sensitivity * multiplier(self._share(epsilon), delta) for epsilon in release.epsilons]
        distance, pair = self._largest_move(X, codes, n_classes) if release.audit else (0.0, "")
        release.pay(
            release.claim(
                epsilon,
                mechanism="Gaussian noise on the weights of one-vs-rest SVMs with squared hinge "
                + ("(OPERA)" if self.calibration == "analytic" else "(PrivateSVM of the PMSVM paper)"),
                sensitivity=sensitivity,
                noise_scale=scale,
                accountant=GAUSSIAN_ACCOUNTANT if self.calibration == "analytic" else _CLASSIC_ACCOUNTANT,
                reason=self._reason(epsilon, weights.shape[0]),
                reference="pmsvm-2025, Table 2, and released code",
                witness=gaussian_witness(distance, scale, delta, self.neighbours, pair) if release.audit else None,
            )
            for epsilon, scale in zip(release.epsilons, scales, strict=True)
        )
        coef = release.stack(scales, lambda scale, rng: weights + rng.normal(0.0, scale, size=weights.shape))
        return release.path(LinearPath, coef=coef, intercept=np.zeros(coef.shape[:3]))

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
            reasons.append("the class set was taken from the private labels")
        return "; ".join(reasons)

    def _solve_as_published(self, X, codes: np.ndarray, n_classes: int) -> np.ndarray:
        """Weights (k, d) of the one-vs-rest problems with squared hinge, which must not leave this object."""
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
        """Measure how far one extreme row moves the published weights, and describe the pair of datasets."""
        limits = X.min(axis=0) + X.max(axis=0)
        limits = limits.toarray() if scipy.sparse.issparse(limits) else limits
        pairs = []
        for row in extreme_rows(X):
            pairs.append(((row, 0), (row, 1)))
            # For many classes, two rows far apart move all problems and not just two; both within the features' ranges.
            if n_classes > 2 and self.neighbours == "replace_one":
                pairs.append(((row, 0), (limits.reshape(1, -1) - row, 0)))
        replaced = self.neighbours == "replace_one"
        change = "mirrored in the features' ranges or put under another label" if replaced else "taken away"
        solve = functools.partial(self._solve_as_published, n_classes=n_classes)
        return largest_move(X, codes, pairs, solve, self.neighbours, change)


ESTIMATOR = OPERAAsPublishedClassifier
