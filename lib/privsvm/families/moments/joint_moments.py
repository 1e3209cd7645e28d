"""Classifiers that are solved from one joint release of second moments.

The Gram matrix of centred unit rows with a constant feature and their products with the codes of their classes are one
Gaussian release (`privsvm.families.moments.second_moments`): the codes' sensitivity covers the Gram matrix too. Codes
are corners of a simplex, of two classes -1 and 1. A method's use of the moments reads no row.
"""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from privsvm.families.moments.centred_training import CentredRowsClassifier, CentredTraining
from privsvm.families.moments.second_moments import CONSTANT, Moments, MomentsMechanism, code_cells, simplex_codes
from privsvm.numerics.noise.noise_source import NoiseSource
from privsvm.numerics.rows.row_blocks import Table, is_by_block
from privsvm.privacy.events import Gaussian


def scores_of_codes(weights: np.ndarray, n_classes: int) -> np.ndarray:
    """Turn weights of predicted codes (d, c - 1) into weights of scores (k, d).

    A class's score is the product of the predicted code and its own; of two classes, the code of the second.
    """
    scores: np.ndarray = weights.T if n_classes == 2 else simplex_codes(n_classes) @ weights.T
    return scores


def _shrunk(numbers: np.ndarray, noise: float) -> np.ndarray:
    """Shrink noisy numbers toward zero by their noise, of a known standard deviation (James and Stein)."""
    square = float(numbers @ numbers)
    return numbers * (max(0.0, 1.0 - numbers.size * noise**2 / square) if square > 0.0 else 0.0)


def class_sums(moments: Moments, spread: float, n_rows: int) -> np.ndarray:
    """Read the sums (c, d + 1) of the rows of every class off noisy moments; the last are counts.

    The sum of all rows is shrunk by its noise, and counts toward equal ones. No count is below its noise.
    """
    n_classes, noise = moments.cross.shape[1] + 1, spread / CONSTANT
    total = np.append(_shrunk(moments.gram[-1, :-1] / CONSTANT, noise), n_rows)
    cross = np.vstack([moments.cross[:-1], _shrunk(moments.cross[-1] / CONSTANT, noise)])
    sums: np.ndarray = (1.0 - 1.0 / n_classes) * simplex_codes(n_classes) @ cross.T + total / n_classes
    sums[:, -1] = np.maximum(sums[:, -1], noise)
    return sums


class JointMomentsClassifier(CentredRowsClassifier):
    """Training from one joint release of second moments; a base."""

    # The use of the moments, in words, and its paper.
    solution: ClassVar[str]
    reference: ClassVar[str]

    @abc.abstractmethod
    def _solve(self, moments: Moments, spread: float, n_rows: int) -> np.ndarray:
        """Compute weights (k, d + 1) from released moments.

        `spread` is the standard deviation of the noise on cross moments and off the diagonal of the Gram matrix;
        `n_rows` is public.
        """

    def _training(self, multiplier: Callable[[float], float], n_features: int) -> CentredTraining:
        moments = MomentsMechanism(
            n_features=n_features,
            n_codes=len(self.classes_) - 1,
            neighbours=self.neighbours,
            multiplier=multiplier(1.0),
        )
        return CentredTraining(moments, (Gaussian(moments.multiplier),), moments.sensitivity, moments.noise_scale)

    def _weights(
        self, cells: Any, codes: np.ndarray, n_rows: int, plan: CentredTraining, source: NoiseSource
    ) -> np.ndarray:
        table = code_cells(len(self.classes_))
        row_codes = Table(table, codes) if is_by_block(cells) else table[codes]
        moments = plan.moments.release(cells, row_codes, source.part("moments"))
        return self._solve(moments, plan.moments.spread, n_rows)

    @property
    def _description(self) -> str:
        return (
            "the Gram matrix of centred unit rows and their products with the codes of their classes, all at once: "
            f"{self.solution}"
        )

    @property
    def _reference(self) -> str:
        return f"{self.reference}; sensitivity proved in privsvm.families.moments.second_moments"
