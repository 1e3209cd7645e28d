"""Private linear discriminant analysis from noisy moments (after Tong, Xi, Kantarcioglu and Inan 2017).

Their Gaussian mixture models for classification and hypothesis tests under differential privacy take means and
covariances with noise, and repair the covariance. Here all are read off one release of second moments
(`privsvm.families.moments.joint_moments`): a class's sum of rows S and its count n are a share of the sum of all rows,
which are products with the constant feature, and of the products with codes. The scatter within classes is
``W = A - sum S S' / n``; its inverse is repaired as in `dp_least_squares`. A class with mean m has the score
``N m' W^-1 x - N m' W^-1 m / 2 + log(n / N)`` of N rows.
"""

from __future__ import annotations

import numpy as np

from privsvm.families.moments.joint_moments import JointMomentsClassifier, class_sums
from privsvm.families.moments.second_moments import CONSTANT, Moments, solve_noisy_moments


def discriminants(moments: Moments, spread: float, n_rows: int) -> np.ndarray:
    """Compute weights (c, d + 1) of the classes' scores; the last are of the constant feature."""
    sums = class_sums(moments, spread, n_rows)
    counts = sums[:, -1]
    means = sums[:, :-1] / counts[:, np.newaxis]
    within = moments.gram[:-1, :-1] - (means.T * counts) @ means
    weights = n_rows * solve_noisy_moments(Moments(within, means.T), spread).T
    offsets = np.log(counts / counts.sum()) - 0.5 * (weights * means).sum(axis=1)
    return np.column_stack([weights, offsets / CONSTANT])


class DPLDAClassifier(JointMomentsClassifier):
    """Private linear discriminant analysis: class means and a common covariance, from noisy second moments.

    Examples
    --------
    >>> from privsvm import DPLDAClassifier
    >>> model = DPLDAClassifier(epsilon=4.0, classes=[0, 1])
    >>> model.fit([[-1.0, 0.0], [1.0, 0.0]] * 50, [0, 1] * 50).guarantee_.status
    'proved'
    """

    solution = "linear discriminant analysis"
    reference = "after Tong, Xi, Kantarcioglu, Inan (2017), Gaussian mixture models under differential privacy"

    def _solve(self, moments: Moments, spread: float, n_rows: int) -> np.ndarray:
        scores = discriminants(moments, spread, n_rows)
        return scores[1:] - scores[:1] if len(scores) == 2 else scores


ESTIMATOR = DPLDAClassifier
