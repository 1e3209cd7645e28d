"""Private least squares from noisy second moments (after AdaSSP: Wang 2018, Revisiting private linear regression).

Rows are divided by their norm, a noisy mean is subtracted, they are divided by their norm again, and a constant
feature is appended. One Gaussian release then has their Gram matrix A and their products B with codes of the classes
(`privsvm.families.moments.joint_moments`). The weights are ``f(A) B`` with ``f(w) = 1 / sqrt(w^2 + lambda^2)`` on the
eigenvalues w of A: the inverse where they stand out of the noise, and a constant where they do not. Lambda is the size
of the largest eigenvalues of the noise, which is public. (`privsvm.methods.adassp` adds a ridge in its place.)
"""

from __future__ import annotations

import numpy as np

from privsvm.families.moments.joint_moments import JointMomentsClassifier, scores_of_codes
from privsvm.families.moments.second_moments import Moments, solve_noisy_moments


class DPLeastSquaresClassifier(JointMomentsClassifier):
    """Private linear classifier: least squares on class codes, from noisy second moments.

    Examples
    --------
    >>> from privsvm import DPLeastSquaresClassifier
    >>> model = DPLeastSquaresClassifier(epsilon=4.0, classes=[0, 1])
    >>> model.fit([[-1.0, 0.0], [1.0, 0.0]] * 50, [0, 1] * 50).guarantee_.status
    'proved'
    """

    solution = "least squares"
    reference = "after Wang (2018), Revisiting differentially private linear regression, AdaSSP"

    def _solve(self, moments: Moments, spread: float, n_rows: int) -> np.ndarray:
        return scores_of_codes(solve_noisy_moments(moments, spread), len(self.classes_))


ESTIMATOR = DPLeastSquaresClassifier
