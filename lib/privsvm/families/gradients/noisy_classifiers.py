"""Classifiers trained by noisy clipped gradient steps: their settings, each declared once, and what goes with them."""

from __future__ import annotations

import abc
import dataclasses
from typing import Any

from privsvm.base.estimators import DescribedRelease, PrivateClassifier, Release
from privsvm.base.parameters import DELTA, N_JOBS, parameter
from privsvm.base.released import LinearPath
from privsvm.constraints import (
    BOUND,
    COUNT,
    FLAG,
    NOT_NEGATIVE,
    POSITIVE,
    ROWS,
    SHARE_KEPT,
    either,
    one_of,
    optional,
)
from privsvm.families.gradients.noisy_training import Record, release_noisy_gradient, training_plan
from privsvm.families.moments.private_scaling import SCALINGS
from privsvm.families.output_perturbation.perturbation import clip_rows
from privsvm.numerics.compiled.threads import count_threads
from privsvm.solvers.gradients.noisy_gradient import AVERAGES, SCHEDULES, GradientSteps


class NoisyGradientClassifier(DescribedRelease, PrivateClassifier):
    """Training by noisy clipped gradient steps; a base.

    Attributes
    ----------
    guarantee_, privacy_ : Guarantee
        The privacy record; two names of one object.
    sample_rate_ : float
        Probability with which a step draws a row.
    n_steps_ : int
        Number of steps.

    Notes
    -----
    Sums, noise and sampling are exact. Training time is not covered: it depends on the rows.
    """

    reads_blocks = True
    class_memory = "model"

    delta: float = DELTA
    data_norm: float | None = parameter(
        None,
        optional(BOUND),
        "Bound on the norm of a row; longer rows are scaled down to it. None leaves rows as they are.",
    )
    n_rows: int | None = parameter(
        None,
        optional(ROWS),
        "Public number of training rows, from which sample rate and number of steps follow. None counts the rows, "
        "which is the same for neighbours under ``replace_one``; under ``add_remove`` this needs "
        "``allow_unsound=True``, and the status becomes ``claimed``.",
        common=True,
    )
    batch_size: int | None = parameter(
        None, optional(COUNT), "Expected number of rows that a step draws; None means all."
    )
    epochs: int = parameter(60, COUNT, "Expected number of times that a row is drawn.")
    learning_rate: float | str = parameter(
        "auto",
        either('must be a positive finite number, or "auto"', POSITIVE, one_of("auto")),
        'Step size. "auto" computes it from epsilon, the number of rows and the number of steps, for rows of about '
        "norm 1.",
    )
    schedule: str = parameter("constant", one_of(*SCHEDULES), "How the step size falls.")
    average: str = parameter("last_half", one_of(*AVERAGES), "The iterates whose average is released.")
    max_grad_norm: float = parameter(1.0, BOUND, "A row's gradient is scaled down to this norm.")
    ridge: float = parameter(
        0.0, NOT_NEGATIVE, "Weight of the squared norm of weights and offsets, beside a row's mean loss."
    )
    fit_intercept: bool | None = parameter(
        True, FLAG, "Whether to train offsets; they are part of the clipped gradient."
    )
    n_jobs: int | None = dataclasses.replace(
        N_JOBS,
        doc="Number of threads. They train several models at a time, or share the blocks of large tables. The result "
        "does not depend on it.",
    )

    @abc.abstractmethod
    def _loss(self) -> dict[str, Any]:
        """Keywords of `GradientSteps` that define the objective."""

    @abc.abstractmethod
    def _optimizer(self) -> dict[str, Any]:
        """Keywords of `GradientSteps` that define the use of the noisy gradients."""

    def _check_parameters(self) -> None:
        super()._check_parameters()
        count_threads(self.n_jobs)
        if self.n_rows is None and self.neighbours == "add_remove" and not self.allow_unsound:
            raise ValueError(
                "n_rows=None: the sample rate would follow from the private number of rows; give a public number of "
                "rows, or consent with allow_unsound=True"
            )

    def _release(self, release: Release) -> LinearPath:
        plan = training_plan(self.n_rows, release.rows.shape[0], self.batch_size, self.epochs)
        self.sample_rate_, self.n_steps_ = plan.sample_rate, plan.n_steps
        # Parameters of some methods alone.
        scaling, composition = getattr(self, "scaling", "none"), getattr(self, "composition", "joint")
        if self.data_norm is not None and scaling == "none":
            release = dataclasses.replace(release, rows=clip_rows(release.rows, float(self.data_norm)))
        steps = GradientSteps(
            **self._loss(),
            **self._optimizer(),
            ridge=float(self.ridge),
            # Scaled rows have none by default.
            fit_intercept=scaling == "none" if self.fit_intercept is None else bool(self.fit_intercept),
            max_grad_norm=float(self.max_grad_norm),
            # For "auto" it is filled in for every epsilon.
            learning_rate=1.0 if self.learning_rate == "auto" else float(self.learning_rate),
            schedule=self.schedule,
            average=self.average,
        )
        return release_noisy_gradient(
            release,
            Record(plan, self._description, self._reference),
            steps,
            n_jobs=self.n_jobs,
            composition=composition,
            scaling=scaling,
            automatic_rate=self.learning_rate == "auto",
        )

    def _keep(self, path: LinearPath) -> None:
        super()._keep(path)
        self.intercept_ = path.intercept[0, 0]
        # The last step alone has numbers.
        arrays = path.steps[-1].arrays if path.steps else {}
        if "centre" in arrays:
            self.centre_ = arrays["centre"][0, 0]
        if "spread" in arrays:
            self.spread_, self.bound_ = arrays["spread"][0, 0], float(arrays["bound"][0])
        self.privacy_ = self.guarantee_
        guarantee: Any = path.guarantees[0]
        self.noise_multiplier_ = guarantee.noise_scale / float(self.max_grad_norm)


class ScaledRowsClassifier(NoisyGradientClassifier):
    """Base class of classifiers that can scale rows by noisy statistics.

    Attributes
    ----------
    coef_ : ndarray (c, d)
        Weight vectors, of scaled rows for `scaling`.
    intercept_ : ndarray (c,)
        Offsets.
    centre_, spread_, bound_ : ndarray (d,), ndarray (d,), float
        For ``whiten``: scores are of ``(x - centre_) / spread_``, cut at `bound_`. (For ``centre``: of rows divided by
        their norm; with offsets, less `centre_`, and divided by their norm again.)
    noise_multiplier_ : float
        Standard deviation of the noise over `max_grad_norm`.
    """

    scaling: str = parameter(
        "none",
        one_of(*SCALINGS),
        "Scale rows by noisy statistics of them, paid for out of the budget; see "
        "`privsvm.families.moments.private_scaling`. With scaling, `data_norm` is refused.",
    )
    fit_intercept: bool | None = parameter(
        None,
        optional(FLAG),
        "Whether to train offsets; they are part of the clipped gradient. None: unless rows are scaled by `scaling`. "
        "Scaled rows get a constant feature for them, whose weights are regularised like all others.",
    )

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.scaling == "none":
            return
        if self.data_norm is not None:
            raise ValueError(
                f"data_norm={self.data_norm!r}: scaling={self.scaling!r} bounds the rows by itself; use None"
            )


class DescentClassifier(NoisyGradientClassifier):
    """Gradient descent on noisy gradients; a base."""

    momentum: float = parameter(0.0, SHARE_KEPT, "Share of the last step that is kept, below 1.")

    def _optimizer(self) -> dict[str, Any]:
        return {"optimizer": "sgd", "momentum": float(self.momentum)}


class AdamClassifier(NoisyGradientClassifier):
    """Adam on noisy gradients; a base."""

    beta1: float = parameter(
        0.0,
        SHARE_KEPT,
        "How much of its running mean of gradients Adam keeps. (The usual 0.9 costs accuracy where most of a gradient "
        "is noise.)",
    )
    beta2: float = parameter(0.999, SHARE_KEPT, "How much of its running mean of squared gradients Adam keeps.")

    def _optimizer(self) -> dict[str, Any]:
        return {"optimizer": "adam", "beta1": float(self.beta1), "beta2": float(self.beta2)}


class MarginLossClassifier(ScaledRowsClassifier):
    """PMSVM's smoothed all-in-one loss and margin regulariser; a base."""

    smoothing: float = parameter(0.1, POSITIVE, "s in the smoothed hinge.")
    margin_weight: float = parameter(
        0.0, NOT_NEGATIVE, "lambda, the weight of the margin regulariser, beside a row's mean loss."
    )
    inside_clip: bool = parameter(
        False,
        FLAG,
        "Whether the regularisers are part of every row's clipped gradient (the paper's equation 15), or added "
        "exactly, after the noise.",
    )

    def _loss(self) -> dict[str, Any]:
        return {
            "loss": "hinge",
            "smoothing": float(self.smoothing),
            "margin_weight": float(self.margin_weight),
            "regulariser": "inside" if self.inside_clip else "outside",
        }


class SoftmaxClassifier(ScaledRowsClassifier):
    """Softmax regression; a base."""

    _description = "softmax regression (Linear)"
    _reference = "pmsvm-2025, section 5.1 (Linear); Abadi et al. (2016), Algorithm 1"

    loss_weight: float = parameter(1.0, BOUND, "Multiplies every row's loss before its gradient is clipped.")

    def _loss(self) -> dict[str, Any]:
        return {"loss": "softmax", "loss_weight": float(self.loss_weight)}
