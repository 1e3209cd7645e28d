"""Parts that methods with noisy clipped gradient steps share: the public plan, the releases, their record.

Every step draws each row with probability ``sample_rate``, clips every drawn row's gradient to ``max_grad_norm`` in the
L2 norm, adds exact rounded Gaussian noise to the exact sum, and divides by the expected number of drawn rows (Abadi et
al. 2016, Algorithm 1). The rows are read through these sums alone, so the optimizer's use of them costs no privacy.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import Any

import numpy as np

from privsvm.base.estimators import Release
from privsvm.base.feature_steps import Step
from privsvm.base.released import LinearPath
from privsvm.families.moments.private_scaling import feature_bound, release_multipliers, rows_to_scale, scale_rows
from privsvm.families.output_perturbation.perturbation import REFUSED_DATA, one_vs_rest_signs
from privsvm.numerics.compiled.threads import count_threads, thread_pool
from privsvm.numerics.rows.row_blocks import RowBlocks, RowsByBlock, dense_bytes
from privsvm.privacy.events import Composed, Event, Gaussian, PoissonSampled, SelfComposed, relation_factor
from privsvm.privacy.gate import ONE_MODEL, Claim, Guarantee
from privsvm.privacy.mechanisms import NOISE_ASSUMPTION, SampledGaussianSteps
from privsvm.solvers.gradients.noisy_gradient import GradientSteps, noisy_gradient_steps, prepare_rows

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


@dataclasses.dataclass(frozen=True)
class Record:
    """Content of privacy records: public numbers, the objective and its paper."""

    plan: TrainingPlan
    what: str
    reference: str

    def guarantee(
        self,
        release: Release,
        epsilon: float,
        mechanism: SampledGaussianSteps,
        n_parts: int,
        scaling: str,
    ) -> Guarantee:
        """Make the record of a model of `n_parts` parts, which have a share of epsilon and their mechanism each."""
        plan = self.plan
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
            f"{shared}: {self.what}",
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
            reference=self.reference,
        )
        return release.grant(claim, n_rows=plan.n_rows if plan.declared else None)


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


def release_noisy_gradient(
    release: Release,
    record: Record,
    steps: GradientSteps,
    *,
    n_jobs: int | None = None,
    composition: str = "joint",
    scaling: str = "none",
    automatic_rate: bool = False,
) -> LinearPath:
    """Train one model for every epsilon and repeat, and return their path.

    Sampling and noise of the steps are filled in here. Threads (`n_jobs`) train models at the same time, or work on the
    blocks of one; the result does not depend on them. For the one-vs-rest loss, "joint" composition is one training of
    all weight vectors, whose gradient is clipped as a whole, and "naive" one training for each with ``epsilon / k`` and
    ``delta / k``. `scaling` is as in `privsvm.families.moments.private_scaling`, not for naive composition. An
    `automatic_rate` of learning follows from epsilon, the number of rows and the number of steps.
    """
    rows, codes, n_classes, neighbours = release.rows, release.codes, release.n_classes, release.neighbours
    plan, epsilons, delta, repeats = record.plan, release.epsilons, release.delta, release.repeats
    binary = steps.loss == "one_vs_rest_hinge"
    n_vectors = 1 if binary and n_classes == 2 else n_classes
    problems = [(codes, n_vectors)]
    if composition == "naive" and binary and n_vectors > 1:
        problems = [((signs > 0).astype(np.int64), 1) for signs in one_vs_rest_signs(codes, n_classes)]
    n_problems = len(problems)
    # The sum of the parts must not exceed the whole by round-off.
    share = 1.0 if n_problems == 1 else (1.0 - 1e-12) / n_problems
    mechanisms = tuple(
        SampledGaussianSteps(
            epsilon=epsilon * share,
            delta=delta * share,
            neighbours=neighbours,
            sample_rate=plan.sample_rate,
            n_steps=plan.n_steps,
            max_grad_norm=steps.max_grad_norm,
            releases=()
            if scaling == "none"
            else release_multipliers(scaling, epsilon * share, delta * share, neighbours),
        )
        for epsilon in epsilons
    )
    planned = [
        dataclasses.replace(
            steps,
            learning_rate=_automatic_rate(steps, plan, mechanism) if automatic_rate else steps.learning_rate,
            # Scaled rows have a constant feature instead.
            fit_intercept=steps.fit_intercept and scaling == "none",
            noise_scale=mechanism.noise_scale,
            sample_rate=plan.sample_rate,
            n_steps=plan.n_steps,
            expected_batch=plan.expected_batch,
        )
        for mechanism in mechanisms
    ]

    n_threads = count_threads(n_jobs)
    if isinstance(rows, RowBlocks) or (
        scaling != "none" and not isinstance(rows, RowsByBlock) and dense_bytes(rows) > _LARGEST_TABLE
    ):
        rows = RowsByBlock.of(rows, n_threads, sparse=scaling == "centre")
    by_block = isinstance(rows, RowsByBlock)
    to_scale: Any = (
        rows_to_scale(rows, scaling) if scaling != "none" else rows if by_block else prepare_rows(rows, steps)
    )

    release.pay(
        record.guarantee(release, epsilon, mechanism, n_problems, scaling)
        for epsilon, mechanism in zip(epsilons, mechanisms, strict=True)
    )
    jobs = [(index, repeat) for index in range(len(epsilons)) for repeat in range(repeats)]

    def train(job: tuple[int, int]) -> tuple[np.ndarray, ...]:
        index, repeat = job
        source = release.source(epsilons[index], repeat)
        run = functools.partial(noisy_gradient_steps, steps=planned[index], source=source)
        if scaling != "none":
            noise = source.part("scaling")
            releases = mechanisms[index].releases
            scaled = scale_rows(to_scale, scaling, plan.n_rows, releases, noise, neighbours, steps.fit_intercept)
            trained = run(scaled.rows, codes, n_vectors)
            return scaled.model(trained.coef)
        models = [run(to_scale, problem_codes, vectors) for problem_codes, vectors in problems]
        return np.concatenate([m.coef for m in models]), np.concatenate([m.intercept for m in models])

    # Threads work on the blocks of one model.
    n_pooled = 1 if by_block else n_threads
    with thread_pool(n_pooled) as pool:
        results = list(map(train, jobs) if pool is None else pool.map(train, jobs))
    return _path(release, scaling, results)


def _automatic_rate(steps: GradientSteps, plan: TrainingPlan, mechanism: SampledGaussianSteps) -> float:
    """Learning rate from public numbers, for rows of about norm 1.

    Descent moves the weights by at most ``sqrt(epsilon) / 4`` times the number of rows in all. Adam, which divides by
    the size of the noisy gradients, makes steps of the same length where they are mostly noise.
    """
    rate = _AUTOMATIC * math.sqrt(mechanism.epsilon) / plan.n_steps
    if steps.optimizer == "adam":
        return rate * mechanism.noise_multiplier
    return rate * plan.n_rows * (1.0 - steps.momentum) / steps.max_grad_norm
