"""What both kinds of PMSVM with weight perturbation share: Gaussian noise on the weights of a Crammer-Singer SVM."""

from __future__ import annotations

import abc
import functools
import math
from typing import Any

import numpy as np

from privsvm.auditing.witnesses import extreme_rows, gaussian_witness, largest_move
from privsvm.base.estimators import PrivateClassifier, Release
from privsvm.base.parameters import C_PUBLIC, DATA_NORM, DELTA
from privsvm.base.released import LinearPath
from privsvm.families.output_perturbation.perturbation import check_rows, solution_sensitivity
from privsvm.privacy.events import Neighbours
from privsvm.privacy.gate import Guarantee
from privsvm.privacy.mechanisms import GaussianMechanism
from privsvm.privacy.statement import Witness


def weight_sensitivity(C: float, data_norm: float, neighbours: Neighbours, gap: float = 0.0) -> float:
    """Bound how far the released weights move between neighbouring datasets.

    ``2 sqrt(2) C R`` or ``sqrt(2) C R``, plus ``2 sqrt(gap)``, for the bound R on a row's norm; see
    `solution_sensitivity`.
    """
    return solution_sensitivity(math.sqrt(2.0) * C * data_norm, neighbours, gap)


class WeightPerturbationClassifier(PrivateClassifier):
    """Gaussian noise on the weights of a Crammer-Singer SVM; a base.

    Attributes
    ----------
    coef_ : ndarray (c, d)
        Noisy weight vectors; the exact ones are not kept.
    intercept_ : ndarray (c,)
        Zeros: the problem has no offsets.
    noise_multiplier_ : float
        Standard deviation of the noise over the sensitivity.
    """

    delta: float = DELTA
    C: float = C_PUBLIC
    data_norm: float = DATA_NORM

    @abc.abstractmethod
    def _certificate(self) -> tuple[float, int]:
        """Square of the public distance to the optimum that a solve certifies, and for how many rows."""

    @abc.abstractmethod
    def _bound_rows(self, X: Any) -> Any:
        """Rows as the solver sees them."""

    @abc.abstractmethod
    def _solve(self, X: Any, codes: np.ndarray, n_classes: int, gap: float) -> np.ndarray:
        """Exact weights (c, d) of one dataset, which must not leave this object."""

    @abc.abstractmethod
    def _guarantee(
        self, fields: dict[str, Any], certificate: tuple[float, int], witness: Witness | None, release: Release
    ) -> Guarantee:
        """Privacy record of one release, of common `fields` and the certificate of its solution."""

    def _release(self, release: Release) -> LinearPath:
        X, codes, delta = release.rows, release.codes, release.delta
        gap, most_rows = self._certificate()
        check_rows(X.shape[0], most_rows)
        rows = self._bound_rows(X)
        weights = release.solve(self._solve, rows, codes, release.n_classes, gap)
        sensitivity = weight_sensitivity(float(self.C), float(self.data_norm), self.neighbours, gap)
        mechanisms = [GaussianMechanism(epsilon, delta, sensitivity, weights.size) for epsilon in release.epsilons]
        distance, pair = self._largest_move(X, rows, codes, weights, gap) if release.audit else (0.0, "")
        guarantees = []
        for mechanism in mechanisms:
            witness = None
            if release.audit:
                witness = gaussian_witness(distance, mechanism.noise_scale, delta, self.neighbours, pair)
            fields = {
                "mechanism": "Gaussian noise on the Crammer-Singer weights (weight perturbation)",
                "neighbours": self.neighbours,
                "epsilon_requested": mechanism.epsilon,
                "delta": delta,
                "sensitivity": mechanism.total_sensitivity,
                "noise_scale": mechanism.noise_scale,
            }
            guarantees.append(self._guarantee(fields, (gap, most_rows), witness, release))
        release.pay(guarantees)
        coef = release.stack(mechanisms, lambda mechanism, source: mechanism.release(weights, source))
        return release.path(LinearPath, coef=coef, intercept=np.zeros(coef.shape[:3]))

    def _keep(self, path: LinearPath) -> None:
        super()._keep(path)
        self.intercept_ = path.intercept[0, 0]
        guarantee: Any = path.guarantees[0]
        self.noise_multiplier_ = guarantee.noise_scale / guarantee.sensitivity

    def _largest_move(self, X: Any, rows: Any, codes: np.ndarray, weights: np.ndarray, gap: float) -> tuple[float, str]:
        """Measure how far one extreme row moves the weights, and describe the pair of datasets."""
        n_classes = weights.shape[0]
        pairs = []
        for row in extreme_rows(X):
            row = self._bound_rows(row)
            # The two labels that fit best: each is the other's closest rival, so the row pulls the opposite way.
            first, second = np.argsort((row @ weights.T)[0], kind="stable")[-2:]
            pairs.append(((row, first), (row, second)))
        change = "put under another label" if self.neighbours == "replace_one" else "taken away"
        solve = functools.partial(self._solve, n_classes=n_classes, gap=gap)
        return largest_move(rows, codes, pairs, solve, self.neighbours, change)
