"""One-vs-rest SVMs in one joint Gaussian release: the honest one-vs-rest baseline.

For more than two classes a row is given to the class with the largest score, which does not see the mean of the weight
vectors. The mean is subtracted before the release, which removes a good part of the sensitivity.

Sensitivity. Add a row x of norm at most R to the problem of class k, with sign s: 1 for its own class, -1 for the
others. The hinge's slope there is between -s x and 0, so strong convexity gives ``||D_k||^2 <= <D_k, C s x>`` for the
move D_k of the optimum: D_k lies in the ball that has the segment from 0 to ``C s x`` as a diameter. In units of C R
the moves of the ``c - 1`` other classes share one ball of radius 1/2, and the move of the row's own class lies in its
mirror image. Let the others' mean be at a distance q from the centre of their ball. Their squared distances to that
mean add up to at most ``(c - 1)(1/4 - q^2)``; the mean and the own class are at most ``q + 3/2`` apart. So the squared
distances of all moves to their common mean add up to at most ``(c - 1)(1/4 - q^2) + (c - 1)/c (q + 3/2)^2``, with q up
to 1/2. The largest value is ``(c + 8) / 4`` for four classes and more, and ``8 / 3`` for three. A replaced row is one
removed and one added: twice the bound. Weights with their mean left in move by ``sqrt(c)`` in place of
``sqrt((c + 8) / 4)``: 1.5 times as far for ten classes, and twice as far for very many. One row attains the bound for
three and for four classes.

Two classes are one binary problem and one vector.
"""

from __future__ import annotations

import math

import numpy as np

from privsvm.base.parameters import DELTA
from privsvm.families.output_perturbation.hinge_release import LinearRows
from privsvm.families.output_perturbation.perturbation import solution_sensitivity, solve_one_vs_rest
from privsvm.privacy.events import Neighbours


def centred_sensitivity(C: float, data_norm: float, n_classes: int, neighbours: Neighbours, gap: float = 0.0) -> float:
    """Bound how far one-vs-rest weights, minus their mean, move between neighbouring datasets.

    In the L2 norm of all weights together: ``C R sqrt((c + 8) / 4)`` to add or remove a row (``sqrt(8 / 3)`` for three
    classes, 1 for two), twice that to replace one, plus ``2 sqrt(k gap)`` for k problems. R bounds a row's norm, and
    `gap` is the square of the public bound on every binary problem's distance to its optimum. For two classes it is the
    binary problem's, with its one vector.
    """
    if n_classes == 2:
        return solution_sensitivity(C * data_norm, neighbours, gap)
    factor = 8.0 / 3.0 if n_classes == 3 else (n_classes + 8) / 4.0
    # Taking the mean off brings no two sets of weights further apart: errors of the solver add up as they are.
    return solution_sensitivity(math.sqrt(factor) * C * data_norm, neighbours, n_classes * gap)


def solve_centred(X, codes: np.ndarray, n_classes: int, C: float, gap: float) -> np.ndarray:
    """Solve for the exact weights minus their mean, (c, d); for two classes one vector, (1, d)."""
    return solve_one_vs_rest(X, codes, n_classes, C, gap, centred=n_classes > 2)


class OvRJointGaussianClassifier(LinearRows):
    """Private one-vs-rest linear SVM: Gaussian noise on all weight vectors at once, minus their mean.

    Attributes
    ----------
    coef_ : ndarray (k, d)
        Noisy weight vectors minus their mean; k is 1 for two classes. The exact ones are not kept.

    Notes
    -----
    Training time is not covered: it depends on the rows.

    Scores are worth comparing with each other only: what all classes have in common is gone.

    Examples
    --------
    >>> from privsvm import OvRJointGaussianClassifier
    >>> model = OvRJointGaussianClassifier(epsilon=4.0, C=0.1, classes=[0, 1, 2])
    >>> model.fit([[-1.0, 0.0], [1.0, 0.0], [0.0, 1.0]] * 50, [0, 1, 2] * 50).guarantee_.status
    'proved'
    """

    _reference = (
        "output perturbation (Chaudhuri, Monteleoni, Sarwate 2011) with the joint sensitivity proved in "
        "privsvm.methods.ovr_joint_gaussian"
    )

    as_one_vector = True

    delta: float = DELTA

    def _solve(self, rows, codes: np.ndarray, gap: float) -> np.ndarray:
        return solve_centred(rows, codes, len(self.classes_), float(self.C), gap)

    def _sensitivity(self, norm: float, gap: float) -> float:
        return centred_sensitivity(float(self.C), norm, len(self.classes_), self.neighbours, gap)

    @property
    def _description(self) -> str:
        return "the weights of bias-free one-vs-rest hinge SVMs, all at once" + (
            "" if len(self.classes_) == 2 else ", their mean over the classes taken off"
        )


ESTIMATOR = OvRJointGaussianClassifier
