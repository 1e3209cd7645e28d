"""Training by noisy clipped gradient steps: the base of its methods, with the public plan, releases and record.

Every step draws each row with probability ``sample_rate``, clips every drawn row's gradient to ``max_grad_norm`` in the
L2 norm, adds exact rounded Gaussian noise to the exact sum, and divides by the expected number of drawn rows (Abadi et
al. 2016, Algorithm 1). The rows are read through these sums alone, so the optimizer's use of them costs no privacy.
"""

from __future__ import annotations

import abc
import dataclasses
import functools
import itertools
import math
from typing import Any

import numpy as np

from privsvm.base.estimators import DescribedRelease, PrivateClassifier, Release
from privsvm.base.feature_steps import Step
from privsvm.base.parameters import DELTA, N_JOBS, parameter
from privsvm.base.released import LinearPath
from privsvm.constraints import BOUND, COUNT, FLAG, NOT_NEGATIVE, POSITIVE, ROWS, either, one_of, optional
from privsvm.families.moments.private_scaling import feature_bound, release_multipliers, rows_to_scale, scale_rows
from privsvm.families.output_perturbation.perturbation import REFUSED_DATA, clip_rows, one_vs_rest_signs
from privsvm.numerics.compiled.threads import count_threads, thread_pool
from privsvm.numerics.rows.row_blocks import RowBlocks, RowsByBlock, dense_bytes
from privsvm.privacy.events import Composed, Event, Gaussian, PoissonSampled, SelfComposed, relation_factor
from privsvm.privacy.gate import ONE_MODEL, Claim, Guarantee
from privsvm.privacy.mechanisms import NOISE_ASSUMPTION, SampledGaussianSteps
from privsvm.solvers.gradients.noisy_gradient import (
    AVERAGES,
    SCHEDULES,
    GradientSteps,
    noisy_gradient_steps,
    prepare_rows,
)

# How far the automatic learning rate lets the noise carry a weight, at epsilon 1.
_AUTOMATIC = 0.25
# Overflow: above this, scores might.
_LARGEST_WEIGHT = 1e100
# Bytes of dense rows above which their scaling goes on block by block.
_LARGEST_TABLE = 2**27


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainingPlan:
    """Public numbers of a training by sampled steps.

    `declared` says whether the number of training rows was given, and not counted. `sample_rate` is the probability
    with which a step draws a row; noisy sums are divided by `expected_batch`, ``sample_rate * n_rows``.
    """

    n_rows: int
    declared: bool
    sample_rate: float
    n_steps: int
    expected_batch: float


def training_plan(n_rows: int | None, counted: int, batch_size: int | None, epochs: int) -> TrainingPlan:
    """Plan the steps from public numbers.

    ``ceil(n_rows / batch_size)`` steps an epoch, or one that draws all rows, and one over that as sample rate. Public
    numbers: without `n_rows`, the rows are counted.
    """
    rows = counted if n_rows is None else int(n_rows)
    steps = 1 if batch_size is None else math.ceil(rows / int(batch_size))
    return TrainingPlan(
        n_rows=rows,
        declared=n_rows is not None,
        sample_rate=1.0 / steps,
        n_steps=int(epochs) * steps,
        expected_batch=rows / steps,
    )


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
        rows, codes, n_classes, neighbours = release.rows, release.codes, release.n_classes, release.neighbours
        plan = training_plan(self.n_rows, rows.shape[0], self.batch_size, self.epochs)
        self.sample_rate_, self.n_steps_ = plan.sample_rate, plan.n_steps
        # Parameters of some methods alone.
        scaling, composition = getattr(self, "scaling", "none"), getattr(self, "composition", "joint")
        if self.data_norm is not None and scaling == "none":
            rows = clip_rows(rows, float(self.data_norm))
        binary = self._loss()["loss"] == "one_vs_rest_hinge"
        n_vectors = 1 if binary and n_classes == 2 else n_classes
        problems = [(codes, n_vectors)]
        if composition == "naive" and binary and n_vectors > 1:
            problems = [((signs > 0).astype(np.int64), 1) for signs in one_vs_rest_signs(codes, n_classes)]
        # The sum of the parts must not exceed the whole by round-off.
        share = 1.0 if len(problems) == 1 else (1.0 - 1e-12) / len(problems)
        delta = release.delta
        mechanisms = [
            SampledGaussianSteps(
                epsilon=epsilon * share,
                delta=delta * share,
                neighbours=neighbours,
                sample_rate=plan.sample_rate,
                n_steps=plan.n_steps,
                max_grad_norm=float(self.max_grad_norm),
                releases=()
                if scaling == "none"
                else release_multipliers(scaling, epsilon * share, delta * share, neighbours),
            )
            for epsilon in release.epsilons
        ]
        # Scaled rows have no offsets by default, and where they have, a constant feature makes room for them.
        offsets = scaling == "none" if self.fit_intercept is None else bool(self.fit_intercept)
        planned = [self._steps(plan, mechanism, offsets and scaling == "none") for mechanism in mechanisms]

        n_threads = count_threads(self.n_jobs)
        if isinstance(rows, RowBlocks) or (
            scaling != "none" and not isinstance(rows, RowsByBlock) and dense_bytes(rows) > _LARGEST_TABLE
        ):
            rows = RowsByBlock.of(rows, n_threads, sparse=scaling == "centre")
        by_block = isinstance(rows, RowsByBlock)
        if scaling != "none":
            rows = rows_to_scale(rows, scaling)
        elif not by_block:
            rows = prepare_rows(rows, planned[0])

        release.pay(
            self._guarantee(release, epsilon, plan, mechanism, len(problems), scaling)
            for epsilon, mechanism in zip(release.epsilons, mechanisms, strict=True)
        )

        def train(job: tuple[int, int]) -> tuple[np.ndarray, ...]:
            index, repeat = job
            source = release.source(release.epsilons[index], repeat)
            run = functools.partial(noisy_gradient_steps, steps=planned[index], source=source)
            if scaling != "none":
                noise, releases = source.part("scaling"), mechanisms[index].releases
                scaled = scale_rows(rows, scaling, plan.n_rows, releases, noise, neighbours, offsets)
                return scaled.model(run(scaled.rows, codes, n_vectors).coef)
            models = [run(rows, problem_codes, vectors) for problem_codes, vectors in problems]
            return np.concatenate([m.coef for m in models]), np.concatenate([m.intercept for m in models])

        jobs = itertools.product(range(len(mechanisms)), range(release.repeats))
        # Threads work on the blocks of one model.
        with thread_pool(1 if by_block else n_threads) as pool:
            models = list(map(train, jobs) if pool is None else pool.map(train, jobs))
        return _path(release, scaling, models)

    def _steps(self, plan: TrainingPlan, mechanism: SampledGaussianSteps, fit_intercept: bool) -> GradientSteps:
        """Make the steps of a mechanism. An "auto" learning rate comes from public numbers, for rows of about norm 1.

        Descent moves the weights by at most ``sqrt(epsilon) / 4`` times the number of rows in all. Adam, which divides
        by the size of the noisy gradients, makes steps of the same length where they are mostly noise.
        """
        optimizer = self._optimizer()
        if self.learning_rate != "auto":
            rate = float(self.learning_rate)
        else:
            rate = _AUTOMATIC * math.sqrt(mechanism.epsilon) / plan.n_steps
            if optimizer["optimizer"] == "adam":
                rate *= mechanism.noise_multiplier
            else:
                rate = rate * plan.n_rows * (1.0 - optimizer["momentum"]) / mechanism.max_grad_norm
        return GradientSteps(
            **self._loss(),
            **optimizer,
            ridge=float(self.ridge),
            fit_intercept=fit_intercept,
            max_grad_norm=mechanism.max_grad_norm,
            learning_rate=rate,
            schedule=self.schedule,
            average=self.average,
            noise_scale=mechanism.noise_scale,
            sample_rate=plan.sample_rate,
            n_steps=plan.n_steps,
            expected_batch=plan.expected_batch,
        )

    def _guarantee(
        self,
        release: Release,
        epsilon: float,
        plan: TrainingPlan,
        mechanism: SampledGaussianSteps,
        n_parts: int,
        scaling: str,
    ) -> Guarantee:
        """Make the record of a model of `n_parts` parts, which have a share of epsilon and their mechanism each."""
        before = {
            "none": "",
            "centre": "a noisy mean of unit rows, then ",
            "whiten": "noisy centres, spreads and second moments of the features, then ",
        }[scaling]
        released = (
            [
                "noisy sums of the rows, of one row's norm at most, with noise of "
                + ", ".join(f"{multiplier:.6g}" for multiplier in mechanism.releases)
                + " times that norm, are accounted for together with the steps"
            ]
            if mechanism.releases
            else []
        )
        shared = "" if n_parts == 1 else f", {n_parts} times with epsilon / {n_parts} each"
        steps = SelfComposed(
            PoissonSampled(mechanism.sample_rate, Gaussian(mechanism.noise_multiplier)), mechanism.n_steps
        )
        event: Event = Composed((*map(Gaussian, mechanism.releases), steps)) if mechanism.releases else steps
        claim = Claim(
            event=event if n_parts == 1 else SelfComposed(event, n_parts),
            mechanism=f"{before}Gaussian noise on {plan.n_steps} sums of clipped gradients"
            f"{' of Poisson-drawn rows' if plan.sample_rate < 1 else ''}"
            f"{shared}: {self._description}",
            neighbours=mechanism.neighbours,
            epsilon_requested=epsilon,
            delta=release.delta,
            sensitivity=mechanism.max_grad_norm * relation_factor(mechanism.neighbours),
            noise_scale=mechanism.noise_scale,
            assumptions=(
                f"a row's gradient has norm at most {mechanism.max_grad_norm:g}: enforced by clipping",
                REFUSED_DATA,
                f"n_rows={plan.n_rows} ({'declared' if plan.declared else 'counted'}), "
                f"sample_rate={plan.sample_rate:.6g}, n_steps={plan.n_steps}, "
                "the learning rate and all other parameters, the class set, the number of features and the scaling "
                "bounds are public",
                ONE_MODEL,
                *released,
                "rows and their clipped gradients are truncated to grids; sums, their noise and the sampling of "
                "rows are exact; training time is not covered",
                NOISE_ASSUMPTION,
            ),
            reference=self._reference,
        )
        return release.grant(claim, n_rows=plan.n_rows if plan.declared else None)

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


def _path(release: Release, scaling: str, models: list[tuple[np.ndarray, ...]]) -> LinearPath:
    """Make the path of trained models: weights (k, d) and offsets (k,), and the centre and spread of scaled rows."""
    coef, intercept, *features = release.stack_models(models)
    # Too large a learning rate makes weights that are no numbers: zeros, since an error would tell something about the
    # noise.
    coef, intercept = (np.nan_to_num(np.clip(array, -_LARGEST_WEIGHT, _LARGEST_WEIGHT)) for array in (coef, intercept))
    steps: tuple[Step, ...] = ()
    if scaling == "whiten":
        centre, spread = features
        bound = np.full(1, feature_bound(coef.shape[-1]))
        steps = (Step("standardise", {"centre": centre, "spread": spread, "bound": bound}),)
    elif scaling == "centre":
        steps = (Step("unit"), *(Step("direction", {"centre": centre}) for centre in features))
    return release.path(LinearPath, coef=coef, intercept=intercept, steps=steps)
