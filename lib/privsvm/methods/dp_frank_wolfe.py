"""Private Frank-Wolfe: the sound counterpart of DPWSS, which also selects by the exponential mechanism.

``min_{||w||_1 <= B} (1/n) sum_i loss(y_i w . x_i)`` with the hinge loss smoothed over a margin of h. Its slope lies
between -1 and 0, so with features of size at most b one replaced row changes the gradient's product with a vertex
``+-B e_j`` by at most ``2 B b / n``. Each step selects the vertex with the smallest product by the exponential
mechanism and moves towards it (Talwar, Thakurta, Zhang 2015, Nearly optimal private LASSO, Algorithm 2). The
coordinates it selects among are public; those of DPWSS are training rows.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Sequence

import numpy as np
import scipy.sparse

from privsvm.base.estimators import NoiseStreams, PrivateClassifier, disclose_noise, noise_streams
from privsvm.base.parameters import DELTA, parameter
from privsvm.base.perturbation import REFUSED_DATA, one_vs_rest_signs
from privsvm.base.released import LinearPath
from privsvm.base.validation import (
    INFERRED_CLASSES,
    check_budgets,
    check_public_classes,
    check_training_data,
)
from privsvm.constraints import BOUND, COUNT, FLAG, POSITIVE, Constraint
from privsvm.privacy.audit import discrete_witness
from privsvm.privacy.guarantee import Guarantee, Neighbours, Witness
from privsvm.privacy.mechanisms import ExponentialSelections
from privsvm.solvers.hinge import smoothed_hinge_slopes

__all__ = ["ESTIMATOR", "DPFrankWolfeClassifier", "score_sensitivity"]

# Models are trained together as long as their margins and weights fit into so many numbers (64 MB).
_BLOCK = 8_000_000

# The audit follows all states of a chain of selections, about twice the cube of their number.
_AUDIT_STEPS = 200


def score_sensitivity(radius: float, data_bound: float, n_rows: int, n_features: int, smoothing: float) -> float:
    """Bound how far the score of a vertex moves when one row is replaced.

    Parameters
    ----------
    radius : float
        B, the L1 norm of a vertex.
    data_bound : float
        b, the largest size of a feature.
    n_rows, n_features : int
        Size of the problem; public.
    smoothing : float
        h, the width of the smoothed part of the loss.

    Returns
    -------
    float
        ``2 B b / n``, plus twice what float64 may get wrong about a score: n numbers of size at most ``B b`` are
        averaged, and each depends on a margin of size at most ``B b`` computed from d products, with slope ``1 / h``.
    """
    largest = radius * data_bound
    relative = n_rows + (n_features + 1) * (1.0 + largest / smoothing) + 8
    return 2.0 * largest / n_rows + 4.0 * relative * np.finfo(np.float64).eps * largest


class DPFrankWolfeClassifier(PrivateClassifier):
    """Private sparse linear SVM: Frank-Wolfe with selections by the exponential mechanism.

    Attributes
    ----------
    coef_ : ndarray (k, d)
        Weight vectors; k is 1 for two classes.
    intercept_ : ndarray (k,)
        Offsets.
    classes_ : ndarray (c,)
        Labels.
    n_features_in_ : int
        Number of features d.
    guarantee_ : Guarantee
        What is proved.

    Notes
    -----
    The step size is ``1 / (t + 1)``, t = 0, 1, ..., so the last iterate, which is released, is the plain average of the
    selected vertices. (The usual ``2 / (t + 2)`` gives late vertices more weight: fewer of them average out the noise.)
    More than two classes are trained one-vs-rest; their c T selections are accounted together.

    Status ``proved`` assumes idealised float64 noise, and that the number of rows is public. An audit of more than 200
    steps would take too long: its guarantees have no witness.

    Examples
    --------
    >>> from privsvm import DPFrankWolfeClassifier
    >>> model = DPFrankWolfeClassifier(epsilon=4.0, n_steps=5, classes=[0, 1])
    >>> model.fit([[-1.0], [1.0]] * 50, [0, 1] * 50).guarantee_.status
    'proved'
    """

    delta: float = DELTA
    radius: float = parameter(10.0, POSITIVE, "B, the bound on the L1 norm of the weights. Public.")
    n_steps: int = parameter(
        80,
        COUNT,
        "T, the number of steps, and so the largest number of features in use. Public.",
    )
    data_bound: float = parameter(1.0, BOUND, "Bound on the size of a feature; larger ones are clipped.")
    smoothing: float = parameter(
        0.5,
        POSITIVE,
        "Width h of the margin over which the hinge loss is smoothed: quadratic from ``1 - h`` to 1. Public.",
    )
    fit_intercept: bool = parameter(
        True,
        FLAG,
        "Whether to add a constant feature of size `data_bound`; its weight counts in the radius.",
    )
    neighbours: Neighbours = parameter(
        "replace_one",
        Constraint(
            {"enum": ["replace_one"]},
            "the number of rows is public here; only replace_one is proved",
            '{"replace_one"}',
        ),
        "The relation between neighbouring datasets. The number of rows is public, so none can be added or removed.",
        common=True,
    )

    def _keep(self, path: LinearPath) -> None:
        super()._keep(path)
        self.intercept_ = path.intercept[0, 0]

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
        started = time.perf_counter()
        rows, signs = self._bounded(X), one_vs_rest_signs(codes, len(self.classes_))
        sensitivity = score_sensitivity(
            float(self.radius), float(self.data_bound), X.shape[0], rows.shape[1], float(self.smoothing)
        )
        n_selections = int(self.n_steps) * signs.shape[0]
        mechanisms = [
            ExponentialSelections(epsilon=epsilon, delta=delta, sensitivity=sensitivity, n_selections=n_selections)
            for epsilon in epsilons
        ]
        models = [
            (mechanism, streams(mechanism.epsilon, repeat)) for mechanism in mechanisms for repeat in range(repeats)
        ]
        block = max(1, _BLOCK // (signs.shape[0] * max(rows.shape)))
        weights = np.concatenate(
            [self._train(rows, signs, models[start : start + block]) for start in range(0, len(models), block)]
        ).reshape(len(epsilons), repeats, signs.shape[0], -1)
        n_features = X.shape[1]
        seconds = time.perf_counter() - started
        witnesses = [self._witness(mechanism, *rows.shape) if audit else None for mechanism in mechanisms]
        return LinearPath(
            epsilons=tuple(epsilons),
            guarantees=tuple(
                self._guarantee(mechanism, rng, witness)
                for mechanism, witness in zip(mechanisms, witnesses, strict=True)
            ),
            n_classes=len(self.classes_),
            release_seconds=seconds,
            coef=np.ascontiguousarray(weights[..., :n_features]),
            intercept=weights[..., n_features:].sum(axis=-1) * float(self.data_bound),
        )

    def _bounded(self, X):
        """Rows with features of size at most `data_bound`, and the constant feature."""
        bound = float(self.data_bound)
        constant = np.full((X.shape[0], int(self.fit_intercept)), bound)
        if scipy.sparse.issparse(X):
            clipped = scipy.sparse.csr_array((np.clip(X.data, -bound, bound), X.indices, X.indptr), shape=X.shape)
            return scipy.sparse.hstack([clipped, scipy.sparse.csr_array(constant)]).tocsr()
        return np.hstack([np.clip(X, -bound, bound), constant])

    def _scores(
        self, rows, signs: np.ndarray, weights: np.ndarray, memory: tuple[np.ndarray, np.ndarray] | None = None
    ) -> np.ndarray:
        """Scores (models, k, 2 d) of the vertices ``B e_j``, then ``-B e_j``: how much the loss falls towards each.

        `memory` is `_memory` of the same signs and number of models.
        """
        every_sign, work = self._memory(signs, len(weights)) if memory is None else memory
        flat = weights.reshape(-1, weights.shape[-1]).T
        margins = np.asarray(rows @ flat) if scipy.sparse.issparse(rows) else np.matmul(rows, flat, out=work)
        margins *= every_sign
        slopes = smoothed_hinge_slopes(margins, float(self.smoothing), out=margins)
        slopes *= every_sign
        gradients = np.asarray(rows.T @ slopes).T.reshape(weights.shape)
        gradients *= float(self.radius) / rows.shape[0]
        return np.concatenate([-gradients, gradients], axis=-1)

    @staticmethod
    def _memory(signs: np.ndarray, n_models: int) -> tuple[np.ndarray, np.ndarray]:
        """Each row's sign (n, models k) for each model and problem, and work space for their margins.

        Fresh memory for every step would cost more than the arithmetic on it.
        """
        every_sign = np.tile(signs.T, n_models)
        return every_sign, np.empty_like(every_sign)

    def _train(
        self, rows, signs: np.ndarray, models: Sequence[tuple[ExponentialSelections, np.random.Generator]]
    ) -> np.ndarray:
        """Weights (models, k, d) after all steps; the models differ in budget and noise."""
        radius, n_features = float(self.radius), rows.shape[1]
        weights = np.zeros((len(models), signs.shape[0], n_features))
        places = np.arange(len(models))[:, None], np.arange(signs.shape[0])
        memory = self._memory(signs, len(models))
        for step in range(int(self.n_steps)):
            scores = self._scores(rows, signs, weights, memory)
            size = 1.0 / (step + 1.0)
            weights *= 1.0 - size
            chosen = np.stack(
                [mechanism.select(own, stream) for own, (mechanism, stream) in zip(scores, models, strict=True)]
            )
            vertices = np.where(chosen < n_features, radius, -radius)
            weights[*places, chosen % n_features] += size * vertices
        return weights

    def _check_parameters(self, epsilons: Sequence[float]) -> tuple[list[float], float]:
        """Check parameters; return the budget as plain floats."""
        self.check_declared()
        check_public_classes(self.classes, self.allow_unsound)
        return check_budgets(epsilons, self.delta)

    def _witness(self, mechanism: ExponentialSelections, n_rows: int, n_features: int) -> Witness | None:
        """Lower bound on epsilon from one row of ones under two labels, all other rows being zeros.

        Such a row treats all features alike, so how often a vertex with a positive sign, and how often the constant
        feature, was selected is a Markov chain; its last state can be read off the released weights.
        """
        if self.n_steps > _AUDIT_STEPS or n_features == int(self.fit_intercept):
            return None
        # The other rows belong to the two classes that the row changes between, half of them to each. With more classes
        # these are two problems, which see the change from either side.
        half = (n_rows - 1) // 2
        changes = [(1.0, half)] if len(self.classes_) == 2 else [(1.0, half), (-1.0, n_rows - 1 - half)]
        size = (n_rows, n_features)
        # With an odd number of rows, the two problems differ in the sign alone.
        counts = {
            (sign, positives): self._selection_counts(mechanism.noise_scale, sign, positives, *size)
            for sign in (1.0, -1.0)
            for positives in {positives for _, positives in changes}
        }
        pairs = [(counts[sign, positives], counts[-sign, positives]) for sign, positives in changes]
        return discrete_witness(
            pairs,
            mechanism.delta,
            "replace_one",
            "made-up rows, as many as in training: zeros but for one row with all features at their bound, under two "
            "different labels; the exact probabilities of two counts that the weights give away make the bound",
        )

    def _selection_counts(
        self, noise_scale: float, sign: float, positives: int, n_rows: int, n_features: int
    ) -> np.ndarray:
        """Probabilities of (positive vertices, net selections of the constant feature) after all steps.

        `positives` of the rows of zeros have the label 1, and the row of ones has the label `sign`.
        """
        radius, bound, n_steps = float(self.radius), float(self.data_bound), int(self.n_steps)
        constant = int(self.fit_intercept)
        negatives, h = n_rows - 1 - positives, float(self.smoothing)
        # A column and a row; without the constant feature, the latter is a single zero.
        positive, net = np.arange(n_steps + 2)[:, None], np.arange(-n_steps - 1, n_steps + 2)[None]
        if not constant:
            net = np.zeros((1, 1), dtype=np.int64)
        chances = np.where((positive == 0) & (net == 0), 1.0, 0.0)
        unit = radius * bound / n_rows / noise_scale
        for step in range(n_steps):
            weight = radius * bound / max(step, 1)
            # How much the loss falls towards a vertex: the row's share, and that of the others (by the constant only).
            own = -sign * smoothed_hinge_slopes(sign * weight * (2.0 * positive - step), h)
            others = negatives * smoothed_hinge_slopes(-weight * net, h)
            others = others - positives * smoothed_hinge_slopes(weight * net, h)
            logs = [np.log(n_features - constant) + unit * own, np.log(n_features - constant) - unit * own]
            if constant:
                logs += [unit * (own + others), -unit * (own + others)]
            norm = functools.reduce(np.logaddexp, logs)
            moves = [chances * np.exp(log - norm) for log in logs]
            chances = np.roll(moves[0], 1, axis=0) + moves[1]
            if constant:
                chances += np.roll(moves[2], (1, 1), axis=(0, 1)) + np.roll(moves[3], -1, axis=1)
        return chances.ravel()

    def _guarantee(self, mechanism: ExponentialSelections, rng, witness: Witness | None) -> Guarantee:
        guarantee = Guarantee(
            status="proved",
            mechanism=f"exponential mechanism, {mechanism.n_selections} selections of a vertex (Frank-Wolfe)",
            neighbours="replace_one",
            epsilon_requested=mechanism.epsilon,
            epsilon_proved=mechanism.epsilon_proved,
            delta=mechanism.delta,
            sensitivity=mechanism.sensitivity,
            noise_scale=mechanism.noise_scale,
            accountant=mechanism.accountant,
            assumptions=(
                f"features have size at most {self.data_bound:g}: enforced by clipping",
                REFUSED_DATA,
                "the number of rows, the radius, the number of steps, the smoothing, the class set, the number of "
                "features and the scaling bounds are public",
                "one model is released; several add up",
                "float64 noise: idealised numerics; the round-off of a score counts in the sensitivity",
            ),
            reference="sound counterpart of dpwss-2021; Talwar, Thakurta, Zhang (2015), Algorithm 2",
            witness=witness,
        )
        guarantee = disclose_noise(guarantee, rng)
        if self.classes is None:
            guarantee = guarantee.with_broken_assumption(INFERRED_CLASSES)
        return guarantee


ESTIMATOR = DPFrankWolfeClassifier
