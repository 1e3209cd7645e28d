"""Private least squares from noisy second moments (after AdaSSP: Wang 2018, Revisiting private linear regression).

Rows are divided by their norm, a noisy mean is subtracted, they are divided by their norm again, and a constant
feature is appended. One Gaussian release then has their Gram matrix A and their products B with codes of the classes
(`privsvm.base.second_moments`): the codes' sensitivity covers the Gram matrix too. The weights are ``f(A) B`` with
``f(w) = 1 / sqrt(w^2 + lambda^2)`` on the eigenvalues w of A: the inverse where they stand out of the noise, and a
constant where they do not. Lambda is the size of the largest eigenvalues of the noise, which is public. (AdaSSP adds a
ridge in its place, and releases A and B apart.)
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from privsvm.base.estimators import NoiseStreams, PrivateClassifier, noise_streams, randomness_of
from privsvm.base.parameters import DELTA, parameter
from privsvm.base.perturbation import REFUSED_DATA, TIME_IS_OUTSIDE
from privsvm.base.private_scaling import rows_to_scale
from privsvm.base.released import CentredLinearPath
from privsvm.base.second_moments import (
    Moments,
    MomentsMechanism,
    centred_rows,
    code_cells,
    constant_feature,
    noisy_centre,
    rows_per_noise,
    share_of_centre,
    simplex_codes,
)
from privsvm.base.validation import check_budgets, check_public_classes, check_training_data, facts_of_call
from privsvm.constraints import COUNT, optional
from privsvm.numerics.noise_source import NoiseSource
from privsvm.numerics.threads import one_blas_thread
from privsvm.privacy.accounting import gaussian_noise_multiplier
from privsvm.privacy.audit import gaussian_witness
from privsvm.privacy.events import Composed, Gaussian, relation_factor
from privsvm.privacy.gate import ONE_MODEL, grant
from privsvm.privacy.guarantee import Guarantee
from privsvm.privacy.mechanisms import NOISE_ASSUMPTION

__all__ = ["ESTIMATOR", "DPLeastSquaresClassifier", "filtered_weights"]

# Keeps the shares of a budget from adding up to more than it by round-off.
_ROUND_UP = 1.0 + 1e-12


def filtered_weights(moments: Moments, spread: float) -> np.ndarray:
    """Solve least squares from noisy moments.

    Parameters
    ----------
    moments : Moments
        Gram matrix (d, d) and cross moments (d, k).
    spread : float
        Standard deviation of the noise on each of their numbers.

    Returns
    -------
    ndarray (d, k)
        ``f(A) B`` with ``f(w) = 1 / sqrt(w^2 + lambda^2)`` and ``lambda = spread sqrt(d)``.
    """
    spectrum, directions = np.linalg.eigh(moments.gram)
    damped = 1.0 / np.hypot(spectrum, spread * math.sqrt(spectrum.size))
    weights: np.ndarray = (directions * damped) @ (directions.T @ moments.cross)
    return weights


class DPLeastSquaresClassifier(PrivateClassifier):
    """Private linear classifier: least squares on class codes, from noisy second moments.

    Attributes
    ----------
    coef_ : ndarray (k, d)
        Weights of centred unit rows; k is 1 for two classes, and the number of classes otherwise.
    intercept_ : ndarray (k,)
        Offsets.
    centre_ : ndarray (d,)
        The noisy mean of unit rows. Scores are those of rows that are divided by their norm, less the centre, and
        divided by their norm again.
    classes_ : ndarray (c,)
        Labels.
    n_features_in_ : int
        Number of features d.
    guarantee_ : Guarantee
        What is proved.

    Notes
    -----
    Features should have public ranges and be scaled by them, to -1 to 1 for example; the rows' lengths do not count.
    Training time is not covered: it depends on the rows.

    Examples
    --------
    >>> from privsvm import DPLeastSquaresClassifier
    >>> model = DPLeastSquaresClassifier(epsilon=4.0, classes=[0, 1], random_state=0)
    >>> model.fit([[-1.0, 0.0], [1.0, 0.0]] * 50, [0, 1] * 50).guarantee_.status
    'proved'
    """

    delta: float = DELTA
    n_rows: int | None = parameter(
        None,
        optional(COUNT),
        "Public number of training rows, by which the noisy sum of rows is divided. None counts the rows, which is the "
        "same for neighbours under ``replace_one``; under ``add_remove`` this needs ``allow_unsound=True``, and the "
        "status becomes ``claimed``.",
        common=True,
    )

    def release_path(
        self,
        X: Any,
        y: Any,
        epsilons: Sequence[float],
        repeats: int,
        rng: NoiseStreams | np.random.Generator | int | None = None,
        audit: bool = False,
    ) -> CentredLinearPath:
        streams = noise_streams(rng, self)
        self.check_declared()
        check_public_classes(self.classes, self.allow_unsound)
        if self.n_rows is None and self.neighbours == "add_remove" and not self.allow_unsound:
            raise ValueError(
                "n_rows=None: the mean would be divided by the private number of rows; give a public number of rows, "
                "or consent with allow_unsound=True"
            )
        epsilons, delta = check_budgets(epsilons, self.delta)
        X, codes, self.classes_ = check_training_data(self, X, y, self.classes)
        n_rows = X.shape[0] if self.n_rows is None else int(self.n_rows)
        started = time.perf_counter()
        cells = rows_to_scale(X, "centre")
        guarantees, models = [], []
        with one_blas_thread():
            for epsilon in epsilons:
                multiplier, mechanism = self._plan(epsilon, delta, n_rows, cells.shape[1])
                guarantees.append(self._guarantee(epsilon, delta, n_rows, multiplier, mechanism, rng, audit))
                models += [
                    self._model(cells, codes, n_rows, multiplier, mechanism, streams(epsilon, repeat))
                    for repeat in range(repeats)
                ]
        coef, intercept, centre = (
            np.stack(part).reshape(len(epsilons), repeats, *part[0].shape) for part in zip(*models, strict=True)
        )
        return CentredLinearPath(
            epsilons=tuple(epsilons),
            guarantees=tuple(guarantees),
            n_classes=len(self.classes_),
            release_seconds=time.perf_counter() - started,
            coef=coef,
            intercept=intercept,
            centre=centre,
        )

    def _plan(self, epsilon: float, delta: float, n_rows: int, n_features: int) -> tuple[float, MomentsMechanism]:
        """Noise multiplier of the centre, and the mechanism of the moments."""
        whole = relation_factor(self.neighbours) * gaussian_noise_multiplier(epsilon, delta) * _ROUND_UP
        share = share_of_centre(n_features, rows_per_noise(n_rows, epsilon, delta, self.neighbours))
        moments = MomentsMechanism(
            n_features=n_features + 1,
            n_codes=len(self.classes_) - 1,
            neighbours=self.neighbours,
            multiplier=whole / math.sqrt(1.0 - share),
        )
        return whole / math.sqrt(share), moments

    def _model(
        self,
        cells: np.ndarray,
        codes: np.ndarray,
        n_rows: int,
        multiplier: float,
        mechanism: MomentsMechanism,
        source: NoiseSource,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Release one model: weights (k, d), offsets (k,) and the centre (d,)."""
        n_classes = len(self.classes_)
        centre = noisy_centre(cells, n_rows, multiplier, source.part("centre"))
        rows, scale, constant = constant_feature(centred_rows(cells, centre))
        moments = mechanism.release(rows, code_cells(n_classes)[codes], source.part("moments"))
        weights = filtered_weights(moments, mechanism.spread)
        # A class's score is the product of the predicted code and its own; of two classes, the code of the second.
        scores = weights.T if n_classes == 2 else simplex_codes(n_classes) @ weights.T
        return scores[:, :-1] * scale, scores[:, -1] * constant, centre

    def _guarantee(
        self,
        epsilon: float,
        delta: float,
        n_rows: int,
        multiplier: float,
        mechanism: MomentsMechanism,
        rng: NoiseStreams | np.random.Generator | int | None,
        audit: bool,
    ) -> Guarantee:
        witness = None
        if audit:
            pair = "two opposite rows with one label" if self.neighbours == "replace_one" else "one row, and none"
            witness = gaussian_witness(
                mechanism.largest_distance(),
                mechanism.noise_scale,
                delta,
                self.neighbours,
                f"{pair}, made up, after centring; given the released centre, which costs more",
            )
        counted = "counted" if self.n_rows is None else "declared"
        return grant(
            facts=facts_of_call(self.classes, n_rows=self.n_rows),
            event=Composed((Gaussian(multiplier), Gaussian(mechanism.multiplier))),
            randomness=randomness_of(rng),
            mechanism="Gaussian noise on the sum of unit rows, then on the Gram matrix of centred unit rows and their "
            "products with the codes of their classes, all at once: least squares",
            neighbours=self.neighbours,
            epsilon_requested=epsilon,
            delta=delta,
            sensitivity=mechanism.sensitivity,
            noise_scale=mechanism.noise_scale,
            assumptions=(
                "rows have norm at most 1, with the constant feature too: each is divided by its norm and truncated to "
                "a public grid by itself",
                REFUSED_DATA,
                f"n_rows={n_rows} ({counted}), the class set, the number of features and the scaling bounds are public",
                TIME_IS_OUTSIDE,
                ONE_MODEL,
                NOISE_ASSUMPTION,
            ),
            reference="after Wang (2018), Revisiting differentially private linear regression, AdaSSP; sensitivity "
            "proved in privsvm.base.second_moments",
            witness=witness,
        )

    def _keep(self, path: CentredLinearPath) -> None:
        super()._keep(path)
        self.intercept_, self.centre_ = path.intercept[0, 0], path.centre[0, 0]


ESTIMATOR = DPLeastSquaresClassifier
