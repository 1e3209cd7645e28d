"""PrivateSVM with Laplace noise, as in its paper (Rubinstein, Bartlett, Huang, Taft 2012, Algorithm 1).

`privsvm.methods.private_svm` tells how far a replaced row moves the weights.
"""

from __future__ import annotations

from privsvm.families.output_perturbation.hinge_release import LaplaceNoise, LinearRows


class PrivateSVMLaplaceClassifier(LinearRows, LaplaceNoise):
    """Private linear SVM by Laplace noise on its weights, with pure differential privacy; one-vs-rest.

    Examples
    --------
    >>> from privsvm import PrivateSVMLaplaceClassifier
    >>> model = PrivateSVMLaplaceClassifier(epsilon=4.0, C=0.1, classes=[0, 1])
    >>> guarantee = model.fit([[-1.0], [1.0]] * 50, [0, 1] * 50).guarantee_
    >>> guarantee.status, guarantee.delta
    ('proved', 0.0)
    """

    algorithm = 1


ESTIMATOR = PrivateSVMLaplaceClassifier
