"""PMSVM, private multi-class SVM by one all-in-one problem (pmsvm-2025): weight perturbation.

``W~ = W + N(0, s^2)``, with W the optimum of the Crammer-Singer problem. The objective is 1-strongly convex, and
one row's subgradient ``C (e_k - e_y) x'`` has norm at most ``sqrt(2) C R`` for rows of norm at most R, so the optimum
moves by at most ``sqrt(2) C R`` when a row is added or removed and ``2 sqrt(2) C R`` when one is replaced. (The
paper's route, ``lambda_max(G) = 2``, does not hold: it is c. The constant survives through the dual simplex, and one
row with two classes attains it.)
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from privsvm.methods.perturbation import (
    PUBLIC_ROW_COUNT,
    REFUSED_DATA,
    TOO_FEW_ROWS,
    certifiable_gap,
    clip_rows,
    extreme_rows,
    largest_move,
    solution_sensitivity,
)
from privsvm.methods.released import LinearPath, NoiseStreams, disclose_noise, noise_streams
from privsvm.methods.validation import (
    check_bound,
    check_budgets,
    check_choice,
    check_flag,
    check_positive,
    check_public_classes,
    check_training_data,
    common_tags,
    is_number,
)
from privsvm.privacy.accounting import GAUSSIAN_ACCOUNTANT
from privsvm.privacy.audit import gaussian_witness
from privsvm.privacy.guarantee import Guarantee, Neighbours, Witness
from privsvm.privacy.mechanisms import GaussianMechanism
from privsvm.solvers.crammer_singer import solve_crammer_singer

__all__ = ["ESTIMATOR", "PMSVMClassifier", "weight_sensitivity"]


def weight_sensitivity(C: float, data_norm: float, neighbours: Neighbours, gap: float = 0.0) -> float:
    """Bound how far the released weights move between neighbouring data sets.

    Parameters
    ----------
    C : float
        Weight of one row's loss.
    data_norm : float
        Bound R on a row's L2 norm.
    neighbours : {"replace_one", "add_remove"}
        The relation.
    gap : float, default=0.0
        Public target of the duality gap. Each of the two solutions lies within ``sqrt(gap)`` of its
        optimum.

    Returns
    -------
    float
        ``2 sqrt(2) C R`` or ``sqrt(2) C R``, plus ``2 sqrt(gap)``.
    """
    return solution_sensitivity(math.sqrt(2.0) * C * data_norm, neighbours, gap)


class PMSVMClassifier(ClassifierMixin, BaseEstimator):
    """Private multi-class SVM with weight perturbation (PMSVM-WP).

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget of one release.
    delta : float, default=1e-5
        Probability that goes with it.
    C : float, default=0.01
        Weight of one row's loss (the paper's C/n). Public: choose it without looking at the data.
    data_norm : float, default=1.0
        Rows longer than this are scaled down to it. ``as_published`` assumes it and does not enforce it.
    classes : sequence or None, default=None
        The public label set. Taking it from the training labels (None) reveals which labels occur: that
        needs ``allow_unsound=True``, and the status falls to ``claimed``.
    neighbours : {"replace_one", "add_remove"}, default="replace_one"
        The relation between data sets.
    variant : {"sound", "as_published"}, default="sound"
        ``sound`` clips rows and solves to a certified duality gap. ``as_published`` does what the
        paper's released code does, and needs ``allow_unsound=True``.
    gap : float or None, default=None
        Public target of the duality gap; None means ``2e-4 C^2 R^2``, or more where float64 cannot certify that.
    max_epochs : int or None, default=None
        Most passes over the rows. None: as many as the gap needs. A limit makes the released model depend on whether
        it was reached, so nothing is proved with one: that needs ``allow_unsound=True``.
    allow_unsound : bool, default=False
        Consent to a model whose epsilon is not proved.
    random_state : int, numpy.random.Generator or None, default=None
        Noise source. None takes fresh entropy of the operating system: the only choice for a release, since whoever
        knows a seed can draw the same noise and take it off. The guarantee says which it was.

    Attributes
    ----------
    coef_ : ndarray (c, d)
        Noisy weight vectors; the exact ones are not kept.
    intercept_ : ndarray (c,)
        Zeros: the problem has no bias.
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
    >>> from privsvm import PMSVMClassifier
    >>> model = PMSVMClassifier(epsilon=4.0, C=0.1, classes=[0, 1])
    >>> model.fit([[-1.0], [1.0]] * 50, [0, 1] * 50).guarantee_.status
    'proved'
    """

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-5,
        C: float = 0.01,
        data_norm: float = 1.0,
        classes: Sequence | None = None,
        neighbours: Neighbours = "replace_one",
        variant: str = "sound",
        gap: float | None = None,
        max_epochs: int | None = None,
        allow_unsound: bool = False,
        random_state: int | np.random.Generator | None = None,
    ):
        self.epsilon = epsilon
        self.delta = delta
        self.C = C
        self.data_norm = data_norm
        self.classes = classes
        self.neighbours = neighbours
        self.variant = variant
        self.gap = gap
        self.max_epochs = max_epochs
        self.allow_unsound = allow_unsound
        self.random_state = random_state

    def fit(self, X, y) -> PMSVMClassifier:
        """Train, and release one noisy model.

        Parameters
        ----------
        X : array-like or sparse matrix (n, d)
            Rows; finite. Scale them by public bounds: statistics of private rows are not covered.
        y : array-like (n,)
            Labels.

        Returns
        -------
        PMSVMClassifier
            Itself.

        Raises
        ------
        ValueError
            If a parameter is out of range, an assumption of the proof fails, or the model would be
            unsound without ``allow_unsound=True``.
        """
        path = self._release(X, y, [self.epsilon], 1, self.random_state, audit=False)
        self.coef_ = path.coef[0, 0]
        self.intercept_ = path.intercept[0, 0]
        self.guarantee_ = path.guarantees[0]
        return self

    def release_path(
        self,
        X,
        y,
        epsilons: Sequence[float],
        repeats: int,
        rng: NoiseStreams | np.random.Generator | int | None = None,
        audit: bool = False,
    ) -> LinearPath:
        """Release models for a grid of epsilons from one solve. For benchmarks.

        Parameters
        ----------
        X, y
            As in `fit`.
        epsilons : sequence of float (E)
            The grid. Every model is accounted alone; publishing all of them would compose.
        repeats : int
            Noise draws R per epsilon.
        rng : callable, numpy.random.Generator, int or None
            See `privsvm.methods.released.noise_streams`.
        audit : bool, default=False
            Solve a few neighbouring data sets too, and put a witness into the guarantees: a lower
            bound on epsilon, itself computed from the private rows.

        Returns
        -------
        LinearPath
            ``coef`` (E, R, c, d).
        """
        return self._release(X, y, epsilons, repeats, rng, audit)

    def decision_function(self, X) -> np.ndarray:
        """Class scores.

        Parameters
        ----------
        X : array-like or sparse matrix (n, d)
            Rows.

        Returns
        -------
        ndarray (n, c), or (n,) for two classes: positive for ``classes_[1]``.
        """
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, accept_sparse="csr", dtype=np.float64)
        scores = np.asarray(X @ self.coef_.T)
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X) -> np.ndarray:
        """Predict the labels (n,) of rows X (n, d)."""
        scores = self.decision_function(X)
        codes = (scores > 0).astype(np.int64) if scores.ndim == 1 else np.argmax(scores, axis=1)
        return self.classes_[codes]

    def _release(self, X, y, epsilons: Sequence[float], repeats: int, rng, audit: bool) -> LinearPath:
        streams = noise_streams(rng, self)
        epsilons, delta = self._check_parameters(epsilons)
        check_public_classes(self.classes, self.allow_unsound)
        X, codes, self.classes_ = check_training_data(self, X, y, self.classes)
        published = self.variant == "as_published"
        gap, allowance = (0.0, 0.0) if published else self._certifiable_gap(X.shape[0], X.shape[1])
        rows = X if published else self._clip(X)
        started = time.perf_counter()
        weights = self._solve(rows, codes, len(self.classes_), gap)
        fit_seconds = time.perf_counter() - started
        bound = gap + allowance
        sensitivity = weight_sensitivity(float(self.C), float(self.data_norm), self.neighbours, bound)
        mechanisms = [GaussianMechanism(epsilon, delta, sensitivity, weights.size) for epsilon in epsilons]
        distance, pair = self._largest_move(X, rows, codes, weights, gap) if audit else (0.0, "")
        guarantees = []
        for mechanism in mechanisms:
            witness = None
            if audit:
                witness = gaussian_witness(distance, mechanism.noise_scale, delta, self.neighbours, pair)
            guarantees.append(self._guarantee(mechanism, bound, witness, rng))
        started = time.perf_counter()
        coef = np.stack(
            [
                np.stack([mechanism.release(weights, streams(mechanism.epsilon, r)) for r in range(repeats)])
                for mechanism in mechanisms
            ]
        )
        return LinearPath(
            epsilons=tuple(epsilons),
            guarantees=tuple(guarantees),
            n_classes=len(self.classes_),
            fit_seconds=fit_seconds,
            release_seconds=time.perf_counter() - started,
            coef=coef,
            intercept=np.zeros(coef.shape[:3]),
        )

    def _check_parameters(self, epsilons: Sequence[float]) -> tuple[list[float], float]:
        """Refuse what means nothing; return the budget as plain floats."""
        check_positive("C", self.C)
        check_bound("data_norm", self.data_norm)
        if self.gap is not None:
            check_positive("gap", self.gap)
        check_flag("allow_unsound", self.allow_unsound)
        budgets = check_budgets(epsilons, self.delta)
        check_choice("variant", self.variant, ("sound", "as_published"))
        if self.variant == "as_published" and not self.allow_unsound:
            raise ValueError("variant='as_published': its epsilon does not hold; consent with allow_unsound=True")
        if self.max_epochs is not None:
            if not is_number(self.max_epochs) or self.max_epochs != int(self.max_epochs) or self.max_epochs < 1:
                raise ValueError(f"max_epochs={self.max_epochs!r}: must be a whole number of at least 1, or None")
            if not self.allow_unsound:
                raise ValueError(
                    f"max_epochs={self.max_epochs!r}: nothing is proved with a limit; use None, or consent with "
                    "allow_unsound=True"
                )
        return budgets

    def _certifiable_gap(self, n_rows: int, n_features: int) -> tuple[float, float]:
        """Public target of the duality gap, and what float64 may get wrong about it."""
        C, norm = float(self.C), float(self.data_norm)
        return certifiable_gap(self.gap, C, norm, n_rows, n_features, len(self.classes_))

    def _clip(self, X):
        """Scale rows longer than `data_norm` down to it."""
        return clip_rows(X, float(self.data_norm))

    def _solve(self, X, codes: np.ndarray, n_classes: int, gap: float) -> np.ndarray:
        """Exact weights (c, d) of one data set: what must not leave this object."""
        if self.variant == "as_published":
            return self._solve_as_published(X, codes, n_classes)
        return solve_crammer_singer(X, codes, n_classes, float(self.C), gap, self.max_epochs).coef

    def _solve_as_published(self, X, codes: np.ndarray, n_classes: int) -> np.ndarray:
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.svm import LinearSVC

        present = np.unique(codes)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            solver = LinearSVC(
                C=self.C, multi_class="crammer_singer", fit_intercept=False, max_iter=10_000, random_state=0
            ).fit(X, codes)
        weights = np.zeros((n_classes, X.shape[1]))
        # scikit-learn stores one vector for two classes: the difference of the two.
        weights[present] = np.vstack([-solver.coef_ / 2, solver.coef_ / 2]) if present.size == 2 else solver.coef_
        return weights

    def _largest_move(self, X, rows, codes: np.ndarray, weights: np.ndarray, gap: float) -> tuple[float, str]:
        """How far one extreme row moves the weights: a lower bound on the sensitivity.

        One training row is replaced by a row from the corners of the features' ranges, or by one of the longest rows.
        For ``replace_one`` the pair differs in that row's label, for ``add_remove`` in its presence.
        """
        n_classes = weights.shape[0]
        pairs = []
        for row in extreme_rows(X):
            row = row if self.variant == "as_published" else self._clip(row)
            # The two labels that fit best: each is the other's closest rival, so the row pulls the opposite way.
            first, second = np.argsort((row @ weights.T)[0], kind="stable")[-2:]
            pairs.append(((row, first), (row, second)))
        move = largest_move(
            rows, codes, pairs, lambda rows, codes: self._solve(rows, codes, n_classes, gap), self.neighbours
        )
        if move is None:
            return 0.0, TOO_FEW_ROWS
        largest, norm = move
        how = "under two different labels" if self.neighbours == "replace_one" else "and that row taken away"
        return largest, (
            f"the training rows of one split, one of them replaced by an extreme row (norm {norm:.3g}) within the "
            f"features' ranges, {how}; the two exact outputs give the bound without sampling"
        )

    def _guarantee(self, mechanism: GaussianMechanism, gap: float, witness: Witness | None, rng) -> Guarantee:
        common: dict[str, Any] = {
            "mechanism": "Gaussian noise on the Crammer-Singer weights (weight perturbation)",
            "neighbours": self.neighbours,
            "epsilon_requested": mechanism.epsilon,
            "delta": float(self.delta),
            "sensitivity": mechanism.total_sensitivity,
            "noise_scale": mechanism.noise_scale,
            "accountant": GAUSSIAN_ACCOUNTANT,
            "witness": witness,
        }
        if self.variant == "as_published":
            published = Guarantee(
                status="claimed",
                reason=(
                    f"the noise assumes rows of norm at most {self.data_norm:g}, but scaling bounds each feature, not "
                    "the row; the solver stops short of the optimum by an unknown distance"
                ),
                reference="pmsvm-2025, Theorem 1 and released code",
                **common,
            )
            return disclose_noise(published, rng)
        guarantee = Guarantee(
            status="proved",
            epsilon_proved=mechanism.epsilon_proved,
            assumptions=(
                f"rows have norm at most {self.data_norm:g}: enforced by clipping",
                f"the solution is within sqrt({gap:.3g}) of the optimum: certified by the duality gap",
                REFUSED_DATA,
                "C, the class set, the number of features and the scaling bounds are public",
                PUBLIC_ROW_COUNT,
                "one model is released; several add up",
                "float64 noise: idealised numerics, on a fixed grid",
            ),
            reference="pmsvm-2025, Theorem 1, with the sensitivity proved through the dual simplex",
            **common,
        )
        guarantee = disclose_noise(guarantee, rng)
        if self.max_epochs is not None:
            guarantee = guarantee.with_broken_assumption(
                f"the solver stops after max_epochs={self.max_epochs} passes, whether or not its gap is reached"
            )
        if self.classes is None:
            guarantee = guarantee.with_broken_assumption("the class set was taken from the private labels")
        return guarantee

    def __sklearn_tags__(self):
        tags = common_tags(super().__sklearn_tags__())
        # Noise is the point: accuracy on tiny data sets is not.
        tags.classifier_tags.poor_score = True
        tags.non_deterministic = self.random_state is None
        return tags


ESTIMATOR = PMSVMClassifier
