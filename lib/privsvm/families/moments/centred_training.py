"""Classifiers of centred unit rows with a constant feature, of which moments are released with noise.

Rows are divided by their norm, a noisy mean is subtracted, they are divided by their norm again, and a constant feature
is appended, which makes room for offsets. What follows are further Gaussian releases of these rows
(`privsvm.families.moments.second_moments`), all composed exactly.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from privsvm.auditing.witnesses import gaussian_witness
from privsvm.base.estimators import DescribedRelease, PrivateClassifier, Release
from privsvm.base.feature_steps import Step
from privsvm.base.parameters import DELTA, parameter
from privsvm.base.released import LinearPath
from privsvm.constraints import ROWS, optional
from privsvm.families.moments.second_moments import (
    MomentsMechanism,
    centre_rows,
    constant_feature,
    noisy_centre,
    rows_per_noise,
    share_of_centre,
    unit_cell_rows,
)
from privsvm.families.output_perturbation.perturbation import EVERY_RELEASE, REFUSED_DATA
from privsvm.numerics.noise.noise_source import NoiseSource
from privsvm.numerics.rows.row_blocks import RowBlocks, RowsByBlock, dense_bytes
from privsvm.privacy.accounting import gaussian_noise_multiplier
from privsvm.privacy.events import Composed, Event, Gaussian, relation_factor
from privsvm.privacy.gate import Claim, Guarantee

# Keeps the shares of a budget from adding up to more than it by round-off.
_ROUND_UP = 1.0 + 1e-12
# Bytes of dense rows above which they are worked on block by block.
_LARGEST_TABLE = 2**27


class CentredTraining(NamedTuple):
    """What follows the release of the centre, all of it public."""

    moments: MomentsMechanism
    # Noise multipliers of the moments and of the releases after them.
    events: tuple[Event, ...]
    # For the record: sensitivity of one release, and the standard deviation of its noise if the event has it.
    sensitivity: float
    noise_scale: float | None
    # Noise multiplier of one step, for methods that take steps.
    step_multiplier: float = 0.0
    # Contribution of one row over the noise of one release with the whole budget.
    signal: float = 0.0


class CentredRowsClassifier(DescribedRelease, PrivateClassifier):
    """Training on centred unit rows; a base.

    Attributes
    ----------
    coef_ : ndarray (k, d)
        Weights of centred unit rows; k is 1 for two classes, and the number of classes otherwise.
    intercept_ : ndarray (k,)
        Offsets.
    centre_ : ndarray (d,)
        The noisy mean of unit rows. Scores are of rows that are divided by their norm, less the centre, and divided by
        their norm again.

    Notes
    -----
    Features should have public ranges and be scaled by them, to -1 to 1 for example; the rows' lengths do not count.
    Training time is not covered: it depends on the rows.
    """

    reads_blocks = True
    class_memory = "classes"

    delta: float = DELTA
    n_rows: int | None = parameter(
        None,
        optional(ROWS),
        "Public number of training rows, by which the noisy sum of rows is divided. None counts the rows, which is the "
        "same for neighbours under ``replace_one``; under ``add_remove`` this needs ``allow_unsound=True``, and the "
        "status becomes ``claimed``.",
        common=True,
    )

    @abc.abstractmethod
    def _training(self, multiplier: Callable[[float], float], n_features: int) -> CentredTraining:
        """Plan what follows the centre, for rows of `n_features` numbers, the constant one among them.

        `multiplier` gives the noise multiplier of a release that gets a share of the rest of the budget.
        """

    @abc.abstractmethod
    def _weights(
        self, cells: Any, codes: np.ndarray, n_rows: int, plan: CentredTraining, source: NoiseSource
    ) -> np.ndarray:
        """Train weights (k, d + 1) on rows of whole numbers of 2^-20."""

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.n_rows is None and self.neighbours == "add_remove" and not self.allow_unsound:
            raise ValueError(
                "n_rows=None: the mean would be divided by the private number of rows; give a public number of rows, "
                "or consent with allow_unsound=True"
            )

    def _release(self, release: Release) -> LinearPath:
        X = release.rows
        n_rows = X.shape[0] if self.n_rows is None else int(self.n_rows)
        by_block = isinstance(X, RowBlocks) or dense_bytes(X) > _LARGEST_TABLE
        cells = unit_cell_rows(RowsByBlock.of(X, sparse=True) if by_block else X)
        plans = [(epsilon, *self._plan(epsilon, release.delta, n_rows, cells.shape[1])) for epsilon in release.epsilons]
        release.pay(self._guarantee(release, epsilon, n_rows, multiplier, plan) for epsilon, multiplier, plan in plans)
        models = [
            self._model(cells, release.codes, n_rows, multiplier, plan, release.source(epsilon, repeat))
            for epsilon, multiplier, plan in plans
            for repeat in range(release.repeats)
        ]
        coef, intercept, centre = release.stack_models(models)
        steps = Step("unit"), Step("direction", {"centre": centre})
        return release.path(LinearPath, coef=coef, intercept=intercept, steps=steps)

    def _plan(self, epsilon: float, delta: float, n_rows: int, n_features: int) -> tuple[float, CentredTraining]:
        """Noise multiplier of the centre, and what follows."""
        multiplier = relation_factor(self.neighbours) * gaussian_noise_multiplier(epsilon, delta) * _ROUND_UP
        share = share_of_centre(n_features, rows_per_noise(n_rows, epsilon, delta, self.neighbours))
        plan = self._training(
            lambda release_share: multiplier / math.sqrt((1.0 - share) * release_share), n_features + 1
        )
        return multiplier / math.sqrt(share), plan._replace(signal=1.0 / multiplier)

    def _model(
        self,
        cells: Any,
        codes: np.ndarray,
        n_rows: int,
        multiplier: float,
        plan: CentredTraining,
        source: NoiseSource,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Release one model: weights (k, d), offsets (k,) and the centre (d,)."""
        centre = noisy_centre(cells, n_rows, multiplier, source.part("centre"))
        rows, scale, constant = constant_feature(centre_rows(cells, centre))
        weights = self._weights(rows, codes, n_rows, plan, source)
        return weights[:, :-1] * scale, weights[:, -1] * constant, centre

    def _guarantee(
        self, release: Release, epsilon: float, n_rows: int, multiplier: float, plan: CentredTraining
    ) -> Guarantee:
        witness = None
        if release.audit:
            pair = "two rows with one label" if self.neighbours == "replace_one" else "one row, and none"
            witness = gaussian_witness(
                plan.moments.largest_distance(),
                plan.moments.noise_scale,
                release.delta,
                self.neighbours,
                f"{pair}, made up, after centring: their moments; given the other releases, which cost more",
            )
        counted = "counted" if self.n_rows is None else "declared"
        claim = Claim(
            event=Composed((Gaussian(multiplier), *plan.events)),
            mechanism=f"Gaussian noise on the sum of unit rows, then on {self._description}",
            neighbours=self.neighbours,
            epsilon_requested=epsilon,
            delta=release.delta,
            sensitivity=plan.sensitivity,
            noise_scale=plan.noise_scale,
            assumptions=(
                "rows have norm at most 1, with the constant feature too: each is divided by its norm and truncated to "
                "a public grid by itself",
                REFUSED_DATA,
                f"n_rows={n_rows} ({counted}), the class set, the number of features and the scaling bounds are public",
                *EVERY_RELEASE,
            ),
            reference=self._reference,
        )
        return release.grant(claim, witness, n_rows=self.n_rows)

    def _keep(self, path: LinearPath) -> None:
        super()._keep(path)
        self.intercept_, self.centre_ = path.intercept[0, 0], path.steps[-1].arrays["centre"][0, 0]
