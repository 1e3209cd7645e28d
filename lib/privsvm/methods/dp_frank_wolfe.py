"""Private Frank-Wolfe: the sound counterpart of DPWSS, which also selects by the exponential mechanism.

``min_{||w||_1 <= B} (1/n) sum_i loss(y_i w . x_i)`` with the hinge loss smoothed over a margin of h. Its slope lies
between -1 and 0, so with features of size at most b one replaced row changes the gradient's product with a vertex
``+-B e_j`` by at most ``2 B b / n``. Each step selects the vertex with the smallest product by the exponential
mechanism and moves towards it (Talwar, Thakurta, Zhang 2015, Nearly optimal private LASSO, Algorithm 2). The
coordinates it selects among are public; DPWSS selects among training rows.

All that is computed of rows is in whole numbers. Features are truncated toward zero to whole numbers of ``b / 2^20``.
Weights are ``B / t`` times the counts of earlier selections, so margins are exact up to a public factor. Slopes are
truncated to whole numbers of ``2^-18``. A row's share of a score is a product of two such numbers, and lies between
``-2^38`` and ``2^38``: one replaced row moves a score by at most ``2^39``. Sums are exact in float64, in whatever
order, as long as they stay below ``2^53``; they are gathered in int64.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import scipy.sparse

from privsvm.auditing.witnesses import SelectionChain, selection_witness
from privsvm.base.estimators import PrivateClassifier, Release
from privsvm.base.parameters import DELTA, parameter
from privsvm.base.released import LinearPath
from privsvm.constraints import BOUND, COUNT, FLAG, POSITIVE, Constraint
from privsvm.families.output_perturbation.perturbation import REFUSED_DATA, one_vs_rest_signs
from privsvm.numerics.noise.noise_source import NoiseSource
from privsvm.privacy.events import ExponentialMechanism, Neighbours, SelfComposed
from privsvm.privacy.gate import ONE_MODEL, Claim, Guarantee
from privsvm.privacy.mechanisms import NOISE_ASSUMPTION, ExponentialSelections
from privsvm.privacy.statement import Witness
from privsvm.solvers.linear.hinge import smoothed_hinge_slopes

# Features are whole numbers of so many binary digits.
_FEATURE_BITS = 20

# Rows whose shares, of 38 binary digits at most, are added up in float64.
_EXACT_ROWS = 2**15

# Models are trained together as long as their margins and weights fit into so many numbers (64 MB).
_BLOCK = 8_000_000

# The audit follows all states of a chain of selections, about twice the cube of their number.
_AUDIT_STEPS = 200


def slope_bits(n_rows: int) -> int:
    """How many binary digits slopes keep, so that scores of so many rows, a public number, fit into int64."""
    return min(18, 62 - _FEATURE_BITS - n_rows.bit_length())


def score_sensitivity(n_rows: int) -> int:
    """Bound how far the score of a vertex, a whole number, moves when one of `n_rows` rows is replaced."""
    return int(2 * 2 ** (_FEATURE_BITS + slope_bits(n_rows)))


class DPFrankWolfeClassifier(PrivateClassifier):
    """Private sparse linear SVM: Frank-Wolfe with selections by the exponential mechanism.

    Attributes
    ----------
    coef_ : ndarray (k, d)
        Weight vectors; k is 1 for two classes.
    intercept_ : ndarray (k,)
        Offsets.

    Notes
    -----
    The step size is ``1 / (t + 1)``, t = 0, 1, ..., so the last iterate, which is released, is the plain average of the
    selected vertices. (The usual ``2 / (t + 2)`` gives late vertices more weight: fewer of them average out the noise.)
    More than two classes are trained one-vs-rest; their c T selections are accounted together.

    Status ``proved`` assumes that the number of rows is public. An audit of more than 200 steps would take too long:
    its guarantees have no witness.

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

    def _release(self, release: Release) -> LinearPath:
        X, epsilons, repeats = release.rows, release.epsilons, release.repeats
        rows, signs = self._bound_rows(X), one_vs_rest_signs(release.codes, release.n_classes)
        n_selections = int(self.n_steps) * signs.shape[0]
        mechanisms = [
            ExponentialSelections(
                epsilon=epsilon,
                delta=release.delta,
                sensitivity=score_sensitivity(X.shape[0]),
                n_selections=n_selections,
            )
            for epsilon in epsilons
        ]
        witnesses = [self._witness(mechanism, *rows.shape) if release.audit else None for mechanism in mechanisms]
        release.pay(
            self._guarantee(release, mechanism, witness)
            for mechanism, witness in zip(mechanisms, witnesses, strict=True)
        )
        models = [
            (mechanism, release.source(mechanism.epsilon, repeat))
            for mechanism in mechanisms
            for repeat in range(repeats)
        ]
        block = max(1, _BLOCK // (signs.shape[0] * max(rows.shape)))
        weights = np.concatenate(
            [self._train(rows, signs, models[start : start + block]) for start in range(0, len(models), block)]
        ).reshape(len(epsilons), repeats, signs.shape[0], -1)
        n_features = X.shape[1]
        return release.path(
            LinearPath,
            coef=np.ascontiguousarray(weights[..., :n_features]),
            intercept=weights[..., n_features:].sum(axis=-1) * float(self.data_bound),
        )

    def _bound_rows(self, X):
        """Rows, and the constant feature, in whole numbers of ``b / 2^20``; clipped, and truncated toward zero."""
        bound, most = float(self.data_bound), float(2**_FEATURE_BITS)
        constant = np.full((X.shape[0], int(self.fit_intercept)), most)

        def cells(values: np.ndarray) -> np.ndarray:
            return np.trunc(np.clip(values, -bound, bound) / bound * most)

        if scipy.sparse.issparse(X):
            clipped = scipy.sparse.csr_array((cells(X.data), X.indices, X.indptr), shape=X.shape)
            return scipy.sparse.hstack([clipped, scipy.sparse.csr_array(constant)]).tocsr()
        return np.hstack([cells(X), constant])

    def _slope_cells(self, products: np.ndarray, step: int, n_rows: int) -> np.ndarray:
        """Slopes of the loss in whole numbers, each from one product with counts of `step` selections; overwrites."""
        products *= float(self.radius) * float(self.data_bound) / 2.0**_FEATURE_BITS / max(step, 1)
        slopes = smoothed_hinge_slopes(products, float(self.smoothing), out=products)
        slopes *= 2.0 ** slope_bits(n_rows)
        return np.trunc(slopes, out=slopes)

    def _scores(
        self,
        rows,
        signs: np.ndarray,
        counts: np.ndarray,
        step: int,
        memory: tuple[np.ndarray, np.ndarray] | None = None,
    ) -> np.ndarray:
        """Scores (models, k, 2 d) of the vertices ``B e_j``, then ``-B e_j``: how much the loss falls towards each.

        `counts` (models, k, d) tells how often each vertex was selected, ``-B e_j`` counting as -1, in `step` steps.
        `memory` is `_memory` of the same signs and number of models.
        """
        every_sign, work = self._memory(signs, len(counts)) if memory is None else memory
        flat = counts.reshape(-1, counts.shape[-1]).T
        products = np.asarray(rows @ flat) if scipy.sparse.issparse(rows) else np.matmul(rows, flat, out=work)
        products *= every_sign
        slopes = self._slope_cells(products, step, rows.shape[0])
        slopes *= every_sign
        gradients: np.ndarray = np.zeros((rows.shape[1], slopes.shape[1]), dtype=np.int64)
        for start in range(0, rows.shape[0], _EXACT_ROWS):
            block = slice(start, start + _EXACT_ROWS)
            gradients += np.asarray(rows[block].T @ slopes[block]).astype(np.int64)
        gradients = gradients.T.reshape(counts.shape)
        return np.concatenate([-gradients, gradients], axis=-1)

    @staticmethod
    def _memory(signs: np.ndarray, n_models: int) -> tuple[np.ndarray, np.ndarray]:
        """Each row's sign (n, models k), and work space for margins: new one for every step would take longer."""
        every_sign = np.tile(signs.T, n_models)
        return every_sign, np.empty_like(every_sign)

    def _train(
        self, rows, signs: np.ndarray, models: Sequence[tuple[ExponentialSelections, NoiseSource]]
    ) -> np.ndarray:
        """Weights (models, k, d) after all steps; the models differ in budget and noise."""
        n_features = rows.shape[1]
        counts = np.zeros((len(models), signs.shape[0], n_features))
        cells = np.arange(len(models))[:, None], np.arange(signs.shape[0])
        memory = self._memory(signs, len(models))
        for step in range(int(self.n_steps)):
            scores = self._scores(rows, signs, counts, step, memory)
            chosen = np.stack(
                [
                    mechanism.select(scores_of_class, source)
                    for scores_of_class, (mechanism, source) in zip(scores, models, strict=True)
                ]
            )
            counts[*cells, chosen % n_features] += np.where(chosen < n_features, 1.0, -1.0)
        return counts * (float(self.radius) / int(self.n_steps))

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if not math.isfinite(float(self.radius) * float(self.data_bound)):
            raise ValueError(f"radius={self.radius!r}, data_bound={self.data_bound!r}: their product must be finite")

    def _witness(self, mechanism: ExponentialSelections, n_rows: int, n_features: int) -> Witness | None:
        if self.n_steps > _AUDIT_STEPS or n_features == int(self.fit_intercept):
            return None
        chain = self._chain(mechanism.noise_scale, n_rows, n_features)
        return selection_witness(chain, len(self.classes_), mechanism.delta)

    def _chain(self, noise_scale: int, n_rows: int, n_features: int) -> SelectionChain:
        most = 2.0**_FEATURE_BITS
        return SelectionChain(
            n_rows=n_rows,
            n_steps=int(self.n_steps),
            n_free=n_features - int(self.fit_intercept),
            constant=bool(self.fit_intercept),
            slope=lambda products, step: self._slope_cells(products * most, step, n_rows),
            unit=most / noise_scale,
        )

    def _guarantee(self, release: Release, mechanism: ExponentialSelections, witness: Witness | None) -> Guarantee:
        n_rows = release.rows.shape[0]
        # The mean loss in units of a score.
        unit = float(self.radius) * float(self.data_bound) / n_rows / 2.0 ** (_FEATURE_BITS + slope_bits(n_rows))
        claim = Claim(
            event=SelfComposed(ExponentialMechanism(mechanism.step_epsilon), mechanism.n_selections),
            mechanism=f"exponential mechanism, {mechanism.n_selections} selections of a vertex (Frank-Wolfe)",
            neighbours="replace_one",
            epsilon_requested=mechanism.epsilon,
            delta=mechanism.delta,
            sensitivity=mechanism.sensitivity * unit,
            noise_scale=mechanism.noise_scale * unit,
            assumptions=(
                f"features have size at most {self.data_bound:g}: enforced by clipping",
                REFUSED_DATA,
                "the number of rows, the radius, the number of steps, the smoothing, the class set, the number of "
                "features and the scaling bounds are public",
                ONE_MODEL,
                NOISE_ASSUMPTION,
            ),
            reference="sound counterpart of dpwss-2021; Talwar, Thakurta, Zhang (2015), Algorithm 2",
        )
        return release.grant(claim, witness, n_rows=None)


ESTIMATOR = DPFrankWolfeClassifier
