"""AdaSSP: private ridge regression whose ridge adapts to noisy second moments (Wang 2018, Algorithm 2).

Revisiting differentially private linear regression releases the Gram matrix A, its smallest eigenvalue, and the
products B of rows and responses, with a third of the budget each, and solves ``(A + lambda I) w = B``. Lambda makes up
for the smallest eigenvalue's distance to ``s sqrt(d log(2 d^2 / rho))``, a size that the noise on A, of standard
deviation s, exceeds with a chance below rho.

Here responses are codes of classes, which is one-vs-rest regression without the sum of all classes, and A and B are one
release (`privsvm.families.moments.joint_moments`). Where a row is added, A then has the noise of a third of the budget
and B half the variance of one. The smallest eigenvalue is read off the released A, and costs nothing. Rows are centred
and divided by their norm.
"""

from __future__ import annotations

import math

import numpy as np

from privsvm.families.moments.joint_moments import JointMomentsClassifier, scores_of_codes
from privsvm.families.moments.second_moments import Moments

# Chance that the noise is larger than the ridge assumes (rho).
_FAILURE = 0.05


def ridge_weights(moments: Moments, spread: float) -> np.ndarray:
    """Solve ridge regression from noisy moments; no eigenvalue of the inverted matrix is below the noise."""
    spectrum, directions = np.linalg.eigh(moments.gram)
    n_features = spectrum.size
    size = spread * math.sqrt(n_features * math.log(2.0 * n_features**2 / _FAILURE))
    ridge = max(0.0, size - float(spectrum[0]))
    weights: np.ndarray = (directions / (spectrum + ridge)) @ (directions.T @ moments.cross)
    return weights


class AdaSSPClassifier(JointMomentsClassifier):
    """Private linear classifier: one-vs-rest ridge regression from noisy second moments, which set the ridge.

    Examples
    --------
    >>> from privsvm import AdaSSPClassifier
    >>> model = AdaSSPClassifier(epsilon=4.0, classes=[0, 1])
    >>> model.fit([[-1.0, 0.0], [1.0, 0.0]] * 50, [0, 1] * 50).guarantee_.status
    'proved'
    """

    solution = "ridge regression"
    reference = "after Wang (2018), Revisiting differentially private linear regression, Algorithm 2, AdaSSP"

    def _solve(self, moments: Moments, spread: float, n_rows: int) -> np.ndarray:
        return scores_of_codes(ridge_weights(moments, spread), len(self.classes_))


ESTIMATOR = AdaSSPClassifier
