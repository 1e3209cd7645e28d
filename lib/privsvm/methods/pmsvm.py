"""PMSVM, private multi-class SVM by one all-in-one problem (pmsvm-2025).

Weight perturbation (PMSVM-WP): ``W~ = W + N(0, s^2)``, with W the optimum of the Crammer-Singer problem. The objective
is 1-strongly convex, and one row's subgradient ``C (e_k - e_y) x'`` has norm at most ``sqrt(2) C R`` for rows of norm
at most R, so the optimum moves by at most ``sqrt(2) C R`` when a row is added or removed and ``2 sqrt(2) C R`` when one
is replaced. (The paper's route, ``lambda_max(G) = 2``, does not hold: it is c. The constant survives through the dual
simplex, and one row with two classes attains it.)

Gradient perturbation (PMSVM-GP) and its adaptive variant (PMSVM-AGP): noisy clipped gradient steps on the smoothed
loss ``sum_{k != y} (g + sqrt(g^2 + s^2)) / 2`` with ``g = 1 - (z_y - z_k)`` of a row (the paper's equation 12), by
gradient descent or by Adam. The margin regulariser ``lambda sum_{k < l} |w_k - w_l|^2`` reads no rows, so its gradient
is added after the noise; the paper's equation 15 puts it inside every row's clipped gradient (``inside_clip``).
"""

from __future__ import annotations

import inspect
import math
import time
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

from privsvm.base.estimators import NoiseStreams, disclose_noise, noise_streams
from privsvm.base.noisy_training import NoisyGradientClassifier, check_share_kept
from privsvm.base.perturbation import (
    PUBLIC_ROW_COUNT,
    REFUSED_DATA,
    TOO_FEW_ROWS,
    certifiable_gap,
    clip_rows,
    extreme_rows,
    largest_move,
    solution_sensitivity,
)
from privsvm.base.released import LinearPath
from privsvm.base.validation import (
    INFERRED_CLASSES,
    check_bound,
    check_budgets,
    check_choice,
    check_flag,
    check_positive,
    check_public_classes,
    check_training_data,
    is_number,
)
from privsvm.privacy.accounting import GAUSSIAN_ACCOUNTANT
from privsvm.privacy.audit import gaussian_witness
from privsvm.privacy.guarantee import Guarantee, Neighbours, Witness
from privsvm.privacy.mechanisms import GaussianMechanism
from privsvm.solvers.crammer_singer import solve_crammer_singer
from privsvm.solvers.noisy_gradient import GradientSteps

__all__ = ["ESTIMATOR", "PERTURBATIONS", "PMSVMClassifier", "weight_sensitivity"]

PERTURBATIONS = ("weight", "gradient", "adaptive")


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


class PMSVMClassifier(NoisyGradientClassifier, ClassifierMixin, BaseEstimator):
    """Private multi-class SVM with weight, gradient or adaptive gradient perturbation.

    Parameters
    ----------
    perturbation : {"weight", "gradient", "adaptive"}, default="weight"
        ``weight``: noise on the exact weights (PMSVM-WP). ``gradient``: noise on the gradient of every step of
        gradient descent (PMSVM-GP). ``adaptive``: the same with Adam (PMSVM-AGP).
    epsilon : float, default=1.0
        Privacy budget of one release.
    delta : float, default=1e-5
        Probability that goes with it.
    C : float, default=0.01
        Weight of one row's loss (the paper's C/n). Public: choose it without looking at the data. Weight perturbation
        only.
    data_norm : float or None, default=1.0
        Rows longer than this are scaled down to it. ``as_published`` assumes it and does not enforce it. Gradient
        perturbation does not need it: None leaves rows as they are.
    classes : sequence or None, default=None
        The public label set. Taking it from the training labels (None) reveals which labels occur: that
        needs ``allow_unsound=True``, and the status falls to ``claimed``.
    neighbours : {"replace_one", "add_remove"}, default="replace_one"
        The relation between data sets.
    variant : {"sound", "as_published"}, default="sound"
        ``sound`` clips rows and solves to a certified duality gap. ``as_published`` does what the
        paper's released code does, and needs ``allow_unsound=True``. Weight perturbation only.
    gap : float or None, default=None
        Public target of the duality gap; None means ``2e-4 C^2 R^2``, or more where float64 cannot certify that.
        Weight perturbation only.
    max_epochs : int or None, default=None
        Most passes over the rows of weight perturbation. None: as many as the gap needs. A limit makes the released
        model depend on whether it was reached, so nothing is proved with one: that needs ``allow_unsound=True``.
    n_rows : int or None, default=None
        Gradient perturbation: public number of training rows, from which sample rate and number of steps follow. None
        counts the rows, which neighbours have in common for ``replace_one``; for ``add_remove`` that needs
        ``allow_unsound=True``, and the status falls to ``claimed``.
    scaling : {"none", "centre", "whiten"}, default="none"
        Gradient perturbation: scale rows by noisy statistics of them, paid for out of the budget; see
        `privsvm.base.private_scaling`. `data_norm` is then not used.
    batch_size : int or None, default=None
        Gradient perturbation: how many rows a step is to draw; None: all.
    epochs : int, default=60
        Gradient perturbation: how often a row is drawn, on average.
    learning_rate : float or "auto", default="auto"
        Gradient perturbation: step size. ``auto`` computes it from epsilon, the number of rows and the number of
        steps, for rows of about norm 1.
    schedule : {"constant", "linear", "cosine", "inverse_sqrt"}, default="constant"
        Gradient perturbation: how the step size falls.
    momentum : float, default=0.0
        Share of the last step that is kept, below 1. ``gradient`` only.
    average : {"none", "all", "last_half"}, default="last_half"
        Gradient perturbation: the iterates whose average is released.
    beta1, beta2 : float, default=0.0, 0.999
        How much of its running means of gradients, and of their squares, Adam keeps. (The usual 0.9 for the former
        costs accuracy where most of a gradient is noise.) ``adaptive`` only.
    max_grad_norm : float, default=1.0
        Gradient perturbation: a row's gradient is scaled down to this norm.
    smoothing : float, default=0.1
        Gradient perturbation: s in the smoothed hinge.
    margin_weight : float, default=0.0
        Gradient perturbation: lambda, the weight of the margin regulariser, beside a row's mean loss.
    ridge : float, default=0.0
        Gradient perturbation: mu, the weight of the squared norm of weights and offsets.
    inside_clip : bool, default=False
        Gradient perturbation: whether the regulariser is part of every row's clipped gradient (the paper's
        equation 15), or added exactly, after the noise.
    fit_intercept : bool or None, default=None
        Gradient perturbation: whether to train offsets; they are part of the clipped gradient. None: unless rows are
        scaled by `scaling`.
    n_jobs : int or None, default=None
        Gradient perturbation: threads, for models at the same time; where there are fewer models, for the steps of
        one. The result does not depend on it.
    allow_unsound : bool, default=False
        Consent to a model whose epsilon is not proved.
    random_state : int, numpy.random.Generator or None, default=None
        Noise source. None takes fresh entropy of the operating system: the only choice for a release, since whoever
        knows a seed can draw the same noise and take it off. The guarantee says which it was.

    Attributes
    ----------
    coef_ : ndarray (c, d)
        Noisy weight vectors, of scaled rows for `scaling`; the exact ones of weight perturbation are not kept.
    intercept_ : ndarray (c,)
        Offsets; zeros for weight perturbation, whose problem has none.
    centre_, spread_, bound_ : ndarray (d,), ndarray (d,), float
        For ``whiten``: scores are those of ``(x - centre_) / spread_``, cut at `bound_`. (For ``centre``: of rows
        divided by their norm.)
    classes_ : ndarray (c,)
        Labels.
    n_features_in_ : int
        Number of features d.
    guarantee_, privacy_ : Guarantee
        What is proved; two names of one record.
    noise_multiplier_ : float
        Standard deviation of the noise: over the sensitivity for weight perturbation, over `max_grad_norm` for
        gradient perturbation.
    sample_rate_ : float
        Probability with which a step draws a row; 1 for weight perturbation.
    n_steps_ : int
        Number of steps; 1 for weight perturbation.

    Notes
    -----
    Status ``proved`` assumes idealised float64 noise. Weight perturbation also assumes that the number of rows, rounded
    up to a power of two, is public: for ``add_remove``, neighbours have numbers of rows with the same next power of
    two. Training time is not covered: it depends on the rows.

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
        perturbation: str = "weight",
        epsilon: float = 1.0,
        delta: float = 1e-5,
        C: float = 0.01,
        data_norm: float | None = 1.0,
        classes: Sequence | None = None,
        neighbours: Neighbours = "replace_one",
        variant: str = "sound",
        gap: float | None = None,
        max_epochs: int | None = None,
        n_rows: int | None = None,
        scaling: str = "none",
        batch_size: int | None = None,
        epochs: int = 60,
        learning_rate: float | str = "auto",
        schedule: str = "constant",
        momentum: float = 0.0,
        average: str = "last_half",
        beta1: float = 0.0,
        beta2: float = 0.999,
        max_grad_norm: float = 1.0,
        smoothing: float = 0.1,
        margin_weight: float = 0.0,
        ridge: float = 0.0,
        inside_clip: bool = False,
        fit_intercept: bool | None = None,
        n_jobs: int | None = None,
        allow_unsound: bool = False,
        random_state: int | np.random.Generator | None = None,
    ):
        self.perturbation = perturbation
        self.epsilon = epsilon
        self.delta = delta
        self.C = C
        self.data_norm = data_norm
        self.classes = classes
        self.neighbours = neighbours
        self.variant = variant
        self.gap = gap
        self.max_epochs = max_epochs
        self.n_rows = n_rows
        self.scaling = scaling
        self.batch_size = batch_size
        self.epochs = epochs
        self.learning_rate = learning_rate
        self.schedule = schedule
        self.momentum = momentum
        self.average = average
        self.beta1 = beta1
        self.beta2 = beta2
        self.max_grad_norm = max_grad_norm
        self.smoothing = smoothing
        self.margin_weight = margin_weight
        self.ridge = ridge
        self.inside_clip = inside_clip
        self.fit_intercept = fit_intercept
        self.n_jobs = n_jobs
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
        check_public_classes(self.classes, self.allow_unsound)
        X, codes, self.classes_ = check_training_data(self, X, y, self.classes)
        train = self._perturb_weights if self.perturbation == "weight" else self._train
        return train(X, codes, epsilons, delta, repeats, streams, rng, audit)

    @property
    def _norm(self) -> float:
        """Norm that rows are clipped to."""
        assert self.data_norm is not None
        return float(self.data_norm)

    def _noise_multiplier(self, guarantee: Any) -> float:
        if self.perturbation == "weight":
            return guarantee.noise_scale / guarantee.sensitivity
        return super()._noise_multiplier(guarantee)

    def _refuse_without_effect(self) -> None:
        """Refuse parameters of another perturbation: they would change nothing."""
        weight = ("C", "variant", "gap", "max_epochs")
        adaptive = ("beta1", "beta2")
        gradient = ("scaling", "batch_size", "epochs", "learning_rate", "schedule", "average", "max_grad_norm",
                    "smoothing", "margin_weight", "ridge", "inside_clip", "fit_intercept")  # fmt: skip
        others = {
            "weight": (*gradient, *adaptive, "momentum"),
            "gradient": (*weight, *adaptive),
            "adaptive": (*weight, "momentum"),
        }[self.perturbation]
        defaults = inspect.signature(PMSVMClassifier).parameters
        for name in others:
            value = getattr(self, name)
            if value is not defaults[name].default and value != defaults[name].default:
                raise ValueError(f"{name}={value!r}: has no effect on perturbation={self.perturbation!r}; remove it")

    def _check_own(self) -> None:
        check_positive("smoothing", self.smoothing)
        check_flag("inside_clip", self.inside_clip)
        for name in ("beta1", "beta2"):
            check_share_kept(name, getattr(self, name))

    def _gradient_steps(self) -> GradientSteps:
        return GradientSteps(
            loss="hinge",
            smoothing=float(self.smoothing),
            margin_weight=float(self.margin_weight),
            regulariser="inside" if self.inside_clip else "outside",
            optimizer="adam" if self.perturbation == "adaptive" else "sgd",
            beta1=float(self.beta1),
            beta2=float(self.beta2),
            **self._common_steps(),
        )

    def _words(self) -> tuple[str, str]:
        how, equation = ("Adam (PMSVM-AGP)", 16) if self.perturbation == "adaptive" else ("descent (PMSVM-GP)", 14)
        return (
            f"all-in-one SVM with smoothed hinge, by {how}",
            f"pmsvm-2025, Theorem 2, equation {equation}, with an exact accountant",
        )

    def _perturb_weights(
        self, X, codes: np.ndarray, epsilons: list[float], delta: float, repeats: int, streams: NoiseStreams, rng, audit
    ) -> LinearPath:
        self.sample_rate_, self.n_steps_ = 1.0, 1
        published = self.variant == "as_published"
        gap, allowance = (0.0, 0.0) if published else self._certifiable_gap(X.shape[0], X.shape[1])
        rows = X if published else self._clip(X)
        started = time.perf_counter()
        weights = self._solve(rows, codes, len(self.classes_), gap)
        fit_seconds = time.perf_counter() - started
        bound = gap + allowance
        sensitivity = weight_sensitivity(float(self.C), self._norm, self.neighbours, bound)
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
        check_choice("perturbation", self.perturbation, PERTURBATIONS)
        self._refuse_without_effect()
        check_positive("C", self.C)
        if self.perturbation == "weight" or self.data_norm is not None:
            check_bound("data_norm", self.data_norm)
        if self.gap is not None:
            check_positive("gap", self.gap)
        check_flag("allow_unsound", self.allow_unsound)
        budgets = check_budgets(epsilons, self.delta)
        check_choice("variant", self.variant, ("sound", "as_published"))
        if self.perturbation != "weight":
            self._check_own()
            self._check_gradient_parameters()
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
        C, norm = float(self.C), self._norm
        return certifiable_gap(self.gap, C, norm, n_rows, n_features, len(self.classes_))

    def _clip(self, X):
        """Scale rows longer than `data_norm` down to it."""
        return clip_rows(X, self._norm)

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
            guarantee = guarantee.with_broken_assumption(INFERRED_CLASSES)
        return guarantee


ESTIMATOR = PMSVMClassifier
