"""Noisy gradient steps with a noisy second moment as preconditioner: DP-FC (Mehta and others 2022, arXiv 2211.13403).

Rows are divided by their norm, a noisy mean is subtracted, they are divided by their norm again, and a constant feature
is appended. Their Gram matrix is released with noise, without their labels, and then T noisy sums of clipped gradients
over all rows. Each is multiplied by ``f(A)`` with ``f(w) = (w^2 + lambda^2)^(-power / 2)`` on the eigenvalues w of the
Gram matrix A over the number of rows; lambda is the size of the largest eigenvalues of its noise, and f is scaled to a
mean of 1. Under ``replace_one`` Gram matrix and gradients are one release, in which the Gram matrix costs nothing
(`privsvm.families.moments.second_moments.share_beside`). Noise is added before, so that directions of little spread get
more of it than of steps: a power of 1/2 does better than the paper's 1 on most sets.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from privsvm.base.parameters import parameter
from privsvm.constraints import COUNT, real
from privsvm.families.moments.centred_training import CentredRowsClassifier, CentredTraining
from privsvm.families.moments.second_moments import MomentsMechanism, share_beside
from privsvm.numerics.noise.noise_source import NoiseSource
from privsvm.numerics.rows.row_blocks import cache_rows
from privsvm.privacy.events import Gaussian, SelfComposed, relation_factor
from privsvm.solvers.gradients.huber_descent import HuberDescent, descend

# The Gram matrix's share of the budget that remains after the centre.
_MOMENT_SHARE = 0.15
# All steps together, along a row's mean gradient, over the number of rows for one unit of noise.
_LENGTH = 0.4


def preconditioner(gram: np.ndarray, spread: float, power: float) -> np.ndarray:
    """Make the matrix that gradients are multiplied by.

    The noisy Gram matrix is inverted where it stands out of its noise, of standard deviation `spread` off the diagonal,
    by a power of 1. The result is symmetric and positive; the mean of its eigenvalues is 1.
    """
    spectrum, directions = np.linalg.eigh(gram)
    # Over the largest one: the scale does not count.
    largest = max(float(np.abs(spectrum).max()), spread)
    factors = np.hypot(spectrum / largest, spread / largest * math.sqrt(spectrum.size)) ** -power
    matrix: np.ndarray = (directions * (factors / factors.mean())) @ directions.T
    return matrix


class DPFeatureCovarianceClassifier(CentredRowsClassifier):
    """Private linear SVM by noisy gradient steps that a noisy second moment of the rows preconditions (DP-FC).

    Examples
    --------
    >>> from privsvm import DPFeatureCovarianceClassifier
    >>> model = DPFeatureCovarianceClassifier(epsilon=4.0, classes=[0, 1])
    >>> model.fit([[-1.0, 0.0], [1.0, 0.0]] * 50, [0, 1] * 50).guarantee_.status
    'proved'
    """

    _reference = (
        "Mehta, Krichene, Thakurta, Kurakin, Cutkosky (2022), DP-FC; sensitivities proved in "
        "privsvm.families.moments.second_moments and privsvm.solvers.gradients.huber_descent"
    )

    n_steps: int = parameter(40, COUNT, "Number of noisy steps over all rows.")
    power: float = parameter(
        0.5,
        real("must be above 0 and at most 1", above=0, most=1),
        "How much of the spread's differences the preconditioner evens out: 1 is the paper's inverse.",
    )

    def _training(self, multiplier: Callable[[float], float], n_features: int) -> CentredTraining:
        n_steps, joint = int(self.n_steps), self.neighbours == "replace_one"
        moments = MomentsMechanism(
            n_features=n_features,
            n_codes=0,
            neighbours=self.neighbours,
            multiplier=multiplier(_MOMENT_SHARE),
            whole_multiplier=multiplier(1.0) if joint else None,
        )
        steps = 1.0 - _MOMENT_SHARE
        if joint:
            steps = share_beside(_MOMENT_SHARE, 1.0, 1.0, n_features, moments.rounding_share)
        step = multiplier(steps / n_steps)
        apart = (Gaussian(moments.multiplier), SelfComposed(Gaussian(step), n_steps))
        events = (Gaussian(multiplier(1.0)),) if joint else apart
        # Beside the moments, a step has the noise of a part of one release.
        return CentredTraining(moments, events, relation_factor(self.neighbours), None if joint else step, step)

    def _weights(
        self, cells: Any, codes: np.ndarray, n_rows: int, plan: CentredTraining, source: NoiseSource
    ) -> np.ndarray:
        n_classes = len(self.classes_)
        cells = cache_rows(cells)
        gram = plan.moments.release(cells, np.zeros((cells.shape[0], 0)), source.part("moments")).gram
        descent = HuberDescent(
            n_steps=int(self.n_steps),
            length=_LENGTH * plan.signal,
            noise_multiplier=plan.step_multiplier,
            whole_multiplier=plan.moments.whole_multiplier,
        )
        matrix = preconditioner(gram, plan.moments.spread, float(self.power))
        weights = descend(cells, codes, n_classes, np.ones(n_classes), descent, source.part("steps"), matrix)
        return weights[1:] - weights[:1] if n_classes == 2 else weights

    @property
    def _description(self) -> str:
        return (
            f"the Gram matrix of centred unit rows, and on {int(self.n_steps)} sums of clipped gradients, which it "
            "preconditions: all-in-one Huber hinge"
        )


ESTIMATOR = DPFeatureCovarianceClassifier
