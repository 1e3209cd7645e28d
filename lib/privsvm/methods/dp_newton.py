"""Newton steps from a noisy Hessian and a noisy gradient (Avella-Medina, Bradshaw, Loh 2023, arXiv 2103.11003).

Rows are divided by their norm, a noisy mean is subtracted, they are divided by their norm again, and a constant
feature is appended. Every step then releases a Hessian H and a gradient G over all rows, both with noise, and moves the
weights along ``f(H) G``, with ``f(w) = 1 / sqrt(w^2 + lambda^2)`` on the eigenvalues w: the inverse where they stand
out of the noise. Lambda is twice the size of the largest eigenvalues of the noise, which is public.

Two things differ from the paper. The loss is a smoothed hinge, with curvatures from parabolas that lie nowhere below it
(`privsvm.solvers.linear.newton_rows`; Ganesh, Haghifam, Steinke, Thakurta 2023, arXiv 2305.13209, do so for the
logistic loss, and add their second noise to the direction: its sensitivity would have to cover the round-off of a
solver). And one release has both H and G, with the joint sensitivity that least squares has
(`privsvm.families.moments.second_moments`): under ``replace_one`` the Hessian is free.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from privsvm.base.parameters import parameter
from privsvm.constraints import COUNT
from privsvm.families.moments.centred_training import CentredRowsClassifier, CentredTraining
from privsvm.families.moments.second_moments import MomentsMechanism, exact_moments, solve_noisy_moments
from privsvm.numerics.noise.noise_source import NoiseSource
from privsvm.numerics.rows.row_blocks import cache_rows, is_by_block
from privsvm.privacy.events import Gaussian, SelfComposed
from privsvm.solvers.linear.newton_rows import weighted_rows

# Lambda, in sizes of the largest eigenvalues of the noise.
_DAMPING = 2.0
# Parabolas are wider than clipped losses, more so with many classes: steps are longer by this, times the root of
# the number of rivals.
_LENGTH = 3.0
# Rows that are worked on at a time.
_BLOCK_ROWS = 2**12


def step_sums(cells: Any, codes: np.ndarray, n_classes: int, weights: np.ndarray, first: int = 0) -> np.ndarray:
    """Add up what rows add to a step's Hessian and gradient, exactly.

    Rows are whole numbers of 2^-20, of norm 2^20 at most; see `privsvm.solvers.linear.newton_rows.weighted_rows`. Sums
    (d, d + c) come from `privsvm.families.moments.second_moments.exact_moments`. The number of the first row is not
    used.
    """
    if is_by_block(cells):
        sums: np.ndarray = cells.total(step_sums, codes, arguments=(n_classes, weights))
        return sums
    total = np.zeros((cells.shape[1], cells.shape[1] + n_classes), dtype=np.int64)
    for start in range(0, cells.shape[0], _BLOCK_ROWS):
        rows = slice(start, start + _BLOCK_ROWS)
        total += exact_moments(*weighted_rows(cells[rows], codes[rows], n_classes, weights))
    return total


class DPNewtonClassifier(CentredRowsClassifier):
    """Private linear SVM by a few Newton steps, each from a noisy Hessian and a noisy gradient.

    Examples
    --------
    >>> from privsvm import DPNewtonClassifier
    >>> model = DPNewtonClassifier(epsilon=4.0, classes=[0, 1])
    >>> model.fit([[-1.0, 0.0], [1.0, 0.0]] * 50, [0, 1] * 50).guarantee_.status
    'proved'
    """

    _reference = (
        "after Avella-Medina, Bradshaw, Loh (2023), noisy Newton; sensitivities proved in "
        "privsvm.families.moments.second_moments and privsvm.solvers.linear.newton_rows"
    )

    n_steps: int = parameter(4, COUNT, "Number of noisy steps over all rows.")

    def _training(self, multiplier: Callable[[float], float], n_features: int) -> CentredTraining:
        n_steps = int(self.n_steps)
        step = MomentsMechanism(
            n_features=n_features,
            n_codes=len(self.classes_),
            neighbours=self.neighbours,
            multiplier=multiplier(1.0 / n_steps),
        )
        event = SelfComposed(Gaussian(step.multiplier), n_steps)
        return CentredTraining(step, (event,), step.sensitivity, step.noise_scale)

    def _weights(
        self, cells: Any, codes: np.ndarray, n_rows: int, plan: CentredTraining, source: NoiseSource
    ) -> np.ndarray:
        n_classes = len(self.classes_)
        cells = cache_rows(cells)
        weights = np.zeros((n_classes, cells.shape[1]))
        length = _LENGTH * math.sqrt(n_classes - 1)
        for step in range(int(self.n_steps)):
            sums = step_sums(cells, codes, n_classes, weights)
            moments = plan.moments.noisy(sums, source.part(f"step {step}"))
            move = solve_noisy_moments(moments, _DAMPING * plan.moments.spread).T
            # As the slopes do, whose noise does not: vectors add up to zero.
            weights = weights + length * (move - move.mean(axis=0))
        return weights[1:] - weights[:1] if n_classes == 2 else weights

    @property
    def _description(self) -> str:
        return f"{int(self.n_steps)} Hessians of centred unit rows, each with the gradient, all at once: smoothed hinge"


ESTIMATOR = DPNewtonClassifier
