"""PrivateSVM on random Fourier features, with Laplace noise, as in its paper (Rubinstein et al. 2012, Algorithm 2).

`privsvm.methods.private_svm` tells how far a row moves the weights.
"""

from __future__ import annotations

from privsvm.families.output_perturbation.fourier_release import FourierRows
from privsvm.families.output_perturbation.hinge_release import LaplaceNoise


class PrivateSVMRBFLaplaceClassifier(FourierRows, LaplaceNoise):
    """Private SVM with random Fourier features by Laplace noise on its weights: pure differential privacy.

    Examples
    --------
    >>> from privsvm import PrivateSVMRBFLaplaceClassifier
    >>> model = PrivateSVMRBFLaplaceClassifier(epsilon=4.0, C=0.1, classes=[0, 1])
    >>> guarantee = model.fit([[-1.0], [1.0]] * 50, [0, 1] * 50).guarantee_
    >>> guarantee.status, guarantee.delta
    ('proved', 0.0)
    """

    algorithm = 2


ESTIMATOR = PrivateSVMRBFLaplaceClassifier
